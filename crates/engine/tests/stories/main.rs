//! Stories about code workflows, told in virtual time.

mod answers;
mod check;
mod codes;
mod control;
mod coordinator;
mod crashes;
mod drive_once;
mod explain;
mod family;
mod fork;
mod heartbeats;
mod kit;
mod limits;
mod misfits;
mod pauses;
mod reliability;
mod replay;
mod resume;
mod steps;
mod support;
mod terminate;
mod transaction;
mod transaction_crashes;
mod versions;
mod views;
mod watching;
