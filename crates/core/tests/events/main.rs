//! How events are stored: the encodings of every release still read, and nothing is lost on the way.

// All of this is test code, helpers included.
#![allow(clippy::unwrap_used)]

mod golden;
mod parts;
mod roundtrip;
