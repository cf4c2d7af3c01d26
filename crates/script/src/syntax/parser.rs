//! From tokens to the tree. After a mistake it goes on with the next statement, so that several are found in one go.

mod expr;
mod function;
mod help;
mod infix;
mod leave;
mod pattern;
mod primary;
mod stmt;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::ast::{Block, Expr, ExprKind, Function, FunctionId, FunctionKind, Name, NameId, ScopeId};
use super::lexer::{Comment, lex};
use super::token::{Kind, Token};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// How deep a script may nest: parentheses, blocks, functions.
pub(crate) const NESTING_MAX: u32 = 128;
/// How many levels a tree may have: long chains of operators count too.
const HEIGHT_MAX: u16 = 256;
/// More problems than this are not worth reading.
const PROBLEMS_MAX: usize = 50;

/// A script as a tree.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The whole file, as a function without parameters.
    pub(crate) file: Function,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<Diagnostic>,
    pub(crate) names: u32,
    pub(crate) scopes: u32,
    pub(crate) functions: u32,
}

/// Parses a whole file.
pub(crate) fn parse(text: &str) -> Parsed {
    let lexed = lex(text);
    let mut parser = Parser {
        text,
        tokens: lexed.tokens,
        partner: lexed.partner,
        at: 0,
        problems: lexed.problems,
        words: FxHashMap::default(),
        names: 0,
        scopes: 0,
        functions: 0,
        depth: 0,
        no_in: false,
        within: vec![Within::new(FunctionKind::File)],
        gave_up: false,
        high: 0,
    };
    let file = parser.file();
    Parsed {
        file,
        comments: lexed.comments,
        problems: parser.problems,
        names: parser.names,
        scopes: parser.scopes,
        functions: parser.functions,
    }
}

/// What was wrong was reported; the caller gives up its part, and the next statement is tried.
#[derive(Debug)]
struct Reported;

type Parse<T> = Result<T, Reported>;

/// The function the parser is in.
struct Within {
    kind: FunctionKind,
    awaits: bool,
    loops: u32,
    /// Loops and switches: what `break` leaves.
    breakable: u32,
}

impl Within {
    fn new(kind: FunctionKind) -> Within {
        Within { kind, awaits: false, loops: 0, breakable: 0 }
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    partner: Vec<Option<u32>>,
    at: usize,
    problems: Vec<Diagnostic>,
    /// Each word once.
    words: FxHashMap<&'t str, Arc<str>>,
    names: u32,
    scopes: u32,
    functions: u32,
    depth: u32,
    /// Whether `in` belongs to a `for`.
    no_in: bool,
    within: Vec<Within>,
    /// Set when the script is too deep, or has too many problems: everything after that would only be noise.
    gave_up: bool,
    /// The height of the highest expression since the function began that is being read.
    high: u16,
}

impl<'t> Parser<'t> {
    fn file(&mut self) -> Function {
        let scope = self.scope();
        let block_scope = self.scope();
        let statements = self.statements_until(Kind::End);
        let awaits = self.within.pop().is_some_and(|within| within.awaits);
        let span = Span::new(0, self.here().end);
        let id = self.function_id();
        Function {
            id,
            kind: FunctionKind::File,
            name: None,
            params: Vec::new(),
            rest: None,
            body: Block { statements, scope: block_scope, span },
            value: None,
            is_async: awaits,
            says_async: false,
            scope,
            span,
        }
    }

    fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    /// The kind of a token further on.
    fn ahead(&self, by: usize) -> Kind {
        self.tokens.get(self.at + by).map_or(Kind::End, |token| token.kind)
    }

    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn here(&self) -> Span {
        self.tokens[self.at].span
    }

    /// Where the token before this one ends.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    fn slice(&self, span: Span) -> &'t str {
        &self.text[span.range()]
    }

    /// Goes on to the next token; there is always one, the last being the end.
    fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, kind: Kind, wanted: &str) -> Parse<Token> {
        if self.kind() == kind { Ok(self.bump()) } else { Err(self.unexpected(wanted)) }
    }

    /// Reports that something else was expected here.
    #[cold]
    #[inline(never)]
    fn unexpected(&mut self, wanted: &str) -> Reported {
        let token = self.token();
        if self.follows_unknown() {
            return Reported;
        }
        let found = match token.kind {
            Kind::End => "the end of the file".to_owned(),
            _ => format!("`{}`", clip(self.slice(token.span))),
        };
        let mut problem = Diagnostic::error("syntax", token.span, format!("expected {wanted}, found {found}"));
        if let Some(help) = self.help(wanted) {
            problem = problem.help(help);
        }
        self.report(problem)
    }

    /// Whether a character that means nothing stands before this token. That was reported: what it leads to is noise.
    fn follows_unknown(&self) -> bool {
        let (from, to) = (self.last_span().end, self.here().start);
        let mut unknown = self.problems.iter().filter(|problem| problem.code == "unknown_character");
        unknown.any(|problem| problem.span.start >= from && problem.span.end <= to)
    }

    #[cold]
    #[inline(never)]
    fn report(&mut self, problem: Diagnostic) -> Reported {
        if !self.gave_up {
            self.problems.push(problem);
            self.gave_up = self.problems.len() >= PROBLEMS_MAX;
        }
        Reported
    }

    /// Runs a part one level deeper.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= NESTING_MAX {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// Reports that the script nests too deep. Nothing after that is read: it could only repeat the complaint.
    #[cold]
    #[inline(never)]
    fn too_deep(&mut self) -> Reported {
        let message = format!("the script nests deeper than {NESTING_MAX} levels here");
        let problem = Diagnostic::error("too_deep", self.here(), message);
        let reported = self.report(problem.help("move a part into a function or into a variable of its own"));
        self.gave_up = true;
        self.at = self.tokens.len() - 1;
        reported
    }

    fn word(&mut self, text: &'t str) -> Arc<str> {
        Arc::clone(self.words.entry(text).or_insert_with(|| text.into()))
    }

    fn name_of(&mut self, token: Token) -> Name {
        let id = NameId(self.names);
        self.names += 1;
        let text = self.slice(token.span);
        Name { text: self.word(text), span: token.span, id }
    }

    /// A name that is declared or used.
    fn name(&mut self, wanted: &str) -> Parse<Name> {
        let token = self.expect(Kind::Name, wanted)?;
        Ok(self.name_of(token))
    }

    fn scope(&mut self) -> ScopeId {
        self.scopes += 1;
        ScopeId(self.scopes - 1)
    }

    fn function_id(&mut self) -> FunctionId {
        self.functions += 1;
        FunctionId(self.functions - 1)
    }

    /// A node of the tree, unless the tree becomes too high.
    fn node(&mut self, kind: ExprKind, span: Span, below: u16) -> Parse<Expr> {
        if below >= HEIGHT_MAX {
            let message = format!("this expression has more than {HEIGHT_MAX} levels");
            let problem = Diagnostic::error("too_deep", span, message).help("give a part of it a name with const");
            return Err(self.report(problem));
        }
        self.high = self.high.max(below + 1);
        Ok(Expr { kind, span, height: below + 1 })
    }

    /// What a part returns, and the height of the highest expression in it.
    fn measured<T>(&mut self, part: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<(T, u16)> {
        let outside = std::mem::replace(&mut self.high, 1);
        let result = part(self);
        let inside = std::mem::replace(&mut self.high, outside);
        self.high = outside.max(inside);
        Ok((result?, inside))
    }

    fn leaf(&self, kind: ExprKind, span: Span) -> Expr {
        Expr { kind, span, height: 1 }
    }

    /// Whether the token is a name with this text: such words are keywords only in their place.
    fn is_word(&self, by: usize, word: &str) -> bool {
        self.tokens.get(self.at + by).is_some_and(|token| token.kind == Kind::Name && self.slice(token.span) == word)
    }
}

impl Parser<'_> {
    /// Whether this word and the next token, of one of these kinds, belong together: only on the same line.
    fn word_before(&self, word: &str, kinds: &[Kind]) -> bool {
        let Some(next) = self.tokens.get(self.at + 1) else { return false };
        self.is_word(0, word) && kinds.contains(&next.kind) && !next.after_line_end
    }
}

/// The beginning of a text, for a message.
fn clip(text: &str) -> String {
    const CHARS_MAX: usize = 30;
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= CHARS_MAX {
        return line.to_owned();
    }
    line.chars().take(CHARS_MAX).chain(std::iter::once('…')).collect()
}
