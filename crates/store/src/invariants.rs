//! What must hold of a store at every moment, as functions over its public API.
//!
//! Read the world with [`World::read`] while nobody writes, then ask. A broken rule is an `Err` that says which.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Awaited, Excerpt, Filter, LIST_PAGE_MAX, Load, LoadFrom, RunView, Store, StoreError, TaskFilter, TaskView,
};
use outlast_core::commit::{InboxItem, InboxKind, Status};
use outlast_core::event::{Event, Kind};
use outlast_core::id::{DeliveryId, Generation, Index, Key, Namespace, RunKey, SignalName};
use outlast_core::journal::{Journal, RecordedOperation};
use outlast_core::operation::OperationKind;
use outlast_core::record::Record;

/// Whether a rule holds, and if not, what is wrong.
pub type Verdict = Result<(), String>;

/// Everything a namespace shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Its runs.
    pub runs: BTreeMap<RunKey, RunState>,
    /// Its tasks.
    pub tasks: Vec<TaskView>,
}

/// Everything a run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunState {
    /// Where it stands.
    pub view: RunView,
    /// One journal per generation.
    pub journals: Vec<Vec<Record>>,
    /// What others left for it.
    pub inbox: Vec<InboxItem>,
    /// What it waits for.
    pub awaiting: Vec<Awaited>,
    /// Whether flow control holds it back.
    pub held: bool,
}

impl World {
    /// Reads everything; a store that cannot be read is a broken rule too.
    pub async fn read(store: &dyn Store, namespace: &Namespace) -> Result<World, String> {
        let say = |what: &str, error: &dyn std::fmt::Display| format!("{what} cannot be read: {error}");
        let filter = Filter { limit: LIST_PAGE_MAX, ..Filter::all(namespace.clone()) };
        let page = store.list(filter).await.map_err(|error| say("the list of runs", &error))?;
        if page.next.is_some() {
            return Err("there are more runs than one page holds".to_owned());
        }
        let mut runs = BTreeMap::new();
        for view in page.runs {
            let key = view.run.clone();
            let state = RunState::read(store, view).await.map_err(|error| format!("{key}: {error}"))?;
            runs.insert(key, state);
        }
        let all = TaskFilter { limit: LIST_PAGE_MAX, ..TaskFilter::all(namespace.clone()) };
        let tasks = store.tasks(all).await.map_err(|error| say("tasks", &error))?.tasks;
        Ok(World { runs, tasks })
    }

    /// Every rule that needs no knowledge of what was asked of the store.
    pub fn check(&self) -> Verdict {
        for (key, run) in &self.runs {
            for (_, verdict) in run.verdicts(&self.tasks) {
                verdict.map_err(|broken| format!("{key}: {broken}"))?;
            }
        }
        Ok(())
    }

    /// The decoded events of a run, of all generations, in order.
    pub fn events(&self, run: &RunKey) -> Vec<Event> {
        self.runs.get(run).map_or_else(Vec::new, RunState::events)
    }
}

impl RunState {
    async fn read(store: &dyn Store, view: RunView) -> Result<RunState, String> {
        let say = |error: &dyn std::fmt::Display| error.to_string();
        let run = view.run.clone();
        let mut journals = Vec::new();
        for generation in 0..=view.generation.0 {
            let (run, generation) = (run.clone(), Some(Generation(generation)));
            let excerpt = Excerpt { run, generation, from: Index(0), limit: LIST_PAGE_MAX };
            journals.push(whole(store, excerpt).await.map_err(|error| say(&error))?);
        }
        let load = Load { run: run.clone(), from: LoadFrom::Index(Index(0)) };
        let loaded = store.load(vec![load]).await.remove(0).map_err(|error| say(&error))?;
        if Some(&loaded.events) != journals.last() || loaded.events.len() as u64 != view.next.0 {
            return Err(format!("it stands at {}, and load and excerpt show other journals", view.next));
        }
        let awaiting = store.awaiting(run.clone()).await.map_err(|error| say(&error))?;
        let held = !view.status.is_terminal() && store.held(run).await.map_err(|error| say(&error))?.is_some();
        Ok(RunState { view, journals, inbox: loaded.inbox, awaiting, held })
    }

    /// What each rule says about it, with the number of the invariant. `tasks` are those of its namespace.
    pub fn verdicts(&self, tasks: &[TaskView]) -> [(u8, Verdict); 7] {
        [
            (1, journals_are_legal(self)),
            (3, status_and_journal_agree(self)),
            (4, results_are_recorded_once(self)),
            (5, live_run_has_a_wake_source(self)),
            (5, wake_is_not_forgotten(self)),
            (5, rows_and_journal_agree(self)),
            (6, ended_run_owns_nothing(self, tasks)),
        ]
    }

    /// The decoded events of all generations, in order.
    pub fn events(&self) -> Vec<Event> {
        self.journals.iter().flatten().filter_map(|record| Event::decode(record).ok()).collect()
    }
}

/// A journal, page by page.
async fn whole(store: &dyn Store, mut excerpt: Excerpt) -> Result<Vec<Record>, StoreError> {
    let mut records = Vec::new();
    loop {
        let page = store.excerpt(excerpt.clone()).await?;
        let is_last = excerpt.is_last(&page);
        excerpt = excerpt.after(&page);
        records.extend(page);
        if is_last {
            return Ok(records);
        }
    }
}

/// Invariants 1, 3 and 4: contiguous from 0, nothing after the end, nothing settled twice, as the core sees it.
fn journals_are_legal(run: &RunState) -> Verdict {
    for (generation, records) in run.journals.iter().enumerate() {
        let indexed = records.iter().cloned().enumerate().map(|(index, record)| (Index(index as u64), record));
        let journal =
            Journal::load(indexed).map_err(|error| format!("generation {generation} is not legal: {error}"))?;
        let last = generation + 1 == run.journals.len();
        let continued = matches!(journal.events().last(), Some(Event::RunContinued { .. }));
        if continued == last {
            return Err(format!("generation {generation} of {} ends wrongly", run.journals.len()));
        }
    }
    Ok(())
}

/// Invariant 3: exactly one terminal event, the last one, and the status says the same.
fn status_and_journal_agree(run: &RunState) -> Verdict {
    let events = run.events();
    let terminal: Vec<Kind> = events.iter().filter(|event| event.is_terminal()).map(Event::kind).collect();
    let agreed = match run.view.status {
        Status::Queued | Status::Running | Status::Waiting | Status::Paused | Status::Parked => terminal.is_empty(),
        Status::Completed => terminal == [Kind::RunFinished],
        Status::Failed => terminal == [Kind::RunErrored],
        Status::Cancelled => terminal == [Kind::RunCancelled] || terminal == [Kind::RunTerminated],
    };
    let last = terminal.is_empty() || events.last().is_some_and(Event::is_terminal);
    if agreed && last { Ok(()) } else { Err(format!("it is {:?} with the ends {terminal:?}", run.view.status)) }
}

/// Invariant 4: at most one recorded result per key and generation.
fn results_are_recorded_once(run: &RunState) -> Verdict {
    for (generation, records) in run.journals.iter().enumerate() {
        let mut settled = BTreeSet::new();
        for event in records.iter().filter_map(|record| Event::decode(record).ok()) {
            let result = matches!(event.kind(), Kind::StepFinished | Kind::StepFailed | Kind::TaskFinished);
            if let Some(key) = event.key().filter(|_| result)
                && !settled.insert(key.clone())
            {
                return Err(format!("{key} of generation {generation} has two results"));
            }
        }
    }
    Ok(())
}

/// Whether a driver may come for the run: it is neither over nor stopped by somebody.
fn is_driven(run: &RunState) -> bool {
    match run.view.status {
        // Admitting wakes it, and until then nothing else does.
        Status::Queued if run.held => false,
        Status::Queued | Status::Running | Status::Waiting => true,
        Status::Paused | Status::Parked | Status::Completed | Status::Failed | Status::Cancelled => false,
    }
}

/// Invariant 5: ready, owned, or waiting for something that will wake it.
fn live_run_has_a_wake_source(run: &RunState) -> Verdict {
    let source = run.view.ready || run.view.owner.is_some() || !run.awaiting.is_empty();
    if !is_driven(run) || source { Ok(()) } else { Err("nothing will ever wake it".to_owned()) }
}

/// Invariant 5, the other half: what was left for the run wakes it. Only signals may lie there unasked for.
fn wake_is_not_forgotten(run: &RunState) -> Verdict {
    let open = |name: Option<&str>| {
        run.awaiting.iter().any(|awaited| match awaited {
            Awaited::Wait { name: wanted, answered, .. } => {
                *answered || (wanted.is_some() && wanted.as_deref() == name)
            }
            Awaited::Timer { .. } | Awaited::Task { .. } | Awaited::Child { .. } => false,
        })
    };
    let is_pausing = is_pausing(run);
    let urgent = |item: &&InboxItem| match item.kind {
        InboxKind::Signal if is_pausing => false,
        InboxKind::Signal => match &item.key {
            None => open(item.name.as_deref()),
            // What is for one operation counts as soon as that is open.
            Some(key) => run
                .awaiting
                .iter()
                .any(|awaited| matches!(awaited, Awaited::Wait { key: of, answered: true, .. } if of == key)),
        },
        InboxKind::Approval | InboxKind::Callback | InboxKind::Timer | InboxKind::Child | InboxKind::Pause => {
            !is_pausing
        }
        InboxKind::TaskFinished
        | InboxKind::TaskFailed
        | InboxKind::Cancel
        | InboxKind::Resume
        | InboxKind::Intervene => true,
    };
    let unseen = run.inbox.iter().find(urgent).filter(|_| run.view.owner.is_none());
    let freeing = |item: &&InboxItem| matches!(item.kind, InboxKind::Cancel | InboxKind::Resume);
    match unseen {
        Some(item) if is_driven(run) && !run.view.ready => Err(format!("{item:?} was left and wakes nobody")),
        _ if run.view.status == Status::Paused => match run.inbox.iter().find(freeing) {
            Some(item) => Err(format!("{item:?} was left, and the run stays paused")),
            None => Ok(()),
        },
        Some(_) | None => Ok(()),
    }
}

/// Whether a pause was asked for that waits for tasks: those of a flow end first, and until then nothing else is read. What comes of
/// them wakes it.
fn is_pausing(run: &RunState) -> bool {
    let is_flow = run.events().iter().any(Event::is_mark);
    let has_tasks = run.awaiting.iter().any(|awaited| matches!(awaited, Awaited::Task { .. }));
    is_flow && has_tasks && run.inbox.iter().any(|item| item.kind == InboxKind::Pause)
}

/// Invariants 5 and 6, per operation: what the journal says is open has its row or its fact, and nothing else has one.
fn rows_and_journal_agree(run: &RunState) -> Verdict {
    let records = run.journals.last().map_or(&[][..], Vec::as_slice);
    let indexed = records.iter().cloned().enumerate().map(|(index, record)| (Index(index as u64), record));
    let journal = Journal::load(indexed).map_err(|error| error.to_string())?;
    for awaited in &run.awaiting {
        let (Awaited::Timer { key, .. }
        | Awaited::Wait { key, .. }
        | Awaited::Task { key, .. }
        | Awaited::Child { key, .. }) = awaited;
        // A child that nobody awaits any more was told to stop, and may take its time.
        let left = matches!(awaited, Awaited::Child { .. })
            && journal.operation(key).is_some_and(|known| known.kind == OperationKind::Child);
        if !journal.is_open(key) && !left {
            return Err(format!("{awaited:?} is there, and the journal knows no such open operation"));
        }
    }
    for RecordedOperation { key, kind, .. } in journal.open() {
        let has = |row: fn(&Awaited) -> Option<&Key>, facts: &[InboxKind]| {
            let fact = |item: &InboxItem| item.key.as_ref() == Some(&key) && facts.contains(&item.kind);
            run.awaiting.iter().any(|awaited| row(awaited) == Some(&key)) || run.inbox.iter().any(fact)
        };
        let there = match kind {
            OperationKind::Timer => has(timer_key, &[InboxKind::Timer]),
            OperationKind::Signal | OperationKind::Approval | OperationKind::Callback => has(wait_key, &[]),
            OperationKind::Task => has(task_key, &[InboxKind::TaskFinished, InboxKind::TaskFailed]),
            OperationKind::Child => has(child_key, &[InboxKind::Child]),
            OperationKind::Step
            | OperationKind::Condition
            | OperationKind::Scope
            | OperationKind::Now
            | OperationKind::Uuid
            | OperationKind::Random => true,
        };
        if !there {
            return Err(format!("{key} is open in the journal and nowhere else"));
        }
    }
    Ok(())
}

fn timer_key(awaited: &Awaited) -> Option<&Key> {
    if let Awaited::Timer { key, .. } = awaited { Some(key) } else { None }
}

fn wait_key(awaited: &Awaited) -> Option<&Key> {
    if let Awaited::Wait { key, .. } = awaited { Some(key) } else { None }
}

fn task_key(awaited: &Awaited) -> Option<&Key> {
    if let Awaited::Task { key, .. } = awaited { Some(key) } else { None }
}

fn child_key(awaited: &Awaited) -> Option<&Key> {
    if let Awaited::Child { key, .. } = awaited { Some(key) } else { None }
}

/// Invariant 6: no timer, wait, task, owner, wake or mail.
fn ended_run_owns_nothing(run: &RunState, tasks: &[TaskView]) -> Verdict {
    let RunState { view, awaiting, inbox, .. } = run;
    if !view.status.is_terminal() {
        return Ok(());
    }
    let linked = tasks.iter().find(|task| task.run.as_ref() == Some(&view.run.id));
    let owns = |what: String| Err(format!("it has ended and owns {what}"));
    match (awaiting.first(), view.owner, linked, inbox.first()) {
        (Some(awaited), _, _, _) => owns(format!("{awaited:?}")),
        (None, Some(lease), _, _) => owns(format!("a resume claimed by lease {lease}")),
        (None, None, Some(task), _) => owns(format!("task {}", task.id)),
        (None, None, None, Some(item)) => owns(format!("{item:?}")),
        (None, None, None, None) if view.ready => owns("a resume".to_owned()),
        (None, None, None, None) => Ok(()),
    }
}

/// Invariant 1: events once seen never change. Shown the world again and again, it compares.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<(RunKey, usize), Vec<Record>>);

impl Seen {
    /// Compares with what was seen before, and takes note of what is new. Deleted runs are not asked about.
    pub fn compare(&mut self, world: &World) -> Verdict {
        for (key, run) in &world.runs {
            for (generation, records) in run.journals.iter().enumerate() {
                let seen = self.0.entry((key.clone(), generation)).or_default();
                if !records.starts_with(seen) {
                    return Err(format!("{key}: events of generation {generation} changed or vanished"));
                }
                seen.clone_from(records);
            }
        }
        Ok(())
    }
}

/// A signal somebody sent, in the order of sending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its name.
    pub name: SignalName,
    /// Under which id.
    pub id: DeliveryId,
    /// At which operation, if at one.
    pub aimed: Option<Key>,
    /// Whether the store said it has it.
    pub accepted: bool,
}

/// Invariant 8: sent = consumed + still there (+ dropped at the end), each once, per name in order. `sent` holds no
/// signal that was refused; the last one may have arrived without its sender knowing.
pub fn signals_are_conserved(run: &RunState, sent: &[Sent]) -> Verdict {
    let events = run.events();
    let consumed = events.iter().filter_map(|event| match event {
        Event::SignalResolved { key, signal_id, .. } => Some((Some(key.clone()), signal_id.clone())),
        _ => None,
    });
    let waiting = run.inbox.iter().filter(|item| item.kind == InboxKind::Signal);
    let waiting = waiting.filter_map(|item| Some((item.key.clone(), item.delivery.clone()?)));
    let kept: Vec<(Option<Key>, DeliveryId)> = consumed.chain(waiting).collect();
    let names: BTreeSet<&SignalName> = sent.iter().map(|signal| &signal.name).collect();
    for name in names {
        let of_name: Vec<&Sent> = sent.iter().filter(|sent| sent.name == *name && sent.aimed.is_none()).collect();
        let found: Vec<&DeliveryId> =
            kept.iter().map(|(_, id)| id).filter(|id| of_name.iter().any(|sent| sent.id == **id)).collect();
        let expected: Vec<&DeliveryId> = of_name.iter().map(|sent| &sent.id).take(found.len()).collect();
        if found != expected {
            return Err(format!("of the signals {name}, {found:?} are there and should be {expected:?}"));
        }
        let owed = of_name.iter().filter(|sent| sent.accepted).count();
        if found.len() < owed && !run.view.status.is_terminal() {
            return Err(format!("{owed} signals {name} were accepted, only {found:?} are there"));
        }
    }
    aimed_signals_hit_their_mark(run, sent, &kept)
}

fn aimed_signals_hit_their_mark(run: &RunState, sent: &[Sent], kept: &[(Option<Key>, DeliveryId)]) -> Verdict {
    for signal in sent.iter().filter(|sent| sent.aimed.is_some()) {
        let places: Vec<_> = kept.iter().filter(|(_, id)| *id == signal.id).collect();
        let lost = places.is_empty() && signal.accepted && !run.view.status.is_terminal();
        if lost || places.len() > 1 || places.iter().any(|(key, _)| *key != signal.aimed) {
            return Err(format!("{signal:?} is at {places:?}"));
        }
    }
    let ids: BTreeSet<&DeliveryId> = kept.iter().map(|(_, id)| id).collect();
    match ids.len() == kept.len() && ids.iter().all(|id| sent.iter().any(|sent| sent.id == **id)) {
        true => Ok(()),
        false => Err(format!("a signal is there twice, or nobody sent it: {kept:?}")),
    }
}
