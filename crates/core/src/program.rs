//! The seam between the three authoring styles and the engine.

use bytes::Bytes;

use crate::commit::Snapshot;
use crate::event::Event;
use crate::failure::{Failure, code};
use crate::id::{Index, Key};
use crate::operation::{Operations, SharedName};

/// What a program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Begin. Comes first and once, unless the program was restored from a snapshot.
    Start,
    /// This happened. Facts come one at a time, in journal order; the next one only after the program is blocked.
    Fact {
        /// Where it is in the journal.
        index: Index,
        /// What happened.
        event: &'a Event,
    },
    /// Run this body now: everything it depends on is durable. Comes after the request to start the step or condition,
    /// and again for each further attempt or check.
    Execute {
        /// Which step or condition.
        key: &'a Key,
        /// Which attempt or check, from 1.
        attempt: u32,
    },
    /// Something a code body waited for may have happened: look again.
    Poll,
}

/// How far a program came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Every branch waits for a fact.
    Blocked,
    /// A code body runs; the program calls the waker when it can go on. Script and flow never return this.
    Executing,
    /// The workflow returned.
    Finished(Bytes),
    /// The workflow failed.
    Failed(Failure),
    /// The program did what no program may, such as wait for something outside the journal: the run parks with this
    /// message.
    Unsound(String),
}

/// A live authored workflow: no clock, no I/O, no randomness of its own.
///
/// Fed the same facts in the same order, it makes the same requests and comes to the same end. It need not be `Send`.
///
/// ```
/// use std::time::Duration;
/// use outlast_core::Bytes;
/// use outlast_core::commit::Snapshot;
/// use outlast_core::event::Event;
/// use outlast_core::id::{Index, Key};
/// use outlast_core::operation::{Due, Keys, Operation, OperationKind, Operations, Provided};
/// use outlast_core::program::{Input, Program, Progress};
/// use outlast_core::time::Timestamp;
///
/// /// Sleeps for a minute, and says so.
/// struct Nap {
///     keys: Keys,
///     sleep: Option<Key>,
/// }
///
/// impl Program for Nap {
///     fn resume(&mut self, input: Input<'_>, ops: &mut Operations) -> Progress {
///         match input {
///             Input::Start => {
///                 let key = self.keys.positional(None, OperationKind::Timer, None).expect("a valid key");
///                 self.sleep = Some(key.clone());
///                 ops.request(Operation::StartTimer { key, due: Due::After(Duration::from_secs(60)) }, None);
///                 Progress::Blocked
///             }
///             Input::Fact { event: Event::TimerFired { key }, .. } if Some(key) == self.sleep.as_ref() => {
///                 Progress::Finished(Bytes::from("\"rested\""))
///             }
///             Input::Fact { .. } | Input::Execute { .. } | Input::Poll => Progress::Blocked,
///         }
///     }
///
///     fn snapshot(&self) -> Option<Snapshot> {
///         None
///     }
/// }
///
/// let mut nap = Nap { keys: Keys::default(), sleep: None };
/// let mut ops = Operations::new(Provided { now: Timestamp::EPOCH, seed: 0 });
/// assert_eq!(nap.resume(Input::Start, &mut ops), Progress::Blocked);
/// let requested = ops.take();
/// let key = requested[0].operation.key().expect("a timer has a key").clone();
/// assert_eq!(key.as_str(), "__sleep-0");
///
/// let fired = Event::TimerFired { key };
/// let end = nap.resume(Input::Fact { index: Index(1), event: &fired }, &mut ops);
/// assert_eq!(end, Progress::Finished(Bytes::from("\"rested\"")));
/// ```
pub trait Program {
    /// Runs until every branch is blocked, a body executes, or the workflow ends. Requests go to `ops`.
    fn resume(&mut self, input: Input<'_>, ops: &mut Operations) -> Progress;

    /// The program's state, to go on from without replay; none for the code style. The snapshot's index is that of
    /// the last fact it was fed, plus one.
    fn snapshot(&self) -> Option<Snapshot>;

    /// Why a payload is not what the operation waits for; none if it is, or if the program cannot tell. A signal that does
    /// not fit is rejected and recorded so, and the wait goes on.
    fn misfit(&self, _key: &Key, _payload: &[u8]) -> Option<Failure> {
        None
    }

    /// Whether tasks and children that were started and never awaited go on alone when the workflow ends. If not they are
    /// taken back, unless they were detached.
    fn leaves_unawaited(&self) -> bool {
        false
    }

    /// Why an operator cannot do this to a node now; none if that is possible. It is asked before such an event is recorded.
    fn refuses(&self, _intervention: &Event) -> Option<Failure> {
        Some(Failure::new(code::VALIDATION_ERROR, "only flows have nodes to skip, or to begin again").permanent())
    }

    /// Whether tasks that run are waited for before a pause begins. If not, what comes of them waits for its end.
    fn pauses_after_tasks(&self) -> bool {
        false
    }

    /// Names the author used at two places of one scope, as far as the program came.
    fn shared_names(&self) -> &[SharedName] {
        &[]
    }
}
