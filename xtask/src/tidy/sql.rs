//! Values reach SQL as parameters, never as text.

use super::finding::Finding;
use super::tree::{SourceFile, find_word};

const DIRECTORY: &str = "crates/store/src/";
const MARKER: &str = "// tidy: constant sql";
const MACROS: [&str; 4] = ["format!(", "format_args!(", "write!(", "writeln!("];
const STATEMENTS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];

/// No statement is put together by formatting, unless its parts are marked as constant.
pub(super) fn constant(file: &SourceFile) -> Vec<Finding> {
    if !file.path.starts_with(DIRECTORY) || !file.is_rust() {
        return Vec::new();
    }
    let starts = MACROS.iter().flat_map(|name| file.text.match_indices(name).map(|(at, name)| (at, at + name.len())));
    let mut findings: Vec<(usize, Finding)> =
        starts.filter_map(|(at, body)| Some((at, formatted_statement(file, at, body)?))).collect();
    findings.sort_by_key(|(at, _)| *at);
    findings.into_iter().map(|(_, finding)| finding).collect()
}

fn formatted_statement(file: &SourceFile, at: usize, body: usize) -> Option<Finding> {
    let before = &file.text[..at];
    // `rewrite!(` is not `write!(`.
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    if before[line_start..].trim_start().starts_with("//") {
        return None;
    }
    let arguments = arguments(&file.text[body..]);
    let statement = STATEMENTS.iter().find(|word| find_word(arguments, word).is_some())?;
    let line = before.matches('\n').count() + 1;
    if arguments.contains(MARKER) || file.is_marked(line, MARKER) {
        return None;
    }
    let fix = format!("pass values as parameters; if every part is constant, mark it with `{MARKER}`");
    Some(Finding::new(&file.path, line, format!("a `{statement}` put together by formatting"), fix))
}

/// The text up to the parenthesis that closes the macro; parentheses inside strings do not count.
fn arguments(text: &str) -> &str {
    let (mut depth, mut in_string, mut previous) = (1_u32, false, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '"' if in_string && previous == '\\' => {}
            '"' => in_string = !in_string,
            '(' if !in_string => depth += 1,
            ')' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
        // A backslash that is itself escaped escapes nothing.
        previous = if c == '\\' && previous == '\\' { ' ' } else { c };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::examples::file;
    use super::*;

    #[track_caller]
    fn check(text: &str, lines: &[usize]) {
        let findings = constant(&file("crates/store/src/sqlite/run.rs", text));
        assert_eq!(findings.iter().map(Finding::line).collect::<Vec<_>>(), lines, "{findings:?}");
    }

    #[test]
    fn statements_put_together_by_formatting_are_refused() {
        check("let sql = format!(\"SELECT * FROM run WHERE id = '{id}'\");", &[1]);
        check("let a = 1;\nlet sql = format!(\n    \"{}\",\n    \"DELETE FROM run\",\n);", &[2]);
        check("write!(sql, \"UPDATE run SET x = '{}'\", f(\")\"))?;\nformat!(\"INSERT INTO {t}\")", &[1, 2]);
    }

    #[test]
    fn messages_marked_statements_and_parameters_are_fine() {
        check("format!(\"cannot select {id}\")", &[]);
        check("// tidy: constant sql\nformat!(\"SELECT {COLUMNS} FROM run\")", &[]);
        check("format!(\n    // tidy: constant sql\n    \"SELECT {COLUMNS} FROM run\"\n)", &[]);
        check("format!(\"{id}\");\ndb.execute(\"DELETE FROM run WHERE id = ?1\", [id])?;", &[]);
        check("/// Not `format!(\"SELECT {id}\")`.", &[]);
        assert!(constant(&file("crates/store/tests/plans.rs", "format!(\"SELECT {x}\")")).is_empty());
    }
}
