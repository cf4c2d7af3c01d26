//! Connections: taken, bounded, and let go.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::{Options, Tls};
use crate::app::App;

/// How long the head of a request may take, and how long a connection may be silent between two.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);
/// The most the head of a request can have.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long to rest when no connection can be taken: the process has too many files open, mostly.
const REST: Duration = Duration::from_millis(50);

pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    app: App,
    options: &Options,
    shutdown: impl Future<Output = ()>,
) {
    let room = Arc::new(Semaphore::new(options.connections_max.max(1)));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            // Before one is taken, so that those who find no room wait outside.
            let permit = Arc::clone(&room).acquire_owned().await.ok()?;
            Some((permit, listener.accept().await))
        };
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            accepted = accepted => match accepted {
                Some((permit, Ok((stream, _)))) => {
                    let tls = options.tls.clone();
                    connections.spawn(connection(stream, tls, router.clone(), graceful.watcher(), permit));
                }
                Some((_, Err(error))) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    let _ = tokio::time::timeout(REST, std::future::pending::<Infallible>()).await;
                }
                None => break,
            },
        }
    }
    drop(listener);
    app.drain();
    if tokio::time::timeout(options.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time, and are cut off");
    }
    connections.shutdown().await;
}

async fn connection(
    stream: TcpStream,
    tls: Option<Tls>,
    router: Router,
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
) {
    // Answers are small, and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return talk(stream, router, watcher).await };
    // A greeting that never comes must not keep a place.
    match tokio::time::timeout(HEAD_TIME_MAX, tls.greet(stream)).await {
        Ok(Ok(stream)) => talk(stream, router, watcher).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection speaks no TLS that is understood"),
        Err(_) => tracing::debug!("a connection never said anything"),
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, router: Router, watcher: Watcher) {
    let service = TowerToHyperService::new(router);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(%error, "a connection ended");
    }
}
