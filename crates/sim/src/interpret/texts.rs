//! Texts: what they are written as is registered, and what their steps and tasks do is told to the ledger.

use std::sync::Arc;

use outlast::{Outlast, Result, StepContext, TaskContext};
use outlast_core::limits::Limits;

use super::Outside;
use super::bodies::{Product, Whose};
use super::errands::{Hands, Order};
use crate::ground::limits;
use crate::written::Written;

/// The step of flows.
pub(crate) const STEP: &str = "work";

/// Whoever drives texts has the limits of the case.
pub(crate) fn bounded(engine: Outlast, outside: &Outside) -> Outlast {
    let pending_operations = outside.pending_max.unwrap_or(limits().pending_operations);
    engine.limits(Limits { pending_operations, ..limits() })
}

/// Registers the step of flows.
pub(crate) fn steps(engine: Outlast, outside: Outside) -> Outlast {
    let outside = Arc::new(outside);
    let step = move |step: StepContext, order: Order| {
        let outside = Arc::clone(&outside);
        async move { outside.follow(step, order).await }
    };
    engine.step(STEP, step)
}

/// Registers texts, in one edition.
pub(crate) fn write(engine: Outlast, written: &[Written], edition: u32) -> Outlast {
    let texts = written.iter().enumerate().map(|(place, one)| (one.is_flow(), one.text(place, edition)));
    texts.fold(engine, |engine, (is_flow, (file, text))| match is_flow {
        true => engine.flow(&file, &text),
        false => engine.script(&file, &text),
    })
}

/// How what an edition does says which one it is.
pub(crate) fn edition(number: u32) -> String {
    format!("edition {number}")
}

impl Outside {
    /// One attempt at a step of a flow. Whose it is it knows only from its key.
    async fn follow(&self, step: StepContext, order: Order) -> Result<Product> {
        let mut parts = step.idempotency_key().splitn(4, '/').skip(2);
        let generation = parts.next().and_then(|generation| generation.parse().ok()).unwrap_or(0);
        let key = parts.next().unwrap_or_default().to_owned();
        let whose = Whose { generation, key, version: order.edition.map(edition) };
        self.work(&whose, &order.work, step).await
    }

    /// Hands out a token, if a task is to.
    pub(super) fn hand_out(&self, task: &TaskContext, order: &Order) {
        let (Some(Hands { callback, token }), Some(run)) = (&order.hands, task.run_id()) else { return };
        // `run/generation/key.task`
        let own = || task.id().as_str().splitn(3, '/').nth(2)?.strip_suffix(".task").map(str::to_owned);
        if let Some(callback) = callback.clone().or_else(own) {
            self.ledger.token(run.as_str(), &callback, token);
        }
    }
}
