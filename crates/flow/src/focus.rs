//! Where in a run an event may have changed something: with a thousand iterations at once nobody wants to look at all of them.

use outlast_core::event::Event;

use crate::walk::{Inner, Path};

/// One of the flow's own nodes, and the iterations that lead from it to what an event is about.
pub(crate) struct Focus<'k> {
    pub(crate) node: &'k str,
    pub(crate) iterations: Iterations<'k>,
}

/// The outermost first. Those further in are all looked at.
#[derive(Clone, Copy)]
pub(crate) struct Iterations<'k> {
    inner: Inner<'k>,
    last: Option<u32>,
}

impl Iterator for Iterations<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.inner.next().map(|(index, _)| index).or_else(|| self.last.take())
    }
}

impl<'k> Focus<'k> {
    /// None if it may be anywhere.
    pub(crate) fn of(event: &'k Event) -> Option<Focus<'k>> {
        let (key, last) = match event {
            Event::ContainerIterationStarted { node, index, .. }
            | Event::ContainerIterationCompleted { node, index, .. } => (node, Some(*index)),
            Event::ContainerChildStarted { child, .. } | Event::ContainerChildCompleted { child, .. } => (child, None),
            // They may have closed what others were decided in.
            Event::NodeSkipped { .. } | Event::NodeRetried { .. } | Event::LoopIterate { .. } => return None,
            other => (other.key()?, None),
        };
        let path = Path::parse(key)?;
        Some(Focus { node: path.first.id, iterations: Iterations { inner: path.inner, last } })
    }
}
