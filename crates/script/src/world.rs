//! What a script knows about its run, and the operations it has started.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_core::event::ClosePolicy;
use outlast_core::id::Key;
use outlast_core::operation::{Keys, Location, Operation, OperationKind, Operations};

use crate::value::Id;

/// The part of what is open that sleeps which lost come to before they are looked at.
const LOST_SLEEPS_SHARE: usize = 8;

/// Makes the token of the callback with a key.
pub type Tokens = Arc<dyn Fn(&Key) -> String + Send + Sync>;

/// What a script is told about its run.
#[derive(Clone)]
pub struct RunInfo {
    /// The run's id: `Context.runId`.
    pub run_id: String,
    /// The workflow's name: `Context.workflow`. It says which of the file's workflows runs.
    pub workflow: String,
    /// Makes the token of the callback with a key: a secret, which is never saved.
    pub tokens: Tokens,
}

/// An operation that is started and not settled.
#[derive(Clone, Debug)]
pub(crate) struct OpenOperation {
    pub(crate) promise: Id,
    pub(crate) kind: OperationKind,
    /// Its place in the order of starts.
    pub(crate) order: u64,
    pub(crate) is_awaited: bool,
    /// Whether it goes on even if it loses a race: it was detached, or is a child that does not end so.
    pub(crate) stays: bool,
    /// Whether it lost a race. It is taken back once nobody can learn of its end.
    pub(crate) is_lost: bool,
    /// Where it was written.
    pub(crate) at: (u32, u32),
}

pub(crate) struct World {
    pub(crate) info: RunInfo,
    pub(crate) file: Arc<str>,
    pub(crate) keys: Keys,
    pub(crate) open: BTreeMap<Key, OpenOperation>,
    /// How many of them lost a race: sleeps, and others.
    lost: (usize, usize),
    pub(crate) started: u64,
    /// How often the run was asked to stop.
    pub(crate) cancellations: u32,
    /// Whether the next generation begins when the script returns.
    pub(crate) is_continued: bool,
}

impl World {
    pub(crate) fn new(info: RunInfo, file: &str) -> World {
        World {
            info,
            file: file.into(),
            keys: Keys::default(),
            open: BTreeMap::new(),
            lost: (0, 0),
            started: 0,
            cancellations: 0,
            is_continued: false,
        }
    }

    pub(crate) fn run_id(&self) -> &str {
        &self.info.run_id
    }

    pub(crate) fn workflow(&self) -> &str {
        &self.info.workflow
    }

    /// The promises of everything that is open.
    pub(crate) fn promises(&self) -> impl Iterator<Item = Id> {
        self.open.values().map(|open| open.promise)
    }

    /// The token of a callback; none for other operations.
    pub(crate) fn token(&self, key: &Key) -> Option<String> {
        let is_callback = self.open.get(key).is_some_and(|open| open.kind == OperationKind::Callback);
        is_callback.then(|| (self.info.tokens)(key))
    }

    /// Starts an operation whose outcome settles the promise.
    pub(crate) fn start(&mut self, operation: Operation, promise: Id, at: (u32, u32), ops: &mut Operations) {
        let (Some(key), Some(kind)) = (operation.key().cloned(), operation.starts()) else { return };
        let stays = match &operation {
            Operation::ScheduleTask { detached, .. } => *detached,
            Operation::StartChild { detached, on_close, .. } => *detached || *on_close != ClosePolicy::Cancel,
            _ => false,
        };
        let order = self.started;
        self.started += 1;
        ops.request(operation, Some(self.location(at)));
        self.open.insert(key, OpenOperation { promise, kind, order, is_awaited: false, stays, is_lost: false, at });
    }

    /// The same operations as when a snapshot was made.
    pub(crate) fn reopen(&mut self, open: BTreeMap<Key, OpenOperation>) {
        self.lost = (0, 0);
        open.values().filter(|open| open.is_lost).for_each(|open| *self.losers(open.kind) += 1);
        self.open = open;
    }

    fn losers(&mut self, kind: OperationKind) -> &mut usize {
        if kind == OperationKind::Timer { &mut self.lost.0 } else { &mut self.lost.1 }
    }

    /// Notes that an operation lost a race, unless it goes on whatever happens.
    pub(crate) fn lose(&mut self, key: &Key) {
        let Some(open) = self.open.get_mut(key).filter(|open| !open.stays && !open.is_lost) else { return };
        open.is_lost = true;
        let kind = open.kind;
        *self.losers(kind) += 1;
    }

    /// An operation is settled.
    pub(crate) fn close(&mut self, key: &Key) -> Option<OpenOperation> {
        let open = self.open.remove(key)?;
        if open.is_lost {
            *self.losers(open.kind) -= 1;
        }
        Some(open)
    }

    /// Whether it is time to look for losers that nobody needs. That means to look at everything, so sleeps, which do nothing
    /// and take nothing from anybody, wait for each other where much is open: a thousand calls that each race with a timeout
    /// would otherwise cost a million steps.
    pub(crate) fn losers_are_due(&self) -> bool {
        let (sleeps, others) = self.lost;
        others > 0 || sleeps > 0 && sleeps * LOST_SLEEPS_SHARE >= self.open.len()
    }

    /// Tells the driver, once, that an operation is awaited.
    pub(crate) fn note_awaited(&mut self, key: &Key, at: (u32, u32), ops: &mut Operations) {
        let location = self.location(at);
        if let Some(open) = self.open.get_mut(key)
            && !std::mem::replace(&mut open.is_awaited, true)
        {
            ops.request(Operation::Await { key: key.clone() }, Some(location));
        }
    }

    pub(crate) fn location(&self, at: (u32, u32)) -> Location {
        Location { file: Cow::Owned(self.file.to_string()), line: at.0, column: at.1 }
    }
}
