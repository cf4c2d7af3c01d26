//! Pictures of a flow, with where a run stands.

use std::fmt::Write as _;

use crate::load::Flow;
use crate::model::{Body, ContainerNode, Node, NodeKind, OnError, Rule};
use crate::position::{NodeStatus, Position};

/// What a picture is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Mermaid, which Markdown viewers draw.
    Mermaid,
    /// DOT, for Graphviz.
    Dot,
}

/// Draws a flow; with a position also how every node stands.
///
/// ```
/// use outlast_flow::{Flow, Picture, render};
///
/// let flow = Flow::parse("nap.flow.yaml", "flow: nap\nnodes: [{ id: rest, type: sleep, for: 1m }]")?;
/// assert!(render(&flow, None, Picture::Mermaid).contains("n_rest[\"rest<br/>sleep\"]"));
/// # Ok::<(), outlast_flow::Diagnostics>(())
/// ```
pub fn render(flow: &Flow, position: Option<&Position>, picture: Picture) -> String {
    let mut canvas = Canvas { text: String::new(), picture, position, groups: 0 };
    canvas.flow(flow);
    canvas.text
}

/// All marks, and how each looks.
const STATUSES: [(NodeStatus, &str, &str); 6] = [
    (NodeStatus::Pending, "pending", "#ffffff"),
    (NodeStatus::Running, "running", "#cfe8ff"),
    (NodeStatus::Waiting, "waiting", "#fff3c4"),
    (NodeStatus::Done, "done", "#d3f2d3"),
    (NodeStatus::Failed, "failed", "#f8cfcf"),
    (NodeStatus::Skipped, "skipped", "#e6e6e6"),
];

struct Canvas<'a> {
    text: String,
    picture: Picture,
    position: Option<&'a Position>,
    groups: usize,
}

impl Canvas<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing into a text does not fail.
        let _ = writeln!(self.text, "{:indent$}{text}", "", indent = depth * 2);
    }

    fn flow(&mut self, flow: &Flow) {
        let inner = &flow.inner;
        match self.picture {
            Picture::Mermaid => self.line(0, "flowchart TD"),
            Picture::Dot => {
                self.line(0, &format!("digraph {} {{", quoted(inner.name.as_str())));
                self.line(1, "compound=true; node [shape=box, style=\"rounded,filled\", fillcolor=white];");
            }
        }
        self.nodes(&inner.body, 1);
        for (to, edges) in inner.edges.iter().enumerate() {
            for edge in edges {
                let label = if edge.when.is_some() { "when" } else { "" };
                self.edge(1, (&inner.body.nodes[edge.from], &inner.body.nodes[to]), label, false);
            }
        }
        for edge in &inner.loops {
            let label = format!("back, at most {}", edge.max);
            self.edge(1, (&inner.body.nodes[edge.from], &inner.body.nodes[edge.to]), &label, true);
        }
        // Without edges the order is that of the file.
        for (place, node) in inner.body.nodes.iter().enumerate().skip(1) {
            let is_linked = inner.edges[place].iter().any(|edge| edge.from + 1 == place);
            if !is_linked && inner.concurrency == 1 {
                self.edge(1, (&inner.body.nodes[place - 1], node), "then", true);
            }
        }
        self.close();
    }

    fn close(&mut self) {
        match self.picture {
            Picture::Mermaid if self.position.is_some() => {
                for (_, name, colour) in STATUSES {
                    self.line(1, &format!("classDef {name} fill:{colour},stroke:#555"));
                }
            }
            Picture::Mermaid => {}
            Picture::Dot => self.line(0, "}"),
        }
    }

    fn nodes(&mut self, body: &Body, depth: usize) {
        for node in &body.nodes {
            match &node.kind {
                NodeKind::Container(container) => self.container(node, container, depth),
                _ => self.leaf(node, depth),
            }
        }
    }

    fn status(&self, node: &Node) -> Option<(&'static str, &'static str)> {
        let status = self.position?.nodes.get(&*node.id)?;
        STATUSES.iter().find(|(known, ..)| known == status).map(|(_, name, colour)| (*name, *colour))
    }

    fn leaf(&mut self, node: &Node, depth: usize) {
        let (id, word) = (&node.id, node.kind.word());
        let status = self.status(node);
        match self.picture {
            Picture::Mermaid => {
                let class = status.map_or(String::new(), |(name, _)| format!(":::{name}"));
                self.line(depth, &format!("{}[\"{id}<br/>{word}\"]{class}", mermaid_id(id)));
            }
            Picture::Dot => {
                let fill = status.map_or(String::new(), |(name, colour)| {
                    format!(", fillcolor={}, tooltip={}", quoted(colour), quoted(name))
                });
                self.line(depth, &format!("{} [label=\"{id}\\n{word}\"{fill}];", quoted(id)));
            }
        }
    }

    fn container(&mut self, node: &Node, container: &ContainerNode, depth: usize) {
        self.open_group(&format!("{}: {}{}", node.id, node.kind.word(), self.progress(node)), depth);
        self.leaf(node, depth + 1);
        for (place, body) in container.bodies.iter().enumerate() {
            let branch = container.branches.get(place);
            let is_branch = !matches!(container.rule, Rule::Foreach { .. } | Rule::Loop { .. });
            let inner = if is_branch { depth + 2 } else { depth + 1 };
            if is_branch {
                self.open_group(branch.map_or("", |name| name), depth + 1);
            }
            self.nodes(body, inner);
            self.chain(node, body, inner);
            if is_branch {
                self.close_group(depth + 1);
            }
        }
        self.close_group(depth);
    }

    /// The nodes of a body, one after the other.
    fn chain(&mut self, owner: &Node, body: &Body, depth: usize) {
        let mut before = owner;
        for (place, node) in body.nodes.iter().enumerate() {
            self.edge(depth, (before, node), "", false);
            if let OnError::Goto(target) = node.on_error
                && target > place + 1
            {
                self.edge(depth, (node, &body.nodes[target]), "on error", true);
            }
            before = node;
        }
    }

    /// How far a container is that runs.
    fn progress(&self, node: &Node) -> String {
        let frames = self.position.map_or(&[][..], |position| &position.container_stack);
        let Some(frame) = frames.iter().find(|frame| frame.node == *node.id) else { return String::new() };
        match frame.total_iterations {
            Some(total) => format!(" ({} of {total} done)", frame.completed_count),
            None => format!(" ({} done)", frame.completed_count),
        }
    }

    fn open_group(&mut self, label: &str, depth: usize) {
        self.groups += 1;
        let number = self.groups;
        match self.picture {
            Picture::Mermaid => self.line(depth, &format!("subgraph group{number}[{}]", quoted_html(label))),
            Picture::Dot => {
                self.line(depth, &format!("subgraph cluster_{number} {{"));
                self.line(depth + 1, &format!("label={};", quoted(label)));
            }
        }
    }

    fn close_group(&mut self, depth: usize) {
        self.line(depth, if self.picture == Picture::Mermaid { "end" } else { "}" });
    }

    fn edge(&mut self, depth: usize, (from, to): (&Node, &Node), label: &str, dotted: bool) {
        let text = match self.picture {
            Picture::Mermaid => {
                let arrow = if dotted { "-.->" } else { "-->" };
                let label = if label.is_empty() { String::new() } else { format!("|{label}|") };
                format!("{} {arrow}{label} {}", mermaid_id(&from.id), mermaid_id(&to.id))
            }
            Picture::Dot => {
                let style = if dotted { ", style=dashed" } else { "" };
                format!("{} -> {} [label={}{style}];", quoted(&from.id), quoted(&to.id), quoted(label))
            }
        };
        self.line(depth, &text);
    }
}

/// `end` and others mean something in Mermaid.
fn mermaid_id(id: &str) -> String {
    format!("n_{id}")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " "))
}

fn quoted_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
    format!("\"{}\"", text.replace('\n', " "))
}
