//! The one way to lay out a script. Comments stay, blank lines stay (one at a time), and formatting twice changes nothing.

mod comments;
mod doc;
mod expr;
mod function;
mod stmt;

use crate::diagnostic::Diagnostics;
use crate::source::{Source, Span};
use crate::syntax::parse;
use comments::Comments;

/// Lays out a script; what is wrong with it, if it cannot be read.
///
/// ```
/// let text = outlast_script::format("a.wf", "let  x=1 // one\nif(x){log( x )}")?;
/// assert_eq!(text, "let x = 1 // one\nif (x) {\n  log(x)\n}\n");
/// # Ok::<(), outlast_script::Diagnostics>(())
/// ```
pub fn format_text(name: &str, text: &str) -> Result<String, Diagnostics> {
    let parsed = parse(text);
    if !parsed.problems.is_empty() {
        return Err(Diagnostics::new(Source::new(name, text), parsed.problems));
    }
    let mut formatter = Formatter { text, comments: Comments::new(text, parsed.comments) };
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let doc = formatter.statements(&parsed.file.body.statements, 0, end);
    let printed = doc::print(&doc);
    let body = printed.trim_matches('\n');
    Ok(if body.is_empty() { String::new() } else { format!("{body}\n") })
}

struct Formatter<'t> {
    text: &'t str,
    comments: Comments<'t>,
}

impl<'t> Formatter<'t> {
    fn slice(&self, span: Span) -> &'t str {
        &self.text[span.range()]
    }

    /// Whether a line ends between two places.
    fn has_line_end(&self, from: u32, to: u32) -> bool {
        self.text.get(from as usize..to as usize).is_some_and(|between| between.contains('\n'))
    }
}
