//! Operands: literals, names, lists, objects, groups.

use std::sync::Arc;

use super::{Kind, Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind, Property};
use crate::syntax::literal;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parse<Expr> {
        match self.kind() {
            Kind::ParenOpen => self.group(),
            Kind::BracketOpen => self.list(),
            Kind::BraceOpen => self.object(),
            Kind::Backtick => self.template(),
            Kind::Function => self.function_expression(),
            Kind::Name if self.word_before("async", &[Kind::Function]) => self.function_expression(),
            _ => self.literal(),
        }
    }

    /// A literal or a name.
    #[inline(never)]
    fn literal(&mut self) -> Parse<Expr> {
        let token = self.token();
        let kind = match token.kind {
            Kind::Number => {
                self.bump();
                ExprKind::Number(self.number(token.span))
            }
            Kind::Text => {
                self.bump();
                ExprKind::Text(self.text_literal(token.span))
            }
            Kind::True | Kind::False => {
                self.bump();
                ExprKind::Bool(token.kind == Kind::True)
            }
            Kind::Null => {
                self.bump();
                ExprKind::Null
            }
            Kind::Name => {
                self.bump();
                ExprKind::Name(self.name_of(token))
            }
            _ => return Err(self.unexpected("a value")),
        };
        Ok(self.leaf(kind, token.span))
    }

    #[inline(never)]
    fn list(&mut self) -> Parse<Expr> {
        let start = self.bump().span;
        let elements = self.elements(Kind::BracketClose, "`,` or `]`")?;
        let height = elements.iter().map(|element| element.value.height).fold(0, u16::max);
        self.node(ExprKind::List(elements), start.to(self.last_span()), height)
    }

    #[inline(never)]
    fn group(&mut self) -> Parse<Expr> {
        let start = self.bump().span;
        let inner = self.inner_expression()?;
        if self.kind() == Kind::Comma {
            let problem = Diagnostic::error("syntax", self.here(), "there is no comma operator");
            return Err(self.report(problem.help("make a list with [ ], or write two statements")));
        }
        let end = self.expect(Kind::ParenClose, "`)`")?;
        let height = inner.height;
        self.node(ExprKind::Group(Box::new(inner)), start.to(end.span), height)
    }

    fn number(&mut self, span: Span) -> f64 {
        let text = self.slice(span);
        let next = self.token();
        if next.kind.is_word() && next.span.start == span.end {
            let problem = Diagnostic::error("bad_number", span.to(next.span), "a name cannot begin with a digit");
            self.report(problem.help("put a letter or _ before it; a text stands in quotes"));
            self.bump();
        }
        literal::number(text).unwrap_or_else(|| {
            let problem = Diagnostic::error("bad_number", span, format!("{text} is not a number"));
            let is_octal = text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
            self.report(problem.help(if is_octal {
                "write it without the zero in front"
            } else {
                "write 1000, 1_000, 0.5, 1e3 or 0xff"
            }));
            0.0
        })
    }

    /// The text of a literal with its quotes.
    pub(super) fn text_literal(&mut self, span: Span) -> Arc<str> {
        let quoted = self.slice(span);
        let quote = quoted.chars().next().unwrap_or('"');
        let body = &quoted[1..];
        // Where the closing quote is missing, that was reported.
        let body = body.strip_suffix(quote).unwrap_or(body);
        self.unescaped(body, span.start + 1)
    }

    fn unescaped(&mut self, body: &str, start: u32) -> Arc<str> {
        match literal::unescape(body) {
            Ok(text) => text.into(),
            Err(bad) => {
                let offset = |at: usize| start + u32::try_from(at).unwrap_or_default();
                let span = Span::new(offset(bad.at), offset(bad.at + bad.length));
                let problem = Diagnostic::error("bad_escape", span, bad.message);
                self.report(problem.help("write \\n, \\u00e9 or \\u{1f600}; a backslash itself is \\\\"));
                "".into()
            }
        }
    }

    #[inline(never)]
    fn template(&mut self) -> Parse<Expr> {
        let start = self.bump().span;
        let (mut texts, mut holes, mut height) = (Vec::new(), Vec::new(), 0);
        loop {
            let text = self.expect(Kind::TemplateText, "the text of a template")?;
            let body = self.slice(text.span);
            texts.push(self.unescaped(body, text.span.start));
            if self.eat(Kind::TemplateEnd) {
                break;
            }
            self.expect(Kind::TemplateOpen, "a value in the template")?;
            let hole = self.inner_expression()?;
            height = height.max(hole.height);
            holes.push(hole);
            self.expect(Kind::TemplateClose, "`}` after the value in the template")?;
        }
        self.node(ExprKind::Template { texts, holes }, start.to(self.last_span()), height)
    }

    #[inline(never)]
    fn object(&mut self) -> Parse<Expr> {
        let start = self.bump().span;
        let (mut properties, mut height) = (Vec::new(), 0);
        while !self.eat(Kind::BraceClose) {
            let property = self.property()?;
            height = height.max(match &property {
                Property::Named { value, .. } | Property::Spread(value) => value.height,
                Property::Computed { key, value } => key.height.max(value.height),
                Property::Shorthand { default, .. } => default.as_ref().map_or(1, |default| default.height),
            });
            properties.push(property);
            if self.kind() != Kind::BraceClose {
                self.expect(Kind::Comma, "`,` or `}`")?;
            }
        }
        self.node(ExprKind::Object(properties), start.to(self.last_span()), height)
    }

    fn property(&mut self) -> Parse<Property> {
        match self.kind() {
            Kind::Ellipsis => {
                self.bump();
                self.inner_expression().map(Property::Spread)
            }
            Kind::BracketOpen => self.computed_property(),
            Kind::Name if matches!(self.ahead(1), Kind::Comma | Kind::BraceClose | Kind::Equals) => self.shorthand(),
            _ => self.named_property(),
        }
    }

    #[inline(never)]
    fn computed_property(&mut self) -> Parse<Property> {
        self.bump();
        let key = self.inner_expression()?;
        self.expect(Kind::BracketClose, "`]`")?;
        self.expect(Kind::Colon, "`:` and the property's value")?;
        Ok(Property::Computed { key, value: self.inner_expression()? })
    }

    #[inline(never)]
    fn shorthand(&mut self) -> Parse<Property> {
        let token = self.bump();
        let name = self.name_of(token);
        let default = if self.eat(Kind::Equals) { Some(self.inner_expression()?) } else { None };
        Ok(Property::Shorthand { name, default })
    }

    #[inline(never)]
    fn named_property(&mut self) -> Parse<Property> {
        let span = self.here();
        let is_key = |kind: Kind| kind.is_word() || matches!(kind, Kind::Text | Kind::Number);
        let says_async = self.is_word(0, "async") && is_key(self.ahead(1));
        if says_async {
            self.bump();
        }
        let name = self.property_key()?;
        let value = if says_async || self.kind() == Kind::ParenOpen {
            self.method(span, says_async)?
        } else {
            self.expect(Kind::Colon, "`:` and the property's value")?;
            self.inner_expression()?
        };
        Ok(Property::Named { name, span, value })
    }

    /// A property's name where it is not computed: a word, a text or a number.
    #[inline(never)]
    pub(super) fn property_key(&mut self) -> Parse<Arc<str>> {
        let token = self.token();
        match token.kind {
            Kind::Text => {
                self.bump();
                Ok(self.text_literal(token.span))
            }
            Kind::Number => {
                self.bump();
                let value = self.number(token.span);
                Ok(crate::number::to_text(value).into())
            }
            kind if kind.is_word() => {
                self.bump();
                let text = self.slice(token.span);
                Ok(self.word(text))
            }
            _ => Err(self.unexpected("a property")),
        }
    }
}
