//! Waiting for others: leases and wakes while somebody else holds rows or tables.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test is where tasks and threads meet")]

mod leases;
mod requests;
mod scene;
mod wakes;
