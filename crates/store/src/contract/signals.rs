//! Signals: a durable mailbox per name, and a slot for those aimed at one operation.

use bytes::Bytes;
use outlast_core::commit::{CloseCause, Delivery, InboxKind, Signal, Status, Then};
use outlast_core::id::SignalName;

use super::scene::*;
use crate::{Awaited, CommitError, Delivered, Rejection, StoreError};

super::stories! {
    signals_of_one_name_come_in_the_order_they_were_sent,
    signals_of_two_names_keep_the_order_of_both,
    early_signal_is_buffered,
    signal_somebody_waits_for_is_delivered,
    only_as_many_are_delivered_as_are_waited_for,
    signal_of_another_name_is_buffered_beside_a_wait,
    same_id_is_a_duplicate,
    same_id_with_another_payload_is_a_duplicate_and_the_first_stands,
    same_id_is_a_duplicate_after_it_was_consumed,
    same_id_is_a_duplicate_after_the_end,
    same_id_is_a_duplicate_while_paused_and_while_parked,
    same_id_in_another_run_is_another_signal,
    new_id_after_the_end_is_lost,
    signal_to_an_unknown_run_is_not_found,
    signal_to_a_deleted_run_is_told_so,
    null_is_a_payload_and_so_is_nothing,
    payload_is_bytes_not_text,
    one_refused_signal_leaves_its_neighbours,
    same_signal_twice_in_one_batch_is_applied_once,
    consumed_signal_is_gone_and_the_rest_stays,
    signal_that_was_consumed_cannot_be_consumed_again,
    signal_inside_a_commit_reaches_the_other_run_with_it,
    run_may_signal_itself,
    every_accepted_signal_is_consumed_or_buffered,
    aimed_signal_answers_its_wait,
    aimed_signal_before_its_wait_takes_the_slot,
    wait_that_is_given_up_as_it_begins_leaves_the_signal_aimed_at_it,
    second_aimed_signal_is_lost_before_and_after_the_wait,
    aimed_signal_of_the_wrong_name_is_lost,
    aimed_signal_after_the_resolution_is_lost_but_its_repetition_is_not,
    aimed_signal_is_not_fed_to_the_mailbox,
    aimed_signal_at_an_approval_is_lost,
}

async fn waiting(s: &Scene<'_>, name: &str) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w", name).suspend();
    s.apply(&mut held, commit).await;
    held
}

async fn signals_of_one_name_come_in_the_order_they_were_sent(s: Scene<'_>) {
    let a = s.start("a").await;
    for number in 0..12 {
        s.deliver(signal(&a, "go", &format!("id-{}", 12 - number), &number.to_string())).await;
    }
    let expected: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    assert_eq!(s.mail(&a).await, expected);
}

async fn signals_of_two_names_keep_the_order_of_both(s: Scene<'_>) {
    let a = s.start("a").await;
    s.clock.set(3);
    for (name, number) in [("x", "1"), ("y", "2"), ("x", "3")] {
        s.deliver(signal(&a, name, number, number)).await;
    }
    let inbox = s.inbox(&a).await;
    let seen: Vec<_> = inbox.iter().map(|item| item.name.as_deref().unwrap_or("")).collect();
    assert_eq!(seen, ["x", "y", "x"]);
    assert!(inbox.windows(2).all(|pair| pair[0].id < pair[1].id), "a later item has a larger id");
    let first = &inbox[0];
    assert_eq!((first.kind, &first.key, first.at), (InboxKind::Signal, &None, at(3)));
    assert_eq!((first.delivery.clone(), &first.meta), (Some(id("1")), &None));
}

/// Row 11: a signal before its wait was lost.
async fn early_signal_is_buffered(s: Scene<'_>) {
    let a = s.start("a").await;
    assert_eq!(s.deliver(signal(&a, "go", "1", "early")).await, Delivered::Buffered);
    let mut held = s.reclaim(&a).await;
    let commit = held.commit().event("x").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    let item = s.inbox(&a).await.remove(0);
    assert_eq!(item.payload, Some(bytes("early")), "it waits for the wait");
    let commit = held.commit().event("got it").close("w", CloseCause::Resolved).consume(&[item.id]);
    s.apply(&mut held, commit).await;
    assert_eq!(s.inbox(&a).await, []);
}

async fn signal_somebody_waits_for_is_delivered(s: Scene<'_>) {
    let held = waiting(&s, "go").await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "x")).await, Delivered::Delivered);
    assert!(s.view(&held.run).await.ready);
}

async fn only_as_many_are_delivered_as_are_waited_for(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w1", "go").wait_signal("w2", "go").suspend();
    s.apply(&mut held, commit).await;
    for (number, expected) in [("1", Delivered::Delivered), ("2", Delivered::Delivered), ("3", Delivered::Buffered)] {
        assert_eq!(s.deliver(signal(&held.run, "go", number, number)).await, expected);
    }
}

async fn signal_of_another_name_is_buffered_beside_a_wait(s: Scene<'_>) {
    let held = waiting(&s, "go").await;
    assert_eq!(s.deliver(signal(&held.run, "stop", "1", "x")).await, Delivered::Buffered);
    assert!(s.view(&held.run).await.ready, "it wakes the run all the same");
}

async fn same_id_is_a_duplicate(s: Scene<'_>) {
    let a = s.start("a").await;
    s.deliver(signal(&a, "go", "1", "one")).await;
    assert_eq!(s.deliver(signal(&a, "go", "1", "one")).await, Delivered::Duplicate);
    assert_eq!(s.mail(&a).await, ["one"]);
}

async fn same_id_with_another_payload_is_a_duplicate_and_the_first_stands(s: Scene<'_>) {
    let a = s.start("a").await;
    s.deliver(signal(&a, "go", "1", "first")).await;
    assert_eq!(s.deliver(signal(&a, "stop", "1", "second")).await, Delivered::Duplicate);
    assert_eq!(s.mail(&a).await, ["first"]);
}

async fn same_id_is_a_duplicate_after_it_was_consumed(s: Scene<'_>) {
    let held = waiting(&s, "go").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let mut held = s.reclaim(&held.run).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("got").close("w", CloseCause::Resolved).consume(&[item]).suspend();
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "one")).await, Delivered::Duplicate);
    assert!(!s.view(&held.run).await.ready, "a duplicate wakes nobody");
    assert_eq!(s.mail(&held.run).await, [""; 0]);
}

/// Row 13: the dedup id was forgotten when the run closed.
async fn same_id_is_a_duplicate_after_the_end(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("end").consume(&[item]).finish();
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "one")).await, Delivered::Duplicate, "a retry is a success");
}

async fn same_id_is_a_duplicate_while_paused_and_while_parked(s: Scene<'_>) {
    let mut a = s.own("a").await;
    let mut b = s.own_under(s.node("b", 1_000).await, "b").await;
    s.deliver(signal(&a.run, "go", "1", "one")).await;
    s.deliver(signal(&b.run, "go", "1", "one")).await;
    s.take(&a).await;
    let pause = a.commit().event("x").then(Then::Pause);
    s.apply(&mut a, pause).await;
    let park = b.commit().event("x").park("why");
    s.apply(&mut b, park).await;
    assert_eq!(s.deliver(signal(&a.run, "go", "1", "one")).await, Delivered::Duplicate);
    assert_eq!(s.deliver(signal(&b.run, "go", "1", "one")).await, Delivered::Duplicate);
}

async fn same_id_in_another_run_is_another_signal(s: Scene<'_>) {
    let (a, b) = (s.start("a").await, s.start("b").await);
    assert_eq!(s.deliver(signal(&a, "go", "1", "one")).await, Delivered::Buffered);
    assert_eq!(s.deliver(signal(&b, "go", "1", "one")).await, Delivered::Buffered);
}

/// Row 17: a late resume poisoned the log.
async fn new_id_after_the_end_is_lost(s: Scene<'_>) {
    let ended = s.ended("a").await;
    assert_eq!(s.deliver(signal(&ended, "go", "1", "late")).await, Delivered::Lost);
    assert_eq!(s.mail(&ended).await, [""; 0], "the run is unaffected");
    let view = s.view(&ended).await;
    assert_eq!((view.status, view.ready), (Status::Completed, false));
    assert_eq!(s.deliver(signal(&ended, "go", "1", "late")).await, Delivered::Lost, "what was lost is no duplicate");
}

async fn signal_to_an_unknown_run_is_not_found(s: Scene<'_>) {
    s.start("a").await;
    assert_eq!(s.deliver(signal(&run("none"), "go", "1", "x")).await, Delivered::NotFound);
    assert_eq!(s.deliver(signal(&run_in("nowhere", "a"), "go", "1", "x")).await, Delivered::NotFound);
}

async fn signal_to_a_deleted_run_is_told_so(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "x")).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    s.store.delete(held.run.clone(), WHY.to_owned()).await.unwrap();
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "x")).await, Delivered::Deleted);
    assert_eq!(s.deliver(signal(&held.run, "go", "2", "x")).await, Delivered::Deleted);
}

/// Row 18: a `null` payload was taken for a timeout.
async fn null_is_a_payload_and_so_is_nothing(s: Scene<'_>) {
    let a = s.start("a").await;
    s.deliver(signal(&a, "go", "1", "null")).await;
    s.deliver(signal(&a, "go", "2", "")).await;
    let payloads: Vec<_> = s.inbox(&a).await.into_iter().map(|item| item.payload).collect();
    assert_eq!(payloads, [Some(bytes("null")), Some(Bytes::new())]);
}

async fn payload_is_bytes_not_text(s: Scene<'_>) {
    let a = s.start("a").await;
    let payload = Bytes::from((0..=255).rev().collect::<Vec<u8>>());
    let name = SignalName::new("ü%_'\"").unwrap();
    let raw = Signal { name: name.clone(), id: id("1"), payload: payload.clone(), aimed: None };
    s.deliver(Delivery::Signal { run: a.clone(), signal: raw }).await;
    let item = s.inbox(&a).await.remove(0);
    assert_eq!((item.payload, item.name.as_deref()), (Some(payload), Some(name.as_str())));
}

async fn one_refused_signal_leaves_its_neighbours(s: Scene<'_>) {
    let (a, ended) = (s.start("a").await, s.ended("ended").await);
    let batch = vec![
        signal(&a, "go", "1", "one"),
        signal(&run("none"), "go", "1", "x"),
        signal(&ended, "go", "1", "x"),
        signal(&a, "go", "2", "two"),
    ];
    let answers: Vec<Result<Delivered, StoreError>> = s.store.deliver(batch).await;
    let expected = [Delivered::Buffered, Delivered::NotFound, Delivered::Lost, Delivered::Buffered];
    assert_eq!(answers, expected.map(Ok));
    assert_eq!(s.mail(&a).await, ["one", "two"]);
}

async fn same_signal_twice_in_one_batch_is_applied_once(s: Scene<'_>) {
    let a = s.start("a").await;
    let answers = s.store.deliver(vec![signal(&a, "go", "1", "one"), signal(&a, "go", "1", "one")]).await;
    assert_eq!(answers, [Ok(Delivered::Buffered), Ok(Delivered::Duplicate)]);
    assert_eq!(s.mail(&a).await, ["one"]);
}

async fn consumed_signal_is_gone_and_the_rest_stays(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for number in ["1", "2", "3"] {
        s.deliver(signal(&held.run, "go", number, number)).await;
    }
    let second = s.inbox(&held.run).await[1].id;
    let commit = held.commit().event("x").consume(&[second]);
    s.apply(&mut held, commit).await;
    assert_eq!(s.mail(&held.run).await, ["1", "3"]);
    s.deliver(signal(&held.run, "go", "4", "4")).await;
    assert_eq!(s.mail(&held.run).await, ["1", "3", "4"]);
}

async fn signal_that_was_consumed_cannot_be_consumed_again(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "1")).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("x").consume(&[item]);
    s.apply(&mut held, commit).await;
    for gone in [item, outlast_core::id::InboxId(u64::MAX)] {
        let refused = s.commit(held.commit().event("y").consume(&[gone])).await.unwrap_err();
        assert_eq!(refused, CommitError::Rejected(Rejection::InboxGone { id: gone }));
    }
    assert_eq!(s.story(&held.run).await, ["x"]);
}

async fn signal_inside_a_commit_reaches_the_other_run_with_it(s: Scene<'_>) {
    let target = waiting(&s, "go").await;
    let mut sender = s.own("sender").await;
    let commit = sender
        .commit()
        .event("sent")
        .deliver(signal(&target.run, "go", "1", "hi"))
        .deliver(signal(&target.run, "go", "1", "hi"))
        .deliver(signal(&run("none"), "go", "1", "hi"));
    let committed = s.apply(&mut sender, commit).await;
    assert_eq!(committed.delivered, [Delivered::Delivered, Delivered::Duplicate, Delivered::NotFound]);
    assert_eq!(s.mail(&target.run).await, ["hi"]);
    assert!(s.view(&target.run).await.ready);
}

async fn run_may_signal_itself(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").deliver(signal(&held.run, "go", "1", "note to self")).suspend();
    assert_eq!(s.apply(&mut held, commit).await.delivered, [Delivered::Buffered]);
    let view = s.view(&held.run).await;
    assert_eq!((view.ready, view.owner), (true, None));
    let mut held = s.reclaim(&held.run).await;
    let commit = held.commit().event("end").deliver(signal(&held.run, "go", "2", "too late")).finish();
    assert_eq!(s.apply(&mut held, commit).await.delivered, [Delivered::Lost]);
}

/// Invariant 8 and row 16: accepted = consumed + buffered.
async fn every_accepted_signal_is_consumed_or_buffered(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let mut consumed = Vec::new();
    for number in 0..20 {
        for copy in 0..2 {
            s.deliver(signal(&held.run, "go", &format!("{}", number - number % 2 * copy), &format!("{number}"))).await;
        }
        if number % 3 == 0 {
            let first = s.inbox(&held.run).await.remove(0);
            let commit = held.commit().event("x").consume(&[first.id]);
            s.apply(&mut held, commit).await;
            consumed.push(String::from_utf8_lossy(first.payload.as_deref().unwrap_or_default()).into_owned());
        }
    }
    consumed.extend(s.mail(&held.run).await);
    let expected: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(consumed, expected, "each once, and in order");
}

async fn aimed_signal_answers_its_wait(s: Scene<'_>) {
    let held = waiting(&s, "go").await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Delivered);
    let awaiting = s.awaiting(&held.run).await;
    assert!(matches!(&awaiting[..], [Awaited::Wait { answered: true, .. }]), "{awaiting:?}");
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.kind, item.key, item.name.as_deref()), (InboxKind::Signal, Some(key("w")), Some("go")));
}

async fn aimed_signal_before_its_wait_takes_the_slot(s: Scene<'_>) {
    let mut held = s.own("a").await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Buffered);
    assert_eq!(s.awaiting(&held.run).await, [], "nobody waits yet");
    let commit = held.commit().event("x").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    let awaiting = s.awaiting(&held.run).await;
    assert!(matches!(&awaiting[..], [Awaited::Wait { answered: true, .. }]), "born answered: {awaiting:?}");
    let timeout = held.commit().event("timeout").close("w", CloseCause::TimedOut);
    let refused = s.commit(timeout).await.unwrap_err();
    assert_eq!(refused, CommitError::Rejected(Rejection::Answered { key: key("w") }));
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("got").close("w", CloseCause::Resolved).consume(&[item]).finish();
    s.apply(&mut held, commit).await;
}

async fn wait_that_is_given_up_as_it_begins_leaves_the_signal_aimed_at_it(s: Scene<'_>) {
    let mut held = s.own("a").await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Buffered);
    let commit = held.commit().event("x").wait_signal("w", "go").close("w", CloseCause::Cancelled);
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
    assert_eq!(s.inbox(&held.run).await.len(), 1);
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
}

async fn second_aimed_signal_is_lost_before_and_after_the_wait(s: Scene<'_>) {
    let mut held = s.own("a").await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Buffered);
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "2")).await, Delivered::Lost, "the slot is taken");
    let commit = held.commit().event("x").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "3")).await, Delivered::Lost);
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Duplicate);
    assert_eq!(s.inbox(&held.run).await.len(), 1, "the winner stands alone");
}

async fn aimed_signal_of_the_wrong_name_is_lost(s: Scene<'_>) {
    let held = waiting(&s, "go").await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "stop", "1")).await, Delivered::Lost);
    assert_eq!(s.inbox(&held.run).await, []);
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "2")).await, Delivered::Delivered, "the wait is still open");
}

/// Semantics R7: a different id for an operation already resolved is told `signal_lost`; the winner stands.
async fn aimed_signal_after_the_resolution_is_lost_but_its_repetition_is_not(s: Scene<'_>) {
    let held = waiting(&s, "go").await;
    s.deliver(aimed(&held.run, "w", "go", "1")).await;
    let mut held = s.reclaim(&held.run).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("got").close("w", CloseCause::Resolved).consume(&[item]).suspend();
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "2")).await, Delivered::Lost);
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Duplicate);
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.ready), (Status::Waiting, false), "a lost race is no state of the run");
}

async fn aimed_signal_is_not_fed_to_the_mailbox(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("other", "go");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "1")).await, Delivered::Buffered);
    let timeout = held.commit().event("timeout").close("other", CloseCause::TimedOut);
    assert!(s.commit(timeout).await.is_ok(), "a signal aimed at another operation is not this one's payload");
}

async fn aimed_signal_at_an_approval_is_lost(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").approval("ok");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(aimed(&held.run, "ok", "go", "1")).await, Delivered::Lost);
}
