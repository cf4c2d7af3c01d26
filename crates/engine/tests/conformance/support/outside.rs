//! The world outside of the workflows. A case is told on one thread.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static COUNTS: RefCell<BTreeMap<String, u32>> = RefCell::default();
    static TOKENS: RefCell<BTreeMap<String, String>> = RefCell::default();
}

/// A side effect that can be counted.
pub(crate) fn count(what: &str) {
    COUNTS.with_borrow_mut(|counts| *counts.entry(what.to_owned()).or_default() += 1);
}

/// How often it happened.
pub(crate) fn counted(what: &str) -> u32 {
    COUNTS.with_borrow(|counts| counts.get(what).copied().unwrap_or_default())
}

/// Tells somebody outside a callback's token.
pub(crate) fn hand_out(name: &str, token: &str) {
    TOKENS.with_borrow_mut(|tokens| tokens.insert(name.to_owned(), token.to_owned()));
}

/// The token that was told last under this name.
pub(super) fn token(name: &str) -> Option<String> {
    TOKENS.with_borrow(|tokens| tokens.get(name).cloned())
}

/// Another case begins.
pub(super) fn forget() {
    COUNTS.take();
    TOKENS.take();
}

/// Waits for an answer of a store. A thread gives it that the world of a case does not know of: so it stands still.
pub(super) fn wait<T>(answer: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs nothing");
    runtime.block_on(answer)
}
