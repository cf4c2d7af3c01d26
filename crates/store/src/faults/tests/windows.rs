//! Faults that last, and calls that take time.

use std::pin::pin;
use std::task::{Context, Poll};

use outlast_core::commit::{Delivery, Signal};
use outlast_core::id::{DeliveryId, InboxId, SignalName};

use super::*;

/// Time that passes when it is told to. What is on its way waits here too.
#[derive(Default)]
struct Hours {
    now: Mutex<Duration>,
    spawned: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Hours {
    /// Time passes, and what was sent arrives if it is there.
    fn pass(&self, seconds: u64) {
        *self.now.lock().unwrap() += Duration::from_secs(seconds);
        let mut context = Context::from_waker(Waker::noop());
        self.spawned.lock().unwrap().retain_mut(|future| future.as_mut().poll(&mut context).is_pending());
    }
}

struct Shared(Arc<Hours>);

impl Timer for Shared {
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let hours = Arc::clone(&self.0);
        let until = *hours.now.lock().unwrap() + duration;
        Box::pin(std::future::poll_fn(move |_| {
            if *hours.now.lock().unwrap() >= until { Poll::Ready(()) } else { Poll::Pending }
        }))
    }

    fn spawn(&self, future: BoxFuture<'static, ()>) {
        self.0.spawned.lock().unwrap().push(future);
    }
}

fn timed(inner: Arc<dyn Store>) -> (FaultStore, Arc<Hours>) {
    let hours = Arc::new(Hours::default());
    (FaultStore::counting(inner).with_timer(Arc::new(Shared(Arc::clone(&hours)))), hours)
}

/// What a future answers if it is polled once more.
fn now<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn is_there(inner: &dyn Store, id: &str) -> bool {
    block_on(async { inner.get(run(id)).await.is_ok() })
}

#[test]
fn a_late_call_arrives_later_and_its_answer_later_still() {
    let inner = memory();
    let (store, hours) = timed(inner.clone());
    store.plan_next(0, Fault::Late { before: seconds(2), after: seconds(3) });
    let mut call = pin!(store.create(vec![new_run("a")]));
    assert!(now(call.as_mut()).is_none());
    hours.pass(1);
    assert!(now(call.as_mut()).is_none() && !is_there(&*inner, "a"));
    hours.pass(1);
    assert!(now(call.as_mut()).is_none() && is_there(&*inner, "a"));
    hours.pass(3);
    assert!(now(call.as_mut()).unwrap()[0].is_ok());
    assert_eq!(store.landed_by_kind(), BTreeMap::from([("late", 1)]));
}

#[test]
fn a_late_call_arrives_although_its_sender_is_gone() {
    let inner = memory();
    let (store, hours) = timed(inner.clone());
    store.plan_next(0, Fault::Late { before: seconds(2), after: Duration::ZERO });
    {
        let mut call = pin!(store.create(vec![new_run("a")]));
        assert!(now(call.as_mut()).is_none());
    }
    store.crash();
    assert!(!is_there(&*inner, "a"));
    hours.pass(2);
    assert!(is_there(&*inner, "a"), "it was on its way");
    assert_eq!(store.under_way(), 0);
}

#[test]
fn a_call_that_hangs_fails_after_long_and_leaves_its_sender_in_doubt() {
    for applied in [false, true] {
        let inner = memory();
        let held = block_on(held(&*inner, "a"));
        let (store, hours) = timed(inner.clone());
        store.plan_next(0, Fault::Hang { long: seconds(60), applied });
        let mut call = pin!(store.commit(vec![finish(&held)]));
        assert!(now(call.as_mut()).is_none());
        let status = block_on(inner.get(held)).unwrap().status;
        assert_eq!(status == Status::Completed, applied, "it is applied at the beginning, or not at all");
        hours.pass(59);
        assert!(now(call.as_mut()).is_none());
        assert_eq!(store.under_way(), 0, "the store has answered, or was never asked");
        hours.pass(1);
        let Err(CommitError::Unknown(txn)) = now(call.as_mut()).unwrap().remove(0) else { panic!("in doubt") };
        let resolution = if applied { Resolution::Applied } else { Resolution::NotApplied };
        assert_eq!(block_on(store.resolve(txn)), Ok(resolution));
    }
}

#[test]
fn a_call_that_hangs_and_cannot_be_in_doubt_gets_an_error() {
    let (store, hours) = timed(memory());
    store.plan_next(1, Fault::Hang { long: seconds(60), applied: true });
    assert!(block_on(store.namespaces()).is_ok(), "the next call but one");
    let mut call = pin!(store.namespaces());
    assert!(now(call.as_mut()).is_none());
    hours.pass(60);
    assert_eq!(trouble(&now(call.as_mut()).unwrap().unwrap_err()), Some(Trouble::Connection));
}

#[test]
fn without_a_timer_no_call_takes_time() {
    block_on(async {
        let store = FaultStore::new(memory(), plan(0, Fault::Late { before: seconds(9), after: seconds(9) }));
        store.set_latency(Some(Latency { seed: 1, max: seconds(9) }));
        assert!(store.namespaces().await.is_ok());
        assert!(store.namespaces().await.is_ok());
    });
}

#[test]
fn with_latency_every_call_takes_some_time_and_the_same_for_the_same_seed() {
    let took = |seed| {
        let (store, hours) = timed(memory());
        store.set_latency(Some(Latency { seed, max: seconds(20) }));
        let mut took = Vec::new();
        for _ in 0..20 {
            let mut call = pin!(store.namespaces());
            let mut waited = 0;
            while now(call.as_mut()).is_none() {
                hours.pass(1);
                waited += 1;
            }
            took.push(waited);
        }
        assert_eq!(store.landed_by_kind(), BTreeMap::from([("latency", 20)]));
        took
    };
    assert_eq!(took(1), took(1));
    assert_ne!(took(1), took(2));
    assert!(took(1).iter().all(|seconds| *seconds <= 22), "{:?}", took(1));
    assert!(took(1).iter().any(|seconds| *seconds > 5), "{:?}", took(1));
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    block_on(async {
        let inner = memory();
        let held = held(&*inner, "a").await;
        let store = FaultStore::counting(inner);
        store.set_full(true);
        let refused = store.create(vec![new_run("b")]).await.remove(0).unwrap_err();
        assert_eq!(trouble(&refused), Some(Trouble::DiskFull));
        let refused = store.commit(vec![finish(&held)]).await.remove(0).unwrap_err();
        assert!(matches!(&refused, CommitError::NotApplied(error) if trouble(error) == Some(Trouble::DiskFull)));
        assert!(store.register(NodeId::new("n").unwrap(), seconds(1)).await.is_err());
        assert!(store.get(held.clone()).await.is_ok(), "reads pass");
        store.set_full(false);
        assert!(store.commit(vec![finish(&held)]).await.remove(0).is_ok());
        assert_eq!(store.landed_by_kind(), BTreeMap::from([("full", 3)]));
    });
}

#[test]
fn who_is_cut_off_reaches_nothing_and_no_planned_fault_happens() {
    block_on(async {
        let inner = memory();
        let store = FaultStore::new(inner.clone(), plan(0, Fault::AppliedThenError));
        store.set_cut(true);
        assert_eq!(trouble(&store.create(vec![new_run("a")]).await.remove(0).unwrap_err()), Some(Trouble::Connection));
        assert!(store.get(run("a")).await.is_err());
        store.set_cut(false);
        assert!(matches!(store.get(run("a")).await, Err(StoreError::NotFound(_))), "nothing was applied");
        assert_eq!((store.landed(), store.landed_by_kind()), (0, BTreeMap::from([("cut", 2)])));
    });
}

/// A run that is held under this lease, and woken.
async fn woken(store: &dyn Store, id: &str) -> (LeaseId, RunKey) {
    let lease = store.register(NodeId::new(id).unwrap(), seconds(60)).await.unwrap().id;
    let owner = Some(Owner { lease, claim: ClaimId(1) });
    store.create(vec![NewRun { owner, ..new_run(id) }]).await.remove(0).unwrap();
    let (name, delivery) = (SignalName::new("s").unwrap(), DeliveryId::new("d").unwrap());
    let signal = Signal { name, id: delivery, payload: Bytes::new(), aimed: None };
    store.deliver(vec![Delivery::Signal { run: run(id), signal }]).await.remove(0).unwrap();
    (lease, run(id))
}

#[test]
fn wakes_are_heard_lost_or_told_again() {
    block_on(async {
        let inner = memory();
        let (lease, key) = woken(&*inner, "a").await;
        let store = FaultStore::counting(inner.clone());
        store.set_wakes(Wakes::Lost);
        assert_eq!(store.wakes(lease, 10).await.unwrap(), []);
        store.set_wakes(Wakes::Heard);
        assert_eq!(store.wakes(lease, 10).await.unwrap(), std::slice::from_ref(&key));
        inner.take(vec![crate::Take { run: key.clone(), fence: Fence(1), read: InboxId(1) }]).await.remove(0).unwrap();
        assert_eq!(store.wakes(lease, 10).await.unwrap(), [], "the wake was taken");
        store.set_wakes(Wakes::Doubled);
        assert_eq!(store.wakes(lease, 10).await.unwrap(), [key]);
        assert_eq!(store.landed_by_kind(), BTreeMap::from([("wakes_doubled", 1), ("wakes_lost", 1)]));
    });
}

#[test]
fn a_late_wake_is_told_the_next_time_and_never_forgotten() {
    block_on(async {
        let inner = memory();
        let (lease, key) = woken(&*inner, "a").await;
        let store = FaultStore::counting(inner.clone());
        store.set_wakes(Wakes::Late);
        assert_eq!(store.wakes(lease, 10).await.unwrap(), []);
        inner.take(vec![crate::Take { run: key.clone(), fence: Fence(1), read: InboxId(1) }]).await.remove(0).unwrap();
        store.set_wakes(Wakes::Heard);
        assert_eq!(store.wakes(lease, 10).await.unwrap(), [key]);
        assert_eq!(store.landed_by_kind(), BTreeMap::from([("wakes_late", 1)]));
    });
}

/// What a commit that is still on its way is answered with.
async fn in_doubt(store: &FaultStore, run: &RunKey) -> TxnId {
    store.plan_next(0, Fault::InFlight { before: seconds(2) });
    match store.commit(vec![finish(run)]).await.remove(0) {
        Err(CommitError::Unknown(txn)) => txn,
        other => panic!("the sender is left in doubt, not {other:?}"),
    }
}

async fn is_over(inner: &dyn Store, run: &RunKey) -> bool {
    inner.get(run.clone()).await.unwrap().status == Status::Completed
}

#[test]
fn a_commit_in_flight_arrives_if_nobody_asks_before() {
    block_on(async {
        let inner = memory();
        let run = held(&*inner, "a").await;
        let (store, hours) = timed(inner.clone());
        let txn = in_doubt(&store, &run).await;
        assert!(!is_over(&*inner, &run).await);
        hours.pass(2);
        assert!(is_over(&*inner, &run).await);
        assert_eq!(store.resolve(txn).await, Ok(Resolution::Applied));
    });
}

#[test]
fn whoever_asks_about_a_commit_in_flight_forbids_it() {
    block_on(async {
        let inner = memory();
        let run = held(&*inner, "a").await;
        let (store, hours) = timed(inner.clone());
        let txn = in_doubt(&store, &run).await;
        assert_eq!(store.resolve(txn).await, Ok(Resolution::NotApplied));
        hours.pass(2);
        assert!(!is_over(&*inner, &run).await, "what was said not to have happened must not happen");
        assert_eq!(store.resolve(txn).await, Ok(Resolution::NotApplied));
    });
}

#[test]
fn a_fault_that_is_followed_says_whether_it_happened_and_can_be_forgotten() {
    block_on(async {
        let store = FaultStore::counting(memory());
        let first = store.follow_next(Some("sweep"), 0, Fault::AppliedThenError);
        let second = store.follow_next(None, 1, Fault::AppliedThenError);
        assert!(store.sweep(1).await.is_err());
        assert!(store.has_landed(first) && !store.has_landed(second));
        store.forget(second);
        assert!(store.sweep(1).await.is_ok() && !store.has_landed(second));
    });
}

#[test]
fn a_call_on_its_callers_thread_is_not_made_where_the_store_cannot() {
    block_on(async {
        let inner = memory();
        let run = held(&*inner, "a").await;
        let store = FaultStore::counting(inner);
        assert!(store.commit_here(&[finish(&run)]).is_none(), "memory does not write there");
        let refused = store.follow_next(Some("commit"), 0, Fault::NotApplied { in_doubt: false });
        let answers = store.commit_here(&[finish(&run)]).unwrap();
        assert!(matches!(answers[0], Err(CommitError::NotApplied(_))) && store.has_landed(refused));
        store.plan_next_of("commit", 0, Fault::Late { before: seconds(1), after: Duration::ZERO });
        assert!(store.commit_here(&[finish(&run)]).is_none(), "what takes time is sent the other way");
        assert_eq!(store.calls(), 1, "what was not made does not count");
    });
}
