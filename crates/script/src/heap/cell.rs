//! What lies in the heap.

use std::sync::Arc;

use outlast_core::id::Key;

use super::object::{ENTRY_BYTES, Object};
use crate::value::{Id, Value};

/// What a cell takes beside its content.
const CELL_BYTES: usize = 64;
const VALUE_BYTES: usize = 16;

#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// Nobody uses it.
    Free,
    Text(Text),
    List(Vec<Value>),
    Object(Object),
    Error(ErrorCell),
    Closure(Closure),
    /// A method, and what it was read from.
    Bound {
        native: u16,
        receiver: Value,
    },
    /// A variable that a closure shares.
    Variable(Value),
    Promise(Promise),
    Task(Task),
    Combine(Combine),
}

/// A string. It counts characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: Arc<str>,
    chars: u32,
}

impl Text {
    pub(crate) fn new(text: Arc<str>) -> Text {
        let chars = if text.is_ascii() { text.len() } else { text.chars().count() };
        Text { chars: u32::try_from(chars).unwrap_or(u32::MAX), text }
    }

    pub(crate) fn chars(&self) -> usize {
        self.chars as usize
    }

    fn is_ascii(&self) -> bool {
        self.chars() == self.text.len()
    }

    /// The byte at which a character begins; the end of the text if there are not so many.
    pub(crate) fn offset(&self, character: usize) -> usize {
        if self.is_ascii() {
            return character.min(self.text.len());
        }
        self.text.char_indices().nth(character).map_or(self.text.len(), |(at, _)| at)
    }

    /// The characters from one to another, that one not included.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &str {
        if from >= to {
            return "";
        }
        let start = self.offset(from);
        if self.is_ascii() {
            return &self.text[start..self.offset(to)];
        }
        let rest = &self.text[start..];
        let end = rest.char_indices().nth(to - from).map_or(rest.len(), |(at, _)| at);
        &rest[..end]
    }

    /// How many characters there are before a byte.
    pub(crate) fn chars_before(&self, byte: usize) -> usize {
        if self.is_ascii() { byte } else { self.text[..byte].chars().count() }
    }
}

/// An error: what programs branch on, what people read, more about it, and where it was thrown.
#[derive(Clone, Debug)]
pub(crate) struct ErrorCell {
    pub(crate) code: Value,
    pub(crate) message: Value,
    pub(crate) data: Value,
    /// One line for each call, the innermost first; empty until it is thrown.
    pub(crate) stack: Arc<str>,
}

#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pub(crate) function: u32,
    /// Boxes.
    pub(crate) captures: Box<[Id]>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Promise {
    pub(crate) state: PromiseState,
    /// What happens when it settles, in this order.
    pub(crate) reactions: Vec<Reaction>,
    /// The operation whose outcome it is.
    pub(crate) operation: Option<Key>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum PromiseState {
    #[default]
    Pending,
    /// It will become what another promise becomes.
    Following,
    Fulfilled(Value),
    Rejected(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reaction {
    /// A call goes on that awaits it.
    Resume(Id),
    /// Another promise becomes what it became.
    Follow(Id),
    /// An element of a combination is there.
    Item { combine: Id, place: u32 },
}

/// A call of a function that awaits, while it is suspended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub(crate) promise: Option<Id>,
    pub(crate) closure: Option<Id>,
    pub(crate) function: u32,
    /// The instruction it goes on with, after an await; 0 while it runs, and once it is over.
    pub(crate) at: u32,
    /// Its variables and intermediate values.
    pub(crate) stack: Vec<Value>,
}

/// A combination of promises that is not settled yet.
#[derive(Clone, Debug)]
pub(crate) struct Combine {
    pub(crate) kind: Combinator,
    /// What it becomes.
    pub(crate) promise: Id,
    pub(crate) items: Vec<CombineItem>,
    pub(crate) pending: u32,
    /// The names of its items, where it was made from an object.
    pub(crate) names: Option<Vec<Arc<str>>>,
    /// Set if the run was cancelled while it waited.
    pub(crate) cancelled: Option<Cancelled>,
}

/// What the cancellation of its run does to a combination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cancelled {
    /// What it throws instead of telling that an item failed.
    pub(crate) error: Value,
    /// Whether an item failed since.
    pub(crate) is_felt: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct CombineItem {
    /// The outcome, once there is one; what that means depends on the kind.
    pub(crate) value: Value,
    pub(crate) operation: Option<Key>,
    /// What it waits for, until the combination is settled.
    pub(crate) source: Option<Id>,
}

/// The ways to combine promises: those of JavaScript, and those with the id of the item that settled them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combinator {
    All,
    AllSettled,
    Any,
    Race,
    TaskAllSettled,
    TaskAny,
    TaskRace,
}

impl Task {
    pub(crate) fn is_suspended(&self) -> bool {
        self.at > 0
    }
}

impl Cell {
    /// An estimate of what it takes.
    pub(crate) fn bytes(&self) -> usize {
        let content = match self {
            Cell::Free => return 0,
            Cell::Text(text) => text.text.len(),
            Cell::List(items) => items.len() * VALUE_BYTES,
            Cell::Object(object) => object.iter().map(|(key, _)| key.len() + ENTRY_BYTES).sum(),
            Cell::Error(error) => error.stack.len() + 3 * VALUE_BYTES,
            Cell::Closure(closure) => closure.captures.len() * 4,
            Cell::Bound { .. } | Cell::Variable(_) => 0,
            Cell::Promise(promise) => promise.reactions.len() * VALUE_BYTES,
            Cell::Task(task) => task.stack.len() * VALUE_BYTES,
            Cell::Combine(combine) => combine.items.len() * 2 * VALUE_BYTES,
        };
        CELL_BYTES + content
    }

    /// Calls `visit` with every cell this one names.
    pub(crate) fn visit(&self, visit: &mut impl FnMut(Id)) {
        let mut value = |value: &Value| value.id().into_iter().for_each(&mut *visit);
        match self {
            Cell::Free | Cell::Text(_) => {}
            Cell::List(items) => items.iter().for_each(value),
            Cell::Object(object) => object.iter().for_each(|(_, item)| value(item)),
            Cell::Error(error) => [error.code, error.message, error.data].iter().for_each(value),
            Cell::Closure(closure) => closure.captures.iter().copied().for_each(visit),
            Cell::Bound { receiver, .. } => value(receiver),
            Cell::Variable(variable) => value(variable),
            Cell::Promise(promise) => {
                match &promise.state {
                    PromiseState::Pending | PromiseState::Following => {}
                    PromiseState::Fulfilled(outcome) | PromiseState::Rejected(outcome) => value(outcome),
                }
                promise.reactions.iter().for_each(|reaction| visit(reaction.target()));
            }
            Cell::Task(task) => {
                task.stack.iter().for_each(value);
                task.promise.into_iter().chain(task.closure).for_each(visit);
            }
            Cell::Combine(combine) => {
                combine.items.iter().for_each(|item| value(&item.value));
                combine.cancelled.iter().for_each(|cancelled| value(&cancelled.error));
                combine.items.iter().filter_map(|item| item.source).for_each(&mut *visit);
                visit(combine.promise);
            }
        }
    }
}

impl Reaction {
    /// The cell it names.
    pub(crate) fn target(self) -> Id {
        match self {
            Reaction::Resume(id) | Reaction::Follow(id) | Reaction::Item { combine: id, .. } => id,
        }
    }
}
