//! Declaring names.

use super::{Checker, Meaning, Params, Variable, VariableId, VariableKind};
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{
    DeclareKind, Expr, ExprKind, Function, Name, Pattern, PatternItem, PatternKind, Stmt, StmtKind,
};

impl Checker {
    /// Declares a name in the scope at a place among the open ones.
    pub(super) fn declare_in(&mut self, place: usize, name: &Name, kind: VariableKind) -> VariableId {
        let id = VariableId(u32::try_from(self.checked.variables.len()).unwrap_or(u32::MAX));
        let (scope, function) = (self.open[place].id, self.functions[self.open[place].function].id);
        self.checked.variables.push(Variable {
            name: name.text.clone(),
            span: name.span,
            kind,
            function,
            ready_at: name.span.end,
            is_captured: false,
            is_early: false,
            is_read: false,
            is_assigned: false,
            params: None,
        });
        self.checked.scopes[scope.0 as usize].push(id);
        let bound = self.bindings.entry(name.text.clone()).or_default();
        // Scopes further in come later, and hide it.
        let at = bound.iter().rposition(|(_, other)| *other <= place).map_or(0, |before| before + 1);
        bound.insert(at, (id, place));
        id
    }

    /// Declares a name in the innermost scope.
    fn declare(&mut self, name: &Name, kind: VariableKind, ready_at: u32) -> Option<VariableId> {
        let place = self.open.len().checked_sub(1)?;
        if self.has_twin(name, kind, place) {
            self.declared_twice(name);
        }
        let id = self.declare_in(place, name, kind);
        self.variable_mut(id).ready_at = ready_at;
        self.set_meaning(name, Meaning::Variable(id));
        Some(id)
    }

    /// Whether the scope has such a name already. The body of a function shares its names with the parameters.
    fn has_twin(&self, name: &Name, kind: VariableKind, place: usize) -> bool {
        let Some((twin, scope)) = self.bindings.get(&name.text).and_then(|bound| bound.last()) else { return false };
        if *scope == place {
            return true;
        }
        let is_body = self.functions.last().is_some_and(|function| function.body == place);
        let is_param = self.checked.variable(*twin).kind == VariableKind::Param;
        is_body && is_param && kind != VariableKind::Param && *scope + 1 == place
    }

    fn declared_twice(&mut self, name: &Name) {
        let message = format!("`{}` is declared twice in the same place", name.text);
        let help = format!("assign to it instead ({} = …), or choose another name", name.text);
        self.problem(Diagnostic::error("declared_twice", name.span, message).label("the second time").help(help));
    }

    /// Declares what the statements of a block declare, before any of them is looked at: functions may use each other.
    pub(super) fn hoist(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match &statement.kind {
                StmtKind::Declare { kind, list } => {
                    let kind = variable_kind(*kind);
                    for declarator in list {
                        let ready = declarator.value.as_ref().map_or(declarator.pattern.span, |value| value.span).end;
                        self.declare_pattern(&declarator.pattern, kind, ready);
                        self.note_function(&declarator.pattern, kind, declarator.value.as_ref());
                    }
                }
                StmtKind::Function(function) => self.declare_function(function, VariableKind::Function),
                StmtKind::Workflow(function) => self.declare_function(function, VariableKind::Workflow),
                _ => {}
            }
        }
    }

    fn declare_function(&mut self, function: &Function, kind: VariableKind) {
        let Some(name) = &function.name else { return };
        // Functions are there from the beginning of their block.
        if let Some(id) = self.declare(name, kind, 0) {
            self.variable_mut(id).params = Some(params_of(function));
        }
        if kind == VariableKind::Workflow {
            self.checked.workflows.push(name.text.clone());
        }
    }

    /// Remembers how many arguments a constant takes that is a function.
    fn note_function(&mut self, pattern: &Pattern, kind: VariableKind, value: Option<&Expr>) {
        let (PatternKind::Name(name), VariableKind::Const, Some(value)) = (&pattern.kind, kind, value) else { return };
        if let (ExprKind::Function(function), Meaning::Variable(id)) =
            (&value.bare().kind, self.checked.meaning(name.id))
        {
            self.variable_mut(id).params = Some(params_of(function));
        }
    }

    pub(super) fn declare_pattern(&mut self, pattern: &Pattern, kind: VariableKind, ready_at: u32) {
        match &pattern.kind {
            PatternKind::Name(name) => {
                self.declare(name, kind, ready_at);
            }
            PatternKind::Place(_) => {}
            PatternKind::List { items, rest } => {
                for item in items.iter().flatten() {
                    self.declare_pattern(&item.pattern, kind, ready_at);
                }
                if let Some(rest) = rest {
                    self.declare_pattern(rest, kind, ready_at);
                }
            }
            PatternKind::Object { properties, rest } => {
                for property in properties {
                    self.declare_pattern(&property.item.pattern, kind, ready_at);
                }
                if let Some(rest) = rest {
                    self.declare_pattern(rest, kind, ready_at);
                }
            }
        }
    }

    /// Looks at what a pattern reads: defaults, and places that are assigned to.
    pub(super) fn pattern_parts(&mut self, pattern: &Pattern, assigns: bool) {
        match &pattern.kind {
            PatternKind::Name(name) if assigns => self.assign(name, false),
            PatternKind::Name(_) => {}
            PatternKind::Place(place) => self.expr(place),
            PatternKind::List { items, rest } => {
                for item in items.iter().flatten() {
                    self.item_parts(item, assigns);
                }
                if let Some(rest) = rest {
                    self.pattern_parts(rest, assigns);
                }
            }
            PatternKind::Object { properties, rest } => {
                for property in properties {
                    self.item_parts(&property.item, assigns);
                }
                if let Some(rest) = rest {
                    self.pattern_parts(rest, assigns);
                }
            }
        }
    }

    pub(super) fn item_parts(&mut self, item: &PatternItem, assigns: bool) {
        if let Some(default) = &item.default {
            self.expr(default);
        }
        self.pattern_parts(&item.pattern, assigns);
    }
}

pub(super) fn variable_kind(kind: DeclareKind) -> VariableKind {
    match kind {
        DeclareKind::Let => VariableKind::Let,
        DeclareKind::Const => VariableKind::Const,
    }
}

fn params_of(function: &Function) -> Params {
    let least = function.params.iter().rposition(|param| param.default.is_none()).map_or(0, |last| last + 1);
    let most = function.rest.is_none().then_some(function.params.len());
    Params { least, most }
}
