//! Calls.

use outlast_core::operation::Operations;

use super::{Done, Frame, FrameKind, Machine, Stop, codes};
use crate::builtins::{self, Call, Run};
use crate::code::{CaptureFrom, Code};
use crate::heap::{Cell, Closure, Object};
use crate::suggest::nearest;
use crate::value::{Id, Value};

/// What a call costs at least, in instructions.
const CALL_COST: u64 = 8;

impl Machine {
    /// Calls what lies below the so many arguments on top; whether a frame was put on top. Otherwise the result was.
    pub(super) fn call_value(&mut self, args: usize, ops: &mut Operations) -> Done<bool> {
        let start = self.stack.len() - args;
        match self.stack[start - 1] {
            Value::Native(native) => self.call_native(native, start - 1, start, ops),
            Value::Function(id) => match self.heap.cell(id) {
                Cell::Closure(closure) => {
                    let function = closure.function;
                    self.enter(function, Some(id), start).map(|()| true)
                }
                Cell::Bound { native, receiver } => {
                    let (native, receiver) = (*native, *receiver);
                    self.stack[start - 1] = receiver;
                    self.call_native(native, start - 1, start - 1, ops)
                }
                _ => Err(self.not_callable(Value::Null, None)),
            },
            other => Err(self.not_callable(other, None)),
        }
    }

    /// Calls a method of what lies below the so many arguments on top.
    pub(super) fn call_method(&mut self, name: u32, args: usize, ops: &mut Operations) -> Done<bool> {
        let start = self.stack.len() - args;
        let receiver = self.stack[start - 1];
        let text = self.heap.text_of(Id(name)).text.clone();
        if let Value::Object(id) = receiver
            && let Some(property) = self.heap.object_of(id).and_then(|object| object.get(&text))
        {
            if !matches!(property, Value::Function(_) | Value::Native(_)) {
                return Err(self.not_callable(property, Some(&text)));
            }
            self.stack[start - 1] = property;
            return self.call_value(args, ops);
        }
        match builtins::method(receiver, &text) {
            Some(native) => self.call_native(native, start - 1, start - 1, ops),
            None => Err(self.no_method(receiver, &text)),
        }
    }

    /// Looks a method up before the arguments are evaluated, which may change the object: leaves what is to be called in the
    /// receiver's place, or the error that is thrown once the arguments are there. Lists, texts and numbers stay: their methods
    /// cannot change.
    pub(super) fn find_method(&mut self, name: u32) -> Done<()> {
        let Some(receiver) = self.stack.last().copied() else { return Ok(()) };
        let text = self.heap.text_of(Id(name)).text.clone();
        let found = match receiver {
            // Of null there are no methods, whatever the arguments are.
            Value::Null | Value::Hole => return Err(self.no_method(receiver, &text)),
            Value::Text(_) | Value::List(_) | Value::Number(_) | Value::Bool(_) | Value::Promise(_) => return Ok(()),
            Value::Object(id) => self.heap.object_of(id).and_then(|object| object.get(&text)),
            Value::Error(_) | Value::Function(_) | Value::Native(_) => None,
        };
        let callee = match (found, builtins::method(receiver, &text)) {
            (Some(function @ (Value::Function(_) | Value::Native(_))), _) => function,
            (Some(other), _) => self.type_error(not_callable(other, Some(&text))),
            (None, Some(native)) => Value::Function(self.heap.alloc(Cell::Bound { native, receiver })),
            (None, None) => {
                let message = self.no_method_text(receiver, &text);
                self.type_error(message)
            }
        };
        self.pop();
        self.stack.push(callee);
        if self.heap.wants_collection() {
            self.collect().map_err(Stop::Fatal)?;
        }
        Ok(())
    }

    /// Calls what was found before the so many arguments on top were evaluated.
    pub(super) fn call_found(&mut self, name: u32, args: usize, ops: &mut Operations) -> Done<bool> {
        match self.stack[self.stack.len() - args - 1] {
            Value::Function(_) | Value::Native(_) => self.call_value(args, ops),
            error @ Value::Error(_) => Err(self.thrown(error)),
            _ => self.call_method(name, args, ops),
        }
    }

    fn type_error(&mut self, message: String) -> Value {
        let (code, message) = (self.heap.text(codes::TYPE), self.heap.text(message));
        self.new_error(code, message, Value::Null)
    }

    fn not_callable(&mut self, value: Value, name: Option<&str>) -> Stop {
        self.error(codes::TYPE, not_callable(value, name))
    }

    fn no_method(&mut self, receiver: Value, name: &str) -> Stop {
        let message = self.no_method_text(receiver, name);
        self.error(codes::TYPE, message)
    }

    fn no_method_text(&self, receiver: Value, name: &str) -> String {
        match receiver {
            Value::Null | Value::Hole => {
                format!("`{name}` of null: what stands before it is null or missing (write ?.{name} if that may be)")
            }
            Value::Promise(_) => format!("a promise has no `{name}`: is an await missing?"),
            _ => {
                let own: Vec<String> = match receiver {
                    Value::Object(id) => self
                        .heap
                        .object_of(id)
                        .into_iter()
                        .flat_map(Object::iter)
                        .map(|(key, _)| key.to_string())
                        .collect(),
                    _ => Vec::new(),
                };
                let mut known: Vec<&str> = own.iter().map(String::as_str).collect();
                for method in builtins::methods(receiver) {
                    known.push(method);
                }
                let meant = nearest(name, known);
                let hint = meant.map_or(String::new(), |meant| format!(": did you mean `{meant}`?"));
                format!("{} has no method `{name}`{hint}", receiver.described())
            }
        }
    }

    /// Calls a function of the language with the arguments from `start` on; what is on the stack from `floor` on is
    /// replaced by the result.
    pub(super) fn call_native(&mut self, native: u16, floor: usize, start: usize, ops: &mut Operations) -> Done<bool> {
        self.spend(CALL_COST)?;
        match &builtins::native(native).run {
            Run::Rust(run) => {
                let count = self.stack.len() - start;
                let run = *run;
                let result = run(&mut Call { machine: self, ops, native, start, count })?;
                self.stack.truncate(floor);
                self.stack.push(result);
                if self.heap.wants_collection() {
                    self.collect().map_err(Stop::Fatal)?;
                }
                Ok(false)
            }
            Run::Script(function) => {
                let function = builtins::prelude_function(function);
                if floor == start {
                    // A frame has the place of its callee below it.
                    self.stack.insert(start, Value::Null);
                }
                self.enter(function, None, floor + 1).map(|()| true)
            }
        }
    }

    /// Begins a call whose arguments are on the stack from `start` on.
    pub(super) fn enter(&mut self, function: u32, closure: Option<Id>, start: usize) -> Done<()> {
        let compiled = &self.code.functions[function as usize];
        let (params, has_rest, is_async) = (usize::from(compiled.params), compiled.has_rest, compiled.is_async);
        let (slots, length) = (usize::from(compiled.slots), compiled.ops.len() as u64);
        self.spend(CALL_COST + length.min(64))?;
        if self.frames.len() >= self.limits.call_depth {
            return Err(self.too_deep(function));
        }
        self.fit_args(start, params, has_rest);
        self.stack.resize(start + slots, Value::Null);
        let kind = if is_async { FrameKind::Task(self.new_task()) } else { FrameKind::Plain };
        let base = u32::try_from(start).unwrap_or(u32::MAX);
        self.frames.push(Frame { function, closure, at: 0, base, kind });
        if self.heap.wants_collection() {
            self.collect().map_err(Stop::Fatal)?;
        }
        Ok(())
    }

    fn too_deep(&mut self, function: u32) -> Stop {
        let (limit, name) = (self.limits.call_depth, &self.code.functions[function as usize].name);
        let message = format!("calls nest deeper than {limit}: does `{name}` call itself without an end?");
        self.error(codes::DEPTH, message)
    }

    /// Missing arguments are null; superfluous ones go into the rest, or away.
    fn fit_args(&mut self, start: usize, params: usize, has_rest: bool) {
        let given = self.stack.len() - start;
        if has_rest {
            let rest = if given > params { self.stack.split_off(start + params) } else { Vec::new() };
            self.stack.resize(start + params, Value::Null);
            let rest = self.heap.list(rest);
            self.stack.push(rest);
        } else {
            self.stack.resize(start + params, Value::Null);
        }
    }

    /// Replaces the list of arguments on top by its elements; how many there are.
    pub(super) fn spread_args(&mut self) -> usize {
        let list = self.pop();
        let Value::List(id) = list else { return 0 };
        let before = self.stack.len();
        self.stack.extend_from_slice(self.heap.list_of(id));
        self.stack.len() - before
    }

    /// Ends the call on top.
    pub(super) fn return_value(&mut self, value: Value) {
        let Some(frame) = self.frames.pop() else { return };
        self.stack.truncate(frame.base as usize - 1);
        match frame.kind {
            FrameKind::Plain => self.stack.push(value),
            FrameKind::Task(task) => {
                let promise = self.end_task(task, super::Outcome::Value(value));
                self.stack.push(promise);
            }
            FrameKind::ResumedTask(task) => {
                self.end_task(task, super::Outcome::Value(value));
            }
        }
    }

    pub(super) fn new_closure(&mut self, code: &Code, function: u32, base: usize) -> Value {
        let from = |capture: &CaptureFrom| match capture {
            CaptureFrom::Slot(slot) => self.stack[base + usize::from(*slot)].id(),
            CaptureFrom::Capture(at) => self.captured(*at),
        };
        let captures = code.functions[function as usize].captures.iter().filter_map(from).collect();
        Value::Function(self.heap.alloc(Cell::Closure(Closure { function, captures })))
    }

    /// The box of a captured variable.
    pub(super) fn captured(&self, at: u16) -> Option<Id> {
        let closure = self.frames.last()?.closure?;
        match self.heap.cell(closure) {
            Cell::Closure(closure) => closure.captures.get(usize::from(at)).copied(),
            _ => None,
        }
    }
}

fn not_callable(value: Value, name: Option<&str>) -> String {
    let what = name.map_or("this".to_owned(), |name| format!("`{name}`"));
    format!("{what} is {} and cannot be called", value.described())
}
