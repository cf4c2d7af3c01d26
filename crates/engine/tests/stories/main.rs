//! Stories about code workflows, told in virtual time.

mod answers;
mod control;
mod coordinator;
mod crashes;
mod family;
mod heartbeats;
mod limits;
mod misfits;
mod pauses;
mod replay;
mod resume;
mod steps;
mod support;
mod versions;
mod watching;
