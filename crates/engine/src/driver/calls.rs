//! Calls to the store that are under way, and what came back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use outlast_core::commit::{Commit, NewRun};
use outlast_core::id::{Fence, Index, RunKey};
use outlast_core::planted;
use outlast_store::{
    CommitError, Committed, Created, Load, LoadFrom, Loaded, Release, Resolution, Store, StoreError, Take, Transact,
    Transacted,
};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::ready::RunNo;
use super::terminate::{Terminate, Unended};
use crate::host::{Asked, Time};

/// What a call to the store came to.
pub(super) enum Done {
    Created(Vec<(Creation, Result<Created, StoreError>)>),
    Loaded(Vec<(RunNo, Result<Loaded, StoreError>)>),
    /// An inbox was read, or not; whether more came meanwhile.
    Inbox(RunNo, Result<Loaded, StoreError>, bool),
    /// What was sent, when, and what came of it.
    Committed(Asked, Vec<(RunNo, Commit, Result<Committed, CommitError>)>),
    /// A run was ended without being asked, or not; the commit that did it.
    Terminated(Box<Terminate>, Result<Option<Commit>, Unended>),
    Transacted(RunNo, Transact, Result<Transacted, CommitError>),
    /// What was sent and of which nobody knew the outcome was applied, or certainly was not.
    Resolved(RunNo, Sent, Resolution),
    /// Time to send it again.
    Again(RunNo, Sent),
    /// Nothing anybody waits for.
    Nothing,
}

/// What was sent to change a run.
pub(super) enum Sent {
    Commit(Commit),
    Transact(Transact),
}

/// A run to create, and who asked.
pub(super) struct Creation {
    pub(super) new: NewRun,
    /// None once an error was given: whoever asked has gone on.
    pub(super) reply: Option<oneshot::Sender<Result<Created, StoreError>>>,
}

impl Creation {
    pub(super) fn answer(&mut self, answer: Result<Created, StoreError>) {
        if let Some(reply) = self.reply.take() {
            // Whoever asked may have stopped waiting.
            let _ = reply.send(answer);
        }
    }
}

/// A journal and inbox to read.
pub(super) struct Wanted {
    pub(super) no: RunNo,
    pub(super) run: RunKey,
    pub(super) from: LoadFrom,
    /// The fence under which its resume is taken then, if it is.
    pub(super) taking: Option<Fence>,
}

impl Wanted {
    pub(super) fn load(&self) -> Load {
        Load { run: self.run.clone(), from: self.from.clone() }
    }

    /// What is to be taken once this was read.
    fn take(&self, loaded: &Result<Loaded, StoreError>) -> Option<Take> {
        Some(Take { run: self.run.clone(), fence: self.taking?, read: loaded.as_ref().ok()?.inbox_next })
    }
}

pub(super) type Call = Pin<Box<dyn Future<Output = Done>>>;

/// How long to wait before a call that failed is repeated: at first, and at most.
pub(crate) const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_LAST: Duration = Duration::from_secs(1);

/// Makes calls.
pub(super) struct Calls {
    pub(super) store: Arc<dyn Store>,
    pub(super) time: Arc<Time>,
}

impl Calls {
    /// Polls a call inside the runtime: a store may need its timers and sockets.
    pub(super) fn call(&self, future: impl Future<Output = Done> + 'static) -> Call {
        match self.time.host().runtime() {
            Some(runtime) => Box::pin(Entered { runtime, inner: Box::pin(future) }),
            None => Box::pin(future),
        }
    }

    /// Creates runs. While the store is unavailable it is asked again, even after the callers were told so: a reply may
    /// have been lost, and then the runs are ours to drive.
    pub(super) fn create(&self, mut creations: Vec<Creation>) -> Call {
        let (store, time) = (Arc::clone(&self.store), Arc::clone(&self.time));
        self.call(async move {
            let mut delay = AGAIN_FIRST;
            loop {
                let runs = creations.iter().map(|creation| creation.new.clone()).collect();
                let answers = store.create(runs).await;
                if !answers.iter().any(is_retryable) {
                    return Done::Created(creations.into_iter().zip(answers).collect());
                }
                if delay == AGAIN_LAST {
                    let failed = creations.iter_mut().zip(answers).filter(|(_, answer)| is_retryable(answer));
                    failed.for_each(|(creation, answer)| creation.answer(answer));
                }
                pause(&time, &mut delay).await;
            }
        })
    }

    pub(super) fn load(&self, wanted: Vec<Wanted>) -> Call {
        let (store, time) = (Arc::clone(&self.store), Arc::clone(&self.time));
        self.call(async move {
            let mut delay = AGAIN_FIRST;
            loop {
                let mut answers = store.load(wanted.iter().map(Wanted::load).collect()).await;
                if planted!("trouble-taken-for-damage") {
                    answers.iter_mut().for_each(take_for_damage);
                }
                if !answers.iter().any(is_retryable) {
                    let read = wanted.iter().zip(&answers);
                    let takes: Vec<Take> = read.filter_map(|(wanted, loaded)| wanted.take(loaded)).collect();
                    if !takes.is_empty() {
                        // What cannot be taken is no longer ours: its next commit says so. What came since is told again.
                        store.take(takes).await;
                    }
                    return Done::Loaded(wanted.into_iter().map(|wanted| wanted.no).zip(answers).collect());
                }
                pause(&time, &mut delay).await;
            }
        })
    }

    /// Reads the inbox of a run that is being driven, and then takes its resume. If that fails it is woken once more for
    /// nothing; the other way round, a reading that fails would leave nobody who knows of what is there.
    pub(super) fn read_inbox(&self, no: RunNo, run: RunKey, fence: Fence, from: Index) -> Call {
        let store = Arc::clone(&self.store);
        self.call(async move {
            let loaded = match store.load(vec![load(&run, from)]).await.pop() {
                Some(Ok(loaded)) => loaded,
                Some(Err(error)) => return Done::Inbox(no, Err(error), false),
                None => return Done::Nothing,
            };
            let take = Take { run, fence, read: loaded.inbox_next };
            match store.take(vec![take]).await.pop() {
                Some(Err(error)) if !error.is_retryable() => Done::Inbox(no, Err(error), false),
                taken => Done::Inbox(no, Ok(loaded), taken == Some(Ok(false))),
            }
        })
    }

    /// The same, after a while.
    pub(super) fn read_inbox_again(&self, no: RunNo, run: RunKey, fence: Fence, from: Index) -> Call {
        let (read, time) = (self.read_inbox(no, run, fence, from), Arc::clone(&self.time));
        self.call(async move {
            pause(&time, &mut { AGAIN_LAST }).await;
            read.await
        })
    }

    pub(super) fn commit(&self, commits: Vec<(RunNo, Commit)>) -> Call {
        let (store, asked) = (Arc::clone(&self.store), self.time.asked());
        self.call(async move {
            let answers = store.commit(commits.iter().map(|(_, commit)| commit.clone()).collect()).await;
            Done::Committed(
                asked,
                commits.into_iter().zip(answers).map(|((no, commit), answer)| (no, commit, answer)).collect(),
            )
        })
    }

    /// Has a transaction run.
    pub(super) fn transact(&self, no: RunNo, transact: Transact) -> Call {
        let store = Arc::clone(&self.store);
        self.call(async move {
            let answer = store.transact(transact.clone()).await;
            Done::Transacted(no, transact, answer)
        })
    }

    /// Sends it again after a while.
    pub(super) fn again(&self, no: RunNo, sent: Sent, tries: u32) -> Call {
        let time = Arc::clone(&self.time);
        self.call(async move {
            let mut delay = AGAIN_LAST.min(AGAIN_FIRST * 2_u32.saturating_pow(tries.min(10)));
            pause(&time, &mut delay).await;
            Done::Again(no, sent)
        })
    }

    /// Finds out what became of it when its reply was lost.
    pub(super) fn resolve(&self, no: RunNo, sent: Sent, txn: outlast_core::id::TxnId) -> Call {
        let (store, time) = (Arc::clone(&self.store), Arc::clone(&self.time));
        self.call(async move {
            let mut delay = AGAIN_FIRST;
            loop {
                if let Ok(resolution) = store.resolve(txn).await {
                    return Done::Resolved(no, sent, resolution);
                }
                pause(&time, &mut delay).await;
            }
        })
    }

    pub(super) fn release(&self, run: RunKey, fence: Fence, again: bool) -> Call {
        let store = Arc::clone(&self.store);
        self.call(async move {
            // If it fails, the run is found again when the lease is over.
            let _ = store.release(vec![Release { run, fence, again }]).await;
            Done::Nothing
        })
    }
}

pub(super) fn is_retryable<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(error) if error.is_retryable())
}

/// Only for the bug that is planted.
fn take_for_damage(answer: &mut Result<Loaded, StoreError>) {
    if let Err(error) = answer
        && error.is_retryable()
    {
        *answer = Err(StoreError::corrupt("a journal", error.to_string()));
    }
}

fn load(run: &RunKey, from: Index) -> Load {
    Load { run: run.clone(), from: LoadFrom::Index(from) }
}

/// Waits, and next time longer.
pub(crate) async fn pause(time: &Time, delay: &mut Duration) {
    time.host().sleep_until(time.host().elapsed() + *delay).await;
    *delay = (*delay * 2).min(AGAIN_LAST);
}

struct Entered {
    runtime: Handle,
    inner: Call,
}

impl Future for Entered {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Done> {
        let this = &mut *self;
        let _context = this.runtime.enter();
        this.inner.as_mut().poll(context)
    }
}
