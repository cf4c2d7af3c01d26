//! Expressions. Each leaves one value on the stack.

use super::Compiler;
use super::target::logical_jump;
use crate::builtins::{self, Builtin, Constant};
use crate::check::Meaning;
use crate::code::Op;
use crate::syntax::ast::{BinaryOp, Element, Expr, ExprKind, Name, Property, UnaryOp};

impl Compiler<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) {
        self.at(expr.span, |compiler| compiler.expr_kind(&expr.kind));
    }

    fn expr_kind(&mut self, kind: &ExprKind) {
        match kind {
            ExprKind::Null => {
                self.emit(Op::Null);
            }
            ExprKind::Bool(value) => {
                self.emit(Op::Bool(*value));
            }
            ExprKind::Number(value) => self.push_number(*value),
            ExprKind::Text(text) => {
                let text = self.text(text);
                self.emit(Op::Text(text));
            }
            ExprKind::Template { texts, holes } => self.template(texts, holes),
            ExprKind::Name(name) => self.name(name),
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Object(properties) => {
                self.emit(Op::NewObject);
                properties.iter().for_each(|property| self.property(property));
            }
            ExprKind::Function(function) => self.closure(function),
            ExprKind::Unary { op, operand } => self.unary(*op, operand),
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right),
            ExprKind::Logical { op, left, right } => {
                self.expr(left);
                let there = self.jump(logical_jump(*op));
                self.expr(right);
                self.land(there);
            }
            ExprKind::Conditional { test, then, otherwise } => {
                self.expr(test);
                let other = self.jump(Op::JumpIfFalse);
                self.expr(then);
                let end = self.jump(Op::Jump);
                self.land(other);
                self.expr(otherwise);
                self.land(end);
            }
            ExprKind::Assign { op, target, value } => self.assign(*op, target, value, true),
            ExprKind::Update { op, is_prefix, target } => self.update(*op, *is_prefix, target, true),
            ExprKind::Await(operand) => {
                self.expr(operand);
                self.emit(Op::Await);
            }
            ExprKind::Delete(place) => self.delete(place),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Member { object, name, optional, .. } => self.member(object, name, *optional),
            ExprKind::Index { object, index, optional } => {
                self.expr(object);
                self.cut_short(*optional);
                self.expr(index);
                self.emit(Op::Index);
            }
            ExprKind::Chain(inner) => {
                self.builder().chains.push(Vec::new());
                self.expr(inner);
                let jumps = self.builder().chains.pop().unwrap_or_default();
                self.land_all(jumps);
            }
            ExprKind::Group(inner) => self.expr(inner),
        }
    }

    /// Ends the chain with null if the value on top is null.
    pub(super) fn cut_short(&mut self, optional: bool) {
        if optional {
            let jump = self.jump(Op::JumpIfNullKeep);
            if let Some(chain) = self.builder().chains.last_mut() {
                chain.push(jump);
            }
        }
    }

    fn template(&mut self, texts: &[std::sync::Arc<str>], holes: &[Expr]) {
        let mut parts = 0;
        for (place, text) in texts.iter().enumerate() {
            // The first part makes a text of it, whatever follows.
            if !text.is_empty() || holes.is_empty() {
                let text = self.text(text);
                self.emit(Op::Text(text));
                parts += 1;
            }
            if let Some(hole) = holes.get(place) {
                self.expr(hole);
                parts += 1;
            }
        }
        self.emit(Op::Template(parts));
    }

    fn name(&mut self, name: &Name) {
        match self.checked.meaning(name.id) {
            Meaning::Variable(id) => self.load(id),
            Meaning::Builtin(builtin) => self.builtin(builtin),
            // Both were reported: such code never runs.
            Meaning::Nothing | Meaning::Namespace => {
                self.emit(Op::Null);
            }
        }
    }

    fn builtin(&mut self, builtin: Builtin) {
        match builtin {
            Builtin::Native(native) => {
                self.emit(Op::Native(native));
            }
            Builtin::Constant(Constant::Number(value)) => self.push_number(value),
            Builtin::Constant(Constant::Inputs) => {
                self.emit(Op::Inputs);
            }
            Builtin::Constant(Constant::RunId) => {
                self.emit(Op::RunId);
            }
            Builtin::Constant(Constant::WorkflowName) => {
                self.emit(Op::WorkflowName);
            }
        }
    }

    /// The member of a namespace, if that is what the expression is.
    pub(super) fn namespace_member(&self, object: &Expr, name: &str) -> Option<Builtin> {
        let ExprKind::Name(namespace) = &object.kind else { return None };
        match self.checked.meaning(namespace.id) {
            Meaning::Namespace | Meaning::Builtin(_) => builtins::member(&namespace.text, name),
            Meaning::Nothing | Meaning::Variable(_) => None,
        }
    }

    fn member(&mut self, object: &Expr, name: &std::sync::Arc<str>, optional: bool) {
        if let Some(builtin) = self.namespace_member(object, name) {
            self.builtin(builtin);
            return;
        }
        self.expr(object);
        self.cut_short(optional);
        let name = self.text(name);
        self.emit(Op::Member(name));
    }

    fn delete(&mut self, place: &Expr) {
        match &place.bare().kind {
            ExprKind::Member { object, name, .. } => {
                self.expr(object);
                let name = self.text(name);
                self.emit(Op::DeleteMember(name));
            }
            ExprKind::Index { object, index, .. } => {
                self.expr(object);
                self.expr(index);
                self.emit(Op::DeleteIndex);
            }
            _ => {
                self.emit(Op::Null);
            }
        }
    }

    pub(super) fn list(&mut self, elements: &[Element]) {
        let plain = elements.iter().take_while(|element| !element.spread).count();
        for element in &elements[..plain] {
            self.expr(&element.value);
        }
        self.emit(Op::NewList(super::number(plain)));
        for element in &elements[plain..] {
            self.expr(&element.value);
            self.at(element.value.span, |compiler| compiler.emit(if element.spread { Op::Extend } else { Op::Append }));
        }
    }

    fn property(&mut self, property: &Property) {
        match property {
            Property::Named { name, value, .. } => {
                self.expr(value);
                self.name_function(name, value);
                let name = self.text(name);
                self.emit(Op::Property(name));
            }
            Property::Computed { key, value } => {
                self.expr(key);
                self.expr(value);
                self.at(key.span, |compiler| compiler.emit(Op::ComputedProperty));
            }
            Property::Shorthand { name, .. } => {
                self.at(name.span, |compiler| compiler.name(name));
                let name = self.text(&name.text);
                self.emit(Op::Property(name));
            }
            Property::Spread(value) => {
                self.expr(value);
                self.at(value.span, |compiler| compiler.emit(Op::SpreadObject));
            }
        }
    }

    /// A function without a name takes that of the property.
    fn name_function(&mut self, name: &std::sync::Arc<str>, value: &Expr) {
        if let ExprKind::Function(function) = &value.kind
            && function.name.is_none()
            && let Some(compiled) = &mut self.functions[function.id.0 as usize]
            && let Some(compiled) = std::sync::Arc::get_mut(compiled)
        {
            compiled.name = name.clone();
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) {
        if let (UnaryOp::Minus, ExprKind::Number(value)) = (op, &operand.kind) {
            self.push_number(-value);
            return;
        }
        self.expr(operand);
        self.emit(match op {
            UnaryOp::Not => Op::Not,
            UnaryOp::Minus => Op::Minus,
            UnaryOp::Plus => Op::Plus,
            UnaryOp::Typeof => Op::Typeof,
        });
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        self.expr(left);
        if op == BinaryOp::Instanceof {
            self.emit(Op::IsError);
            return;
        }
        if let (BinaryOp::Add, ExprKind::Number(value)) = (op, &right.kind)
            && f64::from(*value as i32) == *value
        {
            self.emit(Op::AddInt(*value as i32));
            return;
        }
        self.expr(right);
        self.emit(binary_op(op));
    }
}

pub(super) fn binary_op(op: BinaryOp) -> Op {
    match op {
        BinaryOp::Add => Op::Add,
        BinaryOp::Subtract => Op::Subtract,
        BinaryOp::Multiply => Op::Multiply,
        BinaryOp::Divide => Op::Divide,
        BinaryOp::Remainder => Op::Remainder,
        BinaryOp::Power => Op::Power,
        BinaryOp::Same => Op::Same,
        BinaryOp::NotSame => Op::NotSame,
        BinaryOp::Less => Op::Less,
        BinaryOp::LessEquals => Op::LessEquals,
        BinaryOp::Greater => Op::Greater,
        BinaryOp::GreaterEquals => Op::GreaterEquals,
        BinaryOp::In => Op::In,
        BinaryOp::Instanceof => Op::IsError,
    }
}
