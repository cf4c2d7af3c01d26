//! A driver that fits on a page: no store, no clock, everything in order.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Wake;
use std::time::Duration;

use bytes::Bytes;
use outlast_core::event::{Class, Event};
use outlast_core::failure::Failure;
use outlast_core::id::{DeliveryId, Generation, Index, Key, Namespace, RunId, RunKey, TaskId, Version, WorkflowName};
use outlast_core::journal::Journal;
use outlast_core::operation::{Operation as Request, OperationKind, Operations, Provided, Requested, ancestors};
use outlast_core::program::{Input, Program, Progress};
use outlast_core::retry::Retry;
use outlast_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime;

use crate::code::workflow::Definition;
use crate::code::{CodeProgram, Ctx, RunInfo, Workflow};
use crate::error::Result;

pub(in crate::code) fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// How long a test waits for a body before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A run of a workflow, with its journal.
pub(in crate::code) struct Stage {
    definition: Definition,
    input: Bytes,
    runtime: Option<runtime::Handle>,
    program: CodeProgram,
    ops: Operations,
    bell: Arc<Bell>,
    pub(in crate::code) journal: Vec<Event>,
    fed: usize,
    /// Attempts that may begin.
    pub(in crate::code) attempts: VecDeque<(Key, u32)>,
    /// Whether the journal obeys its laws: stories that write facts themselves need not.
    pub(in crate::code) law: Option<Journal>,
    policies: Vec<(Key, Retry)>,
    /// Scope results longer than this are not recorded.
    pub(in crate::code) result_bytes_max: usize,
    /// Whether bodies begin by themselves.
    pub(in crate::code) executes: bool,
    pub(in crate::code) requests: Vec<Requested>,
    pub(in crate::code) progress: Option<Progress>,
}

/// The driver's waker.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    ringing: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap() = true;
        self.ringing.notify_all();
    }
}

impl Bell {
    fn wait(&self) {
        let rung = self.rung.lock().unwrap();
        let (mut rung, timeout) = self.ringing.wait_timeout_while(rung, PATIENCE, |rung| !*rung).unwrap();
        assert!(!timeout.timed_out(), "nobody woke the driver");
        *rung = false;
    }
}

fn info() -> RunInfo {
    RunInfo {
        run: RunKey::new(Namespace::new("shop").unwrap(), RunId::new("order-42").unwrap()),
        generation: Generation(3),
        workflow: WorkflowName::new("test").unwrap(),
        version: Version::new("1").unwrap(),
        tokens: Arc::new(|key| format!("secret-{key}")),
        transactions: crate::drive::Transactions::default(),
    }
}

impl Stage {
    pub(in crate::code) fn new<I, O, F, Fut>(workflow: F, input: I) -> Stage
    where
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + 'static,
        I: Serialize + DeserializeOwned + 'static,
        O: Serialize + 'static,
    {
        Stage::with_runtime(workflow, input, None)
    }

    pub(in crate::code) fn with_runtime<I, O, F, Fut>(workflow: F, input: I, runtime: Option<runtime::Handle>) -> Stage
    where
        F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + 'static,
        I: Serialize + DeserializeOwned + 'static,
        O: Serialize + 'static,
    {
        let registered = Workflow::new("test", workflow).register().unwrap();
        let definition = registered.versions[&registered.newest].clone();
        Stage::of(definition, serde_json::to_vec(&input).unwrap().into(), runtime)
    }

    fn of(definition: Definition, input: Bytes, runtime: Option<runtime::Handle>) -> Stage {
        let bell = Arc::new(Bell::default());
        let mut ops = Operations::new(Provided { now: Timestamp::from_millis(1_000), seed: 7 });
        ops.set_waker(Arc::clone(&bell).into());
        Stage {
            program: CodeProgram::new(&definition, info(), input.clone(), runtime.clone()),
            definition,
            input,
            runtime,
            ops,
            bell,
            journal: Vec::new(),
            fed: 0,
            attempts: VecDeque::new(),
            law: None,
            policies: Vec::new(),
            result_bytes_max: usize::MAX,
            executes: true,
            requests: Vec::new(),
            progress: None,
        }
    }

    /// Starts the program, and runs it until nothing can go on by itself.
    pub(in crate::code) fn start(&mut self) -> &mut Self {
        self.resume(Input::Start);
        self.run()
    }

    /// Runs until nothing can go on by itself.
    pub(in crate::code) fn run(&mut self) -> &mut Self {
        loop {
            if self.is_over() {
                return self;
            }
            if self.fed < self.journal.len() {
                self.feed_next();
            } else if self.executes
                && let Some((key, attempt)) = self.attempts.pop_front()
            {
                self.resume(Input::Execute { key: &key, attempt });
            } else if self.progress == Some(Progress::Executing) {
                self.bell.wait();
                self.resume(Input::Poll);
            } else {
                return self;
            }
        }
    }

    pub(in crate::code) fn is_over(&self) -> bool {
        matches!(self.progress, Some(Progress::Finished(_) | Progress::Failed(_) | Progress::Unsound(_)))
    }

    fn feed_next(&mut self) {
        let (index, event) = (Index(self.fed as u64), self.journal[self.fed].clone());
        self.fed += 1;
        if is_fed(&event) {
            self.resume(Input::Fact { index, event: &event });
        }
    }

    /// Tells the program something, and records what it asks for.
    pub(in crate::code) fn resume(&mut self, input: Input<'_>) -> &mut Self {
        self.progress = Some(self.program.resume(input, &mut self.ops));
        let requests = self.ops.take();
        for Requested { operation, .. } in &requests {
            self.record(operation.clone());
        }
        self.requests.extend(requests);
        self
    }

    /// Tells the program something, and forgets what it asks for.
    pub(in crate::code) fn resume_quietly(&mut self, input: Input<'_>) {
        self.progress = Some(self.program.resume(input, &mut self.ops));
        drop(self.ops.take());
    }

    fn record(&mut self, request: Request) {
        let event = match request {
            Request::StartStep { key, retry, .. } | Request::CheckCondition { key, retry, .. } => {
                self.attempts.push_back((key.clone(), 1));
                self.policies.push((key, retry));
                return;
            }
            Request::FinishStep { key, result, met: None } => Event::StepFinished { key, result, attempts: 1 },
            Request::FinishStep { key, result, met: Some(met) } => self.checked(key, result, met),
            Request::FailStep { key, error } => self.failed(key, error),
            Request::StartTimer { key, .. } => {
                Event::TimerStarted { key, deadline: Timestamp::EPOCH, duration_ms: None }
            }
            Request::AwaitSignal { key, name, .. } => Event::SignalAwaited { key, name, deadline: None },
            Request::RequestApproval { key, title, assignee, .. } => {
                Event::ApprovalRequested { key, approval: "a-1".to_owned(), title, assignee, deadline: None }
            }
            Request::CreateCallback { key, .. } => {
                Event::CallbackCreated { callback: key.to_string(), key, deadline: None, heartbeat_ms: None }
            }
            Request::StartChild { key, child, workflow, detached, on_close, .. } => Event::ChildStarted {
                key,
                child: child.unwrap_or_else(|| RunId::new("child-1").unwrap()),
                workflow,
                version: Version::new("1").unwrap(),
                detached,
                on_close,
            },
            Request::StartScope { key, total } => Event::ScopeStarted { key, total },
            Request::FinishScope { key, result, reason } => {
                let replay_inside = result.len() > self.result_bytes_max;
                Event::ScopeFinished { key, result: (!replay_inside).then_some(result), replay_inside, reason }
            }
            Request::FailScope { key, error } => Event::ScopeFailed { key, error },
            Request::RecordNow { key, value } => Event::NowRecorded { key, value },
            Request::RecordUuid { key, value } => Event::UuidRecorded { key, value },
            Request::RecordRandom { key, value } => Event::RandomRecorded { key, value },
            Request::Cancel { key } => {
                self.attempts.retain(|(open, _)| *open != key);
                // What is recorded as settled, or was never recorded, is not recorded as cancelled.
                if self.law.as_ref().is_some_and(|law| !law.is_open(&key)) {
                    return;
                }
                Event::OperationCancelled { key }
            }
            Request::Await { .. }
            | Request::Heartbeat { .. }
            | Request::Emit { .. }
            | Request::SetState { .. }
            | Request::ContinueAsNew { .. } => return,
            Request::ScheduleTask { key, name, queue, args, detached, .. } => {
                let task = TaskId::new(key.as_str()).unwrap();
                Event::TaskScheduled { key, task, name, queue, detached, plan: None, args }
            }
            Request::Mark { .. } => panic!("the code style requests no {request:?}"),
            Request::StartTransaction { .. } => panic!("there is no store on this stage to run {request:?}"),
        };
        self.append(event);
    }

    fn append(&mut self, event: Event) {
        if let Some(law) = &mut self.law {
            law.append(law.next(), event.clone()).unwrap();
            // A scope that is over takes its bodies with it.
            let closed =
                |key: &Key| ancestors(key).any(|scope| !law.is_open(&super::key(scope)) && is_scope(law, scope));
            self.attempts.retain(|(key, _)| !closed(key));
        }
        self.journal.push(event);
    }

    fn attempts_so_far(&self, key: &Key) -> u32 {
        let ended = self.journal.iter().filter(|event| {
            event.key() == Some(key)
                && matches!(event, Event::StepRetryScheduled { .. } | Event::ConditionChecked { .. })
        });
        u32::try_from(ended.count()).unwrap() + 1
    }

    fn policy(&self, key: &Key) -> Retry {
        self.policies.iter().rev().find(|(known, _)| known == key).unwrap().1
    }

    fn checked(&mut self, key: Key, state: Bytes, met: bool) -> Event {
        let attempt = self.attempts_so_far(&key);
        let next_at = (!met && attempt < self.policy(&key).attempts_max()).then_some(Timestamp::EPOCH);
        if next_at.is_some() {
            self.attempts.push_back((key.clone(), attempt + 1));
        }
        Event::ConditionChecked { key, attempt, met, state, next_at }
    }

    fn failed(&mut self, key: Key, error: Failure) -> Event {
        let attempt = self.attempts_so_far(&key);
        if error.permanent || attempt >= self.policy(&key).attempts_max() {
            return Event::StepFailed { key, error, attempts: attempt };
        }
        self.attempts.push_back((key.clone(), attempt + 1));
        Event::StepRetryScheduled { key, attempt, next_at: Timestamp::EPOCH, error }
    }

    /// Something happened in the world; runs until nothing can go on by itself.
    pub(in crate::code) fn happen(&mut self, event: Event) -> &mut Self {
        self.append(event);
        self.run()
    }

    pub(in crate::code) fn fire(&mut self, timer: &str) -> &mut Self {
        self.happen(Event::TimerFired { key: key(timer) })
    }

    pub(in crate::code) fn signal(&mut self, wait: &str, payload: Value) -> &mut Self {
        self.happen(Event::SignalResolved {
            key: key(wait),
            name: "signal".try_into().unwrap(),
            signal_id: DeliveryId::new("id").unwrap(),
            payload: payload.to_string().into(),
        })
    }

    pub(in crate::code) fn cancel(&mut self) -> &mut Self {
        self.happen(Event::CancelRequested { reason: None, by: None })
    }

    /// What the workflow returned.
    pub(in crate::code) fn output(&self) -> Value {
        match &self.progress {
            Some(Progress::Finished(output)) if output.is_empty() => Value::Null,
            Some(Progress::Finished(output)) => serde_json::from_slice(output).unwrap(),
            other => panic!("not finished: {other:?}, journal {:#?}", self.journal),
        }
    }

    pub(in crate::code) fn failure(&self) -> &Failure {
        match &self.progress {
            Some(Progress::Failed(failure)) => failure,
            other => panic!("not failed: {other:?}"),
        }
    }

    /// The requests so far, each in a few words: `step charge`, `await charge`.
    pub(in crate::code) fn told(&self) -> Vec<String> {
        self.requests.iter().map(|requested| tell(&requested.operation)).collect()
    }

    /// Feeds the journal to a fresh program: it must ask for the same, in the same order, and come as far.
    pub(in crate::code) fn assert_replays(&self) -> &Self {
        let replayed = self.replay();
        assert_eq!(told_of(replayed.requests, &self.journal), told_of(self.requests.clone(), &self.journal));
        assert_eq!(replayed.progress, self.progress);
        self
    }

    /// A fresh program that was fed the journal and executes nothing.
    pub(in crate::code) fn replay(&self) -> Stage {
        let mut replay = Stage::of(self.definition.clone(), self.input.clone(), self.runtime.clone());
        for event in &self.journal {
            replay.ops.remember(event);
        }
        let mut tell = |input: Input<'_>| {
            if !replay.is_over() {
                replay.progress = Some(replay.program.resume(input, &mut replay.ops));
                replay.requests.extend(replay.ops.take());
            }
        };
        tell(Input::Start);
        for (index, event) in self.journal.iter().enumerate() {
            let is_inside = event.key().is_some_and(|key| ancestors(key).any(|scope| is_closed(&self.journal, scope)));
            if is_fed(event) && !is_inside {
                tell(Input::Fact { index: Index(index as u64), event });
            }
        }
        replay
    }
}

impl Stage {
    pub(in crate::code) fn program(&self) -> &CodeProgram {
        &self.program
    }

    /// The same with other input, as JSON text.
    pub(in crate::code) fn with_input(self, input: &'static str) -> Stage {
        Stage::of(self.definition.clone(), input.into(), self.runtime.clone())
    }

    /// Whether the driver's waker was called.
    pub(in crate::code) fn was_called(&self) -> bool {
        *self.bell.rung.lock().unwrap()
    }

    /// Drops the program; what it asked for meanwhile.
    pub(in crate::code) fn end(mut self) -> Vec<Requested> {
        drop(self.program);
        self.ops.take()
    }
}

/// Starts are for people to see, and cancellations are the program's own; but the start of a detached child is all.
fn is_fed(event: &Event) -> bool {
    event.class() == Class::Checkpoint
        || matches!(event, Event::ChildStarted { detached: true, .. } | Event::TaskScheduled { detached: true, .. })
}

fn is_scope(law: &Journal, key: &str) -> bool {
    law.operation(&super::key(key)).is_some_and(|operation| operation.kind == OperationKind::Scope)
}

/// Whether a scope's result is recorded.
fn is_closed(journal: &[Event], scope: &str) -> bool {
    journal.iter().any(|event| match event {
        Event::ScopeFinished { key, replay_inside: false, .. } | Event::ScopeFailed { key, .. } => {
            key.as_str() == scope
        }
        _ => false,
    })
}

/// What replay must ask for too: neither what bodies returned, nor what is inside of a closed scope.
fn told_of(requests: Vec<Requested>, journal: &[Event]) -> Vec<String> {
    let kept = requests.into_iter().filter(|Requested { operation, .. }| match operation {
        Request::FinishStep { .. } | Request::FailStep { .. } => false,
        Request::FinishScope { key, .. } | Request::FailScope { key, .. } if is_closed(journal, key.as_str()) => false,
        other => !other.key().is_some_and(|key| ancestors(key).any(|scope| is_closed(journal, scope))),
    });
    kept.map(|Requested { operation, location }| format!("{} at {location:?}", tell(&operation))).collect()
}

fn tell(request: &Request) -> String {
    let key = request.key().map(Key::as_str).unwrap_or_default();
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    match request {
        Request::FinishStep { result, met: None, .. } => format!("finish {key} {}", text(result)),
        Request::FinishStep { result, met: Some(met), .. } => format!("check {key} {} {met}", text(result)),
        Request::FailStep { error, .. } => format!("fail {key} {}", error.code),
        Request::FinishScope { result, reason: None, .. } => format!("close {key} {}", text(result)),
        Request::FinishScope { reason: Some(reason), .. } => format!("close {key} {reason}"),
        Request::FailScope { error, .. } => format!("fail {key} {}", error.code),
        Request::Await { .. } => format!("await {key}"),
        Request::Cancel { .. } => format!("cancel {key}"),
        Request::Emit { name, payload } => format!("emit {name} {}", text(payload)),
        Request::SetState { delta } => format!("state {}", text(delta)),
        Request::ContinueAsNew { input, .. } => format!("continue {}", text(input)),
        other => format!("{} {key}", other.starts().unwrap()),
    }
}

/// A journal value, for tests that write facts themselves.
pub(in crate::code) fn finished(step: &str, result: impl Serialize) -> Event {
    Event::StepFinished { key: key(step), result: json!(result).to_string().into(), attempts: 1 }
}
