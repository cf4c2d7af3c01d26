//! What flow control keeps of runs, and start keys.

use super::{Changed, arrays, chunks};
use crate::postgres::session::Step;
use crate::postgres::working_set::{Place, WorkingSet};
use crate::rows::HeldRow;

const REMOVE: &str = "DELETE FROM held h USING unnest($1::bigint[]) k (run) WHERE h.run = k.run";
const PUT: &str = "INSERT INTO held (ns, run, not_before, priority, place, gate, first, terms) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[], $6::text[], $7::text[], \
     $8::text[]) \
     ON CONFLICT (run) DO UPDATE SET not_before = excluded.not_before, place = excluded.place, gate = excluded.gate";
const REHOLD: &str = "UPDATE held h SET gate = NULL FROM unnest($1::bigint[]) k (run) WHERE h.run = k.run";
const DONE: &str = "UPDATE slot s SET done = true FROM unnest($1::bigint[]) k (run) WHERE s.run = k.run";
const REMOVE_START_KEYS: &str = "DELETE FROM start_key s USING unnest($1::int[], $2::text[]) k (ns, run) \
     WHERE s.run = k.run AND s.ns + 0 = k.ns AND s.kind > 0";
/// One that another transaction put meanwhile is a unique key taken: then all is decided again.
const INSERT_START_KEYS: &str = "INSERT INTO start_key (ns, kind, key, run, until) \
     SELECT * FROM unnest($1::int[], $2::smallint[], $3::text[], $4::text[], $5::bigint[])";
/// One that is locked here; it may just have been removed with the run that had it.
const REPLACE_START_KEYS: &str = "INSERT INTO start_key (ns, kind, key, run, until) \
     SELECT * FROM unnest($1::int[], $2::smallint[], $3::text[], $4::text[], $5::bigint[]) \
     ON CONFLICT (ns, kind, key) DO UPDATE SET run = excluded.run, until = excluded.until";
const REPLACE_INPUTS: &str = "UPDATE run r SET input = k.input FROM unnest($1::bigint[], $2::bytea[]) k (seq, input) \
     WHERE r.seq = k.seq";

pub(super) fn write<'s>(set: &'s WorkingSet, changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    let held = changed.rows(|changes| changes.held.as_ref());
    let removed: Vec<_> = held.iter().filter(|(_, held)| held.is_none()).collect();
    if !removed.is_empty() {
        steps.push(arrays!(REMOVE, removed, |(place, _)| [place.run]));
    }
    let put: Vec<(Place, &HeldRow)> = held.iter().filter_map(|(place, held)| Some((*place, held.as_ref()?))).collect();
    if !put.is_empty() {
        steps.push(self::put(&put));
    }
    let reheld = changed.rows(|changes| changes.reheld.then_some(()));
    if !reheld.is_empty() {
        steps.push(arrays!(REHOLD, reheld, |(place, ())| [place.run]));
    }
    let replaced = changed.rows(|changes| changes.replaced.as_ref());
    for replaced in chunks(&replaced, |(_, input)| input.len()) {
        steps.push(arrays!(REPLACE_INPUTS, replaced, |(place, input)| [place.run, &***input]));
    }
    leave(set, steps);
    start_keys(set, steps);
}

pub(in super::super) fn put<'s>(rows: &[(Place, &'s HeldRow)]) -> Step<'s> {
    arrays!(PUT, rows, |(place, held)| [
        place.ns,
        place.run,
        held.not_before.as_millis(),
        held.priority,
        held.place,
        held.gate.as_deref(),
        held.first(),
        held.terms.encode()
    ])
}

fn leave<'s>(set: &'s WorkingSet, steps: &mut Vec<Step<'s>>) {
    let left = set.changes.runs.iter().filter(|(_, changes)| changes.left);
    let left: Vec<_> = left.filter_map(|(run, _)| Some((set.place(run)?, run))).collect();
    if !left.is_empty() {
        steps.push(arrays!(DONE, left, |(place, _)| [place.run]));
        steps.push(arrays!(REMOVE_START_KEYS, left, |(place, run)| [place.ns, run.id.as_str()]));
    }
}

fn start_keys<'s>(set: &'s WorkingSet, steps: &mut Vec<Step<'s>>) {
    let (mut inserted, mut replaced) = (Vec::new(), Vec::new());
    for (key, row) in &set.changes.start_keys {
        let Some(ns) = set.facts.namespaces.get(&key.0) else { continue };
        let stored = matches!(set.facts.start_keys.get(key), Some(Ok(Some(_))));
        if stored { &mut replaced } else { &mut inserted }.push((*ns, key, row));
    }
    for (sql, rows) in [(INSERT_START_KEYS, inserted), (REPLACE_START_KEYS, replaced)] {
        if !rows.is_empty() {
            steps.push(arrays!(sql, rows, |(ns, key, row)| [
                *ns,
                key.1.code(),
                key.2.as_str(),
                row.run.as_str(),
                row.until.as_millis()
            ]));
        }
    }
}

#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 5] {
    [
        ("flush: remove held", REMOVE, &["held_pkey"]),
        ("flush: rehold", REHOLD, &["held_pkey"]),
        ("flush: slots done", DONE, &["slot_pkey"]),
        ("flush: remove start keys", REMOVE_START_KEYS, &["start_key_run"]),
        ("flush: replace inputs", REPLACE_INPUTS, &["run_pkey"]),
    ]
}
