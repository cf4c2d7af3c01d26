//! The tree a script is parsed into.

use std::sync::Arc;

use crate::source::Span;

/// A name in the source: where one is declared, or used. Its number is its place in the table of resolved names.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: Arc<str>,
    pub(crate) span: Span,
    pub(crate) id: NameId,
}

/// The number of a [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameId(pub(crate) u32);

/// The number of a stretch of source with declarations of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeId(pub(crate) u32);

/// The number of a function, in the order in which they are closed by the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FunctionId(pub(crate) u32);

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// How many levels there are below it.
    pub(crate) height: u16,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Null,
    Bool(bool),
    Number(f64),
    Text(Arc<str>),
    /// Always one more text than holes.
    Template {
        texts: Vec<Arc<str>>,
        holes: Vec<Expr>,
    },
    Name(Name),
    List(Vec<Element>),
    Object(Vec<Property>),
    Function(Box<Function>),
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Logical {
        op: LogicalOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Conditional {
        test: Box<Expr>,
        then: Box<Expr>,
        otherwise: Box<Expr>,
    },
    Assign {
        op: AssignOp,
        target: Box<Pattern>,
        value: Box<Expr>,
    },
    Update {
        op: UpdateOp,
        is_prefix: bool,
        target: Box<Pattern>,
    },
    Await(Box<Expr>),
    Delete(Box<Expr>),
    Call(Box<Call>),
    Member {
        object: Box<Expr>,
        name: Arc<str>,
        name_span: Span,
        optional: bool,
    },
    Index {
        object: Box<Expr>,
        index: Box<Expr>,
        optional: bool,
    },
    /// Where a chain ends that `?.` may cut short.
    Chain(Box<Expr>),
    /// In parentheses, which the formatter keeps only where they are needed.
    Group(Box<Expr>),
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) callee: Expr,
    pub(crate) args: Vec<Element>,
    pub(crate) optional: bool,
    pub(crate) is_new: bool,
}

/// An element of a list, or an argument.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) spread: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Property {
    Named {
        name: Arc<str>,
        span: Span,
        value: Expr,
    },
    Computed {
        key: Expr,
        value: Expr,
    },
    /// `{ a }`, or `{ a = 1 }` where it turns out to be a pattern.
    Shorthand {
        name: Name,
        default: Option<Expr>,
    },
    Spread(Expr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Not,
    Minus,
    Plus,
    Typeof,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOp {
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
    Instanceof,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogicalOp {
    And,
    Or,
    Coalesce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AssignOp {
    Plain,
    Binary(BinaryOp),
    Logical(LogicalOp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateOp {
    Increment,
    Decrement,
}

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) kind: PatternKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum PatternKind {
    Name(Name),
    /// A place that is assigned to: `o.p`, `a[i]`.
    Place(Box<Expr>),
    List {
        items: Vec<Option<PatternItem>>,
        rest: Option<Box<Pattern>>,
    },
    Object {
        properties: Vec<PatternProperty>,
        rest: Option<Box<Pattern>>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct PatternItem {
    pub(crate) pattern: Pattern,
    pub(crate) default: Option<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct PatternProperty {
    pub(crate) key: Arc<str>,
    pub(crate) item: PatternItem,
    /// Whether key and name are one word: `{ a }`.
    pub(crate) shorthand: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) id: FunctionId,
    pub(crate) kind: FunctionKind,
    pub(crate) name: Option<Name>,
    pub(crate) params: Vec<PatternItem>,
    pub(crate) rest: Option<Pattern>,
    pub(crate) body: Block,
    /// The value of an arrow function without braces.
    pub(crate) value: Option<Box<Expr>>,
    /// Marked so, or with an `await` of its own.
    pub(crate) is_async: bool,
    /// Marked so.
    pub(crate) says_async: bool,
    /// Its parameters.
    pub(crate) scope: ScopeId,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// The whole file.
    File,
    Workflow,
    Function,
    Arrow,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) statements: Vec<Stmt>,
    pub(crate) scope: ScopeId,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    pub(crate) kind: StmtKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    Declare { kind: DeclareKind, list: Vec<Declarator> },
    Function(Box<Function>),
    Workflow(Box<Function>),
    Expr(Expr),
    If { branches: Vec<(Expr, Stmt)>, otherwise: Option<Box<Stmt>> },
    While { test: Expr, body: Box<Stmt> },
    DoWhile { body: Box<Stmt>, test: Expr },
    For(Box<For>),
    ForEach(Box<ForEach>),
    Switch(Box<Switch>),
    Break,
    Continue,
    Try(Box<Try>),
    Throw(Expr),
    Return(Option<Expr>),
    Block(Block),
    Empty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclareKind {
    Let,
    Const,
}

#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    pub(crate) pattern: Pattern,
    pub(crate) value: Option<Expr>,
}

/// `for (init; test; update) body`.
#[derive(Clone, Debug)]
pub(crate) struct For {
    pub(crate) init: Option<Stmt>,
    pub(crate) test: Option<Expr>,
    pub(crate) update: Vec<Expr>,
    pub(crate) body: Stmt,
    pub(crate) scope: ScopeId,
}

/// `for (let x of list) body`, `for (let k in object) body`.
#[derive(Clone, Debug)]
pub(crate) struct ForEach {
    /// None where it assigns to what is declared already.
    pub(crate) declare: Option<DeclareKind>,
    pub(crate) pattern: Pattern,
    pub(crate) over_keys: bool,
    pub(crate) list: Expr,
    pub(crate) body: Stmt,
    pub(crate) scope: ScopeId,
}

#[derive(Clone, Debug)]
pub(crate) struct Switch {
    pub(crate) subject: Expr,
    /// None for `default`.
    pub(crate) cases: Vec<(Option<Expr>, Vec<Stmt>, Span)>,
    pub(crate) scope: ScopeId,
}

#[derive(Clone, Debug)]
pub(crate) struct Try {
    pub(crate) body: Block,
    pub(crate) catch: Option<Catch>,
    pub(crate) finally: Option<Block>,
}

#[derive(Clone, Debug)]
pub(crate) struct Catch {
    pub(crate) pattern: Option<Pattern>,
    pub(crate) body: Block,
    /// Of the caught error.
    pub(crate) scope: ScopeId,
}

impl Expr {
    /// Without the parentheses around it.
    pub(crate) fn bare(&self) -> &Expr {
        let mut expr = self;
        while let ExprKind::Group(inner) = &expr.kind {
            expr = inner;
        }
        expr
    }
}
