//! Everything that changes rows by name: what it needs, and which piece of shared logic does it.

use bytes::Bytes;
use outlast_core::commit::{Commit, Delivery, NewRun, Receipt, Signal, StandaloneTask, TaskOutcome};
use outlast_core::id::{Namespace, Revision, RunKey, TaskId, TxnId};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;

use super::group::advance::Advance;
use super::needs::Needs;
use crate::api::{
    Claim, Claimed, Committed, Created, Delivered, Fire, Fired, Release, Schedule, Take, TaskExtended, TaskHeartbeat,
};
use crate::error::{CommitError, StoreError, Trouble};
use crate::logic::{self, Halt};
use crate::rows::{Rows, start_keys_of};

/// One item of a group.
pub(super) trait Work: Send + Sync + 'static {
    type Answer: Send + Sync;
    type Refusal: From<StoreError> + Send + Sync;
    /// Whether a lost reply must be resolved, because the item cannot simply be sent again.
    const RESOLVED: bool = false;

    /// Names the rows it will ask for, as far as it can be told beforehand.
    fn needs(&self, needs: &mut Needs);
    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<Self::Answer, Halt<Self::Refusal>>;
    /// Roughly how many bytes it sends.
    fn weight(&self) -> usize {
        0
    }
    /// Itself, if it does no more than put one event at the end of a journal.
    fn as_advance(&self, _limits: &Limits) -> Option<Advance<'_>> {
        None
    }
    /// The answer if it did.
    fn advanced(&self, _at: Timestamp) -> Option<Self::Answer> {
        None
    }
    /// What to say if the reply to COMMIT was lost.
    fn lost(_txn: TxnId) -> Self::Refusal {
        let message = "the connection broke before the server confirmed; repeat the call";
        StoreError::unavailable(Trouble::Connection, message).into()
    }
}

impl Work for Commit {
    type Answer = Committed;
    type Refusal = CommitError;
    const RESOLVED: bool = true;

    fn needs(&self, needs: &mut Needs) {
        let run = needs.run(&self.run);
        run.heads.extend(&self.consumed);
        run.timers.extend(self.timers_fired.iter().cloned());
        run.waits.extend(self.waits.iter().map(|wait| wait.key.clone()));
        run.waits.extend(self.waits_closed.iter().map(|wait| wait.key.clone()));
        run.tasks_of.extend(self.tasks_cancelled.iter().cloned());
        let tasks = self.tasks.iter().map(|task| (self.run.namespace.clone(), task.id.clone()));
        needs.tasks.extend(tasks);
        self.children.iter().for_each(|child| new_run_needs(child, needs));
        self.deliveries.iter().for_each(|delivery| delivery.needs(needs));
    }

    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<Committed, Halt<CommitError>> {
        logic::commit::commit(rows, self, limits)
    }

    fn weight(&self) -> usize {
        let events: usize = self.events.iter().map(outlast_core::record::Record::payload_bytes).sum();
        let tasks: usize = self.tasks.iter().map(|task| task.args.len()).sum();
        let children: usize = self.children.iter().map(Work::weight).sum();
        let deliveries: usize = self.deliveries.iter().map(Work::weight).sum();
        events + tasks + children + deliveries + self.snapshot.as_ref().map_or(0, |snapshot| snapshot.data.len())
    }

    fn as_advance(&self, limits: &Limits) -> Option<Advance<'_>> {
        let event = self.plain_event()?;
        let fits = limits.check_events(1).is_ok() && limits.check_event(event).is_ok();
        fits.then_some(Advance { run: &self.run, fence: self.fence, expected: self.expected, event })
    }

    fn advanced(&self, at: Timestamp) -> Option<Committed> {
        Some(Committed { next: self.expected.next(), delivered: Vec::new(), now: at })
    }

    fn lost(txn: TxnId) -> CommitError {
        CommitError::Unknown(txn)
    }
}

/// What creating a run asks for.
fn new_run_needs(new: &NewRun, needs: &mut Needs) {
    needs.seqs += 1;
    let run = needs.run(&new.run);
    run.delivered.extend(new.signals.iter().map(|signal| signal.id.clone()));
    run.waits.extend(new.signals.iter().filter_map(|signal| signal.aimed.clone()));
    needs.leases.extend(new.owner.map(|owner| owner.lease));
    needs.start_keys.extend(start_keys_of(new));
    if let Some(parent) = new.parent.as_ref().filter(|parent| !parent.detached) {
        needs.run(&RunKey::new(new.run.namespace.clone(), parent.run.clone()));
    }
}

impl Work for NewRun {
    type Answer = Created;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        new_run_needs(self, needs);
    }

    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<Created, Halt<StoreError>> {
        logic::create::create(rows, self, limits)
    }

    fn weight(&self) -> usize {
        let history: usize = self.history.iter().map(outlast_core::record::Record::payload_bytes).sum();
        let signals: usize = self.signals.iter().map(|signal| signal.payload.len()).sum();
        self.input.len() + history + signals
    }
}

fn signal_needs(run: &RunKey, signal: &Signal, needs: &mut Needs) {
    let of = needs.run(run);
    of.delivered.insert(signal.id.clone());
    match &signal.aimed {
        Some(key) => of.waits.insert(key.clone()),
        None => of.open_waits.insert(signal.name.clone()),
    };
}

impl Work for Delivery {
    type Answer = Delivered;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        match self {
            Delivery::Signal { run, signal } => signal_needs(run, signal, needs),
            Delivery::Answer { run, key, id, .. } => {
                let of = needs.run(run);
                of.delivered.insert(id.clone());
                of.waits.insert(key.clone());
            }
            Delivery::Heartbeat { run, key, .. } => drop(needs.run(run).waits.insert(key.clone())),
            Delivery::Child { run, .. } => drop(needs.run(run)),
            Delivery::Control { run, id, .. } => drop(needs.run(run).delivered.insert(id.clone())),
            Delivery::Task { namespace, task, receipt, .. } => {
                needs.tasks.insert((namespace.clone(), task.clone()));
                if let Some(Receipt { run: Some(run), id }) = receipt {
                    needs.run(&RunKey::new(namespace.clone(), run.clone())).delivered.insert(id.clone());
                }
            }
        }
    }

    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<Delivered, Halt<StoreError>> {
        logic::deliver::deliver(rows, self, limits)
    }

    fn weight(&self) -> usize {
        let size = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        match self {
            Delivery::Signal { signal, .. } => signal.payload.len(),
            Delivery::Answer { meta, payload, .. } | Delivery::Child { meta, payload, .. } => {
                size(meta) + size(payload)
            }
            Delivery::Control { meta, .. } => size(meta),
            Delivery::Heartbeat { .. } => 0,
            Delivery::Task { outcome, .. } => match outcome {
                TaskOutcome::Finished { result, log } => result.len() + size(log),
                TaskOutcome::Failed { error } | TaskOutcome::Retry { error, .. } => error.len(),
                TaskOutcome::GivenBack => 0,
            },
        }
    }
}

impl Work for Take {
    type Answer = bool;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.run(&self.run);
    }

    fn apply(&self, rows: &mut dyn Rows, _limits: &Limits) -> Result<bool, Halt<StoreError>> {
        logic::claim::take(rows, self)
    }
}

impl Work for Release {
    type Answer = ();
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.run(&self.run);
    }

    fn apply(&self, rows: &mut dyn Rows, _limits: &Limits) -> Result<(), Halt<StoreError>> {
        logic::claim::release(rows, self)
    }
}

/// A parked run that may go on.
pub(super) struct Unpark(pub(super) RunKey);

impl Work for Unpark {
    type Answer = bool;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.run(&self.0);
    }

    fn apply(&self, rows: &mut dyn Rows, _limits: &Limits) -> Result<bool, Halt<StoreError>> {
        logic::claim::unpark(rows, &self.0)
    }
}

/// A run that somebody wakes by hand.
pub(super) struct Wake(pub(super) RunKey);

impl Work for Wake {
    type Answer = bool;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.run(&self.0);
    }

    fn apply(&self, rows: &mut dyn Rows, _limits: &Limits) -> Result<bool, Halt<StoreError>> {
        logic::worker::wake(rows, &self.0)
    }
}

/// A claim of one run by its name. Its lock is waited for.
pub(super) struct ClaimNamed {
    pub(super) run: RunKey,
    pub(super) claim: Claim,
}

impl Work for ClaimNamed {
    type Answer = Option<Claimed>;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.run(&self.run);
        needs.leases.insert(self.claim.lease);
    }

    fn apply(&self, rows: &mut dyn Rows, _limits: &Limits) -> Result<Option<Claimed>, Halt<StoreError>> {
        logic::claim::check_lease(rows, self.claim.lease)?;
        logic::claim::claim_named(rows, &self.run, &self.claim)
    }
}

impl Work for StandaloneTask {
    type Answer = ();
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert((self.namespace.clone(), self.task.id.clone()));
    }

    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<(), Halt<StoreError>> {
        logic::task::enqueue(rows, self, limits)
    }

    fn weight(&self) -> usize {
        self.task.args.len()
    }
}

/// What becomes of a dead task.
pub(super) enum DeadTask {
    Retry(Namespace, TaskId),
    Discard(Namespace, TaskId),
}

impl Work for DeadTask {
    type Answer = ();
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        let (DeadTask::Retry(namespace, id) | DeadTask::Discard(namespace, id)) = self;
        needs.tasks.insert((namespace.clone(), id.clone()));
    }

    fn apply(&self, rows: &mut dyn Rows, _limits: &Limits) -> Result<(), Halt<StoreError>> {
        match self {
            DeadTask::Retry(namespace, id) => logic::task::retry(rows, namespace, id),
            DeadTask::Discard(namespace, id) => logic::task::discard(rows, namespace, id),
        }
    }
}

impl Work for TaskHeartbeat {
    type Answer = TaskExtended;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.tasks.insert((self.namespace.clone(), self.task.clone()));
    }

    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<TaskExtended, Halt<StoreError>> {
        logic::task::heartbeat(rows, self, limits)
    }

    fn weight(&self) -> usize {
        self.progress.as_ref().map_or(0, Bytes::len)
    }
}

impl Work for Schedule {
    type Answer = Option<Revision>;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.namespaces.insert(self.namespace.clone());
        needs.schedules.insert((self.namespace.clone(), self.id.clone()));
    }

    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<Option<Revision>, Halt<StoreError>> {
        logic::schedule::put(rows, self, limits)
    }

    fn weight(&self) -> usize {
        self.spec.len() + self.state.len()
    }
}

impl Work for Fire {
    type Answer = Fired;
    type Refusal = StoreError;

    fn needs(&self, needs: &mut Needs) {
        needs.schedules.insert((self.namespace.clone(), self.id.clone()));
        self.run.iter().for_each(|run| new_run_needs(run, needs));
    }

    fn apply(&self, rows: &mut dyn Rows, limits: &Limits) -> Result<Fired, Halt<StoreError>> {
        logic::schedule::fire(rows, self, limits)
    }

    fn weight(&self) -> usize {
        self.state.len() + self.run.as_ref().map_or(0, Work::weight)
    }
}
