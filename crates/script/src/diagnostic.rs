//! What is wrong with a source text, and how to show it.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::source::{Position, Source, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The script does not run.
    Error,
    /// The script runs, and probably does not do what was meant.
    Warning,
}

/// Something to say about a place in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of problem: a stable word, such as `undefined_name`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What stands under the underlined place; may be empty.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Something that keeps the script from running.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, code, message: message.into(), span, label: String::new(), help: None }
    }

    /// Something that is probably not meant.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// The same with a few words under the place.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Diagnostic {
        Diagnostic { label: label.into(), ..self }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Diagnostic {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// Whether the script does not run because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// As people read it: message, file, line, column, the source line with the place underlined, and advice.
    pub fn render(&self, source: &Source) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        // The lines it is about, and no others: texts are long.
        let whole = source.text().strip_suffix('\n').unwrap_or(source.text());
        // The end of the file belongs to the last line that has something in it.
        let last = u32::try_from(whole.len()).unwrap_or(u32::MAX);
        let span = Span::new(self.span.start.min(last), self.span.end.min(last));
        let first = source.position(span.start).line;
        let (start, end) = source.lines_of(span);
        if end - start > LINES_BYTES_MAX {
            return self.render_shortly(source);
        }
        let text = source.text().get(start..end).unwrap_or_default();
        let range = span.range().start - start..span.range().end - start;
        let mut place = AnnotationKind::Primary.span(range);
        if !self.label.is_empty() {
            place = place.label(&self.label);
        }
        let snippet = Snippet::source(text).line_start(first as usize).path(source.name()).annotation(place);
        let mut group = level.primary_title(&self.message).id(self.code).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        Renderer::plain().render(&[group])
    }

    /// Where lines are too long to be shown: only the beginning of the place.
    fn render_shortly(&self, source: &Source) -> String {
        const CHARS_MAX: usize = 60;
        let level = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let position = source.position(self.span.start);
        let excerpt: String = source.slice(self.span).chars().take(CHARS_MAX).collect();
        let excerpt = excerpt.lines().next().unwrap_or_default();
        let help = self.help.as_ref().map_or(String::new(), |help| format!("\n  = help: {help}"));
        let (code, message, file) = (self.code, &self.message, source.name());
        let Position { line, column } = position;
        format!("{level}[{code}]: {message}\n --> {file}:{line}:{column}\n  |\n  | {excerpt}\n  |{help}")
    }
}

/// Lines that are longer than this together are not shown as a whole.
const LINES_BYTES_MAX: usize = 4_000;

/// Why a script does not run: at least one error, and whatever else there is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    source: Source,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// What there is to say about a text; it is put in the order of the text.
    pub fn new(source: Source, mut list: Vec<Diagnostic>) -> Diagnostics {
        list.sort_by_key(|diagnostic| (diagnostic.span, diagnostic.severity));
        list.dedup();
        Diagnostics { source, list }
    }

    /// All of them, in the order of the source.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Whether any keeps the script from running.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// The text they are about.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, diagnostic) in self.list.iter().enumerate() {
            if place > 0 {
                f.write_str("\n\n")?;
            }
            f.write_str(&diagnostic.render(&self.source))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
