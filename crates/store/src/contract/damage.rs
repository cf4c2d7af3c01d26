//! Damage: what the API refuses the database refuses too, and a row that cannot be read harms only its own run.

use outlast_core::commit::{NewRun, Status};
use outlast_core::id::{ClaimId, Index, Key, RunId};
use outlast_core::limits::{Limits, PAYLOAD_BYTES_CEILING};

use super::RawWrite;
use super::scene::*;
use crate::{Load, LoadFrom, StoreError};

super::stories! {
    empty_run_id_is_refused_by_the_api_and_by_the_database,
    empty_key_is_refused_by_the_api_and_by_the_database,
    payload_over_the_ceiling_is_refused_by_the_api_and_by_the_database,
    unknown_status_is_refused_by_the_database,
    second_event_of_one_index_is_refused_by_the_database,
    journal_with_a_gap_is_reported_and_harms_only_its_run,
    event_that_cannot_be_read_harms_only_its_run,
    run_that_cannot_be_read_harms_only_itself,
    ready_run_that_cannot_be_read_does_not_hold_up_the_queue,
    run_with_a_damaged_journal_can_be_parked,
    run_without_its_snapshot_loads_from_the_start,
}

fn refused_by_database(answer: Option<Result<(), String>>, what: &str) {
    if let Some(answer) = answer {
        assert!(answer.is_err(), "the database must refuse {what}");
    }
}

/// Row 25: an empty id made a ghost run 96 times a day for a month.
async fn empty_run_id_is_refused_by_the_api_and_by_the_database(s: Scene<'_>) {
    assert!(RunId::new("").is_err());
    let a = s.start("a").await;
    refused_by_database(s.raw(RawWrite::EmptyRunId).await, "a run without an id");
    refused_by_database(s.raw(RawWrite::BlankRunId { run: a.clone() }).await, "a run that loses its id");
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Queued, 1)]);
    assert_eq!(s.view(&a).await.run, a);
}

/// Row 25.
async fn empty_key_is_refused_by_the_api_and_by_the_database(s: Scene<'_>) {
    assert!(Key::new("").is_err());
    let a = s.ended("a").await;
    refused_by_database(s.raw(RawWrite::EmptyKey { run: a.clone() }).await, "an event with an empty key");
    assert_eq!(s.load(&a).await.events, [event("end")]);
}

/// Row 40.
async fn payload_over_the_ceiling_is_refused_by_the_api_and_by_the_database(s: Scene<'_>) {
    let raised = Limits { payload_bytes: usize::MAX, ..Limits::default() };
    assert!(raised.check_payload("an event", PAYLOAD_BYTES_CEILING + 1).is_err());
    let a = s.ended("a").await;
    refused_by_database(s.raw(RawWrite::OversizePayload { run: a.clone() }).await, "a payload over the ceiling");
    assert_eq!(s.load(&a).await.events, [event("end")]);
}

async fn unknown_status_is_refused_by_the_database(s: Scene<'_>) {
    assert_eq!(Status::from_code(99), None);
    let a = s.start("a").await;
    refused_by_database(s.raw(RawWrite::UnknownStatus { run: a.clone() }).await, "a status that is none");
    assert_eq!(s.view(&a).await.status, Status::Queued);
}

/// Invariant 1: one writer per index, also for somebody who goes past the API.
async fn second_event_of_one_index_is_refused_by_the_database(s: Scene<'_>) {
    let a = s.ended("a").await;
    refused_by_database(s.raw(RawWrite::SecondEvent { run: a.clone() }).await, "a second event 0");
    assert_eq!(s.load(&a).await.events, [event("end")]);
}

async fn try_load(s: &Scene<'_>, id: &str) -> Result<crate::Loaded, StoreError> {
    let loads = vec![
        Load { run: run("before"), from: LoadFrom::Index(Index(0)) },
        Load { run: run(id), from: LoadFrom::Index(Index(0)) },
        Load { run: run("after"), from: LoadFrom::Index(Index(0)) },
    ];
    let mut answers = s.store.load(loads).await;
    for neighbour in [0, 2] {
        assert!(answers[neighbour].is_ok(), "a damaged run must not harm its neighbours: {answers:?}");
    }
    answers.remove(1)
}

/// A run with three events between two healthy ones.
async fn damaged(s: &Scene<'_>) -> Held {
    s.ended("before").await;
    let mut held = s.own("damaged").await;
    s.ended("after").await;
    let commit = held.commit().event("0").event("1").event("2");
    s.apply(&mut held, commit).await;
    held
}

/// Row 37: one bad record stopped everything.
async fn journal_with_a_gap_is_reported_and_harms_only_its_run(s: Scene<'_>) {
    let held = damaged(&s).await;
    match s.raw(RawWrite::DropEvent { run: held.run.clone(), index: Index(1) }).await {
        None => {}
        Some(written) => {
            written.unwrap();
            let refused = try_load(&s, "damaged").await.unwrap_err();
            assert!(matches!(refused, StoreError::Corrupt { .. }), "a gap is never papered over: {refused}");
        }
    }
}

/// Row 37.
async fn event_that_cannot_be_read_harms_only_its_run(s: Scene<'_>) {
    let held = damaged(&s).await;
    match s.raw(RawWrite::CorruptEvent { run: held.run.clone(), index: Index(1) }).await {
        None => {}
        Some(written) => {
            written.unwrap();
            let refused = try_load(&s, "damaged").await.unwrap_err();
            assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
            assert_eq!(s.view(&held.run).await.status, Status::Running, "its row can still be read");
        }
    }
}

/// Row 37.
async fn run_that_cannot_be_read_harms_only_itself(s: Scene<'_>) {
    let held = damaged(&s).await;
    s.start("ready").await;
    if let Some(written) = s.raw(RawWrite::CorruptRun { run: held.run.clone() }).await {
        written.unwrap();
        let refused = s.store.get(held.run.clone()).await.unwrap_err();
        assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
        assert!(try_load(&s, "damaged").await.is_err());
        assert!(matches!(s.commit(held.commit().event("x")).await, Err(crate::CommitError::NotApplied(_))));
    }
    let lease = s.node("other", 1_000).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["ready"], "others are claimed as ever");
    assert!(s.view(&run("before")).await.status.is_terminal());
}

/// Row 37: at the head of the queue, and again and again.
async fn ready_run_that_cannot_be_read_does_not_hold_up_the_queue(s: Scene<'_>) {
    let first = NewRun { priority: 100, ..new_run(&run("damaged")) };
    s.create(first).await;
    for id in ["a", "b"] {
        s.start(id).await;
    }
    if let Some(written) = s.raw(RawWrite::CorruptRun { run: run("damaged") }).await {
        written.unwrap();
    }
    let lease = s.node("n", 1_000).await;
    let mut claimed = Vec::new();
    for id in 0..4 {
        let (pick, serves) = (crate::Pick::Ready, crate::Serves::Everything);
        let claim = crate::Claim { lease, id: ClaimId(id), limit: 1, pick, serves };
        let runs = s.store.claim(claim).await.unwrap_or_default();
        claimed.extend(runs.into_iter().map(|claimed| claimed.run.id.to_string()));
    }
    claimed.retain(|id| id != "damaged");
    assert_eq!(claimed, ["a", "b"], "those behind it are claimed");
}

async fn run_with_a_damaged_journal_can_be_parked(s: Scene<'_>) {
    let held = damaged(&s).await;
    if let Some(written) = s.raw(RawWrite::CorruptEvent { run: held.run.clone(), index: Index(0) }).await {
        written.unwrap();
    }
    s.commit(held.commit().park("event 0 cannot be read")).await.unwrap();
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.note.as_deref()), (Status::Parked, Some("event 0 cannot be read")));
}

/// A snapshot is a cache: delete every one and nothing changes but time.
async fn run_without_its_snapshot_loads_from_the_start(s: Scene<'_>) {
    let mut held = damaged(&s).await;
    let snapshot = outlast_core::commit::Snapshot { index: Index(2), definition: "d".to_owned(), data: bytes("s") };
    let commit = held.commit().change(|commit| commit.snapshot = Some(snapshot.clone()));
    s.apply(&mut held, commit).await;
    let from = LoadFrom::Snapshot { definition: "d".to_owned() };
    let load = Load { run: held.run.clone(), from };
    let loaded = s.store.load(vec![load.clone()]).await.remove(0).unwrap();
    assert_eq!((loaded.snapshot, loaded.events.len()), (Some(snapshot), 1));
    if let Some(written) = s.raw(RawWrite::DropSnapshots { run: held.run.clone() }).await {
        written.unwrap();
        let loaded = s.store.load(vec![load]).await.remove(0).unwrap();
        assert_eq!((loaded.snapshot, loaded.first, loaded.events.len()), (None, Index(0), 3));
    }
}
