//! Patterns: what a declaration, a parameter or an assignment takes apart.

use super::{Kind, Parse, Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Element, Expr, ExprKind, Pattern, PatternItem, PatternKind, PatternProperty, Property};

impl Parser<'_> {
    /// A pattern that declares names.
    pub(super) fn pattern(&mut self) -> Parse<Pattern> {
        self.nested(|parser| match parser.kind() {
            Kind::BracketOpen => parser.list_pattern(),
            Kind::BraceOpen => parser.object_pattern(),
            _ => {
                let name = parser.name("a name")?;
                let span = name.span;
                Ok(Pattern { kind: PatternKind::Name(name), span })
            }
        })
    }

    /// A pattern with its default.
    pub(super) fn pattern_item(&mut self) -> Parse<PatternItem> {
        let pattern = self.pattern()?;
        let default = if self.eat(Kind::Equals) { Some(self.inner_expression()?) } else { None };
        Ok(PatternItem { pattern, default })
    }

    fn list_pattern(&mut self) -> Parse<Pattern> {
        let start = self.bump().span;
        let (mut items, mut rest) = (Vec::new(), None);
        while !self.eat(Kind::BracketClose) {
            if self.eat(Kind::Comma) {
                items.push(None);
                continue;
            }
            if self.eat(Kind::Ellipsis) {
                rest = Some(Box::new(self.pattern()?));
                self.expect(Kind::BracketClose, "`]` after the rest")?;
                break;
            }
            items.push(Some(self.pattern_item()?));
            if self.kind() != Kind::BracketClose {
                self.expect(Kind::Comma, "`,` or `]`")?;
            }
        }
        Ok(Pattern { kind: PatternKind::List { items, rest }, span: start.to(self.last_span()) })
    }

    fn object_pattern(&mut self) -> Parse<Pattern> {
        let start = self.bump().span;
        let (mut properties, mut rest) = (Vec::new(), None);
        while !self.eat(Kind::BraceClose) {
            if self.eat(Kind::Ellipsis) {
                rest = Some(Box::new(self.pattern()?));
                self.expect(Kind::BraceClose, "`}` after the rest")?;
                break;
            }
            properties.push(self.pattern_property()?);
            if self.kind() != Kind::BraceClose {
                self.expect(Kind::Comma, "`,` or `}`")?;
            }
        }
        Ok(Pattern { kind: PatternKind::Object { properties, rest }, span: start.to(self.last_span()) })
    }

    fn pattern_property(&mut self) -> Parse<PatternProperty> {
        let token = self.token();
        let shorthand = token.kind == Kind::Name && self.ahead(1) != Kind::Colon;
        if shorthand {
            let item = self.pattern_item()?;
            let text = self.slice(token.span);
            return Ok(PatternProperty { key: self.word(text), item, shorthand });
        }
        let key = self.property_key()?;
        self.expect(Kind::Colon, "`:` and the name it gets")?;
        Ok(PatternProperty { key, item: self.pattern_item()?, shorthand })
    }

    /// What stands left of `=`, read as an expression, as the pattern it is.
    pub(super) fn pattern_from(&mut self, expr: Expr) -> Parse<Pattern> {
        let span = expr.span;
        let kind = match expr.kind {
            ExprKind::Name(name) => PatternKind::Name(name),
            ExprKind::Member { optional: false, .. } | ExprKind::Index { optional: false, .. } => {
                PatternKind::Place(Box::new(expr))
            }
            ExprKind::Group(inner) if !matches!(inner.bare().kind, ExprKind::List(_) | ExprKind::Object(_)) => {
                return self.pattern_from(*inner);
            }
            ExprKind::List(elements) => self.list_to_pattern(elements)?,
            ExprKind::Object(properties) => self.object_to_pattern(properties)?,
            _ => return Err(self.not_assignable(span)),
        };
        Ok(Pattern { kind, span })
    }

    fn not_assignable(&mut self, span: Span) -> Reported {
        let problem = Diagnostic::error("bad_assignment", span, "this cannot be assigned to");
        self.report(problem.help("assign to a variable, a property or an element; to compare, write =="))
    }

    fn list_to_pattern(&mut self, elements: Vec<Element>) -> Parse<PatternKind> {
        let (mut items, mut rest, count) = (Vec::new(), None, elements.len());
        for (place, Element { value, spread }) in elements.into_iter().enumerate() {
            if !spread {
                items.push(Some(self.item_from(value)?));
            } else if place + 1 == count {
                rest = Some(Box::new(self.pattern_from(value)?));
            } else {
                return Err(self.not_assignable(value.span));
            }
        }
        Ok(PatternKind::List { items, rest })
    }

    fn object_to_pattern(&mut self, list: Vec<Property>) -> Parse<PatternKind> {
        let (mut properties, mut rest, count) = (Vec::new(), None, list.len());
        for (place, property) in list.into_iter().enumerate() {
            properties.push(match property {
                Property::Named { name, value, .. } => {
                    PatternProperty { key: name, item: self.item_from(value)?, shorthand: false }
                }
                Property::Shorthand { name, default } => {
                    let (key, span) = (name.text.clone(), name.span);
                    let pattern = Pattern { kind: PatternKind::Name(name), span };
                    PatternProperty { key, item: PatternItem { pattern, default }, shorthand: true }
                }
                Property::Spread(value) if place + 1 == count => {
                    rest = Some(Box::new(self.pattern_from(value)?));
                    continue;
                }
                Property::Spread(value) | Property::Computed { key: value, .. } => {
                    return Err(self.not_assignable(value.span));
                }
            });
        }
        Ok(PatternKind::Object { properties, rest })
    }

    /// `target = default`, read as an assignment.
    fn item_from(&mut self, expr: Expr) -> Parse<PatternItem> {
        match expr.kind {
            ExprKind::Assign { op: crate::syntax::ast::AssignOp::Plain, target, value } => {
                Ok(PatternItem { pattern: *target, default: Some(*value) })
            }
            _ => Ok(PatternItem { pattern: self.pattern_from(expr)?, default: None }),
        }
    }
}
