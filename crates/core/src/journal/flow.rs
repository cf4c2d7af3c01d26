//! What can be said about a flow's events without knowing the flow: nothing ends that had not begun, and references
//! point backwards. The order of nodes, indices that go back and children of another container need the graph; the
//! flow crate checks them when it folds the journal into a position.
//!
//! A node or iteration may begin again while it is open: that is how a flow enters it again after a pause.

use std::collections::BTreeSet;

use super::Illegal;
use crate::event::Event;
use crate::id::{Index, Key};

#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    nodes: BTreeSet<Key>,
    iterations: BTreeSet<(Key, u32)>,
    children: BTreeSet<(Key, Key)>,
}

impl Flow {
    pub(super) fn admit(&mut self, index: Index, event: &Event) -> Result<(), Illegal> {
        if let Event::NodeStarted { node, .. } = event {
            self.nodes.insert(node.clone());
        } else if let Event::NodeCompleted { node, .. } | Event::NodeError { node, .. } = event {
            begun(self.nodes.remove(node), || format!("node {node:?}"))?;
        } else if let Event::ContainerIterationStarted { node, index, .. } = event {
            self.iterations.insert((node.clone(), *index));
        } else if let Event::ContainerIterationCompleted { node, index: iteration, outputs } = event {
            outputs.iter().try_for_each(|output| refers_back(*output, index))?;
            begun(self.iterations.remove(&(node.clone(), *iteration)), || {
                format!("iteration {iteration} of {node:?}")
            })?;
        } else if let Event::ContainerChildStarted { node, child, .. } = event {
            self.children.insert((node.clone(), child.clone()));
        } else if let Event::ContainerChildCompleted { node, child, output } = event {
            refers_back(*output, index)?;
            begun(self.children.remove(&(node.clone(), child.clone())), || format!("child {child:?} of {node:?}"))?;
        }
        Ok(())
    }
}

fn begun(was_open: bool, what: impl FnOnce() -> String) -> Result<(), Illegal> {
    if was_open { Ok(()) } else { Err(Illegal::NotBegun { what: what() }) }
}

fn refers_back(to: Index, from: Index) -> Result<(), Illegal> {
    if to < from { Ok(()) } else { Err(Illegal::RefersAhead { to }) }
}
