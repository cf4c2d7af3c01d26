//! A flow as it was checked: what the interpreter walks over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::event::ClosePolicy;
use outlast_core::id::{QueueName, SignalName, TaskName, Version, WorkflowName};
use outlast_core::operation::Location;
use outlast_core::retry::Retry;

use crate::schema::Schema;
use crate::template::Template;

/// So many nodes are looked through faster than they are looked up.
const NODES_FEW: usize = 8;

/// A list of nodes: the flow's own, or a container's. The flow's own are in topological order.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) nodes: Vec<Node>,
    places: BTreeMap<Arc<str>, usize>,
}

impl Body {
    pub(crate) fn new(nodes: Vec<Node>) -> Body {
        let places = nodes.iter().enumerate().map(|(place, node)| (Arc::clone(&node.id), place)).collect();
        Body { nodes, places }
    }

    /// Its nodes, and those in them.
    pub(crate) fn all(&self) -> Vec<&Node> {
        let mut found: Vec<&Node> = self.nodes.iter().collect();
        let mut at = 0;
        while let Some(&node) = found.get(at) {
            if let NodeKind::Container(container) = &node.kind {
                found.extend(container.bodies.iter().flat_map(|body| &body.nodes));
            }
            at += 1;
        }
        found
    }

    /// The place of a node among its siblings.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        if self.nodes.len() > NODES_FEW {
            return self.places.get(id).copied();
        }
        let begins = id.as_bytes().first();
        self.nodes.iter().position(|node| node.id.as_bytes().first() == begins && *node.id == *id)
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: Arc<str>,
    pub(crate) kind: NodeKind,
    /// It runs only if this holds.
    pub(crate) when: Option<Template>,
    pub(crate) on_error: OnError,
    /// The form of its output.
    pub(crate) output: Option<Schema>,
    /// How long it may take in all; tasks, steps and waits have limits of their own kind instead.
    pub(crate) timeout: Option<Duration>,
    pub(crate) location: Location,
}

/// What becomes of a flow when a node fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnError {
    /// What is around it fails too.
    Fail,
    /// The next node runs.
    Continue,
    /// The sibling at this place runs next.
    Goto(usize),
}

#[derive(Debug)]
pub(crate) enum NodeKind {
    Task(Box<TaskNode>),
    Step(Box<StepNode>),
    Script(Template),
    Sleep(Sleep),
    Wait(Box<WaitNode>),
    Approve(Box<ApproveNode>),
    Callback(Box<CallbackNode>),
    Workflow(Box<WorkflowNode>),
    Container(Box<ContainerNode>),
}

impl NodeKind {
    /// The word in the file.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            NodeKind::Task(_) => "task",
            NodeKind::Step(_) => "step",
            NodeKind::Script(_) => "script",
            NodeKind::Sleep(_) => "sleep",
            NodeKind::Wait(_) => "wait",
            NodeKind::Approve(_) => "approve",
            NodeKind::Callback(_) => "callback",
            NodeKind::Workflow(_) => "workflow",
            NodeKind::Container(container) => match container.rule {
                Rule::If { .. } => "if",
                Rule::Switch { .. } => "switch",
                Rule::Foreach { .. } => "foreach",
                Rule::Loop { .. } => "loop",
                Rule::Parallel => "parallel",
            },
        }
    }
}

#[derive(Debug)]
pub(crate) struct TaskNode {
    pub(crate) name: TaskName,
    pub(crate) with: Template,
    pub(crate) queue: QueueName,
    pub(crate) priority: i16,
    pub(crate) retry: Retry,
    pub(crate) timeout: Option<Duration>,
    pub(crate) heartbeat: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct StepNode {
    pub(crate) name: Arc<str>,
    pub(crate) with: Template,
    pub(crate) at_most_once: bool,
    pub(crate) retry: Retry,
    pub(crate) timeout: Option<Duration>,
    pub(crate) heartbeat: Option<Duration>,
}

#[derive(Debug)]
pub(crate) enum Sleep {
    /// A duration, or an expression for one.
    For(Template),
    /// An instant in milliseconds.
    Until(Template),
}

#[derive(Debug)]
pub(crate) struct WaitNode {
    pub(crate) signal: SignalName,
    pub(crate) timeout: Option<Duration>,
    pub(crate) schema: Option<Schema>,
}

#[derive(Debug)]
pub(crate) struct ApproveNode {
    pub(crate) title: Template,
    pub(crate) assignee: Option<Template>,
    pub(crate) timeout: Option<Duration>,
    /// Whether a refusal is an output, and not a failure.
    pub(crate) continues_when_rejected: bool,
}

#[derive(Debug)]
pub(crate) struct CallbackNode {
    /// Who is told the token.
    pub(crate) submit: Option<TaskNode>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) heartbeat: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct WorkflowNode {
    pub(crate) workflow: WorkflowName,
    pub(crate) version: Option<Version>,
    pub(crate) with: Template,
    pub(crate) on_close: ClosePolicy,
}

/// A node with nodes in it. What it runs is a row of iterations, each of one of its bodies.
#[derive(Debug)]
pub(crate) struct ContainerNode {
    pub(crate) rule: Rule,
    /// One, or one for each branch.
    pub(crate) bodies: Vec<Body>,
    /// The names of the branches; for one body without a name none.
    pub(crate) branches: Vec<Arc<str>>,
    pub(crate) collect: Collect,
    /// How many iterations may run at once.
    pub(crate) concurrency: u32,
}

#[derive(Debug)]
pub(crate) enum Rule {
    If { condition: Template },
    Switch { on: Template, cases: Vec<serde_json::Value>, has_default: bool },
    Foreach { items: Template, name: Arc<str> },
    Loop { condition: Option<Template>, until: Option<Template>, max: u32 },
    Parallel,
}

/// Which iterations' outputs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collect {
    None,
    Last,
    All,
}

/// An edge that only orders, or that lets its target run.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) when: Option<Template>,
}

/// An edge that goes back.
#[derive(Debug)]
pub(crate) struct LoopEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) max: u32,
    pub(crate) when: Option<Template>,
}
