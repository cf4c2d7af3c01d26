//! Transactions: the author's SQL and the record of its outcome in one commit.

use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use outlast_core::failure::Failure;
use outlast_core::operation::Operation as Request;
use outlast_core::retry::Retry;
use outlast_store::{BoxFuture, Tx};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::panics::guard;
use super::slot::Outcome;
use crate::drive::TransactionBody;
use crate::error::{Error, Result};

/// Work in the engine's own database.
impl Ctx {
    /// Runs SQL in the engine's own database, and records what the closure returns, in one transaction: either both are
    /// there or neither is, whatever crashes when. Replay gets what is recorded and does not run it again.
    ///
    /// The closure speaks to the database through a [`Tx`]. It may run more than once, and only what its last run did
    /// counts; so it should do nothing but SQL. When it returns an error, everything it did is rolled back, and it is
    /// retried like a step; so it is when one of its statements fails, whatever it returns then. Placeholders are the
    /// database's own: `?1` on SQLite, `$1` on PostgreSQL. Tables are yours: create them with a connection of your own, or
    /// with `CREATE TABLE IF NOT EXISTS` here.
    ///
    /// On SQLite it runs on the one thread that writes, and holds up every other write: it may await nothing but its own
    /// statements, and is stopped after 250 ms (`SqliteOptions::transaction_limit`). On PostgreSQL it has a connection
    /// of its own. Transaction control, session settings and, on SQLite, Outlast's own tables are denied. A store in
    /// memory has no SQL: there it fails with the code `transactions_unsupported`.
    ///
    /// ```
    /// use outlast::params;
    ///
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let balance: i64 = ctx
    ///     .transaction("debit", |tx| async move {
    ///         tx.execute("UPDATE account SET balance = balance - ?1 WHERE id = ?2", params![30, "ann"]).await?;
    ///         let row = tx.query_one("SELECT balance FROM account WHERE id = ?1", params!["ann"]).await?;
    ///         Ok(row.get("balance")?)
    ///     })
    ///     .await?;
    /// # let _ = balance; Ok(()) }
    /// ```
    #[track_caller]
    pub fn transaction<T, F, Fut>(&self, name: &str, body: F) -> Transaction<T>
    where
        F: Fn(Tx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Serialize + DeserializeOwned + 'static,
    {
        Transaction::new(self, name, body)
    }
}

/// A transaction. See [`Ctx::transaction`].
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Transaction<T> {
    pending: Pending,
    /// None once it is handed over.
    body: Option<TransactionBody>,
    retry: Retry,
    value: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned + 'static> Transaction<T> {
    #[track_caller]
    pub(super) fn new<F, Fut>(ctx: &Ctx, name: &str, body: F) -> Self
    where
        F: Fn(Tx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        let pending = Pending::named(ctx, name, Location::caller());
        Transaction { pending, body: Some(erase(body)), retry: Retry::default(), value: PhantomData }
    }

    /// When to try again after a failure; [`Retry::default`] otherwise. An error that is permanent is not retried.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Starts it now, to be awaited later.
    pub fn start(mut self) -> Handle<T> {
        self.begin();
        self.pending.into_handle(codec::value)
    }

    fn advance(&mut self, _: &mut Context<'_>) {}

    fn decode(&self, outcome: Outcome) -> Result<T> {
        codec::value(outcome)
    }
}

impl<T> Transaction<T> {
    fn begin(&mut self) {
        let retry = self.retry;
        self.pending.start(|key| Request::StartTransaction { key, retry });
        if let (Some(slot), Some(body)) = (self.pending.slot(), self.body.take()) {
            self.pending.shared().info.transactions.put(slot.key.clone(), body);
        }
    }
}

operation!(impl[T: Serialize + DeserializeOwned + 'static] Transaction<T> => T);

/// The closure as the store runs it: what it returned as it is recorded, and its panics as failures.
fn erase<F, Fut, T>(body: F) -> TransactionBody
where
    F: Fn(Tx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
    T: Serialize + 'static,
{
    Arc::new(move |tx| match guard("the transaction", || body(tx)) {
        Ok(future) => guarded(future),
        Err(panic) => Box::pin(std::future::ready(Err(panic))),
    })
}

fn guarded<T: Serialize + 'static>(
    future: impl Future<Output = Result<T>> + Send + 'static,
) -> BoxFuture<'static, Result<Bytes, Failure>> {
    let mut future = Box::pin(future);
    Box::pin(std::future::poll_fn(move |cx| {
        let polled = guard("the transaction", || {
            future.as_mut().poll(cx).map(|value| codec::encode("what the transaction returned", &value?))
        });
        match polled {
            Ok(polled) => polled.map(|encoded: Result<Bytes>| encoded.map_err(Error::into_failure)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }))
}
