//! Tasks: what programs and clients have workers do, and the handlers that do it.

use std::sync::Arc;
use std::time::Duration;

use outlast::{Engine, Enqueue, Handler, Outlast, Result, Retry, Task, TaskContext};
use serde::{Deserialize, Serialize};

use super::bodies::{Product, product};
use super::{BEAT, Outside, Player};
use crate::ground::limits;
use crate::ledger::{Came, Effort};
use crate::outcome::Outcome;
use crate::tree::{Errand, Work};

/// The task of which a worker does as many as it can.
pub(crate) const ERRAND: &str = "errand";
/// The task of which a worker does one at a time, from a queue of its own.
pub const ALONE: &str = "alone";
const ASIDE: &str = "aside";

/// What a handler is given. Whoever knows what was queued knows from it what should become of the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// What to do, and how often it is tried.
    pub work: Work,
    /// Which edition of a text wants it, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition: Option<u32>,
    /// A token that is to be handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hands: Option<Hands>,
}

/// A callback's token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hands {
    /// The callback's key; in a flow that of the task without what sets it apart.
    #[serde(default)]
    pub callback: Option<String>,
    /// The token.
    pub token: String,
}

impl Errand {
    pub(crate) fn name(&self) -> &'static str {
        if self.alone { ALONE } else { ERRAND }
    }

    fn order(&self) -> Order {
        Order { work: self.work.clone(), edition: None, hands: None }
    }

    /// The queue, if it is not the usual one.
    pub(crate) fn queue(&self) -> Option<&'static str> {
        self.alone.then_some(ASIDE)
    }

    fn retry(&self) -> Retry {
        Retry::attempts(self.work.attempts).initial(Duration::from_millis(self.work.delay))
    }
}

/// Makes a worker of an engine, whose handlers tell the ledger that they ran.
pub fn employ(engine: Outlast, outside: Outside) -> Outlast {
    let outside = Arc::new(outside);
    let handler = || {
        let outside = Arc::clone(&outside);
        move |task: TaskContext, order: Order| {
            let outside = Arc::clone(&outside);
            async move { outside.perform(task, &order).await }
        }
    };
    let engine = engine.limits(limits()).handler(Handler::new(ERRAND, handler()));
    engine.handler(Handler::new(ALONE, handler()).queue(ASIDE).concurrency(1))
}

/// Queues a task that no run waits for.
pub fn enqueue(engine: &Engine, id: &str, errand: &Errand) -> Enqueue {
    let mut task =
        engine.enqueue(errand.name(), &errand.order()).id(id).priority(errand.priority).retry(errand.retry());
    if errand.alone {
        task = task.queue(ASIDE);
    }
    if let Some(ms) = errand.work.timeout {
        task = task.timeout(Duration::from_millis(ms));
    }
    if let Some(ms) = errand.work.heartbeat {
        task = task.heartbeat(Duration::from_millis(ms));
    }
    if errand.later > 0 { task.delay(Duration::from_millis(errand.later)) } else { task }
}

impl Player {
    pub(super) fn task(&self, errand: &Errand) -> Task<Product> {
        let task = self.ctx.task::<Product>(errand.name(), &errand.order()).id(&self.place.name("task"));
        let mut task = task.priority(errand.priority).retry(errand.retry());
        if errand.alone {
            task = task.queue(ASIDE);
        }
        if let Some(ms) = errand.work.timeout {
            task = task.timeout(Duration::from_millis(ms));
        }
        if let Some(ms) = errand.work.heartbeat {
            task = task.heartbeat(Duration::from_millis(ms));
        }
        if errand.later > 0 { task.delay(Duration::from_millis(errand.later)) } else { task }
    }
}

impl Outside {
    /// One attempt at a task.
    async fn perform(&self, task: TaskContext, order: &Order) -> Result<Product> {
        let work = &order.work;
        let effort = Effort { edition: order.edition, ..Effort::of(&task, self.time.elapsed()) };
        let effort = self.ledger.effort(effort, self.time.clone());
        if task.run_id().is_some_and(|run| self.ledger.kills(run.as_str())) {
            // Its process dies in a moment, and this with it.
            std::future::pending::<()>().await;
        }
        let mut left = work.takes.map(Duration::from_millis);
        while left != Some(Duration::ZERO) {
            let nap = match left {
                Some(left) if work.beats => left.min(BEAT),
                Some(left) => left,
                None if work.beats => BEAT,
                None => std::future::pending().await,
            };
            self.time.sleep(nap).await;
            left = left.map(|left| left - nap);
            if work.beats {
                task.heartbeat();
            }
        }
        self.hand_out(&task, order);
        effort.came(if task.attempt() > work.fails { Came::Gave } else { Came::Failed });
        product(work, task.attempt())
    }
}

/// Which attempt at a task succeeded.
pub(super) fn performed(product: Product) -> Outcome {
    Outcome::Task(product.attempt)
}

/// A task that nobody waits for.
pub(super) fn queued(id: super::operations::TaskId) -> Outcome {
    Outcome::Queued(id.to_string())
}
