//! Edges, and the order they put the nodes in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_script::{Diagnostic, Span};

use super::{Loader, id_of, meant};
use crate::limits::ITERATIONS_MAX;
use crate::model::{Edge, LoopEdge};
use crate::tree::Tree;

/// The fields of an edge.
pub const EDGE_FIELDS: &[&str] = &["from", "to", "type", "max_iterations", "when"];

/// The nodes of the flow in their order, and the edges between places of that order.
pub(super) struct Graph<'t> {
    /// The nodes' places in the file.
    pub(super) order: Vec<usize>,
    forward: Vec<Raw<'t>>,
    loops: Vec<Raw<'t>>,
    /// For each node those that certainly run before it; for one at a time all that come before.
    before: Option<Vec<BTreeSet<usize>>>,
}

struct Raw<'t> {
    from: usize,
    to: usize,
    max: u32,
    when: Option<&'t Tree>,
    span: Span,
}

impl Graph<'_> {
    /// Whether the output of an earlier node can be seen.
    pub(super) fn sees(&self, at: usize, other: usize) -> bool {
        self.before.as_ref().is_none_or(|before| before[at].contains(&other))
    }

    /// Nodes at and behind a place whose outputs a pass before may have left.
    pub(super) fn visible(&self, at: usize) -> Vec<usize> {
        let around = self.loops.iter().filter(|edge| edge.to <= at && at <= edge.from);
        let last = around.map(|edge| edge.from).max();
        last.map_or_else(Vec::new, |last| (at..=last).collect())
    }
}

impl Loader {
    /// Reads the edges, and puts the nodes in order: as they stand in the file, as far as the edges allow.
    pub(super) fn graph<'t>(&mut self, nodes: &'t [Tree], edges: Option<&'t Tree>, concurrency: u32) -> Graph<'t> {
        let places: BTreeMap<Arc<str>, usize> =
            nodes.iter().enumerate().rev().filter_map(|(place, tree)| Some((id_of(tree)?, place))).collect();
        let list = edges.and_then(|tree| self.list(tree)).unwrap_or_default();
        let (mut forward, mut loops) = (Vec::new(), Vec::new());
        for tree in list {
            match self.edge(tree, &places) {
                Some((edge, true)) => loops.push(edge),
                Some((edge, false)) => forward.push(edge),
                None => {}
            }
        }
        let order = self.order(nodes, &forward);
        let mut position = vec![0; nodes.len()];
        order.iter().enumerate().for_each(|(at, place)| position[*place] = at);
        for edge in forward.iter_mut().chain(&mut loops) {
            (edge.from, edge.to) = (position[edge.from], position[edge.to]);
        }
        self.check_loops(&loops, concurrency);
        let before = (concurrency > 1).then(|| ancestors(nodes.len(), &forward));
        Graph { order, forward, loops, before }
    }

    fn edge<'t>(&mut self, tree: &'t Tree, places: &BTreeMap<Arc<str>, usize>) -> Option<(Raw<'t>, bool)> {
        let mut fields = self.fields(tree, "an edge")?;
        let from = self.required(&mut fields, "from", "an edge");
        let to = self.required(&mut fields, "to", "an edge");
        let is_loop = fields.take("type").and_then(|tree| self.word(tree, &[("forward", false), ("loop", true)]));
        let is_loop = is_loop.unwrap_or_default();
        let max = fields.take("max_iterations");
        let when = fields.take("when");
        self.finish(fields, EDGE_FIELDS);
        if let (Some(max), false) = (max, is_loop) {
            let message = "only loop edges have `max_iterations`";
            self.error("forward_max_iterations", max.span, message, "remove it, or add `type: loop`");
        }
        if max.is_none() && is_loop {
            let message = "a loop edge needs `max_iterations`: nothing else would end it for sure";
            self.error("missing_field", tree.span, message, "add `max_iterations: 10`");
        }
        let max = max.and_then(|tree| self.number(tree, 1, ITERATIONS_MAX));
        if when.is_none() && is_loop {
            let message = "this loop edge has no condition: it is taken until it fails with `loop_iteration_exceeded`";
            let warning = Diagnostic::warning("endless_loop_edge", tree.span, message);
            self.problem(warning.help("add `when: \"${…}\"`, or use a loop node to repeat a fixed number of times"));
        }
        let from = from.and_then(|tree| self.end(tree, places))?;
        let to = to.and_then(|tree| self.end(tree, places))?;
        Some((Raw { from, to, max: max.unwrap_or(1), when, span: tree.span }, is_loop))
    }

    fn end(&mut self, tree: &Tree, places: &BTreeMap<Arc<str>, usize>) -> Option<usize> {
        let name = self.text(tree)?;
        if let Some(place) = places.get(&*name) {
            return Some(*place);
        }
        let inside = self.ids.get(&*name).and_then(|id| id.inside.clone());
        let (message, help) = match inside {
            Some(container) => (
                format!("`{name}` stands inside `{container}`: edges are between the flow's own nodes"),
                format!("name `{container}` instead, or order the nodes of its body as they stand"),
            ),
            None => {
                let known: Vec<&str> = places.keys().map(|id| &**id).collect();
                (format!("there is no node `{name}`"), meant(&name, &known))
            }
        };
        self.error("unknown_node", tree.span, message, help);
        None
    }

    /// Of the nodes that could come next always the one that stands first in the file.
    fn order(&mut self, nodes: &[Tree], edges: &[Raw<'_>]) -> Vec<usize> {
        let mut waits_for: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes.len()];
        for edge in edges {
            waits_for[edge.to].insert(edge.from);
        }
        let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|place| waits_for[*place].is_empty()).collect();
        let mut order = Vec::new();
        while let Some(next) = ready.pop_first() {
            order.push(next);
            for edge in edges.iter().filter(|edge| edge.from == next) {
                waits_for[edge.to].remove(&next);
                if waits_for[edge.to].is_empty() && !order.contains(&edge.to) {
                    ready.insert(edge.to);
                }
            }
        }
        if order.len() < nodes.len() {
            self.cycle(nodes, edges, &waits_for, &order);
            order.extend((0..nodes.len()).filter(|place| !order.contains(place)).collect::<Vec<_>>());
        }
        order
    }

    fn cycle(&mut self, nodes: &[Tree], edges: &[Raw<'_>], waits_for: &[BTreeSet<usize>], order: &[usize]) {
        let Some(start) = (0..nodes.len()).find(|place| !order.contains(place)) else { return };
        // Whoever waits for ever waits for somebody who does: going back that way comes around.
        let mut path = vec![start];
        let cycle = loop {
            let at = path[path.len() - 1];
            let Some(back) = waits_for[at].first().copied() else { return };
            if let Some(seen) = path.iter().position(|place| *place == back) {
                break path.split_off(seen);
            }
            path.push(back);
        };
        let name = |place: usize| id_of(&nodes[place]).unwrap_or_else(|| "?".into()).to_string();
        let mut names: Vec<String> = cycle.iter().rev().map(|place| name(*place)).collect();
        names.extend(names.first().cloned());
        let closing = edges.iter().rev().find(|edge| cycle.contains(&edge.from) && cycle.contains(&edge.to));
        let span = closing.map_or(nodes[start].span, |edge| edge.span);
        let message = format!("these nodes wait for each other: {}", names.join(" → "));
        self.error("cycle", span, message, "mark the edge that goes back with `type: loop` and `max_iterations`");
    }

    fn check_loops(&mut self, loops: &[Raw<'_>], concurrency: u32) {
        for edge in loops {
            if edge.to > edge.from {
                let message = "this loop edge goes forward";
                self.error("loop_forward", edge.span, message, "swap `from` and `to`, or remove `type: loop`");
            }
            if concurrency > 1 {
                let message = "a flow that runs several nodes at once cannot go back";
                let help = "remove the flow's `concurrency`, and put what runs at once into a parallel node";
                self.error("concurrent_loop", edge.span, message, help);
            }
        }
    }

    /// The edges that lead to a node.
    pub(super) fn incoming(&mut self, graph: &Graph<'_>, at: usize) -> Vec<Edge> {
        let edges = graph.forward.iter().filter(|edge| edge.to == at);
        edges.map(|edge| Edge { from: edge.from, when: edge.when.map(|tree| self.condition(tree)) }).collect()
    }

    pub(super) fn loops(&mut self, graph: &Graph<'_>) -> Vec<LoopEdge> {
        let edges = graph.loops.iter();
        edges
            .map(|edge| LoopEdge {
                from: edge.from,
                to: edge.to,
                max: edge.max,
                when: edge.when.map(|tree| self.condition(tree)),
            })
            .collect()
    }
}

fn ancestors(count: usize, edges: &[Raw<'_>]) -> Vec<BTreeSet<usize>> {
    let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    for at in 0..count {
        let direct: Vec<usize> =
            edges.iter().filter(|edge| edge.to == at && edge.from < at).map(|edge| edge.from).collect();
        for from in direct {
            let further = before[from].clone();
            before[at].extend(further);
            before[at].insert(from);
        }
    }
    before
}
