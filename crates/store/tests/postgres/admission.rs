//! Two processes that admit at the same time, while others start and end runs: no limit is ever exceeded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outlast_core::commit::{Admission, Bound, Commit, Ending, Limit, NewRun, Single, Then};
use outlast_core::id::LimitKey;
use outlast_store::{Created, PostgresStore, Store};

use super::scene::{Schema, claim, new_run, record};

const RUNS: usize = 300;
const KEYS: usize = 5;
const MAX: u32 = 3;

fn keys(n: usize) -> [usize; 2] {
    [n % KEYS, (n / KEYS) % KEYS]
}

fn limited(n: usize) -> NewRun {
    let [one, two] = keys(n);
    let limit =
        |key: usize| Limit { key: LimitKey::new(format!("k{key}")).unwrap(), bound: Bound::Concurrency { max: MAX } };
    let mut limits = vec![limit(one)];
    limits.extend((one != two).then(|| limit(two)));
    let admission = Some(Box::new(Admission { limits, ..Admission::default() }));
    NewRun { admission, ..new_run(&format!("r{n}"), None) }
}

/// Who goes on under which key, as those who drive see it.
#[derive(Default)]
struct Witness {
    going: Mutex<BTreeMap<usize, usize>>,
    ended: AtomicUsize,
    all: AtomicBool,
}

impl Witness {
    fn enters(&self, n: usize) {
        let mut going = self.going.lock().unwrap();
        let [one, two] = keys(n);
        for key in std::collections::BTreeSet::from([one, two]) {
            let count = going.entry(key).or_default();
            *count += 1;
            assert!(*count <= MAX as usize, "{count} at once under k{key}");
        }
    }

    fn leaves(&self, n: usize) {
        let mut going = self.going.lock().unwrap();
        let [one, two] = keys(n);
        for key in std::collections::BTreeSet::from([one, two]) {
            *going.entry(key).or_default() -= 1;
        }
    }
}

async fn drive(store: Arc<PostgresStore>, witness: Arc<Witness>, driver: u64) {
    let lease = store
        .register(
            outlast_core::id::NodeId::new(format!("driver-{driver}")).unwrap(),
            std::time::Duration::from_secs(600),
        )
        .await
        .unwrap()
        .id;
    let mut id = driver << 32;
    while !witness.all.load(Ordering::SeqCst) {
        id += 1;
        for claimed in store.claim(claim(lease, id, 2)).await.unwrap() {
            let n = claimed.run.id.as_str()[1..].parse().unwrap();
            witness.enters(n);
            tokio::task::yield_now().await;
            // Before the end is durable: from then on another may begin.
            witness.leaves(n);
            let commit = Commit {
                events: vec![record("end")],
                then: Then::Finish(Ending::Completed),
                ..Commit::new(claimed.run.clone(), claimed.fence, claimed.next)
            };
            store.commit(vec![commit]).await.remove(0).unwrap();
            if witness.ended.fetch_add(1, Ordering::SeqCst) + 1 == RUNS {
                witness.all.store(true, Ordering::SeqCst);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_that_admit_at_once_exceed_no_limit_and_admit_everybody() {
    let schema = Schema::new();
    let stores = [Arc::new(schema.connect().await), Arc::new(schema.connect().await)];
    let witness = Arc::new(Witness::default());
    let mut tasks = Vec::new();
    for (at, store) in stores.iter().enumerate() {
        let (store, mine) = (Arc::clone(store), at);
        tasks.push(tokio::spawn(async move {
            for n in (0..RUNS).filter(|n| n % 2 == mine) {
                store.create(vec![limited(n)]).await.remove(0).unwrap();
            }
        }));
    }
    for (at, store) in stores.iter().cycle().take(4).enumerate() {
        tasks.push(tokio::spawn(drive(Arc::clone(store), Arc::clone(&witness), at as u64 + 1)));
    }
    for store in &stores {
        let (store, witness) = (Arc::clone(store), Arc::clone(&witness));
        tasks.push(tokio::spawn(async move {
            while !witness.all.load(Ordering::SeqCst) {
                store.admit(16).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(witness.ended.load(Ordering::SeqCst), RUNS);
    // Nothing of it is left; gates go within the hour.
    while stores[0].admit(256).await.unwrap().more {}
    let raw = schema.raw().await;
    for table in ["held", "slot", "gate WHERE used > 0"] {
        let left: i64 = raw.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0);
        assert_eq!(left, 0, "{table}");
    }
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_singleton_that_many_start_at_once_is_one_run_whatever_ends_meanwhile() {
    let schema = Schema::new();
    let stores = [Arc::new(schema.connect().await), Arc::new(schema.connect().await)];
    let live = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for starter in 0..6_usize {
        let (store, live) = (Arc::clone(&stores[starter % 2]), Arc::clone(&live));
        tasks.push(tokio::spawn(async move {
            for n in 0..25 {
                let single = Some(Single { key: LimitKey::new("k").unwrap(), replace: false, meta: None });
                let admission = Some(Box::new(Admission { single, ..Admission::default() }));
                let id = format!("s{starter}-{n}");
                let new = NewRun { admission, ..new_run(&id, None) };
                let Created::Created { .. } = store.create(vec![new]).await.remove(0).unwrap() else { continue };
                assert_eq!(live.fetch_add(1, Ordering::SeqCst), 0, "two live at once");
                let node = outlast_core::id::NodeId::new(format!("d{starter}-{n}")).unwrap();
                let lease = store.register(node, std::time::Duration::from_secs(60)).await.unwrap().id;
                let claimed = loop {
                    store.admit(256).await.unwrap();
                    let pick = outlast_store::Pick::Run(super::scene::run(&id));
                    let named = outlast_store::Claim { pick, ..claim(lease, 1, 1) };
                    if let Some(claimed) = store.claim(named).await.unwrap().pop() {
                        break claimed;
                    }
                };
                live.fetch_sub(1, Ordering::SeqCst);
                let commit = Commit {
                    events: vec![record("end")],
                    then: Then::Finish(Ending::Completed),
                    ..Commit::new(claimed.run.clone(), claimed.fence, claimed.next)
                };
                store.commit(vec![commit]).await.remove(0).unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    schema.end().await;
}
