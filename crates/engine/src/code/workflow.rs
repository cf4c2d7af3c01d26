//! Workflows as they are registered.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::id::{InvalidId, Version, WorkflowName};
use outlast_core::program::Program;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec;
use super::ctx::Ctx;
use super::program::CodeProgram;
use crate::error::Result;
use crate::registry::{self, About};

/// The version of a workflow that declares none.
const FIRST_VERSION: &str = "1";

/// A running workflow, its result as JSON text.
pub(super) type Execution = Pin<Box<dyn Future<Output = Result<Bytes>>>>;

/// One version of a workflow, its types erased: JSON text in, JSON text out.
#[derive(Clone)]
pub(crate) struct Definition(Arc<dyn Fn(Ctx, Bytes) -> Execution + Send + Sync>);

impl Definition {
    fn new<I, O, F, Fut>(workflow: F) -> Self
    where
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + 'static,
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
    {
        let workflow = Arc::new(workflow);
        Definition(Arc::new(move |ctx, input| {
            let workflow = Arc::clone(&workflow);
            Box::pin(async move {
                let input = codec::decode("the input", &input)?;
                let output = workflow(ctx, input).await?;
                codec::encode("what the workflow returned", &output)
            })
        }))
    }

    /// A future that does nothing before it is polled.
    pub(super) fn begin(&self, ctx: Ctx, input: Bytes) -> Execution {
        (self.0)(ctx, input)
    }
}

impl registry::Definition for Definition {
    fn program(&self, about: About, input: Bytes) -> Box<dyn Program> {
        Box::new(CodeProgram::new(self, about.info, input, about.runtime))
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Definition")
    }
}

/// A workflow: its name, its code, and older code for runs that began with it.
///
/// ```
/// use outlast::{Ctx, Workflow};
///
/// async fn greet(ctx: Ctx, name: String) -> outlast::Result<String> {
///     ctx.step("greet", async |_| Ok(format!("Hello, {name}!"))).await
/// }
///
/// async fn greet_before(_: Ctx, name: String) -> outlast::Result<String> {
///     Ok(format!("Hello {name}"))
/// }
///
/// let workflow = Workflow::new("greet", greet).version("2").previous_version("1", greet_before);
/// assert_eq!(workflow.name(), "greet");
/// ```
#[derive(Clone, Debug)]
pub struct Workflow {
    name: String,
    version: String,
    definition: Definition,
    previous: Vec<(String, Definition)>,
}

impl Workflow {
    /// A workflow that runs this function. Its version is `1`.
    pub fn new<I, O, F, Fut>(name: impl Into<String>, workflow: F) -> Self
    where
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + 'static,
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
    {
        Workflow {
            name: name.into(),
            version: FIRST_VERSION.to_owned(),
            definition: Definition::new(workflow),
            previous: Vec::new(),
        }
    }

    /// Its version. A run stays with the version it began with: raise it when the order or the keys of operations
    /// change, and keep the old code as a [`Workflow::previous_version`].
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// The code of an older version, for runs that began with it.
    #[must_use]
    pub fn previous_version<I, O, F, Fut>(mut self, version: impl Into<String>, workflow: F) -> Self
    where
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + 'static,
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
    {
        self.previous.push((version.into(), Definition::new(workflow)));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the engine registers; refused if a name is not one, or a version is given twice.
    pub(crate) fn register(self) -> Result<Registered, RegisterError> {
        let name = WorkflowName::new(&self.name)?;
        let newest = Version::new(&self.version)?;
        let mut versions = BTreeMap::from([(newest.clone(), self.definition)]);
        for (version, definition) in self.previous {
            let version = Version::new(version)?;
            if versions.insert(version.clone(), definition).is_some() {
                return Err(RegisterError::VersionTwice { name, version });
            }
        }
        Ok(Registered { name, newest, versions })
    }
}

/// A workflow that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) name: WorkflowName,
    /// What new runs begin with.
    pub(crate) newest: Version,
    pub(crate) versions: BTreeMap<Version, Definition>,
}

/// Why a workflow cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegisterError {
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
    #[error("workflow {name:?} has two versions {version:?}")]
    VersionTwice { name: WorkflowName, version: Version },
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn nothing(_: Ctx, (): ()) -> Result<()> {
        Ok(())
    }

    #[test]
    fn a_workflow_has_the_versions_it_was_given() {
        let workflow = Workflow::new("w", nothing).version("3").previous_version("1", nothing);
        let registered = workflow.register().unwrap();
        assert_eq!(registered.newest.as_str(), "3");
        assert_eq!(registered.versions.keys().map(Version::as_str).collect::<Vec<_>>(), ["1", "3"]);
        assert_eq!(Workflow::new("w", nothing).register().unwrap().newest.as_str(), "1");
    }

    #[test]
    fn a_version_given_twice_or_an_empty_name_is_refused() {
        let twice = Workflow::new("w", nothing).previous_version("1", nothing).register().unwrap_err();
        assert_eq!(twice.to_string(), "workflow \"w\" has two versions \"1\"");
        assert!(matches!(Workflow::new("", nothing).register(), Err(RegisterError::InvalidId(_))));
    }
}
