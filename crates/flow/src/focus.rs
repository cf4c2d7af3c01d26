//! Where in a run an event may have changed something: with a thousand iterations at once nobody wants to look at all of them.

use outlast_core::event::Event;

use crate::walk::{Inner, Path};

/// What an event is about: one of the flow's own nodes, or something in it.
pub(crate) struct Focus<'k> {
    pub(crate) path: Path<'k>,
    /// The iteration of what is there.
    last: Option<u32>,
}

/// Those that lead to what an event is about, the outermost first. Those further in are all looked at.
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
        Some(Focus { path: Path::parse(key)?, last })
    }

    /// The iterations to look at in one of the flow's own nodes; none if it is not about that one.
    pub(crate) fn within(&self, node: &str) -> Option<Iterations<'k>> {
        let (inner, last) = (self.path.inner, self.last);
        (self.path.first.id == node).then_some(Iterations { inner, last })
    }
}
