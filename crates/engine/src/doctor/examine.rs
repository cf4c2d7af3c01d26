//! What a run's row, its journal and its side rows say, and where they disagree.

use outlast_core::commit::{InboxItem, InboxKind, Status, TimerKind, WaitKind};
use outlast_core::event::Event;
use outlast_core::id::{Generation, Index, Key, RunKey};
use outlast_core::journal::{Journal, RecordedOperation};
use outlast_core::operation::OperationKind;
use outlast_core::time::Timestamp;
use outlast_store::{Awaited, Lease, Load, LoadFrom, RunView, Store, StoreError};

use super::Ailment;

/// How often a run is read that changes meanwhile. One that goes on changing is well.
const TRIES_MAX: u32 = 3;

/// What is known of a run that has not ended.
pub(super) struct Facts {
    view: RunView,
    journal: Result<Journal, String>,
    awaiting: Vec<Awaited>,
    inbox: Vec<InboxItem>,
    lease_over: bool,
    /// Flow control holds it back, and lets it go when there is room.
    held: bool,
}

impl Facts {
    /// Reads a run, all of it as of one moment; none if it is being driven, has ended, or changes too often.
    pub(super) async fn read(
        store: &dyn Store,
        mut view: RunView,
        leases: &[Lease],
    ) -> Result<Option<Facts>, StoreError> {
        for _ in 0..TRIES_MAX {
            if !matches!(view.status, Status::Queued | Status::Running | Status::Waiting) {
                return Ok(None);
            }
            let lease_over = view.owner.is_some_and(|owner| is_over(leases, owner));
            if view.owner.is_some() && !lease_over {
                return Ok(None);
            }
            let load = Load { run: view.run.clone(), from: LoadFrom::Index(Index(0)) };
            let (journal, inbox) = match store.load(vec![load]).await.pop() {
                Some(Ok(loaded)) => {
                    let numbered = loaded.events.into_iter().enumerate();
                    let numbered = numbered.map(|(index, record)| (Index(index as u64), record));
                    (Journal::load(numbered).map_err(|error| error.to_string()), loaded.inbox)
                }
                Some(Err(StoreError::Corrupt { what, detail })) => {
                    (Err(StoreError::Corrupt { what, detail }.to_string()), Vec::new())
                }
                Some(Err(StoreError::NotFound(_) | StoreError::Deleted { .. })) | None => return Ok(None),
                Some(Err(error)) => return Err(error),
            };
            let awaiting = match store.awaiting(view.run.clone()).await {
                Err(StoreError::Corrupt { .. }) if journal.is_err() => Vec::new(),
                awaiting => awaiting?,
            };
            let held = view.status == Status::Queued && store.held(view.run.clone()).await?.is_some();
            let after = match store.get(view.run.clone()).await {
                Err(StoreError::NotFound(_) | StoreError::Deleted { .. }) => return Ok(None),
                after => after?,
            };
            if after == view {
                return Ok(Some(Facts { view, journal, awaiting, inbox, lease_over, held }));
            }
            view = after;
        }
        Ok(None)
    }

    pub(super) fn run(&self) -> &RunKey {
        &self.view.run
    }

    pub(super) fn generation(&self) -> Generation {
        self.view.generation
    }

    /// The event with which an open operation began.
    pub(super) fn start_of(&self, key: &Key) -> Option<&Event> {
        let journal = self.journal.as_ref().ok()?;
        journal.get(journal.operation(key)?.since)
    }

    /// Everything that is wrong.
    pub(super) fn examine(&self) -> Vec<Ailment> {
        if let Some(lease) = self.view.owner.filter(|_| self.lease_over) {
            // Where its turn ended is not known before somebody takes it.
            return vec![Ailment::LeaseOver { lease }];
        }
        let journal = match &self.journal {
            Ok(journal) => journal,
            Err(why) => return vec![Ailment::Unreadable { why: why.clone() }],
        };
        let mut ailments = Vec::new();
        // A run that nobody has driven yet has no rows, even if it began with a history.
        if self.view.status == Status::Waiting {
            journal.open().iter().for_each(|open| self.missing(journal, open, &mut ailments));
            self.awaiting.iter().for_each(|awaited| orphaned(journal, awaited, &mut ailments));
        }
        if !self.view.ready && !self.held {
            if self.has_urgent_mail(journal) {
                ailments.push(Ailment::ForgottenWake);
            } else if self.awaiting.is_empty() && ailments.is_empty() {
                ailments.push(Ailment::NoWakeSource);
            }
        }
        ailments
    }

    /// What an open operation should have and has not.
    fn missing(&self, journal: &Journal, open: &RecordedOperation, ailments: &mut Vec<Ailment>) {
        let key = &open.key;
        let latest = match open.kind {
            OperationKind::Step | OperationKind::Condition => open.latest,
            _ => open.since,
        };
        match journal.get(latest) {
            Some(Event::TimerStarted { deadline, .. }) => self.timer(key, TimerKind::Delay, *deadline, ailments),
            Some(Event::StepRetryScheduled { next_at, .. }) => self.timer(key, TimerKind::Retry, *next_at, ailments),
            Some(Event::ConditionChecked { next_at: Some(next_at), .. }) => {
                self.timer(key, TimerKind::Retry, *next_at, ailments);
            }
            Some(Event::SignalAwaited { deadline, .. }) => self.wait(key, WaitKind::Signal, *deadline, ailments),
            Some(Event::ApprovalRequested { deadline, .. }) => self.wait(key, WaitKind::Approval, *deadline, ailments),
            Some(Event::CallbackCreated { deadline, .. }) => self.wait(key, WaitKind::Callback, *deadline, ailments),
            Some(Event::TaskScheduled { task, .. }) => {
                let there = self.awaits(key, |awaited| matches!(awaited, Awaited::Task { .. }))
                    || self.has_mail(key, &[InboxKind::TaskFinished, InboxKind::TaskFailed]);
                if !there {
                    ailments.push(Ailment::MissingTask { key: key.clone(), task: task.clone() });
                }
            }
            Some(Event::ChildStarted { child, .. }) => {
                let there = self.awaits(key, |awaited| matches!(awaited, Awaited::Child { .. }))
                    || self.has_mail(key, &[InboxKind::Child]);
                if !there {
                    ailments.push(Ailment::UnheardChild { key: key.clone(), child: child.clone() });
                }
            }
            _ => {}
        }
    }

    fn timer(&self, of: &Key, why: TimerKind, due: Timestamp, ailments: &mut Vec<Ailment>) {
        let found = self.awaiting.iter().find_map(|awaited| match awaited {
            Awaited::Timer { key, kind, due } if key == of && *kind == why => Some(*due),
            _ => None,
        });
        let fired = |item: &InboxItem| {
            let same = item.key.as_ref() == Some(of) && item.name.as_deref() == Some(why.name());
            item.kind == InboxKind::Timer && same
        };
        match found {
            Some(found) if found == due => {}
            Some(found) => ailments.push(Ailment::MovedTimer { key: of.clone(), kind: why, due, found }),
            None if self.inbox.iter().any(fired) => {}
            None => ailments.push(Ailment::MissingTimer { key: of.clone(), kind: why, due }),
        }
    }

    fn wait(&self, of: &Key, kind: WaitKind, deadline: Option<Timestamp>, ailments: &mut Vec<Ailment>) {
        let row = self.awaiting.iter().find_map(|awaited| match awaited {
            Awaited::Wait { key, answered, .. } if key == of => Some(*answered),
            _ => None,
        });
        match (row, deadline) {
            // Its deadline is of no interest any more.
            (Some(true), _) | (Some(false), None) => {}
            (Some(false), Some(deadline)) => self.timer(of, TimerKind::Timeout, deadline, ailments),
            (None, deadline) => {
                ailments.push(Ailment::MissingWait { key: of.clone(), kind });
                if let Some(deadline) = deadline {
                    self.timer(of, TimerKind::Timeout, deadline, ailments);
                }
            }
        }
    }

    fn awaits(&self, key: &Key, is: impl Fn(&Awaited) -> bool) -> bool {
        self.awaiting.iter().any(|awaited| key_of(awaited) == key && is(awaited))
    }

    fn has_mail(&self, key: &Key, kinds: &[InboxKind]) -> bool {
        self.inbox.iter().any(|item| item.key.as_ref() == Some(key) && kinds.contains(&item.kind))
    }

    /// Whether something was left that the run would read at once. Signals may lie there until somebody asks for them, and
    /// in a pause that is about to begin nothing is read but what it waits for, and what ends it.
    fn has_urgent_mail(&self, journal: &Journal) -> bool {
        let is_pausing = self.is_pausing(journal);
        self.inbox.iter().any(|item| match item.kind {
            InboxKind::Signal => !is_pausing && self.is_asked_for(item),
            InboxKind::Approval | InboxKind::Callback | InboxKind::Timer | InboxKind::Child | InboxKind::Pause => {
                !is_pausing
            }
            InboxKind::TaskFinished
            | InboxKind::TaskFailed
            | InboxKind::Cancel
            | InboxKind::Resume
            | InboxKind::Intervene => true,
        })
    }

    /// Whether a pause was asked for that waits for tasks: those of a flow end first, and what comes of them wakes it.
    fn is_pausing(&self, journal: &Journal) -> bool {
        let is_flow = journal.events().iter().any(Event::is_mark);
        let has_tasks = self.awaiting.iter().any(|awaited| matches!(awaited, Awaited::Task { .. }));
        is_flow && has_tasks && self.inbox.iter().any(|item| item.kind == InboxKind::Pause)
    }

    fn is_asked_for(&self, signal: &InboxItem) -> bool {
        self.awaiting.iter().any(|awaited| match awaited {
            Awaited::Wait { key, name: Some(name), answered, .. } => match &signal.key {
                Some(aimed) => aimed == key && *answered,
                None => signal.name.as_ref() == Some(name),
            },
            _ => false,
        })
    }
}

/// Rows that belong to nothing.
fn orphaned(journal: &Journal, awaited: &Awaited, ailments: &mut Vec<Ailment>) {
    let key = key_of(awaited);
    if journal.is_open(key) {
        return;
    }
    ailments.push(match awaited {
        Awaited::Timer { key, kind, .. } => Ailment::OrphanedTimer { key: key.clone(), kind: *kind },
        Awaited::Wait { key, .. } => Ailment::OrphanedWait { key: key.clone() },
        Awaited::Task { key, .. } => Ailment::OrphanedTask { key: key.clone() },
        // A child that nobody awaits any more was told to stop, and may take its time; or it was let go.
        Awaited::Child { .. } => return,
    });
}

fn key_of(awaited: &Awaited) -> &Key {
    let (Awaited::Timer { key, .. }
    | Awaited::Wait { key, .. }
    | Awaited::Task { key, .. }
    | Awaited::Child { key, .. }) = awaited;
    key
}

fn is_over(leases: &[Lease], owner: outlast_core::id::LeaseId) -> bool {
    leases.iter().find(|lease| lease.id == owner).is_none_or(|lease| lease.until <= lease.now)
}

/// Everything that is wrong with the runs of a store, in all namespaces; as much of it as the store tells.
#[cfg(feature = "testing")]
pub(crate) async fn examine_all(store: &dyn Store) -> Vec<(RunKey, Ailment)> {
    use outlast_store::{Filter, LIST_PAGE_MAX};

    let mut found = Vec::new();
    let Ok(leases) = store.leases().await else { return found };
    for namespace in store.namespaces().await.unwrap_or_default() {
        let status = vec![Status::Queued, Status::Running, Status::Waiting];
        let filter = Filter { status, limit: LIST_PAGE_MAX, ..Filter::all(namespace) };
        let Ok(page) = store.list(filter).await else { continue };
        for view in page.runs {
            let Ok(Some(facts)) = Facts::read(store, view, &leases).await else { continue };
            // A crash is part of many stories, and a journal that cannot be read of some.
            let ailments = facts
                .examine()
                .into_iter()
                .filter(|ailment| !matches!(ailment, Ailment::LeaseOver { .. } | Ailment::Unreadable { .. }));
            found.extend(ailments.map(|ailment| (facts.run().clone(), ailment)));
        }
    }
    found
}
