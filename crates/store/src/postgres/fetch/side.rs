//! Rows that belong to runs. Their runs are locked, so these need no locks of their own; only tasks have, because
//! workers claim them without their runs.

use outlast_core::id::{InboxId, RunKey};
use outlast_core::time::Timestamp;
use tokio_postgres::Row;

use super::{Query, keep_task};
use crate::error::StoreError;
use crate::postgres::decode::{self, Detail, Fields, number, task_columns, wait_columns};
use crate::postgres::needs::{Needs, RunNeeds};
use crate::postgres::session::{Param, Step};
use crate::postgres::working_set::{RunFacts, WorkingSet};
use crate::rows::TimerRow;

const WAITS: &str = concat!(
    "SELECT k.n, ",
    wait_columns!(),
    " FROM unnest($1::int[], $2::text[], $3::text[]) WITH ORDINALITY k (ns, id, key, n) \
      JOIN run r ON r.ns = k.ns AND r.id = k.id JOIN wait w ON w.ns = r.ns AND w.run = r.seq AND w.key = k.key"
);

const OPEN_WAITS: &str = concat!(
    "SELECT k.n, ",
    wait_columns!(),
    " FROM unnest($1::int[], $2::text[], $3::text[]) WITH ORDINALITY k (ns, id, name, n) \
      JOIN run r ON r.ns = k.ns AND r.id = k.id \
      JOIN wait w ON w.ns = r.ns AND w.run = r.seq WHERE w.name = k.name AND w.state = 1"
);

const ANSWERED_WAITS: &str = concat!(
    "SELECT k.n, ",
    wait_columns!(),
    " FROM unnest($1::int[], $2::text[]) WITH ORDINALITY k (ns, id, n) JOIN run r ON r.ns = k.ns AND r.id = k.id \
      JOIN wait w ON w.ns = r.ns AND w.run = r.seq WHERE w.state = 2"
);

const TIMERS: &str = "SELECT k.n, t.due \
     FROM unnest($1::int[], $2::text[], $3::text[], $4::smallint[]) WITH ORDINALITY k (ns, id, key, kind, n) \
     JOIN run r ON r.ns = k.ns AND r.id = k.id \
     JOIN timer t ON t.ns = r.ns AND t.run = r.seq AND t.key = k.key AND t.kind = k.kind";

const HEADS: &str = "SELECT k.n, i.kind \
     FROM unnest($1::int[], $2::text[], $3::bigint[]) WITH ORDINALITY k (ns, id, item, n) \
     JOIN run r ON r.ns = k.ns AND r.id = k.id JOIN inbox i ON i.ns = r.ns AND i.run = r.seq AND i.id = k.item";

const MAILBOXES: &str = "SELECT k.n, i.id \
     FROM unnest($1::int[], $2::text[], $3::text[]) WITH ORDINALITY k (ns, id, name, n) \
     JOIN run r ON r.ns = k.ns AND r.id = k.id JOIN inbox i ON i.ns = r.ns AND i.run = r.seq \
     WHERE i.kind = 0 AND i.key IS NULL AND i.name = k.name ORDER BY k.n, i.id";

const DELIVERED: &str = "SELECT k.n FROM unnest($1::int[], $2::text[], $3::text[]) WITH ORDINALITY k (ns, id, item, n) \
     JOIN run r ON r.ns = k.ns AND r.id = k.id JOIN delivered d ON d.ns = r.ns AND d.run = r.seq AND d.id = k.item";

const RECORDS: &str = "SELECT k.n, e.kind, e.version, e.key, e.at, e.meta, e.payload \
     FROM unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY k (ns, id, generation, idx, n) \
     JOIN run r ON r.ns = k.ns AND r.id = k.id \
     JOIN event e ON e.ns = r.ns AND e.run = r.seq AND e.generation = k.generation AND e.idx = k.idx";

const INPUTS: &str = "SELECT k.n, CASE WHEN k.generation = 0 THEN r.input ELSE i.input END \
     FROM unnest($1::int[], $2::text[], $3::bigint[]) WITH ORDINALITY k (ns, id, generation, n) \
     JOIN run r ON r.ns = k.ns AND r.id = k.id \
     LEFT JOIN run_input i ON i.ns = r.ns AND i.run = r.seq AND i.generation = k.generation";

const TASKS_OF: &str = concat!(
    "SELECT ",
    task_columns!(),
    " FROM unnest($1::int[], $2::text[], $3::text[]) k (ns, run, key) \
      JOIN task t ON t.run = k.run AND t.key = k.key AND t.ns + 0 = k.ns ORDER BY t.ns + 0, t.id FOR UPDATE OF t"
);

/// Everything but tasks.
pub(super) fn all<'n>(set: &WorkingSet, needs: &'n Needs) -> impl Iterator<Item = Query<'n>> {
    let found = [
        waits(set, needs),
        open_waits(set, needs),
        answered_waits(set, needs),
        timers(set, needs),
        heads(set, needs),
        mailboxes(set, needs),
        delivered(set, needs),
        records(set, needs),
        inputs(set, needs),
    ];
    found.into_iter().flatten()
}

/// Things wanted of runs in namespaces that exist.
pub(super) fn wanted<'n, T, I: IntoIterator<Item = T>>(
    set: &WorkingSet,
    needs: &'n Needs,
    pick: impl Fn(&'n RunNeeds) -> I,
) -> Vec<(i32, &'n RunKey, T)> {
    let mut wanted = Vec::new();
    for (run, of) in &needs.runs {
        if let Some(ns) = set.facts.namespaces.get(&run.namespace) {
            wanted.extend(pick(of).into_iter().map(|thing| (*ns, run, thing)));
        }
    }
    wanted
}

/// The first two parameters of every statement here.
pub(super) fn places<'n, T>(wanted: &[(i32, &'n RunKey, T)]) -> Vec<Param<'n>> {
    let ns: Vec<i32> = wanted.iter().map(|(ns, _, _)| *ns).collect();
    let ids: Vec<&str> = wanted.iter().map(|(_, run, _)| run.id.as_str()).collect();
    vec![Box::new(ns), Box::new(ids)]
}

/// A statement for things wanted, with one more array per entry of `columns`. First everything wanted is noted as
/// looked for, then every row is kept with the thing it was found for.
fn query<'n, T: Send + 'n, R>(
    sql: &'n str,
    wanted: Vec<(i32, &'n RunKey, T)>,
    columns: impl FnOnce(&[(i32, &'n RunKey, T)]) -> Vec<Param<'n>>,
    note: impl Fn(&mut RunFacts, &T) -> R + Send + 'n,
    keep: impl Fn(&mut RunFacts, &T, &mut Fields<'_>) -> Result<(), Detail> + Send + 'n,
) -> Option<Query<'n>> {
    if wanted.is_empty() {
        return None;
    }
    let mut params = places(&wanted);
    params.extend(columns(&wanted));
    Some(Query::new(Step::new(sql, params), move |_, set, rows| {
        for (_, run, thing) in &wanted {
            let _: R = note(set.facts.runs.entry((*run).clone()).or_default(), thing);
        }
        for row in rows {
            let Some((run, thing)) = found_for(&wanted, row)? else { continue };
            let facts = set.facts.runs.entry(run.clone()).or_default();
            if let Err(detail) = keep(facts, thing, &mut Fields::from(row, 1)) {
                facts.damage = Some(StoreError::corrupt(run.to_string(), detail));
            }
        }
        Ok(())
    }))
}

pub(super) fn found_for<'w, 'n, T>(
    wanted: &'w [(i32, &'n RunKey, T)],
    row: &Row,
) -> Result<Option<(&'n RunKey, &'w T)>, tokio_postgres::Error> {
    let ordinal: i64 = row.try_get(0)?;
    let at = usize::try_from(ordinal - 1).unwrap_or(usize::MAX);
    Ok(wanted.get(at).map(|(_, run, thing)| (*run, thing)))
}

fn waits<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        WAITS,
        wanted(set, needs, |of| &of.waits),
        |wanted| vec![Box::new(wanted.iter().map(|(_, _, key)| key.as_str()).collect::<Vec<_>>())],
        |facts, key| facts.waits.insert((*key).clone(), Ok(None)),
        |facts, key, fields| {
            let found =
                decode::wait(fields).map(Some).map_err(|detail| StoreError::corrupt(format!("wait {key}"), detail));
            facts.waits.insert((*key).clone(), found);
            Ok(())
        },
    )
}

fn open_waits<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        OPEN_WAITS,
        wanted(set, needs, |of| &of.open_waits),
        |wanted| vec![Box::new(wanted.iter().map(|(_, _, name)| name.as_str()).collect::<Vec<_>>())],
        |facts, name| facts.open_waits.insert((*name).clone()),
        |facts, _, fields| keep_wait(facts, fields),
    )
}

fn answered_waits<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        ANSWERED_WAITS,
        wanted(set, needs, |of| of.answered_waits.then_some(())),
        |_| Vec::new(),
        |facts, ()| facts.answered_waits = true,
        |facts, (), fields| keep_wait(facts, fields),
    )
}

fn keep_wait(facts: &mut RunFacts, fields: &mut Fields<'_>) -> Result<(), Detail> {
    let wait = decode::wait(fields)?;
    facts.waits.insert(wait.key.clone(), Ok(Some(wait)));
    Ok(())
}

fn timers<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        TIMERS,
        wanted(set, needs, |of| &of.timers),
        |wanted| {
            let keys: Vec<&str> = wanted.iter().map(|(_, _, timer)| timer.key.as_str()).collect();
            let kinds: Vec<i16> = wanted.iter().map(|(_, _, timer)| timer.kind.code()).collect();
            vec![Box::new(keys), Box::new(kinds)]
        },
        |facts, timer| facts.timers.insert((*timer).clone(), Ok(None)),
        |facts, timer, fields| {
            let due = Timestamp::from_millis(fields.next()?);
            facts.timers.insert((*timer).clone(), Ok(Some(TimerRow { timer: (*timer).clone(), due })));
            Ok(())
        },
    )
}

fn heads<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        HEADS,
        wanted(set, needs, |of| &of.heads),
        |wanted| vec![Box::new(wanted.iter().map(|(_, _, id)| number(id.0)).collect::<Vec<_>>())],
        |facts, id| facts.heads.insert(**id, Ok(None)),
        |facts, id, fields| {
            let kind = decode::inbox_kind(fields);
            let found = kind.map(Some).map_err(|detail| StoreError::corrupt(format!("inbox item {id}"), detail));
            facts.heads.insert(**id, found);
            Ok(())
        },
    )
}

fn mailboxes<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        MAILBOXES,
        wanted(set, needs, |of| &of.mailboxes),
        |wanted| vec![Box::new(wanted.iter().map(|(_, _, name)| name.as_str()).collect::<Vec<_>>())],
        |facts, name| facts.mailboxes.insert((*name).clone(), Vec::new()),
        |facts, name, fields| {
            let id = InboxId(fields.whole()?);
            facts.mailboxes.entry((*name).clone()).or_default().push(id);
            Ok(())
        },
    )
}

fn delivered<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        DELIVERED,
        wanted(set, needs, |of| &of.delivered),
        |wanted| vec![Box::new(wanted.iter().map(|(_, _, id)| id.as_str()).collect::<Vec<_>>())],
        |facts, id| facts.delivered.insert((*id).clone(), false),
        |facts, id, _| {
            facts.delivered.insert((*id).clone(), true);
            Ok(())
        },
    )
}

fn records<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        RECORDS,
        wanted(set, needs, |of| &of.records),
        |wanted| {
            let generations: Vec<i64> = wanted.iter().map(|(_, _, (generation, _))| number(generation.0)).collect();
            let indices: Vec<i64> = wanted.iter().map(|(_, _, (_, index))| number(index.0)).collect();
            vec![Box::new(generations), Box::new(indices)]
        },
        |facts, at| facts.records.insert(**at, Ok(None)),
        |facts, at, fields| {
            let record = decode::record(fields);
            let found = record.map(Some).map_err(|detail| StoreError::corrupt(format!("event {}", at.1), detail));
            facts.records.insert(**at, found);
            Ok(())
        },
    )
}

fn inputs<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    query(
        INPUTS,
        wanted(set, needs, |of| &of.inputs),
        |wanted| vec![Box::new(wanted.iter().map(|(_, _, generation)| number(generation.0)).collect::<Vec<_>>())],
        |facts, generation| facts.inputs.insert(**generation, Ok(None)),
        |facts, generation, fields| {
            facts.inputs.insert(**generation, Ok(fields.bytes_or_none()?));
            Ok(())
        },
    )
}

/// Tasks by the operation that awaits them, locked.
pub(super) fn tasks_of<'n>(set: &WorkingSet, needs: &'n Needs) -> Option<Query<'n>> {
    let wanted = wanted(set, needs, |of| &of.tasks_of);
    if wanted.is_empty() {
        return None;
    }
    let mut params = places(&wanted);
    params.push(Box::new(wanted.iter().map(|(_, _, key)| key.as_str()).collect::<Vec<_>>()));
    Some(Query::new(Step::new(TASKS_OF, params), move |core, set, rows| {
        for (_, run, key) in &wanted {
            set.facts.runs.entry((*run).clone()).or_default().tasks_of.insert((*key).clone());
        }
        rows.iter().try_for_each(|row| keep_task(core, set, row, 0))
    }))
}

/// Every statement here, and the indexes it is meant to use.
#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 10] {
    [
        ("fetch: waits", WAITS, &["run_ns_id_key", "wait_pkey"]),
        ("fetch: open waits", OPEN_WAITS, &["run_ns_id_key", "wait_pkey"]),
        ("fetch: answered waits", ANSWERED_WAITS, &["run_ns_id_key", "wait_pkey"]),
        ("fetch: timers", TIMERS, &["run_ns_id_key", "timer_pkey"]),
        ("fetch: inbox heads", HEADS, &["inbox_pkey", "run_ns_id_key"]),
        ("fetch: mailboxes", MAILBOXES, &["inbox_pkey", "run_ns_id_key"]),
        ("fetch: delivered", DELIVERED, &["delivered_pkey", "run_ns_id_key"]),
        ("fetch: events", RECORDS, &["event_pkey", "run_ns_id_key"]),
        ("fetch: inputs", INPUTS, &["run_input_pkey", "run_ns_id_key"]),
        ("fetch: tasks of runs", TASKS_OF, &["task_awaited"]),
    ]
}
