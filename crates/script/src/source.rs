//! Where things stand in a source text.

use std::sync::Arc;

/// A stretch of a source text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Its first byte.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
}

impl Span {
    /// From `start` up to, and without, `end`.
    pub fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// From the beginning of this one to the end of the other.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The same as a range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A line and a column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A file: its name and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: Arc<str>,
    text: Arc<str>,
    /// Where each line begins.
    lines: Vec<u32>,
}

impl Source {
    /// A file with this name and text.
    pub fn new(name: &str, text: &str) -> Source {
        // Longer texts are refused by the lexer: offsets beyond are never looked at.
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| offset(at + 1));
        Source { name: name.into(), text: text.into(), lines: std::iter::once(0).chain(starts).collect() }
    }

    /// The file's name, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a stretch; empty if it is not inside.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// Line and column of a byte.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.lines.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.lines.get(line).copied().unwrap_or_default();
        let before = self.text.get(start as usize..offset as usize).unwrap_or_default();
        Position { line: number(line + 1), column: number(before.chars().count() + 1) }
    }

    /// Where the first line of a stretch begins, and the last one ends.
    pub(crate) fn lines_of(&self, span: Span) -> (usize, usize) {
        let line = |offset: u32| self.lines.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.lines.get(line(span.start)).copied().unwrap_or_default() as usize;
        let next = self.lines.get(line(span.end.max(span.start)) + 1);
        (start, next.map_or(self.text.len(), |next| *next as usize))
    }

    /// The text of a line, counted from 1, without its end.
    pub fn line(&self, line: u32) -> &str {
        let start = self.lines.get(line.saturating_sub(1) as usize).copied().unwrap_or(offset(self.text.len()));
        let rest = self.text.get(start as usize..).unwrap_or_default();
        rest.lines().next().unwrap_or_default()
    }
}

fn offset(at: usize) -> u32 {
    number(at)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("a.wf", "let ä = 1\nlet b = ä");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(7), Position { line: 1, column: 7 });
        assert_eq!(source.position(11), Position { line: 2, column: 1 });
        assert_eq!(source.line(2), "let b = ä");
        assert_eq!(source.line(9), "");
    }
}
