//! Looking at a machine in which everything waits.

use super::Machine;
use crate::code::{Variable, VariablePlace};
use crate::heap::{Cell, Reaction, Task};
use crate::source::Position;
use crate::value::{Id, Value};

/// A call that is suspended.
pub(crate) struct Suspended<'m> {
    pub(crate) task: &'m Task,
    pub(crate) position: Position,
}

impl Machine {
    /// The instructions for one fact are there again.
    pub(crate) fn refuel(&mut self) {
        self.fuel = self.limits.instructions;
    }

    /// How many instructions were run since the last fact.
    pub(crate) fn spent(&self) -> u64 {
        self.limits.instructions - self.fuel
    }

    /// Every call that is suspended and can be reached, in the order in which they are found.
    pub(crate) fn suspended(&self) -> Vec<Suspended<'_>> {
        let marked = self.heap.mark(self.roots());
        let tasks = marked.order.iter().filter_map(|id| match self.heap.cell(*id) {
            Cell::Task(task) if task.is_suspended() => Some(task),
            _ => None,
        });
        tasks.map(|task| Suspended { task, position: self.position_of(task) }).collect()
    }

    fn position_of(&self, task: &Task) -> Position {
        let function = &self.code.functions[task.function as usize];
        let span = function.spans.get((task.at as usize).saturating_sub(1)).copied().unwrap_or_default();
        self.code.source.position(span.start)
    }

    /// Where the script waits: `shop.wf:3:5`.
    pub(crate) fn awaits(&self) -> Vec<String> {
        let place = |found: Suspended<'_>| {
            format!("{}:{}:{}", self.code.source.name(), found.position.line, found.position.column)
        };
        self.suspended().into_iter().map(place).collect()
    }

    /// The keys of the operations a suspended call waits for, also through combinations.
    pub(crate) fn operations_of(&self, task: &Task) -> Vec<String> {
        let open = self.world.open.iter().filter(|(_, open)| self.leads_to(open.promise, task));
        open.map(|(key, _)| key.to_string()).collect()
    }

    /// Whether settling a promise lets a call go on, without another call in between.
    fn leads_to(&self, promise: Id, task: &Task) -> bool {
        let mut work = vec![promise];
        let mut seen = Vec::new();
        while let Some(id) = work.pop() {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            let Some(promise) = self.heap.promise_of(id) else { continue };
            for reaction in &promise.reactions {
                match (*reaction, self.heap.cell(reaction.target())) {
                    (Reaction::Resume(_), Cell::Task(found)) if std::ptr::eq(found, task) => return true,
                    (Reaction::Follow(next), _) => work.push(next),
                    (Reaction::Item { .. }, Cell::Combine(combine)) => work.push(combine.promise),
                    (Reaction::Resume(_) | Reaction::Item { .. }, _) => {}
                }
            }
        }
        false
    }

    /// The variables a suspended call can see, the innermost first, each name once.
    pub(crate) fn variables(&self, task: &Task) -> Vec<(String, Value)> {
        let function = &self.code.functions[task.function as usize];
        let at = task.at.saturating_sub(1);
        let source = function.spans.get(at as usize).copied().unwrap_or_default().end;
        let is_seen = |variable: &&Variable| (variable.start..variable.end).contains(&at) && variable.ready_at < source;
        let mut found: Vec<(String, Value)> = Vec::new();
        for variable in function.variables.iter().filter(is_seen) {
            let slot = |slot: u16| task.stack.get(usize::from(slot)).copied();
            let value = match variable.place {
                VariablePlace::Slot(place) => slot(place),
                VariablePlace::Box(place) => slot(place).and_then(Value::id).map(|id| self.heap.boxed(id)),
                VariablePlace::Capture(place) => self.capture_of(task, place).map(|id| self.heap.boxed(id)),
            };
            if let Some(value) = value.filter(|value| *value != Value::Hole)
                && !found.iter().any(|(name, _)| **name == *variable.name)
            {
                found.push((variable.name.to_string(), value));
            }
        }
        found
    }

    fn capture_of(&self, task: &Task, place: u16) -> Option<Id> {
        match self.heap.cell(task.closure?) {
            Cell::Closure(closure) => closure.captures.get(usize::from(place)).copied(),
            _ => None,
        }
    }
}
