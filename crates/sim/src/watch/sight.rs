//! What the watch has seen of everything: leases, and who got which run.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::commit::{Commit, Delivery, NewRun, Signal};
use outlast_core::event::Event;
use outlast_core::id::{Fence, Generation, Index, Key, LeaseId, Namespace, NodeId, RunKey, TaskId, TaskToken};
use outlast_core::limits::TRIES_MAX;
use outlast_core::time::Timestamp;
use outlast_store::{Claim, ClaimTasks, Claimed, ClaimedTask, Created, Delivered, Lease, Pick, Serves, TaskExtended};

use super::admission::{Lobby, Visit};
use super::clock::Clock;
use super::order::Notes;
use super::schedules::Almanac;
use super::shadow::{Arrival, Holder, Parcel, Shadow};
use super::snapshots::Kept;
use super::tasks::Tasks;
use super::trace::Trace;
use super::turns::{Order, order_of};
use crate::cluster::NEIGHBOUR;
use crate::ledger::tick;
use crate::violation::Findings;

/// How a call stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stand {
    /// Nothing else that writes was under way meanwhile: the order of calls is the order of answers.
    pub(super) alone: bool,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Sight {
    /// The runs, as they should be.
    pub runs: BTreeMap<RunKey, Shadow>,
    /// The tasks, as they should be.
    pub tasks: Tasks,
    /// What was said of tasks when they were queued.
    pub(super) notes: Notes,
    /// The schedules, as they should be.
    pub almanac: Almanac,
    /// Runs that flow control holds back, or did.
    pub lobby: Lobby,
    pub(super) leases: BTreeMap<LeaseId, Held>,
    nodes: BTreeMap<NodeId, LeaseId>,
    /// The store's clock, as far as it was seen.
    pub(super) clock: Clock,
    /// Runs that were told to stop by another run, and how.
    pub told_to_stop: BTreeMap<RunKey, Orders>,
    /// What bodies came to, in commits that were turned down.
    pub turned_down: Vec<TurnedDown>,
    /// Runs that cannot be read, where, and whether the store reads them all the same.
    pub(super) damaged: BTreeMap<RunKey, (Index, bool)>,
    /// Runs that could not be read at some time, and where.
    pub ever_damaged: BTreeMap<RunKey, BTreeSet<Index>>,
    pub(super) events: BTreeMap<String, u64>,
    pub(super) findings: Findings,
    pub(super) calls: u64,
    pub(super) trace: Trace,
    pub(super) replays: u64,
    /// What became of the states of programs that were kept.
    pub snapshots: Kept,
    /// Whether runs are removed some time after they ended.
    pub retains: bool,
    /// Runs that were removed because they had ended long ago.
    pub removed: u64,
    pub(super) damage_met: u64,
    /// How often the store itself showed what is damaged.
    pub rows_met: u64,
    pub(super) under_way: u64,
    pub(super) begun: u64,
    /// Calls that write were under way together: who was first is not known.
    pub overlapped: bool,
    /// A call that writes was dropped under way: what it did, and when, nobody knows.
    pub(super) loose: bool,
    /// Answers come in another order than what they tell of happened, from the beginning.
    unordered: bool,
}

/// How a run was told to stop by another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// It was asked to.
    pub asked: bool,
    /// It was to end without being asked.
    pub ended: bool,
}

/// What a body came to, in a commit that was turned down: it need not run again as long as its run is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedDown {
    /// Whose.
    pub run: RunKey,
    /// In which generation.
    pub generation: Generation,
    /// Which operation.
    pub key: Key,
    /// Which attempt.
    pub attempt: u32,
    /// Who held the run.
    pub fence: Fence,
    /// When, among everything that happened.
    pub tick: u64,
}

/// A lease that was given out.
#[derive(Clone, Debug)]
pub(super) struct Held {
    until: Timestamp,
    process: String,
}

impl Sight {
    /// From now on the order of answers says nothing.
    pub(super) fn lose_order(&mut self) {
        (self.unordered, self.overlapped, self.loose) = (true, true, true);
    }

    /// Where order is not known, a commit may be applied whose sender is gone before the answer comes: whoever it tells to
    /// stop may be told.
    pub(super) fn stop_orders(&mut self, commits: &[Commit]) {
        if self.unordered {
            commits.iter().for_each(|commit| self.take_note_of_orders(commit));
        }
    }

    /// Whom a commit tells to stop.
    pub(super) fn take_note_of_orders(&mut self, commit: &Commit) {
        for Order { child, terminate } in commit.deliveries.iter().filter_map(order_of) {
            let orders = self.told_to_stop.entry(child).or_default();
            if terminate { orders.ended = true } else { orders.asked = true }
        }
    }

    pub(super) fn told(&mut self, now: Timestamp) {
        self.clock.shows(now);
    }

    // Leases.

    pub(super) fn registered(&mut self, lease: &Lease, process: &str) {
        self.told(lease.now);
        if let Some(before) = self.nodes.insert(lease.node.clone(), lease.id) {
            self.findings.ensure_unless(self.unordered, 7, before < lease.id, || {
                format!("node {} was given lease {} after {before}: a later one must be larger", lease.node, lease.id)
            });
            self.leases.remove(&before);
        }
        let process = if process.is_empty() { lease.node.as_str() } else { process };
        self.leases.insert(lease.id, Held { until: lease.until, process: process.to_owned() });
    }

    pub(super) fn renewed(&mut self, lease: &Lease, stand: Stand) {
        self.told(lease.now);
        let known = self.leases.get_mut(&lease.id);
        if stand.alone {
            // Over from its last instant on: then it must not come to life again.
            let live = known.as_ref().is_some_and(|held| held.until > lease.now);
            self.findings.ensure(7, live, || format!("lease {} was renewed at {} and was over", lease.id, lease.now));
        }
        if let Some(held) = self.leases.get_mut(&lease.id) {
            held.until = lease.until;
        }
    }

    pub(super) fn retired(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
    }

    /// Leases, and until when they last.
    pub(crate) fn leases(&self) -> BTreeMap<LeaseId, Timestamp> {
        self.leases.iter().map(|(id, held)| (*id, held.until)).collect()
    }

    /// Whether every run that is known has ended. Of those in another namespace only the neighbour ever does.
    pub(crate) fn is_over(&self) -> bool {
        let home = Namespace::default_namespace();
        let here = self.runs.iter().filter(|(run, _)| run.namespace == home || run.id.as_str() == NEIGHBOUR);
        here.into_iter().all(|(_, shadow)| shadow.ended || shadow.deleted || shadow.doomed)
    }

    // Tasks.

    pub(super) fn handed_out(&mut self, asked: &ClaimTasks, claimed: &ClaimedTask, stand: Stand) {
        self.told(claimed.now);
        let clock = self.clock.clone();
        self.with_tasks(stand, |tasks, findings| tasks.claimed(asked, claimed, &clock, findings));
    }

    pub(super) fn kept_alive(&mut self, task: (&Namespace, &TaskId, TaskToken), extended: &TaskExtended, stand: Stand) {
        self.with_tasks(stand, |tasks, findings| tasks.extended(task, extended, findings));
    }

    /// What a worker reports about a task.
    pub(super) fn reported(&mut self, delivery: &Delivery, delivered: Delivered, stand: Stand) {
        if let Delivery::Task { namespace, task, token, outcome, .. } = delivery {
            let task = (namespace, task, *token);
            self.with_tasks(stand, |tasks, findings| tasks.reported(task, (outcome, delivered), findings));
            self.clock.stays();
        }
    }

    /// Takes note of something; where the order of what happened is not known, nothing is found.
    fn with_tasks(&mut self, stand: Stand, note: impl FnOnce(&mut Tasks, &mut Findings)) {
        let mut found = Findings::default();
        note(&mut self.tasks, &mut found);
        if stand.alone && !self.overlapped {
            self.findings.merge(found);
        }
    }

    fn process_of(&self, lease: LeaseId) -> String {
        self.leases.get(&lease).map(|held| held.process.clone()).unwrap_or_default()
    }

    // Runs.

    pub(super) fn created(&mut self, new: &NewRun, created: &Created) {
        match created {
            Created::Created { fence, at } => {
                self.told(*at);
                self.begin(new);
                if let Some(owner) = new.owner {
                    let process = self.process_of(owner.lease);
                    let holder = Holder::new(owner.lease, owner.claim, process, 0);
                    if let Some(shadow) = self.runs.get_mut(&new.run) {
                        shadow.held(*fence, holder);
                    }
                }
            }
            Created::Existing { .. } => {
                let known = self.runs.contains_key(&new.run);
                self.findings
                    .ensure_unless(self.loose, 1, known, || format!("{} was there before anybody created it", new.run));
            }
            Created::Joined { run, .. } => {
                let other = RunKey::new(new.run.namespace.clone(), run.clone());
                let known = self.runs.contains_key(&other);
                self.findings.ensure_unless(self.loose, 1, known, || format!("{other} answers, and nobody created it"));
            }
        }
        self.signals_arrive(&new.run, &new.signals);
    }

    /// A child that a commit brought.
    pub(super) fn born(&mut self, new: &NewRun) {
        if !self.begin(new) {
            return;
        }
        if let (Some(_), Some(shadow)) = (new.owner, self.runs.get_mut(&new.run)) {
            // Whether its owner's lease was live, and so whether it has an owner, nobody is told.
            shadow.sure = false;
        }
        self.signals_arrive(&new.run, &new.signals);
    }

    /// A run begins, unless it is there; whether it does.
    fn begin(&mut self, new: &NewRun) -> bool {
        if self.runs.get(&new.run).is_some_and(|shadow| !shadow.deleted && !shadow.doomed) {
            return false;
        }
        let home = &new.run.namespace;
        if let Some(parent) = &new.parent {
            let key = RunKey::new(home.clone(), parent.run.clone());
            let known = self.runs.contains_key(&key);
            self.findings.ensure_unless(self.loose, 20, known, || {
                format!("{} has the parent {key}, which its namespace never had", new.run)
            });
        }
        let mut shadow = Shadow::new(new, tick());
        shadow.sure &= !self.unordered;
        self.runs.insert(new.run.clone(), shadow);
        true
    }

    /// Signals that came with a start: those whose id is new are there now.
    fn signals_arrive(&mut self, run: &RunKey, signals: &[Signal]) {
        let Some(shadow) = self.runs.get_mut(run).filter(|shadow| !shadow.ended) else { return };
        for signal in signals {
            if shadow.arrivals.iter().any(|arrival| arrival.id == signal.id) {
                continue;
            }
            let what = Parcel::Signal {
                name: signal.name.to_string(),
                aimed: signal.aimed.clone(),
                payload: signal.payload.clone(),
            };
            shadow.arrivals.push(Arrival { id: signal.id.clone(), what, inbox: None, consumed: false });
        }
    }

    pub(super) fn claimed(&mut self, claim: &Claim, claimed: &Claimed, stand: Stand) {
        self.told(claimed.now);
        let Claimed { run, fence, .. } = claimed;
        let Some(shadow) = self.runs.get(run) else {
            let loose = self.loose;
            self.findings.ensure_unless(loose, 1, false, || format!("{run} was claimed, and nobody created it"));
            return;
        };
        let again = shadow.holder().is_some_and(|holder| holder.lease == claim.lease && holder.claim == claim.id);
        if stand.alone && shadow.sure {
            let seize = matches!(claim.pick, Pick::Seize(_));
            let live = |holder: &&Holder| self.leases.get(&holder.lease).is_some_and(|held| held.until > claimed.now);
            let robbed = shadow.holder().filter(live).filter(|_| !again && !seize).cloned();
            self.findings.check(
                7,
                match robbed {
                    Some(holder) => Err(format!("{run} was given to lease {} while {holder:?} lives", claim.lease)),
                    None => Ok(()),
                },
            );
            let expected = if again { shadow.fence } else { shadow.fence.next() };
            self.findings
                .ensure(7, *fence == expected, || format!("{run} was claimed with fence {fence}; expected {expected}"));
            let stands = (shadow.generation(), shadow.next());
            self.findings.ensure(1, (claimed.generation, claimed.next) == stands, || {
                format!(
                    "{run} was claimed at {}/{}, it stands at {}/{}",
                    claimed.generation, claimed.next, stands.0, stands.1
                )
            });
            self.findings.ensure(3, !shadow.ended, || format!("{run} was claimed and has ended"));
            // A run that kills whoever drives it is found out by counting.
            let dropped = shadow.holder().is_some_and(|holder| !holder.in_lobby) && !again && !seize;
            let tries = shadow.tries + u32::from(dropped);
            // Whoever seizes one that was parked for it finds the try that nobody was given it with.
            let parked = seize && shadow.owned && claimed.tries == TRIES_MAX && tries + 1 == TRIES_MAX;
            self.findings.ensure(18, claimed.tries == tries || parked, || {
                format!("{run} was claimed as taken over {} times, and was {tries} times", claimed.tries)
            });
            self.findings.ensure_unless(seize, 18, claimed.tries < TRIES_MAX, || {
                format!("{run} was taken over {} times without going on, and is not parked", claimed.tries)
            });
            let version = shadow.chapter().map(|chapter| chapter.version.clone());
            let agrees = version.as_ref() == Some(&claimed.version) && shadow.workflow == claimed.workflow;
            self.findings.ensure(22, agrees, || {
                format!(
                    "{run} is claimed as {} {}, it is {} {version:?}",
                    claimed.workflow, claimed.version, shadow.workflow
                )
            });
        }
        let served = match &claim.serves {
            Serves::Everything => true,
            Serves::Only(only) => {
                only.iter().any(|(name, version)| (name, version) == (&claimed.workflow, &claimed.version))
            }
        };
        self.findings.ensure(22, served || again, || {
            format!("{run} is {} {} and went to somebody who does not serve that", claimed.workflow, claimed.version)
        });
        let process = self.process_of(claim.lease);
        let in_lobby = matches!(claim.pick, Pick::Seize(_)) && self.lobby.get(run).is_some_and(Visit::is_held);
        let holder = Holder { in_lobby, ..Holder::new(claim.lease, claim.id, process, claimed.tries) };
        let taken = shadow.holders.get(fence).cloned();
        let mine = taken.as_ref().is_none_or(|by| (by.lease, by.claim) == (claim.lease, claim.id));
        self.findings.ensure(7, mine, || format!("{run}: fence {fence} went to {holder:?}, and before to {taken:?}"));
        if let Some(shadow) = self.runs.get_mut(run) {
            shadow.tries = claimed.tries;
            shadow.held(*fence, holder);
        }
    }

    /// The run is nobody's.
    pub(super) fn let_go(&mut self, run: &RunKey) {
        if let Some(shadow) = self.runs.get_mut(run) {
            shadow.let_go();
        }
    }

    /// A run that was parked begins again.
    pub(super) fn unparked(&mut self, run: &RunKey) {
        if let Some(shadow) = self.runs.get_mut(run) {
            shadow.let_go();
            shadow.tries = 0;
        }
    }

    /// A commit was turned down: what bodies came to is known to whoever sent it.
    pub(super) fn turned_down(&mut self, commit: &Commit) {
        let Some(generation) = self.runs.get(&commit.run).map(Shadow::generation) else { return };
        for event in commit.events.iter().filter_map(|record| Event::decode(record).ok()) {
            let (Event::StepFinished { key, attempts, .. } | Event::StepFailed { key, attempts, .. }) = event else {
                continue;
            };
            let (run, fence) = (commit.run.clone(), commit.fence);
            self.turned_down.push(TurnedDown { run, generation, key, attempt: attempts, fence, tick: tick() });
        }
    }

    /// A run was deleted, and its tree will go with it.
    pub(super) fn deleted(&mut self, run: &RunKey) {
        let Some(shadow) = self.runs.get_mut(run) else { return };
        shadow.deleted = true;
        let (ended, unsure) = (shadow.ended, !shadow.sure);
        self.findings.ensure_unless(unsure, 2, ended, || format!("{run} was deleted and has not ended"));
        let mut doomed = vec![run.id.clone()];
        while let Some(parent) = doomed.pop() {
            for (key, shadow) in &mut self.runs {
                let of = shadow.parent.as_ref().filter(|of| !of.detached && of.run == parent);
                if key.namespace == run.namespace && of.is_some() && !shadow.doomed {
                    shadow.doomed = true;
                    doomed.push(key.id.clone());
                }
            }
        }
    }

    /// Nobody knows what a call did to these.
    pub(super) fn lost_sight_of(&mut self, runs: &[RunKey]) {
        self.loose = true;
        for run in runs {
            if let Some(shadow) = self.runs.get_mut(run) {
                shadow.sure = false;
            }
        }
    }
}
