//! Wakes: at most one claimed and one unclaimed resume per run; a wake during a turn is never lost.

use futures_util::future::join;
use outlast_core::commit::{Control, InboxKind, Status, Then};
use outlast_core::id::ClaimId;

use super::scene::*;
use crate::{Claim, CommitError, Delivered, Pick, Rejection, Serves};

super::stories! {
    many_wakes_are_one_resume,
    suspended_run_without_a_wake_stays_asleep,
    wake_during_a_turn_survives_its_suspend,
    wake_during_a_turn_survives_its_release,
    owner_sees_which_of_its_runs_were_woken,
    wakes_are_listed_per_lease_and_at_most_so_many,
    taking_the_resume_ends_the_wake,
    wake_after_the_take_is_a_new_one,
    take_of_what_was_read_leaves_what_came_since,
    take_that_is_late_takes_nothing_that_came_since,
    take_that_is_late_lets_no_pause_shut_in_what_came_since,
    wake_that_was_taken_does_not_resume_the_run_again,
    wake_and_claim_at_once_lose_nothing,
    wake_and_suspend_at_once_lose_nothing,
    paused_run_keeps_its_wake_unclaimed,
    parked_run_keeps_its_wake_unclaimed,
    wake_before_the_pause_is_claimed_after_the_resume,
    pause_over_an_unread_resume_is_rejected,
    resume_reaches_a_paused_run,
    cancel_reaches_a_paused_run,
    pause_of_a_paused_run_does_not_let_it_go,
    control_reaches_a_waiting_run_and_a_running_one,
    every_control_is_an_item_of_its_kind,
    control_repeated_is_a_duplicate,
    recall_says_whether_an_id_was_used_and_uses_none,
    control_of_an_ended_unknown_or_deleted_run_is_refused,
    controls_stand_in_the_inbox_in_order,
}

/// A run that waits for the signal `go`.
async fn asleep(s: &Scene<'_>, id: &str) -> Held {
    let mut held = s.own(id).await;
    let commit = held.commit().event("x").wait_signal("w", "go").suspend();
    s.apply(&mut held, commit).await;
    held
}

async fn many_wakes_are_one_resume(s: Scene<'_>) {
    let held = asleep(&s, "a").await;
    let signals = (0..100).map(|number| signal(&held.run, "go", &number.to_string(), "x")).collect();
    assert!(s.store.deliver(signals).await.iter().all(Result::is_ok));
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"], "a hundred wakes, one resume");
    assert_eq!(s.claim_ids(lease, 2).await, [""; 0]);
    assert_eq!(s.inbox(&held.run).await.len(), 100, "and nothing of what they brought is lost");
}

async fn suspended_run_without_a_wake_stays_asleep(s: Scene<'_>) {
    let held = asleep(&s, "a").await;
    let lease = s.node("n", 1_000).await;
    s.clock.set(1_000_000);
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.ready, view.owner), (Status::Waiting, false, None));
    s.clock.set(0);
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0]);
}

async fn wake_during_a_turn_survives_its_suspend(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "meanwhile")).await;
    let commit = held.commit().event("x").suspend();
    s.apply(&mut held, commit).await;
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.ready), (Status::Waiting, true));
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"], "the wake is the unclaimed resume and outlives the turn");
}

async fn wake_during_a_turn_survives_its_release(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x");
    s.apply(&mut held, commit).await;
    s.deliver(signal(&held.run, "go", "1", "meanwhile")).await;
    s.store.release(vec![held.release(false)]).await.remove(0).unwrap();
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
}

async fn owner_sees_which_of_its_runs_were_woken(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let (a, b) = (s.own_under(lease, "a").await, s.own_under(lease, "b").await);
    assert_eq!(s.store.wakes(lease, 10).await.unwrap(), []);
    s.deliver(signal(&b.run, "go", "1", "one")).await;
    assert_eq!(
        s.store.wakes(lease, 10).await.unwrap(),
        std::slice::from_ref(&b.run),
        "in the middle of a two-hour step"
    );
    s.deliver(signal(&a.run, "go", "1", "one")).await;
    assert_eq!(s.store.wakes(lease, 10).await.unwrap(), [a.run, b.run]);
}

async fn wakes_are_listed_per_lease_and_at_most_so_many(s: Scene<'_>) {
    let (one, two) = (s.node("one", 1_000).await, s.node("two", 1_000).await);
    for id in ["a", "b", "c"] {
        let held = s.own_under(one, id).await;
        s.deliver(signal(&held.run, "go", "1", "x")).await;
    }
    assert_eq!(s.store.wakes(one, 2).await.unwrap(), [run("a"), run("b")]);
    assert_eq!(s.store.wakes(one, 0).await.unwrap(), []);
    assert_eq!(s.store.wakes(two, 10).await.unwrap(), []);
}

async fn taking_the_resume_ends_the_wake(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let mut held = s.own_under(lease, "a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let item = s.take(&held).await[0].id;
    assert_eq!(s.store.wakes(lease, 10).await.unwrap(), []);
    assert_eq!(s.take(&held).await[0].id, item, "taking nothing is not an error");
    let commit = held.commit().event("got one").consume(&[item]).suspend();
    s.apply(&mut held, commit).await;
    assert!(!s.view(&held.run).await.ready);
}

async fn wake_after_the_take_is_a_new_one(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let mut held = s.own_under(lease, "a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let read = s.take(&held).await;
    s.deliver(signal(&held.run, "go", "2", "two")).await;
    let commit = held.commit().event("got one").consume(&[read[0].id]).suspend();
    s.apply(&mut held, commit).await;
    assert!(s.view(&held.run).await.ready, "what came after the inbox was read must wake the run");
    assert_eq!(s.mail(&held.run).await, ["two"]);
}

async fn take_of_what_was_read_leaves_what_came_since(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let mut held = s.own_under(lease, "a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let read = s.load(&held.run).await;
    s.deliver(signal(&held.run, "go", "2", "two")).await;
    let taken = s.store.take(vec![held.take(read.inbox_next)]).await;
    assert_eq!(taken, [Ok(false)], "the owner is told to read again");
    assert_eq!(s.store.wakes(lease, 10).await.unwrap(), std::slice::from_ref(&held.run));
    let commit = held.commit().event("got one").consume(&[read.inbox[0].id]).suspend();
    s.apply(&mut held, commit).await;
    assert!(s.view(&held.run).await.ready, "what came after the inbox was read must wake the run");
}

/// Its sender gave it up, read again and took that; the first one arrives when something new is there.
async fn take_that_is_late_takes_nothing_that_came_since(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let mut held = s.own_under(lease, "a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let late = held.take(s.load(&held.run).await.inbox_next);
    let read = s.take(&held).await;
    s.deliver(signal(&held.run, "go", "2", "two")).await;
    assert_eq!(s.store.take(vec![late]).await, [Ok(false)]);
    let commit = held.commit().event("got one").consume(&[read[0].id]).suspend();
    s.apply(&mut held, commit).await;
    assert!(s.view(&held.run).await.ready, "nobody has read the second signal");
    let lease = s.node("next", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
    assert_eq!(s.mail(&held.run).await, ["two"]);
}

async fn take_that_is_late_lets_no_pause_shut_in_what_came_since(s: Scene<'_>) {
    let held = s.own("a").await;
    let late = held.take(s.load(&held.run).await.inbox_next);
    s.deliver(control(&held.run, Control::Resume, "r")).await;
    assert_eq!(s.store.take(vec![late]).await, [Ok(false)]);
    let pause = held.commit().event("paused").then(Then::Pause);
    assert_eq!(s.store.commit(vec![pause]).await.remove(0), Err(CommitError::Rejected(Rejection::Woken)));
}

async fn wake_that_was_taken_does_not_resume_the_run_again(s: Scene<'_>) {
    let held = asleep(&s, "a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let mut held = s.reclaim(&held.run).await;
    let commit = held.commit().event("y").suspend();
    s.apply(&mut held, commit).await;
    assert!(!s.view(&held.run).await.ready, "the claim took the resume");
}

/// A wake left while another transaction claims: either the claimer sees what it brought, or the wake is still there.
async fn wake_and_claim_at_once_lose_nothing(s: Scene<'_>) {
    let other = s.other().await;
    let lease = s.node("n", 1_000_000).await;
    for round in 0..30 {
        let run = s.start(&format!("run-{round}")).await;
        let (pick, serves) = (Pick::Run(run.clone()), Serves::Everything);
        let claim = Claim { lease, id: ClaimId(round), limit: 1, pick, serves };
        let claim_and_read = async {
            let claimed = s.store.claim(claim).await.unwrap();
            (Held::of(&claimed[0]), s.mail(&run).await)
        };
        let wake = other.deliver(vec![signal(&run, "go", "1", "one")]);
        let ((mut held, read), delivered) = join(claim_and_read, wake).await;
        assert_eq!(delivered, [Ok(Delivered::Buffered)]);
        let commit = held.commit().event("x").suspend();
        s.apply(&mut held, commit).await;
        let view = s.view(&run).await;
        assert!(!read.is_empty() || view.ready, "the claimer saw {read:?} and the wake is gone: {view:?}");
    }
}

/// A wake against the commit that ends the turn: the run is ready afterwards, whichever came first.
async fn wake_and_suspend_at_once_lose_nothing(s: Scene<'_>) {
    let other = s.other().await;
    let lease = s.node("n", 1_000_000).await;
    for round in 0..30 {
        let held = s.own_under(lease, &format!("run-{round}")).await;
        let suspend = vec![held.commit().event("x").suspend()];
        let wake = vec![signal(&held.run, "go", "1", "one")];
        let (committed, delivered) = join(s.store.commit(suspend), other.deliver(wake)).await;
        assert!(committed[0].is_ok() && delivered[0].is_ok(), "{committed:?} {delivered:?}");
        let view = s.view(&held.run).await;
        assert_eq!((view.status, view.ready), (Status::Waiting, true), "nobody read the signal yet");
    }
}

async fn paused(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("paused").then(Then::Pause);
    s.apply(&mut held, commit).await;
    held
}

async fn paused_run_keeps_its_wake_unclaimed(s: Scene<'_>) {
    let held = paused(&s).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "one")).await, Delivered::Buffered, "acknowledged all the same");
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.ready), (Status::Paused, true));
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0]);
    assert_eq!(s.claim_run(lease, 2, &held.run).await, None);
    assert_eq!(s.mail(&held.run).await, ["one"], "visible in the inbox");
}

async fn parked_run_keeps_its_wake_unclaimed(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").park("mismatch");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "one")).await, Delivered::Buffered);
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0]);
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.note.as_deref()), (Status::Parked, Some("mismatch")));
    s.store.unpark(held.run.clone()).await.unwrap();
    assert_eq!(s.claim_ids(lease, 2).await, ["a"]);
    assert_eq!(s.mail(&held.run).await, ["one"]);
}

async fn wake_before_the_pause_is_claimed_after_the_resume(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    s.take(&held).await;
    let commit = held.commit().event("paused").then(Then::Pause);
    s.apply(&mut held, commit).await;
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0]);
    s.deliver(control(&held.run, Control::Resume, "r")).await;
    assert_eq!(s.claim_ids(lease, 2).await, ["a"]);
    assert_eq!(s.inbox(&held.run).await.len(), 2);
}

/// A resume or a cancellation that overtakes the pause must not be shut in with it.
async fn pause_over_an_unread_resume_is_rejected(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(control(&held.run, Control::Resume, "r")).await;
    let pause = held.commit().event("paused").then(Then::Pause);
    let refused = s.store.commit(vec![pause.clone()]).await.remove(0);
    assert_eq!(refused, Err(CommitError::Rejected(Rejection::Woken)));
    assert_eq!(s.view(&held.run).await.status, Status::Running, "nothing of it was applied");
    assert_eq!(s.take(&held).await[0].kind, InboxKind::Resume);
    s.apply(&mut held, pause).await;
    assert_eq!(s.view(&held.run).await.status, Status::Paused, "its owner has read the inbox and means it");
}

async fn resume_reaches_a_paused_run(s: Scene<'_>) {
    let held = paused(&s).await;
    assert_eq!(s.deliver(control(&held.run, Control::Resume, "r")).await, Delivered::Delivered);
    assert_eq!(s.view(&held.run).await.status, Status::Waiting);
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
    assert_eq!(s.inbox(&held.run).await[0].kind, InboxKind::Resume);
}

async fn cancel_reaches_a_paused_run(s: Scene<'_>) {
    let held = paused(&s).await;
    assert_eq!(s.deliver(control(&held.run, Control::Cancel, "c")).await, Delivered::Delivered);
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
    assert_eq!(s.inbox(&held.run).await[0].kind, InboxKind::Cancel);
}

async fn pause_of_a_paused_run_does_not_let_it_go(s: Scene<'_>) {
    let held = paused(&s).await;
    assert_eq!(s.deliver(control(&held.run, Control::Pause, "p")).await, Delivered::Delivered);
    assert_eq!(s.view(&held.run).await.status, Status::Paused);
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0]);
}

async fn control_reaches_a_waiting_run_and_a_running_one(s: Scene<'_>) {
    let waiting = asleep(&s, "waiting").await;
    assert_eq!(s.deliver(control(&waiting.run, Control::Pause, "p")).await, Delivered::Delivered);
    let view = s.view(&waiting.run).await;
    assert_eq!((view.status, view.ready), (Status::Waiting, true), "its driver decides when to pause");
    let lease = s.node("n", 1_000).await;
    let running = s.own_under(lease, "running").await;
    s.deliver(control(&running.run, Control::Cancel, "c")).await;
    assert_eq!(s.view(&running.run).await.status, Status::Running);
    assert_eq!(s.store.wakes(lease, 10).await.unwrap(), [running.run]);
}

async fn every_control_is_an_item_of_its_kind(s: Scene<'_>) {
    let a = s.start("a").await;
    for (control_of, id) in
        [(Control::Cancel, "c"), (Control::Pause, "p"), (Control::Resume, "r"), (Control::Intervene, "i")]
    {
        assert_eq!(s.deliver(control(&a, control_of, id)).await, Delivered::Delivered);
    }
    let kinds: Vec<InboxKind> = s.inbox(&a).await.iter().map(|item| item.kind).collect();
    assert_eq!(kinds, [InboxKind::Cancel, InboxKind::Pause, InboxKind::Resume, InboxKind::Intervene]);
}

async fn control_repeated_is_a_duplicate(s: Scene<'_>) {
    let a = s.start("a").await;
    assert_eq!(s.deliver(control(&a, Control::Cancel, "1")).await, Delivered::Delivered);
    assert_eq!(s.deliver(control(&a, Control::Cancel, "1")).await, Delivered::Duplicate);
    assert_eq!(s.inbox(&a).await.len(), 1);
}

async fn recall_says_whether_an_id_was_used_and_uses_none(s: Scene<'_>) {
    let a = s.start("a").await;
    let recall = || s.deliver(control(&a, Control::Recall, "1"));
    assert_eq!((recall().await, recall().await), (Delivered::Lost, Delivered::Lost));
    assert_eq!(s.deliver(control(&a, Control::Resume, "1")).await, Delivered::Delivered);
    assert_eq!(recall().await, Delivered::Duplicate);
    assert_eq!(s.inbox(&a).await.len(), 1);
}

async fn control_of_an_ended_unknown_or_deleted_run_is_refused(s: Scene<'_>) {
    let ended = s.ended("ended").await;
    let deleted = s.ended("deleted").await;
    s.store.delete(deleted.clone(), WHY.to_owned()).await.unwrap();
    assert_eq!(s.deliver(control(&ended, Control::Cancel, "1")).await, Delivered::Lost);
    assert_eq!(s.deliver(control(&run("none"), Control::Cancel, "1")).await, Delivered::NotFound);
    assert_eq!(s.deliver(control(&deleted, Control::Cancel, "1")).await, Delivered::Deleted);
}

async fn controls_stand_in_the_inbox_in_order(s: Scene<'_>) {
    let a = s.start("a").await;
    for (number, request) in [Control::Pause, Control::Resume, Control::Cancel].into_iter().enumerate() {
        s.clock.set(number as i64);
        s.deliver(control(&a, request, &number.to_string())).await;
    }
    let inbox = s.inbox(&a).await;
    let kinds: Vec<_> = inbox.iter().map(|item| (item.kind, item.at, item.delivery.clone())).collect();
    let expected = [
        (InboxKind::Pause, at(0), Some(id("0"))),
        (InboxKind::Resume, at(1), Some(id("1"))),
        (InboxKind::Cancel, at(2), Some(id("2"))),
    ];
    assert_eq!(kinds, expected);
}
