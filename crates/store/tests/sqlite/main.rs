//! What only the SQLite store has: a file, an owner, a disk that can fill, a process that can be killed.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test is where tasks and threads meet")]

mod aborts;
mod damage;
mod disk;
mod here;
mod kills;
mod opening;
mod scene;
mod transactions;
mod versions;
