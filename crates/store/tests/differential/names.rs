//! The few names the sequences use, some alike but for their case.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{TimerKind, TimerRef, WaitKind};
use outlast_core::id::{
    AttributeName, DeliveryId, Key, Namespace, QueueName, RunId, RunKey, ScheduleId, SignalName, TaskId, TaskName,
    Version, WorkflowName,
};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Definition, Style, TaskFilter, TaskState};

use crate::ops::Run;

pub(crate) const NAMESPACES: [&str; 3] = ["default", "other", "third"];
pub(crate) const RUNS: [&str; 3] = ["a", "b", "B"];
pub(crate) const DEFINITIONS: [&str; 2] = ["one", "two"];

pub(crate) fn namespace(ns: u8) -> Namespace {
    Namespace::new(NAMESPACES[usize::from(ns)]).unwrap()
}

pub(crate) fn run_key((ns, id): Run) -> RunKey {
    RunKey::new(namespace(ns), run_id(id))
}

pub(crate) fn run_id(id: u8) -> RunId {
    RunId::new(RUNS[usize::from(id)]).unwrap()
}

pub(crate) fn key(number: u8) -> Key {
    Key::new(["k", "K", "k/0"][usize::from(number)]).unwrap()
}

pub(crate) fn bytes(number: u8) -> Bytes {
    Bytes::from(["", "null", "\u{0}text"][usize::from(number)].to_owned())
}

pub(crate) fn at(clock: i64, delay: i64) -> Timestamp {
    Timestamp::from_millis(clock + delay)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn record(number: usize) -> Record {
    let payload = (!number.is_multiple_of(3)).then(|| bytes((number % 3) as u8));
    let key = (!number.is_multiple_of(2)).then(|| key(0));
    Record { kind: number as u16, version: 1, key, at: at(0, number as i64), meta: None, payload }
}

pub(crate) fn delivery_id(id: u8) -> DeliveryId {
    DeliveryId::new(format!("id-{id}")).unwrap()
}

pub(crate) fn task_id(id: u8) -> TaskId {
    TaskId::new(format!("task-{id}")).unwrap()
}

pub(crate) fn timer(key_number: u8, kind: u8) -> TimerRef {
    TimerRef { key: key(key_number), kind: TimerKind::from_code(i64::from(kind)).unwrap() }
}

pub(crate) fn wait_kind(kind: u8) -> WaitKind {
    WaitKind::from_code(i64::from(kind)).unwrap()
}

pub(crate) fn workflow(number: u8) -> WorkflowName {
    WorkflowName::new(format!("workflow-{number}")).unwrap()
}

pub(crate) fn version(number: u8) -> Version {
    Version::new(format!("{number}")).unwrap()
}

/// Of a namespace, a workflow and a version, with a text of its own or one that is not.
pub(crate) fn definition((ns, of, number, other): (u8, u8, u8, u8)) -> Definition {
    Definition {
        namespace: namespace(ns),
        workflow: workflow(of),
        version: version(number),
        style: if number == 2 { Style::Flow } else { Style::Script },
        file: format!("file-{other}"),
        text: Bytes::from(vec![number, other]),
    }
}

pub(crate) fn signal_name(number: u8) -> SignalName {
    SignalName::new(["go", "Go"][usize::from(number)]).unwrap()
}

pub(crate) fn task_name(number: u8) -> TaskName {
    TaskName::new(format!("do-{number}")).unwrap()
}

/// A filter that asks for what its bits say.
pub(crate) fn task_filter(ns: u8, bits: u8, limit: usize) -> TaskFilter {
    let set = |bit: u8| bits & (1 << bit) != 0;
    TaskFilter {
        state: set(0).then_some([TaskState::Dead, TaskState::Ready]).into_iter().flatten().collect(),
        queue: set(1).then(|| queue(0)),
        name: set(2).then(|| task_name(0)),
        after: set(3).then(|| task_id(0)),
        limit,
        ..TaskFilter::all(namespace(ns))
    }
}

pub(crate) fn queue(number: u8) -> QueueName {
    QueueName::new(format!("queue-{number}")).unwrap()
}

pub(crate) fn schedule_id(number: u8) -> ScheduleId {
    ScheduleId::new(format!("schedule-{number}")).unwrap()
}

pub(crate) fn attribute(number: u8) -> AttributeName {
    AttributeName::new(["city", "City"][usize::from(number)]).unwrap()
}
