//! Replay and resume: semantics R1 to R18.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use bytes::Bytes;
use outlast::testing::{self, Programs};
use outlast::{Ctx, Engine, EngineError, Outlast, Recording, Status, Workflow, check_replay};
use outlast_core::commit::{Delivery, Signal, WaitKind};
use outlast_core::event::Event;
use outlast_core::id::{DeliveryId, Key, SignalName};
use outlast_store::{Awaited, Delivered, Retained, Retention};
use serde_json::{Value, json};

use crate::support::{Scene, Tally, journal, key, kinds, seconds, status};

/// The workflow whose log is at the end of the seed.
async fn pipeline(ctx: Ctx, (): ()) -> outlast::Result<Value> {
    let user = ctx.step("fetch-user", async |_| Ok(json!({ "id": "u-1", "tier": "pro" }))).await?;
    ctx.now().await?;
    let day = seconds(86_400);
    let paid: Option<Value> = ctx.wait_for("payment").id("payment-webhook").timeout(day).await?;
    let decision = ctx.approve("Continue?").id("review").await?;
    let ok = user["tier"] == "pro" && paid.is_some() && decision.approved;
    ctx.step("finalize", async |_| Ok(json!({ "ok": ok }))).await
}

/// Semantics R14: the end-to-end log; and R2, what is only emitted is not in it. `OUTLAST_GOLDEN=rewrite` writes
/// the file.
#[test]
fn the_log_of_the_seed_is_the_log_of_the_run() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("pipeline", pipeline)).await;
        let run = engine.start("pipeline", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().signal("payment", &json!({ "amount": 42 }), "evt-1").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().approve("review", true).by("ann").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "ok": true }));
        let log = testing::journal(&engine.run("a").unwrap()).await.unwrap();
        // As the seed has it; the rest is in the file.
        log.shows(&[
            "STEP_FINISHED fetch-user {\"id\":\"u-1\",\"tier\":\"pro\"}",
            "NOW_RECORDED __now-0",
            "SIGNAL_AWAITED payment-webhook",
            "SIGNAL_RESOLVED payment-webhook {\"amount\":42}",
            "APPROVAL_REQUESTED review",
            "APPROVAL_RESOLVED review",
            "STEP_FINISHED finalize {\"ok\":true}",
            "RUN_FINISHED {\"ok\":true}",
        ]);
        log.is_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/seed-003.journal"));
    });
}

/// A run that was recorded once is replayed by the code of today. Never to be written again: if this fails, runs that are
/// under way would park.
#[test]
fn a_run_recorded_long_ago_is_replayed() {
    let recording = include_str!("../golden/seed-003.json");
    let recording: Recording = serde_json::from_str(recording).unwrap();
    let replayed = check_replay(&recording, &Workflow::new("pipeline", pipeline)).unwrap();
    assert_eq!((replayed.events, replayed.ended), (8, true));
}

/// Semantics R4: positional keys, counted per kind.
#[test]
fn operations_without_a_name_are_counted_per_kind() {
    async fn unnamed(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.now().await?;
        ctx.uuid().await?;
        ctx.now().await?;
        ctx.sleep(seconds(1)).await?;
        ctx.wait_for::<u32>("go").timeout(seconds(1)).await?;
        ctx.wait_for::<u32>("stop").timeout(seconds(1)).await?;
        ctx.wait_for::<u32>("go").timeout(seconds(1)).await?;
        ctx.approve("Yes?").timeout(seconds(1)).await?;
        ctx.sleep(seconds(1)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", unnamed)).await;
        engine.start("w", &()).id("a").await.unwrap().result::<()>().await.unwrap();
        let mut keys: Vec<String> =
            journal(&engine, "a").await.iter().filter_map(Event::key).map(Key::to_string).collect();
        keys.dedup();
        let waits = ["__wait-go-0", "__wait-stop-0", "__wait-go-1"];
        let expected = [&["__now-0", "__uuid-0", "__now-1", "__sleep-0"][..], &waits, &["__approve-0", "__sleep-1"]];
        assert_eq!(keys, expected.concat());
    });
}

/// Semantics R4: "explicit ids survive reordering of the code".
#[test]
fn named_operations_may_change_places() {
    async fn before(ctx: Ctx, (): ()) -> outlast::Result<(String, String)> {
        let left = ctx.uuid().id("left").await?.to_string();
        let right = ctx.uuid().id("right").await?.to_string();
        ctx.sleep(seconds(60)).await?;
        Ok((left, right))
    }
    async fn after(ctx: Ctx, (): ()) -> outlast::Result<(String, String)> {
        let right = ctx.uuid().id("right").await?.to_string();
        let left = ctx.uuid().id("left").await?.to_string();
        ctx.sleep(seconds(60)).await?;
        Ok((left, right))
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", before)).await;
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.shutdown().await;
        let engine = scene.engine(|engine| engine.workflow("w", after)).await;
        let (left, right) = engine.run("a").unwrap().result::<(String, String)>().await.unwrap();
        let journal = journal(&engine, "a").await;
        let recorded = |event: &Event| match event {
            Event::UuidRecorded { value, .. } => value.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!((left, right), (recorded(&journal[0]), recorded(&journal[1])));
    });
}

/// Semantics R5: status `waiting`, and what it waits for: here an approval, with its title.
#[test]
fn a_run_that_waits_says_for_what() {
    async fn ask(ctx: Ctx, (): ()) -> outlast::Result<bool> {
        Ok(ctx.approve("Ship it?").assignee("ops").await?.approved)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("ask", ask)).await;
        let run = engine.start("ask", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        let awaiting = scene.awaiting("a").await;
        let [Awaited::Wait { key, kind: WaitKind::Approval, assignee, meta, .. }] = &awaiting[..] else {
            panic!("{awaiting:?}")
        };
        assert_eq!((key.as_str(), assignee.as_deref()), ("__approve-0", Some("ops")));
        assert_eq!(meta.as_deref(), Some(&br#"{"title":"Ship it?"}"#[..]));
        engine.run("a").unwrap().approve("__approve-0", false).feedback("not today").await.unwrap();
        assert!(!run.result::<bool>().await.unwrap(), "a no is a decision");
    });
}

async fn greet(ctx: Ctx, (): ()) -> outlast::Result<String> {
    let name: String = ctx.wait_for("name").id("name").await?;
    ctx.sleep(seconds(60)).await?;
    Ok(format!("Hello, {name}"))
}

/// Semantics R7: "same `signal_id` → no-op success, also after the run has moved on, finished".
#[test]
fn a_signal_sent_again_is_a_success_without_effect() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("greet", greet)).await;
        let run = engine.start("greet", &()).id("a").await.unwrap();
        let send = async |payload: &str| engine.run("a").unwrap().signal("name", payload, "evt-1").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(send("Ann").await, Delivered::Delivered);
        assert_eq!(send("Bob").await, Delivered::Duplicate, "before the run had a chance to move");
        scene.pass(seconds(1)).await;
        assert_eq!(send("Bob").await, Delivered::Duplicate, "after it moved on");
        assert_eq!(run.result::<String>().await.unwrap(), "Hello, Ann");
        assert_eq!(send("Bob").await, Delivered::Duplicate, "after it finished");
        let resolved = kinds(&engine, "a").await.iter().filter(|kind| **kind == "SIGNAL_RESOLVED").count();
        assert_eq!(resolved, 1);
    });
}

/// Semantics R7: "a different id for an operation already resolved → the caller gets `signal_lost`; the winner's
/// payload stands; the run is unaffected".
#[test]
fn a_second_signal_for_the_same_operation_is_lost() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("greet", greet)).await;
        let run = engine.start("greet", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let send = async |id: &str, payload: &'static str| {
            let signal = Signal {
                name: SignalName::new("name").unwrap(),
                id: DeliveryId::new(id).unwrap(),
                payload: Bytes::from_static(payload.as_bytes()),
                aimed: Some(Key::new("name").unwrap()),
            };
            scene.store.deliver(vec![Delivery::Signal { run: key("a"), signal }]).await.remove(0).unwrap()
        };
        assert_eq!(send("evt-1", "\"Ann\"").await, Delivered::Delivered);
        assert_eq!(send("evt-2", "\"Bob\"").await, Delivered::Lost, "the answer is there, though not yet fed");
        assert_eq!(send("evt-1", "\"Ann\"").await, Delivered::Duplicate);
        assert_eq!(run.result::<String>().await.unwrap(), "Hello, Ann");
        assert_eq!(send("evt-3", "\"Eve\"").await, Delivered::Lost, "the run has ended");
    });
}

/// Semantics R8: "state mutations re-run on replay and are derived, never stored".
#[test]
fn state_is_made_again_by_replay() {
    Scene::play_with(Programs::Dropped, async |scene| {
        let changes = Tally::default();
        let counted = changes.clone();
        let register = |engine: Outlast| {
            engine.workflow("w", move |ctx: Ctx, (): ()| {
                let changes = counted.clone();
                async move {
                    let mut state = Vec::new();
                    for n in 0..3 {
                        state.push(ctx.step("n", async |_| Ok(n)).await?);
                        changes.add();
                        ctx.sleep(seconds(1)).await?;
                    }
                    Ok::<_, outlast::Error>(state)
                }
            })
        };
        let engine = scene.engine(register).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        assert_eq!(run.result::<Vec<u32>>().await.unwrap(), [0, 1, 2]);
        assert!(changes.count() > 3, "the changes were made again: {}", changes.count());
    });
}

/// Everything an observer is told, from now to the end of the stream.
async fn watch(engine: &Engine, run: &str) -> Vec<Event> {
    let mut attached = engine.run(run).unwrap().attach();
    let mut told = Vec::new();
    while let Some(event) = attached.next().await.unwrap() {
        told.push(event);
    }
    told
}

fn names(told: &[Event]) -> Vec<&'static str> {
    told.iter().map(|event| event.kind().name()).collect()
}

/// Semantics R10 and R12: "`RUN_STARTED` → the journal → terminal event → end", also long after the end.
#[test]
fn an_observer_sees_the_start_the_journal_and_the_end() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("greet", greet)).await;
        let run = engine.start("greet", &()).id("a").signal("name", "Ann", "1").await.unwrap();
        let live = watch(&engine, "a").await;
        let expected =
            ["RUN_STARTED", "SIGNAL_AWAITED", "SIGNAL_RESOLVED", "TIMER_STARTED", "TIMER_FIRED", "RUN_FINISHED"];
        assert_eq!(names(&live), expected);
        run.result::<String>().await.unwrap();
        scene.pass(seconds(3_000)).await;
        assert_eq!(watch(&engine, "a").await, live, "the same again later");
    });
}

/// Semantics R10: attach "never drives the run".
#[test]
fn watching_does_not_drive() {
    Scene::play(async |scene| {
        let bystander = scene.engine(|engine| engine).await;
        bystander.start("greet", &()).id("a").version("1").await.unwrap();
        let mut attached = bystander.run("a").unwrap().attach();
        let first = attached.next().await.unwrap().unwrap();
        assert_eq!(first.kind().name(), "RUN_STARTED");
        assert_eq!(status(&bystander, "a").await, Status::Queued);
        let engine = scene.engine(|engine| engine.workflow("greet", greet)).await;
        engine.run("a").unwrap().signal("name", "Ann", "1").await.unwrap();
        engine.run("a").unwrap().result::<String>().await.unwrap();
        let mut last = first;
        while let Some(event) = attached.next().await.unwrap() {
            last = event;
        }
        assert_eq!(last.kind().name(), "RUN_FINISHED", "it sees what others drive");
    });
}

/// `emit`: "observers see them; never replayed twice to the same observer position". And the end comes last.
#[test]
fn what_is_emitted_is_seen_once_and_not_kept() {
    async fn noisy(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(1)).await?;
        ctx.emit("progress", &1)?;
        ctx.sleep(seconds(1)).await?;
        ctx.emit("progress", &2)?;
        ctx.set_state(&json!({ "half": true }))?;
        ctx.emit("progress", &3)?;
        Ok(())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("noisy", noisy)).await;
        engine.start("noisy", &()).id("a").await.unwrap();
        let told = watch(&engine, "a").await;
        let emitted: Vec<String> = told
            .iter()
            .filter_map(|event| match event {
                Event::Custom { name, payload } => Some(format!("{name} {}", String::from_utf8_lossy(payload))),
                Event::StateDelta { delta } => Some(String::from_utf8_lossy(delta).into_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(emitted, ["progress 1", "progress 2", "{\"half\":true}", "progress 3"]);
        assert_eq!(names(&told).last(), Some(&"RUN_FINISHED"));
        let kept = ["TIMER_STARTED", "TIMER_FIRED", "TIMER_STARTED", "TIMER_FIRED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, kept);
    });
}

/// Semantics R12: "`delete_run`; a live run is refused; afterwards a tombstone answers `run_lost`".
#[test]
fn a_run_is_deleted_when_it_has_ended_and_then_it_is_lost() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("greet", greet)).await;
        let run = engine.start("greet", &()).id("a").await.unwrap();
        let refused = engine.run("a").unwrap().delete("no longer needed").await.unwrap_err();
        assert!(refused.to_string().contains("is live"), "{refused}");
        engine.run("a").unwrap().signal("name", "Ann", "1").await.unwrap();
        run.result::<String>().await.unwrap();
        engine.run("a").unwrap().delete("Ann asked for it").await.unwrap();
        let handle = engine.run("a").unwrap();
        let lost = handle.signal("name", "Bob", "2").await.unwrap_err().to_string();
        assert!(lost.contains("was deleted (Ann asked for it)"), "{lost}");
        assert_eq!(handle.view().await.unwrap_err().code(), "run_lost");
        assert_eq!(handle.signal("name", "Bob", "2").await.unwrap_err().code(), "run_lost");
        assert_eq!(handle.attach().next().await.unwrap_err().code(), "run_lost");
        assert_eq!(engine.run("a").unwrap().result::<String>().await.unwrap_err().code(), "run_lost");
    });
}

/// Semantics R12: "retention is the store's policy (memory: 1 h, never a waiting run)".
#[test]
fn what_has_ended_goes_after_its_time_and_what_waits_never_does() {
    Scene::play(async |scene| {
        let hour = seconds(3_600);
        let engine = scene.engine(|engine| engine.workflow("greet", greet).retention(hour * 24)).await;
        for id in ["ended", "waiting"] {
            engine.start("greet", &()).id(id).await.unwrap();
        }
        engine.run("ended").unwrap().signal("name", "Ann", "1").await.unwrap();
        engine.run("ended").unwrap().result::<String>().await.unwrap();
        scene.pass(hour * 23).await;
        assert_eq!(status(&engine, "ended").await, Status::Completed);
        scene.pass(hour * 6).await;
        assert_eq!(engine.run("ended").unwrap().view().await.unwrap_err().code(), "run_lost");
        scene.pass(hour * 24 * 9).await;
        assert_eq!(engine.run("ended").unwrap().view().await.unwrap_err().code(), "not_found", "its tombstone too");
        engine.run("waiting").unwrap().signal("name", "Bob", "1").await.unwrap();
        assert_eq!(engine.run("waiting").unwrap().result::<String>().await.unwrap(), "Hello, Bob");
    });
}

/// Semantics R12: what a deleted run left behind goes at once, although nothing else is ever removed.
#[test]
fn the_rows_of_a_deleted_run_go_at_once() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("greet", greet)).await;
        let run = engine.start("greet", &()).id("a").await.unwrap();
        engine.run("a").unwrap().signal("name", "Ann", "1").await.unwrap();
        run.result::<String>().await.unwrap();
        engine.run("a").unwrap().delete("Ann asked for it").await.unwrap();
        scene.pass(seconds(1)).await;
        let left = scene.store.retain(Retention { age: std::time::Duration::MAX, limit: 100 }).await.unwrap();
        assert_eq!(left, Retained::default(), "there was nothing left to do");
        assert_eq!(engine.run("a").unwrap().view().await.unwrap_err().code(), "run_lost");
    });
}

/// Semantics R13: the codes a caller branches on.
#[test]
fn errors_have_codes() {
    async fn fail(_: Ctx, (): ()) -> outlast::Result<()> {
        Err(outlast::Error::new("mine", "no"))
    }
    async fn number(_: Ctx, n: u32) -> outlast::Result<u32> {
        Ok(n)
    }
    Scene::play(async |scene| {
        let register =
            |engine: Outlast| engine.workflow("greet", greet).workflow("fail", fail).workflow("number", number);
        let engine = scene.engine(register).await;
        let unknown = engine.run("nobody").unwrap();
        assert_eq!(unknown.signal("x", &1, "1").await.unwrap_err().code(), "not_found");
        assert_eq!(unknown.status().await.unwrap_err().code(), "not_found");
        let finished = engine.start("number", &7).id("n").await.unwrap();
        assert_eq!(finished.result::<u32>().await.unwrap(), 7);
        let late = engine.run("n").unwrap().signal("x", &1, "1").await.unwrap_err();
        assert!(matches!(late, EngineError::Lost { .. }), "{late}");
        assert_eq!(late.code(), "signal_lost");
        assert_eq!(engine.start("fail", &()).await.unwrap().result::<()>().await.unwrap_err().code(), "mine");
        let misfit = engine.start("number", "seven").await.unwrap().result::<u32>().await.unwrap_err();
        assert_eq!(misfit.code(), "validation_error");
        let another = engine.start("number", &8).id("n").await.map(|_| ()).unwrap_err();
        assert_eq!(another.code(), "run_exists");
        let nothing = engine.start("nothing", &()).await.map(|_| ()).unwrap_err();
        assert_eq!(nothing.code(), "unknown_workflow");
        let waiting = engine.start("greet", &()).id("g").await.unwrap();
        engine.run("g").unwrap().cancel("enough").await.unwrap();
        assert_eq!(waiting.result::<String>().await.unwrap_err().code(), "aborted");
    });
}
