//! One-shot waits: decided on the wait's row, once. An answer that was acknowledged is never thrown away.

use outlast_core::commit::{CloseCause, Commit, Control, InboxKind, NewTimer, NewWait, TimerKind, TimerRef, WaitKind};
use outlast_core::id::Key;

use super::scene::*;
use crate::{Awaited, CommitError, Delivered, Rejection};

super::stories! {
    approval_is_decided_once,
    second_decider_is_told_it_lost,
    decision_repeated_is_a_duplicate,
    decision_before_the_approval_is_asked_for_is_not_found,
    decision_then_timeout_rejects_the_timeout,
    timeout_then_decision_loses_the_decision,
    decision_then_cancel_rejects_the_cancel,
    cancel_then_decision_loses_the_decision,
    decision_and_timeout_at_once_have_one_winner,
    timeout_that_consumes_the_answer_may_close_the_wait,
    approval_cannot_be_resolved_without_an_answer,
    finish_over_an_answer_nobody_fed_is_rejected,
    finish_with_the_answer_fed_is_accepted,
    continue_as_new_over_an_answer_nobody_fed_is_rejected,
    finish_over_an_open_wait_closes_it,
    suspend_over_an_unfed_answer_keeps_it,
    callback_with_the_wrong_token_is_not_found,
    callback_is_not_an_approval_and_the_other_way_round,
    callback_is_answered_once,
    heartbeat_moves_the_timer,
    heartbeat_with_the_wrong_token_or_after_the_answer_changes_nothing,
    heartbeat_of_a_callback_without_one_is_a_sign_of_life_all_the_same,
    mailbox_payload_beats_a_deadline_that_is_not_journaled,
    mailbox_payload_consumed_by_another_wait_does_not_stop_the_deadline,
    deadline_journaled_first_leaves_the_payload_in_the_mailbox,
    mailbox_payload_does_not_stop_a_cancellation,
    open_and_closed_in_one_commit_is_over,
    wait_of_a_key_in_use_is_rejected,
    slot_of_another_name_or_kind_does_not_keep_a_wait_from_opening,
    same_wait_twice_in_one_commit_is_rejected,
    closing_what_is_not_open_is_rejected,
    answer_tells_who_and_how,
    answer_to_an_ended_unknown_or_deleted_run_is_refused,
}

async fn asking(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("asked").approval("ok");
    s.apply(&mut held, commit).await;
    held
}

async fn calling(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("called").callback("cb", "secret");
    s.apply(&mut held, commit).await;
    held
}

fn answered(operation: &str) -> CommitError {
    CommitError::Rejected(Rejection::Answered { key: key(operation) })
}

fn gone(operation: &str) -> CommitError {
    CommitError::Rejected(Rejection::WaitGone { key: key(operation) })
}

/// Invariant 12: one decision.
async fn approval_is_decided_once(s: Scene<'_>) {
    let mut held = asking(&s).await;
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::Delivered);
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.kind, item.key), (InboxKind::Approval, Some(key("ok"))));
    let commit = held.commit().event("decided").close("ok", CloseCause::Resolved).consume(&[item.id]);
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
    assert_eq!(s.deliver(decide(&held.run, "ok", "2")).await, Delivered::Lost);
}

async fn second_decider_is_told_it_lost(s: Scene<'_>) {
    let held = asking(&s).await;
    let answers = s.store.deliver(vec![decide(&held.run, "ok", "ann"), decide(&held.run, "ok", "bob")]).await;
    assert_eq!(answers, [Ok(Delivered::Delivered), Ok(Delivered::Lost)]);
    assert_eq!(s.inbox(&held.run).await.len(), 1);
}

async fn decision_repeated_is_a_duplicate(s: Scene<'_>) {
    let held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::Duplicate);
}

async fn decision_before_the_approval_is_asked_for_is_not_found(s: Scene<'_>) {
    let held = s.own("a").await;
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::NotFound);
    assert_eq!(s.inbox(&held.run).await, []);
}

async fn decision_then_timeout_rejects_the_timeout(s: Scene<'_>) {
    let held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    let timeout = held.commit().event("timeout").close("ok", CloseCause::TimedOut);
    assert_eq!(s.commit(timeout).await.unwrap_err(), answered("ok"), "feed the answer first");
    assert_eq!(s.story(&held.run).await, ["asked"]);
    assert_eq!(s.inbox(&held.run).await.len(), 1, "the acknowledged decision is still there");
}

async fn timeout_then_decision_loses_the_decision(s: Scene<'_>) {
    let mut held = asking(&s).await;
    let commit = held.commit().event("timeout").close("ok", CloseCause::TimedOut);
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::Lost);
    assert_eq!(s.inbox(&held.run).await, []);
}

async fn decision_then_cancel_rejects_the_cancel(s: Scene<'_>) {
    let held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    let cancel = held.commit().event("cancelled").close("ok", CloseCause::Cancelled);
    assert_eq!(s.commit(cancel).await.unwrap_err(), answered("ok"));
}

async fn cancel_then_decision_loses_the_decision(s: Scene<'_>) {
    let mut held = asking(&s).await;
    s.deliver(control(&held.run, Control::Cancel, "c")).await;
    let commit = held.commit().event("cancelled").close("ok", CloseCause::Cancelled);
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::Lost);
}

/// Invariant 9: event, timeout and cancel have one winner, in the log and for the caller.
async fn decision_and_timeout_at_once_have_one_winner(s: Scene<'_>) {
    let other = s.other().await;
    let lease = s.node("n", 1_000_000).await;
    for round in 0..20 {
        let mut held = s.own_under(lease, &format!("run-{round}")).await;
        let commit = held.commit().event("asked").approval("ok");
        s.apply(&mut held, commit).await;
        let timeout = s.store.commit(vec![held.commit().event("timeout").close("ok", CloseCause::TimedOut)]);
        let decision = other.deliver(vec![decide(&held.run, "ok", "1")]);
        let (timeout, decision) = futures_util::future::join(timeout, decision).await;
        match (&timeout[0], &decision[0]) {
            (Ok(_), Ok(Delivered::Lost)) => {}
            (Err(refused), Ok(Delivered::Delivered)) => assert_eq!(*refused, answered("ok")),
            both => panic!("both won, or neither: {both:?}"),
        }
    }
}

async fn timeout_that_consumes_the_answer_may_close_the_wait(s: Scene<'_>) {
    let mut held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("fed").close("ok", CloseCause::TimedOut).consume(&[item]);
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
}

async fn approval_cannot_be_resolved_without_an_answer(s: Scene<'_>) {
    let held = asking(&s).await;
    let made_up = held.commit().event("decided?").close("ok", CloseCause::Resolved);
    let refused = s.commit(made_up).await.unwrap_err();
    assert_eq!(refused, CommitError::Rejected(Rejection::Unanswered { key: key("ok") }));
}

async fn finish_over_an_answer_nobody_fed_is_rejected(s: Scene<'_>) {
    let held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    assert_eq!(s.commit(held.commit().event("end").finish()).await.unwrap_err(), answered("ok"));
    assert!(!s.view(&held.run).await.status.is_terminal());
}

async fn finish_with_the_answer_fed_is_accepted(s: Scene<'_>) {
    let mut held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    let item = s.inbox(&held.run).await[0].id;
    let close = |commit: Commit| commit.close("ok", CloseCause::Resolved).consume(&[item]);
    let commit = close(held.commit().event("decided")).event("end").finish();
    s.apply(&mut held, commit).await;
    assert!(s.view(&held.run).await.status.is_terminal());
}

async fn continue_as_new_over_an_answer_nobody_fed_is_rejected(s: Scene<'_>) {
    let held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    let refused = s.commit(held.commit().event("next").continue_as_new("{}")).await.unwrap_err();
    assert_eq!(refused, answered("ok"));
}

/// Row 6 and invariant 6: a terminal run owns no wait.
async fn finish_over_an_open_wait_closes_it(s: Scene<'_>) {
    let mut held = asking(&s).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::Lost);
}

async fn suspend_over_an_unfed_answer_keeps_it(s: Scene<'_>) {
    let mut held = asking(&s).await;
    s.deliver(decide(&held.run, "ok", "1")).await;
    let commit = held.commit().suspend();
    s.apply(&mut held, commit).await;
    assert!(s.view(&held.run).await.ready, "the answer's wake outlives the turn");
    assert_eq!(s.inbox(&held.run).await.len(), 1);
}

async fn callback_with_the_wrong_token_is_not_found(s: Scene<'_>) {
    let held = calling(&s).await;
    for token in [None, Some(""), Some("secre"), Some("secret2"), Some("SECRET")] {
        let answer = s.deliver(call_back(&held.run, "cb", "1", token)).await;
        assert_eq!(answer, Delivered::NotFound, "nothing to learn by guessing {token:?}");
    }
    assert_eq!(s.inbox(&held.run).await, []);
    assert_eq!(s.deliver(call_back(&held.run, "cb", "1", Some("secret"))).await, Delivered::Delivered);
}

async fn callback_is_not_an_approval_and_the_other_way_round(s: Scene<'_>) {
    let mut held = calling(&s).await;
    let commit = held.commit().event("asked").approval("ok").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(decide(&held.run, "cb", "1")).await, Delivered::NotFound);
    assert_eq!(s.deliver(call_back(&held.run, "ok", "2", None)).await, Delivered::NotFound);
    assert_eq!(s.deliver(decide(&held.run, "w", "3")).await, Delivered::NotFound);
    let mut odd = decide(&held.run, "w", "4");
    if let outlast_core::commit::Delivery::Answer { kind, .. } = &mut odd {
        *kind = WaitKind::Signal;
    }
    assert_eq!(s.deliver(odd).await, Delivered::NotFound, "a signal is sent, not answered");
    assert_eq!(s.inbox(&held.run).await, []);
}

async fn callback_is_answered_once(s: Scene<'_>) {
    let held = calling(&s).await;
    assert_eq!(s.deliver(call_back(&held.run, "cb", "1", Some("secret"))).await, Delivered::Delivered);
    assert_eq!(s.deliver(call_back(&held.run, "cb", "2", Some("secret"))).await, Delivered::Lost);
    assert_eq!(s.deliver(call_back(&held.run, "cb", "1", Some("secret"))).await, Delivered::Duplicate);
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.kind, item.payload), (InboxKind::Callback, Some(bytes("done"))));
}

fn heartbeat_timer(commit: Commit, due: i64) -> Commit {
    let timer = TimerRef { key: key("cb"), kind: TimerKind::Heartbeat };
    let wait =
        NewWait { token: Some("secret".to_owned()), heartbeat: Some(ms(100)), ..new_wait("cb", WaitKind::Callback) };
    commit.wait(wait).change(|commit| commit.timers.push(NewTimer { timer, due: at(due) }))
}

async fn heartbeat_moves_the_timer(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = heartbeat_timer(held.commit().event("called"), 100).suspend();
    s.apply(&mut held, commit).await;
    s.clock.set(60);
    assert_eq!(s.deliver(beat(&held.run, "cb", Some("secret"))).await, Delivered::Delivered);
    assert!(!s.view(&held.run).await.ready, "a sign of life wakes nobody");
    s.clock.set(159);
    assert_eq!(s.sweep().await.fired, 0, "seen at 60, so silent only from 160 on");
    s.clock.set(160);
    assert_eq!(s.sweep().await.fired, 1);
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.kind, item.name.as_deref()), (InboxKind::Timer, Some("heartbeat")));
    assert_eq!(s.deliver(beat(&held.run, "cb", Some("secret"))).await, Delivered::Lost, "too late: it fired");
}

async fn heartbeat_with_the_wrong_token_or_after_the_answer_changes_nothing(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = heartbeat_timer(held.commit().event("called"), 100);
    s.apply(&mut held, commit).await;
    s.clock.set(50);
    assert_eq!(s.deliver(beat(&held.run, "cb", Some("wrong"))).await, Delivered::NotFound);
    assert_eq!(s.deliver(beat(&held.run, "none", None)).await, Delivered::NotFound);
    assert_eq!(s.deliver(beat(&run("none"), "cb", Some("secret"))).await, Delivered::NotFound);
    s.deliver(call_back(&held.run, "cb", "1", Some("secret"))).await;
    assert_eq!(s.deliver(beat(&held.run, "cb", Some("secret"))).await, Delivered::Lost);
    assert_eq!(s.sweep().await.next_due, Some(at(100)), "the timer stands where it stood");
}

async fn heartbeat_of_a_callback_without_one_is_a_sign_of_life_all_the_same(s: Scene<'_>) {
    let held = calling(&s).await;
    assert_eq!(s.deliver(beat(&held.run, "cb", Some("secret"))).await, Delivered::Delivered);
    assert_eq!(s.sweep().await.next_due, None);
}

/// Unified: a payload beats a deadline unless the timeout is already in the journal.
async fn mailbox_payload_beats_a_deadline_that_is_not_journaled(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    s.deliver(signal(&held.run, "go", "1", "just in time")).await;
    let timeout = held.commit().event("timeout").close("w", CloseCause::TimedOut);
    assert_eq!(s.commit(timeout).await.unwrap_err(), answered("w"));
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("got").close("w", CloseCause::Resolved).consume(&[item]);
    s.apply(&mut held, commit).await;
}

async fn mailbox_payload_consumed_by_another_wait_does_not_stop_the_deadline(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w1", "go").wait_signal("w2", "go");
    s.apply(&mut held, commit).await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let item = s.inbox(&held.run).await[0].id;
    let resolved = held.commit().event("got").close("w1", CloseCause::Resolved).consume(&[item]);
    let both = resolved.event("timeout").close("w2", CloseCause::TimedOut);
    s.apply(&mut held, both).await;
    assert_eq!(s.awaiting(&held.run).await, []);
}

async fn deadline_journaled_first_leaves_the_payload_in_the_mailbox(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("timeout").close("w", CloseCause::TimedOut);
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "late")).await, Delivered::Buffered, "kept for the next wait");
    assert_eq!(s.mail(&held.run).await, ["late"]);
}

async fn mailbox_payload_does_not_stop_a_cancellation(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let commit = held.commit().event("cancelled").close("w", CloseCause::Cancelled);
    s.apply(&mut held, commit).await;
    assert_eq!(s.mail(&held.run).await, ["one"], "the mailbox belongs to the run, not to the wait");
}

async fn open_and_closed_in_one_commit_is_over(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "early")).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held
        .commit()
        .event("asked")
        .wait_signal("w", "go")
        .event("got")
        .close("w", CloseCause::Resolved)
        .consume(&[item])
        .approval("ok")
        .close("ok", CloseCause::Cancelled);
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
    assert_eq!(s.deliver(decide(&held.run, "ok", "2")).await, Delivered::Lost);
}

async fn wait_of_a_key_in_use_is_rejected(s: Scene<'_>) {
    let mut held = asking(&s).await;
    let exists = |operation: &str| CommitError::Rejected(Rejection::WaitExists { key: key(operation) });
    assert_eq!(s.commit(held.commit().event("y").approval("ok")).await.unwrap_err(), exists("ok"));
    let commit = held.commit().event("timeout").close("ok", CloseCause::TimedOut);
    s.apply(&mut held, commit).await;
    let again = s.commit(held.commit().event("y").approval("ok")).await.unwrap_err();
    assert_eq!(again, exists("ok"), "a key names one operation for good");
}

/// Whoever aims a signal at what they do not know must not be able to stop the run.
async fn slot_of_another_name_or_kind_does_not_keep_a_wait_from_opening(s: Scene<'_>) {
    let mut held = s.own("a").await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Buffered);
    assert_eq!(s.deliver(aimed(&held.run, "ok", "go", "2")).await, Delivered::Buffered);
    let commit = held.commit().event("x").wait_signal("w", "stop").approval("ok");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "stop", "3")).await, Delivered::Delivered, "it is open");
    assert_eq!(s.deliver(decide(&held.run, "ok", "4")).await, Delivered::Delivered);
    assert_eq!(s.inbox(&held.run).await.len(), 4, "nothing that was acknowledged is gone");
}

async fn same_wait_twice_in_one_commit_is_rejected(s: Scene<'_>) {
    let held = s.own("a").await;
    let refused = s.commit(held.commit().event("x").approval("ok").approval("ok")).await.unwrap_err();
    assert_eq!(refused, CommitError::Rejected(Rejection::WaitExists { key: key("ok") }));
}

async fn closing_what_is_not_open_is_rejected(s: Scene<'_>) {
    let mut held = asking(&s).await;
    assert_eq!(
        s.commit(held.commit().event("y").close("none", CloseCause::Cancelled)).await.unwrap_err(),
        gone("none")
    );
    let commit = held.commit().event("y").close("ok", CloseCause::Cancelled);
    s.apply(&mut held, commit).await;
    for cause in [CloseCause::Cancelled, CloseCause::TimedOut, CloseCause::Resolved] {
        assert_eq!(s.commit(held.commit().event("z").close("ok", cause)).await.unwrap_err(), gone("ok"));
    }
    s.deliver(aimed(&held.run, "slot", "go", "1")).await;
    let slot = s.commit(held.commit().event("z").close("slot", CloseCause::Cancelled)).await.unwrap_err();
    assert_eq!(slot, gone("slot"), "a slot is not a wait yet");
}

async fn answer_tells_who_and_how(s: Scene<'_>) {
    let held = asking(&s).await;
    s.clock.set(33);
    s.deliver(decide(&held.run, "ok", "1")).await;
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.meta, item.payload), (Some(bytes("{\"by\":\"ann\"}")), Some(bytes("yes"))));
    assert_eq!((item.delivery, item.at, item.name), (Some(id("1")), at(33), None));
    let awaiting = s.awaiting(&held.run).await;
    let is_ok = |found: &Key| *found == key("ok");
    assert!(
        matches!(&awaiting[..], [Awaited::Wait { key, kind: WaitKind::Approval, answered: true, .. }] if is_ok(key)),
        "{awaiting:?}"
    );
}

async fn answer_to_an_ended_unknown_or_deleted_run_is_refused(s: Scene<'_>) {
    let ended = s.ended("ended").await;
    let deleted = s.ended("deleted").await;
    s.store.delete(deleted.clone(), WHY.to_owned()).await.unwrap();
    assert_eq!(s.deliver(decide(&ended, "ok", "1")).await, Delivered::Lost);
    assert_eq!(s.deliver(decide(&run("none"), "ok", "1")).await, Delivered::NotFound);
    assert_eq!(s.deliver(decide(&deleted, "ok", "1")).await, Delivered::Deleted);
    assert_eq!(s.deliver(beat(&ended, "cb", None)).await, Delivered::Lost);
}
