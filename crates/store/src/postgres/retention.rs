//! Deleting what has ended, in bounded steps: marked first, then its rows, last the tombstone. A crash between any two
//! steps leaves a state the next call continues from.

use std::time::Duration;

use outlast_core::id::RunKey;
use outlast_core::limits::TOMBSTONE_DAYS;
use outlast_core::time::millis;
use tokio_postgres::Row;

use super::decode::{self, Fields, number, run_columns};
use super::failure::Failure;
use super::session::{CLOCK, Param, Session, Step};
use super::worker::{FORGET_REPLIES, FORGET_SILENT};
use super::{Core, transact};
use crate::api::{Retained, Retention};
use crate::error::StoreError;
use crate::logic::DELETION;
use crate::logic::worker::gone;

const LOCK: &str = concat!("SELECT ", run_columns!(), " FROM run r WHERE r.ns = $1 AND r.id = $2 FOR UPDATE");
const LIVE_MEMBER: &str = "SELECT id FROM run WHERE root = $2 AND ns + 0 = $1 AND deleted_at IS NULL \
     AND status + 0 < 5 ORDER BY id LIMIT 1";
const MARK: &str = "UPDATE run SET deleted_at = $2, note = $3, side = true WHERE seq = $1";

/// Trees all of which ended before the cutoff, by their tops.
const DOOM_RIPE: &str = "UPDATE run r SET deleted_at = $1, note = NULL, side = true FROM (SELECT t.seq FROM run t \
     WHERE t.root IS NULL AND t.finished_at IS NOT NULL AND t.deleted_at IS NULL AND t.finished_at <= $2 \
     AND NOT EXISTS (SELECT 1 FROM run m WHERE m.root = t.id AND m.ns + 0 = t.ns \
     AND m.deleted_at IS NULL AND (m.finished_at IS NULL OR m.finished_at > $2)) \
     ORDER BY t.finished_at, t.seq LIMIT $3 FOR UPDATE OF t SKIP LOCKED) k \
     WHERE r.seq = k.seq RETURNING r.seq";
/// Members follow their top while its own rows are still to be removed.
const DOOM_MEMBERS: &str = "UPDATE run r SET deleted_at = $1, note = NULL, side = true FROM (SELECT m.seq FROM run t \
     JOIN run m ON m.root = t.id AND m.ns + 0 = t.ns AND m.deleted_at IS NULL \
     WHERE t.deleted_at IS NOT NULL AND t.side LIMIT $2 FOR UPDATE OF m SKIP LOCKED) k \
     WHERE r.seq = k.seq RETURNING r.seq";
/// Deleted runs whose rows are still there. A top waits for its members to be marked.
const DOOMED: &str = "SELECT r.ns, r.seq FROM run r WHERE r.deleted_at IS NOT NULL AND r.side \
     AND NOT EXISTS (SELECT 1 FROM run m WHERE m.root = r.id AND m.ns + 0 = r.ns \
     AND m.deleted_at IS NULL) ORDER BY r.deleted_at, r.seq LIMIT $1 FOR UPDATE OF r SKIP LOCKED";
const PURGED: &str = "UPDATE run r SET side = false FROM unnest($1::bigint[]) k (seq) WHERE r.seq = k.seq";
const FORGET: &str = "DELETE FROM run r USING (SELECT t.seq FROM run t WHERE t.deleted_at IS NOT NULL \
     AND t.deleted_at <= $1 AND NOT t.side ORDER BY t.deleted_at, t.seq LIMIT $2 FOR UPDATE SKIP LOCKED) k \
     WHERE r.seq = k.seq RETURNING r.seq";
/// Leases that ended a month ago and own nothing.
const FORGET_LEASES: &str = "DELETE FROM lease WHERE id IN (SELECT l.id FROM lease l WHERE l.until <= $1 \
     AND NOT EXISTS (SELECT 1 FROM run r WHERE r.owner = l.id) ORDER BY l.id LIMIT $2 FOR UPDATE SKIP LOCKED)";

/// Idempotency windows that are over.
const FORGET_WINDOWS: &str = "DELETE FROM start_key s USING (SELECT w.ns, w.kind, w.key FROM start_key w \
     WHERE w.kind = 0 AND w.until <= $1 ORDER BY w.until LIMIT $2 FOR UPDATE SKIP LOCKED) k \
     WHERE s.ns = k.ns AND s.kind = k.kind AND s.key = k.key RETURNING 1";

macro_rules! purge {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " d USING (SELECT c.ctid AS at FROM unnest($1::int[], $2::bigint[]) k (ns, run) JOIN ",
            $table,
            " c ON c.ns = k.ns AND c.run = k.run LIMIT $3) c WHERE d.ctid = c.at RETURNING 1"
        )
    };
}

/// Everything that belongs to a run, the largest first.
const PURGE: [&str; 8] = [
    purge!("event"),
    purge!("run_input"),
    purge!("delivered"),
    purge!("inbox"),
    purge!("wait"),
    purge!("timer"),
    purge!("snapshot"),
    purge!("attribute"),
];

/// Dead tasks of deleted runs.
pub(super) const BURY_OF: &str = "DELETE FROM task d USING (SELECT t.ns, t.id FROM unnest($1::bigint[]) k (seq) \
     JOIN run r ON r.seq = k.seq JOIN task t ON t.origin = r.id AND t.ns + 0 = r.ns AND t.state = 2 LIMIT $2 FOR UPDATE OF t) t \
     WHERE d.ns = ANY(ARRAY[t.ns]) AND d.id = t.id RETURNING 1";
/// Tasks that died before, the longest dead first.
pub(super) const BURY_OLD: &str = "DELETE FROM task d USING (SELECT t.ns, t.id FROM task t WHERE t.state = 2 AND t.died_at <= $1 \
     ORDER BY t.died_at LIMIT $2 FOR UPDATE SKIP LOCKED) t WHERE d.ns = ANY(ARRAY[t.ns]) AND d.id = t.id RETURNING 1";

/// Deleted runs whose rows go in one transaction.
const DOOMED_MAX: usize = 256;
/// How long a lease that ended is remembered.
const LEASE_MEMORY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(super) async fn delete(core: &Core, key: &RunKey, reason: &str) -> Result<(), StoreError> {
    core.limits.check_text(DELETION, reason)?;
    transact!(core, |session| try_delete(core, session, key, reason))
}

async fn try_delete(core: &Core, session: &mut Session, key: &RunKey, reason: &str) -> Result<(), Failure> {
    core.namespaces.learn(session, [&key.namespace]).await?;
    let not_found = || Failure::from(StoreError::NotFound(key.clone()));
    let ns = core.namespaces.id(&key.namespace).ok_or_else(not_found)?;
    let id = key.id.as_str();
    let steps = [
        Step::Plain("BEGIN"),
        Step::new(LOCK, vec![Box::new(ns), Box::new(id)]),
        Step::new(LIVE_MEMBER, vec![Box::new(ns), Box::new(id)]),
        Step::new(CLOCK, Vec::new()),
    ];
    let answers = session.send_all(&steps).await?;
    let first = |at: usize| answers.get(at).and_then(|rows: &Vec<Row>| rows.first());
    let now = core.now(answers.last().map_or(&[], Vec::as_slice))?;
    let run = decode::run(first(1).ok_or_else(not_found)?, &core.namespaces).map_err(|damaged| damaged.error)?;
    if run.deleted_at.is_some() {
        return Err(run.deleted().into());
    }
    if !run.status.is_terminal() {
        return Err(StoreError::Live(key.clone()).into());
    }
    if let Some(member) = first(2) {
        let id = Fields::from(member, 0).id().map_err(|detail| StoreError::corrupt(key.to_string(), detail))?;
        return Err(StoreError::Live(RunKey::new(key.namespace.clone(), id)).into());
    }
    let params: Vec<Param<'_>> = vec![Box::new(run.row), Box::new(now.as_millis()), Box::new(reason)];
    session.commit(vec![Step::new(MARK, params)]).await?;
    Ok(())
}

pub(super) async fn retain(core: &Core, retention: Retention) -> Result<Retained, StoreError> {
    let marked: Result<usize, StoreError> = transact!(core, |session| mark(core, session, retention));
    let purged: Result<usize, StoreError> = transact!(core, |session| purge(session, retention.limit));
    let forgotten: Result<usize, StoreError> = transact!(core, |session| forget(core, session, retention));
    let (runs, rows) = (marked?, purged? + forgotten?);
    Ok(Retained { runs, rows, more: runs > 0 || rows > 0 })
}

/// From here on they answer that they were deleted.
async fn mark(core: &Core, session: &mut Session, retention: Retention) -> Result<usize, Failure> {
    let begin = [Step::Plain("BEGIN"), Step::new(CLOCK, Vec::new())];
    let answers = session.send_all(&begin).await?;
    let now = core.now(answers.last().map_or(&[], Vec::as_slice))?;
    let cutoff = now.as_millis().saturating_sub(millis(retention.age));
    let limit = number(retention.limit as u64);
    let steps = vec![
        Step::new(DOOM_RIPE, vec![Box::new(now.as_millis()), Box::new(cutoff), Box::new(limit)]),
        Step::new(DOOM_MEMBERS, vec![Box::new(now.as_millis()), Box::new(limit)]),
    ];
    Ok(session.commit(steps).await?.iter().map(Vec::len).sum())
}

/// Removes rows of deleted runs, at most `limit`.
async fn purge(session: &mut Session, limit: usize) -> Result<usize, Failure> {
    let doomed = number(limit.min(DOOMED_MAX) as u64);
    let begin = [Step::Plain("BEGIN"), Step::new(DOOMED, vec![Box::new(doomed)])];
    let rows = session.send_all(&begin).await?.pop().unwrap_or_default();
    if rows.is_empty() {
        return Ok(0);
    }
    let place = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
    let places: Vec<(i32, i64)> = rows.iter().map(place).collect::<Result<_, tokio_postgres::Error>>()?;
    let ns: Vec<i32> = places.iter().map(|(ns, _)| *ns).collect();
    let runs: Vec<i64> = places.iter().map(|(_, run)| *run).collect();
    let mut removed = 0;
    for table in PURGE {
        let left = number((limit - removed) as u64);
        let rows = session.ask(table, vec![Box::new(ns.clone()), Box::new(runs.clone()), Box::new(left)]).await?;
        removed += rows.len();
        if removed >= limit {
            session.commit(Vec::new()).await?;
            return Ok(removed);
        }
    }
    let left = limit - removed;
    let buried = session.ask(BURY_OF, vec![Box::new(runs.clone()), Box::new(number(left as u64))]).await?.len();
    if buried >= left {
        session.commit(Vec::new()).await?;
        return Ok(removed + buried);
    }
    session.commit(vec![Step::new(PURGED, vec![Box::new(runs)])]).await?;
    Ok(removed + buried + places.len())
}

/// Removes tombstones and dead tasks past their age, and windows that are over.
async fn forget(core: &Core, session: &mut Session, retention: Retention) -> Result<usize, Failure> {
    let answers = session.send_all(&[Step::Plain("BEGIN"), Step::new(CLOCK, Vec::new())]).await?;
    let now = core.now(answers.last().map_or(&[], Vec::as_slice))?;
    let before = |age: Duration| now.as_millis().saturating_sub(millis(age));
    let tombstones = before(Duration::from_secs(TOMBSTONE_DAYS * 24 * 60 * 60));
    let limit = number(retention.limit as u64);
    let steps = vec![
        Step::new(BURY_OLD, vec![Box::new(before(retention.age)), Box::new(limit)]),
        Step::new(FORGET, vec![Box::new(tombstones), Box::new(limit)]),
        Step::new(FORGET_WINDOWS, vec![Box::new(now.as_millis()), Box::new(limit)]),
        Step::new(FORGET_SILENT, vec![Box::new(gone(now).as_millis()), Box::new(limit)]),
        Step::new(FORGET_REPLIES, vec![Box::new(gone(now).as_millis()), Box::new(limit)]),
        Step::new(FORGET_LEASES, vec![Box::new(before(LEASE_MEMORY)), Box::new(limit)]),
    ];
    Ok(session.commit(steps).await?.iter().take(5).map(Vec::len).sum())
}
