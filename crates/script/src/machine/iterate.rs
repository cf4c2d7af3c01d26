//! Going over lists, texts and keys.

use std::sync::Arc;

use super::{Done, Machine, codes};
use crate::heap::Object;
use crate::value::Value;

impl Machine {
    /// What a loop goes over, as a list. A list itself is not copied: the loop sees what happens to it.
    pub(super) fn iterable(&mut self, value: Value, what: &str) -> Done {
        match value {
            Value::List(_) => Ok(value),
            other => {
                let items = self.elements(other, what)?;
                Ok(self.heap.list(items))
            }
        }
    }

    /// The elements of a list, or the characters of a text.
    pub(crate) fn elements(&mut self, value: Value, what: &str) -> Done<Vec<Value>> {
        match value {
            Value::List(id) => {
                let items = self.heap.list_of(id).to_vec();
                self.spend(items.len() as u64)?;
                Ok(items)
            }
            Value::Text(id) => {
                let text = self.heap.text_of(id).text.clone();
                self.spend(text.len() as u64)?;
                self.check_items(text.chars().count())?;
                let mut buffer = [0; 4];
                Ok(text.chars().map(|letter| self.heap.text(&*letter.encode_utf8(&mut buffer))).collect())
            }
            other => {
                let hint = match other {
                    Value::Object(_) => ": use Object.keys, Object.values or Object.entries",
                    Value::Promise(_) => ": is an await missing?",
                    Value::Null | Value::Hole => ": the value is null or missing",
                    _ => "",
                };
                let message = format!("{what} goes over a list or a string, not {}{hint}", other.described());
                Err(self.error(codes::TYPE, message))
            }
        }
    }

    /// The keys a `for … in` goes over.
    pub(super) fn keys_of(&mut self, value: Value) -> Done {
        let keys: Vec<Arc<str>> = match value {
            Value::Object(id) => {
                self.heap.object_of(id).into_iter().flat_map(Object::iter).map(|(key, _)| Arc::clone(key)).collect()
            }
            Value::List(id) => (0..self.heap.list_of(id).len()).map(|place| Arc::from(place.to_string())).collect(),
            Value::Null => Vec::new(),
            other => {
                let message = format!("for … in goes over the keys of an object, not of {}", other.described());
                return Err(self.error(codes::TYPE, message));
            }
        };
        self.spend(keys.len() as u64)?;
        let keys = keys.into_iter().map(|key| self.heap.text(key)).collect();
        Ok(self.heap.list(keys))
    }

    /// The next element of the list at a place on the stack, counted in the place after it.
    pub(super) fn next_element(&mut self, place: usize) -> Option<Value> {
        let (Value::List(id), Value::Number(at)) = (self.stack[place], self.stack[place + 1]) else { return None };
        let value = self.heap.list_of(id).get(at as usize).copied()?;
        self.stack[place + 1] = Value::Number(at + 1.0);
        Some(value)
    }
}
