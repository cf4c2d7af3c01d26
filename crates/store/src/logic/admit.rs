//! Admitting runs that were held back.
//!
//! A store gathers who may be admitted, [`plan`] decides, and the store writes what was decided: in one transaction, and
//! never two at a time. So no limit is exceeded at any instant, and nobody waits for a notice that may be lost: whatever
//! makes room is a row that the next call finds.
//!
//! Nobody reads a line in which nobody can move. A run that finds no room stands in the line of one gate that had none, and
//! is looked at again when that one has: a slot was given back, or the time of its rate has come.

#[cfg(test)]
mod model;
mod rate;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use outlast_core::commit::Bound;
use outlast_core::planted;
use outlast_core::time::Timestamp;

use crate::api::{Held, HeldLimit};
use crate::rows::{GateId, GateRow, HeldRow, Want};

pub(crate) use steps::{AdmitRows, admit, held_view};
#[cfg(feature = "postgres")]
pub(crate) use steps::{Needed, begin};

/// Gates looked at in one call.
pub(crate) const GATES_MAX: usize = 64;
/// Runs looked at behind those for which a gate has room: some may wait for another gate as well.
const LOOK_AHEAD: usize = 8;
/// What a run of weight one uses of its share.
const COST: i64 = 1_000_000;
/// A gate that nobody uses is forgotten after so long.
const MEMORY: Duration = Duration::from_secs(60 * 60);

/// What a store found, in one transaction that alone admits.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) now: Timestamp,
    /// Slots of runs that have ended: they go with this call.
    pub(crate) done: Vec<(i64, GateId)>,
    /// Runs that are due and stand in no line, the oldest first.
    pub(crate) fresh: Vec<HeldRow>,
    /// The heads of lines that are looked at: of gates that gave back a slot, or are due.
    pub(crate) lines: BTreeMap<GateId, Line>,
    /// Every gate that any of these runs has to pass, or whose line is looked at, as stored.
    pub(crate) gates: BTreeMap<GateId, GateRow>,
    /// The finish tags of those who share a gate.
    pub(crate) flows: BTreeMap<Flow, i64>,
}

/// Who shares a gate: whose runs, by fairness key; those without one are one.
pub(crate) type Flow = (GateId, String);

/// The head of a line.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) held: Vec<HeldRow>,
    /// Whether there may be more behind.
    pub(crate) more: bool,
    /// Nobody is in it, but somebody who shares the gate stands in another line: its place must not be forgotten. Not
    /// known of a line that has somebody in it.
    pub(crate) shared: bool,
}

/// What to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Planned {
    /// They begin, and have slots at these gates.
    pub(crate) admitted: Vec<(HeldRow, Vec<GateId>)>,
    /// They stand in other lines than before.
    pub(crate) moved: Vec<HeldRow>,
    pub(crate) gates: Vec<GateRow>,
    /// Nobody uses these or waits for them: they go, with the flows through them.
    pub(crate) forgotten: Vec<GateId>,
    pub(crate) flows: BTreeMap<Flow, i64>,
}

/// How many rows of a gate's line to read. None if it has no room.
pub(crate) fn line_depth(gate: Option<&GateRow>, given_back: usize, now: Timestamp, limit: usize) -> usize {
    let Some(gate) = gate else { return LOOK_AHEAD.min(limit) };
    let room = match gate.bound {
        Bound::Concurrency { max } => (max as usize + given_back).saturating_sub(gate.used as usize),
        Bound::Rate(rate) => rate::room(&rate, gate.tat, now),
    };
    // At least one, to know whether anybody waits.
    if room == 0 { 1 } else { room.saturating_add(LOOK_AHEAD).min(limit).max(1) }
}

/// The flow a run belongs to, if it has limits.
pub(crate) fn flow_of(held: &HeldRow) -> Option<Flow> {
    let first = held.terms.wants.first()?;
    let key = held.terms.fair.as_ref().map_or_else(String::new, |fair| fair.key.to_string());
    Some((held.gate_id(&first.gate), key))
}

/// Decides who begins.
pub(crate) fn plan(gathered: Gathered) -> Planned {
    let Gathered { now, done, fresh, lines, gates, flows } = gathered;
    let mut desk =
        Desk { now, gates, lines: BTreeMap::new(), flows, touched: BTreeSet::new(), planned: Planned::default() };
    for (_, gate) in &done {
        desk.give_back(gate);
    }
    let mut candidates = Vec::new();
    for (gate, line) in lines {
        let last = line.held.last().map(HeldRow::order);
        desk.lines.insert(gate, Looked { last, more: line.more, shared: line.shared, left: 0 });
        candidates.extend(line.held);
    }
    for held in fresh {
        candidates.push(desk.enroll(held));
    }
    candidates.sort_by_key(HeldRow::order);
    for held in candidates {
        desk.decide(held);
    }
    desk.close()
}

/// A line that was looked at.
struct Looked {
    /// The last one of it that was read.
    last: Option<(i32, i64, i64)>,
    more: bool,
    shared: bool,
    /// How many stay in it, of those that were read.
    left: usize,
}

struct Desk {
    now: Timestamp,
    gates: BTreeMap<GateId, GateRow>,
    lines: BTreeMap<GateId, Looked>,
    flows: BTreeMap<Flow, i64>,
    touched: BTreeSet<GateId>,
    planned: Planned,
}

impl Desk {
    fn give_back(&mut self, id: &GateId) {
        if let Some(gate) = self.gates.get_mut(id).filter(|_| !planted!("slot-not-given-back")) {
            gate.used = gate.used.saturating_sub(1);
            self.touched.insert(id.clone());
        }
    }

    /// The gate, made if nobody has come to it yet.
    fn gate(&mut self, id: &GateId, bound: Bound) -> &mut GateRow {
        let fresh = || GateRow { id: id.clone(), bound, used: 0, tat: None, passed: 0, look_at: None };
        self.gates.entry(id.clone()).or_insert_with(fresh)
    }

    /// A run is looked at for the first time: it says what its limits are, and gets its place.
    fn enroll(&mut self, mut held: HeldRow) -> HeldRow {
        let now = self.now;
        for Want { gate: name, bound } in &held.terms.wants {
            let id = held.gate_id(name);
            let looked_at = self.lines.contains_key(&id);
            let gate = self.gate(&id, *bound);
            if gate.bound != *bound {
                // What was said last holds for all; others in the line may have room now.
                gate.bound = *bound;
                if let Bound::Rate(rate) = bound {
                    gate.tat = rate::no_later(rate, gate.tat, now);
                }
                if !looked_at {
                    gate.look_at = Some(now);
                }
                self.touched.insert(id);
            }
        }
        if let (None, Some(flow)) = (held.place, flow_of(&held)) {
            let passed = self.gates.get(&flow.0).map_or(0, |gate| gate.passed);
            let start = self.flows.get(&flow).map_or(passed, |finish| passed.max(*finish));
            let weight = held.terms.fair.as_ref().map_or(1, |fair| i64::from(fair.weight.max(1)));
            let finish = start.saturating_add(COST / weight);
            self.flows.insert(flow.clone(), finish);
            self.touched.insert(flow.0.clone());
            self.planned.flows.insert(flow, finish);
            held.place = Some(start);
        }
        held
    }

    /// Admits a run, or has it stand in the line of a gate that has no room for it.
    fn decide(&mut self, held: HeldRow) {
        let blocked = held.terms.wants.iter().find(|want| !self.has_room(&held, want)).map(|want| want.gate.clone());
        let Some(name) = blocked else { return self.admit(held) };
        let id = held.gate_id(&name);
        if let Some(line) = self.lines.get_mut(&id) {
            line.left += 1;
        }
        self.touched.insert(id);
        let stays = held.gate.as_deref() == Some(name.as_str());
        if !stays {
            self.planned.moved.push(HeldRow { gate: Some(name), ..held });
        }
    }

    fn has_room(&mut self, held: &HeldRow, want: &Want) -> bool {
        let id = held.gate_id(&want.gate);
        let (now, order) = (self.now, held.order());
        let gate = self.gate(&id, want.bound);
        let room = match gate.bound {
            Bound::Concurrency { max } => gate.used < max || planted!("limit-ignored"),
            Bound::Rate(rate) => rate::room(&rate, gate.tat, now) > 0,
        };
        let due = gate.look_at.is_some_and(|at| at <= now);
        // Nobody overtakes those who wait and have not been read.
        let overtakes = match self.lines.get(&id) {
            Some(line) => line.more && line.last.is_some_and(|last| last < order),
            None => due,
        };
        room && !overtakes
    }

    fn admit(&mut self, held: HeldRow) {
        let (now, mut slots) = (self.now, Vec::new());
        for want in &held.terms.wants {
            let id = held.gate_id(&want.gate);
            let gate = self.gate(&id, want.bound);
            match gate.bound {
                Bound::Concurrency { .. } => {
                    gate.used += 1;
                    slots.push(id.clone());
                }
                Bound::Rate(rate) => gate.tat = Some(rate::after(&rate, gate.tat, now)),
            }
            self.touched.insert(id);
        }
        if let (Some((first, _)), Some(place)) = (flow_of(&held), held.place)
            && let Some(gate) = self.gates.get_mut(&first)
        {
            gate.passed = gate.passed.max(place);
        }
        self.planned.admitted.push((held, slots));
    }

    /// Says of every gate that changed when to look at it next.
    fn close(mut self) -> Planned {
        let looked = self.lines.keys().cloned();
        let changed: BTreeSet<GateId> = self.touched.iter().cloned().chain(looked).collect();
        for id in changed {
            let Some(mut gate) = self.gates.remove(&id) else { continue };
            match self.next_look(&gate) {
                Next::Forget => self.planned.forgotten.push(id),
                Next::At(at) => {
                    gate.look_at = at;
                    self.planned.gates.push(gate);
                }
            }
        }
        let forgotten = &self.planned.forgotten;
        self.planned.flows.retain(|(gate, _), _| !forgotten.contains(gate));
        self.planned
    }

    fn next_look(&self, gate: &GateRow) -> Next {
        let now = self.now;
        let line = self.lines.get(&gate.id);
        let moved =
            |held: &HeldRow| held.gate.as_deref() == Some(&gate.id.name) && held.key.namespace == gate.id.namespace;
        let waited_for = line.is_some_and(|line| line.left > 0 || line.more) || self.planned.moved.iter().any(moved);
        let more = line.is_some_and(|line| line.more);
        // Who else shares a gate is known only if its line was found empty; and some may have got their places just now.
        let shares = |held: &HeldRow| held.first().is_some_and(|first| held.gate_id(first) == gate.id);
        let shared =
            line.is_none_or(|line| line.shared || line.last.is_some()) || self.planned.moved.iter().any(shares);
        if line.is_none() && gate.look_at.is_some_and(|at| at <= now) {
            // It is due and was not looked at.
            return Next::At(gate.look_at);
        }
        match gate.bound {
            Bound::Concurrency { max } => match gate.used {
                used if used < max && more => Next::At(Some(now)),
                0 if !waited_for && !shared => Next::Forget,
                0 => Next::At(Some(now + MEMORY)),
                _ => Next::At(None),
            },
            Bound::Rate(rate) => match (rate::room_at(&rate, gate.tat), rate::quiet_at(gate.tat)) {
                (room, _) if room > now => Next::At(Some(room)),
                (_, _) if more => Next::At(Some(now)),
                (_, quiet) if quiet > now => Next::At(Some(quiet)),
                (_, _) if !waited_for && !shared => Next::Forget,
                (_, _) => Next::At(Some(now + MEMORY)),
            },
        }
    }
}

enum Next {
    At(Option<Timestamp>),
    Forget,
}

/// Why a run is held back, for people and tools.
pub(crate) fn view(held: &HeldRow, gates: &BTreeMap<GateId, GateRow>, ahead: usize, now: Timestamp) -> Held {
    let limit = |want: &Want| {
        let gate = gates.get(&held.gate_id(&want.gate));
        let (key, single) = want.key();
        let bound = gate.map_or(want.bound, |gate| gate.bound);
        let room_at = match (bound, gate) {
            (Bound::Rate(rate), Some(gate)) => Some(rate::room_at(&rate, gate.tat)).filter(|at| *at > now),
            (Bound::Rate(_) | Bound::Concurrency { .. }, _) => None,
        };
        HeldLimit { key: key.to_owned(), bound, single, used: gate.map_or(0, |gate| gate.used), room_at }
    };
    Held {
        not_before: held.not_before,
        limits: held.terms.wants.iter().map(limit).collect(),
        at: held.gate.as_ref().and_then(|name| held.terms.wants.iter().position(|want| want.gate == *name)),
        ahead,
    }
}
