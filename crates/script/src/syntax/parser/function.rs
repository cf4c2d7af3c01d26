//! Functions: declared, anonymous, arrows, workflows.

use super::{Kind, Parse, Parser, Within};
use crate::source::Span;
use crate::syntax::ast::{Block, Expr, ExprKind, Function, FunctionKind, Name, Pattern, PatternItem, PatternKind};

/// The most parameters, and the most arguments that are written one by one.
pub(crate) const PARAMS_MAX: usize = 200;

struct Params {
    list: Vec<PatternItem>,
    rest: Option<Pattern>,
}

impl Parser<'_> {
    /// `function f(a, b) { … }`, with or without `async`.
    #[inline(never)]
    pub(super) fn function_declaration(&mut self) -> Parse<Function> {
        let start = self.here();
        let says_async = self.eat_async();
        self.bump();
        let name = self.name("the function's name")?;
        self.function_rest(FunctionKind::Function, Some(name), says_async, start)
    }

    pub(super) fn workflow_declaration(&mut self) -> Parse<Function> {
        let start = self.bump().span;
        let name = self.name("the workflow's name")?;
        self.function_rest(FunctionKind::Workflow, Some(name), false, start)
    }

    #[inline(never)]
    pub(super) fn function_expression(&mut self) -> Parse<Expr> {
        let start = self.here();
        let says_async = self.eat_async();
        self.bump();
        let name = if self.kind() == Kind::Name { Some(self.name("a name")?) } else { None };
        let part = |parser: &mut Self| parser.function_rest(FunctionKind::Function, name, says_async, start);
        let (function, inside) = self.measured(part)?;
        self.function_node(function, inside)
    }

    /// A method of an object, from its parameters on.
    #[inline(never)]
    pub(super) fn method(&mut self, start: Span, says_async: bool) -> Parse<Expr> {
        let part = |parser: &mut Self| parser.function_rest(FunctionKind::Function, None, says_async, start);
        let (function, inside) = self.measured(part)?;
        self.function_node(function, inside)
    }

    fn function_node(&mut self, function: Function, inside: u16) -> Parse<Expr> {
        let span = function.span;
        self.node(ExprKind::Function(Box::new(function)), span, inside)
    }

    fn eat_async(&mut self) -> bool {
        let says_async = self.is_word(0, "async");
        if says_async {
            self.bump();
        }
        says_async
    }

    /// Whether an arrow function begins here: `x =>`, `(…) =>`, each with or without `async`.
    pub(super) fn starts_arrow(&self) -> bool {
        let skip = usize::from(self.word_before("async", &[Kind::Name, Kind::ParenOpen]));
        match self.ahead(skip) {
            Kind::Name => self.ahead(skip + 1) == Kind::Arrow,
            Kind::ParenOpen => self.partner[self.at + skip]
                .is_some_and(|close| self.tokens.get(close as usize + 1).is_some_and(|next| next.kind == Kind::Arrow)),
            _ => false,
        }
    }

    #[inline(never)]
    pub(super) fn arrow_function(&mut self) -> Parse<Expr> {
        let start = self.here();
        let says_async = self.word_before("async", &[Kind::Name, Kind::ParenOpen]) && self.eat_async();
        self.within.push(Within::new(FunctionKind::Arrow));
        let result = self.measured(|parser| parser.nested(|parser| parser.arrow_rest(start, says_async)));
        self.within.pop();
        let (function, inside) = result?;
        self.function_node(function, inside)
    }

    fn arrow_rest(&mut self, start: Span, says_async: bool) -> Parse<Function> {
        let (scope, body_scope) = (self.scope(), self.scope());
        let params = if self.kind() == Kind::Name {
            let name = self.name("a parameter")?;
            let span = name.span;
            let pattern = Pattern { kind: PatternKind::Name(name), span };
            Params { list: vec![PatternItem { pattern, default: None }], rest: None }
        } else {
            self.params()?
        };
        self.expect(Kind::Arrow, "`=>`")?;
        let (body, value) = if self.kind() == Kind::BraceOpen {
            (self.block_in(body_scope)?, None)
        } else {
            let value = self.expression()?;
            (Block { statements: Vec::new(), scope: body_scope, span: value.span }, Some(Box::new(value)))
        };
        let is_async = says_async || self.within.last().is_some_and(|within| within.awaits);
        let span = start.to(self.last_span());
        let (id, kind, Params { list: params, rest }) = (self.function_id(), FunctionKind::Arrow, params);
        Ok(Function { id, kind, name: None, params, rest, body, value, is_async, says_async, scope, span })
    }

    /// Parameters and body.
    #[inline(never)]
    fn function_rest(
        &mut self,
        kind: FunctionKind,
        name: Option<Name>,
        says_async: bool,
        start: Span,
    ) -> Parse<Function> {
        self.within.push(Within::new(kind));
        // A function is a level of its own, beside that of the expression it is.
        let result = self.nested(|parser| parser.function_parts(kind, name, says_async, start));
        self.within.pop();
        result
    }

    #[inline(never)]
    fn function_parts(
        &mut self,
        kind: FunctionKind,
        name: Option<Name>,
        says_async: bool,
        start: Span,
    ) -> Parse<Function> {
        let (scope, body_scope) = (self.scope(), self.scope());
        let Params { list: params, rest } = self.params()?;
        let body = self.block_in(body_scope)?;
        let awaits = self.within.last().is_some_and(|within| within.awaits);
        // A workflow is always awaited by its run.
        let is_async = says_async || awaits || kind == FunctionKind::Workflow;
        let span = start.to(self.last_span());
        let id = self.function_id();
        Ok(Function { id, kind, name, params, rest, body, value: None, is_async, says_async, scope, span })
    }

    fn params(&mut self) -> Parse<Params> {
        self.expect(Kind::ParenOpen, "`(` and the parameters")?;
        let (mut list, mut rest) = (Vec::new(), None);
        while !self.eat(Kind::ParenClose) {
            if self.eat(Kind::Ellipsis) {
                rest = Some(self.pattern()?);
                self.expect(Kind::ParenClose, "`)` after the rest")?;
                break;
            }
            if list.len() == PARAMS_MAX {
                let message = format!("a function has at most {PARAMS_MAX} parameters");
                let problem = crate::diagnostic::Diagnostic::error("too_many_parameters", self.here(), message);
                return Err(self.report(problem.help("pass an object instead")));
            }
            list.push(self.pattern_item()?);
            if self.kind() != Kind::ParenClose {
                self.expect(Kind::Comma, "`,` or `)`")?;
            }
        }
        Ok(Params { list, rest })
    }
}
