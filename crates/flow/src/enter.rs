//! Beginning a node: what it asks for, and what it goes over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::failure::{Failure, code};
use outlast_core::id::Key;
use outlast_core::limits::within;
use outlast_core::operation::{Due, Operation, OperationKind, Requested};
use outlast_core::time::Timestamp;
use outlast_script::parse_duration;
use serde_json::Value as Json;

use crate::items::Items;
use crate::limits::VALUE_DEPTH_MAX;
use crate::model::{ContainerNode, Edge, Node, NodeKind, OnError, Rule, Sleep, StepNode, TaskNode};
use crate::scope::Scope;
use crate::state::{Container, Entry, Open, Outcome, Role, Slot};

/// Where what is asked for goes.
pub(crate) struct Asking<'s> {
    pub(crate) starts: &'s mut Vec<Requested>,
    /// Why it cannot be found out whether a node runs that begins.
    pub(crate) doubt: &'s mut Option<Failure>,
    pub(crate) payload_bytes: usize,
}

impl Asking<'_> {
    /// A value as bytes, if it is not too large.
    pub(crate) fn payload(&self, what: &'static str, value: &Json) -> Result<Bytes, Failure> {
        // Whoever reads it back could not.
        within(what, depth(value), VALUE_DEPTH_MAX, "levels deep")
            .map_err(|error| Failure::new(code::LIMIT_EXCEEDED, error.to_string()).permanent())?;
        let bytes = Bytes::from(value.to_string());
        within(what, bytes.len(), self.payload_bytes, "bytes")
            .map_err(|error| Failure::new(code::LIMIT_EXCEEDED, error.to_string()).permanent())?;
        Ok(bytes)
    }

    pub(crate) fn cancel(&mut self, key: Key) {
        self.starts.push(Requested { operation: Operation::Cancel { key }, location: None });
    }
}

/// Levels of lists and objects in a value.
fn depth(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => 0,
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
    }
}

/// Whether a node runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Runs,
    NoEdge,
    NoCondition,
}

impl Admission {
    /// Why it does not; none if it does.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Admission::Runs => None,
            Admission::NoEdge => Some("no edge to it was taken"),
            Admission::NoCondition => Some("its condition does not hold"),
        }
    }
}

/// Whether a node runs: one of the edges that lead to it is taken, and its own condition holds.
pub(crate) fn admits(
    scope: &Scope<'_>,
    node: &Node,
    edges: &[Edge],
    is_taken: impl Fn(usize) -> bool,
) -> Result<Admission, Failure> {
    let mut taken = edges.is_empty();
    for edge in edges.iter().filter(|edge| is_taken(edge.from)) {
        taken = taken || edge.when.as_ref().map_or(Ok(true), |when| scope.holds(when))?;
    }
    if !taken {
        return Ok(Admission::NoEdge);
    }
    let holds = node.when.as_ref().map_or(Ok(true), |when| scope.holds(when))?;
    Ok(if holds { Admission::Runs } else { Admission::NoCondition })
}

/// Whether edges from a node may be taken: it came to something. A failure that leads elsewhere takes none of them.
pub(crate) fn came_to_something(node: &Node, slot: &Slot) -> bool {
    match slot {
        Slot::Done { .. } | Slot::Waived => true,
        Slot::Failed => !matches!(node.on_error, OnError::Goto(_)),
        Slot::Waiting | Slot::Running(_) | Slot::Skipped => false,
    }
}

/// What a node is given: shown with its beginning.
pub(crate) fn input_of(scope: &Scope<'_>, node: &Node) -> Option<Arc<Json>> {
    let template = match &node.kind {
        NodeKind::Task(task) => &task.with,
        NodeKind::Step(step) => &step.with,
        NodeKind::Workflow(workflow) => &workflow.with,
        NodeKind::Script(_)
        | NodeKind::Sleep(_)
        | NodeKind::Wait(_)
        | NodeKind::Approve(_)
        | NodeKind::Callback(_)
        | NodeKind::Container(_) => return None,
    };
    scope.evaluate(template).ok()
}

/// A node begins. `given` is its input, where that is recorded.
pub(crate) fn enter(
    scope: &Scope<'_>,
    node: &Node,
    key: Key,
    attempt: u32,
    given: Option<Arc<Json>>,
    asking: &mut Asking<'_>,
) -> Entry {
    let mut entry = Entry::new(key, attempt);
    let before = asking.starts.len();
    let begun = begin(scope, node, &mut entry, given, asking).and_then(|()| limit(node, &mut entry, asking));
    if let Err(failure) = begun {
        asking.starts.truncate(before);
        entry.operations.clear();
        entry.container = None;
        entry.outcome = Some(Outcome::Failed(failure));
    }
    entry
}

fn key_of(entry: &Entry, role: Role) -> Result<Key, Failure> {
    let text = format!("{}{}", entry.key, role.suffix());
    Key::new(text).map_err(|error| Failure::new(code::LIMIT_EXCEEDED, error.to_string()).permanent())
}

fn ask(node: &Node, entry: &mut Entry, role: Role, kind: OperationKind, operation: Operation, asking: &mut Asking<'_>) {
    entry.operations.push(Open { role, kind });
    asking.starts.push(Requested { operation, location: Some(node.location.clone()) });
}

/// The time the whole node may take.
fn limit(node: &Node, entry: &mut Entry, asking: &mut Asking<'_>) -> Result<(), Failure> {
    let Some(timeout) = node.timeout else { return Ok(()) };
    let key = key_of(entry, Role::Timeout)?;
    let operation = Operation::StartTimer { key, due: Due::After(timeout) };
    ask(node, entry, Role::Timeout, OperationKind::Timer, operation, asking);
    Ok(())
}

fn begin(
    scope: &Scope<'_>,
    node: &Node,
    entry: &mut Entry,
    given: Option<Arc<Json>>,
    asking: &mut Asking<'_>,
) -> Result<(), Failure> {
    let key = entry.key.clone();
    let deadline = |timeout: Option<Duration>| timeout.map(Due::After);
    let (kind, operation) = match &node.kind {
        NodeKind::Task(task) => {
            let args = given.map_or_else(|| scope.evaluate(&task.with), Ok)?;
            (OperationKind::Task, schedule(task, key, asking.payload("the input of a task", &args)?))
        }
        NodeKind::Step(step) => {
            let input = given.map_or_else(|| scope.evaluate(&step.with), Ok)?;
            entry.input = input;
            (OperationKind::Step, step.start(key))
        }
        NodeKind::Script(value) => {
            let value = scope.evaluate(value)?;
            entry.outcome = Some(Outcome::Output { value, at: None });
            return Ok(());
        }
        NodeKind::Sleep(sleep) => (OperationKind::Timer, Operation::StartTimer { key, due: due(scope, sleep)? }),
        NodeKind::Wait(wait) => {
            let (name, schema) = (wait.signal.clone(), wait.schema.as_ref().map(|schema| schema.text.clone()));
            let deadline = deadline(wait.timeout);
            (OperationKind::Signal, Operation::AwaitSignal { key, name, deadline, schema })
        }
        NodeKind::Approve(approve) => {
            let title = scope.text(&approve.title)?;
            let assignee = approve.assignee.as_ref().map(|assignee| scope.text(assignee)).transpose()?;
            let deadline = deadline(approve.timeout);
            (OperationKind::Approval, Operation::RequestApproval { key, title, assignee, deadline })
        }
        NodeKind::Callback(callback) => {
            let create = Operation::CreateCallback {
                key: key.clone(),
                deadline: deadline(callback.timeout),
                heartbeat: callback.heartbeat,
            };
            ask(node, entry, Role::Main, OperationKind::Callback, create, asking);
            let Some(task) = &callback.submit else { return Ok(()) };
            let args = scope.evaluate_with_token(&task.with, &key)?;
            let args = asking.payload("the input of a task", &args)?;
            let operation = schedule(task, key_of(entry, Role::Submit)?, args);
            ask(node, entry, Role::Submit, OperationKind::Task, operation, asking);
            return Ok(());
        }
        NodeKind::Workflow(child) => {
            let input = given.map_or_else(|| scope.evaluate(&child.with), Ok)?;
            let start = Operation::StartChild {
                key,
                child: None,
                workflow: child.workflow.clone(),
                version: child.version.clone(),
                input: asking.payload("the input of a workflow", &input)?,
                detached: false,
                on_close: child.on_close,
            };
            (OperationKind::Child, start)
        }
        NodeKind::Container(container) => {
            entry.container = Some(Box::new(open(scope, container)?));
            return Ok(());
        }
    };
    ask(node, entry, Role::Main, kind, operation, asking);
    Ok(())
}

impl StepNode {
    /// The request to begin it.
    pub(crate) fn start(&self, key: Key) -> Operation {
        let (at_most_once, retry, timeout, heartbeat) = (self.at_most_once, self.retry, self.timeout, self.heartbeat);
        Operation::StartStep { key, at_most_once, retry, timeout, heartbeat }
    }
}

fn schedule(task: &TaskNode, key: Key, args: Bytes) -> Operation {
    Operation::ScheduleTask {
        key,
        name: task.name.clone(),
        queue: task.queue.clone(),
        priority: task.priority,
        args,
        retry: task.retry,
        timeout: task.timeout,
        heartbeat: task.heartbeat,
        begin: None,
        detached: false,
    }
}

fn due(scope: &Scope<'_>, sleep: &Sleep) -> Result<Due, Failure> {
    let wrong =
        |what: &str, value: &Json| Failure::new(code::VALIDATION_ERROR, format!("{what}, found {value}")).permanent();
    match sleep {
        Sleep::For(template) => {
            let value = scope.evaluate(template)?;
            let duration = match &*value {
                Json::String(text) => parse_duration(text),
                Json::Number(seconds) => parse_duration(&seconds.to_string()),
                Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
            };
            duration.map(Due::After).ok_or_else(|| wrong("expected a duration, such as \"10s\"", &value))
        }
        Sleep::Until(template) => {
            let value = scope.evaluate(template)?;
            let millis = value.as_i64().or_else(|| value.as_f64().map(|millis| millis as i64));
            let instant = millis.map(|millis| Due::At(Timestamp::from_millis(millis)));
            instant.ok_or_else(|| wrong("expected an instant in milliseconds", &value))
        }
    }
}

/// What a container goes over is found out once, when it begins.
fn open(scope: &Scope<'_>, node: &ContainerNode) -> Result<Container, Failure> {
    let repeats = matches!(node.rule, Rule::Foreach { .. } | Rule::Loop { .. });
    let mut container = Container { repeats, ..Container::default() };
    match &node.rule {
        Rule::If { condition } => {
            let chosen = if scope.holds(condition)? { 0 } else { 1 };
            choose(&mut container, node, Some(chosen));
        }
        Rule::Switch { on, cases, has_default } => {
            let value = scope.evaluate(on)?;
            let found = cases.iter().position(|case| same(case, &value));
            choose(&mut container, node, found.or(has_default.then_some(cases.len())));
        }
        Rule::Foreach { items, .. } => {
            let value = scope.evaluate(items)?;
            let Json::Array(list) = Arc::unwrap_or_clone(value) else {
                let message = "what a foreach goes over must be a list";
                return Err(Failure::new(code::VALIDATION_ERROR, message).permanent());
            };
            container.items = Items::new(list);
            let total = u32::try_from(container.items.len()).map_err(|_| {
                Failure::new(code::LIMIT_EXCEEDED, "a foreach goes over at most 4294967295 items").permanent()
            })?;
            container.total = Some(total);
        }
        Rule::Loop { .. } => container.previous = vec![None; node.bodies[0].nodes.len()],
        Rule::Parallel => container.total = u32::try_from(node.bodies.len()).ok(),
    }
    Ok(container)
}

fn choose(container: &mut Container, node: &ContainerNode, chosen: Option<usize>) {
    let chosen = chosen.filter(|chosen| *chosen < node.bodies.len());
    container.total = Some(u32::from(chosen.is_some()));
    container.next = chosen.and_then(|chosen| u32::try_from(chosen).ok()).unwrap_or_default();
    container.is_exhausted = chosen.is_none();
}

/// Numbers are the same if they are equal, however they are written.
fn same(case: &Json, value: &Json) -> bool {
    match (case, value) {
        (Json::Number(case), Json::Number(value)) => case.as_f64() == value.as_f64(),
        (case, value) => case == value,
    }
}
