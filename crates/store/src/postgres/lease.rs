//! Leases: every decision after the row is locked and the clock was read under the lock.

use std::time::Duration;

use outlast_core::id::{LeaseId, NodeId};
use outlast_core::time::Timestamp;

use super::decode::{Fields, number};
use super::failure::Failure;
use super::session::{CLOCK, Session, Step};
use super::{Core, transact};
use crate::api::Lease;
use crate::error::StoreError;
use crate::logic::claim::lapsed;

/// A lock on a table keeps writers away but not those who lock rows: it is waited for before the clock is read.
const LOCK_TABLES: &str = "LOCK TABLE node, lease IN ROW EXCLUSIVE MODE";
/// The node's row is locked whether it was there or not.
const LOCK_NODE: &str =
    "INSERT INTO node (name) VALUES ($1::text) ON CONFLICT (name) DO UPDATE SET name = excluded.name";
const LOCK_OLD: &str = "SELECT id FROM lease WHERE node = $1 ORDER BY id FOR UPDATE";
/// Ended for good, also if the clock steps back.
const END_OLD: &str = "UPDATE lease SET until = 0 WHERE node = $1";
const INSERT: &str = "INSERT INTO lease (node, until) VALUES ($1::text, $2) RETURNING id";
const LOCK: &str = "SELECT node, until FROM lease WHERE id = $1 FOR UPDATE";
const UPDATE: &str = "UPDATE lease SET until = $2, drained = false WHERE id = $1";

pub(super) async fn register(core: &Core, node: &NodeId, duration: Duration) -> Result<Lease, StoreError> {
    transact!(core, |session| try_register(core, session, node, duration))
}

async fn try_register(core: &Core, session: &mut Session, node: &NodeId, duration: Duration) -> Result<Lease, Failure> {
    let name = node.as_str();
    let locks = [
        Step::Plain("BEGIN"),
        Step::Plain(LOCK_TABLES),
        Step::new(LOCK_NODE, vec![Box::new(name)]),
        Step::new(LOCK_OLD, vec![Box::new(name)]),
        Step::new(CLOCK, Vec::new()),
    ];
    let answers = session.send_all(&locks).await?;
    let now = core.now(answers.last().map_or(&[], Vec::as_slice))?;
    let until = now + duration;
    let writes = vec![
        Step::new(END_OLD, vec![Box::new(name)]),
        Step::new(INSERT, vec![Box::new(name), Box::new(until.as_millis())]),
    ];
    let answers = session.commit(writes).await?;
    let id: i64 = match answers.last().and_then(|rows| rows.first()) {
        Some(row) => row.try_get(0)?,
        None => return Err(StoreError::corrupt("the table of leases", "a new lease has no id").into()),
    };
    Ok(Lease { id: LeaseId(u64::try_from(id).unwrap_or(0)), node: node.clone(), until, now })
}

/// A locked lease and the time it was locked at.
struct Locked {
    node: NodeId,
    until: Timestamp,
    now: Timestamp,
}

async fn lock(core: &Core, session: &mut Session, lease: LeaseId) -> Result<Option<Locked>, Failure> {
    let locks = [
        Step::Plain("BEGIN"),
        Step::Plain(LOCK_TABLES),
        Step::new(LOCK, vec![Box::new(number(lease.0))]),
        Step::new(CLOCK, Vec::new()),
    ];
    let answers = session.send_all(&locks).await?;
    let now = core.now(answers.last().map_or(&[], Vec::as_slice))?;
    let Some(row) = answers.get(2).and_then(|rows| rows.first()) else { return Ok(None) };
    let mut fields = Fields::from(row, 0);
    let damaged = |detail| StoreError::corrupt("the table of leases", detail);
    let node = fields.id().map_err(damaged)?;
    Ok(Some(Locked { node, until: fields.time().map_err(damaged)?, now }))
}

async fn set_until(session: &mut Session, lease: LeaseId, until: Timestamp) -> Result<(), Failure> {
    let params: Vec<super::session::Param<'_>> = vec![Box::new(number(lease.0)), Box::new(until.as_millis())];
    session.commit(vec![Step::new(UPDATE, params)]).await?;
    Ok(())
}

pub(super) async fn renew(core: &Core, lease: LeaseId, duration: Duration) -> Result<Lease, StoreError> {
    transact!(core, |session| try_renew(core, session, lease, duration))
}

async fn try_renew(core: &Core, session: &mut Session, lease: LeaseId, duration: Duration) -> Result<Lease, Failure> {
    let Some(found) = lock(core, session, lease).await? else {
        return Err(StoreError::LeaseLapsed { lease, until: Timestamp::EPOCH }.into());
    };
    if lapsed(found.until, found.now) {
        return Err(StoreError::LeaseLapsed { lease, until: found.until }.into());
    }
    let until = found.now + duration;
    set_until(session, lease, until).await?;
    Ok(Lease { id: lease, node: found.node, until, now: found.now })
}

/// Those that may still own something.
pub(super) const ALL: &str = "SELECT id, node, until, coalesce($1::bigint, \
     (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) FROM lease WHERE NOT drained ORDER BY id + 0";

pub(super) async fn all(core: &Core) -> Result<Vec<Lease>, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let rows = session.ask(ALL, vec![Box::new(core.manual_now())]).await?;
    rows.iter().map(|row| Ok(read(row)?)).collect()
}

fn read(row: &tokio_postgres::Row) -> Result<Lease, Failure> {
    let node = NodeId::new(row.try_get::<_, &str>(1)?);
    Ok(Lease {
        id: LeaseId(row.try_get::<_, i64>(0)?.unsigned_abs()),
        node: node.map_err(|error| StoreError::corrupt("the table of leases", error.to_string()))?,
        until: Timestamp::from_millis(row.try_get(2)?),
        now: Timestamp::from_millis(row.try_get(3)?),
    })
}

pub(super) async fn retire(core: &Core, lease: LeaseId) -> Result<(), StoreError> {
    transact!(core, |session| try_retire(core, session, lease))
}

async fn try_retire(core: &Core, session: &mut Session, lease: LeaseId) -> Result<(), Failure> {
    match lock(core, session, lease).await? {
        Some(_) => set_until(session, lease, Timestamp::EPOCH).await,
        None => Ok(()),
    }
}
