//! Hints that something became ready. Nothing depends on them: polling is the truth, and a hint only makes it sooner.
//!
//! They are sent after the transaction, on another connection, and coalesced: many commits, one `NOTIFY`. Inside the
//! transaction it would take a lock over all of PostgreSQL at every commit.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Config, NoTls, Socket};

use super::options::PostgresOptions;
use super::session::Session;
use super::{Core, tls};
use crate::error::StoreError;

/// All stores of a database share the channel; the payload says whose schema is meant.
const NOTIFY: &str = "SELECT pg_notify('outlast', current_schema()::text)";
const LISTEN: &str = "LISTEN outlast";
/// How long to wait before listening again after the connection broke.
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Sends and receives hints.
#[derive(Debug)]
pub(super) struct Hints {
    pending: Notify,
    received: watch::Sender<u64>,
    over: watch::Sender<bool>,
}

impl Hints {
    pub(super) fn new() -> Self {
        Hints { pending: Notify::new(), received: watch::Sender::new(0), over: watch::Sender::new(false) }
    }

    /// Asks for a hint to be sent. Those asked for before it was sent are one.
    pub(super) fn send(&self) {
        self.pending.notify_one();
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.received.subscribe()
    }

    /// Ends the tasks that send and listen.
    pub(super) fn close(&self) {
        self.over.send_replace(true);
    }

    /// Somebody, maybe we, made something ready.
    fn receive(&self) {
        self.received.send_modify(|count| *count = count.wrapping_add(1));
    }

    async fn closed(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}

/// Sends hints until they are closed.
pub(super) async fn notify(core: Arc<Core>, hints: Arc<Hints>) {
    loop {
        tokio::select! {
            () = hints.closed() => return,
            () = hints.pending.notified() => {}
        }
        if let Ok(mut session) = Session::begin(&core.pool).await {
            let _ = session.ask(NOTIFY, Vec::new()).await;
        }
    }
}

/// Listens until hints are closed, also after the connection broke.
pub(super) async fn listen(hints: Arc<Hints>, config: Config, options: PostgresOptions) {
    let forever = async {
        loop {
            let _: Result<(), StoreError> = match tls::connector(&options.tls) {
                Ok(None) => listen_once(&hints, &config, &options, NoTls).await,
                Ok(Some(connector)) => listen_once(&hints, &config, &options, connector).await,
                Err(error) => Err(error),
            };
            // What came while nobody listened is not known: have everybody look.
            hints.receive();
            let _ = tokio::time::timeout(RECONNECT_AFTER, hints.closed()).await;
        }
    };
    tokio::select! {
        () = hints.closed() => {}
        () = forever => {}
    }
}

async fn listen_once<T>(hints: &Hints, config: &Config, options: &PostgresOptions, tls: T) -> Result<(), StoreError>
where
    T: MakeTlsConnect<Socket> + Send,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let failed = |error: tokio_postgres::Error| super::failure::store_error(&error);
    let (client, mut connection) = config.connect(tls).await.map_err(failed)?;
    let listening = async {
        client.batch_execute(&super::session::settings(options)).await?;
        client.batch_execute(LISTEN).await?;
        client.query_one("SELECT current_schema()::text", &[]).await?.try_get::<_, String>(0)
    };
    let mut listening = std::pin::pin!(listening.fuse());
    let mut schema = None;
    loop {
        tokio::select! {
            found = &mut listening => {
                schema = Some(found.map_err(failed)?);
                hints.receive();
            }
            message = poll_fn(|context| connection.poll_message(context)) => match message {
                Some(Ok(AsyncMessage::Notification(note))) if Some(note.payload()) == schema.as_deref() => hints.receive(),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(failed(error)),
                None => return Ok(()),
            },
        }
    }
}
