//! What is wrong with a mark that was not expected.

use outlast_core::event::Event;
use outlast_core::id::Key;

use crate::mark::Mark;
use crate::model::{NodeKind, Rule};
use crate::state::{Container, Slot, State};

/// What a branch is called, by its place.
type Name = fn(u32) -> String;

impl State {
    pub(super) fn explain(&mut self, event: &Event) -> String {
        match event {
            Event::ContainerChildStarted { node, child, .. } | Event::ContainerChildCompleted { node, child, .. }
                if !child.as_str().starts_with(&format!("{node}/")) =>
            {
                return format!("`{child}` is not a child of `{node}`");
            }
            Event::ContainerIterationStarted { node, index, .. } => {
                if let Some(told) = self.other_branch(node, *index) {
                    return told;
                }
                match self.container_of(node).map(|container| (container.next, container.active.contains_key(index))) {
                    Some((next, _)) if *index < next => {
                        return format!("the iterations of `{node}` go back from {} to {index}", next - 1);
                    }
                    Some((next, _)) if *index > next => {
                        return format!("the iterations of `{node}` skip from {next} to {index}");
                    }
                    Some(_) => {}
                    None => return format!("`{node}` is not a container that is open"),
                }
            }
            Event::ContainerIterationCompleted { node, index, .. } => {
                match self.container_of(node).map(|container| container.active.contains_key(index)) {
                    Some(true) => {}
                    Some(false) => return format!("iteration {index} of `{node}` ended and had not begun"),
                    None => return format!("`{node}` is not a container that is open"),
                }
            }
            _ => {}
        }
        let found = event.key().map_or(String::new(), |key| format!(" of `{key}`"));
        if let Some(end) = &self.end {
            let how = if end.is_ok() { "finished" } else { "failed" };
            return format!("the flow has {how}: nothing{found} can follow");
        }
        match &self.mark {
            Some(mark) => {
                let (expected, found) = (told(&mark.event()), told(event));
                if expected == found {
                    // What is said of them is the same: it is the place that is not.
                    return format!("expected {expected} with its own place among its siblings, found another");
                }
                format!("expected {expected}, found {found}")
            }
            None => format!("nothing can be marked while the flow waits, found {}", told(event)),
        }
    }

    /// A branch is chosen once. Another one would be if what its condition reads is not what it was: in a fork with another
    /// input.
    fn other_branch(&mut self, node: &Key, then: u32) -> Option<String> {
        let now = match self.mark.as_ref()? {
            Mark::IterationStarted { node: of, index, .. } if of == node && *index != then => Some(*index),
            // It ends without any.
            Mark::ChildCompleted { child, .. } if child == node => None,
            Mark::Event(event) if matches!(&**event, Event::NodeCompleted { node: of, .. } if of == node) => None,
            _ => return None,
        };
        let name = self.at(node, &mut |spot, _, _| {
            let NodeKind::Container(container) = &spot.node().kind else { return None };
            match container.rule {
                Rule::If { .. } => Some(side as Name),
                Rule::Switch { .. } => Some(branch as Name),
                Rule::Foreach { .. } | Rule::Loop { .. } | Rule::Parallel => None,
            }
        })??;
        let instead = now.map_or("none".to_owned(), name);
        let took = name(then);
        Some(format!(
            "`{node}` took {took} when this was recorded, and takes {instead} with the input and outputs it has now"
        ))
    }

    fn container_of(&mut self, key: &Key) -> Option<Container> {
        self.at(key, &mut |spot, _, _| match &spot.block.slots[spot.place] {
            Slot::Running(entry) if entry.attempt == spot.attempt => {
                // Only what is looked at: the rest may be large.
                entry.container.as_ref().map(|container| Container {
                    next: container.next,
                    active: container.active.keys().map(|index| (*index, Default::default())).collect(),
                    ..Container::default()
                })
            }
            Slot::Running(_) | Slot::Waiting | Slot::Done { .. } | Slot::Failed | Slot::Skipped | Slot::Waived => None,
        })
        .flatten()
    }
}

fn side(index: u32) -> String {
    match index {
        0 => "`then`".to_owned(),
        1 => "`else`".to_owned(),
        other => branch(other),
    }
}

fn branch(index: u32) -> String {
    format!("branch {index}")
}

/// An event, in a few words.
fn told(event: &Event) -> String {
    let place = match event {
        Event::ContainerIterationStarted { index, .. } | Event::ContainerIterationCompleted { index, .. } => {
            format!(" {index}")
        }
        Event::ContainerChildStarted { child, .. } | Event::ContainerChildCompleted { child, .. } => {
            format!(" `{child}`")
        }
        _ => String::new(),
    };
    let key = event.key().map_or(String::new(), |key| format!(" of `{key}`"));
    format!("{}{place}{key}", event.kind())
}
