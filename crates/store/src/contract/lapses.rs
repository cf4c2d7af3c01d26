//! Attempts that nobody is there to stop: what the lapse of their claim means was said before. And claims of one namespace.

use outlast_core::commit::{Delivery, StandaloneTask, TaskOutcome};
use outlast_core::id::TaskToken;

use super::scene::*;
use crate::{ClaimTasks, ClaimedTask, Delivered, Lapse, StoreError, TaskExtended, TaskHeartbeat, TaskState};

super::stories! {
    attempt_has_a_beginning_that_a_repeated_claim_does_not_move,
    lapse_that_ends_the_attempt_is_handed_out_to_be_judged_and_counts_no_other,
    lapse_is_judged_once_and_the_next_attempt_is_a_new_one,
    whoever_judges_may_fall_silent_too,
    late_word_after_a_lapse_that_ended_the_attempt_is_lost,
    later_sign_of_life_takes_the_lapse_back,
    cancelled_task_that_lapsed_is_gone,
    claim_of_a_namespace_gets_nothing_of_another,
    repeated_claim_of_a_namespace_gives_what_it_took,
}

fn beat(task: &ClaimedTask, lapse: Option<Lapse>) -> TaskHeartbeat {
    let ClaimedTask { namespace, id, token, .. } = task.clone();
    TaskHeartbeat { namespace, task: id, token, lease: ms(50), lapse, progress: None }
}

fn alone(text: &str) -> StandaloneTask {
    StandaloneTask { namespace: namespace("default"), task: new_task(text, None) }
}

async fn say(s: &Scene<'_>, task: &ClaimedTask, outcome: TaskOutcome) -> Delivered {
    let ClaimedTask { namespace, id, token, .. } = task.clone();
    s.deliver(Delivery::Task { namespace, task: id, token, outcome, receipt: None }).await
}

/// A task that was handed out at 0, and lapses at 50.
async fn lapsing(s: &Scene<'_>, lapse: Lapse) -> ClaimedTask {
    s.store.enqueue(vec![alone("t")]).await;
    let claimed = s.work_one("remote", 1).await;
    s.store.heartbeat(beat(&claimed, Some(lapse))).await.unwrap();
    claimed
}

async fn attempt_has_a_beginning_that_a_repeated_claim_does_not_move(s: Scene<'_>) {
    s.store.enqueue(vec![alone("t")]).await;
    s.clock.set(5);
    assert_eq!(s.work_one("w", 1).await.since, at(5));
    s.clock.set(20);
    assert_eq!(s.work_one("w", 1).await.since, at(5));
    let view = s.tasks("default").await.remove(0);
    assert_eq!((view.since, view.until), (Some(at(5)), Some(at(55))));
    s.clock.set(55);
    let next = s.work_one("w", 2).await;
    assert_eq!((next.attempt, next.since, next.lapsed), (2, at(55), None), "a silent worker's attempt is over");
    say(&s, &next, TaskOutcome::GivenBack).await;
    let view = s.tasks("default").await.remove(0);
    assert_eq!((view.since, view.until), (None, None));
}

async fn lapse_that_ends_the_attempt_is_handed_out_to_be_judged_and_counts_no_other(s: Scene<'_>) {
    for (lapse, id) in [(Lapse::Timeout, 2), (Lapse::Silence, 4)] {
        let first = lapsing(&s, lapse).await;
        s.clock.advance(49);
        assert_eq!(s.work("judge", id).await, []);
        s.clock.advance(1);
        let judged = s.work_one("judge", id).await;
        assert_eq!((judged.lapsed, judged.attempt, judged.since), (Some(lapse), 1, first.since));
        assert_eq!(judged.token, TaskToken(2), "the one before has no say any more");
        let again = s.work_one("judge", id).await;
        assert_eq!((again.lapsed, again.attempt, again.token), (Some(lapse), 1, judged.token), "the answer was lost");
        say(&s, &judged, TaskOutcome::Finished { result: bytes("over"), log: None }).await;
    }
}

async fn lapse_is_judged_once_and_the_next_attempt_is_a_new_one(s: Scene<'_>) {
    lapsing(&s, Lapse::Timeout).await;
    s.clock.set(50);
    let judged = s.work_one("judge", 1).await;
    let retry = TaskOutcome::Retry { at: at(70), error: bytes("too long") };
    assert_eq!(say(&s, &judged, retry).await, Delivered::Delivered);
    s.clock.set(70);
    let next = s.work_one("w", 2).await;
    assert_eq!((next.attempt, next.lapsed, next.since), (2, None, at(70)));
}

async fn whoever_judges_may_fall_silent_too(s: Scene<'_>) {
    lapsing(&s, Lapse::Silence).await;
    s.clock.set(50);
    assert_eq!(s.work_one("dies", 1).await.lapsed, Some(Lapse::Silence));
    s.clock.set(100);
    let judged = s.work_one("judge", 1).await;
    assert_eq!((judged.lapsed, judged.attempt), (Some(Lapse::Silence), 1));
    assert_eq!(say(&s, &judged, TaskOutcome::Failed { error: bytes("silent") }).await, Delivered::Delivered);
    let view = s.tasks("default").await.remove(0);
    assert_eq!((view.state, view.attempt), (TaskState::Dead, 1));
    s.store.retry_task(namespace("default"), task_id("t")).await.unwrap();
    assert_eq!(s.work_one("w", 3).await.lapsed, None);
}

async fn late_word_after_a_lapse_that_ended_the_attempt_is_lost(s: Scene<'_>) {
    let late = lapsing(&s, Lapse::Timeout).await;
    s.clock.set(50);
    let finished = || TaskOutcome::Finished { result: bytes("late"), log: None };
    assert_eq!(say(&s, &late, finished()).await, Delivered::Lost, "also if nobody has noticed yet");
    assert_eq!(s.store.heartbeat(beat(&late, None)).await, Err(StoreError::TaskFenced(task_id("t"))));
    // A claim that does not take it notices all the same.
    let nothing = ClaimTasks { limit: 0, ..claim_tasks("w", 1) };
    assert_eq!(s.store.claim_tasks(nothing).await.unwrap(), []);
    assert_eq!(say(&s, &late, finished()).await, Delivered::Lost);
    assert_eq!(s.store.heartbeat(beat(&late, None)).await, Err(StoreError::TaskFenced(task_id("t"))));
    assert_eq!(s.work_one("judge", 2).await.lapsed, Some(Lapse::Timeout), "nothing was harmed");
}

async fn later_sign_of_life_takes_the_lapse_back(s: Scene<'_>) {
    let claimed = lapsing(&s, Lapse::Silence).await;
    s.clock.set(40);
    let extended = s.store.heartbeat(beat(&claimed, None)).await.unwrap();
    assert_eq!(extended, TaskExtended { until: at(90), cancelled: false });
    s.clock.set(90);
    let next = s.work_one("w", 1).await;
    assert_eq!((next.lapsed, next.attempt), (None, 2), "only its worker is gone");
}

async fn cancelled_task_that_lapsed_is_gone(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    let claimed = s.work_one("remote", 1).await;
    s.store.heartbeat(beat(&claimed, Some(Lapse::Timeout))).await.unwrap();
    let commit = held.commit().event("cancelled").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
    s.clock.set(60);
    assert_eq!(s.work("w", 2).await, []);
    assert_eq!(s.tasks("default").await, []);
}

async fn claim_of_a_namespace_gets_nothing_of_another(s: Scene<'_>) {
    s.store.put_namespace(namespace("blue")).await.unwrap();
    s.store.put_namespace(namespace("red")).await.unwrap();
    for ns in ["blue", "red", "blue"] {
        let mut task = alone(&format!("{ns}-{}", s.tasks(ns).await.len()));
        task.namespace = namespace(ns);
        task.task.priority = if ns == "red" { 5 } else { 0 };
        s.store.enqueue(vec![task]).await.remove(0).unwrap();
    }
    let of = |ns: &str, id| ClaimTasks { namespace: Some(namespace(ns)), limit: 2, ..claim_tasks("w", id) };
    let ids = |tasks: Vec<ClaimedTask>| tasks.into_iter().map(|task| task.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(s.store.claim_tasks(of("blue", 1)).await.unwrap()), ["blue-0", "blue-1"]);
    assert_eq!(s.store.claim_tasks(of("default", 2)).await.unwrap(), []);
    assert_eq!(s.store.claim_tasks(of("nowhere", 3)).await.unwrap(), []);
    assert_eq!(ids(s.work("all", 4).await), ["red-0"]);
}

async fn repeated_claim_of_a_namespace_gives_what_it_took(s: Scene<'_>) {
    s.store.put_namespace(namespace("blue")).await.unwrap();
    for ns in ["blue", "default"] {
        let mut task = alone("t");
        task.namespace = namespace(ns);
        s.store.enqueue(vec![task]).await.remove(0).unwrap();
    }
    let of = |ns: &str| ClaimTasks { namespace: Some(namespace(ns)), ..claim_tasks("same", 1) };
    for _ in 0..2 {
        for ns in ["blue", "default"] {
            let claimed = s.store.claim_tasks(of(ns)).await.unwrap();
            let of: Vec<_> = claimed.iter().map(|task| (task.namespace.as_str(), task.attempt)).collect();
            assert_eq!(of, [(ns, 1)], "two workers of one name in two namespaces are two");
        }
    }
}
