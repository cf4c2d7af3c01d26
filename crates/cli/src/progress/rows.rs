//! What is open in a run, folded from its events.

use std::collections::BTreeMap;

use outlast::{Event, TaskId, Timestamp};
use outlast_core::id::Key;
use tokio::time::Instant;

use crate::words::{length, now};

/// Which operation of which run.
pub(crate) type Place = (String, String);

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Task { task: TaskId },
    Step,
    Timer,
    Signal { name: String, key: String },
    Approval { id: String, title: String, assignee: Option<String> },
    Callback { id: String },
    Child,
    Condition,
    Container,
}

impl What {
    /// Whether somebody has to act.
    pub(crate) fn is_for_people(&self) -> bool {
        match self {
            What::Signal { .. } | What::Approval { .. } | What::Callback { .. } => true,
            What::Task { .. } | What::Step | What::Timer | What::Child | What::Condition | What::Container => false,
        }
    }
}

/// Something that is open.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(crate) label: String,
    pub(crate) what: What,
    pub(crate) since: Instant,
    pub(crate) until: Option<Timestamp>,
    /// How many attempts have failed.
    pub(crate) failed: u32,
    /// The order in which rows came.
    number: u64,
}

/// How a row ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Done(String),
    Failed(String),
    TimedOut,
    Cancelled,
}

/// What an event changed.
pub(crate) enum Change {
    Nothing,
    Opened(Row),
    Closed(Row, Ending),
    Said(String),
}

/// What somebody at the terminal is asked.
pub(crate) fn question_of(what: &What) -> Option<&What> {
    matches!(what, What::Signal { .. } | What::Approval { .. }).then_some(what)
}

impl Row {
    /// What is said when it begins; nothing where that would only be noise.
    pub(crate) fn opening(&self) -> Option<String> {
        let until = self.until.map(|until| until.since(now())).filter(|left| !left.is_zero());
        match (&self.what, until) {
            (What::Container, _) => None,
            (What::Timer, Some(left)) => Some(format!("{}: {} left", self.label, length(left))),
            (What::Signal { .. } | What::Approval { .. } | What::Callback { .. }, Some(left)) => {
                Some(format!("waits for the {}, at most {}", self.label, length(left)))
            }
            (What::Signal { .. } | What::Approval { .. } | What::Callback { .. }, None) => {
                Some(format!("waits for the {}", self.label))
            }
            _ => Some(format!("{} begins", self.label)),
        }
    }
}

/// Everything that is open.
#[derive(Default)]
pub(crate) struct Rows {
    open: BTreeMap<Place, Row>,
    count: u64,
}

impl Rows {
    /// The oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Row> {
        let mut rows: Vec<&Row> = self.open.values().collect();
        rows.sort_by_key(|row| row.number);
        rows.into_iter()
    }

    pub(crate) fn task_mut(&mut self, task: &TaskId) -> Option<&mut Row> {
        self.open.values_mut().find(|row| matches!(&row.what, What::Task { task: id } if id == task))
    }

    /// Takes an event of a run. `prefix` stands before what is shown of a child.
    pub(crate) fn apply(&mut self, run: &str, prefix: &str, event: &Event, at: Instant) -> Change {
        match begins(event) {
            Some((key, label, what, until)) => self.open(run, key, format!("{prefix}{label}"), what, until, at),
            None => match ends(event) {
                Some((key, ending)) => self.close(run, key, ending),
                None => self.other(run, prefix, event),
            },
        }
    }

    fn open(
        &mut self,
        run: &str,
        key: &Key,
        label: String,
        what: What,
        until: Option<Timestamp>,
        at: Instant,
    ) -> Change {
        self.count += 1;
        let place = (run.to_owned(), key.to_string());
        let is_known = self.open.contains_key(&place);
        let row = Row { place: place.clone(), label, what, since: at, until, failed: 0, number: self.count };
        let row = self.open.entry(place).or_insert(row);
        row.until = until;
        if is_known { Change::Nothing } else { Change::Opened(row.clone()) }
    }

    fn close(&mut self, run: &str, key: &Key, ending: Ending) -> Change {
        match self.open.remove(&(run.to_owned(), key.to_string())) {
            Some(row) => Change::Closed(row, ending),
            None => Change::Nothing,
        }
    }

    fn other(&mut self, run: &str, prefix: &str, event: &Event) -> Change {
        match event {
            Event::StepRetryScheduled { key, attempt, next_at, error } => {
                let label = match self.open.get_mut(&(run.to_owned(), key.to_string())) {
                    Some(row) => {
                        (row.failed, row.until) = (*attempt, Some(*next_at));
                        row.label.clone()
                    }
                    None => format!("{prefix}{key}"),
                };
                Change::Said(format!("{label}: attempt {attempt} failed: {error}"))
            }
            Event::ContainerIterationStarted { node, index, total, .. } => {
                if let Some(row) = self.open.get_mut(&(run.to_owned(), node.to_string())) {
                    let of = total.map_or(String::new(), |total| format!(" of {total}"));
                    row.label = format!("{prefix}{node} {}{of}", index + 1);
                }
                Change::Nothing
            }
            Event::Custom { name, payload } => Change::Said(format!("{prefix}{}", said(name, payload))),
            Event::NodeSkipped { node, .. } => Change::Said(format!("{prefix}{node} is skipped")),
            Event::LoopIterate { from, to, iteration } => {
                Change::Said(format!("{prefix}{from} goes back to {to}, for the {iteration}. time"))
            }
            Event::CancelRequested { reason, .. } => {
                let why = reason.as_deref().map_or(String::new(), |reason| format!(": {reason}"));
                Change::Said(format!("{prefix}is asked to stop{why}"))
            }
            Event::RunContinued { .. } => Change::Said(format!("{prefix}begins anew with an empty journal")),
            Event::RunPaused { .. } => Change::Said(format!("{prefix}is paused")),
            Event::RunResumed { .. } => Change::Said(format!("{prefix}goes on")),
            // What ends with its run leaves no row behind.
            event if event.ends_generation() => {
                self.open.retain(|(of, _), _| of != run);
                Change::Nothing
            }
            // Whatever else is recorded is for the program, not for people.
            _ => Change::Nothing,
        }
    }
}

/// What an author told observers: the words of a `log(…)`, or whatever else was emitted.
fn said(name: &str, payload: &[u8]) -> String {
    let text = String::from_utf8_lossy(payload);
    if name != "log" {
        return format!("{name}: {text}");
    }
    let words: Vec<serde_json::Value> = serde_json::from_slice(payload).unwrap_or_default();
    let shown = words.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned));
    shown.collect::<Vec<_>>().join(" ")
}

type Beginning<'e> = (&'e Key, String, What, Option<Timestamp>);

/// What an event opens.
fn begins(event: &Event) -> Option<Beginning<'_>> {
    Some(match event {
        Event::TaskScheduled { key, task, name, detached: false, .. } => {
            let (label, name) = (shown(key), name.as_str());
            let label = if label.contains(name) { label } else { format!("{label} ({name})") };
            (key, label, What::Task { task: task.clone() }, None)
        }
        Event::StepStarted { key, .. } => (key, shown(key), What::Step, None),
        Event::TimerStarted { key, deadline, .. } => (key, shown(key), What::Timer, Some(*deadline)),
        Event::SignalAwaited { key, name, deadline } => {
            let (name, key_text) = (name.to_string(), key.to_string());
            (key, format!("signal {name:?}"), What::Signal { name, key: key_text }, *deadline)
        }
        Event::ApprovalRequested { key, approval, title, assignee, deadline } => {
            let (id, title, assignee) = (approval.clone(), title.clone(), assignee.clone());
            (key, format!("approval {title:?}"), What::Approval { id, title, assignee }, *deadline)
        }
        Event::CallbackCreated { key, callback, deadline, .. } => {
            (key, format!("callback {callback:?}"), What::Callback { id: callback.clone() }, *deadline)
        }
        Event::ChildStarted { key, child, workflow, detached: false, .. } => {
            (key, format!("{workflow} (run {child})"), What::Child, None)
        }
        Event::ConditionChecked { key, met: false, next_at: Some(next_at), .. } => {
            (key, key.to_string(), What::Condition, Some(*next_at))
        }
        Event::ContainerIterationStarted { node, index: 0, total, .. } => {
            let of = total.map_or(String::new(), |total| format!(" of {total}"));
            (node, format!("{node} 1{of}"), What::Container, None)
        }
        _ => return None,
    })
}

/// A key as people read it: `charge` for `__task-charge-0`, `sleep #2` for `__sleep-1`.
fn shown(key: &Key) -> String {
    let (scope, last) = key.as_str().rsplit_once('/').map_or(("", key.as_str()), |(scope, last)| (scope, last));
    let given = last.strip_prefix("__").and_then(|rest| rest.rsplit_once('-'));
    let Some((name, number)) = given.and_then(|(name, number)| Some((name, number.parse::<u32>().ok()?))) else {
        return key.to_string();
    };
    let name = name.split_once('-').map_or(name, |(_, name)| name);
    let scope = if scope.is_empty() { String::new() } else { format!("{scope}/") };
    if number == 0 { format!("{scope}{name}") } else { format!("{scope}{name} #{}", number + 1) }
}

/// What an event closes, and how.
fn ends(event: &Event) -> Option<(&Key, Ending)> {
    let done = || Ending::Done(String::new());
    Some(match event {
        Event::TaskFinished { key, .. }
        | Event::StepFinished { key, .. }
        | Event::TimerFired { key }
        | Event::SignalResolved { key, .. }
        | Event::CallbackResolved { key, .. }
        | Event::ChildFinished { key, .. }
        | Event::ConditionChecked { key, .. } => (key, done()),
        Event::NodeCompleted { node, .. } => (node, done()),
        Event::ApprovalResolved { key, approved, by, feedback, .. } => {
            let word = if *approved { "approved" } else { "denied" };
            let by = by.as_deref().map_or(String::new(), |by| format!(" by {by}"));
            let feedback = feedback.as_deref().map_or(String::new(), |said| format!(": {said}"));
            (key, Ending::Done(format!("{word}{by}{feedback}")))
        }
        Event::TaskFailed { key, error, .. }
        | Event::StepFailed { key, error, .. }
        | Event::CallbackFailed { key, error, .. }
        | Event::ChildFailed { key, error, .. }
        | Event::OperationRefused { key, error } => (key, Ending::Failed(error.to_string())),
        Event::NodeError { node, error } => (node, Ending::Failed(error.to_string())),
        Event::SignalTimedOut { key, .. }
        | Event::ApprovalTimedOut { key, .. }
        | Event::CallbackTimedOut { key, .. } => (key, Ending::TimedOut),
        Event::OperationCancelled { key } => (key, Ending::Cancelled),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_the_engine_made_are_shown_as_people_would_say_them() {
        let cases = [
            ("__task-charge-0", "charge"),
            ("__task-pay-out-2", "pay-out #3"),
            ("__sleep-1", "sleep #2"),
            ("lines/3/label", "lines/3/label"),
            ("lines/3/__task-a-0", "lines/3/a"),
            ("__odd", "__odd"),
        ];
        for (key, expected) in cases {
            assert_eq!(shown(&Key::new(key).unwrap()), expected);
        }
    }
}
