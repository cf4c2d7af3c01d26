//! What must hold of the model after every call, whatever was asked. The other stores answer as the model does, so it
//! holds of them too.

use std::collections::BTreeMap;

use outlast_core::commit::InboxItem;
use outlast_core::id::{Generation, InboxId, Index, Revision, RunKey};
use outlast_core::record::Record;
use outlast_store::{Load, LoadFrom, RunView, Store};

use crate::call::{Call, Reply};
use crate::names::{DEFINITIONS, NAMESPACES, RUNS, namespace, queue, run_key, workflow};

/// Whether a law holds, and if not, which was broken.
pub(crate) type Verdict = Result<(), String>;

fn ensure(holds: bool, run: &RunKey, law: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(format!("{run}: {}", law())) }
}

/// What a run showed when it was last looked at.
#[derive(Clone, Debug)]
struct Seen {
    view: RunView,
    events: Vec<Record>,
    inbox: BTreeMap<InboxId, InboxItem>,
}

/// The world as it was after the last call.
#[derive(Debug, Default)]
pub(crate) struct Laws(BTreeMap<RunKey, Seen>);

/// Every run there could be.
pub(crate) fn universe() -> impl Iterator<Item = RunKey> {
    (0..NAMESPACES.len() as u8).flat_map(|ns| (0..RUNS.len() as u8).map(move |id| run_key((ns, id))))
}

impl Laws {
    /// Looks again, and compares with what was.
    pub(crate) async fn check(&mut self, model: &dyn Store, call: &Call, reply: &Reply) -> Verdict {
        for run in universe() {
            let Ok(view) = model.get(run.clone()).await else {
                self.0.remove(&run);
                continue;
            };
            let load = Load { run: run.clone(), from: LoadFrom::Index(Index(0)) };
            let loaded = model.load(vec![load]).await.remove(0).map_err(|error| error.to_string())?;
            let contiguous = loaded.events.len() as u64 == view.next.0;
            ensure(contiguous, &run, || "its journal is contiguous from 0 (invariant 1)".to_owned())?;
            let inbox = loaded.inbox.into_iter().map(|item| (item.id, item)).collect();
            let now = Seen { view, events: loaded.events, inbox };
            if let Some(before) = self.0.get(&run) {
                compare(before, &now, call, reply)?;
            }
            owns_nothing_at_the_end(model, &now).await?;
            self.0.insert(run, now);
        }
        Ok(())
    }
}

fn compare(before: &Seen, now: &Seen, call: &Call, reply: &Reply) -> Verdict {
    let run = &before.view.run;
    let rose = now.view.generation > before.view.generation;
    ensure(now.view.generation >= before.view.generation, run, || "generations only rise".to_owned())?;
    let kept = rose || now.events.starts_with(&before.events);
    ensure(kept, run, || "events are immutable (invariant 1)".to_owned())?;
    let over = before.view.status.is_terminal();
    ensure(!over || now.view == before.view, run, || "nothing happens after the end (invariant 3)".to_owned())?;
    for (id, item) in &before.inbox {
        let outlived = rose && !item.kind.outlives_generation();
        let there = now.inbox.contains_key(id);
        let allowed = there || now.view.status.is_terminal() || outlived || consumed(run, *id, call, reply);
        ensure(allowed, run, || format!("{item:?} vanished without being consumed (invariants 2 and 8)"))?;
    }
    Ok(())
}

/// Whether the call consumed the item.
fn consumed(run: &RunKey, id: InboxId, call: &Call, reply: &Reply) -> bool {
    match (call, reply) {
        (Call::Commit(commits), Reply::Committed(answers)) => commits
            .iter()
            .zip(answers)
            .any(|(commit, answer)| answer.is_ok() && commit.run == *run && commit.consumed.contains(&id)),
        _ => false,
    }
}

/// Invariant 6.
async fn owns_nothing_at_the_end(model: &dyn Store, now: &Seen) -> Verdict {
    let view = &now.view;
    if !view.status.is_terminal() {
        return Ok(());
    }
    let idle = view.owner.is_none() && !view.ready && now.inbox.is_empty();
    ensure(idle, &view.run, || format!("it has ended and is {view:?} with {:?} (invariant 6)", now.inbox))?;
    let awaiting = model.awaiting(view.run.clone()).await.map_err(|error| error.to_string())?;
    ensure(awaiting.is_empty(), &view.run, || format!("it has ended and awaits {awaiting:?} (invariant 6)"))?;
    let tasks = model.tasks(every_task(view.run.namespace.clone())).await.map_err(|error| error.to_string())?;
    let mine = tasks.tasks.into_iter().find(|task| task.run.as_ref() == Some(&view.run.id));
    ensure(mine.is_none(), &view.run, || format!("it has ended and owns {mine:?} (invariant 6)"))
}

fn every_task(namespace: outlast_core::id::Namespace) -> outlast_store::TaskFilter {
    outlast_store::TaskFilter { limit: 1000, ..outlast_store::TaskFilter::all(namespace) }
}

/// Every question there is, to compare the whole observable state.
pub(crate) async fn questions(model: &dyn Store, leases: &[outlast_core::id::LeaseId]) -> Vec<Call> {
    let mut questions = vec![Call::Namespaces, Call::Sweep(0), Call::Admit(0), Call::Due(None, 100)];
    questions.push(Call::Definitions(outlast_store::DefinitionFilter::since(Revision(0))));
    questions.extend((0..3).map(|number| Call::Outlook(vec![queue(number)])));
    questions.push(Call::Outlook((0..3).map(queue).collect()));
    questions.extend(leases.iter().map(|lease| Call::Wakes(*lease, 100)));
    for ns in 0..NAMESPACES.len() as u8 {
        let filter = outlast_store::Filter { limit: 2, ..outlast_store::Filter::all(namespace(ns)) };
        questions.extend([
            Call::List(filter),
            Call::Count(namespace(ns)),
            Call::Tasks(every_task(namespace(ns))),
            Call::Schedules(namespace(ns), None),
        ]);
        questions.extend((0..2).map(|of| Call::Definition(namespace(ns), workflow(of), None)));
    }
    for run in universe() {
        let generations = model.get(run.clone()).await.map_or(0, |view| view.generation.0);
        questions.extend([Call::Get(run.clone()), Call::Awaiting(run.clone()), Call::Attributes(run.clone())]);
        questions.push(Call::Held(run.clone()));
        let load = |from| Load { run: run.clone(), from };
        let snapshots = DEFINITIONS.map(|definition| LoadFrom::Snapshot { definition: definition.into() });
        questions.push(Call::Load([LoadFrom::Index(Index(0))].into_iter().chain(snapshots).map(load).collect()));
        questions.extend((0..=generations).map(|generation| {
            let generation = Some(Generation(generation));
            Call::Excerpt(outlast_store::Excerpt { run: run.clone(), generation, from: Index(0), limit: 1000 })
        }));
    }
    questions
}
