//! Who works, and what makes runs go on. Seed 002: "Workers" and Engine 3.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::testing::World;
use outlast::{ClaimRequest, Ctx, Engine, Outlast, ResumeItem, TaskContext};
use outlast_store::faults::Fault;
use serde_json::json;

use crate::support::{Scene, seconds};

async fn hear(ctx: Ctx, (): ()) -> outlast::Result<String> {
    ctx.wait_for("word").await
}

fn hearing(engine: Outlast) -> Outlast {
    engine.workflow("hear", hear)
}

async fn dig(task: TaskContext, depth: u64) -> outlast::Result<()> {
    task.progress(&json!({ "dug": depth }));
    std::future::pending().await
}

fn mill(id: u64) -> ClaimRequest {
    ClaimRequest {
        worker: "mill".to_owned(),
        id,
        queues: vec!["grain".to_owned()],
        names: vec!["grind".to_owned()],
        host: Some("mill.example.org".to_owned()),
        limit: 1,
        lease: seconds(30),
    }
}

#[test]
fn a_process_with_handlers_is_shown_with_what_it_does_until_it_ends() {
    Scene::play(async |scene| {
        let other = scene.engine(hearing).await;
        assert_eq!(other.workers().await.unwrap(), [], "one without handlers is no worker");
        let engine =
            scene.engine(|engine| engine.task("dig", dig).tasks_max(3).lease(seconds(15)).poll(seconds(1))).await;
        engine.enqueue("dig", &7).id("t").await.unwrap();
        scene.pass(seconds(700)).await;
        let shown = other.workers().await.unwrap();
        assert_eq!(shown.len(), 1);
        let worker = &shown[0];
        assert_eq!((worker.queues.clone(), worker.tasks.clone()), (vec!["default".to_owned()], vec!["dig".to_owned()]));
        assert_eq!((worker.tasks_max, worker.of_namespace), (3, false));
        assert!(worker.seen > worker.started, "it is seen as long as it is there");
        let held = &worker.holds[0];
        assert_eq!((held.id.as_str(), held.name.as_str(), held.attempt), ("t", "dig", 1));
        assert!(held.since.unwrap() < held.until.unwrap());
        assert_eq!(held.note.as_deref(), Some(&b"{\"dug\":7}"[..]));
        engine.shutdown().await;
        assert_eq!(other.workers().await.unwrap(), []);
    });
}

#[test]
fn a_worker_elsewhere_is_seen_by_its_claims_and_its_heartbeats() {
    Scene::play(async |scene| {
        let engine = scene.engine(hearing).await;
        assert_eq!(engine.claim_tasks(mill(1)).await.unwrap(), []);
        let first = engine.workers().await.unwrap().remove(0);
        assert_eq!((first.id.as_str(), first.host.as_deref()), ("mill", Some("mill.example.org")));
        assert_eq!((first.queues.clone(), first.tasks.clone()), (vec!["grain".to_owned()], vec!["grind".to_owned()]));
        assert!(first.of_namespace && first.holds.is_empty());
        // Not every call is a write: a third of the lease is often enough.
        scene.pass(seconds(9)).await;
        engine.claim_tasks(mill(2)).await.unwrap();
        assert_eq!(engine.workers().await.unwrap()[0].seen, first.seen);
        engine.enqueue("grind", &1).queue("grain").id("t").await.unwrap();
        scene.pass(seconds(1)).await;
        let offer = engine.claim_tasks(mill(3)).await.unwrap().remove(0);
        let second = engine.workers().await.unwrap().remove(0);
        assert_eq!((second.seen > first.seen, second.started), (true, first.started));
        assert_eq!(second.holds[0].id.as_str(), "t");
        scene.pass(seconds(15)).await;
        engine.heartbeat_task(&offer.token, None).await.unwrap();
        let third = engine.workers().await.unwrap().remove(0);
        assert!(third.seen > second.seen);
        assert_eq!(third.tasks, ["grind"], "a sign of life says nothing of what it can do");
    });
}

/// What was to be shown was lost with the call that was to store it.
#[test]
fn progress_that_could_not_be_stored_is_shown_with_the_next_sign_of_life() {
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        let engine = process.engine().task("dig", dig).lease(seconds(15)).poll(seconds(1)).start().await.unwrap();
        process.faults().plan_next_of("heartbeat", 0, Fault::NotApplied { in_doubt: false });
        engine.enqueue("dig", &7).id("t").await.unwrap();
        world.sleep(seconds(30)).await;
        let note = engine.task("t").await.unwrap().view.note;
        assert_eq!(note.as_deref(), Some(&b"{\"dug\":7}"[..]));
    });
}

#[test]
fn a_worker_that_died_is_shown_for_a_day() {
    let world = World::new();
    let store = world.store();
    let process = world.process(store.clone());
    world.block_on(async {
        let _engine = process.engine().task("dig", dig).start().await.unwrap();
        let watcher = world.engine_on(store).workflow("nap", nap).start().await.unwrap();
        nap_for(&watcher, 1).await;
        process.crash();
        nap_for(&watcher, 23).await;
        assert_eq!(watcher.workers().await.unwrap().len(), 1);
        nap_for(&watcher, 3).await;
        assert_eq!(watcher.workers().await.unwrap(), []);
    });
}

async fn nap(ctx: Ctx, hours: u64) -> outlast::Result<()> {
    ctx.sleep(seconds(hours * 3_600)).await
}

async fn nap_for(engine: &Engine, hours: u64) {
    engine.start("nap", &hours).await.unwrap().result::<()>().await.unwrap();
}

/// "A resume is an ordinary queue item `builtin.resume_workflow`, queue `system`, priority 10, args `[run_id]`."
#[test]
fn what_makes_a_run_go_on_is_listed_as_the_queue_item_it_stands_for() {
    Scene::play(async |scene| {
        let idle = scene.engine(|engine| hearing(engine).without_loops()).await;
        idle.start("hear", &()).id("a").await.unwrap();
        let item = idle.resumes(None).await.unwrap().items.remove(0);
        assert_eq!(
            (ResumeItem::NAME, ResumeItem::QUEUE, ResumeItem::PRIORITY),
            ("builtin.resume_workflow", "system", 10)
        );
        assert_eq!((&item.args()[..], item.claimed, item.node.is_some()), (&b"[\"a\"]"[..], false, false));
        assert!(item.since.is_some());
        idle.drive_once("a").await.unwrap();
        assert_eq!(idle.resumes(None).await.unwrap().items, [], "a waiting run is no queue item");
        idle.run("a").unwrap().signal("word", "hello", "s").await.unwrap();
        idle.run("a").unwrap().signal("word", "again", "t").await.unwrap();
        assert_eq!(idle.resumes(None).await.unwrap().items.len(), 1, "wakes are one");
    });
}

#[test]
fn a_run_that_is_driven_is_listed_as_claimed_by_its_node() {
    async fn slow(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("slow", async |_| std::future::pending().await).await
    }
    let world = World::new();
    world.block_on(async {
        let node = outlast_core::id::NodeId::new("one").unwrap();
        let engine = world.engine().node(node.clone()).workflow("slow", slow).workflow("nap", nap);
        let engine = engine.start().await.unwrap();
        engine.start("slow", &()).id("a").await.unwrap();
        nap_for(&engine, 1).await;
        let items = engine.resumes(None).await.unwrap().items;
        let item = items.iter().find(|item| item.run.as_str() == "a").unwrap();
        assert_eq!((item.claimed, item.node.clone(), item.since), (true, Some(node), None));
    });
}

/// "The driver re-checks what the run awaits; it continues or suspends again." "N resumes → the first progresses, the rest no-op."
#[test]
fn a_resume_that_is_queued_by_hand_wakes_its_run_and_changes_nothing_else() {
    Scene::play(async |scene| {
        let engine = scene.engine(hearing).await;
        let run = engine.start("hear", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let before = run.journal().await.unwrap().len();
        for _ in 0..3 {
            engine.enqueue(ResumeItem::NAME, &["a"]).queue("system").priority(10).await.unwrap();
        }
        scene.pass(seconds(2)).await;
        assert_eq!(engine.resumes(None).await.unwrap().items, [], "it was driven");
        assert_eq!(run.journal().await.unwrap().len(), before, "it looked, and waits again");
        run.signal("word", "hello", "s").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "hello");
        engine.enqueue(ResumeItem::NAME, &["a"]).await.unwrap();
        assert_eq!(engine.resumes(None).await.unwrap().items, [], "a run that has ended harms nobody");
    });
}

#[test]
fn a_resume_without_its_run_is_refused_and_says_so() {
    Scene::play(async |scene| {
        let engine = scene.engine(hearing).await;
        let none: [&str; 0] = [];
        let refused = engine.enqueue(ResumeItem::NAME, &none).await.err().unwrap();
        assert!(refused.to_string().contains("resume_workflow requires workflow_id"), "{refused}");
        let unknown = engine.enqueue("builtin.something", &none).await.err().unwrap();
        assert!(unknown.to_string().contains("builtin.something"), "{unknown}");
    });
}

#[test]
fn a_name_of_the_engines_own_is_refused_at_the_start() {
    let world = World::new();
    world.block_on(async {
        let taken = world.engine().task(ResumeItem::NAME, dig).start().await;
        assert_eq!(taken.err().unwrap().code(), "validation_error");
    });
}
