//! Reading mappings, field by field.

use outlast_core::id::InvalidId;
use outlast_script::Span;

use super::{Loader, meant};
use crate::tree::{Field, Kind, Tree};

/// The fields of a mapping that were not taken yet.
pub(super) struct Fields<'t> {
    pub(super) span: Span,
    left: Vec<&'t Field>,
}

impl<'t> Fields<'t> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.iter().any(|field| field.name == name)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<&'t Tree> {
        let place = self.left.iter().position(|field| field.name == name)?;
        Some(&self.left.remove(place).value)
    }
}

impl Loader {
    pub(super) fn fields<'t>(&mut self, tree: &'t Tree, what: &str) -> Option<Fields<'t>> {
        match &tree.kind {
            Kind::Map(fields) => Some(Fields { span: tree.span, left: fields.iter().collect() }),
            _ => {
                self.wrong(tree, &format!("{what}, which is a mapping"));
                None
            }
        }
    }

    pub(super) fn required<'t>(&mut self, fields: &mut Fields<'t>, name: &str, whose: &str) -> Option<&'t Tree> {
        let found = fields.take(name);
        if found.is_none() {
            let message = format!("{whose} needs `{name}`");
            self.error("missing_field", fields.span, message, format!("add `{name}: …`"));
        }
        found
    }

    /// Nothing may be left.
    pub(super) fn finish(&mut self, fields: Fields<'_>, known: &[&str]) {
        for field in fields.left {
            let message = format!("`{}` is not known here", field.name);
            self.error("unknown_field", field.span, message, meant(&field.name, known));
        }
    }

    pub(super) fn wrong(&mut self, tree: &Tree, expected: &str) {
        let found = match &tree.kind {
            Kind::Null | Kind::List(_) | Kind::Map(_) => tree.described().to_owned(),
            Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => format!("`{}`", self.source.slice(tree.span)),
        };
        let message = format!("expected {expected}, found {found}");
        let help = match &tree.kind {
            Kind::Null => "write a value, or remove the line",
            _ => "see docs/flow.md for what is written here",
        };
        self.error("wrong_type", tree.span, message, help);
    }

    pub(super) fn text(&mut self, tree: &Tree) -> Option<String> {
        match &tree.kind {
            Kind::Text(text) => Some(text.clone()),
            Kind::Number(number) => Some(number.to_string()),
            Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Map(_) => {
                self.wrong(tree, "a text");
                None
            }
        }
    }

    pub(super) fn bool(&mut self, tree: &Tree) -> Option<bool> {
        match &tree.kind {
            Kind::Bool(value) => Some(*value),
            _ => {
                self.wrong(tree, "true or false");
                None
            }
        }
    }

    pub(super) fn number(&mut self, tree: &Tree, least: u32, most: u32) -> Option<u32> {
        let number = match &tree.kind {
            Kind::Number(number) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            _ => None,
        };
        let found = number.filter(|number| (least..=most).contains(number));
        if found.is_none() {
            self.wrong(tree, &format!("a whole number from {least} to {most}"));
        }
        found
    }

    pub(super) fn list<'t>(&mut self, tree: &'t Tree) -> Option<&'t [Tree]> {
        match &tree.kind {
            Kind::List(items) => Some(items),
            _ => {
                self.wrong(tree, "a list");
                None
            }
        }
    }

    /// A text that names something.
    pub(super) fn id<T>(&mut self, tree: &Tree, make: impl FnOnce(String) -> Result<T, InvalidId>) -> Option<T> {
        let text = self.text(tree)?;
        if text.contains("${") {
            self.error("fixed_name", tree.span, "a name cannot be computed", "write it out; use a switch to choose");
            return None;
        }
        match make(text) {
            Ok(id) => Some(id),
            Err(error) => {
                self.error("invalid_name", tree.span, error.to_string(), "choose another name");
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, tree: &Tree, words: &[(&str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let Kind::Text(text) = &tree.kind else {
            self.wrong(tree, &format!("one of {}", known.join(", ")));
            return None;
        };
        let found = words.iter().find(|(word, _)| word == text).map(|(_, value)| *value);
        if found.is_none() {
            self.error("unknown_word", tree.span, format!("`{text}` is not known here"), meant(text, &known));
        }
        found
    }
}
