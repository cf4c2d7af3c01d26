//! Taking values apart.

use super::Compiler;
use crate::code::Op;
use crate::syntax::ast::{Expr, ExprKind, Pattern, PatternItem, PatternKind, PatternProperty};

impl Compiler<'_> {
    /// Stores the value on top as the pattern says, and drops it.
    pub(super) fn bind(&mut self, pattern: &Pattern, declares: bool) {
        match &pattern.kind {
            PatternKind::Name(name) => match self.variable_of(name) {
                Some(id) => self.store(id, declares),
                None => {
                    self.emit(Op::Pop);
                }
            },
            PatternKind::Place(place) => self.bind_place(place),
            PatternKind::List { items, rest } => self.bind_list(pattern, items, rest.as_deref(), declares),
            PatternKind::Object { properties, rest } => {
                self.bind_object(pattern, properties, rest.as_deref(), declares)
            }
        }
    }

    fn bind_place(&mut self, place: &Expr) {
        match &place.bare().kind {
            ExprKind::Member { object, name, .. } => {
                self.expr(object);
                self.emit(Op::Swap);
                let name = self.text(name);
                self.at(place.span, |compiler| compiler.emit(Op::SetMember(name)));
            }
            ExprKind::Index { object, index, .. } => {
                self.expr(object);
                self.expr(index);
                self.emit(Op::Rot3);
                self.at(place.span, |compiler| compiler.emit(Op::SetIndex));
            }
            _ => {}
        }
        self.emit(Op::Pop);
    }

    fn bind_list(&mut self, pattern: &Pattern, items: &[Option<PatternItem>], rest: Option<&Pattern>, declares: bool) {
        self.at(pattern.span, |compiler| compiler.emit(Op::CheckList));
        for (place, item) in items.iter().enumerate() {
            if let Some(item) = item {
                self.emit(Op::Dup);
                self.emit(Op::Element(super::number(place)));
                self.bind_item(item, declares);
            }
        }
        if let Some(rest) = rest {
            self.emit(Op::Dup);
            self.emit(Op::RestOfList(super::number(items.len())));
            self.bind(rest, declares);
        }
        self.emit(Op::Pop);
    }

    fn bind_object(
        &mut self,
        pattern: &Pattern,
        properties: &[PatternProperty],
        rest: Option<&Pattern>,
        declares: bool,
    ) {
        self.at(pattern.span, |compiler| compiler.emit(Op::CheckObject));
        for property in properties {
            self.emit(Op::Dup);
            let key = self.text(&property.key);
            self.emit(Op::Member(key));
            self.bind_item(&property.item, declares);
        }
        if let Some(rest) = rest {
            self.emit(Op::Dup);
            for property in properties {
                let key = self.text(&property.key);
                self.emit(Op::Text(key));
            }
            self.emit(Op::RestOfObject(super::number(properties.len())));
            self.bind(rest, declares);
        }
        self.emit(Op::Pop);
    }

    fn bind_item(&mut self, item: &PatternItem, declares: bool) {
        if let Some(default) = &item.default {
            self.default(default);
        }
        self.bind(&item.pattern, declares);
    }

    /// Replaces a null on top.
    pub(super) fn default(&mut self, default: &Expr) {
        let there = self.jump(Op::DefaultJump);
        self.expr(default);
        self.land(there);
    }
}
