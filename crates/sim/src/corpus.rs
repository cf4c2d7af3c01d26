//! Cases that once broke something, kept small: every run of the suite repeats them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::case::Case;

/// A case and what it once showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What was broken.
    pub why: String,
    /// The case.
    pub case: Case,
}

/// Where cases are kept.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every kept case, by file name.
pub fn read() -> Result<Vec<(String, Kept)>, String> {
    let mut kept = Vec::new();
    let files = std::fs::read_dir(directory()).map_err(|error| format!("the corpus cannot be read: {error}"))?;
    for file in files {
        let path = file.map_err(|error| error.to_string())?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.ends_with(".json") {
            continue;
        }
        kept.push((name, one(&path)?));
    }
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(kept)
}

/// The case in a file.
pub fn one(path: &Path) -> Result<Kept, String> {
    let unreadable = |error: String| format!("the case {} cannot be read: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
}

/// Writes a case to a file, in a directory that need not be there yet.
pub fn write(path: &Path, kept: &Kept) -> Result<(), String> {
    let text = serde_json::to_string_pretty(kept).map_err(|error| error.to_string())?;
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(path, text + "\n"))
        .map_err(|error| format!("{}: {error}", path.display()))
}
