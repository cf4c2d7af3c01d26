//! Nodes with nodes in them.

use std::sync::Arc;

use outlast_script::Span;

use super::Loader;
use super::fields::Fields;
use super::names::ITERATION;
use crate::limits::{CONCURRENCY_MAX, ITERATIONS_MAX};
use crate::model::{Body, Collect, ContainerNode, Node, Rule};
use crate::schema::Shape;
use crate::tree::{Field, Kind, Tree};

/// The fields of a case of a switch.
pub const CASE_FIELDS: &[&str] = &["value", "body"];
/// The name of foreach's item, where none is given.
const ITEM: &str = "item";
/// The longest number of an iteration in a key, with its slashes.
const INDEX_BYTES: usize = "/1000000/".len();

/// The bodies of a node that was not looked at yet.
pub(super) fn bodies(fields: &[Field]) -> Vec<&[Tree]> {
    let mut found = Vec::new();
    for field in fields {
        match (field.name.as_str(), &field.value.kind) {
            ("body" | "then" | "else" | "default", Kind::List(nodes)) => found.push(&nodes[..]),
            ("branches", Kind::Map(branches)) => {
                for branch in branches {
                    if let Kind::List(nodes) = &branch.value.kind {
                        found.push(nodes);
                    }
                }
            }
            ("cases", Kind::List(cases)) => {
                for case in cases {
                    if let Kind::Map(fields) = &case.kind {
                        found.extend(bodies(fields));
                    }
                }
            }
            (_, _) => {}
        }
    }
    found
}

impl Loader {
    pub(super) fn container(
        &mut self,
        word: &str,
        fields: &mut Fields<'_>,
        whose: &str,
    ) -> Option<(ContainerNode, Shape)> {
        match word {
            "if" => self.if_node(fields, whose),
            "switch" => self.switch_node(fields, whose),
            "foreach" => self.foreach_node(fields, whose),
            "loop" => self.loop_node(fields, whose),
            _ => self.parallel_node(fields, whose),
        }
    }

    fn if_node(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<(ContainerNode, Shape)> {
        let condition = self.required(fields, "condition", whose).map(|tree| self.condition(tree));
        let then = self.required(fields, "then", whose).map(|tree| self.body(tree, false));
        let otherwise = fields.take("else").map(|tree| self.body(tree, false));
        let (bodies, shapes): (Vec<Body>, Vec<Shape>) = then.into_iter().chain(otherwise).flatten().unzip();
        let branches = ["then", "else"].map(Arc::from).into_iter().take(bodies.len()).collect();
        let rule = Rule::If { condition: condition? };
        let node = ContainerNode { rule, bodies, branches, collect: Collect::Last, concurrency: 1 };
        Some((node, united(shapes)))
    }

    fn switch_node(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<(ContainerNode, Shape)> {
        let on = self.required(fields, "on", whose).map(|tree| self.template(tree));
        let list = self.required(fields, "cases", whose).and_then(|tree| self.list(tree)).unwrap_or_default();
        let mut cases = Vec::new();
        let (mut bodies, mut shapes, mut branches) = (Vec::new(), Vec::new(), Vec::new());
        for tree in list {
            let Some(mut fields) = self.fields(tree, "a case") else { continue };
            let value = self.required(&mut fields, "value", "a case");
            let body = self.required(&mut fields, "body", "a case").and_then(|tree| self.body(tree, false));
            self.finish(fields, CASE_FIELDS);
            let (Some(value), Some((body, shape))) = (value, body) else { continue };
            let json = value.json();
            if cases.contains(&json) {
                self.error(
                    "duplicate_case",
                    value.span,
                    "this case can never be taken",
                    "remove it: there is one for this value before",
                );
            }
            branches.push(json.as_str().map_or_else(|| json.to_string(), str::to_owned).into());
            cases.push(json);
            bodies.push(body);
            shapes.push(shape);
        }
        let default = fields.take("default").and_then(|tree| self.body(tree, false));
        let has_default = default.is_some();
        if let Some((body, shape)) = default {
            bodies.push(body);
            shapes.push(shape);
            branches.push("default".into());
        }
        let rule = Rule::Switch { on: on?, cases, has_default };
        Some((ContainerNode { rule, bodies, branches, collect: Collect::Last, concurrency: 1 }, united(shapes)))
    }

    fn foreach_node(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<(ContainerNode, Shape)> {
        let items = self.required(fields, "items", whose).map(|tree| self.template(tree));
        let name = match fields.take("as") {
            None => Some(ITEM.into()),
            Some(tree) => self.text(tree).and_then(|text| self.item_name(&text, tree.span)),
        };
        let concurrency =
            fields.take("concurrency").and_then(|tree| self.number(tree, 1, CONCURRENCY_MAX)).unwrap_or(1);
        let collect = self.collect(fields, Collect::All);
        let item = items.as_ref().map(|items| self.names.item_of(items)).unwrap_or_default();
        let mark = self.names.mark();
        self.names.show(ITERATION.iter().map(|name| ((*name).into(), Shape::Unknown)));
        self.names.show(name.iter().map(|name| (Arc::clone(name), item.clone())));
        let body = self.required(fields, "body", whose).and_then(|tree| self.body(tree, false));
        self.names.forget(mark);
        let rule = Rule::Foreach { items: items?, name: name? };
        let bodies = vec![body?.0];
        Some((ContainerNode { rule, bodies, branches: Vec::new(), collect, concurrency }, iterations()))
    }

    fn item_name(&mut self, text: &str, span: Span) -> Option<Arc<str>> {
        let name = self.name(text, span, "the name of an item")?;
        if self.ids.contains_key(&name) {
            let message = format!("a node is called `{name}` too");
            self.error("duplicate_id", span, message, "give the item another name");
        }
        Some(name)
    }

    fn loop_node(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<(ContainerNode, Shape)> {
        let (condition, until) = (fields.take("while"), fields.take("until"));
        let max = self.required(fields, "max_iterations", whose).and_then(|tree| self.number(tree, 1, ITERATIONS_MAX));
        let collect = self.collect(fields, Collect::Last);
        let mark = self.names.mark();
        self.names.show(ITERATION.iter().map(|name| ((*name).into(), Shape::Unknown)));
        let body = self.required(fields, "body", whose);
        let made = body.and_then(|tree| self.body(tree, true));
        // Conditions see what the round before left.
        let children = made.iter().flat_map(|(body, _)| &body.nodes);
        let children: Vec<(Arc<str>, Shape)> = children.map(|node| (Arc::clone(&node.id), Shape::Unknown)).collect();
        self.names.show(children);
        let condition = condition.map(|tree| self.condition(tree));
        let until = until.map(|tree| self.condition(tree));
        self.names.forget(mark);
        let rule = Rule::Loop { condition, until, max: max? };
        let bodies = vec![made?.0];
        Some((ContainerNode { rule, bodies, branches: Vec::new(), collect, concurrency: 1 }, iterations()))
    }

    fn parallel_node(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<(ContainerNode, Shape)> {
        let concurrency = fields.take("concurrency").and_then(|tree| self.number(tree, 1, CONCURRENCY_MAX));
        let tree = self.required(fields, "branches", whose)?;
        let Kind::Map(named) = &tree.kind else {
            self.wrong(tree, "the branches, as a mapping from names to lists of nodes");
            return None;
        };
        let (mut bodies, mut shapes, mut branches) = (Vec::new(), Vec::new(), Vec::new());
        for branch in named {
            let name = self.name(&branch.name, branch.span, "the name of a branch");
            let body = self.body(&branch.value, false);
            let (Some(name), Some((body, shape))) = (name, body) else { continue };
            bodies.push(body);
            shapes.push((Arc::clone(&name), shape));
            branches.push(name);
        }
        if named.is_empty() {
            self.error("empty_body", tree.span, "a parallel needs at least one branch", "add one: `left: [ … ]`");
        }
        let all = u32::try_from(bodies.len()).unwrap_or(u32::MAX).max(1);
        let concurrency = concurrency.unwrap_or(all);
        let node = ContainerNode { rule: Rule::Parallel, bodies, branches, collect: Collect::All, concurrency };
        Some((node, Shape::fields(shapes)))
    }

    fn collect(&mut self, fields: &mut Fields<'_>, default: Collect) -> Collect {
        let words = [("none", Collect::None), ("last", Collect::Last), ("all", Collect::All)];
        fields.take("collect").and_then(|tree| self.word(tree, &words)).unwrap_or(default)
    }

    /// The nodes of a container, which run as they stand; `repeats` where each can see what the round before left.
    fn body(&mut self, tree: &Tree, repeats: bool) -> Option<(Body, Shape)> {
        let list = self.list(tree)?;
        if list.is_empty() {
            self.error("empty_body", tree.span, "this body has no nodes", "add one, or remove it");
            return None;
        }
        let siblings: Vec<Option<Arc<str>>> = list.iter().map(super::id_of).collect();
        let mark = self.names.mark();
        self.names.show_errors(siblings.iter().flatten().cloned());
        if repeats {
            self.names.show(siblings.iter().flatten().map(|id| (Arc::clone(id), Shape::Unknown)));
        }
        self.path_bytes += INDEX_BYTES;
        let mut nodes: Vec<Node> = Vec::new();
        let mut shapes = Vec::new();
        let mut is_whole = true;
        for (at, tree) in list.iter().enumerate() {
            match self.node(tree, &siblings, at) {
                Some((node, shape)) => {
                    self.names.show([(Arc::clone(&node.id), shape.clone())]);
                    shapes.push((Arc::clone(&node.id), shape));
                    nodes.push(node);
                }
                None => {
                    // It is there all the same: those behind it may use it.
                    self.names.show(siblings[at].iter().map(|id| (Arc::clone(id), Shape::Unknown)));
                    is_whole = false;
                }
            }
        }
        self.path_bytes -= INDEX_BYTES;
        self.names.forget(mark);
        is_whole.then(|| (Body::new(nodes), Shape::fields(shapes)))
    }
}

fn iterations() -> Shape {
    Shape::fields(["iterations", "count"].map(|name| (name.into(), Shape::Unknown)))
}

/// The fields of any of the branches.
fn united(shapes: Vec<Shape>) -> Shape {
    Shape::fields(shapes.into_iter().flat_map(|shape| match shape {
        Shape::Fields(fields) => fields,
        Shape::Unknown | Shape::List(_) => Default::default(),
    }))
}
