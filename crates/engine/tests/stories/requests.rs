//! What a client asks of a run is done once, although replies are lost and requests repeated. Reliability row 14.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::pin::Pin;
use std::sync::Arc;

use outlast::{Ctx, Delivered, Engine, EngineError, Failure, RunHandle, Status};
use outlast_core::id::Index;
use outlast_store::faults::{Fault, FaultStore};
use outlast_store::{Load, LoadFrom};
use tokio::sync::watch;

use crate::support::{Scene, key, kinds, seconds, status};

/// Waits for everything somebody may say to it, one after the other.
async fn listen(ctx: Ctx, token: Arc<watch::Sender<String>>) -> outlast::Result<String> {
    let word: String = ctx.wait_for("word").await?;
    let decision = ctx.approve("Ship it?").id("ship").await?;
    let callback = ctx.callback::<String>().id("back").create();
    let secret = callback.token();
    ctx.step("tell", async |_| {
        token.send_replace(secret.clone());
        Ok(())
    })
    .await?;
    let answer = callback.await.unwrap_or_else(|error| error.to_string());
    ctx.wait_for::<()>("never").id("never").await.ok();
    Ok(format!("{word} {} {answer}", decision.by.unwrap_or_default()))
}

struct Told {
    store: Arc<FaultStore>,
    engine: Engine,
    token: Arc<watch::Sender<String>>,
}

impl Told {
    async fn new(scene: &Scene) -> Told {
        let token = Arc::new(watch::Sender::new(String::new()));
        let store = Arc::new(FaultStore::counting(scene.store.clone()));
        let to = Arc::clone(&token);
        let builder =
            scene.world.engine_on(store.clone()).workflow("listen", move |ctx, (): ()| listen(ctx, to.clone()));
        Told { store, engine: builder.start().await.unwrap(), token }
    }

    fn run(&self) -> RunHandle {
        self.engine.run("a").unwrap()
    }

    fn token(&self) -> String {
        self.token.borrow().clone()
    }
}

type Ask = fn(RunHandle, String) -> Answer;
type Answer = Pin<Box<dyn Future<Output = Result<Delivered, EngineError>>>>;

/// One request after the other, each with its id, and how often the journal has what it leads to.
fn requests() -> Vec<(&'static str, &'static str, Ask)> {
    vec![
        ("signal", "SIGNAL_RESOLVED", |run, _| Box::pin(async move { run.signal("word", "hello", "signal").await })),
        ("approve", "APPROVAL_RESOLVED", |run, _| {
            Box::pin(async move { run.approve("ship", true).by("ann").feedback("gladly").id("approve").await })
        }),
        ("resolve", "CALLBACK_RESOLVED", |run, token| {
            Box::pin(async move { run.resolve_callback("back", &token, "done").id("resolve").await })
        }),
        ("pause", "RUN_PAUSED", |run, _| Box::pin(async move { run.pause("lunch").id("pause").await })),
        ("resume", "RUN_RESUMED", |run, _| Box::pin(async move { run.resume().id("resume").await })),
        ("cancel", "CANCEL_REQUESTED", |run, _| Box::pin(async move { run.cancel("enough").id("cancel").await })),
    ]
}

async fn times(told: &Told, kind: &str) -> usize {
    kinds(&told.engine, "a").await.into_iter().filter(|found| *found == kind).count()
}

/// The engine itself asks again with the same id: whoever asked sees neither an error nor that it was done before.
#[test]
fn a_request_whose_reply_is_lost_is_acknowledged_and_recorded_once() {
    Scene::play(async |scene| {
        let told = Told::new(scene).await;
        told.engine.start("listen", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        for (name, kind, request) in requests() {
            told.store.fail_next("deliver", 3, Fault::AppliedThenError);
            let landed = told.store.landed();
            request(told.run(), told.token()).await.unwrap();
            assert_eq!(told.store.landed(), landed + 3, "{name}: three replies were lost");
            scene.pass(seconds(1)).await;
            assert_eq!(times(&told, kind).await, 1, "{name}");
            let again = request(told.run(), told.token()).await.unwrap();
            assert_eq!(again, Delivered::Duplicate, "{name}: also after the run consumed it");
            scene.pass(seconds(1)).await;
            assert_eq!(times(&told, kind).await, 1, "{name}: the same id again does nothing");
        }
        assert_eq!(status(&told.engine, "a").await, Status::Completed);
        assert_eq!(told.run().result::<String>().await.unwrap(), "hello ann done");
    });
}

/// Nobody said which id: it is drawn once, and not once per try.
#[test]
fn a_decision_without_an_id_whose_reply_is_lost_was_delivered_and_is_not_lost() {
    Scene::play(async |scene| {
        let told = Told::new(scene).await;
        let run = told.engine.start("listen", &()).id("a").signal("word", "hello", "s").await.unwrap();
        scene.pass(seconds(1)).await;
        told.store.fail_next("deliver", 1, Fault::AppliedThenError);
        assert_eq!(run.approve("ship", true).by("ann").await.unwrap(), Delivered::Delivered);
        let second = run.approve("ship", false).by("bob").await.unwrap_err();
        assert!(matches!(second, EngineError::Lost { .. }), "{second}");
        scene.pass(seconds(1)).await;
        told.store.fail_next("deliver", 1, Fault::AppliedThenError);
        let no = Failure::new("paper_jam", "no");
        assert_eq!(run.fail_callback("back", &told.token(), no).await.unwrap(), Delivered::Delivered);
        let second = run.resolve_callback("back", &told.token(), "done").await.unwrap_err();
        assert!(matches!(second, EngineError::Lost { .. }), "{second}");
        for _ in 0..2 {
            told.store.fail_next("deliver", 1, Fault::AppliedThenError);
            assert_eq!(run.pause("lunch").await.unwrap(), Delivered::Delivered);
            told.store.fail_next("deliver", 1, Fault::AppliedThenError);
            assert_eq!(run.resume().await.unwrap(), Delivered::Delivered);
        }
        told.store.fail_next("deliver", 1, Fault::AppliedThenError);
        assert_eq!(run.cancel("enough").await.unwrap(), Delivered::Delivered);
        scene.pass(seconds(1)).await;
        for kind in ["APPROVAL_RESOLVED", "CALLBACK_FAILED", "CANCEL_REQUESTED"] {
            assert_eq!(times(&told, kind).await, 1, "{kind}");
        }
    });
}

/// A decision is one: the same id again is that one, and another id is another one that came too late.
#[test]
fn a_second_decision_with_another_id_is_lost_and_the_first_one_again_is_not() {
    Scene::play(async |scene| {
        let told = Told::new(scene).await;
        let run = told.engine.start("listen", &()).id("a").signal("word", "hello", "s").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(run.approve("ship", true).by("ann").id("one").await.unwrap(), Delivered::Delivered);
        assert_eq!(run.approve("ship", true).by("ann").id("one").await.unwrap(), Delivered::Duplicate);
        let second = run.approve("ship", true).by("ann").id("two").await.unwrap_err();
        assert_eq!(second.code(), "approval_lost");
        scene.pass(seconds(1)).await;
        assert_eq!(run.approve("ship", false).id("one").await.unwrap(), Delivered::Duplicate, "consumed meanwhile");
        run.terminate("enough").await.unwrap();
        assert_eq!(run.approve("ship", true).id("one").await.unwrap(), Delivered::Duplicate, "and when it has ended");
        assert_eq!(run.cancel("late").id("late").await.unwrap_err().code(), "signal_lost");
    });
}

#[test]
fn a_start_with_a_signal_whose_reply_is_lost_starts_once_and_signals_once() {
    Scene::play(async |scene| {
        let told = Told::new(scene).await;
        told.store.fail_next("create", 3, Fault::AppliedThenError);
        told.engine.start("listen", &()).id("a").signal("word", "hello", "s").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(kinds(&told.engine, "a").await, ["SIGNAL_AWAITED", "SIGNAL_RESOLVED", "APPROVAL_REQUESTED"]);
        told.engine.start("listen", &()).id("a").signal("word", "hello", "s").await.unwrap();
        scene.pass(seconds(1)).await;
        let inbox = scene.store.load(vec![Load { run: key("a"), from: LoadFrom::Index(Index(0)) }]).await;
        assert_eq!(inbox[0].as_ref().unwrap().inbox, [], "and nothing waits for a second word");
    });
}

/// The store is away for longer: then its error is the answer, soon, and the request can be repeated with its id.
#[test]
fn a_request_is_refused_with_the_stores_error_when_it_stays_away() {
    Scene::play(async |scene| {
        let told = Told::new(scene).await;
        let run = told.engine.start("listen", &()).id("a").await.unwrap();
        told.store.fail_next("deliver", 100, Fault::NotApplied { in_doubt: false });
        let (began, before) = (scene.world.now(), told.store.landed());
        let error = run.cancel("enough").id("c").await.unwrap_err();
        assert!(matches!(&error, EngineError::Store(error) if error.is_retryable()), "{error}");
        assert_eq!(told.store.landed() - before, 8, "a bounded number of tries");
        let waited = scene.world.now().as_millis() - began.as_millis();
        assert!((1_000..5_000).contains(&waited), "{waited} ms");
    });
}
