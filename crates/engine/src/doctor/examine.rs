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
        match journal.get(open.since) {
            Some(Event::SignalAwaited { .. }) => self.wait(journal, open, WaitKind::Signal, ailments),
            Some(Event::ApprovalRequested { .. }) => self.wait(journal, open, WaitKind::Approval, ailments),
            Some(Event::CallbackCreated { .. }) => self.wait(journal, open, WaitKind::Callback, ailments),
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
            _ => self.timers(journal, open, ailments),
        }
    }

    /// Timers of an operation that are not there, or set to another instant.
    fn timers(&self, journal: &Journal, open: &RecordedOperation, ailments: &mut Vec<Ailment>) {
        for Owed { kind, due } in owed(journal, open) {
            let key = &open.key;
            let found = self.awaiting.iter().find_map(|awaited| match awaited {
                Awaited::Timer { key: of, kind: why, due } if of == key && *why == kind => Some(*due),
                _ => None,
            });
            let fired = |item: &InboxItem| {
                let same = item.key.as_ref() == Some(key) && item.name.as_deref() == Some(kind.name());
                item.kind == InboxKind::Timer && same
            };
            match (found, due) {
                (Some(found), Some(due)) if found != due => {
                    ailments.push(Ailment::MovedTimer { key: key.clone(), kind, due, found });
                }
                (Some(_), _) => {}
                (None, _) if self.inbox.iter().any(fired) => {}
                (None, due) => ailments.push(Ailment::MissingTimer { key: key.clone(), kind, due }),
            }
        }
    }

    fn wait(&self, journal: &Journal, open: &RecordedOperation, kind: WaitKind, ailments: &mut Vec<Ailment>) {
        let row = self.awaiting.iter().find_map(|awaited| match awaited {
            Awaited::Wait { key, answered, .. } if *key == open.key => Some(*answered),
            _ => None,
        });
        match row {
            // Its deadlines are of no interest any more.
            Some(true) => {}
            Some(false) => self.timers(journal, open, ailments),
            None => {
                ailments.push(Ailment::MissingWait { key: open.key.clone(), kind });
                self.timers(journal, open, ailments);
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

/// A timer that an open operation should have.
struct Owed {
    kind: TimerKind,
    /// None where every sign of life sets it anew.
    due: Option<Timestamp>,
}

/// The timers of an open operation, by the journal.
fn owed(journal: &Journal, open: &RecordedOperation) -> Vec<Owed> {
    let latest = match open.kind {
        OperationKind::Step | OperationKind::Condition => open.latest,
        _ => open.since,
    };
    let timer = |kind, due| vec![Owed { kind, due: Some(due) }];
    let timeout = |deadline: &Option<Timestamp>| deadline.map(|due| timer(TimerKind::Timeout, due)).unwrap_or_default();
    match journal.get(latest) {
        Some(Event::TimerStarted { deadline, .. }) => timer(TimerKind::Delay, *deadline),
        Some(Event::StepRetryScheduled { next_at, .. })
        | Some(Event::ConditionChecked { next_at: Some(next_at), .. }) => timer(TimerKind::Retry, *next_at),
        Some(Event::SignalAwaited { deadline, .. } | Event::ApprovalRequested { deadline, .. }) => timeout(deadline),
        Some(Event::CallbackCreated { deadline, heartbeat_ms, .. }) => {
            let heartbeat = heartbeat_ms.map(|_| Owed { kind: TimerKind::Heartbeat, due: None });
            timeout(deadline).into_iter().chain(heartbeat).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the journal has something open that the row is for.
fn is_owed(journal: &Journal, awaited: &Awaited) -> bool {
    let Some(open) = journal.operation(key_of(awaited)).filter(|open| journal.is_open(&open.key)) else {
        return false;
    };
    match awaited {
        Awaited::Timer { kind, .. } => owed(journal, &open).iter().any(|owed| owed.kind == *kind),
        Awaited::Wait { .. } | Awaited::Task { .. } | Awaited::Child { .. } => true,
    }
}

/// Rows that belong to nothing.
fn orphaned(journal: &Journal, awaited: &Awaited, ailments: &mut Vec<Ailment>) {
    if is_owed(journal, awaited) {
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

/// Of runs that have ended so many are looked at, the newest first: to ask the reference store for what one owns takes a look at
/// all of them.
#[cfg(feature = "testing")]
const ENDED_MAX: usize = 2_000;

/// Everything that is wrong with the runs of a store, in all namespaces; as much of it as the store tells. Those that have ended
/// own nothing.
#[cfg(feature = "testing")]
pub(crate) async fn examine_all(store: &dyn Store) -> Vec<(RunKey, Ailment)> {
    use outlast_store::{Filter, LIST_PAGE_MAX};

    let (mut found, mut ended) = (Vec::new(), 0);
    let Ok(leases) = store.leases().await else { return found };
    for namespace in store.namespaces().await.unwrap_or_default() {
        let mut filter = Filter { limit: LIST_PAGE_MAX, ..Filter::all(namespace) };
        while let Ok(page) = store.list(filter.clone()).await {
            for view in page.runs {
                ended += usize::from(view.status.is_terminal());
                if view.status.is_terminal() && ended > ENDED_MAX {
                    continue;
                }
                let run = view.run.clone();
                let ailments = examine_one(store, view, &leases).await;
                found.extend(ailments.into_iter().map(|ailment| (run.clone(), ailment)));
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
    }
    found
}

#[cfg(feature = "testing")]
async fn examine_one(store: &dyn Store, view: RunView, leases: &[Lease]) -> Vec<Ailment> {
    let mut ailments = Vec::new();
    if view.status.is_terminal() {
        let nothing = Journal::load([]).expect("a journal without events");
        let left = store.awaiting(view.run).await.unwrap_or_default();
        left.iter().for_each(|awaited| orphaned(&nothing, awaited, &mut ailments));
    } else if let Ok(Some(facts)) = Facts::read(store, view, leases).await {
        ailments = facts.examine();
    }
    // A crash is part of many stories, and a journal that cannot be read of some.
    ailments.retain(|ailment| !matches!(ailment, Ailment::LeaseOver { .. } | Ailment::Unreadable { .. }));
    ailments
}
