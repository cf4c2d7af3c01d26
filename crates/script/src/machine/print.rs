//! Values as text, as `String(value)` and templates write them.

use super::{Done, Machine, codes};
use crate::heap::Cell;
use crate::value::{Id, Value};

/// What is left to write.
enum Work {
    Value(Value),
    /// An element of a list: null is empty there.
    Element(Value),
    Comma,
    /// The list is done.
    Leave,
}

impl Machine {
    /// Adds a value to a text, without recursion; a list inside itself is empty.
    pub(crate) fn print_onto(&mut self, value: Value, text: &mut String) -> Done<()> {
        let mut work = vec![Work::Value(value)];
        let mut inside: Vec<Id> = Vec::new();
        while let Some(item) = work.pop() {
            let before = text.len();
            match item {
                Work::Comma => text.push(','),
                Work::Leave => {
                    inside.pop();
                }
                Work::Element(Value::Null) => {}
                Work::Value(Value::List(id)) | Work::Element(Value::List(id)) => {
                    if inside.contains(&id) {
                        continue;
                    }
                    inside.push(id);
                    self.check_nesting(inside.len())?;
                    work.push(Work::Leave);
                    for (place, element) in self.heap.list_of(id).iter().enumerate().rev() {
                        work.push(Work::Element(*element));
                        if place > 0 {
                            work.push(Work::Comma);
                        }
                    }
                }
                Work::Value(value) | Work::Element(value) => self.print_simple(value, text),
            }
            self.spend(1 + (text.len() - before) as u64 / 16)?;
            self.check_text(text.len())?;
        }
        Ok(())
    }

    fn check_nesting(&mut self, depth: usize) -> Done<()> {
        // A list of lists of lists: looking for it among those around it takes longer with each.
        const DEPTH_MAX: usize = 10_000;
        if depth > DEPTH_MAX {
            let message = format!("lists nest deeper than {DEPTH_MAX} here, which is too deep to write as text");
            return Err(self.error(codes::SIZE, message));
        }
        Ok(())
    }

    fn print_simple(&self, value: Value, text: &mut String) {
        match value {
            Value::Hole | Value::Null => text.push_str("null"),
            Value::Bool(value) => text.push_str(if value { "true" } else { "false" }),
            Value::Number(number) => text.push_str(&crate::number::to_text(number)),
            Value::Text(id) => text.push_str(&self.heap.text_of(id).text),
            Value::Object(_) | Value::List(_) => text.push_str("[object Object]"),
            Value::Promise(_) => text.push_str("[object Promise]"),
            Value::Error(id) => {
                text.push_str(self.error_name(id));
                let message = self.heap.error_of(id).map_or(Value::Null, |error| error.message);
                if let Value::Text(message) = message
                    && !self.heap.text_of(message).text.is_empty()
                {
                    text.push_str(": ");
                    text.push_str(&self.heap.text_of(message).text);
                }
            }
            Value::Function(id) => {
                let name = match self.heap.cell(id) {
                    Cell::Closure(closure) => &*self.code.functions[closure.function as usize].name,
                    _ => "native",
                };
                text.push_str("function ");
                text.push_str(name);
            }
            Value::Native(native) => {
                text.push_str("function ");
                text.push_str(crate::builtins::native(native).name);
            }
        }
    }

    /// A value as text, for a message; what cannot be written is left out.
    pub(crate) fn shown(&mut self, value: Value) -> String {
        let mut text = String::new();
        // The text so far is good enough.
        let _ = self.print_onto(value, &mut text);
        text
    }

    /// A new string, if it is not too long.
    pub(crate) fn new_text(&mut self, text: String) -> Done {
        self.check_text(text.len())?;
        Ok(self.heap.text(text))
    }

    /// Fails if a string would be too long.
    pub(crate) fn check_text(&mut self, bytes: usize) -> Done<()> {
        let limit = self.limits.text_bytes;
        if bytes > limit {
            let message = format!("a string of {bytes} bytes is too long, the limit is {limit}");
            return Err(self.error(codes::SIZE, message));
        }
        Ok(())
    }
}
