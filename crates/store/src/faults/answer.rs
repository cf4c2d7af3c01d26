//! How the answers of calls look when they fail.

use crate::{CommitError, Committed, Resolution, StoreError, Transacted};

/// Leaves the sender of an item in doubt, and keeps the truth.
pub(super) type Doubt<'d> = &'d mut dyn FnMut(usize, Resolution) -> CommitError;

/// What a call answers.
pub(super) trait Answer: Sized {
    /// The caller is told that nothing was applied.
    fn failed(error: &StoreError, items: usize) -> Self;

    /// A commit is turned down; no other call can be.
    fn turned_down(_error: &CommitError, _items: usize) -> Option<Self> {
        None
    }

    /// The caller is not told what became of it. `truth` is what the store answered, if the call reached it.
    fn in_doubt(error: &StoreError, items: usize, _truth: Option<Self>, _doubt: Doubt<'_>) -> Self {
        Self::failed(error, items)
    }
}

impl<T> Answer for Result<T, StoreError> {
    fn failed(error: &StoreError, _items: usize) -> Self {
        Err(error.clone())
    }
}

impl<T> Answer for Vec<Result<T, StoreError>> {
    fn failed(error: &StoreError, items: usize) -> Self {
        (0..items).map(|_| Err(error.clone())).collect()
    }
}

impl Answer for Vec<Result<Committed, CommitError>> {
    fn turned_down(error: &CommitError, items: usize) -> Option<Self> {
        Some((0..items).map(|_| Err(error.clone())).collect())
    }

    fn failed(error: &StoreError, items: usize) -> Self {
        (0..items).map(|_| Err(CommitError::NotApplied(error.clone()))).collect()
    }

    fn in_doubt(_: &StoreError, items: usize, truth: Option<Self>, doubt: Doubt<'_>) -> Self {
        // A commit that was refused was not applied, whatever became of its neighbours.
        let applied = |item: usize| truth.as_ref().and_then(|answers| answers.get(item)).is_some_and(Result::is_ok);
        (0..items).map(|item| Err(doubt(item, resolution(applied(item))))).collect()
    }
}

impl Answer for Result<Transacted, CommitError> {
    fn turned_down(error: &CommitError, _items: usize) -> Option<Self> {
        Some(Err(error.clone()))
    }

    fn failed(error: &StoreError, _items: usize) -> Self {
        Err(CommitError::NotApplied(error.clone()))
    }

    fn in_doubt(_: &StoreError, _: usize, truth: Option<Self>, doubt: Doubt<'_>) -> Self {
        Err(doubt(0, resolution(matches!(truth, Some(Ok(Transacted::Committed(_)))))))
    }
}

fn resolution(applied: bool) -> Resolution {
    if applied { Resolution::Applied } else { Resolution::NotApplied }
}
