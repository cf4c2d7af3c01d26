//! Properties and elements.

use std::sync::Arc;

use super::{Done, Machine, Stop, codes};
use crate::builtins;
use crate::heap::{Cell, Object};
use crate::value::{Id, Value};

impl Machine {
    /// The property with a constant name; null if there is none. Of null itself there are no properties.
    pub(super) fn member(&mut self, object: Value, name: u32) -> Done {
        if let Value::Object(id) = object {
            let name = &self.heap.text_of(Id(name)).text;
            if let Some(value) = self.heap.object_of(id).and_then(|object| object.get(name)) {
                return Ok(value);
            }
        }
        let name = self.heap.text_of(Id(name)).text.clone();
        self.property(object, &name)
    }

    fn property(&mut self, object: Value, name: &str) -> Done {
        match object {
            Value::Null | Value::Hole => Err(self.property_of_null(name)),
            Value::Object(id) => match self.heap.object_of(id).and_then(|object| object.get(name)) {
                Some(value) => Ok(value),
                None => Ok(self.bound(object, name)),
            },
            // As a pattern names it: `{ 0: first }`.
            Value::List(id) if name.starts_with(|letter: char| letter.is_ascii_digit()) => {
                let place = name.parse::<usize>().ok().filter(|place| place.to_string() == name);
                Ok(place.and_then(|place| self.heap.list_of(id).get(place).copied()).unwrap_or(Value::Null))
            }
            Value::List(id) if name == "length" => Ok(count(self.heap.list_of(id).len())),
            Value::Text(id) if name == "length" => Ok(count(self.heap.text_of(id).chars())),
            Value::Error(id) => self.error_property(id, name),
            Value::Promise(id) => self.promise_property(id, name),
            Value::Function(id) if name == "name" => {
                let name = match self.heap.cell(id) {
                    Cell::Closure(closure) => Arc::clone(&self.code.functions[closure.function as usize].name),
                    _ => "".into(),
                };
                Ok(self.heap.text(name))
            }
            Value::List(_)
            | Value::Text(_)
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Function(_)
            | Value::Native(_) => Ok(self.bound(object, name)),
        }
    }

    /// A method together with what it was read from; null if there is no such method.
    fn bound(&mut self, receiver: Value, name: &str) -> Value {
        match builtins::method(receiver, name) {
            Some(native) => Value::Function(self.heap.alloc(Cell::Bound { native, receiver })),
            None => Value::Null,
        }
    }

    fn property_of_null(&mut self, name: &str) -> Stop {
        let message = format!(
            "cannot read `{name}` of null: what stands before it is null or missing (write ?.{name} if that may be)"
        );
        self.error(codes::TYPE, message)
    }

    fn error_property(&mut self, id: Id, name: &str) -> Done {
        let Some(error) = self.heap.error_of(id) else { return Ok(Value::Null) };
        Ok(match name {
            "code" => error.code,
            "message" => error.message,
            "data" => error.data,
            "stack" => {
                let stack = Arc::clone(&error.stack);
                let head = self.shown(Value::Error(id));
                self.heap.text(format!("{head}\n{stack}"))
            }
            "name" => {
                let name = self.error_name(id);
                self.heap.text(name)
            }
            "errors" => match error.data {
                Value::Object(data) => self.heap.object_of(data).and_then(|data| data.get(name)).unwrap_or(Value::Null),
                _ => Value::Null,
            },
            _ => self.bound(Value::Error(id), name),
        })
    }

    /// The name JavaScript would give an error.
    pub(super) fn error_name(&self, id: Id) -> &'static str {
        let code = match self.heap.error_of(id).map(|error| error.code) {
            Some(Value::Text(code)) => &*self.heap.text_of(code).text,
            _ => "",
        };
        match code {
            codes::TYPE => "TypeError",
            codes::RANGE | codes::DEPTH | codes::SIZE => "RangeError",
            codes::REFERENCE => "ReferenceError",
            codes::SYNTAX => "SyntaxError",
            codes::AGGREGATE => "AggregateError",
            _ => "Error",
        }
    }

    fn promise_property(&mut self, id: Id, name: &str) -> Done {
        let operation = self.heap.promise_of(id).and_then(|promise| promise.operation.clone());
        match (name, operation) {
            ("id", Some(key)) => Ok(self.heap.text(key.as_str())),
            ("id", None) => Ok(Value::Null),
            ("token", Some(key)) => {
                let token = self.world.token(&key);
                Ok(token.map_or(Value::Null, |token| self.heap.text(token)))
            }
            _ => match self.bound(Value::Promise(id), name) {
                Value::Null => {
                    let message = format!("a promise has no property `{name}`: is an await missing?");
                    Err(self.error(codes::TYPE, message))
                }
                method => Ok(method),
            },
        }
    }

    pub(super) fn index(&mut self, object: Value, index: Value) -> Done {
        match (object, self.place_named(object, index)) {
            (Value::List(id), Value::Number(number)) => {
                Ok(place(number).and_then(|place| self.heap.list_of(id).get(place).copied()).unwrap_or(Value::Null))
            }
            (Value::Text(id), Value::Number(number)) => {
                let text = self.heap.text_of(id);
                let Some(place) = place(number).filter(|place| *place < text.chars()) else { return Ok(Value::Null) };
                let letter: Arc<str> = text.slice(place, place + 1).into();
                Ok(self.heap.text(letter))
            }
            (Value::Null | Value::Hole, key) => {
                let key = self.shown(key);
                Err(self.property_of_null(&key))
            }
            (_, key) => {
                let key = self.key_of(key)?;
                self.property(object, &key)
            }
        }
    }

    /// A key of a list or a text that is written as a text, as `for … in` gives it: its number.
    fn place_named(&self, object: Value, key: Value) -> Value {
        let (Value::List(_) | Value::Text(_), Value::Text(id)) = (object, key) else { return key };
        let text = &*self.heap.text_of(id).text;
        let digits = text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_place = digits && (text == "0" || !text.starts_with('0'));
        if is_place { text.parse().map_or(key, Value::Number) } else { key }
    }

    /// The name of a property.
    pub(super) fn key_of(&mut self, key: Value) -> Done<Arc<str>> {
        match key {
            Value::Text(id) => Ok(self.heap.text_of(id).text.clone()),
            Value::Number(number) => Ok(crate::number::to_text(number).into()),
            Value::Bool(value) => Ok(if value { "true" } else { "false" }.into()),
            Value::Null => Ok("null".into()),
            other => {
                let message = format!("a property is named by a string or a number, not by {}", other.described());
                Err(self.error(codes::TYPE, message))
            }
        }
    }

    pub(super) fn set_member(&mut self, object: Value, name: u32, value: Value) -> Done<()> {
        let name = self.heap.text_of(Id(name)).text.clone();
        self.set_property(object, &name, value)
    }

    fn set_property(&mut self, object: Value, name: &Arc<str>, value: Value) -> Done<()> {
        match object {
            Value::Object(id) => {
                self.heap.set_property(id, name, value);
                Ok(())
            }
            Value::Error(id) => {
                let is_known = match (self.heap.error_mut(id), &**name) {
                    (Some(error), "code") => {
                        error.code = value;
                        true
                    }
                    (Some(error), "message") => {
                        error.message = value;
                        true
                    }
                    (Some(error), "data") => {
                        error.data = value;
                        true
                    }
                    (Some(_) | None, _) => false,
                };
                if is_known { Ok(()) } else { Err(self.cannot_set(object, name)) }
            }
            Value::List(id) if &**name == "length" => self.set_length(id, value),
            Value::Null | Value::Hole => {
                let message = format!("cannot set `{name}` of null: what stands before it is null or missing");
                Err(self.error(codes::TYPE, message))
            }
            other => Err(self.cannot_set(other, name)),
        }
    }

    fn set_length(&mut self, id: Id, length: Value) -> Done<()> {
        let Some(length) = (if let Value::Number(number) = length { place(number) } else { None }) else {
            let length = self.shown(length);
            return Err(self.error(codes::RANGE, format!("{length} is not the length of a list")));
        };
        self.check_items(length)?;
        self.heap.grew(length.saturating_sub(self.heap.list_of(id).len()) * 16);
        if let Some(items) = self.heap.list_mut(id) {
            items.resize(length, Value::Null);
        }
        Ok(())
    }

    fn cannot_set(&mut self, object: Value, name: &str) -> Stop {
        let hint = match object {
            Value::Error(_) => ": an error has code, message and data",
            Value::List(_) => ": a list has elements only; use an object",
            Value::Promise(_) => ": is an await missing?",
            Value::Text(_) => ": a string never changes; make a new one",
            _ => ": only objects have properties of their own",
        };
        let message = format!("cannot set `{name}` of {}{hint}", object.described());
        self.error(codes::TYPE, message)
    }

    pub(super) fn set_index(&mut self, object: Value, index: Value, value: Value) -> Done<()> {
        let index = self.place_named(object, index);
        let (Value::List(id), Value::Number(number)) = (object, index) else {
            let key = self.key_of(index)?;
            return self.set_property(object, &key, value);
        };
        let Some(place) = place(number) else {
            let message = format!("{} is not a place in a list", crate::number::to_text(number));
            return Err(self.error(codes::RANGE, message));
        };
        let length = self.heap.list_of(id).len();
        if place >= length {
            self.check_items(place + 1)?;
            self.heap.grew((place + 1 - length) * 16);
        }
        if let Some(items) = self.heap.list_mut(id) {
            if place >= items.len() {
                items.resize(place + 1, Value::Null);
            }
            items[place] = value;
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, object: Value, key: Value) -> Done {
        let key = self.key_of(key)?;
        match object {
            Value::Object(id) => {
                if let Some(object) = self.heap.object_mut(id) {
                    object.remove(&key);
                }
                Ok(Value::Bool(true))
            }
            Value::Null | Value::Hole => Err(self.property_of_null(&key)),
            other => {
                let hint = if matches!(other, Value::List(_)) { ": use splice" } else { "" };
                let message = format!("cannot delete `{key}` of {}{hint}", other.described());
                Err(self.error(codes::TYPE, message))
            }
        }
    }

    /// `key in object`.
    pub(super) fn has_key(&mut self, key: Value, object: Value) -> Done<bool> {
        match (object, self.place_named(object, key)) {
            (Value::Object(id), key) => {
                let key = self.key_of(key)?;
                Ok(self.heap.object_of(id).is_some_and(|object| object.get(&key).is_some()))
            }
            (Value::List(id), Value::Number(number)) => {
                Ok(place(number).is_some_and(|place| place < self.heap.list_of(id).len()))
            }
            (other, _) => {
                let hint = if matches!(other, Value::List(_) | Value::Text(_)) { ": use includes" } else { "" };
                let message = format!("in looks for a key in an object, not in {}{hint}", other.described());
                Err(self.error(codes::TYPE, message))
            }
        }
    }

    /// Adds an element at the end.
    pub(crate) fn append(&mut self, list: Value, value: Value) -> Done<()> {
        let Value::List(id) = list else { return Ok(()) };
        self.check_items(self.heap.list_of(id).len() + 1)?;
        if let Some(items) = self.heap.list_mut(id) {
            items.push(value);
        }
        self.heap.grew(16);
        Ok(())
    }

    /// Fails if a list would be too long.
    pub(crate) fn check_items(&mut self, count: usize) -> Done<()> {
        let limit = self.limits.list_items;
        if count > limit {
            let message = format!("a list of {count} elements is too long, the limit is {limit}");
            return Err(self.error(codes::SIZE, message));
        }
        Ok(())
    }

    /// Copies the properties of a value into the object on top.
    pub(super) fn spread_object(&mut self, value: Value) -> Done<()> {
        let entries: Vec<(Arc<str>, Value)> = match value {
            Value::Null => Vec::new(),
            Value::Object(id) => self.heap.object_of(id).into_iter().flat_map(Object::iter).cloned().collect(),
            Value::List(id) => {
                let items = self.heap.list_of(id).iter().enumerate();
                items.map(|(place, item)| (Arc::from(place.to_string()), *item)).collect()
            }
            other => {
                let message = format!("... in an object takes an object, not {}", other.described());
                return Err(self.error(codes::TYPE, message));
            }
        };
        self.spend(entries.len() as u64)?;
        if let Some(Value::Object(id)) = self.stack.last().copied() {
            for (key, value) in entries {
                self.heap.set_property(id, &key, value);
            }
        }
        Ok(())
    }

    /// Makes sure that the value on top has properties to take out.
    pub(super) fn check_object(&mut self) -> Done<()> {
        if self.stack.last() == Some(&Value::Null) {
            let message = "cannot take properties out of null: the value is null or missing".to_owned();
            return Err(self.error(codes::TYPE, message));
        }
        Ok(())
    }

    /// The object below the so many keys on top, without those.
    pub(super) fn rest_of_object(&mut self, keys: usize) -> Value {
        let keys = self.stack.split_off(self.stack.len() - keys);
        let value = self.pop();
        let entries: Vec<(Arc<str>, Value)> = match value {
            Value::Object(id) => self.heap.object_of(id).into_iter().flat_map(Object::iter).cloned().collect(),
            Value::List(id) => {
                let items = self.heap.list_of(id).iter().enumerate();
                items.map(|(place, item)| (Arc::from(place.to_string()), *item)).collect()
            }
            _ => Vec::new(),
        };
        let taken: Vec<&str> = keys
            .iter()
            .filter_map(|key| match key {
                Value::Text(id) => Some(&*self.heap.text_of(*id).text),
                _ => None,
            })
            .collect();
        let rest: Object = entries.into_iter().filter(|(key, _)| !taken.contains(&&**key)).collect();
        self.heap.object(rest)
    }
}

pub(crate) fn count(count: usize) -> Value {
    Value::Number(count as f64)
}

/// A number as a place in a list; none if it is not a whole one, or negative.
pub(crate) fn place(number: f64) -> Option<usize> {
    let is_place = number >= 0.0 && number.fract() == 0.0 && number < 4_294_967_296.0;
    is_place.then_some(number as usize)
}
