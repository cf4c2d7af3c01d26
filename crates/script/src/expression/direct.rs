//! Expressions that need no machine: a path, and two paths or constants that are compared. Most are one of them.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Reference;
use crate::syntax::ast::BinaryOp;

/// Longer texts are left to the machine, which has limits for them.
const TEXT_BYTES_MAX: usize = 1024;

/// What such an expression is.
#[derive(Clone, Debug)]
pub(super) enum Direct {
    Path(Reference),
    Compared { left: Side, by: Comparison, right: Side },
}

/// One of two that are compared.
#[derive(Clone, Debug)]
pub(super) enum Side {
    Path(Reference),
    Constant(Json),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Same,
    NotSame,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
}

impl Comparison {
    pub(super) fn of(op: BinaryOp) -> Option<Comparison> {
        match op {
            BinaryOp::Same => Some(Comparison::Same),
            BinaryOp::NotSame => Some(Comparison::NotSame),
            BinaryOp::Less => Some(Comparison::Less),
            BinaryOp::LessEquals => Some(Comparison::LessEquals),
            BinaryOp::Greater => Some(Comparison::Greater),
            BinaryOp::GreaterEquals => Some(Comparison::GreaterEquals),
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder => None,
            BinaryOp::Power | BinaryOp::In | BinaryOp::Instanceof => None,
        }
    }

    fn holds(self, left: Plain<'_>, right: Plain<'_>) -> Option<bool> {
        let order = match (left, right) {
            (Plain::Number(left), Plain::Number(right)) => left.partial_cmp(&right),
            (Plain::Text(left), Plain::Text(right)) => Some(left.cmp(right)),
            (_, _) => return self.is_same().map(|same| (left == right) == same),
        };
        Some(match self {
            Comparison::Same => order == Some(Ordering::Equal),
            Comparison::NotSame => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessEquals => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterEquals => order.is_some_and(Ordering::is_ge),
        })
    }

    /// Whether it asks for the same or for another value; none if it asks for an order.
    fn is_same(self) -> Option<bool> {
        match self {
            Comparison::Same => Some(true),
            Comparison::NotSame => Some(false),
            Comparison::Less | Comparison::LessEquals | Comparison::Greater | Comparison::GreaterEquals => None,
        }
    }
}

/// A value that can be compared by itself.
#[derive(Clone, Copy, PartialEq)]
enum Plain<'v> {
    Null,
    Bool(bool),
    Number(f64),
    Text(&'v str),
}

fn plain(value: &Json) -> Option<Plain<'_>> {
    match value {
        Json::Null => Some(Plain::Null),
        Json::Bool(value) => Some(Plain::Bool(*value)),
        Json::Number(number) => number.as_f64().map(Plain::Number),
        Json::String(text) => (text.len() <= TEXT_BYTES_MAX).then_some(Plain::Text(text)),
        Json::Array(_) | Json::Object(_) => None,
    }
}

impl Direct {
    /// Its value; none where only the machine knows what to say, as of a path that leads nowhere.
    pub(super) fn value(&self, scope: &impl Fn(&str) -> Option<Arc<Json>>) -> Option<Json> {
        match self {
            Direct::Path(path) => at(path, &*scope(&path.name)?).cloned(),
            Direct::Compared { left, by, right } => {
                let (left_root, right_root) = (left.root(scope)?, right.root(scope)?);
                let (left, right) = (plain(left.at(&left_root)?)?, plain(right.at(&right_root)?)?);
                by.holds(left, right).map(Json::Bool)
            }
        }
    }
}

impl Side {
    /// What its path begins at.
    fn root(&self, scope: &impl Fn(&str) -> Option<Arc<Json>>) -> Option<Option<Arc<Json>>> {
        match self {
            Side::Path(path) => scope(&path.name).map(Some),
            Side::Constant(_) => Some(None),
        }
    }

    fn at<'v>(&'v self, root: &'v Option<Arc<Json>>) -> Option<&'v Json> {
        match self {
            Side::Path(path) => at(path, root.as_ref()?),
            Side::Constant(value) => Some(value),
        }
    }
}

fn at<'v>(path: &Reference, root: &'v Json) -> Option<&'v Json> {
    path.fields.iter().try_fold(root, |value, (field, _)| value.as_object()?.get(&**field))
}

#[cfg(test)]
mod tests {
    use super::super::{EXPRESSION_LIMITS, Expression};
    use super::*;
    use serde_json::json;

    /// Whoever computes it, the value is the same, and so is what is wrong with it.
    #[test]
    fn a_direct_value_is_the_one_that_the_machine_comes_to() {
        let input = Arc::new(json!({
            "one": 1, "same": 1.0, "less": -2.5, "large": 9_007_199_254_740_993_u64, "near": 9_007_199_254_740_992_u64,
            "text": "b", "empty": "", "other": "ä", "number": "1", "yes": true, "no": false, "none": null,
            "list": [1], "object": { "a": 1 }, "long": "x".repeat(TEXT_BYTES_MAX + 1), "zero": 0, "minus": -0.0,
        }));
        let sides: Vec<String> = input.as_object().unwrap().keys().map(|name| format!("input.{name}")).collect();
        let constants = ["1", "0", "'b'", "''", "true", "null", "-2.5", "input.missing", "input.one.more", "nobody"];
        let sides: Vec<&str> = sides.iter().map(String::as_str).chain(constants).collect();
        let scope = |name: &str| (name == "input").then(|| Arc::clone(&input));
        let mut direct = 0;
        for left in &sides {
            for right in &sides {
                for by in ["==", "!=", "===", "!==", "<", "<=", ">", ">="] {
                    let text = format!("({left}) {by} {right}");
                    let expression = Expression::compile(&text, &["input", "nobody"])
                        .unwrap_or_else(|found| panic!("{text}: {found:?}"));
                    let computed = expression.compute(&scope, EXPRESSION_LIMITS, |needs| needs);
                    if let Some(value) = expression.direct.as_ref().and_then(|it| it.value(&scope)) {
                        assert_eq!(Ok(value), computed, "{text}");
                        direct += 1;
                    }
                    assert_eq!(expression.evaluate(scope, EXPRESSION_LIMITS), computed, "{text}");
                }
            }
        }
        assert!(direct > 1_000, "{direct}");
    }
}
