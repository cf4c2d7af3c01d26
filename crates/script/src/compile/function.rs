//! Functions.

use std::sync::Arc;

use super::{Builder, Compiler};
use crate::builtins::{self, Builtin};
use crate::code::{CaptureFrom, Function, Op, Variable, VariablePlace};
use crate::syntax::ast::{self, FunctionKind, PatternKind};

impl Compiler<'_> {
    pub(super) fn function(&mut self, function: &ast::Function) {
        let params = u16::try_from(function.params.len()).unwrap_or(u16::MAX);
        let name = match (&function.name, function.kind) {
            (Some(name), _) => Arc::clone(&name.text),
            (None, FunctionKind::File) => "(file)".into(),
            (None, _) => "(anonymous)".into(),
        };
        let compiled = Function {
            name,
            params,
            has_rest: function.rest.is_some(),
            slots: params + u16::from(function.rest.is_some()),
            is_async: function.is_async || (function.kind == FunctionKind::File && !self.is_prelude),
            is_hidden: self.is_prelude,
            captures: self.captures(function),
            ..Function::default()
        };
        let next_slot = compiled.slots;
        self.builders.push(Builder {
            id: function.id,
            function: compiled,
            next_slot,
            control: Vec::new(),
            chains: Vec::new(),
            span: function.span,
        });
        self.params_and_body(function);
        self.note_captures(function);
        if let Some(mut builder) = self.builders.pop() {
            builder.function.ops.shrink_to_fit();
            self.functions[function.id.0 as usize] = Some(Arc::new(builder.function));
        }
    }

    /// Where a closure finds what it captures, seen from the function that makes it.
    fn captures(&self, function: &ast::Function) -> Vec<CaptureFrom> {
        let Some(outer) = self.builders.last() else { return Vec::new() };
        let from = |id: &crate::check::VariableId| {
            if self.checked.variable(*id).function == outer.id {
                return CaptureFrom::Slot(self.slots[id.0 as usize]);
            }
            let captures = &self.checked.captures[outer.id.0 as usize];
            let at = captures.iter().position(|captured| captured == id).unwrap_or_default();
            CaptureFrom::Capture(u16::try_from(at).unwrap_or(u16::MAX))
        };
        self.checked.captures[function.id.0 as usize].iter().map(from).collect()
    }

    fn params_and_body(&mut self, function: &ast::Function) {
        self.params(function);
        let start = self.here();
        self.with_scope(function.body.scope, |compiler| {
            compiler.hoisted(&function.body.statements);
            for statement in &function.body.statements {
                compiler.statement(statement);
            }
            match &function.value {
                Some(value) => {
                    compiler.expr(value);
                    compiler.at(value.span, |compiler| compiler.emit(Op::Return));
                }
                None if function.kind == FunctionKind::File => compiler.entries(function),
                None => {
                    compiler.emit(Op::Null);
                    compiler.emit(Op::Return);
                }
            }
        });
        self.note_variables(function.scope, start);
    }

    /// What a file does after its declarations: it runs the workflow that was asked for.
    fn entries(&mut self, file: &ast::Function) {
        let mut place = 0;
        for statement in &file.body.statements {
            let ast::StmtKind::Workflow(workflow) = &statement.kind else { continue };
            let Some(id) = workflow.name.as_ref().and_then(|name| self.variable_of(name)) else { continue };
            self.builder().span = workflow.span;
            self.emit(Op::IsEntry(place));
            let other = self.jump(Op::JumpIfFalse);
            self.load(id);
            self.emit(Op::Inputs);
            self.emit(Op::Call(1));
            self.emit(Op::Await);
            self.emit(Op::Return);
            self.land(other);
            place += 1;
        }
        match builtins::global("$no_workflow", true) {
            Some(Builtin::Native(native)) if place > 0 => self.emit(Op::CallNative { native, args: 0 }),
            Some(_) | None => self.emit(Op::Null),
        };
        self.emit(Op::Return);
    }

    /// Parameters that are plain names live where their arguments are; others are taken apart.
    fn params(&mut self, function: &ast::Function) {
        let rest = function.rest.iter();
        let patterns = function.params.iter().map(|param| &param.pattern).chain(rest);
        let mut plain = vec![];
        for (slot, pattern) in patterns.enumerate() {
            if let PatternKind::Name(name) = &pattern.kind
                && let Some(id) = self.variable_of(name)
            {
                let slot = u16::try_from(slot).unwrap_or(u16::MAX);
                self.slots[id.0 as usize] = slot;
                plain.push(id);
                if self.checked.variable(id).is_captured {
                    self.emit(Op::BoxParam(slot));
                }
            }
        }
        for &id in self.checked.declared(function.scope) {
            if !plain.contains(&id) {
                let slot = self.take_slots(1);
                self.slots[id.0 as usize] = slot;
                self.open_variable(id, slot);
            }
        }
        self.own_name(function);
        for (slot, param) in function.params.iter().enumerate() {
            self.param(u16::try_from(slot).unwrap_or(u16::MAX), param);
        }
        if let Some(pattern) = function.rest.as_ref().filter(|rest| !matches!(rest.kind, PatternKind::Name(_))) {
            self.emit(Op::Load(u16::try_from(function.params.len()).unwrap_or(u16::MAX)));
            self.bind(pattern, true);
        }
    }

    /// The name by which an anonymous function calls itself.
    fn own_name(&mut self, function: &ast::Function) {
        let Some(id) = function.name.as_ref().and_then(|name| self.variable_of(name)) else { return };
        if self.checked.variable(id).function == function.id {
            self.emit(Op::ThisFunction);
            self.store(id, true);
        }
    }

    fn param(&mut self, slot: u16, param: &ast::PatternItem) {
        match (&param.pattern.kind, &param.default) {
            (PatternKind::Name(_), None) => {}
            (PatternKind::Name(name), Some(default)) => {
                let Some(id) = self.variable_of(name) else { return };
                self.load(id);
                self.default(default);
                self.store(id, true);
            }
            (_, default) => {
                self.emit(Op::Load(slot));
                if let Some(default) = default {
                    self.default(default);
                }
                self.bind(&param.pattern, true);
            }
        }
    }

    fn note_captures(&mut self, function: &ast::Function) {
        let end = self.here();
        for (at, id) in self.checked.captures[function.id.0 as usize].iter().enumerate() {
            let name = Arc::clone(&self.checked.variable(*id).name);
            let place = VariablePlace::Capture(u16::try_from(at).unwrap_or(u16::MAX));
            self.builder().function.variables.push(Variable { name, place, ready_at: 0, start: 0, end });
        }
    }

    /// Pushes a closure. What it captures is there by now: functions are compiled where they stand.
    pub(super) fn closure(&mut self, function: &ast::Function) {
        self.function(function);
        let id = self.first + function.id.0;
        self.at(function.span, |compiler| compiler.emit(Op::Closure(id)));
    }

    /// Functions are there from the beginning of their block on.
    pub(super) fn hoisted(&mut self, statements: &[ast::Stmt]) {
        for statement in statements {
            let (ast::StmtKind::Function(function) | ast::StmtKind::Workflow(function)) = &statement.kind else {
                continue;
            };
            let Some(id) = function.name.as_ref().and_then(|name| self.variable_of(name)) else { continue };
            self.closure(function);
            self.store(id, true);
        }
    }
}
