//! Combinations of promises: all, allSettled, any, race.

use std::sync::Arc;

use outlast_core::failure::Failure;
use outlast_core::operation::Operations;

use super::{Done, Machine, Outcome, codes};
use crate::heap::{Cancelled, Cell, Combinator, Combine, CombineItem, Object, Promise, PromiseState, Reaction};
use crate::value::{Id, Value};

/// What is combined: values, and their names if they come from an object.
type Combined = (Vec<Value>, Option<Vec<Arc<str>>>);

impl Machine {
    /// Combines the elements of a list, or the properties of an object; what it becomes.
    pub(crate) fn combine(&mut self, kind: Combinator, source: Value, name: &str, ops: &mut Operations) -> Done {
        let (values, names) = self.combined(source, name)?;
        let promise = self.heap.alloc(Cell::Promise(Promise::default()));
        let item = |value: &Value| CombineItem {
            value: Value::Null,
            operation: self.operation_of(*value),
            source: if let Value::Promise(id) = value { Some(*id) } else { None },
        };
        let items = values.iter().map(item).collect();
        let pending = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let is_empty = values.is_empty();
        let combine = Combine { kind, promise, items, pending, names, cancelled: None };
        let combine = self.heap.alloc(Cell::Combine(combine));
        for (place, value) in values.into_iter().enumerate() {
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            self.when_settled(value, Reaction::Item { combine, place }, ops);
        }
        if is_empty {
            self.end_empty(kind, combine, promise);
        }
        Ok(Value::Promise(promise))
    }

    fn combined(&mut self, source: Value, name: &str) -> Done<Combined> {
        match source {
            Value::List(id) => Ok((self.heap.list_of(id).to_vec(), None)),
            Value::Object(id) => {
                let entries = self.heap.object_of(id).into_iter().flat_map(Object::iter);
                let (names, values) = entries.map(|(name, value)| (Arc::clone(name), *value)).unzip();
                Ok((values, Some(names)))
            }
            other => {
                let message = format!("{name} takes a list or an object of promises, not {}", other.described());
                Err(self.error(codes::TYPE, message))
            }
        }
    }

    fn operation_of(&self, value: Value) -> Option<outlast_core::id::Key> {
        match value {
            Value::Promise(id) => self.heap.promise_of(id)?.operation.clone(),
            _ => None,
        }
    }

    /// Nothing to wait for: all of nothing is there, any of nothing failed, and a race without runners never ends.
    fn end_empty(&mut self, kind: Combinator, combine: Id, promise: Id) {
        match kind {
            Combinator::All | Combinator::AllSettled | Combinator::TaskAllSettled => self.end_all(combine, promise),
            Combinator::Any | Combinator::TaskAny => self.end_any(combine, promise),
            Combinator::Race | Combinator::TaskRace => {}
        }
    }

    /// The run is cancelled: a combination that waits throws that where it would tell that an item failed. Otherwise a
    /// script that is to stop goes on with the errors of what was cancelled as if they were outcomes. What is combined
    /// may still take its time: branches clean up before.
    pub(super) fn cancel_combinations(&mut self, message: &str) {
        let is_pending = |combine: &Combine| {
            let state = self.heap.promise_of(combine.promise).map(|promise| promise.state);
            state == Some(PromiseState::Pending)
        };
        let waiting = self.heap.combines().filter(|(_, combine)| is_pending(combine)).map(|(id, _)| id);
        let waiting: Vec<Id> = waiting.collect();
        for combine in waiting {
            let error = self.error_from(&Failure::cancelled(message));
            if let Some(state) = self.heap.combine_mut(combine) {
                state.cancelled = Some(Cancelled { error, is_felt: false });
            }
        }
    }

    /// What a combination throws that felt the cancellation of the run.
    fn cancelled(&self, combine: Id) -> Option<Outcome> {
        let cancelled = self.heap.combine_of(combine)?.cancelled?;
        cancelled.is_felt.then_some(Outcome::Error(cancelled.error))
    }

    /// An element is there.
    pub(super) fn item(&mut self, combine: Id, place: u32, outcome: Outcome) {
        let Some(state) = self.heap.combine_mut(combine) else { return };
        if let (Some(cancelled), Outcome::Error(_)) = (&mut state.cancelled, outcome) {
            cancelled.is_felt = true;
        }
        match (state.kind, outcome) {
            (Combinator::All, Outcome::Error(_)) => self.end_combine(combine, outcome),
            (Combinator::Race | Combinator::TaskRace, Outcome::Error(_)) if self.cancelled(combine).is_some() => {
                let thrown = self.cancelled(combine).unwrap_or(outcome);
                self.end_combine(combine, thrown);
            }
            (Combinator::Race, _) | (Combinator::Any, Outcome::Value(_)) => self.end_combine(combine, outcome),
            (Combinator::TaskRace, _) => {
                let end = self.terminal(combine, place, outcome);
                self.end_combine(combine, Outcome::Value(end));
            }
            (Combinator::TaskAny, Outcome::Value(value)) => {
                let winner = self.winner(combine, place, value);
                self.end_combine(combine, Outcome::Value(winner));
            }
            (Combinator::All, Outcome::Value(value)) => self.keep(combine, place, value),
            (Combinator::Any | Combinator::TaskAny, Outcome::Error(error)) => self.keep(combine, place, error),
            (Combinator::AllSettled, outcome) => {
                let settled = self.settled(outcome);
                self.keep(combine, place, settled);
            }
            (Combinator::TaskAllSettled, outcome) => {
                let end = self.terminal(combine, place, outcome);
                self.keep(combine, place, end);
            }
        }
    }

    /// Settles a combination, which from now on waits for nothing: a promise that is raced again and again would
    /// otherwise remember each race.
    fn end_combine(&mut self, combine: Id, outcome: Outcome) {
        let Some(state) = self.heap.combine_mut(combine) else { return };
        let (kind, promise) = (state.kind, state.promise);
        let sources: Vec<Id> = state.items.iter_mut().filter_map(|item| item.source.take()).collect();
        match kind {
            // Before their ways to the combination are forgotten.
            Combinator::TaskAny | Combinator::TaskRace => self.note_losers(&sources),
            // JavaScript's let the losers go on.
            Combinator::All
            | Combinator::AllSettled
            | Combinator::Any
            | Combinator::Race
            | Combinator::TaskAllSettled => {}
        }
        for source in sources {
            if let Some(cell) = self.heap.promise_mut(source) {
                cell.reactions.retain(|reaction| reaction.target() != combine);
            }
        }
        self.settle(promise, outcome);
    }

    /// Keeps an outcome; the last one ends the combination.
    fn keep(&mut self, combine: Id, place: u32, value: Value) {
        let Some(state) = self.heap.combine_mut(combine) else { return };
        if let Some(item) = state.items.get_mut(place as usize) {
            item.value = value;
        }
        state.pending = state.pending.saturating_sub(1);
        let (kind, promise, pending) = (state.kind, state.promise, state.pending);
        if pending > 0 {
            return;
        }
        match kind {
            Combinator::Any | Combinator::TaskAny => self.end_any(combine, promise),
            Combinator::All
            | Combinator::AllSettled
            | Combinator::TaskAllSettled
            | Combinator::Race
            | Combinator::TaskRace => self.end_all(combine, promise),
        }
    }

    /// The outcomes, in the form of what was combined.
    fn outcomes(&mut self, combine: Id) -> Value {
        let Some(state) = self.heap.combine_mut(combine) else { return Value::Null };
        let values: Vec<Value> = state.items.iter().map(|item| item.value).collect();
        match state.names.clone() {
            None => self.heap.list(values),
            Some(names) => {
                let object: Object = names.into_iter().zip(values).collect();
                self.heap.object(object)
            }
        }
    }

    fn end_all(&mut self, combine: Id, promise: Id) {
        let outcome = match self.cancelled(combine) {
            Some(thrown) => thrown,
            None => Outcome::Value(self.outcomes(combine)),
        };
        self.settle(promise, outcome);
    }

    fn end_any(&mut self, combine: Id, promise: Id) {
        if let Some(thrown) = self.cancelled(combine) {
            self.settle(promise, thrown);
            return;
        }
        let errors = self.outcomes(combine);
        let (code, message) = (self.heap.text(codes::AGGREGATE), self.heap.text("All promises were rejected"));
        let data: Object = [(Arc::from("errors"), errors)].into_iter().collect();
        let data = self.heap.object(data);
        let error = self.new_error(code, message, data);
        self.settle(promise, Outcome::Error(error));
    }

    /// What JavaScript's allSettled says about an element.
    fn settled(&mut self, outcome: Outcome) -> Value {
        let (status, name, value) = match outcome {
            Outcome::Value(value) => ("fulfilled", "value", value),
            Outcome::Error(error) => ("rejected", "reason", error),
        };
        let status = self.heap.text(status);
        let object: Object = [(Arc::from("status"), status), (Arc::from(name), value)].into_iter().collect();
        self.heap.object(object)
    }

    /// The id of an element: of its operation, or else its name or place.
    fn item_id(&mut self, combine: Id, place: u32) -> Value {
        let Some(state) = self.heap.combine_mut(combine) else { return Value::Null };
        let name = state.names.as_ref().and_then(|names| names.get(place as usize)).cloned();
        let operation = state.items.get(place as usize).and_then(|item| item.operation.clone());
        match (name, operation) {
            (Some(name), _) => self.heap.text(name),
            (None, Some(key)) => self.heap.text(key.as_str()),
            (None, None) => Value::Number(f64::from(place)),
        }
    }

    /// `{ item_id, status, result | error }`.
    fn terminal(&mut self, combine: Id, place: u32, outcome: Outcome) -> Value {
        let id = self.item_id(combine, place);
        let (status, name, value) = match outcome {
            Outcome::Value(value) => ("completed", "result", value),
            Outcome::Error(error) => ("failed", "error", error),
        };
        let status = self.heap.text(status);
        let object: Object =
            [(Arc::from("item_id"), id), (Arc::from("status"), status), (Arc::from(name), value)].into_iter().collect();
        self.heap.object(object)
    }

    /// `{ item_id, result }`.
    fn winner(&mut self, combine: Id, place: u32, value: Value) -> Value {
        let id = self.item_id(combine, place);
        let object: Object = [(Arc::from("item_id"), id), (Arc::from("result"), value)].into_iter().collect();
        self.heap.object(object)
    }
}
