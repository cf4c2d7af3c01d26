//! A run stays with the text it began with.

use serde_json::{Value, json};

use super::tasks;
use crate::support::Scene;

const OLD: &str =
    "flow: story\nnodes: [{ id: w, type: wait, signal: s }, { id: a, type: script, script: old }]\nresult: \"${a}\"";
const NEW: &str = "flow: story\nnodes: [{ id: a, type: script, script: new }]\nresult: \"${a}\"";

#[test]
fn a_run_goes_on_with_the_text_it_began_with_after_another_was_put() {
    Scene::play_scripts(async |scene| {
        let engine = scene.engine(|engine| tasks(engine).flow("story.flow.yaml", OLD)).await;
        engine.start("story", &()).id("old").await.unwrap();
        assert_eq!(engine.define_flow("story.flow.yaml", NEW).await.unwrap(), ["story"]);
        let new: Value = engine.start("story", &()).id("new").await.unwrap().result().await.unwrap();
        engine.shutdown().await;
        // The next deploy knows only the new text.
        let engine = scene.engine(|engine| tasks(engine).flow("story.flow.yaml", NEW)).await;
        let run = engine.run("old").unwrap();
        assert_eq!(run.position().await.unwrap().current_node.as_deref(), Some("w"));
        run.signal("s", &1, "1").await.unwrap();
        assert_eq!((run.result::<Value>().await.unwrap(), new), (json!("old"), json!("new")));
    });
}
