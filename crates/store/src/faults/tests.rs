mod full;
mod windows;

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::commit::{Commit, Ending, NewRun, Owner, Status, Then};
use outlast_core::id::{ClaimId, Fence, Index, LeaseId, Namespace, NodeId, RunId, Version, WorkflowName};
use outlast_core::limits::Limits;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use super::*;
use crate::{Clock, CommitError, ManualClock, MemoryStore, StoreError, Trouble};

fn block_on<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(story)
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Clock::Manual(ManualClock::at(0)), Limits::default()))
}

fn run(id: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(id).unwrap())
}

fn new_run(id: &str) -> NewRun {
    NewRun::new(run(id), WorkflowName::new("w").unwrap(), Version::new("1").unwrap(), Bytes::new())
}

/// A run that is held under fence 1, before any call counts.
async fn held(store: &dyn Store, id: &str) -> RunKey {
    let lease = store.register(NodeId::new("node").unwrap(), Duration::from_secs(60)).await.unwrap();
    let owner = Some(Owner { lease: lease.id, claim: ClaimId(1) });
    store.create(vec![NewRun { owner, ..new_run(id) }]).await.remove(0).unwrap();
    run(id)
}

fn finish(run: &RunKey) -> Commit {
    let mut commit = Commit::new(run.clone(), Fence(1), Index(0));
    commit.events.push(Record { kind: 2, version: 1, key: None, at: Timestamp::EPOCH, meta: None, payload: None });
    commit.then = Then::Finish(Ending::Completed);
    commit
}

fn plan(at: u64, fault: Fault) -> Plan {
    Plan { at, fault }
}

fn trouble(error: &StoreError) -> Option<Trouble> {
    match error {
        StoreError::Unavailable { trouble, .. } => Some(*trouble),
        _ => None,
    }
}

#[test]
fn without_a_plan_it_only_counts() {
    block_on(async {
        let store = FaultStore::counting(memory());
        assert!(store.create(vec![new_run("a"), new_run("b")]).await.iter().all(Result::is_ok));
        assert!(store.get(run("a")).await.is_ok());
        assert_eq!((store.log(), store.calls(), store.landed()), (vec!["create", "get"], 2, 0));
    });
}

#[test]
fn not_applied_leaves_nothing_behind_and_fails_every_item_of_the_batch() {
    block_on(async {
        let inner = memory();
        let store = FaultStore::new(inner.clone(), plan(0, Fault::NotApplied { in_doubt: true }));
        let answers = store.create(vec![new_run("a"), new_run("b")]).await;
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|answer| trouble(answer.as_ref().unwrap_err()) == Some(Trouble::Connection)));
        assert!(inner.get(run("a")).await.is_err());
        assert!(store.create(vec![new_run("a")]).await[0].is_ok(), "the fault happens once");
        assert_eq!((store.landed(), store.landed_by_call()), (1, BTreeMap::from([("create", 1)])));
    });
}

#[test]
fn applied_then_error_is_there_although_the_caller_was_told_otherwise() {
    block_on(async {
        let store = FaultStore::new(memory(), plan(0, Fault::AppliedThenError));
        assert!(store.create(vec![new_run("a")]).await[0].is_err());
        assert!(store.get(run("a")).await.is_ok());
        assert!(!store.has_crashed());
    });
}

#[test]
fn after_a_crash_every_call_says_that_the_store_is_closed() {
    block_on(async {
        let inner = memory();
        let store = FaultStore::new(inner.clone(), plan(0, Fault::AppliedThenCrash));
        let closed = |error: &StoreError| trouble(error) == Some(Trouble::Closed);
        assert!(closed(store.create(vec![new_run("a")]).await[0].as_ref().unwrap_err()));
        assert!(closed(&store.get(run("a")).await.unwrap_err()));
        assert!(closed(store.create(vec![new_run("b")]).await[0].as_ref().unwrap_err()));
        assert!(store.has_crashed());
        assert!(inner.get(run("a")).await.is_ok(), "what was applied stays");
        assert!(inner.get(run("b")).await.is_err(), "and nothing is applied afterwards");
    });
}

/// What a commit that was made to fail answers, how that resolves, and whether it is there.
async fn doubted(fault: Fault) -> (CommitError, Resolution, bool) {
    let inner = memory();
    let run = held(&*inner, "a").await;
    let store = FaultStore::new(inner, plan(0, fault));
    let error = store.commit(vec![finish(&run)]).await.remove(0).unwrap_err();
    let txn = if let CommitError::Unknown(txn) = error { txn } else { TxnId(uuid::Uuid::nil()) };
    let resolution = store.resolve(txn).await.unwrap();
    (error, resolution, store.get(run).await.unwrap().status == Status::Completed)
}

#[test]
fn a_commit_in_doubt_resolves_to_what_became_of_it() {
    block_on(async {
        let told = doubted(Fault::NotApplied { in_doubt: false }).await;
        assert!(matches!(told.0, CommitError::NotApplied(StoreError::Unavailable { .. })));
        assert_eq!((told.1, told.2), (Resolution::NotApplied, false));
        let lost = doubted(Fault::NotApplied { in_doubt: true }).await;
        assert!(matches!(lost, (CommitError::Unknown(_), Resolution::NotApplied, false)));
        let applied = doubted(Fault::AppliedThenError).await;
        assert!(matches!(applied, (CommitError::Unknown(_), Resolution::Applied, true)));
    });
}

#[test]
fn a_refused_commit_in_a_batch_that_was_applied_resolves_to_not_applied() {
    block_on(async {
        let inner = memory();
        let run = held(&*inner, "a").await;
        let store = FaultStore::new(inner, plan(0, Fault::AppliedThenError));
        let stale = Commit { fence: Fence(0), ..finish(&run) };
        let answers = store.commit(vec![stale, finish(&run)]).await;
        let mut resolutions = Vec::new();
        for answer in answers {
            let Err(CommitError::Unknown(txn)) = answer else { panic!("{answer:?} should be in doubt") };
            resolutions.push(store.resolve(txn).await.unwrap());
        }
        assert_eq!(resolutions, [Resolution::NotApplied, Resolution::Applied]);
    });
}

#[test]
fn resolving_can_fail_too_and_be_repeated() {
    block_on(async {
        let inner = memory();
        let run = held(&*inner, "a").await;
        let store = FaultStore::new(inner, plan(0, Fault::AppliedThenError));
        let store = store.and(plan(1, Fault::NotApplied { in_doubt: false }));
        let Err(CommitError::Unknown(txn)) = store.commit(vec![finish(&run)]).await.remove(0) else { panic!() };
        assert!(store.resolve(txn).await.is_err());
        assert_eq!(store.resolve(txn).await, Ok(Resolution::Applied));
        assert_eq!(store.landed(), 2);
    });
}

#[test]
fn a_crashing_commit_is_applied_and_its_sender_never_learns() {
    block_on(async {
        let inner = memory();
        let run = held(&*inner, "a").await;
        let store = FaultStore::new(inner.clone(), plan(0, Fault::AppliedThenCrash));
        let Err(CommitError::Unknown(txn)) = store.commit(vec![finish(&run)]).await.remove(0) else { panic!() };
        assert!(store.resolve(txn).await.is_err());
        assert_eq!(inner.get(run).await.unwrap().status, Status::Completed);
    });
}

#[test]
fn a_process_that_dies_before_its_call_leaves_nothing_behind() {
    block_on(async {
        let inner = memory();
        let run = held(&*inner, "a").await;
        let store = FaultStore::new(inner.clone(), plan(0, Fault::NotAppliedThenCrash));
        assert!(store.commit(vec![finish(&run)]).await.remove(0).is_err());
        assert!(store.has_crashed() && store.get(run.clone()).await.is_err());
        assert_ne!(inner.get(run).await.unwrap().status, Status::Completed);
    });
}

#[test]
fn a_fault_can_wait_for_a_call_of_some_name() {
    block_on(async {
        let store = FaultStore::counting(memory());
        store.plan_next_of("sweep", 1, Fault::AppliedThenError);
        assert!(store.namespaces().await.is_ok() && store.sweep(1).await.is_ok() && store.namespaces().await.is_ok());
        assert!(store.sweep(1).await.is_err(), "the second of this name");
        assert!(store.sweep(1).await.is_ok());
        assert_eq!(store.landed(), 1);
    });
}
