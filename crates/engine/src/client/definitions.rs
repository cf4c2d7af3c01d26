//! The workflows there are, for people and tools.

use outlast_core::id::{Revision, Version, WorkflowName};
use outlast_core::time::Timestamp;
use outlast_store::{DefinitionFilter, DefinitionView, LIST_PAGE_MAX};

use super::EngineError;
use crate::engine::Engine;

/// One version of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowVersion {
    /// Of which workflow.
    pub workflow: WorkflowName,
    /// Declared, if it is code; otherwise the hash of its text.
    pub version: Version,
    /// How it is written: `code`, `script` or `flow`.
    pub style: &'static str,
    /// The file its text came from.
    pub file: Option<String>,
    /// When its text was new.
    pub defined_at: Option<Timestamp>,
    /// Whether new runs begin with it.
    pub current: bool,
}

impl Engine {
    /// What new runs of this namespace can begin with, by name: the workflows that are code in this process, and the current
    /// versions of those that are text.
    pub async fn workflows(&self) -> Result<Vec<WorkflowVersion>, EngineError> {
        let code = self.inner.registry.code(None);
        let texts = self.texts(None).await?.into_iter().map(of_text);
        let mut all: Vec<WorkflowVersion> = code.into_iter().chain(texts).filter(|found| found.current).collect();
        all.sort_by(|a, b| a.workflow.cmp(&b.workflow));
        Ok(all)
    }

    /// The versions of a workflow that this namespace has: the oldest text first. None if there is no such workflow.
    pub async fn workflow_versions(&self, workflow: &str) -> Result<Vec<WorkflowVersion>, EngineError> {
        let workflow = WorkflowName::new(workflow)?;
        let texts = self.texts(Some(workflow.clone())).await?;
        let code = self.inner.registry.code(Some(&workflow));
        Ok(code.into_iter().chain(texts.into_iter().map(of_text)).collect())
    }

    /// The text of a workflow: of this version, or of the current one. None if there is none, or if it is code.
    pub async fn workflow_text(
        &self,
        workflow: &str,
        version: Option<&str>,
    ) -> Result<Option<(WorkflowVersion, String)>, EngineError> {
        let (workflow, version) = (WorkflowName::new(workflow)?, version.map(Version::new).transpose()?);
        let found = self.inner.store()?.definition(self.namespace.clone(), workflow, version).await?;
        Ok(found.map(|detail| (of_text(detail.view), String::from_utf8_lossy(&detail.text).into_owned())))
    }

    async fn texts(&self, workflow: Option<WorkflowName>) -> Result<Vec<DefinitionView>, EngineError> {
        let store = self.inner.store()?;
        let (mut found, mut after) = (Vec::new(), Revision(0));
        loop {
            let (namespace, workflow) = (Some(self.namespace.clone()), workflow.clone());
            let filter = DefinitionFilter { namespace, workflow, after, limit: LIST_PAGE_MAX };
            let page = store.definitions(filter).await?;
            found.extend(page.definitions);
            after = page.next;
            if !page.more {
                return Ok(found);
            }
        }
    }
}

fn of_text(view: DefinitionView) -> WorkflowVersion {
    WorkflowVersion {
        workflow: view.workflow,
        version: view.version,
        style: view.style.as_str(),
        file: Some(view.file),
        defined_at: Some(view.defined_at),
        current: view.current,
    }
}
