//! Repairs what the journal proves. The run is seized, so that nobody else writes to it, its rows are set right in one commit,
//! and it is given back to be driven again: whatever was forgotten is read then.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::commit::{CloseCause, ClosedWait, Commit, NewTask, NewTimer, NewWait, TimerKind, TimerRef, WaitKind};
use outlast_core::event::Event;
use outlast_core::id::{Key, RunId, RunKey};
use outlast_store::{
    Claim, Claimed, CommitError, Excerpt, LIST_PAGE_MAX, Pick, Release, Resolution, Serves, Store, StoreError,
};

use super::Ailment;
use super::examine::Facts;
use crate::drive::{approval_meta, report_of};
use crate::engine::Engine;
use crate::worker::TaskPlan;

/// What became of one repair: none if there was nothing to do.
pub(super) type Treated = Option<Result<(), String>>;

/// Repairs one run; an answer for each ailment.
pub(super) async fn repair(
    engine: &Engine,
    store: &Arc<dyn Store>,
    facts: &Facts,
    ailments: &[Ailment],
) -> Vec<Treated> {
    let surgery = Surgery { engine, store, facts };
    let curable: Vec<bool> = ailments.iter().map(is_curable).collect();
    if !curable.contains(&true) {
        return ailments.iter().map(|_| None).collect();
    }
    let done = surgery.operate(ailments).await;
    let answer = |(ailment, curable): (&Ailment, bool)| {
        curable.then(|| match (&done, ailment) {
            (Ok(unheard), Ailment::UnheardChild { child, .. }) if unheard.contains(child) => {
                Err(format!("run {child} is gone, and nothing says how it ended"))
            }
            (Ok(_), _) => Ok(()),
            (Err(error), _) => Err(error.clone()),
        })
    };
    ailments.iter().zip(curable).map(answer).collect()
}

/// Whether something can be done that would not happen by itself.
fn is_curable(ailment: &Ailment) -> bool {
    !matches!(ailment, Ailment::LeaseOver { .. } | Ailment::Unreadable { .. })
}

struct Surgery<'a> {
    engine: &'a Engine,
    store: &'a Arc<dyn Store>,
    facts: &'a Facts,
}

impl Surgery<'_> {
    /// Children of which nothing could be learned, if all went well.
    async fn operate(&self, ailments: &[Ailment]) -> Result<Vec<RunId>, String> {
        let claimed = self.seize().await?;
        let run = claimed.run.clone();
        let fixed = self.fix(&claimed, ailments).await;
        let release = Release { run, fence: claimed.fence, again: true };
        let released = self.store.release(vec![release]).await.pop();
        self.engine.inner.board.somebody_woken();
        // What was queued anew may be for a worker that rests.
        self.engine.inner.board.somebody_has_tasks();
        let unheard = fixed?;
        match released {
            Some(Err(error)) => Err(format!("it is repaired and could not be given back: {error}")),
            Some(Ok(())) | None => Ok(unheard),
        }
    }

    async fn seize(&self) -> Result<Claimed, String> {
        let Some(lease) = self.engine.inner.board.lease() else {
            return Err("this engine has no lease; a repair needs one that drives runs".to_owned());
        };
        let pick = Pick::Seize(self.facts.run().clone());
        let id = self.engine.inner.next_claim();
        let claim = Claim { lease, id, limit: 1, pick, serves: Serves::Everything };
        let claimed = self.store.claim(claim).await.map_err(|error| error.to_string())?;
        claimed.into_iter().next().ok_or_else(|| "it has ended meanwhile".to_owned())
    }

    async fn fix(&self, claimed: &Claimed, ailments: &[Ailment]) -> Result<Vec<RunId>, String> {
        let mut unheard = Vec::new();
        // What is too many goes first: a timer that was moved is stopped and started again.
        let mut removal = Commit::new(claimed.run.clone(), claimed.fence, claimed.next);
        let mut commit = removal.clone();
        for ailment in ailments {
            match ailment {
                Ailment::MissingTimer { key, kind, due: Some(due) } => commit.timers.push(timer(key, *kind, *due)),
                Ailment::MissingTimer { key, due: None, .. } => commit.timers.extend(self.heartbeat(key)),
                Ailment::MovedTimer { key, kind, due, .. } => {
                    removal.timers_cancelled.push(TimerRef { key: key.clone(), kind: *kind });
                    commit.timers.push(timer(key, *kind, *due));
                }
                Ailment::OrphanedTimer { key, kind } => {
                    removal.timers_cancelled.push(TimerRef { key: key.clone(), kind: *kind });
                }
                Ailment::MissingWait { key, .. } => self.open_wait(key, &mut commit),
                Ailment::OrphanedWait { key } => {
                    removal.waits_closed.push(ClosedWait { key: key.clone(), cause: CloseCause::Cancelled });
                }
                Ailment::MissingTask { key, .. } => commit.tasks.extend(self.task(key)),
                Ailment::OrphanedTask { key } => removal.tasks_cancelled.push(key.clone()),
                Ailment::UnheardChild { child, .. } => {
                    if !self.tell_of(child).await? {
                        unheard.push(child.clone());
                    }
                }
                Ailment::NoWakeSource
                | Ailment::ForgottenWake
                | Ailment::LeaseOver { .. }
                | Ailment::Unreadable { .. } => {}
            }
        }
        for commit in [removal, commit] {
            self.commit(commit).await?;
        }
        Ok(unheard)
    }

    fn open_wait(&self, key: &Key, commit: &mut Commit) {
        let wait = |kind| NewWait {
            key: key.clone(),
            kind,
            name: None,
            token: None,
            heartbeat: None,
            assignee: None,
            meta: None,
        };
        match self.facts.start_of(key) {
            Some(Event::SignalAwaited { name, .. }) => {
                commit.waits.push(NewWait { name: Some(name.clone()), ..wait(WaitKind::Signal) });
            }
            Some(Event::ApprovalRequested { title, assignee, .. }) => {
                let (assignee, meta) = (assignee.clone(), approval_meta(title));
                commit.waits.push(NewWait { assignee, meta, ..wait(WaitKind::Approval) });
            }
            Some(Event::CallbackCreated { heartbeat_ms, .. }) => {
                let inner = &self.engine.inner;
                let token = Some((inner.settings.token)(self.facts.run(), self.facts.generation(), key));
                let heartbeat = heartbeat_ms.map(Duration::from_millis);
                commit.waits.push(NewWait { token, heartbeat, ..wait(WaitKind::Callback) });
            }
            _ => {}
        }
    }

    /// The silence of a callback counts from now: the last sign of life is not in the journal.
    fn heartbeat(&self, key: &Key) -> Option<NewTimer> {
        let Some(Event::CallbackCreated { heartbeat_ms: Some(silence), .. }) = self.facts.start_of(key) else {
            return None;
        };
        let due = self.engine.inner.time.now() + Duration::from_millis(*silence);
        Some(timer(key, TimerKind::Heartbeat, due))
    }

    /// The task as it was scheduled. Attempts that were made at it are not in the journal: it has all of them once more.
    fn task(&self, key: &Key) -> Option<NewTask> {
        let Some(Event::TaskScheduled { task, name, queue, plan, args, .. }) = self.facts.start_of(key) else {
            return None;
        };
        let plan = TaskPlan::of(plan.as_deref());
        Some(NewTask {
            id: task.clone(),
            key: Some(key.clone()),
            name: name.clone(),
            queue: queue.clone(),
            priority: plan.priority,
            args: args.clone(),
            available_at: plan.available_at,
            meta: Some(plan.policy.encode()),
        })
    }

    /// Leaves the end of a child for its parent; whether the child is there to tell.
    async fn tell_of(&self, child: &RunId) -> Result<bool, String> {
        let key = RunKey::new(self.facts.run().namespace.clone(), child.clone());
        let view = match self.store.get(key.clone()).await {
            Err(StoreError::NotFound(_) | StoreError::Deleted { .. }) => return Ok(false),
            view => view.map_err(|error| error.to_string())?,
        };
        let mut excerpt =
            Excerpt { run: key, generation: Some(view.generation), from: view.next, limit: LIST_PAGE_MAX };
        excerpt.from.0 = excerpt.from.0.saturating_sub(1);
        let last = self.store.excerpt(excerpt).await.map_err(|error| error.to_string())?.pop();
        let Some(delivery) = last.and_then(|record| report_of(&view, &Event::decode(&record).ok()?)) else {
            return Ok(false);
        };
        let delivered = self.store.deliver(vec![delivery]).await.pop();
        delivered.map_or(Ok(false), |answer| answer.map(|_| true).map_err(|error| error.to_string()))
    }

    /// Nothing of it is in the journal, so that a commit that is sent again does what it did before.
    async fn commit(&self, commit: Commit) -> Result<(), String> {
        if commit == Commit::new(commit.run.clone(), commit.fence, commit.expected) {
            return Ok(());
        }
        match self.store.commit(vec![commit]).await.pop() {
            Some(Ok(_)) | None => Ok(()),
            Some(Err(CommitError::Unknown(txn))) => match self.store.resolve(txn).await {
                Ok(Resolution::Applied) => Ok(()),
                Ok(Resolution::NotApplied) => Err("the reply was lost; try again".to_owned()),
                Err(error) => Err(error.to_string()),
            },
            Some(Err(error)) => Err(error.to_string()),
        }
    }
}

fn timer(key: &Key, kind: TimerKind, due: outlast_core::time::Timestamp) -> NewTimer {
    NewTimer { timer: TimerRef { key: key.clone(), kind }, due }
}
