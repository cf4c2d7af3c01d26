//! What a flow says next about itself.
//!
//! A replay compares each mark with the one that is recorded, and then takes that: so an event is made of one only when
//! somebody wants to have it.

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::id::{Index, Key};
use serde_json::Value as Json;

/// A mark that was decided.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    ChildStarted(Child),
    ChildSkipped {
        child: Child,
        reason: &'static str,
    },
    /// Its output is in the journal.
    ChildCompleted {
        node: Key,
        child: Key,
        output: Index,
    },
    IterationStarted {
        node: Key,
        index: u32,
        item: Option<Arc<Json>>,
        total: Option<u32>,
    },
    IterationCompleted {
        node: Key,
        index: u32,
        outputs: Vec<Index>,
    },
    /// Any other: there are few of them.
    Event(Box<Event>),
}

/// A node of a container that comes next.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    /// The container.
    pub(crate) node: Key,
    pub(crate) iteration: u32,
    pub(crate) id: Arc<str>,
    /// Its place among its siblings.
    pub(crate) place: u32,
}

impl Child {
    /// None if its key would be too long: that was refused when the flow was read.
    pub(crate) fn new(node: &Key, iteration: u32, id: &Arc<str>, place: usize) -> Option<Child> {
        let digits = iteration.checked_ilog10().unwrap_or_default() as usize + 1;
        let fits = node.as_str().len() + id.len() + digits + "//".len() <= Key::BYTES_MAX;
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        fits.then(|| Child { node: node.clone(), iteration, id: Arc::clone(id), place })
    }

    fn key(&self) -> Key {
        let text = format!("{}/{}/{}", self.node, self.iteration, self.id);
        Key::new(text).expect("it is made of two keys, and is not too long")
    }

    /// Whether that is its key.
    fn has(&self, key: &Key) -> bool {
        let inner = key.as_str().strip_prefix(self.node.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let iteration = inner.and_then(|inner| inner.strip_suffix(&*self.id)).and_then(|rest| rest.strip_suffix('/'));
        iteration.is_some_and(|iteration| is_number(iteration, self.iteration))
    }
}

/// Whether a text is a number as it is written in a key.
fn is_number(text: &str, mut number: u32) -> bool {
    let mut digits = text.bytes().rev();
    loop {
        if digits.next() != Some(b'0' + (number % 10) as u8) {
            return false;
        }
        number /= 10;
        if number == 0 {
            return digits.next().is_none();
        }
    }
}

impl Mark {
    /// As it is recorded.
    pub(crate) fn event(&self) -> Event {
        match self {
            Mark::ChildStarted(child) => {
                Event::ContainerChildStarted { node: child.node.clone(), child: child.key(), child_index: child.place }
            }
            Mark::ChildSkipped { child, reason } => {
                Event::NodeSkipped { node: child.key(), by: None, reason: Some((*reason).to_owned()) }
            }
            Mark::ChildCompleted { node, child, output } => {
                let (node, child) = (node.clone(), child.clone());
                Event::ContainerChildCompleted { node, child, output: Some(*output), value: None }
            }
            Mark::IterationStarted { node, index, item, total } => {
                let item = item.as_ref().map(|item| Bytes::from(item.to_string()));
                Event::ContainerIterationStarted { node: node.clone(), index: *index, item, total: *total }
            }
            Mark::IterationCompleted { node, index, outputs } => {
                Event::ContainerIterationCompleted { node: node.clone(), index: *index, outputs: outputs.clone() }
            }
            Mark::Event(event) => (**event).clone(),
        }
    }

    /// Whether a recorded mark is about the same. What that holds is taken from the journal.
    pub(crate) fn is(&self, event: &Event) -> bool {
        match (self, event) {
            (Mark::ChildStarted(of), Event::ContainerChildStarted { node, child, child_index }) => {
                of.place == *child_index && of.node == *node && of.has(child)
            }
            (Mark::ChildSkipped { child, .. }, Event::NodeSkipped { node, .. }) => child.has(node),
            (Mark::ChildCompleted { node, child, .. }, Event::ContainerChildCompleted { node: of, child: key, .. }) => {
                node == of && child == key
            }
            (
                Mark::IterationStarted { node, index, .. },
                Event::ContainerIterationStarted { node: of, index: found, .. },
            )
            | (
                Mark::IterationCompleted { node, index, .. },
                Event::ContainerIterationCompleted { node: of, index: found, .. },
            ) => index == found && node == of,
            (Mark::Event(mark), event) => is_same(mark, event),
            (
                Mark::ChildStarted(_)
                | Mark::ChildSkipped { .. }
                | Mark::ChildCompleted { .. }
                | Mark::IterationStarted { .. }
                | Mark::IterationCompleted { .. },
                _,
            ) => false,
        }
    }
}

fn is_same(mark: &Event, event: &Event) -> bool {
    let place = |event: &Event| match event {
        Event::ContainerIterationStarted { index, .. }
        | Event::ContainerIterationCompleted { index, .. }
        | Event::NodeStarted { index, .. }
        | Event::LoopIterate { iteration: index, .. } => (Some(*index), None),
        Event::ContainerChildStarted { child, child_index, .. } => (Some(*child_index), Some(child.clone())),
        Event::ContainerChildCompleted { child, .. } => (None, Some(child.clone())),
        _ => (None, None),
    };
    mark.kind() == event.kind() && mark.key() == event.key() && place(mark) == place(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn child(iteration: u32) -> Child {
        Child { node: key("rows/3/cells"), iteration, id: "a1".into(), place: 1 }
    }

    /// Every mark is the event that is made of it, and no other one of the same kind.
    #[test]
    fn a_mark_is_the_event_that_is_made_of_it_and_no_other() {
        let marks = || {
            [0, 1, 7, 10, 99, 100, 1_000, u32::MAX].into_iter().flat_map(|n| {
                let node = key("rows/3/cells");
                let error = outlast_core::failure::Failure::new("x", "y");
                [
                    Mark::ChildStarted(child(n)),
                    Mark::ChildStarted(Child { place: 2, ..child(n) }),
                    Mark::ChildStarted(Child { node: key("rows"), ..child(n) }),
                    Mark::ChildSkipped { child: child(n), reason: "why" },
                    Mark::ChildCompleted { node: node.clone(), child: child(n).key(), output: Index(4) },
                    Mark::IterationStarted { node: node.clone(), index: n, item: None, total: Some(3) },
                    Mark::IterationCompleted { node: node.clone(), index: n, outputs: vec![Index(2)] },
                    Mark::Event(Box::new(Event::NodeError { node: child(n).key(), error })),
                ]
            })
        };
        let marks: Vec<Mark> = marks().collect();
        for (at, mark) in marks.iter().enumerate() {
            for (other, event) in marks.iter().map(Mark::event).enumerate() {
                assert_eq!(mark.is(&event), at == other, "{mark:?} and {event:?}");
                // The same as if the event had been made first.
                assert_eq!(is_same(&mark.event(), &event), at == other, "{mark:?} and {event:?}");
            }
        }
    }

    #[test]
    fn a_child_has_a_key_or_is_none() {
        for iteration in [0, 9, 10, 99_999, u32::MAX] {
            let digits = iteration.to_string().len();
            let node = |length: usize| key(&"n".repeat(length));
            let id: Arc<str> = "abc".into();
            let longest = Key::BYTES_MAX - "//abc".len() - digits;
            let child = Child::new(&node(longest), iteration, &id, 0).unwrap();
            assert_eq!(child.key().as_str().len(), Key::BYTES_MAX);
            assert!(child.has(&child.key()));
            assert!(Child::new(&node(longest + 1), iteration, &id, 0).is_none());
        }
    }

    #[test]
    fn a_key_that_only_looks_alike_is_another_one() {
        let mark = Mark::ChildSkipped { child: child(7), reason: "why" };
        let wrong = [
            "rows/3/cells/07/a1",
            "rows/3/cells/+7/a1",
            "rows/3/cells/7/a",
            "rows/3/cells/7/a11",
            "rows/3/cells/7a1",
            "rows/3/cells//a1",
            "rows/3/cells7/a1",
            "rows/3/cells/77/a1",
            "rows/3/cells/7/7/a1",
            "rows/3/cells/7/a1#2",
            "rows/3/cells",
            "a1",
        ];
        let skipped = |node: &str| Event::NodeSkipped { node: key(node), by: None, reason: None };
        assert!(mark.is(&skipped("rows/3/cells/7/a1")));
        for node in wrong {
            assert!(!mark.is(&skipped(node)), "{node}");
        }
    }
}
