//! Evidence in which everything is as it should be, to be tampered with.

use outlast::{ClosePolicy, Event, Failure, Status, Timestamp};
use outlast_core::id::{DeliveryId, Key, RunId, SignalName, Version, WorkflowName};

use crate::check::{self, Findings};
use crate::evidence::{Seen, Snapshot};
use crate::ledger::{Ask, Entry, Note};

pub(super) struct Scene {
    pub(super) entries: Vec<Entry>,
    before: Snapshot,
    pub(super) now: Snapshot,
}

impl Scene {
    pub(super) fn healthy() -> Scene {
        let mut scene = Scene { entries: Vec::new(), before: Snapshot::default(), now: Snapshot::default() };
        scene.sleeper();
        scene.stopped();
        // Here somebody looked for the first time.
        scene.before = scene.now.clone();
        scene.before.runs.get_mut("sleeper").unwrap().journals[0].pop();
        scene.before.runs.get_mut("sleeper").unwrap().status = Status::Waiting;
        scene.retrier();
        scene.asked();
        scene.others();
        scene
    }

    pub(super) fn judge(&self) -> Vec<String> {
        let mut findings = Findings::default();
        check::at_any_time(&self.now, &self.entries, &mut findings);
        check::between(&self.before, &self.now, &self.entries, &mut findings);
        check::at_the_end(&self.now, &self.entries, &mut findings);
        findings.0
    }

    fn add(&mut self, run: &str, workflow: &str, status: Status, journal: Vec<(i64, Event)>) {
        let records = journal.iter().map(|(at, event)| event.encode(Timestamp::from_millis(*at))).collect();
        let seen = Seen { workflow: workflow.to_owned(), status, journals: vec![records], owns: false };
        self.now.runs.insert(run.to_owned(), seen);
    }

    /// A line in the ledger.
    pub(super) fn say(&mut self, when: i64, note: Note) {
        self.entries.push(at(when, note));
        self.now.lines = self.entries.len();
    }

    pub(super) fn ask(&mut self, when: i64, ask: Ask) {
        self.say(when, Note::Tried(ask.clone()));
        self.say(when + 1, Note::Acked(ask));
    }

    fn start(&mut self, when: i64, run: &str) {
        self.ask(when, Ask::Start { run: run.to_owned() });
    }

    fn sleeper(&mut self) {
        self.start(98, "sleeper");
        self.say(121, body("sleeper", "nap", 1));
        let deadline = Timestamp::from_millis(120);
        let journal = vec![
            (100, Event::TimerStarted { key: key("__sleep-0"), deadline, duration_ms: Some(20) }),
            (120, Event::TimerFired { key: key("__sleep-0") }),
            (122, finished_step("nap", 1)),
            (122, done("6")),
        ];
        self.add("sleeper", "naps", Status::Completed, journal);
    }

    fn stopped(&mut self) {
        self.start(130, "stopped");
        self.ask(131, Ask::Cancel { run: "stopped".to_owned() });
        let journal =
            vec![(132, Event::CancelRequested { reason: None, by: None }), (133, Event::RunCancelled { reason: None })];
        self.add("stopped", "cancelled", Status::Cancelled, journal);
    }

    fn retrier(&mut self) {
        self.start(198, "retrier");
        for (when, step, attempt) in [
            (199, "flaky", 1),
            (211, "flaky", 2),
            (213, "slow", 1),
            (235, "slow", 2),
            (238, "careful", 1),
            (244, "count", 1),
            (250, "count", 2),
        ] {
            self.say(when, body("retrier", step, attempt));
        }
        let journal = vec![
            (200, retried("flaky", "not_yet", 210)),
            (212, finished_step("flaky", 2)),
            (230, retried("slow", "timeout", 235)),
            (236, finished_step("slow", 2)),
            (237, Event::StepStarted { key: key("careful"), attempt: 1, at_most_once: true }),
            (240, finished_step("careful", 1)),
            (245, checked(1, Some(250))),
            (251, checked(2, None)),
            (252, done("23")),
        ];
        self.add("retrier", "steps", Status::Completed, journal);
    }

    fn asked(&mut self) {
        let run = || "asked".to_owned();
        self.start(298, "asked");
        self.ask(328, Ask::Signal { run: run(), id: "word".to_owned() });
        self.ask(338, Ask::Approve { run: run(), key: "go".to_owned(), feedback: "a word".to_owned() });
        self.ask(368, Ask::Resolve { run: run(), callback: "call".to_owned(), value: 7 });
        self.ask(378, Ask::Fail { run: run(), callback: "refused".to_owned(), message: "a word".to_owned() });
        self.ask(410, Ask::Heartbeat { run: run(), callback: "alive".to_owned() });
        self.ask(458, Ask::Pause { run: run() });
        self.ask(468, Ask::Resume { run: run() });
        let journal = vec![
            (300, awaited("never", Some(320))),
            (320, Event::SignalTimedOut { key: key("never"), name: SignalName::new("never").unwrap() }),
            (325, awaited("word", None)),
            (330, taken()),
            (335, requested("go", None)),
            (340, approved("a word")),
            (345, requested("late", Some(360))),
            (360, Event::ApprovalTimedOut { key: key("late"), approval: "late".to_owned() }),
            (365, created("call", None)),
            (370, resolved("7")),
            (375, created("refused", None)),
            (380, refused("a word")),
            (400, created("alive", Some(40))),
            (450, Event::CallbackTimedOut { key: key("alive"), callback: "alive".to_owned() }),
            (460, Event::RunPaused { reason: None, by: None }),
            (470, Event::RunResumed { message: None, by: None }),
            (480, done("6")),
        ];
        self.add("asked", "answers", Status::Completed, journal);
    }

    fn others(&mut self) {
        for run in ["ended", "failing"] {
            self.start(483, run);
        }
        self.ask(485, Ask::Terminate { run: "ended".to_owned(), reason: "life 1".to_owned() });
        self.ask(486, Ask::Fork { from: "retrier".to_owned(), at: 2, run: "copy".to_owned() });
        self.say(487, Note::Shown { kind: "RUN_STARTED".to_owned() });
        let child = Event::ChildStarted {
            key: key("__child-0"),
            child: RunId::new("kid").unwrap(),
            workflow: WorkflowName::new("child").unwrap(),
            version: Version::new("1").unwrap(),
            detached: true,
            on_close: ClosePolicy::Abandon,
        };
        let terminated = Event::RunTerminated { reason: Some("life 1".to_owned()), by: None };
        self.add("ended", "doomed", Status::Cancelled, vec![(484, child), (486, terminated)]);
        self.add("kid", "child", Status::Completed, vec![(487, done("1"))]);
        let copied = vec![(200, retried("flaky", "not_yet", 210)), (212, finished_step("flaky", 2)), (490, done("3"))];
        self.add("copy", "steps", Status::Completed, copied);
        let error = Failure::new("on_purpose", "it fails");
        self.add("failing", "failing", Status::Failed, vec![(491, Event::RunErrored { error })]);
    }

    // Tampering.

    pub(super) fn run(&mut self, run: &str) -> &mut Seen {
        self.now.runs.get_mut(run).unwrap()
    }

    /// Puts another event in the place of one, at the same time.
    pub(super) fn change(&mut self, run: &str, index: usize, event: Event) {
        let record = &mut self.run(run).journals[0][index];
        *record = event.encode(record.at);
    }

    pub(super) fn retime(&mut self, run: &str, index: usize, at: i64) {
        self.run(run).journals[0][index].at = Timestamp::from_millis(at);
    }

    pub(super) fn repeat(&mut self, run: &str, index: usize) {
        let journal = &mut self.run(run).journals[0];
        journal.insert(index, journal[index].clone());
    }

    pub(super) fn entry(&mut self, note: Note) -> &mut Entry {
        self.entries.iter_mut().find(|entry| entry.note == note).unwrap()
    }

    /// As if nobody had seen it. The line stays, so that the others keep their places.
    pub(super) fn forget(&mut self, note: &Note) {
        let unsaid = Note::Shown { kind: "RUN_STARTED".to_owned() };
        self.entry(note.clone()).note = unsaid;
    }
}

pub(super) fn at(at: i64, note: Note) -> Entry {
    Entry { at, life: 1, note }
}

pub(super) fn key(key: &str) -> Key {
    Key::new(key).unwrap()
}

pub(super) fn body(run: &str, key: &str, attempt: u32) -> Note {
    Note::Body { run: run.to_owned(), generation: 0, key: key.to_owned(), attempt }
}

fn done(output: &'static str) -> Event {
    Event::RunFinished { output: output.into() }
}

fn finished_step(step: &str, attempts: u32) -> Event {
    Event::StepFinished { key: key(step), result: "1".into(), attempts }
}

pub(super) fn failed_step(step: &str, code: &str) -> Event {
    Event::StepFailed { key: key(step), error: Failure::new(code, "it failed"), attempts: 1 }
}

fn retried(step: &str, code: &str, next_at: i64) -> Event {
    let (next_at, error) = (Timestamp::from_millis(next_at), Failure::new(code, "again"));
    Event::StepRetryScheduled { key: key(step), attempt: 1, next_at, error }
}

fn checked(attempt: u32, next_at: Option<i64>) -> Event {
    let (met, next_at) = (next_at.is_none(), next_at.map(Timestamp::from_millis));
    Event::ConditionChecked { key: key("count"), attempt, met, state: "1".into(), next_at }
}

pub(super) fn awaited(name: &str, deadline: Option<i64>) -> Event {
    let deadline = deadline.map(Timestamp::from_millis);
    Event::SignalAwaited { key: key(name), name: SignalName::new(name).unwrap(), deadline }
}

fn taken() -> Event {
    let (name, signal_id) = (SignalName::new("word").unwrap(), DeliveryId::new("word").unwrap());
    Event::SignalResolved { key: key("word"), name, signal_id, payload: "1".into() }
}

fn requested(approval: &str, deadline: Option<i64>) -> Event {
    let (title, deadline) = ("Go on?".to_owned(), deadline.map(Timestamp::from_millis));
    Event::ApprovalRequested { key: key(approval), approval: approval.to_owned(), title, assignee: None, deadline }
}

pub(super) fn approved(feedback: &str) -> Event {
    let (approval, feedback) = ("go".to_owned(), Some(feedback.to_owned()));
    Event::ApprovalResolved { key: key("go"), approval, approved: true, by: None, feedback }
}

fn created(callback: &str, heartbeat_ms: Option<u64>) -> Event {
    Event::CallbackCreated { key: key(callback), callback: callback.to_owned(), deadline: None, heartbeat_ms }
}

pub(super) fn resolved(value: &'static str) -> Event {
    Event::CallbackResolved { key: key("call"), callback: "call".to_owned(), payload: value.into() }
}

pub(super) fn refused(message: &str) -> Event {
    let error = Failure::new("refused", message);
    Event::CallbackFailed { key: key("refused"), callback: "refused".to_owned(), error }
}
