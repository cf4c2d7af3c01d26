//! Infix operators, and how strongly they bind.

use super::{Kind, Parse, Parser};
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, LogicalOp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Infix {
    Conditional,
    Logical(LogicalOp),
    Binary(BinaryOp),
}

impl Infix {
    pub(super) fn of(kind: Kind) -> Option<Infix> {
        Some(match kind {
            Kind::Question => Infix::Conditional,
            Kind::QuestionQuestion => Infix::Logical(LogicalOp::Coalesce),
            Kind::Or => Infix::Logical(LogicalOp::Or),
            Kind::And => Infix::Logical(LogicalOp::And),
            Kind::Same => Infix::Binary(BinaryOp::Same),
            Kind::NotSame => Infix::Binary(BinaryOp::NotSame),
            Kind::Less => Infix::Binary(BinaryOp::Less),
            Kind::LessEquals => Infix::Binary(BinaryOp::LessEquals),
            Kind::Greater => Infix::Binary(BinaryOp::Greater),
            Kind::GreaterEquals => Infix::Binary(BinaryOp::GreaterEquals),
            Kind::In => Infix::Binary(BinaryOp::In),
            Kind::Instanceof => Infix::Binary(BinaryOp::Instanceof),
            Kind::Plus => Infix::Binary(BinaryOp::Add),
            Kind::Minus => Infix::Binary(BinaryOp::Subtract),
            Kind::Star => Infix::Binary(BinaryOp::Multiply),
            Kind::Slash => Infix::Binary(BinaryOp::Divide),
            Kind::Percent => Infix::Binary(BinaryOp::Remainder),
            Kind::StarStar => Infix::Binary(BinaryOp::Power),
            _ => return None,
        })
    }

    /// The table of precedence, as in JavaScript.
    pub(super) fn left_power(self) -> u8 {
        match self {
            Infix::Conditional => 2,
            Infix::Logical(LogicalOp::Coalesce | LogicalOp::Or) => 4,
            Infix::Logical(LogicalOp::And) => 6,
            Infix::Binary(BinaryOp::Same | BinaryOp::NotSame) => 8,
            Infix::Binary(
                BinaryOp::Less
                | BinaryOp::LessEquals
                | BinaryOp::Greater
                | BinaryOp::GreaterEquals
                | BinaryOp::In
                | BinaryOp::Instanceof,
            ) => 10,
            Infix::Binary(BinaryOp::Add | BinaryOp::Subtract) => 12,
            Infix::Binary(BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder) => 14,
            // Stronger than a prefix operator on its right: 2 ** -1.
            Infix::Binary(BinaryOp::Power) => 32,
        }
    }

    /// What an operand on the right must bind with: all but `**` lean to the left.
    pub(super) fn right_power(self) -> u8 {
        match self {
            Infix::Binary(BinaryOp::Power) => self.left_power(),
            Infix::Conditional | Infix::Logical(_) | Infix::Binary(_) => self.left_power() + 1,
        }
    }
}

impl Parser<'_> {
    /// `a || b ?? c` needs parentheses, as in JavaScript: nobody remembers which comes first.
    pub(super) fn refuse_mixed_coalesce(&mut self, op: LogicalOp, left: &Expr, right: &Expr) -> Parse<()> {
        let is_mixed = |side: &Expr| match &side.kind {
            ExprKind::Logical { op: other, .. } => (*other == LogicalOp::Coalesce) != (op == LogicalOp::Coalesce),
            _ => false,
        };
        if !is_mixed(left) && !is_mixed(right) {
            return Ok(());
        }
        let problem = Diagnostic::error("unclear_logic", left.span.to(right.span), "?? is mixed with && or || here");
        Err(self.report(problem.help("put one of the two into parentheses")))
    }
}
