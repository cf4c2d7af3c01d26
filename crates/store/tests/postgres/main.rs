//! What only the PostgreSQL store has: other sessions that hold locks, connections that break, a server that dies,
//! certificates.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test is where tasks and threads meet")]

mod aborts;
mod admission;
mod churn;
mod connecting;
mod damage;
mod hints;
mod locks;
mod lost_replies;
mod proxy;
mod questions;
mod read_only;
mod restarts;
mod scene;
mod server;
mod tls;
mod transactions;
mod versions;
