//! Texts that name a step or a workflow that a process does not have: their runs are left to others.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::{Ctx, EngineError, Outlast, Status, StepContext};
use outlast_core::id::NodeId;

use crate::support::{Scene, parked, seconds, status};

const FLOW: &str = "flow: w\nnodes: [{ id: s, type: step, step: double, with: 4 }]\nresult: \"${s}\"";
const SCRIPT: &str = "return await Workflow.run(\"code\", 4)";

async fn double(_: StepContext, n: u32) -> outlast::Result<u32> {
    Ok(2 * n)
}

async fn code(_: Ctx, n: u32) -> outlast::Result<u32> {
    Ok(2 * n)
}

fn node(engine: Outlast, name: &str) -> Outlast {
    engine.node(NodeId::new(name).unwrap()).poll(seconds(1)).version_grace(seconds(300))
}

#[test]
fn a_flow_is_left_to_whoever_has_its_steps() {
    Scene::play_scripts(async |scene| {
        let without = scene.engine(|engine| node(engine, "without").flow("w.flow.yaml", FLOW)).await;
        let run = without.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(60)).await;
        assert_eq!(status(&without, "a").await, Status::Queued, "it has the text, and not the step");
        let with = scene.engine(|engine| node(engine, "with").step("double", double)).await;
        assert_eq!(run.result::<u32>().await.unwrap(), 8);
        let other = without.start("w", &()).id("b").await.unwrap();
        assert_eq!(other.result::<u32>().await.unwrap(), 8);
        with.shutdown().await;
    });
}

#[test]
fn a_text_is_left_to_whoever_has_the_code_that_it_starts() {
    let flow = "flow: w\nnodes: [{ id: s, type: workflow, workflow: code, with: 4 }]\nresult: \"${s}\"";
    for is_flow in [false, true] {
        Scene::play_scripts(async |scene| {
            let text = |engine: Outlast| match is_flow {
                true => engine.flow("w.flow.yaml", flow),
                false => engine.script("w.wf", SCRIPT),
            };
            let first = scene.engine(|engine| text(node(engine, "first")).workflow("code", code)).await;
            let without = scene.engine(|engine| node(engine, "without")).await;
            first.shutdown().await;
            let run = without.start("w", &()).id("a").await.unwrap();
            scene.pass(seconds(60)).await;
            assert_eq!(status(&without, "a").await, Status::Queued);
            let with = scene.engine(|engine| node(engine, "with").workflow("code", code)).await;
            assert_eq!(run.result::<u32>().await.unwrap(), 8);
            with.shutdown().await;
        });
    }
}

/// What it starts may be a text that comes later.
#[test]
fn a_script_is_driven_once_the_text_that_it_starts_is_known() {
    Scene::play_scripts(async |scene| {
        let engine = scene.engine(|engine| node(engine, "only").script("w.wf", SCRIPT)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        engine.define_script("code.wf", "return Inputs * 2").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 8);
    });
}

/// Nobody has the step: nothing is lost, and it goes on when somebody has.
#[test]
fn a_run_whose_step_is_nowhere_is_parked_until_somebody_has_it() {
    Scene::play_scripts(async |scene| {
        let without = scene.engine(|engine| node(engine, "without").flow("w.flow.yaml", FLOW)).await;
        without.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(2_000)).await;
        assert_eq!(status(&without, "a").await, Status::Parked);
        let note = parked(&without, "a").await;
        assert!(note.contains("the steps and workflows that it names"), "{note}");
        let with = scene.engine(|engine| node(engine, "with").step("double", double)).await;
        assert!(with.run("a").unwrap().unpark().await.unwrap());
        assert_eq!(with.run("a").unwrap().result::<u32>().await.unwrap(), 8);
    });
}

/// On a store of its own there is nobody to leave it to.
#[test]
fn who_is_alone_says_at_once_that_a_step_is_not_registered() {
    Scene::play_scripts(async |scene| {
        let text = "flow: w\nnodes: [{ id: s, type: step, step: nobody, with: 4 }]";
        let engine = scene.engine(|engine| engine.sole().flow("w.flow.yaml", text)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let Err(EngineError::Failed(failure)) = run.result::<u32>().await else { panic!("it fails") };
        assert_eq!(failure.code, "unknown_step");
        assert!(failure.message.contains("no step \"nobody\" is registered here"), "{failure}");
    });
}
