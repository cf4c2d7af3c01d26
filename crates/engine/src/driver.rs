//! A driver: the runs one thread drives, from claim to suspension or end.
//!
//! It does no I/O itself. Work comes as [`Command`]s, from wakers and from answers of the store; each round it lets every
//! run that has something to do advance, and sends all their commits as one batch. While that batch becomes durable, the
//! next one gathers.

mod alarm;
mod answers;
mod calls;
mod down;
mod here;
mod hot;
mod place;
mod ready;
mod restore;
mod terminate;
mod transactions;

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use outlast_core::commit::{Commit, NewRun, Parent, Status, Then};
use outlast_core::id::{Fence, Generation, InboxId, Index, RunKey, Version, WorkflowName};
use outlast_core::lifecycle::Decision;
use outlast_core::limits::{TEXT_BYTES_MAX, TRIES_ALONE};
use outlast_core::planted;
use outlast_core::time::Timestamp;
use outlast_store::{Claimed, Created, LoadFrom, Loaded, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::calls::{AGAIN_FIRST, pause};
use self::calls::{Calls, Creation, Done, Wanted};
pub(crate) use self::here::{Deliver, DeliveredHere};
use self::hot::Hot;
use self::place::Place;
use self::ready::{Ready, RunNo};
pub(crate) use self::terminate::{Terminate, Terminated};
use crate::board::Board;
use crate::drive::{Hints, Identity, Moment, OperationInfo, Run, Settings, Stop};
use crate::host::{SendFuture, Time};
use crate::registry::Registry;

/// What a driver is asked to do.
pub(crate) enum Command {
    /// Create a run, owned by this node, and drive it.
    Create { new: Box<NewRun>, reply: oneshot::Sender<Result<Created, StoreError>> },
    /// Drive these; they are claimed.
    Drive(Vec<Claimed>),
    /// Drive this one unless it is driven: it is held here, and maybe nobody knows.
    Adopt(Box<Claimed>),
    /// Something came for a run that may be driven here.
    Woken(RunKey),
    /// Deliver what came of a run's task, and drive the run, if there is nothing else to do.
    Deliver(Box<Deliver>),
    /// End a run without asking it.
    Terminate(Box<Terminate>),
    /// The lease is over: drop everything.
    LeaseLost,
    /// What a run does right now, if it is driven here or its program is kept.
    Inspect { run: RunKey, reply: oneshot::Sender<Inspected> },
    /// Take nothing new, let bodies end, give everything back; answered when that is done.
    Drain { reply: oneshot::Sender<()> },
    /// Give back what is still there, and end.
    Stop { reply: oneshot::Sender<()> },
}

/// What a driver knows of a run.
pub(crate) enum Inspected {
    /// It is being driven.
    Driven {
        operations: Vec<OperationInfo>,
        decision: Decision,
    },
    /// It is being read, or given up.
    Passing,
    /// It is suspended, and its program is kept.
    Kept(Vec<OperationInfo>),
    Nothing,
}

/// What a driver is made from.
pub(crate) struct Setup {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) board: Arc<Board>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) hot_runs: usize,
    /// Programs are evicted at random, with this seed.
    pub(crate) eviction: Option<u64>,
}

/// A run this node owns, before its program is there.
#[derive(Clone, Debug)]
struct Owned {
    run: RunKey,
    fence: Fence,
    generation: Generation,
    next: Index,
    workflow: WorkflowName,
    version: Version,
    parent: Option<Parent>,
}

impl Owned {
    fn of(run: &Run) -> Owned {
        let Identity { run: key, generation, workflow, version, parent } = run.identity().clone();
        let (fence, next) = (run.fence(), run.durable());
        Owned { run: key, fence, generation, next, workflow, version, parent }
    }
}

/// Where a run stands on its driver.
enum Slot {
    /// Its journal and inbox are being read.
    Loading { owned: Owned, hints: Hints, hot: Option<Box<Run>> },
    /// It is being driven.
    Live(Box<Run>),
    /// It is given up, with its last commit under way.
    Leaving,
}

pub(crate) struct Driver {
    calls: Calls,
    time: Arc<Time>,
    registry: Arc<Registry>,
    settings: Arc<Settings>,
    board: Arc<Board>,
    commands: mpsc::UnboundedReceiver<Command>,
    ready: Arc<Ready>,
    /// In order, so that the same story is told in the same way every time.
    places: BTreeMap<RunNo, Place>,
    numbers: HashMap<RunKey, RunNo>,
    last: u64,
    hot: Hot,
    under_way: FuturesUnordered<calls::Call>,
    alarm: Option<(Timestamp, SendFuture)>,
    // What this round gathers.
    creations: Vec<Creation>,
    loads: Vec<Wanted>,
    commits: Vec<(RunNo, Commit)>,
    drain: Option<oneshot::Sender<()>>,
    draining: bool,
    /// One draw of real chance, for the seeds of all passes. Not for secrets.
    chance: u128,
}

/// What one round has to deal with.
#[derive(Default)]
struct Round {
    /// The alarm went off.
    alarmed: bool,
    commands: Vec<Command>,
    done: Vec<Done>,
    ready: Vec<RunNo>,
    closed: bool,
}

/// The most commands one round takes, so that answers are not kept waiting.
const ROUND_COMMANDS_MAX: usize = 1024;
/// Commits that are sent before the round is over, so that the store begins with them while the others are made.
const COMMITS_EARLY: usize = 32;
/// How often a run is loaded again because a commit was turned down, before it parks.
const RELOADS_MAX: u32 = 20;

impl Driver {
    pub(crate) fn new(setup: Setup) -> Driver {
        let Setup { store, time, registry, settings, board, commands, hot_runs, eviction } = setup;
        let chance = time.host().random();
        Driver {
            calls: Calls { store, time: Arc::clone(&time) },
            time,
            registry,
            settings,
            board,
            commands,
            ready: Arc::default(),
            places: BTreeMap::new(),
            numbers: HashMap::new(),
            last: 0,
            hot: Hot::new(hot_runs, eviction),
            under_way: FuturesUnordered::new(),
            alarm: None,
            creations: Vec::new(),
            loads: Vec::new(),
            commits: Vec::new(),
            drain: None,
            draining: false,
            chance,
        }
    }

    /// Drives until it is stopped.
    pub(crate) async fn run(mut self) {
        loop {
            let round = std::future::poll_fn(|context| self.poll_round(context)).await;
            let Round { mut commands, done, mut ready, closed, alarmed: _ } = round;
            // Nothing goes on under a lease that is over.
            let lost = commands.iter().rposition(|command| matches!(command, Command::LeaseLost));
            let later = commands.split_off(lost.map_or(0, |at| at + 1));
            let stop = self.obey(commands, &mut ready);
            let later = self.note_wakes(later);
            // A claim may rest on a commit that ended a turn: with its answer the program is kept for it.
            done.into_iter().for_each(|done| self.done(done));
            let stop = self.obey(later, &mut ready).or(stop);
            ready.into_iter().for_each(|no| self.advance(no));
            self.send();
            self.set_alarm();
            self.finish_draining();
            if let Some(reply) = stop {
                self.give_back().await;
                let _ = reply.send(());
                return;
            }
            if closed {
                return;
            }
        }
    }

    /// Completes when there is anything to do.
    fn poll_round(&mut self, context: &mut Context<'_>) -> Poll<Round> {
        self.ready.register(context.waker());
        let mut round = Round::default();
        while round.commands.len() < ROUND_COMMANDS_MAX {
            match self.commands.poll_recv(context) {
                Poll::Ready(Some(command)) => round.commands.push(command),
                Poll::Ready(None) => {
                    round.closed = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        while let Poll::Ready(Some(done)) = Pin::new(&mut self.under_way).poll_next(context) {
            round.done.push(done);
        }
        round.ready = self.ready.drain();
        if let Some((_, alarm)) = &mut self.alarm
            && alarm.as_mut().poll(context).is_ready()
        {
            self.alarm = None;
            let expiring = self.expiring();
            round.ready.extend(expiring);
            // Nothing may have expired: clocks were set meanwhile. Then the alarm is set again.
            round.alarmed = true;
        }
        let quiet = round.commands.is_empty() && round.done.is_empty() && round.ready.is_empty();
        let idle = quiet && !round.alarmed && !round.closed;
        if idle { Poll::Pending } else { Poll::Ready(round) }
    }

    /// Does what is asked; who waits for the end, if it is to stop.
    fn obey(&mut self, commands: Vec<Command>, ready: &mut Vec<RunNo>) -> Option<oneshot::Sender<()>> {
        commands.into_iter().filter_map(|command| self.command(command, ready)).last()
    }

    fn command(&mut self, command: Command, ready: &mut Vec<RunNo>) -> Option<oneshot::Sender<()>> {
        match command {
            Command::Create { new, reply } => {
                if new.owner.is_some() && self.draining {
                    self.board.driven_one_less();
                }
                let new = NewRun { owner: new.owner.filter(|_| !self.draining), ..*new };
                self.creations.push(Creation { new, reply: Some(reply) });
            }
            Command::Drive(claimed) => claimed.into_iter().for_each(|claimed| self.drive(claimed)),
            Command::Adopt(claimed) => self.adopt(*claimed),
            Command::Woken(run) => self.woken(&run),
            Command::Deliver(order) => self.deliver_here(*order),
            Command::Terminate(order) => self.terminate(*order),
            Command::LeaseLost => self.lease_lost(),
            Command::Inspect { run, reply } => {
                let _ = reply.send(self.inspect(&run));
            }
            Command::Drain { reply } => {
                self.draining = true;
                self.hot.clear();
                self.drain = Some(reply);
                ready.extend(self.places.keys().copied());
            }
            Command::Stop { reply } => return Some(reply),
        }
        None
    }

    // Runs come.

    fn place(&mut self, key: RunKey, slot: Slot) -> RunNo {
        self.last += 1;
        let no = RunNo(self.last);
        // A run that is claimed again was lost in between: whatever was here of it is stale.
        if let Some(old) = self.numbers.insert(key.clone(), no) {
            let old = self.places.remove(&old);
            self.left(old.as_ref());
        }
        self.places.insert(no, Place::new(key, slot));
        no
    }

    fn drive(&mut self, claimed: Claimed) {
        self.time.has_passed(claimed.now);
        let hot = self.hot.take(&claimed);
        let Claimed { run, fence, generation, next, workflow, version, parent, tries, was, inbox, .. } = claimed;
        let suspect = tries >= TRIES_ALONE;
        if self.draining {
            if suspect {
                self.board.suspect_settled();
            }
            self.board.driven_one_less();
            self.board.left(&run);
            self.under_way.push(self.calls.release(run, fence, true));
            return;
        }
        let owned = Owned { run: run.clone(), fence, generation, next, workflow, version, parent };
        let from = if hot.is_some() { LoadFrom::Index(next) } else { self.load_from(&owned) };
        let known = inbox.filter(|_| hot.is_some());
        let no = self.place(run.clone(), Slot::Loading { owned, hints: Hints::default(), hot: hot.map(Box::new) });
        if let Some(place) = self.places.get_mut(&no) {
            place.suspect = suspect;
            place.resumed = was == Status::Waiting;
        }
        match known {
            // Everything that came before the claim: what comes later wakes it once more.
            Some(inbox) => self.restore(no, Loaded { inbox, ..nothing_loaded(run, generation, next) }),
            None => self.loads.push(Wanted { no, run, from, taking: None }),
        }
    }

    fn adopt(&mut self, claimed: Claimed) {
        if self.numbers.contains_key(&claimed.run) {
            return;
        }
        tracing::warn!(run = %claimed.run, "a claim that was thought lost took the run; it is driven now");
        if claimed.tries >= TRIES_ALONE {
            // Not beside others.
            self.under_way.push(self.calls.release(claimed.run, claimed.fence, true));
            return;
        }
        self.board.driven_more(1);
        self.drive(claimed);
    }

    fn live(&mut self, no: RunNo, run: Box<Run>) {
        let Some(place) = self.places.get_mut(&no) else { return };
        place.slot = Slot::Live(run);
        let woken = std::mem::take(&mut place.woken);
        if woken {
            self.read_inbox(no);
        }
        self.advance(no);
    }

    // Runs go on.

    fn moment(&self) -> Moment {
        // In this order: what has passed has passed before now.
        let passed = self.time.passed();
        Moment { now: self.time.now(), passed, seed: self.chance }
    }

    fn advance(&mut self, no: RunNo) {
        let moment = self.moment();
        let Some(Place { slot: Slot::Live(run), stopped: None, .. }) = self.places.get_mut(&no) else { return };
        if run.is_leaving() {
            // What it did now would be lost when the commit under way ends its turn.
            return;
        }
        if self.draining {
            run.wind_down();
        }
        let watched = self.board.is_watched(&run.identity().run);
        run.set_watched(watched);
        let outcome = run.advance(moment).and_then(|()| run.commit());
        if watched {
            let happened = run.take_lifecycle();
            self.board.tell(&run.identity().run, happened);
        }
        match outcome {
            Ok(Some(commit)) => {
                self.commits.push((no, commit));
                if self.commits.len() >= COMMITS_EARLY {
                    self.send_commits();
                }
            }
            Ok(None) => {
                let emitted = run.take_emitted();
                if !emitted.is_empty() {
                    let identity = run.identity();
                    self.board.publish(&identity.run, identity.generation, emitted);
                }
                if let Some(transact) = run.take_transaction() {
                    self.board.sending(&transact.commit.run, transact.commit.expected);
                    self.under_way.push(self.calls.transact(no, transact));
                } else if self.draining {
                    self.give_back_if_idle(no);
                }
            }
            Err(stop) => self.stop(no, &stop),
        }
    }

    /// The run cannot go on: it parks, once nothing of it is under way.
    fn stop(&mut self, no: RunNo, stop: &Stop) {
        let Some(place) = self.places.get_mut(&no) else { return };
        let Slot::Live(run) = &place.slot else { return };
        if run.is_from_snapshot() && !run.is_committing() {
            // Nothing of it is durable, so nothing is lost; what the whole journal comes to counts.
            let owned = Owned::of(run);
            self.rebuild(no, owned, Hints::default(), &stop.to_string());
            return;
        }
        if run.is_committing() {
            place.stopped = Some(stop.to_string());
            return;
        }
        let (key, fence, next) = (run.identity().run.clone(), run.fence(), run.durable());
        self.park(no, &key, fence, next, stop.to_string());
    }

    fn park(&mut self, no: RunNo, run: &RunKey, fence: Fence, next: Index, reason: String) {
        tracing::error!(run = %run, %reason, "the run is parked");
        // A letter has four bytes at most, and a text has its limit in bytes.
        let reason: String = reason.chars().filter(|letter| *letter != '\0').take(TEXT_BYTES_MAX / 4).collect();
        let commit = Commit { then: Then::Park { reason }, ..Commit::new(run.clone(), fence, next) };
        if let Some(place) = self.places.get_mut(&no) {
            place.slot = Slot::Leaving;
        }
        self.commits.push((no, commit));
    }

    /// Takes note of wakes of runs that are driven, before any of them ends its turn; what else is asked for is left.
    fn note_wakes(&mut self, commands: Vec<Command>) -> Vec<Command> {
        let mut left = Vec::with_capacity(commands.len());
        for command in commands {
            match command {
                Command::Woken(run) if self.numbers.contains_key(&run) => self.woken(&run),
                other => left.push(other),
            }
        }
        left
    }

    fn woken(&mut self, run: &RunKey) {
        let Some(no) = self.numbers.get(run).copied() else { return };
        let Some(place) = self.places.get_mut(&no) else { return };
        match &place.slot {
            // Its resume must not be taken while a commit that ends the turn is under way: then nobody would read what
            // came with it.
            Slot::Live(run) if !run.is_reading() && (!run.is_leaving() || planted!("read-while-leaving")) => {
                self.read_inbox(no);
            }
            Slot::Live(_) | Slot::Loading { .. } => place.woken = true,
            Slot::Leaving => {}
        }
    }

    fn read_inbox(&mut self, no: RunNo) {
        let Some(place) = self.places.get_mut(&no) else { return };
        let Slot::Live(run) = &mut place.slot else { return };
        run.set_reading(true);
        let call = self.calls.read_inbox(no, place.key.clone(), run.fence(), run.durable());
        self.under_way.push(call);
    }

    // Runs go.

    /// The run is no longer ours, or has ended.
    fn forget(&mut self, no: RunNo) -> Option<Place> {
        let place = self.places.remove(&no)?;
        self.board.not_sent(&place.key);
        if self.numbers.get(&place.key) == Some(&no) {
            self.numbers.remove(&place.key);
        }
        self.left(Some(&place));
        self.board.left(&place.key);
        Some(place)
    }

    /// A run left this driver.
    fn left(&self, place: Option<&Place>) {
        if place.is_some_and(|place| place.suspect) {
            self.board.suspect_settled();
        }
        self.board.driven_one_less();
    }

    fn lease_lost(&mut self) {
        self.hot.clear();
        let numbers: Vec<RunNo> = self.places.keys().copied().collect();
        for no in numbers {
            self.forget(no);
        }
        self.commits.clear();
        self.loads.clear();
    }

    fn inspect(&mut self, run: &RunKey) -> Inspected {
        let driven = self.numbers.get(run).and_then(|no| self.places.get_mut(no));
        match driven {
            Some(Place { slot: Slot::Live(run), .. }) => {
                Inspected::Driven { operations: run.operations(), decision: run.decision() }
            }
            Some(Place { slot: Slot::Loading { .. } | Slot::Leaving, .. }) => Inspected::Passing,
            None => self.hot.get(run).map_or(Inspected::Nothing, |run| Inspected::Kept(run.operations())),
        }
    }

    // What goes out.

    /// Sends what this round gathered, each kind as one batch.
    fn send(&mut self) {
        if !self.creations.is_empty() {
            let creations = std::mem::take(&mut self.creations);
            let call = match self.create_here(creations) {
                Ok(done) => ready(done),
                Err(creations) => self.calls.create(creations),
            };
            self.under_way.push(call);
        }
        if !self.loads.is_empty() {
            let loads = std::mem::take(&mut self.loads);
            let call = match self.load_here(loads) {
                Ok(done) => ready(done),
                Err(loads) => self.calls.load(loads),
            };
            self.under_way.push(call);
        }
        self.send_commits();
    }

    fn send_commits(&mut self) {
        if self.commits.is_empty() {
            return;
        }
        self.commits.iter().for_each(|(_, commit)| self.board.sending(&commit.run, commit.expected));
        let commits = std::mem::take(&mut self.commits);
        let call = match self.commit_here(commits) {
            Ok(done) => ready(done),
            Err(commits) => {
                let mut call = self.calls.commit(commits);
                // Polled once here, so that the store gets it now and not when this round is over.
                match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Pending => call,
                    // A store in memory has the answer at once.
                    Poll::Ready(done) => ready(done),
                }
            }
        };
        self.under_way.push(call);
    }
}

/// A journal from its end on, and an empty inbox.
fn nothing_loaded(run: RunKey, generation: Generation, next: Index) -> Loaded {
    Loaded {
        run,
        generation,
        input: Bytes::new(),
        snapshot: None,
        first: next,
        events: Vec::new(),
        inbox: Vec::new(),
        inbox_next: InboxId(0),
    }
}

/// What is answered already is dealt with in the next round, like any other answer.
fn ready(done: Done) -> calls::Call {
    Box::pin(std::future::ready(done))
}
