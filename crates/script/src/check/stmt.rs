//! Statements.

use super::declare::variable_kind;
use super::{Checker, VariableKind};
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{Block, Expr, For, ForEach, Stmt, StmtKind, Switch, Try};

impl Checker {
    /// The statements of a scope that is open; whether what follows them is never reached.
    pub(super) fn statements(&mut self, statements: &[Stmt]) -> bool {
        self.hoist(statements);
        self.list(statements)
    }

    fn list(&mut self, statements: &[Stmt]) -> bool {
        let (mut ends, mut reported) = (false, false);
        for statement in statements {
            let matters = !matches!(statement.kind, StmtKind::Function(_) | StmtKind::Empty);
            if ends && matters && !reported {
                reported = true;
                let problem = Diagnostic::warning("unreachable", statement.span, "this is never reached");
                self.problem(problem.help("what stands before it always leaves: remove one of the two"));
            }
            ends |= self.statement(statement);
        }
        ends
    }

    fn block(&mut self, block: &Block) -> bool {
        let mut ends = false;
        self.with_scope(block.scope, |checker| ends = checker.statements(&block.statements));
        ends
    }

    /// Whether what follows the statement is never reached.
    fn statement(&mut self, statement: &Stmt) -> bool {
        match &statement.kind {
            StmtKind::Declare { list, .. } => {
                for declarator in list {
                    if let Some(value) = &declarator.value {
                        self.expr(value);
                    }
                    self.pattern_parts(&declarator.pattern, false);
                }
                false
            }
            StmtKind::Function(function) | StmtKind::Workflow(function) => {
                self.function(function);
                false
            }
            StmtKind::Expr(expr) => {
                self.expr(expr);
                false
            }
            StmtKind::If { branches, otherwise } => self.branches(branches, otherwise.as_deref()),
            StmtKind::While { test, body } => {
                self.expr(test);
                self.statement(body);
                false
            }
            StmtKind::DoWhile { body, test } => {
                self.statement(body);
                self.expr(test);
                false
            }
            StmtKind::For(parts) => {
                self.with_scope(parts.scope, |checker| checker.for_loop(parts));
                false
            }
            StmtKind::ForEach(parts) => {
                self.for_each(parts);
                false
            }
            StmtKind::Switch(switch) => {
                self.switch(switch);
                false
            }
            StmtKind::Break | StmtKind::Continue => true,
            StmtKind::Try(parts) => self.try_statement(parts),
            StmtKind::Throw(value) => {
                self.expr(value);
                true
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.expr(value);
                }
                true
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Empty => false,
        }
    }

    fn branches(&mut self, branches: &[(Expr, Stmt)], otherwise: Option<&Stmt>) -> bool {
        let mut all_end = true;
        for (test, body) in branches {
            self.expr(test);
            all_end &= self.statement(body);
        }
        let last_ends = otherwise.is_some_and(|otherwise| self.statement(otherwise));
        all_end && last_ends
    }

    fn for_loop(&mut self, parts: &For) {
        if let Some(init) = &parts.init {
            self.statements(std::slice::from_ref(init));
        }
        if let Some(test) = &parts.test {
            self.expr(test);
        }
        parts.update.iter().for_each(|update| self.expr(update));
        self.statement(&parts.body);
    }

    fn for_each(&mut self, parts: &ForEach) {
        self.expr(&parts.list);
        self.with_scope(parts.scope, |checker| {
            if let Some(kind) = parts.declare {
                checker.declare_pattern(&parts.pattern, variable_kind(kind), parts.pattern.span.end);
            }
            checker.pattern_parts(&parts.pattern, parts.declare.is_none());
            checker.statement(&parts.body);
        });
    }

    fn switch(&mut self, switch: &Switch) {
        self.expr(&switch.subject);
        let defaults = switch.cases.iter().filter(|(test, _, _)| test.is_none());
        if let Some((_, _, span)) = defaults.into_iter().nth(1) {
            self.problem(Diagnostic::error("syntax", *span, "a switch has one default").help("remove one of them"));
        }
        self.with_scope(switch.scope, |checker| {
            for (_, body, _) in &switch.cases {
                checker.hoist(body);
            }
            for (test, body, _) in &switch.cases {
                if let Some(test) = test {
                    checker.expr(test);
                }
                checker.list(body);
            }
        });
        // A case may be entered without those before it: what they declare may not be there.
        for id in self.checked.scopes[switch.scope.0 as usize].clone() {
            self.variable_mut(id).is_early = true;
        }
    }

    fn try_statement(&mut self, parts: &Try) -> bool {
        let mut ends = self.block(&parts.body);
        if let Some(catch) = &parts.catch {
            self.with_scope(catch.scope, |checker| {
                if let Some(pattern) = &catch.pattern {
                    checker.declare_pattern(pattern, VariableKind::Caught, pattern.span.start);
                    checker.pattern_parts(pattern, false);
                }
                ends &= checker.block(&catch.body);
            });
        }
        let finally_ends = parts.finally.as_ref().is_some_and(|finally| self.block(finally));
        ends || finally_ends
    }
}
