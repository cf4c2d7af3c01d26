//! Comments, each of which is printed once.

use super::doc::{Doc, concat, text};
use crate::source::Span;
use crate::syntax::Comment;

pub(super) struct Comments<'t> {
    text: &'t str,
    list: Vec<Comment>,
    next: usize,
}

impl<'t> Comments<'t> {
    pub(super) fn new(text: &'t str, list: Vec<Comment>) -> Comments<'t> {
        Comments { text, list, next: 0 }
    }

    /// Takes those that begin before a place.
    pub(super) fn before(&mut self, place: u32) -> Vec<Comment> {
        let start = self.next;
        while self.list.get(self.next).is_some_and(|comment| comment.span.start < place) {
            self.next += 1;
        }
        self.list[start..self.next].to_vec()
    }

    /// Whether one begins before a place.
    pub(super) fn any_before(&self, place: u32) -> bool {
        self.list.get(self.next).is_some_and(|comment| comment.span.start < place)
    }

    /// Takes those that stand on the line where something ends, and before what follows it.
    pub(super) fn trailing(&mut self, end: u32, following: u32) -> Vec<Comment> {
        let start = self.next;
        let mut end = end;
        while let Some(comment) = self.list.get(self.next) {
            let same_line =
                self.text.get(end as usize..comment.span.start as usize).is_some_and(|gap| !gap.contains('\n'));
            if comment.span.start >= following || !same_line {
                break;
            }
            end = comment.span.end;
            self.next += 1;
        }
        self.list[start..self.next].to_vec()
    }

    pub(super) fn doc(&self, comment: Comment) -> Doc {
        text(self.text[comment.span.range()].trim_end())
    }

    /// Each on a line of its own.
    pub(super) fn lines(&self, comments: &[Comment]) -> Doc {
        concat(comments.iter().flat_map(|comment| [self.doc(*comment), Doc::Hard]))
    }

    /// Whether there is a blank line between two places.
    pub(super) fn has_blank(&self, from: u32, to: u32) -> bool {
        let gap = self.text.get(from as usize..to as usize).unwrap_or_default();
        // What stands before the first line end and after the last one are no lines of the gap's own.
        let lines: Vec<&str> = gap.split('\n').collect();
        lines.len() > 2 && lines[1..lines.len() - 1].iter().any(|line| line.trim().is_empty())
    }

    pub(super) fn span_of(comments: &[Comment]) -> Option<Span> {
        Some(comments.first()?.span.to(comments.last()?.span))
    }
}
