//! Every operation of a run, and where it stands: the one place that can say why a turn goes on or ends.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use outlast_core::event::ClosePolicy;
use outlast_core::id::{InboxId, Key, RunId, SignalName};
use outlast_core::journal::Journal;
use outlast_core::lifecycle::{IllegalTransition, OperationView, State, Transition};
use outlast_core::operation::{Location, OperationKind, ancestors};
use outlast_core::retry::Retry;
use outlast_core::time::Timestamp;
use rustc_hash::FxHashMap;

use super::lifecycle::{Lifecycle, Notes};

/// One operation.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: OperationKind,
    pub(super) state: State,
    pub(super) location: Option<Location>,
    /// When it fires, times out or is tried again.
    pub(super) deadline: Option<Timestamp>,
    /// Whether the program awaits it. Kept here until it is idle and the lifecycle can say so.
    pub(super) awaited: bool,
    /// Too many others were pending when it was asked for: it fails instead of beginning.
    pub(super) refused: bool,
    pub(super) detail: Detail,
}

impl Entry {
    /// Whether it may be pending for long. A scope waits for nothing itself, and a value is there at once.
    fn pends(&self) -> bool {
        match self.kind {
            OperationKind::Scope | OperationKind::Now | OperationKind::Uuid | OperationKind::Random => false,
            OperationKind::Step
            | OperationKind::Condition
            | OperationKind::Task
            | OperationKind::Timer
            | OperationKind::Signal
            | OperationKind::Approval
            | OperationKind::Callback
            | OperationKind::Child => true,
        }
    }

    /// Whether the program awaits it.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited || self.state == State::IdleAwaited
    }

    /// Whether nobody said that it must not go on alone.
    pub(super) fn may_be_left(&self) -> bool {
        !matches!(self.detail, Detail::Child { on_close: ClosePolicy::Terminate, .. })
    }

    /// When the time of the attempt that runs is up, or its silence too long.
    fn expires(&self) -> Option<Timestamp> {
        match &self.detail {
            Detail::Code(Code { body: Body::Running { expires, silent }, .. }) => {
                [*expires, *silent].into_iter().flatten().min()
            }
            Detail::Code(_) | Detail::Signal { .. } | Detail::Child { .. } | Detail::Plain => None,
        }
    }
}

/// What is needed later, by kind.
#[derive(Debug)]
pub(super) enum Detail {
    /// The author's code: a step, or the check of a condition.
    Code(Code),
    Signal {
        name: SignalName,
    },
    Child {
        child: RunId,
        on_close: ClosePolicy,
        detached: bool,
    },
    /// Nothing more.
    Plain,
}

/// The author's code under a key.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) retry: Retry,
    pub(super) timeout: Option<Duration>,
    /// The longest silence allowed between two signs of life.
    pub(super) heartbeat: Option<Duration>,
    pub(super) at_most_once: bool,
    /// Whether it runs inside the store, in one transaction with the record of its outcome.
    pub(super) in_store: bool,
    /// Attempts that have ended.
    pub(super) attempts: u32,
    pub(super) body: Body,
    /// The inbox item that said the retry is due. It is consumed with the attempt's outcome, so that a crash before
    /// that leaves it to say so again.
    pub(super) due_item: Option<InboxId>,
}

impl Code {
    fn is_clocked(&self) -> bool {
        self.timeout.is_some() || self.heartbeat.is_some()
    }
}

/// Something that cannot happen to an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Impossible {
    #[error("{0}: {1}, but nobody asked for such an operation, or it is completed and forgotten")]
    Unknown(Key, Transition),
    #[error("{0}: {1}")]
    Illegal(Key, IllegalTransition),
}

/// Where a body stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// It has not been asked to run, or its attempt has ended.
    Idle,
    /// It runs as soon as everything so far is durable.
    Wanted,
    /// It runs; a timeout may end it, or its silence.
    Running { expires: Option<Timestamp>, silent: Option<Timestamp> },
}

/// An operation that is not completed, for people and tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationInfo {
    /// Which.
    pub key: Key,
    /// What it is.
    pub kind: OperationKind,
    /// The scope it lies in.
    pub parent: Option<String>,
    /// Where it stands.
    pub state: State,
    /// When it fires, times out or is tried again; for a step that executes, when its time is up.
    pub deadline: Option<Timestamp>,
    /// Where it was asked for.
    pub location: Option<Location>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    entries: FxHashMap<Key, Entry>,
    /// Those not completed, in key order.
    live: BTreeSet<Key>,
    /// How many of those there are, by what counts for the end of a turn: asked after every change, so not counted anew.
    classes: Vec<(OperationView, usize)>,
    has_closed_scopes: bool,
    /// How many of them count against the limit.
    pending: usize,
    /// Those of the latter that the program has cancelled.
    unwanted: BTreeSet<Key>,
    /// Code that wants to run, in the order in which it was asked for.
    wanted: VecDeque<Key>,
    /// The same, of code that runs inside the store: it comes last, because nothing else begins while it runs.
    wanted_in_store: VecDeque<Key>,
    running: usize,
    /// Bodies that run and may not take as long as they like, or be silent for as long.
    clocked: usize,
    /// Open waits for a signal, by name, the oldest first.
    waits: FxHashMap<SignalName, VecDeque<Key>>,
    /// For those who watch.
    pub(super) notes: Notes,
}

impl Table {
    pub(super) fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.entries.get_mut(key)
    }

    /// Whether the operation was asked for and is not completed.
    pub(super) fn is_live(&self, key: &Key) -> bool {
        self.live.contains(key)
    }

    pub(super) fn insert(&mut self, key: Key, entry: Entry) {
        if entry.state != State::Completed && self.live.insert(key.clone()) {
            self.pending += usize::from(entry.pends());
        }
        if let Detail::Code(Code { body: Body::Wanted, in_store, .. }) = entry.detail {
            self.wanted_queue(in_store).push_back(key.clone());
        }
        let (kind, to) = (entry.kind, entry.state);
        self.notes.note(|| Lifecycle::StateChanged { key: key.clone(), kind, from: None, to });
        self.count(kind, to, 1);
        if let Some(before) = self.entries.insert(key, entry) {
            self.count(before.kind, before.state, -1);
        }
    }

    /// Counts an operation in a state, or no longer. A scope waits for nothing itself; what is in it does.
    fn count(&mut self, kind: OperationKind, state: State, change: isize) {
        if kind == OperationKind::Scope || state == State::Completed {
            return;
        }
        let class = OperationView { kind, state, ancestor_completed: false };
        match self.classes.iter_mut().find(|(counted, _)| *counted == class) {
            Some((_, count)) => *count = count.saturating_add_signed(change),
            None => self.classes.push((class, usize::from(change > 0))),
        }
    }

    /// Operations that are not completed and count against the limit. What the program has cancelled does not, although it is
    /// not completed before that is recorded: a program that was asked to stop cleans up with all the room there is.
    pub(super) fn pending(&self) -> usize {
        self.pending - self.unwanted.len()
    }

    /// The program has cancelled an operation, and all that is inside it.
    pub(super) fn is_unwanted(&mut self, key: &Key) {
        let below = self.below(key);
        let all = std::iter::once(key.clone()).chain(below);
        let pends = |key: &Key| self.entries.get(key).is_some_and(Entry::pends) && self.live.contains(key);
        let unwanted: Vec<Key> = all.filter(pends).collect();
        self.unwanted.extend(unwanted);
    }

    /// Whether tasks are under way that are waited for: not those that were only asked for.
    pub(super) fn has_tasks(&self, journal: &Journal) -> bool {
        let has_any = self.classes.iter().any(|(class, count)| class.kind == OperationKind::Task && *count > 0);
        has_any && self.live().any(|(key, entry)| entry.kind == OperationKind::Task && journal.is_open(key))
    }

    pub(super) fn note_awaited(&mut self, key: &Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.awaited = true;
        }
    }

    /// Opens a wait to signals of its name.
    pub(super) fn wait_opened(&mut self, key: &Key, name: &SignalName) {
        self.waits.entry(name.clone()).or_default().push_back(key.clone());
    }

    /// The oldest open wait for a signal of this name that is not aimed.
    pub(super) fn waiting_for(&self, name: &str) -> Option<&Key> {
        self.waits.get(name)?.front()
    }

    /// Moves an operation on, if it can move so. An impossible move is a bug in the engine: nothing changes, and it says
    /// so. The deadline stays as it is until the operation is completed or somebody sets another.
    pub(super) fn shift(&mut self, key: &Key, transition: Transition) {
        if let Err(error) = self.try_shift(key, transition) {
            debug_assert!(false, "{error}");
            tracing::error!(key = %key, %error, "an operation cannot move so");
        }
    }

    fn try_shift(&mut self, key: &Key, transition: Transition) -> Result<(), Impossible> {
        let Some(entry) = self.entries.get_mut(key) else { return Err(Impossible::Unknown(key.clone(), transition)) };
        let (kind, from) = (entry.kind, entry.state);
        entry.state = from.after(transition).map_err(|error| Impossible::Illegal(key.clone(), error))?;
        tracing::trace!(target: "outlast::operation", key = %key, state = %entry.state, "operation:state-changed");
        let to = entry.state;
        self.count(kind, from, -1);
        self.count(kind, to, 1);
        self.notes.note(|| Lifecycle::StateChanged { key: key.clone(), kind, from: Some(from), to });
        if to == State::Completed {
            self.complete(key);
        }
        Ok(())
    }

    fn complete(&mut self, key: &Key) {
        self.stop_body(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.deadline = None;
        if let Detail::Signal { name } = &entry.detail
            && let Some(waiting) = self.waits.get_mut(name)
        {
            waiting.retain(|waiting| waiting != key);
        }
        if self.live.remove(key) {
            self.pending -= usize::from(entry.pends());
            self.unwanted.remove(key);
        }
        // Nobody asks for it again, and a long run has many. A closed scope is remembered: it silences what is below.
        if entry.kind == OperationKind::Scope {
            self.has_closed_scopes = true;
        } else {
            self.entries.remove(key);
        }
    }

    /// Lets a body run as soon as it may.
    pub(super) fn want(&mut self, key: &Key) {
        if let Some(Entry { detail: Detail::Code(code), .. }) = self.entries.get_mut(key)
            && code.body == Body::Idle
        {
            code.body = Body::Wanted;
            let in_store = code.in_store;
            self.wanted_queue(in_store).push_back(key.clone());
        }
    }

    fn wanted_queue(&mut self, in_store: bool) -> &mut VecDeque<Key> {
        if in_store { &mut self.wanted_in_store } else { &mut self.wanted }
    }

    /// Whether the code under a key runs inside the store.
    pub(super) fn is_in_store(&self, key: &Key) -> bool {
        matches!(self.entries.get(key), Some(Entry { detail: Detail::Code(Code { in_store: true, .. }), .. }))
    }

    /// The next body that wants to run.
    pub(super) fn next_wanted(&mut self) -> Option<Key> {
        while let Some(key) = self.wanted.pop_front().or_else(|| self.wanted_in_store.pop_front()) {
            if matches!(self.entries.get(&key), Some(Entry { detail: Detail::Code(code), .. }) if code.body == Body::Wanted)
            {
                return Some(key);
            }
        }
        None
    }

    /// Puts one back that may not run yet, in its place.
    pub(super) fn not_yet(&mut self, key: Key) {
        let in_store = self.is_in_store(&key);
        self.wanted_queue(in_store).push_front(key);
    }

    pub(super) fn wants_to_run(&mut self) -> bool {
        match self.next_wanted() {
            Some(key) => {
                self.not_yet(key);
                true
            }
            None => false,
        }
    }

    /// Notes that a body runs, and which attempt that is.
    pub(super) fn run_body(&mut self, key: &Key, now: Timestamp) -> u32 {
        let Some(Entry { detail: Detail::Code(code), .. }) = self.entries.get_mut(key) else { return 1 };
        code.body = Body::Running {
            expires: code.timeout.map(|timeout| now + timeout),
            silent: code.heartbeat.map(|silence| now + silence),
        };
        self.running += 1;
        self.clocked += usize::from(code.is_clocked());
        code.attempts + 1
    }

    /// Notes that a body gave a sign of life.
    pub(super) fn heard(&mut self, key: &Key, now: Timestamp) {
        if let Some(Entry { detail: Detail::Code(code), .. }) = self.entries.get_mut(key)
            && let Body::Running { silent: Some(silent), .. } = &mut code.body
            && let Some(silence) = code.heartbeat
        {
            *silent = now + silence;
        }
    }

    /// Notes that a body no longer runs, nor wants to.
    pub(super) fn stop_body(&mut self, key: &Key) {
        let Some(Entry { detail: Detail::Code(code), .. }) = self.entries.get_mut(key) else { return };
        if let Body::Running { .. } = code.body {
            self.running -= 1;
            self.clocked -= usize::from(code.is_clocked());
        }
        code.body = Body::Idle;
    }

    pub(super) fn bodies_running(&self) -> bool {
        self.running > 0
    }

    /// Attempts whose time is up.
    pub(super) fn expired(&self, now: Timestamp) -> Vec<Key> {
        self.running()
            .filter(|(_, expires, _)| expires.is_some_and(|at| at <= now))
            .map(|(key, ..)| key.clone())
            .collect()
    }

    /// Attempts that were silent for too long.
    pub(super) fn silent(&self, now: Timestamp) -> Vec<Key> {
        self.running().filter(|(.., silent)| silent.is_some_and(|at| at <= now)).map(|(key, ..)| key.clone()).collect()
    }

    /// When the next attempt's time is up, or its silence too long.
    pub(super) fn next_expiry(&self) -> Option<Timestamp> {
        self.running().flat_map(|(_, expires, silent)| [expires, silent]).flatten().min()
    }

    fn running(&self) -> impl Iterator<Item = (&Key, Option<Timestamp>, Option<Timestamp>)> {
        let clocked = if self.clocked == 0 { None } else { Some(self.live.iter()) };
        clocked.into_iter().flatten().filter_map(|key| match self.entries.get(key) {
            Some(Entry { detail: Detail::Code(Code { body: Body::Running { expires, silent }, .. }), .. }) => {
                Some((key, *expires, *silent))
            }
            Some(_) | None => None,
        })
    }

    /// Live operations below a scope.
    pub(super) fn below(&self, scope: &Key) -> Vec<Key> {
        // '0' is the character after '/', so that the range holds exactly the keys that begin with "scope/".
        let (low, high) = (format!("{scope}/"), format!("{scope}0"));
        let range = (std::ops::Bound::Included(low.as_str()), std::ops::Bound::Excluded(high.as_str()));
        self.live.range::<str, _>(range).cloned().collect()
    }

    /// Whether a scope around the key is completed.
    pub(super) fn in_closed_scope(&self, key: &Key) -> bool {
        self.has_closed_scopes
            && ancestors(key).any(|scope| {
                let scope = self.entries.get(scope);
                scope.is_some_and(|scope| scope.kind == OperationKind::Scope && scope.state == State::Completed)
            })
    }

    /// What counts for the end of a turn: one of each kind and state that there is.
    pub(super) fn views(&self) -> Vec<OperationView> {
        self.classes.iter().filter(|(_, count)| *count > 0).map(|(class, _)| *class).collect()
    }

    /// Every operation that is not completed.
    pub(super) fn infos(&self) -> Vec<OperationInfo> {
        let live = self.live.iter().filter_map(|key| Some((key, self.entries.get(key)?)));
        live.map(|(key, entry)| OperationInfo {
            key: key.clone(),
            kind: entry.kind,
            parent: ancestors(key).last().map(str::to_owned),
            state: entry.state,
            deadline: entry.deadline.or(entry.expires()),
            location: entry.location.clone(),
        })
        .collect()
    }

    /// Live operations, in key order.
    pub(super) fn live(&self) -> impl Iterator<Item = (&Key, &Entry)> {
        self.live.iter().filter_map(|key| Some((key, self.entries.get(key)?)))
    }
}
