//! What others leave for a run, and how it lies in the run's inbox.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Opener, WaitKind};
use crate::id::{DeliveryId, Generation, InboxId, Key, Namespace, RunId, RunKey, SignalName, TaskId, TaskToken};
use crate::time::Timestamp;

/// A message for a run's mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Which mailbox.
    pub name: SignalName,
    /// The same id is applied once for the life of the run.
    pub id: DeliveryId,
    /// What it says. `null` is a payload too.
    pub payload: Bytes,
    /// The one operation it is meant for; none for the mailbox.
    pub aimed: Option<Key>,
}

/// What an operator asks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Control {
    /// Stop politely: cleanup code runs.
    Cancel,
    /// Start nothing new.
    Pause,
    /// Go on after a pause.
    Resume,
    /// Do something to a flow's node: what, is in its meta.
    Intervene,
    /// Nothing: whoever asks wants to know whether the id was used before. It is not used by this.
    Recall,
}

/// The name in the inbox of a request to cancel that came while flow control held the run back: it ends, and its program
/// never begins.
pub const HELD_CANCEL: &str = "held";

/// How an attempt at a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// With a result; the task is gone.
    Finished {
        /// The result.
        result: Bytes,
        /// What the handler wrote beside that, for people; kept with the result if a run waits for it.
        log: Option<Bytes>,
    },
    /// For good, with an error; the task is kept, dead, for inspection.
    Failed {
        /// The error: opaque to the store.
        error: Bytes,
    },
    /// With an error, but it may be tried again.
    Retry {
        /// Not before this instant.
        at: Timestamp,
        /// The error: opaque to the store.
        error: Bytes,
    },
    /// Not at all: the worker stops. The attempt does not count, and another worker may have it at once.
    GivenBack,
}

/// Something left for a run by someone who does not own it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A signal.
    Signal {
        /// To which run.
        run: RunKey,
        /// What.
        signal: Signal,
    },
    /// The one answer to an approval or callback.
    Answer {
        /// To which run.
        run: RunKey,
        /// Which operation.
        key: Key,
        /// Approval or callback.
        kind: WaitKind,
        /// The same id is applied once.
        id: DeliveryId,
        /// The secret, where the wait has one.
        token: Option<String>,
        /// Who, how: opaque to the store.
        meta: Option<Bytes>,
        /// The payload.
        payload: Option<Bytes>,
    },
    /// A sign of life for a callback: moves its heartbeat timer.
    Heartbeat {
        /// To which run.
        run: RunKey,
        /// Which operation.
        key: Key,
        /// The secret, where the wait has one.
        token: Option<String>,
    },
    /// The end of a child, for its parent. Travels inside the child's last commit.
    Child {
        /// The parent.
        run: RunKey,
        /// The parent's generation that started the child; a later one is not told.
        generation: Generation,
        /// The parent's operation.
        key: Key,
        /// Which child.
        child: RunId,
        /// How it ended: opaque to the store.
        meta: Option<Bytes>,
        /// Its output.
        payload: Option<Bytes>,
    },
    /// A request by an operator, or by a parent that closes.
    Control {
        /// To which run.
        run: RunKey,
        /// What.
        control: Control,
        /// The same id is applied once.
        id: DeliveryId,
        /// Who, why: opaque to the store.
        meta: Option<Bytes>,
        /// If a parent asks: only a run that this operation of it started. Its id may be a stranger's by now.
        child_of: Option<Opener>,
    },
    /// The end of an attempt at a task: result, inbox item and wake are one write.
    Task {
        /// The tenant.
        namespace: Namespace,
        /// Which task.
        task: TaskId,
        /// The token of the claim; a stale one changes nothing.
        token: TaskToken,
        /// How it ended.
        outcome: TaskOutcome,
        /// By which it is recognised when it is said again; what nobody repeats has none.
        receipt: Option<Receipt>,
    },
}

/// What the end of an attempt is recognised by when it is said again, because the answer was not heard. It is kept with the run
/// for as long as the run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The run that waited for the task when it was claimed.
    pub run: Option<RunId>,
    /// Made of the attempt and of what came of it: another result has another one.
    pub id: DeliveryId,
}

impl Delivery {
    /// The run it is for, where it names one. A task's end names its task, and the store finds the run.
    pub fn run(&self) -> Option<&RunKey> {
        match self {
            Delivery::Signal { run, .. }
            | Delivery::Answer { run, .. }
            | Delivery::Heartbeat { run, .. }
            | Delivery::Child { run, .. }
            | Delivery::Control { run, .. } => Some(run),
            Delivery::Task { .. } => None,
        }
    }
}

/// Which kind of fact an inbox item brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxKind {
    /// A signal for the mailbox, or aimed at one operation.
    Signal,
    /// An approval's decision.
    Approval,
    /// A callback's answer.
    Callback,
    /// A timer fired.
    Timer,
    /// A task finished.
    TaskFinished,
    /// A task failed for good.
    TaskFailed,
    /// A child ended.
    Child,
    /// Cancellation was requested.
    Cancel,
    /// A pause was requested.
    Pause,
    /// A resume was requested.
    Resume,
    /// An operator wants something done to a flow's node.
    Intervene,
}

impl InboxKind {
    /// All of them, in the order of their codes.
    pub const ALL: [InboxKind; 11] = [
        InboxKind::Signal,
        InboxKind::Approval,
        InboxKind::Callback,
        InboxKind::Timer,
        InboxKind::TaskFinished,
        InboxKind::TaskFailed,
        InboxKind::Child,
        InboxKind::Cancel,
        InboxKind::Pause,
        InboxKind::Resume,
        InboxKind::Intervene,
    ];

    /// The stable number stores keep.
    pub fn code(self) -> i16 {
        self as i16
    }

    /// The kind of a stored number.
    pub fn from_code(code: i64) -> Option<InboxKind> {
        usize::try_from(code).ok().and_then(|code| InboxKind::ALL.get(code)).copied()
    }

    /// Whether it stays when the run continues as new: it speaks to the run, not to an operation of one generation.
    pub fn outlives_generation(self) -> bool {
        match self {
            InboxKind::Signal => !crate::planted!("mailbox-dropped-at-continue"),
            InboxKind::Cancel | InboxKind::Pause | InboxKind::Resume => true,
            InboxKind::Approval
            | InboxKind::Callback
            | InboxKind::Timer
            | InboxKind::TaskFinished
            | InboxKind::TaskFailed
            | InboxKind::Child
            | InboxKind::Intervene => false,
        }
    }
}

/// What someone left for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxItem {
    /// Its place in the run's inbox.
    pub id: InboxId,
    /// What it is.
    pub kind: InboxKind,
    /// The operation it is for; none for the mailbox and for controls.
    pub key: Option<Key>,
    /// A signal's name, a timer's kind, a task's or child's id.
    pub name: Option<String>,
    /// The id under which it was delivered.
    pub delivery: Option<DeliveryId>,
    /// When it came.
    pub at: Timestamp,
    /// Opaque to the store.
    pub meta: Option<Bytes>,
    /// The payload.
    pub payload: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back_as_what_they_were() {
        for kind in InboxKind::ALL {
            assert_eq!(InboxKind::from_code(i64::from(kind.code())), Some(kind));
        }
        assert_eq!(InboxKind::from_code(11), None);
    }
}
