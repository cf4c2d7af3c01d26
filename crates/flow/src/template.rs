//! Values with `${…}` in them.

use std::sync::Arc;

use outlast_core::failure::Failure;
use outlast_script::{Expression, Limits};
use serde_json::{Number, Value as Json};

/// A value with holes.
#[derive(Clone, Debug)]
pub(crate) enum Template {
    /// Without holes.
    Plain(Arc<Json>),
    /// Exactly one hole: its value.
    Hole(Hole),
    /// A text with holes in it.
    Text(Vec<Part>),
    List(Vec<Template>),
    Map(Vec<(String, Template)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Hole {
    pub(crate) expression: Expression,
    /// As it was written, for messages.
    pub(crate) text: Arc<str>,
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    Hole(Hole),
}

impl Template {
    pub(crate) fn null() -> Template {
        Template::Plain(Arc::new(Json::Null))
    }

    /// Its value, where names mean what `scope` says.
    pub(crate) fn evaluate(
        &self,
        scope: &dyn Fn(&str) -> Option<Arc<Json>>,
        limits: Limits,
    ) -> Result<Arc<Json>, Failure> {
        match self {
            Template::Plain(value) => Ok(Arc::clone(value)),
            Template::Hole(hole) => hole.evaluate(scope, limits).map(Arc::new),
            Template::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        Part::Text(part) => text.push_str(part),
                        Part::Hole(hole) => push_text(&mut text, &hole.evaluate(scope, limits)?),
                    }
                }
                Ok(Arc::new(Json::String(text)))
            }
            Template::List(items) => {
                let items: Result<Vec<Json>, Failure> =
                    items.iter().map(|item| item.evaluate(scope, limits).map(Arc::unwrap_or_clone)).collect();
                Ok(Arc::new(Json::Array(items?)))
            }
            Template::Map(fields) => {
                let fields: Result<serde_json::Map<String, Json>, Failure> = fields
                    .iter()
                    .map(|(name, value)| {
                        let value = value.evaluate(scope, limits)?;
                        Ok((name.clone(), Arc::unwrap_or_clone(value)))
                    })
                    .collect();
                Ok(Arc::new(Json::Object(fields?)))
            }
        }
    }

    /// Its value as a text.
    pub(crate) fn text(&self, scope: &dyn Fn(&str) -> Option<Arc<Json>>, limits: Limits) -> Result<String, Failure> {
        let mut text = String::new();
        push_text(&mut text, &*self.evaluate(scope, limits)?);
        Ok(text)
    }

    /// Whether it holds: null, false, 0 and an empty text do not.
    pub(crate) fn holds(&self, scope: &dyn Fn(&str) -> Option<Arc<Json>>, limits: Limits) -> Result<bool, Failure> {
        Ok(match &*self.evaluate(scope, limits)? {
            Json::Null => false,
            Json::Bool(value) => *value,
            Json::Number(number) => number.as_f64() != Some(0.0),
            Json::String(text) => !text.is_empty(),
            Json::Array(_) | Json::Object(_) => true,
        })
    }
}

impl Hole {
    fn evaluate(&self, scope: &dyn Fn(&str) -> Option<Arc<Json>>, limits: Limits) -> Result<Json, Failure> {
        self.expression.evaluate(scope, limits).map_err(|failure| {
            let message = format!("${{{}}}: {}", self.text, failure.message);
            Failure { message, ..failure }
        })
    }
}

/// A value inside a text: a text as it is, everything else as JSON, with numbers as scripts write them.
fn push_text(text: &mut String, value: &Json) {
    match value {
        Json::String(value) => text.push_str(value),
        other => push_json(text, other),
    }
}

fn push_json(text: &mut String, value: &Json) {
    match value {
        Json::Null | Json::Bool(_) | Json::String(_) => text.push_str(&value.to_string()),
        Json::Number(number) => text.push_str(&number_text(number)),
        Json::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                push_json(text, item);
            }
            text.push(']');
        }
        Json::Object(fields) => {
            text.push('{');
            for (place, (name, value)) in fields.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                push_json(text, &Json::String(name.clone()));
                text.push(':');
                push_json(text, value);
            }
            text.push('}');
        }
    }
}

/// As JavaScript writes it: `100`, `0.1`, `1e+21`. Whole numbers that JSON has as such keep all their digits.
fn number_text(number: &Number) -> String {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    if value == 0.0 {
        return "0".to_owned();
    }
    if (1e-6..1e21).contains(&value.abs()) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

/// A stretch of a text: as it stands, or what stands in a hole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Text(String),
    /// What stands in it, and from which byte on.
    Hole(&'t str, usize),
}

/// Takes a text apart; fails with the place of a hole that is not closed. `$${` stands for `${`.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, usize> {
    let mut found = Vec::new();
    let mut plain = String::new();
    let mut at = 0;
    while let Some(next) = text[at..].find("${").map(|next| at + next) {
        if text[..next].ends_with('$') {
            plain.push_str(&text[at..next]);
            plain.push('{');
            at = next + 2;
            continue;
        }
        plain.push_str(&text[at..next]);
        let end = close(text, next + 2).ok_or(next)?;
        if !plain.is_empty() {
            found.push(Piece::Text(std::mem::take(&mut plain)));
        }
        found.push(Piece::Hole(&text[next + 2..end], next + 2));
        at = end + 1;
    }
    plain.push_str(&text[at..]);
    if !plain.is_empty() || found.is_empty() {
        found.push(Piece::Text(plain));
    }
    Ok(found)
}

/// Where the brace stands that closes a hole, which begins at `start`: braces nest, and texts may hold any.
fn close(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    // What is open: a brace, or a text with its quote.
    let mut open = vec![b'{'];
    let mut at = start;
    while at < bytes.len() {
        let (byte, inside) = (bytes[at], open.last().copied()?);
        match (inside, byte) {
            (b'{', b'{') => open.push(b'{'),
            (b'{', b'}') => {
                open.pop();
                if open.is_empty() {
                    return Some(at);
                }
            }
            (b'{', b'"' | b'\'' | b'`') => open.push(byte),
            (b'"' | b'\'' | b'`', b'\\') => at += 1,
            (b'`', b'$') if bytes.get(at + 1) == Some(&b'{') => {
                open.push(b'{');
                at += 1;
            }
            (quote, byte) if quote == byte => {
                open.pop();
            }
            (_, _) => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_text_are_those_of_a_script() {
        let script = Expression::compile("`${x}`", &["x"]).unwrap();
        let mut numbers =
            vec![0.0, -0.0, 100.0, 2.5, -0.1, 1e-6, 9.9e-7, 1e-7, -1.5e-9, 1e20, 1e21, 1.25e300, 0.1 + 0.2];
        numbers.extend((1..400).map(|n| f64::from(n).powi(n % 40 - 20) * 1.000_7));
        numbers.extend([f64::MAX, f64::MIN_POSITIVE, f64::EPSILON, 9_007_199_254_740_993.0]);
        for value in numbers {
            let json = Arc::new(Json::from(value));
            let mut text = String::new();
            push_text(&mut text, &json);
            let expected = script.evaluate(|_| Some(Arc::clone(&json)), outlast_script::EXPRESSION_LIMITS).unwrap();
            assert_eq!(Json::String(text), expected, "{value:e}");
        }
    }

    #[test]
    fn a_text_is_taken_apart_at_its_holes() {
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(pieces("plain").unwrap(), [text("plain")]);
        assert_eq!(pieces("").unwrap(), [text("")]);
        assert_eq!(pieces("${a}").unwrap(), [Piece::Hole("a", 2)]);
        assert_eq!(pieces("a ${b}c").unwrap(), [text("a "), Piece::Hole("b", 4), text("c")]);
        assert_eq!(pieces("${{a: '}'}.a}!").unwrap(), [Piece::Hole("{a: '}'}.a", 2), text("!")]);
        assert_eq!(pieces("${`x${'}'}`}").unwrap(), [Piece::Hole("`x${'}'}`", 2)]);
        assert_eq!(pieces("costs $${5}").unwrap(), [text("costs ${5}")]);
        assert_eq!(pieces("a ${b"), Err(2));
        assert_eq!(pieces("${'a\\'}'}").unwrap(), [Piece::Hole("'a\\'}'", 2)]);
    }
}
