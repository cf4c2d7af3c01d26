//! Which event may follow which.

use std::collections::BTreeSet;
use std::ops::Bound;

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::RecordedOperation;
use super::flow::Flow;
use super::past::Past;
use super::role::{Attempt, Role, role, subject};
use crate::event::{Class, Event, Kind};
use crate::id::{Index, Key};
use crate::operation::{OperationKind, ancestors};

/// Why an event cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Illegal {
    /// The journal is over.
    #[error("nothing may follow {by} at index {at}")]
    AfterEnd {
        /// What ended it.
        by: Kind,
        /// Where.
        at: Index,
    },
    /// Such an event is shown to observers and never kept.
    #[error("such an event is only emitted, never kept")]
    EmitOnly,
    /// The run is paused.
    #[error("the run is paused since index {at}: only a resume, a cancellation or an end may follow")]
    WhilePaused {
        /// Since when.
        at: Index,
    },
    /// The run is not paused.
    #[error("the run is not paused")]
    NotPaused,
    /// There is no such operation.
    #[error("{key:?} was never started: expected {needs} before it")]
    NeverStarted {
        /// Which operation.
        key: Key,
        /// The event that starts such an operation.
        needs: Kind,
    },
    /// There is no such operation, or it is settled.
    #[error("{key:?} is not open, so it cannot be cancelled or refused")]
    NotOpen {
        /// Which operation.
        key: Key,
    },
    /// The operation began before.
    #[error("{key:?} was started before, at index {at}")]
    StartedTwice {
        /// Which operation.
        key: Key,
        /// Where.
        at: Index,
    },
    /// The operation's outcome is recorded already.
    #[error("{key:?} was settled before, at index {at}")]
    SettledTwice {
        /// Which operation.
        key: Key,
        /// Where.
        at: Index,
    },
    /// The key belongs to an operation of another kind.
    #[error("{key:?} is a {is} since index {at}")]
    OtherKind {
        /// Which operation.
        key: Key,
        /// What it is.
        is: OperationKind,
        /// Since when.
        at: Index,
    },
    /// The outcome is that of another task, child, approval, callback or signal.
    #[error("{key:?} waits for {expected:?} and not for {found:?}")]
    OtherSubject {
        /// Which operation.
        key: Key,
        /// What its start names.
        expected: String,
        /// What this event names.
        found: String,
    },
    /// Attempts are counted from 1, upwards.
    #[error("attempt {attempt} of {key:?} cannot follow what is recorded at index {at}")]
    AttemptWentBack {
        /// Which operation.
        key: Key,
        /// The attempt.
        attempt: u32,
        /// Where the latest one is.
        at: Index,
    },
    /// A scope around it is closed.
    #[error("{key:?} lies below {scope:?}, which was closed at index {at}")]
    ScopeClosed {
        /// Which operation or node.
        key: Key,
        /// Which scope.
        scope: String,
        /// Where.
        at: Index,
    },
    /// A flow's node, iteration or child ended that had not begun.
    #[error("{what} ended and had not begun")]
    NotBegun {
        /// Which.
        what: String,
    },
    /// An event refers to an output that is not there yet.
    #[error("it refers to index {to}, which is not before it")]
    RefersAhead {
        /// Where to.
        to: Index,
    },
}

/// What is known after some events; enough to judge the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Law {
    phase: Phase,
    /// Only ever asked for one key: its order means nothing.
    operations: FxHashMap<Key, Track>,
    /// Those that are open, in key order.
    open: BTreeSet<Key>,
    /// Whether there is any scope among them: most journals have none.
    has_scopes: bool,
    flow: Flow,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Running,
    Paused {
        at: Index,
    },
    Over {
        by: Kind,
        at: Index,
    },
}

/// What is known about one operation.
#[derive(Clone, Copy, Debug)]
struct Track {
    kind: OperationKind,
    since: Index,
    latest: Index,
    /// Twice the latest attempt, plus one if it has ended: grows with every event about an attempt.
    progress: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Settled,
    /// Its scope closed while it was open. It may still be noted as cancelled.
    Orphaned,
}

const NO_ATTEMPT: u64 = 1;

impl Law {
    /// Makes room for so many events.
    pub(super) fn reserve(&mut self, events: usize) {
        self.operations.reserve(events);
    }

    /// Checks `event` and takes note of it; changes nothing if it is refused.
    pub(super) fn admit(&mut self, index: Index, event: &Event, before: Past<'_>) -> Result<(), Illegal> {
        self.check_class_and_phase(event)?;
        if let Some(key) = event.key() {
            self.check_scopes(key, event)?;
        }
        match role(event) {
            Some((key, role)) => self.admit_operation(index, event, key, role, before)?,
            None => self.flow.admit(index, event)?,
        }
        self.note_phase(index, event);
        Ok(())
    }

    fn check_class_and_phase(&self, event: &Event) -> Result<(), Illegal> {
        if event.class() == Class::EmitOnly {
            return Err(Illegal::EmitOnly);
        }
        let resumes = matches!(event, Event::RunResumed { .. });
        match self.phase {
            Phase::Over { by, at } => Err(Illegal::AfterEnd { by, at }),
            Phase::Running if resumes => Err(Illegal::NotPaused),
            Phase::Running => Ok(()),
            Phase::Paused { .. }
                if resumes || event.is_terminal() || matches!(event, Event::CancelRequested { .. }) =>
            {
                Ok(())
            }
            Phase::Paused { at } => Err(Illegal::WhilePaused { at }),
        }
    }

    /// Nothing happens below a closed scope, but what was open there may be noted as cancelled.
    fn check_scopes(&self, key: &Key, event: &Event) -> Result<(), Illegal> {
        if !self.has_scopes || matches!(event, Event::OperationCancelled { .. }) {
            return Ok(());
        }
        for scope in ancestors(key) {
            if let Some(track) = self.operations.get(scope)
                && track.kind == OperationKind::Scope
                && track.stage != Stage::Open
            {
                return Err(Illegal::ScopeClosed { key: key.clone(), scope: scope.to_owned(), at: track.latest });
            }
        }
        Ok(())
    }

    fn admit_operation(
        &mut self,
        index: Index,
        event: &Event,
        key: &Key,
        role: Role,
        before: Past<'_>,
    ) -> Result<(), Illegal> {
        let known = self.operations.get(key).copied();
        let next = match (known, event.kind().operation()) {
            (Some(track), Some(kind)) => {
                let kind = track.agree(kind, event, key, before)?;
                track.follow(index, event, key, role, before).map(|track| Track { kind, ..track })
            }
            (Some(track), None) => track.follow(index, event, key, role, before),
            (None, kind) => begin(index, key, role, kind),
        }?;
        if next.kind == OperationKind::Scope && next.stage != Stage::Open {
            self.orphan_below(key);
        }
        if next.stage == Stage::Open {
            self.open.insert(key.clone());
        } else if known.is_some() {
            self.open.remove(key);
        }
        self.has_scopes |= next.kind == OperationKind::Scope;
        self.operations.insert(key.clone(), next);
        Ok(())
    }

    /// A scope's end is the end of everything open below it.
    fn orphan_below(&mut self, scope: &Key) {
        // '0' is the character after '/', so that the range holds exactly the keys that begin with "scope/".
        let (low, high) = (format!("{scope}/"), format!("{scope}0"));
        let below = (Bound::Included(low.as_str()), Bound::Excluded(high.as_str()));
        let orphans: Vec<Key> = self.open.range::<str, _>(below).cloned().collect();
        for key in orphans {
            self.open.remove(&key);
            if let Some(track) = self.operations.get_mut(&key) {
                track.stage = Stage::Orphaned;
            }
        }
    }

    fn note_phase(&mut self, index: Index, event: &Event) {
        if event.ends_generation() {
            self.phase = Phase::Over { by: event.kind(), at: index };
        } else if matches!(event, Event::RunPaused { .. }) {
            self.phase = Phase::Paused { at: index };
        } else if matches!(event, Event::RunResumed { .. })
            || matches!(event, Event::CancelRequested { .. }) && !crate::planted!("cancel-leaves-pause")
        {
            // A cancelled run goes on at once: its cleanup must not wait for a resume that nobody will send.
            self.phase = Phase::Running;
        }
    }

    /// Forgets operations that were settled below an index.
    pub(super) fn forget_below(&mut self, index: Index) {
        self.operations.retain(|_, track| track.stage == Stage::Open || track.latest >= index);
        self.operations.shrink_to(2 * self.operations.len());
    }

    /// What began in a flow is not known from here on.
    pub(super) fn forget_flow(&mut self) {
        self.flow.forget();
    }

    pub(super) fn open(&self) -> Vec<RecordedOperation> {
        if self.is_over() {
            return Vec::new();
        }
        let tracks = self.open.iter().filter_map(|key| Some((key, self.operations.get(key)?)));
        let mut open: Vec<RecordedOperation> = tracks
            .map(|(key, track)| RecordedOperation {
                key: key.clone(),
                kind: track.kind,
                since: track.since,
                latest: track.latest,
            })
            .collect();
        open.sort_by_key(|operation| operation.since);
        open
    }

    pub(super) fn operation(&self, key: &Key) -> Option<RecordedOperation> {
        let track = self.operations.get(key)?;
        Some(RecordedOperation { key: key.clone(), kind: track.kind, since: track.since, latest: track.latest })
    }

    pub(super) fn is_open(&self, key: &Key) -> bool {
        !self.is_over() && self.open.contains(key)
    }

    pub(super) fn is_paused(&self) -> bool {
        matches!(self.phase, Phase::Paused { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over { .. })
    }
}

/// The first event about an operation.
fn begin(index: Index, key: &Key, role: Role, kind: Option<OperationKind>) -> Result<Track, Illegal> {
    let Some(kind) = kind else { return Err(Illegal::NotOpen { key: key.clone() }) };
    let fresh = Track { kind, since: index, latest: index, progress: NO_ATTEMPT, stage: Stage::Open };
    match role {
        Role::Start { settled } => Ok(if settled { fresh.settled(index) } else { fresh }),
        Role::Whole => Ok(fresh.settled(index)),
        Role::Attempt(attempt) => fresh.attempt(index, key, attempt),
        Role::Follow { needs, .. } => Err(Illegal::NeverStarted { key: key.clone(), needs }),
        Role::Cancel | Role::Refuse => Err(Illegal::NotOpen { key: key.clone() }),
    }
}

impl Track {
    /// The kind of the operation after an event of a kind; refused if the two do not agree.
    fn agree(&self, kind: OperationKind, event: &Event, key: &Key, before: Past<'_>) -> Result<OperationKind, Illegal> {
        let failed_check = matches!(event, Event::StepFailed { .. } | Event::StepRetryScheduled { .. });
        let began_with_a_failed_check = || matches!(before.get(self.since), Some(Event::StepRetryScheduled { .. }));
        if self.kind == kind || (self.kind == OperationKind::Condition && failed_check) {
            Ok(self.kind)
        } else if (self.kind, kind) == (OperationKind::Step, OperationKind::Condition) && began_with_a_failed_check() {
            // A failed check looks like a failed step: only now is it clear what this is.
            Ok(kind)
        } else {
            Err(Illegal::OtherKind { key: key.clone(), is: self.kind, at: self.since })
        }
    }

    /// A later event about an operation.
    fn follow(self, index: Index, event: &Event, key: &Key, role: Role, before: Past<'_>) -> Result<Track, Illegal> {
        let settled_before = || Illegal::SettledTwice { key: key.clone(), at: self.latest };
        match (role, self.stage) {
            (Role::Start { .. }, Stage::Open | Stage::Settled | Stage::Orphaned) => {
                Err(Illegal::StartedTwice { key: key.clone(), at: self.since })
            }
            (Role::Follow { settles, .. }, Stage::Open) => {
                self.check_subject(event, key, before)?;
                let noted = Track { latest: index, ..self };
                Ok(if settles { noted.settled(index) } else { noted })
            }
            (Role::Attempt(attempt), Stage::Open) => self.attempt(index, key, attempt),
            (Role::Cancel, Stage::Open | Stage::Orphaned) | (Role::Refuse, Stage::Open) => Ok(self.settled(index)),
            (Role::Cancel, Stage::Settled) => Err(Illegal::NotOpen { key: key.clone() }),
            (Role::Whole, Stage::Open | Stage::Settled | Stage::Orphaned)
            | (Role::Follow { .. } | Role::Attempt(_) | Role::Refuse, Stage::Settled | Stage::Orphaned) => {
                Err(settled_before())
            }
        }
    }

    fn attempt(self, index: Index, key: &Key, attempt: Attempt) -> Result<Track, Illegal> {
        let progress = attempt.progress();
        if progress < self.progress || (progress == self.progress && !attempt.may_repeat) {
            return Err(Illegal::AttemptWentBack { key: key.clone(), attempt: attempt.number, at: self.latest });
        }
        let noted = Track { progress, latest: index, ..self };
        Ok(if attempt.settles { noted.settled(index) } else { noted })
    }

    fn settled(self, index: Index) -> Track {
        Track { stage: Stage::Settled, latest: index, ..self }
    }

    /// An outcome names the same task, child, approval, callback or signal as the start.
    fn check_subject(&self, event: &Event, key: &Key, before: Past<'_>) -> Result<(), Illegal> {
        match (before.get(self.since).and_then(subject), subject(event)) {
            (Some(expected), Some(found)) if expected != found => {
                Err(Illegal::OtherSubject { key: key.clone(), expected: expected.to_owned(), found: found.to_owned() })
            }
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }
}
