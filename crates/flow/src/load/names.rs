//! Names in expressions: what can be seen where, and what is known about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_script::{Diagnostic, Expression, Reference, Span, nearest};

use super::Loader;
use crate::schema::Shape;
use crate::template::{Hole, Part, Piece, Template, pieces};
use crate::tree::{Kind, Tree};

/// Names that every expression can use.
pub(crate) const FIXED: &[&str] = &["input", "run", "messages", ERRORS];
/// The name of what nodes failed with.
const ERRORS: &str = "errors";
/// Names that expressions in a foreach or a loop can use.
pub(crate) const ITERATION: &[&str] = &["$iteration", "$first", "$last", "$max_iterations"];
/// The name of a callback's token, for whoever is told it.
pub(crate) const TOKEN: &str = "$token";

/// A node, before its file is read to the end.
pub(super) struct Id {
    pub(super) span: Span,
    /// The container it stands in.
    pub(super) inside: Option<Arc<str>>,
}

/// What can be seen, the innermost last.
#[derive(Default)]
pub(super) struct Names {
    list: Vec<(Arc<str>, Shape)>,
}

impl Names {
    /// What every expression sees. `own` are the flow's own nodes.
    pub(super) fn push_fixed(&mut self, input: Shape, own: impl Iterator<Item = Arc<str>>) {
        let errors = Shape::fields(own.map(|id| (id, Shape::Unknown)));
        let run = Shape::fields([("id".into(), Shape::Unknown), ("flow".into(), Shape::Unknown)]);
        for (name, shape) in FIXED.iter().zip([input, run, Shape::Unknown, errors]) {
            self.list.push(((*name).into(), shape));
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.list.len()
    }

    pub(super) fn forget(&mut self, mark: usize) {
        self.list.truncate(mark);
    }

    pub(super) fn show(&mut self, names: impl IntoIterator<Item = (Arc<str>, Shape)>) {
        self.list.extend(names);
    }

    /// The failures of these nodes can be seen, beside those around them.
    pub(super) fn show_errors(&mut self, ids: impl IntoIterator<Item = Arc<str>>) {
        let mut known = match self.get(ERRORS) {
            Some(Shape::Fields(known)) => known.clone(),
            Some(Shape::Unknown | Shape::List(_)) | None => BTreeMap::new(),
        };
        known.extend(ids.into_iter().map(|id| (id, Shape::Unknown)));
        self.list.push((ERRORS.into(), Shape::Fields(known)));
    }

    /// What is known about the items of a list: something only where that is a name and fields.
    pub(super) fn item_of(&self, list: &Template) -> Shape {
        let Template::Hole(hole) = list else { return Shape::Unknown };
        let [reference] = hole.expression.references() else { return Shape::Unknown };
        let fields = reference.fields.iter().map(|(field, _)| &**field);
        let path: Vec<&str> = std::iter::once(&*reference.name).chain(fields).collect();
        if path.join(".") != hole.text.trim() {
            return Shape::Unknown;
        }
        let mut shape = self.get(&reference.name);
        for (field, _) in &reference.fields {
            let Some(Shape::Fields(fields)) = shape else { return Shape::Unknown };
            shape = fields.get(field);
        }
        match shape {
            Some(Shape::List(item)) => (**item).clone(),
            Some(Shape::Unknown | Shape::Fields(_)) | None => Shape::Unknown,
        }
    }

    fn get(&self, name: &str) -> Option<&Shape> {
        self.list.iter().rev().find(|(known, _)| &**known == name).map(|(_, shape)| shape)
    }
}

impl Loader {
    /// A value with holes.
    pub(super) fn template(&mut self, tree: &Tree) -> Template {
        match &tree.kind {
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => Template::Plain(Arc::new(tree.json())),
            Kind::Text(text) => self.text_template(text, tree.span),
            Kind::List(items) => {
                let items: Vec<Template> = items.iter().map(|item| self.template(item)).collect();
                plain_or(tree, &items, Template::List(items.clone()))
            }
            Kind::Map(fields) => {
                let values: Vec<Template> = fields.iter().map(|field| self.template(&field.value)).collect();
                let named = fields.iter().map(|field| field.name.clone()).zip(values.iter().cloned()).collect();
                plain_or(tree, &values, Template::Map(named))
            }
        }
    }

    /// A condition: one hole, or true or false.
    pub(super) fn condition(&mut self, tree: &Tree) -> Template {
        let template = self.template(tree);
        if matches!(tree.kind, Kind::Bool(false)) {
            let warning =
                Diagnostic::warning("never", tree.span, "this never holds: what depends on it is never reached");
            self.problem(warning.help("remove what is never reached, or write a condition"));
        }
        let is_condition = match (&template, &tree.kind) {
            (Template::Hole(_), _) | (_, Kind::Bool(_)) => true,
            // What is wrong with it was told.
            (_, Kind::Text(text)) => {
                pieces(text).is_err() || pieces(text).is_ok_and(|found| matches!(found[..], [Piece::Hole(..)]))
            }
            (_, _) => false,
        };
        if !is_condition {
            let message = "a condition is an expression";
            let text = self.source.slice(tree.span).trim_matches(['"', '\'']).to_owned();
            self.error("condition", tree.span, message, format!("write \"${{{text}}}\""));
        }
        template
    }

    fn text_template(&mut self, text: &str, span: Span) -> Template {
        let found = match pieces(text) {
            Ok(found) => found,
            Err(_) => {
                let message = "a `${` is not closed";
                self.error(
                    "open_expression",
                    span,
                    message,
                    "close it with `}`, or write `$${` for the characters themselves",
                );
                return Template::null();
            }
        };
        if let [Piece::Hole(inside, _)] = found[..] {
            return self.hole(inside, span).map_or_else(Template::null, Template::Hole);
        }
        let mut parts = Vec::new();
        for piece in found {
            match piece {
                Piece::Text(text) => parts.push(Part::Text(text)),
                Piece::Hole(inside, _) => parts.extend(self.hole(inside, span).map(Part::Hole)),
            }
        }
        match &parts[..] {
            [Part::Text(text)] => Template::Plain(Arc::new(text.as_str().into())),
            _ => Template::Text(parts),
        }
    }

    fn hole(&mut self, inside: &str, span: Span) -> Option<Hole> {
        let known: Vec<Arc<str>> = self.names.list.iter().map(|(name, _)| Arc::clone(name)).collect();
        let mut names: Vec<&str> = known.iter().map(|name| &**name).collect();
        let hidden: Vec<Arc<str>> = self.ids.keys().filter(|id| !names.contains(&&***id)).cloned().collect();
        // Nodes that cannot be seen have a message of their own.
        names.extend(hidden.iter().map(|id| &**id));
        names.sort_unstable();
        names.dedup();
        match Expression::compile(inside, &names) {
            Ok(expression) => {
                for reference in expression.references() {
                    self.reference(reference, inside, span);
                }
                Some(Hole { expression, text: inside.into() })
            }
            Err(problems) => {
                for problem in problems {
                    let span = self.place(inside, span, problem.span);
                    let help = match problem.help.clone() {
                        Some(help) if help.starts_with("known are") => format!("known are: {}", join(&known)),
                        // An expression has no line before it.
                        Some(help) if !help.contains("the line before") => help,
                        Some(_) | None => "write one expression, as in a script: \"${order.total > 100}\"".to_owned(),
                    };
                    self.problem(Diagnostic { span, help: Some(help), ..problem });
                }
                None
            }
        }
    }

    fn reference(&mut self, reference: &Reference, inside: &str, span: Span) {
        let Some(shape) = self.names.get(&reference.name).cloned() else {
            let at = self.place(inside, span, reference.span);
            self.not_yet(&reference.name, at);
            return;
        };
        let mut shape = &shape;
        for (field, at) in &reference.fields {
            let Shape::Fields(fields) = shape else { return };
            match fields.get(field) {
                Some(inner) => shape = inner,
                None => {
                    let at = self.place(inside, span, *at);
                    if &*reference.name == ERRORS && self.hidden_error(field, at) {
                        return;
                    }
                    let known: Vec<&str> = fields.keys().map(|name| &**name).collect();
                    let help = match nearest(field, known.iter().copied()) {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None if known.is_empty() => "it has no fields".to_owned(),
                        None => format!("its fields are: {}", known.join(", ")),
                    };
                    let message = format!("`{}` has no field `{field}`", reference.name);
                    self.error("unknown_reference", at, message, help);
                    return;
                }
            }
        }
    }

    /// The error of a node that exists, where it cannot be seen; whether there is one.
    fn hidden_error(&mut self, name: &str, at: Span) -> bool {
        let Some(container) = self.ids.get(name).and_then(|id| id.inside.clone()) else { return false };
        let message = format!("`{name}` stands inside `{container}`: how it failed cannot be seen from here");
        let help = format!("read `errors.{container}`, or look at it in the same body as `{name}`");
        self.error("unknown_reference", at, message, help);
        true
    }

    /// A node that exists and has no output where it is asked for.
    fn not_yet(&mut self, name: &str, at: Span) {
        let inside = self.ids.get(name).and_then(|id| id.inside.clone());
        let (message, help) = match inside {
            Some(container) => (
                format!("`{name}` stands inside `{container}` and cannot be seen from here"),
                format!("read it from the output of `{container}`"),
            ),
            None => (
                format!("`{name}` has no output yet when this is evaluated"),
                format!("let `{name}` run first: move it before this node, or add an edge from it"),
            ),
        };
        self.error("no_output_yet", at, message, help);
    }

    /// Where a part of an expression stands in the file: exactly, or else at the text it stands in.
    fn place(&self, inside: &str, scalar: Span, part: Span) -> Span {
        let raw = self.source.slice(scalar);
        let hole = format!("${{{inside}}}");
        match raw.find(&hole) {
            Some(at) => {
                let base = scalar.start + u32::try_from(at + 2).unwrap_or_default();
                Span::new(base + part.start, (base + part.end).max(base + part.start + 1))
            }
            None => scalar,
        }
    }
}

fn join(names: &[Arc<str>]) -> String {
    let mut names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn plain_or(tree: &Tree, parts: &[Template], otherwise: Template) -> Template {
    let plain = parts.iter().all(|part| matches!(part, Template::Plain(_)));
    // A text may stand for another one: `$${`.
    if plain && !crate::tree::has_escapes(tree) { Template::Plain(Arc::new(tree.json())) } else { otherwise }
}
