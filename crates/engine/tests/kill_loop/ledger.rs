//! The ledger: what happened outside the store, in the order in which it happened. A file that outlives every process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use outlast::StepContext;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// When, in milliseconds by this machine's clock, which is the stores' clock too.
    pub(crate) at: i64,
    /// In which life of the process.
    pub(crate) life: u32,
    pub(crate) note: Note,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Note {
    /// A step's body, or a condition's check, began.
    Body { run: String, generation: u64, key: String, attempt: u32 },
    /// A callback's token was handed out.
    Token { callback: String, token: String },
    /// Somebody is about to ask for something.
    Tried(Ask),
    /// And was told that it is done.
    Acked(Ask),
    /// And was told that it had been done before.
    Known(Ask),
    /// An observer was shown an event of this kind that no journal keeps.
    Shown { kind: String },
}

/// What can be asked for, with what tells one asker from another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ask {
    Start { run: String },
    Signal { run: String, id: String },
    Approve { run: String, key: String, feedback: String },
    Resolve { run: String, callback: String, value: u32 },
    Fail { run: String, callback: String, message: String },
    Heartbeat { run: String, callback: String },
    Cancel { run: String },
    Pause { run: String },
    Resume { run: String },
    Fork { from: String, at: u64, run: String },
    Terminate { run: String, reason: String },
}

/// Where a worker writes.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    pub(crate) life: u32,
}

impl Ledger {
    /// The ledger of this process.
    pub(crate) fn own() -> Ledger {
        let path = std::env::var_os("OUTLAST_KILL_LEDGER").expect("a worker has a ledger").into();
        let life = std::env::var("OUTLAST_KILL_LIFE").unwrap().parse().unwrap();
        Ledger { path, life }
    }

    /// One line, written at once: the system keeps it even if the process dies, and no two lines mix.
    pub(crate) fn note(&self, note: Note) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let entry = Entry { at: i64::try_from(at).unwrap(), life: self.life, note };
        let line = format!("{}\n", serde_json::to_string(&entry).unwrap());
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        read(&self.path)
    }
}

/// Witnesses that a body runs.
pub(crate) fn witness(step: &StepContext) {
    let part = |at| step.idempotency_key().splitn(4, '/').nth(at).unwrap().to_owned();
    let (generation, key) = (part(2).parse().unwrap(), part(3));
    let (run, attempt) = (step.run_id().to_string(), step.attempt());
    Ledger::own().note(Note::Body { run, generation, key, attempt });
}

pub(crate) fn read(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
