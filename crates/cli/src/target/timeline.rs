//! A journal as a timeline: what was asked for and what came of it, on one line.

use serde::Serialize;

use super::data::Happened;

/// An operation from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) key: String,
    pub(crate) kind: String,
    /// `open`, `done`, `failed`, `timed out` or `cancelled`.
    pub(crate) state: &'static str,
    pub(crate) began_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// The operations of a journal, in the order in which they began.
pub(crate) fn timeline(events: &[Happened]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for event in events {
        let (Some(key), Some((kind, state))) = (&event.key, meaning(&event.kind)) else { continue };
        let place = lines.iter().rposition(|line| line.key == *key);
        let place = place.unwrap_or_else(|| {
            let (key, kind, began_at) = (key.clone(), kind.to_owned(), event.at.clone());
            lines.push(Line { key, kind, state: "open", began_at, ended_at: None, error: None });
            lines.len() - 1
        });
        let line = &mut lines[place];
        // What a node does says more than that it is one.
        if line.kind == "node" {
            kind.clone_into(&mut line.kind);
        }
        // A node ends after what it does has ended; the first end is what happened.
        if state != "open" && line.ended_at.is_none() {
            line.state = state;
            line.ended_at = Some(event.at.clone());
            line.error = (state == "failed").then(|| error(event)).flatten();
        }
    }
    lines
}

fn error(event: &Happened) -> Option<String> {
    let found = event.data.as_ref()?.get("error").or(event.data.as_ref())?;
    let (code, message) = (found.get("code")?.as_str()?, found.get("message")?.as_str()?);
    Some(format!("{code}: {message}"))
}

/// What an event is about, and where it leaves that.
fn meaning(kind: &str) -> Option<(&'static str, &'static str)> {
    const KINDS: [(&str, &str); 9] = [
        ("TASK", "task"),
        ("STEP", "step"),
        ("TIMER", "timer"),
        ("SIGNAL", "signal"),
        ("APPROVAL", "approval"),
        ("CALLBACK", "callback"),
        ("CHILD", "child"),
        ("SCOPE", "scope"),
        ("NODE", "node"),
    ];
    if kind == "OPERATION_CANCELLED" {
        return Some(("operation", "cancelled"));
    }
    if kind == "CONDITION_CHECKED" {
        return Some(("condition", "open"));
    }
    let (head, tail) = kind.split_once('_')?;
    let (_, word) = KINDS.iter().find(|(name, _)| *name == head)?;
    let state = match tail {
        "FINISHED" | "RESOLVED" | "FIRED" | "COMPLETED" => "done",
        "FAILED" | "ERROR" => "failed",
        "TIMED_OUT" => "timed out",
        "SKIPPED" => "skipped",
        _ => "open",
    };
    Some((word, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened(index: u64, kind: &str, key: &str) -> Happened {
        let at = format!("at {index}");
        Happened {
            generation: 0,
            index,
            kind: kind.to_owned(),
            key: Some(key.to_owned()),
            at,
            data: None,
            payload: None,
        }
    }

    #[test]
    fn beginning_and_end_are_one_line() {
        let events = [
            happened(0, "TASK_SCHEDULED", "charge"),
            happened(1, "TIMER_STARTED", "__sleep-0"),
            happened(2, "TASK_FINISHED", "charge"),
        ];
        let lines = timeline(&events);
        let told: Vec<_> = lines.iter().map(|line| (line.key.as_str(), line.kind.as_str(), line.state)).collect();
        assert_eq!(told, [("charge", "task", "done"), ("__sleep-0", "timer", "open")]);
        assert_eq!(lines[0].ended_at.as_deref(), Some("at 2"));
    }

    #[test]
    fn a_node_is_what_it_does() {
        let events = [
            happened(0, "NODE_STARTED", "pay"),
            happened(1, "TASK_SCHEDULED", "pay"),
            happened(2, "TASK_FAILED", "pay"),
            happened(3, "NODE_COMPLETED", "pay"),
        ];
        let lines = timeline(&events);
        assert_eq!((lines.len(), lines[0].kind.as_str(), lines[0].state), (1, "task", "failed"));
    }
}
