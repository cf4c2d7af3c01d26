//! The end of all trouble: whoever waits for somebody is answered, and every run must come to its end.

use outlast::{Awaited, EngineError, RunHandle, RunView, Status};
use outlast_core::commit::WaitKind;
use outlast_store::{TaskState, TaskView};
use serde_json::json;
use std::time::Duration;

use crate::case::{Case, run_id};
use crate::client::Client;
use crate::oracle::Violation;
use crate::written::written_id;

/// How long to wait before looking again.
const TICK: Duration = Duration::from_secs(10);
/// After so many looks everything must have ended. A flow that goes around 27 times, with four tries of a step in each, takes 120 of them.
const TICKS_MAX: u32 = 360;

/// Answers whatever is open until every run has ended and every task is done. Those that are not are the violation.
pub(crate) async fn settle(client: &Client, case: &Case) -> Vec<Violation> {
    let (mut open, mut tasks, mut missing, mut waiting) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for tick in 0..TICKS_MAX {
        missing = start_missing(client, case).await;
        tasks = undone(client).await;
        waiting = client.waiting_schedules().await;
        open = match unsettled(client).await {
            Ok(open) if open.is_empty() && tasks.is_empty() && missing.is_empty() && waiting.is_empty() => {
                return Vec::new();
            }
            Ok(open) => open,
            Err(error) if tick + 1 == TICKS_MAX => {
                return vec![Violation { invariant: 5, text: format!("runs cannot be listed: {error}") }];
            }
            Err(_) => Vec::new(),
        };
        for view in &open {
            if let Ok(run) = client.engine.run(view.run.id.as_str()) {
                help(client, &run, view, tick).await;
            }
        }
        client.world.sleep(TICK).await;
    }
    let mut violations = Vec::new();
    for view in open {
        violations.push(Violation { invariant: 5, text: stuck(client, &view).await });
    }
    for run in missing {
        violations.push(Violation { invariant: 2, text: format!("{run} cannot be started") });
    }
    for schedule in waiting {
        violations.push(Violation { invariant: 11, text: format!("{schedule} does not start what waits") });
    }
    for task in tasks {
        violations.push(Violation { invariant: 17, text: format!("nobody does {task:?}") });
    }
    violations
}

/// A run whose start was never acknowledged may not be there: it is started, and those that were not there are told.
async fn start_missing(client: &Client, case: &Case) -> Vec<String> {
    let mut missing = Vec::new();
    for place in 0..case.runs.len() {
        let Ok(run) = client.engine.run(&run_id(place)) else { continue };
        if matches!(run.view().await, Err(error) if error.code() == "not_found") {
            client.start(case, place).await;
            missing.push(run_id(place));
        }
    }
    for place in 0..case.written.len() {
        let Ok(run) = client.engine.run(&written_id(place)) else { continue };
        let gone = matches!(run.view().await, Err(error) if error.code() == "not_found");
        if gone && client.start_written(case, place).await {
            missing.push(written_id(place));
        }
    }
    missing
}

async fn unsettled(client: &Client) -> Result<Vec<RunView>, EngineError> {
    let page = client.engine.list().page_size(1_000).await?;
    Ok(page.runs.into_iter().filter(|view| !view.status.is_terminal()).collect())
}

/// Tasks that somebody has yet to do. If they cannot be listed, the runs cannot either, and that is told.
async fn undone(client: &Client) -> Vec<TaskView> {
    let tasks = client.engine.tasks().page_size(1_000).await.map_or_else(|_| Vec::new(), |page| page.tasks);
    tasks.into_iter().filter(|task| task.state != TaskState::Dead).collect()
}

async fn help(client: &Client, run: &RunHandle, view: &RunView, tick: u32) {
    match view.status {
        Status::Paused => drop(run.resume().await),
        Status::Parked => drop(run.unpark().await),
        _ => {}
    }
    for (nth, awaited) in run.awaiting().await.unwrap_or_default().into_iter().enumerate() {
        if let Awaited::Wait { kind: WaitKind::Signal, name: Some(name), answered: false, .. } = awaited {
            let id = format!("heal-{}-{tick}-{nth}", run.id());
            // A number, since some waits take nothing else.
            client.signal(run, &name, &json!(u64::from(tick) * 100 + nth as u64), &id).await;
        }
    }
    for (nth, open) in client.open(run).await.iter().enumerate() {
        client.answer(run, open, true, &format!("heal-answer-{}-{tick}-{nth}", run.id())).await;
    }
}

async fn stuck(client: &Client, view: &RunView) -> String {
    let Ok(run) = client.engine.run(view.run.id.as_str()) else { return view.run.to_string() };
    let (awaiting, journal) = (run.awaiting().await, run.journal().await);
    let journal: Vec<String> = journal.unwrap_or_default().iter().map(|event| format!("{event:?}")).collect();
    let note = view.note.clone().unwrap_or_default();
    format!(
        "{} is {:?} and does not come to its end; {note}\n  ready {}, owner {:?}, it waits for {awaiting:?}\n  {}",
        view.run,
        view.status,
        view.ready,
        view.owner,
        journal.join("\n  ")
    )
}

#[cfg(test)]
mod tests;
