//! Fair claims: delayed tasks are not in the way, namespaces take turns, and so do the runs of one.

use outlast_core::commit::{NewRun, NewTask, StandaloneTask, TaskOutcome};
use outlast_core::id::{ClaimId, LeaseId, TaskName, TaskToken};

use super::scene::*;
use crate::logic::task::PROMOTE_MAX;
use crate::{Claim, ClaimTasks, ClaimedTask, Delivered, Pick, Serves, TaskHeartbeat, TaskState};

super::stories! {
    delayed_task_says_so_until_its_time_has_come,
    cancelled_delayed_task_is_gone,
    more_due_tasks_than_one_claim_makes_ready_all_get_their_turn,
    namespaces_take_turns_whatever_the_backlog_of_others,
    claims_of_one_task_serve_one_namespace_after_the_other,
    priority_is_above_turns,
    turns_of_one_kind_of_claim_are_not_those_of_another,
    a_namespace_with_other_work_only_does_not_hide_the_next_one,
    a_run_with_many_tasks_does_not_keep_another_waiting,
    tasks_of_one_run_stay_in_their_order,
    delayed_tasks_of_one_run_line_up_too,
    poison_at_the_head_of_the_queue_lets_the_others_go_on,
    result_of_a_silent_worker_counts_until_another_has_the_task,
    heartbeat_of_a_silent_worker_keeps_the_task_until_another_has_it,
    noisy_namespace_of_a_hundred_does_not_keep_the_quiet_ones_waiting,
    runs_of_namespaces_take_turns,
    claims_of_one_run_serve_one_namespace_after_the_other,
    runs_of_higher_priority_come_before_turns,
    claim_that_is_refused_uses_up_nobodys_turn,
}

fn alone_in(space: &str, id: &str) -> StandaloneTask {
    StandaloneTask { namespace: namespace(space), task: new_task(id, None) }
}

async fn spaces<const N: usize>(s: &Scene<'_>, names: [&str; N]) {
    for name in names {
        s.store.put_namespace(namespace(name)).await.unwrap();
    }
}

async fn enqueue(s: &Scene<'_>, space: &str, count: usize) {
    let tasks = (0..count).map(|number| alone_in(space, &format!("{number:03}"))).collect();
    assert!(s.store.enqueue(tasks).await.iter().all(Result::is_ok));
}

async fn claim(s: &Scene<'_>, id: u64, limit: usize) -> Vec<ClaimedTask> {
    s.store.claim_tasks(ClaimTasks { limit, ..claim_tasks("w", id) }).await.unwrap()
}

/// What was claimed, with its namespace.
fn names(tasks: &[ClaimedTask]) -> Vec<String> {
    tasks.iter().map(|task| format!("{}/{}", task.namespace, task.id)).collect()
}

fn ids(tasks: &[ClaimedTask]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

async fn delayed_task_says_so_until_its_time_has_come(s: Scene<'_>) {
    let task = NewTask { available_at: Some(at(100)), ..new_task("t", None) };
    s.store.enqueue(vec![StandaloneTask { task, ..alone_in("default", "t") }, alone_in("default", "now")]).await;
    let states = async || s.tasks("default").await.into_iter().map(|task| task.state).collect::<Vec<_>>();
    assert_eq!(states().await, [TaskState::Ready, TaskState::Delayed]);
    s.clock.set(99);
    assert_eq!(ids(&claim(&s, 1, 10).await), ["now"]);
    assert_eq!(states().await, [TaskState::Claimed, TaskState::Delayed]);
    s.clock.set(100);
    let due = claim(&s, 2, 10).await;
    assert_eq!((due.len(), due[0].attempt, due[0].until), (1, 1, at(150)));
}

async fn cancelled_delayed_task_is_gone(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let task = NewTask { available_at: Some(at(100)), ..new_task("t", Some("op")) };
    let commit = held.commit().event("x").task(task);
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("cancelled").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    assert_eq!(claim(&s, 1, 10).await, []);
    assert_eq!(s.tasks("default").await, []);
}

async fn more_due_tasks_than_one_claim_makes_ready_all_get_their_turn(s: Scene<'_>) {
    let count = PROMOTE_MAX + 10;
    let later = |number: usize| {
        let task = NewTask { available_at: Some(at(100)), ..new_task(&format!("{number:04}"), None) };
        StandaloneTask { namespace: namespace("default"), task }
    };
    s.store.enqueue((0..count).map(later).collect()).await;
    s.clock.set(100);
    let mut claimed = 0;
    for id in 0.. {
        let tasks = claim(&s, id, usize::MAX).await.len();
        claimed += tasks;
        if tasks == 0 {
            break;
        }
    }
    assert_eq!(claimed, count);
}

async fn namespaces_take_turns_whatever_the_backlog_of_others(s: Scene<'_>) {
    spaces(&s, ["b", "a"]).await;
    enqueue(&s, "default", 50).await;
    s.clock.set(10);
    enqueue(&s, "a", 1).await;
    enqueue(&s, "b", 2).await;
    let first = claim(&s, 1, 6).await;
    assert_eq!(names(&first), ["default/000", "b/000", "a/000", "default/001", "b/001", "default/002"]);
    enqueue(&s, "a", 4).await;
    assert_eq!(names(&claim(&s, 2, 3).await), ["a/001", "default/003", "a/002"], "it begins behind the last one");
}

async fn claims_of_one_task_serve_one_namespace_after_the_other(s: Scene<'_>) {
    spaces(&s, ["one", "two"]).await;
    for space in ["default", "one", "two"] {
        enqueue(&s, space, 2).await;
    }
    let mut order = Vec::new();
    for id in 0..6 {
        order.extend(names(&claim(&s, id, 1).await));
    }
    assert_eq!(order, ["default/000", "one/000", "two/000", "default/001", "one/001", "two/001"]);
}

async fn priority_is_above_turns(s: Scene<'_>) {
    spaces(&s, ["quiet"]).await;
    enqueue(&s, "quiet", 2).await;
    let urgent = |number| NewTask { priority: 5, ..new_task(&format!("u{number}"), None) };
    let urgent = (0..4).map(|number| StandaloneTask { namespace: namespace("default"), task: urgent(number) });
    s.store.enqueue(urgent.collect()).await;
    enqueue(&s, "default", 1).await;
    let claimed = claim(&s, 1, 6).await;
    let expected = ["default/u0", "default/u1", "default/u2", "default/u3", "default/000", "quiet/000"];
    assert_eq!(names(&claimed), expected);
}

/// A namespace that only one kind of claim can serve must not always be the one that was served last.
async fn turns_of_one_kind_of_claim_are_not_those_of_another(s: Scene<'_>) {
    spaces(&s, ["one", "two"]).await;
    let mail = TaskName::new("mail").unwrap();
    let mails = (0..4).map(|number| NewTask { name: mail.clone(), ..new_task(&format!("m{number}"), None) });
    s.store.enqueue(mails.map(|task| StandaloneTask { namespace: namespace("one"), task }).collect()).await;
    for space in ["default", "one", "two"] {
        enqueue(&s, space, 2).await;
    }
    let of = |name: &TaskName, id| ClaimTasks { names: vec![name.clone()], limit: 1, ..claim_tasks("w", id) };
    let charge = TaskName::new("charge").unwrap();
    let mut order = Vec::new();
    for id in 0..4 {
        assert_eq!(s.store.claim_tasks(of(&mail, 10 + id)).await.unwrap().len(), 1);
        order.extend(names(&s.store.claim_tasks(of(&charge, id)).await.unwrap()));
    }
    assert_eq!(order, ["default/000", "one/000", "two/000", "default/001"]);
}

async fn a_namespace_with_other_work_only_does_not_hide_the_next_one(s: Scene<'_>) {
    spaces(&s, ["other"]).await;
    enqueue(&s, "default", 3).await;
    let mail = TaskName::new("mail").unwrap();
    let task = NewTask { name: mail.clone(), ..new_task("mail", None) };
    s.store.enqueue(vec![StandaloneTask { namespace: namespace("other"), task }]).await;
    let claim = ClaimTasks { names: vec![mail], limit: 1, ..claim_tasks("w", 1) };
    assert_eq!(names(&s.store.claim_tasks(claim).await.unwrap()), ["other/mail"]);
}

async fn a_run_with_many_tasks_does_not_keep_another_waiting(s: Scene<'_>) {
    let (mut many, mut one) = (s.own("many").await, s.own("one").await);
    let tasks = |commit, number| commit_task(commit, &format!("m{number:02}"));
    let commit = (0..30).fold(many.commit().event("x"), tasks);
    s.apply(&mut many, commit).await;
    s.clock.set(10);
    let commit = commit_task(one.commit().event("x"), "single");
    s.apply(&mut one, commit).await;
    assert_eq!(ids(&claim(&s, 1, 3).await), ["m00", "single", "m01"]);
}

fn commit_task(commit: outlast_core::commit::Commit, id: &str) -> outlast_core::commit::Commit {
    commit.task(new_task(id, Some(id)))
}

async fn tasks_of_one_run_stay_in_their_order(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let names: Vec<String> = (0..6).map(|number| format!("{}", 9 - number)).collect();
    for (turn, pair) in names.chunks(2).enumerate() {
        s.clock.set(50 * turn as i64);
        let commit = pair.iter().fold(held.commit().event("x"), |commit, name| commit_task(commit, name));
        s.apply(&mut held, commit).await;
    }
    assert_eq!(ids(&claim(&s, 1, 10).await), names, "also over several commits");
}

async fn delayed_tasks_of_one_run_line_up_too(s: Scene<'_>) {
    let (mut many, mut one) = (s.own("many").await, s.own("one").await);
    let later = |id: &str| NewTask { available_at: Some(at(1_000)), ..new_task(id, Some(id)) };
    let commit = many.commit().event("x").task(later("m0")).task(later("m1")).task(new_task("now", Some("now")));
    s.apply(&mut many, commit).await;
    let commit = one.commit().event("x").task(later("single"));
    s.apply(&mut one, commit).await;
    let now = s.work_one("w", 1).await;
    assert_eq!(now.id, task_id("now"));
    s.deliver(finished(&now, "done")).await;
    s.clock.set(1_000);
    assert_eq!(ids(&claim(&s, 2, 10).await), ["m0", "single", "m1"]);
}

/// Row 52: a task that hung took the head of the queue again and again.
async fn poison_at_the_head_of_the_queue_lets_the_others_go_on(s: Scene<'_>) {
    s.store.enqueue(vec![alone_in("default", "poison")]).await;
    s.clock.set(1);
    enqueue(&s, "default", 3).await;
    let mut order = Vec::new();
    for attempt in 0..6 {
        s.clock.set(100 * attempt);
        // Whoever takes the poison dies; the rest is done.
        for task in claim(&s, attempt.unsigned_abs(), 1).await {
            order.push(task.id.to_string());
            if task.id != task_id("poison") {
                assert_eq!(s.deliver(finished(&task, "done")).await, Delivered::Delivered);
            }
        }
    }
    assert_eq!(order, ["poison", "poison", "000", "001", "002", "poison"]);
}

/// Two tasks whose worker fell silent, and one of them is taken by another.
async fn half_taken(s: &Scene<'_>) -> ClaimedTask {
    s.store.enqueue(vec![alone_in("default", "a"), alone_in("default", "b")]).await;
    let silent = claim(s, 1, 2).await;
    s.clock.set(50);
    let taken = s.store.claim_tasks(ClaimTasks { limit: 1, ..claim_tasks("other", 1) }).await.unwrap();
    assert_eq!(ids(&taken), ["a"]);
    silent.into_iter().find(|task| task.id == task_id("b")).expect("b")
}

async fn result_of_a_silent_worker_counts_until_another_has_the_task(s: Scene<'_>) {
    let left = half_taken(&s).await;
    let forged = ClaimedTask { token: TaskToken(9), ..left.clone() };
    assert_eq!(s.deliver(finished(&forged, "forged")).await, Delivered::Lost);
    assert_eq!(s.deliver(finished(&left, "late")).await, Delivered::Delivered, "the work is done; why do it again?");
    assert_eq!(s.store.claim_tasks(claim_tasks("third", 1)).await.unwrap(), []);
}

async fn heartbeat_of_a_silent_worker_keeps_the_task_until_another_has_it(s: Scene<'_>) {
    let left = half_taken(&s).await;
    let ClaimedTask { namespace, id: task, token, .. } = left.clone();
    let beat = TaskHeartbeat { namespace, task, token, lease: ms(50), lapse: None, progress: None };
    assert_eq!(s.store.heartbeat(beat).await.unwrap().until, at(100));
    assert_eq!(s.store.claim_tasks(claim_tasks("third", 1)).await.unwrap(), []);
    let back = TaskOutcome::GivenBack;
    assert_eq!(s.deliver(outcome(&left, back)).await, Delivered::Delivered);
    let again = s.work_one("third", 2).await;
    assert_eq!((again.id, again.attempt), (task_id("b"), 1));
}

/// "One noisy namespace of 100: the quiet ones' p99 ≤ 3 × alone", in claims: alone, a task is in the first one; so it is here.
async fn noisy_namespace_of_a_hundred_does_not_keep_the_quiet_ones_waiting(s: Scene<'_>) {
    let quiet: Vec<String> = (0..99).map(|number| format!("quiet-{number:02}")).collect();
    for name in &quiet {
        s.store.put_namespace(namespace(name)).await.unwrap();
    }
    enqueue(&s, "default", 1_000).await;
    s.clock.set(1);
    s.store.enqueue(quiet.iter().map(|name| alone_in(name, "only")).collect()).await;
    let mut served = Vec::new();
    for id in 0..4 {
        served.push(claim(&s, id, 32).await.into_iter().filter(|task| task.namespace != namespace("default")).count());
    }
    assert!(served.iter().sum::<usize>() == 99, "a hundred namespaces, in four claims of 32: {served:?}");
}

async fn start_in(s: &Scene<'_>, space: &str, count: usize, priority: i16) {
    let new = |number: usize| NewRun { priority, ..new_run(&run_in(space, &format!("{priority}-{number:03}"))) };
    assert!(s.store.create((0..count).map(new).collect()).await.iter().all(Result::is_ok));
}

async fn claim_runs(s: &Scene<'_>, lease: LeaseId, id: u64, limit: usize) -> Vec<String> {
    let claim = Claim { lease, id: ClaimId(id), limit, pick: Pick::Ready, serves: Serves::Everything };
    s.store.claim(claim).await.unwrap().into_iter().map(|claimed| claimed.run.to_string()).collect()
}

async fn runs_of_namespaces_take_turns(s: Scene<'_>) {
    spaces(&s, ["quiet"]).await;
    let lease = s.node("n", 1_000).await;
    start_in(&s, "default", 50, 0).await;
    s.clock.set(10);
    start_in(&s, "quiet", 1, 0).await;
    assert_eq!(claim_runs(&s, lease, 1, 3).await, ["default/0-000", "quiet/0-000", "default/0-001"]);
}

async fn claims_of_one_run_serve_one_namespace_after_the_other(s: Scene<'_>) {
    spaces(&s, ["one", "two"]).await;
    let lease = s.node("n", 1_000).await;
    for space in ["default", "one", "two"] {
        start_in(&s, space, 2, 0).await;
    }
    let mut order = Vec::new();
    for id in 0..6 {
        order.extend(claim_runs(&s, lease, id, 1).await);
    }
    assert_eq!(order, ["default/0-000", "one/0-000", "two/0-000", "default/0-001", "one/0-001", "two/0-001"]);
}

async fn runs_of_higher_priority_come_before_turns(s: Scene<'_>) {
    spaces(&s, ["quiet"]).await;
    let lease = s.node("n", 1_000).await;
    start_in(&s, "quiet", 2, 0).await;
    start_in(&s, "default", 2, 7).await;
    start_in(&s, "default", 1, i16::MIN).await;
    let order = claim_runs(&s, lease, 1, 10).await;
    assert_eq!(order, ["default/7-000", "default/7-001", "quiet/0-000", "quiet/0-001", "default/-32768-000"]);
}

async fn claim_that_is_refused_uses_up_nobodys_turn(s: Scene<'_>) {
    spaces(&s, ["quiet"]).await;
    let (lapsed, lease) = (s.node("lapsed", 10).await, s.node("n", 1_000).await);
    for space in ["default", "quiet"] {
        start_in(&s, space, 2, 0).await;
    }
    s.clock.set(10);
    let claim = Claim { lease: lapsed, id: ClaimId(1), limit: 1, pick: Pick::Ready, serves: Serves::Everything };
    s.store.claim(claim).await.unwrap_err();
    assert_eq!(claim_runs(&s, lease, 1, 1).await, ["default/0-000"]);
}
