//! Operators on values.

use super::{Done, Machine, Stop, codes};
use crate::code::Op;
use crate::value::Value;

/// What an operator makes of two numbers.
pub(super) fn number(op: Op, left: f64, right: f64) -> f64 {
    match op {
        Op::Subtract => left - right,
        Op::Multiply => left * right,
        Op::Divide => left / right,
        Op::Remainder => left % right,
        _ => power(left, right),
    }
}

/// Raises a number, the same on every machine. One to an infinite power is not a number, as in JavaScript.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    if base.abs() == 1.0 && exponent.is_infinite() { f64::NAN } else { libm::pow(base, exponent) }
}

impl Machine {
    pub(crate) fn truthy(&self, value: Value) -> bool {
        match value {
            Value::Hole | Value::Null => false,
            Value::Bool(value) => value,
            Value::Number(number) => number != 0.0 && !number.is_nan(),
            Value::Text(id) => !self.heap.text_of(id).text.is_empty(),
            Value::List(_)
            | Value::Object(_)
            | Value::Error(_)
            | Value::Promise(_)
            | Value::Function(_)
            | Value::Native(_) => true,
        }
    }

    /// Whether two values are the same: texts by what they say, everything in the heap by identity.
    pub(crate) fn same(&self, left: Value, right: Value) -> bool {
        match (left, right) {
            (Value::Text(a), Value::Text(b)) => a == b || self.heap.text_of(a).text == self.heap.text_of(b).text,
            _ => left == right,
        }
    }

    pub(super) fn compare(&mut self, op: Op, left: Value, right: Value) -> Done<bool> {
        use std::cmp::Ordering;
        let order = match (left, right) {
            (Value::Number(a), Value::Number(b)) => a.partial_cmp(&b),
            (Value::Text(a), Value::Text(b)) => Some(self.heap.text_of(a).text.cmp(&self.heap.text_of(b).text)),
            _ => return Err(self.bad_operands(op, left, right)),
        };
        Ok(match (op, order) {
            (_, None) => false,
            (Op::Less, Some(order)) => order == Ordering::Less,
            (Op::LessEquals, Some(order)) => order != Ordering::Greater,
            (Op::Greater, Some(order)) => order == Ordering::Greater,
            (_, Some(order)) => order != Ordering::Less,
        })
    }

    /// `+`: a sum of numbers, or a text if one of the two is a text.
    pub(super) fn add(&mut self, left: Value, right: Value) -> Done {
        match (left, right) {
            (Value::Number(a), Value::Number(b)) => Ok(Value::Number(a + b)),
            (Value::Text(_), _) | (_, Value::Text(_)) => {
                // Both stay reachable while the result is made.
                self.stack.push(left);
                self.stack.push(right);
                self.template(2)
            }
            _ => Err(self.bad_operands(Op::Add, left, right)),
        }
    }

    /// One text of the so many values on top.
    pub(super) fn template(&mut self, parts: usize) -> Done {
        let start = self.stack.len() - parts;
        let mut text = String::new();
        for place in start..self.stack.len() {
            self.print_onto(self.stack[place], &mut text)?;
        }
        self.stack.truncate(start);
        if self.heap.wants_collection() {
            self.collect().map_err(Stop::Fatal)?;
        }
        self.new_text(text)
    }

    pub(super) fn bad_operands(&mut self, op: Op, left: Value, right: Value) -> Stop {
        let sign = match op {
            Op::Add => "+",
            Op::Subtract => "-",
            Op::Multiply => "*",
            Op::Divide => "/",
            Op::Remainder => "%",
            Op::Power => "**",
            Op::Less => "<",
            Op::LessEquals => "<=",
            Op::Greater => ">",
            _ => ">=",
        };
        let wants = match op {
            Op::Add => "numbers, or a string and something else",
            Op::Less | Op::LessEquals | Op::Greater | Op::GreaterEquals => "two numbers or two strings",
            _ => "two numbers",
        };
        let hint = match (left, right) {
            (Value::Promise(_), _) | (_, Value::Promise(_)) => ": is an await missing?",
            (Value::Null | Value::Hole, _) | (_, Value::Null | Value::Hole) => {
                ": is the value missing? (value ?? 0 gives it a default)"
            }
            (Value::Text(_), _) | (_, Value::Text(_)) => ": Number(text) makes a number of a text",
            _ => "",
        };
        let message = format!("{sign} takes {wants}, not {} and {}{hint}", left.described(), right.described());
        self.error(codes::TYPE, message)
    }

    pub(super) fn not_a_number(&mut self, sign: &str, value: Value) -> Stop {
        let message = format!("{sign} takes a number, not {}: Number(value) makes one", value.described());
        self.error(codes::TYPE, message)
    }

    /// A variable's value, once it has one.
    pub(super) fn initialised(&mut self, value: Value) -> Done {
        if value == Value::Hole {
            return Err(self.error(codes::REFERENCE, "this variable is used before its declaration has run".to_owned()));
        }
        Ok(value)
    }
}
