//! What commands print for programs and for people.

use std::io::Write;

use anyhow::{Context, Result};
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON value.
    Json,
    /// One JSON value per line.
    Jsonl,
    /// YAML.
    Yaml,
}

/// Prints one value. `people` says it for people.
pub(crate) fn one<T: Serialize>(format: Format, value: &T, people: impl FnOnce(&T) -> String) -> Result<()> {
    match format {
        Format::Table => print(&people(value)),
        Format::Json | Format::Jsonl => print(&json(value)?),
        Format::Yaml => print(&yaml(value)?),
    }
    Ok(())
}

/// Prints values. `people` says them for people.
pub(crate) fn many<T: Serialize>(format: Format, values: &[T], people: impl FnOnce(&[T]) -> String) -> Result<()> {
    match format {
        Format::Table => print(&people(values)),
        Format::Json => print(&json(&values)?),
        Format::Jsonl => values.iter().try_for_each(|value| json(value).map(|line| print(&line)))?,
        Format::Yaml => print(&yaml(&values)?),
    }
    Ok(())
}

/// Lines under a headline, in columns.
pub(crate) fn table(headline: &[&str], lines: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(headline);
    for line in lines {
        table.add_row(line);
    }
    table.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n")
}

fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).context("the answer cannot be written as JSON")
}

fn yaml<T: Serialize>(value: &T) -> Result<String> {
    // By way of JSON: what is text in the one is text in the other.
    let value = serde_json::to_value(value).context("the answer cannot be written as JSON")?;
    serde_saphyr::to_string(&value).context("the answer cannot be written as YAML")
}

/// Lays JSON out for people, without changing the order in which its author wrote it.
pub(crate) fn pretty(json: &str) -> String {
    let (mut text, mut depth, mut in_string, mut escaped) = (String::new(), 0_usize, false, false);
    let mut letters = json.trim().chars().peekable();
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if in_string {
            (in_string, escaped) = (escaped || letter != '"', !escaped && letter == '\\');
            text.push(letter);
            continue;
        }
        match letter {
            '"' => {
                in_string = true;
                text.push(letter);
            }
            '{' | '[' => {
                text.push(letter);
                while letters.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(end);
                } else {
                    depth += 1;
                    line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut text, depth);
                text.push(letter);
            }
            ',' => {
                text.push(letter);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            letter if letter.is_whitespace() => {}
            letter => text.push(letter),
        }
    }
    text
}

/// Prints a text to standard output. Who stopped reading it wants no more.
pub(crate) fn print(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.trim_end_matches('\n').as_bytes());
    let _ = stdout.write_all(b"\n");
    let _ = stdout.flush();
}

/// Prints a line to standard error.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_as_everybody_does_and_keeps_its_order() {
        let texts = [
            r#"{"b":[1,{"x":"a, \"{b}\" \\"}],"a":{},"c":[],"d":null}"#,
            "[ ]",
            "\"text\"",
            "7",
            r#"[[[1.5e3,true]],"\\",{"a b":"c:d"}]"#,
        ];
        for text in texts {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            let again: serde_json::Value = serde_json::from_str(&pretty(text)).unwrap();
            assert_eq!(again, value);
        }
        assert_eq!(pretty(texts[0]).lines().nth(1), Some("  \"b\": ["));
        let sorted = serde_json::json!({ "a": [1, { "b": "c" }], "d": {} });
        assert_eq!(pretty(&sorted.to_string()), serde_json::to_string_pretty(&sorted).unwrap());
    }
}
