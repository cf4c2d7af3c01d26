//! What comes next: one mark at a time, decided in the light of everything before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::Key;
use outlast_core::planted;
use serde_json::{Value as Json, json};

use crate::enter::{Admission, Asking, admits, came_to_something, input_of};
use crate::focus::{Focus, Iterations};
use crate::mark::{Child, Mark};
use crate::model::{Body, ContainerNode, Edge, Node, NodeKind, Rule};
use crate::scope::{Scope, Turn, World};
use crate::state::{Block, Container, Entry, Outcome, Role, Saved, Slot, State};
use crate::walk::turn_of;

impl State {
    /// Decides until something has to happen first. Only where the latest event is about has anything to be decided, unless
    /// more has happened since the last time.
    pub(crate) fn advance(&mut self, focus: Option<&Focus<'_>>) {
        if self.mark.is_some() {
            self.is_unseen = true;
        } else if self.end.is_none() {
            let focus = focus.filter(|_| !self.is_unseen);
            self.is_unseen |= focus.is_none();
            self.doubt = None;
            self.mark = self.next_mark(focus);
            self.is_fresh = self.mark.is_some();
            self.is_unseen &= self.mark.is_some();
        }
    }

    fn next_mark(&mut self, focus: Option<&Focus<'_>>) -> Option<Mark> {
        if let Some(edge) = self.saved.going_back {
            return self.go_back(edge).map(whole);
        }
        let inner = &self.flow.inner;
        let input = &self.input;
        let Saved { messages, top, pass, .. } = &mut self.saved;
        let world =
            World { input, messages, info: &self.info, flow: inner.name.as_str(), limits: self.limits.expression };
        if let Some((failure, at)) = top.failure.take() {
            let message = format!("{at}: {}", failure.message);
            self.end = Some(Err(Failure { message, ..failure }));
            return None;
        }
        let payload_bytes = self.limits.payload_bytes;
        let mut asking = Asking { starts: &mut self.starts, doubt: &mut self.doubt, payload_bytes };
        let list = List {
            world: &world,
            around: None,
            turn: None,
            body: &inner.body,
            edges: Some(&inner.edges),
            concurrency: inner.concurrency,
            owner: Owner::Flow { pass: *pass },
            focus: None,
            top: focus,
        };
        let next = list.next(top, &mut asking);
        if next.is_none() && top.is_over() {
            let result = finish(&world, &inner.body, top, inner.result.as_ref());
            let result = result.and_then(|value| {
                let misfit = inner.output.as_ref().and_then(|schema| schema.misfit("the output of the flow", &value));
                misfit.map_or_else(|| asking.payload("the output of the flow", &value), Err)
            });
            self.end = Some(result);
        }
        next
    }

    fn go_back(&self, edge: usize) -> Option<Event> {
        let (inner, edge_taken) = (&self.flow.inner, self.saved.taken.get(edge)?);
        let edge = inner.loops.get(edge)?;
        let key = |place: usize, pass: u32| top_key(&inner.body.nodes[place], pass).ok();
        let (from, to) = (key(edge.from, self.saved.pass)?, key(edge.to, self.saved.pass + 1)?);
        Some(Event::LoopIterate { from, to, iteration: edge_taken + 1 })
    }
}

fn finish(
    world: &World<'_>,
    body: &Body,
    top: &Block,
    result: Option<&crate::template::Template>,
) -> Result<Arc<Json>, Failure> {
    let Some(template) = result else { return Ok(Arc::new(top.outputs_of(body))) };
    let (outputs, previous, errors) = (&top.outputs, &top.previous, &top.errors);
    Scope { world, around: None, body, outputs, previous, errors, turn: None }.evaluate(template)
}

/// A mark of which there are few.
fn whole(event: Event) -> Mark {
    Mark::Event(Box::new(event))
}

/// The key of one of the flow's own nodes.
pub(crate) fn top_key(node: &Node, pass: u32) -> Result<Key, Failure> {
    match pass {
        1 => key(node.id.to_string()),
        pass => key(format!("pass-{pass}/{}", node.id)),
    }
}

pub(crate) fn key(text: String) -> Result<Key, Failure> {
    Key::new(text).map_err(|error| Failure::new(code::LIMIT_EXCEEDED, error.to_string()).permanent())
}

/// Whose nodes they are.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Flow { pass: u32 },
    Container { key: &'a Key, index: u32 },
}

/// A list of nodes that is being run, and what is around it.
struct List<'a> {
    world: &'a World<'a>,
    around: Option<&'a Scope<'a>>,
    turn: Option<Turn<'a>>,
    body: &'a Body,
    /// The edges that lead to each node; none in a container.
    edges: Option<&'a [Vec<Edge>]>,
    concurrency: u32,
    owner: Owner<'a>,
    /// The iterations to look at, the outermost first; all of them if there are none.
    focus: Option<Iterations<'a>>,
    /// The same for the flow's own nodes, which may be several at once.
    top: Option<&'a Focus<'a>>,
}

impl List<'_> {
    /// The next mark, if something can be marked.
    fn next(&self, block: &mut Block, asking: &mut Asking<'_>) -> Option<Mark> {
        let mut running = 0;
        for place in 0..self.body.nodes.len() {
            match &block.slots[place] {
                Slot::Done { .. } | Slot::Failed | Slot::Skipped | Slot::Waived => continue,
                Slot::Running(_) => {
                    let next = self.of_running(block, place, asking);
                    if next.is_some() {
                        return next;
                    }
                }
                Slot::Waiting if !self.is_ready(block, place) => continue,
                Slot::Waiting => return self.begin(block, place, asking),
            }
            running += 1;
            if running >= self.concurrency {
                return None;
            }
        }
        None
    }

    /// Whether what must come before a node is over.
    fn is_ready(&self, block: &Block, place: usize) -> bool {
        match self.edges {
            // Several at once: those that lead to it. They may come later in no order, so nothing else counts.
            Some(edges) if self.concurrency > 1 => edges[place].iter().all(|edge| block.slots[edge.from].is_over()),
            Some(_) | None => true,
        }
    }

    fn begin(&self, block: &Block, place: usize, asking: &mut Asking<'_>) -> Option<Mark> {
        let node = &self.body.nodes[place];
        let scope = self.scope(block);
        let edges = self.edges.filter(|_| !block.reached.contains(&place)).map_or(&[][..], |edges| &edges[place]);
        let is_taken = |from: usize| came_to_something(&self.body.nodes[from], &block.slots[from]);
        // What cannot be found out fails the node, once it has begun.
        let admitted = admits(&scope, node, edges, is_taken).unwrap_or_else(|failure| {
            *asking.doubt = Some(failure);
            Admission::Runs
        });
        let skipped = admitted.reason().filter(|_| !planted!("node-condition-ignored"));
        match self.owner {
            Owner::Container { key, index } => {
                let child = Child::new(key, index, &node.id, place)?;
                Some(match skipped {
                    None => Mark::ChildStarted(child),
                    Some(reason) => Mark::ChildSkipped { child, reason },
                })
            }
            Owner::Flow { pass } => {
                // A key that is too long was refused when the flow was read.
                let key = top_key(node, pass).ok()?;
                Some(whole(match skipped {
                    None => {
                        let input = input_of(&scope, node).map(|input| Bytes::from(input.to_string()));
                        Event::NodeStarted { node: key, index: u32::try_from(place).unwrap_or(u32::MAX), input }
                    }
                    Some(reason) => Event::NodeSkipped { node: key, by: None, reason: Some(reason.to_owned()) },
                }))
            }
        }
    }

    fn scope<'s>(&'s self, block: &'s Block) -> Scope<'s> {
        let (outputs, previous, errors) = (&block.outputs, &block.previous, &block.errors);
        let turn = self.turn;
        Scope { world: self.world, around: self.around, body: self.body, outputs, previous, errors, turn }
    }

    fn of_running(&self, block: &mut Block, place: usize, asking: &mut Asking<'_>) -> Option<Mark> {
        let node = &self.body.nodes[place];
        let Block { slots, outputs, previous, errors, .. } = block;
        let scope = Scope {
            world: self.world,
            around: self.around,
            body: self.body,
            outputs,
            previous,
            errors,
            turn: self.turn,
        };
        let Slot::Running(entry) = &mut slots[place] else { return None };
        if let (None, NodeKind::Container(container)) = (&entry.outcome, &node.kind) {
            let focus = self.focus.or_else(|| self.top.and_then(|top| top.within(&node.id)));
            let next = of_container(&scope, container, entry, focus, asking);
            if next.is_some() {
                return next;
            }
        }
        if let (Some(Outcome::Output { at: Some(at), .. }), Owner::Container { key, .. }, None) =
            (&entry.outcome, self.owner, &node.output)
        {
            return Some(Mark::ChildCompleted { node: key.clone(), child: entry.key.clone(), output: *at });
        }
        let outcome = entry.outcome.clone()?;
        Some(whole(self.completion(node, entry, outcome, asking)))
    }

    /// How the end of a node is marked.
    fn completion(&self, node: &Node, entry: &mut Entry, outcome: Outcome, asking: &mut Asking<'_>) -> Event {
        let outcome = checked(node, outcome);
        let failed = |error: Failure| Event::NodeError { node: entry.key.clone(), error };
        match (outcome, self.owner) {
            (Outcome::Failed(error), _) => failed(error),
            (Outcome::Output { value, .. }, Owner::Flow { .. }) => match asking.payload("the output of a node", &value)
            {
                Ok(output) => Event::NodeCompleted { node: entry.key.clone(), output },
                Err(error) => failed(error),
            },
            (Outcome::Output { at: Some(at), .. }, Owner::Container { key, .. }) => {
                let (node, child) = (key.clone(), entry.key.clone());
                Event::ContainerChildCompleted { node, child, output: Some(at), value: None }
            }
            (Outcome::Output { value, at: None }, Owner::Container { key, .. }) => {
                match asking.payload("the output of a node", &value) {
                    Ok(value) => {
                        let (node, child) = (key.clone(), entry.key.clone());
                        Event::ContainerChildCompleted { node, child, output: None, value: Some(value) }
                    }
                    Err(error) => failed(error),
                }
            }
        }
    }
}

/// An output must have the form that was promised.
fn checked(node: &Node, outcome: Outcome) -> Outcome {
    match (&outcome, &node.output) {
        (Outcome::Output { value, .. }, Some(schema)) => {
            let misfit = schema.misfit(&format!("the output of `{}`", node.id), value);
            misfit.map_or(outcome, Outcome::Failed)
        }
        (Outcome::Output { .. } | Outcome::Failed(_), _) => outcome,
    }
}

/// The next mark of a container, or of something in it; sets its outcome when it is over.
fn of_container(
    scope: &Scope<'_>,
    node: &ContainerNode,
    entry: &mut Entry,
    focus: Option<Iterations<'_>>,
    asking: &mut Asking<'_>,
) -> Option<Mark> {
    let key = entry.key.clone();
    let container = entry.container.as_mut()?;
    // With thousands of iterations at once they are not all looked at for each event.
    let failure = match focus.and_then(|mut focus| focus.next()) {
        Some(index) => container.active.get(&index).and_then(|block| block.failure.clone()),
        None => container.active.values().find_map(|block| block.failure.clone()),
    };
    if let Some((failure, _)) = failure {
        fail(entry, failure, asking);
        return None;
    }
    // Apart from the rest, so that the iterations can see what their container goes over.
    let mut active = std::mem::take(&mut container.active);
    let next = of_active(scope, node, (&key, container), &mut active, focus, asking);
    container.active = active;
    if next.is_some() {
        return next;
    }
    if container.active.len() < node.concurrency as usize && !container.is_exhausted {
        match more(scope, node, container) {
            Ok(true) => {
                let (index, total) = (container.next, container.total);
                let item = container.items.get(index).cloned();
                return Some(Mark::IterationStarted { node: key, index, item, total });
            }
            Ok(false) => container.is_exhausted = true,
            Err(failure) => {
                fail(entry, failure, asking);
                return None;
            }
        }
    }
    if container.active.is_empty() && container.is_exhausted {
        let value = Arc::new(output_of(node, container));
        settle(entry, Outcome::Output { value, at: None }, asking);
    }
    None
}

fn of_active(
    scope: &Scope<'_>,
    node: &ContainerNode,
    (key, container): (&Key, &Container),
    active: &mut BTreeMap<u32, Block>,
    mut focus: Option<Iterations<'_>>,
    asking: &mut Asking<'_>,
) -> Option<Mark> {
    let (range, inner) = match focus.as_mut().and_then(Iterator::next) {
        Some(index) => (index..=index, focus),
        None => (0..=u32::MAX, None),
    };
    for (&index, block) in active.range_mut(range) {
        let body = node.body(index)?;
        let list = List {
            world: scope.world,
            around: Some(scope),
            turn: turn_of(node, &container.items, container.total, index),
            body,
            edges: None,
            concurrency: 1,
            owner: Owner::Container { key, index },
            focus: inner,
            top: None,
        };
        let next = list.next(block, asking);
        if next.is_some() {
            return next;
        }
        if block.is_over() {
            let done = block.slots.iter().filter_map(|slot| match slot {
                Slot::Done { at } => Some(*at),
                Slot::Waiting | Slot::Running(_) | Slot::Failed | Slot::Skipped | Slot::Waived => None,
            });
            return Some(Mark::IterationCompleted { node: key.clone(), index, outputs: done.collect() });
        }
    }
    None
}

/// Whether another iteration begins.
fn more(scope: &Scope<'_>, node: &ContainerNode, container: &Container) -> Result<bool, Failure> {
    let Rule::Loop { condition, until, max } = &node.rule else {
        let is_choice = matches!(node.rule, Rule::If { .. } | Rule::Switch { .. });
        return Ok(is_choice || container.total.is_some_and(|total| container.next < total));
    };
    let holds = match condition {
        Some(condition) => round(scope, node, container, container.next).holds(condition)?,
        None => true,
    };
    if !holds {
        return Ok(false);
    }
    if container.next < *max {
        return Ok(true);
    }
    if condition.is_none() && until.is_none() {
        return Ok(false);
    }
    let message = format!("the loop went around {max} times, its `max_iterations`, and would go on");
    Err(Failure::new(code::LOOP_ITERATION_EXCEEDED, message).permanent())
}

/// What the conditions of a loop see: what the round before left.
pub(crate) fn round<'a>(
    scope: &'a Scope<'a>,
    node: &'a ContainerNode,
    container: &'a Container,
    index: u32,
) -> Scope<'a> {
    Scope {
        world: scope.world,
        around: Some(scope),
        body: &node.bodies[0],
        outputs: &container.previous,
        previous: &[],
        errors: &[],
        turn: turn_of(node, &container.items, container.total, index),
    }
}

fn output_of(node: &ContainerNode, container: &mut Container) -> Json {
    let mut kept = std::mem::take(&mut container.kept).into_values().map(|kept| kept.value());
    match node.rule {
        Rule::If { .. } | Rule::Switch { .. } => kept.next().unwrap_or_else(|| json!({})),
        Rule::Parallel => {
            let named = node.branches.iter().zip(kept);
            Json::Object(named.map(|(name, outputs)| (name.to_string(), outputs)).collect())
        }
        Rule::Foreach { .. } | Rule::Loop { .. } => {
            let iterations: Vec<Json> = kept.collect();
            json!({ "iterations": iterations, "count": container.completed })
        }
    }
}

/// A node came to something: whatever else it had open is not wanted any more.
pub(crate) fn settle(entry: &mut Entry, outcome: Outcome, asking: &mut Asking<'_>) {
    close(entry, asking);
    entry.outcome = Some(outcome);
}

fn fail(entry: &mut Entry, failure: Failure, asking: &mut Asking<'_>) {
    settle(entry, Outcome::Failed(failure), asking);
}

/// Cancels everything that is open in a node and below it.
pub(crate) fn close(entry: &mut Entry, asking: &mut Asking<'_>) {
    for open in std::mem::take(&mut entry.operations) {
        if let Ok(key) = operation_key(&entry.key, open.role) {
            asking.cancel(key);
        }
    }
    let Some(mut container) = entry.container.take() else { return };
    for slot in container.active.values_mut().flat_map(|block| &mut block.slots) {
        if let Slot::Running(inner) = slot {
            close(inner, asking);
        }
    }
    entry.left = container.into_left();
}

/// The key of an operation of a node.
pub(crate) fn operation_key(node: &Key, role: Role) -> Result<Key, Failure> {
    match role {
        Role::Main => Ok(node.clone()),
        Role::Submit | Role::Timeout => key(format!("{node}{}", role.suffix())),
    }
}
