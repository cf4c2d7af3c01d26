//! A run in the hands of a node.

mod outgoing;
mod questions;
mod replay;
mod restore;
mod seed;
mod snapshot;
mod withdraw;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::commit::{Commit, Parent};
use outlast_core::event::{Class, Event};
use outlast_core::failure::Failure;
use outlast_core::id::{Fence, Generation, InboxId, Index, Key, Namespace, RunId, RunKey, Version, WorkflowName};
use outlast_core::journal::{Journal, JournalError};
use outlast_core::limits::Limits;
use outlast_core::operation::{Location, Operation, OperationKind, Operations, Provided, Requested, ancestors};
use outlast_core::planted;
use outlast_core::program::{Input, Program, Progress};
use outlast_core::time::Timestamp;
use outlast_store::Transact;
use thiserror::Error;

use super::draft::Draft;
use super::end::Outcome;
use super::inbox::{ControlMeta, Inbox};
use super::mismatch::{self, Mismatch};
use super::table::Table;
use super::transaction::{Transactions, UnderWay};
use crate::code::Steps;

pub(crate) use outgoing::Applied;
pub(super) use outgoing::InFlight;
pub(crate) use replay::Stands;
pub(crate) use restore::Restored;
use snapshot::Snapshots;
pub(crate) use snapshot::unseal;
use withdraw::withdraw_marks;

/// Who a run is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) run: RunKey,
    pub(crate) generation: Generation,
    pub(crate) workflow: WorkflowName,
    pub(crate) version: Version,
    pub(crate) parent: Option<Parent>,
}

/// What the world gives to a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// The time, by the store's clock as far as the node knows it.
    pub(crate) now: Timestamp,
    /// An instant the store's clock has certainly passed.
    pub(crate) passed: Timestamp,
    /// Chance: the same for every pass of a node.
    pub(crate) seed: u128,
}

/// What is the same for all runs of a node.
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    /// The version a new run of a workflow gets; none if nobody here knows it.
    pub(crate) newest: Newest,
    /// The token of a callback.
    pub(crate) token: MakeToken,
    /// Whether one name at two places stops a run: in tests it does.
    pub(crate) refuse_shared_names: bool,
    /// A snapshot is due when more events than this followed the last one.
    pub(crate) snapshot_after: u64,
    /// What the `step` nodes of flows can have run.
    #[cfg_attr(not(feature = "flow"), expect(dead_code, reason = "only flows have steps by name"))]
    pub(crate) steps: Arc<Steps>,
}

/// Finds the newest version of a workflow.
pub(crate) type Newest = Box<dyn Fn(&Namespace, &WorkflowName) -> Option<Version> + Send + Sync>;
/// Makes the token of a callback.
pub(crate) type MakeToken = Box<dyn Fn(&RunKey, Generation, &Key) -> String + Send + Sync>;

/// What an earlier attempt to go on taught, for a run that had to be loaded again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// Outcomes of bodies that ran and whose commit was turned down for another reason: they need not run again.
    pub(crate) outcomes: BTreeMap<Key, Event>,
    /// Ids that cannot be a child's: somebody else has them.
    pub(crate) strangers: BTreeSet<RunId>,
    /// Observers were not told what the program told them last.
    pub(crate) untold: bool,
}

/// Why a run cannot be driven on. Nothing is lost: it parks with the message.
#[derive(Debug, Error)]
pub(crate) enum Stop {
    #[error("{0}")]
    Mismatch(Mismatch),
    #[error("{0}")]
    Unsound(String),
    #[error("the journal cannot be read: {0}; deploy the release that wrote it, or repair or delete the run")]
    Journal(#[from] JournalError),
}

/// A run that is owned by this node: its program, its journal with what is not yet durable, and its operations.
pub(crate) struct Run {
    pub(super) identity: Identity,
    pub(super) fence: Fence,
    pub(super) journal: Journal,
    /// Everything below is in the store.
    durable: Index,
    /// The next event to feed.
    fed: Index,
    /// The journal's length when it was loaded. Below it requests are matched with what is recorded.
    loaded: Index,
    started: bool,
    /// Room for requests, used again and again.
    requested: Vec<Requested>,
    program: Box<dyn Program>,
    pub(super) ops: Operations,
    pub(super) table: Table,
    /// Requests that wait until every fact is fed: all but the ends of bodies.
    held: VecDeque<Requested>,
    /// Operations that were started and cancelled before the record of their start was passed.
    pub(super) withdrawn: BTreeSet<Key>,
    /// What bodies came to.
    ends: VecDeque<Requested>,
    pub(super) inbox: Inbox,
    pub(super) draft: Draft,
    pub(super) pausing: bool,
    /// The request for that pause, and what was said with it.
    pub(super) pause_item: Option<(InboxId, ControlMeta)>,
    pub(super) next_generation: Option<(Bytes, Option<Version>)>,
    pub(super) cancel_requested: bool,
    outcome: Option<Outcome>,
    /// How the program ended while a transaction was under way: it is recorded after that.
    ended_meanwhile: Option<Outcome>,
    in_flight: Option<InFlight>,
    pub(super) transactions: Transactions,
    /// The transaction that is in flight.
    pub(super) transaction: Option<UnderWay>,
    /// It, until it is sent.
    pub(super) outgoing: Option<Transact>,
    /// No further body starts: the engine shuts down.
    winding_down: bool,
    /// The inbox is being read, and its resume is taken: the turn must not end before what came is fed.
    reading: bool,
    pub(super) settings: Arc<Settings>,
    pub(super) hints: Hints,
    pub(super) moment: Moment,
    /// A number that only this generation of this run has.
    place: u128,
    names_reported: usize,
    pub(super) snapshots: Snapshots,
    /// It was restored from a snapshot, and nothing was committed since.
    is_from_snapshot: bool,
    /// Where every operation was asked for; only while it is replayed and nothing else.
    pub(super) locations: Option<BTreeMap<Key, Location>>,
}

impl Run {
    /// Runs until there is nothing more to do before something happens outside: a commit, a body, an inbox item.
    pub(crate) fn advance(&mut self, moment: Moment) -> Result<(), Stop> {
        self.moment = moment;
        self.ops.provide(Provided { now: moment.now, seed: self.seed() });
        if self.is_transacting() {
            // Bodies beside it go on; what they come to is recorded after it.
            return self.resume(Fed::Poll);
        }
        if let Some(outcome) = self.ended_meanwhile.take() {
            return self.ended(outcome);
        }
        self.expire()?;
        // After a replay too: what the program kept back until its end is asked for now.
        let mut poll = self.started || self.replaying();
        loop {
            if self.outcome.is_some() || self.is_transacting() {
                return Ok(());
            }
            self.table.notes.set_replaying(!self.started && self.loaded > Index(0) || self.replaying());
            if !self.started {
                self.started = true;
                if self.is_from_snapshot {
                    // It has begun. It may have something to ask for again: what follows in the journal is about that, too.
                    self.resume(Fed::Poll)?;
                } else if !self.end_unbegun()? {
                    self.resume(Fed::Start)?;
                }
            } else if let Some(index) = self.next_fact()? {
                self.resume(Fed::Fact(index))?;
            } else if poll {
                // Once per call: a body may have come further.
                poll = false;
                self.resume(Fed::Poll)?;
            } else if self.is_full() {
                // The rest goes with the next commit.
                return Ok(());
            } else if self.intervene()? || self.take_owed()? || self.take_control()? {
                // Whoever gave it was told that it counts: it comes before whatever the program wants next.
            } else if let Some(requested) = self.next_request() {
                self.perform(requested)?;
            } else if self.start_wanted()? {
                // Every body that may run begins before the first of them is recorded: after that the others would have
                // to wait until the record is durable.
            } else if let Some(requested) = self.ends.pop_front() {
                self.perform(requested)?;
            } else if !self.take_from_inbox()? && !self.end_silent()? {
                return Ok(());
            }
        }
    }

    fn resume(&mut self, fed: Fed) -> Result<(), Stop> {
        match self.tell(&fed)? {
            Some(outcome) => self.ended(outcome),
            None => Ok(()),
        }
    }

    /// Tells the program something, and takes what it asks for; how it ended, if it did.
    fn tell(&mut self, fed: &Fed) -> Result<Option<Outcome>, Stop> {
        let input = match fed {
            Fed::Start => Input::Start,
            Fed::Poll => Input::Poll,
            Fed::Execute(key, attempt) => Input::Execute { key, attempt: *attempt },
            Fed::Fact(index) => match self.journal.get(*index) {
                Some(event) => Input::Fact { index: *index, event },
                None => return Ok(None),
            },
        };
        self.ops.set_replay(self.fed < self.loaded);
        let progress = self.program.resume(input, &mut self.ops);
        let mut requested = std::mem::take(&mut self.requested);
        self.ops.take_into(&mut requested);
        let mut held_before = self.held.len();
        for requested in requested.drain(..) {
            match &requested.operation {
                Operation::Cancel { key } if self.withdraw_start(key, held_before) => held_before -= 1,
                _ => self.accept(requested)?,
            }
        }
        self.requested = requested;
        self.report_names()?;
        match progress {
            Progress::Blocked | Progress::Executing => Ok(None),
            Progress::Unsound(message) => Err(Stop::Unsound(message)),
            Progress::Finished(output) => Ok(Some(Outcome::Finished(output))),
            Progress::Failed(error) => Ok(Some(Outcome::Failed(error))),
        }
    }

    /// The next request to perform. While a pause is wanted nothing new starts; what is waited for may be given up.
    fn next_request(&mut self) -> Option<Requested> {
        if self.journal.is_paused() {
            return None;
        }
        let gives_up = |requested: &Requested| matches!(requested.operation, Operation::Cancel { .. });
        let ignored = planted!("pause-ignored-by-flow") && self.program.pauses_after_tasks();
        let may =
            !self.pausing || ignored || self.program.pauses_after_tasks() && self.held.front().is_some_and(gives_up);
        if may { self.held.pop_front() } else { None }
    }

    /// Whether a pause that is wanted waits for tasks that run. One that was asked for since begins after it.
    pub(super) fn finishes_tasks(&self) -> bool {
        self.pausing && self.program.pauses_after_tasks() && self.table.has_tasks(&self.journal)
    }

    /// The program came to its end.
    pub(super) fn ended(&mut self, outcome: Outcome) -> Result<(), Stop> {
        if self.is_transacting() {
            self.ended_meanwhile = Some(outcome);
            return Ok(());
        }
        self.pass_the_rest()?;
        self.record_owed()?;
        // Requests made on the way to the end still count: a value recorded, a child started. What bodies and scopes came
        // to that nobody awaited does not: the program would end before it is fed.
        self.ends.clear();
        while let Some(requested) = self.held.pop_front() {
            // Nor does what a flow would have said about itself.
            if !matches!(
                requested.operation,
                Operation::FinishScope { .. } | Operation::FailScope { .. } | Operation::Mark { .. }
            ) {
                self.perform(requested)?;
            }
        }
        self.outcome = Some(self.finish(outcome)?);
        Ok(())
    }

    /// The next event to feed. What is recorded must have been asked for by now.
    pub(super) fn next_fact(&mut self) -> Result<Option<Index>, Stop> {
        while self.fed < self.journal.next() {
            let index = self.fed;
            self.fed = index.next();
            if self.pass(index)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Takes note of an event; whether it is fed to the program.
    fn pass(&mut self, index: Index) -> Result<bool, Stop> {
        let Some(event) = self.journal.get(index) else { return Ok(false) };
        if event.is_mark() || event.is_intervention() {
            withdraw_marks(&mut self.held, event);
            return Ok(true);
        }
        if matches!(event, Event::InterventionRefused { .. }) {
            // It is for people.
            return Ok(false);
        }
        if let Some(key) = event.key() {
            if self.table.in_closed_scope(key) || self.ops_skip(key) {
                return Ok(false);
            }
            let cancelled = matches!(event, Event::OperationCancelled { .. });
            let withdrawn = if cancelled { self.withdrawn.remove(key) } else { self.withdrawn.contains(key) };
            let asked_for = if cancelled { !self.table.is_live(key) } else { self.table.get(key).is_some() };
            let asked_for = asked_for || withdrawn;
            if !asked_for {
                let instead = self.instead_of(index);
                return Err(Stop::Mismatch(self.mismatch_at(index, mismatch::Requested::Nothing { instead })));
            }
            self.table.note(key, event);
        }
        let value =
            matches!(event, Event::NowRecorded { .. } | Event::UuidRecorded { .. } | Event::RandomRecorded { .. });
        let detached =
            matches!(event, Event::ChildStarted { detached: true, .. } | Event::TaskScheduled { detached: true, .. });
        Ok(event.class() == Class::Checkpoint && !value || detached)
    }

    /// Whether the event lies inside a scope whose end is recorded: its inside is not replayed.
    fn ops_skip(&self, key: &Key) -> bool {
        self.ops.has_closed() && ancestors(key).any(|scope| self.ops.is_closed(scope))
    }

    pub(super) fn mismatch_at(&self, index: Index, requested: mismatch::Requested) -> Mismatch {
        let event = self.journal.get(index);
        let kind = event.map_or(outlast_core::event::Kind::RunFinished, Event::kind);
        let key = event.and_then(Event::key).cloned();
        Mismatch { index, recorded: mismatch::Recorded { kind, key, detail: None }, requested }
    }

    /// What the program asks for instead of what is recorded at an index: something the journal does not have, or else
    /// something it only has later.
    fn instead_of(&self, index: Index) -> Vec<(OperationKind, Key, Option<Location>)> {
        let asked = |since: fn(Option<Index>, Index) -> bool| -> Vec<_> {
            let recorded = |key: &Key| self.journal.operation(key).map(|recorded| recorded.since);
            let live = self.table.live().filter(|(key, _)| since(recorded(key), index));
            live.map(|(key, entry)| (entry.kind, key.clone(), entry.location.clone())).collect()
        };
        let unrecorded = asked(|since, _| since.is_none());
        if unrecorded.is_empty() { asked(|since, index| since > Some(index)) } else { unrecorded }
    }

    /// Takes a request: it is either in the journal already, or held until every fact is fed.
    fn accept(&mut self, mut requested: Requested) -> Result<(), Stop> {
        if self.admit(&mut requested)? {
            return Ok(());
        }
        match requested.operation {
            Operation::FinishStep { .. } | Operation::FailStep { .. } => self.ends.push_back(requested),
            _ => self.held.push_back(requested),
        }
        Ok(())
    }

    /// The journal's length when it was loaded.
    pub(super) fn loaded(&self) -> Index {
        self.loaded
    }

    /// Whether observers were told what the program tells them now: it is fed what an earlier owner recorded and fed.
    pub(super) fn repeats(&self) -> bool {
        let at_the_last = self.fed == self.loaded && self.loaded > Index(0);
        self.replaying() || at_the_last && !self.hints.untold
    }

    /// Whether the program is still being fed what is recorded.
    pub(super) fn replaying(&self) -> bool {
        self.fed < self.loaded
    }

    /// Whether what is recorded at an index is still to be passed.
    pub(super) fn is_ahead(&self, index: Index) -> bool {
        self.fed <= index
    }

    /// Runs the next body, if everything it depends on is durable.
    fn start_wanted(&mut self) -> Result<bool, Stop> {
        if self.journal.is_paused() {
            return Ok(false);
        }
        let Some(key) = self.table.next_wanted() else { return Ok(false) };
        let holds_back = self.winding_down || self.pausing;
        // What was announced must run: nobody else may, and it would be in doubt for ever.
        if holds_back && !self.is_announced(&key) {
            self.table.not_yet(key);
            return Ok(false);
        }
        if self.settle_without_running(&key)? || self.announce(&key)? {
            return Ok(true);
        }
        let in_store = self.table.is_in_store(&key);
        if in_store && self.start_transaction(&key) {
            return Ok(true);
        }
        if in_store || self.durable != self.journal.next() && !planted!("body-before-durable") {
            self.table.not_yet(key);
            return Ok(false);
        }
        let attempt = self.table.run_body(&key, self.moment.now);
        self.resume(Fed::Execute(key, attempt))?;
        Ok(true)
    }

    /// Whether a body was announced and has not begun. It is the next one: after an announcement nothing else begins before it.
    fn owes_body(&mut self) -> bool {
        let Some(key) = self.table.next_wanted() else { return false };
        let announced = self.is_announced(&key);
        self.table.not_yet(key);
        announced
    }

    /// Whether what was never awaited goes on alone after the end.
    pub(super) fn leaves_unawaited(&self) -> bool {
        self.program.leaves_unawaited()
    }

    /// Why an operator cannot do something to a node.
    pub(super) fn refuses(&self, intervention: &Event) -> Option<Failure> {
        self.program.refuses(intervention)
    }

    /// Why a payload is not what an operation waits for, in the words of its program.
    pub(super) fn misfit(&self, key: &Key, payload: &[u8]) -> Option<Failure> {
        self.program.misfit(key, payload)
    }

    /// Whether a body has returned, and that is not recorded yet.
    pub(super) fn has_returned(&self, key: &Key) -> bool {
        self.ends.iter().any(|requested| requested.operation.key() == Some(key))
    }

    /// Names the author used at two places: a warning, or, in tests, a reason to stop.
    fn report_names(&mut self) -> Result<(), Stop> {
        let shared = self.program.shared_names();
        for name in shared.iter().skip(self.names_reported) {
            if self.settings.refuse_shared_names {
                return Err(Stop::Unsound(name.to_string()));
            }
            tracing::warn!(run = %self.identity.run, "{name}");
        }
        self.names_reported = shared.len();
        Ok(())
    }

    /// Takes note of what a body came to.
    pub(super) fn end_body(&mut self, requested: Requested) {
        self.ends.push_back(requested);
    }

    /// What may be taken over when the commit in flight was turned down and the run is loaded again.
    pub(crate) fn salvage(self, rejected: &Commit) -> Hints {
        let mut hints = self.hints;
        let in_flight = self.in_flight.as_ref().map(|in_flight| in_flight.emitted.as_slice()).unwrap_or_default();
        hints.untold = !in_flight.is_empty() || !self.draft.emitted.is_empty();
        let events = rejected.events.iter().filter_map(|record| Event::decode(record).ok());
        for event in events {
            if let Event::StepFinished { key, .. } | Event::StepFailed { key, .. } = &event
                && !planted!("outcome-lost-on-rejection")
            {
                hints.outcomes.insert(key.clone(), event.clone());
            }
        }
        hints
    }
}

/// An [`Input`] that borrows nothing from the run.
enum Fed {
    Start,
    Fact(Index),
    Execute(Key, u32),
    Poll,
}
