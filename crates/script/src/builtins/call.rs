//! What a function of the language sees of its call.

use std::sync::Arc;

use outlast_core::operation::Operations;

use crate::machine::{Done, Machine, Stop, codes};
use crate::value::{Id, Value};

/// A call of a function of the language. For a method the receiver is the first argument.
pub(crate) struct Call<'a> {
    pub(crate) machine: &'a mut Machine,
    pub(crate) ops: &'a mut Operations,
    pub(crate) native: u16,
    pub(crate) start: usize,
    pub(crate) count: usize,
}

impl Call<'_> {
    /// An argument; null if it is missing.
    pub(super) fn arg(&self, place: usize) -> Value {
        if place < self.count { self.machine.stack[self.start + place] } else { Value::Null }
    }

    pub(super) fn args(&self) -> &[Value] {
        &self.machine.stack[self.start..self.start + self.count]
    }

    pub(super) fn name(&self) -> &'static str {
        super::native(self.native).name
    }

    pub(super) fn type_error(&mut self, what: &str, wanted: &str, found: Value) -> Stop {
        let name = self.name();
        let hint = if matches!(found, Value::Promise(_)) { ": is an await missing?" } else { "" };
        let message = format!("{name}: {what} must be {wanted}, not {}{hint}", found.described());
        self.machine.error(codes::TYPE, message)
    }

    pub(super) fn range_error(&mut self, message: &str) -> Stop {
        let message = format!("{}: {message}", self.name());
        self.machine.error(codes::RANGE, message)
    }

    pub(super) fn text(&mut self, place: usize, what: &str) -> Done<Arc<str>> {
        match self.arg(place) {
            Value::Text(id) => Ok(Arc::clone(&self.machine.heap.text_of(id).text)),
            other => Err(self.type_error(what, "a string", other)),
        }
    }

    pub(super) fn number(&mut self, place: usize, what: &str) -> Done<f64> {
        match self.arg(place) {
            Value::Number(number) => Ok(number),
            other => Err(self.type_error(what, "a number", other)),
        }
    }

    /// A whole number, as JavaScript makes one of it; `missing` if there is none.
    pub(super) fn integer(&mut self, place: usize, what: &str, missing: f64) -> Done<f64> {
        match self.arg(place) {
            Value::Null => Ok(missing),
            Value::Number(number) if number.is_nan() => Ok(0.0),
            Value::Number(number) => Ok(number.trunc()),
            other => Err(self.type_error(what, "a number", other)),
        }
    }

    pub(super) fn list(&mut self, place: usize, what: &str) -> Done<Id> {
        match self.arg(place) {
            Value::List(id) => Ok(id),
            other => Err(self.type_error(what, "a list", other)),
        }
    }

    pub(super) fn object(&mut self, place: usize, what: &str) -> Done<Id> {
        match self.arg(place) {
            Value::Object(id) => Ok(id),
            other => Err(self.type_error(what, "an object", other)),
        }
    }

    pub(super) fn new_text(&mut self, text: String) -> Done {
        self.machine.spend(text.len() as u64 / 16)?;
        self.machine.new_text(text)
    }

    pub(super) fn new_list(&mut self, items: Vec<Value>) -> Done {
        self.machine.spend(items.len() as u64)?;
        self.machine.check_items(items.len())?;
        Ok(self.machine.heap.list(items))
    }

    /// A list of the elements from one place to another, counted from the end if negative.
    pub(super) fn range(&mut self, length: usize) -> Done<(usize, usize)> {
        let length_number = length as f64;
        let clamp = |number: f64| {
            let from_start = if number < 0.0 { (length_number + number).max(0.0) } else { number.min(length_number) };
            from_start as usize
        };
        let from = clamp(self.integer(1, "the start", 0.0)?);
        let to = clamp(self.integer(2, "the end", length_number)?);
        Ok((from, to))
    }
}
