//! Workers that are not part of the engine's process: they ask, and say what came of it. Seed 002, Workers.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::testing::World;
use outlast::{
    ClaimRequest, Ctx, Engine, Failure, Jitter, Outlast, Retry, TaskContext, TaskOffer, TaskState, Timestamp,
};
use outlast_core::id::Namespace;
use serde_json::json;

use crate::support::{Scene, kinds, seconds};

fn request(id: u64) -> ClaimRequest {
    ClaimRequest {
        worker: "mill".to_owned(),
        id,
        queues: vec!["default".to_owned()],
        names: vec!["grind".to_owned()],
        host: Some("mill.example.org".to_owned()),
        limit: 10,
        lease: seconds(30),
    }
}

async fn claim_one(engine: &Engine, id: u64) -> TaskOffer {
    let mut offers = engine.claim_tasks(request(id)).await.unwrap();
    assert_eq!(offers.len(), 1, "one task should be there to be claimed");
    offers.remove(0)
}

fn retry(attempts: u32) -> Retry {
    Retry::attempts(attempts).jitter(Jitter::None)
}

async fn grinds(ctx: Ctx, attempts: u32) -> outlast::Result<u32> {
    let task = ctx.task("grind", &21).retry(retry(attempts));
    task.timeout(seconds(100)).heartbeat(seconds(20)).await
}

fn milling(engine: Outlast) -> Outlast {
    engine.workflow("grinds", grinds)
}

async fn begun(scene: &Scene, attempts: u32) -> (Engine, outlast::RunHandle) {
    let engine = scene.engine(milling).await;
    let run = engine.start("grinds", &attempts).id("a").await.unwrap();
    scene.pass(seconds(1)).await;
    (engine, run)
}

#[test]
fn a_worker_elsewhere_gets_all_it_needs_and_its_result_reaches_the_run() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 3).await;
        let offer = claim_one(&engine, 1).await;
        assert_eq!((offer.name.as_str(), offer.queue.as_str(), offer.attempt), ("grind", "default", 1));
        assert_eq!((&offer.args[..], offer.run.clone().unwrap().as_str()), (&b"21"[..], "a"));
        assert_eq!(offer.idempotency_key, format!("default/{}", offer.id));
        assert_eq!((offer.deadline, offer.silence), (Some(offer.now + seconds(100)), Some(seconds(20))));
        assert_eq!(offer.until, offer.now + seconds(20), "not longer than it may be silent");
        engine.complete_task(&offer.token, &42).await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 42);
        let late = engine.complete_task(&offer.token, &43).await.unwrap_err();
        assert_eq!(late.code(), "task_lost");
    });
}

/// The answer was lost, not the word: whoever says the same again is told the same.
#[test]
fn what_is_said_again_about_an_attempt_is_answered_as_before() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 3).await;
        let offer = claim_one(&engine, 1).await;
        let jammed = || Failure::new("jammed", "a stone");
        let again = engine.fail_task(&offer.token, jammed()).await.unwrap();
        scene.pass(seconds(1) / 10).await;
        assert_eq!(engine.fail_task(&offer.token, jammed()).await.unwrap(), again, "when was decided the first time");
        let other = Failure::new("jammed", "two stones");
        assert_eq!(engine.fail_task(&offer.token, other).await.unwrap_err().code(), "task_lost");
        assert_eq!(engine.complete_task(&offer.token, &1).await.unwrap_err().code(), "task_lost");
        scene.pass(seconds(60)).await;
        let second = claim_one(&engine, 2).await;
        assert_eq!(engine.fail_task(&offer.token, jammed()).await.unwrap_err().code(), "task_lost", "it is stale");
        engine.complete_task(&second.token, &7).await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        engine.complete_task(&second.token, &7).await.unwrap();
        assert_eq!(engine.complete_task(&second.token, &8).await.unwrap_err().code(), "task_lost");
        // Also much later, when the attempt would have taken too long, and from an engine that never heard of it.
        scene.pass(seconds(1_000)).await;
        let elsewhere = scene.engine(milling).await;
        elsewhere.complete_task(&second.token, &7).await.unwrap();
        assert_eq!(elsewhere.complete_task(&second.token, &8).await.unwrap_err().code(), "task_lost");
        assert_eq!(kinds(&engine, "a").await.iter().filter(|kind| **kind == "TASK_FINISHED").count(), 1);
    });
}

#[test]
fn a_failure_for_good_that_is_said_again_is_answered_as_before() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 1).await;
        let offer = claim_one(&engine, 1).await;
        for _ in 0..2 {
            assert_eq!(engine.fail_task(&offer.token, Failure::new("jammed", "a stone")).await.unwrap(), None);
        }
        assert_eq!(run.result::<u32>().await.unwrap_err().code(), "jammed");
        assert_eq!(engine.fail_task(&offer.token, Failure::new("jammed", "a stone")).await.unwrap(), None);
        assert_eq!(engine.complete_task(&offer.token, &1).await.unwrap_err().code(), "task_lost");
    });
}

/// Nothing is left of a task that no run waited for: that it is over is all that can be told.
#[test]
fn a_result_that_no_run_waited_for_is_lost_when_it_is_said_again() {
    Scene::play(async |scene| {
        let engine = scene.engine(milling).await;
        engine.enqueue("grind", &1).id("t").await.unwrap();
        let offer = claim_one(&engine, 1).await;
        engine.complete_task(&offer.token, &1).await.unwrap();
        let error = engine.complete_task(&offer.token, &1).await.unwrap_err();
        assert_eq!(error.code(), "task_lost");
        assert_eq!(
            error.to_string(),
            "this attempt at the task t is over, and nothing was changed; ask for other work"
        );
    });
}

/// 8 MiB of arguments at most, so that neither side must hold half a gigabyte.
#[test]
fn a_claim_is_given_as_much_as_fits_into_an_answer() {
    Scene::play(async |scene| {
        let engine = scene.engine(milling).await;
        for task in 0..12 {
            engine.enqueue("grind", &"x".repeat(1 << 20)).id(format!("t-{task:02}")).await.unwrap();
        }
        let first = engine.claim_tasks(ClaimRequest { limit: 100, ..request(1) }).await.unwrap();
        assert_eq!(first.len(), 7, "seven and their quotes");
        let rest = engine.claim_tasks(ClaimRequest { limit: 100, ..request(2) }).await.unwrap();
        assert_eq!(rest.len(), 5, "what was given back is there at once");
        assert!(rest.iter().all(|offer| offer.attempt == 1), "and did not count");
    });
}

/// "A claim whose reply was lost is repeated under the same id."
#[test]
fn a_repeated_claim_gives_the_same_attempt() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 3).await;
        let first = claim_one(&engine, 1).await;
        scene.pass(seconds(5)).await;
        let again = claim_one(&engine, 1).await;
        assert_eq!((again.attempt, again.deadline), (1, first.deadline), "the attempt began when it was handed out");
        assert_eq!(engine.claim_tasks(request(2)).await.unwrap(), []);
        engine.complete_task(&first.token, &1).await.unwrap();
        assert_eq!(engine.complete_task(&again.token, &2).await.unwrap_err().code(), "task_lost");
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
    });
}

#[test]
fn a_failure_is_tried_again_by_the_policy_and_at_last_reaches_the_run() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 2).await;
        let offer = claim_one(&engine, 1).await;
        let again = engine.fail_task(&offer.token, Failure::new("jammed", "a stone")).await.unwrap().unwrap();
        assert!(again > offer.now);
        assert_eq!(engine.claim_tasks(request(2)).await.unwrap(), [], "not before its time");
        let view = engine.task(offer.id.as_str()).await.unwrap().view;
        assert_eq!((view.state, view.attempt), (TaskState::Delayed, 1));
        scene.pass(seconds(60)).await;
        let offer = claim_one(&engine, 3).await;
        assert_eq!(offer.attempt, 2);
        assert_eq!(engine.fail_task(&offer.token, Failure::new("jammed", "a stone")).await.unwrap(), None);
        assert_eq!(run.result::<u32>().await.unwrap_err().code(), "jammed");
    });
}

#[test]
fn a_permanent_failure_is_not_tried_again_and_a_result_that_is_too_large_is_one() {
    Scene::play(async |scene| {
        let engine = scene.engine(milling).await;
        for (id, task) in [(1, "permanent"), (2, "large")] {
            engine.enqueue("grind", &1).id(task).retry(retry(5)).await.unwrap();
            let offer = claim_one(&engine, id).await;
            match task {
                "large" => engine.complete_task(&offer.token, &"x".repeat(3 << 20)).await.unwrap(),
                _ => {
                    let failure = Failure::new("broken", "for good").permanent();
                    assert_eq!(engine.fail_task(&offer.token, failure).await.unwrap(), None);
                }
            }
            assert_eq!(engine.task(task).await.unwrap().view.state, TaskState::Dead);
        }
        let note = engine.task("large").await.unwrap().view.note.unwrap();
        assert!(String::from_utf8_lossy(&note).contains("limit_exceeded"));
    });
}

/// No code of the engine runs beside the attempt: its claim lapses when its time is up.
#[test]
fn an_attempt_that_takes_too_long_is_over_and_tried_again_by_the_policy() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 2).await;
        let offer = claim_one(&engine, 1).await;
        let deadline = offer.deadline.unwrap();
        let mut until = offer.until;
        for _ in 0..5 {
            scene.pass(seconds(19)).await;
            until = engine.heartbeat_task(&offer.token, None).await.unwrap().until;
        }
        assert_eq!(until, deadline, "signs of life do not prolong the attempt");
        scene.pass(seconds(6)).await;
        assert_eq!(engine.heartbeat_task(&offer.token, None).await.unwrap_err().code(), "task_lost");
        assert_eq!(engine.complete_task(&offer.token, &1).await.unwrap_err().code(), "task_lost");
        assert_eq!(engine.claim_tasks(request(2)).await.unwrap(), [], "it is put off, as any other failure");
        let view = engine.task(offer.id.as_str()).await.unwrap().view;
        assert_eq!((view.state, view.attempt), (TaskState::Delayed, 1));
        assert!(String::from_utf8_lossy(&view.note.unwrap()).contains("attempt 1 took longer than 100s"));
        scene.pass(seconds(60)).await;
        let second = claim_one(&engine, 3).await;
        assert_eq!(second.attempt, 2, "judging an attempt is not one");
        scene.pass(seconds(120)).await;
        assert_eq!(engine.claim_tasks(request(4)).await.unwrap(), []);
        let failure = run.result::<u32>().await.unwrap_err();
        assert_eq!(failure.code(), "timeout");
        assert!(failure.to_string().contains("attempt 2 gave no sign of life for 20s"), "{failure}");
    });
}

#[test]
fn a_silent_handler_is_given_up_and_a_talkative_one_is_not() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 1).await;
        let offer = claim_one(&engine, 1).await;
        for done in 1..4 {
            scene.pass(seconds(19)).await;
            let held = engine.heartbeat_task(&offer.token, Some(&json!({ "done": done }))).await.unwrap();
            assert!(!held.cancelled);
        }
        let note = engine.task(offer.id.as_str()).await.unwrap().view.note.unwrap();
        assert_eq!(&note[..], b"{\"done\":3}");
        scene.pass(seconds(20)).await;
        assert_eq!(engine.claim_tasks(request(2)).await.unwrap(), []);
        assert_eq!(run.result::<u32>().await.unwrap_err().code(), "timeout");
        assert_eq!(kinds(&engine, "a").await.last(), Some(&"RUN_ERRORED"));
        assert_eq!(engine.fail_task(&offer.token, Failure::new("late", "too")).await.unwrap_err().code(), "task_lost");
    });
}

/// A worker that dies before its attempt's time is up: as in this process, the next attempt begins at once.
#[test]
fn a_worker_elsewhere_that_dies_loses_its_task_with_its_lease() {
    Scene::play(async |scene| {
        let engine = scene.engine(milling).await;
        engine.enqueue("grind", &1).id("t").retry(retry(2)).timeout(seconds(1_000)).await.unwrap();
        let dead = claim_one(&engine, 1).await;
        assert_eq!(dead.until, dead.now + seconds(30));
        scene.pass(seconds(31)).await;
        let next = claim_one(&engine, 2).await;
        assert_eq!(next.attempt, 2);
        assert_eq!(engine.complete_task(&dead.token, &1).await.unwrap_err().code(), "task_lost");
        scene.pass(seconds(31)).await;
        assert_eq!(engine.claim_tasks(request(3)).await.unwrap(), []);
        let view = engine.task("t").await.unwrap().view;
        assert_eq!(view.state, TaskState::Dead, "its attempts are used up");
        assert!(String::from_utf8_lossy(&view.note.unwrap()).contains("worker_lost"));
    });
}

#[test]
fn a_cancelled_task_is_told_at_the_heartbeat_and_given_back_it_is_gone() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 3).await;
        let offer = claim_one(&engine, 1).await;
        run.cancel("enough").await.unwrap();
        run.result::<u32>().await.unwrap_err();
        assert!(engine.heartbeat_task(&offer.token, None).await.unwrap().cancelled);
        engine.give_back_task(&offer.token).await.unwrap();
        assert!(engine.tasks().await.unwrap().tasks.is_empty());
    });
}

#[test]
fn what_is_given_back_did_not_count() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 1).await;
        for id in 1..4 {
            let offer = claim_one(&engine, id).await;
            assert_eq!(offer.attempt, 1);
            engine.give_back_task(&offer.token).await.unwrap();
        }
        let offer = claim_one(&engine, 4).await;
        engine.complete_task(&offer.token, &7).await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
    });
}

/// Handlers here take what lapses elsewhere, and judge it by the same rules.
#[test]
fn a_handler_in_this_process_goes_on_where_a_worker_elsewhere_fell_silent() {
    async fn grind(task: TaskContext, _: u32) -> outlast::Result<u32> {
        Ok(task.attempt())
    }
    Scene::play(async |scene| {
        let alone = scene.engine(milling).await;
        let run = alone.start("grinds", &3).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let offer = claim_one(&alone, 1).await;
        let both = scene.engine(|engine| milling(engine).task("grind", grind)).await;
        assert_eq!(run.result::<u32>().await.unwrap(), 2);
        let now: Timestamp = scene.world.now();
        assert!(now >= offer.until, "not before it lapsed");
        assert_eq!(both.complete_task(&offer.token, &9).await.unwrap_err().code(), "task_lost");
    });
}

/// A worker with a credential of one namespace must only get that one's tasks.
#[test]
fn a_worker_of_one_namespace_gets_and_ends_nothing_of_another() {
    let world = World::new();
    world.block_on(async {
        let store = world.store();
        store.put_namespace(Namespace::new("blue").unwrap()).await.unwrap();
        let engine = world.engine_on(store.clone()).start().await.unwrap();
        let blue = world.engine_on(store).namespace(Namespace::new("blue").unwrap()).start().await.unwrap();
        engine.enqueue("grind", &1).id("t").await.unwrap();
        assert_eq!(blue.claim_tasks(request(1)).await.unwrap(), []);
        let offer = claim_one(&engine, 1).await;
        assert_eq!(blue.complete_task(&offer.token, &1).await.unwrap_err().code(), "validation_error");
        assert_eq!(blue.heartbeat_task(&offer.token, None).await.unwrap_err().code(), "validation_error");
        engine.complete_task(&offer.token, &1).await.unwrap();
    });
}

#[test]
fn a_token_that_nobody_gave_is_refused() {
    Scene::play(async |scene| {
        let (engine, run) = begun(scene, 1).await;
        let offer = claim_one(&engine, 1).await;
        let mut forged = offer.token.clone();
        forged.replace_range(10..12, if &forged[10..12] == "00" { "11" } else { "00" });
        for token in ["", "nonsense", forged.as_str()] {
            assert_eq!(engine.complete_task(token, &1).await.unwrap_err().code(), "validation_error");
            assert_eq!(engine.give_back_task(token).await.unwrap_err().code(), "validation_error");
        }
        engine.complete_task(&offer.token, &1).await.unwrap();
        run.result::<u32>().await.unwrap();
    });
}

#[test]
fn a_claim_that_says_nothing_of_what_it_can_do_is_refused() {
    Scene::play(async |scene| {
        let engine = scene.engine(milling).await;
        for wrong in [
            ClaimRequest { names: Vec::new(), ..request(1) },
            ClaimRequest { queues: Vec::new(), ..request(1) },
            ClaimRequest { worker: String::new(), ..request(1) },
        ] {
            assert_eq!(engine.claim_tasks(wrong).await.unwrap_err().code(), "validation_error");
        }
    });
}
