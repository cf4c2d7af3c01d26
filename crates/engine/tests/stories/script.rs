//! Workflows that are scripts, driven by the engine. Seed 002.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod crashes;
mod ends;
mod language;
mod seed;
mod snapshots;
mod versions;

use outlast::{Engine, EngineError, Error, Outlast, TaskContext};
use serde_json::{Value, json};

use crate::support::Scene;

/// Tasks that scripts can have done: `echo` gives back what it is given, `fail` fails for good.
fn tasks(engine: Outlast) -> Outlast {
    async fn echo(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(args)
    }
    async fn fail(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Err(Error::new("broken", "it broke").with_data(&args).permanent())
    }
    engine.task("echo", echo).task("fail", fail)
}

/// Tells a story about the workflows of one file, in every way.
fn tell<T>(text: &str, story: impl AsyncFn(&Scene, Engine) -> T) -> T {
    Scene::play_scripts(async |scene| {
        let engine = scene.engine(|engine| tasks(engine).script("story.wf", text)).await;
        story(scene, engine).await
    })
}

/// What a workflow returns.
async fn result(engine: &Engine, workflow: &str, input: &Value) -> Result<Value, EngineError> {
    engine.start(workflow, input).id("a").await.unwrap().result().await
}

/// What a bare file returns that is started with `null`.
fn returns(text: &str) -> Value {
    tell(text, async |_, engine| result(&engine, "story", &json!(null)).await.unwrap())
}

/// What it fails with.
fn fails(text: &str) -> outlast::Failure {
    tell(text, async |_, engine| match result(&engine, "story", &json!(null)).await {
        Err(EngineError::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    })
}
