//! Expressions.

use super::Formatter;
use super::doc::{Doc, concat, text};
use super::function::{bracketed, key};
use crate::source::Span;
use crate::syntax::Comment;
use crate::syntax::ast::{
    AssignOp, BinaryOp, Call, Element, Expr, ExprKind, LogicalOp, Pattern, Property, UnaryOp, UpdateOp,
};

#[inline(never)]
fn joined(first: Doc, second: Doc, third: Doc) -> Doc {
    concat([first, second, third])
}

#[inline(never)]
fn with_sign(left: Doc, sign: &str, right: Doc) -> Doc {
    let rest = concat([text(format!(" {sign}")), Doc::Line, right]);
    concat([left, rest.indent()]).group()
}

#[inline(never)]
fn indexed(object: Doc, index: Doc, optional: bool) -> Doc {
    concat([object, text(if optional { "?.[" } else { "[" }), index, text("]")])
}

impl Formatter<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Doc {
        match &expr.kind {
            ExprKind::Null | ExprKind::Bool(_) | ExprKind::Number(_) => text(self.slice(expr.span)),
            ExprKind::Text(_) => text(quoted(self.slice(expr.span))),
            ExprKind::Template { .. } => {
                // As it is: every character of it counts, and what is inside its holes is taken along.
                self.comments.before(expr.span.end);
                text(self.slice(expr.span))
            }
            ExprKind::Name(name) => text(name.text.to_string()),
            ExprKind::List(elements) => self.elements("[", elements, "]", expr.span),
            ExprKind::Object(properties) => self.object(properties, expr.span),
            ExprKind::Function(function) => self.function(function),
            ExprKind::Unary { op, operand } => self.unary(*op, operand),
            ExprKind::Binary { op, left, right } => self.infix(left, binary(*op), right),
            ExprKind::Logical { op, left, right } => self.infix(left, logical(*op), right),
            ExprKind::Conditional { test, then, otherwise } => self.conditional(test, then, otherwise),
            ExprKind::Assign { op, target, value } => self.assignment(*op, target, value),
            ExprKind::Update { op, is_prefix, target } => self.update(*op, *is_prefix, target),
            ExprKind::Await(operand) => self.around("await ", operand, ""),
            ExprKind::Delete(operand) => self.around("delete ", operand, ""),
            ExprKind::Call(call) => self.call(call, expr.span),
            ExprKind::Member { object, name, name_span, optional } => self.member(object, name, *name_span, *optional),
            ExprKind::Index { object, index, optional } => {
                let object = self.expr(object);
                let index = self.expr(index);
                indexed(object, index, *optional)
            }
            ExprKind::Chain(inner) => self.expr(inner),
            ExprKind::Group(inner) => match &inner.kind {
                ExprKind::Group(_) => self.expr(inner),
                _ => self.around("(", inner, ")"),
            },
        }
    }

    // Each in a frame of its own, and what joins the parts in another: expressions nest deep, and stacks are small.

    #[inline(never)]
    fn around(&mut self, before: &str, operand: &Expr, after: &str) -> Doc {
        let operand = self.expr(operand);
        joined(text(before), operand, text(after))
    }

    #[inline(never)]
    fn conditional(&mut self, test: &Expr, then: &Expr, otherwise: &Expr) -> Doc {
        let test = self.expr(test);
        let then = self.expr(then);
        let otherwise = self.expr(otherwise);
        let rest = concat([Doc::Line, text("? "), then, Doc::Line, text(": "), otherwise]);
        concat([test, rest.indent()]).group()
    }

    #[inline(never)]
    fn assignment(&mut self, op: AssignOp, target: &Pattern, value: &Expr) -> Doc {
        let target = self.pattern(target);
        let value = self.expr(value);
        joined(target, text(assign(op)), value)
    }

    #[inline(never)]
    fn update(&mut self, op: UpdateOp, is_prefix: bool, target: &Pattern) -> Doc {
        let sign = text(match op {
            UpdateOp::Increment => "++",
            UpdateOp::Decrement => "--",
        });
        let target = self.pattern(target);
        if is_prefix { concat([sign, target]) } else { concat([target, sign]) }
    }

    #[inline(never)]
    fn member(&mut self, object: &Expr, name: &str, name_span: Span, optional: bool) -> Doc {
        let broken = self.has_line_end(object.span.end, name_span.start);
        let is_number = matches!(object.kind, ExprKind::Number(_));
        let object = self.expr(object);
        // 2.x would be a number with letters.
        let object = if is_number { joined(text("("), object, text(")")) } else { object };
        let member = text(format!("{}{name}", if optional { "?." } else { "." }));
        // Whoever breaks a chain of calls means it.
        let member = if broken { concat([Doc::Hard, member]).indent() } else { member };
        joined(object, member, Doc::empty())
    }

    #[inline(never)]
    fn unary(&mut self, op: UnaryOp, operand: &Expr) -> Doc {
        let sign = match op {
            UnaryOp::Not => "!",
            UnaryOp::Minus => "-",
            UnaryOp::Plus => "+",
            UnaryOp::Typeof => "typeof ",
        };
        // - -x must not become --x.
        let clashes = match &operand.kind {
            ExprKind::Unary { op: inner, .. } => *inner == op && matches!(op, UnaryOp::Minus | UnaryOp::Plus),
            ExprKind::Update { is_prefix: true, op: inner, .. } => {
                matches!((op, inner), (UnaryOp::Minus, UpdateOp::Decrement) | (UnaryOp::Plus, UpdateOp::Increment))
            }
            _ => false,
        };
        let operand = self.expr(operand);
        joined(text(sign), text(if clashes { " " } else { "" }), operand)
    }

    #[inline(never)]
    fn infix(&mut self, left: &Expr, sign: &str, right: &Expr) -> Doc {
        let left = self.expr(left);
        let right = self.expr(right);
        with_sign(left, sign, right)
    }

    #[inline(never)]
    fn call(&mut self, call: &Call, span: Span) -> Doc {
        let callee = self.expr(&call.callee);
        let before = text(if call.is_new { "new " } else { "" });
        let open = if call.optional { "?.(" } else { "(" };
        let args_start = call.callee.span.end;
        let last_hugs = call.args.last().is_some_and(|last| hugs(&last.value));
        let others_plain = call.args.iter().rev().skip(1).all(|arg| is_short(&arg.value));
        if last_hugs
            && others_plain
            && !self.comments.any_before(call.args.last().map_or(0, |last| last.value.span.start))
        {
            let mut parts = vec![before, callee, text(open)];
            for (place, arg) in call.args.iter().enumerate() {
                if place > 0 {
                    parts.push(text(", "));
                }
                parts.push(self.element(arg));
            }
            parts.push(text(")"));
            return concat(parts);
        }
        concat([before, callee, self.elements(open, &call.args, ")", Span::new(args_start, span.end))])
    }

    fn element(&mut self, element: &Element) -> Doc {
        let value = self.expr(&element.value);
        if element.spread { concat([text("..."), value]) } else { value }
    }

    #[inline(never)]
    fn elements(&mut self, open: &str, elements: &[Element], close: &str, span: Span) -> Doc {
        let starts: Vec<u32> = elements.iter().map(|element| element.value.span.start).collect();
        let mut items = Items::default();
        for (place, element) in elements.iter().enumerate() {
            let leading = self.comments.before(element.value.span.start);
            let doc = self.element(element);
            let following = starts.get(place + 1).copied().unwrap_or(span.end.saturating_sub(1));
            let trailing = self.comments.trailing(element.value.span.end, following);
            items.push(self, &leading, doc, &trailing);
        }
        items.finish(self, open, close, false, span.end.saturating_sub(1))
    }

    #[inline(never)]
    fn object(&mut self, properties: &[Property], span: Span) -> Doc {
        let mut items = Items::default();
        let starts: Vec<u32> = properties.iter().map(property_start).collect();
        // Whoever puts the first property on a line of its own means it.
        items.is_broken = starts.first().is_some_and(|first| self.has_line_end(span.start, *first));
        for (place, property) in properties.iter().enumerate() {
            let leading = self.comments.before(starts[place]);
            let doc = self.property(property);
            let following = starts.get(place + 1).copied().unwrap_or(span.end.saturating_sub(1));
            let trailing = self.comments.trailing(property_end(property), following);
            items.push(self, &leading, doc, &trailing);
        }
        items.finish(self, "{", "}", true, span.end.saturating_sub(1))
    }

    #[inline(never)]
    fn property(&mut self, property: &Property) -> Doc {
        match property {
            Property::Named { name, span, value } => {
                let is_method = matches!(&value.kind, ExprKind::Function(function)
                    if function.name.is_none() && value.span.start == span.start);
                if let (true, ExprKind::Function(function)) = (is_method, &value.kind) {
                    let method = self.method(function);
                    let word = if function.says_async { "async " } else { "" };
                    return concat([text(word), text(key(name)), method]);
                }
                let value = self.expr(value);
                concat([text(key(name)), text(": "), value])
            }
            Property::Computed { key, value } => {
                let key = self.expr(key);
                concat([text("["), key, text("]: "), self.expr(value)])
            }
            Property::Shorthand { name, default } => {
                let name_doc = text(name.text.to_string());
                match default {
                    Some(default) => concat([name_doc, text(" = "), self.expr(default)]),
                    None => name_doc,
                }
            }
            Property::Spread(value) => concat([text("..."), self.expr(value)]),
        }
    }
}

/// What stands between brackets, with the comments around each item. Comments put every item on a line of its own.
#[derive(Default)]
struct Items {
    list: Vec<(Doc, Doc, Doc)>,
    is_broken: bool,
}

impl Items {
    fn push(&mut self, formatter: &Formatter<'_>, leading: &[Comment], doc: Doc, trailing: &[Comment]) {
        self.is_broken |= !leading.is_empty() || !trailing.is_empty();
        let trailing = trailing.iter().flat_map(|comment| [text(" "), formatter.comments.doc(*comment)]);
        self.list.push((formatter.comments.lines(leading), doc, concat(trailing)));
    }

    fn finish(self, formatter: &mut Formatter<'_>, open: &str, close: &str, spaced: bool, end: u32) -> Doc {
        let rest = formatter.comments.before(end);
        if !self.is_broken && rest.is_empty() {
            let list = self.list.into_iter().map(|(_, doc, _)| doc).collect();
            return bracketed(open, list, close, spaced, true);
        }
        let items = self.list.into_iter().flat_map(|(lead, doc, trail)| [Doc::Hard, lead, doc, text(","), trail]);
        let rest = rest.into_iter().flat_map(|comment| [Doc::Hard, formatter.comments.doc(comment)]);
        let lines: Vec<Doc> = items.chain(rest).collect();
        concat([text(open), concat(lines).indent(), Doc::Hard, text(close)])
    }
}

fn property_start(property: &Property) -> u32 {
    match property {
        Property::Named { span, .. } => span.start,
        Property::Computed { key, .. } => key.span.start.saturating_sub(1),
        Property::Shorthand { name, .. } => name.span.start,
        Property::Spread(value) => value.span.start.saturating_sub(3),
    }
}

fn property_end(property: &Property) -> u32 {
    match property {
        Property::Named { value, .. } | Property::Computed { value, .. } | Property::Spread(value) => value.span.end,
        Property::Shorthand { name, default } => default.as_ref().map_or(name.span.end, |default| default.span.end),
    }
}

/// Whether an argument may stay beside its parentheses however long it is.
fn hugs(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Function(function) => function.value.is_none(),
        ExprKind::Object(properties) => !properties.is_empty(),
        ExprKind::List(elements) => !elements.is_empty(),
        _ => false,
    }
}

fn is_short(expr: &Expr) -> bool {
    const CHARS_MAX: u32 = 50;
    chars(expr).is_some_and(|chars| chars <= CHARS_MAX)
}

/// About how many characters an expression takes, however it is laid out now; none for what has lines of its own.
fn chars(expr: &Expr) -> Option<u32> {
    let both = |left: &Expr, right: &Expr| Some(chars(left)? + chars(right)? + 4);
    match &expr.kind {
        ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number(_)
        | ExprKind::Text(_)
        | ExprKind::Name(_)
        | ExprKind::Template { .. } => Some(expr.span.end - expr.span.start),
        ExprKind::Unary { operand: inner, .. }
        | ExprKind::Await(inner)
        | ExprKind::Delete(inner)
        | ExprKind::Chain(inner)
        | ExprKind::Group(inner) => Some(chars(inner)? + 2),
        ExprKind::Member { object, name_span, .. } => Some(chars(object)? + name_span.end - name_span.start + 1),
        ExprKind::Index { object: left, index: right, .. }
        | ExprKind::Binary { left, right, .. }
        | ExprKind::Logical { left, right, .. } => both(left, right),
        ExprKind::Call(call) => {
            let args: Option<Vec<u32>> = call.args.iter().map(|arg| chars(&arg.value)).collect();
            Some(chars(&call.callee)? + args?.into_iter().map(|arg| arg + 2).sum::<u32>())
        }
        ExprKind::List(_)
        | ExprKind::Object(_)
        | ExprKind::Function(_)
        | ExprKind::Conditional { .. }
        | ExprKind::Assign { .. }
        | ExprKind::Update { .. } => None,
    }
}

/// With double quotes, unless the text has some.
fn quoted(raw: &str) -> String {
    match raw.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(body) if !body.contains(['"', '\\']) => format!("\"{body}\""),
        Some(_) | None => raw.to_owned(),
    }
}

fn assign(op: AssignOp) -> String {
    match op {
        AssignOp::Plain => " = ".to_owned(),
        AssignOp::Binary(op) => format!(" {}= ", binary(op)),
        AssignOp::Logical(op) => format!(" {}= ", logical(op)),
    }
}

fn logical(op: LogicalOp) -> &'static str {
    match op {
        LogicalOp::And => "&&",
        LogicalOp::Or => "||",
        LogicalOp::Coalesce => "??",
    }
}

fn binary(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Remainder => "%",
        BinaryOp::Power => "**",
        BinaryOp::Same => "==",
        BinaryOp::NotSame => "!=",
        BinaryOp::Less => "<",
        BinaryOp::LessEquals => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterEquals => ">=",
        BinaryOp::In => "in",
        BinaryOp::Instanceof => "instanceof",
    }
}
