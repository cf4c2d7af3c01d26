//! From the tree to code.

mod call;
mod control;
mod expr;
mod function;
mod pattern;
mod stmt;
mod target;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::check::{Checked, Meaning, VariableId, VariableKind};
use crate::code::{Function, Op, Variable, VariablePlace};
use crate::heap::Text;
use crate::source::Span;
use crate::syntax::Parsed;
use crate::syntax::ast::{Expr, ExprKind, FunctionId, Name, ScopeId};
use control::Control;
pub(crate) use control::{ENTERED_BY_THROW, ENTERED_NORMALLY};

/// The most variables and intermediate results a function may have at once.
pub(crate) const SLOTS_MAX: u16 = 20_000;

/// What a file compiles to; numbers of functions, texts and numbers go on where `base` ends.
#[derive(Default)]
pub(crate) struct Compiled {
    pub(crate) functions: Vec<Arc<Function>>,
    pub(crate) texts: Vec<Text>,
    pub(crate) numbers: Vec<f64>,
    pub(crate) main: u32,
    /// A function with too many variables.
    pub(crate) too_large: Option<Span>,
}

/// Compiles a checked file without errors.
pub(crate) fn compile(parsed: &Parsed, checked: &Checked, base: &Compiled, is_prelude: bool) -> Compiled {
    let texts = base.texts.iter().enumerate();
    let first = number(base.functions.len());
    let mut compiler = Compiler {
        checked,
        is_prelude,
        first,
        functions: vec![None; parsed.functions as usize],
        words: texts.map(|(place, text)| (Arc::clone(&text.text), number(place))).collect(),
        texts: base.texts.clone(),
        numbers: base.numbers.clone(),
        slots: vec![0; checked.variables.len()],
        builders: Vec::new(),
        too_large: None,
    };
    compiler.function(&parsed.file);
    let mut functions = base.functions.clone();
    functions.extend(compiler.functions.into_iter().map(Option::unwrap_or_default));
    let main = first + parsed.file.id.0;
    Compiled { functions, texts: compiler.texts, numbers: compiler.numbers, main, too_large: compiler.too_large }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A function that is being compiled.
struct Builder {
    id: FunctionId,
    function: Function,
    next_slot: u16,
    control: Vec<Control>,
    /// Where jumps come from that an optional chain takes when it is cut short.
    chains: Vec<Vec<usize>>,
    span: Span,
}

struct Compiler<'a> {
    checked: &'a Checked,
    is_prelude: bool,
    /// The number of the file's first function.
    first: u32,
    functions: Vec<Option<Arc<Function>>>,
    words: FxHashMap<Arc<str>, u32>,
    texts: Vec<Text>,
    numbers: Vec<f64>,
    /// Where each variable lives in its function.
    slots: Vec<u16>,
    /// The innermost last.
    builders: Vec<Builder>,
    too_large: Option<Span>,
}

/// Where a variable is found from the function that is being compiled.
#[derive(Clone, Copy)]
enum Place {
    Slot(u16),
    Box(u16),
    Capture(u16),
}

impl Compiler<'_> {
    /// The function that is being compiled: there is always one.
    fn builder(&mut self) -> &mut Builder {
        let last = self.builders.len() - 1;
        &mut self.builders[last]
    }

    fn emit(&mut self, op: Op) -> usize {
        let builder = self.builder();
        let span = builder.span;
        builder.function.ops.push(op);
        builder.function.spans.push(span);
        builder.function.ops.len() - 1
    }

    /// Runs a part whose instructions come from a place in the source.
    fn at<T>(&mut self, span: Span, part: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.builder().span, span);
        let result = part(self);
        self.builder().span = before;
        result
    }

    fn here(&mut self) -> u32 {
        number(self.builder().function.ops.len())
    }

    /// A jump whose target is not known yet.
    fn jump(&mut self, op: fn(u32) -> Op) -> usize {
        self.emit(op(u32::MAX))
    }

    /// Lets a jump come here.
    fn land(&mut self, jump: usize) {
        let target = self.here();
        let op = &mut self.builder().function.ops[jump];
        match op {
            Op::Jump(to)
            | Op::Loop(to)
            | Op::JumpIfFalse(to)
            | Op::JumpIfTrue(to)
            | Op::JumpIfNotLess(to)
            | Op::JumpIfFalseKeep(to)
            | Op::JumpIfTrueKeep(to)
            | Op::JumpIfNotNullKeep(to)
            | Op::JumpIfNullKeep(to)
            | Op::DefaultJump(to)
            | Op::Next { jump: to, .. } => *to = target,
            _ => {}
        }
    }

    fn land_all(&mut self, jumps: Vec<usize>) {
        jumps.into_iter().for_each(|jump| self.land(jump));
    }

    fn text(&mut self, text: &Arc<str>) -> u32 {
        if let Some(place) = self.words.get(text) {
            return *place;
        }
        let place = number(self.texts.len());
        self.texts.push(Text::new(Arc::clone(text)));
        self.words.insert(Arc::clone(text), place);
        place
    }

    fn push_number(&mut self, value: f64) {
        let small = value as i32;
        let is_small = f64::from(small) == value && (small != 0 || value.is_sign_positive());
        if is_small {
            self.emit(Op::Int(small));
        } else {
            self.numbers.push(value);
            let place = number(self.numbers.len() - 1);
            self.emit(Op::Number(place));
        }
    }

    /// So many slots next to each other, until the scope ends.
    fn take_slots(&mut self, count: u16) -> u16 {
        let builder = self.builder();
        let slot = builder.next_slot;
        builder.next_slot = slot.saturating_add(count);
        builder.function.slots = builder.function.slots.max(builder.next_slot);
        if builder.next_slot > SLOTS_MAX {
            builder.next_slot = slot;
            let span = builder.span;
            self.too_large.get_or_insert(span);
        }
        slot
    }

    /// Runs a part with slots of its own.
    fn with_slots<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.builder().next_slot;
        let result = part(self);
        self.builder().next_slot = before;
        result
    }

    /// Opens a scope: its variables get their slots, fresh each time the code comes by.
    fn with_scope<T>(&mut self, scope: ScopeId, part: impl FnOnce(&mut Self) -> T) -> T {
        self.with_slots(|compiler| {
            compiler.open_variables(scope);
            let start = compiler.here();
            let result = part(compiler);
            compiler.note_variables(scope, start);
            result
        })
    }

    fn open_variables(&mut self, scope: ScopeId) {
        for &id in self.checked.declared(scope) {
            let slot = self.take_slots(1);
            self.slots[id.0 as usize] = slot;
            self.open_variable(id, slot);
        }
    }

    fn open_variable(&mut self, id: VariableId, slot: u16) {
        let variable = self.checked.variable(id);
        let is_implicit = variable.kind == VariableKind::Implicit;
        if variable.is_captured {
            self.emit(Op::NewBox(slot));
            if is_implicit {
                self.emit(Op::Null);
                self.emit(Op::StoreBox(slot));
            }
        } else if is_implicit {
            self.emit(Op::Null);
            self.emit(Op::Store(slot));
        } else if variable.is_early {
            self.emit(Op::SetHole(slot));
        }
    }

    /// Notes for whoever looks at a suspended run where the variables of a scope were.
    fn note_variables(&mut self, scope: ScopeId, start: u32) {
        let end = self.here();
        for &id in self.checked.declared(scope) {
            let variable = self.checked.variable(id);
            let slot = self.slots[id.0 as usize];
            let place = if variable.is_captured { VariablePlace::Box(slot) } else { VariablePlace::Slot(slot) };
            let (name, ready_at) = (Arc::clone(&variable.name), variable.ready_at);
            self.builder().function.variables.push(Variable { name, place, ready_at, start, end });
        }
    }

    fn place(&mut self, id: VariableId) -> Place {
        let variable = self.checked.variable(id);
        let current = self.builder().id;
        if variable.function != current {
            let captures = &self.checked.captures[current.0 as usize];
            let at = captures.iter().position(|captured| *captured == id).unwrap_or_default();
            return Place::Capture(u16::try_from(at).unwrap_or(u16::MAX));
        }
        let slot = self.slots[id.0 as usize];
        if variable.is_captured { Place::Box(slot) } else { Place::Slot(slot) }
    }

    /// Whether a variable may be met before its declaration has run.
    fn may_be_hole(&self, id: VariableId) -> bool {
        let variable = self.checked.variable(id);
        match variable.kind {
            VariableKind::Let | VariableKind::Const => variable.is_captured || variable.is_early,
            VariableKind::Param
            | VariableKind::Function
            | VariableKind::Workflow
            | VariableKind::Caught
            | VariableKind::Implicit => variable.is_early,
        }
    }

    fn load(&mut self, id: VariableId) {
        let op = match (self.place(id), self.may_be_hole(id)) {
            (Place::Slot(slot), false) => Op::Load(slot),
            (Place::Slot(slot), true) => Op::LoadChecked(slot),
            (Place::Box(slot), false) => Op::LoadBox(slot),
            (Place::Box(slot), true) => Op::LoadBoxChecked(slot),
            (Place::Capture(at), false) => Op::LoadCapture(at),
            (Place::Capture(at), true) => Op::LoadCaptureChecked(at),
        };
        self.emit(op);
    }

    /// Stores the value on top, and drops it. `declares` where it is initialised.
    fn store(&mut self, id: VariableId, declares: bool) {
        let checked = !declares && self.may_be_hole(id);
        let op = match (self.place(id), checked) {
            (Place::Slot(slot), false) => Op::Store(slot),
            (Place::Slot(slot), true) => Op::StoreChecked(slot),
            (Place::Box(slot), false) => Op::StoreBox(slot),
            (Place::Box(slot), true) => Op::StoreBoxChecked(slot),
            (Place::Capture(at), false) => Op::StoreCapture(at),
            (Place::Capture(at), true) => Op::StoreCaptureChecked(at),
        };
        self.emit(op);
    }

    /// The slot of an expression that is a plain variable of the call and certainly has a value.
    fn plain_slot(&mut self, expr: &Expr) -> Option<u16> {
        let ExprKind::Name(name) = &expr.bare().kind else { return None };
        self.slot_of(name)
    }

    fn slot_of(&mut self, name: &Name) -> Option<u16> {
        let id = self.variable_of(name)?;
        match self.place(id) {
            Place::Slot(slot) if !self.may_be_hole(id) => Some(slot),
            Place::Slot(_) | Place::Box(_) | Place::Capture(_) => None,
        }
    }

    /// The variable a name stands for; the checker made sure that there is one where this is asked.
    fn variable_of(&self, name: &Name) -> Option<VariableId> {
        match self.checked.meaning(name.id) {
            Meaning::Variable(id) => Some(id),
            Meaning::Nothing | Meaning::Namespace | Meaning::Builtin(_) => None,
        }
    }
}
