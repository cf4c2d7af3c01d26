//! A process that drives, or works.

use std::sync::Arc;
use std::time::Duration;

use outlast::{Ctx, Engine, EngineError, Outlast, Retry, TaskContext};
use outlast_store::{PostgresOptions, PostgresStore};
use serde::{Deserialize, Serialize};

use crate::{lingering, ticking, witness};

/// Environment: `engine` or `worker`.
pub(crate) const ROLE: &str = "OUTLAST_CHAOS_ROLE";
pub(crate) const URL: &str = "OUTLAST_CHAOS_URL";
pub(crate) const HINTS: &str = "OUTLAST_CHAOS_HINTS";

/// Who is silent for so long loses what it holds.
pub(crate) const LEASE: Duration = Duration::from_millis(1_500);
/// After so long the server gives up a statement, and a transaction in which nothing happens.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(300);
/// Parts of an order that are done at the same time.
pub(crate) const PARTS: u32 = 5;

/// What a task gives: which attempt it was, so that a stale one can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) value: u64,
    pub(crate) key: String,
    pub(crate) attempt: u32,
}

/// What an order gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) parts: Vec<Part>,
    pub(crate) answer: u64,
    pub(crate) sum: u64,
}

/// Longer than any trouble lasts.
pub(crate) fn patience() -> Retry {
    Retry::attempts(1_000).initial(Duration::from_millis(100)).cap(Duration::from_secs(1))
}

pub(crate) async fn order(ctx: Ctx, number: u64) -> outlast::Result<Order> {
    let parts = (0..u64::from(PARTS)).map(|part| ctx.task::<Part>("part", &(number + part)).retry(patience()));
    let parts = ctx.all(parts.collect::<Vec<_>>()).await?;
    let answer = ctx.wait_for::<u64>("answer").await?;
    ctx.sleep(Duration::from_millis(50)).await?;
    let total: u64 = parts.iter().map(|part| part.value).sum();
    let sum = ctx.step("sum", async |step| {
        witness::begun(step.idempotency_key(), step.attempt());
        Ok(total + answer)
    });
    let sum = sum.retry(patience()).await?;
    Ok(Order { parts, answer, sum })
}

async fn part(context: TaskContext, number: u64) -> outlast::Result<Part> {
    let (key, attempt) = (context.idempotency_key().to_owned(), context.attempt());
    witness::begun(&key, attempt);
    // Now and then long enough to be frozen in the middle of it.
    tokio::time::sleep(Duration::from_millis(if number.is_multiple_of(7) { 200 } else { 5 })).await;
    Ok(Part { value: number * 2, key, attempt })
}

/// Lives until it is killed. The server may be away when it is born.
pub(crate) fn live(role: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        loop {
            match start(role).await {
                Ok(_engine) => std::future::pending().await,
                Err(EngineError::Store(error)) if error.is_retryable() => tokio::time::sleep(POLL).await,
                Err(error) => panic!("a member cannot start: {error}"),
            }
        }
    });
}

async fn start(role: &str) -> Result<Engine, EngineError> {
    let url = std::env::var(URL).expect("a member knows where the server is");
    let notify = std::env::var_os(HINTS).is_some();
    let options = PostgresOptions { notify, statement_timeout: STATEMENT_TIMEOUT, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&url, options).await.map_err(EngineError::Store)?;
    let engine = Outlast::store(Arc::new(store)).lease(LEASE).poll(POLL);
    let engine = match role {
        "engine" => {
            engine.workflow("order", order).workflow("linger", lingering::linger).workflow("tick", ticking::tick)
        }
        "worker" => engine.task("part", part).task("stay", lingering::stay).tasks_max(8),
        other => panic!("{other} is no role"),
    };
    engine.start().await
}
