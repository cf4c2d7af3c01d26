//! Stories about code workflows, told in virtual time.

mod answers;
mod codes;
mod control;
mod coordinator;
mod crashes;
mod drive_once;
mod explain;
mod family;
mod fork;
mod heartbeats;
mod limits;
mod misfits;
mod pauses;
mod replay;
mod resume;
mod steps;
mod support;
mod terminate;
mod versions;
mod views;
mod watching;
