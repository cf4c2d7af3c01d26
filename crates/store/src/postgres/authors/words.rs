//! Statements that an author must not send: told by their first words, as a message can hold only one.

use crate::transact::TxError;

const CONTROL: &str = "return from the closure to commit, or return an error to roll back";
const SESSION: &str = "do it on a connection of your own";

/// Refuses transaction control, and what changes the session instead of the data.
pub(super) fn check(sql: &str) -> Result<(), TxError> {
    let mut words = words(sql);
    let first = words.next().unwrap_or_default();
    let instead = match first.as_str() {
        "ABORT" | "BEGIN" | "COMMIT" | "END" | "PREPARE" | "RELEASE" | "ROLLBACK" | "SAVEPOINT" | "START" => CONTROL,
        // When constraints are checked is a matter of the transaction alone.
        "SET" if words.next().as_deref() == Some("CONSTRAINTS") => return Ok(()),
        "COPY" | "DEALLOCATE" | "DISCARD" | "LISTEN" | "LOAD" | "RESET" | "SET" | "UNLISTEN" => SESSION,
        _ => return Ok(()),
    };
    Err(TxError::Denied { what: first, instead })
}

/// The words a statement begins with, in capitals: what the server's parser skips is skipped.
fn words(sql: &str) -> impl Iterator<Item = String> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        rest = skip(rest);
        let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then(|| word.to_ascii_uppercase())
    })
}

/// Skips spaces, comments and empty statements.
fn skip(mut sql: &str) -> &str {
    loop {
        sql = sql.trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == '\x0b' || letter == ';');
        if let Some(comment) = sql.strip_prefix("--") {
            sql = comment.find(['\n', '\r']).map_or("", |end| &comment[end..]);
        } else if sql.starts_with("/*") {
            sql = after_comment(sql);
        } else {
            return sql;
        }
    }
}

/// What follows a comment. They nest.
fn after_comment(sql: &str) -> &str {
    let mut depth = 0_u32;
    let mut rest = sql;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix("/*") {
            depth += 1;
            rest = inner;
        } else if let Some(after) = rest.strip_prefix("*/") {
            depth -= 1;
            rest = after;
            if depth == 0 {
                return rest;
            }
        } else {
            let mut letters = rest.chars();
            letters.next();
            rest = letters.as_str();
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_control_is_refused_however_it_is_written() {
        let hidden = [
            "COMMIT",
            "  rollback to savepoint x",
            ";;\t; commit",
            "-- a note\nEND",
            "/* a /* nested */ note */ Begin",
            "SAVEPOINT x",
            "release x",
            "START TRANSACTION",
            "PREPARE TRANSACTION 'x'",
            "abort;",
        ];
        for sql in hidden {
            assert!(matches!(check(sql), Err(TxError::Denied { instead: CONTROL, .. })), "{sql}");
        }
    }

    #[test]
    fn session_settings_are_refused() {
        for sql in ["SET search_path TO x", "set local work_mem = 1", "RESET ALL", "DISCARD ALL", "COPY t FROM STDIN"] {
            assert!(matches!(check(sql), Err(TxError::Denied { instead: SESSION, .. })), "{sql}");
        }
    }

    #[test]
    fn statements_about_data_are_allowed() {
        let allowed =
            ["SELECT 1", "SET CONSTRAINTS ALL IMMEDIATE", "UPDATE t SET commit = 1", "(SELECT 1)", "", "commits", "/*"];
        for sql in allowed {
            assert_eq!(check(sql), Ok(()), "{sql}");
        }
    }
}
