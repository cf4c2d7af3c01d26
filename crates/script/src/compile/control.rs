//! Leaving loops, switches and functions, through `finally` blocks if need be.

use super::Compiler;
use crate::code::{Handler, Op};
use crate::syntax::ast::Try;

/// What a statement can leave.
pub(super) enum Control {
    /// Jumps to the end, and to the next round; a switch has no rounds.
    Breakable { breaks: Vec<usize>, continues: Option<Vec<usize>> },
    /// A `finally` block that runs first.
    Finally { slot: u16, exits: Vec<Exit>, jumps: Vec<usize> },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Break,
    Continue,
    Return,
}

/// What a `finally` block was entered with: numbers from 0 on are exits.
pub(crate) const ENTERED_NORMALLY: i32 = -2;
pub(crate) const ENTERED_BY_THROW: i32 = -1;

impl Compiler<'_> {
    /// Leaves; for a return the value is on top.
    pub(super) fn exit(&mut self, exit: Exit) {
        let depth = self.builder().control.len();
        self.exit_from(exit, depth);
    }

    /// Leaves, seen from so many enclosing statements.
    fn exit_from(&mut self, exit: Exit, depth: usize) {
        for place in (0..depth).rev() {
            if matches!(self.builder().control[place], Control::Finally { .. }) {
                return self.exit_through(exit, place);
            }
            if self.builder().control[place].takes(exit) {
                let jump = self.jump(Op::Jump);
                self.builder().control[place].note(exit, jump);
                return;
            }
        }
        // The parser refuses a break without a loop: this is a return.
        self.emit(Op::Return);
    }

    fn exit_through(&mut self, exit: Exit, place: usize) {
        let Control::Finally { slot, exits, .. } = &mut self.builder().control[place] else { return };
        let slot = *slot;
        let known = exits.iter().position(|known| *known == exit);
        let number = known.unwrap_or_else(|| {
            exits.push(exit);
            exits.len() - 1
        });
        if exit == Exit::Return {
            self.emit(Op::Store(slot + 1));
        }
        self.emit(Op::Int(i32::try_from(number).unwrap_or_default()));
        self.emit(Op::Store(slot));
        let jump = self.jump(Op::Jump);
        if let Control::Finally { jumps, .. } = &mut self.builder().control[place] {
            jumps.push(jump);
        }
    }

    /// Runs the part that a `break` leaves; what a `continue` does is up to the caller, who gets the jumps.
    pub(super) fn breakable(&mut self, is_loop: bool, part: impl FnOnce(&mut Self)) -> (Vec<usize>, Vec<usize>) {
        let continues = is_loop.then(Vec::new);
        self.builder().control.push(Control::Breakable { breaks: Vec::new(), continues });
        part(self);
        match self.builder().control.pop() {
            Some(Control::Breakable { breaks, continues }) => (breaks, continues.unwrap_or_default()),
            Some(Control::Finally { .. }) | None => (Vec::new(), Vec::new()),
        }
    }

    /// `try`: the code of the body, then of `catch`, then of `finally`, each of which knows where it throws to.
    pub(super) fn try_statement(&mut self, parts: &Try) {
        self.with_slots(|compiler| match &parts.finally {
            None => compiler.try_and_catch(parts),
            Some(finally) => {
                let slot = compiler.take_slots(2);
                let control = Control::Finally { slot, exits: Vec::new(), jumps: Vec::new() };
                compiler.builder().control.push(control);
                let start = compiler.here();
                compiler.try_and_catch(parts);
                let end = compiler.here();
                let control = compiler.builder().control.pop();
                compiler.enter_finally(slot, start, end);
                let (exits, jumps) = match control {
                    Some(Control::Finally { exits, jumps, .. }) => (exits, jumps),
                    Some(Control::Breakable { .. }) | None => (Vec::new(), Vec::new()),
                };
                compiler.land_all(jumps);
                compiler.block(finally);
                compiler.emit(Op::EndFinally(slot));
                compiler.leave_finally(slot, &exits);
            }
        });
    }

    /// The two ways into a `finally` block that are no exits: from above, and by an error.
    fn enter_finally(&mut self, slot: u16, start: u32, end: u32) {
        self.emit(Op::Int(ENTERED_NORMALLY));
        self.emit(Op::Store(slot));
        let over = self.jump(Op::Jump);
        let target = self.here();
        self.builder().function.handlers.push(Handler { start, end, target });
        self.emit(Op::Store(slot + 1));
        self.emit(Op::Int(ENTERED_BY_THROW));
        self.emit(Op::Store(slot));
        self.land(over);
    }

    fn leave_finally(&mut self, slot: u16, exits: &[Exit]) {
        for (number, exit) in exits.iter().enumerate() {
            self.emit(Op::IsExit { slot, exit: u16::try_from(number).unwrap_or_default() });
            let other = self.jump(Op::JumpIfFalse);
            if *exit == Exit::Return {
                self.emit(Op::Load(slot + 1));
            }
            self.exit(*exit);
            self.land(other);
        }
    }

    fn try_and_catch(&mut self, parts: &Try) {
        let start = self.here();
        self.block(&parts.body);
        let Some(catch) = &parts.catch else { return };
        let end = self.here();
        let over = self.jump(Op::Jump);
        let target = self.here();
        self.builder().function.handlers.push(Handler { start, end, target });
        // The error is on top, and the slots of the scope are not yet open.
        self.with_scope(catch.scope, |compiler| {
            match &catch.pattern {
                Some(pattern) => compiler.bind(pattern, true),
                None => {
                    compiler.emit(Op::Pop);
                }
            }
            compiler.block(&catch.body);
        });
        self.land(over);
    }
}

impl Control {
    fn takes(&self, exit: Exit) -> bool {
        match (self, exit) {
            (Control::Breakable { .. }, Exit::Break) => true,
            (Control::Breakable { continues, .. }, Exit::Continue) => continues.is_some(),
            (Control::Breakable { .. }, Exit::Return) | (Control::Finally { .. }, _) => false,
        }
    }

    fn note(&mut self, exit: Exit, jump: usize) {
        match (self, exit) {
            (Control::Breakable { breaks, .. }, Exit::Break) => breaks.push(jump),
            (Control::Breakable { continues: Some(continues), .. }, Exit::Continue) => continues.push(jump),
            (Control::Breakable { .. } | Control::Finally { .. }, _) => {}
        }
    }
}
