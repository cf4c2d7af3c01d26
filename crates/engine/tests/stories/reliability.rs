//! Failures of systems like this one, as stories: the rows of the reliability catalogue that are about the engine. Each is
//! told, like every story, with programs kept, dropped and evicted at random.

mod children;
mod clocks;
mod dispatch;
mod generations;
mod load;
mod payloads;
mod races;
mod signals;
mod timers;
