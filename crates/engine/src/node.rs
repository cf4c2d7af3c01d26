//! A node: one engine's part in the cluster. It holds the lease, says which versions it has, claims runs for its drivers,
//! fires timers, and looks for wakes of runs that are being driven.

mod admission;
mod asking;
mod claims;
mod deliver;
mod doubts;
mod idle;
mod lease;
mod once;
mod retention;
mod schedules;
mod suspects;
mod versions;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, OptionFuture, select};
use outlast_core::id::{LeaseId, NodeId, RunKey, WorkerId};
use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_core::time::millis;
use outlast_store::{Claimed, Store, StoreError};
use tokio::sync::{Mutex, mpsc, oneshot, watch};

use self::claims::Claims;
use self::schedules::Schedules;
use crate::board::Board;
use crate::driver::Command;
use crate::host::{Host, Time};
use crate::meters;
use crate::registry::Registry;
use crate::schedule::Changes;

/// How often to compare clocks, and by how much they may differ.
const CLOCK_CHECK: Duration = Duration::from_secs(1);
const CLOCK_TOLERANCE_MS: u64 = 500;
/// A due timer that somebody else holds is looked for again so much later, or at the next poll: whoever holds it fires it, as a
/// rule, and its run is to be claimed then.
const HELD_FOR: Duration = Duration::from_secs(1);
/// Timers fired in one transaction.
const SWEEP_BATCH_MAX: usize = 1_000;

pub(crate) use lease::Held;
pub(crate) use once::Once;

/// What a node is made from.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) board: Arc<Board>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) drivers: Drivers,
    /// Says that schedules changed here.
    pub(crate) schedules: Arc<Changes>,
    /// How long the lease lasts without a renewal.
    pub(crate) lease: Duration,
    /// How often to look for what nobody gave notice of.
    pub(crate) poll: Duration,
    /// How often to look for it while nothing is driven and all is well.
    pub(crate) rest: Duration,
    /// Nobody else can have the store: everything is given notice of.
    pub(crate) sole: bool,
    /// How long nobody may offer a version before its runs park.
    pub(crate) version_grace: Duration,
    /// How long runs that have ended are kept; for ever if nobody said how long.
    pub(crate) retention: Option<Duration>,
    /// Runs to hold at most.
    pub(crate) runs_max: usize,
    /// How far the engine is on its way down. A dropped sender means stopped.
    pub(crate) stage: watch::Receiver<Stage>,
    /// Whether [`Node::run`] keeps the lease and claims what is ready; if not, each call does so for itself.
    pub(crate) looping: bool,
    /// Without a loop: the last moment at which the lease is certainly ours. Locked while it is renewed.
    pub(crate) held_until: Arc<Mutex<Duration>>,
    /// Without a loop: locked while a suspect is driven alone.
    pub(crate) alone: Arc<Mutex<()>>,
}

/// How far an engine is on its way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    /// Nothing new is claimed.
    Draining,
    Stopped,
}

/// The drivers of a node. A run always goes to the same one, where its program may still be.
#[derive(Clone)]
pub(crate) struct Drivers(Arc<[mpsc::UnboundedSender<Command>]>);

impl Drivers {
    pub(crate) fn new(senders: Vec<mpsc::UnboundedSender<Command>>) -> Drivers {
        Drivers(senders.into())
    }

    /// Which driver a run goes to.
    fn place(&self, run: &RunKey) -> usize {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        usize::try_from(hasher.finish() % self.0.len() as u64).unwrap_or(0)
    }

    /// Sends a command to the driver of a run; whether it is still there.
    pub(crate) fn send(&self, run: &RunKey, command: Command) -> bool {
        self.0.get(self.place(run)).is_some_and(|driver| driver.send(command).is_ok())
    }

    /// Hands runs to their drivers, each driver its own at once, so that their commits go out together; those that nobody is
    /// there for.
    fn drive(&self, claimed: Vec<Claimed>) -> Vec<RunKey> {
        let mut shares: Vec<Vec<Claimed>> = self.0.iter().map(|_| Vec::new()).collect();
        for claimed in claimed {
            if let Some(share) = shares.get_mut(self.place(&claimed.run)) {
                share.push(claimed);
            }
        }
        let mut left = Vec::new();
        for (driver, share) in self.0.iter().zip(shares).filter(|(_, share)| !share.is_empty()) {
            if let Err(mpsc::error::SendError(Command::Drive(share))) = driver.send(Command::Drive(share)) {
                left.extend(share.into_iter().map(|claimed| claimed.run));
            }
        }
        left
    }

    /// Sends a command to every driver and waits for their answers.
    pub(crate) async fn ask_all(&self, command: impl Fn(oneshot::Sender<()>) -> Command) {
        let mut answers = Vec::new();
        for driver in self.0.iter() {
            let (reply, answer) = oneshot::channel();
            if driver.send(command(reply)).is_ok() {
                answers.push(answer);
            }
        }
        for answer in answers {
            let _ = answer.await;
        }
    }

    fn tell_all(&self, command: impl Fn() -> Command) {
        for driver in self.0.iter() {
            let _ = driver.send(command());
        }
    }
}

/// When to do what next, by the host's clock.
struct Agenda {
    poll: Duration,
    announce: Duration,
    /// When to look for texts that others put into the store.
    texts: Duration,
    park: Duration,
    retain: Duration,
    /// However idle, everything is looked after then.
    thorough: Duration,
    /// Clocks were set: what is due when is not known any more.
    set: bool,
    /// None while only a start or the end of a run can let another begin.
    admit: Option<Duration>,
}

impl Node {
    /// The name of this process as a worker.
    pub(crate) fn worker_id(&self) -> WorkerId {
        WorkerId::new(self.id.as_str()).expect("a node's id is a worker's")
    }

    /// Works until it is told to stop, and then gives the lease back. The lease is kept beside the work: a call that takes
    /// long must not cost it.
    pub(crate) async fn run(self, lease: Held) {
        let working = std::pin::pin!(self.clone().work());
        let keeping = std::pin::pin!(self.keep_lease(lease));
        match select(working, keeping).await {
            Either::Left(_) | Either::Right(_) => {}
        }
        if let Some(lease) = self.board.lease() {
            self.retire(lease).await;
        }
    }

    async fn work(mut self) {
        let mut claims = Claims::new(self.time.host().random());
        let mut agenda = self.first_agenda();
        let mut schedules = Schedules::new(self.after(Duration::ZERO));
        let mut lease = self.board.lease();
        let mut told = false;
        loop {
            let stage = self.stage();
            if stage == Stage::Stopped {
                break;
            }
            if self.board.lease() != lease {
                lease = self.board.lease();
                claims.lease_lost(&self.board);
            }
            let now = self.time.host().elapsed();
            self.look_after_versions(now, &mut agenda).await;
            let polled = now >= agenda.poll;
            let look = self.look_ahead(now, told, &mut agenda, &claims).await;
            let (mut well, mut runs) = (look.well, look.runs);
            if look.timers || self.board.next_due().is_some_and(|due| self.time.instant(due) <= now) {
                well &= self.fire_timers().await;
            }
            self.look_after_ended(now, &mut agenda).await;
            if stage == Stage::Running {
                if std::mem::take(&mut agenda.set) {
                    schedules.look_now();
                }
                // Before claiming: what they start is claimed at once.
                runs |= self.look_after_schedules(now, &mut schedules).await;
                self.look_after_held(now, look.held, &mut agenda).await;
            }
            if let Some(lease) = lease {
                // Before claiming: a run that is woken and ends its turn meanwhile is found by one or the other.
                well &= self.look_for_wakes(lease).await;
                if stage == Stage::Running && runs {
                    well &= self.claim_what_may_begin(lease, &mut claims, polled).await;
                }
            }
            let resting = well && self.board.driven() == 0;
            if polled || !resting {
                let next = self.after(if resting { self.rest } else { self.poll });
                agenda.poll = if polled { next } else { agenda.poll.min(next) };
            }
            if stage != Stage::Running {
                claims.clear(&self.board);
            }
            told = self.wait(&mut agenda, claims.ask_at(), &mut schedules).await;
        }
        self.give_back(&mut claims.surplus).await;
    }

    fn stage(&mut self) -> Stage {
        if self.stage.has_changed().is_err() { Stage::Stopped } else { *self.stage.borrow_and_update() }
    }

    fn first_agenda(&self) -> Agenda {
        Agenda {
            poll: self.after(Duration::ZERO),
            texts: self.after(versions::TEXTS),
            // Soon enough for whoever looks for silence, and not in the way of what is to be driven first.
            announce: self.after(if self.sole { self.version_grace } else { self.poll.min(self.version_grace / 10) }),
            // Not at once: after all nodes were down, those with other versions need time to come up too.
            park: self.after(self.version_grace),
            retain: self.after(self.retention_period()),
            thorough: self.after(Duration::ZERO),
            set: false,
            admit: None,
        }
    }

    fn after(&self, duration: Duration) -> Duration {
        self.time.host().elapsed() + duration
    }

    /// Waits until there is something to look after; whether somebody gave notice of it.
    async fn wait(&mut self, agenda: &mut Agenda, suspects: Option<Duration>, schedules: &mut Schedules) -> bool {
        let due = self.board.next_due().map(|due| self.time.instant(due));
        let Agenda { poll, announce, park, retain, thorough: _, set: _, texts: _, admit } = *agenda;
        let running = *self.stage.borrow() == Stage::Running;
        let look_at = running.then(|| schedules.look_at());
        let until = [due, suspects, look_at, admit.filter(|_| running)]
            .into_iter()
            .flatten()
            .fold(poll.min(announce).min(park).min(retain), Duration::min);
        let (host, board) = (Arc::clone(self.time.host()), Arc::clone(&self.board));
        let set = self.sole.then(|| clocks_are_set(Arc::clone(&host)));
        let set = pin!(OptionFuture::from(set).then(|set| async move {
            if set.is_none() {
                std::future::pending().await
            }
        }));
        let noticed = pin!(board.noticed());
        let stopped = pin!(self.stage.changed().map(drop));
        let ended = pin!(schedules.ended());
        let quiet = select(select(select(host.sleep_until(until), noticed), ended), stopped);
        match select(quiet, set).await {
            Either::Left((Either::Left((Either::Left((Either::Left(_), _)), _)), _)) => false,
            Either::Left(_) => true,
            // Whatever is due by the store's clock is not known any more.
            Either::Right(_) => {
                agenda.poll = Duration::ZERO;
                agenda.set = true;
                self.board.somebody_has_tasks();
                true
            }
        }
    }

    /// Fires what is due; whether the store answered. Early calls do nothing: the store compares with its own clock.
    async fn fire_timers(&self) -> bool {
        match self.sweep().await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "due timers could not be fired; they are looked for again");
                false
            }
        }
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        loop {
            self.board.clear_due();
            let asked = self.time.asked();
            // If it fails, what is due is looked for at the next poll: at once would be again and again.
            let swept = self.store.sweep(SWEEP_BATCH_MAX).await?;
            self.time.observe(asked, swept.now);
            meters::fired(swept.fired, swept.late);
            if let Some(next) = swept.next_due {
                // One that is due and was left is held by somebody else for now: at once would be again and again.
                let later = swept.now + self.poll.min(HELD_FOR);
                self.board.remember_due(if next <= swept.now && !swept.more { later } else { next });
            }
            if !swept.more || swept.fired == 0 {
                return Ok(());
            }
        }
    }

    /// Whether the store answered.
    async fn look_for_wakes(&self, lease: LeaseId) -> bool {
        if self.board.driven() == 0 {
            return true;
        }
        match self.store.wakes(lease, CLAIM_BATCH_MAX).await {
            Ok(runs) => {
                for run in runs {
                    self.drivers.send(&run.clone(), Command::Woken(run));
                }
                true
            }
            Err(error) => {
                tracing::warn!(%error, "wakes could not be looked for; they are looked for again");
                false
            }
        }
    }
}

/// Completes when the clock on the wall has gone otherwise than time: somebody set it, or the machine slept.
async fn clocks_are_set(host: Arc<dyn Host>) {
    let offset = |host: &dyn Host| host.wall().as_millis().saturating_sub(millis(host.elapsed()));
    let before = offset(&*host);
    loop {
        host.sleep_until(host.elapsed() + CLOCK_CHECK).await;
        if offset(&*host).abs_diff(before) > CLOCK_TOLERANCE_MS {
            return;
        }
    }
}
