//! Assignments.

use super::{Compiler, Place};
use crate::code::Op;
use crate::syntax::ast::{AssignOp, BinaryOp, Expr, ExprKind, LogicalOp, Pattern, PatternKind, UpdateOp};

impl Compiler<'_> {
    /// An expression whose value nobody wants.
    pub(super) fn discarded(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Assign { op, target, value } => {
                self.at(expr.span, |compiler| compiler.assign(*op, target, value, false))
            }
            ExprKind::Update { op, target, .. } => {
                self.at(expr.span, |compiler| compiler.update(*op, true, target, false))
            }
            ExprKind::Group(inner) => self.discarded(inner),
            _ => {
                self.expr(expr);
                self.emit(Op::Pop);
            }
        }
    }

    /// A value that is given a name: a function without one takes it.
    pub(super) fn named_value(&mut self, pattern: &Pattern, value: &Expr) {
        self.expr(value);
        if let (PatternKind::Name(name), ExprKind::Function(function)) = (&pattern.kind, &value.bare().kind)
            && let Some(compiled) = &mut self.functions[function.id.0 as usize]
            && function.name.is_none()
            && let Some(compiled) = std::sync::Arc::get_mut(compiled)
        {
            compiled.name = name.text.clone();
        }
    }

    pub(super) fn assign(&mut self, op: AssignOp, target: &Pattern, value: &Expr, wanted: bool) {
        if !wanted && self.add_locals(op, target, value) {
            return;
        }
        match (&target.kind, op) {
            (PatternKind::Name(name), AssignOp::Plain) => {
                self.named_value(target, value);
                self.keep(wanted);
                match self.variable_of(name) {
                    Some(id) => self.store(id, false),
                    None => {
                        self.emit(Op::Pop);
                    }
                }
            }
            (PatternKind::Name(name), AssignOp::Binary(binary)) => {
                let Some(id) = self.variable_of(name) else { return };
                self.load(id);
                self.operand_and_op(binary, value);
                self.keep(wanted);
                self.store(id, false);
            }
            (PatternKind::Name(name), AssignOp::Logical(logical)) => {
                let Some(id) = self.variable_of(name) else { return };
                self.load(id);
                let there = self.jump(logical_jump(logical));
                self.named_value(target, value);
                self.emit(Op::Dup);
                self.store(id, false);
                self.land(there);
                self.drop_unless(wanted);
            }
            (PatternKind::Place(place), _) => {
                self.assign_place(op, place, value);
                self.drop_unless(wanted);
            }
            (PatternKind::List { .. } | PatternKind::Object { .. }, _) => {
                self.expr(value);
                self.keep(wanted);
                self.bind(target, false);
            }
        }
    }

    /// The short form of `a = b + c` and `a += b`; whether it is one.
    fn add_locals(&mut self, op: AssignOp, target: &Pattern, value: &Expr) -> bool {
        let PatternKind::Name(name) = &target.kind else { return false };
        let Some(id) = self.variable_of(name).filter(|id| !self.may_be_hole(*id)) else { return false };
        let Place::Slot(to) = self.place(id) else { return false };
        let (left, right) = match (op, &value.bare().kind) {
            (AssignOp::Plain, ExprKind::Binary { op: BinaryOp::Add, left, right }) => {
                (self.plain_slot(left), self.plain_slot(right))
            }
            (AssignOp::Binary(BinaryOp::Add), _) => (Some(to), self.plain_slot(value)),
            (AssignOp::Plain | AssignOp::Binary(_) | AssignOp::Logical(_), _) => (None, None),
        };
        let (Some(left), Some(right)) = (left, right) else { return false };
        self.at(value.span, |compiler| compiler.emit(Op::AddLocals { left, right, to }));
        true
    }

    fn keep(&mut self, wanted: bool) {
        if wanted {
            self.emit(Op::Dup);
        }
    }

    fn drop_unless(&mut self, wanted: bool) {
        if !wanted {
            self.emit(Op::Pop);
        }
    }

    /// Leaves the assigned value on top.
    fn assign_place(&mut self, op: AssignOp, place: &Expr, value: &Expr) {
        let Some((copy, get, set)) = self.place_ops(place) else { return };
        match op {
            AssignOp::Plain => self.expr(value),
            AssignOp::Binary(binary) => {
                self.emit(copy);
                self.at(place.span, |compiler| compiler.emit(get));
                self.operand_and_op(binary, value);
            }
            AssignOp::Logical(logical) => {
                self.emit(copy);
                self.at(place.span, |compiler| compiler.emit(get));
                let there = self.jump(logical_jump(logical));
                self.expr(value);
                self.at(place.span, |compiler| compiler.emit(set));
                let end = self.jump(Op::Jump);
                self.land(there);
                // Below the value that stays are the object and perhaps the index.
                self.emit(Op::Swap);
                self.emit(Op::Pop);
                if set == Op::SetIndex {
                    self.emit(Op::Swap);
                    self.emit(Op::Pop);
                }
                self.land(end);
                return;
            }
        }
        self.at(place.span, |compiler| compiler.emit(set));
    }

    /// Pushes the object, and the index if there is one; how to copy them, to read and to write there.
    fn place_ops(&mut self, place: &Expr) -> Option<(Op, Op, Op)> {
        match &place.bare().kind {
            ExprKind::Member { object, name, .. } => {
                self.expr(object);
                let name = self.text(name);
                Some((Op::Dup, Op::Member(name), Op::SetMember(name)))
            }
            ExprKind::Index { object, index, .. } => {
                self.expr(object);
                self.expr(index);
                Some((Op::Dup2, Op::Index, Op::SetIndex))
            }
            _ => None,
        }
    }

    fn operand_and_op(&mut self, op: BinaryOp, value: &Expr) {
        self.expr(value);
        self.emit(super::expr::binary_op(op));
    }

    pub(super) fn update(&mut self, op: UpdateOp, is_prefix: bool, target: &Pattern, wanted: bool) {
        let by = match op {
            UpdateOp::Increment => 1,
            UpdateOp::Decrement => -1,
        };
        match &target.kind {
            PatternKind::Name(name) => {
                let Some(id) = self.variable_of(name) else { return };
                if let (Place::Slot(slot), false, false) = (self.place(id), wanted, self.may_be_hole(id)) {
                    self.emit(Op::StepLocal { slot, by });
                    return;
                }
                self.load(id);
                self.step(by, is_prefix, wanted);
                self.store(id, false);
            }
            PatternKind::Place(place) => self.with_slots(|compiler| {
                let slot = compiler.take_slots(1);
                let Some((copy, get, set)) = compiler.place_ops(place) else { return };
                compiler.emit(copy);
                compiler.at(place.span, |compiler| compiler.emit(get));
                compiler.emit(Op::Step(if is_prefix { by } else { 0 }));
                compiler.emit(Op::Dup);
                compiler.emit(Op::Store(slot));
                if !is_prefix {
                    compiler.emit(Op::Step(by));
                }
                compiler.at(place.span, |compiler| compiler.emit(set));
                compiler.emit(Op::Pop);
                if wanted {
                    compiler.emit(Op::Load(slot));
                }
            }),
            PatternKind::List { .. } | PatternKind::Object { .. } => {}
        }
    }

    /// The new number on top, and below it, if wanted, the value of the expression.
    fn step(&mut self, by: i32, is_prefix: bool, wanted: bool) {
        if wanted && !is_prefix {
            // It must be a number before it is anybody's result.
            self.emit(Op::Step(0));
            self.emit(Op::Dup);
            self.emit(Op::Step(by));
            return;
        }
        self.emit(Op::Step(by));
        self.keep(wanted);
    }
}

pub(super) fn logical_jump(op: LogicalOp) -> fn(u32) -> Op {
    match op {
        LogicalOp::And => Op::JumpIfFalseKeep,
        LogicalOp::Or => Op::JumpIfTrueKeep,
        LogicalOp::Coalesce => Op::JumpIfNotNullKeep,
    }
}
