//! The live program of a workflow written as a flow.

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Index, Key};
use outlast_core::operation::{Operation, OperationKind, Operations, Requested};
use outlast_core::planted;
use outlast_core::program::{Input, Program, Progress};
use outlast_script::RunInfo;
use serde_json::Value as Json;

use crate::decide::operation_key;
use crate::fold::Care;
use crate::limits::FlowLimits;
use crate::load::Flow;
use crate::model::{Body, Node, NodeKind};
use crate::position::{Pause, Position};
use crate::snapshot::{self, SnapshotError};
use crate::state::{Block, Role, Saved, Slot, State};
use crate::walk::Path;

/// How a journal can come not to fit: whoever reads why a run is parked should know which it is.
const MISFIT: &str =
    "either the journal is damaged, or this is a fork whose input does not fit what it kept: fork from further back";

/// A run of a flow, as the driver sees it: facts in, requests out.
///
/// Its own marks are facts too: it asks for one at a time with [`Operation::Mark`], and goes on when that comes back with
/// its index. So its state is a fold of the journal and of nothing else.
pub struct FlowProgram {
    state: State,
    /// Until it is started.
    input: Option<Bytes>,
    /// The index after that of the last fact.
    next: Index,
    unsound: Option<String>,
}

/// A step that whoever drives the flow has to run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCall {
    /// Its name.
    pub name: Arc<str>,
    /// What it is given.
    pub input: Arc<Json>,
}

impl Flow {
    /// A run of the flow that was told nothing yet.
    pub fn program(&self, info: RunInfo, input: Bytes, limits: FlowLimits) -> FlowProgram {
        let state = State::new(self.clone(), info, Arc::new(Json::Null), limits);
        FlowProgram { state, input: Some(input), next: Index(0), unsound: None }
    }

    /// A run that goes on from a snapshot, with the input it began with. If that cannot be used, the run is to be rebuilt from its journal.
    pub fn restore(
        &self,
        info: RunInfo,
        input: &[u8],
        limits: FlowLimits,
        snapshot: &Snapshot,
    ) -> Result<FlowProgram, SnapshotError> {
        if snapshot.definition != self.version() {
            return Err(SnapshotError::OtherFlow);
        }
        let mut saved = snapshot::load(self, &snapshot.data)?;
        if planted!("iteration-left-out") {
            leave_out(&mut saved.top);
        }
        let input = serde_json::from_slice(input).map_err(|error| SnapshotError::Damaged(error.to_string()))?;
        let mut state = State::restored(self.clone(), info, Arc::new(input), saved, limits);
        // Nothing records that a step began: whoever drives the flow must be told again.
        if !planted!("open-step-forgotten") {
            again(&self.inner.body, &state.saved.top, &mut state.starts);
        }
        Ok(FlowProgram { state, input: None, next: snapshot.index, unsound: None })
    }
}

/// What a planted bug does: the next iteration of every container that is open is left out.
fn leave_out(block: &mut Block) {
    let containers = block.slots.iter_mut().filter_map(|slot| match slot {
        Slot::Running(entry) => entry.container.as_mut(),
        _ => None,
    });
    containers.for_each(|container| container.next = container.next.saturating_add(1));
}

impl FlowProgram {
    /// Where the run stands.
    pub fn position(&self) -> Position {
        Position::of(&self.state, Pause::default())
    }

    /// The operations that are started and not settled, in the order of the nodes, and whether each is awaited. A restored
    /// program does not start them again, except for steps, which nothing else records.
    pub fn open_operations(&self) -> impl Iterator<Item = (Key, OperationKind, bool)> {
        let mut open = Vec::new();
        gather(&self.state.saved.top, &mut open);
        open.into_iter()
    }

    /// What to run for a step, while it is open.
    pub fn step(&self, key: &Key) -> Option<StepCall> {
        let body = &self.state.flow.inner.body;
        let NodeKind::Step(step) = &node_of(body, key)?.kind else { return None };
        let Slot::Running(entry) = slot_of(body, &self.state.saved, key)? else { return None };
        (entry.key == *key).then(|| StepCall { name: Arc::clone(&step.name), input: Arc::clone(&entry.input) })
    }

    fn start(&mut self) {
        let Some(input) = self.input.take() else { return };
        match serde_json::from_slice(&input) {
            Ok(input) => {
                self.state.input = Arc::new(input);
                self.state.start();
            }
            Err(problem) => {
                let message = format!("the input of the run is not JSON: {problem}");
                self.state.end = Some(Err(Failure::new(code::VALIDATION_ERROR, message).permanent()));
            }
        }
    }

    /// Hands out what was decided.
    fn request(&mut self, ops: &mut Operations) {
        for requested in self.state.starts.drain(..) {
            let started = requested.operation.starts().and(requested.operation.key().cloned());
            ops.request(requested.operation, requested.location);
            if let Some(key) = started {
                ops.request(Operation::Await { key }, None);
            }
        }
        // In a replay the mark is most often what comes next.
        if !ops.is_replay()
            && std::mem::take(&mut self.state.is_fresh)
            && let Some(mark) = &self.state.mark
        {
            let event = Box::new(mark.event());
            ops.request(Operation::Mark { event }, None);
        }
    }

    fn progress(&self) -> Progress {
        match (&self.unsound, &self.state.end) {
            (Some(message), _) => Progress::Unsound(message.clone()),
            (None, Some(Ok(output))) => Progress::Finished(output.clone()),
            (None, Some(Err(failure))) => Progress::Failed(failure.clone()),
            (None, None) => Progress::Blocked,
        }
    }
}

impl Program for FlowProgram {
    fn resume(&mut self, input: Input<'_>, ops: &mut Operations) -> Progress {
        if self.unsound.is_some() || self.state.end.is_some() {
            return self.progress();
        }
        match input {
            Input::Start => self.start(),
            Input::Fact { index, event } => {
                self.next = Index(index.0 + 1);
                if let Err(error) = self.state.apply(index, event, Care::Lenient) {
                    self.unsound = Some(format!("{error}; {MISFIT}"));
                }
            }
            // Whoever drives the flow runs its steps.
            Input::Execute { .. } | Input::Poll => {}
        }
        self.request(ops);
        self.progress()
    }

    fn snapshot(&self) -> Option<Snapshot> {
        // A mark that is under way is in no journal: whoever goes on would have to know that it was asked for.
        let is_settled = self.input.is_none() && self.unsound.is_none() && self.state.end.is_none();
        if !is_settled || self.state.mark.is_some() {
            return None;
        }
        let data = snapshot::save(&self.state.saved)?;
        (data.len() <= self.state.limits.snapshot_bytes).then(|| Snapshot {
            index: self.next,
            definition: self.state.flow.version().to_owned(),
            data: data.into(),
        })
    }

    /// Nodes that have not begun can be skipped, too.
    fn refuses(&self, event: &Event) -> Option<Failure> {
        let (body, saved) = (&self.state.flow.inner.body, &self.state.saved);
        let status = event.key().and_then(|key| slot_of(body, saved, key));
        let refuse = |message: String| Some(Failure::new(code::VALIDATION_ERROR, message).permanent());
        let name = event.key().map_or("?", Key::as_str);
        if event.key().is_some_and(|key| is_past(body, saved, key)) {
            return refuse(format!("`{name}` is over"));
        }
        match (event, status) {
            (Event::NodeSkipped { node, .. } | Event::NodeRetried { node, .. }, Some(Slot::Running(entry))) => {
                if entry.key == *node { None } else { refuse(format!("`{name}` is now `{}`", entry.key)) }
            }
            (Event::NodeSkipped { .. }, Some(Slot::Waiting)) => None,
            (Event::NodeRetried { .. }, Some(Slot::Waiting)) => refuse(format!("`{name}` has not begun")),
            (_, Some(Slot::Done { .. } | Slot::Failed | Slot::Skipped | Slot::Waived)) => {
                refuse(format!("`{name}` is over"))
            }
            (_, Some(_)) => refuse("only nodes can be skipped or begin again".to_owned()),
            (_, None) => refuse(format!("there is no node `{name}` that is open or comes next")),
        }
    }

    fn pauses_after_tasks(&self) -> bool {
        true
    }

    fn misfit(&self, key: &Key, payload: &[u8]) -> Option<Failure> {
        let NodeKind::Wait(wait) = &node_of(&self.state.flow.inner.body, key)?.kind else { return None };
        let schema = wait.schema.as_ref()?;
        match serde_json::from_slice(payload) {
            Ok(value) => schema.misfit(&format!("the signal {}", wait.signal), &value),
            Err(problem) => {
                let message = format!("the signal {} is not JSON: {problem}", wait.signal);
                Some(Failure::new(code::VALIDATION_ERROR, message).permanent())
            }
        }
    }
}

impl std::fmt::Debug for FlowProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowProgram")
            .field("flow", &self.state.flow.name())
            .field("next", &self.next)
            .field("end", &self.state.end)
            .finish()
    }
}

/// The node a key is about, whether it is open or not.
fn node_of<'f>(body: &'f Body, key: &Key) -> Option<&'f Node> {
    let path = Path::parse(key).filter(|path| path.role == Role::Main)?;
    let mut node = &body.nodes[body.place(path.first.id)?];
    for (index, step) in path.inner {
        let NodeKind::Container(container) = &node.kind else { return None };
        let body = container.body(index)?;
        node = &body.nodes[body.place(step.id)?];
    }
    Some(node)
}

/// Whether a key is about a pass that is over.
fn is_past(body: &Body, saved: &Saved, key: &Key) -> bool {
    let place = Path::parse(key).and_then(|path| Some((path.pass, body.place(path.first.id)?)));
    place.is_some_and(|(pass, place)| pass < saved.pass_of(place))
}

/// Where the node of a key stands, if what is around it is open.
fn slot_of<'s>(mut body: &Body, saved: &'s Saved, key: &Key) -> Option<&'s Slot> {
    let path = Path::parse(key).filter(|path| path.role == Role::Main)?;
    let mut place = body.place(path.first.id)?;
    let mut slot = saved.top.slots.get(place).filter(|_| path.pass == saved.pass_of(place))?;
    for (index, step) in path.inner {
        let (NodeKind::Container(container), Slot::Running(entry)) = (&body.nodes[place].kind, slot) else {
            return None;
        };
        body = container.body(index)?;
        place = body.place(step.id)?;
        slot = entry.container.as_ref()?.active.get(&index)?.slots.get(place)?;
    }
    Some(slot)
}

fn gather(block: &Block, open: &mut Vec<(Key, OperationKind, bool)>) {
    for slot in &block.slots {
        let Slot::Running(entry) = slot else { continue };
        for operation in &entry.operations {
            open.extend(operation_key(&entry.key, operation.role).ok().map(|key| (key, operation.kind, true)));
        }
        for block in entry.container.iter().flat_map(|container| container.active.values()) {
            gather(block, open);
        }
    }
}

/// Asks for the steps that are open.
fn again(body: &Body, block: &Block, starts: &mut Vec<Requested>) {
    for (node, slot) in body.nodes.iter().zip(&block.slots) {
        let Slot::Running(entry) = slot else { continue };
        let is_open = entry.operations.iter().any(|open| open.role == Role::Main);
        if let NodeKind::Step(step) = &node.kind
            && is_open
        {
            let operation = step.start(entry.key.clone());
            starts.push(Requested { operation, location: Some(node.location.clone()) });
        }
        if let (NodeKind::Container(at), Some(container)) = (&node.kind, &entry.container) {
            for (index, block) in &container.active {
                if let Some(body) = at.body(*index) {
                    again(body, block, starts);
                }
            }
        }
    }
}
