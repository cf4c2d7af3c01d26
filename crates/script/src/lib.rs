//! The script style of Outlast: a small JavaScript-like language whose suspended programs can be saved.
//!
//! Everything here is a function of its arguments: no clock, no randomness, no I/O. What a script asks for goes to
//! [`outlast_core::operation::Operations`]; what happened comes as facts.

mod builtins;
mod check;
mod code;
mod compile;
mod diagnostic;
mod disassemble;
mod duration;
mod expression;
mod format;
mod heap;
mod limits;
mod machine;
mod number;
mod program;
mod script;
mod snapshot;
mod source;
mod suggest;
mod syntax;
mod trace;
mod value;
mod world;

#[doc(hidden)]
pub use builtins::names as builtin_names;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use duration::parse as parse_duration;
pub use expression::{EXPRESSION_LIMITS, Expression, Reference, is_reserved_name};
pub use format::format_text as format;
pub use limits::Limits;
pub use program::ScriptProgram;
pub use script::{Script, check_text as check};
pub use snapshot::SnapshotError;
#[doc(hidden)]
pub use snapshot::checksum as snapshot_checksum;
pub use source::{Position, Source, Span};
pub use suggest::nearest;
#[doc(hidden)]
pub use syntax::tree as syntax_tree;
pub use trace::{Trace, TracedCall, trace};
pub use world::{RunInfo, Tokens};
