//! The loop that runs instructions.

mod control;
mod data;
mod plain;

use outlast_core::operation::Operations;

use super::{Done, Machine, Stop};
use crate::code::{Code, Op};
use crate::value::Value;

/// What an instruction does to the flow of control.
pub(super) enum Flow {
    /// The next instruction of this call follows.
    Next,
    /// Another call is on top now.
    Frame,
}

impl Machine {
    /// Runs until no call is left on the stack.
    pub(super) fn execute(&mut self, code: &Code, ops: &mut Operations) -> Done<()> {
        loop {
            let Some(frame) = self.frames.last() else { return Ok(()) };
            let function = &*code.functions[frame.function as usize];
            let base = frame.base as usize;
            let mut at = frame.at as usize;
            loop {
                let op = function.ops[at];
                at += 1;
                // Numbers are looked at where they lie. To copy the whole value first is many times slower: the processor
                // cannot read as one what was just written in two parts, and waits.
                match op {
                    Op::Load(slot) => {
                        let value = self.stack[base + usize::from(slot)];
                        self.stack.push(value);
                    }
                    Op::Store(slot) => {
                        let value = self.pop();
                        self.stack[base + usize::from(slot)] = value;
                    }
                    Op::Int(value) => self.stack.push(Value::Number(f64::from(value))),
                    Op::Null => self.stack.push(Value::Null),
                    Op::Bool(value) => self.stack.push(Value::Bool(value)),
                    Op::Number(place) => self.stack.push(Value::Number(code.numbers[place as usize])),
                    Op::Text(place) => self.stack.push(Value::Text(crate::value::Id(place))),
                    Op::Pop => {
                        self.pop();
                    }
                    Op::Dup => {
                        let value = self.top();
                        self.stack.push(value);
                    }
                    Op::Jump(target) => at = target as usize,
                    Op::Loop(target) => at = self.back(at, target)?,
                    Op::RoundIfLessInt { slot, by, than } => {
                        at = self.round(&function.ops, at, base + usize::from(slot), by, f64::from(than))?;
                    }
                    Op::RoundIfLess { slot, by, than } => {
                        // Nothing is less than what is not a number.
                        let than = match &self.stack[base + usize::from(than)] {
                            Value::Number(than) => *than,
                            _ => f64::NAN,
                        };
                        at = self.round(&function.ops, at, base + usize::from(slot), by, than)?;
                    }
                    Op::JumpIfFalse(target) => {
                        let value = self.pop();
                        if !self.truthy(value) {
                            at = target as usize;
                        }
                    }
                    Op::JumpIfTrue(target) => {
                        let value = self.pop();
                        if self.truthy(value) {
                            at = target as usize;
                        }
                    }
                    Op::JumpIfNotLess(target) => {
                        let (left, right) = self.pop_two();
                        let less = if let (Value::Number(a), Value::Number(b)) = (left, right) {
                            a < b
                        } else {
                            self.sync(at);
                            self.compare(Op::Less, left, right)?
                        };
                        if !less {
                            at = target as usize;
                        }
                    }
                    Op::AddInt(by) => {
                        let left = self.pop();
                        let sum = if let Value::Number(number) = left {
                            Value::Number(number + f64::from(by))
                        } else {
                            self.sync(at);
                            self.add(left, Value::Number(f64::from(by)))?
                        };
                        self.stack.push(sum);
                    }
                    Op::StepLocal { slot, by } => {
                        let place = base + usize::from(slot);
                        if let Value::Number(number) = &mut self.stack[place] {
                            *number += f64::from(by);
                        } else {
                            self.sync(at);
                            return Err(self.not_a_number("++ and --", self.stack[place]));
                        }
                    }
                    Op::AddLocals { left, right, to } => {
                        let (left, right) =
                            (&self.stack[base + usize::from(left)], &self.stack[base + usize::from(right)]);
                        if let (Value::Number(a), Value::Number(b)) = (left, right) {
                            let sum = a + b;
                            self.stack[base + usize::from(to)] = Value::Number(sum);
                        } else {
                            let (left, right) = (*left, *right);
                            self.sync(at);
                            self.stack[base + usize::from(to)] = self.add(left, right)?;
                        }
                    }
                    Op::SkipIfLessInt { slot, than } => {
                        let left = &self.stack[base + usize::from(slot)];
                        let less = if let Value::Number(number) = left {
                            *number < f64::from(than)
                        } else {
                            let left = *left;
                            self.sync(at);
                            self.compare(Op::Less, left, Value::Number(f64::from(than)))?
                        };
                        at += usize::from(less);
                    }
                    Op::SkipIfLess { slot, than } => {
                        let (left, right) =
                            (&self.stack[base + usize::from(slot)], &self.stack[base + usize::from(than)]);
                        let less = if let (Value::Number(a), Value::Number(b)) = (left, right) {
                            a < b
                        } else {
                            let (left, right) = (*left, *right);
                            self.sync(at);
                            self.compare(Op::Less, left, right)?
                        };
                        at += usize::from(less);
                    }
                    Op::Add => {
                        let (left, right) = self.pop_two();
                        let sum = if let (Value::Number(a), Value::Number(b)) = (left, right) {
                            Value::Number(a + b)
                        } else {
                            self.sync(at);
                            self.add(left, right)?
                        };
                        self.stack.push(sum);
                    }
                    Op::Subtract | Op::Multiply | Op::Divide | Op::Remainder | Op::Power => {
                        let (left, right) = self.pop_two();
                        let (Value::Number(a), Value::Number(b)) = (left, right) else {
                            self.sync(at);
                            return Err(self.bad_operands(op, left, right));
                        };
                        self.stack.push(Value::Number(super::arithmetic::number(op, a, b)));
                    }
                    Op::Less | Op::LessEquals | Op::Greater | Op::GreaterEquals => {
                        let (left, right) = self.pop_two();
                        self.sync(at);
                        let holds = self.compare(op, left, right)?;
                        self.stack.push(Value::Bool(holds));
                    }
                    Op::Same | Op::NotSame => {
                        let (left, right) = self.pop_two();
                        let same = self.same(left, right);
                        self.stack.push(Value::Bool(same == (op == Op::Same)));
                    }
                    other => {
                        self.sync(at);
                        match self.rare(code, other, base, ops)? {
                            Flow::Next => at = self.at(),
                            Flow::Frame => break,
                        }
                    }
                }
            }
        }
    }

    /// Jumps back from before `at`, which is counted.
    #[inline(always)]
    fn back(&mut self, at: usize, target: u32) -> Done<usize> {
        let target = target as usize;
        let length = (at - target) as u64;
        if self.fuel < length || self.heap.wants_collection() {
            self.sync(at);
            self.spend(length)?;
            self.collect().map_err(Stop::Fatal)?;
        } else {
            self.fuel -= length;
        }
        Ok(target)
    }

    /// The next round of a loop that counts, if there is one.
    #[inline(always)]
    fn round(&mut self, ops: &[Op], at: usize, place: usize, by: i8, than: f64) -> Done<usize> {
        if let (Value::Number(number), Some(&Op::Loop(target))) = (&mut self.stack[place], ops.get(at)) {
            let next = *number + f64::from(by);
            if next < than {
                *number = next;
                return self.back(at + 1, target);
            }
        }
        Ok(at + 1)
    }

    /// Notes how far the call on top is, for errors and for whoever returns to it.
    fn sync(&mut self, at: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = u32::try_from(at).unwrap_or(u32::MAX);
        }
    }

    fn at(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.at as usize)
    }

    pub(super) fn pop(&mut self) -> Value {
        // Code pushes before it pops: there is always something.
        self.stack.pop().unwrap_or(Value::Null)
    }

    fn pop_two(&mut self) -> (Value, Value) {
        let right = self.pop();
        let left = self.pop();
        (left, right)
    }

    fn top(&self) -> Value {
        self.stack.last().copied().unwrap_or(Value::Null)
    }

    fn push(&mut self, value: Value) -> Done<Flow> {
        self.stack.push(value);
        Ok(Flow::Next)
    }

    /// Pushes a value that was just made, and collects if that made too many.
    fn push_new(&mut self, value: Value) -> Done<Flow> {
        self.stack.push(value);
        if self.heap.wants_collection() {
            self.collect().map_err(Stop::Fatal)?;
        }
        Ok(Flow::Next)
    }
}
