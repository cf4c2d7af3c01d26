//! The same work through the store contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outlast_core::Bytes;
use outlast_core::commit::{Commit, NewRun, Owner, Signal, Then};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Index, Key, LeaseId, Namespace, NodeId, RunId, RunKey, SignalName, Version,
    WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Claim, Created, Load, LoadFrom, Pick, Serves, Store};

use super::report::Claims;

/// About a hundred bytes, as in every figure of the project.
pub(crate) const PAYLOAD: &[u8] = &[b'x'; 100];

/// Long enough that no lease lapses in a benchmark.
const LEASE: Duration = Duration::from_secs(3_600);
/// Runs created per call.
const BATCH: usize = 1_000;
/// Claims measured on each side.
const CLAIMS: usize = 301;

fn key(id: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(id).unwrap())
}

fn new_run(run: RunKey, lease: LeaseId) -> NewRun {
    let (workflow, version) = (WorkflowName::new("bench").unwrap(), Version::new("1").unwrap());
    let owner = Some(Owner { lease, claim: ClaimId(1) });
    NewRun { owner, ..NewRun::new(run, workflow, version, Bytes::from_static(b"{}")) }
}

fn record() -> Record {
    Record {
        kind: 20,
        version: 1,
        key: Some(Key::new("step").unwrap()),
        at: Timestamp::from_millis(1_700_000_000_000),
        meta: None,
        payload: Some(Bytes::from_static(PAYLOAD)),
    }
}

async fn lease(store: &dyn Store) -> LeaseId {
    store.register(NodeId::new("bench").unwrap(), LEASE).await.unwrap().id
}

async fn create(store: &dyn Store, runs: Vec<NewRun>) -> Vec<Fence> {
    let created = store.create(runs).await;
    created
        .into_iter()
        .map(|created| match created.unwrap() {
            Created::Created { fence, .. } => fence,
            Created::Existing { .. } | Created::Joined { .. } => panic!("the run is not new"),
        })
        .collect()
}

/// Owned runs, each with its own committer.
pub(crate) struct Committers {
    store: Arc<dyn Store>,
    runs: Vec<(RunKey, Fence, Arc<AtomicU64>)>,
}

impl Committers {
    pub(crate) async fn prepare(store: Arc<dyn Store>, runs: usize) -> Committers {
        let lease = lease(&*store).await;
        let keys: Vec<RunKey> = (0..runs).map(|run| key(&format!("run-{run}"))).collect();
        let fences = create(&*store, keys.iter().cloned().map(|run| new_run(run, lease)).collect()).await;
        let runs = keys.into_iter().zip(fences).map(|(run, fence)| (run, fence, Arc::default())).collect();
        Committers { store, runs }
    }

    /// Acknowledged commits of one event per second, by so many committers at once.
    pub(crate) async fn commits_per_second(&self, committers: usize, sample: Duration) -> f64 {
        let begun = Instant::now();
        let mut tasks = Vec::new();
        for (run, fence, next) in self.runs.iter().take(committers) {
            let (store, run, fence, next) = (self.store.clone(), run.clone(), *fence, next.clone());
            tasks.push(tokio::spawn(async move {
                let mut commits = 0_u64;
                while begun.elapsed() < sample {
                    let mut commit = Commit::new(run.clone(), fence, Index(next.load(Ordering::Relaxed)));
                    commit.events = vec![record()];
                    let committed = store.commit(vec![commit]).await.remove(0).unwrap();
                    next.store(committed.next.0, Ordering::Relaxed);
                    commits += 1;
                }
                commits
            }));
        }
        let mut commits = 0;
        for task in tasks {
            commits += task.await.unwrap();
        }
        commits as f64 / begun.elapsed().as_secs_f64()
    }
}

/// Creates `count` runs that wait, as they would for a signal.
async fn waiting(store: &dyn Store, lease: LeaseId, count: usize) {
    for batch in 0..count.div_ceil(BATCH) {
        let names = (batch * BATCH..count.min((batch + 1) * BATCH)).map(|run| key(&format!("wait-{run}")));
        let keys: Vec<RunKey> = names.collect();
        let fences = create(store, keys.iter().cloned().map(|run| new_run(run, lease)).collect()).await;
        let suspend = |(run, fence)| Commit { then: Then::Suspend, ..Commit::new(run, fence, Index(0)) };
        for committed in store.commit(keys.into_iter().zip(fences).map(suspend).collect()).await {
            committed.unwrap();
        }
    }
}

/// Microseconds to claim the one woken run among few and among many waiting ones, taking turns.
pub(crate) async fn claim_samples(few: Arc<dyn Store>, many: Arc<dyn Store>, count: usize) -> Claims {
    let leases = [lease(&*few).await, lease(&*many).await];
    waiting(&*few, leases[0], 1_000).await;
    waiting(&*many, leases[1], count).await;
    let mut claims = Claims::default();
    for sample in 0..CLAIMS {
        claims.few.push(claim_one(&*few, leases[0], sample, 1_000).await);
        claims.many.push(claim_one(&*many, leases[1], sample, count).await);
    }
    claims
}

async fn claim_one(store: &dyn Store, lease: LeaseId, sample: usize, count: usize) -> f64 {
    let run = key(&format!("wait-{}", sample * 7_919 % count));
    let signal = Signal {
        name: SignalName::new("go").unwrap(),
        id: DeliveryId::new(format!("go-{sample}")).unwrap(),
        payload: Bytes::from_static(b"null"),
        aimed: None,
    };
    let delivery = outlast_core::commit::Delivery::Signal { run, signal };
    store.deliver(vec![delivery]).await.remove(0).unwrap();
    let id = ClaimId(10 + sample as u64);
    let claim = Claim { lease, id, limit: 1, pick: Pick::Ready, serves: Serves::Everything };
    let begun = Instant::now();
    let claimed = store.claim(claim).await.unwrap();
    let took = begun.elapsed().as_secs_f64() * 1_000_000.0;
    let [claimed] = claimed.as_slice() else { panic!("one run is ready, {} were claimed", claimed.len()) };
    let suspend = Commit { then: Then::Suspend, ..Commit::new(claimed.run.clone(), claimed.fence, claimed.next) };
    store.commit(vec![suspend]).await.remove(0).unwrap();
    took
}

/// A run with so many events.
pub(crate) async fn journal_of(store: &dyn Store, events: usize) -> RunKey {
    let (lease, run) = (lease(store).await, key("long"));
    let fence = create(store, vec![new_run(run.clone(), lease)]).await[0];
    let commit = Commit { events: vec![record(); events], ..Commit::new(run.clone(), fence, Index(0)) };
    store.commit(vec![commit]).await.remove(0).unwrap();
    run
}

/// Milliseconds to load it.
pub(crate) async fn load(store: &dyn Store, run: &RunKey, events: usize) -> f64 {
    let load = Load { run: run.clone(), from: LoadFrom::Index(Index(0)) };
    let begun = Instant::now();
    let loaded = store.load(vec![load]).await.remove(0).unwrap();
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    assert_eq!(loaded.events.len(), events);
    took
}
