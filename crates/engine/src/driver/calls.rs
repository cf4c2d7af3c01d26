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
    Inbox(RunNo, Result<Loaded, StoreError>),
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
    pub(super) from: Index,
    /// The fence under which its resume is taken first, if it is.
    pub(super) taking: Option<Fence>,
}

impl Wanted {
    fn take(&self) -> Option<Take> {
        Some(Take { run: self.run.clone(), fence: self.taking? })
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
                let takes: Vec<Take> = wanted.iter().filter_map(Wanted::take).collect();
                if !takes.is_empty() {
                    // What cannot be taken is no longer ours: its next commit says so.
                    store.take(takes).await;
                }
                let answers = store.load(wanted.iter().map(|wanted| load(&wanted.run, wanted.from)).collect()).await;
                if !answers.iter().any(is_retryable) {
                    return Done::Loaded(wanted.into_iter().map(|wanted| wanted.no).zip(answers).collect());
                }
                pause(&time, &mut delay).await;
            }
        })
    }

    /// Takes the resume of a run that is being driven, and reads its inbox.
    pub(super) fn read_inbox(&self, no: RunNo, run: RunKey, fence: Fence, from: Index) -> Call {
        let store = Arc::clone(&self.store);
        self.call(async move {
            if planted!("take-after-load") {
                let loaded = store.load(vec![load(&run, from)]).await.pop();
                store.take(vec![Take { run, fence }]).await;
                return loaded.map_or(Done::Nothing, |loaded| Done::Inbox(no, loaded));
            }
            let taken = store.take(vec![Take { run: run.clone(), fence }]).await.pop();
            if let Some(Err(error)) = taken {
                return Done::Inbox(no, Err(error));
            }
            match store.load(vec![load(&run, from)]).await.pop() {
                Some(loaded) => Done::Inbox(no, loaded),
                None => Done::Nothing,
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
