//! What an author's statements may not do on the writer's connection, and how long they may take.
//!
//! Both hooks are installed once and look whether an author's statement is under way: installing an authorizer makes
//! SQLite prepare every statement anew, and ours are prepared for life.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::transact::TxError;

/// Steps of SQLite's machine between two looks at the clock: well below a millisecond.
const STEPS_PER_LOOK: i32 = 1_000;

/// Watches the statements of authors.
pub(super) struct Guard {
    /// An author's statement is under way.
    inside: AtomicBool,
    state: Mutex<State>,
    /// The tables and indexes that are the store's own.
    own: BTreeSet<String>,
    limit: Duration,
}

#[derive(Default)]
struct State {
    deadline: Option<Instant>,
    denied: Option<TxError>,
}

impl Guard {
    /// Installs the hooks on the writer's connection.
    pub(super) fn install(
        connection: &mut Connection,
        own: BTreeSet<String>,
        limit: Duration,
    ) -> rusqlite::Result<Arc<Guard>> {
        let guard = Arc::new(Guard { inside: AtomicBool::new(false), state: Mutex::default(), own, limit });
        let authorizer = Arc::clone(&guard);
        connection.authorizer(Some(move |context: AuthContext<'_>| authorizer.authorize(&context.action)))?;
        let clock = Arc::clone(&guard);
        connection.progress_handler(STEPS_PER_LOOK, Some(move || clock.is_inside() && clock.is_late()))?;
        Ok(guard)
    }

    /// A transaction begins: from now on the time counts.
    pub(super) fn begin(&self) {
        *self.state() = State { deadline: Some(now() + self.limit), denied: None };
    }

    /// An author's statement begins; it ends when the answer is dropped.
    pub(super) fn enter(&self) -> Inside<'_> {
        self.inside.store(true, Ordering::Relaxed);
        Inside(self)
    }

    /// Whether the transaction took too long.
    pub(super) fn is_late(&self) -> bool {
        self.state().deadline.is_some_and(|deadline| now() >= deadline)
    }

    pub(super) fn too_long(&self) -> TxError {
        TxError::TooLong { limit: self.limit }
    }

    /// What was denied since this was asked last.
    pub(super) fn take_denied(&self) -> Option<TxError> {
        self.state().denied.take()
    }

    fn is_inside(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn authorize(&self, action: &AuthAction<'_>) -> Authorization {
        if !self.is_inside() {
            return Authorization::Allow;
        }
        match self.objection(action) {
            None => Authorization::Allow,
            Some((what, instead)) => {
                self.state().denied = Some(TxError::Denied { what, instead });
                Authorization::Deny
            }
        }
    }

    /// What is wrong with an action, and what to do instead.
    fn objection(&self, action: &AuthAction<'_>) -> Option<(String, &'static str)> {
        const CONTROL: &str = "return from the closure to commit, or return an error to roll back";
        const SESSION: &str = "do it on a connection of your own";
        const OWN: &str = "use the engine's API for runs, and tables of your own for everything else";
        match action {
            AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
                Some(("transaction control".to_owned(), CONTROL))
            }
            AuthAction::Attach { .. } => Some(("ATTACH".to_owned(), SESSION)),
            AuthAction::Detach { .. } => Some(("DETACH".to_owned(), SESSION)),
            AuthAction::Pragma { pragma_name, .. } => Some((format!("PRAGMA {pragma_name}"), SESSION)),
            AuthAction::Analyze { .. } => Some(("ANALYZE".to_owned(), SESSION)),
            AuthAction::Function { function_name } if function_name.eq_ignore_ascii_case("load_extension") => {
                Some(("loading an extension".to_owned(), SESSION))
            }
            // A temporary table hides a real one of the same name, on this connection and for good: perhaps ours.
            AuthAction::CreateTempTable { .. }
            | AuthAction::CreateTempIndex { .. }
            | AuthAction::CreateTempTrigger { .. }
            | AuthAction::CreateTempView { .. }
            | AuthAction::DropTempTable { .. }
            | AuthAction::DropTempIndex { .. }
            | AuthAction::DropTempTrigger { .. }
            | AuthAction::DropTempView { .. } => {
                Some(("a temporary table, index, trigger or view".to_owned(), "use a table of your own"))
            }
            // Some of our ids come from it.
            AuthAction::Insert { table_name: "sqlite_sequence" }
            | AuthAction::Update { table_name: "sqlite_sequence", .. }
            | AuthAction::Delete { table_name: "sqlite_sequence" } => {
                Some(("writing sqlite_sequence".to_owned(), SESSION))
            }
            // A code this library does not know may be anything.
            AuthAction::Unknown { code, .. } => Some((format!("action {code}"), SESSION)),
            other => touched(other).find(|name| self.is_own(name)).map(|name| (format!("Outlast's own {name}"), OWN)),
        }
    }

    fn is_own(&self, name: &str) -> bool {
        self.own.contains(&name.to_ascii_lowercase())
    }
}

/// The tables and indexes an action touches.
fn touched<'a>(action: &AuthAction<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let (first, second) = match *action {
        AuthAction::CreateIndex { index_name, table_name } | AuthAction::DropIndex { index_name, table_name } => {
            (Some(index_name), Some(table_name))
        }
        AuthAction::CreateTable { table_name }
        | AuthAction::CreateTrigger { table_name, .. }
        | AuthAction::DropTrigger { table_name, .. }
        | AuthAction::DropTable { table_name }
        | AuthAction::CreateVtable { table_name, .. }
        | AuthAction::DropVtable { table_name, .. }
        | AuthAction::AlterTable { table_name, .. }
        | AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Read { table_name, .. }
        | AuthAction::Update { table_name, .. } => (Some(table_name), None),
        AuthAction::CreateView { view_name } | AuthAction::DropView { view_name } => (Some(view_name), None),
        AuthAction::Reindex { index_name } => (Some(index_name), None),
        _ => (None, None),
    };
    first.into_iter().chain(second)
}

/// An author's statement is under way.
pub(super) struct Inside<'g>(&'g Guard);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.store(false, Ordering::Relaxed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long the writer is held up is real time, whatever the store's clock"
)]
fn now() -> Instant {
    Instant::now()
}
