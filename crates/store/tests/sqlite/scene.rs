//! A store on a file in a folder of its own, and the few requests the stories need.

use std::path::PathBuf;
use std::time::Duration;

use outlast_core::Bytes;
use outlast_core::commit::{Commit, Delivery, Ending, NewRun, Owner, Signal, Then};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Index, Key, LeaseId, Namespace, NodeId, RunId, RunKey, SignalName, Version,
    WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{
    Claim, CommitError, Committed, Created, Load, LoadFrom, Loaded, Pick, Serves, SqliteOptions, SqliteStore, Store,
    StoreError,
};

pub(crate) struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("test.db")
    }

    pub(crate) async fn open(&self, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(self.file(), options).await
    }
}

pub(crate) fn run(id: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(id).unwrap())
}

pub(crate) fn new_run(id: &str, owner: Option<LeaseId>) -> NewRun {
    let (workflow, version) = (WorkflowName::new("w").unwrap(), Version::new("1").unwrap());
    let owner = owner.map(|lease| Owner { lease, claim: ClaimId(1) });
    NewRun { owner, ..NewRun::new(run(id), workflow, version, Bytes::from_static(b"{}")) }
}

pub(crate) fn record(payload: impl Into<Bytes>) -> Record {
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
    store.register(NodeId::new("node").unwrap(), Duration::from_secs(3_600)).await.unwrap().id
}

pub(crate) async fn create_owned(store: &dyn Store, id: &str, lease: LeaseId) -> Fence {
    match store.create(vec![new_run(id, Some(lease))]).await.remove(0).unwrap() {
        Created::Created { fence, .. } => fence,
        Created::Existing { .. } | Created::Joined { .. } => panic!("{id} is not new"),
    }
}

pub(crate) async fn append(
    store: &dyn Store,
    id: &str,
    fence: Fence,
    at: u64,
    payload: impl Into<Bytes>,
) -> Result<Committed, CommitError> {
    let mut commit = Commit::new(run(id), fence, Index(at));
    commit.events = vec![record(payload)];
    store.commit(vec![commit]).await.remove(0)
}

pub(crate) async fn finish(store: &dyn Store, id: &str, fence: Fence, at: u64) -> Result<Committed, CommitError> {
    let commit = Commit { then: Then::Finish(Ending::Completed), ..Commit::new(run(id), fence, Index(at)) };
    store.commit(vec![commit]).await.remove(0)
}

pub(crate) async fn load(store: &dyn Store, id: &str) -> Result<Loaded, StoreError> {
    store.load(vec![Load { run: run(id), from: LoadFrom::Index(Index(0)) }]).await.remove(0)
}

pub(crate) fn claim(lease: LeaseId, id: u64, limit: usize) -> Claim {
    Claim { lease, id: ClaimId(id), limit, pick: Pick::Ready, serves: Serves::Everything }
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
