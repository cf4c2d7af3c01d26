//! A driver of one thread and no time: it keeps a journal, checks it by its law, and answers every operation itself. It does
//! with a flow's marks what the engine has to do.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use outlast_core::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::event::{Class, Event, Kind};
use outlast_core::failure::Failure;
use outlast_core::id::{DeliveryId, Index, Key, RunId, TaskId, Version};
use outlast_core::journal::Journal;
use outlast_core::operation::{Due, Operation, Operations, Provided};
use outlast_core::program::{Input, Program, Progress};
use outlast_core::time::Timestamp;
use outlast_flow::{Flow, FlowLimits, FlowProgram, Position, RunInfo, derive};
use serde_json::{Value as Json, json};

/// Who answers.
#[derive(Clone, Copy)]
pub(crate) struct World {
    /// What a task, step or child returns, by its name, what it is given, and its key.
    pub(crate) work: fn(&str, &Json, &Key) -> Result<Json, Failure>,
    /// What people decide, by the title; none if nobody does.
    pub(crate) decide: fn(&str) -> Option<bool>,
    /// What a signal says, by its name; none if it does not come.
    pub(crate) signal: fn(&str) -> Option<Json>,
}

pub(crate) fn echo(name: &str, args: &Json, _: &Key) -> Result<Json, Failure> {
    match name {
        "fail" => Err(Failure::new(args["code"].as_str().unwrap_or("error"), "failed as asked")),
        "null" => Ok(Json::Null),
        "echo" => Ok(args.clone()),
        name => Ok(json!({ "did": name, "with": args })),
    }
}

impl Default for World {
    fn default() -> World {
        World { work: echo, decide: |_| None, signal: |_| None }
    }
}

pub(crate) struct Stage {
    flow: Flow,
    input: Bytes,
    world: World,
    pub(crate) program: FlowProgram,
    ops: Operations,
    pub(crate) journal: Journal,
    /// How far the journal was fed, and how much of it was there when the run was restored.
    fed: u64,
    loaded: u64,
    held: VecDeque<Operation>,
    /// Facts that will come, by when and for whom: so what comes next depends on what is open, and on nothing else.
    due: BTreeMap<(i64, Key), Event>,
    now: i64,
    pub(crate) progress: Progress,
    /// With the length of the journal when each was taken: it may know of starts behind its own index, which are not fed.
    pub(crate) snapshots: Vec<(usize, Snapshot)>,
    /// Nothing new starts.
    pausing: bool,
}

pub(crate) fn info() -> RunInfo {
    RunInfo {
        run_id: "run-1".to_owned(),
        workflow: "flow".to_owned(),
        tokens: Arc::new(|key: &Key| format!("token-of-{key}")),
    }
}

pub(crate) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

pub(crate) fn parse(text: &str) -> Flow {
    Flow::parse("test.flow.yaml", text).unwrap_or_else(|found| panic!("{found}"))
}

fn is_fed(event: &Event) -> bool {
    event.is_mark() || event.class() == Class::Checkpoint
}

impl Stage {
    pub(crate) fn new(flow: &Flow, input: &Json, world: World) -> Stage {
        Stage::restored(flow, input, world, &[], None)
    }

    /// A run whose journal is there already, and maybe a snapshot. What is open in it is answered from now on.
    pub(crate) fn restored(
        flow: &Flow,
        input: &Json,
        world: World,
        events: &[Event],
        snapshot: Option<&Snapshot>,
    ) -> Stage {
        let input = Bytes::from(input.to_string());
        let limits = FlowLimits::default();
        let program = match snapshot {
            None => flow.program(info(), input.clone(), limits),
            Some(snapshot) => flow.restore(info(), &input, limits, snapshot).expect("a good snapshot"),
        };
        let mut journal = Journal::new();
        for event in events {
            journal.append(journal.next(), event.clone()).unwrap_or_else(|error| panic!("{error}"));
        }
        let fired = events.iter().filter(|event| event.kind() == Kind::TimerFired).filter_map(Event::key);
        let deadlines = fired.filter_map(|key| match journal.get(journal.operation(key)?.since)? {
            Event::TimerStarted { deadline, .. } => Some(deadline.as_millis()),
            _ => None,
        });
        let now = deadlines.fold(1_000, i64::max);
        let mut stage = Stage {
            flow: flow.clone(),
            input,
            world,
            program,
            ops: Operations::new(Provided { now: Timestamp::from_millis(1_000), seed: 7 }),
            fed: snapshot.map_or(0, |snapshot| snapshot.index.0),
            loaded: journal.next().0,
            journal,
            held: VecDeque::new(),
            due: BTreeMap::new(),
            now,
            progress: Progress::Blocked,
            snapshots: Vec::new(),
            pausing: false,
        };
        if snapshot.is_none() {
            stage.tell(Input::Start);
        }
        stage.replay();
        stage.world_goes_on();
        stage
    }

    fn tell(&mut self, input: Input<'_>) {
        self.progress = self.program.resume(input, &mut self.ops);
        for requested in self.ops.take() {
            self.accept(requested.operation);
        }
    }

    /// What is recorded need not be done.
    fn accept(&mut self, operation: Operation) {
        let is_recorded =
            operation.starts().is_some() && operation.key().is_some_and(|key| self.journal.operation(key).is_some());
        if !is_recorded && !matches!(operation, Operation::Await { .. }) {
            self.held.push_back(operation);
        }
    }

    fn replay(&mut self) {
        while self.feed_next() {}
    }

    /// Feeds the next event; a recorded mark must have been asked for.
    fn feed_next(&mut self) -> bool {
        let index = Index(self.fed);
        let Some(event) = self.journal.get(index).cloned() else { return false };
        self.fed += 1;
        if self.fed <= self.loaded {
            if event.is_mark() {
                let asked = self
                    .held
                    .iter()
                    .position(|held| matches!(held, Operation::Mark { event: mark } if **mark == event));
                let asked =
                    asked.unwrap_or_else(|| panic!("{index}: {event:?} was not asked for, but {:?}", self.held));
                self.held.remove(asked);
            }
            if let Event::OperationCancelled { key } = &event {
                self.held.retain(|held| !matches!(held, Operation::Cancel { key: other } if other == key));
            }
        }
        if event.is_intervention() {
            // What was decided before is decided again.
            self.held.retain(|held| !matches!(held, Operation::Mark { .. }));
        }
        if is_fed(&event) && self.progress == Progress::Blocked {
            self.tell(Input::Fact { index, event: &event });
        }
        true
    }

    /// Appends an event, and feeds it.
    pub(crate) fn append(&mut self, event: Event) {
        let next = self.journal.next();
        self.journal.append(next, event).unwrap_or_else(|error| panic!("{error}"));
        self.replay();
        if self.held.is_empty() && self.progress == Progress::Blocked {
            let length = self.journal.events().len();
            self.snapshots.extend(self.program.snapshot().map(|snapshot| (length, snapshot)));
        }
    }

    /// Does the next thing that can be done; whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        if self.progress != Progress::Blocked || self.journal.is_paused() {
            return false;
        }
        if !self.pausing
            && let Some(operation) = self.held.pop_front()
        {
            self.perform(operation);
            return true;
        }
        if self.pausing && self.journal.open().iter().all(|open| !self.will_come(&open.key)) {
            return false;
        }
        let Some(((at, _), event)) = self.due.pop_first() else { return false };
        self.now = self.now.max(at);
        self.append(event);
        true
    }

    fn will_come(&self, key: &Key) -> bool {
        self.due
            .values()
            .any(|event| event.key() == Some(key) && matches!(event.kind(), Kind::TaskFinished | Kind::TaskFailed))
    }

    pub(crate) fn run(&mut self) -> &mut Stage {
        while self.step() {}
        self
    }

    /// Runs until the journal has so many events, or more.
    pub(crate) fn run_to(&mut self, events: usize) -> &mut Stage {
        while (self.journal.next().0 as usize) < events && self.step() {}
        self
    }

    /// An operator pauses: what runs finishes, nothing else begins.
    pub(crate) fn pause(&mut self, reason: &str) {
        if self.progress != Progress::Blocked || self.journal.is_paused() {
            return;
        }
        self.pausing = true;
        while self.step() {}
        if self.progress == Progress::Blocked {
            self.append(Event::RunPaused { reason: Some(reason.to_owned()), by: None });
        }
        self.pausing = false;
    }

    pub(crate) fn resume(&mut self, message: &str) {
        if self.journal.is_paused() {
            let message = Some(Bytes::from(json!(message).to_string()));
            self.append(Event::RunResumed { message, by: None });
        }
    }

    fn perform(&mut self, operation: Operation) {
        match operation {
            Operation::Mark { event } => self.append(*event),
            Operation::ScheduleTask { key, name, queue, args, detached, .. } => {
                let task = task_id(&key);
                self.append(Event::TaskScheduled { key, task, name, queue, detached, plan: None, args });
            }
            Operation::StartTimer { key, due } => {
                let deadline = due.deadline(Timestamp::from_millis(self.now));
                let duration_ms = match due {
                    Due::After(duration) => Some(duration.as_millis() as u64),
                    Due::At(_) => None,
                };
                self.append(Event::TimerStarted { key, deadline, duration_ms });
            }
            Operation::AwaitSignal { key, name, deadline, .. } => {
                let deadline = deadline.map(|due| due.deadline(Timestamp::from_millis(self.now)));
                self.append(Event::SignalAwaited { key, name, deadline });
            }
            Operation::RequestApproval { key, title, assignee, deadline } => {
                let deadline = deadline.map(|due| due.deadline(Timestamp::from_millis(self.now)));
                let approval = key.to_string();
                self.append(Event::ApprovalRequested { key, approval, title, assignee, deadline });
            }
            Operation::CreateCallback { key, deadline, .. } => {
                let deadline = deadline.map(|due| due.deadline(Timestamp::from_millis(self.now)));
                let callback = key.to_string();
                self.append(Event::CallbackCreated { key, callback, deadline, heartbeat_ms: None });
            }
            Operation::StartChild { key, workflow, input, .. } => {
                let (child, version) = (RunId::new(format!("child-{key}")).unwrap(), Version::new("1").unwrap());
                let on_close = outlast_core::event::ClosePolicy::Cancel;
                let outcome = (self.world.work)(workflow.as_str(), &json_of(&input), &key);
                self.append(Event::ChildStarted {
                    key: key.clone(),
                    child: child.clone(),
                    workflow,
                    version,
                    detached: false,
                    on_close,
                });
                let event = match outcome {
                    Ok(result) => Event::ChildFinished { key, child, result: bytes(&result) },
                    Err(error) => Event::ChildFailed { key, child, error },
                };
                self.schedule(0, event);
                return;
            }
            // One that was cancelled meanwhile never runs: its start leaves no record.
            Operation::StartStep { key, .. } if self.program.step(&key).is_none() => {}
            Operation::StartStep { key, .. } => self.run_step(&key),
            Operation::Cancel { key } => {
                self.due.retain(|_, event| event.key() != Some(&key));
                if self.journal.is_open(&key) {
                    self.append(Event::OperationCancelled { key });
                }
            }
            other => panic!("a flow does not ask for {other:?}"),
        }
        self.world_goes_on();
    }

    fn run_step(&mut self, key: &Key) {
        let call = self.program.step(key).expect("a step that is open can be run");
        let event = match (self.world.work)(&call.name, &call.input, key) {
            Ok(result) => Event::StepFinished { key: key.clone(), result: bytes(&result), attempts: 1 },
            Err(error) => Event::StepFailed { key: key.clone(), error, attempts: 1 },
        };
        self.schedule(0, event);
    }

    fn schedule(&mut self, at: i64, event: Event) {
        let key = event.key().cloned().expect("a fact about an operation");
        self.due.insert((at, key), event);
    }

    /// What is open and not answered yet gets its answer.
    fn world_goes_on(&mut self) {
        for open in self.journal.open() {
            let is_due = self.due.values().any(|event| event.key() == Some(&open.key));
            let Some(event) = self.journal.get(open.since).cloned().filter(|_| !is_due) else { continue };
            self.answer(event);
        }
        // Steps have no record of their start.
        let steps: Vec<Key> = self
            .program
            .open_operations()
            .filter(|(_, kind, _)| *kind == outlast_core::operation::OperationKind::Step)
            .map(|(key, ..)| key)
            .collect();
        for key in steps {
            let is_held = self.held.iter().any(|held| held.key() == Some(&key));
            if !is_held && !self.due.values().any(|event| event.key() == Some(&key)) {
                self.run_step(&key);
            }
        }
    }

    fn answer(&mut self, event: Event) {
        let later = |deadline: Option<Timestamp>| deadline.map(Timestamp::as_millis);
        match event {
            Event::TaskScheduled { key, task, name, args, .. } => {
                let event = match (self.world.work)(name.as_str(), &json_of(&args), &key) {
                    Ok(result) => Event::TaskFinished { key, task, log: None, result: bytes(&result) },
                    Err(error) => Event::TaskFailed { key, task, error },
                };
                self.schedule(0, event);
            }
            Event::TimerStarted { key, deadline, .. } => self.schedule(deadline.as_millis(), Event::TimerFired { key }),
            Event::SignalAwaited { key, name, deadline } => match (self.world.signal)(name.as_str()) {
                Some(payload) => {
                    let signal_id = DeliveryId::new(format!("signal-{key}")).unwrap();
                    self.schedule(0, Event::SignalResolved { key, name, signal_id, payload: bytes(&payload) });
                }
                None => {
                    if let Some(at) = later(deadline) {
                        self.schedule(at, Event::SignalTimedOut { key, name });
                    }
                }
            },
            Event::ApprovalRequested { key, approval, title, deadline, .. } => match (self.world.decide)(&title) {
                Some(approved) => {
                    let by = Some("ada".to_owned());
                    self.schedule(0, Event::ApprovalResolved { key, approval, approved, by, feedback: None });
                }
                None => {
                    if let Some(at) = later(deadline) {
                        self.schedule(at, Event::ApprovalTimedOut { key, approval });
                    }
                }
            },
            Event::CallbackCreated { key, callback, deadline, .. } => {
                if let Some(at) = later(deadline) {
                    self.schedule(at, Event::CallbackTimedOut { key, callback });
                }
            }
            Event::ChildStarted { key, child, workflow, .. } => {
                // What it was given is not in the journal: the children of these tests do not look at it.
                let event = match (self.world.work)(workflow.as_str(), &Json::Null, &key) {
                    Ok(result) => Event::ChildFinished { key, child, result: bytes(&result) },
                    Err(error) => Event::ChildFailed { key, child, error },
                };
                self.schedule(0, event);
            }
            _ => {}
        }
    }

    /// Somebody decides.
    pub(crate) fn approve(&mut self, at: &str, approved: bool) -> &mut Stage {
        self.due.retain(|_, event| event.key() != Some(&key(at)));
        let (by, feedback) = (Some("ada".to_owned()), Some("as I see it".to_owned()));
        self.append(Event::ApprovalResolved { key: key(at), approval: at.to_owned(), approved, by, feedback });
        self.run()
    }

    pub(crate) fn position(&self) -> Position {
        derive(&self.flow, &info(), &self.input, self.journal.events()).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn ended(&self) -> Result<Json, Failure> {
        match &self.progress {
            Progress::Finished(output) => Ok(json_of(output)),
            Progress::Failed(failure) => Err(failure.clone()),
            other => panic!("not at its end: {other:?}\n{}", self.told().join("\n")),
        }
    }

    pub(crate) fn output(&self) -> Json {
        self.ended().unwrap_or_else(|failure| panic!("{failure}\n{}", self.told().join("\n")))
    }

    /// The journal, a line for each event.
    pub(crate) fn told(&self) -> Vec<String> {
        self.journal.events().iter().map(told).collect()
    }

    /// The keys of events of a kind, in order.
    pub(crate) fn keys(&self, kind: Kind) -> Vec<String> {
        let events = self.journal.events().iter().filter(|event| event.kind() == kind);
        events.filter_map(|event| event.key().map(ToString::to_string)).collect()
    }
}

pub(crate) fn told(event: &Event) -> String {
    let name = event.kind();
    match event {
        Event::ContainerIterationStarted { node, index, .. }
        | Event::ContainerIterationCompleted { node, index, .. } => {
            format!("{name} {node} {index}")
        }
        Event::ContainerChildStarted { child, .. } | Event::ContainerChildCompleted { child, .. } => {
            format!("{name} {child}")
        }
        Event::LoopIterate { from, to, iteration } => format!("{name} {from} {to} {iteration}"),
        other => match other.key() {
            Some(key) => format!("{name} {key}"),
            None => name.to_string(),
        },
    }
}

fn task_id(key: &Key) -> TaskId {
    TaskId::new(format!("task-{key}")).unwrap()
}

pub(crate) fn bytes(value: &Json) -> Bytes {
    Bytes::from(value.to_string())
}

pub(crate) fn json_of(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap()
}

/// Runs a flow to its end, with tasks that tell what they were asked.
pub(crate) fn run(text: &str, input: &Json) -> Stage {
    run_in(text, input, World::default())
}

pub(crate) fn run_in(text: &str, input: &Json, world: World) -> Stage {
    let mut stage = Stage::new(&parse(text), input, world);
    stage.run();
    stage
}
