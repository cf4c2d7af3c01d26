//! Errors: making them, throwing them, and saying where.

use std::fmt::Write as _;
use std::sync::Arc;

use outlast_core::failure::Failure;

use super::{FrameKind, Machine, Outcome, Stop};
use crate::heap::{Cell, ErrorCell};
use crate::value::Value;

/// The codes the language itself gives to errors.
pub(crate) mod codes {
    /// A value is not of the kind an operation needs.
    pub(crate) const TYPE: &str = "type_error";
    /// A number is outside of what makes sense.
    pub(crate) const RANGE: &str = "range_error";
    /// A variable is used before it has a value.
    pub(crate) const REFERENCE: &str = "reference_error";
    /// A text is not what it should be, such as JSON.
    pub(crate) const SYNTAX: &str = "syntax_error";
    /// All of several promises failed.
    pub(crate) const AGGREGATE: &str = "aggregate_error";
    /// Calls nest too deep.
    pub(crate) const DEPTH: &str = "depth_limit";
    /// A string, list or value is too large.
    pub(crate) const SIZE: &str = "size_limit";
    /// Everything waits, and nothing can happen any more.
    pub(crate) const STUCK: &str = "stuck";
}

/// Stacks longer than this say nothing more.
const STACK_LINES_MAX: usize = 12;

impl Machine {
    /// An error of the language, to be thrown.
    pub(crate) fn error(&mut self, code: &str, message: String) -> Stop {
        let (code, message) = (self.heap.text(code), self.heap.text(message));
        let error = self.new_error(code, message, Value::Null);
        self.thrown(error)
    }

    pub(crate) fn new_error(&mut self, code: Value, message: Value, data: Value) -> Value {
        let stack: Arc<str> = "".into();
        Value::Error(self.heap.alloc(Cell::Error(ErrorCell { code, message, data, stack })))
    }

    /// Throws a value from here. An error remembers where it was thrown first.
    pub(crate) fn thrown(&mut self, value: Value) -> Stop {
        self.note_stack(value);
        Stop::Throw(value)
    }

    fn note_stack(&mut self, value: Value) {
        let Value::Error(id) = value else { return };
        if self.heap.error_of(id).is_some_and(|error| error.stack.is_empty()) {
            let stack: Arc<str> = self.stack_text().into();
            self.heap.grew(stack.len());
            if let Some(error) = self.heap.error_mut(id) {
                error.stack = stack;
            }
        }
    }

    /// One line for each call: `at charge (shop.wf:3:5)`.
    fn stack_text(&self) -> String {
        let mut text = String::new();
        let mut lines = 0;
        for frame in self.frames.iter().rev() {
            let function = &self.code.functions[frame.function as usize];
            if function.is_hidden {
                continue;
            }
            if lines == STACK_LINES_MAX {
                text.push_str("\n    …");
                break;
            }
            let span = function.spans.get((frame.at as usize).saturating_sub(1)).copied().unwrap_or_default();
            let position = self.code.source.position(span.start);
            let separator = if lines == 0 { "" } else { "\n" };
            let (name, file) = (&function.name, self.code.source.name());
            // Writing into a text does not fail.
            let _ = write!(text, "{separator}    at {name} ({file}:{}:{})", position.line, position.column);
            lines += 1;
        }
        text
    }

    /// Gives an error to the innermost call that handles it; calls that do not are left.
    pub(super) fn throw_into(&mut self, error: Value) -> Result<(), Failure> {
        self.note_stack(error);
        while let Some(frame) = self.frames.last_mut() {
            let function = &self.code.functions[frame.function as usize];
            let thrown_at = frame.at.saturating_sub(1);
            let handler = function.handlers.iter().find(|handler| (handler.start..handler.end).contains(&thrown_at));
            if let Some(handler) = handler {
                frame.at = handler.target;
                let slots = frame.base as usize + usize::from(function.slots);
                self.stack.truncate(slots);
                self.stack.push(error);
                return Ok(());
            }
            let (base, kind) = (frame.base as usize, frame.kind);
            self.frames.pop();
            self.stack.truncate(base - 1);
            match kind {
                FrameKind::Plain => {}
                FrameKind::Task(task) => {
                    let promise = self.end_task(task, Outcome::Error(error));
                    self.stack.push(promise);
                    return Ok(());
                }
                FrameKind::ResumedTask(task) => {
                    self.end_task(task, Outcome::Error(error));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A failure that nobody can catch, with the place where it happened.
    pub(crate) fn fatal(&self, code: &str, message: String) -> Failure {
        self.placed(Failure::new(code, message), &self.stack_text()).permanent()
    }

    /// A failure with the stack and the source line it is about. They are not part of the message: whoever catches the
    /// failure in another run reads what was said.
    fn placed(&self, failure: Failure, stack: &str) -> Failure {
        if stack.is_empty() {
            return failure;
        }
        // The line is in the stack's first line, between the last two colons.
        let first = stack.lines().next().unwrap_or_default();
        let line = first.rsplit(':').nth(1).and_then(|line| line.parse().ok());
        let source = line.map_or("", |line| self.code.source.line(line).trim());
        failure.with_trace(format!("{stack}\n    | {source}"))
    }

    /// How the run fails with an error that nobody caught.
    pub(crate) fn failure(&mut self, error: Value) -> Failure {
        let (code, message, data, stack) = match error {
            Value::Error(id) => match self.heap.error_of(id) {
                Some(error) => (error.code, error.message, error.data, Arc::clone(&error.stack)),
                None => (Value::Null, Value::Null, Value::Null, "".into()),
            },
            Value::Object(id) => {
                let get = |key| self.heap.object_of(id).and_then(|object| object.get(key)).unwrap_or(Value::Null);
                match get("message") {
                    Value::Null => (get("code"), Value::Null, error, "".into()),
                    message => (get("code"), message, get("data"), "".into()),
                }
            }
            other => (Value::Null, other, Value::Null, "".into()),
        };
        let code = match code {
            Value::Text(id) if !self.heap.text_of(id).text.is_empty() => self.heap.text_of(id).text.to_string(),
            _ => outlast_core::failure::code::ERROR.to_owned(),
        };
        let message = match message {
            Value::Null => "the script threw something without a message".to_owned(),
            message => self.shown(message),
        };
        let failure = self.placed(Failure::new(code, message), &stack);
        match data {
            Value::Null => failure,
            data => match self.json_of(data, "the data of the error") {
                Ok(json) => failure.with_data(json),
                // What cannot be written down is left out: the error itself matters more.
                Err(_) => failure,
            },
        }
    }

    /// An error value for a recorded failure.
    pub(crate) fn error_from(&mut self, failure: &Failure) -> Value {
        let (code, message) = (self.heap.text(&*failure.code), self.heap.text(&*failure.message));
        let data = failure.data.as_ref().and_then(|data| self.json_value(data).ok()).unwrap_or(Value::Null);
        self.new_error(code, message, data)
    }
}
