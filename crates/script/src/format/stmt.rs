//! Statements.

use super::Formatter;
use super::comments::Comments;
use super::doc::{Doc, concat, text};
use crate::syntax::ast::{Block, DeclareKind, Expr, For, ForEach, Stmt, StmtKind, Switch, Try};

impl Formatter<'_> {
    /// The statements between two places, each on lines of its own.
    pub(super) fn statements(&mut self, statements: &[Stmt], from: u32, to: u32) -> Doc {
        let mut parts: Vec<Doc> = Vec::new();
        let mut last_end = from;
        let statements: Vec<&Stmt> = statements.iter().filter(|stmt| !matches!(stmt.kind, StmtKind::Empty)).collect();
        for (place, statement) in statements.iter().enumerate() {
            let following = statements.get(place + 1).map_or(to, |next| next.span.start);
            let leading = self.comments.before(statement.span.start);
            let start = Comments::span_of(&leading).map_or(statement.span.start, |span| span.start);
            let doc = self.statement(statement);
            // What stands inside and has no place of its own goes before the statement.
            let inside = self.comments.before(statement.span.end);
            let trailing = self.comments.trailing(statement.span.end, following);
            if !parts.is_empty() {
                parts.push(Doc::Hard);
                if self.comments.has_blank(last_end, start) {
                    parts.push(Doc::Hard);
                }
            }
            parts.push(self.comment_lines(&leading, statement.span.start));
            parts.push(self.comments.lines(&inside));
            if place > 0 && begins_dangerously(statement, &doc) {
                parts.push(text(";"));
            }
            parts.push(doc);
            for comment in &trailing {
                parts.push(text(" "));
                parts.push(self.comments.doc(*comment));
            }
            last_end = Comments::span_of(&trailing).map_or(statement.span.end, |span| span.end);
        }
        let rest = self.comments.before(to);
        if let Some(span) = Comments::span_of(&rest) {
            if !parts.is_empty() {
                parts.push(Doc::Hard);
                if self.comments.has_blank(last_end, span.start) {
                    parts.push(Doc::Hard);
                }
            }
            parts.push(self.comment_block(&rest));
        }
        concat(parts)
    }

    /// Comments before something, with the blank lines between them.
    fn comment_lines(&self, comments: &[crate::syntax::Comment], before: u32) -> Doc {
        let mut parts = Vec::new();
        for (place, comment) in comments.iter().enumerate() {
            let next = comments.get(place + 1).map_or(before, |next| next.span.start);
            parts.push(self.comments.doc(*comment));
            parts.push(Doc::Hard);
            if self.comments.has_blank(comment.span.end, next) {
                parts.push(Doc::Hard);
            }
        }
        concat(parts)
    }

    /// Comments after everything else in a block.
    fn comment_block(&self, comments: &[crate::syntax::Comment]) -> Doc {
        let mut parts = Vec::new();
        for (place, comment) in comments.iter().enumerate() {
            if place > 0 {
                parts.push(Doc::Hard);
                if self.comments.has_blank(comments[place - 1].span.end, comment.span.start) {
                    parts.push(Doc::Hard);
                }
            }
            parts.push(self.comments.doc(*comment));
        }
        concat(parts)
    }

    pub(super) fn block(&mut self, block: &Block) -> Doc {
        let inner = self.statements(&block.statements, block.span.start + 1, block.span.end - 1);
        match &inner {
            Doc::Concat(parts) if parts.is_empty() => text("{}"),
            _ => concat([text("{"), concat([Doc::Hard, inner]).indent(), Doc::Hard, text("}")]),
        }
    }

    fn statement(&mut self, statement: &Stmt) -> Doc {
        match &statement.kind {
            StmtKind::Declare { .. } | StmtKind::Expr(_) => self.simple(&statement.kind),
            StmtKind::Function(function) | StmtKind::Workflow(function) => self.function(function),
            StmtKind::If { branches, otherwise } => self.if_statement(branches, otherwise.as_deref()),
            StmtKind::While { test, body } => {
                let head = concat([text("while ("), self.expr(test), text(")")]);
                concat([head, self.body(body)])
            }
            StmtKind::DoWhile { body, test } => {
                let body = self.body(body);
                concat([text("do"), body, text(" while ("), self.expr(test), text(")")])
            }
            StmtKind::For(parts) => self.for_loop(parts),
            StmtKind::ForEach(parts) => self.for_each(parts),
            StmtKind::Switch(switch) => self.switch(switch, statement.span.end),
            StmtKind::Break => text("break"),
            StmtKind::Continue => text("continue"),
            StmtKind::Try(parts) => self.try_statement(parts),
            StmtKind::Throw(value) => concat([text("throw "), self.expr(value)]),
            StmtKind::Return(None) => text("return"),
            StmtKind::Return(Some(value)) => concat([text("return "), self.expr(value)]),
            StmtKind::Block(block) => self.block(block),
            StmtKind::Empty => Doc::empty(),
        }
    }

    /// What may also stand at the beginning of a `for`.
    fn simple(&mut self, kind: &StmtKind) -> Doc {
        match kind {
            StmtKind::Declare { kind, list } => {
                let mut parts = vec![text(match kind {
                    DeclareKind::Let => "let ",
                    DeclareKind::Const => "const ",
                })];
                for (place, declarator) in list.iter().enumerate() {
                    if place > 0 {
                        parts.push(text(", "));
                    }
                    parts.push(self.pattern(&declarator.pattern));
                    if let Some(value) = &declarator.value {
                        parts.push(text(" = "));
                        parts.push(self.expr(value));
                    }
                }
                concat(parts)
            }
            StmtKind::Expr(expr) => self.expr(expr),
            _ => Doc::empty(),
        }
    }

    /// The body of a loop or branch: a block, or a statement on the same line.
    fn body(&mut self, body: &Stmt) -> Doc {
        match &body.kind {
            StmtKind::Block(block) => concat([text(" "), self.block(block)]),
            StmtKind::Empty => text(" {}"),
            _ => concat([text(" "), self.statement(body)]),
        }
    }

    fn if_statement(&mut self, branches: &[(Expr, Stmt)], otherwise: Option<&Stmt>) -> Doc {
        let mut parts = Vec::new();
        let mut after_block = false;
        for (place, (test, body)) in branches.iter().enumerate() {
            if place > 0 {
                parts.push(if after_block { text(" else ") } else { concat([Doc::Hard, text("else ")]) });
            }
            parts.push(concat([text("if ("), self.expr(test), text(")")]));
            parts.push(self.body(body));
            after_block = matches!(body.kind, StmtKind::Block(_) | StmtKind::Empty);
        }
        if let Some(otherwise) = otherwise {
            parts.push(if after_block { text(" else") } else { concat([Doc::Hard, text("else")]) });
            parts.push(self.body(otherwise));
        }
        concat(parts)
    }

    fn for_loop(&mut self, parts: &For) -> Doc {
        let mut head = vec![text("for (")];
        if let Some(init) = &parts.init {
            head.push(self.simple(&init.kind));
        }
        head.push(text(";"));
        if let Some(test) = &parts.test {
            head.push(text(" "));
            head.push(self.expr(test));
        }
        head.push(text(";"));
        for (place, update) in parts.update.iter().enumerate() {
            head.push(text(if place > 0 { ", " } else { " " }));
            head.push(self.expr(update));
        }
        head.push(text(")"));
        head.push(self.body(&parts.body));
        concat(head)
    }

    fn for_each(&mut self, parts: &ForEach) -> Doc {
        let word = match parts.declare {
            Some(DeclareKind::Let) => "for (let ",
            Some(DeclareKind::Const) => "for (const ",
            None => "for (",
        };
        let pattern = self.pattern(&parts.pattern);
        let over = text(if parts.over_keys { " in " } else { " of " });
        let list = self.expr(&parts.list);
        concat([text(word), pattern, over, list, text(")"), self.body(&parts.body)])
    }

    fn switch(&mut self, switch: &Switch, end: u32) -> Doc {
        let mut parts = vec![text("switch ("), self.expr(&switch.subject), text(") {")];
        let mut cases = Vec::new();
        for (place, (test, body, span)) in switch.cases.iter().enumerate() {
            let following = switch.cases.get(place + 1).map_or(end - 1, |(_, _, span)| span.start);
            let leading = self.comments.before(span.start);
            cases.push(Doc::Hard);
            cases.push(self.comments.lines(&leading));
            match test {
                Some(test) => cases.push(concat([text("case "), self.expr(test), text(":")])),
                None => cases.push(text("default:")),
            }
            let from = test.as_ref().map_or(span.start + 7, |test| test.span.end + 1);
            let body = self.statements(body, from, following);
            if !matches!(&body, Doc::Concat(parts) if parts.is_empty()) {
                cases.push(concat([Doc::Hard, body]).indent());
            }
        }
        parts.push(concat(cases).indent());
        parts.push(Doc::Hard);
        parts.push(text("}"));
        concat(parts)
    }

    fn try_statement(&mut self, parts: &Try) -> Doc {
        let mut docs = vec![text("try "), self.block(&parts.body)];
        if let Some(catch) = &parts.catch {
            docs.push(text(" catch "));
            if let Some(pattern) = &catch.pattern {
                docs.push(concat([text("("), self.pattern(pattern), text(") ")]));
            }
            docs.push(self.block(&catch.body));
        }
        if let Some(finally) = &parts.finally {
            docs.push(text(" finally "));
            docs.push(self.block(finally));
        }
        concat(docs)
    }
}

/// Whether a statement, as it is written, would be taken for a part of the line before it.
fn begins_dangerously(statement: &Stmt, doc: &Doc) -> bool {
    let first = doc.first();
    matches!(statement.kind, StmtKind::Expr(_)) && first.is_some_and(|first| "([`+-/".contains(first))
}
