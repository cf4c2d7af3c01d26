//! Statements that leave where they stand, and those that catch them.

use super::{Kind, Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Catch, StmtKind, Try};

impl Parser<'_> {
    #[inline(never)]
    pub(super) fn jump(&mut self, kind: StmtKind) -> Parse<StmtKind> {
        let token = self.bump();
        let allowed = self.within.last().is_some_and(|within| match kind {
            StmtKind::Break => within.breakable > 0,
            _ => within.loops > 0,
        });
        if !allowed {
            let (word, place) = match kind {
                StmtKind::Break => ("break", "a loop or a switch"),
                _ => ("continue", "a loop"),
            };
            let problem = Diagnostic::error("syntax", token.span, format!("{word} stands outside of {place}"));
            self.report(problem.help("to leave a function, write return"));
        } else if self.kind() == Kind::Name && !self.token().after_line_end {
            let problem = Diagnostic::error("syntax", self.here(), "there are no labels");
            return Err(self.report(problem.help("move the inner loop into a function and return from it")));
        }
        self.end_of_statement()?;
        Ok(kind)
    }

    #[inline(never)]
    pub(super) fn try_statement(&mut self) -> Parse<StmtKind> {
        let start = self.bump().span;
        let body = self.block()?;
        let catch = if self.eat(Kind::Catch) { Some(self.catch()?) } else { None };
        let finally = if self.eat(Kind::Finally) { Some(self.block()?) } else { None };
        if catch.is_none() && finally.is_none() {
            return Err(self.lone_try(start));
        }
        Ok(StmtKind::Try(Box::new(Try { body, catch, finally })))
    }

    fn lone_try(&mut self, start: Span) -> super::Reported {
        let problem = Diagnostic::error("syntax", start, "this try has neither catch nor finally");
        self.report(problem.help("add catch (error) { … } or finally { … }"))
    }

    fn catch(&mut self) -> Parse<Catch> {
        let scope = self.scope();
        let pattern = if self.eat(Kind::ParenOpen) {
            let pattern = self.pattern()?;
            self.expect(Kind::ParenClose, "`)`")?;
            Some(pattern)
        } else {
            None
        };
        Ok(Catch { pattern, body: self.block()?, scope })
    }

    #[inline(never)]
    pub(super) fn throw(&mut self) -> Parse<StmtKind> {
        self.bump();
        let token = self.token();
        if token.after_line_end || matches!(token.kind, Kind::Semicolon | Kind::BraceClose | Kind::End) {
            return Err(self.unexpected("what to throw, on the same line"));
        }
        let value = self.expression()?;
        self.end_of_statement()?;
        Ok(StmtKind::Throw(value))
    }

    #[inline(never)]
    pub(super) fn return_statement(&mut self) -> Parse<StmtKind> {
        self.bump();
        let token = self.token();
        let is_bare = token.after_line_end || matches!(token.kind, Kind::Semicolon | Kind::BraceClose | Kind::End);
        let value = if is_bare { None } else { Some(self.expression()?) };
        self.end_of_statement()?;
        Ok(StmtKind::Return(value))
    }
}
