//! The end of an attempt that is said again, because its answer was not heard: the same is known, anything else is lost.

use outlast_core::commit::{Delivery, Receipt, StandaloneTask, TaskOutcome};
use outlast_core::id::RunId;

use super::scene::*;
use crate::{ClaimedTask, Delivered};

super::stories! {
    result_said_again_under_its_receipt_is_known_and_told_once,
    result_said_again_is_known_also_after_the_end_of_its_run,
    result_said_again_in_one_call_is_known,
    another_result_under_another_receipt_is_not_known,
    receipt_of_a_stale_token_is_lost,
    failure_said_again_under_its_receipt_is_known,
    retry_said_again_is_known_until_somebody_else_has_the_task,
    result_of_a_cancelled_task_said_again_is_known,
    receipts_go_with_their_run,
    task_that_was_queued_anew_may_end_as_before,
}

fn said(task: &ClaimedTask, outcome: TaskOutcome, receipt: &str) -> Delivery {
    let ClaimedTask { namespace, id: task_id, run, token, .. } = task.clone();
    let receipt = Some(Receipt { run, id: id(receipt) });
    Delivery::Task { namespace, task: task_id, token, outcome, receipt }
}

fn done(task: &ClaimedTask, result: &str) -> Delivery {
    said(task, TaskOutcome::Finished { result: bytes(result), log: None }, result)
}

fn broken(error: &str) -> TaskOutcome {
    TaskOutcome::Failed { error: bytes(error) }
}

async fn tasked(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    held
}

async fn result_said_again_under_its_receipt_is_known_and_told_once(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    assert_eq!(s.deliver(done(&claimed, "one")).await, Delivered::Delivered);
    assert_eq!(s.deliver(done(&claimed, "one")).await, Delivered::Duplicate);
    assert_eq!(s.mail(&held.run).await, ["one"]);
}

async fn result_said_again_is_known_also_after_the_end_of_its_run(s: Scene<'_>) {
    let mut held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(done(&claimed, "one")).await, Delivered::Delivered, "it was detached, and is done");
    assert_eq!(s.deliver(done(&claimed, "one")).await, Delivered::Duplicate);
    assert_eq!(s.story(&held.run).await, ["x", "end"]);
}

async fn result_said_again_in_one_call_is_known(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    let answers = s.store.deliver(vec![done(&claimed, "one"), done(&claimed, "one"), done(&claimed, "two")]).await;
    assert_eq!(answers, [Ok(Delivered::Delivered), Ok(Delivered::Duplicate), Ok(Delivered::NotFound)]);
    assert_eq!(s.mail(&held.run).await, ["one"]);
}

async fn another_result_under_another_receipt_is_not_known(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    s.deliver(done(&claimed, "one")).await;
    assert_eq!(s.deliver(done(&claimed, "two")).await, Delivered::NotFound);
    assert_eq!(s.deliver(finished(&claimed, "one")).await, Delivered::NotFound, "without its receipt, too");
    let elsewhere = ClaimedTask { run: Some(RunId::new("nobody").unwrap()), ..claimed.clone() };
    assert_eq!(s.deliver(done(&elsewhere, "one")).await, Delivered::NotFound);
    assert_eq!(s.mail(&held.run).await, ["one"]);
}

async fn receipt_of_a_stale_token_is_lost(s: Scene<'_>) {
    let held = tasked(&s).await;
    let slow = s.work_one("slow", 1).await;
    s.clock.set(50);
    let quick = s.work_one("quick", 2).await;
    assert_eq!(s.deliver(said(&slow, broken("no"), "slow-no")).await, Delivered::Lost);
    assert_eq!(s.deliver(said(&quick, broken("no"), "quick-no")).await, Delivered::Delivered);
    assert_eq!(s.deliver(said(&slow, broken("no"), "slow-no")).await, Delivered::Lost, "the same, but not its own");
    assert_eq!(s.mail(&held.run).await, ["no"]);
}

async fn failure_said_again_under_its_receipt_is_known(s: Scene<'_>) {
    let held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    assert_eq!(s.deliver(said(&claimed, broken("no"), "r")).await, Delivered::Delivered);
    assert_eq!(s.deliver(said(&claimed, broken("no"), "r")).await, Delivered::Duplicate);
    assert_eq!(s.deliver(said(&claimed, broken("why"), "r2")).await, Delivered::Lost);
    assert_eq!(s.deliver(outcome(&claimed, broken("no"))).await, Delivered::Lost, "without a receipt nobody asks");
    assert_eq!(s.mail(&held.run).await, ["no"]);
    // One that no run waits for is known by what is left of it.
    let alone = StandaloneTask { namespace: namespace("default"), task: new_task("alone", None) };
    s.store.enqueue(vec![alone]).await;
    let alone = s.work_one("w", 2).await;
    assert_eq!(s.deliver(said(&alone, broken("no"), "r")).await, Delivered::Delivered);
    assert_eq!(s.deliver(said(&alone, broken("no"), "r")).await, Delivered::Duplicate);
}

async fn retry_said_again_is_known_until_somebody_else_has_the_task(s: Scene<'_>) {
    tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    let retry = |millis| TaskOutcome::Retry { at: at(millis), error: bytes("busy") };
    assert_eq!(s.deliver(said(&claimed, retry(20), "r")).await, Delivered::Delivered);
    s.clock.set(10);
    assert_eq!(s.deliver(said(&claimed, retry(30), "r")).await, Delivered::Duplicate);
    let view = s.tasks("default").await.remove(0);
    assert_eq!((view.attempt, view.available_at), (1, at(20)), "when it is tried again was decided the first time");
    assert_eq!(s.deliver(said(&claimed, broken("busy"), "r2")).await, Delivered::Lost, "that was not said");
    s.clock.set(20);
    s.work_one("other", 2).await;
    assert_eq!(s.deliver(said(&claimed, retry(40), "r")).await, Delivered::Lost);
}

async fn result_of_a_cancelled_task_said_again_is_known(s: Scene<'_>) {
    let mut held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    let commit = held.commit().event("cancelled").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(done(&claimed, "dropped")).await, Delivered::Delivered);
    assert_eq!(s.deliver(done(&claimed, "dropped")).await, Delivered::Duplicate);
    assert_eq!(s.inbox(&held.run).await, []);
}

async fn receipts_go_with_their_run(s: Scene<'_>) {
    let mut held = tasked(&s).await;
    let claimed = s.work_one("w", 1).await;
    s.deliver(done(&claimed, "one")).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    s.store.delete(held.run.clone(), "old".to_owned()).await.unwrap();
    assert_eq!(s.deliver(done(&claimed, "one")).await, Delivered::NotFound);
}

/// A repair queues what a journal waits for under the id it had: its tokens begin anew.
async fn task_that_was_queued_anew_may_end_as_before(s: Scene<'_>) {
    let mut held = tasked(&s).await;
    let first = s.work_one("w", 1).await;
    s.deliver(done(&first, "one")).await;
    let commit = held.commit().event("again").task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    let again = s.work_one("w", 2).await;
    assert_eq!(again.token, first.token);
    assert_eq!(s.deliver(done(&again, "one")).await, Delivered::Delivered);
    assert_eq!(s.deliver(done(&again, "one")).await, Delivered::Duplicate);
    assert_eq!(s.mail(&held.run).await, ["one", "one"]);
}
