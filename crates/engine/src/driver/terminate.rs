//! Terminating a run: the one thing a driver does to a run without its program, wherever that is.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_core::commit::Commit;
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::id::{ClaimId, Fence, Generation, InboxId, Index, Key, LeaseId, RunKey};
use outlast_store::{
    Awaited, Claim, Claimed, CommitError, Excerpt, LIST_PAGE_MAX, Load, LoadFrom, Pick, Release, Resolution, Serves,
    Store, StoreError, Trouble,
};
use tokio::sync::oneshot;

use super::Driver;
use super::calls::{AGAIN_FIRST, Call, Calls, Done, pause};
use crate::board::Board;
use crate::drive::{Identity, OpenChild, Termination};
use crate::host::Time;

/// How often to try before whoever asked is told that it did not work.
const TRIES_MAX: u32 = 10;

/// A run to end.
pub(crate) struct Terminate {
    pub(crate) run: RunKey,
    pub(crate) reason: String,
    pub(crate) by: Option<String>,
    /// Names the seizure. One that is tried again, because its reply was lost, is given what it has.
    pub(crate) claim: ClaimId,
    pub(crate) reply: oneshot::Sender<Result<Terminated, StoreError>>,
}

/// What became of a request to end a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminated {
    Now,
    /// It had ended before, however it did.
    Before,
}

impl Driver {
    /// Ends a run. The driver does it, and not whoever asked: they may stop waiting in the middle, and a run that was
    /// seized and then forgotten would lie still until the lease is over.
    pub(super) fn terminate(&mut self, order: Terminate) {
        let call = self.calls.terminate(order, &self.board);
        self.under_way.push(call);
    }

    pub(super) fn terminated(&mut self, order: Terminate, ended: Result<Option<Commit>, Unended>) {
        let Terminate { run, claim, reply, .. } = order;
        let answer = match ended {
            Ok(Some(commit)) => {
                // Its program, if it was here, is dropped with whatever it executes.
                if let Some(no) = self.numbers.get(&run).copied() {
                    self.forget(no);
                }
                self.hot.remove(&run);
                self.board.publish(&run, Generation(0), Vec::new());
                self.board.ended(&commit);
                self.tell_workers(&commit);
                // Its parent and its children have something to do.
                self.board.somebody_woken();
                Ok(Terminated::Now)
            }
            Ok(None) => Ok(Terminated::Before),
            Err(Unended { error, seized }) => {
                let seizure = self.calls.seizure(&self.board);
                self.under_way.push(self.calls.call(async move {
                    seizure.give_back(run, claim, seized).await;
                    Done::Nothing
                }));
                Err(error)
            }
        };
        let _ = reply.send(answer);
    }
}

impl Calls {
    fn terminate(&self, order: Terminate, board: &Arc<Board>) -> Call {
        let seizure = self.seizure(board);
        self.call(async move {
            let ended = seizure.end(&order).await;
            Done::Terminated(Box::new(order), ended)
        })
    }

    fn seizure(&self, board: &Arc<Board>) -> Seizure {
        Seizure { store: Arc::clone(&self.store), time: Arc::clone(&self.time), board: Arc::clone(board) }
    }
}

struct Seizure {
    store: Arc<dyn Store>,
    time: Arc<Time>,
    board: Arc<Board>,
}

impl Seizure {
    /// Ends the run; the commit that did, or none if it had ended before.
    async fn end(&self, order: &Terminate) -> Result<Option<Commit>, Unended> {
        let mut delay = AGAIN_FIRST;
        let mut tries = 0;
        // Of any try, not only of the last: a run that stays seized is driven by nobody.
        let mut seized = None;
        loop {
            tries += 1;
            let Failed { error, again, held } = match self.try_to_end(order).await {
                Ok(ended) => return Ok(ended),
                Err(failed) => failed,
            };
            seized = held.or(seized);
            if again && tries < TRIES_MAX {
                tracing::warn!(run = %order.run, %error, "a run could not be terminated yet; it is tried again");
                pause(&self.time, &mut delay).await;
                continue;
            }
            return Err(Unended { error, seized });
        }
    }

    async fn try_to_end(&self, order: &Terminate) -> Result<Option<Commit>, Failed> {
        let Some(claimed) = self.seize(order).await? else { return Ok(None) };
        let awaiting = self.awaiting(&claimed).await.map_err(|error| Failed::holding(&claimed, error))?;
        let tasks = awaiting.iter().filter_map(|awaited| match awaited {
            Awaited::Task { key, .. } => Some(key.clone()),
            Awaited::Timer { .. } | Awaited::Wait { .. } | Awaited::Child { .. } => None,
        });
        let termination = Termination {
            tasks: tasks.collect(),
            identity: Identity {
                run: claimed.run.clone(),
                generation: claimed.generation,
                workflow: claimed.workflow.clone(),
                version: claimed.version.clone(),
                parent: claimed.parent.clone(),
            },
            fence: claimed.fence,
            next: claimed.next,
            children: self.open_children(&claimed, awaiting).await.map_err(|error| Failed::holding(&claimed, error))?,
            inbox: self.inbox(&claimed).await.map_err(|error| Failed::holding(&claimed, error))?,
            reason: order.reason.clone(),
            by: order.by.clone(),
        };
        let commit = termination.commit(self.time.now());
        self.commit(&claimed, &commit).await?;
        Ok(Some(commit))
    }

    /// Takes the run from whoever has it: their next commit is refused.
    async fn seize(&self, order: &Terminate) -> Result<Option<Claimed>, Failed> {
        let Some(lease) = self.board.lease() else {
            return Err(Failed::again(None, &order.run, "this engine has no lease at the moment"));
        };
        let pick = Pick::Seize(order.run.clone());
        let claim = Claim { lease, id: order.claim, limit: 1, pick, serves: Serves::Everything };
        match self.store.claim(claim).await {
            Ok(mut claimed) => Ok(claimed.pop()),
            Err(error @ StoreError::LeaseLapsed { .. }) => Err(Failed::again(None, &order.run, &error.to_string())),
            Err(error) => Err(Failed { again: error.is_retryable(), error, held: None }),
        }
    }

    async fn commit(&self, claimed: &Claimed, commit: &Commit) -> Result<(), Failed> {
        let answer = self.store.commit(vec![commit.clone()]).await.pop();
        let again = |what: &str| Err(Failed::again(Some(claimed.fence), &claimed.run, what));
        match answer {
            Some(Ok(_)) => Ok(()),
            Some(Err(CommitError::Unknown(txn))) => {
                let mut delay = AGAIN_FIRST;
                loop {
                    match self.store.resolve(txn).await {
                        Ok(Resolution::Applied) => return Ok(()),
                        Ok(Resolution::NotApplied) => return again("its last commit was lost"),
                        Err(_) => pause(&self.time, &mut delay).await,
                    }
                }
            }
            Some(Err(CommitError::NotApplied(error))) => Err(Failed::holding(claimed, error)),
            // An answer came in between, or somebody else seized it too: what is true now is read again.
            Some(Err(error)) => again(&error.to_string()),
            None => again("the store did not answer"),
        }
    }

    /// What the run waits for; nothing if that cannot be read.
    async fn awaiting(&self, claimed: &Claimed) -> Result<Vec<Awaited>, StoreError> {
        match self.store.awaiting(claimed.run.clone()).await {
            Err(StoreError::Corrupt { .. }) => Ok(Vec::new()),
            answer => answer,
        }
    }

    /// Children that have not ended, from the store: that needs no journal. How each is to be closed is in the journal;
    /// where it cannot be read, they are closed as if nobody had said anything.
    async fn open_children(&self, claimed: &Claimed, awaiting: Vec<Awaited>) -> Result<Vec<OpenChild>, StoreError> {
        let children: Vec<_> = awaiting
            .into_iter()
            .filter_map(|awaited| match awaited {
                Awaited::Child { key, run, .. } => Some((key, run)),
                Awaited::Timer { .. } | Awaited::Wait { .. } | Awaited::Task { .. } => None,
            })
            .collect();
        if children.is_empty() {
            return Ok(Vec::new());
        }
        let policies = self.policies(&claimed.run, claimed.generation).await?;
        let open = |(key, child)| {
            let on_close = policies.get(&key).copied().unwrap_or_default();
            OpenChild { key, child, on_close }
        };
        Ok(children.into_iter().map(open).collect())
    }

    async fn policies(&self, run: &RunKey, generation: Generation) -> Result<BTreeMap<Key, ClosePolicy>, StoreError> {
        let mut policies = BTreeMap::new();
        let (run, from) = (run.clone(), Index(0));
        let mut excerpt = Excerpt { run, generation: Some(generation), from, limit: LIST_PAGE_MAX };
        loop {
            let records = match self.store.excerpt(excerpt.clone()).await {
                Err(StoreError::Corrupt { .. }) => return Ok(policies),
                answer => answer?,
            };
            for record in &records {
                if let Ok(Event::ChildStarted { key, on_close, .. }) = Event::decode(record) {
                    policies.insert(key, on_close);
                }
            }
            if excerpt.is_last(&records) {
                return Ok(policies);
            }
            excerpt = excerpt.after(&records);
        }
    }

    /// What was acknowledged and not fed: a run may not end over it by accident, so that the end must name it.
    async fn inbox(&self, claimed: &Claimed) -> Result<Vec<InboxId>, StoreError> {
        let load = Load { run: claimed.run.clone(), from: LoadFrom::Index(claimed.next) };
        match self.store.load(vec![load]).await.pop() {
            Some(Err(StoreError::Corrupt { .. })) | None => Ok(Vec::new()),
            Some(loaded) => Ok(loaded?.inbox.iter().map(|item| item.id).collect()),
        }
    }

    /// The run was seized, or may have been, and cannot be ended: it goes on where it stood. Whoever asked does not wait for
    /// that; it is tried as long as the lease lives.
    async fn give_back(&self, run: RunKey, claim: ClaimId, seized: Option<Fence>) {
        let mut delay = AGAIN_FIRST;
        let Some(lease) = self.board.lease() else { return };
        while self.board.lease() == Some(lease) {
            match self.try_to_give_back(&run, lease, claim, seized).await {
                Err(error) if error.is_retryable() => pause(&self.time, &mut delay).await,
                Ok(()) | Err(_) => break,
            }
        }
        self.board.somebody_woken();
    }

    async fn try_to_give_back(
        &self,
        run: &RunKey,
        lease: LeaseId,
        claim: ClaimId,
        seized: Option<Fence>,
    ) -> Result<(), StoreError> {
        let fence = match seized {
            Some(fence) => fence,
            None => {
                // Serves nothing, so that it is given only what it has.
                let (pick, serves) = (Pick::Run(run.clone()), Serves::Only(Vec::new()));
                let claimed = self.store.claim(Claim { lease, id: claim, limit: 1, pick, serves }).await?;
                let Some(claimed) = claimed.first() else { return Ok(()) };
                claimed.fence
            }
        };
        let release = Release { run: run.clone(), fence, again: true };
        self.store.release(vec![release]).await.pop().unwrap_or(Ok(()))
    }
}

/// A run that could not be ended.
pub(super) struct Unended {
    error: StoreError,
    /// Under which fence it was seized, if that is known.
    seized: Option<Fence>,
}

/// Why a run could not be ended.
struct Failed {
    error: StoreError,
    /// Whether it may work a moment later.
    again: bool,
    /// Under which fence it was seized, if it was.
    held: Option<Fence>,
}

impl Failed {
    fn holding(claimed: &Claimed, error: StoreError) -> Failed {
        Failed { again: error.is_retryable(), error, held: Some(claimed.fence) }
    }

    fn again(held: Option<Fence>, run: &RunKey, what: &str) -> Failed {
        let message = format!("{run} could not be terminated: {what}");
        let error = StoreError::Unavailable { trouble: Trouble::Busy, message };
        Failed { error, again: true, held }
    }
}
