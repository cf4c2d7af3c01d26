//! Workers: they claim tasks, run the handlers registered for them, and report what came of it.
//!
//! A worker's loop does everything that touches the store: it claims as many tasks as it has room for, extends the leases of
//! those that run, and reports those that ended, several in one call. Handlers run beside it, each as an [`Attempt`] that ends
//! by itself when its handler returns, its time is up, or nobody wants it any more.

mod attempt;
mod context;
mod handler;
mod held;
mod judge;
mod offered;
mod policy;
mod registry;
pub(crate) mod resume;
mod ticket;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, join, select};
use outlast_core::commit::{Delivery, TaskOutcome};
use outlast_core::id::{ClaimId, RunKey, WorkerId};
use outlast_core::limits::{CLAIM_BATCH_MAX, Limits};
use outlast_store::{ClaimTasks, ClaimedTask, Sighting, Store};
use tokio::sync::{mpsc, watch};

use crate::board::Board;
use crate::host::Time;
use crate::meters;
use crate::node::{Node, Stage};
use attempt::{Attempt, Ended};
pub use context::TaskContext;
pub use handler::Handler;
pub(crate) use handler::{Handlers, Refused};
use held::Held;
pub(crate) use judge::{Begun, Judge, begin};
pub use offered::OfferedAttempt;
pub(crate) use policy::{TaskPlan, TaskPolicy, idempotency_key, part, task_id};
pub(crate) use registry::{About, Seen};
pub(crate) use ticket::Ticket;

/// The queue of tasks that name none.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// What a worker is made from.
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    /// Delivers what came of tasks, and drives what that made ready.
    pub(crate) node: Node,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) board: Arc<Board>,
    pub(crate) handlers: Arc<Handlers>,
    /// What it is to do instead.
    pub(crate) offered: watch::Receiver<Arc<Handlers>>,
    pub(crate) limits: Limits,
    /// Tasks it does at once.
    pub(crate) tasks_max: usize,
    /// How long its tasks stay its own when it falls silent.
    pub(crate) lease: Duration,
    /// How often to look for what nobody gave notice of.
    pub(crate) poll: Duration,
    pub(crate) stage: watch::Receiver<Stage>,
}

/// What the loop knows between two turns.
struct Desk {
    held: Arc<Held>,
    /// Attempts say here what came of them.
    ended: mpsc::UnboundedReceiver<Ended>,
    report: mpsc::UnboundedSender<Ended>,
    /// What was heard while waiting.
    heard: Option<Ended>,
    /// Outcomes that the store has not acknowledged yet.
    outcomes: Vec<Delivery>,
    /// The run that awaits the last of them.
    awaits: Option<RunKey>,
    /// Whether there may be tasks to claim.
    hungry: bool,
    /// Names the next claim. A claim whose answer was lost is made again under the same name.
    claim: u64,
    /// Names the next claim of runs.
    runs_claim: u64,
    /// Whose turn it is to be asked for first: see [`Handlers::orders`].
    turn: usize,
    /// When to look for tasks without notice, by the host's clock.
    poll: Duration,
    /// When it was noted that it works; none before that.
    noted: Option<Duration>,
}

/// What was claimed at once.
#[derive(Default)]
struct Haul {
    tasks: Vec<ClaimedTask>,
    /// Whether there may be more, for which there was no room in the answer.
    more: bool,
}

impl Worker {
    /// Works until it is told to stop, and then gives back what it did not finish.
    pub(crate) async fn run(mut self) {
        let (report, ended) = mpsc::unbounded_channel();
        let mut desk = Desk {
            held: Arc::default(),
            ended,
            report,
            heard: None,
            outcomes: Vec::new(),
            awaits: None,
            hungry: true,
            claim: u64::try_from(self.time.host().random() >> 66).unwrap_or(1),
            runs_claim: u64::try_from(self.time.host().random() >> 66).unwrap_or(1),
            turn: 0,
            poll: self.after(Duration::ZERO),
            noted: None,
        };
        // When to show signs of life, by the host's clock.
        let mut beat = self.after(self.lease / 3);
        loop {
            let stage = self.stage();
            self.collect(&mut desk);
            let done = stage == Stage::Draining && desk.held.is_empty() && desk.outcomes.is_empty();
            if stage == Stage::Stopped || done {
                break;
            }
            self.look_at_the_clock(&mut desk, &mut beat).await;
            desk.runs_claim = desk.runs_claim.wrapping_add(1);
            let work = join(self.report(&desk), self.claim(&desk, stage));
            let (reported, claimed) = self.with_signs_of_life(&desk.held, &mut beat, work).await;
            if reported {
                desk.outcomes.clear();
            }
            let again = match claimed {
                Some(haul) => {
                    self.begin(&mut desk, haul);
                    self.take_handlers(&mut desk);
                    desk.hungry
                }
                None => {
                    desk.poll = desk.poll.min(self.after(self.poll));
                    false
                }
            };
            if !again {
                self.wait(&mut desk, beat, reported).await;
            }
        }
        self.give_back(&mut desk).await;
        if let Err(error) = self.store.forget_worker(None, self.id.clone()).await {
            tracing::debug!(%error, "that a worker ends could not be noted; it is forgotten when it was silent for long");
        }
    }

    fn stage(&mut self) -> Stage {
        if self.stage.has_changed().is_err() { Stage::Stopped } else { *self.stage.borrow_and_update() }
    }

    fn after(&self, duration: Duration) -> Duration {
        self.time.host().elapsed() + duration
    }

    /// Takes what the attempts said.
    fn collect(&self, desk: &mut Desk) {
        let mut counted = meters::Ended::default();
        while let Some(ended) = desk.heard.take().or_else(|| desk.ended.try_recv().ok()) {
            let full = desk.held.len() >= self.tasks_max;
            let Some(task) = desk.held.remove(&ended) else { continue };
            desk.hungry |= full || self.may_have_more(&task, &ended.outcome);
            desk.awaits = task.run.clone().map(|run| RunKey::new(task.namespace.clone(), run));
            if let TaskOutcome::Retry { at, .. } = &ended.outcome {
                self.board.task_due(*at);
            }
            counted.note(&task.queue, &ended.outcome);
            desk.outcomes.push(delivery(&task, ended.outcome));
        }
    }

    /// Whether there may be something to claim because this one ended, although there was room for it all along.
    fn may_have_more(&self, task: &ClaimedTask, outcome: &TaskOutcome) -> bool {
        let limited = self.handlers.get(&task.name).is_none_or(|handler| handler.is_limited());
        // Where others queue tasks, too, nobody gives notice of all of them.
        !self.node.sole || limited || !matches!(outcome, TaskOutcome::Finished { .. } | TaskOutcome::Failed { .. })
    }

    /// Signs of life, when it is time, or when somebody no longer wants a task or wants its progress shown.
    async fn look_at_the_clock(&self, desk: &mut Desk, beat: &mut Duration) {
        let now = self.time.host().elapsed();
        if now >= desk.poll || self.board.task_due_at().is_some_and(|due| self.time.instant(due) <= now) {
            let held = Arc::clone(&desk.held);
            self.with_signs_of_life(&held, beat, self.look_ahead(desk)).await;
        }
        let all = now >= *beat || self.board.take_tasks_cancelled();
        if all {
            *beat = self.after(self.lease / 3);
        }
        desk.held.beat(&*self.store, &self.time, self.lease, all).await;
    }

    /// Whatever the store takes its time for, the tasks stay ours.
    async fn with_signs_of_life<T>(&self, held: &Held, beat: &mut Duration, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            match select(work.as_mut(), self.time.host().sleep_until(*beat)).await {
                Either::Left((done, _)) => return done,
                Either::Right(_) => *beat = self.after(self.lease / 3),
            }
            let signs = std::pin::pin!(held.beat(&*self.store, &self.time, self.lease, true));
            if let Either::Left((done, signs)) = select(work.as_mut(), signs).await {
                signs.await;
                return done;
            }
        }
    }

    /// One question instead of a claim: what is there to be claimed, and if nothing, when.
    async fn look_ahead(&self, desk: &mut Desk) {
        self.note(desk).await;
        self.board.clear_task_due();
        let asked = self.time.asked();
        match self.store.outlook(self.handlers.queues()).await {
            Ok(outlook) => {
                self.time.observe(asked, outlook.now);
                let ready = outlook.task.is_some_and(|at| at <= outlook.now);
                desk.hungry |= ready;
                let later = outlook.task.filter(|at| *at > outlook.now);
                later.into_iter().for_each(|at| self.board.remember_task_due(at));
                // What is ready may not be for us, and hides what will be.
                desk.poll = self.after(if ready { self.poll.min(self.node.rest) } else { self.node.rest });
            }
            Err(error) => {
                tracing::warn!(%error, "the store could not be asked for tasks; it is asked again");
                desk.hungry = true;
                desk.poll = self.after(self.poll);
            }
        }
    }

    /// Notes that it works, now and then. Between that its node's lease says that it is there.
    async fn note(&self, desk: &mut Desk) {
        let now = self.time.host().elapsed();
        if desk.noted.is_some_and(|noted| now < noted + NOTE_PERIOD) {
            return;
        }
        let about = About {
            host: None,
            queues: self.handlers.queues().iter().map(ToString::to_string).collect(),
            tasks: self.handlers.names().map(ToString::to_string).collect(),
            tasks_max: self.tasks_max as u64,
            lease_ms: u64::try_from(self.node.lease.as_millis()).ok(),
        };
        let (worker, about) = (self.id.clone(), Some(about.encode()));
        let sighting = Sighting { namespace: None, worker, about, arrived: desk.noted.is_none() };
        match self.store.see_worker(sighting).await {
            Ok(()) => desk.noted = Some(now),
            Err(error) => tracing::debug!(%error, "that a worker is there could not be noted; it is noted later"),
        }
    }

    /// Whether there is nothing left to report.
    async fn report(&self, desk: &Desk) -> bool {
        if desk.outcomes.is_empty() {
            return true;
        }
        // A write of its own is quickest for the only one, and slower for all where others come at the same time.
        let only = desk.awaits.clone().filter(|_| desk.outcomes.len() == 1 && desk.held.is_empty());
        let answers = self.node.deliver(desk.outcomes.clone(), ClaimId(desk.runs_claim), only).await;
        let failed = answers.iter().find_map(|answer| answer.as_ref().err().filter(|error| error.is_retryable()));
        match failed {
            Some(error) => {
                tracing::warn!(%error, "results of tasks could not be stored; they are sent again");
                false
            }
            None => {
                for error in answers.into_iter().filter_map(Result::err) {
                    tracing::error!(%error, "the result of a task was refused; the task is tried again when its lease is over");
                }
                true
            }
        }
    }

    /// As many tasks as there is room for; none if the store did not answer.
    async fn claim(&self, desk: &Desk, stage: Stage) -> Option<Haul> {
        let mut haul = Haul::default();
        if stage != Stage::Running || !desk.hungry {
            return Some(haul);
        }
        let mut room = self.tasks_max.saturating_sub(desk.held.len()).min(CLAIM_BATCH_MAX);
        let mut orders: Vec<_> =
            self.handlers.orders(&desk.held).into_iter().enumerate().filter(|(_, order)| order.room > 0).collect();
        // Somebody else is first each time, and nobody takes more than a share: a queue that never ends must not be all that is
        // worked on.
        let first = desk.turn.checked_rem(orders.len()).unwrap_or(0);
        orders.rotate_left(first);
        let mut left = orders.len();
        for (number, order) in orders {
            let limit = room.div_ceil(left).min(order.room);
            left -= 1;
            if limit == 0 {
                continue;
            }
            let claim = ClaimTasks {
                worker: self.id.clone(),
                id: ClaimId(desk.claim.wrapping_add(u64::try_from(number).unwrap_or(0))),
                namespace: None,
                queues: order.queues,
                names: order.names,
                lease: self.lease,
                limit,
            };
            let asked = self.time.asked();
            match self.store.claim_tasks(claim).await {
                Ok(claimed) => {
                    if let Some(task) = claimed.first() {
                        self.time.observe(asked, task.now);
                    }
                    meters::tasks_claimed(claimed.len());
                    room = room.saturating_sub(claimed.len());
                    haul.more |= claimed.len() >= limit;
                    haul.tasks.extend(claimed);
                }
                Err(error) => {
                    tracing::warn!(%error, "tasks could not be claimed; they are asked for again");
                    return None;
                }
            }
        }
        Some(haul)
    }

    /// Begins an attempt at each task.
    fn begin(&self, desk: &mut Desk, haul: Haul) {
        let Haul { tasks, more } = haul;
        let orders = u64::try_from(self.handlers.len()).unwrap_or(1) + 1;
        desk.claim = desk.claim.wrapping_add(orders);
        desk.turn = desk.turn.wrapping_add(1);
        // Who got less than it asked for does not ask again until somebody gives notice: the next claim would only be in the way of
        // what comes of these.
        if desk.hungry && !more {
            // Tasks that nobody wants any more are left out of an answer, and may have hidden others.
            desk.poll = desk.poll.min(self.after(self.poll));
        }
        // What is over before it began is not what was noted.
        desk.awaits = None;
        for task in tasks {
            let policy = match judge::begin(&task, &self.limits, self.time.now()) {
                Begun::Attempt(policy) => policy,
                Begun::Over(outcome) => {
                    if let TaskOutcome::Retry { at, .. } = &outcome {
                        self.board.task_due(*at);
                    }
                    desk.outcomes.push(delivery(&task, outcome));
                    continue;
                }
            };
            let Some(handler) = self.handlers.get(&task.name) else {
                // Not asked for; somebody else has it.
                desk.outcomes.push(delivery(&task, TaskOutcome::GivenBack));
                continue;
            };
            let context = TaskContext::new(&task, Arc::clone(&self.time), Arc::clone(&self.board));
            let attempt = Attempt {
                task: task.clone(),
                policy,
                context: context.clone(),
                time: Arc::clone(&self.time),
                limits: self.limits.clone(),
                report: desk.report.clone(),
            };
            desk.held.add(task, context);
            self.time.host().spawn(Box::pin(attempt.run(Arc::clone(handler))));
        }
        // What was over before it began takes no room.
        desk.hungry = more && desk.held.len() < self.tasks_max;
    }

    /// Works with other handlers from now on, if there are any. Only when the last claim was answered: one that is made again
    /// under its name must ask for the same.
    fn take_handlers(&mut self, desk: &mut Desk) {
        if !self.offered.has_changed().unwrap_or(false) {
            return;
        }
        self.handlers = Arc::clone(&self.offered.borrow_and_update());
        (desk.hungry, desk.noted) = (true, None);
        desk.poll = self.after(Duration::ZERO);
    }

    /// Waits until there is something to do.
    async fn wait(&mut self, desk: &mut Desk, beat: Duration, reported: bool) {
        if !desk.outcomes.is_empty() && reported {
            return;
        }
        let due = self.board.task_due_at().map(|due| self.time.instant(due));
        let mut until = desk.poll.min(beat);
        if desk.held.len() < self.tasks_max {
            until = until.min(due.unwrap_or(until));
        }
        if !reported {
            until = until.min(self.after(RETRY));
        }
        let sleep = self.time.host().sleep_until(until);
        let board = Arc::clone(&self.board);
        let noticed = std::pin::pin!(board.tasks_noticed());
        let stopped = std::pin::pin!(self.stage.changed().map(drop));
        let ended = std::pin::pin!(desk.ended.recv());
        match select(select(sleep, noticed), select(stopped, ended)).await {
            Either::Left((Either::Right(_), _)) => desk.hungry = true,
            Either::Left((Either::Left(_), _)) => {}
            Either::Right((Either::Right((ended, _)), _)) => desk.heard = ended,
            Either::Right((Either::Left(_), _)) => {}
        }
    }

    /// Stops what runs, and lets others have it at once.
    async fn give_back(&self, desk: &mut Desk) {
        self.collect(desk);
        for task in desk.held.stop_all() {
            desk.outcomes.push(delivery(&task, TaskOutcome::GivenBack));
        }
        self.report(desk).await;
    }
}

/// How often a process notes that it works. Well within the day after which the silent are forgotten.
const NOTE_PERIOD: Duration = Duration::from_secs(60 * 60);
/// How long to wait before results are sent again.
const RETRY: Duration = Duration::from_millis(100);

fn delivery(task: &ClaimedTask, outcome: TaskOutcome) -> Delivery {
    Delivery::Task {
        namespace: task.namespace.clone(),
        task: task.id.clone(),
        token: task.token,
        outcome,
        receipt: None,
    }
}
