//! The workflows an engine knows, by name and version, in whatever style they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::id::{Namespace, Revision, Version, WorkflowName};
use outlast_core::program::Program;
use outlast_store::Serves;
use tokio::runtime::Handle;

use crate::client::{EngineError, WorkflowVersion};
use crate::code::{Registered, RunInfo};
use crate::drive::{Identity, Settings, Transactions};

/// One version of a workflow, whatever it is written in.
pub(crate) trait Definition: Send + Sync {
    /// A program that was told nothing yet.
    fn program(&self, about: About, input: Bytes) -> Box<dyn Program>;

    /// What a process must have to drive it.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The flow that it is, if it is one.
    #[cfg(feature = "flow")]
    fn flow(&self) -> Option<&outlast_flow::Flow> {
        None
    }

    /// The script that it is, if it is one.
    #[cfg(feature = "script")]
    fn script(&self) -> Option<&outlast_script::Script> {
        None
    }

    /// What its snapshots are kept under; none if its programs make none.
    fn snapshots(&self) -> Option<&str> {
        None
    }

    /// A program that goes on from a snapshot one of its programs made of a run with this input; or why it cannot.
    fn restore(&self, about: About, _input: Bytes, _snapshot: &Snapshot) -> Result<Box<dyn Program>, String> {
        Err(format!("the programs of {} make none", about.info.workflow))
    }
}

/// What a text names that a process may lack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Steps that are registered by name.
    pub(crate) steps: Vec<String>,
    /// Workflows it starts.
    pub(crate) workflows: Vec<WorkflowName>,
}

/// What a program is told about its run, and given.
pub(crate) struct About {
    pub(crate) info: RunInfo,
    /// Where the bodies of code run.
    pub(crate) runtime: Option<Handle>,
    #[cfg_attr(not(any(feature = "script", feature = "flow")), expect(dead_code, reason = "for texts"))]
    pub(crate) settings: Arc<Settings>,
}

impl About {
    pub(crate) fn new(
        identity: &Identity,
        settings: &Arc<Settings>,
        transactions: &Transactions,
        runtime: Option<Handle>,
    ) -> About {
        let (for_tokens, owner, generation) = (Arc::clone(settings), identity.run.clone(), identity.generation);
        let info = RunInfo {
            run: identity.run.clone(),
            generation,
            workflow: identity.workflow.clone(),
            version: identity.version.clone(),
            tokens: Arc::new(move |key| (for_tokens.token)(&owner, generation, key)),
            transactions: transactions.clone(),
        };
        About { info, runtime, settings: Arc::clone(settings) }
    }
}

/// The workflows an engine knows. Texts may come while it runs.
#[derive(Default)]
pub(crate) struct Registry {
    workflows: RwLock<BTreeMap<WorkflowName, Known>>,
    /// The names of the steps there are here; none if nobody else could drive what lacks one.
    steps: Option<BTreeSet<String>>,
    /// Up to which revision the texts of the store are known.
    seen: AtomicU64,
}

/// What is known of a workflow.
#[derive(Clone, Default)]
struct Known {
    /// What new runs begin with if it is code.
    code: Option<Version>,
    /// What new runs of a namespace begin with if it is text, and since which revision of the store's.
    texts: BTreeMap<Namespace, (Revision, Version)>,
    versions: BTreeMap<Version, Offer>,
}

/// A version, and what it takes to drive it.
#[derive(Clone)]
struct Offer {
    definition: Arc<dyn Definition>,
    needs: Arc<Needs>,
}

impl Offer {
    fn of(definition: Arc<dyn Definition>) -> Offer {
        let needs = Arc::new(definition.needs());
        Offer { definition, needs }
    }
}

impl Clone for Registry {
    fn clone(&self) -> Registry {
        let workflows = RwLock::new(self.read().clone());
        Registry { workflows, steps: self.steps.clone(), seen: AtomicU64::new(self.seen().0) }
    }
}

impl Registry {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<WorkflowName, Known>> {
        self.workflows.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to which revision the texts of the store are known.
    pub(crate) fn seen(&self) -> Revision {
        Revision(self.seen.load(Ordering::Acquire))
    }

    pub(crate) fn see(&self, revision: Revision) {
        self.seen.fetch_max(revision.0, Ordering::AcqRel);
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<WorkflowName, Known>> {
        self.workflows.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a workflow that is code with all its versions; its name again if it is taken.
    pub(crate) fn add(&self, workflow: Registered) -> Result<(), WorkflowName> {
        let mut workflows = self.write();
        if workflows.contains_key(&workflow.name) {
            return Err(workflow.name);
        }
        let versions = workflow.versions.into_iter();
        let versions = versions.map(|(version, code)| (version, Offer::of(Arc::new(code))));
        let known = Known { code: Some(workflow.newest), texts: BTreeMap::new(), versions: versions.collect() };
        workflows.insert(workflow.name, known);
        Ok(())
    }

    /// Adds a version of a workflow that is text. What new runs begin with stays as it is.
    pub(crate) fn put(&self, workflow: &WorkflowName, version: &Version, definition: Arc<dyn Definition>) {
        let mut workflows = self.write();
        let known = workflows.entry(workflow.clone()).or_default();
        known.versions.entry(version.clone()).or_insert_with(|| Offer::of(definition));
    }

    /// From now on new runs of a namespace begin with this version, unless a newer revision says otherwise.
    pub(crate) fn set_current(
        &self,
        namespace: &Namespace,
        workflow: &WorkflowName,
        (revision, version): (Revision, &Version),
    ) {
        // Also one that cannot be run here: what new runs begin with does not depend on who is asked.
        let mut workflows = self.write();
        let known = workflows.entry(workflow.clone()).or_default();
        let current = known.texts.entry(namespace.clone()).or_insert_with(|| (revision, version.clone()));
        if current.0 <= revision {
            *current = (revision, version.clone());
        }
    }

    /// The versions of the workflows that are code here, of this one or of all.
    pub(crate) fn code(&self, workflow: Option<&WorkflowName>) -> Vec<WorkflowVersion> {
        let workflows = self.read();
        let named = workflows.iter().filter(|(name, _)| workflow.is_none_or(|asked| asked == *name));
        let of_one = |(name, known): (&WorkflowName, &Known)| {
            let newest = known.code.clone();
            let versions = known.versions.keys().filter(|_| newest.is_some()).cloned();
            let (name, newest) = (name.clone(), newest.clone());
            versions
                .map(|version| WorkflowVersion {
                    workflow: name.clone(),
                    current: newest.as_ref() == Some(&version),
                    version,
                    style: "code",
                    file: None,
                    defined_at: None,
                })
                .collect::<Vec<_>>()
        };
        named.flat_map(of_one).collect()
    }

    /// Whether the workflow is known here at all.
    pub(crate) fn has(&self, workflow: &WorkflowName) -> bool {
        self.read().contains_key(workflow)
    }

    /// Whether the workflow is code here.
    pub(crate) fn is_code(&self, workflow: &WorkflowName) -> bool {
        self.read().get(workflow).is_some_and(|known| known.code.is_some())
    }

    /// The version a new run gets.
    pub(crate) fn newest(&self, namespace: &Namespace, workflow: &WorkflowName) -> Option<Version> {
        let workflows = self.read();
        let known = workflows.get(workflow)?;
        known.code.clone().or_else(|| known.texts.get(namespace).map(|(_, version)| version.clone()))
    }

    pub(crate) fn knows(&self, workflow: &WorkflowName, version: &Version) -> bool {
        self.read().get(workflow).is_some_and(|workflow| workflow.versions.contains_key(version))
    }

    /// Refuses a version that a workflow does not have here. A workflow that nobody here knows may be known elsewhere.
    pub(crate) fn check(&self, workflow: &WorkflowName, version: &Version) -> Result<(), EngineError> {
        if !self.read().contains_key(workflow) || self.knows(workflow, version) {
            return Ok(());
        }
        Err(EngineError::VersionMismatch { workflow: workflow.to_string(), version: version.to_string() })
    }

    /// From now on texts that name a step or a workflow that is not here are left to others.
    pub(crate) fn leave_to_others(&mut self, steps: BTreeSet<String>) {
        self.steps = Some(steps);
    }

    /// What a text names and is not here; none if it can be driven here.
    pub(crate) fn lacks(&self, workflow: &WorkflowName, version: &Version) -> Option<String> {
        let workflows = self.read();
        self.lack(&workflows, workflows.get(workflow)?.versions.get(version)?)
    }

    fn lack(&self, workflows: &BTreeMap<WorkflowName, Known>, offer: &Offer) -> Option<String> {
        let here = self.steps.as_ref()?;
        let step = offer.needs.steps.iter().find(|step| !here.contains(*step));
        let workflow = || offer.needs.workflows.iter().find(|workflow| !workflows.contains_key(*workflow));
        step.map(|step| format!("the step {step:?}"))
            .or_else(|| Some(format!("the workflow {:?}", workflow()?.as_str())))
    }

    /// Whether runs of a version can be driven here.
    pub(crate) fn can_drive(&self, workflow: &WorkflowName, version: &Version) -> bool {
        self.knows(workflow, version) && self.lacks(workflow, version).is_none()
    }

    /// What this node can drive.
    pub(crate) fn serves(&self) -> Serves {
        Serves::Only(self.offers())
    }

    /// Every workflow with every version that can be driven here.
    pub(crate) fn offers(&self) -> Vec<(WorkflowName, Version)> {
        let workflows = self.read();
        let mut offers = Vec::new();
        for (name, known) in &*workflows {
            let here = known.versions.iter().filter(|(_, offer)| self.lack(&workflows, offer).is_none());
            offers.extend(here.map(|(version, _)| (name.clone(), version.clone())));
        }
        offers
    }

    pub(crate) fn definition(&self, workflow: &WorkflowName, version: &Version) -> Option<Arc<dyn Definition>> {
        Some(Arc::clone(&self.read().get(workflow)?.versions.get(version)?.definition))
    }
}

/// Why a run cannot go on here, and what to do.
pub(crate) fn unknown_version(workflow: &WorkflowName, version: &Version) -> String {
    format!(
        "workflow_version_mismatch: the run began with {workflow} version {version}, which is not registered here; register \
         it as a previous version (or define the text it was), deploy, and unpark the run"
    )
}
