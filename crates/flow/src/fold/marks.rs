//! Marks: what a flow says about itself.

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Index, Key};
use outlast_core::operation::again;
use outlast_core::planted;
use serde_json::{Value as Json, json};

use super::State;
use crate::decide::{close, round};
use crate::enter::enter;
use crate::model::{Collect, ContainerNode, NodeKind, OnError, Rule};
use crate::scope::{Scope, World};
use crate::state::{Block, Container, Entry, Kept, Outcome, Saved, Slot};
use crate::walk::{Path, Spot};

impl State {
    /// A mark must be the one that was decided: so nothing is ever out of its place.
    pub(super) fn take_mark(&mut self, index: Index, event: &Event, path: Option<&Path<'_>>) -> Result<(), String> {
        if !self.mark.as_ref().is_some_and(|mark| mark.is(event)) {
            return Err(self.explain(event));
        }
        self.mark = None;
        let done = match (event, path) {
            (Event::NodeStarted { node, input, .. }, Some(path)) => self.begin(node, path, input.as_ref()),
            (Event::ContainerChildStarted { child, .. }, Some(path)) => self.begin(child, path, None),
            (Event::NodeCompleted { output, .. }, Some(path)) => self.complete(index, path, Some(output)),
            (Event::ContainerChildCompleted { value, .. }, Some(path)) => self.complete(index, path, value.as_ref()),
            (Event::NodeError { node, error }, Some(path)) => self.fail(node, path, error),
            (Event::NodeSkipped { node, .. }, _) => self.pass(node),
            (Event::ContainerIterationStarted { index, .. }, Some(path)) => self.begin_iteration(path, *index),
            (Event::ContainerIterationCompleted { index, .. }, Some(path)) => self.complete_iteration(path, *index),
            (Event::LoopIterate { .. }, _) => self.go_around(),
            (_, _) => None,
        };
        // A mark that was decided is about something that is there.
        done.ok_or_else(|| "there is no such node".to_owned())
    }

    /// Whether the node is one of the flow's own.
    fn top_place(&self, path: &Path<'_>) -> Option<usize> {
        path.inner.is_empty().then(|| self.flow.inner.body.place(path.first.id)).flatten()
    }

    fn begin(&mut self, node: &Key, path: &Path<'_>, input: Option<&Bytes>) -> Option<()> {
        self.saved.unread = 0;
        let given: Option<Arc<Json>> = input.and_then(|input| serde_json::from_slice(input).ok()).map(Arc::new);
        self.at_path(path, &mut |spot, asking, _| {
            let Spot { world, around, turn, body, block, place, .. } = spot;
            let Block { slots, outputs, previous, errors, .. } = block;
            let scope = Scope { world, around, body, outputs, previous, errors, turn };
            let entry = match asking.doubt.take() {
                None => enter(&scope, &body.nodes[place], node.clone(), 1, given.clone(), asking),
                // Whether it runs cannot be found out: it fails, and asks for nothing.
                Some(failure) => Entry { outcome: Some(Outcome::Failed(failure)), ..Entry::new(node.clone(), 1) },
            };
            slots[place] = Slot::Running(Box::new(entry));
        })
    }

    fn complete(&mut self, index: Index, path: &Path<'_>, value: Option<&Bytes>) -> Option<()> {
        let value: Option<Arc<Json>> = value.and_then(|value| serde_json::from_slice(value).ok()).map(Arc::new);
        let is_here = value.is_some();
        self.at_path(path, &mut |spot, _, _| {
            let Spot { block, place, .. } = spot;
            let Slot::Running(entry) = &mut block.slots[place] else { return None };
            let Some(Outcome::Output { value: found, at }) = entry.outcome.take() else { return None };
            let at = at.filter(|_| !is_here).unwrap_or(index);
            block.outputs[place] = Some(value.clone().unwrap_or(found));
            block.errors[place] = None;
            block.end(place, Slot::Done { at });
            Some(())
        })
        .flatten()?;
        self.look_at_loops(path);
        Some(())
    }

    fn fail(&mut self, node: &Key, path: &Path<'_>, error: &Failure) -> Option<()> {
        // Where several nodes run at once there is no way from one to the other to be passed.
        let is_a_row = self.flow.inner.concurrency == 1 || self.top_place(path).is_none();
        self.at_path(path, &mut |spot, asking, _| {
            let on_error = spot.node().on_error;
            let Spot { block, place, .. } = spot;
            if let Slot::Running(entry) = &mut block.slots[place] {
                close(entry, asking);
            }
            block.end(place, Slot::Failed);
            block.outputs[place] = None;
            block.errors[place] = Some(Arc::new(told(error)));
            match on_error {
                OnError::Fail => block.failure = Some((error.clone(), node.clone())),
                OnError::Continue => {}
                OnError::Goto(target) => {
                    block.reached.insert(target);
                    for slot in block.slots[place + 1..target].iter_mut().filter(|_| is_a_row) {
                        if matches!(slot, Slot::Waiting) {
                            *slot = Slot::Skipped;
                        }
                    }
                }
            }
        })?;
        if self.saved.top.failure.is_none() {
            self.look_at_loops(path);
        }
        Some(())
    }

    fn pass(&mut self, node: &Key) -> Option<()> {
        self.at(node, &mut |spot, _, _| {
            spot.block.outputs[spot.place] = None;
            spot.block.slots[spot.place] = Slot::Skipped;
        })
    }

    fn begin_iteration(&mut self, path: &Path<'_>, index: u32) -> Option<()> {
        self.saved.unread = 0;
        self.with_container(path, |_, at, container| {
            let body = at.body(index)?;
            let previous = match at.rule {
                Rule::Loop { .. } => container.previous.clone(),
                Rule::Foreach { .. } | Rule::If { .. } | Rule::Switch { .. } | Rule::Parallel => Vec::new(),
            };
            container.active.insert(index, Block::new(body, previous));
            container.next = index + 1;
            container.is_exhausted |= matches!(at.rule, Rule::If { .. } | Rule::Switch { .. });
            Some(Ok(()))
        })
    }

    fn complete_iteration(&mut self, path: &Path<'_>, index: u32) -> Option<()> {
        self.with_container(path, |scope, at, container| {
            let block = container.active.remove(&index)?;
            let body = at.body(index)?;
            container.completed += 1;
            if at.collect != Collect::None {
                let outputs = block.outputs_of(body);
                let kept = match at.rule {
                    Rule::Foreach { .. } => {
                        json!({ "index": index, "item": container.items.get(index), "outputs": outputs })
                    }
                    Rule::Loop { .. } => json!({ "index": index, "outputs": outputs }),
                    Rule::If { .. } | Rule::Switch { .. } | Rule::Parallel => outputs,
                };
                container.kept.insert(index, Kept::new(&kept));
                while at.collect == Collect::Last && container.kept.len() > 1 {
                    container.kept.pop_first();
                }
            }
            let lowest = container.active.keys().next().copied();
            container.items.forget_below(lowest.unwrap_or(container.next));
            let Block { slots, outputs, left, .. } = block;
            container.leave(index, slots, left);
            let Rule::Loop { until, .. } = &at.rule else { return Some(Ok(())) };
            let past = container.previous.iter().cloned();
            container.previous = outputs.into_iter().zip(past).map(|(output, previous)| output.or(previous)).collect();
            let is_over = until.as_ref().map_or(Ok(false), |until| round(scope, at, container, index).holds(until));
            Some(is_over.map(|is_over| container.is_exhausted |= is_over))
        })
    }

    /// Goes to a container that is open. If what is done there fails, so does the container.
    fn with_container(
        &mut self,
        path: &Path<'_>,
        mut then: impl FnMut(&Scope<'_>, &ContainerNode, &mut Container) -> Option<Result<(), Failure>>,
    ) -> Option<()> {
        self.at_path(path, &mut |spot, asking, _| {
            let Spot { world, around, turn, body, block, place, .. } = spot;
            let NodeKind::Container(node) = &body.nodes[place].kind else { return None };
            let Block { slots, outputs, previous, errors, .. } = block;
            let scope = Scope { world, around, body, outputs, previous, errors, turn };
            let Slot::Running(entry) = &mut slots[place] else { return None };
            let container = entry.container.as_mut()?;
            if let Err(failure) = then(&scope, node, container)? {
                crate::decide::settle(entry, Outcome::Failed(failure), asking);
            }
            Some(())
        })
        .flatten()
    }

    /// One of the flow's own nodes came to something: does a loop edge go back from it?
    fn look_at_loops(&mut self, path: &Path<'_>) {
        if self.flow.inner.loops.is_empty() {
            return;
        }
        let Some(place) = self.top_place(path) else { return };
        let inner = &self.flow.inner;
        let input = &self.input;
        let Saved { messages, top, taken, .. } = &self.saved;
        let world =
            World { input, messages, info: &self.info, flow: inner.name.as_str(), limits: self.limits.expression };
        let Block { outputs, previous, errors, .. } = top;
        let scope = Scope { world: &world, around: None, body: &inner.body, outputs, previous, errors, turn: None };
        for (number, edge) in inner.loops.iter().enumerate().filter(|(_, edge)| edge.from == place) {
            let holds = edge.when.as_ref().map_or(Ok(true), |when| scope.holds(when));
            let (from, to) = (&inner.body.nodes[edge.from].id, &inner.body.nodes[edge.to].id);
            match holds {
                Ok(false) => continue,
                Ok(true) if taken[number] < edge.max => self.saved.going_back = Some(number),
                Ok(true) => {
                    let max = edge.max;
                    let message =
                        format!("the edge from `{from}` to `{to}` was taken {max} times, its `max_iterations`");
                    self.end = Some(Err(Failure::new(code::LOOP_ITERATION_EXCEEDED, message).permanent()));
                }
                Err(failure) => {
                    let message = format!("the edge from `{from}` to `{to}`: {}", failure.message);
                    self.end = Some(Err(Failure { message, ..failure }));
                }
            }
            return;
        }
    }

    fn go_around(&mut self) -> Option<()> {
        let number = self.saved.going_back.take()?;
        let edge = self.flow.inner.loops.get(number)?;
        self.saved.taken[number] += 1;
        self.saved.pass += 1;
        let Block { slots, outputs, previous, errors, reached, left, .. } = &mut self.saved.top;
        for place in edge.to..=edge.from {
            slots[place] = Slot::Waiting;
            reached.remove(&place);
            left.remove(&place);
            previous[place] = outputs[place].take().or_else(|| previous[place].take());
            errors[place] = None;
        }
        Some(())
    }

    /// An operator said that the flow is to go on without a node. One that is over stays as it is. A mark that was decided
    /// before is decided again: whoever drives the flow drops it.
    pub(super) fn skip(&mut self, node: &Key) {
        self.at(node, &mut |spot, asking, _| {
            match &mut spot.block.slots[spot.place] {
                Slot::Running(entry) if entry.key == *node => close(entry, asking),
                Slot::Waiting if spot.attempt == 1 => {}
                Slot::Running(_) | Slot::Waiting | Slot::Done { .. } => return,
                Slot::Failed | Slot::Skipped | Slot::Waived => return,
            }
            spot.block.end(spot.place, if planted!("skipped-node-runs") { Slot::Waiting } else { Slot::Waived });
        });
    }

    /// An operator said that a node is to begin again.
    pub(super) fn retry(&mut self, node: &Key) {
        self.at(node, &mut |spot, asking, _| {
            let Spot { world, around, turn, body, block, place, .. } = spot;
            let Block { slots, outputs, previous, errors, .. } = block;
            let scope = Scope { world, around, body, outputs, previous, errors, turn };
            let Slot::Running(entry) = &mut slots[place] else { return };
            let attempt = entry.attempt + 1;
            let Ok(next) = again(node) else { return };
            if entry.key != *node {
                return;
            }
            close(entry, asking);
            let entry = enter(&scope, &body.nodes[place], next, attempt, None, asking);
            slots[place] = Slot::Running(Box::new(entry));
        });
    }
}

fn told(error: &Failure) -> Json {
    let data = error.data.as_ref().and_then(|data| serde_json::from_slice::<Json>(data).ok());
    json!({ "code": error.code, "message": error.message, "data": data })
}
