//! Scripts: what the crate `outlast-script` makes of a `.wf` file.

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::id::WorkflowName;
use outlast_core::program::Program;
use outlast_script::{Limits, RunInfo, Script};
use outlast_store::Style;

use super::{Compiled, Text};
use crate::client::EngineError;
use crate::engine::{Engine, Outlast};
use crate::registry::{About, Definition, Needs};

pub(super) fn compile(file: &str, text: &str) -> Result<Compiled, EngineError> {
    let script = Script::compile(file, text)
        .map_err(|found| EngineError::Mistakes { file: file.to_owned(), report: found.to_string() })?;
    let warnings = script.warnings();
    Ok(Compiled {
        version: script.version().to_owned(),
        workflows: script.workflows().into_iter().map(str::to_owned).collect(),
        warnings: (!warnings.list().is_empty()).then(|| warnings.to_string()),
        definition: Arc::new(script),
    })
}

impl Definition for Script {
    fn program(&self, about: About, input: Bytes) -> Box<dyn Program> {
        let limits = limits();
        Box::new(Script::program(self, info(about), input, limits))
    }

    fn needs(&self) -> Needs {
        // One that no name can be fails where it is called.
        let workflows = self.children().filter_map(|name| WorkflowName::new(name).ok());
        Needs { steps: Vec::new(), workflows: workflows.collect() }
    }

    fn script(&self) -> Option<&Script> {
        Some(self)
    }

    fn snapshots(&self) -> Option<&str> {
        Some(self.definition())
    }

    fn restore(&self, about: About, _input: Bytes, snapshot: &Snapshot) -> Result<Box<dyn Program>, String> {
        let limits = limits();
        let restored = Script::restore(self, info(about), limits, snapshot);
        restored.map(|program| Box::new(program) as Box<dyn Program>).map_err(|error| error.to_string())
    }
}

fn info(about: About) -> RunInfo {
    let info = about.info;
    RunInfo { run_id: info.run.id.to_string(), workflow: info.workflow.to_string(), tokens: info.tokens }
}

fn limits() -> Limits {
    // The driver has a limit for states, and says when one is larger: the program would keep silent about it.
    Limits { snapshot_bytes: usize::MAX, ..Limits::default() }
}

impl Outlast {
    /// Registers the workflows of a script: of a `.wf` file, which says nothing about where it lies but its name. Mistakes in it
    /// are said at the start, each with its line.
    ///
    /// The text is kept in the store. A run stays with the text it began with, also when the next start of the engine
    /// registers another one.
    ///
    /// ```
    /// use outlast::Outlast;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let text = "workflow greet(name) { return `Hello, ${name}!` }";
    /// let engine = Outlast::memory().script("greet.wf", text).start().await?;
    /// let greeting: String = engine.start("greet", "Ada").await?.result().await?;
    /// assert_eq!(greeting, "Hello, Ada!");
    /// engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn script(self, file: &str, text: &str) -> Outlast {
        self.text(Text::compile(Style::Script, file, text))
    }
}

impl Engine {
    /// Puts a script in the place of the one that has its workflows, or adds it: runs that start from now on, here, begin with
    /// it, and others go on with what they began with. Other nodes know it within a minute. The names of its workflows.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let engine = outlast::Outlast::memory().script("n.wf", "return 1").start().await?;
    /// assert_eq!(engine.define_script("n.wf", "return 2").await?, ["n"]);
    /// assert_eq!(engine.start("n", &()).await?.result::<u32>().await?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn define_script(&self, file: &str, text: &str) -> Result<Vec<String>, EngineError> {
        self.define(Text::compile(Style::Script, file, text)?).await
    }
}
