//! Flow control over maps.

use bytes::Bytes;
use outlast_core::id::Generation;
use outlast_core::time::Timestamp;

use super::State;
use crate::logic::admit::{AdmitRows, Flow};
use crate::rows::{Fault, GateId, GateRow, HeldRow, HeldRows, Rows, RunRow, StartKey, StartKeyRow, StartKind};

/// A place in a line: the gate, and [`HeldRow::order`].
pub(super) type PlaceInLine = (GateId, (i32, i64, i64));

fn place(held: &HeldRow) -> Option<PlaceInLine> {
    held.gate.as_ref().map(|name| (held.gate_id(name), held.order()))
}

#[cfg(test)]
impl super::MemoryStore {
    /// Whether nothing of flow control is left.
    pub(crate) fn has_no_flow(&self) -> bool {
        let state = self.state();
        state.held.is_empty()
            && state.lines.is_empty()
            && state.gates.is_empty()
            && state.slots.is_empty()
            && state.flows.is_empty()
    }
}

impl State {
    fn forget_held(&mut self, row: i64) {
        if let Some(held) = self.held.remove(&row) {
            self.fresh.remove(&(held.not_before, row));
            if let Some(place) = place(&held) {
                self.lines.remove(&place);
            }
        }
    }

    /// The held run, unless somebody seized it or it is parked.
    fn admissible(&self, row: i64) -> Option<&HeldRow> {
        self.by_row(row).filter(|run| run.is_held() && run.owner.is_none())?;
        self.held.get(&row)
    }

    /// Forgets idempotency windows that are over.
    pub(super) fn forget_windows(&mut self, now: Timestamp, limit: usize) -> usize {
        let over = |(key, row): &(&StartKey, &StartKeyRow)| key.1 == StartKind::Window && row.until <= now;
        let over: Vec<StartKey> = self.start_keys.iter().filter(over).take(limit).map(|(key, _)| key.clone()).collect();
        for key in &over {
            self.start_keys.remove(key);
        }
        over.len()
    }
}

impl HeldRows for State {
    fn held(&mut self, run: &RunRow) -> Result<Option<HeldRow>, Fault> {
        Ok(self.held.get(&run.row).cloned())
    }

    fn put_held(&mut self, held: &HeldRow) -> Result<(), Fault> {
        self.forget_held(held.row);
        match place(held) {
            Some(place) => drop(self.lines.insert(place)),
            None => drop(self.fresh.insert((held.not_before, held.row))),
        }
        self.held.insert(held.row, held.clone());
        Ok(())
    }

    fn remove_held(&mut self, run: &RunRow) -> Result<(), Fault> {
        self.forget_held(run.row);
        Ok(())
    }

    fn rehold(&mut self, run: &RunRow) -> Result<(), Fault> {
        match self.held.get(&run.row).cloned() {
            Some(held) => self.put_held(&HeldRow { gate: None, ..held }),
            None => Ok(()),
        }
    }

    fn leave(&mut self, run: &RunRow) -> Result<(), Fault> {
        self.forget_held(run.row);
        for ((row, _), done) in &mut self.slots {
            *done |= *row == run.row;
        }
        let mine = |key: &StartKey, row: &StartKeyRow| key.0 == run.key.namespace && row.run == run.key.id;
        self.start_keys.retain(|key, row| key.1 == StartKind::Window || !mine(key, row));
        Ok(())
    }

    fn replace_input(&mut self, run: &RunRow, input: &Bytes) -> Result<(), Fault> {
        self.inputs.insert((run.row, Generation(0)), input.clone());
        Ok(())
    }

    fn start_key(&mut self, key: &StartKey) -> Result<Option<StartKeyRow>, Fault> {
        Ok(self.start_keys.get(key).cloned())
    }

    fn put_start_key(&mut self, key: &StartKey, row: &StartKeyRow) -> Result<(), Fault> {
        self.start_keys.insert(key.clone(), row.clone());
        Ok(())
    }
}

impl AdmitRows for State {
    fn done_slots(&mut self, limit: usize) -> Result<Vec<(i64, GateId)>, Fault> {
        let done = self.slots.iter().filter(|(_, done)| **done);
        Ok(done.take(limit).map(|(slot, _)| slot.clone()).collect())
    }

    fn add_slot(&mut self, row: i64, gate: &GateId) -> Result<(), Fault> {
        self.slots.insert((row, gate.clone()), false);
        Ok(())
    }

    fn remove_slot(&mut self, row: i64, gate: &GateId) -> Result<(), Fault> {
        self.slots.remove(&(row, gate.clone()));
        Ok(())
    }

    fn fresh(&mut self, limit: usize) -> Result<Vec<HeldRow>, Fault> {
        let now = self.now();
        let due = self.fresh.iter().take_while(|(not_before, _)| *not_before <= now);
        Ok(due.filter_map(|(_, row)| self.admissible(*row)).take(limit).cloned().collect())
    }

    fn line(&mut self, gate: &GateId, limit: usize) -> Result<Vec<HeldRow>, Fault> {
        let all = (gate.clone(), (i32::MIN, i64::MIN, i64::MIN))..=(gate.clone(), (i32::MAX, i64::MAX, i64::MAX));
        let line = self.lines.range(all).filter_map(|(_, (_, _, row))| self.admissible(*row));
        Ok(line.take(limit).cloned().collect())
    }

    fn is_shared(&mut self, gate: &GateId) -> Result<bool, Fault> {
        let shares =
            |held: &HeldRow| held.place.is_some() && held.first().is_some_and(|first| held.gate_id(first) == *gate);
        Ok(self.held.values().any(shares))
    }

    fn ahead(&mut self, held: &HeldRow, limit: usize) -> Result<usize, Fault> {
        let Some((gate, order)) = place(held) else { return Ok(0) };
        let before = (gate.clone(), (i32::MIN, i64::MIN, i64::MIN))..(gate, order);
        Ok(self.lines.range(before).take(limit).count())
    }

    fn due_gates(&mut self, limit: usize) -> Result<Vec<GateId>, Fault> {
        let now = self.now();
        let mut due: Vec<(Timestamp, GateId)> =
            self.gates.values().filter_map(|gate| Some((gate.look_at?, gate.id.clone()))).collect();
        due.retain(|(at, _)| *at <= now);
        due.sort();
        due.truncate(limit);
        Ok(due.into_iter().map(|(_, id)| id).collect())
    }

    fn gate(&mut self, id: &GateId) -> Result<Option<GateRow>, Fault> {
        Ok(self.gates.get(id).cloned())
    }

    fn put_gate(&mut self, gate: &GateRow) -> Result<(), Fault> {
        self.gates.insert(gate.id.clone(), gate.clone());
        Ok(())
    }

    fn forget_gate(&mut self, id: &GateId) -> Result<(), Fault> {
        self.gates.remove(id);
        self.flows.retain(|(gate, _), _| gate != id);
        Ok(())
    }

    fn flow(&mut self, flow: &Flow) -> Result<Option<i64>, Fault> {
        Ok(self.flows.get(flow).copied())
    }

    fn put_flow(&mut self, flow: &Flow, finish: i64) -> Result<(), Fault> {
        self.flows.insert(flow.clone(), finish);
        Ok(())
    }

    fn next_look(&mut self) -> Result<Option<Timestamp>, Fault> {
        let run = self.fresh.iter().find(|(_, row)| self.admissible(*row).is_some()).map(|(at, _)| *at);
        let gate = self.gates.values().filter_map(|gate| gate.look_at).min();
        Ok(run.into_iter().chain(gate).min())
    }

    fn is_waited(&mut self) -> Result<bool, Fault> {
        Ok(!self.lines.is_empty())
    }
}
