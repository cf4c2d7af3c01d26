//! What can be said about a flow's events without knowing the flow: nothing ends that had not begun, and references
//! point backwards. The order of nodes, indices that go back and children of another container need the graph; the
//! flow crate checks them when it folds the journal into a position.
//!
//! A node or iteration may begin again while it is open: that is how a flow enters it again after a pause.

use std::collections::{BTreeMap, BTreeSet};

use super::Illegal;
use crate::event::Event;
use crate::id::{Index, Key};
use crate::operation::again;

#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    nodes: BTreeSet<Key>,
    iterations: BTreeSet<(Key, u32)>,
    /// The container of each child that is open.
    children: BTreeMap<Key, Key>,
    /// What began may have begun in events that are not known.
    forgot: bool,
}

impl Flow {
    pub(super) fn forget(&mut self) {
        *self = Flow { forgot: true, ..Flow::default() };
    }

    fn begun(&self, was_open: bool, what: impl FnOnce() -> String) -> Result<(), Illegal> {
        if was_open || self.forgot { Ok(()) } else { Err(Illegal::NotBegun { what: what() }) }
    }

    /// What is open goes on under another key.
    fn begin_again(&mut self, node: &Key) {
        let Ok(next) = again(node) else { return };
        if self.nodes.remove(node) {
            self.nodes.insert(next);
        } else if let Some(container) = self.children.remove(node) {
            self.children.insert(next, container);
        }
    }

    pub(super) fn admit(&mut self, index: Index, event: &Event) -> Result<(), Illegal> {
        if let Event::NodeStarted { node, .. } = event {
            self.nodes.insert(node.clone());
        } else if let Event::NodeCompleted { node, .. } = event {
            let was_open = self.nodes.remove(node);
            self.begun(was_open, || format!("node {node:?}"))?;
        } else if let Event::NodeError { node, .. } = event {
            let was_open = self.nodes.remove(node) || self.children.remove(node).is_some();
            self.begun(was_open, || format!("node {node:?}"))?;
        } else if let Event::NodeSkipped { node, .. } = event {
            // It may not have begun. If it had, it is over.
            self.nodes.remove(node);
            self.children.remove(node);
        } else if let Event::NodeRetried { node, .. } = event {
            self.begin_again(node);
        } else if let Event::ContainerIterationStarted { node, index, .. } = event {
            self.iterations.insert((node.clone(), *index));
        } else if let Event::ContainerIterationCompleted { node, index: iteration, outputs } = event {
            outputs.iter().try_for_each(|output| refers_back(*output, index))?;
            let was_open = self.iterations.remove(&(node.clone(), *iteration));
            self.begun(was_open, || format!("iteration {iteration} of {node:?}"))?;
        } else if let Event::ContainerChildStarted { node, child, .. } = event {
            self.children.insert(child.clone(), node.clone());
        } else if let Event::ContainerChildCompleted { node, child, output, .. } = event {
            output.iter().try_for_each(|output| refers_back(*output, index))?;
            let is_its_own = self.children.get(child) == Some(node);
            self.begun(is_its_own, || format!("child {child:?} of {node:?}"))?;
            self.children.remove(child);
        }
        Ok(())
    }
}

fn refers_back(to: Index, from: Index) -> Result<(), Illegal> {
    if to < from { Ok(()) } else { Err(Illegal::RefersAhead { to }) }
}
