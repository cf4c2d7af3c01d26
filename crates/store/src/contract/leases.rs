//! Leases: a node's period of ownership, measured by the store's clock.

use std::time::Duration;

use outlast_core::commit::{NewRun, Owner};
use outlast_core::id::{ClaimId, LeaseId, NodeId};
use outlast_core::time::Timestamp;

use super::scene::*;
use crate::StoreError;

super::stories! {
    lease_100_taken_at_10_blocks_another_at_20_and_is_reclaimed_at_111,
    lease_from_0_renewed_at_50_is_not_stale_at_101_and_is_stale_at_151,
    lease_is_over_at_exactly_its_end,
    lease_that_lapsed_cannot_be_renewed_even_if_nobody_noticed,
    lease_that_lapsed_cannot_claim,
    lease_that_lapsed_cannot_own_a_new_run,
    lease_that_does_not_exist_can_neither_renew_nor_claim,
    registering_again_ends_the_old_lease_at_once,
    registering_again_frees_the_runs_of_the_old_lease,
    retiring_frees_the_runs_at_once,
    retiring_twice_or_an_unknown_lease_is_not_an_error,
    two_nodes_hold_leases_of_their_own,
    a_later_lease_has_a_larger_id,
    lease_is_measured_from_the_clock_at_the_call,
    lease_of_absurd_length_saturates_and_holds,
    owner_whose_lease_lapsed_may_commit_until_somebody_takes_over,
    renewal_keeps_the_runs,
    ended_lease_stays_ended_when_the_clock_steps_back,
}

/// When a lease ended is told as far as it is known: a store may forget one that is over and owns nothing.
fn assert_lapsed(error: &StoreError, lease: LeaseId) {
    assert!(matches!(error, StoreError::LeaseLapsed { lease: over, .. } if *over == lease), "{error}");
}

async fn lease_100_taken_at_10_blocks_another_at_20_and_is_reclaimed_at_111(s: Scene<'_>) {
    s.clock.set(10);
    let held = s.own_under(s.node("first", 100).await, "a").await;

    s.clock.set(20);
    let second = s.node("second", 1_000).await;
    assert_eq!(s.claim_run(second, 1, &held.run).await, None, "a live lease keeps others away");
    assert_eq!(s.claim_ids(second, 2).await, [""; 0], "a live lease keeps others away");

    s.clock.set(111);
    let third = s.store.register(NodeId::new("third").unwrap(), ms(100)).await.unwrap();
    assert_eq!(third.until, at(211), "a lease taken at 111 for 100 ends at 211");
    let claimed = s.claim_run(third.id, 1, &held.run).await.expect("a lapsed lease is taken over");
    assert_eq!(claimed.fence, held.fence.next());
}

async fn lease_from_0_renewed_at_50_is_not_stale_at_101_and_is_stale_at_151(s: Scene<'_>) {
    let first = s.node("first", 100).await;
    let held = s.own_under(first, "a").await;
    s.clock.set(50);
    let renewed = s.store.renew(first, ms(100)).await.unwrap();
    assert_eq!((renewed.id, renewed.until, renewed.now), (first, at(150), at(50)));

    let second = s.node("second", 1_000).await;
    s.clock.set(101);
    assert_eq!(s.claim_run(second, 1, &held.run).await, None, "renewed at 50 for 100: live at 101");
    s.clock.set(151);
    assert!(s.claim_run(second, 1, &held.run).await.is_some(), "renewed at 50 for 100: stale at 151");
}

async fn lease_is_over_at_exactly_its_end(s: Scene<'_>) {
    let first = s.node("first", 100).await;
    let held = s.own_under(first, "a").await;
    let second = s.node("second", 1_000).await;

    s.clock.set(99);
    assert_eq!(s.claim_run(second, 1, &held.run).await, None);
    s.clock.set(100);
    assert!(s.store.renew(first, ms(100)).await.is_err(), "a lease until 100 is over at 100");
    assert!(s.claim_run(second, 1, &held.run).await.is_some(), "a lease until 100 is over at 100");
}

async fn lease_that_lapsed_cannot_be_renewed_even_if_nobody_noticed(s: Scene<'_>) {
    let lease = s.node("first", 100).await;
    s.clock.set(150);
    let refused = s.store.renew(lease, ms(100)).await.unwrap_err();
    assert_lapsed(&refused, lease);
}

async fn lease_that_lapsed_cannot_claim(s: Scene<'_>) {
    let lease = s.node("first", 100).await;
    let run = s.start("a").await;
    s.clock.set(100);
    for pick in [crate::Pick::Ready, crate::Pick::Run(run.clone()), crate::Pick::Seize(run.clone())] {
        let serves = crate::Serves::Everything;
        let claim = crate::Claim { lease, id: ClaimId(1), limit: 1, pick, serves };
        let refused = s.store.claim(claim).await.unwrap_err();
        assert_lapsed(&refused, lease);
    }
    assert!(s.view(&run).await.ready, "a refused claim changes nothing");
}

async fn lease_that_lapsed_cannot_own_a_new_run(s: Scene<'_>) {
    let lease = s.node("first", 100).await;
    s.clock.set(100);
    let owner = Some(Owner { lease, claim: ClaimId(1) });
    let refused = s.try_create(NewRun { owner, ..new_run(&run("a")) }).await.unwrap_err();
    assert_lapsed(&refused, lease);
    assert_eq!(s.store.get(run("a")).await.unwrap_err(), StoreError::NotFound(run("a")), "nothing was created");
}

async fn lease_that_does_not_exist_can_neither_renew_nor_claim(s: Scene<'_>) {
    for lease in [LeaseId(0), LeaseId(77), LeaseId(u64::MAX)] {
        assert_lapsed(&s.store.renew(lease, ms(100)).await.unwrap_err(), lease);
        let (pick, serves) = (crate::Pick::Ready, crate::Serves::Everything);
        let claim = crate::Claim { lease, id: ClaimId(1), limit: 1, pick, serves };
        assert_lapsed(&s.store.claim(claim).await.unwrap_err(), lease);
        assert_eq!(s.store.wakes(lease, 10).await.unwrap(), []);
    }
}

async fn registering_again_ends_the_old_lease_at_once(s: Scene<'_>) {
    let old = s.node("node", 1_000).await;
    s.clock.set(10);
    let new = s.node("node", 1_000).await;
    assert_ne!(old, new, "a new epoch has a new id");
    let refused = s.store.renew(old, ms(100)).await.unwrap_err();
    assert_lapsed(&refused, old);
    assert!(s.store.renew(new, ms(100)).await.is_ok());
}

async fn registering_again_frees_the_runs_of_the_old_lease(s: Scene<'_>) {
    let old = s.node("node", 1_000).await;
    let held = s.own_under(old, "a").await;
    let new = s.node("node", 1_000).await;
    let claimed = s.claim_run(new, 1, &held.run).await.expect("the old epoch is over");
    assert_eq!(claimed.tries, 1, "it was not released: its driver died");
}

async fn retiring_frees_the_runs_at_once(s: Scene<'_>) {
    let first = s.node("first", 1_000).await;
    let second = s.node("second", 1_000).await;
    let held = s.own_under(first, "a").await;
    assert_eq!(s.claim_run(second, 1, &held.run).await, None);
    s.store.retire(first).await.unwrap();
    assert!(s.claim_run(second, 1, &held.run).await.is_some(), "a retired lease is over");
    assert!(s.store.renew(first, ms(100)).await.is_err(), "a retired lease cannot be renewed");
}

async fn retiring_twice_or_an_unknown_lease_is_not_an_error(s: Scene<'_>) {
    let lease = s.node("first", 100).await;
    s.clock.set(40);
    s.store.retire(lease).await.unwrap();
    s.clock.set(60);
    s.store.retire(lease).await.unwrap();
    s.store.retire(LeaseId(u64::MAX)).await.unwrap();
    let refused = s.store.renew(lease, ms(1)).await.unwrap_err();
    assert_lapsed(&refused, lease);
}

async fn ended_lease_stays_ended_when_the_clock_steps_back(s: Scene<'_>) {
    s.clock.set(5_000);
    let retired = s.node("first", 1_000).await;
    s.store.retire(retired).await.unwrap();
    let replaced = s.node("second", 1_000).await;
    s.node("second", 1_000).await;
    s.clock.set(10);
    for lease in [retired, replaced] {
        assert_lapsed(&s.store.renew(lease, ms(100)).await.unwrap_err(), lease);
    }
}

async fn two_nodes_hold_leases_of_their_own(s: Scene<'_>) {
    let other = s.other().await;
    let first = s.node("first", 100).await;
    let second = other.register(NodeId::new("second").unwrap(), ms(100)).await.unwrap().id;
    assert_ne!(first, second);
    s.store.retire(second).await.unwrap();
    assert!(s.store.renew(first, ms(100)).await.is_ok(), "another node's end is not mine");
}

async fn a_later_lease_has_a_larger_id(s: Scene<'_>) {
    let first = s.node("a", 100).await;
    let second = s.node("b", 100).await;
    let third = s.node("a", 100).await;
    assert!(first < second && second < third, "{first} {second} {third}");
}

/// Row 19: a lease computed before a wait is born expired.
async fn lease_is_measured_from_the_clock_at_the_call(s: Scene<'_>) {
    s.clock.set(5_000);
    let lease = s.store.register(NodeId::new("n").unwrap(), ms(100)).await.unwrap();
    assert_eq!((lease.now, lease.until), (at(5_000), at(5_100)));
    s.clock.set(5_099);
    let renewed = s.store.renew(lease.id, ms(1)).await.unwrap();
    assert_eq!((renewed.now, renewed.until), (at(5_099), at(5_100)));
    assert_eq!(renewed.node, NodeId::new("n").unwrap());
}

async fn lease_of_absurd_length_saturates_and_holds(s: Scene<'_>) {
    let lease = s.store.register(NodeId::new("n").unwrap(), Duration::MAX).await.unwrap();
    assert_eq!(lease.until, Timestamp::MAX, "an absurd lease must not wrap into the past");
    let held = s.own_under(lease.id, "a").await;
    s.clock.set(1 << 50);
    let other = s.node("other", 100).await;
    assert_eq!(s.claim_run(other, 1, &held.run).await, None);
}

async fn owner_whose_lease_lapsed_may_commit_until_somebody_takes_over(s: Scene<'_>) {
    let mut held = s.own_under(s.node("first", 100).await, "a").await;
    s.clock.set(500);
    let commit = held.commit().event("late, but mine");
    s.apply(&mut held, commit).await;
    assert_eq!(s.story(&held.run).await, ["late, but mine"], "commits look at the run's row, never at the lease's");
}

async fn renewal_keeps_the_runs(s: Scene<'_>) {
    let lease = s.node("first", 100).await;
    let mut held = s.own_under(lease, "a").await;
    s.clock.set(90);
    s.store.renew(lease, ms(100)).await.unwrap();
    s.clock.set(150);
    assert_eq!(s.view(&held.run).await.owner, Some(lease));
    let commit = held.commit().event("on");
    s.apply(&mut held, commit).await;
}
