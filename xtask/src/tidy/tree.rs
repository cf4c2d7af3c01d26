//! The text files that rules look at.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

const DIRECTORIES: [&str; 3] = ["crates", "docs", "xtask"];
const FILES: [&str; 4] = ["README.md", ".ci/run", ".cargo/config.toml", "Cargo.toml"];
const EXTENSIONS: [&str; 4] = ["rs", "toml", "sql", "md"];
/// Built or installed, not written.
const IGNORED: [&str; 3] = ["target", "node_modules", "dist"];

/// Everything the rules look at.
pub(super) struct Tree {
    pub(super) files: Vec<SourceFile>,
}

/// A text file.
pub(super) struct SourceFile {
    /// Relative to the workspace root.
    pub(super) path: String,
    pub(super) text: String,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for name in FILES {
            let path = root.join(name);
            if path.is_file() {
                files.push(SourceFile::read(root, &path)?);
            }
        }
        for directory in DIRECTORIES {
            visit(root, &root.join(directory), &mut files)?;
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The text of a file, if it exists.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }
}

impl SourceFile {
    fn read(root: &Path, path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
        Ok(Self { path, text })
    }

    /// The lines, counted from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Whether a marker comment stands on this line or on the one before.
    pub(super) fn is_marked(&self, line: usize, marker: &str) -> bool {
        self.lines().any(|(number, text)| (number == line || number + 1 == line) && text.contains(marker))
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// Where a word stands alone, as an offset into the line.
pub(super) fn find_word(line: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = line[..*at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn visit(root: &Path, directory: &Path, files: &mut Vec<SourceFile>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !IGNORED.contains(&name.as_ref()) {
                visit(root, &path, files)?;
            }
        } else if EXTENSIONS.iter().any(|extension| path.extension().is_some_and(|found| found == *extension)) {
            files.push(SourceFile::read(root, &path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_alone() {
        assert_eq!(find_word("a BEGIN b", "BEGIN"), Some(2));
        assert_eq!(find_word("BEGINS or BEGIN", "BEGIN"), Some(10));
        assert_eq!(find_word("_BEGIN BEGIN2", "BEGIN"), None);
    }

    #[test]
    fn written_files_are_read_and_built_ones_are_not() {
        let root = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in [
            ("README.md", "hello"),
            ("crates/core/src/lib.rs", "//! Core."),
            ("crates/core/target/x.rs", "built"),
            ("crates/core/logo.png", "\u{0}"),
            ("docs/rules.md", "# Rules"),
            ("xtask/src/main.rs", "fn main() {}"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        let tree = Tree::read(root.path()).expect("a tree");
        let paths: Vec<_> = tree.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["README.md", "crates/core/src/lib.rs", "docs/rules.md", "xtask/src/main.rs"]);
        assert_eq!((tree.text("README.md"), tree.text(".ci/run")), (Some("hello"), None));
    }
}
