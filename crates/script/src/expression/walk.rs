//! What an expression uses, and what it must not.

use std::sync::Arc;

use serde_json::{Number, Value as Json};

use super::Reference;
use super::direct::{Comparison, Direct, Side};
use crate::check::{Checked, Meaning};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{
    Call, Element, Expr, ExprKind, Function, FunctionId, Name, Pattern, PatternItem, PatternKind, Property,
};

/// Parts of the language that wait, ask the world, or tell it something.
const WORLDLY: &[&str] = &[
    "Task",
    "Timer",
    "Workflow",
    "Signal",
    "Approval",
    "Callback",
    "Time",
    "Id",
    "State",
    "console",
    "Context",
    "Promise",
    "Inputs",
    "log",
    "wait_for_signal",
];

#[derive(Default)]
pub(super) struct Walked {
    pub(super) references: Vec<Reference>,
    pub(super) problems: Vec<Diagnostic>,
    /// What it is, where that needs no machine.
    pub(super) direct: Option<Direct>,
}

pub(super) fn walk(value: &Expr, checked: &Checked, file: FunctionId) -> Walked {
    let mut walker = Walker { checked, file, walked: Walked::default() };
    walker.walked.direct = walker.direct(value.bare());
    walker.expr(value);
    walker.walked
}

struct Walker<'c> {
    checked: &'c Checked,
    file: FunctionId,
    walked: Walked,
}

impl Walker<'_> {
    fn direct(&self, expr: &Expr) -> Option<Direct> {
        if let ExprKind::Binary { op, left, right } = &expr.kind {
            let (left, right) = (self.side(left.bare())?, self.side(right.bare())?);
            return Some(Direct::Compared { left, by: Comparison::of(*op)?, right });
        }
        self.plain_path(expr).map(Direct::Path)
    }

    fn side(&self, expr: &Expr) -> Option<Side> {
        match &expr.kind {
            ExprKind::Null => Some(Side::Constant(Json::Null)),
            ExprKind::Bool(value) => Some(Side::Constant(Json::Bool(*value))),
            ExprKind::Number(value) => Number::from_f64(*value).map(|value| Side::Constant(Json::Number(value))),
            ExprKind::Text(text) => Some(Side::Constant(Json::String(text.to_string()))),
            _ => self.plain_path(expr).map(Side::Path),
        }
    }

    /// A free name, and fields.
    fn plain_path(&self, expr: &Expr) -> Option<Reference> {
        match &expr.kind {
            ExprKind::Name(name) if self.is_free(name) => {
                Some(Reference { name: Arc::clone(&name.text), span: name.span, fields: Vec::new() })
            }
            ExprKind::Member { object, name, name_span, optional: false } => {
                let mut path = self.plain_path(object)?;
                path.fields.push((Arc::clone(name), *name_span));
                Some(path)
            }
            _ => None,
        }
    }

    /// Whether the name comes from outside of the expression.
    fn is_free(&self, name: &Name) -> bool {
        match self.checked.meaning(name.id) {
            Meaning::Variable(id) => self.checked.variable(id).function == self.file,
            Meaning::Nothing | Meaning::Namespace | Meaning::Builtin(_) => false,
        }
    }

    fn refuse(&mut self, span: Span, what: &str) {
        let message = format!("{what} cannot be used in an expression");
        let help = "an expression only computes; what waits, asks or changes something is a node of its own";
        self.walked.problems.push(Diagnostic::error("not_in_expressions", span, message).help(help));
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Null | ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Text(_) => {}
            ExprKind::Template { holes, .. } => holes.iter().for_each(|hole| self.expr(hole)),
            ExprKind::Name(_) | ExprKind::Member { .. } => self.path(expr),
            ExprKind::List(elements) => self.elements(elements),
            ExprKind::Object(properties) => properties.iter().for_each(|property| self.property(property)),
            ExprKind::Function(function) => self.function(function, expr.span),
            ExprKind::Unary { operand, .. } => self.expr(operand),
            ExprKind::Binary { left, right, .. } | ExprKind::Logical { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Conditional { test, then, otherwise } => {
                self.expr(test);
                self.expr(then);
                self.expr(otherwise);
            }
            ExprKind::Assign { .. } | ExprKind::Update { .. } => self.refuse(expr.span, "an assignment"),
            ExprKind::Delete(_) => self.refuse(expr.span, "delete"),
            ExprKind::Await(_) => self.refuse(expr.span, "await"),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Index { object, index, .. } => {
                self.expr(object);
                self.expr(index);
            }
            ExprKind::Chain(inner) | ExprKind::Group(inner) => self.expr(inner),
        }
    }

    fn call(&mut self, call: &Call) {
        // The last field is the method: it is not read from the value.
        match &call.callee.bare().kind {
            ExprKind::Member { object, name, name_span, .. } => {
                self.expr(object);
                self.member_of_language(object, name, *name_span);
            }
            _ => self.expr(&call.callee),
        }
        self.elements(&call.args);
    }

    fn member_of_language(&mut self, object: &Expr, name: &str, span: Span) {
        if let ExprKind::Name(root) = &object.bare().kind
            && self.checked.meaning(root.id) == Meaning::Namespace
            && (&*root.text, name) == ("Math", "random")
        {
            self.refuse(span, "`Math.random`");
        }
    }

    fn elements(&mut self, elements: &[Element]) {
        elements.iter().for_each(|element| self.expr(&element.value));
    }

    fn property(&mut self, property: &Property) {
        match property {
            Property::Named { value, .. } | Property::Spread(value) => self.expr(value),
            Property::Computed { key, value } => {
                self.expr(key);
                self.expr(value);
            }
            Property::Shorthand { name, default } => {
                self.name(name, Vec::new());
                default.iter().for_each(|default| self.expr(default));
            }
        }
    }

    fn function(&mut self, function: &Function, span: Span) {
        if function.says_async || function.is_async {
            self.refuse(span, "an async function");
        }
        let Some(value) = &function.value else {
            self.refuse(span, "a function with statements");
            return;
        };
        function.params.iter().for_each(|param| self.param(param));
        if let Some(rest) = &function.rest {
            self.pattern(rest);
        }
        self.expr(value);
    }

    fn param(&mut self, item: &PatternItem) {
        item.default.iter().for_each(|default| self.expr(default));
        self.pattern(&item.pattern);
    }

    fn pattern(&mut self, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Name(_) | PatternKind::Place(_) => {}
            PatternKind::List { items, rest } => {
                items.iter().flatten().for_each(|item| self.param(item));
                rest.iter().for_each(|rest| self.pattern(rest));
            }
            PatternKind::Object { properties, rest } => {
                properties.iter().for_each(|property| self.param(&property.item));
                rest.iter().for_each(|rest| self.pattern(rest));
            }
        }
    }

    /// A name and the fields that are read from it, or fields of something else.
    fn path(&mut self, expr: &Expr) {
        let mut fields = Vec::new();
        let mut inner = expr;
        while let ExprKind::Member { object, name, name_span, optional } = &inner.kind {
            if *optional {
                // What is behind may be missing.
                fields.clear();
            } else {
                fields.push((Arc::clone(name), *name_span));
            }
            self.member_of_language(object, name, *name_span);
            inner = object;
        }
        fields.reverse();
        match &inner.kind {
            ExprKind::Name(name) => self.name(name, fields),
            _ => self.expr(inner),
        }
    }

    fn name(&mut self, name: &Name, fields: Vec<(Arc<str>, Span)>) {
        if self.is_free(name) {
            self.walked.references.push(Reference { name: Arc::clone(&name.text), span: name.span, fields });
        } else if !matches!(self.checked.meaning(name.id), Meaning::Variable(_)) && WORLDLY.contains(&&*name.text) {
            self.refuse(name.span, &format!("`{}`", name.text));
        }
    }
}
