//! Functions and patterns.

use super::Formatter;
use super::doc::{Doc, concat, text};
use crate::syntax::ast::{Function, FunctionKind, Pattern, PatternItem, PatternKind, PatternProperty};

impl Formatter<'_> {
    pub(super) fn function(&mut self, function: &Function) -> Doc {
        let mut parts = Vec::new();
        if function.says_async {
            parts.push(text("async "));
        }
        match function.kind {
            FunctionKind::Workflow => parts.push(text("workflow ")),
            FunctionKind::Function => parts.push(text("function ")),
            FunctionKind::Arrow | FunctionKind::File => {}
        }
        if let Some(name) = &function.name {
            parts.push(text(name.text.to_string()));
        }
        parts.push(self.params(function));
        if function.kind == FunctionKind::Arrow {
            parts.push(text(" =>"));
        }
        parts.push(text(" "));
        parts.push(match &function.value {
            Some(value) => self.expr(value),
            None => self.block(&function.body),
        });
        concat(parts)
    }

    /// `name(a, b) { … }` of an object, from its parameters on.
    pub(super) fn method(&mut self, function: &Function) -> Doc {
        let params = self.params(function);
        concat([params, text(" "), self.block(&function.body)])
    }

    fn params(&mut self, function: &Function) -> Doc {
        if let (FunctionKind::Arrow, [param], None) = (function.kind, function.params.as_slice(), &function.rest)
            && let (PatternKind::Name(name), None) = (&param.pattern.kind, &param.default)
        {
            return text(name.text.to_string());
        }
        let mut list: Vec<Doc> = function.params.iter().map(|param| self.item(param)).collect();
        if let Some(rest) = &function.rest {
            list.push(concat([text("..."), self.pattern(rest)]));
        }
        bracketed("(", list, ")", false, function.rest.is_none())
    }

    fn item(&mut self, item: &PatternItem) -> Doc {
        let pattern = self.pattern(&item.pattern);
        match &item.default {
            Some(default) => concat([pattern, text(" = "), self.expr(default)]),
            None => pattern,
        }
    }

    pub(super) fn pattern(&mut self, pattern: &Pattern) -> Doc {
        match &pattern.kind {
            PatternKind::Name(name) => text(name.text.to_string()),
            PatternKind::Place(place) => self.expr(place),
            PatternKind::List { items, rest } => {
                let mut list: Vec<Doc> =
                    items.iter().map(|item| item.as_ref().map_or_else(Doc::empty, |item| self.item(item))).collect();
                // A gap at the end needs its comma.
                let gap = items.last().is_some_and(Option::is_none) && rest.is_none();
                if let Some(rest) = rest {
                    list.push(concat([text("..."), self.pattern(rest)]));
                }
                if gap {
                    list.push(Doc::empty());
                }
                bracketed("[", list, "]", false, false)
            }
            PatternKind::Object { properties, rest } => {
                let mut list: Vec<Doc> = properties.iter().map(|property| self.pattern_property(property)).collect();
                if let Some(rest) = rest {
                    list.push(concat([text("..."), self.pattern(rest)]));
                }
                bracketed("{", list, "}", true, rest.is_none())
            }
        }
    }

    fn pattern_property(&mut self, property: &PatternProperty) -> Doc {
        let item = self.item(&property.item);
        if property.shorthand { item } else { concat([text(key(&property.key)), text(": "), item]) }
    }
}

/// A list between brackets, on one line if it fits.
pub(super) fn bracketed(open: &str, list: Vec<Doc>, close: &str, spaced: bool, comma: bool) -> Doc {
    if list.is_empty() {
        return text(format!("{open}{close}"));
    }
    let edge = || if spaced { Doc::Line } else { Doc::Soft };
    let mut inner = vec![edge()];
    for (place, item) in list.into_iter().enumerate() {
        if place > 0 {
            inner.push(text(","));
            inner.push(Doc::Line);
        }
        inner.push(item);
    }
    if comma {
        inner.push(Doc::IfBroken(","));
    }
    concat([text(open), concat(inner).indent(), edge(), text(close)]).group()
}

/// A property's name, with quotes where it needs them.
pub(super) fn key(name: &str) -> String {
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_' || first == '$')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$');
    let is_number =
        !name.is_empty() && name.len() < 10 && name.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('0');
    // Writing a text as JSON does not fail.
    if is_name || is_number { name.to_owned() } else { serde_json::to_string(name).unwrap_or_default() }
}
