//! A program that wants more at once than one commit takes goes on in portions, and can be stopped between two.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use outlast::{Ctx, Engine, Outlast, Status, StepContext, TaskContext};
use outlast_core::limits::Limits;
use outlast_store::MemoryStore;
use outlast_store::faults::FaultStore;
use serde_json::{Value, json};

use crate::support::{Scene, Tally, kinds, seconds, status};

/// Events in one commit, at most.
const LIMIT: usize = 40;

/// An engine and its store, both with the limit.
async fn limited(scene: &Scene, register: impl FnOnce(Outlast) -> Outlast) -> Engine {
    let limits = Limits { commit_events: LIMIT, ..Limits::default() };
    let store = Arc::new(MemoryStore::new(scene.world.clock(), limits.clone()));
    register(scene.world.engine_on(store).limits(limits)).start().await.unwrap()
}

fn numbers() -> Value {
    (0..100).collect()
}

fn foreach(concurrency: u32, child: &str) -> String {
    format!(
        "flow: story\nnodes:\n  - {{ id: each, type: foreach, items: \"${{input}}\", concurrency: {concurrency}, body: [{child}] }}\n\
         result: \"${{each.iterations.length}}\"\n"
    )
}

#[test]
fn a_flow_of_scripts_alone_is_not_too_much_for_one_commit() {
    Scene::play(async |scene| {
        let text = foreach(1, "{ id: a, type: script, script: \"${item * 2}\" }");
        let engine = limited(scene, |engine| engine.flow("story.flow.yaml", &text)).await;
        let run = engine.start("story", &numbers()).id("a").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!(100));
    });
}

#[test]
fn a_hundred_iterations_at_once_are_not_too_much_for_one_commit() {
    async fn echo(_: TaskContext, n: u32) -> outlast::Result<u32> {
        Ok(n)
    }
    async fn double(_: StepContext, n: f64) -> outlast::Result<f64> {
        Ok(2.0 * n)
    }
    for child in [
        "{ id: a, type: task, task: echo, with: \"${item}\" }",
        "{ id: a, type: step, step: double, with: \"${item}\" }",
        "{ id: a, type: sleep, for: 10s }",
    ] {
        Scene::play(async |scene| {
            let text = foreach(100, child);
            let register = |engine: Outlast| engine.task("echo", echo).step("double", double);
            let engine = limited(scene, |engine| register(engine).flow("story.flow.yaml", &text)).await;
            let run = engine.start("story", &numbers()).id("a").await.unwrap();
            assert_eq!(run.result::<Value>().await.unwrap(), json!(100), "{child}");
        });
    }
}

#[test]
fn code_that_wants_hundreds_of_things_at_once_gets_them_and_may_give_them_up_again() {
    async fn crowd(ctx: Ctx, count: u32) -> outlast::Result<usize> {
        let tasks: Vec<_> = (0..count).map(|n| ctx.task::<u32>("echo", &n)).collect();
        let done = ctx.all(tasks).await?.len();
        let sleeps: Vec<_> = (0..count).map(|n| ctx.sleep(seconds(u64::from(n) + 5))).collect();
        // All but the first lose, and are cancelled.
        ctx.race(sleeps).await?;
        let steps = (0..count).map(|n| ctx.step("add", async move |_| Ok(n))).collect::<Vec<_>>();
        Ok(done + ctx.all(steps).await?.len())
    }
    async fn echo(_: TaskContext, n: u32) -> outlast::Result<u32> {
        Ok(n)
    }
    Scene::play(async |scene| {
        let engine = limited(scene, |engine| engine.task("echo", echo).workflow("crowd", crowd)).await;
        let run = engine.start("crowd", &300_u32).id("a").await.unwrap();
        assert_eq!(run.result::<usize>().await.unwrap(), 600);
    });
}

#[test]
fn payloads_are_counted_too() {
    async fn heavy(ctx: Ctx, (): ()) -> outlast::Result<usize> {
        let steps = (0..30).map(|_| ctx.step("large", async |_| Ok("x".repeat(1 << 20)))).collect::<Vec<_>>();
        Ok(ctx.all(steps).await?.len())
    }
    Scene::play(async |scene| {
        let store = Arc::new(FaultStore::counting(Arc::clone(&scene.store)));
        let engine = scene.world.engine_on(store.clone()).workflow("heavy", heavy).start().await.unwrap();
        let run = engine.start("heavy", &()).id("a").await.unwrap();
        assert_eq!(run.result::<usize>().await.unwrap(), 30);
        let commits = store.log().iter().filter(|call| **call == "commit").count();
        assert_eq!(commits, 2, "16 MiB, and the rest");
    });
}

// What was asked of a run before it began.

/// A run that nobody drives before it is asked to stop.
async fn queued(scene: &Scene, register: impl FnOnce(Outlast) -> Outlast) -> Engine {
    scene.engine(|engine| register(engine).without_loops()).await
}

#[test]
fn a_pause_is_read_before_a_run_does_anything() {
    let text = "flow: story\nnodes: [{ id: one, type: script, script: \"${1}\" }, { id: said, type: script, script: \"${messages}\" }]";
    Scene::play_scripts(async |scene| {
        let engine = queued(scene, |engine| engine.flow("story.flow.yaml", text)).await;
        let run = engine.start("story", &()).id("a").await.unwrap();
        run.pause("wait").await.unwrap();
        engine.drive_once("a").await.unwrap();
        assert_eq!(kinds(&engine, "a").await, ["RUN_PAUSED"]);
        assert_eq!(status(&engine, "a").await, Status::Paused);
        run.resume_with("hi").await.unwrap();
        engine.drive_once("a").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap()["said"], json!(["hi"]));
    });
}

#[test]
fn a_message_that_comes_with_its_pause_is_heard() {
    let text = "flow: story\nnodes: [{ id: said, type: script, script: \"${messages}\" }]";
    Scene::play_scripts(async |scene| {
        let engine = queued(scene, |engine| engine.flow("story.flow.yaml", text)).await;
        let run = engine.start("story", &()).id("a").await.unwrap();
        run.pause("wait").await.unwrap();
        run.resume_with("hi").await.unwrap();
        engine.drive_once("a").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!({ "said": ["hi"] }));
    });
}

#[test]
fn a_cancel_is_read_before_a_run_comes_to_its_end() {
    let text = "flow: story\nnodes: [{ id: one, type: script, script: \"${1}\" }]";
    Scene::play_scripts(async |scene| {
        let engine = queued(scene, |engine| engine.flow("story.flow.yaml", text)).await;
        let run = engine.start("story", &()).id("a").await.unwrap();
        run.cancel("not wanted").await.unwrap();
        engine.drive_once("a").await.unwrap();
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
    });
}

#[test]
fn no_body_of_a_run_begins_that_is_to_pause() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let counted = ran.clone();
        let work = move |ctx: Ctx, (): ()| {
            let counted = counted.clone();
            async move {
                let counted = &counted;
                ctx.step("charge", async |_| Ok(counted.add())).at_most_once().await
            }
        };
        let engine = queued(scene, |engine| engine.workflow("work", work)).await;
        let run = engine.start("work", &()).id("a").await.unwrap();
        run.pause("wait").await.unwrap();
        engine.drive_once("a").await.unwrap();
        assert_eq!((ran.count(), kinds(&engine, "a").await), (0, vec!["RUN_PAUSED"]));
        run.resume().await.unwrap();
        engine.drive_once("a").await.unwrap();
        assert_eq!((ran.count(), status(&engine, "a").await), (1, Status::Completed));
    });
}

#[test]
fn code_that_is_cancelled_before_it_begins_runs_nothing_but_its_cleanup() {
    async fn careful(ctx: Ctx, (): ()) -> outlast::Result<String> {
        match ctx.step("charge", async |_| Ok(1)).await {
            Ok(_) => Ok("charged".to_owned()),
            Err(_) => ctx.step("tidy", async |_| Ok(())).await.map(|()| "tidied".to_owned()),
        }
    }
    Scene::play(async |scene| {
        let engine = queued(scene, |engine| engine.workflow("careful", careful)).await;
        let run = engine.start("careful", &()).id("a").await.unwrap();
        run.cancel("not wanted").await.unwrap();
        engine.drive_once("a").await.unwrap();
        let told = kinds(&engine, "a").await;
        assert_eq!(told.first(), Some(&"CANCEL_REQUESTED"), "{told:?}");
        assert_eq!(told.iter().filter(|kind| **kind == "STEP_FINISHED").count(), 1, "{told:?}");
    });
}
