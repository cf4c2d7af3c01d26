//! A driver of one thread and no time: it answers every operation itself, in a fixed order.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_core::Bytes;
use outlast_core::commit::Snapshot;
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::{DeliveryId, Index, Key, RunId, TaskId, Version};
use outlast_core::operation::{Due, Operation, Operations, Provided};
use outlast_core::program::{Input, Program, Progress};
use outlast_core::time::Timestamp;
use outlast_script::{Limits, RunInfo, Script, ScriptProgram};
use serde_json::Value as Json;

/// How a run ended, and what it logged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) logs: Vec<Json>,
    pub(crate) result: Result<Json, Failure>,
}

/// What becomes of the state between two facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Memory {
    /// It stays where it is.
    Hot,
    /// It is saved and restored at every fact.
    Restored,
    /// It is lost at every fact, and rebuilt from the journal.
    Rebuilt,
}

/// What a task returns, by its name and arguments.
pub(crate) type Tasks = fn(&str, &Json) -> Result<Json, Failure>;

pub(crate) struct Stage {
    script: Script,
    info: RunInfo,
    input: Bytes,
    limits: Limits,
    tasks: Tasks,
    program: ScriptProgram,
    ops: Operations,
    pub(crate) journal: Vec<Event>,
    pub(crate) requests: Vec<Operation>,
    pub(crate) logs: Vec<Json>,
    /// The same as it was written, and so in its order.
    pub(crate) told: Vec<Bytes>,
    /// Facts that will come, by when and in which order.
    due: BTreeMap<(i64, u64), Event>,
    order: u64,
    /// Operations that were started.
    started: u32,
    /// Draws the order in which tasks end; 0 is the order of their starts.
    seed: u32,
    pub(crate) now: i64,
    pub(crate) progress: Progress,
}

pub(crate) fn info(workflow: &str) -> RunInfo {
    RunInfo {
        run_id: "run-1".to_owned(),
        workflow: workflow.to_owned(),
        tokens: Arc::new(|key: &Key| format!("token-of-{key}")),
    }
}

impl Stage {
    pub(crate) fn new(script: &Script, workflow: &str, input: &Json, tasks: Tasks) -> Stage {
        Stage::with_limits(script, workflow, input, tasks, Limits::default())
    }

    pub(crate) fn with_limits(script: &Script, workflow: &str, input: &Json, tasks: Tasks, limits: Limits) -> Stage {
        Stage::start(script, workflow, input, tasks, limits, 0)
    }

    /// Tasks end in an order that is drawn from the seed.
    pub(crate) fn shuffled(script: &Script, workflow: &str, input: &Json, tasks: Tasks, seed: u32) -> Stage {
        Stage::start(script, workflow, input, tasks, Limits::default(), seed)
    }

    fn start(script: &Script, workflow: &str, input: &Json, tasks: Tasks, limits: Limits, seed: u32) -> Stage {
        let input = Bytes::from(input.to_string());
        let program = script.program(info(workflow), input.clone(), limits);
        let mut stage = Stage {
            script: script.clone(),
            info: info(workflow),
            input,
            limits,
            tasks,
            program,
            ops: Operations::new(Provided { now: Timestamp::from_millis(1_000), seed: 7 }),
            journal: Vec::new(),
            requests: Vec::new(),
            logs: Vec::new(),
            told: Vec::new(),
            due: BTreeMap::new(),
            order: 0,
            started: 0,
            seed,
            now: 1_000,
            progress: Progress::Blocked,
        };
        stage.progress = stage.program.resume(Input::Start, &mut stage.ops);
        stage.take_requests();
        stage
    }

    /// Runs to the end, or until nothing more will happen.
    pub(crate) fn run(&mut self, memory: Memory) -> &mut Stage {
        while self.progress == Progress::Blocked && self.step(memory) {}
        self
    }

    /// Feeds the next fact that is due; whether there was one.
    pub(crate) fn step(&mut self, memory: Memory) -> bool {
        let Some(((at, _), event)) = self.due.pop_first() else { return false };
        self.now = self.now.max(at);
        self.ops.provide(Provided { now: Timestamp::from_millis(self.now), seed: u128::from(self.order) });
        self.remember(memory);
        self.feed(event);
        true
    }

    pub(crate) fn feed(&mut self, event: Event) {
        let index = Index(self.journal.len() as u64);
        self.journal.push(event.clone());
        self.progress = self.program.resume(Input::Fact { index, event: &event }, &mut self.ops);
        self.take_requests();
    }

    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        self.program.snapshot()
    }

    /// Goes on with another program in its place.
    pub(crate) fn replace(&mut self, program: ScriptProgram) -> &mut Stage {
        self.program = program;
        self
    }

    pub(crate) fn remember(&mut self, memory: Memory) {
        match memory {
            Memory::Hot => {}
            Memory::Restored => {
                let snapshot = self.program.snapshot().expect("a snapshot of a blocked script");
                self.program = self.script.restore(self.info.clone(), self.limits, &snapshot).expect("a good snapshot");
            }
            Memory::Rebuilt => self.rebuild(),
        }
    }

    /// Replays the journal; what is requested on the way was requested before.
    pub(crate) fn rebuild(&mut self) {
        let mut ops = Operations::new(Provided { now: Timestamp::from_millis(77), seed: 99 });
        for event in &self.journal {
            ops.remember(event);
        }
        let mut program = self.script.program(self.info.clone(), self.input.clone(), self.limits);
        program.resume(Input::Start, &mut ops);
        let mut repeated = ops.take();
        for (index, event) in self.journal.iter().enumerate() {
            let is_fact =
                !matches!(event, Event::NowRecorded { .. } | Event::UuidRecorded { .. } | Event::RandomRecorded { .. });
            if is_fact {
                program.resume(Input::Fact { index: Index(index as u64), event }, &mut ops);
                repeated.extend(ops.take());
            }
        }
        let repeated: Vec<Operation> = repeated.into_iter().map(|requested| requested.operation).collect();
        assert_eq!(repeated, self.requests, "a rebuilt script asks for the same");
        self.program = program;
    }

    fn take_requests(&mut self) {
        for requested in self.ops.take() {
            self.requests.push(requested.operation.clone());
            self.order += 1;
            self.accept(requested.operation);
        }
    }

    fn schedule(&mut self, at: i64, event: Event) {
        self.due.insert((at, self.order), event);
    }

    /// How much later than now the next task ends: up to 3 milliseconds. `tests/node/run.mjs` does the same.
    fn jitter(&self) -> i64 {
        if self.seed == 0 {
            return 0;
        }
        let mixed = (self.seed ^ self.started.wrapping_mul(0x9e37_79b1)).wrapping_mul(0x85eb_ca6b);
        let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
        i64::from((mixed >> 16) & 3)
    }

    fn due_at(&self, due: Due) -> i64 {
        due.deadline(Timestamp::from_millis(self.now)).as_millis()
    }

    fn accept(&mut self, operation: Operation) {
        match operation {
            Operation::ScheduleTask { key, name, args, detached, .. } => {
                let task = TaskId::new(format!("task-{}", self.order)).unwrap();
                if detached {
                    let queue = outlast_core::id::QueueName::new("default").unwrap();
                    self.schedule(
                        self.now,
                        Event::TaskScheduled { key, task, name, queue, detached, plan: None, args },
                    );
                    return;
                }
                let given: Json = serde_json::from_slice(&args).unwrap();
                let event = match (self.tasks)(name.as_str(), &given) {
                    // As it was written: with its properties in their order.
                    Ok(result) if result == given => Event::TaskFinished { key, task, result: args, log: None },
                    Ok(result) => Event::TaskFinished { key, task, result: Bytes::from(result.to_string()), log: None },
                    Err(error) => Event::TaskFailed { key, task, error },
                };
                self.schedule(self.now + self.jitter(), event);
                self.started += 1;
            }
            Operation::StartTimer { key, due } => {
                self.schedule(self.due_at(due), Event::TimerFired { key });
                self.started += 1;
            }
            Operation::StartChild { key, workflow, input, detached, .. } => {
                let child = RunId::new(format!("child-{}", self.order)).unwrap();
                let event = if detached {
                    let version = Version::new("1").unwrap();
                    let on_close = outlast_core::event::ClosePolicy::Abandon;
                    Event::ChildStarted { key, child, workflow, version, detached, on_close }
                } else {
                    let input: Json = serde_json::from_slice(&input).unwrap();
                    let result = serde_json::json!({ "workflow": workflow.as_str(), "input": input });
                    Event::ChildFinished { key, child, result: Bytes::from(result.to_string()) }
                };
                self.schedule(self.now, event);
            }
            Operation::AwaitSignal { key, name, deadline: Some(deadline), .. } => {
                self.schedule(self.due_at(deadline), Event::SignalTimedOut { key, name });
            }
            Operation::RequestApproval { key, deadline: Some(deadline), .. } => {
                self.schedule(self.due_at(deadline), Event::ApprovalTimedOut { key, approval: "a".to_owned() });
            }
            Operation::CreateCallback { key, deadline: Some(deadline), .. } => {
                self.schedule(self.due_at(deadline), Event::CallbackTimedOut { key, callback: "c".to_owned() });
            }
            Operation::Cancel { key } => self.due.retain(|_, event| event.key() != Some(&key)),
            Operation::Emit { payload, .. } => {
                self.logs.push(serde_json::from_slice(&payload).unwrap());
                self.told.push(payload);
            }
            Operation::RecordNow { key, value } => self.journal.push(Event::NowRecorded { key, value }),
            Operation::RecordUuid { key, value } => self.journal.push(Event::UuidRecorded { key, value }),
            Operation::RecordRandom { key, value } => self.journal.push(Event::RandomRecorded { key, value }),
            _ => {}
        }
    }

    /// The next wait for a signal that is open gets its payload.
    pub(crate) fn signal(&mut self, key: &str, payload: &Json) {
        let key = Key::new(key).unwrap();
        let name = self.requests.iter().find_map(|request| match request {
            Operation::AwaitSignal { key: waiting, name, .. } if *waiting == key => Some(name.clone()),
            _ => None,
        });
        let signal_id = DeliveryId::new("signal-1").unwrap();
        self.due.retain(|_, event| event.key() != Some(&key));
        let payload = Bytes::from(payload.to_string());
        self.feed(Event::SignalResolved { key, name: name.expect("a wait"), signal_id, payload });
    }

    pub(crate) fn ended(&self) -> Ended {
        let result = match &self.progress {
            Progress::Finished(output) => Ok(serde_json::from_slice(output).unwrap()),
            Progress::Failed(failure) => Err(failure.clone()),
            other => panic!("not at its end: {other:?}; it asked for {:?}", self.requests),
        };
        Ended { logs: self.logs.clone(), result }
    }
}

/// Tasks most tests can live with.
pub(crate) fn tasks(name: &str, args: &Json) -> Result<Json, Failure> {
    match name {
        "fail" => {
            let text = |key: &str, missing: &str| args[key].as_str().unwrap_or(missing).to_owned();
            Err(Failure::new(text("code", "error"), text("message", "failed")))
        }
        "double" => Ok(serde_json::json!(args.as_f64().unwrap_or_default() * 2.0)),
        "nothing" => Ok(Json::Null),
        _ => Ok(args.clone()),
    }
}

/// Compiles and runs a bare file.
pub(crate) fn run_text(text: &str) -> Ended {
    run_with(text, &Json::Null, Memory::Hot)
}

pub(crate) fn run_with(text: &str, input: &Json, memory: Memory) -> Ended {
    let script = Script::compile("test.wf", text).unwrap_or_else(|found| panic!("{found}"));
    Stage::new(&script, "test", input, tasks).run(memory).ended()
}

/// The output of a bare file, which must have one.
pub(crate) fn output(text: &str) -> Json {
    let ended = run_text(text);
    ended.result.unwrap_or_else(|failure| panic!("{failure}\n{text}"))
}

/// The failure of a bare file, which must have one.
pub(crate) fn failure(text: &str) -> Failure {
    run_text(text).result.expect_err("a failure")
}
