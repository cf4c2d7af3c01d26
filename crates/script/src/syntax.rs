//! From text to tree: tokens, the tree, the parser.

pub(crate) mod ast;
mod lexer;
mod literal;
pub(crate) mod parser;
mod token;

pub(crate) use lexer::Comment;
pub(crate) use parser::{Parsed, parse};

/// The tree of a text, printed: tests see to it that no kind of syntax is forgotten.
pub fn tree(text: &str) -> String {
    format!("{:?}", parse(text).file)
}
