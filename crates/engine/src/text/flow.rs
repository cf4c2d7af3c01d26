//! Flows: what the crate `outlast-flow` makes of a `.flow.yaml` file.

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::{Key, WorkflowName};
use outlast_core::operation::{Operation, Operations};
use outlast_core::program::{Input, Program, Progress};
use outlast_flow::{Flow, FlowLimits, FlowProgram, RunInfo};
use outlast_store::Style;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Compiled, Text};
use crate::client::EngineError;
use crate::code::{Bodies, StepContext};
use crate::engine::{Engine, Outlast};
use crate::registry::{About, Definition, Needs};

pub(super) fn compile(file: &str, text: &str) -> Result<Compiled, EngineError> {
    let flow = Flow::parse(file, text)
        .map_err(|found| EngineError::Mistakes { file: file.to_owned(), report: found.to_string() })?;
    let warnings = flow.warnings();
    Ok(Compiled {
        version: flow.version().to_owned(),
        workflows: vec![flow.name().to_owned()],
        warnings: (!warnings.list().is_empty()).then(|| warnings.to_string()),
        definition: Arc::new(flow),
    })
}

impl Definition for Flow {
    fn program(&self, about: About, input: Bytes) -> Box<dyn Program> {
        let limits = limits(&about);
        let program = Flow::program(self, info(&about), input, limits);
        Box::new(FlowRun::new(program, about))
    }

    fn needs(&self) -> Needs {
        let steps = self.steps().into_iter().map(str::to_owned);
        let workflows = self.children().into_iter().filter_map(|name| WorkflowName::new(name).ok());
        Needs { steps: steps.collect(), workflows: workflows.collect() }
    }

    fn flow(&self) -> Option<&Flow> {
        Some(self)
    }

    fn snapshots(&self) -> Option<&str> {
        Some(self.version())
    }

    fn restore(&self, about: About, input: Bytes, snapshot: &Snapshot) -> Result<Box<dyn Program>, String> {
        let limits = limits(&about);
        let program = Flow::restore(self, info(&about), &input, limits, snapshot).map_err(|error| error.to_string())?;
        Ok(Box::new(FlowRun::new(program, about)))
    }
}

fn info(about: &About) -> RunInfo {
    let info = &about.info;
    RunInfo { run_id: info.run.id.to_string(), workflow: info.workflow.to_string(), tokens: Arc::clone(&info.tokens) }
}

fn limits(about: &About) -> FlowLimits {
    let payload_bytes = about.settings.limits.payload_bytes;
    // The driver has a limit for states, and says when one is larger: the program would keep silent about it.
    FlowLimits { payload_bytes, snapshot_bytes: usize::MAX, ..FlowLimits::default() }
}

/// A flow, and the bodies of its steps.
struct FlowRun {
    program: FlowProgram,
    bodies: Bodies,
}

impl FlowRun {
    fn new(program: FlowProgram, about: About) -> FlowRun {
        let steps = Arc::clone(&about.settings.steps);
        FlowRun { program, bodies: Bodies::new(about.info, about.runtime, steps) }
    }

    /// Forgets the steps that the flow no longer wants.
    fn follow(&self, ops: &Operations) {
        for requested in ops.requested() {
            if let Operation::Cancel { key } = &requested.operation {
                self.bodies.cancel(key);
            }
        }
    }

    /// Has the body of a step ready before it runs, and not when it is asked for: a step whose outcome is recorded needs none.
    fn prepare(&self, key: &Key) {
        if !self.bodies.has(key)
            && let Some(call) = self.program.step(key)
        {
            self.bodies.start(key, &call.name, Bytes::from(call.input.to_string()));
        }
    }
}

impl Program for FlowRun {
    fn resume(&mut self, input: Input<'_>, ops: &mut Operations) -> Progress {
        let progress = self.program.resume(input, ops);
        self.follow(ops);
        if let Input::Execute { key, .. } = input {
            self.prepare(key);
        }
        match progress {
            Progress::Blocked | Progress::Executing => {
                self.bodies.tell(input, ops);
                if self.bodies.is_executing() { Progress::Executing } else { Progress::Blocked }
            }
            Progress::Finished(_) | Progress::Failed(_) | Progress::Unsound(_) => {
                self.bodies.close();
                progress
            }
        }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.program.snapshot()
    }

    fn misfit(&self, key: &Key, payload: &[u8]) -> Option<Failure> {
        self.program.misfit(key, payload)
    }

    fn refuses(&self, intervention: &Event) -> Option<Failure> {
        self.program.refuses(intervention)
    }

    fn pauses_after_tasks(&self) -> bool {
        self.program.pauses_after_tasks()
    }
}

impl Outlast {
    /// Registers a flow: a graph of nodes, from the text of a `.flow.yaml` or `.flow.json` file. Mistakes in it are said at the
    /// start, each with its line.
    ///
    /// The text is kept in the store. A run stays with the text it began with, also when the next start of the engine
    /// registers another one.
    ///
    /// ```
    /// use outlast::{Outlast, StepContext};
    ///
    /// async fn greet(_: StepContext, name: String) -> outlast::Result<String> {
    ///     Ok(format!("Hello, {name}!"))
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let text = "
    /// flow: greet_all
    /// nodes:
    ///   - id: people
    ///     type: foreach
    ///     items: ${input}
    ///     as: person
    ///     body: [{ id: greeting, type: step, step: greet, with: '${person}' }]
    /// result: '${people.count}'";
    /// let engine = Outlast::memory().step("greet", greet).flow("greet.flow.yaml", text).start().await?;
    /// let count: u32 = engine.start("greet_all", &["Ada", "Grace"]).await?.result().await?;
    /// assert_eq!(count, 2);
    /// engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn flow(self, file: &str, text: &str) -> Outlast {
        self.text(Text::compile(Style::Flow, file, text))
    }

    /// Registers an `async fn(StepContext, Input) -> outlast::Result<Output>` for the `step` nodes of flows that name it. It runs
    /// in this process, with the node's retries and timeout, as the steps of code do.
    pub fn step<I, O, F, Fut>(mut self, name: &str, step: F) -> Outlast
    where
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
        F: Fn(StepContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = crate::Result<O>> + 'static,
    {
        if !self.steps.add(name, step) {
            self.refused.get_or_insert(EngineError::Invalid(format!("the step {name:?} is registered twice")));
        }
        self
    }
}

impl Engine {
    /// Puts a flow in the place of the one that has its name, or adds it: runs that start from now on, here, begin with it, and
    /// others go on with what they began with. Other nodes know it within a minute. Its name.
    pub async fn define_flow(&self, file: &str, text: &str) -> Result<Vec<String>, EngineError> {
        self.define(Text::compile(Style::Flow, file, text)?).await
    }
}
