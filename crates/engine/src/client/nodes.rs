//! A run of a flow from outside: where it stands, and what operators do to its nodes.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use outlast_core::event::{Class, Event};
use outlast_core::id::{Index, Key};
use outlast_core::operation::{Operations, Provided};
use outlast_core::program::{Input, Program};
use outlast_core::time::Timestamp;
use outlast_flow::{Flow, FlowLimits, Position, RunInfo, derive};
use outlast_store::{Delivered, Load, LoadFrom, Loaded, RunView, StoreError};

use super::tell::{Letter, Message};
use super::{EngineError, Fork, RunHandle};
use crate::drive::Intervention;
use crate::registry::Definition;

/// The operator, where nobody says who it was.
const SOMEBODY: &str = "operator";

/// A run of a flow, as it was read.
struct Read {
    definition: Arc<dyn Definition>,
    info: RunInfo,
    loaded: Loaded,
    events: Vec<Event>,
}

impl Read {
    fn flow(&self) -> Result<&Flow, EngineError> {
        let message = || format!("{} is not a run of a flow", self.info.run_id);
        self.definition.flow().ok_or_else(|| EngineError::Invalid(message()))
    }

    /// Why an operator cannot do something to a node now.
    fn refusal(&self, intervention: &Event) -> Result<Option<EngineError>, EngineError> {
        let flow = self.flow()?;
        let mut program = flow.program(self.info.clone(), self.loaded.input.clone(), FlowLimits::default());
        let mut ops = Operations::new(Provided { now: Timestamp::EPOCH, seed: 0 });
        program.resume(Input::Start, &mut ops);
        for (index, event) in self.events.iter().enumerate() {
            if event.is_mark() || event.class() == Class::Checkpoint {
                program.resume(Input::Fact { index: Index(index as u64), event }, &mut ops);
                ops.take();
            }
        }
        let refused = program.refuses(intervention).map(|failure| EngineError::Invalid(failure.message));
        Ok(refused)
    }

    /// The same was done before.
    fn has(&self, intervention: &Event) -> bool {
        self.events.contains(intervention)
    }

    /// Before which event a node began, the first time.
    fn start_of(&self, node: &str) -> Option<u64> {
        let begins = |event: &Event| match event {
            Event::NodeStarted { node: key, .. } | Event::ContainerChildStarted { child: key, .. } => {
                key.as_str() == node
            }
            Event::ContainerIterationStarted { node: key, index, .. } => {
                node.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('/')) == Some(&index.to_string())
            }
            _ => false,
        };
        self.events.iter().position(begins).map(|index| index as u64)
    }
}

impl RunHandle {
    /// Where a run of a flow stands: the node, the outputs so far, and the stack of containers with the iteration and the child
    /// each is in. It is folded from the journal, wherever the run is driven, and also when it has ended.
    pub async fn position(&self) -> Result<Position, EngineError> {
        self.position_at(u64::MAX).await
    }

    /// Where a run of a flow stood after so many events of its journal.
    pub async fn position_at(&self, events: u64) -> Result<Position, EngineError> {
        let read = self.read().await?;
        let input = &read.loaded.input;
        let events = usize::try_from(events).unwrap_or(usize::MAX).min(read.events.len());
        derive(read.flow()?, &read.info, input, &read.events[..events])
            .map_err(|error| StoreError::Corrupt { what: self.run.to_string(), detail: error.to_string() }.into())
    }

    /// Lets a flow go on without a node, which is named by its key, such as `ok` or `lines/47/label`. What the node waits for is
    /// taken back. It is recorded with the operator's name. A run that is paused does it when it goes on.
    ///
    /// ```
    /// # use outlast::Outlast;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let text = "
    /// flow: ship
    /// nodes:
    ///   - { id: ok, type: approve, title: 'Ship it?' }
    ///   - { id: sent, type: script, script: '${ok == null}' }
    /// result: '${sent}'";
    /// let engine = Outlast::memory().flow("ship.flow.yaml", text).start().await?;
    /// let run = engine.start("ship", &()).id("a").await?;
    /// # while run.status().await? != outlast::Status::Waiting { tokio::task::yield_now().await }
    /// run.skip_node("ok").by("ann").reason("everybody is away").await?;
    /// assert!(run.result::<bool>().await?);
    /// engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn skip_node(&self, node: &str) -> Intervene<'_> {
        self.intervene(node, true)
    }

    /// Has a flow's node begin again that is under way, with a key of its own: `ok#2`. What it waits for is taken back first.
    pub fn retry_node(&self, node: &str) -> Intervene<'_> {
        self.intervene(node, false)
    }

    fn intervene(&self, node: &str, skips: bool) -> Intervene<'_> {
        Intervene { handle: self, node: node.to_owned(), skips, by: None, reason: None, id: None }
    }

    /// A fork that begins where a node began, or an iteration (`lines/47`): as [`RunHandle::fork`], at the event before it.
    pub async fn fork_at_node(&self, node: &str) -> Result<Fork<'_>, EngineError> {
        let read = self.read().await?;
        read.flow()?;
        let at = read.start_of(node).ok_or_else(|| {
            EngineError::Invalid(format!("{} has not come to {node:?}; fork it at a node that began", self.run))
        })?;
        Ok(self.fork(at))
    }

    /// The flow and the journal of the run.
    async fn read(&self) -> Result<Read, EngineError> {
        let inner = &self.engine.inner;
        let store = inner.store()?;
        let RunView { workflow, version, .. } = self.view().await?;
        if !inner.registry.knows(&workflow, &version) {
            inner.registry.learn(&*store).await?;
        }
        let unknown = || EngineError::VersionMismatch { workflow: workflow.to_string(), version: version.to_string() };
        let definition = inner.registry.definition(&workflow, &version).ok_or_else(unknown)?;
        let load = Load { run: self.run.clone(), from: LoadFrom::Index(Index(0)) };
        let loaded = store.load(vec![load]).await.pop().ok_or_else(|| StoreError::NotFound(self.run.clone()))??;
        let events = loaded.events.iter().map(Event::decode).collect::<Result<_, _>>();
        let events = events.map_err(|error| EngineError::Codec(format!("{}: {error}", self.run)))?;
        let (settings, owner, generation) = (Arc::clone(&inner.settings), self.run.clone(), loaded.generation);
        let info = RunInfo {
            run_id: self.run.id.to_string(),
            workflow: workflow.to_string(),
            tokens: Arc::new(move |key: &Key| (settings.token)(&owner, generation, key)),
        };
        Ok(Read { definition, info, loaded, events })
    }
}

/// Something an operator is about to do to a flow's node. Await it to do it: when that returns, it is durable.
#[must_use = "nothing is done to the node until this is awaited"]
pub struct Intervene<'h> {
    handle: &'h RunHandle,
    node: String,
    skips: bool,
    by: Option<String>,
    reason: Option<String>,
    id: Option<String>,
}

impl<'h> Intervene<'h> {
    /// Who does it; `operator` if nobody says so.
    pub fn by(mut self, by: &str) -> Intervene<'h> {
        self.by = Some(by.to_owned());
        self
    }

    /// Why.
    pub fn reason(mut self, reason: &str) -> Intervene<'h> {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Names it; a new unique id if nobody says otherwise. The same id is applied once for the life of the run, so that a
    /// request can be repeated until it is acknowledged: again it is [`Delivered::Duplicate`].
    pub fn id(mut self, id: &str) -> Intervene<'h> {
        self.id = Some(id.to_owned());
        self
    }

    async fn send(self) -> Result<Delivered, EngineError> {
        let Intervene { handle, node, skips, by, reason, id } = self;
        let (node, by) = (Key::new(node)?, by.unwrap_or_else(|| SOMEBODY.to_owned()));
        let intervention = match skips {
            true => Intervention::Skip { node, by, reason },
            false => Intervention::Retry { node, by, reason },
        };
        let event = intervention.clone().event();
        let read = handle.read().await?;
        let refusal = read.refusal(&event)?;
        // If it was done before, this may be the same request once more.
        let may_repeat = id.is_some() && read.has(&event);
        if let Some(refusal) = refusal.as_ref().filter(|_| !may_repeat) {
            return Err(refusal.clone());
        }
        let letter = Letter { id, ..handle.letter("a request") };
        match (letter.send(Message::Intervene(intervention)).await?, refusal) {
            (Delivered::Delivered | Delivered::Buffered, Some(refusal)) => Err(refusal),
            (delivered, _) => Ok(delivered),
        }
    }
}

impl<'h> IntoFuture for Intervene<'h> {
    type Output = Result<Delivered, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'h>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
