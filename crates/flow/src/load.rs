//! From a text to a checked flow.

pub(crate) mod container;
pub(crate) mod edges;
mod fields;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod options;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use outlast_core::id::WorkflowName;
use outlast_core::operation::Location;
use outlast_script::{Diagnostic, Diagnostics, Source, Span, nearest};
use sha2::{Digest, Sha256};

use crate::limits::{CONCURRENCY_MAX, FILE_BYTES_MAX, NESTING_MAX, NODES_MAX, PROBLEMS_MAX};
use crate::model::{Body, Edge, LoopEdge, Node, NodeKind, OnError};
use crate::schema::{Schema, Shape};
use crate::template::Template;
use crate::tree::{Kind, Tree};
use names::{Id, Names};
use options::Defaults;

/// The fields of a flow.
pub const FLOW_FIELDS: &[&str] =
    &["flow", "description", "input", "output", "result", "defaults", "concurrency", "nodes", "edges"];

/// A flow: a file that was read and checked. Cheap to clone.
///
/// ```
/// use outlast_flow::Flow;
///
/// let flow = Flow::parse("greet.flow.yaml", "flow: greet\nnodes:\n  - { id: hello, type: script, script: \"Hello, ${input.name}!\" }\n")?;
/// assert_eq!(flow.name(), "greet");
/// # Ok::<(), outlast_script::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Flow {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: WorkflowName,
    pub(crate) description: Option<String>,
    pub(crate) hash: String,
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
    pub(crate) result: Option<Template>,
    pub(crate) concurrency: u32,
    pub(crate) body: Body,
    /// For each node the edges that lead to it.
    pub(crate) edges: Vec<Vec<Edge>>,
    pub(crate) loops: Vec<LoopEdge>,
    warnings: Diagnostics,
}

impl Flow {
    /// Reads and checks a file, in YAML or JSON. Its name is shown in messages.
    pub fn parse(file_name: &str, text: &str) -> Result<Flow, Diagnostics> {
        let source = Source::new(file_name, text);
        let mut loader = Loader::new(source.clone());
        let inner = loader.flow();
        let mut problems = loader.problems;
        problems.truncate(PROBLEMS_MAX);
        let has_errors = problems.iter().any(Diagnostic::is_error);
        let found = Diagnostics::new(source, problems);
        match inner {
            Some(inner) if !has_errors => Ok(Flow { inner: Arc::new(Inner { warnings: found, ..inner }) }),
            Some(_) | None => Err(found),
        }
    }

    /// The flow's name: that of the workflow.
    pub fn name(&self) -> &str {
        self.inner.name.as_str()
    }

    /// What it is for, in its author's words.
    pub fn description(&self) -> Option<&str> {
        self.inner.description.as_deref()
    }

    /// The hash of the text: a run stays with the text it began with.
    pub fn version(&self) -> &str {
        &self.inner.hash
    }

    /// The steps its nodes name: whoever drives it must have them.
    pub fn steps(&self) -> BTreeSet<&str> {
        let steps = self.inner.body.all().into_iter().filter_map(|node| match &node.kind {
            NodeKind::Step(step) => Some(&*step.name),
            _ => None,
        });
        steps.collect()
    }

    /// The workflows its nodes start in whatever version is newest: whoever drives it must know them.
    pub fn children(&self) -> BTreeSet<&str> {
        let children = self.inner.body.all().into_iter().filter_map(|node| match &node.kind {
            NodeKind::Workflow(child) if child.version.is_none() => Some(child.workflow.as_str()),
            _ => None,
        });
        children.collect()
    }

    /// What is probably not meant, and does not keep the flow from running.
    pub fn warnings(&self) -> &Diagnostics {
        &self.inner.warnings
    }

    /// The text it was made from.
    pub fn source(&self) -> &Source {
        self.inner.warnings.source()
    }
}

/// Reads a flow, and gathers what is wrong with it.
struct Loader {
    source: Source,
    problems: Vec<Diagnostic>,
    /// Every node of the flow.
    ids: BTreeMap<Arc<str>, Id>,
    nodes: usize,
    depth: usize,
    names: Names,
    defaults: Defaults,
    /// The longest key of the containers around, in bytes.
    path_bytes: usize,
}

impl Loader {
    fn new(source: Source) -> Loader {
        Loader {
            source,
            problems: Vec::new(),
            ids: BTreeMap::new(),
            nodes: 0,
            depth: 0,
            names: Names::default(),
            defaults: Defaults::default(),
            path_bytes: "pass-1000000/".len(),
        }
    }

    fn flow(&mut self) -> Option<Inner> {
        if self.source.text().len() > FILE_BYTES_MAX {
            let message = format!("the file has {} bytes, the limit is {FILE_BYTES_MAX}", self.source.text().len());
            self.error("file_too_long", Span::new(0, 0), message, "split it into several flows");
            return None;
        }
        let text = self.source.text().to_owned();
        let tree = match Tree::parse(&text) {
            Ok(tree) => tree,
            Err(problem) => {
                self.problems.push(problem);
                return None;
            }
        };
        let mut fields = self.fields(&tree, "a flow")?;
        let name = self.required(&mut fields, "flow", "the flow").and_then(|tree| self.id(tree, WorkflowName::new));
        let description = fields.take("description").and_then(|tree| self.text(tree));
        let input = fields.take("input").and_then(|tree| self.schema(tree));
        let output = fields.take("output").and_then(|tree| self.schema(tree));
        if let Some(tree) = fields.take("defaults") {
            self.defaults = self.defaults_of(tree);
        }
        let concurrency =
            fields.take("concurrency").and_then(|tree| self.number(tree, 1, CONCURRENCY_MAX)).unwrap_or(1);
        let nodes = self.required(&mut fields, "nodes", "the flow").and_then(|tree| self.list(tree));
        let edges = fields.take("edges");
        let result = fields.take("result");
        self.finish(fields, FLOW_FIELDS);
        let nodes = nodes?;
        if nodes.is_empty() {
            self.error("no_nodes", tree.span, "a flow needs at least one node", "add one under `nodes`");
            return None;
        }
        self.gather(nodes, None);
        let known = input.as_ref().map(|schema| schema.shape.clone()).unwrap_or_default();
        self.names.push_fixed(known, nodes.iter().filter_map(id_of));
        let graph = self.graph(nodes, edges, concurrency);
        let made = self.top(nodes, &graph);
        let result = result.map(|tree| self.template(tree));
        let (body, edges, loops) = made?;
        Some(Inner {
            name: name?,
            description,
            hash: hash(&text),
            input,
            output,
            result,
            concurrency,
            body,
            edges,
            loops,
            warnings: Diagnostics::new(self.source.clone(), Vec::new()),
        })
    }

    /// The nodes of the flow itself, in their order, with the edges between them.
    fn top(&mut self, nodes: &[Tree], graph: &edges::Graph<'_>) -> Option<(Body, Vec<Vec<Edge>>, Vec<LoopEdge>)> {
        let siblings: Vec<Option<Arc<str>>> = graph.order.iter().map(|place| id_of(&nodes[*place])).collect();
        let mut body: Vec<Option<Node>> = Vec::new();
        let mut shapes: Vec<(Option<Arc<str>>, Shape)> = Vec::new();
        let mut incoming = Vec::new();
        for (at, place) in graph.order.iter().enumerate() {
            let mark = self.names.mark();
            let later = graph.visible(at).into_iter().filter_map(|other| siblings[other].clone());
            self.names.show(later.map(|id| (id, Shape::Unknown)));
            let earlier = shapes.iter().enumerate().filter(|(other, _)| graph.sees(at, *other));
            self.names.show(earlier.filter_map(|(_, (id, shape))| Some((id.clone()?, shape.clone()))));
            incoming.push(self.incoming(graph, at));
            let node = self.node(&nodes[*place], &siblings, at);
            self.names.forget(mark);
            let (node, shape) = node.unzip();
            if let Some(Node { on_error: OnError::Goto(target), .. }) = node {
                self.check_goto(&nodes[*place], graph.sees(target, at), siblings[target].as_deref());
            }
            // One that has something wrong is there all the same: others may use it.
            shapes.push((siblings[at].clone(), shape.unwrap_or_default()));
            body.push(node);
        }
        self.names.show(shapes.into_iter().filter_map(|(id, shape)| Some((id?, shape))));
        let loops = self.loops(graph);
        let body: Option<Vec<Node>> = body.into_iter().collect();
        Some((Body::new(body?), incoming, loops))
    }

    /// Where several nodes run at once, a failure may lead only to what waits for the node: all else may have run before.
    fn check_goto(&mut self, tree: &Tree, waits: bool, target: Option<&str>) {
        let (false, Kind::Map(fields), Some(target)) = (waits, &tree.kind, target) else { return };
        let span = fields.iter().find(|field| field.name == "on_error").map_or(tree.span, |field| field.value.span);
        let message = format!("`{target}` does not wait for this node: it may have run before this one fails");
        self.error("concurrent_goto", span, message, format!("add an edge that leads from this node to `{target}`"));
    }

    /// Takes note of the ids of all nodes, before any expression is looked at.
    fn gather(&mut self, nodes: &[Tree], inside: Option<&Arc<str>>) {
        self.depth += 1;
        for tree in nodes {
            self.nodes += 1;
            if self.nodes == NODES_MAX + 1 {
                let message = format!("the flow has more than {NODES_MAX} nodes");
                self.error("too_many_nodes", tree.span, message, "move a part of it into a flow of its own");
            }
            let Kind::Map(fields) = &tree.kind else { continue };
            let field = |name: &str| fields.iter().find(|field| field.name == name);
            let id = field("id").and_then(|field| match &field.value.kind {
                Kind::Text(id) => Some((Arc::<str>::from(id.as_str()), field.value.span)),
                _ => None,
            });
            if let Some((id, span)) = &id {
                self.take_id(id, *span, inside);
            }
            if self.depth > NESTING_MAX {
                let message = format!("containers nest deeper than {NESTING_MAX} levels");
                self.error("nested_too_deep", tree.span, message, "move the inner ones into a flow of their own");
                continue;
            }
            let inside = id.as_ref().map(|(id, _)| id);
            for body in container::bodies(fields) {
                self.gather(body, inside.or(Some(&Arc::from("?"))));
            }
        }
        self.depth -= 1;
    }

    fn take_id(&mut self, id: &Arc<str>, span: Span, inside: Option<&Arc<str>>) {
        if let Some(first) = self.ids.get(id) {
            let line = self.source.position(first.span.start).line;
            let message = format!("two nodes are called `{id}`; the first one is in line {line}");
            self.error("duplicate_id", span, message, "give each node its own id: outputs and keys are found by it");
            return;
        }
        self.ids.insert(Arc::clone(id), Id { span, inside: inside.cloned() });
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.problem(Diagnostic::error(code, span, message).help(help));
    }

    fn problem(&mut self, problem: Diagnostic) {
        // One more than is told, so that it is known that there are too many.
        if self.problems.len() <= PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    fn location(&self, span: Span) -> Location {
        let position = self.source.position(span.start);
        Location { file: self.source.name().to_owned().into(), line: position.line, column: position.column }
    }

    fn schema(&mut self, tree: &Tree) -> Option<Schema> {
        if !matches!(tree.kind, Kind::Map(_) | Kind::Bool(_)) {
            self.wrong(tree, "a JSON Schema");
            return None;
        }
        match Schema::compile(&tree.json()) {
            Ok(schema) => Some(schema),
            Err(problem) => {
                let message = format!("this is not a JSON Schema: {problem}");
                self.error("schema", tree.span, message, "schemas are written as https://json-schema.org says");
                None
            }
        }
    }
}

/// The id of a node that was not looked at yet.
fn id_of(tree: &Tree) -> Option<Arc<str>> {
    let Kind::Map(fields) = &tree.kind else { return None };
    fields.iter().find(|field| field.name == "id").and_then(|field| match &field.value.kind {
        Kind::Text(id) => Some(id.as_str().into()),
        _ => None,
    })
}

fn hash(text: &str) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing into a text does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Advice: the word that was meant, or those that are known.
fn meant(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known are: {}", known.join(", ")),
    }
}
