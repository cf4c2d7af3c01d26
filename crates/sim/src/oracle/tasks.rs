//! Tasks: what the store shows against what was queued, and what handlers saw against what was said.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::event::Event;
use outlast_core::id::{Namespace, TaskId};
use outlast_store::{TaskState, TaskView};

use super::{Evidence, Scene};
use crate::interpret::{ALONE, Order};
use crate::ledger::{Came, Effort};
use crate::violation::Findings;
use crate::watch::{State, TaskBook};

pub(super) fn judge(evidence: &Evidence, scene: &Scene<'_>, findings: &mut Findings) {
    let efforts = by_task(evidence);
    for (task, of_task) in &efforts {
        idempotency_keys(task, of_task, findings);
        if let Some(order) = order_of(evidence, task) {
            attempts(task, of_task, &order, findings);
            if let Some(slack) = scene.slack {
                delays(task, of_task, &order, slack, findings);
            }
        }
    }
    one_at_a_time(evidence, findings);
    results(evidence, &efforts, findings);
    rows(evidence, findings);
    if scene.is_end {
        ends(evidence, &efforts, findings);
    }
}

/// Attempts by task, in order.
type Efforts<'e> = BTreeMap<&'e str, Vec<&'e Effort>>;

fn by_task(evidence: &Evidence) -> Efforts<'_> {
    let mut efforts = Efforts::new();
    for effort in &evidence.efforts {
        efforts.entry(effort.task.as_str()).or_default().push(effort);
    }
    efforts
}

fn book_of<'e>(evidence: &'e Evidence, task: &str) -> Option<&'e TaskBook> {
    let id = TaskId::new(task).ok()?;
    evidence.tasks.get(&Namespace::default_namespace(), &id)
}

/// What was said about a task when it was queued.
fn order_of(evidence: &Evidence, task: &str) -> Option<Order> {
    serde_json::from_slice(&book_of(evidence, task)?.args).ok()
}

/// All attempts at a task share their key, and no two tasks do: it is made of the task's own id.
fn idempotency_keys(task: &str, efforts: &[&Effort], findings: &mut Findings) {
    for Effort { idempotency_key, .. } in efforts {
        findings.ensure(4, *idempotency_key == format!("default/{task}"), || {
            format!("an attempt at task {task} was given {idempotency_key:?}")
        });
    }
}

/// Nobody tries more often than was said.
fn attempts(task: &str, efforts: &[&Effort], order: &Order, findings: &mut Findings) {
    for Effort { attempt, .. } in efforts {
        findings.ensure(15, (1..=order.work.attempts).contains(attempt), || {
            format!("task {task} was tried for the {attempt}th time, {} were allowed", order.work.attempts)
        });
    }
}

/// Nobody knows of the failure of a worker that dies right after it; but for half of the shortest lease nobody else has its
/// task.
const SILENCE: Duration = Duration::from_millis(2_500);

/// After a failure the next attempt waits as long as was said, of which half may be left to chance.
fn delays(task: &str, efforts: &[&Effort], order: &Order, slack: Duration, findings: &mut Findings) {
    for pair in efforts.windows(2) {
        let [before, after] = pair else { continue };
        // One that begins again was queued again, or another worker's was lost before it began.
        let (Some((_, ended, Came::Failed)), true) = (before.ended, after.attempt == before.attempt + 1) else {
            continue;
        };
        let doubled = 1_u32 << (before.attempt - 1).min(20);
        let least = (Duration::from_millis(order.work.delay) * doubled / 2).min(SILENCE);
        let waited = after.begun.1.saturating_sub(ended);
        findings.ensure(15, waited + slack >= least, || {
            format!("task {task} was tried again after {waited:?}, attempt {}; said was {least:?}", before.attempt)
        });
    }
}

/// A worker does one at a time of those that are done alone.
fn one_at_a_time(evidence: &Evidence, findings: &mut Findings) {
    let mut busy: BTreeMap<&str, &Effort> = BTreeMap::new();
    for effort in evidence.efforts.iter().filter(|effort| effort.name == ALONE) {
        if let Some(before) = busy.insert(effort.process.as_str(), effort) {
            let over = before.ended.is_some_and(|(tick, ..)| tick < effort.begun.0);
            findings.ensure(17, over, || {
                format!("{} began {} while {} was under way, and may do one", effort.process, effort.task, before.task)
            });
        }
    }
}

/// A result that a run was given is one that a handler gave before.
fn results(evidence: &Evidence, efforts: &Efforts<'_>, findings: &mut Findings) {
    for (run, state) in evidence.runs() {
        for (_, _, event) in evidence.own_events(run, state) {
            let Event::TaskFinished { task, result, .. } = &event else { continue };
            let attempt = serde_json::from_slice::<serde_json::Value>(result).ok();
            let attempt = attempt.and_then(|result| result.get("attempt")?.as_u64());
            let gave = |effort: &&&Effort| {
                Some(u64::from(effort.attempt)) == attempt && matches!(effort.ended, Some((_, _, Came::Gave)))
            };
            let given = efforts.get(task.as_str()).into_iter().flatten().find(gave);
            findings
                .ensure(4, given.is_some(), || format!("{run} has a result of {task}, {result:?}, that nobody gave"));
        }
    }
}

/// What is there was queued and is not over, and what was queued and is not over is there.
fn rows(evidence: &Evidence, findings: &mut Findings) {
    for (namespace, world) in &evidence.worlds {
        for view in &world.tasks {
            let book = evidence.tasks.get(namespace, &view.id);
            findings.ensure_unless(!evidence.ordered && book.is_none(), 17, book.is_some(), || {
                format!("task {} is there, and nobody queued it", view.id)
            });
            if let Some(book) = book.filter(|_| evidence.ordered) {
                findings.ensure(17, agrees(view, book), || format!("{view:?} should be {book:?}"));
            }
        }
    }
    if !evidence.ordered {
        return;
    }
    for ((namespace, id), book) in evidence.tasks.all() {
        let unwanted = matches!(book.state, State::Held { unwanted: true, .. });
        if matches!(book.state, State::Buried | State::Gone) || unwanted {
            continue;
        }
        let shown = evidence.worlds.iter().filter(|(name, _)| name == namespace);
        let there = shown.flat_map(|(_, world)| &world.tasks).any(|view| view.id == *id);
        findings.ensure(17, there, || format!("task {id} has vanished: {book:?}"));
    }
}

fn agrees(view: &TaskView, book: &TaskBook) -> bool {
    let state = match (&book.state, view.state) {
        (State::Ready, TaskState::Ready | TaskState::Delayed) | (State::Dead, TaskState::Dead) => true,
        (State::Held { worker, .. }, TaskState::Claimed) => view.worker.as_ref() == Some(worker),
        (State::Ready | State::Held { .. } | State::Dead | State::Buried | State::Gone, _) => false,
    };
    state && view.attempt == book.attempt
}

/// When everything is over, whatever nobody waits for was done, or has failed for good and says so.
fn ends(evidence: &Evidence, efforts: &Efforts<'_>, findings: &mut Findings) {
    let home = Namespace::default_namespace();
    let shown = || evidence.worlds.iter().filter(|(name, _)| *name == home).flat_map(|(_, world)| &world.tasks);
    for view in shown() {
        findings.ensure(17, view.state == TaskState::Dead, || format!("all is over, and {view:?} is left"));
    }
    let queued = evidence.queued.iter().filter(|(_, told)| **told).map(|(task, _)| task.clone());
    for task in queued.chain(detached(evidence)) {
        let book = TaskId::new(task.as_str()).ok().and_then(|id| evidence.tasks.get(&home, &id));
        let buried = book.is_some_and(|book| book.state == State::Buried);
        let dead = buried || shown().any(|view| view.id.as_str() == task);
        let gave = |effort: &&Effort| matches!(effort.ended, Some((_, _, Came::Gave)));
        let done = efforts.get(task.as_str()).into_iter().flatten().any(gave);
        // Where answers are lost nobody saw what went with age.
        let unseen = evidence.retains && !evidence.ordered;
        findings
            .ensure_unless(unseen, 17, dead || done, || format!("task {task} was queued, is gone, and nobody did it"));
    }
}

/// Tasks that runs queued for nobody to wait for.
fn detached(evidence: &Evidence) -> Vec<String> {
    let mut found = Vec::new();
    for (run, state) in evidence.runs() {
        for (_, _, event) in evidence.own_events(run, state) {
            if let Event::TaskScheduled { task, detached: true, .. } = event {
                found.push(task.to_string());
            }
        }
    }
    found
}
