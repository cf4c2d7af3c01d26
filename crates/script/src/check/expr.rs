//! Expressions.

use super::{Checker, Meaning, Open, OpenFunction, VariableKind};
use std::sync::Arc;

use crate::builtins::{self, Builtin};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::suggest::nearest;
use crate::syntax::ast::{
    AssignOp, Call, Element, Expr, ExprKind, Function, FunctionKind, Name, Pattern, PatternKind, Property, ScopeId,
};

/// Methods that look at what their callback returns at once: a promise is not an answer.
const IMPATIENT: &[&str] = &[
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "some",
    "every",
    "sort",
    "toSorted",
    "forEach",
    "flatMap",
];

impl Checker {
    pub(super) fn with_scope(&mut self, id: ScopeId, part: impl FnOnce(&mut Self)) {
        self.open.push(Open { id, function: self.functions.len() - 1 });
        part(self);
        self.open.pop();
        for variable in &self.checked.scopes[id.0 as usize] {
            let name = &self.checked.variables[variable.0 as usize].name;
            if let Some(bound) = self.bindings.get_mut(name) {
                // Its own are the last: it is the innermost.
                let inside = bound.iter().rposition(|(_, place)| *place < self.open.len());
                bound.truncate(inside.map_or(0, |last| last + 1));
            }
        }
    }

    pub(super) fn function(&mut self, function: &Function) {
        let in_default = std::mem::replace(&mut self.in_default, false);
        self.functions.push(OpenFunction { id: function.id, kind: function.kind, body: self.open.len() + 1 });
        self.with_scope(function.scope, |checker| {
            checker.params(function);
            checker.with_scope(function.body.scope, |checker| {
                checker.statements(&function.body.statements);
                if let Some(value) = &function.value {
                    checker.expr(value);
                }
            });
        });
        self.functions.pop();
        self.in_default = in_default;
    }

    fn params(&mut self, function: &Function) {
        // An anonymous function can call itself by its own name.
        if let (Some(name), FunctionKind::Function) = (&function.name, function.kind)
            && self.checked.meaning(name.id) == Meaning::Nothing
        {
            let id = self.declare_in(self.open.len() - 1, name, VariableKind::Param);
            self.variable_mut(id).ready_at = 0;
            self.set_meaning(name, Meaning::Variable(id));
        }
        for param in &function.params {
            self.declare_pattern(&param.pattern, VariableKind::Param, param.pattern.span.start);
        }
        if let Some(rest) = &function.rest {
            self.declare_pattern(rest, VariableKind::Param, rest.span.start);
        }
        self.in_default = true;
        for param in &function.params {
            self.item_parts(param, false);
        }
        if let Some(rest) = &function.rest {
            self.pattern_parts(rest, false);
        }
        self.in_default = false;
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Null | ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Text(_) => {}
            ExprKind::Template { holes, .. } => holes.iter().for_each(|hole| self.expr(hole)),
            ExprKind::Name(name) => self.value_name(name),
            ExprKind::List(elements) => self.elements(elements),
            ExprKind::Object(properties) => properties.iter().for_each(|property| self.property(property)),
            ExprKind::Function(function) => self.function(function),
            ExprKind::Unary { operand, .. }
            | ExprKind::Delete(operand)
            | ExprKind::Chain(operand)
            | ExprKind::Group(operand) => self.expr(operand),
            ExprKind::Await(operand) => {
                self.check_await(expr.span);
                self.expr(operand);
            }
            ExprKind::Binary { op: crate::syntax::ast::BinaryOp::Instanceof, left, right } => {
                self.expr(left);
                self.instanceof(right);
            }
            ExprKind::Binary { left, right, .. } | ExprKind::Logical { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Conditional { test, then, otherwise } => {
                self.expr(test);
                self.expr(then);
                self.expr(otherwise);
            }
            ExprKind::Assign { op, target, value } => self.assignment(*op, target, value),
            ExprKind::Update { target, .. } => self.target(target, true),
            ExprKind::Call(call) => self.call(call, expr.span),
            ExprKind::Member { object, name, name_span, .. } => self.member(object, name, *name_span),
            ExprKind::Index { object, index, .. } => {
                self.expr(object);
                self.expr(index);
            }
        }
    }

    fn elements(&mut self, elements: &[Element]) {
        elements.iter().for_each(|element| self.expr(&element.value));
    }

    /// A name that stands for a value. A namespace is none.
    fn value_name(&mut self, name: &Name) {
        if self.read(name) != Meaning::Namespace {
            return;
        }
        let message = format!("`{}` is not a value", name.text);
        let members: Vec<String> =
            builtins::members(&name.text).take(4).map(|member| format!("{}.{member}", name.text)).collect();
        let help = format!("use one of its members: {} …", members.join(", "));
        self.problem(Diagnostic::error("namespace_as_value", name.span, message).help(help));
    }

    fn property(&mut self, property: &Property) {
        match property {
            Property::Named { value, .. } | Property::Spread(value) => self.expr(value),
            Property::Computed { key, value } => {
                self.expr(key);
                self.expr(value);
            }
            Property::Shorthand { name, default } => {
                self.value_name(name);
                if let Some(default) = default {
                    let message = "a default value has no meaning in an object";
                    let help =
                        format!("write {{ {0}: {0} ?? … }}, or use it as a pattern: ({{ … }} = value)", name.text);
                    self.problem(Diagnostic::error("default_in_object", default.span, message).help(help));
                }
            }
        }
    }

    /// The order is that of JavaScript: the target's parts first, then the value, then the assignment. Names that an
    /// assignment declares are known only after its value.
    fn assignment(&mut self, op: AssignOp, target: &Pattern, value: &Expr) {
        let is_name = matches!(target.kind, PatternKind::Name(_));
        if is_name {
            self.expr(value);
            self.target(target, op != AssignOp::Plain);
        } else {
            self.target(target, op != AssignOp::Plain);
            self.expr(value);
        }
    }

    fn target(&mut self, target: &Pattern, reads: bool) {
        match &target.kind {
            PatternKind::Name(name) => self.assign(name, reads),
            _ => self.pattern_parts(target, true),
        }
    }

    fn member(&mut self, object: &Expr, member: &str, span: Span) {
        let ExprKind::Name(name) = &object.kind else { return self.expr(object) };
        let meaning = self.read(name);
        let is_builtin =
            matches!(meaning, Meaning::Namespace | Meaning::Builtin(_)) && builtins::has_members(&name.text);
        if is_builtin && builtins::member(&name.text, member).is_none() {
            let message = format!("`{}` has no member `{member}`", name.text);
            let problem = Diagnostic::error("unknown_builtin", span, message);
            let problem = match nearest(member, builtins::members(&name.text)) {
                Some(meant) => problem.help(format!("did you mean `{}.{meant}`?", name.text)),
                None => {
                    let members: Vec<&str> = builtins::members(&name.text).collect();
                    problem.help(format!("it has {}", members.join(", ")))
                }
            };
            self.problem(problem);
        }
    }

    fn call(&mut self, call: &Call, span: Span) {
        if !self.check_new(call) {
            return self.elements(&call.args);
        }
        self.expr(&call.callee);
        self.elements(&call.args);
        let has_spread = call.args.iter().any(|arg| arg.spread);
        let callee = call.callee.bare();
        match &callee.kind {
            ExprKind::Name(name) => match self.checked.meaning(name.id) {
                Meaning::Variable(id) if !has_spread => self.calls.push((id, call.args.len(), span)),
                Meaning::Builtin(Builtin::Native(native)) if !has_spread => {
                    self.builtin_arity(native, call.args.len(), span);
                }
                Meaning::Variable(_) | Meaning::Builtin(_) | Meaning::Nothing | Meaning::Namespace => {}
            },
            ExprKind::Member { object, name, .. } => {
                if let ExprKind::Name(namespace) = &object.kind
                    && matches!(self.checked.meaning(namespace.id), Meaning::Namespace | Meaning::Builtin(_))
                    && builtins::has_members(&namespace.text)
                {
                    if let Some(Builtin::Native(native)) = builtins::member(&namespace.text, name)
                        && !has_spread
                    {
                        self.builtin_arity(native, call.args.len(), span);
                        self.checked.children.extend(child_of(&namespace.text, name, &call.args));
                    }
                } else {
                    self.impatient_method(name, &call.args);
                }
            }
            _ => {}
        }
    }

    fn builtin_arity(&mut self, native: u16, given: usize, span: Span) {
        let native = builtins::native(native);
        let (least, most) = (usize::from(native.least), native.most.map(usize::from));
        if given >= least && most.is_none_or(|most| given <= most) {
            return;
        }
        let takes = match most {
            Some(most) if most == least => super::arguments(most),
            Some(most) => format!("{least} to {most} arguments"),
            None => format!("at least {}", super::arguments(least)),
        };
        let message = format!("`{}` takes {takes}, and gets {given}", native.name);
        self.problem(Diagnostic::error("arity", span, message).help(format!("write {}", native.usage())));
    }

    /// Whether it is no `new`, or one of an error: there are no classes.
    fn check_new(&mut self, call: &Call) -> bool {
        let ExprKind::Name(name) = &call.callee.kind else { return true };
        if !call.is_new || builtins::is_error_name(&name.text) {
            return true;
        }
        let message = format!("`new {}` is not known", name.text);
        let help = match &*name.text {
            "Date" => "use Time.now(), which is recorded: milliseconds since 1970",
            "Promise" => "use an async function, or one of Promise.all, Promise.race, Promise.resolve",
            "Map" | "Set" | "Array" | "Object" => "use a list [ ] or an object { }",
            _ => "new makes errors only: new Error(message, { code, data })",
        };
        self.problem(Diagnostic::error("unknown_builtin", name.span, message).help(help));
        false
    }

    fn instanceof(&mut self, right: &Expr) {
        if matches!(&right.kind, ExprKind::Name(name) if *name.text == *"Error") {
            return self.expr(right);
        }
        let message = "instanceof knows errors only";
        let help = "write value instanceof Error, or use typeof, Array.isArray(value), or error.code";
        self.problem(Diagnostic::error("bad_instanceof", right.span, message).help(help));
    }

    /// A callback that awaits returns a promise, which these take for an answer.
    fn impatient_method(&mut self, method: &str, args: &[Element]) {
        let callback = args.first().map(|arg| arg.value.bare());
        let Some(ExprKind::Function(function)) = callback.map(|callback| &callback.kind) else { return };
        if !function.is_async || !IMPATIENT.contains(&method) {
            return;
        }
        let message = format!("`{method}` does not wait for its callback");
        let help = match method {
            "forEach" => "use for (const x of list) { await … }, or await Promise.all(list.map(…))",
            _ => "await first: const answers = await Promise.all(list.map(…))",
        };
        self.problem(Diagnostic::warning("await_in_callback", function.span, message).help(help));
    }

    fn check_await(&mut self, span: Span) {
        if self.in_default {
            let message = "await cannot stand in the default of a parameter";
            let help = "take null as the default and await inside the function";
            self.problem(Diagnostic::error("await_nowhere", span, message).help(help));
        }
        let in_file = self.functions.last().is_some_and(|function| function.kind == FunctionKind::File);
        if in_file && (self.has_workflows || self.is_prelude) {
            let message = "nothing can be awaited outside of a workflow";
            let help = "move it into the workflow that needs it";
            self.problem(Diagnostic::error("await_nowhere", span, message).help(help));
        }
    }
}

/// The workflow that a call starts in its newest version, if its name stands there.
fn child_of(namespace: &str, name: &str, args: &[Element]) -> Option<Arc<str>> {
    let starts = namespace == "Workflow" && matches!(name, "run" | "start");
    let ExprKind::Text(child) = &args.first().filter(|_| starts)?.value.bare().kind else { return None };
    let is_newest = match args.get(2).map(|options| &options.value.bare().kind) {
        None => true,
        Some(ExprKind::Object(options)) => {
            options.iter().all(|option| matches!(option, Property::Named { name, .. } if &**name != "version"))
        }
        // Who knows what it says.
        Some(_) => false,
    };
    is_newest.then(|| Arc::clone(child))
}
