//! From characters to tokens. Comments are kept aside, for the formatter.

use logos::Logos;

use super::token::{Kind, Token};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// The longest source text, in bytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 128 * 1024;

/// More problems than this are not worth reading.
const PROBLEMS_MAX: usize = 50;

/// A comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) span: Span,
    /// Whether it ends with its line.
    pub(crate) to_line_end: bool,
}

/// The tokens of a text, the last one [`Kind::End`], and for each bracket the place of its partner.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    /// For an opening bracket the place of the closing one in `tokens`; none for others, and for lone ones.
    pub(crate) partner: Vec<Option<u32>>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<Diagnostic>,
}

pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer { text, at: 0, lexed: Lexed::default(), after_line_end: false, open: Vec::new() };
    if text.len() > SOURCE_BYTES_MAX {
        let message = format!("the script has {} bytes, the limit is {SOURCE_BYTES_MAX}", text.len());
        lexer.problem(Diagnostic::error("script_too_long", Span::new(0, 0), message).help("split it into several"));
    } else {
        lexer.run();
    }
    lexer.push(Kind::End, lexer.at, lexer.at);
    lexer.lexed
}

struct Lexer<'t> {
    text: &'t str,
    /// The byte that is looked at next.
    at: usize,
    lexed: Lexed,
    after_line_end: bool,
    /// The brackets that are open, by their place in the tokens; a hole of a template is one.
    open: Vec<usize>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while self.at < self.text.len() && self.lexed.problems.len() < PROBLEMS_MAX {
            let mut tokens = Kind::lexer(&self.text[self.at..]);
            let base = self.at;
            // Logos goes on until something needs a look of our own, which moves on by itself.
            loop {
                let Some(kind) = tokens.next() else {
                    self.at = self.text.len();
                    break;
                };
                let (start, end) = (base + tokens.span().start, base + tokens.span().end);
                self.at = end;
                if !self.token(kind, start, end) {
                    break;
                }
            }
        }
    }

    /// Takes a token; whether logos may go on from there.
    fn token(&mut self, kind: Result<Kind, ()>, start: usize, end: usize) -> bool {
        match kind {
            Ok(Kind::LineEnd) => self.after_line_end = true,
            Ok(Kind::LineComment) => self.comment(start, end, true),
            Ok(Kind::BlockComment) => {
                self.block_comment(start);
                return false;
            }
            Ok(Kind::Backtick) => {
                self.push(Kind::Backtick, start, end);
                self.template_text();
                return false;
            }
            Ok(Kind::BraceClose) if self.closes_hole() => {
                self.push(Kind::TemplateClose, start, end);
                self.template_text();
                return false;
            }
            Ok(Kind::LoneQuote) => {
                self.lone_quote(start);
                return false;
            }
            Ok(kind) => self.push(kind, start, end),
            Err(()) => {
                let what = &self.text[start..end];
                let message = format!("{what:?} means nothing here");
                let problem = Diagnostic::error("unknown_character", span(start, end), message);
                self.problem(problem.help("remove it; as a part of a text it stands between quotes"));
                return self.lexed.problems.len() < PROBLEMS_MAX;
            }
        }
        true
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let place = self.lexed.tokens.len();
        self.lexed.tokens.push(Token {
            kind,
            after_line_end: std::mem::take(&mut self.after_line_end),
            span: span(start, end),
        });
        self.lexed.partner.push(None);
        match kind {
            Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen | Kind::TemplateOpen => self.open.push(place),
            Kind::ParenClose | Kind::BracketClose | Kind::BraceClose | Kind::TemplateClose => self.close(kind, place),
            _ => {}
        }
    }

    /// Finds the partner of a closing bracket. One of another kind in between is lone, and stays so.
    fn close(&mut self, kind: Kind, place: usize) {
        let partner = match kind {
            Kind::ParenClose => Kind::ParenOpen,
            Kind::BracketClose => Kind::BracketOpen,
            Kind::TemplateClose => Kind::TemplateOpen,
            _ => Kind::BraceOpen,
        };
        // Only the innermost few are looked at: a text of lone brackets must not take quadratic time.
        let near = self.open.iter().rev().take(8).position(|open| self.lexed.tokens[*open].kind == partner);
        if let Some(above) = near {
            let open = self.open[self.open.len() - 1 - above];
            self.open.truncate(self.open.len() - 1 - above);
            self.lexed.partner[open] = u32::try_from(place).ok();
        }
    }

    /// Whether the innermost open bracket is the hole of a template.
    fn closes_hole(&self) -> bool {
        self.open.last().is_some_and(|open| self.lexed.tokens[*open].kind == Kind::TemplateOpen)
    }

    /// The characters of a template up to its end or to its next hole.
    fn template_text(&mut self) {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut at = start;
        while at < bytes.len() {
            match bytes[at] {
                b'`' => {
                    self.push(Kind::TemplateText, start, at);
                    self.push(Kind::TemplateEnd, at, at + 1);
                    self.at = at + 1;
                    return;
                }
                b'$' if bytes.get(at + 1) == Some(&b'{') => {
                    self.push(Kind::TemplateText, start, at);
                    self.push(Kind::TemplateOpen, at, at + 2);
                    self.at = at + 2;
                    return;
                }
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        let end = self.text.len();
        self.push(Kind::TemplateText, start, end);
        self.push(Kind::TemplateEnd, end, end);
        self.at = end;
        let problem =
            Diagnostic::error("open_template", span(start.saturating_sub(1), start), "this template string has no end");
        self.problem(problem.help("close it with a backtick: `"));
    }

    fn comment(&mut self, start: usize, end: usize, to_line_end: bool) {
        self.lexed.comments.push(Comment { span: span(start, end), to_line_end });
    }

    fn block_comment(&mut self, start: usize) {
        let body = &self.text[self.at..];
        match body.find("*/") {
            Some(length) => {
                self.after_line_end |= body[..length].contains('\n');
                self.at += length + 2;
                self.comment(start, self.at, false);
            }
            None => {
                self.at = self.text.len();
                let problem = Diagnostic::error("open_comment", span(start, start + 2), "this comment has no end");
                self.problem(problem.help("close it with */"));
            }
        }
    }

    /// Takes the rest of the line for the text that was meant.
    fn lone_quote(&mut self, start: usize) {
        let rest = &self.text[start..];
        let end = start + rest.find('\n').unwrap_or(rest.len());
        self.at = end;
        self.push(Kind::Text, start, end);
        let quote = &self.text[start..=start];
        let problem = Diagnostic::error("open_string", span(start, end), "this string has no end");
        self.problem(problem.help(format!("close it with {quote}, or use a template string (`…`) for several lines")));
    }

    fn problem(&mut self, problem: Diagnostic) {
        self.lexed.problems.push(problem);
    }
}

fn span(start: usize, end: usize) -> Span {
    let offset = |at| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(offset(start), offset(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        lex(text).tokens.iter().map(|token| token.kind).collect()
    }

    #[test]
    fn keywords_are_whole_words() {
        assert_eq!(kinds("letter = 5"), [Kind::Name, Kind::Equals, Kind::Number, Kind::End]);
        assert_eq!(kinds("let"), [Kind::Let, Kind::End]);
    }

    #[test]
    fn templates_nest() {
        let kinds = kinds("`a${ {b: `${c}`} }d`");
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::TemplateOpen).count(), 2);
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::TemplateClose).count(), 2);
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::BraceClose).count(), 1);
    }

    #[test]
    fn a_text_without_its_end_takes_its_line_and_the_rest_is_read() {
        let lexed = lex("let a = \"abc\nlet b = 2");
        assert_eq!(lexed.problems.len(), 1);
        assert_eq!(lexed.tokens.iter().filter(|token| token.kind == Kind::Let).count(), 2);
    }

    #[test]
    fn comments_are_kept_aside() {
        let lexed = lex("a // one\n/* two */ b");
        assert_eq!(lexed.comments.len(), 2);
        assert_eq!(lexed.tokens.len(), 3);
        assert!(lexed.tokens[1].after_line_end);
    }

    #[test]
    fn brackets_know_their_partners() {
        let lexed = lex("f((a), [b])");
        assert_eq!(lexed.partner[1], Some(9));
        assert_eq!(lexed.partner[2], Some(4));
    }
}
