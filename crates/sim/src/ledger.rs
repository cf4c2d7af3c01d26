//! What the outside saw: which bodies ran, and what clients were told. It is kept beside the store, and survives every crash.

mod asked;
mod effort;
mod under_way;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast::Failure;

pub use asked::{Ask, Asked, Told};
pub use effort::{Came, Effort};
pub use wishes::{Wish, Wished};

use crate::tally::count;

/// A step body that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The run's id.
    pub run: String,
    /// The generation.
    pub generation: u64,
    /// The operation's key.
    pub key: String,
    /// From 1.
    pub attempt: u32,
    /// What the body was given.
    pub idempotency_key: String,
    /// Which version of the code ran it.
    pub version: String,
    /// Virtual time since the world began.
    pub at: Duration,
}

/// How a program ended that was cancelled, as it saw that itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct End {
    /// The run's id.
    pub(crate) run: String,
    /// The generation.
    pub(crate) generation: u64,
    /// What it came to.
    pub(crate) failure: Failure,
}

/// A body, who ran it and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witnessed {
    /// The body.
    pub body: Body,
    /// The process it ran in; empty if nobody said.
    pub process: String,
    /// Its place among everything that happened.
    pub tick: u64,
}

/// What was said about the attempts at an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// At most so many.
    pub attempts: u32,
    /// The shortest delay between two.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
}

/// An operation of a run: the run's id, the generation, the key.
pub type Place = (String, u64, String);

/// What the outside saw. Handles for several processes share what they write.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Who writes with this handle.
    process: String,
    /// Which life of that process.
    life: u64,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    bodies: Vec<Witnessed>,
    tokens: Vec<(String, String, String)>,
    policies: BTreeMap<Place, Policy>,
    asks: Vec<Ask>,
    /// What clients want of schedules.
    wishes: Vec<Wished>,
    ends: Vec<End>,
    efforts: Vec<Effort>,
    /// Tasks that clients queued, and whether they were told so.
    queued: BTreeMap<String, bool>,
    /// Runs whose bodies kill their process, and how often still.
    poison: BTreeMap<String, u32>,
    /// Processes that are dying of it.
    poisoned: Vec<String>,
    /// Parts of workflows that came to an end, by name.
    parts: BTreeMap<String, u64>,
    /// Bodies that have begun and are not over, by the life of the process they run in.
    under_way: BTreeSet<(u64, Place)>,
    /// Operations of which two bodies ran at once in one life of a process, and where.
    twice: Vec<(Place, String)>,
}

/// Something happened, here or at the watch: its place among everything. A case has one thread, and so one order.
pub(crate) fn tick() -> u64 {
    static TICKS: AtomicU64 = AtomicU64::new(1);
    TICKS.fetch_add(1, Ordering::Relaxed)
}

impl Ledger {
    /// An empty one.
    pub fn new() -> Arc<Ledger> {
        Arc::default()
    }

    /// A part of a workflow came to its end.
    pub(crate) fn part(&self, name: String) {
        count(&mut self.seen().parts, name);
    }

    /// How often each part of a workflow came to its end.
    pub fn parts(&self) -> BTreeMap<String, u64> {
        self.seen().parts.clone()
    }

    /// The same ledger in the hands of a process: bodies written with it are known to have run there.
    pub fn of(&self, process: &str) -> Arc<Ledger> {
        Arc::new(Ledger { process: process.to_owned(), life: tick(), seen: Arc::clone(&self.seen) })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A body began.
    pub fn body(&self, body: Body) {
        self.seen().bodies.push(Witnessed { body, process: self.process.clone(), tick: tick() });
    }

    /// From now on bodies of a run kill their process, so often.
    pub(crate) fn poison(&self, run: &str, times: u32) {
        self.seen().poison.insert(run.to_owned(), times);
    }

    /// Whether bodies of a run kill their process.
    pub(crate) fn is_poisonous(&self, run: &str) -> bool {
        self.seen().poison.get(run).is_some_and(|times| *times > 0)
    }

    /// A body of the run has begun: whether that kills its process.
    pub(crate) fn kills(&self, run: &str) -> bool {
        let mut seen = self.seen();
        let Some(times) = seen.poison.get_mut(run).filter(|times| **times > 0) else { return false };
        *times -= 1;
        seen.poisoned.push(self.process.clone());
        true
    }

    /// No body kills its process any more.
    pub(crate) fn end_poison(&self) {
        self.seen().poison.clear();
    }

    /// The processes that must die now.
    pub(crate) fn take_poisoned(&self) -> Vec<String> {
        std::mem::take(&mut self.seen().poisoned)
    }

    /// What is said about the attempts at an operation. Saying it again changes nothing.
    pub fn policy(&self, run: &str, generation: u64, key: &str, policy: Policy) {
        self.seen().policies.insert((run.to_owned(), generation, key.to_owned()), policy);
    }

    /// A body handed out a callback's token.
    pub fn token(&self, run: &str, key: &str, token: &str) {
        self.seen().tokens.push((run.to_owned(), key.to_owned(), token.to_owned()));
    }

    /// A client asks for something at a virtual time: it may happen from now on. Its number.
    pub fn asked(&self, run: &str, asked: Asked, at: Duration) -> usize {
        let ask = Ask { run: run.to_owned(), asked, told: None, begun: tick(), ended: None, at };
        let mut seen = self.seen();
        seen.asks.push(ask);
        seen.asks.len() - 1
    }

    /// A client was told what became of what it asked for.
    pub fn told(&self, number: usize, told: Told, at: Duration) {
        if let Some(ask) = self.seen().asks.get_mut(number) {
            (ask.told, ask.ended) = (Some(told), Some((tick(), at)));
        }
    }

    /// A program was cancelled, and ends.
    pub(crate) fn ended(&self, end: End) {
        self.seen().ends.push(end);
    }

    /// Programs that were cancelled, in order.
    pub(crate) fn ends(&self) -> Vec<End> {
        self.seen().ends.clone()
    }

    /// The bodies that began, where and when, in order.
    pub fn witnessed(&self) -> Vec<Witnessed> {
        self.seen().bodies.clone()
    }

    /// Tokens that were handed out: run, key, token.
    pub fn tokens(&self) -> Vec<(String, String, String)> {
        self.seen().tokens.clone()
    }

    /// What was said about attempts.
    pub fn policies(&self) -> BTreeMap<Place, Policy> {
        self.seen().policies.clone()
    }

    /// What clients asked for, in order.
    pub fn asks(&self) -> Vec<Ask> {
        self.seen().asks.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(key: &str) -> Body {
        Body {
            run: "r".to_owned(),
            generation: 0,
            key: key.to_owned(),
            attempt: 1,
            idempotency_key: format!("default/r/0/{key}"),
            version: "1".to_owned(),
            at: Duration::ZERO,
        }
    }

    #[test]
    fn handles_of_processes_write_into_one_ledger_in_one_order() {
        let ledger = Ledger::new();
        let (one, two) = (ledger.of("1"), ledger.of("2"));
        two.body(body("a"));
        let ask = ledger.asked("r", Asked::Cancel, Duration::ZERO);
        one.body(body("b"));
        ledger.told(ask, Told::Done("Delivered".to_owned()), Duration::ZERO);
        let seen: Vec<(String, String)> =
            ledger.witnessed().into_iter().map(|seen| (seen.process, seen.body.key)).collect();
        assert_eq!(seen, [("2".to_owned(), "a".to_owned()), ("1".to_owned(), "b".to_owned())]);
        let ask = &ledger.asks()[0];
        let bodies = ledger.witnessed();
        assert!(bodies[0].tick < ask.begun && ask.begun < bodies[1].tick);
        assert!(ask.is_done() && ask.ended.is_some_and(|(tick, _)| tick > bodies[1].tick));
    }

    #[test]
    fn only_a_refusal_rules_out_that_something_happens() {
        let ledger = Ledger::new();
        for told in [None, Some(Told::Unknown), Some(Told::Refused("lost".to_owned()))] {
            let number = ledger.asked("r", Asked::Resume, Duration::ZERO);
            if let Some(told) = told {
                ledger.told(number, told, Duration::ZERO);
            }
        }
        let possible: Vec<bool> = ledger.asks().iter().map(Ask::is_possible).collect();
        assert_eq!(possible, [true, true, false]);
    }
}
