//! Loading journals and inboxes: one range scan each, all of one instant.

use bytes::Bytes;
use futures_util::TryStreamExt;
use outlast_core::commit::{InboxItem, Snapshot};
use outlast_core::id::{Generation, Index, RunKey};
use outlast_core::record::Record;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::decode::{self, Detail, Fields, RUN_COLUMNS, number, run_columns};
use super::failure::Failure;
use super::session::{Session, Step};
use super::{Core, transact};
use crate::api::{Load, LoadFrom, Loaded};
use crate::error::StoreError;
use crate::logic::check_contiguous;
use crate::rows::RunRow;

pub(super) const RUNS: &str = concat!(
    "SELECT ",
    run_columns!(),
    ", k.n, CASE WHEN r.generation = 0 THEN r.input ELSE i.input END, s.idx, s.definition, s.data \
      FROM unnest($1::int[], $2::text[], $3::text[]) WITH ORDINALITY k (ns, id, definition, n) \
      JOIN run r ON r.ns = k.ns AND r.id = k.id \
      LEFT JOIN run_input i ON i.ns = r.ns AND i.run = r.seq AND i.generation = r.generation \
      LEFT JOIN snapshot s ON s.ns = r.ns AND s.run = r.seq AND s.generation = r.generation \
      AND s.definition = k.definition"
);

pub(super) const EVENTS: &str = "SELECT k.n, e.idx, e.kind, e.version, e.key, e.at, e.meta, e.payload \
     FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[]) \
     WITH ORDINALITY k (ns, run, generation, first, n) CROSS JOIN LATERAL \
     (SELECT e.idx, e.kind, e.version, e.key, e.at, e.meta, e.payload FROM event e WHERE e.ns = k.ns \
     AND e.run = k.run AND e.generation = k.generation AND e.idx >= k.first ORDER BY e.idx) e";

pub(super) const INBOX: &str = "SELECT k.n, i.id, i.kind, i.key, i.name, i.delivery, i.at, i.meta, i.payload \
     FROM unnest($1::int[], $2::bigint[]) WITH ORDINALITY k (ns, run, n) CROSS JOIN LATERAL \
     (SELECT i.* FROM inbox i WHERE i.ns = k.ns AND i.run = k.run ORDER BY i.id) i";

/// Room made for a journal before its rows arrive, in events: a damaged run must not reserve all memory.
const EVENTS_RESERVED_MAX: u64 = 100_000;

type Answers = Vec<Result<Loaded, StoreError>>;

pub(super) async fn load(core: &Core, loads: &[Load]) -> Result<Answers, StoreError> {
    transact!(core, |session| read(core, session, loads))
}

/// A run whose row was read, and which part of its journal is wanted.
struct Found {
    ns: i32,
    run: RunRow,
    input: Bytes,
    snapshot: Option<Snapshot>,
    first: Index,
    journal: Result<(Vec<Record>, Vec<InboxItem>), StoreError>,
}

async fn read(core: &Core, session: &mut Session, loads: &[Load]) -> Result<Answers, Failure> {
    core.namespaces.learn(session, loads.iter().map(|load| &load.run.namespace)).await?;
    let stored = read_runs(core, session, loads).await?;
    let not_found = |load: &Load| Err(StoreError::NotFound(load.run.clone()));
    let chosen =
        loads.iter().zip(stored).map(|(load, stored)| stored.map_or_else(|| not_found(load), |run| choose(run?, load)));
    let mut found: Vec<Result<Found, StoreError>> = chosen.collect();
    let mut wanted: Vec<&mut Found> = found.iter_mut().filter_map(|found| found.as_mut().ok()).collect();
    if !wanted.is_empty() {
        read_events(session, &mut wanted).await?;
        read_inboxes(session, &mut wanted).await?;
    }
    Ok(found.into_iter().map(|found| finish(found?)).collect())
}

struct Stored {
    ns: i32,
    run: RunRow,
    input: Option<Bytes>,
    snapshot: Option<Snapshot>,
}

/// The rows of the runs, one answer per load; none for a run that is not there.
async fn read_runs(
    core: &Core,
    session: &mut Session,
    loads: &[Load],
) -> Result<Vec<Option<Result<Stored, StoreError>>>, Failure> {
    // No namespace has the number 0.
    let ns: Vec<i32> = loads.iter().map(|load| core.namespaces.id(&load.run.namespace).unwrap_or(0)).collect();
    let ids: Vec<&str> = loads.iter().map(|load| load.run.id.as_str()).collect();
    let definitions: Vec<Option<&str>> = loads.iter().map(definition).collect();
    let steps = [
        Step::Plain("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
        Step::new(RUNS, vec![Box::new(ns), Box::new(ids), Box::new(definitions)]),
    ];
    let rows = session.send_all(&steps).await?.pop().unwrap_or_default();
    let mut stored: Vec<Option<Result<Stored, StoreError>>> = loads.iter().map(|_| None).collect();
    for row in &rows {
        let ordinal: i64 = row.try_get(RUN_COLUMNS)?;
        if let Some(place) = stored.get_mut(usize::try_from(ordinal - 1).unwrap_or(usize::MAX)) {
            *place = Some(read_run(core, row));
        }
    }
    Ok(stored)
}

/// The definition whose snapshot is wanted. One with a NUL cannot be stored, so there is none of it.
fn definition(load: &Load) -> Option<&str> {
    match &load.from {
        LoadFrom::Index(_) => None,
        LoadFrom::Snapshot { definition } => Some(definition.as_str()).filter(|text| !text.contains('\0')),
    }
}

fn read_run(core: &Core, row: &Row) -> Result<Stored, StoreError> {
    let run = decode::run(row, &core.namespaces).map_err(|damaged| damaged.error)?;
    let corrupt = |detail| StoreError::corrupt(run.key.to_string(), detail);
    let mut fields = Fields::from(row, RUN_COLUMNS + 1);
    let input = fields.bytes_or_none().map_err(corrupt)?;
    let snapshot = read_snapshot(&mut fields).map_err(corrupt)?;
    let ns = row.try_get(0).map_err(|error| corrupt(error.to_string()))?;
    Ok(Stored { ns, run, input, snapshot })
}

fn read_snapshot(fields: &mut Fields<'_>) -> Result<Option<Snapshot>, Detail> {
    let index: Option<i64> = fields.next()?;
    let definition: Option<String> = fields.next()?;
    let data = fields.bytes_or_none()?;
    let Some(((index, definition), data)) = index.zip(definition).zip(data) else { return Ok(None) };
    let index = u64::try_from(index).map_err(|_| format!("the snapshot is at index {index}"))?;
    Ok(Some(Snapshot { index: Index(index), definition, data }))
}

/// Decides from where a journal is read.
fn choose(stored: Stored, load: &Load) -> Result<Found, StoreError> {
    let Stored { ns, run, input, snapshot } = stored;
    if run.deleted_at.is_some() {
        return Err(run.deleted());
    }
    let first = match (&load.from, &snapshot) {
        (LoadFrom::Index(index), _) => *index,
        (LoadFrom::Snapshot { .. }, Some(snapshot)) => snapshot.index,
        (LoadFrom::Snapshot { .. }, None) => Index(0),
    };
    let gone = || missing_input(&run.key, run.generation);
    let input = input.ok_or_else(gone)?;
    let expected = run.next.0.saturating_sub(first.0).min(EVENTS_RESERVED_MAX);
    let events = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    Ok(Found { ns, run, input, snapshot, first, journal: Ok((events, Vec::new())) })
}

fn missing_input(run: &RunKey, generation: Generation) -> StoreError {
    StoreError::corrupt(run.to_string(), format!("the input of generation {generation} is gone"))
}

/// The events of all runs, decoded as they arrive.
async fn read_events(session: &mut Session, wanted: &mut [&mut Found]) -> Result<(), Failure> {
    let ns: Vec<i32> = wanted.iter().map(|found| found.ns).collect();
    let runs: Vec<i64> = wanted.iter().map(|found| found.run.row).collect();
    let generations: Vec<i64> = wanted.iter().map(|found| number(found.run.generation.0)).collect();
    let firsts: Vec<i64> = wanted.iter().map(|found| number(found.first.0)).collect();
    let statement = session.prepare_cached(EVENTS).await?;
    let params: [&(dyn ToSql + Sync); 4] = [&ns, &runs, &generations, &firsts];
    let rows = session.query_raw(&statement, params).await?;
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await? {
        keep(wanted, &row, |found, fields| {
            let index = fields.whole()?;
            let record = decode::record(fields)?;
            if let Ok((events, _)) = &mut found.journal {
                let expected = found.first.0 + events.len() as u64;
                if index != expected {
                    return Err(format!("event {expected} is missing, the next one is {index}"));
                }
                events.push(record);
            }
            Ok(())
        })?;
    }
    Ok(())
}

async fn read_inboxes(session: &mut Session, wanted: &mut [&mut Found]) -> Result<(), Failure> {
    let ns: Vec<i32> = wanted.iter().map(|found| found.ns).collect();
    let runs: Vec<i64> = wanted.iter().map(|found| found.run.row).collect();
    let rows = session.ask(INBOX, vec![Box::new(ns), Box::new(runs)]).await?;
    for row in &rows {
        keep(wanted, row, |found, fields| {
            let item = decode::inbox_item(fields)?;
            if let Ok((_, inbox)) = &mut found.journal {
                inbox.push(item);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Adds a row to the run it belongs to. One that cannot be read spoils its run's answer, and no other.
fn keep(
    wanted: &mut [&mut Found],
    row: &Row,
    add: impl FnOnce(&mut Found, &mut Fields<'_>) -> Result<(), Detail>,
) -> Result<(), Failure> {
    let ordinal: i64 = row.try_get(0)?;
    let at = usize::try_from(ordinal - 1).unwrap_or(usize::MAX);
    if let Some(found) = wanted.get_mut(at)
        && let Err(detail) = add(found, &mut Fields::from(row, 1))
    {
        found.journal = Err(StoreError::corrupt(found.run.key.to_string(), detail));
    }
    Ok(())
}

fn finish(found: Found) -> Result<Loaded, StoreError> {
    let (events, inbox) = found.journal?;
    check_contiguous(&found.run, found.first, events.len())?;
    Ok(Loaded {
        inbox_next: found.run.inbox_next,
        run: found.run.key,
        generation: found.run.generation,
        input: found.input,
        snapshot: found.snapshot,
        first: found.first,
        events,
        inbox,
    })
}
