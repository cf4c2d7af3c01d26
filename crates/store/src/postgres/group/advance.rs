//! The commit of a step's result and nothing else, by far the most frequent: one statement for the whole group, in one
//! round trip, without fetching a row.
//!
//! It moves the run and writes the event where everything stands as the sender believes. Where it does not, nothing is
//! written, and the shared logic finds out why and says so.

use std::collections::BTreeSet;

use outlast_core::id::{Fence, Index, Key, RunKey, TxnId};
use outlast_core::planted;
use outlast_core::record::Record;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Ending, Job, Jobs};
use crate::postgres::Core;
use crate::postgres::decode::number;
use crate::postgres::failure::{Failure, commit_was_refused};
use crate::postgres::session::{Param, Session, Step};

/// One event at the end of an owned run's journal.
pub(in super::super) struct Advance<'c> {
    pub(in super::super) run: &'c RunKey,
    pub(in super::super) fence: Fence,
    pub(in super::super) expected: Index,
    pub(in super::super) event: &'c Record,
}

/// The conditions are those of the shared logic: not deleted, owned (and so running), under this fence, at this index; and
/// a damaged row goes the long way, which says what is wrong with it. The rows are given in (namespace, id) order, so
/// they are locked in that order.
pub(in super::super) const ADVANCE: &str = "WITH moved AS (UPDATE run r SET next = k.next + 1, tries = 0 \
     FROM unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[], $5::int[], $6::int[], $7::text[], $8::bigint[], \
     $9::bytea[], $10::bytea[]) WITH ORDINALITY k (ns, id, fence, next, kind, version, key, at, meta, payload, n) \
     WHERE r.ns = k.ns AND r.id = k.id AND r.deleted_at IS NULL AND r.owner IS NOT NULL AND r.fence = k.fence \
     AND r.next = k.next AND r.status + 0 = 1 AND r.workflow <> '' AND r.version <> '' \
     RETURNING k.n, r.ns, r.seq, r.generation, k.next, k.kind, k.version, k.key, k.at, k.meta, k.payload), \
     written AS (INSERT INTO event (ns, run, generation, idx, kind, version, key, at, meta, payload) \
     SELECT ns, seq, generation, next, kind, version, key, at, meta, payload FROM moved), \
     noted AS (INSERT INTO txn (id, applied) SELECT $11::uuid, true WHERE EXISTS (SELECT 1 FROM moved)) \
     SELECT n, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM moved";

/// The same for one run, as it is when a single run steps along: without arrays the server has less to do.
pub(in super::super) const ADVANCE_ONE: &str = "WITH moved AS (UPDATE run SET next = $4::bigint + 1, tries = 0 \
     WHERE ns = $1::int AND id = $2::text AND deleted_at IS NULL AND owner IS NOT NULL AND fence = $3::bigint \
     AND next = $4::bigint AND status + 0 = 1 AND workflow <> '' AND version <> '' RETURNING ns, seq, generation), \
     written AS (INSERT INTO event (ns, run, generation, idx, kind, version, key, at, meta, payload) \
     SELECT ns, seq, generation, $4::bigint, $5::int, $6::int, $7::text, $8::bigint, $9::bytea, $10::bytea FROM moved), \
     noted AS (INSERT INTO txn (id, applied) SELECT $11::uuid, true FROM moved) \
     SELECT 1::bigint, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM moved";

/// A bug that can be planted: whoever has the run, at whatever fence.
const ADVANCE_UNFENCED: &str = "WITH moved AS (UPDATE run SET next = $4::bigint + 1, tries = 0 \
     WHERE ns = $1::int AND id = $2::text AND deleted_at IS NULL AND owner IS NOT NULL AND $3::bigint >= 0 \
     AND next = $4::bigint AND status + 0 = 1 AND workflow <> '' AND version <> '' RETURNING ns, seq, generation), \
     written AS (INSERT INTO event (ns, run, generation, idx, kind, version, key, at, meta, payload) \
     SELECT ns, seq, generation, $4::bigint, $5::int, $6::int, $7::text, $8::bigint, $9::bytea, $10::bytea FROM moved), \
     noted AS (INSERT INTO txn (id, applied) SELECT $11::uuid, true FROM moved) \
     SELECT 1::bigint, (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM moved";

/// Splits off the jobs that only advance runs, each run once.
pub(super) fn split(core: &Core, jobs: Jobs) -> (Jobs, Jobs) {
    let mut runs = BTreeSet::new();
    jobs.into_iter().partition(|job| {
        let mut mine = Vec::new();
        job.advances(&core.limits, &mut mine) && mine.iter().all(|advance| runs.insert(advance.run.clone()))
    })
}

/// Commits what stands as its sender believes; leaves the rest unsettled.
pub(super) async fn commit(core: &Core, jobs: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    let txn = TxnId(Uuid::now_v7());
    let mut session = Session::begin(&core.pool).await?;
    let (order, answered) = send(core, &mut session, jobs, txn).await?;
    let rows = match answered {
        Ok(rows) => rows,
        Err(error) if commit_was_refused(&error) => return Err(error.into()),
        Err(_) => {
            jobs.iter_mut().for_each(|job| job.settle(&Ending::Unknown(txn)));
            return Ok(());
        }
    };
    let mut advanced = vec![None; order.len()];
    for row in &rows {
        // The statement counts the rows it was given; this is which item that was.
        let item = usize::try_from(row.try_get::<_, i64>(0)? - 1).ok().and_then(|at| order.get(at));
        if let Some(place) = item.and_then(|item| advanced.get_mut(*item)) {
            *place = Some(core.now_from(row, 1)?);
        }
    }
    let mut rest = advanced.as_slice();
    for job in jobs {
        let (mine, others) = rest.split_at(job.items());
        job.advanced(mine);
        rest = others;
    }
    Ok(())
}

type Answered = Result<Vec<Row>, tokio_postgres::Error>;

/// Sends the items of all jobs, and says in which order.
async fn send(
    core: &Core,
    session: &mut Session,
    jobs: &[Box<dyn Job>],
    txn: TxnId,
) -> Result<(Vec<usize>, Answered), Failure> {
    let mut items = Vec::new();
    for job in jobs {
        job.advances(&core.limits, &mut items);
    }
    core.namespaces.learn(session, items.iter().map(|item| &item.run.namespace)).await?;
    // No namespace has the number 0: a run in one that does not exist is not found.
    let ns: Vec<i32> = items.iter().map(|item| core.namespaces.id(&item.run.namespace).unwrap_or(0)).collect();
    if let ([item], [ns]) = (items.as_slice(), ns.as_slice()) {
        let sql = if planted!("postgres-advance-unfenced") { ADVANCE_UNFENCED } else { ADVANCE_ONE };
        let mut answers = session.send(&[Step::new(sql, one(item, *ns, txn))]).await?;
        return Ok((vec![0], answers.pop().unwrap_or_else(|| Ok(Vec::new()))));
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|at| (ns[*at], &items[*at].run.id));
    let sorted: Vec<&Advance<'_>> = order.iter().map(|at| &items[*at]).collect();
    let params: Vec<Param<'_>> = vec![
        Box::new(order.iter().map(|at| ns[*at]).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| item.run.id.as_str()).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| number(item.fence.0)).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| number(item.expected.0)).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| i32::from(item.event.kind)).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| i32::from(item.event.version)).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| item.event.key.as_ref().map(Key::as_str)).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| item.event.at.as_millis()).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| item.event.meta.as_deref()).collect::<Vec<_>>()),
        Box::new(sorted.iter().map(|item| item.event.payload.as_deref()).collect::<Vec<_>>()),
        Box::new(txn.0),
    ];
    let mut answers = session.send(&[Step::new(ADVANCE, params)]).await?;
    Ok((order, answers.pop().unwrap_or_else(|| Ok(Vec::new()))))
}

fn one<'c>(item: &Advance<'c>, ns: i32, txn: TxnId) -> Vec<Param<'c>> {
    vec![
        Box::new(ns),
        Box::new(item.run.id.as_str()),
        Box::new(number(item.fence.0)),
        Box::new(number(item.expected.0)),
        Box::new(i32::from(item.event.kind)),
        Box::new(i32::from(item.event.version)),
        Box::new(item.event.key.as_ref().map(Key::as_str)),
        Box::new(item.event.at.as_millis()),
        Box::new(item.event.meta.as_deref()),
        Box::new(item.event.payload.as_deref()),
        Box::new(txn.0),
    ]
}
