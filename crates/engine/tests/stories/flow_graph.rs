//! Workflows that are graphs with containers, driven by the engine. Seed 004.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod basics;
mod checklist;
mod crashes;
mod operators;
mod pauses;
mod snapshots;
mod versions;

use outlast::{Engine, EngineError, Error, Event, Outlast, StepContext, TaskContext};
use serde_json::{Value, json};

use crate::support::Scene;

/// What flows can have done: `echo` gives back what it is given, `fail` fails for good.
fn tasks(engine: Outlast) -> Outlast {
    async fn echo(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(args)
    }
    async fn fail(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Err(Error::new("broken", "it broke").with_data(&args).permanent())
    }
    async fn double(_: StepContext, n: f64) -> outlast::Result<f64> {
        Ok(2.0 * n)
    }
    async fn flaky(step: StepContext, n: f64) -> outlast::Result<f64> {
        if step.attempt() < 3 { Err(Error::new("flaky", "not yet")) } else { Ok(n) }
    }
    engine.task("echo", echo).task("fail", fail).step("double", double).step("flaky", flaky)
}

/// Tells a story about one flow, in every way. Its journal can be folded at the end, and nothing in it happened twice.
fn tell<T>(text: &str, story: impl AsyncFn(&Scene, Engine) -> T) -> T {
    Scene::play_scripts(async |scene| {
        let engine = scene.engine(|engine| tasks(engine).flow("story.flow.yaml", text)).await;
        let told = story(scene, engine.clone()).await;
        if let Ok(run) = engine.run("a")
            && let Ok(view) = run.view().await
            && view.workflow.as_str() == "story"
        {
            run.position().await.unwrap();
            check_once(&run.journal().await.unwrap());
        }
        told
    })
}

/// No child and no iteration is completed twice.
fn check_once(journal: &[Event]) {
    let mut completed: Vec<String> = journal
        .iter()
        .filter_map(|event| match event {
            Event::ContainerChildCompleted { child, .. } => Some(child.to_string()),
            Event::ContainerIterationCompleted { node, index, .. } => Some(format!("{node} {index}")),
            Event::NodeCompleted { node, .. } => Some(node.to_string()),
            _ => None,
        })
        .collect();
    let count = completed.len();
    completed.sort();
    completed.dedup();
    assert_eq!(completed.len(), count);
}

/// What a flow gives.
async fn result(engine: &Engine, input: &Value) -> Result<Value, EngineError> {
    engine.start("story", input).id("a").await.unwrap().result().await
}

fn returns(text: &str, input: &Value) -> Value {
    tell(text, async |_, engine| result(&engine, input).await.unwrap())
}

/// What it fails with.
fn fails(text: &str, input: &Value) -> outlast::Failure {
    tell(text, async |_, engine| match result(&engine, input).await {
        Err(EngineError::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    })
}

/// The journal, a line for each event.
fn lines(journal: &[Event]) -> Vec<String> {
    let line = |event: &Event| {
        let name = event.kind();
        match event {
            Event::ContainerIterationStarted { node, index, .. }
            | Event::ContainerIterationCompleted { node, index, .. } => format!("{name} {node} {index}"),
            Event::ContainerChildStarted { child, .. } | Event::ContainerChildCompleted { child, .. } => {
                format!("{name} {child}")
            }
            other => other.key().map_or(name.to_string(), |key| format!("{name} {key}")),
        }
    };
    journal.iter().map(line).collect()
}

/// So many numbers.
fn numbers(count: u32) -> Value {
    json!((0..count).collect::<Vec<_>>())
}
