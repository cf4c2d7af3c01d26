//! Timers: never early by the store's clock, fired once, and gone with their run.

use outlast_core::commit::{InboxKind, NewTimer, TimerKind, TimerRef};
use outlast_core::time::Timestamp;

use super::scene::*;
use crate::{Awaited, CommitError, Rejection};

super::stories! {
    timer_due_at_100_not_at_99_fires_at_100_and_is_claimed_with_lease_50_blocked_at_110_reclaimed_at_151,
    timer_fires_once_however_often_it_is_swept,
    two_timers_of_the_same_instant_are_delivered_each,
    two_timers_of_the_same_instant_one_after_the_other_are_delivered_each,
    timers_of_one_operation_and_two_kinds_are_two,
    stalled_driver_leaves_one_pending_firing_per_timer,
    sweep_and_sweep_at_once_fire_once,
    commit_fires_its_own_timer,
    commit_cannot_fire_a_timer_early,
    commit_after_the_sweep_finds_the_timer_gone,
    sweep_after_the_commit_finds_nothing,
    commit_and_sweep_at_once_fire_once,
    cancelled_timer_never_fires,
    cancelling_a_timer_that_is_gone_is_not_an_error,
    timer_started_again_fires_at_the_new_instant,
    timer_cancelled_and_started_in_one_commit_runs,
    sweep_fires_the_earliest_first_and_at_most_so_many,
    sweep_tells_the_next_instant,
    timer_due_in_the_past_fires_at_once,
    timer_at_the_end_of_time_never_fires,
    clock_that_steps_back_neither_fires_early_nor_loses,
    ended_run_owns_no_timer,
    timer_of_a_paused_run_fires_into_its_inbox,
    timer_fired_in_the_middle_of_a_turn_wakes_the_owner,
    firing_is_fenced_like_every_commit,
}

async fn sleeping(s: &Scene<'_>, id: &str, due: i64) -> Held {
    let mut held = s.own(id).await;
    let commit = held.commit().event("sleeps").sleep("t", due).suspend();
    s.apply(&mut held, commit).await;
    held
}

fn timer_gone(operation: &str) -> CommitError {
    CommitError::Rejected(Rejection::TimerGone { key: key(operation) })
}

/// due at 100; nothing at 99; claimed at 100 with lease 50; blocked at 110; reclaimed at 151.
async fn timer_due_at_100_not_at_99_fires_at_100_and_is_claimed_with_lease_50_blocked_at_110_reclaimed_at_151(
    s: Scene<'_>,
) {
    let held = sleeping(&s, "a", 100).await;
    s.clock.set(99);
    assert_eq!(s.sweep().await.fired, 0, "never early");
    assert!(!s.view(&held.run).await.ready);

    s.clock.set(100);
    assert_eq!(s.sweep().await.fired, 1);
    let first = s.node("first", 50).await;
    assert!(s.claim_run(first, 1, &held.run).await.is_some());
    s.clock.set(110);
    let second = s.node("second", 1_000).await;
    assert_eq!(s.claim_run(second, 1, &held.run).await, None, "lease 50 from 100 is live at 110");
    s.clock.set(151);
    assert!(s.claim_run(second, 1, &held.run).await.is_some(), "and over at 151");
    let item = s.inbox(&held.run).await.remove(0);
    assert_eq!((item.kind, item.key, item.name.as_deref()), (InboxKind::Timer, Some(key("t")), Some("delay")));
    assert_eq!((item.at, item.payload, item.delivery), (at(100), None, None));
}

async fn timer_fires_once_however_often_it_is_swept(s: Scene<'_>) {
    let held = sleeping(&s, "a", 100).await;
    s.clock.set(500);
    assert_eq!(s.sweep().await.fired, 1);
    for _ in 0..3 {
        assert_eq!(s.sweep().await.fired, 0);
    }
    assert_eq!(s.inbox(&held.run).await.len(), 1);
}

/// By the clock.
async fn two_timers_of_the_same_instant_are_delivered_each(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t1", 100).sleep("t2", 100).suspend();
    s.apply(&mut held, commit).await;
    let other = sleeping(&s, "b", 100).await;
    s.clock.set(100);
    assert_eq!(s.sweep().await.fired, 3);
    let keys: Vec<_> = s.inbox(&held.run).await.into_iter().filter_map(|item| item.key).collect();
    assert_eq!(keys, [key("t1"), key("t2")]);
    assert_eq!(s.inbox(&other.run).await.len(), 1);
}

/// two sequential timers with the same instant.
async fn two_timers_of_the_same_instant_one_after_the_other_are_delivered_each(s: Scene<'_>) {
    let mut held = sleeping(&s, "a", 100).await;
    s.clock.set(100);
    for (number, operation) in ["t", "t#2"].into_iter().enumerate() {
        assert_eq!(s.sweep().await.fired, 1, "timer {number}");
        held = s.reclaim(&held.run).await;
        let item = s.inbox(&held.run).await.remove(0);
        assert_eq!(item.key, Some(key(operation)));
        let commit = held.commit().event("fired").consume(&[item.id]).sleep("t#2", 100).suspend();
        s.apply(&mut held, commit).await;
    }
}

async fn timers_of_one_operation_and_two_kinds_are_two(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let new = |kind, due| NewTimer { timer: TimerRef { key: key("t"), kind }, due: at(due) };
    let kinds = [TimerKind::Delay, TimerKind::Timeout, TimerKind::Retry, TimerKind::Heartbeat];
    let commit = held.commit().event("x").change(|commit| {
        commit.timers.extend(kinds.into_iter().map(|kind| new(kind, 100)));
    });
    s.apply(&mut held, commit).await;
    let seen: Vec<_> = s.awaiting(&held.run).await;
    assert_eq!(seen, kinds.map(|kind| Awaited::Timer { key: key("t"), kind, due: at(100) }));
    s.clock.set(100);
    assert_eq!(s.sweep().await.fired, 4);
    let names: Vec<_> = s.inbox(&held.run).await.into_iter().filter_map(|item| item.name).collect();
    assert_eq!(names, ["delay", "timeout", "retry", "heartbeat"]);
}

/// Row 2: due timers were appended again by each scan while the processor stalled.
async fn stalled_driver_leaves_one_pending_firing_per_timer(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let many = (0..50).fold(held.commit().event("x"), |commit, number| commit.sleep(&format!("t{number}"), 100));
    let commit = many.suspend();
    s.apply(&mut held, commit).await;
    for now in 100..110 {
        s.clock.set(now);
        s.store.sweep(20).await.unwrap();
    }
    assert_eq!(s.inbox(&held.run).await.len(), 50);
}

async fn sweep_and_sweep_at_once_fire_once(s: Scene<'_>) {
    let other = s.other().await;
    let lease = s.node("n", 1_000_000).await;
    for round in 0..10 {
        let mut held = s.own_under(lease, &format!("run-{round}")).await;
        let commit = held.commit().event("x").sleep("t1", 5).sleep("t2", 5).sleep("t3", 5);
        s.apply(&mut held, commit).await;
        s.clock.set(5);
        let (one, two) = futures_util::future::join(s.store.sweep(10), other.sweep(10)).await;
        let more = s.sweep().await.fired;
        assert_eq!(one.unwrap().fired + two.unwrap().fired + more, 3, "each timer fires once");
        assert_eq!(s.inbox(&held.run).await.len(), 3);
        s.clock.set(0);
    }
}

async fn commit_fires_its_own_timer(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    let commit = held.commit().event("fired").fires("t");
    s.apply(&mut held, commit).await;
    assert_eq!(s.inbox(&held.run).await, [], "its owner needs no item");
    assert_eq!(s.awaiting(&held.run).await, []);
}

/// Invariant 10: in-process timers only ask; the store compares and refuses early.
async fn commit_cannot_fire_a_timer_early(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(99);
    let refused = s.commit(held.commit().event("fired").fires("t")).await.unwrap_err();
    let not_due = Rejection::TimerNotDue { key: key("t"), due: at(100), now: at(99) };
    assert_eq!(refused, CommitError::Rejected(not_due));
    assert_eq!(s.sweep().await.next_due, Some(at(100)), "it still runs");
}

async fn commit_after_the_sweep_finds_the_timer_gone(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    assert_eq!(s.sweep().await.fired, 1);
    let refused = s.commit(held.commit().event("fired").fires("t")).await.unwrap_err();
    assert_eq!(refused, timer_gone("t"), "somebody else fired it: its fact is in the inbox");
    assert_eq!(s.inbox(&held.run).await.len(), 1);
}

async fn sweep_after_the_commit_finds_nothing(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    let commit = held.commit().event("fired").fires("t");
    s.apply(&mut held, commit).await;
    assert_eq!(s.sweep().await.fired, 0);
    assert_eq!(s.commit(held.commit().event("again").fires("t")).await.unwrap_err(), timer_gone("t"));
}

async fn commit_and_sweep_at_once_fire_once(s: Scene<'_>) {
    let other = s.other().await;
    let lease = s.node("n", 1_000_000).await;
    for round in 0..20 {
        let mut held = s.own_under(lease, &format!("run-{round}")).await;
        let commit = held.commit().event("x").sleep("t", 5);
        s.apply(&mut held, commit).await;
        s.clock.set(5);
        let fire = s.store.commit(vec![held.commit().event("fired").fires("t")]);
        let (fired, swept) = futures_util::future::join(fire, other.sweep(10)).await;
        let swept = swept.unwrap().fired;
        match &fired[0] {
            Ok(_) => assert_eq!(swept, 0, "both fired it"),
            Err(refused) => assert_eq!((refused, swept), (&timer_gone("t"), 1), "neither fired it"),
        }
        s.clock.set(0);
    }
}

async fn cancelled_timer_never_fires(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("cancelled").unsleep("t").suspend();
    s.apply(&mut held, commit).await;
    s.clock.set(1_000);
    let swept = s.sweep().await;
    assert_eq!((swept.fired, swept.next_due), (0, None));
    assert!(!s.view(&held.run).await.ready);
}

async fn cancelling_a_timer_that_is_gone_is_not_an_error(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    s.sweep().await;
    let commit = held.commit().event("cancelled").unsleep("t").unsleep("never was");
    s.apply(&mut held, commit).await;
    assert_eq!(s.inbox(&held.run).await.len(), 1, "what fired has fired");
}

async fn timer_started_again_fires_at_the_new_instant(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("y").sleep("t", 200).suspend();
    s.apply(&mut held, commit).await;
    s.clock.set(199);
    assert_eq!(s.sweep().await.fired, 0);
    s.clock.set(200);
    assert_eq!(s.sweep().await.fired, 1);
    assert_eq!(s.sweep().await.next_due, None);
}

async fn timer_cancelled_and_started_in_one_commit_runs(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    let commit = held.commit().event("fired").fires("t").sleep("t", 150).unsleep("t");
    s.apply(&mut held, commit).await;
    assert_eq!(s.sweep().await.next_due, Some(at(150)), "ends come first, beginnings after");
}

async fn sweep_fires_the_earliest_first_and_at_most_so_many(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("late", 90).sleep("early", 10).sleep("middle", 50).suspend();
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    let swept = s.store.sweep(2).await.unwrap();
    assert_eq!((swept.fired, swept.more, swept.next_due, swept.now), (2, true, Some(at(90)), at(100)));
    let swept = s.store.sweep(2).await.unwrap();
    assert_eq!((swept.fired, swept.more, swept.next_due), (1, false, None));
    let keys: Vec<_> = s.inbox(&held.run).await.into_iter().filter_map(|item| item.key).collect();
    assert_eq!(keys, [key("early"), key("middle"), key("late")]);
}

async fn sweep_tells_the_next_instant(s: Scene<'_>) {
    let swept = s.sweep().await;
    assert_eq!((swept.fired, swept.next_due, swept.more), (0, None, false));
    sleeping(&s, "a", 300).await;
    sleeping(&s, "b", 200).await;
    s.clock.set(150);
    let swept = s.sweep().await;
    assert_eq!((swept.fired, swept.next_due, swept.more, swept.now), (0, Some(at(200)), false, at(150)));
}

async fn timer_due_in_the_past_fires_at_once(s: Scene<'_>) {
    s.clock.set(100);
    let held = sleeping(&s, "a", -50).await;
    assert_eq!(s.sweep().await.fired, 1);
    assert_eq!(s.inbox(&held.run).await[0].at, at(100), "it happened now, whenever it was due");
}

async fn timer_at_the_end_of_time_never_fires(s: Scene<'_>) {
    sleeping(&s, "a", i64::MAX).await;
    s.clock.set(i64::MAX - 1);
    let swept = s.sweep().await;
    assert_eq!((swept.fired, swept.next_due), (0, Some(Timestamp::MAX)));
}

/// Rows 3 and 4: the clock stepped back and a timer was dropped, or fired in a hot loop.
async fn clock_that_steps_back_neither_fires_early_nor_loses(s: Scene<'_>) {
    s.clock.set(3_600_000);
    let held = sleeping(&s, "a", 3_600_100).await;
    s.clock.set(0);
    assert_eq!(s.sweep().await.fired, 0, "an hour back: not due");
    s.clock.set(3_600_100);
    assert_eq!(s.sweep().await.fired, 1, "it was not lost");
    s.clock.set(0);
    assert_eq!(s.sweep().await.fired, 0, "and does not fire again");
    let next = s.reclaim(&held.run).await;
    assert_eq!(s.inbox(&next.run).await.len(), 1, "a firing stays when the clock steps back after it");
}

/// Row 6: the event won and the loser's timer was never deleted.
async fn ended_run_owns_no_timer(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("end").sleep("another", 200).finish();
    s.apply(&mut held, commit).await;
    s.clock.set(1_000);
    let swept = s.sweep().await;
    assert_eq!((swept.fired, swept.next_due), (0, None));
    assert_eq!(s.awaiting(&held.run).await, []);
    assert_eq!(s.inbox(&held.run).await, []);
}

async fn timer_of_a_paused_run_fires_into_its_inbox(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100).then(outlast_core::commit::Then::Pause);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    assert_eq!(s.sweep().await.fired, 1, "deadlines go on");
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0], "but the run stays paused");
    assert_eq!(s.inbox(&held.run).await.len(), 1);
}

async fn timer_fired_in_the_middle_of_a_turn_wakes_the_owner(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let mut held = s.own_under(lease, "a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    s.sweep().await;
    assert_eq!(s.store.wakes(lease, 10).await.unwrap(), [held.run.clone()]);
}

async fn firing_is_fenced_like_every_commit(s: Scene<'_>) {
    let zombie = {
        let mut held = s.own_under(s.node("zombie", 50).await, "a").await;
        let commit = held.commit().event("x").sleep("t", 100);
        s.apply(&mut held, commit).await;
        held
    };
    s.clock.set(100);
    s.reclaim(&zombie.run).await;
    let refused = s.commit(zombie.commit().event("fired").fires("t")).await.unwrap_err();
    assert!(matches!(refused, CommitError::Fenced { .. }), "{refused}");
    assert_eq!(s.sweep().await.fired, 1, "the timer is still there");
}
