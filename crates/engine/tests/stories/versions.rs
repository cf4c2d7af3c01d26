//! Rolling deploys: versions come and go, and healthy runs do not notice.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::pin::pin;

use futures_util::future::{Either, select};
use std::sync::Arc;

use outlast::{Ctx, Engine, Outlast, Status, Workflow};
use outlast_core::id::NodeId;
use tokio::sync::Semaphore;

use crate::support::{Scene, key, kinds, parked, seconds, status};

const NAP: u64 = 3_600;

async fn first(ctx: Ctx, (): ()) -> outlast::Result<String> {
    ctx.step("first", async |_| Ok(1)).await?;
    ctx.sleep(seconds(NAP)).await?;
    ctx.step("last", async |_| Ok("by the first version".to_owned())).await
}

async fn second(ctx: Ctx, (): ()) -> outlast::Result<String> {
    ctx.step("other", async |_| Ok("by the second version".to_owned())).await
}

fn node(engine: Outlast, name: &str) -> Outlast {
    engine.node(NodeId::new(name).unwrap()).poll(seconds(1)).version_grace(seconds(300))
}

/// What was deployed before.
fn old(engine: Outlast) -> Outlast {
    node(engine, "old").workflow("w", first)
}

/// What is deployed now, without the version before it.
fn new(engine: Outlast) -> Outlast {
    node(engine, "new").register(Workflow::new("w", second).version("2"))
}

/// What should have been deployed.
fn mended(engine: Outlast) -> Outlast {
    node(engine, "mended").register(Workflow::new("w", second).version("2").previous_version("1", first))
}

/// A run of the old version sleeps when its last node stops; the new version's node is up, and wakes it.
async fn deploy(scene: &Scene) -> Engine {
    let before = scene.engine(old).await;
    let after = scene.engine(new).await;
    before.start("w", &()).id("a").await.unwrap();
    scene.pass(seconds(1)).await;
    before.shutdown().await;
    assert_eq!(kinds(&after, "a").await, ["STEP_FINISHED", "TIMER_STARTED"]);
    scene.pass(seconds(NAP)).await;
    assert!(scene.store.get(key("a")).await.unwrap().ready, "it woke, and nobody here can drive it");
    after
}

#[test]
fn a_run_whose_version_is_away_for_less_than_five_minutes_goes_on_when_it_comes_back() {
    Scene::play(async |scene| {
        let after = deploy(scene).await;
        scene.pass(seconds(290)).await;
        assert_eq!(status(&after, "a").await, Status::Waiting);
        let back = scene.engine(old).await;
        assert_eq!(back.run("a").unwrap().result::<String>().await.unwrap(), "by the first version");
        scene.pass(seconds(1_000)).await;
        assert_eq!(status(&after, "a").await, Status::Completed);
    });
}

#[test]
fn a_run_whose_version_stays_away_is_parked_and_goes_on_after_a_deploy_and_an_unpark() {
    Scene::play(async |scene| {
        let after = deploy(scene).await;
        let waiting = after.run("a").unwrap();
        let told = waiting.result::<String>().await.unwrap_err();
        let silent = scene.world.now().as_millis() - scene.store.get(key("a")).await.unwrap().created_at.as_millis();
        let minutes = (silent / 1_000 - i64::try_from(NAP).unwrap()) / 60;
        assert!((5..=6).contains(&minutes), "parked after {minutes} minutes");
        assert_eq!(told.code(), "workflow_version_mismatch", "{told}");
        let note = parked(&after, "a").await;
        let expected = "workflow_version_mismatch: no node has offered w version 1 for 5 minutes; register it as a previous \
                        version (for a text, the steps and workflows that it names), deploy, and unpark the run";
        assert_eq!(note, expected);
        assert!(told.to_string().contains(expected), "{told}");
        assert_eq!(kinds(&after, "a").await, ["STEP_FINISHED", "TIMER_STARTED"], "nothing was appended");

        let engine = scene.engine(mended).await;
        scene.pass(seconds(1_000)).await;
        assert_eq!(status(&engine, "a").await, Status::Parked, "a deploy alone does not unpark it");
        let again = engine.run("a").unwrap().result::<String>().await.unwrap_err();
        assert_eq!(again.code(), "workflow_version_mismatch", "whoever asks later is told the same");
        assert!(engine.run("a").unwrap().unpark().await.unwrap());
        assert_eq!(engine.run("a").unwrap().result::<String>().await.unwrap(), "by the first version");
        let expected = ["STEP_FINISHED", "TIMER_STARTED", "TIMER_FIRED", "STEP_FINISHED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected, "nothing happened twice");
    });
}

/// A run is ready for hours because its node has no room: the node is alive, so it is healthy.
#[test]
fn a_run_that_waits_for_room_on_a_live_node_is_not_parked() {
    async fn busy(ctx: Ctx, room: Arc<Semaphore>) -> outlast::Result<()> {
        let body = async |_| {
            let _ = room.acquire().await;
            Ok(())
        };
        ctx.step("busy", body).await
    }
    Scene::play(async |scene| {
        let room = Arc::new(Semaphore::new(0));
        let within = room.clone();
        let busy = move |ctx: Ctx, (): ()| busy(ctx, within.clone());
        let after = scene.engine(new).await;
        let full = scene.engine(|engine| old(engine).workflow("busy", busy).runs_max(1)).await;
        full.start("busy", &()).id("busy").await.unwrap();
        full.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(10 * NAP)).await;
        let view = scene.store.get(key("a")).await.unwrap();
        assert_eq!((view.status, view.ready), (Status::Queued, true), "{view:?}");
        room.add_permits(1);
        assert_eq!(full.run("a").unwrap().result::<String>().await.unwrap(), "by the first version");
        drop(after);
    });
}

/// Neither asleep nor in a body is a run parked, however long that takes.
#[test]
fn a_run_that_is_driven_or_asleep_is_not_affected() {
    async fn long(ctx: Ctx, gate: Arc<Semaphore>) -> outlast::Result<()> {
        let body = async |_| {
            let _ = gate.acquire().await;
            Ok(())
        };
        ctx.sleep(seconds(10 * NAP)).await?;
        ctx.step("long", body).await
    }
    Scene::play(async |scene| {
        let gate = Arc::new(Semaphore::new(0));
        let within = gate.clone();
        let long = move |ctx: Ctx, (): ()| long(ctx, within.clone());
        let after = scene.engine(new).await;
        let engine = scene.engine(|engine| node(engine, "long").workflow("long", long)).await;
        let run = engine.start("long", &()).id("a").await.unwrap();
        scene.pass(seconds(5 * NAP)).await;
        assert_eq!(status(&after, "a").await, Status::Waiting, "asleep");
        scene.pass(seconds(10 * NAP)).await;
        assert_eq!(status(&after, "a").await, Status::Running, "in its body");
        gate.add_permits(1);
        run.result::<()>().await.unwrap();
    });
}

/// Everything was down for hours. The first node to come up has only the new version, the other one follows.
#[test]
fn after_a_long_silence_nodes_are_given_time_to_come_up() {
    Scene::play(async |scene| {
        let before = scene.engine(old).await;
        before.start("w", &()).id("a").await.unwrap();
        before.run("a").unwrap().signal("wakes it", &(), "1").await.unwrap();
        before.shutdown().await;
        assert!(scene.store.get(key("a")).await.unwrap().ready);
        scene.pass(seconds(10 * NAP)).await;
        let after = scene.engine(new).await;
        scene.pass(seconds(240)).await;
        assert_eq!(status(&after, "a").await, Status::Waiting);
        let back = scene.engine(old).await;
        assert_eq!(back.run("a").unwrap().result::<String>().await.unwrap(), "by the first version");
    });
}

/// A node that dies is as silent as one that stops.
#[test]
fn a_run_whose_node_died_in_the_middle_is_parked_too() {
    Scene::play(async |scene| {
        let lease = scene.store.register(NodeId::new("dead").unwrap(), seconds(10)).await.unwrap();
        let owner = Some(outlast_core::commit::Owner { lease: lease.id, claim: outlast_core::id::ClaimId(1) });
        let version = outlast_core::id::Version::new("1").unwrap();
        let name = outlast_core::id::WorkflowName::new("w").unwrap();
        let run = outlast_core::commit::NewRun::new(key("a"), name, version, "null".into());
        scene.store.create(vec![outlast_core::commit::NewRun { owner, ..run }]).await.remove(0).unwrap();
        let after = scene.engine(new).await;
        let told = after.run("a").unwrap().result::<String>().await.unwrap_err();
        assert_eq!(told.code(), "workflow_version_mismatch", "{told}");
    });
}

#[test]
fn a_version_that_is_not_registered_cannot_be_started() {
    Scene::play(async |scene| {
        let engine = scene.engine(mended).await;
        let refused = engine.start("w", &()).id("a").version("3").await.map(drop).unwrap_err();
        assert_eq!(refused.code(), "workflow_version_mismatch");
        assert!(refused.to_string().contains("\"w\" is registered here without version \"3\""), "{refused}");
        assert_eq!(engine.run("a").unwrap().status().await.unwrap_err().code(), "not_found", "nothing was created");
        let unknown = engine.start("v", &()).id("a").await.map(drop).unwrap_err();
        assert_eq!(unknown.code(), "unknown_workflow");
        let earlier = engine.start("w", &()).id("a").version("1").await.unwrap();
        assert_eq!(earlier.result::<String>().await.unwrap(), "by the first version");
    });
}

/// A run that is started for others to drive, and nobody ever does: whoever waits for it is told.
#[test]
fn a_run_of_a_workflow_that_nobody_has_is_parked_and_says_so() {
    Scene::play(async |scene| {
        let client = scene.engine(|engine| node(engine, "client")).await;
        let run = client.start("w", &()).id("a").version("1").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap_err().code(), "workflow_version_mismatch");
    });
}

/// Whoever waits for a run that parks is told at once, in which way it can go on.
#[test]
fn the_result_of_a_parked_run_is_an_error_that_says_what_to_do() {
    async fn stuck(_: Ctx, (): ()) -> outlast::Result<()> {
        std::future::pending().await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("stuck", stuck)).await;
        let run = engine.start("stuck", &()).id("a").await.unwrap();
        let told = match select(pin!(run.result::<()>()), pin!(scene.pass(seconds(1)))).await {
            Either::Left((told, _)) => told.unwrap_err(),
            Either::Right(_) => panic!("it was not told at once"),
        };
        assert_eq!(told.code(), "parked");
        let told = told.to_string();
        assert!(told.contains("waits for nothing") && told.contains("unpark"), "{told}");
        let again = engine.run("a").unwrap().result::<()>().await.unwrap_err();
        assert_eq!(again.to_string(), told);
    });
}
