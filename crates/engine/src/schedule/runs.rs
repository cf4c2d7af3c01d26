//! The runs of schedules.

use bytes::Bytes;
use outlast_core::commit::NewRun;
use outlast_core::id::{AttributeName, RunId, RunKey};
use outlast_store::{Store, StoreError};

use super::{Plan, SCHEDULE_ATTRIBUTE};
use crate::registry::Registry;

/// A run that a schedule starts; none if nobody here knows which version of its workflow that would be.
pub(crate) fn new_run(plan: &Plan, registry: &Registry, id: RunId) -> Option<NewRun> {
    let version = plan.spec.version.clone().or_else(|| registry.newest(&plan.namespace, &plan.spec.workflow))?;
    let run = RunKey::new(plan.namespace.clone(), id);
    let input = Bytes::copy_from_slice(plan.spec.input.get().as_bytes());
    let mut new = NewRun::new(run, plan.spec.workflow.clone(), version, input);
    let name = AttributeName::new(SCHEDULE_ATTRIBUTE).expect("a short name");
    new.attributes.push((name, plan.id.to_string()));
    Some(new)
}

/// Whether a run has not ended. One that was deleted has.
pub(crate) async fn is_running(store: &dyn Store, run: RunKey) -> Result<bool, StoreError> {
    match store.get(run).await {
        Ok(view) => Ok(!view.status.is_terminal()),
        Err(StoreError::NotFound(_) | StoreError::Deleted { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
