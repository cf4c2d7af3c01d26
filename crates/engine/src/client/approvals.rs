//! What waits for people, over all runs.

use outlast_core::commit::{Status, WaitKind};
use outlast_core::id::{Key, RunId, WorkflowName};
use outlast_core::time::Timestamp;
use outlast_store::{Awaited, Cursor, Filter, RunView};

use super::EngineError;
use crate::engine::Engine;

/// An approval that nobody has decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApproval {
    /// The run that waits for it.
    pub run: RunId,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// The id the decision must name.
    pub approval: Key,
    /// What the person reads.
    pub title: String,
    /// Who should decide.
    pub assignee: Option<String>,
    /// Since when it waits.
    pub since: Timestamp,
    /// Until when it can be decided.
    pub until: Option<Timestamp>,
}

/// Some of the approvals that nobody has decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalPage {
    /// Those of the newest runs first.
    pub approvals: Vec<OpenApproval>,
    /// Where the next page begins; none at the end.
    pub next: Option<Cursor>,
}

impl Engine {
    /// The approvals that nobody has decided, of at most so many runs (1000 at the most) that have not ended, the newest
    /// first. A page may be empty and have a next one: it is the runs that are counted, not what they wait for.
    pub async fn approvals(&self, after: Option<Cursor>, runs: usize) -> Result<ApprovalPage, EngineError> {
        let store = self.inner.store()?;
        let status = vec![Status::Running, Status::Waiting, Status::Paused];
        let page =
            store.list(Filter { status, after, limit: runs.max(1), ..Filter::all(self.namespace.clone()) }).await?;
        let mut approvals = Vec::new();
        for view in &page.runs {
            let awaited = store.awaiting(view.run.clone()).await?;
            approvals.extend(awaited.iter().filter_map(|wait| open(view, wait, &awaited)));
        }
        Ok(ApprovalPage { approvals, next: page.next })
    }
}

fn open(view: &RunView, wait: &Awaited, all: &[Awaited]) -> Option<OpenApproval> {
    let Awaited::Wait { key, kind: WaitKind::Approval, assignee, answered: false, meta, since, .. } = wait else {
        return None;
    };
    let until = all.iter().find_map(|other| match other {
        Awaited::Timer { key: of, due, .. } if of == key => Some(*due),
        _ => None,
    });
    let meta: Option<serde_json::Value> = meta.as_deref().and_then(|meta| serde_json::from_slice(meta).ok());
    let title = meta.as_ref().and_then(|meta| meta.get("title")?.as_str()).unwrap_or_default().to_owned();
    Some(OpenApproval {
        run: view.run.id.clone(),
        workflow: view.workflow.clone(),
        approval: key.clone(),
        title,
        assignee: assignee.clone(),
        since: *since,
        until,
    })
}
