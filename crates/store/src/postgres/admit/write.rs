//! What was planned, as statements over arrays. Everything about the runs themselves is in the working set.

use outlast_core::time::Timestamp;

use super::ns_of;
use crate::logic::admit::Planned;
use crate::postgres::Core;
use crate::postgres::flush::arrays;
use crate::postgres::session::Step;
use crate::rows::GateId;

const REMOVE_SLOTS: &str = "DELETE FROM slot s USING unnest($1::bigint[], $2::text[]) k (run, gate) \
     WHERE s.run = k.run AND s.gate = k.gate";
const ADD_SLOTS: &str = "INSERT INTO slot (ns, run, gate, done) \
     SELECT k.ns, k.run, k.gate, false FROM unnest($1::int[], $2::bigint[], $3::text[]) k (ns, run, gate)";
const MOVE: &str = "UPDATE held h SET place = k.place, gate = k.gate \
     FROM unnest($1::bigint[], $2::bigint[], $3::text[]) k (run, place, gate) WHERE h.run = k.run";
const PUT_GATES: &str = "INSERT INTO gate (ns, name, bound, used, tat, passed, look_at) \
     SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[]) \
     ON CONFLICT (ns, name) DO UPDATE SET bound = excluded.bound, used = excluded.used, tat = excluded.tat, \
     passed = excluded.passed, look_at = excluded.look_at";
const PUT_FLOWS: &str = "INSERT INTO flow (ns, gate, key, finish) \
     SELECT * FROM unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) \
     ON CONFLICT (ns, gate, key) DO UPDATE SET finish = excluded.finish";
const FORGET_FLOWS: &str = "DELETE FROM flow f USING unnest($1::int[], $2::text[]) k (ns, gate) \
     WHERE f.ns = k.ns AND f.gate = k.gate";
const FORGET_GATES: &str = "DELETE FROM gate g USING unnest($1::int[], $2::text[]) k (ns, name) \
     WHERE g.ns = k.ns AND g.name = k.name";

pub(super) fn steps<'s>(core: &Core, done: &'s [(i64, GateId)], planned: &'s Planned, steps: &mut Vec<Step<'s>>) {
    let ns = |gate: &GateId| ns_of(core, &gate.namespace);
    if !done.is_empty() {
        steps.push(arrays!(REMOVE_SLOTS, done, |(run, gate)| [*run, gate.name.as_str()]));
    }
    let slots: Vec<(i64, &GateId)> =
        planned.admitted.iter().flat_map(|(held, gates)| gates.iter().map(|gate| (held.row, gate))).collect();
    if !slots.is_empty() {
        steps.push(arrays!(ADD_SLOTS, slots, |(run, gate)| [ns(gate), *run, gate.name.as_str()]));
    }
    if !planned.moved.is_empty() {
        steps.push(arrays!(MOVE, planned.moved, |held| [held.row, held.place, held.gate.as_deref()]));
    }
    if !planned.gates.is_empty() {
        steps.push(arrays!(PUT_GATES, planned.gates, |gate| [
            ns(&gate.id),
            gate.id.name.as_str(),
            gate.bound_text(),
            i32::try_from(gate.used).unwrap_or(i32::MAX),
            gate.tat,
            gate.passed,
            gate.look_at.map(Timestamp::as_millis)
        ]));
    }
    if !planned.flows.is_empty() {
        let flows: Vec<_> = planned.flows.iter().collect();
        steps.push(arrays!(PUT_FLOWS, flows, |((gate, key), finish)| [
            ns(gate),
            gate.name.as_str(),
            key.as_str(),
            **finish
        ]));
    }
    if !planned.forgotten.is_empty() {
        steps.push(arrays!(FORGET_FLOWS, planned.forgotten, |gate| [ns(gate), gate.name.as_str()]));
        steps.push(arrays!(FORGET_GATES, planned.forgotten, |gate| [ns(gate), gate.name.as_str()]));
    }
}
