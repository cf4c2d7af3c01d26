//! Small scripted workflows, and how far a journal says they got. Pure: journal and inbox in, a commit out.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Commit, Delivery, Ending, InboxItem, InboxKind, NewRun, Parent, Then};
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::id::{Fence, Generation, Index, Key, RunId, RunKey, Version, WorkflowName};
use outlast_core::journal::Journal;
use outlast_core::time::Timestamp;

use crate::operations::{self, Settled};

/// One operation of a workflow. They happen one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A body the driver runs.
    Step(&'static str),
    /// A sleep; the driver keeps the run and fires its own timer, or leaves that to the sweep.
    Sleep { key: &'static str, millis: u64, own: bool },
    /// A wait for a signal.
    Wait { key: &'static str, signal: &'static str },
    /// A wait for a decision.
    Approve { key: &'static str, timeout: u64 },
    /// A wait for the holder of a token, who must show signs of life.
    Callback { key: &'static str, silence: u64 },
    /// Work for a worker; what it gets says how it goes about it.
    Task { key: &'static str, manner: &'static str },
    /// A child run of another workflow.
    Child { key: &'static str, workflow: &'static str },
    /// Two children that run at the same time.
    Twins { keys: [&'static str; 2], workflow: &'static str },
    /// A sleep, a wait and a task that nobody waits for: the run may end over them.
    Linger { sleep: &'static str, wait: &'static str, task: &'static str },
    /// The first generation ends here.
    ContinueAsNew,
}

/// How long the holder of a token may be silent.
pub(crate) const SILENCE_MS: u64 = 50;
/// The step that runs when a run is cancelled.
pub(crate) const CLEANUP: &str = "cleanup";

/// The operations of a workflow.
pub(crate) fn program(workflow: &str) -> &'static [Op] {
    const STEP: Op = Op::Step("pack");
    match workflow {
        "three" => &[Op::Step("charge"), STEP, Op::Step("ship")],
        "sleeper" => &[Op::Step("charge"), Op::Sleep { key: "nap", millis: 100, own: false }, STEP],
        "keeper" => &[Op::Step("charge"), Op::Sleep { key: "nap", millis: 100, own: true }, STEP],
        "payments" => &[
            Op::Step("charge"),
            Op::Wait { key: "first", signal: "pay" },
            Op::Wait { key: "second", signal: "pay" },
            STEP,
        ],
        "chain" => &[
            Op::Wait { key: "first", signal: "pay" },
            Op::Wait { key: "second", signal: "pay" },
            Op::Wait { key: "third", signal: "pay" },
            Op::Wait { key: "fourth", signal: "pay" },
        ],
        "patient" => &[Op::Wait { key: "first", signal: "pay" }, STEP],
        "decision" => &[Op::Step("charge"), Op::Approve { key: "ok", timeout: 100 }, STEP],
        "calling" => &[Op::Callback { key: "call", silence: SILENCE_MS }, STEP],
        "retried" => &[Op::Step("charge"), Op::Task { key: "work", manner: "retry" }, STEP],
        "deserted" => &[Op::Task { key: "work", manner: "desert" }, STEP],
        "hasty" => &[Op::Linger { sleep: "nap", wait: "idle", task: "loose" }, STEP],
        "leaf" => &[Op::Step("leaf")],
        "family" => &[Op::Twins { keys: ["left", "right"], workflow: "leaf" }, STEP],
        "heir" => &[Op::Child { key: "only", workflow: "leaf" }, Op::Wait { key: "first", signal: "pay" }],
        "rolling" => &[Op::Wait { key: "first", signal: "pay" }, Op::ContinueAsNew],
        "long" => &[Op::Step("charge"), Op::Sleep { key: "nap", millis: 1_000_000_000, own: false }, STEP],
        "stubborn" => &[Op::Step("charge"), Op::Wait { key: "first", signal: "never" }],
        "bulky" => &[Op::Step("a"), Op::Step("b"), Op::Sleep { key: "nap", millis: 5, own: false }, Op::Step("c")],
        other => panic!("there is no workflow {other}"),
    }
}

/// What a driver knows of the run it holds.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) run: RunKey,
    pub(crate) fence: Fence,
    pub(crate) workflow: WorkflowName,
    pub(crate) generation: Generation,
    pub(crate) parent: Option<Parent>,
}

/// What to do next.
#[derive(Clone, Debug)]
pub(crate) enum Next {
    /// Run the body of this step; everything before it is durable.
    Body(Key),
    /// Keep the run until then.
    Until(Timestamp),
    /// Write this.
    Commit(Box<Commit>),
    /// There is nothing to write: give the run back.
    Release,
}

/// A turn in the making.
pub(crate) struct Turn<'a> {
    pub(crate) hold: &'a Hold,
    pub(crate) journal: Journal,
    pub(crate) inbox: &'a [InboxItem],
    pub(crate) now: Timestamp,
    pub(crate) commit: Commit,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(hold: &'a Hold, journal: Journal, inbox: &'a [InboxItem], now: Timestamp) -> Turn<'a> {
        let commit = Commit::new(hold.run.clone(), hold.fence, journal.next());
        Turn { hold, journal, inbox, now, commit }
    }

    /// Appends an event, if the core says it is legal there.
    pub(crate) fn say(&mut self, event: Event) {
        let next = self.journal.next();
        self.commit.events.push(event.encode(self.now));
        self.journal.append(next, event).unwrap_or_else(|error| panic!("the driver is wrong: {error}"));
    }

    /// The first inbox item that fits and is not consumed yet.
    pub(crate) fn item(&self, fits: impl Fn(&InboxItem) -> bool) -> Option<&'a InboxItem> {
        self.inbox.iter().find(|item| fits(item) && !self.commit.consumed.contains(&item.id))
    }

    pub(crate) fn consume(&mut self, item: &InboxItem) {
        self.commit.consumed.push(item.id);
    }

    /// Goes on until a body must run, something must be written, or nothing is left to do.
    pub(crate) fn decide(mut self) -> Next {
        loop {
            self.obey();
            if self.journal.is_paused() {
                return self.end(Then::Pause);
            }
            let ops = program(self.hold.workflow.as_str());
            let cancelled = self.is_cancelled();
            let open = ops.iter().find(|op| operations::settled(**op, &self.journal) == Settled::No);
            let next = match open {
                Some(op) if cancelled => {
                    operations::abandon(*op, &mut self);
                    self.clean_up()
                }
                None if cancelled => self.clean_up(),
                Some(Op::ContinueAsNew) if self.hold.generation == Generation(0) => Some(self.roll_over()),
                Some(Op::ContinueAsNew) | None => Some(self.finish(ops)),
                Some(op) => operations::advance(*op, &mut self),
            };
            if let Some(what) = next {
                return self.conclude(what);
            }
        }
    }

    /// Feeds what operators ask for. What is asked for twice, or too late, is only consumed.
    fn obey(&mut self) {
        let control = |item: &InboxItem| matches!(item.kind, InboxKind::Cancel | InboxKind::Pause | InboxKind::Resume);
        while let Some(item) = self.item(control) {
            self.consume(item);
            let paused = self.journal.is_paused();
            if item.kind == InboxKind::Cancel && !self.is_cancelled() {
                self.say(Event::CancelRequested { reason: None, by: None });
            } else if item.kind == InboxKind::Pause && !paused {
                self.say(Event::RunPaused { reason: None, by: None });
            } else if item.kind == InboxKind::Resume && paused {
                self.say(Event::RunResumed { message: None, by: None });
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.journal.events().iter().any(|event| matches!(event, Event::CancelRequested { .. }))
    }

    fn clean_up(&mut self) -> Option<What> {
        let key = Key::new(CLEANUP).unwrap();
        let done = operations::settled(Op::Step(CLEANUP), &self.journal) != Settled::No;
        if !done {
            return Some(What::Body(key));
        }
        self.say(Event::RunCancelled { reason: None });
        self.tell_parent(Some("cancelled"), Bytes::new());
        Some(What::End(Then::Finish(Ending::Cancelled)))
    }

    fn roll_over(&mut self) -> What {
        let input = Bytes::from_static(b"again");
        self.say(Event::RunContinued { input: input.clone(), version: None });
        What::End(Then::ContinueAsNew { input, version: None })
    }

    fn finish(&mut self, ops: &[Op]) -> What {
        let output = Bytes::from(operations::output(ops, &self.journal));
        self.say(Event::RunFinished { output: output.clone() });
        self.tell_parent(None, output);
        What::End(Then::Finish(Ending::Completed))
    }

    fn tell_parent(&mut self, meta: Option<&'static str>, output: Bytes) {
        let Some(parent) = &self.hold.parent else { return };
        self.commit.deliveries.push(Delivery::Child {
            run: RunKey::new(self.hold.run.namespace.clone(), parent.run.clone()),
            generation: parent.generation,
            key: parent.key.clone(),
            child: self.hold.run.id.clone(),
            meta: meta.map(|meta| Bytes::from_static(meta.as_bytes())),
            payload: Some(output),
        });
    }

    pub(crate) fn child(&mut self, key: &Key, workflow: &str) {
        let id = RunId::new(format!("{}-{key}", self.hold.run.id)).unwrap();
        let (workflow, version) = (WorkflowName::new(workflow).unwrap(), Version::new("1").unwrap());
        let parent = Parent {
            run: self.hold.run.id.clone(),
            generation: self.hold.generation,
            key: key.clone(),
            detached: false,
        };
        let run = RunKey::new(self.hold.run.namespace.clone(), id.clone());
        let new = NewRun::new(run, workflow.clone(), version.clone(), Bytes::from_static(b"{}"));
        self.commit.children.push(NewRun { parent: Some(parent), ..new });
        let (key, on_close) = (key.clone(), ClosePolicy::Cancel);
        self.say(Event::ChildStarted { key, child: id, workflow, version, detached: false, on_close });
    }

    /// Turns a decision into a commit, together with what is stale in the inbox.
    fn conclude(mut self, what: What) -> Next {
        let written = !self.commit.events.is_empty();
        match what {
            What::Body(_) | What::Until(_) if written => self.end(Then::Continue),
            What::Body(key) => Next::Body(key),
            What::Until(due) => Next::Until(due),
            What::End(then) => self.end(then),
        }
    }

    fn end(&mut self, then: Then) -> Next {
        let stale = |item: &InboxItem| {
            let settled = item.key.as_ref().is_some_and(|key| !self.journal.is_open(key));
            item.kind != InboxKind::Signal && settled && !self.commit.consumed.contains(&item.id)
        };
        let stale: Vec<_> = self.inbox.iter().filter(|item| stale(item)).map(|item| item.id).collect();
        self.commit.consumed.extend(stale);
        self.commit.then = then;
        let nothing = self.commit.events.is_empty() && self.commit.consumed.is_empty();
        if nothing && self.commit.then == Then::Suspend {
            return Next::Release;
        }
        Next::Commit(Box::new(self.commit.clone()))
    }
}

/// What an operation asks of its turn.
pub(crate) enum What {
    Body(Key),
    Until(Timestamp),
    End(Then),
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// A journal as it was loaded, checked by the core.
pub(crate) fn journal(events: &[outlast_core::record::Record]) -> Journal {
    let indexed = events.iter().cloned().enumerate().map(|(index, record)| (Index(index as u64), record));
    Journal::load(indexed).unwrap_or_else(|error| panic!("a loaded journal is not legal: {error}"))
}
