//! What is wrong in a file, and where.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why tasks could not be read from a text or a file.
#[derive(Debug, thiserror::Error)]
pub struct ConfigError {
    file: Option<PathBuf>,
    line: Option<usize>,
    key: Option<String>,
    message: String,
    #[source]
    source: Option<std::io::Error>,
}

impl ConfigError {
    pub(super) fn unreadable(file: &Path, source: std::io::Error) -> ConfigError {
        let message = format!("it cannot be read: {source}");
        ConfigError { file: Some(file.to_owned()), line: None, key: None, message, source: Some(source) }
    }

    pub(super) fn in_file(self, file: &Path) -> ConfigError {
        ConfigError { file: Some(file.to_owned()), ..self }
    }

    /// The line it is about, from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// The key it is about, such as `tasks.charge.timeout`.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// A place in a text.
#[derive(Clone)]
pub(super) struct Place<'t> {
    pub(super) text: &'t str,
    /// The keys that lead there.
    pub(super) key: Vec<String>,
    /// Where, in bytes.
    pub(super) at: Range<usize>,
}

impl Place<'_> {
    pub(super) fn inside(&self, key: &str, at: Range<usize>) -> Self {
        let mut place = self.clone();
        place.key.push(key.to_owned());
        place.at = at;
        place
    }

    /// The same key, at another place.
    pub(super) fn at(&self, at: Range<usize>) -> Self {
        Place { at, ..self.clone() }
    }

    pub(super) fn error(&self, message: String) -> ConfigError {
        let before = self.text.get(..self.at.start).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let key = (!self.key.is_empty()).then(|| self.key.join("."));
        ConfigError { file: None, line: Some(line), key, message, source: None }
    }
}

/// The one of these names that was probably meant.
pub(super) fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let name = name.to_lowercase().replace('-', "_");
    let (edits, best) = names.iter().map(|known| (edits(&name, known), *known)).min()?;
    (edits <= best.len().div_ceil(3)).then_some(best)
}

/// How many letters to add, remove or change.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], number + 1);
        for (column, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_a_strange_one_has_none() {
        assert_eq!((edits("timout", "timeout"), edits("", "abc"), edits("abc", "abc")), (1, 3, 0));
        let names = ["timeout", "output_limit", "cwd"];
        assert_eq!(nearest("timout", &names), Some("timeout"));
        assert_eq!(nearest("Output-Limit", &names), Some("output_limit"));
        assert_eq!(nearest("colour", &names), None);
    }
}
