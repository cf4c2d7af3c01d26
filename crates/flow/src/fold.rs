//! What each event does to where a run stands.

mod explain;
mod facts;
mod marks;

use std::sync::Arc;

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::{Index, Key};
use outlast_core::operation::Operation;
use serde_json::Value as Json;
use thiserror::Error;

use crate::enter::Asking;
use crate::focus::Focus;
use crate::limits::MESSAGES_MAX;
use crate::scope::World;
use crate::state::{Saved, State};
use crate::walk::{Path, Spot, visit};

/// Why a journal is not that of a run of this flow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("event {index}, {kind}: {message}")]
pub struct DeriveError {
    /// Which event.
    pub index: Index,
    /// What it is.
    pub kind: outlast_core::event::Kind,
    /// What is wrong with it.
    pub message: String,
}

/// How events that nobody waits for are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// The driver compares what is recorded with what was asked for, and knows about cancellations.
    Lenient,
    /// Nobody else looks at the journal.
    Strict,
}

impl State {
    /// Takes note of an event, and decides what follows from it.
    pub(crate) fn apply(&mut self, index: Index, event: &Event, care: Care) -> Result<(), DeriveError> {
        let focus = Focus::of(event);
        let done = self.take(index, event, focus.as_ref().map(|focus| &focus.path), care);
        done.map_err(|message| DeriveError { index, kind: event.kind(), message })?;
        self.advance(focus.as_ref());
        Ok(())
    }

    /// `path` is where its key leads, if that is known.
    fn take(&mut self, index: Index, event: &Event, path: Option<&Path<'_>>, care: Care) -> Result<(), String> {
        match event {
            Event::NodeStarted { .. }
            | Event::NodeCompleted { .. }
            | Event::NodeError { .. }
            | Event::NodeSkipped { by: None, .. }
            | Event::ContainerIterationStarted { .. }
            | Event::ContainerIterationCompleted { .. }
            | Event::ContainerChildStarted { .. }
            | Event::ContainerChildCompleted { .. }
            | Event::LoopIterate { .. } => self.take_mark(index, event, path),
            Event::NodeSkipped { node, by: Some(_), .. } => {
                self.skip(node);
                self.mark = None;
                Ok(())
            }
            Event::NodeRetried { node, .. } => {
                self.retry(node);
                self.mark = None;
                Ok(())
            }
            Event::InterventionRefused { .. } => Ok(()),
            Event::RunResumed { message, .. } => {
                self.note_message(message.as_ref());
                Ok(())
            }
            Event::CancelRequested { reason, .. } => {
                self.cancel(reason.as_deref());
                Ok(())
            }
            Event::TaskScheduled { key, .. }
            | Event::TimerStarted { key, .. }
            | Event::SignalAwaited { key, .. }
            | Event::ApprovalRequested { key, .. }
            | Event::CallbackCreated { key, .. }
            | Event::ChildStarted { key, .. }
            | Event::StepStarted { key, .. } => self.note_start(key, care),
            Event::OperationCancelled { key } => {
                self.starts.retain(
                    |requested| !matches!(&requested.operation, Operation::Cancel { key: other } if other == key),
                );
                Ok(())
            }
            other => self.take_fact(index, other, path, care),
        }
    }

    /// Goes to the node with a key.
    fn at<R>(&mut self, key: &Key, then: &mut dyn FnMut(Spot<'_>, &mut Asking<'_>, &Path<'_>) -> R) -> Option<R> {
        let path = Path::parse(key)?;
        self.at_path(&path, then)
    }

    /// Goes to the node that a path leads to.
    fn at_path<R>(
        &mut self,
        path: &Path<'_>,
        then: &mut dyn FnMut(Spot<'_>, &mut Asking<'_>, &Path<'_>) -> R,
    ) -> Option<R> {
        let inner = &self.flow.inner;
        let input = &self.input;
        let place = inner.body.place(path.first.id)?;
        if path.pass != self.saved.pass_of(place) {
            return None;
        }
        let Saved { messages, top, .. } = &mut self.saved;
        let world =
            World { input, messages, info: &self.info, flow: inner.name.as_str(), limits: self.limits.expression };
        let payload_bytes = self.limits.payload_bytes;
        let mut asking = Asking { starts: &mut self.starts, doubt: &mut self.doubt, payload_bytes };
        let (body, attempt) = (&inner.body, path.first.attempt);
        let spot = Spot { world: &world, around: None, turn: None, body, block: top, place, attempt };
        visit(spot, path.inner, &mut |spot| then(spot, &mut asking, path))
    }

    /// An operation was started: it need not be asked for.
    fn note_start(&mut self, key: &Key, care: Care) -> Result<(), String> {
        let before = self.starts.len();
        self.starts
            .retain(|requested| requested.operation.starts().is_none() || requested.operation.key() != Some(key));
        if care == Care::Strict && self.starts.len() == before && !self.is_open(key) {
            return Err(format!("`{key}` was started, and no node asked for it"));
        }
        Ok(())
    }

    fn note_message(&mut self, message: Option<&Bytes>) {
        let Some(message) = message else { return };
        let text = || Json::String(String::from_utf8_lossy(message).into_owned());
        let message: Json = serde_json::from_slice(message).unwrap_or_else(|_| text());
        self.saved.messages.push(Arc::new(message));
        self.saved.unread += 1;
        if self.saved.messages.len() > MESSAGES_MAX {
            self.saved.messages.remove(0);
            self.saved.unread = self.saved.unread.min(MESSAGES_MAX);
        }
    }

    /// The run was asked to stop. What it told its operators to do is over.
    fn cancel(&mut self, reason: Option<&str>) {
        self.saved.unread = 0;
        if self.end.is_none() {
            let message = match reason {
                None => "the run was cancelled".to_owned(),
                Some(reason) => format!("the run was cancelled: {reason}"),
            };
            self.end = Some(Err(Failure::cancelled(message)));
        }
    }
}
