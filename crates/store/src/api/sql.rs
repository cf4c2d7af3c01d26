//! Questions in SQL, for operators.

use std::time::Duration;

/// A question in SQL, and how much may come of it. It sees every namespace, and nothing it asks for changes anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlQuestion {
    /// One statement, which only reads.
    pub text: String,
    /// How long it may take.
    pub time: Duration,
    /// How many rows it is given, at most.
    pub rows: usize,
    /// How many bytes these have together, roughly, at most.
    pub bytes: usize,
}

/// What a question in SQL is answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlAnswer {
    /// What the columns are called.
    pub columns: Vec<String>,
    /// The rows, each with a value for every column.
    pub rows: Vec<Vec<serde_json::Value>>,
    /// Whether there were more.
    pub more: bool,
}

impl SqlQuestion {
    /// Adds a row that has so many bytes, if it fits; whether it did.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn keep(
        &self,
        answer: &mut SqlAnswer,
        used: &mut usize,
        row: Vec<serde_json::Value>,
        bytes: usize,
    ) -> bool {
        *used = used.saturating_add(bytes);
        answer.more = answer.rows.len() == self.rows || *used > self.bytes;
        if !answer.more {
            answer.rows.push(row);
        }
        !answer.more
    }
}

/// The question itself is wrong, or takes too much.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn unanswered(why: impl std::fmt::Display) -> crate::StoreError {
    crate::StoreError::Settings(format!("the question cannot be answered: {why}; ask another one"))
}
