//! Inbox, deduplication, waits, timers, snapshots, attributes.

use outlast_core::commit::InboxItem;
use outlast_core::id::{DeliveryId, Key, SignalName};
use outlast_core::planted;
use outlast_core::time::millis;

use super::{Changed, arrays, chunks};
use crate::postgres::decode::number;
use crate::postgres::session::Step;
use crate::rows::Clear;

const CLEAR_TIMERS: &str = "DELETE FROM timer t USING unnest($1::int[], $2::bigint[]) k (ns, run) \
     WHERE t.ns = k.ns AND t.run = k.run";
/// Waits of an ended run go; of an ended generation the slots of aimed signals stay.
const CLEAR_WAITS: &str = "DELETE FROM wait w USING unnest($1::int[], $2::bigint[], $3::boolean[]) k (ns, run, whole) \
     WHERE w.ns = k.ns AND w.run = k.run AND (k.whole OR w.state <> 0)";
const CLEAR_SLOTS: &str = "DELETE FROM wait w USING unnest($1::int[], $2::bigint[], $3::text[]) k (ns, run, key) \
     WHERE w.ns = k.ns AND w.run = k.run AND w.key = k.key";
/// Items of an ended run go; of an ended generation signals and controls stay.
const CLEAR_INBOX: &str = "DELETE FROM inbox i USING unnest($1::int[], $2::bigint[], $3::boolean[]) k (ns, run, whole) \
     WHERE i.ns = k.ns AND i.run = k.run AND (k.whole OR i.kind BETWEEN 1 AND 6)";
const CLEAR_SNAPSHOTS: &str = "DELETE FROM snapshot s USING unnest($1::int[], $2::bigint[]) k (ns, run) \
     WHERE s.ns = k.ns AND s.run = k.run";
const DETACH_TASKS: &str = "UPDATE task t SET run = NULL, key = NULL FROM unnest($1::bigint[]) k (run) \
     JOIN run r ON r.seq = k.run WHERE t.run = r.id AND t.ns + 0 = r.ns";

const DELETE_INBOX: &str = "DELETE FROM inbox i USING unnest($1::int[], $2::bigint[], $3::bigint[]) k (ns, run, id) \
     WHERE i.ns = k.ns AND i.run = k.run AND i.id = k.id";
const INSERT_INBOX: &str = "INSERT INTO inbox (ns, run, id, kind, key, name, delivery, at, meta, payload) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::smallint[], $5::text[], $6::text[], $7::text[], \
     $8::bigint[], $9::bytea[], $10::bytea[])";
const INSERT_DELIVERED: &str = "INSERT INTO delivered (ns, run, id) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[])";
const PUT_WAITS: &str = "INSERT INTO wait (ns, run, key, kind, state, name, token, heartbeat, assignee, meta, since, \
     answer) SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::smallint[], $5::smallint[], $6::text[], \
     $7::text[], $8::bigint[], $9::text[], $10::bytea[], $11::bigint[], $12::bigint[]) \
     ON CONFLICT (ns, run, key) DO UPDATE SET kind = excluded.kind, state = excluded.state, name = excluded.name, \
     token = excluded.token, heartbeat = excluded.heartbeat, assignee = excluded.assignee, meta = excluded.meta, \
     since = excluded.since, answer = excluded.answer";
const DELETE_TIMERS: &str = "DELETE FROM timer t \
     USING unnest($1::int[], $2::bigint[], $3::text[], $4::smallint[]) k (ns, run, key, kind) \
     WHERE t.ns = k.ns AND t.run = k.run AND t.key = k.key AND t.kind = k.kind";
const PUT_TIMERS: &str = "INSERT INTO timer (ns, run, key, kind, due) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::smallint[], $5::bigint[]) \
     ON CONFLICT (ns, run, key, kind) DO UPDATE SET due = excluded.due";
const PUT_SNAPSHOTS: &str = "INSERT INTO snapshot (ns, run, generation, idx, definition, data) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[]) \
     ON CONFLICT (ns, run) DO UPDATE SET generation = excluded.generation, idx = excluded.idx, \
     definition = excluded.definition, data = excluded.data";
const DELETE_ATTRIBUTES: &str = "DELETE FROM attribute a USING unnest($1::int[], $2::bigint[], $3::text[]) \
     k (ns, run, name) WHERE a.ns = k.ns AND a.run = k.run AND a.name = k.name";
const PUT_ATTRIBUTES: &str = "INSERT INTO attribute (ns, run, name, value) \
     SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) \
     ON CONFLICT (ns, run, name) DO UPDATE SET value = excluded.value";

/// What ended runs and generations leave behind goes before anything new comes.
pub(super) fn clear<'s>(changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    // A run that is new has nothing to clear.
    let cleared = changed.rows(|changes| changes.cleared.filter(|_| changes.created.is_none()));
    if cleared.is_empty() {
        return;
    }
    let whole = |what: &Clear| *what == Clear::Run;
    steps.push(arrays!(CLEAR_TIMERS, cleared, |(place, _)| [place.ns, place.run]));
    steps.push(arrays!(CLEAR_WAITS, cleared, |(place, what)| [place.ns, place.run, whole(what)]));
    let unslotted = changed.rows(|changes| &changes.unslotted);
    if !unslotted.is_empty() {
        steps.push(arrays!(CLEAR_SLOTS, unslotted, |(place, key)| [place.ns, place.run, key.as_str()]));
    }
    steps.push(arrays!(CLEAR_INBOX, cleared, |(place, what)| [place.ns, place.run, whole(what)]));
    steps.push(arrays!(CLEAR_SNAPSHOTS, cleared, |(place, _)| [place.ns, place.run]));
    steps.push(arrays!(DETACH_TASKS, cleared, |(place, _)| [place.run]));
}

pub(super) fn write<'s>(changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    inbox(changed, steps);
    waits(changed, steps);
    timers(changed, steps);
    let snapshots = changed.rows(|changes| changes.snapshot.as_ref());
    for snapshots in chunks(&snapshots, |(_, (_, snapshot))| snapshot.data.len()) {
        steps.push(arrays!(PUT_SNAPSHOTS, snapshots, |(place, (generation, snapshot))| [
            place.ns,
            place.run,
            number(generation.0),
            number(snapshot.index.0),
            snapshot.definition.as_str(),
            &*snapshot.data
        ]));
    }
    attributes(changed, steps);
}

fn inbox<'s>(changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    let removed = changed.rows(|changes| &changes.removed);
    if !removed.is_empty() && !planted!("postgres-inbox-item-kept") {
        steps.push(arrays!(DELETE_INBOX, removed, |(place, id)| [place.ns, place.run, number(id.0)]));
    }
    let pushed = changed.rows(|changes| changes.pushed.values());
    let bytes = |item: &InboxItem| {
        item.payload.as_ref().map_or(0, |payload| payload.len()) + item.meta.as_ref().map_or(0, |meta| meta.len())
    };
    for pushed in chunks(&pushed, |(_, item)| bytes(item)) {
        steps.push(arrays!(INSERT_INBOX, pushed, |(place, item)| [
            place.ns,
            place.run,
            number(item.id.0),
            item.kind.code(),
            item.key.as_ref().map(Key::as_str),
            item.name.as_deref(),
            item.delivery.as_ref().map(DeliveryId::as_str),
            item.at.as_millis(),
            item.meta.as_deref(),
            item.payload.as_deref()
        ]));
    }
    let delivered = changed.rows(|changes| &changes.delivered);
    if !delivered.is_empty() {
        steps.push(arrays!(INSERT_DELIVERED, delivered, |(place, id)| [place.ns, place.run, id.as_str()]));
    }
}

fn waits<'s>(changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    let waits = changed.rows(|changes| changes.waits.values());
    for waits in chunks(&waits, |(_, wait)| wait.meta.as_ref().map_or(0, |meta| meta.len())) {
        steps.push(arrays!(PUT_WAITS, waits, |(place, wait)| [
            place.ns,
            place.run,
            wait.key.as_str(),
            wait.kind.code(),
            wait.state.code(),
            wait.name.as_ref().map(SignalName::as_str),
            wait.token.as_deref(),
            wait.heartbeat.map(millis),
            wait.assignee.as_deref(),
            wait.meta.as_deref(),
            wait.since.as_millis(),
            wait.answer.map(|answer| number(answer.0))
        ]));
    }
}

fn timers<'s>(changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    let timers = changed.rows(|changes| &changes.timers);
    let (put, removed): (Vec<_>, Vec<_>) = timers.into_iter().partition(|(_, (_, timer))| timer.is_some());
    if !removed.is_empty() {
        steps.push(arrays!(DELETE_TIMERS, removed, |(place, (timer, _))| [
            place.ns,
            place.run,
            timer.key.as_str(),
            timer.kind.code()
        ]));
    }
    let put: Vec<_> = put.into_iter().filter_map(|(place, (_, timer))| Some((place, timer.as_ref()?))).collect();
    if !put.is_empty() {
        steps.push(arrays!(PUT_TIMERS, put, |(place, row)| [
            place.ns,
            place.run,
            row.timer.key.as_str(),
            row.timer.kind.code(),
            row.due.as_millis() - i64::from(planted!("postgres-timer-too-early"))
        ]));
    }
}

fn attributes<'s>(changed: &Changed<'s>, steps: &mut Vec<Step<'s>>) {
    let attributes = changed.rows(|changes| &changes.attributes);
    let (put, removed): (Vec<_>, Vec<_>) = attributes.into_iter().partition(|(_, (_, value))| value.is_some());
    if !removed.is_empty() {
        steps.push(arrays!(DELETE_ATTRIBUTES, removed, |(place, (name, _))| [place.ns, place.run, name.as_str()]));
    }
    let put: Vec<_> =
        put.into_iter().filter_map(|(place, (name, value))| Some((place, name, value.as_deref()?))).collect();
    if !put.is_empty() {
        steps.push(arrays!(PUT_ATTRIBUTES, put, |(place, name, value)| [place.ns, place.run, name.as_str(), *value]));
    }
}

#[cfg(test)]
pub(super) fn statements() -> [(&'static str, &'static str, &'static [&'static str]); 8] {
    [
        ("flush: clear timers", CLEAR_TIMERS, &["timer_pkey"]),
        ("flush: clear waits", CLEAR_WAITS, &["wait_pkey"]),
        ("flush: clear inbox", CLEAR_INBOX, &["inbox_pkey"]),
        ("flush: clear snapshots", CLEAR_SNAPSHOTS, &["snapshot_pkey"]),
        ("flush: detach tasks", DETACH_TASKS, &["run_pkey", "task_awaited"]),
        ("flush: delete inbox", DELETE_INBOX, &["inbox_pkey"]),
        ("flush: delete timers", DELETE_TIMERS, &["timer_pkey"]),
        ("flush: delete attributes", DELETE_ATTRIBUTES, &["attribute_pkey"]),
    ]
}
