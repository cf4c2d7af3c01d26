//! How far snapshots are apart, and what is forgotten behind them.

use outlast_core::id::{Fence, Generation, Namespace, RunId, RunKey, WorkflowName};
use outlast_core::limits::Limits;
use outlast_core::operation::{Due, Operation, Operations};
use outlast_core::program::{Input, Program, Progress};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::*;
use crate::drive::run::{Hints, Identity, Moment, Restored, Settings};
use crate::drive::transaction::Transactions;

const STATE_BYTES_MAX: usize = 4_000_000;
const EPOCH: Moment = Moment { now: Timestamp::EPOCH, passed: Timestamp::EPOCH, seed: 0 };

/// Waits for a timer, and records the time whenever it is asked. Its state is as large as `size` says of what it recorded; where it
/// says nothing there is none.
struct Clock {
    beats: u64,
    size: fn(u64) -> Option<usize>,
    asked: Rc<Cell<u64>>,
}

fn clock(beats: u64, size: fn(u64) -> Option<usize>) -> Clock {
    Clock { beats, size, asked: Rc::default() }
}

impl Program for Clock {
    fn resume(&mut self, input: Input<'_>, ops: &mut Operations) -> Progress {
        match input {
            Input::Start => {
                let (key, due) = (Key::new("__sleep-0").unwrap(), Due::After(Duration::from_secs(9)));
                ops.request(Operation::StartTimer { key: key.clone(), due }, None);
                ops.request(Operation::Await { key }, None);
            }
            Input::Poll => {
                let key = Key::new(format!("__now-{}", self.beats)).unwrap();
                ops.request(Operation::RecordNow { key, value: Timestamp::EPOCH }, None);
                self.beats += 1;
            }
            Input::Fact { .. } | Input::Execute { .. } => {}
        }
        Progress::Blocked
    }

    fn snapshot(&self) -> Option<Snapshot> {
        self.asked.set(self.asked.get() + 1);
        let data = vec![b'x'; (self.size)(self.beats)?].into();
        Some(Snapshot { index: Index(0), definition: "hash".to_owned(), data })
    }
}

fn settings(snapshot_after: u64) -> Arc<Settings> {
    Arc::new(Settings {
        limits: Limits { payload_bytes: STATE_BYTES_MAX, ..Limits::default() },
        newest: Box::new(|_, _| None),
        token: Box::new(|_, _, key| key.to_string()),
        refuse_shared_names: false,
        snapshot_after,
        steps: Arc::default(),
    })
}

fn run(program: Clock, kept: Option<Kept>, events: Vec<Record>) -> Run {
    let identity = Identity {
        run: RunKey::new(Namespace::default_namespace(), RunId::new("a").unwrap()),
        generation: Generation(0),
        workflow: WorkflowName::new("clock").unwrap(),
        version: Version::new("1").unwrap(),
        parent: None,
    };
    let restored = Restored {
        identity,
        fence: Fence(0),
        kept,
        events,
        inbox: Vec::new(),
        program: Box::new(program),
        transactions: Transactions::default(),
        waker: Waker::noop().clone(),
        settings: settings(64),
        hints: Hints::default(),
    };
    Run::restore(restored, EPOCH).unwrap()
}

/// What was written in all: for events, and for snapshots, and how many of these.
fn written(size: fn(u64) -> Option<usize>, commits: u64) -> (u64, u64, u64) {
    let mut run = run(clock(0, size), None, Vec::new());
    let (mut events, mut snapshots, mut count) = (0, 0, 0);
    for _ in 0..commits {
        run.advance(EPOCH).unwrap();
        let commit = run.commit().unwrap().expect("something was recorded");
        let of =
            |record: &Record| (record.payload_bytes() + record.key.as_ref().map_or(0, |key| key.as_str().len())) as u64;
        events += commit.events.iter().map(|record| of(record) + ROW_BYTES).sum::<u64>();
        if let Some(snapshot) = commit.snapshot {
            snapshots += snapshot.data.len() as u64;
            count += 1;
        }
        run.committed();
    }
    (events, snapshots, count)
}

/// A state that grows with every event: written every 64 events, it would be written with the square of them.
#[test]
fn what_is_written_for_a_state_that_grows_stays_in_proportion_to_the_journal() {
    for commits in [1_000, 10_000, 40_000] {
        let (events, snapshots, count) = written(|beats| Some(60 * beats as usize), commits);
        assert!(snapshots <= 6 * events, "{snapshots} bytes of snapshots for {events} bytes of events");
        assert!(count >= 4, "{count}");
    }
    // The same for one that is large from the beginning.
    let (events, snapshots, _) = written(|_| Some(100_000), 40_000);
    assert!(snapshots <= 5 * events, "{snapshots} for {events}");
}

#[test]
fn a_small_state_is_written_every_64_events() {
    let (_, _, count) = written(|_| Some(100), 6_500);
    assert_eq!(count, 100);
}

/// What is too large costs as much to find out as to write: it is not looked at with every commit.
#[test]
fn a_state_that_is_too_large_is_made_again_only_when_its_tail_has_doubled() {
    let too_large = clock(0, |beats| (beats > 500).then_some(STATE_BYTES_MAX + 1));
    let asked = Rc::clone(&too_large.asked);
    let mut run = run(too_large, None, Vec::new());
    for _ in 0..2_000 {
        run.advance(EPOCH).unwrap();
        let commit = run.commit().unwrap().expect("something was recorded");
        assert!(commit.snapshot.is_none());
        run.committed();
    }
    assert!(asked.get() <= 500 / 64 + 8, "it was made {} times", asked.get());
}

/// A moment at which there is no state, because something is under way, does not put the next one off for longer and longer.
#[test]
fn after_a_bad_moment_a_state_is_looked_for_as_soon_as_before() {
    let mut run = run(clock(0, |beats| (beats > 20_000).then_some(100)), None, Vec::new());
    for beat in 0..20_000 + 130 {
        run.advance(EPOCH).unwrap();
        let snapshot = run.commit().unwrap().and_then(|commit| commit.snapshot);
        run.committed();
        if let Some(snapshot) = snapshot {
            assert!(beat >= 20_000);
            assert_eq!(snapshot.index, run.journal.next());
            return;
        }
    }
    panic!("there is no snapshot 130 events after the last bad moment");
}

/// Whoever goes on from a snapshot knows how large it was, and what followed.
#[test]
fn a_run_that_was_restored_waits_as_long_as_one_that_was_not() {
    let size = |_| Some(50_000);
    let mut whole = run(clock(0, size), None, Vec::new());
    let mut made = Vec::new();
    let mut last: Option<Snapshot> = None;
    let mut tail: Vec<Record> = Vec::new();
    let mut restored_at = Vec::new();
    for beat in 1..=4_000 {
        whole.advance(EPOCH).unwrap();
        let commit = whole.commit().unwrap().expect("something was recorded");
        tail.extend(commit.events);
        if let Some(snapshot) = commit.snapshot {
            made.push(snapshot.index);
            last = Some(snapshot);
            tail.clear();
        }
        whole.committed();
        // It is lost again and again.
        if let (true, Some(snapshot)) = (beat % 100 == 0, &last) {
            let (kept, _) = unseal(snapshot).unwrap();
            whole = run(clock(beat, size), Some(kept), tail.clone());
            whole.started = true;
            whole.fed = whole.journal.next();
            restored_at.push(beat);
        }
    }
    let mut kept = run(clock(0, size), None, Vec::new());
    let mut expected = Vec::new();
    for _ in 1..=4_000 {
        kept.advance(EPOCH).unwrap();
        expected.extend(kept.commit().unwrap().and_then(|commit| commit.snapshot).map(|snapshot| snapshot.index));
        kept.committed();
    }
    assert_eq!((made, restored_at.len()), (expected, 40));
}

/// What is recorded while the commit with the snapshot is on its way is behind it: of that nothing may be forgotten.
#[test]
fn no_event_behind_a_snapshot_is_forgotten() {
    let mut run = run(clock(0, |_| Some(10)), None, Vec::new());
    let snapshot = loop {
        run.advance(EPOCH).unwrap();
        if let Some(snapshot) = run.commit().unwrap().expect("something was recorded").snapshot {
            break snapshot;
        }
        run.committed();
    };
    let until = run.journal.next();
    assert_eq!(snapshot.index, until);
    assert_eq!(run.journal.events().len() as u64, until.0, "nothing is forgotten before it is durable");
    run.advance(EPOCH).unwrap();
    run.advance(EPOCH).unwrap();
    let behind = run.journal.events()[usize::try_from(until.0).unwrap()..].to_vec();
    assert_eq!(behind.len(), 2);
    run.committed();
    assert_eq!(run.journal.events(), behind);
    assert!(matches!(run.journal.get(until), Some(Event::NowRecorded { .. })), "the first event behind it is there");
    assert!(matches!(run.journal.get(Index(0)), Some(Event::TimerStarted { .. })), "what is open is known");
    assert_eq!(run.journal.get(Index(1)), None, "and nothing else of what is below");
    let next = run.commit().unwrap().expect("they are not durable yet");
    assert_eq!((next.expected, next.events.len()), (until, 2));
}
