//! What to do about a token that was not expected.

use super::{Kind, Parser};

impl Parser<'_> {
    /// What to write instead of the token that stands here, where `wanted` was expected.
    pub(super) fn help(&self, wanted: &str) -> Option<String> {
        let token = self.token();
        if let Some(help) = foreign_help(token.kind, self.slice(token.span)) {
            return Some(help.to_owned());
        }
        let is_far = token.after_line_end || token.kind == Kind::End;
        match (wanted, token.kind) {
            ("a name", kind) if kind.is_word() => Some("this word belongs to the language: choose another name".into()),
            ("`=` and a value", _) => Some("a constant and a pattern need a value: const name = …".into()),
            ("`;` or a new line", Kind::Colon) => {
                Some("there are no labels: move the inner loop into a function and return from it".into())
            }
            ("`;` or a new line", Kind::Comma) => {
                Some("there is no comma operator: make a list with [ ]; parameters stand in parentheses".into())
            }
            ("`;` or a new line", Kind::Number | Kind::Text | Kind::Name) => {
                Some("is an operator missing between the two, or the word before it misspelt?".into())
            }
            ("`:` and the property's value", _) if self.is_accessor() => {
                Some("there are no getters and setters: use a method".into())
            }
            (_, Kind::Comma) if wanted.ends_with("after the rest") => Some("the rest comes last".into()),
            ("a value", _) if is_far => Some("the line before it is not complete".into()),
            _ => open_help(wanted, is_far),
        }
    }

    fn is_accessor(&self) -> bool {
        let before = self.slice(self.last_span());
        self.kind().is_word() && matches!(before, "get" | "set")
    }
}

/// What to say where a bracket or a comma is missing.
fn open_help(wanted: &str, is_far: bool) -> Option<String> {
    let (open, has_comma) = match wanted {
        "`)`" => ("(", false),
        "`]`" => ("[", false),
        "`,` or `)`" => ("(", true),
        "`,` or `]`" => ("[", true),
        "`,` or `}`" => ("{", true),
        _ => return None,
    };
    Some(if has_comma && !is_far {
        format!("put a comma between the two, or close the {open} before it")
    } else {
        format!("the {open} before it is still open")
    })
}

/// What to write instead of something that JavaScript has and this language has not.
fn foreign_help(kind: Kind, text: &str) -> Option<&'static str> {
    match (kind, text) {
        (Kind::Foreign, "var") => Some("declare it with let or const"),
        (Kind::Foreign, "undefined") => Some("there is no undefined: a missing value is null"),
        (Kind::Foreign, "class") => Some("there are no classes: use objects and functions"),
        (Kind::Foreign, "this" | "super") => Some("there is no this: pass the object as an argument"),
        (Kind::Foreign, "import" | "export") => Some("a script is one file: start other workflows with Workflow.run"),
        (Kind::Foreign, "yield") => Some("there are no generators: use await, or build a list"),
        (Kind::Foreign, _) => Some("this word is reserved and means nothing here"),
        (Kind::ForeignOperator, "&") => Some("there are no bit operations; for a logical and, write &&"),
        (Kind::ForeignOperator, "|") => Some("there are no bit operations; for a logical or, write ||"),
        (Kind::ForeignOperator, "^" | "~" | "<<" | ">>" | ">>>") => Some("there are no bit operations"),
        (Kind::ForeignOperator, "#") => Some("a comment begins with //"),
        (Kind::Slash, _) => Some("there are no regular expressions: use includes, split, replaceAll"),
        (Kind::Arrow, _) => Some("the parameters of an arrow function stand in parentheses: (a, b) => …"),
        _ => None,
    }
}
