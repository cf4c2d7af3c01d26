//! Expressions on their own: what stands in `${…}` of a flow. The same parser, checker and machine as for scripts; what
//! waits, asks the world or changes something is refused.

mod direct;
mod needs;
mod walk;

use std::sync::{Arc, LazyLock};

use outlast_core::failure::Failure;
use outlast_core::operation::{Operations, Provided};
use outlast_core::time::Timestamp;
use serde_json::Value as Json;

use crate::builtins;
use crate::check::check;
use crate::code::Code;
use crate::compile::compile;
use crate::diagnostic::Diagnostic;
use crate::heap::{Object, PromiseState};
use crate::limits::Limits;
use crate::machine::{Machine, Stop};
use crate::source::{Source, Span};
use crate::suggest::nearest;
use crate::syntax::ast::{Expr, StmtKind};
use crate::syntax::{Parsed, parse};
use crate::world::{RunInfo, World};
use direct::Direct;
use needs::Needs;

/// The longest expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 64 * 1024;

/// What it may use. Far less than a whole script: an expression is looked at between two facts, and there may be many.
pub const EXPRESSION_LIMITS: Limits = Limits {
    instructions: 1_000_000,
    call_depth: 64,
    heap_bytes: 32 * 1024 * 1024,
    garbage_bytes: 1024 * 1024,
    text_bytes: 4 * 1024 * 1024,
    list_items: 1_000_000,
    value_depth: 128,
    snapshot_bytes: 0,
};

/// A free name of an expression, and the fields that are read from it: `order.lines.length`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name.
    pub name: Arc<str>,
    /// Where it stands in the expression.
    pub span: Span,
    /// The fields, the outermost first, and where they stand. Those behind a `?.` may be missing, and end the list.
    pub fields: Vec<(Arc<str>, Span)>,
}

/// An expression that was read, checked and compiled. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use outlast_script::{EXPRESSION_LIMITS, Expression};
/// use serde_json::json;
///
/// let total = Expression::compile("order.lines.map(line => line.price).reduce((a, b) => a + b, 0)", &["order"])
///     .expect("an expression");
/// let order = Arc::new(json!({ "lines": [{ "price": 2 }, { "price": 3 }] }));
/// assert_eq!(total.evaluate(|_| Some(Arc::clone(&order)), EXPRESSION_LIMITS), Ok(json!(5)));
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    code: Arc<Code>,
    /// The free names, each once, and what is looked at of each.
    names: Arc<[(Arc<str>, Needs)]>,
    references: Arc<[Reference]>,
    /// Where it needs no machine. Apart, so that expressions stay small: flows nest deep, and so do those who read them.
    direct: Option<Arc<Direct>>,
}

impl Expression {
    /// Reads, checks and compiles an expression that may use these names. The places of problems count from its beginning.
    pub fn compile(text: &str, names: &[&str]) -> Result<Expression, Vec<Diagnostic>> {
        if text.len() > EXPRESSION_BYTES_MAX {
            let message = format!("the expression has {} bytes, the limit is {EXPRESSION_BYTES_MAX}", text.len());
            return Err(vec![Diagnostic::error("expression_too_long", Span::new(0, 0), message)]);
        }
        let used = free_names(text, names)?;
        let wrapped = Wrapped::new(&used, text);
        let parsed = wrapped.parse()?;
        let checked = check(&parsed, false);
        let value = value_of(&parsed, &wrapped)?;
        let walked = walk::walk(value, &checked, parsed.file.id);
        let problems = wrapped.problems(walked.problems.into_iter().chain(checked.problems.clone()).collect());
        if !problems.is_empty() {
            return Err(problems);
        }
        let compiled = compile(&parsed, &checked, builtins::prelude(), false);
        let code = Code {
            functions: compiled.functions,
            texts: compiled.texts,
            numbers: compiled.numbers,
            main: compiled.main,
            workflows: Vec::new(),
            hash: String::new(),
            source: Source::new("expression", &wrapped.text),
        };
        let references: Vec<Reference> =
            walked.references.into_iter().map(|reference| wrapped.unshift(reference)).collect();
        let names: Vec<(Arc<str>, Needs)> =
            used.into_iter().map(|name| (Arc::clone(&name), Needs::of(&name, &references))).collect();
        Ok(Expression {
            code: Arc::new(code),
            names: names.into(),
            references: references.into(),
            direct: walked.direct.map(Arc::new),
        })
    }

    /// The free names it uses, and what it reads from them.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Its value. `scope` gives the value of a free name; one it does not have is null.
    pub fn evaluate(&self, scope: impl Fn(&str) -> Option<Arc<Json>>, limits: Limits) -> Result<Json, Failure> {
        if let Some(value) = self.direct.as_ref().and_then(|direct| direct.value(&scope)) {
            return Ok(value);
        }
        self.compute(&scope, limits, |needs| needs)
    }

    /// What it comes to in the machine, which is `given` what is needed of each name.
    fn compute(
        &self,
        scope: &impl Fn(&str) -> Option<Arc<Json>>,
        limits: Limits,
        given: impl Fn(&Needs) -> &Needs,
    ) -> Result<Json, Failure> {
        static INFO: LazyLock<RunInfo> = LazyLock::new(|| RunInfo {
            run_id: String::new(),
            workflow: String::new(),
            tokens: Arc::new(|_| String::new()),
        });
        let mut machine = Machine::new(Arc::clone(&self.code), World::new(INFO.clone(), "expression"), limits);
        let mut inputs = Object::default();
        for (name, needs) in &*self.names {
            let value = scope(name).unwrap_or_default();
            inputs.set(name, given(needs).value(&value, &mut machine));
        }
        machine.inputs = machine.heap.object(inputs);
        let mut ops = Operations::new(Provided { now: Timestamp::EPOCH, seed: 0 });
        machine.start(&mut ops).map_err(|failure| told(&failure))?;
        let main = machine.main.and_then(|main| machine.heap.promise_of(main)).map(|promise| promise.state);
        let value = match main {
            Some(PromiseState::Fulfilled(value)) => machine.json_of(value, "the value of the expression"),
            Some(PromiseState::Rejected(error)) => Err(Stop::Throw(error)),
            Some(PromiseState::Pending | PromiseState::Following) | None => {
                return Err(Failure::new("expression", "the expression waits for something").permanent());
            }
        };
        match value {
            Ok(json) => serde_json::from_slice(&json)
                .map_err(|error| Failure::new("expression", format!("the value is not JSON: {error}")).permanent()),
            Err(Stop::Throw(error)) => Err(told(&machine.failure(error))),
            Err(Stop::Fatal(failure)) => Err(told(&failure)),
        }
    }
}

/// Whether a name means something without being declared, so that nothing else can have it.
pub fn is_reserved_name(name: &str) -> bool {
    builtins::global_names().any(|global| global == name) || name == "undefined"
}

/// A failure without the stack: an expression is one line, and whoever asked knows where it stands.
fn told(failure: &Failure) -> Failure {
    let message = failure.message.lines().next().unwrap_or_default();
    Failure { message: message.to_owned(), permanent: true, trace: None, ..failure.clone() }
}

/// The names the expression does not declare itself, each once.
fn free_names(text: &str, names: &[&str]) -> Result<Vec<Arc<str>>, Vec<Diagnostic>> {
    let wrapped = Wrapped::new(&[], text);
    let parsed = wrapped.parse()?;
    value_of(&parsed, &wrapped)?;
    let mut used: Vec<Arc<str>> = Vec::new();
    let mut unknown = Vec::new();
    for problem in check(&parsed, false).problems {
        if problem.code != "undefined_name" {
            continue;
        }
        let name = wrapped.text.get(problem.span.range()).unwrap_or_default();
        if !names.contains(&name) {
            let meant = nearest(name, names.iter().copied());
            let help = meant.map_or_else(|| known(names), |meant| format!("did you mean `{meant}`?"));
            let message = format!("`{name}` is not known here");
            unknown.push(Diagnostic::error("unknown_name", problem.span, message).help(help));
        } else if !used.iter().any(|known| &**known == name) {
            used.push(name.into());
        }
    }
    let unknown = wrapped.problems(unknown);
    if unknown.is_empty() { Ok(used) } else { Err(unknown) }
}

fn known(names: &[&str]) -> String {
    if names.is_empty() { "no names are known here".to_owned() } else { format!("known are: {}", names.join(", ")) }
}

/// The expression as a script that takes its names apart and returns its value.
struct Wrapped {
    text: String,
    /// Where the expression begins, and how long it is.
    start: u32,
    length: u32,
}

impl Wrapped {
    fn new(names: &[Arc<str>], text: &str) -> Wrapped {
        let taken = match names {
            [] => String::new(),
            names => format!("const {{{}}} = Inputs;", names.join(",")),
        };
        let before = format!("{taken}return (");
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (start, length) = (number(before.len()), number(text.len()));
        // On a line of its own: the expression may end with a comment.
        Wrapped { text: format!("{before}{text}\n)"), start, length }
    }

    fn parse(&self) -> Result<Parsed, Vec<Diagnostic>> {
        let parsed = parse(&self.text);
        let problems = self.problems(parsed.problems.clone());
        if problems.is_empty() { Ok(parsed) } else { Err(problems) }
    }

    /// What keeps the expression from being one, with its places counted from the beginning of it.
    fn problems(&self, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let end = self.start + self.length;
        let errors = found.into_iter().filter(Diagnostic::is_error);
        errors
            .map(|problem| {
                // What closes the expression is ours, and nothing its author knows.
                let is_at_end = problem.code == "syntax" && problem.span.start >= end;
                let message = if is_at_end { "the expression ends too early".to_owned() } else { problem.message };
                Diagnostic { span: self.shift(problem.span), message, ..problem }
            })
            .collect()
    }

    fn shift(&self, span: Span) -> Span {
        let within = |at: u32| at.saturating_sub(self.start).min(self.length);
        Span::new(within(span.start), within(span.end))
    }

    fn unshift(&self, reference: Reference) -> Reference {
        let Reference { name, span, fields } = reference;
        let fields = fields.into_iter().map(|(field, span)| (field, self.shift(span))).collect();
        Reference { name, span: self.shift(span), fields }
    }
}

/// The expression itself: it must be all that stands in the parentheses.
fn value_of<'p>(parsed: &'p Parsed, wrapped: &Wrapped) -> Result<&'p Expr, Vec<Diagnostic>> {
    let statements = &parsed.file.body.statements;
    let end = wrapped.start + wrapped.length;
    let returned = statements.last().filter(|_| statements.len() <= 2).and_then(|last| match &last.kind {
        StmtKind::Return(Some(value)) if value.span.end > end && last.span.start < wrapped.start => Some(value),
        _ => None,
    });
    returned.ok_or_else(|| {
        let message = "this is not one expression";
        let problem = Diagnostic::error("not_an_expression", Span::new(0, wrapped.length), message);
        vec![problem.help("write one value; what needs statements belongs into a script workflow")]
    })
}

#[cfg(test)]
mod tests;
