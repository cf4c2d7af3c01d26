//! Finding a node of a run by its key.

use outlast_core::id::Key;

use crate::items::Items;
use crate::model::{Body, ContainerNode, Node, NodeKind, Rule};
use crate::scope::{Scope, Turn, World};
use crate::state::{Block, Role, Slot};

/// A key, taken apart: `pass-2/lines/47/label#2`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path<'k> {
    pub(crate) pass: u32,
    pub(crate) first: Step<'k>,
    pub(crate) inner: Inner<'k>,
    pub(crate) role: Role,
}

/// Iterations, and the nodes in them, the outermost first. Every event of a journal is looked up by its key, so they are not
/// gathered before they are needed; and they are handed down as deep as containers nest, so they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inner<'k>(&'k str);

impl Inner<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'k> Iterator for Inner<'k> {
    type Item = (u32, Step<'k>);

    fn next(&mut self) -> Option<(u32, Step<'k>)> {
        let (index, rest) = cut(self.0, b'/');
        let (step, rest) = cut(rest?, b'/');
        self.0 = rest.unwrap_or_default();
        Some((index.parse().ok()?, Step::parse(step)?))
    }
}

/// What comes before the first of a character, and what comes after it.
fn cut(text: &str, at: u8) -> (&str, Option<&str>) {
    // Keys are short: shorter than it takes to prepare a search.
    match text.bytes().position(|byte| byte == at) {
        Some(place) => (&text[..place], Some(&text[place + 1..])),
        None => (text, None),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step<'k> {
    pub(crate) id: &'k str,
    pub(crate) attempt: u32,
}

impl<'k> Step<'k> {
    fn parse(text: &'k str) -> Option<Step<'k>> {
        let (id, attempt) = cut(text, b'#');
        Some(Step { id, attempt: attempt.map_or(Some(1), |attempt| attempt.parse().ok())? })
    }
}

impl<'k> Path<'k> {
    pub(crate) fn parse(key: &'k Key) -> Option<Path<'k>> {
        let (text, role) = role_of(key.as_str());
        let (pass, text) = pass_of(text)?;
        if text.ends_with('/') {
            return None;
        }
        let (first, rest) = cut(text, b'/');
        let inner = Inner(rest.unwrap_or_default());
        let mut read = inner;
        while !read.is_empty() {
            read.next()?;
        }
        Some(Path { pass, first: Step::parse(first)?, inner, role })
    }
}

/// What an operation is for its node, and the key of that.
fn role_of(text: &str) -> (&str, Role) {
    // Every event of a journal comes by here, and nearly all of them are about a node itself: one letter says so.
    let role = match text.as_bytes().last() {
        Some(b'k') => Role::Submit,
        Some(b't') => Role::Timeout,
        Some(_) | None => return (text, Role::Main),
    };
    text.strip_suffix(role.suffix()).map_or((text, Role::Main), |node| (node, role))
}

/// The pass a key is about, and the rest of it. The first has no number; none if there is one that cannot be.
pub(crate) fn pass_of(text: &str) -> Option<(u32, &str)> {
    match text.strip_prefix("pass-").and_then(|rest| rest.split_once('/')) {
        Some((pass, rest)) => Some((pass.parse().ok().filter(|pass| *pass > 1)?, rest)),
        None => Some((1, text)),
    }
}

/// A place in a list of nodes that is being run, and what is around it.
pub(crate) struct Spot<'a> {
    pub(crate) world: &'a World<'a>,
    pub(crate) around: Option<&'a Scope<'a>>,
    pub(crate) turn: Option<Turn<'a>>,
    pub(crate) body: &'a Body,
    pub(crate) block: &'a mut Block,
    pub(crate) place: usize,
    /// Which attempt at the node the key is about.
    pub(crate) attempt: u32,
}

impl Spot<'_> {
    pub(crate) fn node(&self) -> &Node {
        &self.body.nodes[self.place]
    }
}

/// Goes down to where the path leads; none if it leads nowhere.
pub(crate) fn visit<R>(spot: Spot<'_>, mut rest: Inner<'_>, then: &mut dyn FnMut(Spot<'_>) -> R) -> Option<R> {
    let Some((index, step)) = rest.next() else { return Some(then(spot)) };
    let Spot { world, around, turn, body, block, place, attempt } = spot;
    let NodeKind::Container(node) = &body.nodes[place].kind else { return None };
    let Block { slots, outputs, previous, errors, .. } = block;
    let scope = Scope { world, around, body, outputs, previous, errors, turn };
    let Slot::Running(entry) = &mut slots[place] else { return None };
    let container = entry.container.as_mut().filter(|_| entry.attempt == attempt)?;
    let turn = turn_of(node, &container.items, container.total, index);
    let body = node.body(index)?;
    let block = container.active.get_mut(&index)?;
    let place = body.place(step.id)?;
    visit(Spot { world, around: Some(&scope), turn, body, block, place, attempt: step.attempt }, rest, then)
}

/// What the nodes of an iteration know about it.
pub(crate) fn turn_of<'n>(
    node: &'n ContainerNode,
    items: &'n Items,
    total: Option<u32>,
    index: u32,
) -> Option<Turn<'n>> {
    match &node.rule {
        Rule::Foreach { name, .. } => {
            let (item, total) = (items.get(index), total.unwrap_or_default());
            Some(Turn { name: Some(name), item, index, total, is_exact: true })
        }
        Rule::Loop { condition, until, max } => {
            let is_exact = condition.is_none() && until.is_none();
            Some(Turn { name: None, item: None, index, total: *max, is_exact })
        }
        Rule::If { .. } | Rule::Switch { .. } | Rule::Parallel => None,
    }
}

impl ContainerNode {
    /// What an iteration runs.
    pub(crate) fn body(&self, index: u32) -> Option<&Body> {
        match self.rule {
            Rule::Foreach { .. } | Rule::Loop { .. } => self.bodies.first(),
            Rule::If { .. } | Rule::Switch { .. } | Rule::Parallel => self.bodies.get(index as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_where_a_node_is() {
        let key = Key::new("pass-2/lines/47/label#3.timeout").unwrap();
        let path = Path::parse(&key).unwrap();
        assert_eq!((path.pass, path.first, path.role), (2, Step { id: "lines", attempt: 1 }, Role::Timeout));
        assert_eq!(path.inner.collect::<Vec<_>>(), [(47, Step { id: "label", attempt: 3 })]);
        let key = Key::new("a/0/b/1/c").unwrap();
        let inner = Path::parse(&key).unwrap().inner;
        assert_eq!(inner.map(|(index, step)| (index, step.id)).collect::<Vec<_>>(), [(0, "b"), (1, "c")]);
        for wrong in [
            "lines/x/label",
            "lines/3",
            "lines/",
            "a/0/b/",
            "a/0/b/1",
            "pass-x/lines",
            "pass-1/lines",
            "lines#x",
            "lines/-1/label",
        ] {
            assert_eq!(Path::parse(&Key::new(wrong).unwrap()), None, "{wrong}");
        }
    }
}
