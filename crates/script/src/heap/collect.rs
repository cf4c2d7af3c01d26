//! Finding what can still be reached.

use super::{Cell, Heap};
use crate::value::Id;

/// The cells that can be reached from some roots.
pub(crate) struct Marked {
    marks: Vec<bool>,
    /// In the order in which they were found; constants are not among them.
    pub(crate) order: Vec<Id>,
}

impl Heap {
    /// Finds what can be reached, without recursion: a chain of a million cells is as good as any.
    pub(crate) fn mark(&self, roots: impl IntoIterator<Item = Id>) -> Marked {
        let mut marked = Marked { marks: vec![false; self.cells.len()], order: Vec::new() };
        for root in roots {
            marked.add(self.statics, root);
        }
        let mut next = 0;
        while let Some(id) = marked.order.get(next).copied() {
            self.cell(id).visit(&mut |found| marked.add(self.statics, found));
            next += 1;
        }
        marked
    }

    /// Frees everything that cannot be reached from the roots.
    pub(crate) fn collect(&mut self, roots: impl IntoIterator<Item = Id>) {
        let marked = self.mark(roots);
        self.free.clear();
        self.bytes = 0;
        for (place, cell) in self.cells.iter_mut().enumerate().skip(self.statics as usize) {
            if marked.marks[place] {
                self.bytes += cell.bytes();
            } else {
                *cell = Cell::Free;
                self.free.push(u32::try_from(place).unwrap_or(u32::MAX));
            }
        }
        // Not before the heap has grown by its own size: a large one is not looked through again and again.
        let growth = self.bytes.min(self.garbage_bytes.saturating_mul(64)).max(self.garbage_bytes);
        self.collect_at = self.bytes + growth;
    }
}

impl Marked {
    pub(crate) fn contains(&self, id: Id) -> bool {
        self.marks.get(id.0 as usize).copied().unwrap_or_default()
    }

    fn add(&mut self, statics: u32, id: Id) {
        if id.0 < statics {
            return;
        }
        if let Some(mark) = self.marks.get_mut(id.0 as usize)
            && !std::mem::replace(mark, true)
        {
            self.order.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn cycles_are_kept_while_reachable_and_freed_afterwards() {
        let mut heap = Heap::default();
        let Value::List(a) = heap.list(vec![]) else { panic!() };
        let Value::List(b) = heap.list(vec![Value::List(a)]) else { panic!() };
        heap.list_mut(a).unwrap().push(Value::List(b));
        heap.collect([a]);
        assert_eq!(heap.list_of(b), [Value::List(a)]);
        heap.collect([]);
        assert_eq!(heap.bytes(), 0);
        let reused = heap.list(vec![]).id().unwrap();
        assert!(reused == a || reused == b);
    }

    #[test]
    fn a_long_chain_is_marked_without_recursion() {
        let mut heap = Heap::default();
        let mut last = Value::Null;
        for _ in 0..200_000 {
            last = heap.list(vec![last]);
        }
        let marked = heap.mark(last.id());
        assert_eq!(marked.order.len(), 200_000);
    }
}
