//! YAML, and JSON as a part of it, as a tree that knows where everything stands.

use granit_parser::{Event, Options, Parser, ScalarStyle};
use outlast_script::{Diagnostic, Span};
use serde_json::{Number, Value as Json};

use crate::limits::NESTING_MAX;

/// Levels of mappings and lists. A container has at most four: its mapping, its cases, a case, a body.
const DEPTH_MAX: usize = 4 * NESTING_MAX + 88;

/// A value, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<Field>),
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) value: Tree,
}

impl Tree {
    /// Reads a text.
    pub(crate) fn parse(text: &str) -> Result<Tree, Diagnostic> {
        let mut options = Options::default();
        (options.flow_nesting_limit, options.block_nesting_limit) = (DEPTH_MAX, DEPTH_MAX);
        let mut builder = Builder::default();
        for event in Parser::new_from_str_with_options(text, options) {
            match event {
                Ok((event, span)) => builder.take(event, span_of(&span))?,
                Err(error) => {
                    let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
                    let span = Span::new(number(at), number(next_char(text, at)));
                    let problem = Diagnostic::error("yaml", span, format!("this is not YAML: {}", error.info()));
                    return Err(problem.help("check the indentation and the brackets around this place"));
                }
            }
        }
        Ok(builder.root.unwrap_or(Tree { span: Span::new(0, 0), kind: Kind::Null }))
    }

    /// What it is, in a message.
    pub(crate) fn described(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> Json {
        match &self.kind {
            Kind::Null => Json::Null,
            Kind::Bool(value) => Json::Bool(*value),
            Kind::Number(number) => Json::Number(number.clone()),
            Kind::Text(text) => Json::String(text.clone()),
            Kind::List(items) => Json::Array(items.iter().map(Tree::json).collect()),
            Kind::Map(fields) => {
                Json::Object(fields.iter().map(|field| (field.name.clone(), field.value.json())).collect())
            }
        }
    }
}

fn next_char(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(at, |letter| at + letter.len_utf8())
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn span_of(span: &granit_parser::Span) -> Span {
    let at = |marker: &granit_parser::Marker| number(marker.byte_offset().unwrap_or_default());
    let (start, end) = (at(&span.start), at(&span.end));
    Span::new(start, end.max(start.saturating_add(1)))
}

/// Puts events together. It does not recurse: how deep a file nests is its author's choice.
#[derive(Default)]
struct Builder {
    root: Option<Tree>,
    /// The innermost last.
    open: Vec<(Span, Opened)>,
    documents: usize,
}

enum Opened {
    List(Vec<Tree>),
    /// With the name whose value comes next.
    Map(Vec<Field>, Option<(String, Span)>),
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        match event {
            Event::Scalar(text, style, ..) => {
                let kind = if style == ScalarStyle::Plain { plain(&text) } else { Kind::Text(text.into_owned()) };
                self.put(Tree { span, kind })
            }
            Event::SequenceStart(..) => self.begin(span, Opened::List(Vec::new())),
            Event::MappingStart(..) => self.begin(span, Opened::Map(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((span, Opened::List(items))) => self.put(Tree { span, kind: Kind::List(items) }),
                Some((span, Opened::Map(fields, _))) => self.put(Tree { span, kind: Kind::Map(fields) }),
                None => Ok(()),
            },
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let problem =
                        Diagnostic::error("yaml", span, "a file holds one flow, and here another document begins");
                    return Err(problem.help("move it into a file of its own"));
                }
                Ok(())
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                let problem = Diagnostic::error("yaml", span, "aliases are not supported");
                Err(problem.help("write it out; `defaults` saves repeating options"))
            }
            // The parser's own enum may grow: what it says beside is not part of the value.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, span: Span, opened: Opened) -> Result<(), Diagnostic> {
        if let Some((_, Opened::Map(_, None))) = self.open.last() {
            let problem = Diagnostic::error("yaml", span, "a name is a text, and not a mapping or a list");
            return Err(problem.help("put texts with `{` or `[` in quotes"));
        }
        // Only the beginning is underlined: the whole would be half of the file.
        self.open.push((span, opened));
        Ok(())
    }

    fn put(&mut self, tree: Tree) -> Result<(), Diagnostic> {
        match self.open.last_mut() {
            None => self.root = Some(tree),
            Some((_, Opened::List(items))) => items.push(tree),
            Some((_, Opened::Map(fields, name))) => match name.take() {
                Some((name, span)) => fields.push(Field { name, span, value: tree }),
                None => {
                    let text = match tree.kind {
                        Kind::Text(text) => text,
                        Kind::Number(number) => number.to_string(),
                        Kind::Bool(value) => value.to_string(),
                        Kind::Null | Kind::List(_) | Kind::Map(_) => "null".to_owned(),
                    };
                    if fields.iter().any(|field| field.name == text) {
                        let problem =
                            Diagnostic::error("duplicate_field", tree.span, format!("`{text}` stands here twice"));
                        return Err(problem.help("remove one of the two"));
                    }
                    *name = Some((text, tree.span));
                }
            },
        }
        Ok(())
    }
}

/// What a text without quotes stands for: what it would be in JSON, or else itself. So `no`, `on` and `y` are texts.
fn plain(text: &str) -> Kind {
    match text {
        "" | "~" | "null" => Kind::Null,
        "true" => Kind::Bool(true),
        "false" => Kind::Bool(false),
        other => match serde_json::from_str::<Number>(other) {
            Ok(number) => Kind::Number(number),
            Err(_) => Kind::Text(other.to_owned()),
        },
    }
}

/// Whether any text in it has a `$${`, which stands for something else.
pub(crate) fn has_escapes(tree: &Tree) -> bool {
    match &tree.kind {
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => false,
        Kind::Text(text) => text.contains("$${"),
        Kind::List(items) => items.iter().any(has_escapes),
        Kind::Map(fields) => fields.iter().any(|field| has_escapes(&field.value)),
    }
}
