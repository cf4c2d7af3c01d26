//! What is kept of a flow, and what becomes of one that is too large to be kept.

use std::sync::Arc;

use outlast::testing::{Programs, World};
use outlast_core::limits::Limits;
use outlast_store::{Load, LoadFrom, MemoryStore, Store};
use serde_json::json;

use super::{numbers, tasks};
use crate::support::{Ear, key, seconds};

/// Three outputs that are nearly as large as a payload may be, and enough events for a snapshot to be due.
const LARGE: &str = r#"
flow: story
nodes:
  - { id: a, type: task, task: echo, with: "${'x'.repeat(12000)}" }
  - { id: b, type: task, task: echo, with: "${a}" }
  - { id: c, type: task, task: echo, with: "${b}" }
  - id: each
    type: foreach
    items: "${input}"
    collect: none
    body: [{ id: n, type: task, task: echo, with: "${item}" }]
  - { id: go, type: wait, signal: go }
result: "${go + c.length + each.count}"
"#;

/// It costs time and nothing else, and is warned of.
#[test]
fn a_state_of_a_flow_that_is_too_large_is_not_kept() {
    let definition = outlast_flow::Flow::parse("story.flow.yaml", LARGE).unwrap().version().to_owned();
    for (payload_bytes, is_kept) in [(16 * 1024, false), (1024 * 1024, true)] {
        let world = World::new().programs(Programs::Dropped);
        let limits = Limits { payload_bytes, ..Limits::default() };
        let store = Arc::new(MemoryStore::new(world.clock(), limits.clone()));
        let engine = tasks(world.engine_on(store.clone())).limits(limits).flow("story.flow.yaml", LARGE);
        let warnings = Ear::for_what(|metadata| *metadata.level() == tracing::Level::WARN);
        let heard = warnings.during(|| {
            world.block_on(async {
                let engine = engine.start().await.unwrap();
                let run = engine.start("story", &numbers(100)).id("a").await.unwrap();
                world.sleep(seconds(600)).await;
                let from = LoadFrom::Snapshot { definition: definition.clone() };
                let loaded = store.load(vec![Load { run: key("a"), from }]).await.remove(0).unwrap();
                assert_eq!(loaded.snapshot.is_some(), is_kept, "with {payload_bytes} bytes");
                assert_eq!(loaded.first.0 == 0, !is_kept, "the whole journal is read, or the rest of it");
                engine.run("a").unwrap().signal("go", &5, "s").await.unwrap();
                assert_eq!(run.result::<serde_json::Value>().await.unwrap(), json!(12_105));
            });
        });
        let told: Vec<&String> = heard.iter().filter(|words| words.contains("too large to be kept")).collect();
        assert!(told.iter().all(|words| words.contains("limit=16384") && words.contains("run=")), "{told:?}");
        assert_eq!(told.is_empty(), is_kept, "{heard:?}");
    }
}
