//! Instructions that decide what comes next.

use outlast_core::operation::Operations;

use super::Flow;
use crate::code::{Code, Op};
use crate::compile::{ENTERED_BY_THROW, ENTERED_NORMALLY};
use crate::machine::{Done, Machine, Stop};
use crate::value::Value;

impl Machine {
    /// Instructions that are not worth a place in the loop.
    pub(super) fn rare(&mut self, code: &Code, op: Op, base: usize, ops: &mut Operations) -> Done<Flow> {
        match op {
            Op::Call(args) => self.call_value(usize::from(args), ops).map(flow),
            Op::CallNative { native, args } => {
                let start = self.stack.len() - usize::from(args);
                self.call_native(native, start, start, ops).map(flow)
            }
            Op::CallMethod { name, args } => self.call_method(name, usize::from(args), ops).map(flow),
            Op::CallList => {
                let args = self.spread_args();
                self.call_value(args, ops).map(flow)
            }
            Op::CallNativeList(native) => {
                let args = self.spread_args();
                let start = self.stack.len() - args;
                self.call_native(native, start, start, ops).map(flow)
            }
            Op::CallFound { name, args } => self.call_found(name, usize::from(args), ops).map(flow),
            Op::CallFoundList(name) => {
                let args = self.spread_args();
                self.call_found(name, args, ops).map(flow)
            }
            Op::Return => {
                let value = self.pop();
                self.return_value(value);
                Ok(Flow::Frame)
            }
            Op::Throw => {
                let value = self.pop();
                Err(self.thrown(value))
            }
            Op::Await => {
                let value = self.pop();
                self.suspend(value, ops);
                Ok(Flow::Frame)
            }
            Op::Jump(target) | Op::Loop(target) => self.jump(target),
            Op::JumpIfFalseKeep(target) => self.jump_keeping(target, !self.truthy(self.top())),
            Op::JumpIfTrueKeep(target) => self.jump_keeping(target, self.truthy(self.top())),
            Op::JumpIfNotNullKeep(target) | Op::DefaultJump(target) => {
                self.jump_keeping(target, self.top() != Value::Null)
            }
            Op::JumpIfNullKeep(target) => {
                if self.top() == Value::Null {
                    return self.jump(target);
                }
                Ok(Flow::Next)
            }
            Op::Next { slot, jump } => match self.next_element(base + usize::from(slot)) {
                Some(value) => self.push(value),
                None => self.jump(jump),
            },
            Op::EndFinally(slot) => {
                let place = base + usize::from(slot);
                if self.stack[place] == Value::Number(f64::from(ENTERED_BY_THROW)) {
                    let error = self.stack[place + 1];
                    self.stack[place] = Value::Number(f64::from(ENTERED_NORMALLY));
                    return Err(Stop::Throw(error));
                }
                Ok(Flow::Next)
            }
            Op::IsExit { slot, exit } => {
                let entered = self.stack[base + usize::from(slot)];
                self.push(Value::Bool(entered == Value::Number(f64::from(exit))))
            }
            other => self.plain(code, other, base),
        }
    }

    fn jump(&mut self, target: u32) -> Done<Flow> {
        self.sync(target as usize);
        Ok(Flow::Next)
    }

    fn jump_keeping(&mut self, target: u32, jumps: bool) -> Done<Flow> {
        if jumps {
            return self.jump(target);
        }
        self.pop();
        Ok(Flow::Next)
    }
}

/// A call either put another frame on top or left its result.
fn flow(entered: bool) -> Flow {
    if entered { Flow::Frame } else { Flow::Next }
}
