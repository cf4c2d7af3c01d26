//! Expressions: prefix and postfix operators, calls, members. A Pratt parser: binding powers decide what belongs together.

use super::infix::Infix;
use super::{Kind, Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{AssignOp, BinaryOp, Call, Element, Expr, ExprKind, UnaryOp, UpdateOp};

/// How strongly prefix operators bind: more than any infix operator. `-2 ** 2` is refused, as in JavaScript.
const PREFIX_POWER: u8 = 34;

// Expressions inside of expressions go through all of these again and again. What is not on that way is kept out of their
// frames, so that the deepest script fits on a small stack.
impl<'t> Parser<'t> {
    /// An expression, assignments included.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.nested(|parser| parser.assignment())
    }

    /// An expression in which `in` is the operator again, whatever is around it.
    pub(super) fn inner_expression(&mut self) -> Parse<Expr> {
        let no_in = std::mem::replace(&mut self.no_in, false);
        let result = self.expression();
        self.no_in = no_in;
        result
    }

    fn assignment(&mut self) -> Parse<Expr> {
        if self.starts_arrow() {
            return self.arrow_function();
        }
        let left = self.operators(0)?;
        match assign_op(self.kind()) {
            Some(op) => self.assigned(left, op),
            None => Ok(left),
        }
    }

    #[inline(never)]
    fn assigned(&mut self, left: Expr, op: AssignOp) -> Parse<Expr> {
        let at = self.bump();
        let destructures = matches!(left.bare().kind, ExprKind::List(_) | ExprKind::Object(_));
        if destructures && op != AssignOp::Plain {
            let message = "a pattern takes a plain = only";
            return Err(self.report(Diagnostic::error("bad_assignment", at.span, message)));
        }
        let below = left.height;
        let target = self.pattern_from(left)?;
        let value = self.expression()?;
        let (span, height) = (target.span.to(value.span), value.height.max(below));
        self.node(ExprKind::Assign { op, target: Box::new(target), value: Box::new(value) }, span, height)
    }

    /// Operands and infix operators that bind at least as strongly as `least`.
    pub(super) fn operators(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.prefix()?;
        let mut first_unary = matches!(left.kind, ExprKind::Unary { .. } | ExprKind::Await(_) | ExprKind::Delete(_));
        while let Some(infix) = Infix::of(self.kind()).filter(|infix| infix.left_power() >= least) {
            if self.no_in && self.kind() == Kind::In {
                break;
            }
            left = self.infix(infix, left, first_unary)?;
            first_unary = false;
        }
        Ok(left)
    }

    #[inline(never)]
    fn infix(&mut self, infix: Infix, left: Expr, first_unary: bool) -> Parse<Expr> {
        let at = self.bump();
        match infix {
            Infix::Conditional => self.conditional(left),
            Infix::Binary(BinaryOp::Power) if first_unary => {
                let span = left.span.to(at.span);
                let problem = Diagnostic::error("unclear_power", span, "what is raised here is unclear");
                Err(self.report(problem.help("put the left side of ** into parentheses")))
            }
            Infix::Binary(op) => {
                let right = self.nested(|parser| parser.operators(infix.right_power()))?;
                let (span, height) = (left.span.to(right.span), left.height.max(right.height));
                let kind = ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) };
                self.node(kind, span, height)
            }
            Infix::Logical(op) => {
                let right = self.nested(|parser| parser.operators(infix.right_power()))?;
                self.refuse_mixed_coalesce(op, &left, &right)?;
                let (span, height) = (left.span.to(right.span), left.height.max(right.height));
                let kind = ExprKind::Logical { op, left: Box::new(left), right: Box::new(right) };
                self.node(kind, span, height)
            }
        }
    }

    #[inline(never)]
    fn conditional(&mut self, test: Expr) -> Parse<Expr> {
        let then = self.inner_expression()?;
        self.expect(Kind::Colon, "`:` and the other value of the condition")?;
        let otherwise = self.expression()?;
        let span = test.span.to(otherwise.span);
        let height = test.height.max(then.height).max(otherwise.height);
        let kind = ExprKind::Conditional { test: Box::new(test), then: Box::new(then), otherwise: Box::new(otherwise) };
        self.node(kind, span, height)
    }

    fn prefix(&mut self) -> Parse<Expr> {
        match self.kind() {
            Kind::Not => self.unary(UnaryOp::Not),
            Kind::Minus => self.unary(UnaryOp::Minus),
            Kind::Plus => self.unary(UnaryOp::Plus),
            Kind::Typeof => self.unary(UnaryOp::Typeof),
            Kind::Await => self.awaited(),
            Kind::Delete => self.deleted(),
            Kind::PlusPlus => self.stepped(UpdateOp::Increment),
            Kind::MinusMinus => self.stepped(UpdateOp::Decrement),
            _ => self.postfix(),
        }
    }

    #[inline(never)]
    fn unary(&mut self, op: UnaryOp) -> Parse<Expr> {
        let start = self.here();
        let operand = self.prefixed()?;
        let (span, height) = (start.to(operand.span), operand.height);
        self.node(ExprKind::Unary { op, operand: Box::new(operand) }, span, height)
    }

    #[inline(never)]
    fn awaited(&mut self) -> Parse<Expr> {
        let start = self.here();
        let operand = self.prefixed()?;
        if let Some(within) = self.within.last_mut() {
            within.awaits = true;
        }
        let (span, height) = (start.to(operand.span), operand.height);
        self.node(ExprKind::Await(Box::new(operand)), span, height)
    }

    #[inline(never)]
    fn deleted(&mut self) -> Parse<Expr> {
        let start = self.here();
        let operand = self.prefixed()?;
        let is_place = matches!(operand.bare().kind, ExprKind::Member { .. } | ExprKind::Index { .. });
        if !is_place {
            let problem = Diagnostic::error("bad_delete", operand.span, "only a property can be deleted");
            return Err(self.report(problem.help("write delete object.name or delete object[key]")));
        }
        let (span, height) = (start.to(operand.span), operand.height);
        self.node(ExprKind::Delete(Box::new(operand)), span, height)
    }

    #[inline(never)]
    fn stepped(&mut self, op: UpdateOp) -> Parse<Expr> {
        let start = self.here();
        let operand = self.prefixed()?;
        self.update(op, true, operand, start)
    }

    /// The operand of a prefix operator.
    fn prefixed(&mut self) -> Parse<Expr> {
        self.bump();
        self.nested(|parser| parser.operators(PREFIX_POWER))
    }

    #[inline(never)]
    fn update(&mut self, op: UpdateOp, is_prefix: bool, operand: Expr, at: Span) -> Parse<Expr> {
        let is_place =
            matches!(operand.bare().kind, ExprKind::Name(_) | ExprKind::Member { .. } | ExprKind::Index { .. });
        if !is_place {
            let problem = Diagnostic::error("bad_assignment", operand.span, "this cannot be changed in place");
            return Err(self.report(problem.help("++ and -- need a variable, a property or an element")));
        }
        let (span, height) = (at.to(operand.span), operand.height);
        let target = Box::new(self.pattern_from(operand)?);
        self.node(ExprKind::Update { op, is_prefix, target }, span, height)
    }

    fn postfix(&mut self) -> Parse<Expr> {
        let operand = self.chain()?;
        let token = self.token();
        if token.after_line_end {
            return Ok(operand);
        }
        match token.kind {
            Kind::PlusPlus | Kind::MinusMinus => {
                self.bump();
                let op = if token.kind == Kind::PlusPlus { UpdateOp::Increment } else { UpdateOp::Decrement };
                self.update(op, false, operand, token.span)
            }
            _ => Ok(operand),
        }
    }

    /// An operand with the calls and members that follow it.
    fn chain(&mut self) -> Parse<Expr> {
        let mut expr = if self.kind() == Kind::New { self.new_call()? } else { self.primary()? };
        let mut is_optional = false;
        while let Kind::Dot | Kind::QuestionDot | Kind::BracketOpen | Kind::ParenOpen | Kind::Backtick = self.kind() {
            is_optional |= self.kind() == Kind::QuestionDot;
            expr = self.link(expr)?;
        }
        if !is_optional {
            return Ok(expr);
        }
        let (span, height) = (expr.span, expr.height);
        self.node(ExprKind::Chain(Box::new(expr)), span, height)
    }

    /// What follows an operand: a member, an element, a call.
    #[inline(never)]
    fn link(&mut self, expr: Expr) -> Parse<Expr> {
        let optional = self.eat(Kind::QuestionDot);
        match self.kind() {
            Kind::ParenOpen => self.call(expr, optional),
            Kind::BracketOpen => self.index(expr, optional),
            Kind::Backtick if !optional => {
                let problem = Diagnostic::error("syntax", self.here(), "a template string cannot follow a value");
                Err(self.report(
                    problem.help(
                        "there are no tagged templates: call it, as in f(`…`), or put an operator between the two",
                    ),
                ))
            }
            _ => {
                if !optional {
                    self.bump();
                }
                self.member(expr, optional)
            }
        }
    }

    fn member(&mut self, object: Expr, optional: bool) -> Parse<Expr> {
        let token = self.token();
        if !token.kind.is_word() {
            return Err(self.unexpected("a property name"));
        }
        self.bump();
        let text = self.slice(token.span);
        let (name, span, height) = (self.word(text), object.span.to(token.span), object.height);
        let kind = ExprKind::Member { object: Box::new(object), name, name_span: token.span, optional };
        self.node(kind, span, height)
    }

    #[inline(never)]
    fn index(&mut self, object: Expr, optional: bool) -> Parse<Expr> {
        self.bump();
        let index = self.inner_expression()?;
        let end = self.expect(Kind::BracketClose, "`]`")?;
        let (span, height) = (object.span.to(end.span), object.height.max(index.height));
        self.node(ExprKind::Index { object: Box::new(object), index: Box::new(index), optional }, span, height)
    }

    #[inline(never)]
    fn call(&mut self, callee: Expr, optional: bool) -> Parse<Expr> {
        let start = callee.span;
        let (args, end) = self.arguments()?;
        let height = args.iter().map(|arg| arg.value.height).fold(callee.height, u16::max);
        let call = Call { callee, args, optional, is_new: false };
        self.node(ExprKind::Call(Box::new(call)), start.to(end), height)
    }

    fn arguments(&mut self) -> Parse<(Vec<Element>, Span)> {
        self.expect(Kind::ParenOpen, "`(`")?;
        let args = self.elements(Kind::ParenClose, "`,` or `)`")?;
        Ok((args, self.last_span()))
    }

    /// What stands between brackets, separated by commas; the closing one is taken.
    pub(super) fn elements(&mut self, close: Kind, wanted: &str) -> Parse<Vec<Element>> {
        let mut elements = Vec::new();
        while !self.eat(close) {
            if close == Kind::BracketClose && self.kind() == Kind::Comma {
                let problem = Diagnostic::error("syntax", self.here(), "an element is missing before this comma");
                return Err(self.report(problem.help("write null where a list has nothing")));
            }
            let spread = self.eat(Kind::Ellipsis);
            let value = self.inner_expression()?;
            elements.push(Element { value, spread });
            if self.kind() != close {
                self.expect(Kind::Comma, wanted)?;
            }
        }
        Ok(elements)
    }

    #[inline(never)]
    fn new_call(&mut self) -> Parse<Expr> {
        let start = self.bump().span;
        let name = self.name("the name of an error")?;
        let span = name.span;
        let callee = self.leaf(ExprKind::Name(name), span);
        let (args, end) = if self.kind() == Kind::ParenOpen { self.arguments()? } else { (Vec::new(), span) };
        let height = args.iter().map(|arg| arg.value.height).fold(1, u16::max);
        let call = Call { callee, args, optional: false, is_new: true };
        self.node(ExprKind::Call(Box::new(call)), start.to(end), height)
    }
}

fn assign_op(kind: Kind) -> Option<AssignOp> {
    use crate::syntax::ast::LogicalOp;
    Some(match kind {
        Kind::Equals => AssignOp::Plain,
        Kind::PlusEquals => AssignOp::Binary(BinaryOp::Add),
        Kind::MinusEquals => AssignOp::Binary(BinaryOp::Subtract),
        Kind::StarEquals => AssignOp::Binary(BinaryOp::Multiply),
        Kind::SlashEquals => AssignOp::Binary(BinaryOp::Divide),
        Kind::PercentEquals => AssignOp::Binary(BinaryOp::Remainder),
        Kind::StarStarEquals => AssignOp::Binary(BinaryOp::Power),
        Kind::QuestionQuestionEquals => AssignOp::Logical(LogicalOp::Coalesce),
        Kind::OrEquals => AssignOp::Logical(LogicalOp::Or),
        Kind::AndEquals => AssignOp::Logical(LogicalOp::And),
        _ => return None,
    })
}
