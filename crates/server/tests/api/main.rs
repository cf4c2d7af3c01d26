//! The server as its clients see it: real sockets, real SQLite files, and PostgreSQL where it matters.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "a server runs beside its story, in real time")]

mod approvals;
mod auth;
mod bulk;
mod document;
mod events;
mod hooks;
mod house;
mod live;
mod malformed;
mod matrix;
mod operating;
mod postgres;
mod repeats;
mod retry;
mod runs;
mod schedules;
mod serving;
mod session;
mod sql;
mod tls;
mod work;
mod workflows;
