//! Instructions that take values and leave values; variables.

use super::Flow;
use crate::code::{Code, Op};
use crate::heap::Cell;
use crate::machine::{Done, Machine};
use crate::value::Value;

impl Machine {
    /// Instructions that take values and leave values.
    pub(super) fn plain(&mut self, code: &Code, op: Op, base: usize) -> Done<Flow> {
        match op {
            Op::Native(native) => self.push(Value::Native(native)),
            Op::Inputs => self.push(self.inputs),
            Op::RunId => {
                let text = self.heap.text(self.world.run_id());
                self.push(text)
            }
            Op::WorkflowName => {
                let text = self.heap.text(self.world.workflow());
                self.push(text)
            }
            Op::IsEntry(place) => {
                let is_entry = code.workflows[usize::from(place)].as_ref() == self.world.workflow();
                self.push(Value::Bool(is_entry))
            }
            Op::Dup2 => {
                let length = self.stack.len();
                let (left, right) = (self.stack[length - 2], self.stack[length - 1]);
                self.stack.push(left);
                self.push(right)
            }
            Op::Swap => {
                let length = self.stack.len();
                self.stack.swap(length - 2, length - 1);
                Ok(Flow::Next)
            }
            Op::Rot3 => {
                let length = self.stack.len();
                self.stack[length - 3..].rotate_left(1);
                Ok(Flow::Next)
            }
            Op::ThisFunction => {
                let closure = self.frames.last().and_then(|frame| frame.closure);
                self.push(closure.map_or(Value::Null, Value::Function))
            }
            Op::Closure(function) => {
                let closure = self.new_closure(code, function, base);
                self.push_new(closure)
            }
            Op::In => {
                let (key, object) = self.pop_two();
                let found = self.has_key(key, object)?;
                self.push(Value::Bool(found))
            }
            Op::IsError => {
                let value = self.pop();
                self.push(Value::Bool(matches!(value, Value::Error(_))))
            }
            Op::Not => {
                let value = self.pop();
                self.push(Value::Bool(!self.truthy(value)))
            }
            Op::Minus => match self.pop() {
                Value::Number(number) => self.push(Value::Number(-number)),
                other => Err(self.not_a_number("-", other)),
            },
            Op::Plus => match self.pop() {
                Value::Number(number) => self.push(Value::Number(number)),
                other => Err(self.not_a_number("+", other)),
            },
            Op::Step(by) => match self.pop() {
                Value::Number(number) => self.push(Value::Number(number + f64::from(by))),
                other => Err(self.not_a_number("++ and --", other)),
            },
            Op::Typeof => {
                let name = self.pop().type_name();
                let text = self.heap.text(name);
                self.push(text)
            }
            Op::Template(parts) => {
                let text = self.template(parts as usize)?;
                self.push_new(text)
            }
            other => self.variable(other, base),
        }
    }

    fn variable(&mut self, op: Op, base: usize) -> Done<Flow> {
        let place = |slot: u16| base + usize::from(slot);
        match op {
            Op::LoadChecked(slot) => {
                let value = self.initialised(self.stack[place(slot)])?;
                self.push(value)
            }
            Op::StoreChecked(slot) => {
                self.initialised(self.stack[place(slot)])?;
                let value = self.pop();
                self.stack[place(slot)] = value;
                Ok(Flow::Next)
            }
            Op::SetHole(slot) => {
                self.stack[place(slot)] = Value::Hole;
                Ok(Flow::Next)
            }
            Op::NewBox(slot) => {
                let id = self.heap.alloc(Cell::Variable(Value::Hole));
                self.stack[place(slot)] = Value::Function(id);
                Ok(Flow::Next)
            }
            Op::BoxParam(slot) => {
                let id = self.heap.alloc(Cell::Variable(self.stack[place(slot)]));
                self.stack[place(slot)] = Value::Function(id);
                Ok(Flow::Next)
            }
            Op::CopyBox(slot) => {
                let value = self.boxed_at(place(slot));
                let id = self.heap.alloc(Cell::Variable(value));
                self.stack[place(slot)] = Value::Function(id);
                Ok(Flow::Next)
            }
            Op::LoadBox(slot) => {
                let value = self.boxed_at(place(slot));
                self.push(value)
            }
            Op::LoadBoxChecked(slot) => {
                let value = self.initialised(self.boxed_at(place(slot)))?;
                self.push(value)
            }
            Op::StoreBox(slot) => self.store_boxed(place(slot)),
            Op::StoreBoxChecked(slot) => {
                self.initialised(self.boxed_at(place(slot)))?;
                self.store_boxed(place(slot))
            }
            Op::LoadCapture(at) => {
                let value = self.captured(at).map_or(Value::Hole, |id| self.heap.boxed(id));
                self.push(value)
            }
            Op::LoadCaptureChecked(at) => {
                let value = self.captured(at).map_or(Value::Hole, |id| self.heap.boxed(id));
                let value = self.initialised(value)?;
                self.push(value)
            }
            Op::StoreCapture(at) => self.store_captured(at),
            Op::StoreCaptureChecked(at) => {
                let value = self.captured(at).map_or(Value::Hole, |id| self.heap.boxed(id));
                self.initialised(value)?;
                self.store_captured(at)
            }
            other => self.data(other),
        }
    }

    fn boxed_at(&self, place: usize) -> Value {
        self.stack[place].id().map_or(Value::Hole, |id| self.heap.boxed(id))
    }

    fn store_boxed(&mut self, place: usize) -> Done<Flow> {
        let value = self.pop();
        if let Some(id) = self.stack[place].id() {
            self.heap.set_boxed(id, value);
        }
        Ok(Flow::Next)
    }

    fn store_captured(&mut self, at: u16) -> Done<Flow> {
        let value = self.pop();
        if let Some(id) = self.captured(at) {
            self.heap.set_boxed(id, value);
        }
        Ok(Flow::Next)
    }
}
