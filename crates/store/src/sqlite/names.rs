//! What every transaction looks up again: the numbers of namespaces, the rows of runs, whose turn it is.

use outlast_core::id::{Namespace, RunKey};
use rusqlite::{Connection, OptionalExtension};
use rustc_hash::FxHashMap;

use super::error::bad_value;
use crate::logic::turns::Turns;

/// What is looked up again and again: namespaces by name and by number, where runs are that go on, and whose turn it is.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: FxHashMap<Namespace, i64>,
    names: FxHashMap<i64, Namespace>,
    /// Row and generation. Whoever uses them asks for the rest of the run's name too, so that they may be out of date.
    runs: FxHashMap<RunKey, (i64, i64)>,
    pub(super) turns: Turns,
}

/// Runs whose place is remembered. Far more than are driven at once; then it begins anew.
const RUNS_REMEMBERED: usize = 16_384;

impl Names {
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.names.clear();
        self.runs.clear();
    }

    /// Where a run is, or was.
    pub(super) fn place(&self, run: &RunKey) -> Option<(i64, i64)> {
        self.runs.get(run).copied()
    }

    pub(super) fn remember(&mut self, run: &RunKey, row: i64, generation: i64) {
        if self.runs.len() >= RUNS_REMEMBERED {
            self.runs.clear();
        }
        self.runs.insert(run.clone(), (row, generation));
    }

    /// The number of a namespace, if there is one.
    pub(super) fn number(&mut self, connection: &Connection, namespace: &Namespace) -> rusqlite::Result<Option<i64>> {
        if let Some(number) = self.numbers.get(namespace) {
            return Ok(Some(*number));
        }
        let mut statement = connection.prepare_cached("SELECT id FROM namespace WHERE name = ?1")?;
        let found: Option<i64> = statement.query_row([namespace.as_str()], |row| row.get(0)).optional()?;
        if let Some(number) = found {
            self.numbers.insert(namespace.clone(), number);
            self.names.insert(number, namespace.clone());
        }
        Ok(found)
    }

    /// The name of a number.
    pub(super) fn name(&mut self, connection: &Connection, number: i64) -> rusqlite::Result<Namespace> {
        if let Some(name) = self.names.get(&number) {
            return Ok(name.clone());
        }
        let mut statement = connection.prepare_cached("SELECT name FROM namespace WHERE id = ?1")?;
        let name: String = statement.query_row([number], |row| row.get(0))?;
        let namespace = Namespace::new(name).map_err(|error| bad_value("namespace.name", error))?;
        self.names.insert(number, namespace.clone());
        self.numbers.insert(namespace.clone(), number);
        Ok(namespace)
    }
}
