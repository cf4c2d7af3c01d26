//! The script language, from text to outcome.

// All of this is test code, helpers included.
#![allow(clippy::unwrap_used)]

mod cancelled;
mod checklist;
mod deep;
mod durable;
mod examples;
mod fuzz;
mod guide;
mod language;
mod limits;
mod memory;
mod node;
mod ordered;
mod property;
mod random;
mod stage;
mod tools;
mod wrong;
