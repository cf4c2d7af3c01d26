//! Who works, and at what.

use outlast_core::id::WorkerId;
use outlast_core::time::Timestamp;
use outlast_store::{Lease, TaskView, WorkerView};

use super::EngineError;
use crate::engine::Engine;
use crate::worker::About;

/// A worker, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerInfo {
    /// Which.
    pub id: WorkerId,
    /// Where it runs, as it says.
    pub host: Option<String>,
    /// Whether it works for the engine's namespace only.
    pub of_namespace: bool,
    /// The queues it takes tasks from.
    pub queues: Vec<String>,
    /// The tasks it can do.
    pub tasks: Vec<String>,
    /// How many it does at once, or asked for last.
    pub tasks_max: u64,
    /// Since when it works.
    pub started: Timestamp,
    /// When it was seen last. One that was silent for much longer than its lease is gone.
    pub seen: Timestamp,
    /// The tasks of the engine's namespace that it holds now, at most 256: since when, until when, and their progress.
    pub holds: Vec<TaskView>,
}

impl Engine {
    /// Who works, by id, at most 1000, with what each does now: processes with handlers, of all engines on the store, and
    /// workers elsewhere (see [`Engine::claim_tasks`]). One that was silent for a day is forgotten.
    ///
    /// ```
    /// # use outlast::{Outlast, TaskContext};
    /// # async fn pack(_: TaskContext, _: u32) -> outlast::Result<()> { Ok(()) }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().task("pack", pack).start().await?;
    /// # while engine.workers().await?.is_empty() { tokio::task::yield_now().await }
    /// for worker in engine.workers().await? {
    ///     println!("{} does {:?}, and holds {} tasks", worker.id, worker.tasks, worker.holds.len());
    /// }
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>, EngineError> {
        let store = self.inner.store()?;
        let (views, leases) = (store.workers(self.namespace.clone()).await?, store.leases().await?);
        Ok(views.into_iter().map(|view| info(view, &leases)).collect())
    }
}

fn info(view: WorkerView, leases: &[Lease]) -> WorkerInfo {
    let About { host, queues, tasks, tasks_max, lease_ms } = About::decode(&view.about);
    // A process is seen whenever it renews its lease.
    let own = leases.iter().filter(|lease| lease.node.as_str() == view.worker.as_str());
    let renewed = own.map(|lease| lease.until.as_millis()).max().zip(lease_ms);
    let renewed = renewed.map(|(until, ms)| Timestamp::from_millis(until.saturating_sub_unsigned(ms)));
    WorkerInfo {
        id: view.worker,
        host,
        of_namespace: view.namespace.is_some(),
        queues,
        tasks,
        tasks_max,
        started: view.started,
        seen: renewed.map_or(view.seen, |renewed| renewed.max(view.seen)),
        holds: view.holds,
    }
}
