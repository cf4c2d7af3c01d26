//! A simulator for Outlast.
//!
//! A case is plain data: random workflows, what clients do, what goes wrong and when. It is played in one thread and in
//! virtual time by real engines on one store, and an oracle that only looks from outside says whether every promise was
//! kept. The same seed gives the same case and the same trace.

pub mod case;
pub mod chance;
mod client;
mod cluster;
pub mod corpus;
mod doctor;
pub mod draw;
pub mod errors;
pub mod failure;
pub mod generate;
pub mod ground;
mod heal;
pub mod interpret;
pub mod judge;
pub mod ledger;
pub mod model;
mod nemesis;
pub mod nth;
pub mod oracle;
pub mod outcome;
#[cfg(outlast_planted)]
pub mod planted;
pub mod play;
mod rest;
pub mod scenarios;
pub mod shrink;
pub mod story;
pub mod suite;
pub mod tally;
mod timetables;
pub mod tree;
pub mod violation;
pub mod watch;
pub mod written;
