//! What clients do with runs of texts.

use serde_json::{Value, json};

use super::{Client, delivered, request_id, started};
use crate::case::Case;
use crate::ledger::Asked;
use crate::written::{workflow_name, written_id};

impl Client {
    /// Starts the run of a text; whether there is one that clients start.
    pub(crate) async fn start_written(&self, case: &Case, place: usize) -> bool {
        if !case.written.get(place).is_some_and(|written| written.started) {
            return false;
        }
        let id = written_id(place);
        let start = self.engine.start(&workflow_name(place), &Value::Null).id(&id);
        self.request(&id, Asked::Start, start, started).await;
        true
    }

    /// Puts an edition of a text in the place of the one that is there.
    pub(super) async fn define(&self, case: &Case, place: usize, edition: u32) -> bool {
        let Some(written) = case.written.get(place) else { return false };
        let (file, text) = written.text(place, edition);
        // Nobody is promised anything by it but that runs which begin later begin with one of the two.
        let defined = match written.is_flow() {
            true => self.engine.define_flow(&file, &text).await,
            false => self.engine.define_script(&file, &text).await,
        };
        defined.is_ok()
    }

    /// Lets a paused run go on, and tells it something.
    pub(super) async fn say(&self, place: usize, message: u64, number: usize) -> bool {
        let id = written_id(place);
        let Ok(run) = self.engine.run(&id) else { return false };
        let message = json!(format!("message {message}"));
        let say = run.resume_with(&message).id(&request_id(number));
        self.request(&id, Asked::Say(message.clone()), say, delivered).await;
        true
    }

    /// Does something to one of the nodes that wait; whether there was one.
    pub(super) async fn intervene(&self, place: usize, nth: u64, skip: bool, number: usize) -> bool {
        let id = written_id(place);
        let Ok(run) = self.engine.run(&id) else { return false };
        let waiting: Vec<String> = run.awaiting().await.unwrap_or_default().iter().filter_map(node_of).collect();
        let Some(nth) = nth.checked_rem(waiting.len() as u64) else { return false };
        let node = waiting[usize::try_from(nth).unwrap_or(0)].clone();
        let (asked, what) = match skip {
            true => (Asked::Skip(node.clone()), run.skip_node(&node)),
            false => (Asked::Again(node.clone()), run.retry_node(&node)),
        };
        self.request(&id, asked, what.by("somebody").id(&request_id(number)), delivered).await;
        true
    }
}

/// The node that something is awaited for, by the key it began with.
fn node_of(awaited: &outlast::Awaited) -> Option<String> {
    use outlast::Awaited;
    let key = match awaited {
        Awaited::Timer { key, .. } | Awaited::Wait { key, .. } | Awaited::Task { key, .. } => key,
        Awaited::Child { key, .. } => key,
    };
    let key = key.as_str().split('#').next()?;
    let key = key.strip_suffix(".task").or_else(|| key.strip_suffix(".timeout")).unwrap_or(key);
    Some(key.to_owned())
}
