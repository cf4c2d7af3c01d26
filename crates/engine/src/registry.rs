//! The workflows an engine knows, by name and version.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::id::{Version, WorkflowName};
use outlast_core::program::Program;
use outlast_store::Serves;
use tokio::runtime::Handle;

use crate::client::EngineError;
use crate::code::{CodeProgram, Registered, RunInfo};
use crate::drive::{Identity, Settings, Transactions};

/// The workflows an engine knows.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    workflows: BTreeMap<WorkflowName, Registered>,
}

impl Registry {
    /// Adds a workflow with all its versions; its name again if it is taken.
    pub(crate) fn add(&mut self, workflow: Registered) -> Result<(), WorkflowName> {
        if self.workflows.contains_key(&workflow.name) {
            return Err(workflow.name);
        }
        self.workflows.insert(workflow.name.clone(), workflow);
        Ok(())
    }

    /// The version a new run gets.
    pub(crate) fn newest(&self, workflow: &WorkflowName) -> Option<Version> {
        self.workflows.get(workflow).map(|workflow| workflow.newest.clone())
    }

    pub(crate) fn knows(&self, workflow: &WorkflowName, version: &Version) -> bool {
        self.workflows.get(workflow).is_some_and(|workflow| workflow.versions.contains_key(version))
    }

    /// Refuses a version that a workflow does not have here. A workflow that nobody here knows may be known elsewhere.
    pub(crate) fn check(&self, workflow: &WorkflowName, version: &Version) -> Result<(), EngineError> {
        if !self.workflows.contains_key(workflow) || self.knows(workflow, version) {
            return Ok(());
        }
        Err(EngineError::VersionMismatch { workflow: workflow.to_string(), version: version.to_string() })
    }

    /// What this node can drive.
    pub(crate) fn serves(&self) -> Serves {
        Serves::Only(self.offers())
    }

    /// Every workflow with every version.
    pub(crate) fn offers(&self) -> Vec<(WorkflowName, Version)> {
        let all = self
            .workflows
            .iter()
            .flat_map(|(name, workflow)| workflow.versions.keys().map(move |version| (name.clone(), version.clone())));
        all.collect()
    }

    /// A fresh program for a run; or why there is none, and what to do.
    pub(crate) fn program(
        &self,
        identity: &Identity,
        input: Bytes,
        settings: &Arc<Settings>,
        transactions: &Transactions,
        runtime: Option<Handle>,
    ) -> Result<Box<dyn Program>, String> {
        let Identity { run, generation, workflow, version, .. } = identity;
        let definition = self.workflows.get(workflow).and_then(|workflow| workflow.versions.get(version));
        let Some(definition) = definition else {
            return Err(format!(
                "workflow_version_mismatch: the run began with {workflow} version {version}, which is not registered here; \
                 register it as a previous version, deploy, and unpark the run"
            ));
        };
        let (settings, owner, generation) = (Arc::clone(settings), run.clone(), *generation);
        let info = RunInfo {
            run: run.clone(),
            generation,
            workflow: workflow.clone(),
            version: version.clone(),
            tokens: Arc::new(move |key| (settings.token)(&owner, generation, key)),
            transactions: transactions.clone(),
        };
        Ok(Box::new(CodeProgram::new(definition, info, input, runtime)))
    }
}
