//! Looking names up.

use super::{Checker, Meaning, VariableId, VariableKind};
use crate::builtins;
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{FunctionKind, Name};

impl Checker {
    /// A name that is read.
    pub(super) fn read(&mut self, name: &Name) -> Meaning {
        let meaning = self.look_up(name);
        match meaning {
            Meaning::Variable(id) => self.variable_mut(id).is_read = true,
            Meaning::Nothing => self.undefined(name),
            Meaning::Namespace | Meaning::Builtin(_) => {}
        }
        meaning
    }

    /// A name that is assigned to; `reads` where its old value is looked at too.
    pub(super) fn assign(&mut self, name: &Name, reads: bool) {
        match self.look_up(name) {
            Meaning::Variable(id) => {
                let variable = self.variable_mut(id);
                variable.is_assigned = true;
                variable.is_read |= reads;
                let kind = variable.kind;
                self.refuse_constant(name, kind);
            }
            Meaning::Namespace | Meaning::Builtin(_) => {
                let message = format!("`{}` is part of the language and cannot be changed", name.text);
                let help = format!("declare a variable of your own: let {} = …", name.text);
                self.problem(Diagnostic::error("assignment_to_builtin", name.span, message).help(help));
            }
            Meaning::Nothing => self.assign_undeclared(name, reads),
        }
    }

    fn refuse_constant(&mut self, name: &Name, kind: VariableKind) {
        let help = match kind {
            VariableKind::Const => "declare it with let if it is meant to change",
            VariableKind::Workflow => "a workflow cannot be replaced",
            VariableKind::Let
            | VariableKind::Param
            | VariableKind::Function
            | VariableKind::Caught
            | VariableKind::Implicit => return,
        };
        let message = format!("`{}` is a constant", name.text);
        self.problem(Diagnostic::error("assignment_to_const", name.span, message).help(help));
    }

    /// Inside a workflow an assignment declares; elsewhere it is a slip.
    fn assign_undeclared(&mut self, name: &Name, reads: bool) {
        let workflow = self.functions.iter().find(|function| function.kind == FunctionKind::Workflow);
        let Some(body) = workflow.filter(|_| !reads).map(|function| function.body) else {
            self.undefined(name);
            return;
        };
        let message = format!("`{}` is declared by this assignment", name.text);
        let help = format!("write let {0} = …, or const {0} = … if it does not change", name.text);
        self.problem(Diagnostic::warning("undeclared_assignment", name.span, message).help(help));
        let id = self.declare_in(body, name, VariableKind::Implicit);
        // It exists, as null, from the beginning of the workflow.
        self.variable_mut(id).ready_at = 0;
        let meaning = self.look_up(name);
        self.set_meaning(name, meaning);
    }

    /// The meaning of a name, which is noted.
    fn look_up(&mut self, name: &Name) -> Meaning {
        let meaning = match self.find(&name.text) {
            Some((id, depth)) => {
                self.note_use(id, depth, name.span.start);
                Meaning::Variable(id)
            }
            None if builtins::is_namespace(&name.text) => Meaning::Namespace,
            None => builtins::global(&name.text, self.is_prelude).map_or(Meaning::Nothing, Meaning::Builtin),
        };
        self.set_meaning(name, meaning);
        meaning
    }

    /// The innermost variable with this name, and the place of its function.
    fn find(&self, text: &str) -> Option<(VariableId, usize)> {
        let (id, scope) = *self.bindings.get(text)?.last()?;
        Some((id, self.open[scope].function))
    }

    /// Notes who uses a variable: each function between it and its own must capture it.
    fn note_use(&mut self, id: VariableId, owner: usize, at: u32) {
        if owner + 1 == self.functions.len() {
            let variable = self.variable_mut(id);
            variable.is_early |= at < variable.ready_at;
            return;
        }
        self.variable_mut(id).is_captured = true;
        for place in owner + 1..self.functions.len() {
            let function = self.functions[place].id;
            if self.captured.insert((function, id)) {
                self.checked.captures[function.0 as usize].push(id);
            }
        }
    }
}
