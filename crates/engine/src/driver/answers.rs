//! What the store answered, and what that means for a run.

use outlast_core::commit::{Commit, Then};
use outlast_core::id::{Generation, Index};
use outlast_core::planted;
use outlast_store::{CommitError, Committed, Created, LoadFrom, Loaded, Rejection, Resolution, StoreError};

use super::calls::{Creation, Done, Sent, Wanted};
use super::ready::RunNo;
use super::{Driver, Owned, Place, RELOADS_MAX, Slot, nothing_loaded};
use crate::drive::{Applied, Hints};
use crate::meters;

impl Driver {
    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Created(created) => created.into_iter().for_each(|(creation, answer)| self.created(creation, answer)),
            Done::Loaded(loaded) => loaded.into_iter().for_each(|(no, answer)| self.loaded(no, answer)),
            Done::Inbox(no, answer, more) => self.inbox(no, answer, more),
            Done::Committed(asked, commits) => {
                let now = commits.iter().filter_map(|(.., answer)| Some(answer.as_ref().ok()?.now)).max();
                now.into_iter().for_each(|now| self.time.observe(asked, now));
                meters::committed(self.time.since(asked));
                commits.into_iter().for_each(|(no, commit, answer)| self.committed(no, commit, answer));
            }
            Done::Terminated(order, ended) => self.terminated(*order, ended),
            Done::Transacted(no, transact, answer) => self.transacted(no, transact, answer),
            Done::Resolved(no, Sent::Commit(commit), Resolution::Applied) => self.applied(no, &commit),
            Done::Resolved(no, Sent::Transact(_), Resolution::Applied) => self.transaction_applied(no),
            Done::Resolved(no, sent, Resolution::NotApplied) | Done::Again(no, sent) => self.send_again(no, sent),
            Done::Nothing => {}
        }
    }

    fn created(&mut self, mut creation: Creation, answer: Result<Created, StoreError>) {
        if let (Ok(Created::Created { fence, at }), Some(_)) = (&answer, creation.new.owner) {
            self.time.has_passed(*at);
            let new = &creation.new;
            let owned = Owned {
                run: new.run.clone(),
                fence: *fence,
                generation: Generation(0),
                next: Index(new.history.len() as u64),
                workflow: new.workflow.clone(),
                version: new.version.clone(),
                parent: new.parent.clone(),
            };
            let slot = Slot::Loading { owned, hints: Hints::default(), hot: None };
            let no = self.place(new.run.clone(), slot);
            if new.history.is_empty() && new.signals.is_empty() {
                // Nothing can be there that is not known here.
                let nothing = nothing_loaded(new.run.clone(), Generation(0), Index(0));
                self.restore(no, Loaded { input: new.input.clone(), ..nothing });
            } else {
                self.loads.push(Wanted { no, run: new.run.clone(), from: LoadFrom::Index(Index(0)), taking: None });
            }
        } else if creation.new.owner.is_some() {
            // It was counted, and is not driven here after all.
            self.board.driven_one_less();
        }
        creation.answer(answer);
    }

    fn loaded(&mut self, no: RunNo, answer: Result<Loaded, StoreError>) {
        match answer {
            Ok(loaded) => self.restore(no, loaded),
            Err(StoreError::Corrupt { what, detail }) if !planted!("damaged-run-forgotten") => {
                let Some(Place { slot: Slot::Loading { owned, .. }, .. }) = self.places.get(&no) else { return };
                let (run, fence, next) = (owned.run.clone(), owned.fence, owned.next);
                let reason = StoreError::Corrupt { what, detail }.to_string();
                self.park(no, &run, fence, next, reason);
            }
            Err(error) => {
                tracing::warn!(%error, "a run could not be loaded");
                self.forget(no);
            }
        }
    }

    /// An inbox was read, or not; whether more came meanwhile.
    fn inbox(&mut self, no: RunNo, answer: Result<Loaded, StoreError>, more: bool) {
        let Some(place) = self.places.get_mut(&no) else { return };
        let Slot::Live(run) = &mut place.slot else {
            // It is being loaded again, maybe from before this; its resume is taken, so it must be read once more.
            place.woken = true;
            return;
        };
        run.set_reading(false);
        let again = std::mem::take(&mut place.woken) || more;
        match answer {
            Ok(loaded) if loaded.generation == run.identity().generation => run.receive(loaded.inbox),
            Ok(_) => {}
            Err(StoreError::Fenced { .. } | StoreError::NotFound(_) | StoreError::Deleted { .. }) => {
                self.forget(no);
                return;
            }
            Err(error) => {
                // It was woken, and so there is something in it: a turn that ended now would only begin again.
                tracing::warn!(%error, "an inbox could not be read; it is read again");
                run.set_reading(true);
                let call = self.calls.read_inbox_again(no, place.key.clone(), run.fence(), run.durable());
                self.under_way.push(call);
                return;
            }
        }
        if again {
            self.read_inbox(no);
        }
        self.advance(no);
    }

    fn committed(&mut self, no: RunNo, commit: Commit, answer: Result<Committed, CommitError>) {
        match answer {
            Ok(_) => self.applied(no, &commit),
            Err(CommitError::Unknown(_)) if planted!("unknown-taken-for-lost") => {
                self.send_again(no, Sent::Commit(commit));
            }
            Err(CommitError::Unknown(_)) if planted!("unknown-taken-for-applied") => self.applied(no, &commit),
            Err(CommitError::Unknown(txn)) => {
                self.under_way.push(self.calls.resolve(no, Sent::Commit(commit), txn));
            }
            Err(CommitError::NotApplied(error)) if error.is_retryable() => {
                tracing::warn!(run = %commit.run, %error, "a commit could not be written; it is tried again");
                let Some(place) = self.places.get_mut(&no) else { return };
                place.resends += 1;
                self.under_way.push(self.calls.again(no, Sent::Commit(commit), place.resends));
            }
            Err(CommitError::Rejected(rejection)) => self.rejected(no, &commit, rejection),
            Err(error) => self.lost(no, &commit, &error),
        }
    }

    /// A commit that will not be: somebody else has the run, or the store cannot take it.
    pub(super) fn lost(&mut self, no: RunNo, commit: &Commit, error: &CommitError) {
        meters::refused(error);
        let gone = match error {
            CommitError::NotApplied(StoreError::NotFound(_) | StoreError::Deleted { .. }) => true,
            CommitError::NotApplied(_) => false,
            _ => true,
        };
        let live = matches!(self.places.get(&no), Some(Place { slot: Slot::Live(_), .. }));
        if gone || !live {
            tracing::warn!(run = %commit.run, %error, "the run is no longer driven here");
            self.forget(no);
            return;
        }
        self.park(no, &commit.run, commit.fence, commit.expected, format!("its commit cannot be stored: {error}"));
    }

    fn applied(&mut self, no: RunNo, commit: &Commit) {
        if let Some(due) = commit.timers.iter().map(|timer| timer.due).min() {
            self.board.timer_due(due);
        }
        if !commit.deliveries.is_empty() || !commit.children.is_empty() {
            self.board.somebody_woken();
        }
        self.tell_workers(commit);
        let Some(place) = self.places.get_mut(&no) else { return };
        if std::mem::take(&mut place.suspect) {
            self.board.suspect_settled();
        }
        let Slot::Live(run) = &mut place.slot else {
            // Its last commit: it is parked.
            self.forget(no);
            self.board.parked(&commit.run);
            return;
        };
        (place.resends, place.reloads) = (0, 0);
        place.progressed |= !commit.events.is_empty();
        let Some(mut applied) = run.committed() else { return };
        self.board.publish(&commit.run, run.identity().generation, std::mem::take(&mut applied.emitted));
        if !self.park_if_stopped(no) {
            self.after(no, commit, applied);
        }
    }

    pub(super) fn tell_workers(&self, commit: &Commit) {
        if !commit.tasks_cancelled.is_empty() {
            self.board.somebody_cancelled_tasks();
        }
        for task in &commit.tasks {
            match task.available_at {
                Some(at) => self.board.task_due(at),
                None => self.board.somebody_has_tasks(),
            }
        }
    }

    pub(super) fn after(&mut self, no: RunNo, commit: &Commit, applied: Applied) {
        match applied.then {
            Then::Continue => self.advance(no),
            Then::Suspend => {
                let left = self.forget(no);
                left.iter().for_each(Place::count_turn);
                if let Some(Place { slot: Slot::Live(run), woken, .. }) = left {
                    // A wake that came meanwhile is the unclaimed resume, and outlives the turn.
                    if woken {
                        self.board.somebody_woken();
                    }
                    if !self.draining {
                        self.hot.put(*run);
                    }
                }
            }
            Then::Pause => {
                self.forget(no);
            }
            Then::Park { .. } => {
                self.forget(no);
                self.board.parked(&commit.run);
            }
            Then::Finish(_) => {
                self.forget(no).iter().for_each(Place::count_turn);
                self.board.ended(commit);
            }
            Then::ContinueAsNew { version, .. } => self.next_generation(no, version),
        }
    }

    /// The same run, a new journal: its mailbox moved along.
    fn next_generation(&mut self, no: RunNo, version: Option<outlast_core::id::Version>) {
        let Some(Place { slot: Slot::Live(run), .. }) = self.places.get(&no) else { return };
        let mut owned = Owned::of(run);
        owned.generation = owned.generation.next();
        owned.next = Index(0);
        owned.version = version.unwrap_or(owned.version);
        self.reload(no, owned, Hints::default());
        if let Some(place) = self.places.get_mut(&no) {
            place.reloads = 0;
        }
    }

    /// The store knows something the program does not: an answer that came first, a child's id that is taken. The run is
    /// read again, and what was learned goes with it.
    pub(super) fn rejected(&mut self, no: RunNo, commit: &Commit, rejection: Rejection) {
        let Some(place) = self.places.get_mut(&no) else { return };
        let slot = std::mem::replace(&mut place.slot, Slot::Leaving);
        let Slot::Live(run) = slot else {
            self.forget(no);
            return;
        };
        let (reloads, stopped) = (place.reloads, place.stopped.take());
        let (identity, fence, next) = (run.identity().clone(), run.fence(), run.durable());
        if let Some(reason) = stopped {
            self.park(no, &identity.run, fence, next, reason);
            return;
        }
        if reloads >= RELOADS_MAX || matches!(rejection, Rejection::Limit(_) | Rejection::ForeignNamespace { .. }) {
            self.park(no, &identity.run, fence, next, format!("its commit was rejected: {rejection}"));
            return;
        }
        let owned = Owned::of(&run);
        let mut hints = run.salvage(commit);
        if let Rejection::ChildExists { child } = rejection {
            hints.strangers.insert(child);
        }
        self.reload(no, owned, hints);
    }
}
