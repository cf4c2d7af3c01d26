//! The few requests the stories need.

use std::time::Duration;

use outlast_core::Bytes;
use outlast_core::commit::{Commit, Delivery, NewRun, Owner, Signal, Then};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Index, Key, LeaseId, Namespace, NodeId, RunId, RunKey, SignalName, Version,
    WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Claim, CommitError, Committed, Created, Load, LoadFrom, Loaded, Pick, Serves, Store, StoreError};

pub(crate) fn node() -> NodeId {
    NodeId::new("node").unwrap()
}

pub(crate) fn run(id: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(id).unwrap())
}

pub(crate) fn new_run(id: &str, owner: Option<LeaseId>) -> NewRun {
    let (workflow, version) = (WorkflowName::new("w").unwrap(), Version::new("1").unwrap());
    let owner = owner.map(|lease| Owner { lease, claim: ClaimId(1) });
    NewRun { owner, ..NewRun::new(run(id), workflow, version, Bytes::from_static(b"{}")) }
}

fn record(payload: impl Into<Bytes>) -> Record {
    Record {
        kind: 20,
        version: 1,
        key: Some(Key::new("step").unwrap()),
        at: Timestamp::EPOCH,
        meta: None,
        payload: Some(payload.into()),
    }
}

pub(crate) async fn register(store: &dyn Store) -> LeaseId {
    store.register(node(), Duration::from_secs(3_600)).await.unwrap().id
}

/// A run nobody owns, ready to be claimed.
pub(crate) async fn create_ready(store: &dyn Store, id: &str) {
    store.create(vec![new_run(id, None)]).await.remove(0).unwrap();
}

pub(crate) async fn create_owned(store: &dyn Store, id: &str, lease: LeaseId) -> Fence {
    match store.create(vec![new_run(id, Some(lease))]).await.remove(0).unwrap() {
        Created::Created { fence, .. } => fence,
        Created::Existing { .. } | Created::Joined { .. } => panic!("{id} is not new"),
    }
}

/// A run nobody owns and nothing woke.
pub(crate) async fn create_suspended(store: &dyn Store, id: &str, lease: LeaseId) {
    let fence = create_owned(store, id, lease).await;
    suspend(store, id, fence, 0).await.unwrap();
}

/// Appends an event and gives the run back.
pub(crate) async fn suspend(store: &dyn Store, id: &str, fence: Fence, at: u64) -> Result<Committed, CommitError> {
    let commit = Commit::new(run(id), fence, Index(at));
    let commit = Commit { events: vec![record("turn")], then: Then::Suspend, ..commit };
    store.commit(vec![commit]).await.remove(0)
}

pub(crate) async fn load(store: &dyn Store, id: &str) -> Result<Loaded, StoreError> {
    store.load(vec![Load { run: run(id), from: LoadFrom::Index(Index(0)) }]).await.remove(0)
}

pub(crate) fn claim(lease: LeaseId, id: u64, limit: usize) -> Claim {
    Claim { lease, id: ClaimId(id), limit, pick: Pick::Ready, serves: Serves::Everything }
}

/// The runs a claim of everything takes.
pub(crate) async fn claim_all(store: &dyn Store, lease: LeaseId, id: u64) -> Vec<RunKey> {
    store.claim(claim(lease, id, 256)).await.unwrap().into_iter().map(|claimed| claimed.run).collect()
}

pub(crate) fn signal(id: &str, delivery: &str) -> Delivery {
    let signal = Signal {
        name: SignalName::new("go").unwrap(),
        id: DeliveryId::new(delivery).unwrap(),
        payload: Bytes::from_static(b"null"),
        aimed: None,
    };
    Delivery::Signal { run: run(id), signal }
}
