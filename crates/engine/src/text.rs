//! Workflows that are text. Every text a run began with is kept in the store, so that the run goes on with it whatever
//! is put in its place, on any node and after any restart.

#[cfg(feature = "flow")]
mod flow;
#[cfg(feature = "script")]
mod script;

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::id::{InvalidId, Namespace, Version, WorkflowName};
use outlast_store::{DefinitionFilter, DefinitionView, Store, StoreError, Style};

use crate::client::EngineError;
#[cfg(any(feature = "script", feature = "flow"))]
use crate::engine::Engine;
use crate::registry::{Definition, Registry};

/// A text that can be run.
#[derive(Clone)]
pub(crate) struct Text {
    style: Style,
    file: String,
    text: Bytes,
    /// The hash of the text.
    version: Version,
    /// The workflows it has.
    workflows: Vec<WorkflowName>,
    definition: Arc<dyn Definition>,
}

/// What a style makes of a text.
struct Compiled {
    version: String,
    workflows: Vec<String>,
    definition: Arc<dyn Definition>,
    /// What is probably not meant.
    warnings: Option<String>,
}

impl Text {
    /// Reads, checks and compiles a text.
    fn compile(style: Style, file: &str, text: &str) -> Result<Text, EngineError> {
        let compiled = compile(style, file, text)?;
        if let Some(warnings) = compiled.warnings {
            tracing::warn!(file, "{warnings}");
        }
        let workflows: Result<Vec<WorkflowName>, InvalidId> =
            compiled.workflows.iter().map(WorkflowName::new).collect();
        Ok(Text {
            style,
            file: file.to_owned(),
            text: Bytes::copy_from_slice(text.as_bytes()),
            version: Version::new(compiled.version)?,
            workflows: workflows?,
            definition: compiled.definition,
        })
    }

    /// The workflows it has.
    pub(crate) fn workflows(&self) -> &[WorkflowName] {
        &self.workflows
    }

    /// Says what its author may have forgotten here, or left to others.
    pub(crate) fn tell_lacks(&self, registry: &Registry) {
        let lacks =
            self.workflows.iter().find_map(|workflow| Some((workflow, registry.lacks(workflow, &self.version)?)));
        if let Some((workflow, lacks)) = lacks {
            tracing::warn!(%workflow, "{} needs {lacks}, which is not registered here: its runs are left to others", self.file);
        }
    }

    /// Lets a registry run it. Nothing begins with it yet.
    pub(crate) fn register(&self, registry: &Registry) {
        self.workflows.iter().for_each(|name| registry.put(name, &self.version, Arc::clone(&self.definition)));
    }

    /// Keeps it in the store: what new runs begin with from now on.
    pub(crate) async fn define(
        &self,
        store: &dyn Store,
        namespace: &Namespace,
        registry: &Registry,
    ) -> Result<(), EngineError> {
        if let Some(name) = self.workflows.iter().find(|name| registry.is_code(name)) {
            return Err(EngineError::DuplicateWorkflow(name.to_string()));
        }
        self.register(registry);
        let definitions = self.workflows.iter().map(|workflow| outlast_store::Definition {
            namespace: namespace.clone(),
            workflow: workflow.clone(),
            version: self.version.clone(),
            style: self.style,
            file: self.file.clone(),
            text: self.text.clone(),
        });
        let answers = store.define(definitions.collect()).await;
        for (workflow, defined) in self.workflows.iter().zip(answers) {
            registry.set_current(namespace, workflow, (defined?.revision(), &self.version));
        }
        Ok(())
    }
}

fn compile(style: Style, file: &str, text: &str) -> Result<Compiled, EngineError> {
    match style {
        #[cfg(feature = "script")]
        Style::Script => script::compile(file, text),
        #[cfg(feature = "flow")]
        Style::Flow => flow::compile(file, text),
        #[cfg(not(all(feature = "script", feature = "flow")))]
        style => Err(unsupported(style, file, text)),
    }
}

#[cfg(not(all(feature = "script", feature = "flow")))]
fn unsupported(style: Style, file: &str, _text: &str) -> EngineError {
    let style = style.as_str();
    EngineError::Invalid(format!("{file} is a {style}, and this build cannot run one; enable the feature `{style}`"))
}

impl Registry {
    /// Learns of every text in the store that came since this was asked last. One that cannot be read or run here is not offered
    /// here; who can run it may.
    pub(crate) async fn learn(&self, store: &dyn Store) -> Result<(), StoreError> {
        loop {
            let filter = DefinitionFilter::since(self.seen());
            let page = store.definitions(filter).await?;
            for view in &page.definitions {
                self.learn_one(store, view).await?;
            }
            self.see(page.next);
            if !page.more {
                return Ok(());
            }
        }
    }

    async fn learn_one(&self, store: &dyn Store, view: &DefinitionView) -> Result<(), StoreError> {
        let DefinitionView { namespace, workflow, version, style, file, revision, .. } = view;
        if !self.knows(workflow, version) {
            let detail = store.definition(namespace.clone(), workflow.clone(), Some(version.clone())).await?;
            let Some(detail) = detail else { return Ok(()) };
            let text = std::str::from_utf8(&detail.text).unwrap_or_default();
            match Text::compile(*style, file, text) {
                Ok(text) => self.put(workflow, version, text.definition),
                Err(error) => {
                    tracing::warn!(%workflow, %version, %error, "a text in the store cannot be run by this build");
                }
            }
        }
        if view.current {
            self.set_current(namespace, workflow, (*revision, version));
        }
        Ok(())
    }
}

#[cfg(any(feature = "script", feature = "flow"))]
impl Engine {
    /// Keeps a text: what new runs begin with from now on. The names of its workflows.
    pub(crate) async fn define(&self, text: Text) -> Result<Vec<String>, EngineError> {
        let inner = &self.inner;
        let store = inner.store()?;
        text.define(&*store, &self.namespace, &inner.registry).await?;
        text.tell_lacks(&inner.registry);
        // At once, so that nobody parks what begins with it.
        inner.node()?.announce().await;
        Ok(text.workflows.iter().map(ToString::to_string).collect())
    }
}
