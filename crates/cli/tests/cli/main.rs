//! The real binary, on real files: what it prints, what it exits with, and what survives when it is killed.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests fail by panicking, and run in real time")]

mod errors;
mod examples;
mod interrupt;
mod kill;
mod place;
mod run;
mod startup;
mod terminal;
mod texts;
mod verbs;
