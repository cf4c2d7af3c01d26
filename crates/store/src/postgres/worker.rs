//! Workers and resumes, as operators see them.

use bytes::Bytes;
use outlast_core::id::{LeaseId, Namespace, NodeId, RunId, WorkerId};
use tokio_postgres::Row;

use super::Core;
use super::claim::is_ready;
use super::decode::{self, Detail, Fields, number, task_columns};
use super::session::{Param, Session};
use crate::api::{HOLDS_MAX, KeyedReply, Resume, Sighting, WORKERS_MAX, WorkerView};
use crate::error::StoreError;

/// The number of workers for all namespaces: no namespace has it.
const ALL: i32 = 0;

macro_rules! now {
    ($parameter:literal) => {
        concat!("coalesce($", $parameter, "::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)")
    };
}

pub(super) const SEE: &str = concat!(
    "INSERT INTO worker (ns, id, about, started, seen) SELECT $1::int, $2::text, $3::bytea, t.now, t.now FROM (SELECT ",
    now!("4"),
    ") t (now) ON CONFLICT (ns, id) DO UPDATE SET about = excluded.about, seen = excluded.seen, \
     started = CASE WHEN $5::boolean THEN excluded.started ELSE worker.started END"
);
const SEE_AGAIN: &str = concat!("UPDATE worker SET seen = ", now!("3"), " WHERE ns = $1 AND id = $2");
const FORGET: &str = "DELETE FROM worker WHERE ns = $1 AND id = $2";
/// Those that were seen last before $1.
pub(super) const FORGET_SILENT: &str = "DELETE FROM worker w USING (SELECT o.ns, o.id FROM worker o WHERE o.seen <= $1 \
     ORDER BY o.seen LIMIT $2 FOR UPDATE SKIP LOCKED) o WHERE w.ns = o.ns AND w.id = o.id RETURNING 1";
const LIST: &str = "SELECT ns, id, about, started, seen FROM worker WHERE ns IN (0, $1) ORDER BY id, ns LIMIT $2";
/// What each of some workers holds.
pub(super) const HOLDS: &str = concat!(
    "SELECT t.* FROM unnest($1::text[]) k (worker) CROSS JOIN LATERAL (SELECT ",
    task_columns!(),
    " FROM task t WHERE t.worker = k.worker AND t.state + 0 = 1 AND t.ns + 0 = $2 ORDER BY t.id LIMIT $3) t"
);
const RESUMES: &str = concat!(
    "SELECT r.id, r.owner, l.node, r.ready_at FROM (SELECT r.seq FROM run r WHERE r.owner IS NOT NULL \
     UNION ALL SELECT r.seq FROM run r WHERE ",
    is_ready!(),
    ") k JOIN run r ON r.seq = k.seq LEFT JOIN lease l ON l.id = r.owner \
     WHERE r.ns + 0 = $1 AND r.id > $2 ORDER BY r.id LIMIT $3"
);

async fn number_of(
    core: &Core,
    session: &mut Session,
    namespace: Option<&Namespace>,
) -> Result<Option<i32>, StoreError> {
    let Some(namespace) = namespace else { return Ok(Some(ALL)) };
    core.namespaces.learn(session, [namespace]).await?;
    Ok(core.namespaces.id(namespace))
}

pub(super) async fn see(core: &Core, sighting: &Sighting) -> Result<(), StoreError> {
    let Sighting { namespace, worker, about, arrived } = sighting;
    let mut session = Session::begin(&core.pool).await?;
    let Some(ns) = number_of(core, &mut session, namespace.as_ref()).await? else {
        return Err(StoreError::UnknownNamespace(namespace.clone().unwrap_or_else(Namespace::default_namespace)));
    };
    let (id, now) = (worker.as_str(), core.manual_now());
    match about.as_deref() {
        Some(about) => {
            let params: Vec<Param<'_>> =
                vec![Box::new(ns), Box::new(id), Box::new(about), Box::new(now), Box::new(*arrived)];
            session.ask(SEE, params).await?
        }
        None => session.ask(SEE_AGAIN, vec![Box::new(ns), Box::new(id), Box::new(now)]).await?,
    };
    Ok(())
}

pub(super) async fn forget(core: &Core, namespace: Option<&Namespace>, worker: &WorkerId) -> Result<(), StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    if let Some(ns) = number_of(core, &mut session, namespace).await? {
        session.ask(FORGET, vec![Box::new(ns), Box::new(worker.as_str())]).await?;
    }
    Ok(())
}

const REPLY: &str = "SELECT reply FROM reply WHERE ns = $1 AND key = $2";
const KEEP_REPLY: &str = concat!(
    "INSERT INTO reply (ns, key, at, reply) SELECT $1::int, $2::text, ",
    now!("4"),
    ", $3::bytea ON CONFLICT (ns, key) DO NOTHING RETURNING 1"
);
/// Those that were given before $1.
pub(super) const FORGET_REPLIES: &str = "DELETE FROM reply w USING (SELECT o.ns, o.key FROM reply o WHERE o.at <= $1 \
     ORDER BY o.at LIMIT $2 FOR UPDATE SKIP LOCKED) o WHERE w.ns = o.ns AND w.key = o.key RETURNING 1";

pub(super) async fn reply(core: &Core, reply: &KeyedReply) -> Result<Option<Bytes>, StoreError> {
    let KeyedReply { namespace, key, reply } = reply;
    let mut session = Session::begin(&core.pool).await?;
    let Some(ns) = number_of(core, &mut session, Some(namespace)).await? else {
        return Err(StoreError::UnknownNamespace(namespace.clone()));
    };
    if let Some(reply) = reply.as_deref() {
        let params: Vec<Param<'_>> =
            vec![Box::new(ns), Box::new(key.as_str()), Box::new(reply), Box::new(core.manual_now())];
        if !session.ask(KEEP_REPLY, params).await?.is_empty() {
            return Ok(None);
        }
    }
    let rows = session.ask(REPLY, vec![Box::new(ns), Box::new(key.as_str())]).await?;
    let read = |row: &Row| row.try_get::<_, Vec<u8>>(0).map(Bytes::from);
    let corrupt = |error: tokio_postgres::Error| StoreError::corrupt("the table of replies", error.to_string());
    rows.first().map(read).transpose().map_err(corrupt)
}

pub(super) async fn list(core: &Core, namespace: &Namespace) -> Result<Vec<WorkerView>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let ns = number_of(core, &mut session, Some(namespace)).await?.unwrap_or(ALL);
    let rows = session.ask(LIST, vec![Box::new(ns), Box::new(number(WORKERS_MAX as u64))]).await?;
    let mut workers = rows.iter().map(|row| worker(row, namespace)).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<String> = workers.iter().map(|worker| worker.worker.to_string()).collect();
    let params: Vec<Param<'_>> = vec![Box::new(ids), Box::new(ns), Box::new(number(HOLDS_MAX as u64))];
    for row in &session.ask(HOLDS, params).await? {
        let task = decode::task(&mut Fields::from(row, 0), &core.namespaces)
            .map_err(|detail| StoreError::corrupt("the table of tasks", detail))?;
        // A name may be there twice: for all namespaces, and for this one.
        for worker in workers.iter_mut().filter(|worker| task.worker.as_ref() == Some(&worker.worker)) {
            if worker.holds.iter().all(|held| held.id != task.id) {
                worker.holds.push(task.view());
            }
        }
    }
    Ok(workers)
}

fn worker(row: &Row, namespace: &Namespace) -> Result<WorkerView, StoreError> {
    let mut fields = Fields::from(row, 0);
    let mut read = || -> Result<WorkerView, Detail> {
        let ns: i32 = fields.next()?;
        Ok(WorkerView {
            namespace: (ns != ALL).then(|| namespace.clone()),
            worker: fields.id()?,
            about: fields.bytes()?,
            started: fields.time()?,
            seen: fields.time()?,
            holds: Vec::new(),
        })
    };
    read().map_err(|detail| StoreError::corrupt("the table of workers", detail))
}

pub(super) async fn resumes(
    core: &Core,
    namespace: &Namespace,
    after: Option<&RunId>,
    limit: usize,
) -> Result<Vec<Resume>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let Some(ns) = number_of(core, &mut session, Some(namespace)).await? else { return Ok(Vec::new()) };
    let after = after.map_or("", RunId::as_str);
    let rows = session.ask(RESUMES, vec![Box::new(ns), Box::new(after), Box::new(number(limit as u64))]).await?;
    rows.iter().map(resume).collect()
}

fn resume(row: &Row) -> Result<Resume, StoreError> {
    let mut fields = Fields::from(row, 0);
    let mut read = || -> Result<Resume, Detail> {
        let run = fields.id()?;
        let lease: Option<i64> = fields.next()?;
        let node: Option<NodeId> = fields.id_or_none()?;
        let claimed = lease.map(|lease| (LeaseId(lease.unsigned_abs()), node));
        Ok(Resume { run, claimed, ready_since: fields.time_or_none()? })
    };
    read().map_err(|detail| StoreError::corrupt("the table of runs", detail))
}
