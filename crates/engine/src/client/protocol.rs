//! The worker protocol: how a worker that is not part of this process gets tasks and says what came of them.
//!
//! No code of the engine runs beside such an attempt, so nothing here can stop it. Instead its claim never lasts longer than
//! the attempt may take, nor longer than its handler may be silent; when it lapses, the attempt is over, and whoever claims from the queue
//! next decides by the task's policy what becomes of the task. That decision is the same as for handlers in this process.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use outlast_core::commit::{Delivery, Receipt, TaskOutcome};
use outlast_core::failure::Failure;
use outlast_core::id::{ClaimId, Namespace, QueueName, RunId, TaskId, TaskName, TaskToken, WorkerId};
use outlast_core::limits::CLAIM_BATCH_MAX;
use outlast_core::time::Timestamp;
use outlast_store::{ClaimTasks, ClaimedTask, Delivered, Lapse, Store, StoreError, TaskExtended};
use serde::Serialize;

use super::{EngineError, encode};
use crate::driver::{AGAIN_FIRST, pause};
use crate::engine::{Engine, Inner};
use crate::meters;
use crate::worker::{About, Begun, Judge, TaskPolicy, Ticket, begin, idempotency_key, resume};

/// How long a worker may say that it may be silent.
const LEASES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60 * 60));
/// How often what came of an attempt is told to a store that does not answer.
const TRIES_MAX: u32 = 8;
/// How many bytes of arguments one claim is given, unless a single task has more.
const CLAIM_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How soon a worker that waits looks again at the earliest, unless it is woken.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A request for tasks to do. See [`Engine::claim_tasks`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Who asks: a name that no other worker of the namespace has.
    pub worker: String,
    /// Names the claim: another number for each, and the same one again if the answer was lost. Then it is given the same tasks.
    pub id: u64,
    /// From these queues.
    pub queues: Vec<String>,
    /// The tasks this worker can do.
    pub names: Vec<String>,
    /// Where it runs, for people who ask who works.
    pub host: Option<String>,
    /// At most so many, and never more than 256, nor more than have 8 MiB of arguments together.
    pub limit: usize,
    /// How long the worker may be silent before its tasks are given to others: from a second to an hour.
    pub lease: Duration,
}

/// A task to do, in one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOffer {
    /// To be shown with everything that is said about this attempt. Whoever has it can end the attempt.
    pub token: String,
    /// The tenant.
    pub namespace: Namespace,
    /// Which task.
    pub id: TaskId,
    /// Which handler.
    pub name: TaskName,
    /// From which queue.
    pub queue: QueueName,
    /// The run that waits for it, if one does.
    pub run: Option<RunId>,
    /// What the handler gets, as JSON.
    pub args: Bytes,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The same for all attempts at this task, and for no other.
    pub idempotency_key: String,
    /// The task is somebody else's from this instant on, unless a sign of life comes before.
    pub until: Timestamp,
    /// The attempt is over at this instant, whatever comes.
    pub deadline: Option<Timestamp>,
    /// How long the handler may be silent.
    pub silence: Option<Duration>,
    /// The store's time when it answered.
    pub now: Timestamp,
}

impl Engine {
    /// Hands tasks of the engine's namespace to a worker that is not part of this process, for instance behind an HTTP call. It
    /// does each, gives signs of life with [`Engine::heartbeat_task`], and ends it with [`Engine::complete_task`],
    /// [`Engine::fail_task`] or [`Engine::give_back_task`], always with the offer's token.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use outlast::{ClaimRequest, Ctx, Outlast};
    /// # async fn order(ctx: Ctx, n: u32) -> outlast::Result<u32> { ctx.task("double", &n).await }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let engine = Outlast::memory().workflow("order", order).start().await?;
    /// let run = engine.start("order", &21).id("order-1").await?;
    ///
    /// let claim = |id| ClaimRequest {
    ///     worker: "mill-1".to_owned(),
    ///     id,
    ///     queues: vec!["default".to_owned()],
    ///     names: vec!["double".to_owned()],
    ///     host: Some("mill.example.org".to_owned()),
    ///     limit: 1,
    ///     lease: Duration::from_secs(30),
    /// };
    /// let mut id = 1;
    /// let offer = loop {
    ///     if let Some(offer) = engine.claim_tasks(claim(id)).await?.pop() {
    ///         break offer;
    ///     }
    ///     id += 1;
    /// #   tokio::task::yield_now().await;
    /// };
    /// let number: u32 = serde_json::from_slice(&offer.args).unwrap();
    /// engine.complete_task(&offer.token, &(2 * number)).await?;
    /// assert_eq!(run.result::<u32>().await?, 42);
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn claim_tasks(&self, request: ClaimRequest) -> Result<Vec<TaskOffer>, EngineError> {
        let inner = &self.inner;
        let about = About {
            host: request.host.clone(),
            queues: request.queues.clone(),
            tasks: request.names.clone(),
            tasks_max: request.limit as u64,
            lease_ms: None,
        };
        let claim = claim_of(self, request)?;
        let (worker, lease) = (claim.worker.clone(), claim.lease);
        let store = inner.store()?;
        let (now, who) = (inner.time.host().elapsed(), (&self.namespace, &worker));
        inner.seen.note(&*store, now, lease, who, Some(about)).await;
        let asked = inner.time.asked();
        let claimed = store.claim_tasks(claim).await?;
        let Some(first) = claimed.first() else { return Ok(Vec::new()) };
        inner.time.observe(asked, first.now);
        meters::tasks_claimed(claimed.len());
        let (mut begun, mut over, mut bytes) = (Vec::new(), Vec::new(), 0);
        for task in claimed {
            bytes += task.args.len();
            match begin(&task, &inner.limits, task.now) {
                Begun::Over(outcome) => over.push(Word::about(&task, outcome)),
                // What does not fit is somebody else's, or comes with the next claim.
                Begun::Attempt(_) if bytes > CLAIM_BYTES_MAX && !begun.is_empty() => {
                    over.push(Word::about(&task, TaskOutcome::GivenBack));
                }
                Begun::Attempt(policy) => begun.push((Ticket::new(&task, worker.clone(), &policy, lease), task)),
            }
        }
        let offers = join_all(begun.into_iter().map(|(ticket, task)| offer(inner, &*store, ticket, task))).await;
        if !over.is_empty() {
            // If it is not told, the task is judged again when this claim lapses.
            tell(inner, over).await?;
        }
        let offers: Vec<TaskOffer> = offers.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
        if let Some(until) = offers.iter().map(|offer| offer.until).min() {
            expect(inner, until);
        }
        Ok(offers)
    }

    /// As [`Engine::claim_tasks`]; if there is nothing to do it waits for something, until `over` completes. No claim is given up
    /// in the middle: what was claimed is returned.
    pub async fn claim_tasks_until(
        &self,
        request: ClaimRequest,
        over: impl Future<Output = ()>,
    ) -> Result<Vec<TaskOffer>, EngineError> {
        let inner = &self.inner;
        let mut over = pin!(over);
        loop {
            // Before it is looked, so that nothing that comes meanwhile is missed.
            let mut noticed = pin!(inner.board.tasks_elsewhere());
            noticed.as_mut().enable();
            let offers = self.claim_tasks(request.clone()).await?;
            if !offers.is_empty() {
                return Ok(offers);
            }
            let host = inner.time.host();
            let due = inner.board.task_due_at().map(|due| inner.time.instant(due));
            let look = host.elapsed() + inner.poll;
            // One that is due is found at the earliest a little later: whoever is nearer may have taken it.
            let look = due.map_or(look, |due| look.min(due.max(host.elapsed() + LOOK_AGAIN)));
            if let Either::Left(_) = select(over.as_mut(), select(noticed, host.sleep_until(look))).await {
                return Ok(Vec::new());
            }
        }
    }

    /// A sign of life, with something to be shown while the task runs if there is something. It says how long the task stays
    /// the worker's from now on, and whether nobody wants it any more: then stop, and give it back.
    pub async fn heartbeat_task(
        &self,
        token: &str,
        progress: Option<&serde_json::Value>,
    ) -> Result<TaskExtended, EngineError> {
        let ticket = self.ticket(token)?;
        let progress = progress.map(encode).transpose()?;
        let lost = || EngineError::TaskLost(ticket.task.clone());
        let span = ticket.span(self.inner.time.now()).ok_or_else(lost)?;
        let store = self.inner.store()?;
        let (now, who) = (self.inner.time.host().elapsed(), (&ticket.namespace, &ticket.worker));
        self.inner.seen.note(&*store, now, ticket.lease(), who, None).await;
        match store.heartbeat(ticket.beat(span, progress)).await {
            Ok(extended) => Ok(extended),
            Err(StoreError::TaskFenced(_) | StoreError::UnknownTask(_)) => Err(lost()),
            Err(error) => Err(error.into()),
        }
    }

    /// The attempt succeeded, with this result. If a run waits for the task, it is woken with it. When this returns, it is durable.
    /// Whoever did not hear the answer says the same again, and is told the same.
    ///
    /// [`EngineError::TaskLost`] says that the attempt was over: it took too long, somebody else has the task, it is not wanted any
    /// more, or something else was said before. Nothing was changed, and there is nothing more to do. It is also the answer to a
    /// result that is said again if no run waited for the task: nothing is left of it.
    pub async fn complete_task(&self, token: &str, result: &(impl Serialize + ?Sized)) -> Result<(), EngineError> {
        self.end_attempt(token, Ok(encode(result)?)).await.map(drop)
    }

    /// The attempt failed. By the task's policy it is tried again, at the instant that is returned, or has failed for good: then
    /// there is none, and if a run waits for it, it is woken with the failure. Said again it is answered as before, as long as nobody
    /// began the next attempt.
    pub async fn fail_task(&self, token: &str, failure: Failure) -> Result<Option<Timestamp>, EngineError> {
        self.end_attempt(token, Err(failure)).await
    }

    /// The attempt was not made: others may have the task at once, and it does not count.
    pub async fn give_back_task(&self, token: &str) -> Result<(), EngineError> {
        let ticket = self.ticket(token)?;
        match tell_one(&self.inner, &ticket, TaskOutcome::GivenBack).await? {
            Said::Now | Said::Before => Ok(()),
            Said::Never => Err(EngineError::TaskLost(ticket.task)),
        }
    }

    async fn end_attempt(&self, token: &str, result: Result<Bytes, Failure>) -> Result<Option<Timestamp>, EngineError> {
        let (ticket, inner) = (self.ticket(token)?, &self.inner);
        let now = inner.time.now();
        let late = ticket.span(now).is_none();
        // What is stored with the task says what becomes of a failure. A result needs none of it.
        let stored = if late || result.is_err() { policy_of(inner, &ticket).await? } else { None };
        if stored.is_none() && result.is_err() {
            return Err(EngineError::TaskLost(ticket.task));
        }
        let policy = stored.unwrap_or_default();
        let judge = Judge { task: &ticket.task, attempt: ticket.attempt, policy, limits: &inner.limits, now };
        if late && tell_one(inner, &ticket, judge.lapsed(Lapse::Timeout)).await? == Said::Now {
            return Err(EngineError::TaskLost(ticket.task.clone()));
        }
        // If it is late, the attempt is over: this can only be what was said in time, and not heard.
        let outcome = judge.ended(result, None);
        let again = match &outcome {
            TaskOutcome::Retry { at, .. } => Some(*at),
            TaskOutcome::Finished { .. } | TaskOutcome::Failed { .. } | TaskOutcome::GivenBack => None,
        };
        match tell_one(inner, &ticket, outcome).await? {
            Said::Now => Ok(again),
            Said::Before if again.is_some() => {
                let detail = inner.store()?.task(ticket.namespace.clone(), ticket.task.clone()).await?;
                Ok(Some(detail.view.available_at))
            }
            Said::Before => Ok(None),
            Said::Never => Err(EngineError::TaskLost(ticket.task)),
        }
    }

    fn ticket(&self, token: &str) -> Result<Ticket, EngineError> {
        let ticket = Ticket::open(&self.inner.secret, token);
        ticket.filter(|ticket| ticket.namespace == self.namespace).ok_or_else(|| {
            EngineError::Invalid(
                "this is no token of a task of this namespace; show the one that came with it".to_owned(),
            )
        })
    }
}

fn claim_of(engine: &Engine, request: ClaimRequest) -> Result<ClaimTasks, EngineError> {
    let ClaimRequest { worker, id, queues, names, host: _, limit, lease } = request;
    if names.is_empty() || queues.is_empty() {
        let message = "a worker must say which tasks it can do, and from which queues";
        return Err(EngineError::Invalid(message.to_owned()));
    }
    if let Some(name) = names.iter().find(|name| resume::is_reserved(name)) {
        return Err(EngineError::Invalid(resume::refusal(name)));
    }
    Ok(ClaimTasks {
        worker: WorkerId::new(worker)?,
        id: ClaimId(id),
        namespace: Some(engine.namespace.clone()),
        queues: queues.into_iter().map(QueueName::new).collect::<Result<_, _>>()?,
        names: names.into_iter().map(TaskName::new).collect::<Result<_, _>>()?,
        lease: lease.clamp(LEASES.0, LEASES.1),
        limit: limit.min(CLAIM_BATCH_MAX),
    })
}

/// None if the task is not to be done after all. If the store does not answer, the worker asks again under the same id.
async fn offer(
    inner: &Inner,
    store: &dyn Store,
    ticket: Ticket,
    task: ClaimedTask,
) -> Result<Option<TaskOffer>, EngineError> {
    let mut until = task.until;
    let Some(span) = ticket.span(task.now) else { return Ok(None) };
    if span.lapse.is_some() {
        match store.heartbeat(ticket.beat(span, None)).await {
            Ok(extended) if !extended.cancelled => until = extended.until,
            // Taken back, or gone, in between.
            Ok(_) | Err(StoreError::TaskFenced(_) | StoreError::UnknownTask(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(TaskOffer {
        token: ticket.seal(&inner.secret),
        idempotency_key: idempotency_key(&task.namespace, &task.id),
        until,
        deadline: ticket.deadline(),
        silence: ticket.silence(),
        now: task.now,
        namespace: task.namespace,
        id: task.id,
        name: task.name,
        queue: task.queue,
        run: task.run,
        args: task.args,
        attempt: task.attempt,
    }))
}

/// Handlers here may be those who take what lapses.
fn expect(inner: &Inner, until: Timestamp) {
    if inner.board.task_due_at().is_none_or(|due| due > until) {
        inner.board.task_due(until);
    }
}

/// None if the task is gone.
async fn policy_of(inner: &Inner, ticket: &Ticket) -> Result<Option<TaskPolicy>, EngineError> {
    match inner.store()?.task(ticket.namespace.clone(), ticket.task.clone()).await {
        Ok(detail) => Ok(Some(TaskPolicy::decode(detail.meta.as_deref()))),
        Err(StoreError::UnknownTask(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What was said about an attempt.
struct Word {
    namespace: Namespace,
    task: TaskId,
    queue: QueueName,
    token: TaskToken,
    outcome: TaskOutcome,
    receipt: Option<Receipt>,
}

impl Word {
    /// Nobody repeats it: whoever claims next comes to the same.
    fn about(task: &ClaimedTask, outcome: TaskOutcome) -> Word {
        let (namespace, id) = (task.namespace.clone(), task.id.clone());
        Word { namespace, task: id, queue: task.queue.clone(), token: task.token, outcome, receipt: None }
    }

    fn delivery(&self) -> Delivery {
        let Word { namespace, task, token, outcome, receipt, .. } = self;
        let (namespace, task) = (namespace.clone(), task.clone());
        Delivery::Task { namespace, task, token: *token, outcome: outcome.clone(), receipt: receipt.clone() }
    }
}

/// Whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// It does.
    Now,
    /// It does since it was said for the first time.
    Before,
    /// It does not: it was not the worker's to say any more.
    Never,
}

async fn tell_one(inner: &Inner, ticket: &Ticket, outcome: TaskOutcome) -> Result<Said, EngineError> {
    let (namespace, task, receipt) = (ticket.namespace.clone(), ticket.task.clone(), ticket.receipt(&outcome));
    let word = Word { namespace, task, queue: ticket.queue.clone(), token: ticket.token(), outcome, receipt };
    Ok(tell(inner, vec![word]).await?.pop().unwrap_or(Said::Never))
}

/// Says what came of attempts, until the store answers. What has no receipt and whose answer was lost may have counted, and is told
/// that it never did: that harms nobody, and the other way round would.
async fn tell(inner: &Inner, words: Vec<Word>) -> Result<Vec<Said>, EngineError> {
    let deliveries: Vec<Delivery> = words.iter().map(Word::delivery).collect();
    let (mut wait, mut tries) = (AGAIN_FIRST, 1);
    let answers = loop {
        let answers = inner.store()?.deliver(deliveries.clone()).await;
        // Runs may have been woken, whatever was answered.
        inner.board.somebody_woken();
        let unheard = answers.iter().any(|answer| answer.as_ref().is_err_and(StoreError::is_retryable));
        if !unheard || tries == TRIES_MAX {
            break answers;
        }
        tries += 1;
        pause(&inner.time, &mut wait).await;
    };
    let (mut said, mut counted) = (Vec::with_capacity(answers.len()), meters::Ended::default());
    for (answer, Word { queue, outcome, .. }) in answers.into_iter().zip(words) {
        said.push(match answer? {
            Delivered::Delivered => {
                counted.note(&queue, &outcome);
                Said::Now
            }
            Delivered::Duplicate => Said::Before,
            Delivered::Buffered | Delivered::Lost | Delivered::NotFound | Delivered::Deleted | Delivered::Full => {
                Said::Never
            }
        });
        match outcome {
            TaskOutcome::Retry { at, .. } => inner.board.task_due(at),
            TaskOutcome::GivenBack => inner.board.somebody_has_tasks(),
            TaskOutcome::Finished { .. } | TaskOutcome::Failed { .. } => {}
        }
    }
    Ok(said)
}
