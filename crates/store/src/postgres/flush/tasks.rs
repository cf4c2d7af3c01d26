//! Tasks and schedules: what belongs to a namespace rather than to a run.

use outlast_core::id::{Key, Namespace, RunId, WorkerId};

use super::{arrays, chunks};
use crate::postgres::decode::{claim_number, number, small};
use crate::postgres::session::Step;
use crate::postgres::working_set::WorkingSet;
use crate::rows::{TaskRow, task_state_code};

const DELETE: &str = "DELETE FROM task t USING unnest($1::int[], $2::text[]) k (ns, id) \
     WHERE t.ns = k.ns AND t.id = k.id";

const INSERT: &str = "INSERT INTO task (ns, id, run, key, state, attempt, token, worker, claim, available_at, until, \
     cancelled, note, name, queue, priority, args, meta) \
     SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::int[], $7::bigint[], \
     $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[], $13::bytea[], $14::text[], $15::text[], \
     $16::smallint[], $17::bytea[], $18::bytea[])";

/// Name, queue, priority, arguments and meta never change.
const UPDATE: &str = "UPDATE task t SET run = k.run, key = k.key, state = k.state, attempt = k.attempt, \
     token = k.token, worker = k.worker, claim = k.claim, available_at = k.available_at, until = k.until, \
     cancelled = k.cancelled, note = k.note \
     FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::int[], $7::bigint[], $8::text[], \
     $9::bigint[], $10::bigint[], $11::bigint[], $12::boolean[], $13::bytea[]) k (ns, id, run, key, state, attempt, \
     token, worker, claim, available_at, until, cancelled, note) WHERE t.ns = k.ns AND t.id = k.id";

const PUT_SCHEDULES: &str = "INSERT INTO schedule (ns, id, spec, next_at) \
     SELECT * FROM unnest($1::int[], $2::text[], $3::bytea[], $4::bigint[]) \
     ON CONFLICT (ns, id) DO UPDATE SET spec = excluded.spec, next_at = excluded.next_at";

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
        task.name.as_str(),
        task.queue.as_str(),
        task.priority,
        &*task.args,
        task.meta.as_deref()
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
        task.note.as_deref()
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
    let changed = set.changes.schedules.values();
    let rows: Vec<_> = changed.filter_map(|schedule| Some((number_of(set, &schedule.namespace)?, schedule))).collect();
    for rows in chunks(&rows, |(_, schedule)| schedule.spec.len()) {
        steps.push(arrays!(PUT_SCHEDULES, rows, |(ns, schedule)| [
            *ns,
            schedule.id.as_str(),
            &*schedule.spec,
            schedule.next_at.map(|at| at.as_millis())
        ]));
    }
}

#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 2] {
    [("flush: delete tasks", DELETE, &["task_pkey"]), ("flush: update tasks", UPDATE, &["task_pkey"])]
}
