//! What there is to do, as one question.

use outlast_core::id::QueueName;
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::Core;
use super::claim::is_ready;
use super::decode::{Detail, Fields};
use super::failure::Failure;
use super::session::Session;
use crate::api::{Depths, Outlook};
use crate::error::StoreError;
use crate::rows::task_state_from_code;

/// Each part reads the beginning of an index. Parts that are only needed if another is false are not read otherwise.
pub(super) const OUTLOOK: &str = concat!(
    "SELECT t.now, EXISTS (SELECT 1 FROM (SELECT 1 FROM run r WHERE ",
    is_ready!(),
    " ORDER BY - r.priority::int, r.ns + 0, r.ready_at, r.seq LIMIT 1) r) \
      OR EXISTS (SELECT 1 FROM (SELECT 1 FROM lease l WHERE NOT l.drained AND l.until <= t.now \
      AND EXISTS (SELECT 1 FROM run r WHERE r.owner = l.id OFFSET 0) ORDER BY l.id + 0 LIMIT 1) l), \
     (SELECT m.due FROM timer m ORDER BY m.due, m.run + 0 LIMIT 1), \
     EXISTS (SELECT 1 FROM (SELECT 1 FROM slot s WHERE s.done ORDER BY s.run + 0, s.gate || '' LIMIT 1) s), \
     (SELECT h.not_before FROM held h JOIN run r ON r.seq = h.run \
      WHERE h.gate IS NULL AND r.status + 0 = 0 AND r.owner IS NULL AND r.ready_at IS NULL \
      ORDER BY h.not_before, h.run + 0 LIMIT 1), \
     (SELECT g.look_at FROM gate g WHERE g.look_at IS NOT NULL ORDER BY g.look_at LIMIT 1), \
     EXISTS (SELECT 1 FROM held h WHERE h.gate IS NOT NULL), \
     (SELECT min(CASE WHEN a.id IS NOT NULL OR b.until <= t.now THEN t.now ELSE b.until END) FROM unnest($2::text[]) q (queue) \
      LEFT JOIN LATERAL (SELECT k.id FROM task k WHERE k.queue = q.queue AND k.state = 0 \
      ORDER BY - k.priority::int, k.ns + 0, k.place, k.id LIMIT 1) a ON true \
      LEFT JOIN LATERAL (SELECT k.until FROM task k WHERE k.queue = q.queue AND k.until IS NOT NULL \
      ORDER BY k.until LIMIT 1) b ON true) \
     FROM (SELECT coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)) t (now)"
);

pub(super) async fn outlook(core: &Core, queues: &[QueueName]) -> Result<Outlook, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let queues: Vec<&str> = queues.iter().map(QueueName::as_str).collect();
    let rows = session.ask(OUTLOOK, vec![Box::new(core.manual_now()), Box::new(queues)]).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("the database", "no time".to_owned()))?;
    Ok(read(row).map_err(Failure::from)?)
}

const READY_RUNS: &str = concat!(
    "SELECT coalesce($1::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), count(*), min(r.ready_at) \
     FROM run r WHERE ",
    is_ready!()
);
/// What can be claimed is ready, whatever its row says.
const QUEUES: &str = "SELECT t.queue, CASE WHEN t.until <= $1 THEN 0 ELSE t.state END AS stands, count(*), \
     min(CASE WHEN t.until <= $1 THEN t.until ELSE t.available_at END) FROM task t GROUP BY 1, 2 ORDER BY 1, 2";

pub(super) async fn depths(core: &Core) -> Result<Depths, StoreError> {
    let mut session = Session::begin(&core.pool).await?;
    let rows = session.ask(READY_RUNS, vec![Box::new(core.manual_now())]).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("the database", "no time".to_owned()))?;
    let mut depths = read_runs(row).map_err(Failure::from)?;
    let rows = session.ask(QUEUES, vec![Box::new(depths.now.as_millis())]).await?;
    for row in &rows {
        read_queue(row, &mut depths)?;
    }
    Ok(depths)
}

fn read_runs(row: &Row) -> Result<Depths, tokio_postgres::Error> {
    let oldest: Option<i64> = row.try_get(2)?;
    Ok(Depths {
        now: Timestamp::from_millis(row.try_get(0)?),
        ready: u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0),
        oldest: oldest.map(Timestamp::from_millis),
        queues: Vec::new(),
    })
}

fn read_queue(row: &Row, depths: &mut Depths) -> Result<(), StoreError> {
    let mut fields = Fields::from(row, 0);
    let corrupt = |detail| StoreError::corrupt("the table of tasks", detail);
    let queue = fields.id().map_err(corrupt)?;
    let (state, count, oldest): (i32, i64, Option<i64>) =
        (|| Ok::<_, Detail>((fields.next()?, fields.next()?, fields.next()?)))().map_err(corrupt)?;
    if let Some(state) = task_state_from_code(i64::from(state)) {
        depths.add(queue, state, u64::try_from(count).unwrap_or(0), oldest.map(Timestamp::from_millis));
    }
    Ok(())
}

fn read(row: &Row) -> Result<Outlook, tokio_postgres::Error> {
    let time = |at: usize| row.try_get::<_, Option<i64>>(at).map(|millis| millis.map(Timestamp::from_millis));
    let now = Timestamp::from_millis(row.try_get(0)?);
    let next = time(4)?.into_iter().chain(time(5)?).min();
    let ended: bool = row.try_get(3)?;
    Ok(Outlook {
        now,
        runs: row.try_get(1)?,
        timer: time(2)?,
        held: if ended { Some(now) } else { next },
        waiting: row.try_get(6)?,
        task: time(7)?,
    })
}
