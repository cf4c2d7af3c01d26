//! Definitions of workflows that are text.

use std::collections::BTreeMap;

use outlast_core::id::{Namespace, Revision, Version, WorkflowName};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;

use super::State;
use crate::api::{Defined, Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, DefinitionView};
use crate::error::StoreError;
use crate::logic::definition::{Change, Known, check, define, forget};
use crate::rows::Rows;

type Name = (Namespace, WorkflowName, Version);

/// All of them, and the largest revision that was ever given.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    rows: BTreeMap<Name, Row>,
    last: Revision,
}

#[derive(Debug)]
struct Row {
    definition: Definition,
    defined_at: Timestamp,
    revision: Revision,
}

impl Definitions {
    /// The versions of a workflow.
    fn of(&self, namespace: &Namespace, workflow: &WorkflowName) -> impl Iterator<Item = &Row> {
        self.rows
            .values()
            .filter(move |row| row.definition.namespace == *namespace && row.definition.workflow == *workflow)
    }

    fn current(&self, namespace: &Namespace, workflow: &WorkflowName) -> Option<&Row> {
        self.of(namespace, workflow).max_by_key(|row| row.revision)
    }

    fn is_current(&self, row: &Row) -> bool {
        let current = self.current(&row.definition.namespace, &row.definition.workflow);
        current.is_some_and(|current| current.revision == row.revision)
    }

    fn view(&self, row: &Row) -> DefinitionView {
        let Definition { namespace, workflow, version, style, file, text } = row.definition.clone();
        DefinitionView {
            namespace,
            workflow,
            version,
            style,
            file,
            bytes: text.len(),
            defined_at: row.defined_at,
            revision: row.revision,
            current: self.is_current(row),
        }
    }
}

impl State {
    pub(super) fn define(&mut self, definition: Definition, limits: &Limits) -> Result<Defined, StoreError> {
        check(&definition, limits)?;
        if self.number(&definition.namespace) == 0 {
            return Err(StoreError::UnknownNamespace(definition.namespace));
        }
        let name = (definition.namespace.clone(), definition.workflow.clone(), definition.version.clone());
        let known = self.definitions.rows.get(&name).map(|row| Known {
            revision: row.revision,
            same: row.definition.style == definition.style && row.definition.text == definition.text,
            current: self.definitions.is_current(row),
        });
        let (defined, change) = define(&definition, known, self.definitions.last)?;
        let defined_at = self.now();
        match change {
            None => return Ok(defined),
            Some(Change::Insert(revision)) => {
                self.definitions.rows.insert(name, Row { definition, defined_at, revision });
            }
            Some(Change::Raise(revision)) => {
                if let Some(row) = self.definitions.rows.get_mut(&name) {
                    row.revision = revision;
                }
            }
        }
        self.definitions.last = defined.revision();
        Ok(defined)
    }

    pub(super) fn definition(
        &self,
        namespace: &Namespace,
        workflow: &WorkflowName,
        version: Option<&Version>,
    ) -> Option<DefinitionDetail> {
        let found = match version {
            Some(version) => self.definitions.rows.get(&(namespace.clone(), workflow.clone(), version.clone())),
            None => self.definitions.current(namespace, workflow),
        };
        found.map(|row| DefinitionDetail { view: self.definitions.view(row), text: row.definition.text.clone() })
    }

    pub(super) fn list_definitions(&self, filter: &DefinitionFilter) -> DefinitionPage {
        let wanted = |row: &&Row| {
            row.revision > filter.after
                && filter.namespace.as_ref().is_none_or(|namespace| row.definition.namespace == *namespace)
                && filter.workflow.as_ref().is_none_or(|workflow| row.definition.workflow == *workflow)
        };
        let mut found: Vec<&Row> = self.definitions.rows.values().filter(wanted).collect();
        found.sort_by_key(|row| row.revision);
        found.truncate(filter.definitions_max() + 1);
        DefinitionPage::of(found.into_iter().map(|row| self.definitions.view(row)).collect(), filter)
    }

    pub(super) fn forget_definition(
        &mut self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Version,
    ) -> Result<bool, StoreError> {
        let name = (namespace, workflow, version);
        let Some(row) = self.definitions.rows.get(&name) else { return Ok(false) };
        let (namespace, workflow, version) = &name;
        let needs = self.runs.values().filter(|run| {
            run.key.namespace == *namespace
                && run.workflow == *workflow
                && run.version == *version
                && !run.status.is_terminal()
        });
        let live = needs.min_by_key(|run| run.row).map(|run| run.key.clone());
        let others = self.definitions.of(namespace, workflow).count() > 1;
        forget(workflow, version, (self.definitions.is_current(row), others), live)?;
        self.definitions.rows.remove(&name);
        Ok(true)
    }
}
