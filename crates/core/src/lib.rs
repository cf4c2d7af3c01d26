//! The pure heart of Outlast.
//!
//! Everything here is a function of its arguments: no clock, no randomness, no I/O, no async runtime, no `HashMap`
//! iteration. That is what makes replay, simulation and crash tests cheap.

pub mod commit;
pub mod event;
pub mod failure;
pub mod id;
pub mod journal;
pub mod lifecycle;
pub mod limits;
pub mod operation;
#[doc(hidden)]
pub mod planted;
pub mod program;
pub mod record;
pub mod retry;
pub mod time;

pub use bytes::Bytes;
