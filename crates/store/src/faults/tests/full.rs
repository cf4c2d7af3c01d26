//! A full disk: whoever only reads is answered.

use std::collections::BTreeSet;

use outlast_core::id::{Revision, TaskId, WorkflowName};

use super::super::course::READS;
use super::*;
use crate::{DefinitionFilter, Excerpt, Filter, Load, LoadFrom, TaskFilter};

/// Calls that change something.
const WRITES: [&str; 32] = [
    "register",
    "renew",
    "retire",
    "create",
    "claim",
    "take",
    "commit",
    "transact",
    "release",
    "unpark",
    "announce",
    "park_unserved",
    "deliver",
    "enqueue",
    "claim_tasks",
    "heartbeat",
    "retry_task",
    "discard_task",
    "see_worker",
    "forget_worker",
    "reply",
    "define",
    "forget_definition",
    "wake",
    "sweep",
    "admit",
    "put_schedule",
    "remove_schedule",
    "fire",
    "put_namespace",
    "delete",
    "retain",
];

/// The names of all calls that are passed on.
fn calls() -> BTreeSet<&'static str> {
    let text = include_str!("../calls.rs");
    let by_macro = text.lines().filter_map(|line| line.split_once("pass!(self, ")?.1.split_once(", "));
    let by_macro = by_macro.filter_map(|(_, call)| call.split('(').next());
    let by_name = text.lines().filter_map(|line| line.split_once("self.pass(\"")?.1.split('"').next());
    by_macro.chain(by_name).collect()
}

#[test]
fn every_call_reads_or_writes() {
    let known: BTreeSet<&str> = READS.into_iter().chain(WRITES).collect();
    assert_eq!(known.len(), READS.len() + WRITES.len(), "none is both");
    assert_eq!(calls(), known);
}

#[test]
fn every_read_passes_on_a_full_disk() {
    block_on(async {
        let inner = memory();
        let held = held(&*inner, "a").await;
        let home = Namespace::default_namespace();
        let store = FaultStore::counting(inner);
        store.set_full(true);
        let mut full: Vec<&str> = Vec::new();
        let mut look = |call: &'static str, error: Option<StoreError>| {
            if error.is_some_and(|error| trouble(&error) == Some(Trouble::DiskFull)) {
                full.push(call);
            }
        };
        look("leases", store.leases().await.err());
        look("wakes", store.wakes(LeaseId(1), 9).await.err());
        let load = Load { run: held.clone(), from: LoadFrom::Index(Index(0)) };
        look("load", store.load(vec![load]).await.remove(0).err());
        look("resolve", store.resolve(TxnId(uuid::Uuid::nil())).await.err());
        look("task", store.task(home.clone(), TaskId::new("t").unwrap()).await.err());
        look("tasks", store.tasks(TaskFilter::all(home.clone())).await.err());
        look("outlook", store.outlook(Vec::new()).await.err());
        look("depths", store.depths().await.err());
        look("schedules", store.schedules(home.clone(), None).await.err());
        look("due_schedules", store.due_schedules(None, 9).await.err());
        look("namespaces", store.namespaces().await.err());
        look("secret", store.secret().await.err());
        look("get", store.get(held.clone()).await.err());
        look("list", store.list(Filter::all(home.clone())).await.err());
        let w = WorkflowName::new("w").unwrap();
        look("definition", store.definition(home.clone(), w, None).await.err());
        look("definitions", store.definitions(DefinitionFilter::since(Revision(0))).await.err());
        look("workers", store.workers(home.clone()).await.err());
        look("resumes", store.resumes(home.clone(), None, 9).await.err());
        look("count", store.count(home).await.err());
        look("held", Store::held(&store, held.clone()).await.err());
        look("awaiting", store.awaiting(held.clone()).await.err());
        let excerpt = Excerpt { run: held.clone(), generation: None, from: Index(0), limit: 9 };
        look("excerpt", store.excerpt(excerpt).await.err());
        look("attributes", store.attributes(held).await.err());
        assert_eq!(full, [""; 0]);
        let asked: BTreeSet<&str> = store.log().into_iter().collect();
        assert_eq!(asked, READS.into_iter().collect(), "each was asked");
    });
}
