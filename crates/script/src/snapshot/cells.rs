//! Values and cells as they are saved.

use std::fmt;
use std::sync::Arc;

use outlast_core::id::Key;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::heap::{
    Cancelled, Cell, Closure, Combinator, Combine, CombineItem, ErrorCell, Promise, PromiseState, Reaction, Task, Text,
};
use crate::value::{Id, Value};

/// A value: null, true, false and numbers as they are, everything else as a pair of its kind and its number.
#[derive(Clone, Copy)]
pub(super) enum SavedValue {
    Plain(Value),
    Pair(u8, u32),
}

const HOLE: u8 = 0;
const TEXT: u8 = 1;
const LIST: u8 = 2;
const OBJECT: u8 = 3;
const ERROR: u8 = 4;
const PROMISE: u8 = 5;
const FUNCTION: u8 = 6;
const NATIVE: u8 = 7;

impl SavedValue {
    pub(super) fn new(value: Value, map: &impl Fn(Id) -> u32) -> SavedValue {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => SavedValue::Plain(value),
            Value::Hole => SavedValue::Pair(HOLE, 0),
            Value::Text(id) => SavedValue::Pair(TEXT, map(id)),
            Value::List(id) => SavedValue::Pair(LIST, map(id)),
            Value::Object(id) => SavedValue::Pair(OBJECT, map(id)),
            Value::Error(id) => SavedValue::Pair(ERROR, map(id)),
            Value::Promise(id) => SavedValue::Pair(PROMISE, map(id)),
            Value::Function(id) => SavedValue::Pair(FUNCTION, map(id)),
            Value::Native(native) => SavedValue::Pair(NATIVE, native.into()),
        }
    }

    pub(super) fn value(self) -> Option<Value> {
        Some(match self {
            SavedValue::Plain(value) => value,
            SavedValue::Pair(HOLE, _) => Value::Hole,
            SavedValue::Pair(TEXT, id) => Value::Text(Id(id)),
            SavedValue::Pair(LIST, id) => Value::List(Id(id)),
            SavedValue::Pair(OBJECT, id) => Value::Object(Id(id)),
            SavedValue::Pair(ERROR, id) => Value::Error(Id(id)),
            SavedValue::Pair(PROMISE, id) => Value::Promise(Id(id)),
            SavedValue::Pair(FUNCTION, id) => Value::Function(Id(id)),
            SavedValue::Pair(NATIVE, id) => Value::Native(u16::try_from(id).ok()?),
            SavedValue::Pair(_, _) => return None,
        })
    }
}

impl Serialize for SavedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            SavedValue::Plain(Value::Bool(value)) => serializer.serialize_bool(value),
            SavedValue::Plain(Value::Number(number)) => {
                let whole = number as i64;
                // Most are whole and small, and shorter so. Minus zero is not whole.
                let is_whole =
                    whole as f64 == number && number.abs() < 9e15 && (whole != 0 || number.is_sign_positive());
                if is_whole { serializer.serialize_i64(whole) } else { serializer.serialize_f64(number) }
            }
            SavedValue::Plain(_) => serializer.serialize_unit(),
            SavedValue::Pair(kind, id) => (kind, id).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SavedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SavedValue, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = SavedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a saved value")
    }

    fn visit_unit<E>(self) -> Result<SavedValue, E> {
        Ok(SavedValue::Plain(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<SavedValue, E> {
        Ok(SavedValue::Plain(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<SavedValue, E> {
        Ok(SavedValue::Plain(Value::Number(value as f64)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<SavedValue, E> {
        Ok(SavedValue::Plain(Value::Number(value as f64)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<SavedValue, E> {
        Ok(SavedValue::Plain(Value::Number(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<SavedValue, A::Error> {
        let (kind, id) = (access.next_element()?, access.next_element()?);
        match (kind, id) {
            (Some(kind), Some(id)) => Ok(SavedValue::Pair(kind, id)),
            _ => Err(serde::de::Error::custom("a value is cut off")),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SavedCell {
    Text(Arc<str>),
    List(Vec<SavedValue>),
    Object(Vec<(Arc<str>, SavedValue)>),
    Error {
        code: SavedValue,
        message: SavedValue,
        data: SavedValue,
        stack: Arc<str>,
    },
    Closure {
        function: u32,
        captures: Vec<u32>,
    },
    Bound {
        native: u16,
        receiver: SavedValue,
    },
    Variable(SavedValue),
    Promise {
        state: SavedState,
        reactions: Vec<SavedReaction>,
        operation: Option<Key>,
    },
    Task {
        promise: Option<u32>,
        closure: Option<u32>,
        function: u32,
        at: u32,
        stack: Vec<SavedValue>,
    },
    Combine {
        kind: SavedCombinator,
        promise: u32,
        items: Vec<(SavedValue, Option<Key>, Option<u32>)>,
        pending: u32,
        names: Option<Vec<Arc<str>>>,
        #[serde(default)]
        cancelled: Option<(SavedValue, bool)>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SavedState {
    Pending,
    Following,
    Fulfilled(SavedValue),
    Rejected(SavedValue),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SavedReaction {
    Resume(u32),
    Follow(u32),
    Item(u32, u32),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SavedCombinator {
    All,
    AllSettled,
    Any,
    Race,
    TaskAllSettled,
    TaskAny,
    TaskRace,
}

impl SavedCell {
    pub(super) fn new(cell: &Cell, map: &impl Fn(Id) -> u32) -> SavedCell {
        let value = |value: &Value| SavedValue::new(*value, map);
        match cell {
            // Marking finds used cells only.
            Cell::Free => SavedCell::Text("".into()),
            Cell::Text(text) => SavedCell::Text(Arc::clone(&text.text)),
            Cell::List(items) => SavedCell::List(items.iter().map(value).collect()),
            Cell::Object(object) => {
                SavedCell::Object(object.iter().map(|(key, item)| (Arc::clone(key), value(item))).collect())
            }
            Cell::Error(ErrorCell { code, message, data, stack }) => SavedCell::Error {
                code: value(code),
                message: value(message),
                data: value(data),
                stack: Arc::clone(stack),
            },
            Cell::Closure(Closure { function, captures }) => {
                SavedCell::Closure { function: *function, captures: captures.iter().map(|id| map(*id)).collect() }
            }
            Cell::Bound { native, receiver } => SavedCell::Bound { native: *native, receiver: value(receiver) },
            Cell::Variable(variable) => SavedCell::Variable(value(variable)),
            Cell::Promise(promise) => SavedCell::Promise {
                state: match &promise.state {
                    PromiseState::Pending => SavedState::Pending,
                    PromiseState::Following => SavedState::Following,
                    PromiseState::Fulfilled(outcome) => SavedState::Fulfilled(value(outcome)),
                    PromiseState::Rejected(error) => SavedState::Rejected(value(error)),
                },
                reactions: promise.reactions.iter().map(|reaction| SavedReaction::new(*reaction, map)).collect(),
                operation: promise.operation.clone(),
            },
            Cell::Task(Task { promise, closure, function, at, stack }) => SavedCell::Task {
                promise: promise.map(map),
                closure: closure.map(map),
                function: *function,
                at: *at,
                stack: stack.iter().map(value).collect(),
            },
            Cell::Combine(Combine { kind, promise, items, pending, names, cancelled }) => SavedCell::Combine {
                kind: SavedCombinator::new(*kind),
                promise: map(*promise),
                items: items
                    .iter()
                    .map(|item| (value(&item.value), item.operation.clone(), item.source.map(map)))
                    .collect(),
                pending: *pending,
                names: names.clone(),
                cancelled: cancelled.map(|Cancelled { error, is_felt }| (value(&error), is_felt)),
            },
        }
    }

    pub(super) fn into_cell(self) -> Option<Cell> {
        let values = |list: Vec<SavedValue>| list.into_iter().map(SavedValue::value).collect::<Option<Vec<Value>>>();
        Some(match self {
            SavedCell::Text(text) => Cell::Text(Text::new(text)),
            SavedCell::List(items) => Cell::List(values(items)?),
            SavedCell::Object(entries) => {
                let entries = entries.into_iter().map(|(key, value)| value.value().map(|value| (key, value)));
                Cell::Object(entries.collect::<Option<_>>()?)
            }
            SavedCell::Error { code, message, data, stack } => {
                Cell::Error(ErrorCell { code: code.value()?, message: message.value()?, data: data.value()?, stack })
            }
            SavedCell::Closure { function, captures } => {
                Cell::Closure(Closure { function, captures: captures.into_iter().map(Id).collect() })
            }
            SavedCell::Bound { native, receiver } => Cell::Bound { native, receiver: receiver.value()? },
            SavedCell::Variable(value) => Cell::Variable(value.value()?),
            SavedCell::Promise { state, reactions, operation } => Cell::Promise(Promise {
                state: match state {
                    SavedState::Pending => PromiseState::Pending,
                    SavedState::Following => PromiseState::Following,
                    SavedState::Fulfilled(value) => PromiseState::Fulfilled(value.value()?),
                    SavedState::Rejected(error) => PromiseState::Rejected(error.value()?),
                },
                reactions: reactions.into_iter().map(SavedReaction::reaction).collect(),
                operation,
            }),
            SavedCell::Task { promise, closure, function, at, stack } => Cell::Task(Task {
                promise: promise.map(Id),
                closure: closure.map(Id),
                function,
                at,
                stack: values(stack)?,
            }),
            SavedCell::Combine { kind, promise, items, pending, names, cancelled } => {
                let item = |(value, operation, source): (SavedValue, Option<Key>, Option<u32>)| {
                    value.value().map(|value| CombineItem { value, operation, source: source.map(Id) })
                };
                let items = items.into_iter().map(item).collect::<Option<_>>()?;
                let cancelled = match cancelled {
                    Some((error, is_felt)) => Some(Cancelled { error: error.value()?, is_felt }),
                    None => None,
                };
                let (kind, promise) = (kind.combinator(), Id(promise));
                Cell::Combine(Combine { kind, promise, items, pending, names, cancelled })
            }
        })
    }
}

impl SavedReaction {
    fn new(reaction: Reaction, map: &impl Fn(Id) -> u32) -> SavedReaction {
        match reaction {
            Reaction::Resume(task) => SavedReaction::Resume(map(task)),
            Reaction::Follow(promise) => SavedReaction::Follow(map(promise)),
            Reaction::Item { combine, place } => SavedReaction::Item(map(combine), place),
        }
    }

    fn reaction(self) -> Reaction {
        match self {
            SavedReaction::Resume(task) => Reaction::Resume(Id(task)),
            SavedReaction::Follow(promise) => Reaction::Follow(Id(promise)),
            SavedReaction::Item(combine, place) => Reaction::Item { combine: Id(combine), place },
        }
    }
}

/// Both ways in one table.
macro_rules! combinators {
    ($($name:ident),+) => {
        impl SavedCombinator {
            fn new(kind: Combinator) -> SavedCombinator {
                match kind { $(Combinator::$name => SavedCombinator::$name,)+ }
            }

            fn combinator(self) -> Combinator {
                match self { $(SavedCombinator::$name => Combinator::$name,)+ }
            }
        }
    };
}

combinators!(All, AllSettled, Any, Race, TaskAllSettled, TaskAny, TaskRace);
