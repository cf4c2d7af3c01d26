//! Gathers and writes row by row, for stores that have them at hand. PostgreSQL does the same in batches.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::id::RunKey;
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::{Flow, GATES_MAX, Gathered, Line, Planned, flow_of, line_depth, plan, view};
use crate::api::{Admitted, Held, LIST_PAGE_MAX};
use crate::error::StoreError;
use crate::logic::{Halt, live_row};
use crate::rows::{Fault, GateId, GateRow, HeldRow, Rows, RunRow};

/// What admitting asks of rows. Those of runs that somebody seized, or that are parked, are left out everywhere.
pub(crate) trait AdmitRows: Rows {
    /// Slots whose runs have ended.
    fn done_slots(&mut self, limit: usize) -> Result<Vec<(i64, GateId)>, Fault>;
    fn add_slot(&mut self, row: i64, gate: &GateId) -> Result<(), Fault>;
    fn remove_slot(&mut self, row: i64, gate: &GateId) -> Result<(), Fault>;
    /// Runs that are due and stand in no line, the oldest first.
    fn fresh(&mut self, limit: usize) -> Result<Vec<HeldRow>, Fault>;
    /// The head of a gate's line.
    fn line(&mut self, gate: &GateId, limit: usize) -> Result<Vec<HeldRow>, Fault>;
    /// Whether a run whose first gate it is has a place, in whatever line.
    fn is_shared(&mut self, gate: &GateId) -> Result<bool, Fault>;
    /// How many are before a run in its line.
    fn ahead(&mut self, held: &HeldRow, limit: usize) -> Result<usize, Fault>;
    fn due_gates(&mut self, limit: usize) -> Result<Vec<GateId>, Fault>;
    fn gate(&mut self, id: &GateId) -> Result<Option<GateRow>, Fault>;
    fn put_gate(&mut self, gate: &GateRow) -> Result<(), Fault>;
    /// Forgets a gate and the flows through it.
    fn forget_gate(&mut self, id: &GateId) -> Result<(), Fault>;
    fn flow(&mut self, flow: &Flow) -> Result<Option<i64>, Fault>;
    fn put_flow(&mut self, flow: &Flow, finish: i64) -> Result<(), Fault>;
    /// When the next run or gate is due.
    fn next_look(&mut self) -> Result<Option<Timestamp>, Fault>;
    /// Whether anybody stands in a line.
    fn is_waited(&mut self) -> Result<bool, Fault>;
}

/// Admits what has room.
pub(crate) fn admit(rows: &mut dyn AdmitRows, limit: usize) -> Result<Admitted, Halt<StoreError>> {
    let gathered = gather(rows, limit)?;
    let (done, now) = (gathered.done.clone(), gathered.now);
    let planned = plan(gathered);
    let admitted = planned.admitted.len();
    write(rows, &done, &planned)?;
    let next_at = rows.next_look()?;
    let more = next_at.is_some_and(|at| at <= now) || !rows.done_slots(1)?.is_empty();
    Ok(Admitted { now, admitted, next_at, more, waiting: rows.is_waited()? })
}

fn gather(rows: &mut dyn AdmitRows, limit: usize) -> Result<Gathered, Fault> {
    let now = rows.now();
    let done = rows.done_slots(limit)?;
    let fresh = rows.fresh(limit)?;
    let mut looked: BTreeSet<GateId> = done.iter().map(|(_, gate)| gate.clone()).collect();
    if planted!("held-never-admitted") {
        looked.clear();
    }
    looked.extend(rows.due_gates(GATES_MAX)?);
    let mut gathered = Gathered { now, fresh, ..Gathered::default() };
    for id in looked {
        let gate = rows.gate(&id)?;
        let given_back = done.iter().filter(|(_, of)| *of == id).count();
        let depth = line_depth(gate.as_ref(), given_back, now, limit);
        let held = rows.line(&id, depth)?;
        gathered.gates.extend(gate.map(|gate| (id.clone(), gate)));
        let shared = held.is_empty() && rows.is_shared(&id)?;
        gathered.lines.insert(id, Line { more: held.len() == depth, held, shared });
    }
    gathered.done = done;
    let needed = Needed::of(&gathered);
    for id in needed.gates {
        gathered.gates.extend(rows.gate(&id)?.map(|gate| (id, gate)));
    }
    for flow in needed.flows {
        gathered.flows.extend(rows.flow(&flow)?.map(|finish| (flow, finish)));
    }
    Ok(gathered)
}

/// What else has to be known of the runs that were gathered.
pub(crate) struct Needed {
    pub(crate) gates: BTreeSet<GateId>,
    pub(crate) flows: BTreeSet<Flow>,
}

impl Needed {
    pub(crate) fn of(gathered: &Gathered) -> Needed {
        let runs = || gathered.lines.values().flat_map(|line| &line.held).chain(&gathered.fresh);
        let wanted = |held: &HeldRow| held.terms.wants.iter().map(|want| held.gate_id(&want.gate)).collect::<Vec<_>>();
        let unknown = |id: &GateId| !gathered.gates.contains_key(id);
        Needed {
            gates: runs().flat_map(wanted).filter(unknown).collect(),
            flows: gathered.fresh.iter().filter_map(flow_of).collect(),
        }
    }
}

fn write(rows: &mut dyn AdmitRows, done: &[(i64, GateId)], planned: &Planned) -> Result<(), Halt<StoreError>> {
    for (row, gate) in done {
        rows.remove_slot(*row, gate)?;
    }
    for (held, slots) in &planned.admitted {
        let run = live_row(rows, &held.key)?;
        begin(rows, &run)?;
        for gate in slots {
            rows.add_slot(held.row, gate)?;
        }
    }
    for held in &planned.moved {
        rows.put_held(held)?;
    }
    for gate in &planned.gates {
        rows.put_gate(gate)?;
    }
    for (flow, finish) in &planned.flows {
        rows.put_flow(flow, *finish)?;
    }
    for gate in &planned.forgotten {
        rows.forget_gate(gate)?;
    }
    Ok(())
}

/// Lets a held run begin.
pub(crate) fn begin(rows: &mut dyn Rows, run: &RunRow) -> Result<(), Fault> {
    let after = RunRow { ready_at: Some(rows.now()), ..run.clone() };
    rows.update_run(run, &after)?;
    rows.remove_held(run)
}

/// Why a run is held back.
pub(crate) fn held_view(rows: &mut dyn AdmitRows, key: &RunKey) -> Result<Option<Held>, Halt<StoreError>> {
    let run = live_row(rows, key)?;
    let Some(held) = rows.held(&run)? else { return Ok(None) };
    let mut gates = BTreeMap::new();
    for want in &held.terms.wants {
        let id = held.gate_id(&want.gate);
        gates.extend(rows.gate(&id)?.map(|gate| (id, gate)));
    }
    let ahead = if held.gate.is_some() { rows.ahead(&held, LIST_PAGE_MAX)? } else { 0 };
    Ok(Some(view(&held, &gates, ahead, rows.now())))
}
