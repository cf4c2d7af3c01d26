//! The cases of a language-neutral conformance suite, in this project's words: docs/conformance.md says how names map.
//! Every case is told four times: in memory and on SQLite, with programs kept between turns and replayed at every turn.

mod callback;
mod child;
mod invoke;
mod map;
mod parallel;
mod step;
mod support;
mod wait;
mod wait_for_callback;
mod wait_for_condition;
