//! Mistakes in files that a server follows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of what is wrong with a file are kept.
const TEXT_BYTES_MAX: usize = 8_192;
/// Of how many files they are.
const FILES_MAX: usize = 100;

/// What is wrong with the files that somebody has a server follow: by file, in words. Clones are the same one; whoever reads
/// the files tells it, and the server shows it beside the workflows.
#[derive(Clone, Debug, Default)]
pub struct Mistakes(Arc<Mutex<BTreeMap<String, String>>>);

impl Mistakes {
    /// A file has a mistake.
    pub fn found(&self, file: &str, text: &str) {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < FILES_MAX || known.contains_key(file) {
            known.insert(file.to_owned(), text[..end].to_owned());
        }
    }

    /// A file has none, or is gone.
    pub fn none_in(&self, file: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(file);
    }

    pub(crate) fn all(&self) -> BTreeMap<String, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_limit() {
        let mistakes = Mistakes::default();
        for n in 0..FILES_MAX + 7 {
            mistakes.found(&n.to_string(), &"é".repeat(TEXT_BYTES_MAX));
        }
        assert_eq!(mistakes.all().len(), FILES_MAX);
        assert_eq!(mistakes.all()["0"].len(), TEXT_BYTES_MAX);
        mistakes.none_in("0");
        mistakes.found("last", "one more");
        assert_eq!(mistakes.all().get("last").map(String::as_str), Some("one more"));
    }
}
