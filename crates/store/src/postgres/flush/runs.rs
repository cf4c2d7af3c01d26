//! Runs, their inputs and their journals.

use bytes::Bytes;
use outlast_core::commit::Parent;
use outlast_core::id::{Key, RunId};

use super::{Changed, arrays, chunks};
use crate::postgres::decode::{claim_number, number, small};
use crate::postgres::session::Step;
use crate::postgres::working_set::{Place, WorkingSet};
use crate::rows::RunRow;

const INSERT: &str = "INSERT INTO run (ns, seq, id, workflow, version, status, generation, next, fence, owner, claim, \
     ready_at, priority, tries, parent, parent_generation, parent_key, parent_detached, root, created_at, finished_at, \
     note, deleted_at, inbox_next, signals, answered, side, controlled, input) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::bigint[], \
     $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::smallint[], $14::int[], \
     $15::text[], $16::bigint[], $17::text[], $18::boolean[], $19::text[], $20::bigint[], $21::bigint[], $22::text[], \
     $23::bigint[], $24::bigint[], $25::int[], $26::int[], $27::boolean[], $28::boolean[], $29::bytea[])";

/// What the growth of a journal changes: no index has these columns.
const ADVANCE: &str = "UPDATE run r SET next = k.next, tries = k.tries \
     FROM unnest($1::bigint[], $2::bigint[], $3::int[]) k (seq, next, tries) WHERE r.seq = k.seq";

const UPDATE: &str = "UPDATE run r SET version = k.version, status = k.status, generation = k.generation, \
     next = k.next, fence = k.fence, owner = k.owner, claim = k.claim, ready_at = k.ready_at, tries = k.tries, \
     finished_at = k.finished_at, note = k.note, deleted_at = k.deleted_at, inbox_next = k.inbox_next, \
     signals = k.signals, answered = k.answered, side = k.side, next_place = k.next_place, parked_at = k.parked_at \
     FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
     $8::bigint[], $9::bigint[], $10::int[], $11::bigint[], $12::text[], $13::bigint[], $14::bigint[], $15::int[], \
     $16::int[], $17::boolean[], $18::bigint[], $19::bigint[]) k (seq, version, status, generation, next, fence, owner, claim, ready_at, tries, \
     finished_at, note, deleted_at, inbox_next, signals, answered, side, next_place, parked_at) WHERE r.seq = k.seq";

const INSERT_INPUTS: &str = "INSERT INTO run_input (ns, run, generation, input) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bytea[])";

const INSERT_EVENTS: &str = "INSERT INTO event (ns, run, generation, idx, kind, version, key, at, meta, payload) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::int[], $7::text[], \
     $8::bigint[], $9::bytea[], $10::bytea[])";

pub(super) fn write<'s>(set: &'s WorkingSet, changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    let (mut inserted, mut advanced, mut updated) = (Vec::new(), Vec::new(), Vec::new());
    for (place, changes) in &changed.0 {
        let Some(row) = &changes.row else { continue };
        match (&changes.created, set.stored(&row.key)) {
            (Some(input), _) => inserted.push((*place, row, input)),
            (None, Some(before)) if row == before => {}
            (None, Some(before)) if row.is_advance_of(before) => advanced.push((*place, row)),
            (None, Some(_) | None) => updated.push((*place, row)),
        }
    }
    insert(&inserted, steps);
    if !advanced.is_empty() {
        steps.push(arrays!(ADVANCE, advanced, |(place, row)| [place.run, number(row.next.0), small(row.tries)]));
    }
    if !updated.is_empty() {
        steps.push(update(&updated));
    }
    let inputs = changed.rows(|changes| &changes.inputs);
    for inputs in chunks(&inputs, |(_, (_, input))| input.len()) {
        let step = arrays!(INSERT_INPUTS, inputs, |(place, (generation, input))| [
            place.ns,
            place.run,
            number(generation.0),
            &***input
        ]);
        steps.push(step);
    }
    events(changed, steps);
}

fn insert<'s>(inserted: &[(Place, &'s RunRow, &'s Bytes)], steps: &mut Vec<Step<'s>>) {
    for inserted in chunks(inserted, |(_, _, input)| input.len()) {
        let parent = |row: &'s RunRow| row.parent.as_ref();
        steps.push(arrays!(INSERT, inserted, |(place, row, input)| [
            place.ns,
            place.run,
            row.key.id.as_str(),
            row.workflow.as_str(),
            row.version.as_str(),
            row.status.code(),
            number(row.generation.0),
            number(row.next.0),
            number(row.fence.0),
            row.owner.map(|lease| number(lease.0)),
            row.claim.map(claim_number),
            row.ready_at.map(|at| at.as_millis()),
            row.priority,
            small(row.tries),
            parent(row).map(|parent| parent.run.as_str()),
            parent(row).map(|parent| number(parent.generation.0)),
            parent(row).map(|parent: &'s Parent| Key::as_str(&parent.key)),
            parent(row).map(|parent| parent.detached),
            row.root.as_ref().map(RunId::as_str),
            row.created_at.as_millis(),
            row.finished_at.map(|at| at.as_millis()),
            row.note.as_deref(),
            row.deleted_at.map(|at| at.as_millis()),
            number(row.inbox_next.0),
            small(row.signals),
            small(row.answered),
            row.side,
            row.controlled,
            &***input
        ]));
    }
}

fn update<'s>(updated: &[(Place, &'s RunRow)]) -> Step<'s> {
    arrays!(UPDATE, updated, |(place, row)| [
        place.run,
        row.version.as_str(),
        row.status.code(),
        number(row.generation.0),
        number(row.next.0),
        number(row.fence.0),
        row.owner.map(|lease| number(lease.0)),
        row.claim.map(claim_number),
        row.ready_at.map(|at| at.as_millis()),
        small(row.tries),
        row.finished_at.map(|at| at.as_millis()),
        row.note.as_deref(),
        row.deleted_at.map(|at| at.as_millis()),
        number(row.inbox_next.0),
        small(row.signals),
        small(row.answered),
        row.side,
        row.next_place.map(|at| at.as_millis()),
        row.parked_at.map(|at| at.as_millis())
    ])
}

fn events<'s>(changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    let events = changed.rows(|changes| &changes.events);
    for events in chunks(&events, |(_, (_, record))| record.payload_bytes()) {
        steps.push(arrays!(INSERT_EVENTS, events, |(place, ((generation, index), record))| [
            place.ns,
            place.run,
            number(generation.0),
            number(index.0),
            i32::from(record.kind),
            i32::from(record.version),
            record.key.as_ref().map(Key::as_str),
            record.at.as_millis(),
            record.meta.as_deref(),
            record.payload.as_deref()
        ]));
    }
}

#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 2] {
    [("flush: advance", ADVANCE, &["run_pkey"]), ("flush: update", UPDATE, &["run_pkey"])]
}
