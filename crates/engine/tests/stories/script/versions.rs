//! Texts come and go, and a run stays with the one it began with.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::{Ctx, Engine, EngineError, Outlast, Status};
use outlast_core::id::NodeId;

use super::tasks;
use crate::support::{Scene, key, parked, seconds, status};

const FIRST: &str = "await Task.delay(100)\nreturn await Task.run(\"echo\", \"first\")";
const SECOND: &str = "return await Task.run(\"echo\", \"second\")";

async fn starts(engine: &Engine, run: &str) -> outlast::RunHandle {
    engine.start("w", &()).id(run).await.unwrap()
}

#[test]
fn a_run_goes_on_with_the_text_it_began_with_while_new_ones_get_the_new_one() {
    Scene::play_scripts(async |scene| {
        let engine = scene.engine(|engine| tasks(engine).script("w.wf", FIRST)).await;
        let old = starts(&engine, "old").await;
        scene.pass(seconds(1)).await;
        assert_eq!(engine.define_script("w.wf", SECOND).await.unwrap(), ["w"]);
        let new = starts(&engine, "new").await;
        assert_eq!(new.result::<String>().await.unwrap(), "second");
        assert_eq!(old.result::<String>().await.unwrap(), "first");
        // Back to what it was: the same text is the same version.
        engine.define_script("w.wf", FIRST).await.unwrap();
        let again = starts(&engine, "again").await;
        assert_eq!(again.result::<String>().await.unwrap(), "first");
        let version = |run: &str| scene.store.get(key(run));
        let (old, again) = (version("old").await.unwrap().version, version("again").await.unwrap().version);
        assert_eq!(old, again);
    });
}

/// The next process has another text, or none: the old one is in the store.
#[test]
fn an_old_text_survives_a_restart_with_a_new_one() {
    for registers in [true, false] {
        Scene::play_scripts(async |scene| {
            let before = scene.engine(|engine| tasks(engine).script("w.wf", FIRST)).await;
            starts(&before, "old").await;
            scene.pass(seconds(1)).await;
            before.shutdown().await;
            let with = |engine: Outlast| if registers { engine.script("w.wf", SECOND) } else { engine };
            let after = scene.engine(|engine| with(tasks(engine))).await;
            let new = starts(&after, "new").await;
            let expected = if registers { "second" } else { "first" };
            assert_eq!(new.result::<String>().await.unwrap(), expected);
            let old = after.run("old").unwrap();
            assert_eq!(old.result::<String>().await.unwrap(), "first");
        });
    }
}

fn node(engine: Outlast, name: &str) -> Outlast {
    tasks(engine.node(NodeId::new(name).unwrap()).poll(seconds(1)).version_grace(seconds(300)))
}

/// A node that never saw a text drives its runs when the one that did is gone.
#[test]
fn a_node_learns_the_texts_of_others() {
    Scene::play_scripts(async |scene| {
        let first = scene.engine(|engine| node(engine, "first")).await;
        let second = scene.engine(|engine| node(engine, "second")).await;
        first.define_script("w.wf", FIRST).await.unwrap();
        starts(&first, "a").await;
        scene.pass(seconds(1)).await;
        first.shutdown().await;
        assert_eq!(second.run("a").unwrap().result::<String>().await.unwrap(), "first");
        assert_eq!(starts(&second, "b").await.result::<String>().await.unwrap(), "first", "and can start it");
    });
}

/// Nobody has the text: the run parks, says what to do, and goes on when it is there again.
#[test]
fn a_run_whose_text_is_nowhere_is_parked_until_it_is_put_back() {
    Scene::play_scripts(async |scene| {
        // Somebody who knows the workflow only by name starts it with a text that nobody has.
        let before = scene.engine(|engine| node(engine, "before")).await;
        let script = outlast_script::Script::compile("w.wf", FIRST).unwrap();
        let version = script.version();
        before.start("w", &()).version(version).id("a").await.unwrap();
        before.shutdown().await;
        let after = scene.engine(|engine| node(engine, "after").script("w.wf", SECOND)).await;
        scene.pass(seconds(2_000)).await;
        assert_eq!(status(&after, "a").await, Status::Parked);
        let note = parked(&after, "a").await;
        assert!(note.starts_with("workflow_version_mismatch: ") && note.contains(version), "{note}");
        after.define_script("w.wf", FIRST).await.unwrap();
        assert!(after.run("a").unwrap().unpark().await.unwrap());
        assert_eq!(after.run("a").unwrap().result::<String>().await.unwrap(), "first");
    });
}

#[test]
fn mistakes_are_told_at_the_start_with_their_lines() {
    let scene = Scene::new();
    scene.world.block_on(async {
        let refused = scene.world.engine().script("w.wf", "return totl").start().await;
        let Err(error @ EngineError::Mistakes { .. }) = refused else { panic!("it has a mistake") };
        let told = error.to_string();
        assert!(told.starts_with("w.wf has mistakes:") && told.contains("totl") && told.contains("w.wf:1:8"), "{told}");
        assert_eq!(error.code(), "validation_error");
        let engine = scene.engine(|engine| engine.script("w.wf", "return 1")).await;
        assert!(engine.define_script("w.wf", "return (").await.is_err());
        assert_eq!(starts(&engine, "a").await.result::<u32>().await.unwrap(), 1, "the text before it stays");
    });
}

#[test]
fn a_name_is_code_or_a_text_and_not_both() {
    async fn code(_: Ctx, (): ()) -> outlast::Result<u32> {
        Ok(1)
    }
    let scene = Scene::new();
    scene.world.block_on(async {
        let world = &scene.world;
        let twice = world.engine().workflow("w", code).script("w.wf", "return 2").start().await;
        assert_eq!(twice.err().unwrap().code(), "duplicate_workflow");
        let twice = world.engine().script("w.wf", "return 1").script("w.wf", "return 2").start().await;
        assert_eq!(twice.err().unwrap().code(), "duplicate_workflow");
        let engine = scene.engine(|engine| engine.workflow("w", code)).await;
        assert_eq!(engine.define_script("w.wf", "return 2").await.err().unwrap().code(), "duplicate_workflow");
        assert_eq!(starts(&engine, "a").await.result::<u32>().await.unwrap(), 1);
    });
}

/// "`outlast check-replay`": a text is checked like code, against every run that has not ended.
#[test]
fn runs_of_texts_are_checked_before_a_deploy() {
    let scene = Scene::new();
    scene.world.block_on(async {
        let engine = scene.engine(|engine| tasks(engine).script("w.wf", FIRST)).await;
        starts(&engine, "a").await;
        scene.pass(seconds(1)).await;
        engine.shutdown().await;
        let checked = scene.world.engine_on(scene.store.clone()).check_replay().await.unwrap();
        assert_eq!(checked.len(), 1);
        assert!(checked[0].outcome.is_ok(), "its text is in the store: {:?}", checked[0].outcome);
    });
}
