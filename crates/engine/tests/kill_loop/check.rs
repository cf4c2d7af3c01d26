//! What must hold when all runs have ended, seen from outside.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outlast::{Engine, Event, RunView, Status};

use crate::workflows::{CANCELLED, NAMES, register};

/// What each run comes to.
const EXPECTED: [u32; 9] = [21, 6, 121, 11, 21, 30, 13, 7, 6];

/// Every run came to what it should, which no lost, repeated or swapped fact allows.
pub(crate) fn results(said: &[String]) {
    let expected = NAMES.iter().zip(EXPECTED).map(|(name, value)| format!("result {name} {value}"));
    for line in expected.chain([format!("result {CANCELLED} aborted")]) {
        assert!(said.iter().any(|said| said.contains(&line)), "{line} is not among {said:#?}");
    }
}

/// Looks at every run and its journal.
pub(crate) fn runs(place: &str, ledger: &Path, said: &[String]) {
    let ledger = std::fs::read_to_string(ledger).unwrap();
    let ran: BTreeSet<&str> = ledger.lines().collect();
    let careful = ledger.lines().filter(|line| *line == "default/steps/0/careful").count();
    assert!(careful <= 1, "what runs at most once ran {careful} times");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = register(crate::open(place).await);
        let code = engine.checker();
        let engine = engine.start().await.unwrap();
        let views = engine.list().page_size(1_000).await.unwrap().runs;
        assert!(views.iter().all(|view| view.status.is_terminal()), "{views:#?}");
        for RunView { run, generation, .. } in &views {
            let handle = engine.run(run.id.as_str()).unwrap();
            assert_eq!(handle.awaiting().await.unwrap(), [], "{run} owns nothing any more");
            code.check(&handle.export().await.unwrap()).unwrap();
            let journal = handle.journal().await.unwrap();
            recorded_once(&journal, &format!("{run}/{generation}"), &ran);
        }
        let status = |id: &str| views.iter().find(|view| view.run.id.as_str() == id).map(|view| view.status);
        assert_eq!(views.len(), NAMES.len() + 1 + 7 + 2, "{views:#?}");
        assert_eq!((status("loser"), status("left")), (Some(Status::Cancelled), Some(Status::Cancelled)));
        acknowledged(&engine, said).await;
        engine.shutdown().await;
    });
}

/// No outcome is recorded twice, and every step that is recorded ran, as somebody outside saw.
fn recorded_once(journal: &[Event], run: &str, ran: &BTreeSet<&str>) {
    let mut recorded = BTreeMap::new();
    for event in journal {
        let (Event::StepFinished { key, .. } | Event::StepFailed { key, .. }) = event else { continue };
        assert!(recorded.insert(key.clone(), ()).is_none(), "{run}: {key} is recorded twice");
        let in_the_store = run.starts_with("default/payments/") && !key.as_str().starts_with("note");
        let in_doubt = matches!(event, Event::StepFailed { error, .. } if error.code == "step_in_doubt");
        let id = format!("{run}/{key}");
        let seen = ran.contains(id.as_str());
        assert!(seen || in_the_store || in_doubt, "{id} is recorded and nobody saw it run");
    }
    let ends = journal.iter().filter(|event| {
        let name = event.kind().name();
        ["RUN_FINISHED", "RUN_ERRORED", "RUN_CANCELLED", "RUN_TERMINATED"].contains(&name)
    });
    assert_eq!(ends.count(), 1, "{run} ends once");
}

/// What was acknowledged is in the journals, once.
async fn acknowledged(engine: &Engine, said: &[String]) {
    let mut told: BTreeMap<String, u32> = BTreeMap::new();
    for name in NAMES.into_iter().chain([CANCELLED]) {
        let run = engine.run(name).unwrap();
        for generation in 0..=run.view().await.unwrap().generation.0 {
            for event in run.journal_of(generation).await.unwrap() {
                let line = match &event {
                    Event::SignalResolved { signal_id, .. } => format!("ack signal {name} {signal_id}"),
                    Event::ApprovalResolved { approval, .. } => format!("ack approve {approval}"),
                    Event::CallbackResolved { .. } => "ack callback".to_owned(),
                    Event::CancelRequested { .. } => "ack cancel".to_owned(),
                    Event::RunPaused { .. } => format!("ack pause {name}"),
                    _ => continue,
                };
                *told.entry(line).or_default() += 1;
            }
        }
    }
    let acks: BTreeSet<&str> = said.iter().filter_map(|line| line.find("ack ").map(|at| &line[at..])).collect();
    for ack in acks.into_iter().filter(|ack| !ack.starts_with("ack start")) {
        // A pause that was taken back before it began leaves no trace; the last value was never asked for.
        let untold = ack.starts_with("ack pause") || ack == "ack signal signals value-6";
        let times = told.get(ack).copied().unwrap_or(0);
        assert!(times == 1 || untold, "{ack}: {times} times in the journals");
    }
}
