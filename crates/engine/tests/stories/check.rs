//! `check_replay`: would this code go on with that journal?
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod rich;

use outlast::testing::JournalText;
use outlast::{CheckedRun, Ctx, Divergence, Outlast, Recording, ReplayError, Status, Workflow, check_replay};
use outlast_core::event::Kind;

use self::rich::{Change, recorded, register, rich, script};
use crate::support::{Scene, Tally, seconds};

/// What becomes of the whole journal with changed code.
fn diverges(change: Change) -> Divergence {
    let ran = Tally::default();
    let recording = recorded(&Tally::default());
    let error = check_replay(&recording, &rich(change, &ran)).unwrap_err();
    assert_eq!(ran.count(), 0, "no body runs");
    match error {
        ReplayError::Diverged(divergence) => *divergence,
        other => panic!("it diverges, not {other:?}"),
    }
}

/// What is recorded there, and the beginning of what is said about it.
fn assert_diverges(change: Change, at: &str, says: &str) {
    let recording = recorded(&Tally::default());
    let divergence = diverges(change);
    let text = JournalText::of(&recording.events().unwrap());
    let line = &text.lines()[usize::try_from(divergence.index.0).unwrap()];
    assert!(line.starts_with(at), "{change:?} diverges at {line:?}, not at {at:?}");
    assert!(divergence.to_string().contains(says), "{divergence}");
}

#[test]
fn unchanged_code_replays_every_beginning_of_a_journal_and_runs_no_body() {
    let ran = Tally::default();
    let recording = recorded(&ran);
    let before = ran.count();
    assert!(before > 5 && recording.len() > 30, "there is something to replay: {}", recording.len());
    for events in 0..=recording.len() {
        let replayed = check_replay(&recording.prefix(events), &rich(Change::Nothing, &ran)).unwrap();
        assert_eq!(replayed.events, events as u64);
        let ends =
            events == recording.len() || recording.prefix(events + 1).events().unwrap()[events].ends_generation();
        assert!(replayed.ended || !replayed.operations.is_empty(), "it stands somewhere after {events}");
        assert!(!replayed.ended || ends || events + 2 == recording.len(), "it does not end after {events}");
    }
    assert_eq!(ran.count(), before, "no body ran");
}

#[test]
fn a_recording_that_was_written_and_read_is_the_same() {
    let recording = recorded(&Tally::default());
    let json = serde_json::to_string_pretty(&recording).unwrap();
    assert_eq!(serde_json::from_str::<Recording>(&json).unwrap(), recording);
    assert!(json.contains("\"kind\": \"STEP_FINISHED\""), "people can read it: {json}");
}

#[test]
fn a_recording_that_is_damaged_says_so() {
    let json = serde_json::to_string(&recorded(&Tally::default())).unwrap();
    let unknown = json.replacen("STEP_FINISHED", "STEP_FLED", 1);
    let error = serde_json::from_str::<Recording>(&unknown).unwrap_err();
    assert!(error.to_string().contains("\"STEP_FLED\" is no kind of event this build knows"), "{error}");

    // The first step ends twice.
    let recording = recorded(&Tally::default());
    let mut value: serde_json::Value = serde_json::to_value(&recording).unwrap();
    let first = value["events"][0].clone();
    value["events"].as_array_mut().unwrap().insert(1, first);
    let damaged: Recording = serde_json::from_str(&value.to_string()).unwrap();
    let error = check_replay(&damaged, &rich(Change::Nothing, &Tally::default())).unwrap_err();
    assert!(matches!(&error, ReplayError::Unreadable(_)), "{error:?}");
}

#[test]
fn a_renamed_step_diverges_where_it_is_recorded() {
    let divergence = diverges(Change::RenamedStep);
    assert_eq!((divergence.index.0, divergence.recorded), (0, Kind::StepFinished));
    assert_eq!(divergence.key.as_ref().unwrap().as_str(), "one");
    let at = divergence.location.clone().unwrap();
    assert!(at.file.ends_with("tests/stories/check/rich.rs"), "{at}");
    let expected = format!(
        "replay mismatch at index 0: the journal has STEP_FINISHED \"one\", the code did not ask for it; \
         it asks for step \"eins\" at {at}"
    );
    assert_eq!(divergence.to_string(), expected);
    let advice = ". Keep the code this run began with as a previous version, or let the code ask for the same";
    assert_eq!(ReplayError::Diverged(Box::new(divergence)).to_string(), expected + advice);
}

#[test]
fn a_longer_sleep_diverges_with_both_durations() {
    let divergence = diverges(Change::LongerSleep);
    let at = divergence.location.clone().unwrap();
    let expected = format!(
        "replay mismatch at index 4: the journal has TIMER_STARTED \"__sleep-0\" (60000 ms), \
         the code asks for a sleep (61000 ms) at {at}"
    );
    assert_eq!(divergence.to_string(), expected);
}

#[test]
fn code_that_ends_early_diverges_at_the_first_fact_it_left() {
    let expected = "replay mismatch at index 1: the journal has STEP_FINISHED \"two\", the code has come to its end";
    assert_eq!(diverges(Change::EndsEarly).to_string(), expected);
}

#[test]
fn other_changes_diverge_where_the_code_first_does_something_else() {
    assert_diverges(Change::OtherOrder, "STEP_FINISHED one", "it asks for step \"two\"");
    assert_diverges(Change::NoSleep, "TIMER_STARTED __sleep-0", "it asks for wait \"a word\"");
    assert_diverges(Change::StepBecameWait, "STEP_FINISHED two", "the code asks for a wait");
    assert_diverges(
        Change::OtherSignal,
        "SIGNAL_AWAITED a word",
        "(signal word), the code asks for a wait (signal phrase)",
    );
    assert_diverges(
        Change::MoreBranches,
        "SCOPE_STARTED double",
        "(2 branches), the code asks for a scope (3 branches)",
    );
}

/// The end of a finished run is recorded too.
#[test]
fn a_finished_run_must_come_to_the_same_end() {
    assert_diverges(Change::StepAtTheEnd, "RUN_FINISHED", "the code did not ask for it; it asks for step \"more\"");
    assert_diverges(
        Change::ValueAtTheEnd,
        "RUN_FINISHED",
        "the code did not ask for it; it asks for random \"__random-0\"",
    );
    assert_diverges(Change::Fails, "RUN_FINISHED", "the code ends with RUN_ERRORED");
}

/// What a run with a callback returned may contain the callback's token, which only its store knows.
#[test]
fn another_output_diverges_unless_it_may_contain_a_token() {
    async fn plain(_: Ctx, n: u32) -> outlast::Result<u32> {
        Ok(n)
    }
    async fn other(_: Ctx, n: u32) -> outlast::Result<u32> {
        Ok(n + 1)
    }
    let recording = Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", plain)).await;
        engine.start("w", &1).id("a").await.unwrap().result::<u32>().await.unwrap();
        engine.run("a").unwrap().export().await.unwrap()
    });
    assert!(check_replay(&recording, &Workflow::new("w", plain)).unwrap().ended);
    let error = check_replay(&recording, &Workflow::new("w", other)).unwrap_err();
    let expected = "replay mismatch at index 0: the journal has RUN_FINISHED (1), the code ends with RUN_FINISHED (2)";
    assert!(error.to_string().starts_with(expected), "{error}");
    let with_callback = recorded(&Tally::default());
    assert!(check_replay(&with_callback, &rich(Change::OtherOutput, &Tally::default())).is_ok());
}

#[test]
fn code_that_asks_for_more_behind_everything_recorded_goes_on() {
    let recording = recorded(&Tally::default());
    let end = recording.events().unwrap().iter().position(|event| event.kind() == Kind::TimerFired).unwrap();
    let unfinished = recording.prefix(recording.len() - 3);
    for change in [Change::StepAtTheEnd, Change::ValueAtTheEnd, Change::OtherOutput, Change::Fails] {
        assert!(check_replay(&unfinished, &rich(change, &Tally::default())).is_ok(), "{change:?}");
    }
    // What comes later may change.
    let early = recording.prefix(end);
    for change in [Change::OtherSignal, Change::MoreBranches] {
        assert!(check_replay(&early, &rich(change, &Tally::default())).is_ok(), "{change:?}");
    }
}

#[test]
fn a_version_that_is_gone_is_named() {
    let recording = recorded(&Tally::default());
    let error = check_replay(&recording, &rich(Change::Nothing, &Tally::default()).version("2")).unwrap_err();
    let expected = "workflow_version_mismatch: the run belongs to rich version 1, which is not registered; \
                    register it as a previous version";
    assert_eq!(error.to_string(), expected);
    let kept = Workflow::new("rich", async |_: Ctx, (): ()| Ok(())).version("2");
    assert!(matches!(check_replay(&recording, &kept), Err(ReplayError::NoCode { .. })));
}

/// Before a deploy: every run that has not ended, with the new code; nothing is driven.
#[test]
fn the_live_runs_of_a_store_are_checked_and_left_alone() {
    async fn gone(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(86_400)).await
    }
    Scene::play(async |scene| {
        let ran = Tally::default();
        let old = |engine: Outlast| register(Change::Nothing, &ran, engine).workflow("gone", gone);
        let engine = scene.engine(old).await;
        for id in ["ended", "early", "late"] {
            let run = engine.start("rich", &7).id(id).await.unwrap();
            match id {
                "ended" => script().play(&run).await.unwrap(),
                _ => scene.pass(seconds(if id == "late" { 65 } else { 20 })).await,
            }
            if id == "ended" {
                run.result::<String>().await.unwrap();
            }
        }
        // The early one is woken before its sleep ends, the late one waits for a word.
        engine.start("rich", &7).id("early").await.unwrap();
        engine.start("gone", &()).id("gone").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.shutdown().await;

        let (before, bodies) = (views(scene).await, ran.count());
        let new = register(Change::OtherSignal, &ran, scene.world.engine_on(scene.store.clone()));
        let checked = new.check_replay().await.unwrap();
        assert_eq!((views(scene).await, ran.count()), (before, bodies), "nothing is driven");

        let of = |id: &str| checked.iter().find(|checked| checked.run.id.as_str() == id);
        assert_eq!(of("ended"), None, "a run that has ended needs no code");
        let CheckedRun { status, outcome, .. } = of("late").unwrap();
        assert_eq!(*status, Status::Waiting);
        let error = outcome.as_ref().unwrap_err().to_string();
        assert!(error.contains("(signal word), the code asks for a wait (signal phrase)"), "{error}");
        assert!(matches!(of("gone").unwrap().outcome, Err(ReplayError::NoCode { .. })), "{checked:?}");

        let engine = scene.engine(|engine| register(Change::Nothing, &ran, engine).workflow("gone", gone)).await;
        let checked = engine.check_replay().await.unwrap();
        assert!(checked.len() >= 2 && checked.iter().all(|checked| checked.outcome.is_ok()), "{checked:?}");
    });
}

async fn views(scene: &Scene) -> Vec<outlast_store::RunView> {
    let all = outlast_store::Filter::all(outlast_core::id::Namespace::default_namespace());
    scene.store.list(all).await.unwrap().runs
}
