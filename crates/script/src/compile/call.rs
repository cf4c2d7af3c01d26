//! Calls.

use super::Compiler;
use crate::builtins::Builtin;
use crate::check::Meaning;
use crate::code::Op;
use crate::syntax::ast::{Call, Element, Expr, ExprKind};

/// More arguments than this go through a list.
const DIRECT_ARGS_MAX: usize = 200;

impl Compiler<'_> {
    pub(super) fn call(&mut self, call: &Call) {
        let callee = call.callee.bare();
        if let Some(native) = self.native_callee(callee).filter(|_| !call.optional) {
            match self.arguments(&call.args) {
                Some(args) => self.emit(Op::CallNative { native, args }),
                None => self.emit(Op::CallNativeList(native)),
            };
            return;
        }
        match &callee.kind {
            ExprKind::Member { object, name, optional, .. } if !call.optional => {
                self.expr(object);
                self.cut_short(*optional);
                let name = self.text(name);
                let still = call.args.iter().all(|arg| !arg.spread && self.is_still(&arg.value));
                let still = still && call.args.len() <= DIRECT_ARGS_MAX;
                if !still {
                    self.emit(Op::FindMethod(name));
                }
                match self.arguments(&call.args) {
                    Some(args) if still => self.emit(Op::CallMethod { name, args }),
                    Some(args) => self.emit(Op::CallFound { name, args }),
                    None => self.emit(Op::CallFoundList(name)),
                };
            }
            _ => {
                self.expr(&call.callee);
                self.cut_short(call.optional);
                match self.arguments(&call.args) {
                    Some(args) => self.emit(Op::Call(args)),
                    None => self.emit(Op::CallList),
                };
            }
        }
    }

    /// Pushes the arguments one by one, and says how many; none if they are one list.
    fn arguments(&mut self, args: &[Element]) -> Option<u8> {
        let direct = args.len() <= DIRECT_ARGS_MAX && !args.iter().any(|arg| arg.spread);
        if !direct {
            self.list(args);
            return None;
        }
        args.iter().for_each(|arg| self.expr(&arg.value));
        u8::try_from(args.len()).ok()
    }

    /// Whether nothing can happen while it is evaluated: nobody sees whether it was, if the call fails.
    fn is_still(&mut self, expr: &Expr) -> bool {
        match &expr.bare().kind {
            ExprKind::Null | ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Text(_) | ExprKind::Function(_) => {
                true
            }
            _ => self.plain_slot(expr).is_some(),
        }
    }

    fn native_callee(&self, callee: &Expr) -> Option<u16> {
        let builtin = match &callee.kind {
            ExprKind::Name(name) => match self.checked.meaning(name.id) {
                Meaning::Builtin(builtin) => builtin,
                Meaning::Nothing | Meaning::Variable(_) | Meaning::Namespace => return None,
            },
            ExprKind::Member { object, name, optional: false, .. } => self.namespace_member(object, name)?,
            _ => return None,
        };
        match builtin {
            Builtin::Native(native) => Some(native),
            Builtin::Constant(_) => None,
        }
    }
}
