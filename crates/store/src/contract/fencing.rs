//! Fencing: a driver that lost its run writes nothing, however late it is.

use outlast_core::commit::{Ending, Status, Then};
use outlast_core::id::{Fence, Index};

use super::scene::*;
use crate::{CommitError, StoreError};

super::stories! {
    zombie_driver_loses_after_a_takeover,
    zombie_driver_loses_even_with_the_right_index,
    zombie_driver_loses_after_the_new_owner_released,
    commit_after_release_is_fenced,
    commit_after_suspend_is_fenced,
    commit_after_pause_is_fenced,
    commit_after_park_is_fenced,
    commit_after_the_end_is_fenced,
    commit_after_a_seizure_is_fenced,
    fence_from_the_future_is_refused,
    fence_is_checked_before_the_index,
    run_nobody_owns_takes_no_commit,
    stale_release_is_fenced_and_changes_nothing,
    stale_take_is_fenced_and_changes_nothing,
    fence_rises_by_one_with_each_change_of_hands,
    terminate_raises_the_fence_over_a_living_driver,
}

fn fenced(held: &Held, current: u64) -> CommitError {
    CommitError::Fenced { held: held.fence, current: Fence(current) }
}

/// Two drivers of one run: the first slept through its lease, the second took over.
async fn zombie_and_heir(s: &Scene<'_>) -> (Held, Held) {
    let zombie = s.own_under(s.node("zombie", 100).await, "a").await;
    s.clock.set(100);
    let heir = s.reclaim(&zombie.run).await;
    (zombie, heir)
}

/// Row 21: a slow worker's late completion failed the parent.
async fn zombie_driver_loses_after_a_takeover(s: Scene<'_>) {
    let (zombie, mut heir) = zombie_and_heir(&s).await;
    let commit = heir.commit().event("heir");
    s.apply(&mut heir, commit).await;
    assert_eq!(s.commit(zombie.commit().event("zombie")).await.unwrap_err(), fenced(&zombie, 2));
    assert_eq!(s.story(&heir.run).await, ["heir"]);
}

/// Row 20: a rescuer overwrote a completed job. Every transition is guarded by state and token.
async fn zombie_driver_loses_even_with_the_right_index(s: Scene<'_>) {
    let (zombie, mut heir) = zombie_and_heir(&s).await;
    let before_the_heir = zombie.commit().event("zombie").finish();
    assert_eq!(s.commit(before_the_heir).await.unwrap_err(), fenced(&zombie, 2));
    let commit = heir.commit().event("heir");
    s.apply(&mut heir, commit).await;
    let zombie_now = zombie.commit().event("zombie").change(|commit| commit.expected = heir.next);
    assert_eq!(s.commit(zombie_now).await.unwrap_err(), fenced(&zombie, 2));
    assert_eq!(s.view(&heir.run).await.status, Status::Running);
}

async fn zombie_driver_loses_after_the_new_owner_released(s: Scene<'_>) {
    let (zombie, heir) = zombie_and_heir(&s).await;
    s.store.release(vec![heir.release(false)]).await.remove(0).unwrap();
    assert_eq!(s.commit(zombie.commit().event("zombie")).await.unwrap_err(), fenced(&zombie, 2));
}

async fn commit_after_release_is_fenced(s: Scene<'_>) {
    let held = s.own("a").await;
    s.store.release(vec![held.release(false)]).await.remove(0).unwrap();
    assert_eq!(s.commit(held.commit().event("x")).await.unwrap_err(), fenced(&held, 1));
    assert_eq!(s.story(&held.run).await, [""; 0]);
}

async fn after(s: &Scene<'_>, then: Then) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("last").then(then);
    s.apply(&mut held, commit).await;
    assert_eq!(s.commit(held.commit().event("x")).await.unwrap_err(), fenced(&held, 1));
    assert_eq!(s.commit(held.commit()).await.unwrap_err(), fenced(&held, 1), "also without events");
    assert_eq!(s.story(&held.run).await, ["last"]);
    assert_eq!(s.view(&held.run).await.owner, None);
}

async fn commit_after_suspend_is_fenced(s: Scene<'_>) {
    after(&s, Then::Suspend).await;
}

async fn commit_after_pause_is_fenced(s: Scene<'_>) {
    after(&s, Then::Pause).await;
}

async fn commit_after_park_is_fenced(s: Scene<'_>) {
    after(&s, Then::Park { reason: "no such version".to_owned() }).await;
}

/// Invariant 3: nothing after a terminal event.
async fn commit_after_the_end_is_fenced(s: Scene<'_>) {
    after(&s, Then::Finish(Ending::Failed)).await;
    assert_eq!(s.view(&run("a")).await.status, Status::Failed);
}

async fn commit_after_a_seizure_is_fenced(s: Scene<'_>) {
    let held = s.own("a").await;
    let operator = s.node("operator", 1_000).await;
    let seized = s.seize(operator, 1, &held.run).await.expect("a seizure asks nobody");
    assert_eq!(seized.fence, Fence(2));
    assert_eq!(s.commit(held.commit().event("x")).await.unwrap_err(), fenced(&held, 2));
    assert!(s.commit(Held::of(&seized).commit().event("terminated").finish()).await.is_ok());
}

async fn fence_from_the_future_is_refused(s: Scene<'_>) {
    let held = s.own("a").await;
    for future in [2, u64::MAX] {
        let held = Held { fence: Fence(future), ..held.clone() };
        assert_eq!(s.commit(held.commit().event("x")).await.unwrap_err(), fenced(&held, 1));
    }
}

async fn fence_is_checked_before_the_index(s: Scene<'_>) {
    let (zombie, mut heir) = zombie_and_heir(&s).await;
    let commit = heir.commit().event("heir");
    s.apply(&mut heir, commit).await;
    for expected in [0, 1, 9] {
        let commit = zombie.commit().event("zombie").change(|commit| commit.expected = Index(expected));
        assert_eq!(s.commit(commit).await.unwrap_err(), fenced(&zombie, 2), "who lost the run is told so");
    }
}

async fn run_nobody_owns_takes_no_commit(s: Scene<'_>) {
    let run = s.start("a").await;
    let nobody = Held { run, fence: Fence(0), next: Index(0), generation: outlast_core::id::Generation(0) };
    assert_eq!(s.commit(nobody.commit().event("x")).await.unwrap_err(), fenced(&nobody, 0));
}

async fn stale_release_is_fenced_and_changes_nothing(s: Scene<'_>) {
    let (zombie, heir) = zombie_and_heir(&s).await;
    let refused = s.store.release(vec![zombie.release(true)]).await.remove(0).unwrap_err();
    assert_eq!(refused, StoreError::Fenced { run: zombie.run.clone(), held: zombie.fence });
    let view = s.view(&heir.run).await;
    assert!(view.owner.is_some() && !view.ready, "the heir keeps the run: {view:?}");
    let answers = s.store.release(vec![Held { run: run("none"), ..zombie }.release(true), heir.release(false)]).await;
    assert_eq!(answers, [Err(StoreError::NotFound(run("none"))), Ok(())]);
}

async fn stale_take_is_fenced_and_changes_nothing(s: Scene<'_>) {
    let (zombie, heir) = zombie_and_heir(&s).await;
    s.deliver(signal(&heir.run, "go", "1", "one")).await;
    let read = s.load(&heir.run).await.inbox_next;
    let refused = s.store.take(vec![zombie.take(read)]).await.remove(0).unwrap_err();
    assert_eq!(refused, StoreError::Fenced { run: zombie.run.clone(), held: zombie.fence });
    assert!(s.view(&heir.run).await.ready, "the wake is still there for the heir");
    let answers = s.store.take(vec![Held { run: run("none"), ..zombie }.take(read), heir.take(read)]).await;
    assert_eq!(answers, [Err(StoreError::NotFound(run("none"))), Ok(true)]);
}

async fn fence_rises_by_one_with_each_change_of_hands(s: Scene<'_>) {
    let run = s.start("a").await;
    for fence in 1..=5 {
        let mut held = s.reclaim(&run).await;
        assert_eq!(held.fence, Fence(fence));
        let commit = held.commit().event("turn").suspend();
        s.apply(&mut held, commit).await;
        s.deliver(signal(&run, "go", &fence.to_string(), "again")).await;
    }
}

async fn terminate_raises_the_fence_over_a_living_driver(s: Scene<'_>) {
    let mut driver = s.own("a").await;
    let commit = driver.commit().event("work");
    s.apply(&mut driver, commit).await;
    let operator = s.node("operator", 1_000).await;
    let mut seized = Held::of(&s.seize(operator, 1, &driver.run).await.expect("seized"));
    let end = seized.commit().event("terminated").then(Then::Finish(Ending::Cancelled));
    s.apply(&mut seized, end).await;
    assert_eq!(s.commit(driver.commit().event("more")).await.unwrap_err(), fenced(&driver, 2));
    assert_eq!(s.view(&driver.run).await.status, Status::Cancelled);
    assert_eq!(s.story(&driver.run).await, ["work", "terminated"]);
}
