//! Deletion and retention: only terminal trees past their age, in bounded steps, and a tombstone for seven days.

use outlast_core::commit::{Ending, NewRun, Parent, Status, Then};
use outlast_core::id::{AttributeName, RunKey};
use outlast_core::limits::TEXT_BYTES_MAX;

use super::scene::*;
use crate::{Created, Delivered, Excerpt, Filter, Load, LoadFrom, Retention, StoreError};

super::stories! {
    live_run_is_not_deleted,
    unknown_run_is_not_deleted,
    deleted_run_answers_that_it_is_gone,
    reason_for_a_deletion_has_a_limit,
    deleting_twice_is_an_error,
    tree_with_a_live_member_is_not_deleted,
    deleting_a_tree_deletes_its_members,
    deleting_a_member_leaves_the_rest,
    child_of_a_deleted_parent_is_not_deleted_with_it,
    retention_deletes_what_is_old_enough_and_nothing_else,
    retention_never_deletes_a_live_run,
    retention_keeps_a_tree_while_a_member_lives,
    retention_keeps_a_tree_until_its_last_member_is_old,
    retention_of_a_parent_does_not_wait_for_a_detached_child,
    retention_of_a_detached_child_does_not_wait_for_its_parent,
    retention_of_grandchildren_goes_with_the_tree,
    retention_works_in_bounded_steps_and_comes_to_an_end,
    retention_can_be_interrupted_at_every_step,
    tombstone_holds_the_id_for_seven_days_and_then_it_is_free,
    id_that_is_free_again_begins_from_nothing,
    retention_of_an_ended_run_keeps_every_other_row,
    interrupted_for_seven_days_the_members_still_go,
}

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Calls until there is nothing left to do.
async fn retain(s: &Scene<'_>, age: u64, limit: usize) -> usize {
    let mut runs = 0;
    for _ in 0..10_000 {
        let retained = s.store.retain(Retention { age: ms(age), limit }).await.unwrap();
        runs += retained.runs;
        if !retained.more {
            return runs;
        }
    }
    panic!("retention does not come to an end");
}

async fn exists(s: &Scene<'_>, run: &RunKey) -> bool {
    match s.store.get(run.clone()).await {
        Ok(_) => true,
        Err(StoreError::Deleted { .. } | StoreError::NotFound(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

async fn finish(s: &Scene<'_>, held: &mut Held) {
    let commit = held.commit().event("end").finish();
    s.apply(held, commit).await;
}

/// A parent `p` with children `c1` and `c2`; all are owned.
async fn family(s: &Scene<'_>) -> (Held, Held, Held) {
    let mut parent = s.own("p").await;
    let commit = parent.commit().event("x").child(child_of(&parent, "c1", "1")).child(child_of(&parent, "c2", "2"));
    s.apply(&mut parent, commit).await;
    let lease = s.node("drives-children", 1_000_000_000_000).await;
    let one = Held::of(&s.claim_run(lease, 1, &run("c1")).await.expect("c1"));
    let two = Held::of(&s.claim_run(lease, 2, &run("c2")).await.expect("c2"));
    (parent, one, two)
}

async fn live_run_is_not_deleted(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let lives = StoreError::Live(held.run.clone());
    assert_eq!(s.store.delete(held.run.clone(), WHY.to_owned()).await, Err(lives.clone()));
    let commit = held.commit().event("x").park("why");
    s.apply(&mut held, commit).await;
    assert_eq!(s.store.delete(held.run.clone(), WHY.to_owned()).await, Err(lives), "also while parked");
    assert!(exists(&s, &held.run).await);
}

async fn unknown_run_is_not_deleted(s: Scene<'_>) {
    assert_eq!(s.store.delete(run("none"), WHY.to_owned()).await, Err(StoreError::NotFound(run("none"))));
}

async fn deleted_run_answers_that_it_is_gone(s: Scene<'_>) {
    let a = s.ended("a").await;
    s.store.delete(a.clone(), WHY.to_owned()).await.unwrap();
    let gone = tombstone(a.clone());
    assert_eq!(s.store.get(a.clone()).await.unwrap_err(), gone);
    let load = Load { run: a.clone(), from: LoadFrom::Index(outlast_core::id::Index(0)) };
    assert_eq!(s.store.load(vec![load]).await.remove(0).unwrap_err(), gone);
    let excerpt = Excerpt { run: a.clone(), generation: None, from: outlast_core::id::Index(0), limit: 1 };
    assert_eq!(s.store.excerpt(excerpt).await.unwrap_err(), gone);
    assert_eq!(s.try_create(new_run(&a)).await.unwrap_err(), gone);
    assert_eq!(s.deliver(signal(&a, "go", "1", "x")).await, Delivered::Deleted);
}

async fn reason_for_a_deletion_has_a_limit(s: Scene<'_>) {
    let a = s.ended("a").await;
    let long = s.store.delete(a.clone(), "x".repeat(TEXT_BYTES_MAX + 1)).await.unwrap_err();
    assert!(matches!(long, StoreError::Limit(_)), "{long}");
    assert!(exists(&s, &a).await);
    s.store.delete(a.clone(), "x".repeat(TEXT_BYTES_MAX)).await.unwrap();
}

async fn deleting_twice_is_an_error(s: Scene<'_>) {
    let a = s.ended("a").await;
    assert_eq!(s.store.delete(a.clone(), WHY.to_owned()).await, Ok(()));
    assert_eq!(s.store.delete(a.clone(), WHY.to_owned()).await, Err(tombstone(a)));
}

async fn tree_with_a_live_member_is_not_deleted(s: Scene<'_>) {
    let (mut parent, mut one, two) = family(&s).await;
    finish(&s, &mut parent).await;
    finish(&s, &mut one).await;
    assert_eq!(s.store.delete(parent.run.clone(), WHY.to_owned()).await, Err(StoreError::Live(two.run.clone())));
    assert!(exists(&s, &parent.run).await && exists(&s, &one.run).await);
}

async fn deleting_a_tree_deletes_its_members(s: Scene<'_>) {
    let (mut parent, mut one, mut two) = family(&s).await;
    for held in [&mut parent, &mut one, &mut two] {
        finish(&s, held).await;
    }
    s.store.delete(parent.run.clone(), WHY.to_owned()).await.unwrap();
    retain(&s, 1_000_000, 100).await;
    assert_eq!(s.store.get(parent.run.clone()).await.unwrap_err(), tombstone(parent.run));
    for held in [one, two] {
        assert_eq!(s.store.get(held.run.clone()).await.unwrap_err(), faded(held.run));
    }
}

/// It comes late, when its parent has gone: nobody dooms it while it lives.
async fn child_of_a_deleted_parent_is_not_deleted_with_it(s: Scene<'_>) {
    let mut parent = s.own("p").await;
    finish(&s, &mut parent).await;
    s.store.delete(parent.run.clone(), WHY.to_owned()).await.unwrap();
    let late = child_of(&parent, "late", "1");
    s.try_create(late).await.unwrap();
    retain(&s, 0, 100).await;
    assert!(exists(&s, &run("late")).await);
}

async fn deleting_a_member_leaves_the_rest(s: Scene<'_>) {
    let (parent, mut one, two) = family(&s).await;
    finish(&s, &mut one).await;
    s.store.delete(one.run.clone(), WHY.to_owned()).await.unwrap();
    retain(&s, 0, 100).await;
    assert!(!exists(&s, &one.run).await);
    assert!(exists(&s, &parent.run).await && exists(&s, &two.run).await);
}

async fn retention_deletes_what_is_old_enough_and_nothing_else(s: Scene<'_>) {
    s.clock.set(10);
    let old = s.ended("old").await;
    s.clock.set(11);
    let young = s.ended("young").await;
    s.clock.set(109);
    assert_eq!(retain(&s, 100, 100).await, 0);
    s.clock.set(110);
    assert_eq!(retain(&s, 100, 100).await, 1, "ended at 10, kept for 100: goes at 110");
    assert_eq!(s.store.get(old.clone()).await.unwrap_err(), faded(old));
    assert!(exists(&s, &young).await);
}

/// Invariant 19.
async fn retention_never_deletes_a_live_run(s: Scene<'_>) {
    let queued = s.start("queued").await;
    let mut waiting = s.own("waiting").await;
    let commit = waiting.commit().event("x").suspend();
    s.apply(&mut waiting, commit).await;
    let mut parked = s.own("parked").await;
    let commit = parked.commit().event("x").park("why");
    s.apply(&mut parked, commit).await;
    let mut paused = s.own("paused").await;
    let commit = paused.commit().event("x").then(Then::Pause);
    s.apply(&mut paused, commit).await;
    s.clock.set(1_000 * DAY);
    assert_eq!(retain(&s, 0, 100).await, 0);
    for run in [&queued, &waiting.run, &parked.run, &paused.run] {
        assert!(exists(&s, run).await, "{run}");
    }
}

async fn retention_keeps_a_tree_while_a_member_lives(s: Scene<'_>) {
    let (mut parent, mut one, _two) = family(&s).await;
    finish(&s, &mut parent).await;
    finish(&s, &mut one).await;
    s.clock.set(1_000 * DAY);
    assert_eq!(retain(&s, 0, 100).await, 0);
    assert!(exists(&s, &parent.run).await && exists(&s, &one.run).await);
}

async fn retention_keeps_a_tree_until_its_last_member_is_old(s: Scene<'_>) {
    let (mut parent, mut one, mut two) = family(&s).await;
    finish(&s, &mut parent).await;
    s.clock.set(50);
    finish(&s, &mut one).await;
    s.clock.set(80);
    let failed = two.commit().event("end").then(Then::Finish(Ending::Failed));
    s.apply(&mut two, failed).await;
    s.clock.set(179);
    assert_eq!(retain(&s, 100, 100).await, 0);
    s.clock.set(180);
    assert_eq!(retain(&s, 100, 100).await, 3);
    assert!(!exists(&s, &parent.run).await && !exists(&s, &two.run).await);
}

fn detached(parent: &Held, id: &str) -> NewRun {
    let mut child = child_of(parent, id, "detached");
    child.parent = child.parent.map(|parent| Parent { detached: true, ..parent });
    child
}

async fn retention_of_a_parent_does_not_wait_for_a_detached_child(s: Scene<'_>) {
    let mut parent = s.own("p").await;
    let commit = parent.commit().event("x").child(detached(&parent, "d")).finish();
    s.apply(&mut parent, commit).await;
    s.clock.set(100);
    assert_eq!(retain(&s, 100, 100).await, 1);
    assert!(!exists(&s, &parent.run).await);
    assert_eq!(s.view(&run("d")).await.status, Status::Queued);
}

async fn retention_of_a_detached_child_does_not_wait_for_its_parent(s: Scene<'_>) {
    let mut parent = s.own("p").await;
    let commit = parent.commit().event("x").child(detached(&parent, "d"));
    s.apply(&mut parent, commit).await;
    let mut child = s.reclaim(&run("d")).await;
    finish(&s, &mut child).await;
    s.clock.set(100);
    assert_eq!(retain(&s, 100, 100).await, 1);
    assert!(exists(&s, &parent.run).await && !exists(&s, &child.run).await);
}

async fn retention_of_grandchildren_goes_with_the_tree(s: Scene<'_>) {
    let (mut parent, mut one, mut two) = family(&s).await;
    let commit = one.commit().event("x").child(child_of(&one, "g", "g")).finish();
    s.apply(&mut one, commit).await;
    finish(&s, &mut parent).await;
    finish(&s, &mut two).await;
    s.clock.set(DAY);
    assert_eq!(retain(&s, 0, 100).await, 0, "a grandchild lives");
    let mut grandchild = s.reclaim(&run("g")).await;
    finish(&s, &mut grandchild).await;
    assert_eq!(retain(&s, 0, 100).await, 4);
    assert!(!exists(&s, &grandchild.run).await && !exists(&s, &one.run).await);
}

async fn retention_works_in_bounded_steps_and_comes_to_an_end(s: Scene<'_>) {
    for number in 0..5 {
        let mut held = s.own(&number.to_string()).await;
        let commit = held.commit().event("0").event("1").event("2").event("3");
        s.apply(&mut held, commit).await;
        finish(&s, &mut held).await;
    }
    s.clock.set(100);
    let first = s.store.retain(Retention { age: ms(0), limit: 2 }).await.unwrap();
    assert!(first.runs <= 2, "at most so many at once: {first:?}");
    assert!(first.more);
    assert_eq!(first.runs + retain(&s, 0, 2).await, 5);
    assert_eq!(s.store.list(Filter::all(namespace("default"))).await.unwrap().runs, []);
}

/// A crash between any two steps leaves a state the next call continues from.
async fn retention_can_be_interrupted_at_every_step(s: Scene<'_>) {
    for steps in 0..12 {
        let id = format!("run-{steps}");
        let mut held = s.own(&id).await;
        let commit = held.commit().event("0").event("1").event("2");
        s.apply(&mut held, commit).await;
        finish(&s, &mut held).await;
        for _ in 0..steps {
            s.store.retain(Retention { age: ms(0), limit: 1 }).await.unwrap();
            match s.store.get(held.run.clone()).await {
                Ok(_) => assert_eq!(s.load(&held.run).await.events.len(), 4, "whole, or not there"),
                Err(gone) => assert_eq!(gone, faded(held.run.clone())),
            }
        }
        retain(&s, 0, 100).await;
        assert_eq!(s.store.get(held.run.clone()).await.unwrap_err(), faded(held.run));
    }
}

/// Row 13: a retry after retention must not start a new run under the old id.
async fn tombstone_holds_the_id_for_seven_days_and_then_it_is_free(s: Scene<'_>) {
    let a = s.ended("a").await;
    s.clock.set(1_000);
    s.store.delete(a.clone(), WHY.to_owned()).await.unwrap();
    retain(&s, 0, 100).await;
    s.clock.set(1_000 + 7 * DAY - 1);
    retain(&s, 0, 100).await;
    assert_eq!(s.try_create(new_run(&a)).await.unwrap_err(), tombstone(a.clone()));
    s.clock.set(1_000 + 7 * DAY);
    retain(&s, 0, 100).await;
    assert_eq!(s.store.get(a.clone()).await.unwrap_err(), StoreError::NotFound(a.clone()));
    assert!(matches!(s.create(new_run(&a)).await, Created::Created { .. }));
}

async fn id_that_is_free_again_begins_from_nothing(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let attribute = (AttributeName::new("n").unwrap(), Some("1".to_owned()));
    s.deliver(signal(&held.run, "go", "1", "x")).await;
    s.deliver(aimed(&held.run, "w", "go", "2")).await;
    let commit = held.commit().event("0").change(|commit| commit.attributes.push(attribute)).continue_as_new("{}");
    s.apply(&mut held, commit).await;
    held.next = outlast_core::id::Index(0);
    finish(&s, &mut held).await;
    s.store.delete(held.run.clone(), WHY.to_owned()).await.unwrap();
    retain(&s, 0, 100).await;
    s.clock.set(8 * DAY);
    retain(&s, 0, 100).await;

    s.start("a").await;
    let loaded = s.load(&held.run).await;
    assert_eq!((loaded.events, loaded.inbox, loaded.input), (vec![], vec![], bytes("{}")));
    assert_eq!(s.store.attributes(held.run.clone()).await.unwrap(), []);
    assert_eq!(s.deliver(signal(&held.run, "go", "1", "x")).await, Delivered::Buffered, "no id is remembered");
    assert_eq!(s.deliver(aimed(&held.run, "w", "go", "2")).await, Delivered::Buffered, "no slot is taken");
    let page = Excerpt { run: held.run, generation: None, from: outlast_core::id::Index(0), limit: 9 };
    assert_eq!(s.store.excerpt(page).await.unwrap(), []);
}

async fn retention_of_an_ended_run_keeps_every_other_row(s: Scene<'_>) {
    let mut kept = s.own("kept").await;
    s.deliver(signal(&kept.run, "go", "1", "mail")).await;
    let commit = kept.commit().event("0").sleep("t", 2 * DAY).wait_signal("w", "other").task(new_task("t", Some("op")));
    s.apply(&mut kept, commit).await;
    let before = (s.load(&kept.run).await, s.awaiting(&kept.run).await);
    let mut gone = s.own("gone").await;
    s.deliver(signal(&gone.run, "go", "1", "mail")).await;
    let commit = gone.commit().event("0").task(new_task("u", Some("op")));
    s.apply(&mut gone, commit).await;
    finish(&s, &mut gone).await;
    s.clock.set(DAY);
    assert_eq!(retain(&s, 0, 3).await, 1);
    assert_eq!((s.load(&kept.run).await, s.awaiting(&kept.run).await), before);
    assert_eq!(s.deliver(signal(&kept.run, "go", "1", "mail")).await, Delivered::Duplicate);
    assert_eq!(s.tasks("default").await.len(), 2, "tasks live on their own");
}

async fn interrupted_for_seven_days_the_members_still_go(s: Scene<'_>) {
    let mut parent = s.own("a").await;
    let ids: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
    let commit = ids.iter().fold(parent.commit(), |commit, id| commit.child(child_of(&parent, id, id)));
    s.apply(&mut parent, commit).await;
    finish(&s, &mut parent).await;
    for id in &ids {
        let mut child = s.reclaim(&run(id)).await;
        finish(&s, &mut child).await;
    }
    s.store.delete(parent.run.clone(), WHY.to_owned()).await.unwrap();
    s.clock.set(8 * DAY);
    retain(&s, 1_000 * DAY as u64, 1).await;
    for id in &ids {
        assert!(!exists(&s, &run(id)).await, "{id} outlived its tree");
    }
}
