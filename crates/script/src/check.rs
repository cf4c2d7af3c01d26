//! What names mean, and what is wrong with a script before it runs.

mod declare;
mod expr;
mod names;
mod stmt;

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::builtins;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::suggest::nearest;
use crate::syntax::Parsed;
use crate::syntax::ast::{Function, FunctionId, FunctionKind, Name, NameId, ScopeId, Stmt, StmtKind};

/// As many errors, and as many warnings: more say nothing new.
const PROBLEMS_MAX: usize = 50;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing; that was reported.
    Nothing,
    Variable(VariableId),
    /// A part of the language with members, such as `Task`.
    Namespace,
    /// A function or a constant of the language.
    Builtin(builtins::Builtin),
}

/// The number of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VariableId(pub(crate) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableKind {
    Let,
    Const,
    Param,
    Function,
    Workflow,
    Caught,
    /// Assigned to without a declaration, inside a workflow.
    Implicit,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
    pub(crate) kind: VariableKind,
    pub(crate) function: FunctionId,
    /// From where on it is certainly initialised, in its own function.
    pub(crate) ready_at: u32,
    /// Whether an inner function uses it.
    pub(crate) is_captured: bool,
    /// Whether it may be read before it is initialised, in its own function.
    pub(crate) is_early: bool,
    is_read: bool,
    is_assigned: bool,
    /// How many arguments it takes, if it is known to be a function.
    params: Option<Params>,
}

#[derive(Clone, Copy, Debug)]
struct Params {
    least: usize,
    most: Option<usize>,
}

/// The result: the meaning of every name, and what to say about it.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    meanings: Vec<Meaning>,
    pub(crate) variables: Vec<Variable>,
    /// What each scope declares.
    pub(crate) scopes: Vec<Vec<VariableId>>,
    /// What each function uses of the functions around it.
    pub(crate) captures: Vec<Vec<VariableId>>,
    pub(crate) workflows: Vec<Arc<str>>,
    /// The workflows it starts by names that stand in the text, in whatever version is newest.
    pub(crate) children: BTreeSet<Arc<str>>,
    pub(crate) problems: Vec<Diagnostic>,
}

impl Checked {
    pub(crate) fn meaning(&self, name: NameId) -> Meaning {
        self.meanings[name.0 as usize]
    }

    pub(crate) fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// The variables a scope declares.
    pub(crate) fn declared(&self, scope: ScopeId) -> &[VariableId] {
        &self.scopes[scope.0 as usize]
    }
}

/// Checks a file. `is_prelude` for the part of the language that is written in itself.
pub(crate) fn check(parsed: &Parsed, is_prelude: bool) -> Checked {
    let mut checker = Checker {
        checked: Checked {
            meanings: vec![Meaning::Nothing; parsed.names as usize],
            scopes: vec![Vec::new(); parsed.scopes as usize],
            captures: vec![Vec::new(); parsed.functions as usize],
            ..Checked::default()
        },
        is_prelude,
        open: Vec::new(),
        bindings: FxHashMap::default(),
        functions: Vec::new(),
        captured: FxHashSet::default(),
        calls: Vec::new(),
        in_default: false,
        has_workflows: false,
    };
    checker.file(&parsed.file);
    checker.checked
}

/// A scope that is being looked at.
struct Open {
    id: ScopeId,
    /// Its function, by its place among the open ones.
    function: usize,
}

struct OpenFunction {
    id: FunctionId,
    kind: FunctionKind,
    /// The scope of its body, by its place among the open ones.
    body: usize,
}

struct Checker {
    checked: Checked,
    is_prelude: bool,
    open: Vec<Open>,
    /// What each name stands for in the open scopes, with the scope's place among them: the innermost last.
    bindings: FxHashMap<Arc<str>, Vec<(VariableId, usize)>>,
    functions: Vec<OpenFunction>,
    captured: FxHashSet<(FunctionId, VariableId)>,
    /// Calls of functions that may turn out to be known.
    calls: Vec<(VariableId, usize, Span)>,
    /// Whether the value of a missing argument is looked at.
    in_default: bool,
    has_workflows: bool,
}

impl Checker {
    fn file(&mut self, file: &Function) {
        self.has_workflows = file.body.statements.iter().any(|stmt| matches!(stmt.kind, StmtKind::Workflow(_)));
        if self.has_workflows {
            self.only_declarations(&file.body.statements);
        }
        self.function(file);
        self.check_calls();
        self.unused();
    }

    /// In a file of workflows nothing would run what stands between them.
    fn only_declarations(&mut self, statements: &[Stmt]) {
        for statement in statements {
            let is_declaration = matches!(
                statement.kind,
                StmtKind::Workflow(_) | StmtKind::Function(_) | StmtKind::Declare { .. } | StmtKind::Empty
            );
            if !is_declaration {
                let message = "this stands outside of the workflows of the file";
                let help = "move it into a workflow, or into a file of its own";
                self.problem(Diagnostic::error("outside_workflow", statement.span, message).help(help));
            }
        }
    }

    /// Errors and warnings are counted apart: an error is never left out for warnings.
    fn problem(&mut self, problem: Diagnostic) {
        if !self.has_enough(problem.is_error()) {
            self.checked.problems.push(problem);
        }
    }

    fn has_enough(&self, errors: bool) -> bool {
        let same = self.checked.problems.iter().filter(|problem| problem.is_error() == errors);
        same.count() >= PROBLEMS_MAX
    }

    fn set_meaning(&mut self, name: &Name, meaning: Meaning) {
        self.checked.meanings[name.id.0 as usize] = meaning;
    }

    fn variable_mut(&mut self, id: VariableId) -> &mut Variable {
        &mut self.checked.variables[id.0 as usize]
    }

    /// Every name that can be seen here, for suggestions.
    fn visible(&self) -> Vec<Arc<str>> {
        let declared = self.open.iter().rev().flat_map(|open| &self.checked.scopes[open.id.0 as usize]);
        declared.map(|id| Arc::clone(&self.checked.variables[id.0 as usize].name)).collect()
    }

    fn undefined(&mut self, name: &Name) {
        if self.has_enough(true) {
            return;
        }
        let visible = self.visible();
        let mut candidates: Vec<&str> = visible.iter().map(|name| &**name).collect();
        for name in builtins::global_names() {
            candidates.push(name);
        }
        let problem = Diagnostic::error("undefined_name", name.span, format!("`{}` is not declared", name.text));
        let problem = match nearest(&name.text, candidates) {
            Some(meant) => problem.help(format!("did you mean `{meant}`?")),
            None => problem.help("declare it with let or const, or check its spelling"),
        };
        self.problem(problem);
    }

    /// Calls with too few or too many arguments. A function that is assigned to may be another one by then.
    fn check_calls(&mut self) {
        for (id, given, span) in std::mem::take(&mut self.calls) {
            let variable = &self.checked.variables[id.0 as usize];
            let Some(params) = variable.params.filter(|_| !variable.is_assigned) else { continue };
            if given >= params.least && params.most.is_none_or(|most| given <= most) {
                continue;
            }
            let takes = match params.most {
                Some(most) if most == params.least => arguments(most),
                Some(most) => format!("{} to {most} arguments", params.least),
                None => format!("at least {}", arguments(params.least)),
            };
            let message = format!("`{}` takes {takes}, and gets {given}", variable.name);
            let help = if given < params.least {
                "a missing argument is null; give the parameter a default if that is meant"
            } else {
                "the rest is ignored"
            };
            self.problem(Diagnostic::warning("arity", span, message).help(help));
        }
    }

    fn unused(&mut self) {
        let is_unused = |variable: &&Variable| {
            let counts = match variable.kind {
                VariableKind::Let | VariableKind::Const | VariableKind::Function | VariableKind::Implicit => true,
                VariableKind::Param | VariableKind::Workflow | VariableKind::Caught => false,
            };
            counts && !variable.is_read && !variable.name.starts_with('_')
        };
        // After a mistake it is not known what was meant to be used.
        if self.is_prelude || self.checked.problems.iter().any(Diagnostic::is_error) {
            return;
        }
        let warn = |variable: &Variable| {
            let message = format!("`{}` is never used", variable.name);
            let help = format!("remove it, or call it `_{}` if that is on purpose", variable.name);
            Diagnostic::warning("unused", variable.span, message).help(help)
        };
        let warnings: Vec<Diagnostic> =
            self.checked.variables.iter().filter(is_unused).take(PROBLEMS_MAX).map(warn).collect();
        warnings.into_iter().for_each(|warning| self.problem(warning));
    }
}

fn arguments(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        _ => format!("{count} arguments"),
    }
}
