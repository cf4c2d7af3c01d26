//! The heap: an arena of cells that name each other by number. Cycles are fine, nothing is dropped recursively, and what
//! cannot be reached any more is found by marking.

mod cell;
mod collect;
mod object;

use std::sync::Arc;

pub(crate) use cell::{
    Cancelled, Cell, Closure, Combinator, Combine, CombineItem, ErrorCell, Promise, PromiseState, Reaction, Task, Text,
};
pub(crate) use collect::Marked;
pub(crate) use object::Object;

use crate::value::{Id, Value};

#[derive(Debug, Default)]
pub(crate) struct Heap {
    cells: Vec<Cell>,
    free: Vec<u32>,
    /// Cells below are the constants of the code: never collected, never saved.
    statics: u32,
    /// An estimate of what the cells take, garbage included.
    bytes: usize,
    /// Collect once there is this much.
    collect_at: usize,
    /// Less new values than this are not worth a collection.
    garbage_bytes: usize,
}

impl Heap {
    /// A heap that begins with the constant texts of the code.
    pub(crate) fn with_constants(texts: &[Text], garbage_bytes: usize) -> Heap {
        let cells: Vec<Cell> = texts.iter().cloned().map(Cell::Text).collect();
        let statics = u32::try_from(cells.len()).unwrap_or(u32::MAX);
        Heap { cells, free: Vec::new(), statics, bytes: 0, collect_at: garbage_bytes, garbage_bytes }
    }

    /// How many cells there are, free ones included.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn statics(&self) -> u32 {
        self.statics
    }

    /// An estimate of what the cells take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn wants_collection(&self) -> bool {
        self.bytes >= self.collect_at
    }

    pub(crate) fn alloc(&mut self, cell: Cell) -> Id {
        self.bytes += cell.bytes();
        match self.free.pop() {
            Some(place) => {
                self.cells[place as usize] = cell;
                Id(place)
            }
            None => {
                self.cells.push(cell);
                Id(u32::try_from(self.cells.len() - 1).unwrap_or(u32::MAX))
            }
        }
    }

    /// Notes that a cell grew.
    pub(crate) fn grew(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    pub(crate) fn cell(&self, id: Id) -> &Cell {
        &self.cells[id.0 as usize]
    }

    pub(crate) fn cell_mut(&mut self, id: Id) -> &mut Cell {
        &mut self.cells[id.0 as usize]
    }

    pub(crate) fn text(&mut self, text: impl Into<Arc<str>>) -> Value {
        Value::Text(self.alloc(Cell::Text(Text::new(text.into()))))
    }

    pub(crate) fn list(&mut self, items: Vec<Value>) -> Value {
        Value::List(self.alloc(Cell::List(items)))
    }

    pub(crate) fn object(&mut self, object: Object) -> Value {
        Value::Object(self.alloc(Cell::Object(object)))
    }

    /// The text of a string. A value names a cell of its own kind, always: the empty ones below are never seen.
    pub(crate) fn text_of(&self, id: Id) -> &Text {
        static NOTHING: std::sync::LazyLock<Text> = std::sync::LazyLock::new(|| Text::new("".into()));
        match self.cell(id) {
            Cell::Text(text) => text,
            _ => &NOTHING,
        }
    }

    pub(crate) fn list_of(&self, id: Id) -> &[Value] {
        match self.cell(id) {
            Cell::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn list_mut(&mut self, id: Id) -> Option<&mut Vec<Value>> {
        match self.cell_mut(id) {
            Cell::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn object_of(&self, id: Id) -> Option<&Object> {
        match self.cell(id) {
            Cell::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn object_mut(&mut self, id: Id) -> Option<&mut Object> {
        match self.cell_mut(id) {
            Cell::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Sets a property, and notes the growth.
    pub(crate) fn set_property(&mut self, id: Id, key: &Arc<str>, value: Value) {
        let is_new = self.object_mut(id).is_some_and(|object| object.set(key, value));
        if is_new {
            self.grew(object::ENTRY_BYTES + key.len());
        }
    }

    pub(crate) fn error_of(&self, id: Id) -> Option<&ErrorCell> {
        match self.cell(id) {
            Cell::Error(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn error_mut(&mut self, id: Id) -> Option<&mut ErrorCell> {
        match self.cell_mut(id) {
            Cell::Error(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn promise_of(&self, id: Id) -> Option<&Promise> {
        match self.cell(id) {
            Cell::Promise(promise) => Some(promise),
            _ => None,
        }
    }

    pub(crate) fn promise_mut(&mut self, id: Id) -> Option<&mut Promise> {
        match self.cell_mut(id) {
            Cell::Promise(promise) => Some(promise),
            _ => None,
        }
    }

    pub(crate) fn task_mut(&mut self, id: Id) -> Option<&mut Task> {
        match self.cell_mut(id) {
            Cell::Task(task) => Some(task),
            _ => None,
        }
    }

    pub(crate) fn combine_of(&self, id: Id) -> Option<&Combine> {
        match self.cell(id) {
            Cell::Combine(combine) => Some(combine),
            _ => None,
        }
    }

    pub(crate) fn combine_mut(&mut self, id: Id) -> Option<&mut Combine> {
        match self.cell_mut(id) {
            Cell::Combine(combine) => Some(combine),
            _ => None,
        }
    }

    /// The combinations there are, garbage included.
    pub(crate) fn combines(&self) -> impl Iterator<Item = (Id, &Combine)> {
        self.cells.iter().enumerate().filter_map(|(place, cell)| match cell {
            Cell::Combine(combine) => Some((Id(u32::try_from(place).unwrap_or(u32::MAX)), combine)),
            _ => None,
        })
    }

    /// The variable in a box.
    pub(crate) fn boxed(&self, id: Id) -> Value {
        match self.cell(id) {
            Cell::Variable(value) => *value,
            _ => Value::Hole,
        }
    }

    pub(crate) fn set_boxed(&mut self, id: Id, value: Value) {
        *self.cell_mut(id) = Cell::Variable(value);
    }
}
