//! Flow control over prepared statements.

use bytes::Bytes;
use outlast_core::id::{Namespace, RunId, RunKey};
use outlast_core::time::Timestamp;
use rusqlite::{Params, Row, params};

use super::error::bad_value;
use super::rows::{INLINE_INPUT_BYTES, SqliteRows};
use crate::logic::admit::{AdmitRows, Flow};
use crate::rows::{Fault, GateId, GateRow, HeldRow, HeldRows, Rows, RunRow, StartKey, StartKeyRow, Terms};

const PUT_HELD: &str = "INSERT OR REPLACE INTO held (ns, run, not_before, priority, place, gate, first, terms) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const HELD: &str = "SELECT h.ns, h.run, r.id, h.not_before, h.priority, h.place, h.gate, h.terms \
     FROM held h JOIN run r ON r.row = h.run WHERE h.run = ?1";

/// Held runs in no line that are due. The join leaves out those that were seized or parked.
pub(super) const FRESH: &str = "SELECT h.ns, h.run, r.id, h.not_before, h.priority, h.place, h.gate, h.terms \
     FROM held h CROSS JOIN run r ON r.row = h.run AND r.status = 0 AND r.owner IS NULL AND r.ready_at IS NULL \
     WHERE h.gate IS NULL AND h.not_before <= ?1 ORDER BY h.not_before, h.run LIMIT ?2";

/// The head of a line.
pub(super) const LINE: &str = "SELECT h.ns, h.run, r.id, h.not_before, h.priority, h.place, h.gate, h.terms \
     FROM held h CROSS JOIN run r ON r.row = h.run AND r.status = 0 AND r.owner IS NULL AND r.ready_at IS NULL \
     WHERE h.ns = ?1 AND h.gate = ?2 AND h.gate IS NOT NULL ORDER BY h.priority DESC, h.place, h.run LIMIT ?3";

pub(super) const SHARED: &str = "SELECT 1 FROM held WHERE ns = ?1 AND first = ?2 AND place IS NOT NULL LIMIT 1";

const AHEAD: &str = "SELECT count(*) FROM (SELECT 1 FROM held WHERE ns = ?1 AND gate = ?2 AND gate IS NOT NULL \
     AND (priority > ?3 OR priority = ?3 AND (place, run) < (?4, ?5)) LIMIT ?6)";

pub(super) const DONE_SLOTS: &str = "SELECT ns, run, gate FROM slot WHERE done ORDER BY run, gate LIMIT ?1";

pub(super) const DUE_GATES: &str =
    "SELECT ns, name FROM gate WHERE look_at IS NOT NULL AND look_at <= ?1 ORDER BY look_at, name LIMIT ?2";

const PUT_GATE: &str = "INSERT OR REPLACE INTO gate (ns, name, bound, used, tat, passed, look_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// When the first of those that may begin later is due. Those that were seized or parked must not be looked at again and
/// again.
pub(super) const NEXT_FRESH: &str = "SELECT h.not_before FROM held h CROSS JOIN run r \
     ON r.row = h.run AND r.status = 0 AND r.owner IS NULL AND r.ready_at IS NULL \
     WHERE h.gate IS NULL ORDER BY h.not_before, h.run LIMIT 1";

const FORGET_WINDOWS: &str = "DELETE FROM start_key WHERE (ns, kind, key) IN \
     (SELECT ns, kind, key FROM start_key WHERE kind = 0 AND until <= ?1 ORDER BY until LIMIT ?2)";

/// Forgets idempotency windows that are over.
pub(super) fn forget_windows(rows: &SqliteRows<'_>, now: Timestamp, limit: i64) -> Result<usize, Fault> {
    rows.execute(FORGET_WINDOWS, params![now.as_millis(), limit])
}

/// The columns of a held run that need no other row, and its namespace's number.
fn held(row: &Row<'_>) -> rusqlite::Result<(i64, HeldRow)> {
    let id = RunId::new(row.get::<_, String>(2)?).map_err(|error| bad_value("run.id", error))?;
    let terms = Terms::decode(&row.get::<_, String>(7)?).map_err(|error| bad_value("held.terms", error))?;
    let held = HeldRow {
        row: row.get(1)?,
        // Whoever reads it knows the namespace.
        key: RunKey::new(Namespace::default_namespace(), id),
        not_before: Timestamp::from_millis(row.get(3)?),
        priority: row.get(4)?,
        place: row.get(5)?,
        gate: row.get(6)?,
        terms,
    };
    Ok((row.get(0)?, held))
}

fn size(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl SqliteRows<'_> {
    fn held_runs(&mut self, sql: &'static str, params: impl Params) -> Result<Vec<HeldRow>, Fault> {
        let found = self.many(sql, params, held)?;
        let named = |(ns, held): (i64, HeldRow)| {
            let namespace = self.names.name(self.connection, ns)?;
            Ok(HeldRow { key: RunKey::new(namespace, held.key.id), ..held })
        };
        found.into_iter().map(named).collect()
    }

    fn gate_id(&mut self, ns: i64, name: String) -> Result<GateId, Fault> {
        Ok(GateId { namespace: self.names.name(self.connection, ns)?, name })
    }
}

impl HeldRows for SqliteRows<'_> {
    fn held(&mut self, run: &RunRow) -> Result<Option<HeldRow>, Fault> {
        Ok(self.held_runs(HELD, [run.row])?.pop())
    }

    fn put_held(&mut self, held: &HeldRow) -> Result<(), Fault> {
        let ns = self.ns(&held.key.namespace)?;
        let at = held.not_before.as_millis();
        self.execute(
            PUT_HELD,
            params![ns, held.row, at, held.priority, held.place, held.gate, held.first(), held.terms.encode()],
        )?;
        Ok(())
    }

    fn remove_held(&mut self, run: &RunRow) -> Result<(), Fault> {
        self.execute("DELETE FROM held WHERE run = ?1", [run.row])?;
        Ok(())
    }

    fn rehold(&mut self, run: &RunRow) -> Result<(), Fault> {
        self.execute("UPDATE held SET gate = NULL WHERE run = ?1", [run.row])?;
        Ok(())
    }

    fn leave(&mut self, run: &RunRow) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        self.remove_held(run)?;
        self.execute("UPDATE slot SET done = 1 WHERE run = ?1", [run.row])?;
        let sql = "DELETE FROM start_key WHERE ns = ?1 AND run = ?2 AND kind > 0";
        self.execute(sql, params![ns, run.key.id.as_str()])?;
        Ok(())
    }

    fn replace_input(&mut self, run: &RunRow, input: &Bytes) -> Result<(), Fault> {
        let ns = self.ns(&run.key.namespace)?;
        let inline = input.len() <= INLINE_INPUT_BYTES;
        self.execute("UPDATE run SET input = ?2 WHERE row = ?1", params![run.row, inline.then_some(input.as_ref())])?;
        self.execute("DELETE FROM run_input WHERE ns = ?1 AND run = ?2 AND generation = 0", params![ns, run.row])?;
        if inline { Ok(()) } else { self.put_input(run, outlast_core::id::Generation(0), input) }
    }

    fn start_key(&mut self, key: &StartKey) -> Result<Option<StartKeyRow>, Fault> {
        let (namespace, kind, key) = key;
        let Some(ns) = self.names.number(self.connection, namespace)? else { return Ok(None) };
        let sql = "SELECT run, until FROM start_key WHERE ns = ?1 AND kind = ?2 AND key = ?3";
        self.one(sql, params![ns, kind.code(), key.as_str()], |row| {
            let run = RunId::new(row.get::<_, String>(0)?).map_err(|error| bad_value("start_key.run", error))?;
            Ok(StartKeyRow { run, until: Timestamp::from_millis(row.get(1)?) })
        })
    }

    fn put_start_key(&mut self, key: &StartKey, row: &StartKeyRow) -> Result<(), Fault> {
        let (namespace, kind, key) = key;
        let ns = self.ns(namespace)?;
        let sql = "INSERT OR REPLACE INTO start_key (ns, kind, key, run, until) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(sql, params![ns, kind.code(), key.as_str(), row.run.as_str(), row.until.as_millis()])?;
        Ok(())
    }
}

impl AdmitRows for SqliteRows<'_> {
    fn done_slots(&mut self, limit: usize) -> Result<Vec<(i64, GateId)>, Fault> {
        let found = self.many(DONE_SLOTS, [size(limit)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
        })?;
        found.into_iter().map(|(ns, run, gate)| Ok((run, self.gate_id(ns, gate)?))).collect()
    }

    fn add_slot(&mut self, row: i64, gate: &GateId) -> Result<(), Fault> {
        let ns = self.ns(&gate.namespace)?;
        self.execute("INSERT INTO slot (ns, run, gate, done) VALUES (?1, ?2, ?3, 0)", params![ns, row, gate.name])?;
        Ok(())
    }

    fn remove_slot(&mut self, row: i64, gate: &GateId) -> Result<(), Fault> {
        self.execute("DELETE FROM slot WHERE run = ?1 AND gate = ?2", params![row, gate.name])?;
        Ok(())
    }

    fn fresh(&mut self, limit: usize) -> Result<Vec<HeldRow>, Fault> {
        let now = self.now().as_millis();
        self.held_runs(FRESH, params![now, size(limit)])
    }

    fn line(&mut self, gate: &GateId, limit: usize) -> Result<Vec<HeldRow>, Fault> {
        let ns = self.ns(&gate.namespace)?;
        self.held_runs(LINE, params![ns, gate.name, size(limit)])
    }

    fn is_shared(&mut self, gate: &GateId) -> Result<bool, Fault> {
        let ns = self.ns(&gate.namespace)?;
        Ok(self.one(SHARED, params![ns, gate.name], |_| Ok(()))?.is_some())
    }

    fn ahead(&mut self, held: &HeldRow, limit: usize) -> Result<usize, Fault> {
        let ns = self.ns(&held.key.namespace)?;
        let params = params![ns, held.gate, held.priority, held.place.unwrap_or(0), held.row, size(limit)];
        let ahead = self.one(AHEAD, params, |row| row.get::<_, i64>(0))?;
        Ok(usize::try_from(ahead.unwrap_or(0)).unwrap_or(0))
    }

    fn due_gates(&mut self, limit: usize) -> Result<Vec<GateId>, Fault> {
        let now = self.now().as_millis();
        let found = self.many(DUE_GATES, params![now, size(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.into_iter().map(|(ns, name)| self.gate_id(ns, name)).collect()
    }

    fn gate(&mut self, id: &GateId) -> Result<Option<GateRow>, Fault> {
        let ns = self.ns(&id.namespace)?;
        let sql = "SELECT bound, used, tat, passed, look_at FROM gate WHERE ns = ?1 AND name = ?2";
        self.one(sql, params![ns, id.name], |row| {
            let bound = GateRow::bound_of(&row.get::<_, String>(0)?).map_err(|error| bad_value("gate.bound", error))?;
            Ok(GateRow {
                id: id.clone(),
                bound,
                used: row.get(1)?,
                tat: row.get(2)?,
                passed: row.get(3)?,
                look_at: row.get::<_, Option<i64>>(4)?.map(Timestamp::from_millis),
            })
        })
    }

    fn put_gate(&mut self, gate: &GateRow) -> Result<(), Fault> {
        let ns = self.ns(&gate.id.namespace)?;
        let look_at = gate.look_at.map(Timestamp::as_millis);
        let params = params![ns, gate.id.name, gate.bound_text(), gate.used, gate.tat, gate.passed, look_at];
        self.execute(PUT_GATE, params)?;
        Ok(())
    }

    fn forget_gate(&mut self, id: &GateId) -> Result<(), Fault> {
        let ns = self.ns(&id.namespace)?;
        self.execute("DELETE FROM gate WHERE ns = ?1 AND name = ?2", params![ns, id.name])?;
        self.execute("DELETE FROM flow WHERE ns = ?1 AND gate = ?2", params![ns, id.name])?;
        Ok(())
    }

    fn flow(&mut self, (gate, key): &Flow) -> Result<Option<i64>, Fault> {
        let ns = self.ns(&gate.namespace)?;
        let sql = "SELECT finish FROM flow WHERE ns = ?1 AND gate = ?2 AND key = ?3";
        self.one(sql, params![ns, gate.name, key], |row| row.get(0))
    }

    fn put_flow(&mut self, (gate, key): &Flow, finish: i64) -> Result<(), Fault> {
        let ns = self.ns(&gate.namespace)?;
        let sql = "INSERT OR REPLACE INTO flow (ns, gate, key, finish) VALUES (?1, ?2, ?3, ?4)";
        self.execute(sql, params![ns, gate.name, key, finish])?;
        Ok(())
    }

    fn next_look(&mut self) -> Result<Option<Timestamp>, Fault> {
        let run = self.one(NEXT_FRESH, [], |row| row.get::<_, i64>(0))?;
        let sql = "SELECT min(look_at) FROM gate WHERE look_at IS NOT NULL";
        let gate = self.one(sql, [], |row| row.get::<_, Option<i64>>(0))?.flatten();
        Ok(run.into_iter().chain(gate).min().map(Timestamp::from_millis))
    }

    fn is_waited(&mut self) -> Result<bool, Fault> {
        let sql = "SELECT 1 FROM held WHERE gate IS NOT NULL LIMIT 1";
        Ok(self.one(sql, [], |_| Ok(()))?.is_some())
    }
}
