//! Statements. Between two of them there are no intermediate values on the stack.

use super::Compiler;
use super::control::Exit;
use crate::code::Op;
use crate::syntax::ast::{
    BinaryOp, Block, Declarator, Expr, ExprKind, For, ForEach, PatternKind, Stmt, StmtKind, Switch, UpdateOp,
};

impl Compiler<'_> {
    pub(super) fn block(&mut self, block: &Block) {
        self.with_scope(block.scope, |compiler| {
            compiler.hoisted(&block.statements);
            for statement in &block.statements {
                compiler.statement(statement);
            }
        });
    }

    pub(super) fn statement(&mut self, statement: &Stmt) {
        self.at(statement.span, |compiler| compiler.statement_kind(&statement.kind));
    }

    fn statement_kind(&mut self, kind: &StmtKind) {
        match kind {
            StmtKind::Declare { list, .. } => list.iter().for_each(|declarator| self.declarator(declarator)),
            // They were made at the beginning of their block.
            StmtKind::Function(_) | StmtKind::Workflow(_) | StmtKind::Empty => {}
            StmtKind::Expr(expr) => self.discarded(expr),
            StmtKind::If { branches, otherwise } => self.branches(branches, otherwise.as_deref()),
            StmtKind::While { test, body } => self.while_loop(test, body),
            StmtKind::DoWhile { body, test } => self.do_while(body, test),
            StmtKind::For(parts) => self.for_loop(parts),
            StmtKind::ForEach(parts) => self.for_each(parts),
            StmtKind::Switch(switch) => self.switch(switch),
            StmtKind::Break => self.exit(Exit::Break),
            StmtKind::Continue => self.exit(Exit::Continue),
            StmtKind::Try(parts) => self.try_statement(parts),
            StmtKind::Throw(value) => {
                self.expr(value);
                self.emit(Op::Throw);
            }
            StmtKind::Return(value) => {
                match value {
                    Some(value) => self.expr(value),
                    None => {
                        self.emit(Op::Null);
                    }
                }
                self.exit(Exit::Return);
            }
            StmtKind::Block(block) => self.block(block),
        }
    }

    fn declarator(&mut self, declarator: &Declarator) {
        match &declarator.value {
            Some(value) => self.named_value(&declarator.pattern, value),
            None => {
                self.emit(Op::Null);
            }
        }
        self.at(declarator.pattern.span, |compiler| compiler.bind(&declarator.pattern, true));
    }

    /// Jumps if the test does not hold.
    fn unless(&mut self, test: &Expr) -> usize {
        if let ExprKind::Binary { op: BinaryOp::Less, left, right } = &test.bare().kind {
            if let Some(skip) = self.skip_if_less(left, right) {
                self.at(test.span, |compiler| compiler.emit(skip));
                return self.jump(Op::Jump);
            }
            self.expr(left);
            self.expr(right);
            return self.at(test.span, |compiler| compiler.jump(Op::JumpIfNotLess));
        }
        self.expr(test);
        self.jump(Op::JumpIfFalse)
    }

    /// The short form of the comparisons most loops are made of.
    fn skip_if_less(&mut self, left: &Expr, right: &Expr) -> Option<Op> {
        let slot = self.plain_slot(left)?;
        match &right.kind {
            ExprKind::Number(number) if f64::from(*number as i32) == *number => {
                Some(Op::SkipIfLessInt { slot, than: *number as i32 })
            }
            _ => self.plain_slot(right).map(|than| Op::SkipIfLess { slot, than }),
        }
    }

    fn branches(&mut self, branches: &[(Expr, Stmt)], otherwise: Option<&Stmt>) {
        let mut ends = Vec::new();
        for (test, body) in branches {
            let next = self.at(test.span, |compiler| compiler.unless(test));
            self.statement(body);
            ends.push(self.jump(Op::Jump));
            self.land(next);
        }
        if let Some(otherwise) = otherwise {
            self.statement(otherwise);
        }
        self.land_all(ends);
    }

    fn back_to(&mut self, start: u32) {
        self.emit(Op::Loop(start));
    }

    /// The short way back to the body of a loop whose test is short; `step` is the slot of what is stepped before it, and by
    /// how much.
    fn round(&mut self, test: Option<&Expr>, body: u32, step: Option<(u16, i8)>) {
        let kind = test.map(|test| &test.bare().kind);
        let Some(ExprKind::Binary { op: BinaryOp::Less, left, right }) = kind else { return };
        let by = |slot| match step {
            Some((stepped, by)) if stepped == slot => Some(by),
            Some(_) => None,
            None => Some(0),
        };
        let round = match self.skip_if_less(left, right) {
            Some(Op::SkipIfLessInt { slot, than }) => by(slot).map(|by| Op::RoundIfLessInt { slot, by, than }),
            Some(Op::SkipIfLess { slot, than }) if slot != than => {
                by(slot).map(|by| Op::RoundIfLess { slot, by, than })
            }
            Some(_) | None => None,
        };
        if let Some(round) = round {
            self.emit(round);
            self.back_to(body);
        }
    }

    /// The variable of the call that an update steps, and by how much, if that is all it does.
    fn stepped(&mut self, update: &[Expr]) -> Option<(u16, i8)> {
        let [Expr { kind: ExprKind::Update { op, target, .. }, .. }] = update else { return None };
        let PatternKind::Name(name) = &target.kind else { return None };
        let by = match op {
            UpdateOp::Increment => 1,
            UpdateOp::Decrement => -1,
        };
        self.slot_of(name).map(|slot| (slot, by))
    }

    fn while_loop(&mut self, test: &Expr, body: &Stmt) {
        let start = self.here();
        let end = self.at(test.span, |compiler| compiler.unless(test));
        let round = self.here();
        let (breaks, continues) = self.breakable(true, |compiler| compiler.statement(body));
        self.land_all(continues);
        self.round(Some(test), round, None);
        self.back_to(start);
        self.land(end);
        self.land_all(breaks);
    }

    fn do_while(&mut self, body: &Stmt, test: &Expr) {
        let start = self.here();
        let (breaks, continues) = self.breakable(true, |compiler| compiler.statement(body));
        self.land_all(continues);
        let end = self.at(test.span, |compiler| compiler.unless(test));
        self.back_to(start);
        self.land(end);
        self.land_all(breaks);
    }

    fn for_loop(&mut self, parts: &For) {
        self.with_scope(parts.scope, |compiler| {
            if let Some(init) = &parts.init {
                compiler.statement(init);
                compiler.fresh_round(parts);
            }
            let start = compiler.here();
            let end = parts.test.as_ref().map(|test| compiler.at(test.span, |compiler| compiler.unless(test)));
            let round = compiler.here();
            let (breaks, continues) = compiler.breakable(true, |compiler| compiler.statement(&parts.body));
            compiler.land_all(continues);
            compiler.fresh_round(parts);
            if parts.update.is_empty() {
                compiler.round(parts.test.as_ref(), round, None);
            } else if let Some(step) = compiler.stepped(&parts.update) {
                compiler.round(parts.test.as_ref(), round, Some(step));
            }
            for update in &parts.update {
                compiler.at(update.span, |compiler| compiler.discarded(update));
            }
            compiler.back_to(start);
            if let Some(end) = end {
                compiler.land(end);
            }
            compiler.land_all(breaks);
        });
    }

    /// Each round has variables of its own, which closures may keep.
    fn fresh_round(&mut self, parts: &For) {
        for &id in self.checked.declared(parts.scope) {
            if self.checked.variable(id).is_captured {
                let slot = self.slots[id.0 as usize];
                self.emit(Op::CopyBox(slot));
            }
        }
    }

    fn for_each(&mut self, parts: &ForEach) {
        self.with_slots(|compiler| {
            // The list, how far the loop is, and for keys whose they are.
            let slot = compiler.take_slots(if parts.over_keys { 3 } else { 2 });
            compiler.expr(&parts.list);
            compiler.at(parts.list.span, |compiler| {
                if parts.over_keys {
                    compiler.emit(Op::Dup);
                    compiler.emit(Op::Store(slot + 2));
                }
                compiler.emit(if parts.over_keys { Op::Keys } else { Op::Iterate });
                compiler.emit(Op::Store(slot));
                compiler.emit(Op::Int(0));
                compiler.emit(Op::Store(slot + 1));
            });
            let start = compiler.here();
            let end = compiler.emit(Op::Next { slot, jump: u32::MAX });
            if parts.over_keys {
                compiler.skip_deleted(slot, start);
            }
            let (breaks, continues) = compiler.breakable(true, |compiler| {
                compiler.with_scope(parts.scope, |compiler| {
                    compiler.bind(&parts.pattern, parts.declare.is_some());
                    compiler.statement(&parts.body);
                });
            });
            compiler.land_all(continues);
            compiler.back_to(start);
            compiler.land(end);
            compiler.land_all(breaks);
        });
    }

    /// A key that was deleted meanwhile is passed over.
    fn skip_deleted(&mut self, slot: u16, start: u32) {
        self.emit(Op::Dup);
        self.emit(Op::Load(slot + 2));
        self.emit(Op::In);
        let is_there = self.jump(Op::JumpIfTrue);
        self.emit(Op::Pop);
        self.back_to(start);
        self.land(is_there);
    }

    fn switch(&mut self, switch: &Switch) {
        self.with_slots(|compiler| {
            let slot = compiler.take_slots(1);
            compiler.expr(&switch.subject);
            compiler.emit(Op::Store(slot));
            compiler.with_scope(switch.scope, |compiler| {
                let (breaks, _) = compiler.breakable(false, |compiler| compiler.cases(switch, slot));
                compiler.land_all(breaks);
            });
        });
    }

    fn cases(&mut self, switch: &Switch, slot: u16) {
        for (_, body, _) in &switch.cases {
            self.hoisted(body);
        }
        let mut jumps = Vec::new();
        for (test, _, _) in &switch.cases {
            jumps.push(test.as_ref().map(|test| {
                self.emit(Op::Load(slot));
                self.expr(test);
                self.emit(Op::Same);
                self.jump(Op::JumpIfTrue)
            }));
        }
        let otherwise = self.jump(Op::Jump);
        let has_default = jumps.contains(&None);
        for ((_, body, _), jump) in switch.cases.iter().zip(jumps) {
            self.land(jump.unwrap_or(otherwise));
            for statement in body {
                self.statement(statement);
            }
        }
        if !has_default {
            self.land(otherwise);
        }
    }
}
