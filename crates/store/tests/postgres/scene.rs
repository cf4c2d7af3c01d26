//! A schema of its own for every story, and the few requests the stories need.

use std::time::Duration;

use outlast_core::Bytes;
use outlast_core::commit::{Commit, Delivery, NewRun, Owner, Signal};
use outlast_core::id::{
    ClaimId, DeliveryId, Fence, Index, Key, LeaseId, Namespace, NodeId, RunId, RunKey, SignalName, Version,
    WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{
    Claim, CommitError, Committed, Created, Load, LoadFrom, Loaded, Pick, PostgresOptions, PostgresStore, Serves,
    Store, StoreError,
};
use tokio_postgres::{Client, NoTls};

/// Longer than anything here takes; a story that needs it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn url() -> String {
    match std::env::var("OUTLAST_TEST_POSTGRES") {
        Ok(url) if !url.is_empty() => url,
        _ => panic!("run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES"),
    }
}

/// A session of our own, past every store.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A schema, and a name by which the sessions of its stores can be told from others.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Schema {
    pub(crate) fn new() -> Schema {
        Schema::at(&url())
    }

    pub(crate) fn at(url: &str) -> Schema {
        let name = format!("story_{}", uuid::Uuid::new_v4().simple());
        let separator = if url.contains('?') { '&' } else { '?' };
        Schema { url: format!("{url}{separator}application_name={name}"), name }
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions { schema: Some(self.name.clone()), ..PostgresOptions::default() }
    }

    pub(crate) async fn connect(&self) -> PostgresStore {
        PostgresStore::connect(&self.url, self.options()).await.unwrap()
    }

    /// A session that sees the schema's tables.
    pub(crate) async fn raw(&self) -> Client {
        let client = client(&url_without_name(&self.url)).await;
        client.batch_execute(&format!("SET search_path TO {}", self.name)).await.unwrap();
        client
    }

    /// Waits until so many sessions of the schema's stores wait for a lock.
    pub(crate) async fn blocked(&self, sessions: i64) {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
        self.until(sql, sessions).await;
    }

    /// Waits until a count over the schema's sessions is what it should be.
    pub(crate) async fn until(&self, sql: &str, expected: i64) {
        let client = self.raw().await;
        let counted = async {
            while client.query_one(sql, &[&self.name]).await.unwrap().get::<_, i64>(0) != expected {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, counted).await.unwrap_or_else(|_| panic!("never {expected}: {sql}"));
    }

    pub(crate) async fn end(self) {
        let client = client(&url_without_name(&self.url)).await;
        // Whoever asked questions in SQL left a role behind, which belongs to the server.
        let role = "SELECT rolname::text FROM pg_roles WHERE rolname = (SELECT format('outlast_sql_%s_%s', d.oid, n.oid) \
             FROM pg_database d, pg_namespace n WHERE d.datname = current_database() AND n.nspname = $1)";
        let role = client.query_opt(role, &[&self.name]).await.unwrap().map(|row| row.get::<_, String>(0));
        client.batch_execute(&format!("DROP SCHEMA {} CASCADE", self.name)).await.unwrap();
        if let Some(role) = role {
            client.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
        }
    }
}

/// Another database of the server: its settings, and what its sessions hold, are its own.
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) url: String,
}

impl Database {
    pub(crate) async fn create() -> Database {
        let (name, server) = (format!("story_{}", uuid::Uuid::new_v4().simple()), url());
        client(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (path, settings) = server.split_once('?').unwrap_or((&server, ""));
        let (host, _) = path.rsplit_once('/').unwrap();
        Database { url: format!("{host}/{name}?{settings}").trim_end_matches('?').to_owned(), name }
    }

    pub(crate) async fn end(self) {
        let client = client(&url()).await;
        let roles = "SELECT r.rolname::text FROM pg_roles r, pg_database d \
             WHERE d.datname = $1 AND starts_with(r.rolname, format('outlast_sql_%s_', d.oid))";
        let roles = client.query(roles, &[&self.name]).await.unwrap();
        client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await.unwrap();
        for role in roles {
            client.batch_execute(&format!("DROP ROLE {}", role.get::<_, String>(0))).await.unwrap();
        }
    }
}

fn url_without_name(url: &str) -> String {
    url.replace("application_name=story_", "application_name=raw_")
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

pub(crate) async fn load(store: &dyn Store, id: &str) -> Result<Loaded, StoreError> {
    store.load(vec![Load { run: run(id), from: LoadFrom::Index(Index(0)) }]).await.remove(0)
}

/// How long the journal is.
pub(crate) async fn events(store: &dyn Store, id: &str) -> usize {
    load(store, id).await.unwrap().events.len()
}

pub(crate) fn claim(lease: LeaseId, id: u64, limit: usize) -> Claim {
    Claim { lease, id: ClaimId(id), limit, pick: Pick::Ready, serves: Serves::Everything }
}

pub(crate) async fn claim_ids(store: &dyn Store, claim: Claim) -> Vec<String> {
    store.claim(claim).await.unwrap().into_iter().map(|claimed| claimed.run.id.to_string()).collect()
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
