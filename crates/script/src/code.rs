//! Compiled code: what the machine runs.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::heap::Text;
use crate::source::{Source, Span};

/// An instruction. Operands are on the stack; results go there.
#[derive(Clone, Copy, Debug, PartialEq, Hash)]
pub(crate) enum Op {
    /// Pushes a constant.
    Null,
    Bool(bool),
    Int(i32),
    Number(u32),
    Text(u32),
    Native(u16),
    /// Pushes what the run was started with.
    Inputs,
    RunId,
    WorkflowName,
    /// Pushes whether this run is of the workflow with this number.
    IsEntry(u16),
    Pop,
    Dup,
    /// Copies the two values on top.
    Dup2,
    /// Exchanges the two values on top.
    Swap,
    /// Takes the third value from the top to the top.
    Rot3,

    /// Variables of the call.
    Load(u16),
    LoadChecked(u16),
    Store(u16),
    SetHole(u16),
    /// Variables that closures share.
    NewBox(u16),
    BoxParam(u16),
    CopyBox(u16),
    LoadBox(u16),
    LoadBoxChecked(u16),
    StoreBox(u16),
    StoreBoxChecked(u16),
    StoreChecked(u16),
    /// Variables of enclosing calls.
    LoadCapture(u16),
    LoadCaptureChecked(u16),
    StoreCapture(u16),
    StoreCaptureChecked(u16),
    Closure(u32),
    /// Pushes the function that is being called.
    ThisFunction,

    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Same,
    NotSame,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    In,
    IsError,
    Not,
    Minus,
    Plus,
    Typeof,
    /// Adds a small number.
    AddInt(i32),
    /// Adds a small number to a number, and to nothing else.
    Step(i32),
    /// The same to a variable of the call, in place.
    StepLocal {
        slot: u16,
        by: i32,
    },
    /// Adds two variables of the call, and stores the sum in one.
    AddLocals {
        left: u16,
        right: u16,
        to: u16,
    },
    /// Makes one text of so many values.
    Template(u32),

    Jump(u32),
    /// Jumps back: counted.
    Loop(u32),
    JumpIfFalse(u32),
    JumpIfTrue(u32),
    /// Compares, and jumps if it does not hold.
    JumpIfNotLess(u32),
    /// Skips the next instruction, a jump, if a variable of the call is less than a number or another one.
    SkipIfLessInt {
        slot: u16,
        than: i32,
    },
    SkipIfLess {
        slot: u16,
        than: u16,
    },
    /// Steps a variable of the call and takes the next instruction, which jumps back, if it is a number and still less.
    /// Otherwise changes nothing, and skips that instruction: what follows does the same at length.
    RoundIfLessInt {
        slot: u16,
        by: i8,
        than: i32,
    },
    RoundIfLess {
        slot: u16,
        by: i8,
        than: u16,
    },
    /// Jumps and keeps the value, or drops it.
    JumpIfFalseKeep(u32),
    JumpIfTrueKeep(u32),
    JumpIfNotNullKeep(u32),
    /// Jumps and keeps the null, or goes on with the value.
    JumpIfNullKeep(u32),
    /// Jumps and keeps the value; drops a null.
    DefaultJump(u32),

    Member(u32),
    SetMember(u32),
    DeleteMember(u32),
    Index,
    SetIndex,
    DeleteIndex,

    NewList(u32),
    Append,
    Extend,
    NewObject,
    Property(u32),
    ComputedProperty,
    SpreadObject,

    /// Makes sure that a value can be taken apart.
    CheckList,
    CheckObject,
    Element(u32),
    RestOfList(u32),
    /// The object without the properties named by the so many texts on top.
    RestOfObject(u32),

    /// Makes a list of what a loop goes over.
    Iterate,
    Keys,
    /// Pushes the next element of the list in a slot, counted in the slot after it, or jumps.
    Next {
        slot: u16,
        jump: u32,
    },

    Call(u8),
    CallNative {
        native: u16,
        args: u8,
    },
    /// A method is looked up and called: nothing could happen while its arguments were evaluated.
    CallMethod {
        name: u32,
        args: u8,
    },
    /// Looks a method of the value on top up, before its arguments are evaluated.
    FindMethod(u32),
    CallFound {
        name: u32,
        args: u8,
    },
    /// The arguments are a list.
    CallList,
    CallNativeList(u16),
    CallFoundList(u32),
    Return,
    Throw,
    Await,
    /// Goes on with what `finally` interrupted: throws again, or nothing.
    EndFinally(u16),
    /// Pushes whether `finally` interrupted the exit with this number.
    IsExit {
        slot: u16,
        exit: u16,
    },
}

// Small, since the machine reads one after the other.
const _: () = assert!(size_of::<Op>() == 8);

/// Where a closure finds a shared variable when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CaptureFrom {
    /// In a slot of the call that makes it.
    Slot(u16),
    /// Among what that call's closure captured.
    Capture(u16),
}

/// Instructions from `start` up to `end` throw to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handler {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) target: u32,
}

/// Where a variable lives, for whoever looks at a suspended run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: Arc<str>,
    pub(crate) place: VariablePlace,
    /// Where in the source it has its value.
    pub(crate) ready_at: u32,
    /// The instructions during which it can be seen.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariablePlace {
    Slot(u16),
    Box(u16),
    Capture(u16),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) params: u16,
    pub(crate) has_rest: bool,
    /// Slots for parameters and variables.
    pub(crate) slots: u16,
    pub(crate) is_async: bool,
    /// Part of the language itself: not shown in stacks.
    pub(crate) is_hidden: bool,
    pub(crate) ops: Vec<Op>,
    /// Where each instruction comes from.
    pub(crate) spans: Vec<Span>,
    /// The innermost first.
    pub(crate) handlers: Vec<Handler>,
    pub(crate) captures: Vec<CaptureFrom>,
    pub(crate) variables: Vec<Variable>,
}

/// The code of a file, together with the part of the language that is written in itself.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) source: Source,
    pub(crate) functions: Vec<Arc<Function>>,
    pub(crate) texts: Vec<Text>,
    pub(crate) numbers: Vec<f64>,
    /// The file itself.
    pub(crate) main: u32,
    pub(crate) workflows: Vec<Arc<str>>,
    /// Identifies the source and the language: state is only good for the code it was made by.
    pub(crate) hash: String,
}

impl Function {
    /// Feeds a hash all that a suspended call depends on.
    pub(crate) fn fingerprint(&self, hasher: &mut impl Hasher) {
        let Function {
            name: _,
            params,
            has_rest,
            slots,
            is_async,
            is_hidden: _,
            ops,
            spans: _,
            handlers,
            captures,
            ..
        } = self;
        (params, has_rest, slots, is_async, ops, handlers, captures).hash(hasher);
    }
}
