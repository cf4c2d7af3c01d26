//! Claims: who drives which run, and what becomes of one that kills its drivers.

use futures_util::future::join;
use outlast_core::commit::{NewRun, Status, Then};
use outlast_core::id::{ClaimId, Fence, Index, LeaseId, RunKey};
use outlast_core::limits::{CLAIM_BATCH_MAX, TRIES_MAX};

use super::scene::*;
use crate::{Claim, Pick, Serves, StoreError};

super::stories! {
    higher_priority_is_claimed_first,
    older_is_claimed_first_among_equals,
    run_that_became_ready_first_goes_first_however_old_it_is,
    claimer_gets_only_what_it_serves,
    claim_takes_at_most_its_limit,
    claim_takes_at_most_the_batch_maximum,
    two_claimers_never_share_a_run,
    two_claimers_of_one_run_at_once_get_it_once,
    repeated_claim_gives_the_same_runs_and_then_more,
    repeated_claim_of_one_run_gives_the_same_fence,
    claim_id_belongs_to_its_lease,
    run_of_a_lapsed_lease_is_claimed_with_the_ready_ones,
    runs_of_a_lapsed_lease_get_half_of_a_claim_before_the_ready_ones,
    run_of_a_live_lease_is_not_recovered,
    stale_recovery_list_finds_nothing_left,
    claim_of_a_run_that_is_not_ready_gives_nothing,
    claim_of_an_unknown_or_deleted_run_is_an_error,
    claim_tells_what_the_driver_needs,
    tries_are_counted_when_a_driver_dies,
    release_is_no_try,
    append_resets_the_tries,
    tenth_try_parks_the_run,
    poison_parks_also_when_leases_are_alive_and_fresh,
    poison_at_the_head_does_not_hold_up_others,
    unpark_lets_the_run_go_on_with_a_clean_slate,
    unpark_of_a_run_that_is_not_parked_says_no,
    seize_takes_a_paused_run,
    seize_takes_a_run_that_parked_as_poison,
    seize_is_no_try,
    seize_of_an_ended_run_gives_nothing,
    release_with_again_is_claimed_at_once,
    release_returns_an_untouched_run_to_the_queue,
    release_without_again_waits_for_a_wake,
    ended_run_is_never_claimed,
}

/// A new node that claims the run and dies at once, so that its lease must lapse.
async fn die_with(s: &Scene<'_>, run: &RunKey) -> Option<u32> {
    let lease = s.node("mortal", 10).await;
    let claimed = s.claim_run(lease, 1, run).await;
    s.clock.advance(10);
    claimed.map(|claimed| claimed.tries)
}

async fn higher_priority_is_claimed_first(s: Scene<'_>) {
    for (id, priority) in [("low", -5), ("usual", 10), ("min", i16::MIN), ("high", 20), ("max", i16::MAX)] {
        s.create(NewRun { priority, ..new_run(&run(id)) }).await;
    }
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["max", "high", "usual", "low", "min"]);
}

async fn older_is_claimed_first_among_equals(s: Scene<'_>) {
    for id in ["c", "a", "b"] {
        s.start(id).await;
        s.clock.advance(1);
    }
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["c", "a", "b"]);
}

async fn run_that_became_ready_first_goes_first_however_old_it_is(s: Scene<'_>) {
    let mut old = s.own("old").await;
    let commit = old.commit().event("x").suspend();
    s.apply(&mut old, commit).await;
    s.clock.set(10);
    s.start("young").await;
    s.clock.set(20);
    s.deliver(signal(&old.run, "go", "1", "one")).await;
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["young", "old"]);
}

/// A rolling deploy: a node claims only what it announced.
async fn claimer_gets_only_what_it_serves(s: Scene<'_>) {
    s.create(NewRun { workflow: workflow("refund"), ..new_run(&run("other workflow")) }).await;
    s.create(NewRun { version: version("2"), ..new_run(&run("other version")) }).await;
    s.start("mine").await;
    let lease = s.node("n", 1_000).await;
    let claim = |id, serves| Claim { lease, id: ClaimId(id), limit: 10, pick: Pick::Ready, serves };
    let none = s.store.claim(claim(1, Serves::Only(Vec::new()))).await.unwrap();
    assert_eq!(none, [], "who serves nothing gets nothing");
    let only = vec![(workflow("checkout"), version("1")), (workflow("checkout"), version("3"))];
    let claimed = s.store.claim(claim(2, Serves::Only(only))).await.unwrap();
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!(claimed[0].run, run("mine"));
    let only = Serves::Only(vec![(workflow("checkout"), version("1"))]);
    for other in ["other workflow", "other version"] {
        let named = Claim { pick: Pick::Run(run(other)), ..claim(3, only.clone()) };
        assert_eq!(s.store.claim(named).await.unwrap(), [], "not by its name either");
        let seized = Claim { pick: Pick::Seize(run(other)), ..claim(4, only.clone()) };
        assert_eq!(s.store.claim(seized).await.unwrap().len(), 1, "but anybody may end or repair it");
    }
}

async fn claim_takes_at_most_its_limit(s: Scene<'_>) {
    for id in ["a", "b", "c"] {
        s.start(id).await;
    }
    let lease = s.node("n", 1_000).await;
    let serves = Serves::Everything;
    let claim = |id, limit| Claim { lease, id: ClaimId(id), limit, pick: Pick::Ready, serves: serves.clone() };
    assert_eq!(s.store.claim(claim(1, 0)).await.unwrap(), []);
    assert_eq!(s.store.claim(claim(2, 2)).await.unwrap().len(), 2);
    assert_eq!(s.store.claim(claim(3, 2)).await.unwrap().len(), 1);
}

async fn claim_takes_at_most_the_batch_maximum(s: Scene<'_>) {
    let runs = (0..CLAIM_BATCH_MAX + 4).map(|number| new_run(&run(&format!("{number:03}")))).collect();
    assert!(s.store.create(runs).await.iter().all(Result::is_ok));
    let lease = s.node("n", 1_000).await;
    let (pick, serves) = (Pick::Ready, Serves::Everything);
    let claim = Claim { lease, id: ClaimId(1), limit: usize::MAX, pick, serves };
    assert_eq!(s.store.claim(claim.clone()).await.unwrap().len(), CLAIM_BATCH_MAX);
    assert_eq!(s.store.claim(Claim { id: ClaimId(2), ..claim }).await.unwrap().len(), 4);
}

async fn two_claimers_never_share_a_run(s: Scene<'_>) {
    let other = s.other().await;
    let one = s.node("one", 1_000).await;
    let two = s.node("two", 1_000).await;
    let claim = |lease, id| {
        let (pick, serves) = (Pick::Ready, Serves::Everything);
        Claim { lease, id: ClaimId(id), limit: 4, pick, serves }
    };
    for round in 0..10 {
        let runs = (0..6).map(|number| new_run(&run(&format!("{round}-{number}")))).collect();
        s.store.create(runs).await;
        let (first, second) = join(s.store.claim(claim(one, round)), other.claim(claim(two, round))).await;
        let (first, second) = (first.unwrap(), second.unwrap());
        assert!(first.len() <= 4 && second.len() <= 4);
        assert!(first.iter().all(|mine| second.iter().all(|theirs| theirs.run != mine.run)), "{first:?} {second:?}");
        let more = s.store.claim(Claim { limit: 10, ..claim(one, round + 100) }).await.unwrap();
        assert_eq!(first.len() + second.len() + more.len(), 6, "none is lost between them");
    }
}

async fn two_claimers_of_one_run_at_once_get_it_once(s: Scene<'_>) {
    let other = s.other().await;
    let one = s.node("one", 1_000).await;
    let two = s.node("two", 1_000).await;
    for round in 0..20 {
        let run = s.start(&format!("run-{round}")).await;
        let claim = |lease| {
            let (pick, serves) = (Pick::Run(run.clone()), Serves::Everything);
            Claim { lease, id: ClaimId(round), limit: 1, pick, serves }
        };
        let (first, second) = join(s.store.claim(claim(one)), other.claim(claim(two))).await;
        assert_eq!(first.unwrap().len() + second.unwrap().len(), 1, "exactly one gets it");
    }
}

async fn repeated_claim_gives_the_same_runs_and_then_more(s: Scene<'_>) {
    s.start("a").await;
    let lease = s.node("n", 1_000).await;
    let first = s.claim(lease, 7, Pick::Ready).await;
    s.start("b").await;
    let again = s.claim(lease, 7, Pick::Ready).await;
    assert_eq!(again.len(), 2);
    assert_eq!((&again[0].run, again[0].fence), (&first[0].run, first[0].fence), "a lost reply strands nothing");
    assert_eq!(again[0].tries, 0, "asking again is no try");
    assert_eq!(again[1].run, run("b"));
    assert_eq!(s.claim(lease, 8, Pick::Ready).await, [], "another claim gets none of them");
}

async fn repeated_claim_of_one_run_gives_the_same_fence(s: Scene<'_>) {
    let run = s.start("a").await;
    let lease = s.node("n", 1_000).await;
    let first = s.claim_run(lease, u64::MAX, &run).await.expect("ready");
    let again = s.claim_run(lease, u64::MAX, &run).await.expect("the same claim holds it");
    assert_eq!((again.fence, again.tries), (first.fence, 0));
    assert_eq!(s.claim_run(lease, 1, &run).await, None, "another claim does not");
}

async fn claim_id_belongs_to_its_lease(s: Scene<'_>) {
    let run = s.start("a").await;
    let (one, two) = (s.node("one", 1_000).await, s.node("two", 1_000).await);
    assert!(s.claim_run(one, 7, &run).await.is_some());
    assert_eq!(s.claim_run(two, 7, &run).await, None);
    assert_eq!(s.claim(two, 7, Pick::Ready).await, []);
}

async fn run_of_a_lapsed_lease_is_claimed_with_the_ready_ones(s: Scene<'_>) {
    let orphan = s.own_under(s.node("dead", 100).await, "orphan").await;
    s.clock.set(100);
    s.create(NewRun { priority: -100, ..new_run(&run("ready")) }).await;
    let lease = s.node("n", 1_000).await;
    let claimed = s.claim(lease, 1, Pick::Ready).await;
    let ids: Vec<_> = claimed.iter().map(|claimed| claimed.run.id.as_str()).collect();
    assert_eq!(ids, ["orphan", "ready"]);
    assert_eq!((claimed[0].fence, claimed[0].tries, claimed[0].was), (orphan.fence.next(), 1, Status::Running));
}

/// In a line that never ends whoever comes last never comes, whatever its priority.
async fn runs_of_a_lapsed_lease_get_half_of_a_claim_before_the_ready_ones(s: Scene<'_>) {
    let dead = s.node("dead", 100).await;
    for id in ["o1", "o2", "o3", "o4", "o5", "o6"] {
        s.own_under(dead, id).await;
    }
    s.clock.set(100);
    for id in ["r1", "r2"] {
        s.create(NewRun { priority: 100, ..new_run(&run(id)) }).await;
    }
    let lease = s.node("n", 1_000).await;
    let mut claims = Vec::new();
    for (id, limit) in [(1, 1), (2, 3), (3, 4)] {
        let claim = Claim { lease, id: ClaimId(id), limit, pick: Pick::Ready, serves: Serves::Everything };
        let claimed = s.store.claim(claim).await.unwrap();
        claims.push(claimed.iter().map(|claimed| claimed.run.id.to_string()).collect::<Vec<_>>());
    }
    assert_eq!(claims, [&["o1"][..], &["o2", "o3", "r1"], &["o4", "o5", "r2", "o6"]]);
}

/// Row 22: recovery at boot ran live work again.
async fn run_of_a_live_lease_is_not_recovered(s: Scene<'_>) {
    let held = s.own_under(s.node("alive", 100).await, "a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    s.clock.set(99);
    let lease = s.node("booting", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0], "its wake is for its owner");
    assert_eq!(s.claim_run(lease, 2, &held.run).await, None);
}

/// Row 23: a stale list of runs to recover was driven after the claim was lost.
async fn stale_recovery_list_finds_nothing_left(s: Scene<'_>) {
    let held = s.own_under(s.node("dead", 100).await, "a").await;
    s.clock.set(100);
    let (one, two) = (s.node("one", 1_000).await, s.node("two", 1_000).await);
    assert!(s.claim_run(one, 1, &held.run).await.is_some());
    assert_eq!(s.claim_run(two, 1, &held.run).await, None, "a claim is a conditional update");
}

async fn claim_of_a_run_that_is_not_ready_gives_nothing(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").suspend();
    s.apply(&mut held, commit).await;
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_run(lease, 1, &held.run).await, None);
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.owner), (Status::Waiting, None));
}

async fn claim_of_an_unknown_or_deleted_run_is_an_error(s: Scene<'_>) {
    let lease = s.node("n", 1_000).await;
    let deleted = s.ended("deleted").await;
    s.store.delete(deleted.clone(), WHY.to_owned()).await.unwrap();
    let claim = |pick| Claim { lease, id: ClaimId(1), limit: 1, pick, serves: Serves::Everything };
    for pick in [Pick::Run, Pick::Seize] {
        let refused = s.store.claim(claim(pick(run("none")))).await.unwrap_err();
        assert_eq!(refused, StoreError::NotFound(run("none")));
        let refused = s.store.claim(claim(pick(deleted.clone()))).await.unwrap_err();
        assert_eq!(refused, tombstone(deleted.clone()));
    }
}

async fn claim_tells_what_the_driver_needs(s: Scene<'_>) {
    let mut held = s.own("parent").await;
    let child = child_of(&held, "child", "ship");
    let commit = held.commit().event("0").child(child.clone());
    s.apply(&mut held, commit).await;
    s.clock.set(30);
    let lease = s.node("n", 1_000).await;
    let claimed = s.claim_run(lease, 1, &run("child")).await.expect("a child is ready");
    assert_eq!((claimed.parent, claimed.was, claimed.now), (child.parent, Status::Queued, at(30)));
    assert_eq!((claimed.fence, claimed.next, claimed.tries), (Fence(1), Index(0), 0));
    assert_eq!((claimed.workflow, claimed.version), (workflow("checkout"), version("1")));
    let view = s.view(&run("child")).await;
    assert_eq!((view.status, view.owner, view.ready), (Status::Running, Some(lease), false));
}

async fn tries_are_counted_when_a_driver_dies(s: Scene<'_>) {
    let run = s.start("a").await;
    for tries in 0..4 {
        assert_eq!(die_with(&s, &run).await, Some(tries));
    }
    assert_eq!(s.view(&run).await.tries, 3);
}

async fn release_is_no_try(s: Scene<'_>) {
    let run = s.start("a").await;
    die_with(&s, &run).await;
    for _ in 0..12 {
        let held = s.reclaim(&run).await;
        s.store.release(vec![held.release(true)]).await.remove(0).unwrap();
    }
    assert_eq!(s.view(&run).await.tries, 1, "released runs were not tried in vain");
}

async fn append_resets_the_tries(s: Scene<'_>) {
    let run = s.start("a").await;
    die_with(&s, &run).await;
    die_with(&s, &run).await;
    let mut held = s.reclaim(&run).await;
    assert_eq!(s.view(&run).await.tries, 2);
    let empty = held.commit();
    s.apply(&mut held, empty).await;
    assert_eq!(s.view(&run).await.tries, 2, "a commit without an event is no progress");
    let commit = held.commit().event("progress");
    s.apply(&mut held, commit).await;
    assert_eq!(s.view(&run).await.tries, 0);
}

/// Row 35: non-determinism was retried for ever.
async fn tenth_try_parks_the_run(s: Scene<'_>) {
    let run = s.start("a").await;
    for tries in 0..TRIES_MAX {
        assert_eq!(die_with(&s, &run).await, Some(tries), "try {tries} is made");
    }
    let tenth = s.clock.now();
    assert_eq!(die_with(&s, &run).await, None, "ten in vain are enough");
    let view = s.view(&run).await;
    assert_eq!((view.status, view.owner, view.tries), (Status::Parked, None, TRIES_MAX));
    assert!(view.note.is_some_and(|note| note.contains("unpark")), "the note says what to do");
    assert_eq!(view.parked_at, Some(tenth), "and its row since when");
    assert_eq!(die_with(&s, &run).await, None, "and it stays parked");
}

/// Row 19: poison, ack and back-off all needed a live lease: attempt 78,874 of 10.
async fn poison_parks_also_when_leases_are_alive_and_fresh(s: Scene<'_>) {
    let run = s.start("a").await;
    // The same node comes back at once each time: no lease ever runs out.
    for _ in 0..TRIES_MAX {
        let lease = s.node("phoenix", 1_000_000).await;
        assert!(s.claim(lease, 1, Pick::Ready).await.len() == 1);
    }
    let lease = s.node("phoenix", 1_000_000).await;
    assert_eq!(s.claim(lease, 1, Pick::Ready).await, []);
    assert_eq!(s.view(&run).await.status, Status::Parked);
}

/// Row 52: jobs that hang retook the head of the queue.
async fn poison_at_the_head_does_not_hold_up_others(s: Scene<'_>) {
    s.create(NewRun { priority: 100, ..new_run(&run("poison")) }).await;
    s.start("healthy").await;
    for _ in 0..=TRIES_MAX {
        let lease = s.node("mortal", 10).await;
        s.claim_run(lease, 1, &run("poison")).await;
        s.clock.advance(10);
    }
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["healthy"]);
    assert_eq!(s.view(&run("poison")).await.status, Status::Parked);
}

async fn unpark_lets_the_run_go_on_with_a_clean_slate(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").park("no such version");
    s.apply(&mut held, commit).await;
    let parked = s.clock.now();
    s.clock.advance(7);
    assert_eq!(s.view(&held.run).await.parked_at, Some(parked));
    assert_eq!(s.store.unpark(held.run.clone()).await, Ok(true));
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.note, view.tries, view.ready), (Status::Queued, None, 0, true));
    assert_eq!(view.parked_at, None);
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
}

async fn unpark_of_a_run_that_is_not_parked_says_no(s: Scene<'_>) {
    let a = s.start("a").await;
    assert_eq!(s.store.unpark(a.clone()).await, Ok(false));
    assert_eq!(s.view(&a).await.status, Status::Queued);
    let ended = s.ended("ended").await;
    assert_eq!(s.store.unpark(ended.clone()).await, Ok(false));
    assert_eq!(s.view(&ended).await.status, Status::Completed);
    assert_eq!(s.store.unpark(run("none")).await, Err(StoreError::NotFound(run("none"))));
}

async fn seize_takes_a_paused_run(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").then(Then::Pause);
    s.apply(&mut held, commit).await;
    let operator = s.node("operator", 1_000).await;
    assert_eq!(s.claim_run(operator, 1, &held.run).await, None, "a claim does not get a paused run");
    let seized = s.seize(operator, 1, &held.run).await.expect("a seizure does");
    assert_eq!((seized.was, seized.next), (Status::Paused, Index(1)));
}

async fn seize_takes_a_run_that_parked_as_poison(s: Scene<'_>) {
    let run = s.start("a").await;
    for _ in 0..=TRIES_MAX {
        die_with(&s, &run).await;
    }
    let operator = s.node("operator", 1_000).await;
    let seized = s.seize(operator, 1, &run).await.expect("how else could it be terminated?");
    assert_eq!(seized.was, Status::Parked);
    assert!(s.commit(Held::of(&seized).commit().event("terminated").finish()).await.is_ok());
}

async fn seize_is_no_try(s: Scene<'_>) {
    let run = s.start("a").await;
    for claim in 0..12 {
        let operator = s.node("operator", 1_000).await;
        let seized = s.seize(operator, claim, &run).await.expect("seized");
        assert_eq!(seized.tries, 0);
    }
}

async fn seize_of_an_ended_run_gives_nothing(s: Scene<'_>) {
    let ended = s.ended("a").await;
    let operator = s.node("operator", 1_000).await;
    assert_eq!(s.seize(operator, 1, &ended).await, None);
    assert_eq!(s.view(&ended).await.status, Status::Completed);
}

async fn release_with_again_is_claimed_at_once(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x");
    s.apply(&mut held, commit).await;
    s.store.release(vec![held.release(true)]).await.remove(0).unwrap();
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.ready, view.owner), (Status::Waiting, true, None));
    let lease: LeaseId = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
}

/// Promise 4: nothing else would ever wake it.
async fn release_returns_an_untouched_run_to_the_queue(s: Scene<'_>) {
    let held = s.own("a").await;
    s.store.release(vec![held.release(false)]).await.remove(0).unwrap();
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.ready), (Status::Queued, true));
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
}

async fn release_without_again_waits_for_a_wake(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w", "go");
    s.apply(&mut held, commit).await;
    s.store.release(vec![held.release(false)]).await.remove(0).unwrap();
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.ready), (Status::Waiting, false));
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0]);
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    assert_eq!(s.claim_ids(lease, 2).await, ["a"]);
}

async fn ended_run_is_never_claimed(s: Scene<'_>) {
    let mut held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "1", "one")).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    let lease = s.node("n", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, [""; 0], "a wake that came before the end is gone with it");
    assert_eq!(s.claim_run(lease, 2, &held.run).await, None);
    assert!(!s.view(&held.run).await.ready);
}
