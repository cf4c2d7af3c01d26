//! Continue-as-new: a journal ends and the next begins; the mailbox moves along, the rest stays behind.

use outlast_core::commit::{CloseCause, Control, InboxKind, NewRun, Status, Then};
use outlast_core::id::{Fence, Generation, Index};

use super::scene::*;
use crate::{CommitError, Created, Delivered, Excerpt, StoreError};

super::stories! {
    continued_run_begins_a_journal_at_0_under_the_same_owner,
    continued_run_has_its_new_input,
    continued_run_may_change_its_version,
    old_journal_can_still_be_read,
    mailbox_moves_along,
    signal_ids_move_along,
    controls_move_along,
    slot_of_an_aimed_signal_moves_along,
    timers_of_the_old_generation_are_gone,
    firing_of_the_old_generation_is_not_fed_to_the_new_one,
    waits_of_the_old_generation_are_gone,
    results_of_old_tasks_do_not_reach_the_new_generation,
    keys_may_be_used_again,
    wake_during_the_last_turn_survives,
    continued_and_suspended_later_is_one_run,
    creating_again_compares_with_the_first_input,
    commit_of_the_old_generation_conflicts_or_skips,
    stream_of_signals_does_not_hold_up_the_rollover,
}

async fn continued(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let commit = held.commit().event("old 0").event("old 1");
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("continued").continue_as_new("second");
    s.apply(&mut held, commit).await;
    Held { generation: Generation(1), next: Index(0), ..held }
}

async fn continued_run_begins_a_journal_at_0_under_the_same_owner(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let owner = s.view(&held.run).await.owner;
    let commit = held.commit().event("old");
    s.apply(&mut held, commit).await;
    let committed = s.commit(held.commit().event("continued").continue_as_new("second")).await.unwrap();
    assert_eq!(committed.next, Index(0));
    let view = s.view(&held.run).await;
    assert_eq!((view.generation, view.next, view.status), (Generation(1), Index(0), Status::Running));
    assert_eq!(view.owner, owner);
    held.next = Index(0);
    let commit = held.commit().event("new");
    s.apply(&mut held, commit).await;
    assert_eq!(s.story(&held.run).await, ["new"], "under the same fence");
}

async fn continued_run_has_its_new_input(s: Scene<'_>) {
    let held = continued(&s).await;
    let loaded = s.load(&held.run).await;
    assert_eq!((loaded.input, loaded.generation), (bytes("second"), Generation(1)));
    assert_eq!(loaded.events, []);
}

async fn continued_run_may_change_its_version(s: Scene<'_>) {
    let mut held = continued(&s).await;
    assert_eq!(s.view(&held.run).await.version, version("1"), "unless it says so, it stays");
    let then = Then::ContinueAsNew { input: bytes("third"), version: Some(version("2")) };
    let commit = held.commit().event("continued").then(then);
    s.apply(&mut held, commit).await;
    let view = s.view(&held.run).await;
    assert_eq!((view.version, view.generation), (version("2"), Generation(2)));
}

async fn old_journal_can_still_be_read(s: Scene<'_>) {
    let mut held = continued(&s).await;
    let commit = held.commit().event("new 0");
    s.apply(&mut held, commit).await;
    let page = |generation, from| Excerpt { run: held.run.clone(), generation, from: Index(from), limit: 10 };
    let old = s.store.excerpt(page(Some(Generation(0)), 0)).await.unwrap();
    assert_eq!(old, [event("old 0"), event("old 1"), event("continued")]);
    assert_eq!(s.store.excerpt(page(Some(Generation(0)), 2)).await.unwrap(), [event("continued")]);
    assert_eq!(s.store.excerpt(page(Some(Generation(1)), 0)).await.unwrap(), [event("new 0")]);
    assert_eq!(s.store.excerpt(page(None, 0)).await.unwrap(), [event("new 0")], "the current one, if not asked");
}

/// Row 16: events vanished at continue-as-new.
async fn mailbox_moves_along(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for number in ["1", "2", "3"] {
        s.deliver(signal(&held.run, "go", number, number)).await;
    }
    let first = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("x").consume(&[first]).continue_as_new("{}");
    s.apply(&mut held, commit).await;
    s.deliver(signal(&held.run, "go", "4", "4")).await;
    assert_eq!(s.mail(&held.run).await, ["2", "3", "4"], "sent = consumed + pending");
}

/// Row 13: dedup ids were forgotten at continue-as-new.
async fn signal_ids_move_along(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("x").consume(&[item]).continue_as_new("{}");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "one")).await, Delivered::Duplicate);
    held.next = Index(0);
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "one")).await, Delivered::Duplicate, "for the life of the run");
}

async fn controls_move_along(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(control(&held.run, Control::Cancel, "c")).await;
    let commit = held.commit().event("x").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    let kinds: Vec<_> = s.inbox(&held.run).await.into_iter().map(|item| item.kind).collect();
    assert_eq!(kinds, [InboxKind::Cancel], "it speaks to the run, not to a generation");
}

async fn slot_of_an_aimed_signal_moves_along(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(aimed(&held.run, "w", "go", "1")).await;
    let commit = held.commit().event("x").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    held.next = Index(0);
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "2")).await, Delivered::Lost, "its slot is taken");
    let commit = held.commit().event("y").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    let item = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("got").close("w", CloseCause::Resolved).consume(&[item]);
    s.apply(&mut held, commit).await;
}

/// Row 5: an old generation's timer was batched with a new completion, and both were deleted.
async fn timers_of_the_old_generation_are_gone(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100).continue_as_new("{}");
    s.apply(&mut held, commit).await;
    held.next = Index(0);
    let commit = held.commit().event("y").sleep("t", 200).suspend();
    s.apply(&mut held, commit).await;
    s.clock.set(199);
    let swept = s.sweep().await;
    assert_eq!((swept.fired, swept.next_due), (0, Some(at(200))), "only the new generation's timer runs");
    s.clock.set(200);
    assert_eq!(s.sweep().await.fired, 1);
}

/// Row 5.
async fn firing_of_the_old_generation_is_not_fed_to_the_new_one(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").sleep("t", 100);
    s.apply(&mut held, commit).await;
    s.clock.set(100);
    s.sweep().await;
    s.deliver(signal(&held.run, "go", "1", "kept")).await;
    let commit = held.commit().event("y").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    assert_eq!(s.mail(&held.run).await, ["kept"]);
}

async fn waits_of_the_old_generation_are_gone(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").approval("ok").wait_signal("w", "go").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, []);
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::NotFound);
    assert_eq!(s.deliver(signal(&held.run, "go", "2", "x")).await, Delivered::Buffered);
}

async fn results_of_old_tasks_do_not_reach_the_new_generation(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("1", Some("op"))).task(new_task("2", Some("op2")));
    s.apply(&mut held, commit).await;
    let tasks = s.work("w", 1).await;
    assert_eq!(s.deliver(finished(&tasks[0], "before")).await, Delivered::Delivered);
    let commit = held.commit().event("y").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(finished(&tasks[1], "after")).await, Delivered::Delivered);
    assert_eq!(s.inbox(&held.run).await, []);
    assert_eq!(s.awaiting(&held.run).await, []);
}

async fn keys_may_be_used_again(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").approval("ok").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    held.next = Index(0);
    let commit = held.commit().event("y").approval("ok").sleep("t", 5).task(new_task("t", Some("op")));
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await.len(), 3);
    assert_eq!(s.deliver(decide(&held.run, "ok", "1")).await, Delivered::Delivered);
}

async fn wake_during_the_last_turn_survives(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let mut held = s.own_under(lease, "a").await;
    s.deliver(signal(&held.run, "go", "1", "x")).await;
    let commit = held.commit().event("x").continue_as_new("{}");
    s.apply(&mut held, commit).await;
    assert_eq!(s.store.wakes(lease, 10).await.unwrap(), [held.run.clone()]);
}

async fn continued_and_suspended_later_is_one_run(s: Scene<'_>) {
    let mut held = continued(&s).await;
    let commit = held.commit().event("new 0").wait_signal("w", "go").suspend();
    s.apply(&mut held, commit).await;
    s.deliver(signal(&held.run, "go", "1", "x")).await;
    let lease = s.node("n", 1_000).await;
    let claimed = s.claim_run(lease, 1, &held.run).await.expect("ready");
    assert_eq!((claimed.generation, claimed.next, claimed.fence), (Generation(1), Index(1), Fence(2)));
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Running, 1)]);
}

async fn creating_again_compares_with_the_first_input(s: Scene<'_>) {
    let held = continued(&s).await;
    assert_eq!(s.create(new_run(&held.run)).await, Created::Existing { status: Status::Running });
    let second = NewRun { input: bytes("second"), ..new_run(&held.run) };
    let refused = s.try_create(second).await.unwrap_err();
    assert_eq!(refused, StoreError::Exists { run: held.run, what: "input" }, "a retry knows only the first input");
}

async fn commit_of_the_old_generation_conflicts_or_skips(s: Scene<'_>) {
    let mut held = continued(&s).await;
    let old = held.commit().event("old 3").change(|commit| commit.expected = Index(3));
    assert!(matches!(s.commit(old).await, Err(CommitError::Rejected(_))));
    let commit = held.commit().event("new 0");
    s.apply(&mut held, commit).await;
    let old = held.commit().event("old 0").change(|commit| commit.expected = Index(0));
    let found = Box::new(event("new 0"));
    assert_eq!(s.commit(old).await.unwrap_err(), CommitError::Conflict { expected: Index(0), found });
}

/// Row 15: a stream of signals blocked continue-as-new for ever.
async fn stream_of_signals_does_not_hold_up_the_rollover(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for generation in 0..5 {
        for number in 0..10 {
            s.deliver(signal(&held.run, "go", &format!("{generation}-{number}"), "x")).await;
        }
        let commit = held.commit().event("rolls over").continue_as_new("{}");
        s.apply(&mut held, commit).await;
        held.next = Index(0);
    }
    assert_eq!(s.view(&held.run).await.generation, Generation(5));
    assert_eq!(s.inbox(&held.run).await.len(), 50);
}
