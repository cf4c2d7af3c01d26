//! The end of all trouble: whoever waits for somebody is answered, and every run must come to its end.

use outlast::{Awaited, EngineError, RunHandle, RunView, Status};
use outlast_core::commit::WaitKind;
use serde_json::json;
use std::time::Duration;

use crate::case::{Case, run_id};
use crate::client::Client;
use crate::oracle::Violation;

/// How long to wait before looking again.
const TICK: Duration = Duration::from_secs(10);
/// After so many looks everything must have ended.
const TICKS_MAX: u32 = 120;

/// Answers whatever is open until every run has ended. Runs that do not are the violation.
pub(crate) async fn settle(client: &Client, case: &Case) -> Vec<Violation> {
    let mut open = Vec::new();
    for tick in 0..TICKS_MAX {
        start_missing(client, case).await;
        open = match unsettled(client).await {
            Ok(open) if open.is_empty() => return Vec::new(),
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
    violations
}

/// A run whose start was never acknowledged may not be there.
async fn start_missing(client: &Client, case: &Case) {
    for place in 0..case.runs.len() {
        let Ok(run) = client.engine.run(&run_id(place)) else { continue };
        if matches!(run.view().await, Err(error) if error.code() == "not_found") {
            client.start(case, place).await;
        }
    }
}

async fn unsettled(client: &Client) -> Result<Vec<RunView>, EngineError> {
    let page = client.engine.list().page_size(1_000).await?;
    Ok(page.runs.into_iter().filter(|view| !view.status.is_terminal()).collect())
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
