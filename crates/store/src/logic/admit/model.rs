//! Random starts, ends, cancellations and looks, against what a naive reader of the rules expects after each look.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use outlast_core::commit::{Admission, Begin, Bound, Commit, Ending, Limit, NewRun, Rate, Status, Then};
use outlast_core::id::{ClaimId, LimitKey, Namespace, NodeId, RunId, RunKey, Version, WorkflowName};
use outlast_core::limits::Limits;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{BoxFuture, Claim, Clock, ManualClock, MemoryStore, Pick, Serves, Store};

const MAXES: [u32; 3] = [1, 2, 3];
const RATE: Rate = Rate::new(2, Duration::from_millis(100));

#[derive(Clone, Debug)]
enum Step {
    /// Under which of the keys, and at the rate; after a delay; with a priority.
    Start {
        keys: u8,
        rated: bool,
        delay: u64,
        priority: i16,
    },
    /// Ends one of those that go on.
    End(usize),
    Pass(i64),
    /// With this limit.
    Admit(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let start = (0u8..8, any::<bool>(), prop_oneof![3 => Just(0u64), 1 => 1u64..200], 0i16..2);
    prop_oneof![
        4 => start.prop_map(|(keys, rated, delay, priority)| Step::Start { keys, rated, delay, priority }),
        3 => (0usize..8).prop_map(Step::End),
        2 => (1i64..80).prop_map(Step::Pass),
        3 => (1usize..6).prop_map(Step::Admit),
    ]
}

#[derive(Clone, Debug)]
struct Run {
    key: RunKey,
    keys: u8,
    rated: bool,
    due: i64,
    priority: i16,
    began: Option<i64>,
    ended: bool,
}

/// The rules, with no thought for speed.
#[derive(Default)]
struct Naive {
    now: i64,
    runs: Vec<Run>,
}

impl Naive {
    fn used(&self, key: usize) -> usize {
        let uses = |run: &&Run| run.began.is_some() && !run.ended && run.keys & (1 << key) != 0;
        self.runs.iter().filter(uses).count()
    }

    fn last_rated(&self) -> Option<i64> {
        self.runs.iter().filter(|run| run.rated).filter_map(|run| run.began).max()
    }

    fn has_room(&self, run: &Run) -> bool {
        let keys = (0..3).filter(|key| run.keys & (1 << key) != 0);
        let rate = !run.rated || self.last_rated().is_none_or(|last| last + 50 <= self.now);
        keys.into_iter().all(|key| self.used(key) < MAXES[key] as usize) && rate && run.due <= self.now
    }

    /// Notes who began, and checks that they might.
    fn look(&mut self, store: &MemoryStore, settled: bool) {
        for at in 0..self.runs.len() {
            let view = now(store.get(self.runs[at].key.clone())).unwrap();
            let begun = view.ready || view.status != Status::Queued;
            if begun && self.runs[at].began.is_none() {
                assert!(self.runs[at].due <= self.now, "{:?} began early", self.runs[at]);
                self.runs[at].began = Some(self.now);
            }
        }
        for (key, max) in MAXES.iter().enumerate() {
            assert!(self.used(key) <= *max as usize, "key {key} is exceeded: {:?}", self.runs);
        }
        let mut rated: Vec<i64> = self.runs.iter().filter(|run| run.rated).filter_map(|run| run.began).collect();
        rated.sort_unstable();
        assert!(rated.windows(2).all(|pair| pair[0] + 50 <= pair[1]), "too fast: {rated:?}");
        if settled {
            self.assert_nobody_is_forgotten();
        }
    }

    /// Nobody waits who has room, and nobody overtook one that asked for the same before.
    fn assert_nobody_is_forgotten(&self) {
        let waiting: Vec<&Run> = self.runs.iter().filter(|run| run.began.is_none() && !run.ended).collect();
        for run in &waiting {
            assert!(!self.has_room(run), "at {} {run:?} has room and waits", self.now);
        }
        for (at, first) in self.runs.iter().enumerate() {
            for second in &self.runs[at + 1..] {
                let alike =
                    first.keys == second.keys && first.rated == second.rated && first.priority == second.priority;
                let overtaken = first.began.is_none() && second.began.is_some() && first.due <= second.due;
                assert!(!alike || !overtaken, "{second:?} overtook {first:?}");
            }
        }
    }
}

fn now<T>(future: BoxFuture<'_, T>) -> T {
    future.now_or_never().expect("memory answers at once")
}

fn key(text: &str) -> LimitKey {
    LimitKey::new(text).unwrap()
}

fn new_run(run: &Run) -> NewRun {
    let keys = (0..3).filter(|key| run.keys & (1 << key) != 0);
    let mut limits: Vec<Limit> = keys
        .map(|at: usize| Limit { key: key(&at.to_string()), bound: Bound::Concurrency { max: MAXES[at] } })
        .collect();
    if run.rated {
        limits.push(Limit { key: key("api"), bound: Bound::Rate(RATE) });
    }
    let begin = Begin::At(Timestamp::from_millis(run.due));
    let admission = Some(Box::new(Admission { begin, limits, ..Admission::default() }));
    let (workflow, version) = (WorkflowName::new("w").unwrap(), Version::new("1").unwrap());
    let new = NewRun::new(run.key.clone(), workflow, version, Bytes::new());
    NewRun { admission, priority: run.priority, ..new }
}

fn end(store: &MemoryStore, run: &RunKey, id: u64) {
    let lease = now(store.register(NodeId::new("n").unwrap(), Duration::from_secs(1))).unwrap().id;
    let claim = Claim { lease, id: ClaimId(id), limit: 1, pick: Pick::Run(run.clone()), serves: Serves::Everything };
    let claimed = now(store.claim(claim)).unwrap().remove(0);
    let record = Record { kind: 1, version: 1, key: None, at: Timestamp::EPOCH, meta: None, payload: None };
    let commit = Commit {
        events: vec![record],
        then: Then::Finish(Ending::Completed),
        ..Commit::new(run.clone(), claimed.fence, claimed.next)
    };
    now(store.commit(vec![commit])).remove(0).unwrap();
}

fn tell(steps: &[Step]) {
    let clock = ManualClock::at(0);
    let store = MemoryStore::new(Clock::Manual(clock.clone()), Limits::default());
    let mut naive = Naive::default();
    for (at, step) in steps.iter().enumerate() {
        match *step {
            Step::Start { keys, rated, delay, priority } => {
                let key = RunKey::new(Namespace::default_namespace(), RunId::new(format!("r{at}")).unwrap());
                let due = naive.now + delay as i64;
                let run = Run { key, keys, rated, due, priority, began: None, ended: false };
                now(store.create(vec![new_run(&run)])).remove(0).unwrap();
                naive.runs.push(run);
            }
            Step::End(which) => {
                let mut going = naive.runs.iter_mut().filter(|run| run.began.is_some() && !run.ended);
                if let Some(run) = going.nth(which) {
                    end(&store, &run.key, at as u64);
                    run.ended = true;
                }
            }
            Step::Pass(millis) => {
                naive.now += millis;
                clock.set(naive.now);
            }
            Step::Admit(limit) => {
                let answer = now(store.admit(limit)).unwrap();
                naive.look(&store, !answer.more);
            }
        }
    }
    drain(&store, &clock, &mut naive);
}

/// Everybody begins in the end, whatever was asked before, and nothing of it is left.
fn drain(store: &MemoryStore, clock: &ManualClock, naive: &mut Naive) {
    for round in 0..10_000_u64 {
        let answer = now(store.admit(256)).unwrap();
        naive.look(store, !answer.more);
        if let Some(run) = naive.runs.iter_mut().find(|run| run.began.is_some() && !run.ended) {
            end(store, &run.key, 1_000_000 + round);
            run.ended = true;
        } else if let Some(next) = answer.next_at {
            naive.now = naive.now.max(next.as_millis());
            clock.set(naive.now);
        } else if !answer.more {
            break;
        }
    }
    let left: BTreeMap<_, _> = naive.runs.iter().filter(|run| !run.ended).map(|run| (&run.key, run)).collect();
    assert!(left.is_empty(), "nobody will ever admit {left:?}");
    assert!(store.has_no_flow(), "gates, slots or flows are left behind");
}

/// A gate keeps the places of those who share it, also when the last one in its own line leaves for another.
#[test]
fn a_gate_whose_line_empties_into_another_is_not_forgotten() {
    let start = |keys| Step::Start { keys, rated: false, delay: 0, priority: 0 };
    let admit = Step::Admit(5);
    tell(&[
        start(0b100),
        start(0b100),
        start(0b100),
        admit.clone(),
        // These two get their places at the second gate and stand in the line of the third.
        start(0b110),
        start(0b110),
        admit.clone(),
        start(0b010),
        start(0b010),
        admit.clone(),
        // This one stands in the line of the second gate, and moves to that of the first.
        start(0b011),
        admit.clone(),
        start(0b001),
        admit.clone(),
        Step::End(3),
        Step::End(3),
        admit.clone(),
        // It came last of those who want the same.
        start(0b110),
        admit.clone(),
        Step::End(0),
        Step::End(0),
        Step::End(0),
        admit,
    ]);
}

fn cases() -> u32 {
    std::env::var("OUTLAST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_admissions_are_as_a_naive_reader_of_the_rules_expects(steps in vec(step(), 1..120)) {
        tell(&steps);
    }
}
