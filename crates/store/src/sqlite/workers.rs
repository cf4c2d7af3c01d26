//! Workers and resumes, as operators see them.

use bytes::Bytes;
use outlast_core::id::{LeaseId, Namespace, NodeId, RunId, WorkerId};
use outlast_core::time::Timestamp;
use rusqlite::{Row, params};

use super::decode::{self, task_columns};
use super::error::bad_value;
use super::query::Query;
use super::rows::SqliteRows;
use crate::api::{HOLDS_MAX, KeyedReply, Resume, Sighting, WORKERS_MAX, WorkerView};
use crate::error::StoreError;
use crate::logic::{Halt, refuse, worker};
use crate::rows::{Fault, Rows};

/// The number of workers for all namespaces: no namespace has it.
const ALL: i64 = 0;

const SEE: &str = "INSERT INTO worker (ns, id, about, started, seen) VALUES (?1, ?2, ?3, ?4, ?4) \
     ON CONFLICT (ns, id) DO UPDATE SET about = excluded.about, seen = excluded.seen, \
     started = CASE WHEN ?5 THEN excluded.started ELSE started END";
const SEE_AGAIN: &str = "UPDATE worker SET seen = ?3 WHERE ns = ?1 AND id = ?2";
const FORGET: &str =
    "DELETE FROM worker WHERE (ns, id) IN (SELECT ns, id FROM worker WHERE seen <= ?1 ORDER BY seen LIMIT ?2)";
const LIST: &str = "SELECT ns, id, about, started, seen FROM worker WHERE ns IN (0, ?1) ORDER BY id, ns LIMIT ?2";
pub(super) const HOLDS: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM task INDEXED BY task_claim WHERE state = 1 AND worker = ?1 AND ns = ?2 ORDER BY id LIMIT ?3"
);
pub(super) const RESUMES: &str = "SELECT r.id, r.owner, l.node, r.ready_at FROM \
     (SELECT row FROM run INDEXED BY run_owned WHERE owner IS NOT NULL \
     UNION ALL SELECT row FROM run INDEXED BY run_ready WHERE ready_at IS NOT NULL AND owner IS NULL AND status < 3) k \
     CROSS JOIN run r ON r.row = k.row LEFT JOIN lease l ON l.id = r.owner \
     WHERE r.ns = ?1 AND r.id > ?2 ORDER BY r.id LIMIT ?3";

fn number_of(rows: &mut SqliteRows<'_>, namespace: Option<&Namespace>) -> Result<Option<i64>, Fault> {
    match namespace {
        Some(namespace) => Ok(rows.names.number(rows.connection, namespace)?),
        None => Ok(Some(ALL)),
    }
}

pub(super) fn see(rows: &mut SqliteRows<'_>, sighting: &Sighting) -> Result<(), Halt<StoreError>> {
    let Sighting { namespace, worker, about, arrived } = sighting;
    let Some(ns) = number_of(rows, namespace.as_ref())? else {
        let unknown = namespace.clone().unwrap_or_else(Namespace::default_namespace);
        return refuse(StoreError::UnknownNamespace(unknown));
    };
    let now = rows.now().as_millis();
    match about {
        Some(about) => rows.execute(SEE, params![ns, worker.as_str(), about.as_ref(), now, arrived])?,
        None => rows.execute(SEE_AGAIN, params![ns, worker.as_str(), now])?,
    };
    Ok(())
}

pub(super) fn forget_one(
    rows: &mut SqliteRows<'_>,
    namespace: Option<&Namespace>,
    worker: &WorkerId,
) -> Result<(), Halt<StoreError>> {
    if let Some(ns) = number_of(rows, namespace)? {
        rows.execute("DELETE FROM worker WHERE ns = ?1 AND id = ?2", params![ns, worker.as_str()])?;
    }
    Ok(())
}

/// How many were forgotten.
pub(super) fn forget(rows: &SqliteRows<'_>, now: Timestamp, limit: i64) -> Result<usize, Fault> {
    rows.execute(FORGET, params![worker::gone(now).as_millis(), limit])
}

const REPLY: &str = "SELECT reply FROM reply WHERE ns = ?1 AND key = ?2";
const KEEP_REPLY: &str = "INSERT INTO reply (ns, key, at, reply) VALUES (?1, ?2, ?3, ?4)";
const FORGET_REPLIES: &str =
    "DELETE FROM reply WHERE (ns, key) IN (SELECT ns, key FROM reply WHERE at <= ?1 ORDER BY at LIMIT ?2)";

pub(super) fn reply(rows: &mut SqliteRows<'_>, reply: &KeyedReply) -> Result<Option<Bytes>, Halt<StoreError>> {
    let KeyedReply { namespace, key, reply } = reply;
    let Some(ns) = number_of(rows, Some(namespace))? else {
        return refuse(StoreError::UnknownNamespace(namespace.clone()));
    };
    let kept = rows.one(REPLY, params![ns, key.as_str()], |row| row.get::<_, Vec<u8>>(0))?;
    if let (None, Some(reply)) = (&kept, reply) {
        let now = rows.now().as_millis();
        rows.execute(KEEP_REPLY, params![ns, key.as_str(), now, reply.as_ref()])?;
    }
    Ok(kept.map(Bytes::from))
}

/// How many were forgotten.
pub(super) fn forget_replies(rows: &SqliteRows<'_>, now: Timestamp, limit: i64) -> Result<usize, Fault> {
    rows.execute(FORGET_REPLIES, params![worker::gone(now).as_millis(), limit])
}

impl Query<'_> {
    pub(super) fn workers(&mut self, namespace: &Namespace) -> Result<Vec<WorkerView>, Fault> {
        let ns = self.names.number(self.connection, namespace)?.unwrap_or(ALL);
        let mut statement = self.connection.prepare_cached(LIST)?;
        let rows = statement.query_map(params![ns, signed(WORKERS_MAX)], |row| worker(row, namespace))?;
        let mut workers = rows.collect::<Result<Vec<_>, _>>()?;
        let mut statement = self.connection.prepare_cached(HOLDS)?;
        for worker in &mut workers {
            let held = params![worker.worker.as_str(), ns, signed(HOLDS_MAX)];
            let tasks =
                statement.query_map(held, |row| decode::task(row, namespace.clone()).map(|task| task.view()))?;
            worker.holds = tasks.collect::<Result<_, _>>()?;
        }
        Ok(workers)
    }

    pub(super) fn resumes(
        &mut self,
        namespace: &Namespace,
        after: Option<&RunId>,
        limit: usize,
    ) -> Result<Vec<Resume>, Fault> {
        let Some(ns) = self.names.number(self.connection, namespace)? else { return Ok(Vec::new()) };
        let after = after.map_or("", RunId::as_str);
        let mut statement = self.connection.prepare_cached(RESUMES)?;
        let resumes = statement.query_map(params![ns, after, signed(limit)], resume)?;
        Ok(resumes.collect::<Result<_, _>>()?)
    }
}

fn worker(row: &Row<'_>, namespace: &Namespace) -> rusqlite::Result<WorkerView> {
    Ok(WorkerView {
        namespace: (row.get::<_, i64>(0)? != ALL).then(|| namespace.clone()),
        worker: WorkerId::new(row.get::<_, String>(1)?).map_err(|error| bad_value("worker.id", error))?,
        about: Bytes::from(row.get::<_, Vec<u8>>(2)?),
        started: Timestamp::from_millis(row.get(3)?),
        seen: Timestamp::from_millis(row.get(4)?),
        holds: Vec::new(),
    })
}

fn resume(row: &Row<'_>) -> rusqlite::Result<Resume> {
    let node = |text: String| NodeId::new(text).map_err(|error| bad_value("lease.node", error));
    let node = row.get::<_, Option<String>>(2)?.map(node).transpose()?;
    let lease = row.get::<_, Option<i64>>(1)?.map(|lease| LeaseId(lease.unsigned_abs()));
    Ok(Resume {
        run: RunId::new(row.get::<_, String>(0)?).map_err(|error| bad_value("run.id", error))?,
        claimed: lease.map(|lease| (lease, node)),
        ready_since: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
    })
}

fn signed(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
