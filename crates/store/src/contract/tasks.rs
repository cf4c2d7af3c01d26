//! Tasks: claimed by workers under a token; a result, the run's inbox item and its wake are one write.

use futures_util::future::join;
use outlast_core::commit::{InboxKind, NewTask, StandaloneTask, TaskOutcome};
use outlast_core::id::{ClaimId, LeaseId, QueueName, TaskName, TaskToken};
use outlast_core::limits::CLAIM_BATCH_MAX;

use super::scene::*;
use crate::{
    Awaited, Claim, ClaimTasks, ClaimedTask, CommitError, Delivered, Pick, Rejection, Serves, StoreError, TaskExtended,
    TaskFilter, TaskHeartbeat, TaskState,
};

super::stories! {
    enqueued_task_is_claimed_with_all_it_needs,
    enqueueing_twice_is_one_task,
    enqueueing_other_work_under_one_id_is_refused,
    enqueueing_into_an_unknown_namespace_is_refused,
    one_refused_task_leaves_its_neighbours,
    task_of_another_queue_or_name_is_not_claimed,
    higher_priority_then_longer_available_is_claimed_first,
    task_is_not_claimed_before_it_is_available,
    a_claim_for_a_namespace_that_does_not_exist_changes_nothing,
    task_claim_takes_at_most_its_limit_and_the_batch_maximum,
    two_workers_never_share_a_task,
    repeated_task_claim_gives_the_same_tasks,
    attempt_is_counted_before_it_runs,
    task_of_a_silent_worker_goes_to_another_at_exactly_its_lease,
    task_of_a_silent_worker_takes_its_old_place,
    late_result_of_a_silent_worker_is_lost,
    result_after_the_lease_counts_if_nobody_took_the_task,
    heartbeat_keeps_the_task,
    heartbeat_with_a_stale_token_is_fenced,
    heartbeat_of_an_unknown_task_is_refused,
    result_inbox_item_and_wake_are_one,
    a_result_with_a_claim_is_both,
    a_result_counts_although_the_claim_with_it_is_refused,
    a_result_counts_although_the_claim_by_name_with_it_is_refused,
    results_with_a_claim_by_name_reach_every_run,
    second_result_of_one_attempt_is_not_found,
    result_with_a_token_from_the_future_is_lost,
    failed_task_tells_the_run_and_stays_for_inspection,
    retried_task_waits_for_its_time_and_tells_nobody,
    given_back_task_is_there_at_once_and_the_attempt_does_not_count,
    fire_and_forget_tells_nobody,
    task_id_in_use_rejects_the_commit,
    cancelled_task_that_nobody_has_is_gone,
    cancelled_task_is_told_at_the_heartbeat_and_its_result_is_dropped,
    cancelled_task_of_a_silent_worker_is_not_run_again,
    tasks_are_detached_when_their_run_ends,
    result_after_the_end_of_the_run_harms_nobody,
    tasks_are_listed_by_id_and_per_namespace,
    progress_is_shown_and_kept,
}

fn alone(text: &str) -> StandaloneTask {
    StandaloneTask { namespace: namespace("default"), task: new_task(text, None) }
}

fn beat_of(task: &ClaimedTask, progress: Option<&str>) -> TaskHeartbeat {
    TaskHeartbeat {
        namespace: task.namespace.clone(),
        task: task.id.clone(),
        token: task.token,
        lease: ms(50),
        lapse: None,
        progress: progress.map(bytes),
    }
}

/// A run that waits for its task `t`.
async fn tasked(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("scheduled").task(new_task("t", Some("op"))).suspend();
    s.apply(&mut held, commit).await;
    held
}

async fn enqueued_task_is_claimed_with_all_it_needs(s: Scene<'_>) {
    let task = NewTask { args: bytes("[1]"), meta: Some(bytes("{}")), ..new_task("t", Some("ignored")) };
    let answers = s.store.enqueue(vec![StandaloneTask { namespace: namespace("default"), task }]).await;
    assert_eq!(answers, [Ok(())]);
    s.clock.set(10);
    let claimed = s.work_one("w", 1).await;
    assert_eq!((claimed.namespace, claimed.id), (namespace("default"), task_id("t")));
    assert_eq!((claimed.run, claimed.key), (None, None), "no run awaits it");
    assert_eq!((claimed.name.as_str(), claimed.queue.as_str()), ("charge", "work"));
    assert_eq!((claimed.args, claimed.meta), (bytes("[1]"), Some(bytes("{}"))));
    assert_eq!((claimed.attempt, claimed.token), (1, TaskToken(1)));
    assert_eq!((claimed.now, claimed.until), (at(10), at(60)));
}

async fn enqueueing_twice_is_one_task(s: Scene<'_>) {
    assert_eq!(s.store.enqueue(vec![alone("t"), alone("t")]).await, [Ok(()), Ok(())]);
    s.work_one("w", 1).await;
    assert_eq!(s.store.enqueue(vec![alone("t")]).await, [Ok(())], "also while a worker has it");
    assert_eq!(s.work("w", 2).await, []);
}

async fn enqueueing_other_work_under_one_id_is_refused(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    let args = NewTask { args: bytes("[2]"), ..new_task("t", None) };
    let name = NewTask { name: TaskName::new("refund").unwrap(), ..new_task("t", None) };
    for task in [args, name] {
        let answer = s.store.enqueue(vec![StandaloneTask { namespace: namespace("default"), task }]).await.remove(0);
        assert_eq!(answer, Err(StoreError::TaskExists(task_id("t"))));
    }
    assert_eq!(s.work_one("w", 1).await.args, bytes("[]"));
}

async fn enqueueing_into_an_unknown_namespace_is_refused(s: Scene<'_>) {
    let there = StandaloneTask { namespace: namespace("nowhere"), ..alone("t") };
    assert_eq!(s.store.enqueue(vec![there]).await, [Err(StoreError::UnknownNamespace(namespace("nowhere")))]);
    assert_eq!(s.work("w", 1).await, []);
}

async fn one_refused_task_leaves_its_neighbours(s: Scene<'_>) {
    let there = StandaloneTask { namespace: namespace("nowhere"), ..alone("x") };
    let answers = s.store.enqueue(vec![alone("a"), there, alone("b")]).await;
    assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_ok(), "{answers:?}");
    assert_eq!(s.work("w", 1).await.len(), 2);
}

async fn task_of_another_queue_or_name_is_not_claimed(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    let other = QueueName::new("other").unwrap();
    let name = |name| TaskName::new(name).unwrap();
    let claim = |queues, names| ClaimTasks { queues, names, ..claim_tasks("w", 1) };
    let work = || vec![QueueName::new("work").unwrap()];
    assert_eq!(s.store.claim_tasks(claim(vec![other.clone()], vec![])).await.unwrap(), []);
    assert_eq!(s.store.claim_tasks(claim(vec![], vec![])).await.unwrap(), []);
    assert_eq!(s.store.claim_tasks(claim(work(), vec![name("refund")])).await.unwrap(), []);
    let both = vec![other, QueueName::new("work").unwrap()];
    assert_eq!(s.store.claim_tasks(claim(both, vec![name("refund"), name("charge")])).await.unwrap().len(), 1);
}

async fn higher_priority_then_longer_available_is_claimed_first(s: Scene<'_>) {
    let task = |text, priority, available| {
        let task = NewTask { priority, available_at: Some(at(available)), ..new_task(text, None) };
        StandaloneTask { namespace: namespace("default"), task }
    };
    let tasks = vec![
        task("later", 0, 20),
        task("b", 0, 10),
        task("a", 0, 10),
        task("urgent", 5, 30),
        task("last", i16::MIN, 0),
        task("first", i16::MAX, 40),
    ];
    s.store.enqueue(tasks).await;
    s.clock.set(50);
    let ids: Vec<_> = s.work("w", 1).await.into_iter().map(|task| task.id.to_string()).collect();
    assert_eq!(ids, ["first", "urgent", "a", "b", "later", "last"]);
}

async fn task_is_not_claimed_before_it_is_available(s: Scene<'_>) {
    let task = NewTask { available_at: Some(at(100)), ..new_task("t", None) };
    s.store.enqueue(vec![StandaloneTask { namespace: namespace("default"), task }]).await;
    s.clock.set(99);
    assert_eq!(s.work("w", 1).await, []);
    s.clock.set(100);
    s.work_one("w", 1).await;
}

async fn a_claim_for_a_namespace_that_does_not_exist_changes_nothing(s: Scene<'_>) {
    let task = NewTask { available_at: Some(at(20)), ..new_task("t", None) };
    s.store.enqueue(vec![StandaloneTask { namespace: namespace("default"), task }]).await;
    s.clock.set(30);
    let nowhere = ClaimTasks { namespace: Some(namespace("nowhere")), ..claim_tasks("w", 1) };
    assert_eq!(s.store.claim_tasks(nowhere).await, Ok(Vec::new()));
    let page = s.store.tasks(TaskFilter::all(namespace("default"))).await.unwrap();
    assert_eq!(page.tasks[0].state, TaskState::Delayed);
    assert_eq!(s.work_one("w", 2).await.id, task_id("t"));
}

async fn task_claim_takes_at_most_its_limit_and_the_batch_maximum(s: Scene<'_>) {
    let tasks = (0..CLAIM_BATCH_MAX + 3).map(|number| alone(&format!("{number:03}"))).collect();
    assert!(s.store.enqueue(tasks).await.iter().all(Result::is_ok));
    let claim = |id, limit| ClaimTasks { limit, ..claim_tasks("w", id) };
    assert_eq!(s.store.claim_tasks(claim(1, 0)).await.unwrap(), []);
    assert_eq!(s.store.claim_tasks(claim(2, 2)).await.unwrap().len(), 2);
    assert_eq!(s.store.claim_tasks(claim(3, usize::MAX)).await.unwrap().len(), CLAIM_BATCH_MAX);
    assert_eq!(s.store.claim_tasks(claim(4, usize::MAX)).await.unwrap().len(), 1);
}

async fn two_workers_never_share_a_task(s: Scene<'_>) {
    let other = s.other().await;
    for round in 0..10 {
        s.store.enqueue((0..6).map(|number| alone(&format!("{round}-{number}"))).collect()).await;
        let claim = |worker: &str| ClaimTasks { limit: 4, ..claim_tasks(worker, round) };
        let (one, two) = join(s.store.claim_tasks(claim("one")), other.claim_tasks(claim("two"))).await;
        let (one, two) = (one.unwrap(), two.unwrap());
        assert!(one.iter().all(|mine| two.iter().all(|theirs| theirs.id != mine.id)), "{one:?} {two:?}");
        let more = s.work("three", round).await;
        assert_eq!(one.len() + two.len() + more.len(), 6, "none is lost between them");
    }
}

async fn repeated_task_claim_gives_the_same_tasks(s: Scene<'_>) {
    s.store.enqueue(vec![alone("a")]).await;
    let first = s.work("w", u64::MAX).await;
    s.clock.set(20);
    s.store.enqueue(vec![alone("b")]).await;
    let again = s.work("w", u64::MAX).await;
    assert_eq!(again.len(), 2, "what it had, and more");
    assert_eq!((again[0].token, again[0].attempt, again[0].until), (first[0].token, 1, at(50)));
    assert_eq!(s.work("other", u64::MAX).await, [], "a claim id belongs to its worker");
    s.clock.set(50);
    let silent = s.work("w", u64::MAX).await;
    let a = silent.iter().find(|task| task.id == task_id("a")).expect("a");
    assert_eq!((a.token, a.attempt), (TaskToken(2), 2), "after the lease it is a new attempt");
}

async fn attempt_is_counted_before_it_runs(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    for attempt in 1..=4 {
        let claimed = s.work_one("w", attempt).await;
        assert_eq!((u64::from(claimed.attempt), claimed.token), (attempt, TaskToken(attempt)));
        s.clock.advance(50);
    }
    let tasks = s.tasks("default").await;
    assert_eq!(tasks[0].attempt, 4, "a crash in the middle of an attempt uses one up");
}

async fn task_of_a_silent_worker_goes_to_another_at_exactly_its_lease(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t"), alone("u")]).await;
    assert_eq!(s.work("dead", 1).await.len(), 2);
    s.clock.set(49);
    assert_eq!(s.work("w", 1).await, []);
    s.clock.set(50);
    let claimed = s.work("w", 2).await;
    assert_eq!(claimed.len(), 2);
    assert!(claimed.iter().all(|task| (task.attempt, task.until) == (2, at(100))));
}

/// A queue that is never empty must not keep them waiting for ever.
async fn task_of_a_silent_worker_takes_its_old_place(s: Scene<'_>) {
    s.store.enqueue(vec![alone("old")]).await;
    assert_eq!(s.work("dead", 1).await.len(), 1);
    s.clock.set(10);
    s.store.enqueue(vec![alone("young"), alone("younger")]).await;
    s.clock.set(50);
    let claimed = s.store.claim_tasks(ClaimTasks { limit: 2, ..claim_tasks("w", 1) }).await.unwrap();
    let ids: Vec<_> = claimed.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["old", "young"]);
}

/// Rows 20 and 21: a late completion overwrote, or failed the parent.
async fn late_result_of_a_silent_worker_is_lost(s: Scene<'_>) {
    let held = tasked(&s).await;
    let old = s.work_one("slow", 1).await;
    s.clock.set(50);
    let new = s.work_one("quick", 1).await;
    assert_eq!(s.deliver(finished(&old, "old")).await, Delivered::Lost);
    let failed = TaskOutcome::Failed { error: bytes("old") };
    assert_eq!(s.deliver(outcome(&old, failed)).await, Delivered::Lost);
    let retry = TaskOutcome::Retry { at: at(0), error: bytes("old") };
    assert_eq!(s.deliver(outcome(&old, retry)).await, Delivered::Lost);
    assert_eq!(s.inbox(&held.run).await, [], "a stale token changes nothing");
    assert_eq!(s.deliver(finished(&new, "new")).await, Delivered::Delivered);
    assert_eq!(s.mail(&held.run).await, ["new"]);
}

async fn result_after_the_lease_counts_if_nobody_took_the_task(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("slow", 1).await;
    s.clock.set(1_000);
    assert_eq!(s.deliver(finished(&claimed, "late")).await, Delivered::Delivered, "the work is done; why do it again?");
    assert_eq!(s.mail(&held.run).await, ["late"]);
}

async fn heartbeat_keeps_the_task(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    let claimed = s.work_one("w", 1).await;
    s.clock.set(40);
    let extended = s.store.heartbeat(beat_of(&claimed, None)).await.unwrap();
    assert_eq!(extended, TaskExtended { until: at(90), cancelled: false });
    s.clock.set(89);
    assert_eq!(s.work("other", 1).await, []);
    s.clock.set(90);
    assert_eq!(s.work("other", 1).await.len(), 1);
}

async fn heartbeat_with_a_stale_token_is_fenced(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    let old = s.work_one("slow", 1).await;
    s.clock.set(50);
    let new = s.work_one("quick", 1).await;
    let refused = s.store.heartbeat(beat_of(&old, None)).await.unwrap_err();
    assert_eq!(refused, StoreError::TaskFenced(task_id("t")));
    let retry = TaskOutcome::Retry { at: at(50), error: bytes("e") };
    s.deliver(outcome(&new, retry)).await;
    let refused = s.store.heartbeat(beat_of(&new, None)).await.unwrap_err();
    assert_eq!(refused, StoreError::TaskFenced(task_id("t")), "nobody holds it");
}

async fn heartbeat_of_an_unknown_task_is_refused(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    let claimed = s.work_one("w", 1).await;
    s.deliver(finished(&claimed, "done")).await;
    assert_eq!(s.store.heartbeat(beat_of(&claimed, None)).await, Err(StoreError::UnknownTask(task_id("t"))));
    let elsewhere = TaskHeartbeat { namespace: namespace("nowhere"), ..beat_of(&claimed, None) };
    assert_eq!(s.store.heartbeat(elsewhere).await, Err(StoreError::UnknownTask(task_id("t"))));
}

/// Completion, result and the parent's resume are one atomic statement.
async fn result_inbox_item_and_wake_are_one(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    assert_eq!((claimed.run.clone(), claimed.key.clone()), (Some(held.run.id.clone()), Some(key("op"))));
    s.clock.set(5);
    assert_eq!(s.deliver(finished(&claimed, "paid")).await, Delivered::Delivered);
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.kind, item.key, item.name.as_deref()), (InboxKind::TaskFinished, Some(key("op")), Some("t")));
    assert_eq!((item.payload, item.at), (Some(bytes("paid")), at(5)));
    assert!(s.view(&held.run).await.ready);
    assert_eq!(s.tasks("default").await, [], "a finished task is gone");
}

/// Results, and a claim of runs with them.
async fn deliver_and_claim(
    s: &Scene<'_>,
    tasks: &[ClaimedTask],
    lease: LeaseId,
    pick: Pick,
) -> crate::DeliveredAndClaimed {
    let claim = Claim { lease, id: ClaimId(9), limit: 10, pick, serves: Serves::Everything };
    s.store.deliver_and_claim(tasks.iter().map(|task| finished(task, "paid")).collect(), claim).await
}

async fn a_result_with_a_claim_is_both(s: Scene<'_>) {
    let held = tasked(&s).await;
    let (claimed, lease) = (s.work_one("w", 1).await, s.node("driver", 1_000).await);
    let both = deliver_and_claim(&s, &[claimed], lease, Pick::Ready).await;
    assert_eq!(both.delivered, [Ok(Delivered::Delivered)]);
    // A store may leave the claim to the next call; then the run is ready.
    let taken = match both.claimed {
        Some(taken) => taken.unwrap(),
        None => s.claim(lease, 9, Pick::Ready).await,
    };
    assert_eq!(taken.iter().map(|taken| &taken.run).collect::<Vec<_>>(), [&held.run]);
    if let Some(inbox) = &taken[0].inbox {
        assert_eq!(*inbox, s.inbox(&held.run).await, "what is read with a claim is what a load reads");
    }
    assert_eq!(s.view(&held.run).await.owner, Some(lease));
    assert_eq!(s.mail(&held.run).await, ["paid"]);
    assert_eq!(s.claim(lease, 9, Pick::Ready).await.len(), 1, "under its id it is given again");
    assert_eq!(s.claim_ids(lease, 10).await, Vec::<String>::new());
}

async fn a_result_counts_although_the_claim_with_it_is_refused(s: Scene<'_>) {
    refused_claim(&s, |_| Pick::Ready).await;
}

async fn a_result_counts_although_the_claim_by_name_with_it_is_refused(s: Scene<'_>) {
    refused_claim(&s, |held| Pick::Run(held.run.clone())).await;
}

async fn refused_claim(s: &Scene<'_>, pick: impl Fn(&Held) -> Pick) {
    let held = tasked(s).await;
    let (claimed, lease) = (s.work_one("w", 1).await, s.node("driver", 10).await);
    s.clock.set(20);
    let both = deliver_and_claim(s, &[claimed], lease, pick(&held)).await;
    assert_eq!(both.delivered, [Ok(Delivered::Delivered)]);
    assert!(both.claimed.is_none_or(|claimed| matches!(claimed, Err(StoreError::LeaseLapsed { .. }))));
    assert!(s.view(&held.run).await.ready);
    assert_eq!(s.mail(&held.run).await, ["paid"]);
}

async fn results_with_a_claim_by_name_reach_every_run(s: Scene<'_>) {
    let first = tasked(&s).await;
    let mut second = s.own("b").await;
    let commit = second.commit().event("scheduled").task(new_task("u", Some("one"))).task(new_task("v", Some("two")));
    s.apply(&mut second, commit.suspend()).await;
    let (claimed, lease) = (s.work("w", 1).await, s.node("driver", 1_000).await);
    assert_eq!(claimed.len(), 3);
    let both = deliver_and_claim(&s, &claimed, lease, Pick::Run(second.run.clone())).await;
    assert_eq!(both.delivered, [Ok(Delivered::Delivered), Ok(Delivered::Delivered), Ok(Delivered::Delivered)]);
    let taken = match both.claimed {
        Some(taken) => taken.unwrap(),
        None => s.claim(lease, 9, Pick::Run(second.run.clone())).await,
    };
    assert_eq!(taken.iter().map(|taken| &taken.run).collect::<Vec<_>>(), [&second.run]);
    assert!(taken[0].inbox.as_ref().is_none_or(|inbox| inbox.len() == 2));
    assert_eq!(s.mail(&second.run).await, ["paid", "paid"]);
    let view = s.view(&second.run).await;
    assert_eq!((view.owner, view.ready), (Some(lease), false), "it is taken with all that came for it");
    assert_eq!(s.mail(&first.run).await, ["paid"]);
    assert!(s.view(&first.run).await.ready);
    assert_eq!(s.claim_ids(lease, 10).await, ["a"], "who was not asked for is ready as ever");
}

async fn second_result_of_one_attempt_is_not_found(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    let answers = s.store.deliver(vec![finished(&claimed, "one"), finished(&claimed, "two")]).await;
    assert_eq!(answers, [Ok(Delivered::Delivered), Ok(Delivered::NotFound)]);
    assert_eq!(s.mail(&held.run).await, ["one"]);
    assert_eq!(s.deliver(result_of("none", 1, "x")).await, Delivered::NotFound);
}

async fn result_with_a_token_from_the_future_is_lost(s: Scene<'_>) {
    let held = tasked(&s).await;
    assert_eq!(s.deliver(result_of("t", 0, "unclaimed")).await, Delivered::Lost);
    s.work_one("w", 1).await;
    for token in [0, 2, u64::MAX] {
        assert_eq!(s.deliver(result_of("t", token, "forged")).await, Delivered::Lost);
    }
    assert_eq!(s.inbox(&held.run).await, []);
}

async fn failed_task_tells_the_run_and_stays_for_inspection(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    let failed = TaskOutcome::Failed { error: bytes("no funds") };
    assert_eq!(s.deliver(outcome(&claimed, failed)).await, Delivered::Delivered);
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.kind, item.payload), (InboxKind::TaskFailed, Some(bytes("no funds"))));
    let dead = s.tasks("default").await.remove(0);
    assert_eq!((dead.state, dead.note, dead.worker), (TaskState::Dead, Some(bytes("no funds")), None));
    assert_eq!(s.store.awaiting(held.run).await.unwrap(), [], "nobody waits for the dead");
    s.clock.set(1_000_000);
    assert_eq!(s.work("w", 2).await, [], "the dead are not claimed");
}

async fn retried_task_waits_for_its_time_and_tells_nobody(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    let retry = TaskOutcome::Retry { at: at(100), error: bytes("busy") };
    assert_eq!(s.deliver(outcome(&claimed, retry)).await, Delivered::Delivered);
    assert_eq!(s.inbox(&held.run).await, []);
    assert!(!s.view(&held.run).await.ready);
    let task = s.tasks("default").await.remove(0);
    assert_eq!((task.state, task.available_at, task.note), (TaskState::Delayed, at(100), Some(bytes("busy"))));
    s.clock.set(99);
    assert_eq!(s.work("w", 1).await, [], "not before its time, and not by the old claim");
    s.clock.set(100);
    let again = s.work_one("w", 2).await;
    assert_eq!((again.attempt, again.token), (2, TaskToken(2)));
    assert_eq!(s.deliver(finished(&claimed, "stale")).await, Delivered::Lost);
}

async fn given_back_task_is_there_at_once_and_the_attempt_does_not_count(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    assert_eq!(s.deliver(outcome(&claimed, TaskOutcome::GivenBack)).await, Delivered::Delivered);
    assert_eq!(s.inbox(&held.run).await, []);
    assert!(!s.view(&held.run).await.ready);
    assert_eq!(s.deliver(finished(&claimed, "stale")).await, Delivered::Lost);
    let again = s.work_one("other", 1).await;
    assert_eq!((again.attempt, again.token), (1, TaskToken(2)), "another token, the same attempt");
    assert_eq!(s.deliver(outcome(&claimed, TaskOutcome::GivenBack)).await, Delivered::Lost);
}

async fn fire_and_forget_tells_nobody(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", None)).suspend();
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
    let claimed = s.work_one("w", 1).await;
    assert_eq!(claimed.run, None);
    assert_eq!(s.deliver(finished(&claimed, "done")).await, Delivered::Delivered);
    let view = s.view(&held.run).await;
    assert!(!view.ready && s.inbox(&held.run).await.is_empty(), "no parent, no resume: {view:?}");
}

async fn task_id_in_use_rejects_the_commit(s: Scene<'_>) {
    let exists = CommitError::Rejected(Rejection::TaskExists { task: task_id("t") });
    s.store.enqueue(vec![alone("t")]).await;
    let held = s.own("a").await;
    let taken = held.commit().event("x").task(new_task("t", Some("op")));
    assert_eq!(s.commit(taken).await.unwrap_err(), exists);
    let twice = held.commit().event("x").task(new_task("u", Some("1"))).task(new_task("u", Some("2")));
    let refused = s.commit(twice).await.unwrap_err();
    assert_eq!(refused, CommitError::Rejected(Rejection::TaskExists { task: task_id("u") }));
    assert_eq!(s.story(&held.run).await, [""; 0]);
}

async fn cancelled_task_that_nobody_has_is_gone(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("cancelled").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
    assert_eq!(s.work("w", 1).await, []);
    assert_eq!(s.awaiting(&held.run).await, []);
    let commit = held.commit().event("again").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
}

async fn cancelled_task_is_told_at_the_heartbeat_and_its_result_is_dropped(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    let claimed = s.work_one("w", 1).await;
    let commit = held.commit().event("cancelled").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, [], "the run no longer waits for it");
    let extended = s.store.heartbeat(beat_of(&claimed, None)).await.unwrap();
    assert!(extended.cancelled, "stop");
    assert_eq!(s.deliver(finished(&claimed, "too late")).await, Delivered::Delivered, "accepted, and dropped");
    assert_eq!(s.inbox(&held.run).await, []);
    assert_eq!(s.tasks("default").await, []);
}

async fn cancelled_task_of_a_silent_worker_is_not_run_again(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    s.work_one("dead", 1).await;
    let commit = held.commit().event("cancelled").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
    s.clock.set(50);
    assert_eq!(s.work("w", 1).await, []);
    assert_eq!(s.tasks("default").await, [], "nobody will ever ask for it again");
}

/// Row 6 and invariant 6: a terminal run owns no task.
async fn tasks_are_detached_when_their_run_ends(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", Some("op"))).task(new_task("u", Some("op2")));
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("end").task(new_task("v", Some("op3"))).finish();
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
    let tasks = s.tasks("default").await;
    assert_eq!(tasks.len(), 3, "work never awaited still runs");
    assert!(tasks.iter().all(|task| task.run.is_none()), "{tasks:?}");
    assert_eq!(s.work("w", 1).await.len(), 3);
}

async fn result_after_the_end_of_the_run_harms_nobody(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    let claimed = s.work_one("w", 1).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(finished(&claimed, "late")).await, Delivered::Delivered);
    let view = s.view(&held.run).await;
    assert!(!view.ready && s.inbox(&held.run).await.is_empty(), "{view:?}");
    assert_eq!(s.story(&held.run).await, ["x", "end"]);
}

async fn tasks_are_listed_by_id_and_per_namespace(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    let there = StandaloneTask { namespace: namespace("other"), ..alone("b") };
    s.store.enqueue(vec![alone("b"), alone("ä"), alone("B"), there, alone("a")]).await;
    let ids = |tasks: Vec<crate::TaskView>| tasks.into_iter().map(|task| task.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(s.tasks("default").await), ["B", "a", "b", "ä"], "by bytes");
    let two = TaskFilter { limit: 2, ..TaskFilter::all(namespace("default")) };
    let first = s.store.tasks(two.clone()).await.unwrap();
    assert_eq!((ids(first.tasks), &first.next), (vec!["B".to_owned(), "a".to_owned()], &Some(task_id("a"))));
    let rest = s.store.tasks(TaskFilter { after: first.next, ..two }).await.unwrap();
    assert_eq!((ids(rest.tasks), rest.next), (vec!["b".to_owned(), "ä".to_owned()], None));
    assert_eq!(ids(s.tasks("other").await), ["b"]);
    assert_eq!(s.tasks("nowhere").await, []);
    let held = tasked(&s).await;
    let awaiting = s.awaiting(&held.run).await;
    assert_eq!(awaiting, [Awaited::Task { key: key("op"), id: task_id("t"), state: TaskState::Ready }]);
}

async fn progress_is_shown_and_kept(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    let claimed = s.work_one("w", 1).await;
    s.store.heartbeat(beat_of(&claimed, Some("half"))).await.unwrap();
    s.store.heartbeat(beat_of(&claimed, None)).await.unwrap();
    let task = s.tasks("default").await.remove(0);
    assert_eq!((task.state, task.note), (TaskState::Claimed, Some(bytes("half"))));
    assert_eq!(task.worker.map(|worker| worker.to_string()).as_deref(), Some("w"));
}
