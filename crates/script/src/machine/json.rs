//! Values as JSON and back.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{Done, Machine, codes};
use crate::heap::{Heap, Object};
use crate::value::Value;

/// How functions are dealt with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Functions {
    /// Left out, as `JSON.stringify` does.
    Skipped,
    /// Refused: the value leaves the script, and somebody would miss it.
    Refused,
}

/// A list or object that is being written.
struct Open {
    value: Value,
    next: usize,
    /// Whether something was written in it.
    begun: bool,
}

struct Writer<'a> {
    text: String,
    open: Vec<Open>,
    functions: Functions,
    indent: &'a str,
}

impl Machine {
    /// A value as JSON, for whoever is outside. `what` it is, for messages.
    pub(crate) fn json_of(&mut self, value: Value, what: &str) -> Done<Bytes> {
        let text = self.write_json(value, "", Functions::Refused, what)?;
        Ok(Bytes::from(text.unwrap_or_else(|| "null".to_owned())))
    }

    /// `JSON.stringify`; none for a function.
    pub(crate) fn stringify(&mut self, value: Value, indent: &str) -> Done<Option<String>> {
        self.write_json(value, indent, Functions::Skipped, "the value")
    }

    fn write_json(&mut self, value: Value, indent: &str, functions: Functions, what: &str) -> Done<Option<String>> {
        if functions == Functions::Skipped && matches!(value, Value::Function(_) | Value::Native(_)) {
            return Ok(None);
        }
        let mut writer = Writer { text: String::new(), open: Vec::new(), functions, indent };
        self.begin_json(&mut writer, value, what)?;
        while let Some(open) = writer.open.last_mut() {
            let (container, place) = (open.value, open.next);
            open.next += 1;
            match self.json_item(container, place) {
                None => writer.close(),
                Some((key, item)) => {
                    let is_function = matches!(item, Value::Function(_) | Value::Native(_));
                    if is_function && functions == Functions::Skipped && key.is_some() {
                        continue;
                    }
                    writer.separate(key.as_deref());
                    self.begin_json(&mut writer, item, what)?;
                }
            }
            self.spend(1)?;
            self.check_text(writer.text.len())?;
        }
        Ok(Some(writer.text))
    }

    /// The element or property at a place.
    fn json_item(&self, container: Value, place: usize) -> Option<(Option<Arc<str>>, Value)> {
        match container {
            Value::List(id) => self.heap.list_of(id).get(place).map(|item| (None, *item)),
            Value::Object(id) => self.heap.object_of(id)?.at(place).map(|(key, item)| (Some(Arc::clone(key)), *item)),
            Value::Error(id) => {
                let error = self.heap.error_of(id)?;
                let (key, value) = [("code", error.code), ("message", error.message), ("data", error.data)]
                    .into_iter()
                    .filter(|(key, value)| *key != "data" || *value != Value::Null)
                    .nth(place)?;
                Some((Some(key.into()), value))
            }
            _ => None,
        }
    }

    /// Writes a simple value, or the beginning of a list or object.
    fn begin_json(&mut self, writer: &mut Writer<'_>, value: Value, what: &str) -> Done<()> {
        match value {
            Value::Hole | Value::Null => writer.text.push_str("null"),
            Value::Bool(value) => writer.text.push_str(if value { "true" } else { "false" }),
            Value::Number(number) if number.is_finite() => writer.text.push_str(&crate::number::to_text(number)),
            Value::Number(_) => writer.text.push_str("null"),
            Value::Text(id) => writer.string(&self.heap.text_of(id).text),
            Value::List(_) | Value::Object(_) | Value::Error(_) => {
                if writer.open.len() >= self.limits.value_depth {
                    let limit = self.limits.value_depth;
                    let message = format!("{what} nests deeper than {limit} levels, or contains itself");
                    return Err(self.error(codes::SIZE, message));
                }
                writer.text.push(if matches!(value, Value::List(_)) { '[' } else { '{' });
                writer.open.push(Open { value, next: 0, begun: false });
            }
            Value::Promise(_) => {
                let message =
                    format!("{what} contains a promise, which cannot be written as JSON: is an await missing?");
                return Err(self.error(codes::TYPE, message));
            }
            Value::Function(_) | Value::Native(_) if writer.functions == Functions::Refused => {
                let message = format!("{what} contains a function, which cannot be written as JSON");
                return Err(self.error(codes::TYPE, message));
            }
            Value::Function(_) | Value::Native(_) => writer.text.push_str("null"),
        }
        Ok(())
    }

    /// The value some JSON stands for.
    pub(crate) fn json_value(&mut self, json: &[u8]) -> Result<Value, String> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let value = Reader { heap: &mut self.heap }.deserialize(&mut reader).map_err(|error| error.to_string())?;
        reader.end().map_err(|error| error.to_string())?;
        Ok(value)
    }
}

impl Machine {
    /// The value some JSON stands for that was read before.
    pub(crate) fn value_of_json(&mut self, json: &serde_json::Value) -> Value {
        // What was read nests no deeper than can be read, and every kind of JSON is a value.
        Reader { heap: &mut self.heap }.deserialize(json).unwrap_or(Value::Null)
    }
}

impl Writer<'_> {
    fn string(&mut self, text: &str) {
        // Writing a text as JSON does not fail.
        self.text.push_str(&serde_json::to_string(text).unwrap_or_default());
    }

    fn line(&mut self) {
        if !self.indent.is_empty() {
            self.text.push('\n');
            for _ in 0..self.open.len() {
                self.text.push_str(self.indent);
            }
        }
    }

    /// What comes before an element or property.
    fn separate(&mut self, key: Option<&str>) {
        let begun = self.open.last_mut().is_some_and(|open| std::mem::replace(&mut open.begun, true));
        if begun {
            self.text.push(',');
        }
        self.line();
        if let Some(key) = key {
            self.string(key);
            self.text.push_str(if self.indent.is_empty() { ":" } else { ": " });
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if open.begun {
            self.line();
        }
        self.text.push(if matches!(open.value, Value::List(_)) { ']' } else { '}' });
    }
}

/// Makes values in a heap while JSON is read. As deep as serde_json allows, which is 128 levels.
struct Reader<'h> {
    heap: &'h mut Heap,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(self.heap.text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Reader { heap: self.heap })? {
            items.push(item);
        }
        Ok(self.heap.list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Object::default();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(Reader { heap: self.heap })?;
            object.set(&Arc::from(key), value);
        }
        Ok(self.heap.object(object))
    }
}
