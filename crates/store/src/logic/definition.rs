//! What becomes of definitions. The current version of a workflow is the one with the largest revision: so there is always
//! exactly one, and no flag that could be wrong.

use outlast_core::id::{Revision, RunKey, Version, WorkflowName};
use outlast_core::limits::Limits;

use crate::api::{Defined, Definition};
use crate::error::StoreError;

/// A definition that is there, compared with the one that is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) revision: Revision,
    /// Whether style and text are the same.
    pub(crate) same: bool,
    /// Whether its version is the current one.
    pub(crate) current: bool,
}

/// What is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The definition, with this revision.
    Insert(Revision),
    /// Its revision.
    Raise(Revision),
}

pub(crate) fn check(definition: &Definition, limits: &Limits) -> Result<(), StoreError> {
    limits.check_payload("the text of a definition", definition.text.len())?;
    limits.check_text("the file of a definition", &definition.file)?;
    Ok(())
}

/// What to answer and what to write, if anything. `last` is the largest revision that was ever given.
pub(crate) fn define(
    definition: &Definition,
    known: Option<Known>,
    last: Revision,
) -> Result<(Defined, Option<Change>), StoreError> {
    match known {
        None => Ok((Defined::New(last.next()), Some(Change::Insert(last.next())))),
        // Never overwritten: runs have begun with it.
        Some(Known { same: false, .. }) => Err(StoreError::DefinitionExists {
            workflow: definition.workflow.clone(),
            version: definition.version.clone(),
        }),
        Some(Known { current: true, revision, .. }) => Ok((Defined::Unchanged(revision), None)),
        Some(Known { current: false, .. }) => Ok((Defined::Restored(last.next()), Some(Change::Raise(last.next())))),
    }
}

/// Whether a definition may go. The current one only where it has no others beside it: none becomes the current one because
/// somebody tidied up.
pub(crate) fn forget(
    workflow: &WorkflowName,
    version: &Version,
    (current, others): (bool, bool),
    live: Option<RunKey>,
) -> Result<(), StoreError> {
    let (workflow, version) = (workflow.clone(), version.clone());
    match live {
        Some(run) => Err(StoreError::DefinitionNeeded { workflow, version, run }),
        None if current && others => Err(StoreError::DefinitionCurrent { workflow, version }),
        None => Ok(()),
    }
}
