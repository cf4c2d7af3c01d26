//! An event of any kind from a handful of values.

use outlast_core::Bytes;
use outlast_core::event::{ClosePolicy, Event, Kind};
use outlast_core::failure::Failure;
use outlast_core::id::{DeliveryId, Index, Key, QueueName, RunId, SignalName, TaskId, TaskName, Version, WorkflowName};
use outlast_core::time::Timestamp;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) key: Key,
    pub(crate) other_key: Key,
    pub(crate) run: RunId,
    pub(crate) workflow: WorkflowName,
    pub(crate) version: Version,
    pub(crate) new_version: Option<Version>,
    pub(crate) task: TaskId,
    pub(crate) task_name: TaskName,
    pub(crate) queue: QueueName,
    pub(crate) signal: SignalName,
    pub(crate) delivery: DeliveryId,
    pub(crate) text: String,
    pub(crate) note: Option<String>,
    pub(crate) number: u32,
    pub(crate) total: Option<u32>,
    pub(crate) large: u64,
    pub(crate) millis: Option<u64>,
    pub(crate) flag: bool,
    pub(crate) on_close: ClosePolicy,
    pub(crate) at: Timestamp,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) bytes: Bytes,
    pub(crate) maybe_bytes: Option<Bytes>,
    pub(crate) error: Failure,
    pub(crate) uuid: Uuid,
    pub(crate) indices: Vec<Index>,
}

/// What a busy shop would record.
pub(crate) fn typical() -> Parts {
    Parts {
        key: Key::new("ship/0/label").unwrap(),
        other_key: Key::new("ship/0/reserve").unwrap(),
        run: RunId::new("order-42-parcel").unwrap(),
        workflow: WorkflowName::new("parcel").unwrap(),
        version: Version::new("2024-05-01").unwrap(),
        new_version: Some(Version::new("2024-06-01").unwrap()),
        task: TaskId::new("order-42/0/ship/0/label").unwrap(),
        task_name: TaskName::new("print_label").unwrap(),
        queue: QueueName::new("warehouse").unwrap(),
        signal: SignalName::new("payment").unwrap(),
        delivery: DeliveryId::new("evt-1").unwrap(),
        text: "Ship \"order 42\"?".to_owned(),
        note: Some("Größe prüfen".to_owned()),
        number: 3,
        total: Some(100),
        large: u64::MAX,
        millis: Some(5_000),
        flag: true,
        on_close: ClosePolicy::Terminate,
        at: Timestamp::from_millis(1_737_499_200_000),
        deadline: Some(Timestamp::from_millis(1_737_499_205_000)),
        bytes: Bytes::from(r#"{"parcel":7,"by":"air"}"#),
        maybe_bytes: Some(Bytes::from("null")),
        error: Failure::new("card_declined", "the bank said no").with_data(r#"{"bank":"b-1"}"#).permanent(),
        uuid: Uuid::from_u128(0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8),
        indices: vec![Index(3), Index(5)],
    }
}

/// The same with a default wherever there is one.
pub(crate) fn bare() -> Parts {
    Parts {
        new_version: None,
        note: None,
        number: 1,
        total: None,
        large: 0,
        millis: None,
        flag: false,
        on_close: ClosePolicy::Cancel,
        at: Timestamp::EPOCH,
        deadline: None,
        bytes: Bytes::new(),
        maybe_bytes: None,
        error: Failure::new("error", ""),
        uuid: Uuid::nil(),
        indices: Vec::new(),
        ..typical()
    }
}

pub(crate) fn event(kind: Kind, parts: Parts) -> Event {
    let Parts { key, task, signal: name, delivery: signal_id, text, note, number, flag, bytes, error, .. } = parts;
    let (at, deadline, run) = (parts.at, parts.deadline, parts.run);
    match kind {
        Kind::RunStarted => Event::RunStarted { workflow: parts.workflow, version: parts.version, input: bytes },
        Kind::RunFinished => Event::RunFinished { output: bytes },
        Kind::RunErrored => Event::RunErrored { error },
        Kind::RunCancelled => Event::RunCancelled { reason: note },
        Kind::RunTerminated => Event::RunTerminated { reason: note.clone(), by: note },
        Kind::RunContinued => Event::RunContinued { input: bytes, version: parts.new_version },
        Kind::RunPaused => Event::RunPaused { reason: note, by: None },
        Kind::RunResumed => Event::RunResumed { message: parts.maybe_bytes, by: None },
        Kind::CancelRequested => Event::CancelRequested { reason: note.clone(), by: note },
        Kind::StepStarted => Event::StepStarted { key, attempt: number, at_most_once: flag },
        Kind::StepFinished => Event::StepFinished { key, result: bytes, attempts: number },
        Kind::StepFailed => Event::StepFailed { key, error, attempts: number },
        Kind::StepRetryScheduled => Event::StepRetryScheduled { key, attempt: number, next_at: at, error },
        Kind::TaskScheduled => {
            let (name, queue) = (parts.task_name, parts.queue);
            Event::TaskScheduled { key, task, name, queue, detached: false, plan: note, args: bytes }
        }
        Kind::TaskFinished => Event::TaskFinished { key, task, log: note, result: bytes },
        Kind::TaskFailed => Event::TaskFailed { key, task, error },
        Kind::TimerStarted => Event::TimerStarted { key, deadline: at, duration_ms: parts.millis },
        Kind::TimerFired => Event::TimerFired { key },
        Kind::SignalAwaited => Event::SignalAwaited { key, name, deadline },
        Kind::SignalResolved => Event::SignalResolved { key, name, signal_id, payload: bytes },
        Kind::SignalTimedOut => Event::SignalTimedOut { key, name },
        Kind::SignalRejected => Event::SignalRejected { key, name, signal_id, error },
        Kind::ApprovalRequested => {
            Event::ApprovalRequested { key, approval: "a-1".to_owned(), title: text, assignee: note, deadline }
        }
        Kind::ApprovalResolved => {
            Event::ApprovalResolved { key, approval: text, approved: flag, by: note.clone(), feedback: note }
        }
        Kind::ApprovalTimedOut => Event::ApprovalTimedOut { key, approval: text },
        Kind::CallbackCreated => Event::CallbackCreated { key, callback: text, deadline, heartbeat_ms: parts.millis },
        Kind::CallbackResolved => Event::CallbackResolved { key, callback: text, payload: bytes },
        Kind::CallbackFailed => Event::CallbackFailed { key, callback: text, error },
        Kind::CallbackTimedOut => Event::CallbackTimedOut { key, callback: text },
        Kind::ChildStarted => Event::ChildStarted {
            key,
            child: run,
            workflow: parts.workflow,
            version: parts.version,
            detached: flag,
            on_close: parts.on_close,
        },
        Kind::ChildFinished => Event::ChildFinished { key, child: run, result: bytes },
        Kind::ChildFailed => Event::ChildFailed { key, child: run, error },
        Kind::ConditionChecked => {
            Event::ConditionChecked { key, attempt: number, met: flag, state: bytes, next_at: deadline }
        }
        Kind::ScopeStarted => Event::ScopeStarted { key, total: parts.total },
        Kind::ScopeFinished => {
            Event::ScopeFinished { key, result: parts.maybe_bytes, replay_inside: flag, reason: note }
        }
        Kind::ScopeFailed => Event::ScopeFailed { key, error },
        Kind::NowRecorded => Event::NowRecorded { key, value: at },
        Kind::UuidRecorded => Event::UuidRecorded { key, value: parts.uuid },
        Kind::RandomRecorded => Event::RandomRecorded { key, value: parts.large },
        Kind::OperationCancelled => Event::OperationCancelled { key },
        Kind::OperationRefused => Event::OperationRefused { key, error },
        Kind::NodeStarted => Event::NodeStarted { node: key, index: number, input: parts.maybe_bytes },
        Kind::NodeCompleted => Event::NodeCompleted { node: key, output: bytes },
        Kind::NodeError => Event::NodeError { node: key, error },
        Kind::NodeSkipped => Event::NodeSkipped { node: key, by: note.clone(), reason: note },
        Kind::NodeRetried => Event::NodeRetried { node: key, by: note.clone(), reason: note },
        Kind::InterventionRefused => {
            Event::InterventionRefused { node: key, wanted: "skip".to_owned(), by: note.clone(), reason: note, error }
        }
        Kind::ContainerIterationStarted => {
            Event::ContainerIterationStarted { node: key, index: number, item: parts.maybe_bytes, total: parts.total }
        }
        Kind::ContainerIterationCompleted => {
            Event::ContainerIterationCompleted { node: key, index: number, outputs: parts.indices }
        }
        Kind::ContainerChildStarted => {
            Event::ContainerChildStarted { node: key, child: parts.other_key, child_index: number }
        }
        Kind::ContainerChildCompleted => {
            let output = parts.maybe_bytes.is_none().then_some(Index(parts.large));
            Event::ContainerChildCompleted { node: key, child: parts.other_key, output, value: parts.maybe_bytes }
        }
        Kind::LoopIterate => Event::LoopIterate { from: key, to: parts.other_key, iteration: number },
        Kind::StateDelta => Event::StateDelta { delta: bytes },
        Kind::Custom => Event::Custom { name: text, payload: bytes },
    }
}
