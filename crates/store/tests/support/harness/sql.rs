//! Writes past the API: what both databases share of them.

use outlast_core::id::RunKey;
use outlast_store::contract::RawWrite;

/// Where the two databases differ.
pub(crate) struct Dialect {
    /// The column that numbers runs.
    pub(crate) row: &'static str,
    /// A value one byte over the ceiling.
    pub(crate) oversize: &'static str,
    /// Makes the table take what its checks refuse.
    pub(crate) unchecked: fn(table: &str, column: &str) -> String,
}

impl Dialect {
    /// The statements that do it.
    pub(crate) fn statements(&self, write: &RawWrite) -> String {
        let row = self.row;
        let unchecked = |table, column| (self.unchecked)(table, column);
        match write {
            RawWrite::EmptyRunId => format!(
                "CREATE TEMP TABLE ghost AS SELECT * FROM run LIMIT 1; \
                 UPDATE ghost SET {row} = {row} + 1000, id = ''; \
                 INSERT INTO run SELECT * FROM ghost;"
            ),
            RawWrite::BlankRunId { run } => format!("UPDATE run SET id = '' WHERE {};", self.is(run)),
            RawWrite::EmptyKey { run } => format!("UPDATE event SET key = '' WHERE idx = 0 AND {};", self.of(run)),
            RawWrite::OversizePayload { run } => {
                format!("UPDATE event SET payload = {} WHERE idx = 0 AND {};", self.oversize, self.of(run))
            }
            RawWrite::UnknownStatus { run } => format!("UPDATE run SET status = 99 WHERE {};", self.is(run)),
            RawWrite::SecondEvent { run } => {
                format!("INSERT INTO event SELECT * FROM event WHERE idx = 0 AND {};", self.of(run))
            }
            RawWrite::EmptyDefinition => "UPDATE definition SET workflow = '';".to_owned(),
            RawWrite::OversizeDefinition => format!("UPDATE definition SET text = {};", self.oversize),
            RawWrite::UnknownStyle => "UPDATE definition SET style = 9;".to_owned(),
            RawWrite::CorruptRun { run } => {
                format!("{} UPDATE run SET version = '' WHERE {};", unchecked("run", "version"), self.is(run))
            }
            RawWrite::CorruptEvent { run, index } => {
                let unchecked = unchecked("event", "kind");
                format!("{unchecked} UPDATE event SET kind = 70000 WHERE idx = {index} AND {};", self.of(run))
            }
            RawWrite::DropEvent { run, index } => {
                format!("DELETE FROM event WHERE idx = {index} AND {};", self.of(run))
            }
            RawWrite::DropSnapshots { run } => format!("DELETE FROM snapshot WHERE {};", self.of(run)),
        }
    }

    /// The condition that names the run.
    pub(crate) fn is(&self, run: &RunKey) -> String {
        let quoted = |text: &str| text.replace('\'', "''");
        let (namespace, id) = (quoted(run.namespace.as_str()), quoted(run.id.as_str()));
        format!("id = '{id}' AND ns = (SELECT id FROM namespace WHERE name = '{namespace}')")
    }

    fn of(&self, run: &RunKey) -> String {
        format!("run = (SELECT {} FROM run WHERE {})", self.row, self.is(run))
    }
}
