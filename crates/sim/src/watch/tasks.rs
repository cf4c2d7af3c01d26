//! Tasks, as they should be: who has one, under which token, and what became of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use outlast_core::commit::{Commit, NewTask, TaskOutcome, Then};
use outlast_core::id::{ClaimId, Key, Namespace, RunKey, TaskId, TaskToken, WorkerId};
use outlast_core::time::Timestamp;
use outlast_store::{ClaimTasks, ClaimedTask, Delivered, TaskExtended};

use super::clock::Clock;
use crate::ledger::tick;
use crate::violation::Findings;

/// All tasks there ever were.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    pub(super) books: BTreeMap<(Namespace, TaskId), TaskBook>,
}

/// A task, as it should be.
#[derive(Clone, Debug)]
pub struct TaskBook {
    /// The operation that awaits it.
    pub awaited: Option<(RunKey, Key)>,
    /// What its handler is given.
    pub args: Bytes,
    /// Where it stands.
    pub state: State,
    /// Attempts that count.
    pub attempt: u32,
    /// The token of the last claim.
    pub token: TaskToken,
    /// It must not begin before.
    pub available_at: Option<Timestamp>,
    /// When that was said, among everything that happened.
    pub said: u64,
}

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In its queue.
    Ready,
    /// In somebody's hands.
    Held {
        /// Whose.
        worker: WorkerId,
        /// By which claim.
        claim: ClaimId,
        /// Until when, if nothing more is heard.
        until: Timestamp,
        /// Whether nobody wants it any more.
        unwanted: bool,
    },
    /// Failed for good.
    Dead,
    /// Failed for good, and removed because that was long ago.
    Buried,
    /// Done, or taken back.
    Gone,
}

impl Tasks {
    /// All that are known.
    pub fn all(&self) -> impl Iterator<Item = (&(Namespace, TaskId), &TaskBook)> {
        self.books.iter()
    }

    /// One of them.
    pub fn get(&self, namespace: &Namespace, id: &TaskId) -> Option<&TaskBook> {
        self.books.get(&(namespace.clone(), id.clone()))
    }

    /// Whether nothing is to be done any more.
    pub fn are_over(&self) -> bool {
        self.books.values().all(|book| matches!(book.state, State::Dead | State::Buried | State::Gone))
    }

    /// It is in its queue; one that is there already stays as it is.
    pub(super) fn queued(&mut self, namespace: &Namespace, new: &NewTask, awaited: Option<(RunKey, Key)>) {
        let fresh = TaskBook {
            awaited,
            args: new.args.clone(),
            state: State::Ready,
            attempt: 0,
            token: TaskToken(0),
            available_at: new.available_at,
            said: tick(),
        };
        let book = self.books.entry((namespace.clone(), new.id.clone())).or_insert_with(|| fresh.clone());
        if matches!(book.state, State::Buried | State::Gone) {
            *book = fresh;
        }
    }

    /// A commit queues tasks and takes some back; the end of a run leaves it none.
    pub(super) fn committed(&mut self, commit: &Commit) {
        let of_run = |book: &&mut TaskBook| book.awaited.as_ref().is_some_and(|(run, _)| *run == commit.run);
        for new in &commit.tasks {
            let awaited = new.key.clone().map(|key| (commit.run.clone(), key));
            self.queued(&commit.run.namespace, new, awaited);
        }
        for book in self.books.values_mut().filter(of_run) {
            if book.awaited.as_ref().is_some_and(|(_, key)| commit.tasks_cancelled.contains(key)) {
                book.take_back();
            }
        }
        if matches!(commit.then, Then::Finish(_) | Then::ContinueAsNew { .. }) {
            self.books.values_mut().filter(of_run).for_each(TaskBook::take_back);
        }
    }

    /// Somebody was handed a task.
    pub(super) fn claimed(
        &mut self,
        asked: &ClaimTasks,
        claimed: &ClaimedTask,
        clock: &Clock,
        findings: &mut Findings,
    ) {
        let ClaimedTask { namespace, id, token, attempt, now, .. } = claimed;
        let worker = &asked.worker;
        let Some(book) = self.books.get_mut(&(namespace.clone(), id.clone())) else {
            return findings.check(17, Err(format!("{worker} was handed {id}, which nobody queued")));
        };
        let known = (book.token, book.attempt);
        let repeated = matches!(&book.state, State::Held { worker: holder, claim, until, .. }
            if holder == worker && *claim == asked.id && *until > *now);
        if repeated {
            return findings.ensure(7, known == (*token, *attempt), || {
                format!("{worker} asked again for {id} and was given {token:?}, attempt {attempt}, not {known:?}")
            });
        }
        findings.ensure(17, !matches!(book.state, State::Dead | State::Buried | State::Gone), || {
            format!("{worker} was handed {id}, which is {:?}", book.state)
        });
        let unwanted = matches!(book.state, State::Held { unwanted: true, .. });
        findings.ensure(17, !unwanted, || format!("{worker} was handed {id}, which nobody wants any more"));
        if let State::Held { worker: holder, until, .. } = &book.state {
            findings.ensure(7, until <= now, || {
                format!("{worker} was handed {id} at {now}, which {holder} has until {until}")
            });
        }
        findings.ensure(7, *token > book.token, || format!("{id} was handed out under {token:?} after {known:?}"));
        findings.ensure(15, *attempt == book.attempt + 1, || {
            format!("{id} was handed out as attempt {attempt}, and {} were begun", book.attempt)
        });
        // One that has begun once, or was due once, may be begun at any time, also if the clock goes back.
        let due = book.available_at.filter(|_| book.state == State::Ready);
        let latest = clock.latest_since(book.said);
        findings.ensure(15, due.is_none_or(|due| due <= latest), || {
            format!("{id} was handed out at {now}, and is to begin at {due:?}")
        });
        (book.token, book.attempt) = (*token, *attempt);
        let (worker, until) = (worker.clone(), claimed.until);
        book.state = State::Held { worker, claim: asked.id, until, unwanted: false };
    }

    /// One that failed for good went with age.
    pub(super) fn buried(&mut self, namespace: &Namespace, id: &TaskId) {
        if let Some(book) = self.books.get_mut(&(namespace.clone(), id.clone())) {
            book.state = State::Buried;
        }
    }

    /// A sign of life was accepted.
    pub(super) fn extended(
        &mut self,
        (namespace, id, token): (&Namespace, &TaskId, TaskToken),
        extended: &TaskExtended,
        findings: &mut Findings,
    ) {
        let Some(book) = self.books.get_mut(&(namespace.clone(), id.clone())) else { return };
        let current = book.token == token;
        match &mut book.state {
            State::Held { until, unwanted, .. } if current => {
                *until = extended.until;
                findings.ensure(17, *unwanted == extended.cancelled, || {
                    format!(
                        "the worker of {id} was told {extended:?}, and it should be told that unwanted is {unwanted}"
                    )
                });
            }
            state => {
                let broken = format!("{id} is {state:?}, and {token:?} still extends it");
                findings.check(7, Err(broken));
            }
        }
    }

    /// An attempt was reported, and what the reporter was told.
    pub(super) fn reported(
        &mut self,
        (namespace, id, token): (&Namespace, &TaskId, TaskToken),
        (outcome, delivered): (&TaskOutcome, Delivered),
        findings: &mut Findings,
    ) {
        let Some(book) = self.books.get_mut(&(namespace.clone(), id.clone())) else {
            let accepted = delivered == Delivered::Delivered;
            return findings.ensure(7, !accepted, || format!("a result of {id} was accepted, which nobody queued"));
        };
        let unwanted = match &book.state {
            State::Held { unwanted, .. } if book.token == token => Some(*unwanted),
            _ => None,
        };
        let accepted = delivered == Delivered::Delivered;
        // One that nobody wants is removed when its worker is silent for too long.
        let removed = unwanted == Some(true) && delivered == Delivered::NotFound;
        findings.ensure(7, accepted == unwanted.is_some() || removed, || {
            format!(
                "{outcome:?} of {id} under {token:?} was {delivered:?}; the task is {:?} under {:?}",
                book.state, book.token
            )
        });
        let (Some(unwanted), true) = (unwanted, accepted) else { return };
        book.state = match outcome {
            _ if unwanted => State::Gone,
            TaskOutcome::Finished { .. } => State::Gone,
            TaskOutcome::Failed { .. } => State::Dead,
            TaskOutcome::Retry { at, .. } => {
                (book.available_at, book.said) = (Some(*at), tick());
                State::Ready
            }
            TaskOutcome::GivenBack => {
                book.attempt = book.attempt.saturating_sub(1);
                State::Ready
            }
        };
    }
}

impl TaskBook {
    /// Nobody waits for it any more. One that failed for good stays, to be looked at.
    fn take_back(&mut self) {
        match &mut self.state {
            State::Held { unwanted, .. } => *unwanted = true,
            state @ State::Ready => *state = State::Gone,
            State::Dead | State::Buried | State::Gone => {}
        }
        self.awaited = None;
    }
}
