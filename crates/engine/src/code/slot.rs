//! What is known about one operation that was started.

use std::cell::RefCell;
use std::panic::Location;
use std::task::Waker;

use bytes::Bytes;
use outlast_core::failure::Failure;
use outlast_core::id::{Index, Key, RunId, SignalName, TaskId};

use super::approve::Decision;
use super::panics::guard;
use super::step_context::StepContext;

/// What came of an operation, as its fact says it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It gave a value, as JSON text.
    Value(Bytes),
    /// It came to its end, which is all there is to say: a sleep.
    Done,
    /// Somebody decided.
    Decided(Decision),
    /// A run was started, and nobody waits for its end.
    Started(RunId),
    /// A task was queued, and nobody waits for its end.
    Queued(TaskId),
    /// Its deadline passed; which signal it waited for, if it did.
    TimedOut(Option<SignalName>),
    /// It failed.
    Failed(Failure),
}

/// One operation, from its start to its end. Shared by whoever awaits it and by the program.
pub(super) struct Slot {
    pub(super) key: Key,
    /// Its place in the order of starts.
    pub(super) order: u64,
    /// Where it was written.
    pub(super) at: &'static Location<'static>,
    /// Whether it is a container: cancelling the run cancels what is inside, so that it can clean up.
    pub(super) is_scope: bool,
    state: RefCell<State>,
}

struct State {
    progress: Progress,
    awaited: bool,
    /// Whoever awaits it.
    waker: Option<Waker>,
    /// What runs the inside of a scope beside the workflow.
    inside: Option<Waker>,
    /// The attempt that runs, or that is to begin.
    attempt: Option<StepContext>,
    /// What the next check of a condition starts from; what a scope returned until that is recorded.
    kept: Option<Bytes>,
    /// Finds out whether a payload is what it waits for.
    check: Option<CheckPayload>,
}

/// Finds out whether a payload is what an operation waits for.
pub(super) type CheckPayload = fn(&[u8]) -> Result<(), Failure>;

enum Progress {
    Open,
    Settled(Index, Outcome),
    /// Its outcome was taken, or nobody wants it any more.
    Over,
}

/// What is left to do once an operation is over, outside of every borrow: both call the author's code.
#[must_use]
pub(super) struct Loose {
    pub(super) wakers: [Option<Waker>; 2],
    pub(super) attempt: Option<StepContext>,
}

impl Slot {
    pub(super) fn new(key: Key, order: u64, at: &'static Location<'static>, is_scope: bool) -> Self {
        let state = State {
            progress: Progress::Open,
            awaited: false,
            waker: None,
            inside: None,
            attempt: None,
            kept: None,
            check: None,
        };
        Slot { key, order, at, is_scope, state: RefCell::new(state) }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state.borrow().progress, Progress::Open)
    }

    /// Notes that it is awaited; whether that is new, and it is open.
    pub(super) fn note_awaited(&self) -> bool {
        let mut state = self.state.borrow_mut();
        matches!(state.progress, Progress::Open) && !std::mem::replace(&mut state.awaited, true)
    }

    /// Its outcome, and where in the journal that is; if there is none yet, the waker is kept.
    pub(super) fn take_outcome(&self, waker: &Waker) -> Option<(Index, Outcome)> {
        let mut state = self.state.borrow_mut();
        match std::mem::replace(&mut state.progress, Progress::Over) {
            Progress::Settled(index, outcome) => Some((index, outcome)),
            Progress::Open => {
                state.progress = Progress::Open;
                let replaced = match &state.waker {
                    Some(known) if known.will_wake(waker) => None,
                    Some(_) | None => state.waker.replace(waker.clone()),
                };
                drop(state);
                // Dropping a waker may run code of whoever made it.
                drop(replaced);
                None
            }
            Progress::Over => None,
        }
    }

    pub(super) fn settle(&self, index: Index, outcome: Outcome) -> Loose {
        self.end(Progress::Settled(index, outcome))
    }

    /// Nobody wants it any more.
    pub(super) fn close(&self) -> Loose {
        self.end(Progress::Over)
    }

    fn end(&self, progress: Progress) -> Loose {
        let mut state = self.state.borrow_mut();
        state.progress = progress;
        Loose { wakers: [state.waker.take(), state.inside.take()], attempt: state.attempt.take() }
    }

    /// Whoever awaits it, to be woken.
    pub(super) fn waker(&self) -> Option<Waker> {
        self.state.borrow().waker.clone()
    }

    /// What to wake too when it is over.
    pub(super) fn set_inside(&self, waker: Waker) {
        let replaced = self.state.borrow_mut().inside.replace(waker);
        drop(replaced);
    }

    pub(super) fn attempt(&self) -> Option<StepContext> {
        self.state.borrow().attempt.clone()
    }

    /// Which attempt runs or is to begin.
    pub(super) fn attempt_number(&self) -> Option<u32> {
        self.state.borrow().attempt.as_ref().map(StepContext::attempt)
    }

    pub(super) fn set_attempt(&self, attempt: Option<StepContext>) -> Option<StepContext> {
        std::mem::replace(&mut self.state.borrow_mut().attempt, attempt)
    }

    pub(super) fn set_check(&self, check: CheckPayload) {
        self.state.borrow_mut().check = Some(check);
    }

    /// Why a payload is not what it waits for.
    pub(super) fn misfit(&self, payload: &[u8]) -> Option<Failure> {
        let check = self.state.borrow().check?;
        // Reading a value may run code of the author.
        guard("reading the payload", || check(payload)).flatten().err()
    }

    pub(super) fn keep(&self, bytes: Bytes) {
        self.state.borrow_mut().kept = Some(bytes);
    }

    pub(super) fn kept(&self) -> Option<Bytes> {
        self.state.borrow().kept.clone()
    }
}
