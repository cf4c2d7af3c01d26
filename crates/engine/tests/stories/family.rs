//! Children, callbacks and generations.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use outlast::{Ctx, Engine, Error, Outlast, Status};
use outlast_core::commit::{Delivery, WaitKind};
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::id::{DeliveryId, Key};
use outlast_store::Delivered;

use crate::support::{Scene, journal, key, kinds, seconds, status};

async fn double(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    ctx.sleep(seconds(10)).await?;
    ctx.step("double", async |_| Ok(n * 2)).await
}

async fn sleepy(ctx: Ctx, (): ()) -> outlast::Result<()> {
    if let Err(error) = ctx.sleep(seconds(86_400)).await {
        ctx.step("clean up", async |_| Ok(())).await?;
        return Err(error);
    }
    Ok(())
}

fn children(engine: Outlast) -> Outlast {
    engine.workflow("double", double).workflow("sleepy", sleepy)
}

#[test]
fn a_parent_gets_what_its_child_returns() {
    async fn parent(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        let child = ctx.child::<u32>("double", &n).id("c").await?;
        Ok(child + ctx.child::<u32>("double", &child).await?)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| children(engine).workflow("parent", parent)).await;
        let begun = scene.world.now();
        let run = engine.start("parent", &3).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 18);
        let took = scene.world.now().since(begun).as_millis();
        assert!((20_000..20_200).contains(&took), "{took}");
        let expected = ["CHILD_STARTED", "CHILD_FINISHED", "CHILD_STARTED", "CHILD_FINISHED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
        assert_eq!(status(&engine, "c").await, Status::Completed);
        let view = engine.run("c").unwrap().view().await.unwrap();
        assert_eq!(view.parent.unwrap().run.as_str(), "a");
    });
}

#[test]
fn the_failure_of_a_child_is_an_error_of_the_operation() {
    async fn fail(_: Ctx, (): ()) -> outlast::Result<()> {
        Err(Error::new("mine", "no").permanent())
    }
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let error = ctx.child::<()>("fail", &()).await.unwrap_err();
        let unknown = ctx.child::<()>("nobody", &()).await.unwrap_err();
        Ok(format!("{} {}", error.code(), unknown.code()))
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("fail", fail).workflow("parent", parent)).await;
        let run = engine.start("parent", &()).id("a").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "mine unknown_workflow");
    });
}

/// An id that belongs to somebody else cannot be a child's.
#[test]
fn a_child_cannot_take_the_id_of_another_run() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.child::<u32>("double", &1).id("taken").await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| children(engine).workflow("parent", parent)).await;
        engine.start("double", &5).id("taken").await.unwrap();
        let run = engine.start("parent", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap_err().code(), "child_exists");
        assert_eq!(engine.run("taken").unwrap().result::<u32>().await.unwrap(), 10, "it is left alone");
    });
}

/// "Awaitable, detachable": a detached child gives its id at once and outlives its parent.
#[test]
fn a_detached_child_outlives_its_parent() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<String> {
        Ok(ctx.child::<u32>("double", &4).id("c").detach().await?.to_string())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| children(engine).workflow("parent", parent)).await;
        let begun = scene.world.now();
        let run = engine.start("parent", &()).id("a").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "c");
        assert!(scene.world.now().since(begun).as_millis() < 1_000, "nobody waits for it");
        assert_eq!(engine.run("c").unwrap().result::<u32>().await.unwrap(), 8);
    });
}

/// A parent that starts a child and ends: how the child ends.
async fn closed(scene: &Scene, policy: Option<ClosePolicy>) -> (Engine, Status) {
    let register = |engine: Outlast| {
        children(engine).workflow("parent", move |ctx: Ctx, (): ()| async move {
            let child = ctx.child::<()>("sleepy", &()).id("c");
            let _child = match policy {
                Some(policy) => child.on_close(policy).start(),
                None => child.start(),
            };
            ctx.sleep(seconds(1)).await
        })
    };
    let engine = scene.engine(register).await;
    engine.start("parent", &()).id("a").await.unwrap().result::<()>().await.unwrap();
    scene.pass(seconds(1)).await;
    let status = status(&engine, "c").await;
    (engine, status)
}

/// "Parent-close policy": cancelled if nobody says otherwise, with its cleanup.
#[test]
fn a_child_is_cancelled_when_its_parent_ends() {
    for policy in [None, Some(ClosePolicy::Cancel)] {
        Scene::play(async |scene| {
            let (engine, status) = closed(scene, policy).await;
            assert_eq!(status, Status::Cancelled);
            assert!(kinds(&engine, "c").await.contains(&"STEP_FINISHED"), "its cleanup ran");
        });
    }
}

#[test]
fn a_child_is_terminated_when_its_parent_said_so() {
    Scene::play(async |scene| {
        let (engine, status) = closed(scene, Some(ClosePolicy::Terminate)).await;
        assert_eq!(status, Status::Cancelled);
        assert_eq!(kinds(&engine, "c").await, ["TIMER_STARTED", "RUN_TERMINATED"], "it is not asked");
    });
}

#[test]
fn an_abandoned_child_goes_on_alone() {
    Scene::play(async |scene| {
        let (engine, status) = closed(scene, Some(ClosePolicy::Abandon)).await;
        assert_eq!(status, Status::Waiting);
        engine.run("c").unwrap().result::<()>().await.unwrap();
    });
}

/// Cancel "reaches descendants".
#[test]
fn cancelling_a_parent_cancels_its_child_too() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.child("sleepy", &()).id("c").await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| children(engine).workflow("parent", parent)).await;
        let run = engine.start("parent", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        assert_eq!(run.result::<()>().await.unwrap_err().code(), "aborted");
        assert_eq!(engine.run("c").unwrap().result::<()>().await.unwrap_err().code(), "aborted");
        assert!(kinds(&engine, "c").await.contains(&"STEP_FINISHED"), "its cleanup ran");
    });
}

/// A child that is cancelled from outside is a failure with the code `cancelled` for its parent, which goes on.
#[test]
fn the_end_of_a_cancelled_child_does_not_cancel_its_parent() {
    async fn parent(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let error = ctx.child::<()>("sleepy", &()).id("c").await.unwrap_err();
        Ok(error.code().to_owned())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| children(engine).workflow("parent", parent)).await;
        let run = engine.start("parent", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("c").unwrap().cancel("enough").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "cancelled");
    });
}

type Tokens = Arc<Mutex<Vec<String>>>;

/// Hands out a token, and waits for the answer for an hour.
fn lab(tokens: &Tokens) -> impl FnOnce(Outlast) -> Outlast {
    let tokens = Arc::clone(tokens);
    move |engine| {
        engine.workflow("lab", move |ctx: Ctx, (): ()| {
            let tokens = Arc::clone(&tokens);
            async move {
                let callback = ctx.callback::<u32>().id("report").timeout(seconds(3_600)).create();
                let token = callback.token();
                ctx.step("order", async |_| {
                    tokens.lock().unwrap().push(token.clone());
                    Ok(())
                })
                .await?;
                callback.await
            }
        })
    }
}

/// Answers as another process would: through the store.
async fn answer(scene: &Scene, id: &str, token: &str, meta: &'static str, payload: &'static str) -> Delivered {
    let delivery = Delivery::Answer {
        run: key("a"),
        key: Key::new("report").unwrap(),
        kind: WaitKind::Callback,
        id: DeliveryId::new(id).unwrap(),
        token: Some(token.to_owned()),
        meta: Some(Bytes::from_static(meta.as_bytes())),
        payload: Some(Bytes::from_static(payload.as_bytes())),
    };
    scene.store.deliver(vec![delivery]).await.remove(0).unwrap()
}

/// "Unguessable token …; success": one answer, and only with the token, which is not in the journal.
#[test]
fn a_callback_is_answered_once_by_whoever_has_its_token() {
    Scene::play(async |scene| {
        let tokens = Tokens::default();
        let engine = scene.engine(lab(&tokens)).await;
        let run = engine.start("lab", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let token = tokens.lock().unwrap()[0].clone();
        assert_eq!(answer(scene, "1", "guess", "\"resolved\"", "1").await, Delivered::NotFound);
        assert_eq!(answer(scene, "2", &token, "\"resolved\"", "7").await, Delivered::Delivered);
        assert_eq!(answer(scene, "3", &token, "\"resolved\"", "8").await, Delivered::Lost);
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        let journal = journal(&engine, "a").await;
        assert!(!format!("{journal:?}").contains(&token), "the token is a secret");
        let expected = ["CALLBACK_CREATED", "STEP_FINISHED", "CALLBACK_RESOLVED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

#[test]
fn a_callback_that_is_answered_with_an_error_fails() {
    Scene::play(async |scene| {
        let tokens = Tokens::default();
        let engine = scene.engine(lab(&tokens)).await;
        let run = engine.start("lab", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let token = tokens.lock().unwrap()[0].clone();
        let failed = r#"{"failed":{"code":"broken","message":"no"}}"#;
        assert_eq!(answer(scene, "1", &token, failed, "null").await, Delivered::Delivered);
        assert_eq!(run.result::<u32>().await.unwrap_err().code(), "broken");
    });
}

#[test]
fn a_callback_that_nobody_answers_times_out() {
    Scene::play(async |scene| {
        let tokens = Tokens::default();
        let engine = scene.engine(lab(&tokens)).await;
        let begun = scene.world.now();
        let run = engine.start("lab", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap_err().code(), "timeout");
        let took = scene.world.now().since(begun).as_millis();
        assert!((3_600_000..3_600_100).contains(&took), "{took}");
        let token = tokens.lock().unwrap()[0].clone();
        assert_eq!(answer(scene, "1", &token, "\"resolved\"", "7").await, Delivered::Lost);
    });
}

/// Takes one number per generation, and adds up three of them.
async fn adder(ctx: Ctx, (sum, keys): (u32, Vec<String>)) -> outlast::Result<(u32, Vec<String>)> {
    let n: u32 = ctx.wait_for("n").await?;
    let key = ctx.step("key", async |s| Ok(s.idempotency_key().to_owned())).await?;
    let next = (sum + n, [keys, vec![key]].concat());
    if ctx.generation().0 < 2 { ctx.continue_as_new(&next) } else { Ok(next) }
}

/// "The run id stays; a new generation with its own journal begins; mailbox and dedup keys move along; idempotency keys
/// contain the generation." Semantics R7: the same `signal_id` is a success also after the run has been continued.
#[test]
fn signals_move_along_with_the_generations() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("adder", adder)).await;
        let run = engine.start("adder", &(0, Vec::<String>::new())).id("a").await.unwrap();
        let send = async |n: u32| engine.run("a").unwrap().signal("n", &n, &n.to_string()).await.unwrap();
        send(1).await;
        send(10).await;
        scene.pass(seconds(1)).await;
        let view = engine.run("a").unwrap().view().await.unwrap();
        assert_eq!((view.generation.0, view.status), (2, Status::Waiting), "both were taken, one in each generation");
        assert_eq!(send(1).await, Delivered::Duplicate);
        assert_eq!(kinds(&engine, "a").await, ["SIGNAL_AWAITED"], "a journal of its own");
        send(100).await;
        let (sum, keys) = run.result::<(u32, Vec<String>)>().await.unwrap();
        assert_eq!(sum, 111);
        assert_eq!(keys, ["default/a/0/key", "default/a/1/key", "default/a/2/key"]);
        assert_eq!(send(10).await, Delivered::Duplicate, "also after the end");
    });
}

/// An observer follows a run into its next generations, to its end.
#[test]
fn an_observer_follows_the_generations() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("adder", adder)).await;
        engine.start("adder", &(0, Vec::<String>::new())).id("a").await.unwrap();
        let mut attached = engine.run("a").unwrap().attach();
        assert!(attached.next().await.unwrap().is_some());
        for n in 1..=3 {
            engine.run("a").unwrap().signal("n", &n, &n.to_string()).await.unwrap();
        }
        let mut told = Vec::new();
        while let Some(event) = attached.next().await.unwrap() {
            told.push(event);
        }
        let continued = told.iter().filter(|event| matches!(event, Event::RunContinued { .. })).count();
        assert_eq!(continued, 2);
        assert!(matches!(told.last(), Some(Event::RunFinished { .. })), "{told:?}");
    });
}
