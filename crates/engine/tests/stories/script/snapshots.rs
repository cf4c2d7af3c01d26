//! Going on costs the same at the end as at the beginning, and depends on no snapshot.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use outlast::testing::{Programs, World};
use outlast_core::limits::Limits;
use outlast_store::faults::{FaultStore, Snapshots};
use outlast_store::{Load, LoadFrom, MemoryStore, Store};
use serde_json::{Value, json};

use super::tasks;
use crate::support::{Ear, Scene, key, seconds, tell as tell_code};

const LOOP: &str = "let sum = 0\nfor (let i = 0; i < Inputs; i++) sum += await Task.run(\"echo\", i)\nreturn sum";

fn definition(file: &str, text: &str) -> String {
    outlast_script::Script::compile(file, text).unwrap().definition().to_owned()
}

/// What is read to go on with a run.
async fn loaded(store: &dyn Store, run: &str, text: &str) -> outlast_store::Loaded {
    let from = LoadFrom::Snapshot { definition: definition("story.wf", text) };
    store.load(vec![Load { run: key(run), from }]).await.remove(0).unwrap()
}

const WAITS: &str = r#"
    let sum = 0
    for (let i = 0; i < Inputs; i++) sum += await Task.run("echo", i)
    const more = await Signal.next("go")
    return sum + more
"#;

/// A 10,000-iteration loop of awaits: what is read to go on, and what is kept, does not grow.
#[test]
fn a_loop_of_ten_thousand_awaits_reads_and_keeps_as_much_at_its_end_as_at_its_start() {
    let mut sizes = Vec::new();
    for n in [100, 10_000] {
        let world = World::new().programs(Programs::Dropped).skips_max(1_000_000);
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        let (bytes, sum) = world.block_on(async {
            let engine = tasks(world.engine_on(store.clone())).script("story.wf", WAITS).start().await.unwrap();
            let run = engine.start("story", &n).id("a").await.unwrap();
            world.sleep(seconds(86_400)).await;
            let loaded = loaded(&*store, "a", WAITS).await;
            assert_eq!(loaded.first.0 + loaded.events.len() as u64, 2 * n + 1, "everything is recorded");
            assert!(loaded.events.len() <= 65, "{} events are read again", loaded.events.len());
            engine.run("a").unwrap().signal("go", &5, "s").await.unwrap();
            (loaded.snapshot.unwrap().data.len(), run.result::<u64>().await.unwrap())
        });
        assert_eq!(sum, n * (n - 1) / 2 + 5);
        sizes.push(bytes);
    }
    assert!(sizes[1] <= sizes[0] + 32, "the state grew with the history: {sizes:?}");
    assert!(sizes[1] < 4096, "{sizes:?}");
}

/// "the VM is snapshotted as the tail of new events grows (every 64 or so)"
#[test]
fn a_snapshot_is_made_when_more_than_64_events_followed_the_last() {
    let scene = Scene::new();
    scene.world.block_on(async {
        let engine = scene.engine(|engine| tasks(engine).script("story.wf", WAITS)).await;
        for (n, expected) in [(31, false), (33, true)] {
            let id = format!("after {n}");
            let run = engine.start("story", &n).id(&id).await.unwrap();
            scene.pass(seconds(60)).await;
            assert_eq!(loaded(&*scene.store, &id, WAITS).await.snapshot.is_some(), expected, "after {n} awaits");
            engine.run(&id).unwrap().signal("go", &0, "s").await.unwrap();
            run.result::<u64>().await.unwrap();
            assert!(loaded(&*scene.store, &id, WAITS).await.snapshot.is_none(), "it goes with the run");
        }
    });
}

/// Every way a snapshot can be wrong costs time and nothing else, and is seen.
#[test]
fn a_lost_damaged_or_future_snapshot_changes_nothing() {
    for snapshots in [Snapshots::Kept, Snapshots::Lost, Snapshots::Damaged, Snapshots::Future] {
        let world = World::new().programs(Programs::Dropped);
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        let faulty = Arc::new(FaultStore::counting(store));
        faulty.set_snapshots(snapshots);
        let engine = tasks(world.engine_on(faulty.clone())).script("story.wf", LOOP);
        let sum: u64 = world.block_on(async {
            let engine = engine.start().await.unwrap();
            engine.start("story", &100).id("a").await.unwrap().result().await.unwrap()
        });
        assert_eq!(sum, 4_950);
        let spoilt = faulty.landed_by_kind().get("snapshot").copied().unwrap_or(0);
        assert_eq!(spoilt > 0, matches!(snapshots, Snapshots::Damaged | Snapshots::Future), "{snapshots:?}");
    }
}

/// A text that makes the same promises with other code: its snapshots are not taken for the old one's.
#[test]
fn a_snapshot_of_other_code_is_not_used() {
    let scene = Scene::new();
    scene.world.block_on(async {
        let engine = scene.engine(|engine| tasks(engine).script("story.wf", WAITS)).await;
        engine.start("story", &100).id("a").await.unwrap();
        scene.pass(seconds(60)).await;
        assert!(loaded(&*scene.store, "a", WAITS).await.snapshot.is_some());
        let other = format!("{WAITS}// the same, and not the same");
        let loaded = loaded(&*scene.store, "a", &other).await;
        assert_eq!((loaded.snapshot, loaded.first.0, loaded.events.len()), (None, 0, 201));
    });
}

/// What is open when a snapshot is made is all there afterwards: each is answered, timed out or cancelled.
#[test]
fn everything_that_can_be_open_survives_a_snapshot() {
    let text = r#"
        workflow nap(n) { await Task.delay(n); return n }
        workflow story() {
            const open = {
                task: Task.run("echo", 1, { delay: 50 }), timer: Task.delay(50), signal: Signal.next("go"),
                late: Signal.next("late", { timeout: 50 }).catch(error => error.code),
                approval: Approval.request({ title: "?", id: "ok" }), child: Workflow.run("nap", 50),
                callback: Callback.create({ id: "c", timeout: 60 }).catch(error => error.code),
                cancelled: Task.run("echo", 2, { delay: 500 }),
            }
            for (let i = 0; i < 40; i++) await Task.run("echo", i)
            Task.cancel(open.cancelled)
            const { task, timer, signal, late, approval, child, callback } = open
            let cancelled
            try { await open.cancelled } catch (error) { cancelled = error.code }
            return [await task, await timer, await signal, await late, (await approval).approved, await child,
                    await callback, cancelled]
        }
    "#;
    super::tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(20)).await;
        let handle = engine.run("a").unwrap();
        handle.approve("ok", true).id("d").await.unwrap();
        handle.signal("go", &"went", "s").await.unwrap();
        let expected = json!([1, null, "went", "timeout", true, 50, "timeout", "cancelled"]);
        assert_eq!(run.result::<Value>().await.unwrap(), expected);
    });
}

/// Signals go to the waits in the order in which these were opened, also when those are restored.
#[test]
fn waits_keep_their_order_through_a_snapshot() {
    let text = r#"
        const waits = Array.from({ length: 12 }, () => Signal.next("n"))
        for (let i = 0; i < 40; i++) await Task.run("echo", i)
        return await Promise.all(waits)
    "#;
    super::tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        for n in 0..12 {
            engine.run("a").unwrap().signal("n", &n, &n.to_string()).await.unwrap();
        }
        assert_eq!(run.result::<Value>().await.unwrap(), json!((0..12).collect::<Vec<_>>()));
    });
}

/// A state that is too large to be kept costs time and nothing else, and is warned of.
#[test]
fn a_state_that_is_too_large_is_not_kept() {
    let text = r#"
        const all = []
        for (let i = 0; i < 100; i++) all.push(await Task.run("echo", "x".repeat(1000) + i))
        return all.length + await Signal.next("go")
    "#;
    for (payload_bytes, is_kept) in [(16 * 1024, false), (1024 * 1024, true)] {
        let world = World::new().programs(Programs::Dropped);
        let limits = Limits { payload_bytes, ..Limits::default() };
        let store = Arc::new(MemoryStore::new(world.clock(), limits.clone()));
        let engine = tasks(world.engine_on(store.clone())).limits(limits).script("story.wf", text);
        let warnings = Ear::for_what(|metadata| *metadata.level() == tracing::Level::WARN);
        let heard = warnings.during(|| {
            world.block_on(async {
                let engine = engine.start().await.unwrap();
                let run = engine.start("story", &()).id("a").await.unwrap();
                world.sleep(seconds(600)).await;
                let loaded = loaded(&*store, "a", text).await;
                assert_eq!(loaded.snapshot.is_some(), is_kept, "with {payload_bytes} bytes");
                assert_eq!(loaded.first.0 == 0, !is_kept, "the whole journal is read, or the rest of it");
                engine.run("a").unwrap().signal("go", &5, "s").await.unwrap();
                assert_eq!(run.result::<u64>().await.unwrap(), 105);
            });
        });
        let told = heard.iter().filter(|words| words.contains("too large to be kept"));
        let told: Vec<&String> = told.inspect(|words| assert!(words.contains("limit=16384"), "{words}")).collect();
        assert_eq!(told.is_empty(), is_kept, "{heard:?}");
    }
}

/// Code makes none, however long its journal is.
#[test]
fn code_is_replayed_as_before() {
    async fn counts(ctx: outlast::Ctx, (): ()) -> outlast::Result<u32> {
        let mut sum = 0;
        for n in 0..100 {
            sum += ctx.step("add", async |_| Ok(n)).await?;
        }
        ctx.sleep(seconds(1)).await?;
        Ok(sum)
    }
    let sum = tell_code(
        |engine| engine.snapshot_after(0).workflow("counts", counts),
        async |_, engine| engine.start("counts", &()).id("a").await.unwrap().result::<u32>().await.unwrap(),
    );
    assert_eq!(sum, 4_950);
}
