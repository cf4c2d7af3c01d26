//! Stories of programs as tasks and of the built-in tasks: real processes, real connections, through a real engine.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod builtins;
mod commands;
mod config;
mod http;
mod redirects;
mod server;
mod stopping;
mod support;
