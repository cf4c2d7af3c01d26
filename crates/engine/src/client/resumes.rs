//! Resumes, as the queue items they stand for.

use bytes::Bytes;
use outlast_core::id::{NodeId, RunId};
use outlast_core::time::Timestamp;
use outlast_store::{LIST_PAGE_MAX, Resume};

use super::EngineError;
use crate::engine::Engine;
use crate::worker::resume;

/// The queue item that makes a run go on: a task [`ResumeItem::NAME`], in the queue [`ResumeItem::QUEUE`]. A run has at most one
/// that is claimed, by the node that drives it, and one that is not, which makes it go on after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeItem {
    /// Which run.
    pub run: RunId,
    /// Whether somebody has claimed it: the run is driven.
    pub claimed: bool,
    /// Which node has, as far as it is known.
    pub node: Option<NodeId>,
    /// Since when it waits to be claimed. When it was claimed is not kept.
    pub since: Option<Timestamp>,
}

impl ResumeItem {
    /// The name of the task.
    pub const NAME: &'static str = resume::NAME;
    /// Its queue.
    pub const QUEUE: &'static str = resume::QUEUE;
    /// Its priority.
    pub const PRIORITY: i16 = resume::PRIORITY;

    /// Its arguments, as JSON: the run's id in a list.
    pub fn args(&self) -> Bytes {
        serde_json::to_vec(&[self.run.as_str()]).unwrap_or_default().into()
    }
}

/// A page of resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePage {
    /// By run; of one run, the claimed one first.
    pub items: Vec<ResumeItem>,
    /// Behind which run the next page begins; none at the end.
    pub next: Option<RunId>,
}

impl Engine {
    /// What makes runs go on, of at most 1000 runs, from behind one on: those that are driven, and those that are ready to be.
    ///
    /// ```
    /// # use outlast::{Ctx, Outlast};
    /// # async fn hear(ctx: Ctx, _: ()) -> outlast::Result<String> { ctx.wait_for("word").await }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let engine = Outlast::memory().workflow("hear", hear).without_loops().start().await?;
    /// engine.start("hear", &()).id("a").await?;
    /// let resumes = engine.resumes(None).await?.items;
    /// assert_eq!((resumes.len(), resumes[0].claimed), (1, false));
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resumes(&self, after: Option<RunId>) -> Result<ResumePage, EngineError> {
        let store = self.inner.store()?;
        let mut runs = store.resumes(self.namespace.clone(), after, LIST_PAGE_MAX + 1).await?;
        let more = runs.len() > LIST_PAGE_MAX;
        runs.truncate(LIST_PAGE_MAX);
        let next = runs.last().filter(|_| more).map(|resume| resume.run.clone());
        Ok(ResumePage { items: runs.into_iter().flat_map(items).collect(), next })
    }
}

/// One or two.
fn items(resume: Resume) -> impl Iterator<Item = ResumeItem> {
    let Resume { run, claimed, ready_since } = resume;
    let id = run.clone();
    let claimed = claimed.map(|(_, node)| ResumeItem { run: id, claimed: true, node, since: None });
    let unclaimed = ready_since.map(|since| ResumeItem { run, claimed: false, node: None, since: Some(since) });
    claimed.into_iter().chain(unclaimed)
}
