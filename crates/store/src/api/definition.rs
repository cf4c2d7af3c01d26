//! Definitions of workflows that are text: scripts and flows. Every version is kept, so that a run goes on with the text it
//! began with.

use bytes::Bytes;
use outlast_core::id::{Namespace, Revision, Version, WorkflowName};
use outlast_core::time::Timestamp;

use super::LIST_PAGE_MAX;

/// How a workflow is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Style {
    /// As a script.
    Script,
    /// As a flow.
    Flow,
}

impl Style {
    /// What is stored for it.
    pub(crate) fn code(self) -> i16 {
        match self {
            Style::Script => 0,
            Style::Flow => 1,
        }
    }

    /// The one with this code.
    #[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code))]
    pub(crate) fn from_code(code: i64) -> Option<Self> {
        [Style::Script, Style::Flow].into_iter().find(|style| i64::from(style.code()) == code)
    }

    /// As text.
    pub fn as_str(self) -> &'static str {
        match self {
            Style::Script => "script",
            Style::Flow => "flow",
        }
    }
}

/// One version of a workflow that is text. A file that has several workflows is several definitions, each with the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The tenant.
    pub namespace: Namespace,
    /// Of which workflow.
    pub workflow: WorkflowName,
    /// The hash of its content: the same version never has another text.
    pub version: Version,
    /// How it is written.
    pub style: Style,
    /// The file it came from, for messages. At most [`outlast_core::limits::TEXT_BYTES_MAX`].
    pub file: String,
    /// What is written. At most as large as a payload.
    pub text: Bytes,
}

/// What became of a definition. Now its version is the current one of its workflow, in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defined {
    /// It is new.
    New(Revision),
    /// It was there, and another version was the current one.
    Restored(Revision),
    /// It was there and was the current one: nothing changed.
    Unchanged(Revision),
}

impl Defined {
    /// The definition's revision.
    pub fn revision(self) -> Revision {
        match self {
            Defined::New(revision) | Defined::Restored(revision) | Defined::Unchanged(revision) => revision,
        }
    }
}

/// A definition without its text, for people and tools, and for whoever looks for news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionView {
    /// The tenant.
    pub namespace: Namespace,
    /// Of which workflow.
    pub workflow: WorkflowName,
    /// The hash of its content.
    pub version: Version,
    /// How it is written.
    pub style: Style,
    /// The file it came from when it was new.
    pub file: String,
    /// How many bytes its text has.
    pub bytes: usize,
    /// When it was new.
    pub defined_at: Timestamp,
    /// Counts up in the whole store, each time a definition is new or becomes the current one again. Who sees a revision sees
    /// all smaller ones too.
    pub revision: Revision,
    /// Whether its version is the current one of its workflow: the one with the largest revision.
    pub current: bool,
}

/// A definition with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionDetail {
    /// What a listing shows of it.
    pub view: DefinitionView,
    /// What is written.
    pub text: Bytes,
}

/// Which definitions to list. By revision, so that what is new comes last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionFilter {
    /// The tenant; all if none.
    pub namespace: Option<Namespace>,
    /// Of this workflow.
    pub workflow: Option<WorkflowName>,
    /// Behind this revision: where the last page ended, and where the next look for news begins. All are behind 0.
    pub after: Revision,
    /// At most so many, and never more than [`LIST_PAGE_MAX`].
    pub limit: usize,
}

impl DefinitionFilter {
    /// The definitions of all namespaces that are new, or current again, since a revision.
    pub fn since(after: Revision) -> Self {
        DefinitionFilter { namespace: None, workflow: None, after, limit: 100 }
    }

    /// How many definitions a page has at most.
    pub(crate) fn definitions_max(&self) -> usize {
        self.limit.clamp(1, LIST_PAGE_MAX)
    }
}

/// One page of definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionPage {
    /// The definitions, by revision.
    pub definitions: Vec<DefinitionView>,
    /// Where the next page begins, and where to look for news later: the last revision here, or where this page began if it
    /// is empty.
    pub next: Revision,
    /// Whether there are more by now.
    pub more: bool,
}

impl DefinitionPage {
    /// A page, from one more than it may have if there are more.
    pub(crate) fn of(mut definitions: Vec<DefinitionView>, filter: &DefinitionFilter) -> Self {
        let more = definitions.len() > filter.definitions_max();
        definitions.truncate(filter.definitions_max());
        let next = definitions.last().map_or(filter.after, |last| last.revision);
        DefinitionPage { definitions, next, more }
    }
}
