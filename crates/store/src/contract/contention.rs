//! Contention: the clock is read after the locks are held, so that what waited long is not decided by an old time.

use outlast_core::id::NodeId;

use super::scene::*;
use crate::{CommitError, Rejection, StoreError};

super::stories! {
    lease_registered_under_lock_contention_is_not_born_expired,
    lease_renewed_under_lock_contention_is_measured_from_when_it_got_the_lock,
    lease_that_lapsed_while_its_renewal_waited_is_refused,
    commit_under_lock_contention_decides_by_the_time_it_got_the_lock,
    claim_under_lock_contention_takes_over_what_lapsed_meanwhile,
    wake_left_under_lock_contention_is_not_lost,
}

/// Row 19: a lease computed before a wait for a lock was born expired.
async fn lease_registered_under_lock_contention_is_not_born_expired(s: Scene<'_>) {
    let held = s.own_under(s.node("n", 100).await, "a").await;
    let register = s.store.register(NodeId::new("n").unwrap(), ms(100));
    let lease = s.contended(&held.run, 5_000, register).await.unwrap();
    assert_eq!((lease.now, lease.until), (at(5_000), at(5_100)));
    assert!(s.store.renew(lease.id, ms(100)).await.is_ok());
}

/// Row 19.
async fn lease_renewed_under_lock_contention_is_measured_from_when_it_got_the_lock(s: Scene<'_>) {
    let lease = s.node("n", 100).await;
    let held = s.own_under(lease, "a").await;
    let renewed = s.contended(&held.run, 90, s.store.renew(lease, ms(100))).await.unwrap();
    assert_eq!((renewed.now, renewed.until), (at(90), at(190)));
}

/// Row 19.
async fn lease_that_lapsed_while_its_renewal_waited_is_refused(s: Scene<'_>) {
    let lease = s.node("n", 100).await;
    let held = s.own_under(lease, "a").await;
    let refused = s.contended(&held.run, 100, s.store.renew(lease, ms(100))).await.unwrap_err();
    assert!(matches!(refused, StoreError::LeaseLapsed { .. }), "{refused}");
}

async fn commit_under_lock_contention_decides_by_the_time_it_got_the_lock(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("sleeps").sleep("t", 100);
    s.apply(&mut held, commit).await;
    let early = s.contended(&held.run, 99, s.commit(held.commit().event("fired").fires("t"))).await.unwrap_err();
    let not_due = Rejection::TimerNotDue { key: key("t"), due: at(100), now: at(99) };
    assert_eq!(early, CommitError::Rejected(not_due));
    let fired = s.contended(&held.run, 100, s.commit(held.commit().event("fired").fires("t"))).await.unwrap();
    assert_eq!(fired.now, at(100));
}

async fn claim_under_lock_contention_takes_over_what_lapsed_meanwhile(s: Scene<'_>) {
    let held = s.own_under(s.node("dead", 100).await, "a").await;
    let lease = s.node("n", 1_000).await;
    let claimed = s.contended(&held.run, 150, s.claim_run(lease, 1, &held.run)).await;
    let claimed = match claimed {
        Some(claimed) => claimed,
        // Who does not wait for a lock finds the run next time.
        None => s.claim_run(lease, 2, &held.run).await.expect("its owner's lease is over"),
    };
    assert_eq!((claimed.fence, claimed.now), (held.fence.next(), at(150)));
}

async fn wake_left_under_lock_contention_is_not_lost(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").suspend();
    s.apply(&mut held, commit).await;
    s.contended(&held.run, 30, s.deliver(signal(&held.run, "go", "1", "one"))).await;
    let view = s.view(&held.run).await;
    assert!(view.ready, "{view:?}");
    assert_eq!(s.inbox(&held.run).await[0].at, at(30), "it came when it got the lock");
}
