//! The real binary, on real files: what it prints, what it exits with, and what survives when it is killed.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panicking, and run in real time")]

mod bench;
mod bulk;
mod cluster;
mod dev;
mod errors;
mod examples;
mod formats;
mod hooks;
mod interrupt;
mod kill;
mod operate;
mod place;
mod remote;
mod run;
mod secrets;
mod serve;
mod startup;
mod streams;
mod terminal;
mod texts;
mod traces;
mod verbs;
mod web;
mod workers;
