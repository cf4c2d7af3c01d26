//! The codes callers branch on: semantics R13. What the message says is for people.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::testing::World;
use outlast::{Ctx, EngineError, Outlast};

use crate::support::{Scene, seconds};

async fn ask(ctx: Ctx, fail: bool) -> outlast::Result<u32> {
    if fail {
        return Err("x".parse::<u32>().unwrap_err().into());
    }
    let first: u32 = ctx.wait_for("word").id("first").await?;
    ctx.approve("Ship it?").id("ship").await?;
    ctx.sleep(seconds(60)).await?;
    Ok(first)
}

fn register(engine: Outlast) -> Outlast {
    engine.workflow("ask", ask)
}

fn code<T>(answer: Result<T, EngineError>) -> String {
    answer.err().map(|error| error.code().to_owned()).unwrap_or_default()
}

#[test]
fn a_second_answer_is_lost_and_the_first_one_stands() {
    Scene::play(async |scene| {
        let engine = scene.engine(register).await;
        let run = engine.start("ask", &false).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let handle = engine.run("a").unwrap();
        handle.signal_to("first", "word", &7, "one").await.unwrap();
        assert_eq!(code(handle.signal_to("first", "word", &8, "two").await), "signal_lost");
        assert_eq!(code(handle.signal_to("first", "word", &7, "one").await), "", "the same id again is a success");
        scene.pass(seconds(1)).await;
        handle.approve("ship", true).await.unwrap();
        assert_eq!(code(handle.approve("ship", false).await), "approval_lost");
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        assert_eq!(code(handle.signal("word", &9, "three").await), "signal_lost", "the run has ended");
        assert_eq!(code(handle.signal_to("first", "word", &7, "one").await), "", "also after its end");
    });
}

/// "`run_lost` (deleted)": for whatever is asked of it.
#[test]
fn a_deleted_run_is_lost() {
    Scene::play(async |scene| {
        let engine = scene.engine(register).await;
        let run = engine.start("ask", &true).id("a").await.unwrap();
        assert_eq!(code(run.result::<u32>().await), "error", "an error without a code of its own");
        let handle = engine.run("a").unwrap();
        handle.delete("no longer needed").await.unwrap();
        assert_eq!(code(handle.view().await), "run_lost");
        assert_eq!(code(handle.journal().await), "run_lost");
        assert_eq!(code(handle.awaiting().await), "run_lost");
        assert_eq!(code(handle.pauses().await), "run_lost");
        assert_eq!(code(handle.explain().await), "run_lost");
        assert_eq!(code(handle.signal("word", &7, "s").await), "run_lost");
        assert_eq!(code(handle.approve("ship", true).await), "run_lost");
        assert_eq!(code(handle.cancel("enough").await), "run_lost");
        assert_eq!(code(handle.terminate("enough").await), "run_lost");
        assert_eq!(code(handle.fork(0).await), "run_lost");
        assert_eq!(code(engine.drive_once("a").await), "run_lost");
        assert_eq!(code(engine.start("ask", &true).id("a").await), "run_lost");
        assert_eq!(code(engine.run("a").unwrap().result::<u32>().await), "run_lost");
    });
}

#[test]
fn what_nobody_knows_is_not_found() {
    Scene::play(async |scene| {
        let engine = scene.engine(register).await;
        let handle = engine.run("nobody").unwrap();
        assert_eq!(code(handle.view().await), "not_found");
        assert_eq!(code(handle.explain().await), "not_found");
        assert_eq!(code(handle.signal("word", &7, "s").await), "not_found");
        assert_eq!(code(engine.start("other", &()).await), "unknown_workflow");
    });
}

#[test]
fn what_cannot_be_so_is_a_validation_error() {
    Scene::play(async |scene| {
        let engine = scene.engine(register).await;
        let run = engine.start("ask", &false).id("a").await.unwrap();
        assert_eq!(code(engine.run("")), "validation_error");
        assert_eq!(code(engine.start("", &()).await), "validation_error");
        let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(code(engine.start("ask", &odd).await), "validation_error", "no JSON");
        let handle = engine.run("a").unwrap();
        assert_eq!(code(handle.signal("", &7, "s").await), "validation_error");
        assert_eq!(code(handle.signal("word", &7, "").await), "validation_error");
        handle.terminate("enough").await.unwrap();
        assert_eq!(code(run.result::<u32>().await), "aborted");
        assert_eq!(code(engine.start("ask", &true).id("a").await), "run_exists", "with another input");
        let limit = code(engine.start("ask", &"x".repeat(3 << 20)).await);
        assert_eq!(limit, "limit_exceeded");
    });
}

/// "`aborted` (cancelled or terminated while the caller waited)".
#[test]
fn whoever_waits_for_a_run_that_is_stopped_is_told_that_it_was_aborted() {
    for terminate in [false, true] {
        Scene::play(async |scene| {
            let engine = scene.engine(register).await;
            let run = engine.start("ask", &false).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            let handle = engine.run("a").unwrap();
            match terminate {
                true => handle.terminate("enough").await.unwrap(),
                false => assert_eq!(code(handle.cancel("enough").await), ""),
            }
            assert_eq!(code(run.result::<u32>().await), "aborted");
            assert_eq!(code(engine.run("a").unwrap().result::<u32>().await), "aborted", "and whoever asks later");
        });
    }
}

#[test]
fn an_engine_that_is_shut_down_says_so_with_the_plain_code() {
    Scene::play(async |scene| {
        let engine = scene.engine(register).await;
        let run = engine.start("ask", &false).id("a").await.unwrap();
        engine.shutdown().await;
        let handle = engine.run("a").unwrap();
        assert_eq!(code(handle.view().await), "error");
        assert_eq!(code(handle.terminate("enough").await), "error");
        assert_eq!(code(handle.fork(0).await), "error");
        assert_eq!(code(engine.list().await), "error");
        assert_eq!(code(engine.start("ask", &false).await), "error");
        assert_eq!(code(run.result::<u32>().await), "error");
    });
}

/// Two workflows of one name: nobody could say which one is meant.
#[test]
fn two_workflows_of_one_name_are_refused_when_the_engine_starts() {
    async fn nothing(_: Ctx, (): ()) -> outlast::Result<()> {
        Ok(())
    }
    let world = World::new();
    world.block_on(async {
        let engine = world.engine_on(world.store()).workflow("w", nothing).workflow("w", nothing);
        let error = engine.start().await.err().unwrap();
        assert_eq!(error.code(), "duplicate_workflow");
        assert!(error.to_string().contains("\"w\""), "{error}");
    });
}
