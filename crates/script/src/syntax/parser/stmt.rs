//! Statements.

use super::{Kind, Parse, Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{
    Block, Declarator, DeclareKind, Expr, For, ForEach, FunctionKind, ScopeId, Stmt, StmtKind, Switch,
};

impl Parser<'_> {
    /// Statements up to a closing token, which is not taken. A mistake costs the rest of its statement.
    pub(super) fn statements_until(&mut self, close: Kind) -> Vec<Stmt> {
        let mut statements = Vec::new();
        while self.kind() != close && self.kind() != Kind::End && !self.gave_up {
            let before = self.at;
            match self.nested(|parser| parser.statement()) {
                Ok(statement) => statements.push(statement),
                Err(_) => self.skip_statement(before),
            }
        }
        if close == Kind::End && self.kind() != Kind::End && !self.gave_up {
            self.bump();
        }
        statements
    }

    /// Goes on to where the next statement probably begins: behind the mistake, and behind every bracket that the
    /// statement opened before it.
    #[inline(never)]
    fn skip_statement(&mut self, before: usize) {
        let failed = self.at;
        if self.gave_up {
            return;
        }
        self.at = before;
        self.skip_one();
        while self.at < failed {
            self.skip_one();
        }
        loop {
            let token = self.token();
            match token.kind {
                Kind::End | Kind::BraceClose => return,
                Kind::Semicolon => {
                    self.bump();
                    return;
                }
                _ if token.after_line_end && starts_statement(token.kind) => return,
                _ => self.skip_one(),
            }
        }
    }

    /// Over one token, or over everything between two brackets.
    fn skip_one(&mut self) {
        match self.partner.get(self.at).copied().flatten() {
            Some(close) => self.at = (close as usize + 1).min(self.tokens.len() - 1),
            None => {
                self.bump();
            }
        }
    }

    #[inline(never)]
    fn statement(&mut self) -> Parse<Stmt> {
        let start = self.here();
        let kind = self.statement_kind()?;
        Ok(Stmt { kind, span: start.to(self.last_span()) })
    }

    fn statement_kind(&mut self) -> Parse<StmtKind> {
        match self.kind() {
            Kind::Let | Kind::Const => self.declaration_statement(),
            Kind::Function => self.function_statement(),
            Kind::Name if self.word_before("async", &[Kind::Function]) => self.function_statement(),
            Kind::Name if self.word_before("workflow", &[Kind::Name]) => self.workflow(),
            Kind::If => self.if_statement(),
            Kind::While => self.while_statement(),
            Kind::Do => self.do_while(),
            Kind::For => self.for_statement(),
            Kind::Switch => self.switch(),
            Kind::Break => self.jump(StmtKind::Break),
            Kind::Continue => self.jump(StmtKind::Continue),
            Kind::Try => self.try_statement(),
            Kind::Throw => self.throw(),
            Kind::Return => self.return_statement(),
            Kind::BraceOpen => self.block().map(StmtKind::Block),
            Kind::Semicolon => {
                self.bump();
                Ok(StmtKind::Empty)
            }
            Kind::BraceClose if self.depth == 1 => {
                Err(self.lone("closes nothing", "remove it, or add the { before it"))
            }
            Kind::Else => {
                Err(self.lone("has no if before it", "else follows the body of an if: if (…) { … } else { … }"))
            }
            Kind::Catch | Kind::Finally => {
                Err(self.lone("has no try before it", "it follows the block of a try: try { … } catch (error) { … }"))
            }
            Kind::Case | Kind::Default => {
                Err(self.lone("has no switch around it", "write switch (value) { case 1: … default: … }"))
            }
            _ => self.expression_statement(),
        }
    }

    /// Reports a part of a statement without the rest of it.
    #[cold]
    #[inline(never)]
    fn lone(&mut self, message: &str, help: &str) -> Reported {
        let message = format!("this `{}` {message}", self.slice(self.here()));
        self.report(Diagnostic::error("syntax", self.here(), message).help(help))
    }

    // Each in a frame of its own: statements nest deep, and stacks are small.

    #[inline(never)]
    fn declaration_statement(&mut self) -> Parse<StmtKind> {
        let declaration = self.declaration()?;
        self.end_of_statement()?;
        Ok(declaration)
    }

    #[inline(never)]
    fn function_statement(&mut self) -> Parse<StmtKind> {
        Ok(StmtKind::Function(Box::new(self.function_declaration()?)))
    }

    #[inline(never)]
    fn expression_statement(&mut self) -> Parse<StmtKind> {
        let expr = self.expression()?;
        self.end_of_statement()?;
        Ok(StmtKind::Expr(expr))
    }

    /// A semicolon, or nothing where the line or the block ends.
    pub(super) fn end_of_statement(&mut self) -> Parse<()> {
        let token = self.token();
        // One on a line of its own belongs to what follows it there.
        if token.after_line_end || self.eat(Kind::Semicolon) || matches!(token.kind, Kind::BraceClose | Kind::End) {
            return Ok(());
        }
        Err(self.unexpected("`;` or a new line"))
    }

    #[inline(never)]
    pub(super) fn block(&mut self) -> Parse<Block> {
        let scope = self.scope();
        self.block_in(scope)
    }

    pub(super) fn block_in(&mut self, scope: ScopeId) -> Parse<Block> {
        let start = self.expect(Kind::BraceOpen, "`{`")?;
        let no_in = std::mem::replace(&mut self.no_in, false);
        let statements = self.statements_until(Kind::BraceClose);
        self.no_in = no_in;
        if self.kind() == Kind::End {
            let problem = Diagnostic::error("syntax", start.span, "this block has no end");
            return Err(self.report(problem.help("close it with }")));
        }
        self.expect(Kind::BraceClose, "`}`")?;
        Ok(Block { statements, scope, span: start.span.to(self.last_span()) })
    }

    #[inline(never)]
    fn workflow(&mut self) -> Parse<StmtKind> {
        let at = self.here();
        let inside = self.within.last().is_some_and(|within| within.kind != FunctionKind::File) || self.depth > 1;
        if inside {
            let problem =
                Diagnostic::error("nested_workflow", at, "a workflow cannot be declared inside something else");
            self.report(problem.help("move it to the top of the file, or make it a function"));
        }
        Ok(StmtKind::Workflow(Box::new(self.workflow_declaration()?)))
    }

    fn declaration(&mut self) -> Parse<StmtKind> {
        let kind = if self.bump().kind == Kind::Const { DeclareKind::Const } else { DeclareKind::Let };
        let mut list = Vec::new();
        loop {
            let pattern = self.pattern()?;
            let is_name = matches!(pattern.kind, crate::syntax::ast::PatternKind::Name(_));
            let value = if self.eat(Kind::Equals) { Some(self.expression()?) } else { None };
            if value.is_none() && (kind == DeclareKind::Const || !is_name) {
                let wanted = if self.no_in { "`of`, `in` or `=`" } else { "`=` and a value" };
                return Err(self.unexpected(wanted));
            }
            list.push(Declarator { pattern, value });
            if !self.eat(Kind::Comma) {
                return Ok(StmtKind::Declare { kind, list });
            }
        }
    }

    /// `( test )`.
    #[inline(never)]
    fn test(&mut self, after: &str) -> Parse<Expr> {
        self.expect(Kind::ParenOpen, &format!("`(` after {after}"))?;
        let test = self.inner_expression()?;
        self.expect(Kind::ParenClose, "`)`")?;
        Ok(test)
    }

    /// A statement under a condition or in a loop. It cannot be a declaration, which nobody could see.
    fn body(&mut self) -> Parse<Stmt> {
        if matches!(self.kind(), Kind::Let | Kind::Const | Kind::Function) {
            let problem = Diagnostic::error("syntax", self.here(), "a declaration needs a block here");
            return Err(self.report(problem.help("put { and } around it")));
        }
        self.nested(|parser| parser.statement())
    }

    fn loop_body(&mut self) -> Parse<Stmt> {
        self.enter_loop(1);
        let body = self.body();
        self.enter_loop(-1);
        body
    }

    fn enter_loop(&mut self, by: i32) {
        if let Some(within) = self.within.last_mut() {
            within.loops = within.loops.saturating_add_signed(by);
            within.breakable = within.breakable.saturating_add_signed(by);
        }
    }

    /// `else if` is a list of branches, not a nest: a hundred of them are fine.
    #[inline(never)]
    fn if_statement(&mut self) -> Parse<StmtKind> {
        let mut branches = Vec::new();
        loop {
            self.bump();
            let test = self.test("if")?;
            branches.push((test, self.body()?));
            if !self.eat(Kind::Else) {
                return Ok(StmtKind::If { branches, otherwise: None });
            }
            if self.kind() != Kind::If {
                let otherwise = Some(Box::new(self.body()?));
                return Ok(StmtKind::If { branches, otherwise });
            }
        }
    }

    #[inline(never)]
    fn while_statement(&mut self) -> Parse<StmtKind> {
        self.bump();
        let test = self.test("while")?;
        Ok(StmtKind::While { test, body: Box::new(self.loop_body()?) })
    }

    #[inline(never)]
    fn do_while(&mut self) -> Parse<StmtKind> {
        self.bump();
        let body = Box::new(self.loop_body()?);
        self.expect(Kind::While, "`while` and the condition")?;
        let test = self.test("while")?;
        self.eat(Kind::Semicolon);
        Ok(StmtKind::DoWhile { body, test })
    }

    #[inline(never)]
    fn for_statement(&mut self) -> Parse<StmtKind> {
        self.bump();
        if self.kind() == Kind::Await {
            return Err(self.lone_await());
        }
        self.expect(Kind::ParenOpen, "`(` after for")?;
        let scope = self.scope();
        if let Some(declare) = self.each_declares() {
            return self.for_each(declare, scope);
        }
        let init = self.for_init()?;
        self.expect(Kind::Semicolon, "`;` after the first part of for")?;
        let test = if self.kind() == Kind::Semicolon { None } else { Some(self.inner_expression()?) };
        self.expect(Kind::Semicolon, "`;` after the condition of for")?;
        let mut update = Vec::new();
        while self.kind() != Kind::ParenClose {
            update.push(self.inner_expression()?);
            if self.kind() != Kind::ParenClose {
                self.expect(Kind::Comma, "`)` after the last part of for")?;
            }
        }
        self.expect(Kind::ParenClose, "`)`")?;
        let body = self.loop_body()?;
        Ok(StmtKind::For(Box::new(For { init, test, update, body, scope })))
    }

    #[cold]
    #[inline(never)]
    fn lone_await(&mut self) -> Reported {
        let problem = Diagnostic::error("syntax", self.here(), "there is no for await");
        self.report(problem.help("await each element inside: for (const item of list) { const value = await item }"))
    }

    #[inline(never)]
    fn for_init(&mut self) -> Parse<Option<Stmt>> {
        let start = self.here();
        if self.kind() == Kind::Semicolon {
            return Ok(None);
        }
        let no_in = std::mem::replace(&mut self.no_in, true);
        let kind = if matches!(self.kind(), Kind::Let | Kind::Const) {
            self.declaration()
        } else {
            self.expression().map(StmtKind::Expr)
        };
        self.no_in = no_in;
        Ok(Some(Stmt { kind: kind?, span: start.to(self.last_span()) }))
    }

    /// Whether `of` or `in` follows the first pattern, and what it declares.
    fn each_declares(&self) -> Option<Option<DeclareKind>> {
        let (declare, first) = match self.kind() {
            Kind::Let => (Some(DeclareKind::Let), self.at + 1),
            Kind::Const => (Some(DeclareKind::Const), self.at + 1),
            _ => (None, self.at),
        };
        let after = match self.partner.get(first).copied().flatten() {
            Some(close) => close as usize + 1,
            None => first + 1,
        };
        let token = self.tokens.get(after)?;
        let is_each = token.kind == Kind::In || (token.kind == Kind::Name && self.slice(token.span) == "of");
        is_each.then_some(declare)
    }

    #[inline(never)]
    fn for_each(&mut self, declare: Option<DeclareKind>, scope: ScopeId) -> Parse<StmtKind> {
        let pattern = if declare.is_some() {
            self.bump();
            self.pattern()?
        } else {
            let target = self.nested(|parser| parser.primary())?;
            self.pattern_from(target)?
        };
        let over_keys = self.bump().kind == Kind::In;
        let list = self.inner_expression()?;
        self.expect(Kind::ParenClose, "`)`")?;
        let body = self.loop_body()?;
        Ok(StmtKind::ForEach(Box::new(ForEach { declare, pattern, over_keys, list, body, scope })))
    }

    #[inline(never)]
    fn switch(&mut self) -> Parse<StmtKind> {
        self.bump();
        let subject = self.test("switch")?;
        let scope = self.scope();
        self.expect(Kind::BraceOpen, "`{`")?;
        let mut cases = Vec::new();
        while !self.eat(Kind::BraceClose) {
            let start = self.here();
            let test = if self.eat(Kind::Default) {
                None
            } else {
                self.expect(Kind::Case, "`case`, `default` or `}`")?;
                Some(self.inner_expression()?)
            };
            self.expect(Kind::Colon, "`:`")?;
            cases.push((test, self.case_body(), start.to(self.last_span())));
        }
        Ok(StmtKind::Switch(Box::new(Switch { subject, cases, scope })))
    }

    #[inline(never)]
    fn case_body(&mut self) -> Vec<Stmt> {
        if let Some(within) = self.within.last_mut() {
            within.breakable += 1;
        }
        let mut statements = Vec::new();
        while !matches!(self.kind(), Kind::Case | Kind::Default | Kind::BraceClose | Kind::End) && !self.gave_up {
            let before = self.at;
            match self.nested(|parser| parser.statement()) {
                Ok(statement) => statements.push(statement),
                Err(_) => self.skip_statement(before),
            }
        }
        if let Some(within) = self.within.last_mut() {
            within.breakable -= 1;
        }
        statements
    }
}

fn starts_statement(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Let
            | Kind::Const
            | Kind::If
            | Kind::While
            | Kind::Do
            | Kind::For
            | Kind::Switch
            | Kind::Break
            | Kind::Continue
            | Kind::Try
            | Kind::Throw
            | Kind::Return
            | Kind::Function
            | Kind::Name
            | Kind::Await
    )
}
