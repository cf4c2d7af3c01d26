//! How each kind of operation starts, settles and is given up.

use std::collections::BTreeMap;

use bytes::Bytes;
use outlast_core::commit::{
    CloseCause, ClosedWait, InboxItem, InboxKind, NewTask, NewTimer, NewWait, Then, TimerKind, TimerRef, WaitKind,
};
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::{Key, QueueName, SignalName, TaskId, TaskName};
use outlast_core::journal::Journal;

use crate::program::{Op, Turn, What, key, ms};

/// A sleep that is not meant to end.
const LONG_MS: u64 = 1_000_000_000;

/// Whether an operation has an outcome, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    No,
    With(String),
}

/// What the journal says about an operation.
pub(crate) fn settled(op: Op, journal: &Journal) -> Settled {
    let outcome = |key: &str| journal.events().iter().find_map(|event| outcome(event, key));
    let outcome = match op {
        Op::Step(key)
        | Op::Sleep { key, .. }
        | Op::Wait { key, .. }
        | Op::Approve { key, .. }
        | Op::Callback { key, .. }
        | Op::Task { key, .. }
        | Op::Child { key, .. } => outcome(key),
        Op::Twins { keys: [left, right], .. } => {
            outcome(left).and_then(|left| outcome(right).map(|right| format!("[{left};{right}]")))
        }
        Op::Linger { task, .. } => is_started(journal, &key(task)).then(|| "left".to_owned()),
        Op::ContinueAsNew => None,
    };
    outcome.map_or(Settled::No, Settled::With)
}

/// The outcome an event gives an operation. What a body returned counts without the body's number.
fn outcome(event: &Event, wanted: &str) -> Option<String> {
    if event.key().map(Key::as_str) != Some(wanted) {
        return None;
    }
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).split('@').next().unwrap_or_default().to_owned();
    match event {
        Event::StepFinished { result, .. }
        | Event::TaskFinished { result, .. }
        | Event::ChildFinished { result, .. } => Some(text(result)),
        Event::TimerFired { .. } => Some("slept".to_owned()),
        Event::SignalResolved { payload, .. } | Event::CallbackResolved { payload, .. } => Some(text(payload)),
        Event::ApprovalResolved { by, .. } => by.clone(),
        Event::ApprovalTimedOut { .. } | Event::CallbackTimedOut { .. } => Some("timeout".to_owned()),
        Event::ChildFailed { error, .. } => Some(error.code.clone()),
        Event::OperationCancelled { .. } => Some("cancelled".to_owned()),
        _ => None,
    }
}

/// What the run returns: the outcomes of its operations.
pub(crate) fn output(ops: &[Op], journal: &Journal) -> String {
    let outcomes = ops.iter().filter_map(|op| match settled(*op, journal) {
        Settled::No => None,
        Settled::With(outcome) => Some(outcome),
    });
    outcomes.collect::<Vec<_>>().join(",")
}

/// Starts or settles the operation. None if it is settled now.
pub(crate) fn advance(op: Op, turn: &mut Turn<'_>) -> Option<What> {
    match op {
        Op::Step(name) => Some(What::Body(key(name))),
        Op::Sleep { key: name, millis, own } => sleep(turn, key(name), millis, own),
        Op::Wait { key: name, signal } => wait(turn, key(name), SignalName::new(signal).unwrap()),
        Op::Approve { key: name, timeout } => approve(turn, key(name), timeout),
        Op::Callback { key: name, silence } => callback(turn, key(name), silence),
        Op::Task { key: name, manner } => task(turn, key(name), manner),
        Op::Child { key: name, workflow } => children(turn, &[name], workflow),
        Op::Twins { keys, workflow } => children(turn, &keys, workflow),
        Op::Linger { sleep: nap, wait: idle, task: loose } => {
            sleep(turn, key(nap), LONG_MS, false);
            wait(turn, key(idle), SignalName::new("idle").unwrap());
            task(turn, key(loose), "retry");
            None
        }
        Op::ContinueAsNew => None,
    }
}

/// Gives the operation up: its answer, if it has one, is fed first.
pub(crate) fn abandon(op: Op, turn: &mut Turn<'_>) {
    let name = match op {
        Op::Sleep { key, .. } | Op::Wait { key, .. } | Op::Approve { key, .. } | Op::Callback { key, .. } => key,
        Op::Step(_) | Op::Task { .. } | Op::Child { .. } | Op::Twins { .. } | Op::Linger { .. } | Op::ContinueAsNew => {
            return;
        }
    };
    let key = key(name);
    if !turn.journal.is_open(&key) {
        return;
    }
    advance(op, turn);
    if !turn.journal.is_open(&key) {
        return;
    }
    match op {
        Op::Sleep { .. } => stop(turn, &key, TimerKind::Delay),
        Op::Approve { .. } => stop(turn, &key, TimerKind::Timeout),
        Op::Callback { .. } => stop(turn, &key, TimerKind::Heartbeat),
        Op::Wait { .. }
        | Op::Step(_)
        | Op::Task { .. }
        | Op::Child { .. }
        | Op::Twins { .. }
        | Op::Linger { .. }
        | Op::ContinueAsNew => {}
    }
    if !matches!(op, Op::Sleep { .. }) {
        close(turn, &key, CloseCause::Cancelled);
    }
    turn.say(Event::OperationCancelled { key });
}

fn timer(key: &Key, kind: TimerKind) -> TimerRef {
    TimerRef { key: key.clone(), kind }
}

fn start(turn: &mut Turn<'_>, key: &Key, kind: TimerKind, millis: u64) {
    turn.commit.timers.push(NewTimer { timer: timer(key, kind), due: turn.now + ms(millis) });
}

fn stop(turn: &mut Turn<'_>, key: &Key, kind: TimerKind) {
    turn.commit.timers_cancelled.push(timer(key, kind));
}

fn close(turn: &mut Turn<'_>, key: &Key, cause: CloseCause) {
    turn.commit.waits_closed.push(ClosedWait { key: key.clone(), cause });
}

fn open(turn: &mut Turn<'_>, wait: NewWait) {
    turn.commit.waits.push(wait);
}

fn blank(key: &Key, kind: WaitKind) -> NewWait {
    NewWait { key: key.clone(), kind, name: None, token: None, heartbeat: None, assignee: None, meta: None }
}

/// An item of that kind for that operation.
fn answer<'a>(turn: &Turn<'a>, key: &Key, kind: InboxKind) -> Option<&'a InboxItem> {
    turn.item(|item| item.kind == kind && item.key.as_ref() == Some(key))
}

fn suspend() -> Option<What> {
    Some(What::End(Then::Suspend))
}

fn sleep(turn: &mut Turn<'_>, key: Key, millis: u64, own: bool) -> Option<What> {
    let started = turn.journal.events().iter().find_map(|event| match event {
        Event::TimerStarted { key: of, deadline, .. } if *of == key => Some(*deadline),
        _ => None,
    });
    let Some(due) = started else {
        start(turn, &key, TimerKind::Delay, millis);
        let deadline = turn.now + ms(millis);
        turn.say(Event::TimerStarted { key, deadline, duration_ms: Some(millis) });
        return if own { Some(What::Until(deadline)) } else { suspend() };
    };
    if let Some(item) = answer(turn, &key, InboxKind::Timer) {
        turn.consume(item);
    } else if own && due <= turn.now {
        turn.commit.timers_fired.push(timer(&key, TimerKind::Delay));
    } else {
        return if own { Some(What::Until(due)) } else { suspend() };
    }
    turn.say(Event::TimerFired { key });
    None
}

fn wait(turn: &mut Turn<'_>, key: Key, name: SignalName) -> Option<What> {
    if !turn.journal.is_open(&key) {
        open(turn, NewWait { name: Some(name.clone()), ..blank(&key, WaitKind::Signal) });
        turn.say(Event::SignalAwaited { key: key.clone(), name: name.clone(), deadline: None });
    }
    let mailbox = |item: &InboxItem| {
        item.kind == InboxKind::Signal && item.key.is_none() && item.name.as_deref() == Some(name.as_str())
    };
    // The one aimed at this wait comes before those for anybody.
    let Some(item) = answer(turn, &key, InboxKind::Signal).or_else(|| turn.item(mailbox)) else { return suspend() };
    turn.consume(item);
    close(turn, &key, CloseCause::Resolved);
    let (signal_id, payload) = (item.delivery.clone().unwrap(), item.payload.clone().unwrap());
    turn.say(Event::SignalResolved { key, name, signal_id, payload });
    None
}

fn approve(turn: &mut Turn<'_>, key: Key, timeout: u64) -> Option<What> {
    let approval = format!("approval-{key}");
    if !turn.journal.is_open(&key) {
        open(turn, blank(&key, WaitKind::Approval));
        start(turn, &key, TimerKind::Timeout, timeout);
        let (title, deadline) = ("Ship?".to_owned(), Some(turn.now + ms(timeout)));
        turn.say(Event::ApprovalRequested { key, approval, title, assignee: None, deadline });
        return suspend();
    }
    if let Some(item) = answer(turn, &key, InboxKind::Approval) {
        turn.consume(item);
        close(turn, &key, CloseCause::Resolved);
        stop(turn, &key, TimerKind::Timeout);
        let by = item.delivery.as_ref().map(ToString::to_string);
        turn.say(Event::ApprovalResolved { key, approval, approved: true, by, feedback: None });
        return None;
    }
    let Some(item) = answer(turn, &key, InboxKind::Timer) else { return suspend() };
    turn.consume(item);
    close(turn, &key, CloseCause::TimedOut);
    turn.say(Event::ApprovalTimedOut { key, approval });
    None
}

fn callback(turn: &mut Turn<'_>, key: Key, silence: u64) -> Option<What> {
    let callback = format!("callback-{key}");
    if !turn.journal.is_open(&key) {
        let (token, heartbeat) = (Some(token(&key)), Some(ms(silence)));
        open(turn, NewWait { token, heartbeat, ..blank(&key, WaitKind::Callback) });
        start(turn, &key, TimerKind::Heartbeat, silence);
        turn.say(Event::CallbackCreated { key, callback, deadline: None, heartbeat_ms: Some(silence) });
        return suspend();
    }
    if let Some(item) = answer(turn, &key, InboxKind::Callback) {
        turn.consume(item);
        close(turn, &key, CloseCause::Resolved);
        stop(turn, &key, TimerKind::Heartbeat);
        turn.say(Event::CallbackResolved { key, callback, payload: item.payload.clone().unwrap() });
        return None;
    }
    let Some(item) = answer(turn, &key, InboxKind::Timer) else { return suspend() };
    turn.consume(item);
    close(turn, &key, CloseCause::TimedOut);
    turn.say(Event::CallbackTimedOut { key, callback });
    None
}

/// The secret of a callback.
pub(crate) fn token(key: &Key) -> String {
    format!("secret-{key}")
}

fn task(turn: &mut Turn<'_>, key: Key, manner: &'static str) -> Option<What> {
    if !turn.journal.is_open(&key) {
        let id = TaskId::new(format!("{}/{key}", turn.hold.run.id)).unwrap();
        let (name, queue) = (TaskName::new("work").unwrap(), queue());
        let args = Bytes::from_static(manner.as_bytes());
        turn.commit.tasks.push(NewTask {
            id: id.clone(),
            key: Some(key.clone()),
            name: name.clone(),
            queue: queue.clone(),
            priority: 0,
            args: args.clone(),
            available_at: None,
            meta: None,
        });
        turn.say(Event::TaskScheduled { key, task: id, name, queue, detached: false, plan: None, args });
        return suspend();
    }
    let Some(item) = answer(turn, &key, InboxKind::TaskFinished) else { return suspend() };
    turn.consume(item);
    let task = TaskId::new(item.name.clone().unwrap()).unwrap();
    turn.say(Event::TaskFinished { key, task, result: item.payload.clone().unwrap(), log: None });
    None
}

/// The queue of every task.
pub(crate) fn queue() -> QueueName {
    QueueName::new("work").unwrap()
}

fn children(turn: &mut Turn<'_>, keys: &[&'static str], workflow: &str) -> Option<What> {
    let started: BTreeMap<Key, bool> =
        keys.iter().map(|name| key(name)).map(|key| (key.clone(), is_started(&turn.journal, &key))).collect();
    for key in started.iter().filter(|(_, started)| !**started).map(|(key, _)| key) {
        turn.child(key, workflow);
    }
    for key in started.keys() {
        let Some(item) = answer(turn, key, InboxKind::Child) else { continue };
        turn.consume(item);
        let (key, child) = (key.clone(), outlast_core::id::RunId::new(item.name.clone().unwrap()).unwrap());
        match &item.meta {
            None => turn.say(Event::ChildFinished { key, child, result: item.payload.clone().unwrap() }),
            Some(_) => turn.say(Event::ChildFailed { key, child, error: Failure::cancelled("it was cancelled") }),
        }
    }
    if started.keys().any(|key| turn.journal.is_open(key)) { suspend() } else { None }
}

fn is_started(journal: &Journal, key: &Key) -> bool {
    journal.events().iter().any(|event| event.key() == Some(key))
}
