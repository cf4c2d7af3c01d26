//! Flows, from text to outcome.

// All of this is test code, helpers included.
#![allow(clippy::unwrap_used)]

mod basics;
mod containers;
mod derive;
mod edges;
mod everywhere;
mod examples;
mod pauses;
mod property;
mod random;
mod stage;
mod wrong;
