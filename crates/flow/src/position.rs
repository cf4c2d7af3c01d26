//! Where a run stands, for people and tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_core::event::Event;
use outlast_core::id::Index;
use outlast_core::operation::{Operation, OperationKind};
use outlast_script::RunInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::fold::{Care, DeriveError};
use crate::left::Left;
use crate::limits::FlowLimits;
use crate::load::Flow;
use crate::model::{Body, ContainerNode, NodeKind, Rule};
use crate::state::{Block, Container, Entry, Kept, Slot, State};

/// Where a run of a flow stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The run.
    pub run: String,
    /// The flow.
    pub flow: String,
    /// The flow's own node that runs, or comes next; none at the end.
    pub current_node: Option<String>,
    /// Its place in the order of nodes, from 0; the number of nodes at the end.
    pub current_node_index: usize,
    /// The pass that loop edges opened, from 1.
    pub pass: u32,
    /// The outputs of the flow's own nodes.
    pub outputs: BTreeMap<String, Json>,
    /// What operators said when they let the run go on, and nothing has begun since.
    pub pending_messages: Vec<Json>,
    /// Where in the journal the run was paused, while it is.
    pub paused_at: Option<Index>,
    /// Why it was paused.
    pub pause_reason: Option<String>,
    /// The containers that are open, the outermost first; empty between the flow's own nodes. Where several iterations run
    /// at once it is the way to the lowest.
    pub container_stack: Vec<ContainerFrame>,
    /// How every node stands; for those inside of containers in the lowest iteration that runs, or in the last one.
    pub nodes: BTreeMap<String, NodeStatus>,
    /// What was decided and is not in the journal yet.
    #[serde(skip)]
    decided: Vec<Operation>,
}

/// How a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    /// Its turn has not come.
    Pending,
    /// Something is being done for it.
    Running,
    /// It waits for somebody, or for a time.
    Waiting,
    /// It has an output.
    Done,
    /// It failed.
    Failed,
    /// It was passed, or taken back.
    Skipped,
}

/// One entry of one container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerFrame {
    /// The container's id.
    pub node: String,
    /// Its key, which the keys of its children begin with.
    pub key: String,
    /// The iteration that runs or comes next, from 0; for a choice the branch.
    pub iteration_index: u32,
    /// How many iterations there will be, where that is known.
    pub total_iterations: Option<u32>,
    /// What the iteration is about.
    pub current_item: Option<Json>,
    /// The child that runs or comes next, from 0.
    pub child_index: usize,
    /// Those that are over and were kept.
    pub completed_iterations: Vec<Json>,
    /// How many are over.
    pub completed_count: u32,
    /// What the children of the iteration came to so far.
    pub partial_child_outputs: BTreeMap<String, Json>,
    /// All iterations that run.
    pub active: Vec<u32>,
}

/// Whether an operator holds the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pause {
    at: Option<Index>,
    reason: Option<String>,
}

/// Folds a journal into the position it came to.
///
/// The events are those of one generation, from index 0 on. An event that cannot be there is an error that names it.
///
/// ```
/// # use std::sync::Arc;
/// use outlast_core::event::Event;
/// use outlast_core::id::Key;
/// use outlast_flow::{Flow, decide, derive};
/// # let info = outlast_script::RunInfo { run_id: "r".into(), workflow: "nap".into(), tokens: Arc::new(|_| String::new()) };
///
/// let flow = Flow::parse("nap.flow.yaml", "flow: nap\nnodes: [{ id: rest, type: sleep, for: 1m }]")?;
/// let started = Event::NodeStarted { node: Key::new("rest")?, index: 0, input: None };
/// let position = derive(&flow, &info, b"null", [&started])?;
/// assert_eq!(position.current_node.as_deref(), Some("rest"));
/// assert_eq!(decide(&position)[0].key().map(Key::as_str), Some("rest")); // the sleep is to be started
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn derive<'e>(
    flow: &Flow,
    info: &RunInfo,
    input: &[u8],
    events: impl IntoIterator<Item = &'e Event>,
) -> Result<Position, DeriveError> {
    let input = serde_json::from_slice(input).unwrap_or_default();
    let mut state = State::new(flow.clone(), info.clone(), Arc::new(input), FlowLimits::default());
    state.start();
    let mut pause = Pause::default();
    for (index, event) in events.into_iter().enumerate() {
        let index = Index(index as u64);
        if let Event::RunPaused { reason, .. } = event {
            pause = Pause { at: Some(index), reason: reason.clone() };
        } else if let Event::RunResumed { .. } | Event::CancelRequested { .. } = event {
            pause = Pause::default();
        }
        state.apply(index, event, Care::Strict)?;
    }
    Ok(Position::of(&state, pause))
}

/// What a run at a position asks for: at most one mark, and the operations that are not in its journal yet.
pub fn decide(position: &Position) -> Vec<Operation> {
    position.decided.clone()
}

impl Position {
    pub(crate) fn of(state: &State, pause: Pause) -> Position {
        let body = &state.flow.inner.body;
        let top = &state.saved.top;
        let current = top.slots.iter().position(|slot| matches!(slot, Slot::Running(_)));
        let next = || top.slots.iter().position(|slot| !slot.is_over());
        let current = current.or_else(next);
        let mut nodes = BTreeMap::new();
        statuses(body, Seen::Open(top), &mut nodes);
        let mut container_stack = Vec::new();
        frames(body, top, &mut container_stack);
        let messages = &state.saved.messages;
        let unread = &messages[messages.len() - state.saved.unread.min(messages.len())..];
        let marks = state.mark.iter().map(|mark| Operation::Mark { event: Box::new(mark.event()) });
        let starts = state.starts.iter().map(|requested| requested.operation.clone());
        Position {
            run: state.info.run_id.clone(),
            flow: state.flow.name().to_owned(),
            current_node: current.map(|place| body.nodes[place].id.to_string()),
            current_node_index: current.unwrap_or(body.nodes.len()),
            pass: state.saved.pass,
            outputs: named(body, &top.outputs),
            pending_messages: unread.iter().map(|message| (**message).clone()).collect(),
            paused_at: pause.at,
            pause_reason: pause.reason,
            container_stack,
            nodes,
            decided: starts.chain(marks).collect(),
        }
    }
}

fn named(body: &Body, outputs: &[Option<Arc<Json>>]) -> BTreeMap<String, Json> {
    let outputs = body.nodes.iter().zip(outputs);
    outputs.filter_map(|(node, output)| Some((node.id.to_string(), (**output.as_ref()?).clone()))).collect()
}

fn frames(body: &Body, block: &Block, stack: &mut Vec<ContainerFrame>) {
    let open = body.nodes.iter().zip(&block.slots).find_map(|(node, slot)| match (&node.kind, slot) {
        (NodeKind::Container(container), Slot::Running(entry)) => {
            Some((node, container, entry, entry.container.as_ref()?))
        }
        (_, _) => None,
    });
    let Some((node, at, entry, container)) = open else { return };
    let (frame, inner) = frame(&node.id, at, entry, container);
    stack.push(frame);
    if let Some((body, block)) = inner {
        frames(body, block, stack);
    }
}

fn frame<'s>(
    id: &str,
    node: &'s ContainerNode,
    entry: &Entry,
    container: &'s Container,
) -> (ContainerFrame, Option<(&'s Body, &'s Block)>) {
    let lowest = container.active.iter().next();
    let index = lowest.map_or(container.next, |(index, _)| *index);
    let inner = lowest.and_then(|(index, block)| Some((node.body(*index)?, block)));
    let has_outputs = matches!(node.rule, Rule::Foreach { .. } | Rule::Loop { .. });
    let frame = ContainerFrame {
        node: id.to_owned(),
        key: entry.key.to_string(),
        iteration_index: index,
        total_iterations: container.total,
        current_item: container.items.get(index).map(|item| (**item).clone()),
        child_index: inner.map_or(0, |(_, block)| block.slots.iter().take_while(|slot| slot.is_over()).count()),
        completed_iterations: container.kept.values().filter(|_| has_outputs).map(Kept::value).collect(),
        completed_count: container.completed,
        partial_child_outputs: inner.map(|(body, block)| named(body, &block.outputs)).unwrap_or_default(),
        active: container.active.keys().copied().collect(),
    };
    (frame, inner)
}

/// A list of nodes, as far as it can be seen.
#[derive(Clone, Copy)]
enum Seen<'s> {
    Open(&'s Block),
    Left(&'s Left),
    Nothing,
}

impl<'s> Seen<'s> {
    fn status(self, place: usize) -> NodeStatus {
        match self {
            Seen::Open(block) => status(&block.slots[place]),
            Seen::Left(left) => left.nodes.get(place).copied().unwrap_or(NodeStatus::Pending),
            Seen::Nothing => NodeStatus::Pending,
        }
    }

    /// One of the bodies of a container: as it runs, or as it was left.
    fn inside(self, place: usize, branch: u32) -> Seen<'s> {
        let left = match self {
            Seen::Open(block) => match &block.slots[place] {
                Slot::Running(entry) => match &entry.container {
                    Some(container) => return inside(container, branch),
                    None => Some(&entry.left),
                },
                Slot::Waiting | Slot::Done { .. } | Slot::Failed | Slot::Skipped | Slot::Waived => {
                    block.left.get(&place)
                }
            },
            Seen::Left(left) => left.inner.get(&place),
            Seen::Nothing => None,
        };
        left.and_then(|bodies| bodies.get(&branch)).map_or(Seen::Nothing, Seen::Left)
    }
}

/// The lowest iteration that runs, or the last one that did.
fn inside(container: &Container, branch: u32) -> Seen<'_> {
    let open = if container.repeats { container.active.values().next() } else { container.active.get(&branch) };
    let left = || container.left.get(&branch).map_or(Seen::Nothing, Seen::Left);
    open.map_or_else(left, Seen::Open)
}

fn statuses(body: &Body, seen: Seen<'_>, nodes: &mut BTreeMap<String, NodeStatus>) {
    for (place, node) in body.nodes.iter().enumerate() {
        nodes.insert(node.id.to_string(), seen.status(place));
        let NodeKind::Container(container) = &node.kind else { continue };
        for (branch, body) in container.bodies.iter().enumerate() {
            statuses(body, seen.inside(place, u32::try_from(branch).unwrap_or(u32::MAX)), nodes);
        }
    }
}

fn status(slot: &Slot) -> NodeStatus {
    match slot {
        Slot::Waiting => NodeStatus::Pending,
        Slot::Done { .. } => NodeStatus::Done,
        Slot::Failed => NodeStatus::Failed,
        Slot::Skipped | Slot::Waived => NodeStatus::Skipped,
        Slot::Running(entry) => {
            let is_waiting = entry.operations.iter().any(|open| match open.kind {
                OperationKind::Signal | OperationKind::Approval | OperationKind::Callback => true,
                OperationKind::Timer => entry.container.is_none() && entry.operations.len() == 1,
                _ => false,
            });
            if is_waiting { NodeStatus::Waiting } else { NodeStatus::Running }
        }
    }
}
