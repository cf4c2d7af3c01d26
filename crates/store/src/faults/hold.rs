//! Calls that are held back, and commits that are turned down.

use tokio::sync::oneshot;

use super::{FaultStore, State};
use crate::CommitError;

/// When a call is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    After,
}

/// A call that is held back until this is dropped.
#[derive(Debug)]
pub struct Hold {
    _until_dropped: oneshot::Sender<()>,
}

/// A call to hold back: its name, when, and until when.
pub(super) type Held = (&'static str, Moment, oneshot::Receiver<()>);

impl State {
    fn hold(&mut self, name: &'static str, moment: Moment) -> Option<oneshot::Receiver<()>> {
        let place = self.holds.iter().position(|(named, when, _)| *named == name && *when == moment)?;
        Some(self.holds.remove(place).2)
    }
}

impl FaultStore {
    /// Has the next so many commits and transactions refused with this error, and nothing of them applied.
    pub fn refuse_next(&self, times: u32, error: CommitError) {
        self.state().refusals.push((times, error));
    }

    /// Holds the next call of that name back, before it reaches the store; until what this returns is dropped.
    #[must_use = "the call goes on when this is dropped"]
    pub fn hold_next(&self, name: &'static str) -> Hold {
        self.hold(name, Moment::Before)
    }

    /// Holds the reply to the next call of that name back, until what this returns is dropped.
    #[must_use = "the reply goes on when this is dropped"]
    pub fn hold_next_reply(&self, name: &'static str) -> Hold {
        self.hold(name, Moment::After)
    }

    fn hold(&self, name: &'static str, moment: Moment) -> Hold {
        let (hold, held) = oneshot::channel();
        self.state().holds.push((name, moment, held));
        Hold { _until_dropped: hold }
    }

    /// What a commit or transaction is refused with, if it is.
    pub(super) fn refusal(&self, name: &'static str) -> Option<CommitError> {
        if !matches!(name, "commit" | "transact") {
            return None;
        }
        let mut state = self.state();
        let (times, error) = state.refusals.iter_mut().find(|(times, _)| *times > 0)?;
        *times -= 1;
        let error = error.clone();
        state.landed += 1;
        Some(error)
    }

    /// Waits as long as a call is held back.
    pub(super) async fn held(&self, name: &'static str, moment: Moment) {
        let hold = self.state().hold(name, moment);
        if let Some(hold) = hold {
            // Dropping the other side ends it.
            let _ = hold.await;
        }
    }
}
