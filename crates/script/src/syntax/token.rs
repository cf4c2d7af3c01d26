//! Tokens.

use logos::Logos;

use crate::source::Span;

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Whether a line ends between the token before and this one.
    pub(crate) after_line_end: bool,
    pub(crate) span: Span,
}

/// What a token is. Keywords are whole words: `letter` is a name.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\u{FEFF}\u{A0}]+")]
pub(crate) enum Kind {
    #[regex(r"[\n\u{2028}\u{2029}]")]
    LineEnd,
    #[regex(r"//[^\n\u{2028}\u{2029}]*", allow_greedy = true)]
    LineComment,
    /// Its end is looked for by the lexer, which says so where there is none.
    #[token("/*")]
    BlockComment,
    #[regex(r"[\p{XID_Start}$_][\p{XID_Continue}$]*")]
    Name,
    #[regex(r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][+-]?[0-9]+)?")]
    Number,
    #[regex(r#""([^"\\\n]|\\[^\n]|\\\n)*"|'([^'\\\n]|\\[^\n]|\\\n)*'"#)]
    Text,
    /// A quote without its partner on the line.
    #[token("\"")]
    #[token("'")]
    LoneQuote,
    #[token("`")]
    Backtick,
    /// Literal characters of a template; never made by logos.
    TemplateText,
    /// `${` inside a template; never made by logos.
    TemplateOpen,
    /// The `}` that ends a hole of a template; never made by logos.
    TemplateClose,
    /// The end of a template; never made by logos.
    TemplateEnd,

    #[token("let")]
    Let,
    #[token("const")]
    Const,
    #[token("if")]
    If,
    #[token("else")]
    Else,
    #[token("while")]
    While,
    #[token("do")]
    Do,
    #[token("for")]
    For,
    #[token("in")]
    In,
    #[token("break")]
    Break,
    #[token("continue")]
    Continue,
    #[token("switch")]
    Switch,
    #[token("case")]
    Case,
    #[token("default")]
    Default,
    #[token("try")]
    Try,
    #[token("catch")]
    Catch,
    #[token("finally")]
    Finally,
    #[token("throw")]
    Throw,
    #[token("return")]
    Return,
    #[token("function")]
    Function,
    #[token("await")]
    Await,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("null")]
    Null,
    #[token("typeof")]
    Typeof,
    #[token("new")]
    New,
    #[token("delete")]
    Delete,
    #[token("instanceof")]
    Instanceof,
    /// Words of JavaScript that this language does not have.
    #[token("var")]
    #[token("class")]
    #[token("this")]
    #[token("super")]
    #[token("yield")]
    #[token("import")]
    #[token("export")]
    #[token("with")]
    #[token("enum")]
    #[token("void")]
    #[token("debugger")]
    #[token("undefined")]
    Foreign,

    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("...")]
    Ellipsis,
    #[token("?")]
    Question,
    #[token("?.")]
    QuestionDot,
    #[token("??")]
    QuestionQuestion,
    #[token("=>")]
    Arrow,
    #[token("=")]
    Equals,
    #[token("+=")]
    PlusEquals,
    #[token("-=")]
    MinusEquals,
    #[token("*=")]
    StarEquals,
    #[token("/=")]
    SlashEquals,
    #[token("%=")]
    PercentEquals,
    #[token("**=")]
    StarStarEquals,
    #[token("??=")]
    QuestionQuestionEquals,
    #[token("||=")]
    OrEquals,
    #[token("&&=")]
    AndEquals,
    #[token("==")]
    #[token("===")]
    Same,
    #[token("!=")]
    #[token("!==")]
    NotSame,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEquals,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEquals,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("**")]
    StarStar,
    #[token("++")]
    PlusPlus,
    #[token("--")]
    MinusMinus,
    #[token("!")]
    Not,
    #[token("&&")]
    And,
    #[token("||")]
    Or,
    /// Operators of JavaScript that this language does not have.
    #[token("&")]
    #[token("|")]
    #[token("^")]
    #[token("~")]
    #[token("<<")]
    #[token(">>")]
    #[token(">>>")]
    #[token("@")]
    #[token("#")]
    #[token("\\")]
    ForeignOperator,
    /// After the last token.
    End,
}

impl Kind {
    /// Whether it is a word, so that it can name a property.
    pub(crate) fn is_word(self) -> bool {
        use Kind::{
            Await, Break, Case, Catch, Const, Continue, Default, Delete, Do, Else, False, Finally, For, Foreign,
            Function, If, In, Instanceof, Let, Name, New, Null, Return, Switch, Throw, True, Try, Typeof, While,
        };
        matches!(
            self,
            Name | Let
                | Const
                | If
                | Else
                | While
                | Do
                | For
                | In
                | Break
                | Continue
                | Switch
                | Case
                | Default
                | Try
                | Catch
                | Finally
                | Throw
                | Return
                | Function
                | Await
                | True
                | False
                | Null
                | Typeof
                | New
                | Delete
                | Instanceof
                | Foreign
        )
    }
}
