//! Stories about programs, told with a small driver that turns requests into facts.

mod batches;
mod cancelling;
mod chance;
mod groups;
mod handles;
mod keys;
mod outside;
mod scopes;
mod speed;
mod stage;
mod steps;
mod waits;

pub(super) use stage::{Stage, key};
