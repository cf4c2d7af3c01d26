//! What one call claims is driven or given back, whatever becomes of replies; and a suspect is driven alone. Semantics R11.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join;
use outlast::{Ctx, Engine, Outlast, Status};
use outlast_core::commit::{NewRun, Owner};
use outlast_core::id::{ClaimId, NodeId, Version, WorkflowName};
use outlast_core::limits::TRIES_ALONE;
use outlast_store::faults::{Fault, FaultStore};
use outlast_store::{Claim, Pick, Serves, Store};
use tokio::sync::{Notify, watch};

use crate::support::{Scene, key, kinds, seconds, status};

async fn hear(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    let one = ctx.step("one", async |_| Ok(1)).await?;
    let word: u32 = ctx.wait_for("word").await?;
    Ok(one + word)
}

/// An engine behind faults, and a run that nobody drives yet.
async fn faulty(scene: &Scene, register: impl FnOnce(Outlast) -> Outlast) -> (Arc<FaultStore>, Engine) {
    let store = Arc::new(FaultStore::counting(scene.store.clone()));
    let engine = register(scene.world.engine_on(store.clone()).workflow("hear", hear)).start().await.unwrap();
    let other = scene.engine(|engine| engine).await;
    other.start("hear", &()).version("1").id("a").await.unwrap();
    (store, engine)
}

fn claims(store: &FaultStore) -> usize {
    store.log().iter().filter(|call| **call == "claim").count()
}

/// The claim was applied and its reply is lost for longer than whoever asked is kept waiting.
#[test]
fn a_run_whose_claim_got_no_reply_is_driven_although_whoever_asked_was_told_an_error() {
    for looping in [false, true] {
        Scene::play(async |scene| {
            let register = |engine: Outlast| if looping { engine } else { engine.without_loops() };
            let (store, engine) = faulty(scene, register).await;
            store.fail_next("claim", 12, Fault::AppliedThenError);
            let asked = scene.world.now();
            let error = engine.drive_once("a").await.unwrap_err();
            assert!(error.to_string().contains("was made to fail"), "{error}");
            assert!(scene.world.now() < asked + seconds(1), "they are told soon");
            scene.pass(seconds(20)).await;
            assert_eq!(store.landed(), 12);
            assert_eq!(status(&engine, "a").await, Status::Waiting, "and it was driven to its pause");
            assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "SIGNAL_AWAITED"]);
            assert_eq!(scene.store.get(key("a")).await.unwrap().owner, None);
        });
    }
}

#[test]
fn a_second_call_waits_for_the_run_whose_claim_got_no_reply_yet() {
    Scene::play(async |scene| {
        let (store, engine) = faulty(scene, Outlast::without_loops).await;
        store.fail_next("claim", 6, Fault::AppliedThenError);
        engine.drive_once("a").await.unwrap_err();
        assert_eq!(engine.drive_once("a").await.unwrap().status, Status::Waiting);
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "SIGNAL_AWAITED"]);
    });
}

/// A lease that nobody keeps is over after an hour here: then nothing can be held under it.
#[test]
fn a_claim_is_not_asked_for_longer_than_the_lease_lasts() {
    Scene::play(async |scene| {
        let (store, engine) = faulty(scene, Outlast::without_loops).await;
        store.fail_next("claim", u32::MAX, Fault::NotApplied { in_doubt: false });
        engine.drive_once("a").await.unwrap_err();
        scene.pass(seconds(3_000)).await;
        let (before, now) = (claims(&store), scene.world.now());
        assert!(before > 2_900, "as long as the lease lives: {before}");
        scene.pass(seconds(3_600)).await;
        let until = claims(&store);
        scene.pass(seconds(3_600)).await;
        assert_eq!(claims(&store), until, "and no longer, since {now}");
    });
}

#[test]
fn a_claim_is_not_asked_for_after_the_engine_was_shut_down() {
    for looping in [false, true] {
        Scene::play(async |scene| {
            let register = |engine: Outlast| if looping { engine } else { engine.without_loops() };
            let (store, engine) = faulty(scene, register).await;
            store.fail_next("claim", u32::MAX, Fault::AppliedThenError);
            engine.drive_once("a").await.unwrap_err();
            engine.shutdown().await;
            let until = store.calls();
            scene.pass(seconds(60)).await;
            assert_eq!(store.calls(), until);
            let next = scene.engine(|engine| engine.workflow("hear", hear)).await;
            scene.pass(seconds(1)).await;
            assert_eq!(status(&next, "a").await, Status::Waiting, "another engine goes on at once");
        });
    }
}

/// Who executes right now, and a gate for each.
#[derive(Clone)]
struct House {
    inside: Arc<watch::Sender<Vec<String>>>,
    gates: Arc<[Notify; 3]>,
}

impl House {
    fn new() -> House {
        let gates = std::array::from_fn(|_| Notify::new());
        House { inside: Arc::new(watch::Sender::new(Vec::new())), gates: Arc::new(gates) }
    }

    fn gate(&self, run: &str) -> &Notify {
        &self.gates[["a", "b", "c"].iter().position(|name| *name == run).unwrap()]
    }

    fn inside(&self) -> Vec<String> {
        self.inside.borrow().clone()
    }

    /// Each run goes in, and comes out when its gate opens.
    fn register(&self, engine: Outlast) -> Outlast {
        let house = self.clone();
        engine.workflow("visit", move |ctx: Ctx, (): ()| {
            let house = house.clone();
            async move {
                let name = ctx.run_id().to_string();
                ctx.step("visit", async |_| {
                    house.inside.send_modify(|inside| inside.push(name.clone()));
                    house.gate(&name).notified().await;
                    house.inside.send_modify(|inside| inside.retain(|other| *other != name));
                    Ok(())
                })
                .await?;
                ctx.wait_for::<()>("word").await
            }
        })
    }
}

/// A run that was there each time when a process died, and dies with one more.
async fn suspected(store: &Arc<dyn Store>, id: &str) {
    let lease = store.register(NodeId::new("first").unwrap(), seconds(1)).await.unwrap();
    let (name, version) = (WorkflowName::new("visit").unwrap(), Version::new("1").unwrap());
    let owner = Some(Owner { lease: lease.id, claim: ClaimId(1) });
    let new = NewRun { owner, ..NewRun::new(key(id), name, version, "null".into()) };
    store.create(vec![new]).await.remove(0).unwrap();
    store.retire(lease.id).await.unwrap();
    for _ in 1..TRIES_ALONE {
        let lease = store.register(NodeId::new("mortal").unwrap(), seconds(1)).await.unwrap().id;
        let (pick, serves) = (Pick::Run(key(id)), Serves::Everything);
        let claim = Claim { lease, id: ClaimId(1), limit: 1, pick, serves };
        assert_eq!(store.claim(claim).await.unwrap().len(), 1);
        store.retire(lease).await.unwrap();
    }
}

async fn drive(engine: &Engine, run: &str) -> outlast::Driven {
    engine.drive_once(run).await.unwrap()
}

#[test]
fn without_loops_a_suspect_begins_when_nothing_else_is_driven_and_nothing_begins_beside_it() {
    Scene::play(async |scene| {
        let house = House::new();
        let engine = scene.engine(|engine| house.register(engine).without_loops()).await;
        engine.start("visit", &()).id("b").await.unwrap();
        engine.start("visit", &()).id("c").await.unwrap();
        suspected(&scene.store, "a").await;
        let story = async {
            scene.pass(seconds(1)).await;
            assert_eq!(house.inside(), ["b"]);
            let first = drive(&engine, "a");
            let rest = async {
                scene.pass(seconds(1)).await;
                assert_eq!(house.inside(), ["b"], "the suspect waits");
                assert_eq!(scene.store.get(key("a")).await.unwrap().owner, None, "and is not held meanwhile");
                house.gate("b").notify_one();
                scene.pass(seconds(1)).await;
                assert_eq!(house.inside(), ["a"]);
                assert!(engine.drive_once("c").now_or_never().is_none());
                scene.pass(seconds(30)).await;
                assert_eq!(house.inside(), ["a"], "nothing begins beside it");
                house.gate("a").notify_one();
                scene.pass(seconds(1)).await;
                assert_eq!(house.inside(), ["c"], "it has committed: others go on");
                house.gate("c").notify_one();
            };
            join(first, rest).await.0
        };
        let (b, a) = join(drive(&engine, "b"), story).await;
        assert_eq!((a.status, b.status), (Status::Waiting, Status::Waiting));
        assert_eq!(engine.drive_once("c").await.unwrap().status, Status::Waiting);
        assert_eq!(scene.store.get(key("a")).await.unwrap().tries, 0);
    });
}

#[test]
fn without_loops_a_suspect_is_refused_for_now_if_the_others_do_not_end() {
    Scene::play(async |scene| {
        let house = House::new();
        let engine = scene.engine(|engine| house.register(engine).without_loops()).await;
        engine.start("visit", &()).id("b").await.unwrap();
        engine.start("visit", &()).id("c").await.unwrap();
        suspected(&scene.store, "a").await;
        assert!(engine.drive_once("b").now_or_never().is_none());
        scene.pass(seconds(1)).await;
        let error = engine.drive_once("a").await.unwrap_err().to_string();
        assert!(error.contains("default/a may kill its driver, and others are driven beside it"), "{error}");
        assert_eq!(scene.store.get(key("a")).await.unwrap().owner, None, "nobody holds it");
        assert!(engine.drive_once("c").now_or_never().is_none());
        scene.pass(seconds(1)).await;
        assert_eq!(house.inside(), ["b", "c"], "others are not kept out any longer");
    });
}

/// A long first step: others are kept out for a minute, not for as long as it lasts.
#[test]
fn without_loops_a_suspect_that_does_nothing_wrong_for_a_minute_keeps_nobody_out() {
    Scene::play(async |scene| {
        let house = House::new();
        let engine = scene.engine(|engine| house.register(engine).without_loops()).await;
        engine.start("visit", &()).id("b").await.unwrap();
        suspected(&scene.store, "a").await;
        assert!(engine.drive_once("a").now_or_never().is_none());
        scene.pass(seconds(1)).await;
        assert!(engine.drive_once("b").now_or_never().is_none());
        scene.pass(seconds(50)).await;
        assert_eq!(house.inside(), ["a"]);
        scene.pass(seconds(20)).await;
        assert_eq!(house.inside(), ["a", "b"]);
    });
}

#[test]
fn with_loops_a_suspect_is_left_to_the_loop_which_drives_it_alone() {
    Scene::play(async |scene| {
        let house = House::new();
        let engine = scene.engine(|engine| house.register(engine)).await;
        engine.start("visit", &()).id("b").await.unwrap();
        suspected(&scene.store, "a").await;
        let story = async {
            scene.pass(seconds(1)).await;
            assert_eq!(house.inside(), ["b"], "the suspect waits");
            assert_eq!(scene.store.get(key("a")).await.unwrap().owner, None, "and is not held meanwhile");
            house.gate("b").notify_one();
            scene.pass(seconds(1)).await;
            assert_eq!(house.inside(), ["a"]);
            engine.start("visit", &()).id("c").await.unwrap();
            assert!(engine.drive_once("c").now_or_never().is_none());
            scene.pass(seconds(30)).await;
            assert_eq!(house.inside(), ["a"], "nothing begins beside it, not even by name");
            house.gate("a").notify_one();
            scene.pass(seconds(1)).await;
            assert_eq!(house.inside(), ["c"]);
        };
        let (driven, ()) = join(drive(&engine, "a"), story).await;
        assert_eq!(driven.status, Status::Waiting);
        assert_eq!(scene.store.get(key("a")).await.unwrap().tries, 0);
    });
}

/// The suspect's claim was applied and nobody knew: it is not held for as long as the lease lasts.
#[test]
fn a_suspect_whose_claim_got_no_reply_is_given_back() {
    Scene::play(async |scene| {
        let house = House::new();
        let store = Arc::new(FaultStore::counting(scene.store.clone()));
        let builder = house.register(scene.world.engine_on(store.clone())).without_loops();
        let engine = builder.start().await.unwrap();
        suspected(&scene.store, "a").await;
        store.fail_next("claim", 7, Fault::AppliedThenError);
        store.fail_next("release", 3, Fault::NotApplied { in_doubt: false });
        engine.drive_once("a").await.unwrap_err();
        assert!(scene.store.get(key("a")).await.unwrap().owner.is_some(), "it was claimed");
        scene.pass(seconds(20)).await;
        assert_eq!(scene.store.get(key("a")).await.unwrap().owner, None);
        assert_eq!(house.inside(), [""; 0], "and was not driven beside what may be driven now");
        assert!(engine.drive_once("a").now_or_never().is_none());
        scene.pass(seconds(1)).await;
        assert_eq!(house.inside(), ["a"]);
    });
}
