//! Tasks and schedules: what belongs to a namespace rather than to a run.

use outlast_core::id::{Key, Namespace, RunId, WorkerId};

use super::{arrays, chunks};
use crate::postgres::decode::{claim_number, number, small};
use crate::postgres::session::Step;
use crate::postgres::working_set::WorkingSet;
use crate::rows::{TaskRow, lapse_code, task_state_code};

const DELETE: &str = "DELETE FROM task t USING unnest($1::int[], $2::text[]) k (ns, id) \
     WHERE t.ns = ANY(ARRAY[k.ns]) AND t.id = k.id";

const INSERT: &str = "INSERT INTO task (ns, id, run, key, state, attempt, token, worker, claim, available_at, until, \
     cancelled, note, place, died_at, began, lapse, lapsed, name, queue, priority, args, meta, origin) \
     SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::int[], $7::bigint[], \
     $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[], $13::bytea[], $14::bigint[], $15::bigint[], \
     $16::bigint[], $17::smallint[], $18::smallint[], $19::text[], $20::text[], $21::smallint[], $22::bytea[], $23::bytea[], \
     $24::text[])";

/// Name, queue, priority, arguments, meta and origin never change.
const UPDATE: &str = "UPDATE task t SET run = k.run, key = k.key, state = k.state, attempt = k.attempt, \
     token = k.token, worker = k.worker, claim = k.claim, available_at = k.available_at, until = k.until, \
     cancelled = k.cancelled, note = k.note, place = k.place, died_at = k.died_at, \
     began = k.began, lapse = k.lapse, lapsed = k.lapsed \
     FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::int[], $7::bigint[], $8::text[], \
     $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[], $13::bytea[], $14::bigint[], $15::bigint[], \
     $16::bigint[], $17::smallint[], $18::smallint[]) \
     k (ns, id, run, key, state, attempt, token, worker, claim, available_at, until, cancelled, note, place, died_at, began, lapse, lapsed) WHERE t.ns = ANY(ARRAY[k.ns]) AND t.id = k.id";

/// One that another transaction put meanwhile is a unique key taken: then all is decided again.
const INSERT_SCHEDULES: &str = "INSERT INTO schedule (ns, id, revision, spec, state, next_at) \
     SELECT * FROM unnest($1::int[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[])";
const UPDATE_SCHEDULES: &str = "UPDATE schedule s \
     SET revision = k.revision, spec = k.spec, state = k.state, next_at = k.next_at \
     FROM unnest($1::int[], $2::text[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bigint[]) \
     k (ns, id, revision, spec, state, next_at) WHERE s.ns = k.ns AND s.id = k.id";

pub(super) fn write<'s>(set: &'s WorkingSet, steps: &mut Vec<Step<'s>>) {
    let (mut deleted, mut inserted, mut updated) = (Vec::new(), Vec::new(), Vec::new());
    for (name, task) in &set.changes.tasks {
        let Some(ns) = number_of(set, &name.0) else { continue };
        let stored = matches!(set.facts.tasks.get(name), Some(Ok(Some(_))));
        match (task, stored) {
            (None, true) => deleted.push((ns, &name.1)),
            (None, false) => {}
            (Some(task), true) => updated.push((ns, task)),
            (Some(task), false) => inserted.push((ns, task)),
        }
    }
    if !deleted.is_empty() {
        steps.push(arrays!(DELETE, deleted, |(ns, id)| [*ns, id.as_str()]));
    }
    for inserted in chunks(&inserted, |(_, task)| task.args.len()) {
        steps.push(insert(inserted));
    }
    for updated in chunks(&updated, |(_, task)| task.note.as_ref().map_or(0, |note| note.len())) {
        steps.push(update(updated));
    }
}

fn insert<'s>(rows: &[(i32, &'s TaskRow)]) -> Step<'s> {
    arrays!(INSERT, rows, |(ns, task)| [
        *ns,
        task.id.as_str(),
        run_of(task),
        key_of(task),
        task_state_code(task.state),
        small(task.attempt),
        number(task.token.0),
        task.worker.as_ref().map(WorkerId::as_str),
        task.claim.map(claim_number),
        task.available_at.as_millis(),
        task.until.map(|at| at.as_millis()),
        task.cancelled,
        task.note.as_deref(),
        task.place.as_millis(),
        task.died_at.map(|at| at.as_millis()),
        task.began.map(|at| at.as_millis()),
        task.lapse.map(lapse_code),
        task.lapsed.map(lapse_code),
        task.name.as_str(),
        task.queue.as_str(),
        task.priority,
        &*task.args,
        task.meta.as_deref(),
        task.origin.as_ref().map(RunId::as_str)
    ])
}

fn update<'s>(rows: &[(i32, &'s TaskRow)]) -> Step<'s> {
    arrays!(UPDATE, rows, |(ns, task)| [
        *ns,
        task.id.as_str(),
        run_of(task),
        key_of(task),
        task_state_code(task.state),
        small(task.attempt),
        number(task.token.0),
        task.worker.as_ref().map(WorkerId::as_str),
        task.claim.map(claim_number),
        task.available_at.as_millis(),
        task.until.map(|at| at.as_millis()),
        task.cancelled,
        task.note.as_deref(),
        task.place.as_millis(),
        task.died_at.map(|at| at.as_millis()),
        task.began.map(|at| at.as_millis()),
        task.lapse.map(lapse_code),
        task.lapsed.map(lapse_code)
    ])
}

fn run_of(task: &TaskRow) -> Option<&str> {
    task.awaited.as_ref().map(|(run, _)| RunId::as_str(run))
}

fn key_of(task: &TaskRow) -> Option<&str> {
    task.awaited.as_ref().map(|(_, key)| Key::as_str(key))
}

fn number_of(set: &WorkingSet, namespace: &Namespace) -> Option<i32> {
    set.facts.namespaces.get(namespace).copied()
}

pub(super) fn schedules<'s>(set: &'s WorkingSet, steps: &mut Vec<Step<'s>>) {
    let changed = set.changes.schedules.iter();
    let placed = changed.filter_map(|(name, schedule)| Some((name, number_of(set, &schedule.namespace)?, schedule)));
    let is_there = |name| matches!(set.facts.schedules.get(name), Some(Ok(Some(_))));
    let (old, new): (Vec<_>, Vec<_>) = placed.partition(|(name, ..)| is_there(*name));
    for (sql, rows) in [(UPDATE_SCHEDULES, old), (INSERT_SCHEDULES, new)] {
        for rows in chunks(&rows, |(.., schedule)| schedule.spec.len() + schedule.state.len()) {
            steps.push(arrays!(sql, rows, |(_, ns, schedule)| [
                *ns,
                schedule.id.as_str(),
                number(schedule.revision.0),
                &*schedule.spec,
                &*schedule.state,
                schedule.next_at.map(|at| at.as_millis())
            ]));
        }
    }
}

#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 3] {
    [
        ("flush: delete tasks", DELETE, &["task_pkey"]),
        ("flush: update tasks", UPDATE, &["task_pkey"]),
        ("flush: update schedules", UPDATE_SCHEDULES, &["schedule_pkey"]),
    ]
}
