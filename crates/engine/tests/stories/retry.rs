//! Runs that have failed, and are tried again.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use outlast::{Check, Ctx, Engine, Error, Event, Jitter, Outlast, Retry, Status, StepContext};

use crate::support::{Scene, journal, seconds, status};

/// What goes wrong until somebody mends it, and how often each step of each run was tried.
#[derive(Clone, Default)]
struct Shop(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    broken: BTreeSet<&'static str>,
    tried: BTreeMap<(String, &'static str), u32>,
}

impl Shop {
    fn broken(names: &[&'static str]) -> Shop {
        let shop = Shop::default();
        shop.0.lock().unwrap().broken.extend(names);
        shop
    }

    fn mend(&self, name: &'static str) {
        assert!(self.0.lock().unwrap().broken.remove(name));
    }

    fn tried(&self, run: &str, name: &'static str) -> u32 {
        self.0.lock().unwrap().tried.get(&(run.to_owned(), name)).copied().unwrap_or_default()
    }

    fn does(&self, s: &StepContext, name: &'static str) -> outlast::Result<u32> {
        let mut inner = self.0.lock().unwrap();
        *inner.tried.entry((s.run_id().to_string(), name)).or_default() += 1;
        match inner.broken.contains(name) {
            true => Err(Error::new("broken", format!("{name} is broken"))),
            false => Ok(1),
        }
    }
}

/// How the workflow is called, and what it is: for `scene.engine`.
async fn engine<F>(scene: &Scene, shop: &Shop, workflow: fn(Ctx, Shop) -> F) -> Engine
where
    F: Future<Output = outlast::Result<u32>> + 'static,
{
    let register = |engine: Outlast| {
        let shop = shop.clone();
        engine.workflow("shop", move |ctx: Ctx, (): ()| workflow(ctx, shop.clone()))
    };
    scene.engine(register).await
}

/// Starts a run that fails.
async fn fails(scene: &Scene, engine: &Engine) {
    engine.start("shop", &()).id("a").await.unwrap();
    for _ in 0..30 {
        if status(engine, "a").await == Status::Failed {
            return;
        }
        scene.pass(seconds(10)).await;
    }
    panic!("{:?}", journal(engine, "a").await);
}

/// Tries it again, and gives what came of that and how the new run is called.
async fn again(scene: &Scene, engine: &Engine) -> (String, Status) {
    let run = engine.run("a").unwrap().retry().await.unwrap().run.id().to_string();
    scene.pass(seconds(300)).await;
    let status = status(engine, &run).await;
    (run, status)
}

async fn both(ctx: Ctx, shop: Shop) -> outlast::Result<u32> {
    let once = Retry::attempts(1);
    let first = ctx.step("first", async |s| shop.does(&s, "first")).await?;
    let a = ctx.step("a", async |s| shop.does(&s, "a")).retry(once);
    let b = ctx.step("b", async |s| shop.does(&s, "b")).retry(once);
    let (a, b) = ctx.all_settled((a, b)).await;
    let wrong = [&a, &b].iter().filter(|done| done.is_err()).count();
    match (a, b) {
        (Ok(a), Ok(b)) => Ok(first + a + b),
        _ => Err(Error::new("some", format!("{wrong} of them failed"))),
    }
}

#[test]
fn of_failures_that_came_together_none_is_kept() {
    Scene::play(async |scene| {
        let shop = Shop::broken(&["a", "b"]);
        let engine = engine(scene, &shop, both).await;
        fails(scene, &engine).await;
        shop.mend("a");
        shop.mend("b");
        let (run, status) = again(scene, &engine).await;
        assert_eq!(status, Status::Completed, "{:?}", journal(&engine, &run).await);
        assert_eq!((shop.tried("a", "first"), shop.tried(&run, "first")), (1, 0), "what succeeded is not done again");
    });
}

async fn branches(ctx: Ctx, shop: Shop) -> outlast::Result<u32> {
    let once = Retry::attempts(1);
    let late = async {
        ctx.sleep(seconds(5)).await?;
        ctx.step("between", async |s| shop.does(&s, "between")).await?;
        ctx.step("b", async |s| shop.does(&s, "b")).retry(once).await
    };
    let a = ctx.step("a", async |s| shop.does(&s, "a")).retry(once);
    let (a, b) = futures_util::future::join(a.into_future(), late).await;
    // The first one's error is told, whatever failed behind it.
    Ok(a? + b?)
}

#[test]
fn what_the_run_s_own_error_repeats_is_what_made_it_fail() {
    Scene::play(async |scene| {
        let shop = Shop::broken(&["a", "b"]);
        let engine = engine(scene, &shop, branches).await;
        fails(scene, &engine).await;
        shop.mend("a");
        shop.mend("b");
        let (run, status) = again(scene, &engine).await;
        assert_eq!(status, Status::Completed, "{:?}", journal(&engine, &run).await);
    });
}

async fn cleans_up(ctx: Ctx, shop: Shop) -> outlast::Result<u32> {
    let once = Retry::attempts(1);
    let first = ctx.step("first", async |s| shop.does(&s, "first")).await?;
    let pay = ctx.step("a", async |s| shop.does(&s, "a")).retry(once).await;
    if let Err(error) = pay {
        ctx.step("undo", async |s| shop.does(&s, "undo")).await?;
        let _ = ctx.step("b", async |s| shop.does(&s, "b")).retry(once).await;
        return Err(error);
    }
    Ok(first)
}

#[test]
fn a_failed_clean_up_is_not_taken_for_what_made_the_run_fail() {
    Scene::play(async |scene| {
        let shop = Shop::broken(&["a", "b"]);
        let engine = engine(scene, &shop, cleans_up).await;
        fails(scene, &engine).await;
        assert_eq!(shop.tried("a", "b"), 1);
        shop.mend("a");
        let (run, status) = again(scene, &engine).await;
        assert_eq!(status, Status::Completed, "{:?}", journal(&engine, &run).await);
        assert_eq!((shop.tried(&run, "first"), shop.tried(&run, "undo")), (0, 0));
    });
}

async fn waits(ctx: Ctx, shop: Shop) -> outlast::Result<u32> {
    let first = ctx.step("first", async |s| shop.does(&s, "first")).await?;
    let check = async |s: StepContext, n: u32| match shop.does(&s, "ready") {
        Ok(_) => Ok(Check::Met(n)),
        Err(_) => Ok(Check::Not(n + 1)),
    };
    let ready = ctx.wait_for_condition("ready", 0, check);
    Ok(first + ready.retry(Retry::attempts(3).initial(seconds(5)).jitter(Jitter::None)).await?)
}

#[test]
fn a_condition_that_was_never_met_is_checked_anew() {
    Scene::play(async |scene| {
        let shop = Shop::broken(&["ready"]);
        let engine = engine(scene, &shop, waits).await;
        fails(scene, &engine).await;
        assert_eq!(shop.tried("a", "ready"), 3);
        let (run, ended) = again(scene, &engine).await;
        assert_eq!((ended, shop.tried(&run, "ready")), (Status::Failed, 3), "with all its checks");
        shop.mend("ready");
        let (run, ended) = again(scene, &engine).await;
        assert_eq!(ended, Status::Completed, "{:?}", journal(&engine, &run).await);
        assert_eq!(shop.tried(&run, "first"), 0);
    });
}

async fn patient(ctx: Ctx, shop: Shop) -> outlast::Result<u32> {
    let five = Retry::attempts(5).initial(seconds(5)).jitter(Jitter::None);
    let slow = async {
        ctx.sleep(seconds(6)).await?;
        ctx.step("beside", async |s| shop.does(&s, "beside")).await
    };
    let a = ctx.step("a", async |s| shop.does(&s, "a")).retry(five);
    let (a, slow) = futures_util::future::join(a.into_future(), slow).await;
    Ok(a? + slow?)
}

#[test]
fn a_step_that_is_tried_again_has_all_its_attempts_and_what_succeeded_beside_it_is_kept() {
    Scene::play(async |scene| {
        let shop = Shop::broken(&["a"]);
        let engine = engine(scene, &shop, patient).await;
        fails(scene, &engine).await;
        assert_eq!((shop.tried("a", "a"), shop.tried("a", "beside")), (5, 1));
        let (run, ended) = again(scene, &engine).await;
        assert_eq!((ended, shop.tried(&run, "a"), shop.tried(&run, "beside")), (Status::Failed, 5, 0));
        let waited = journal(&engine, &run).await;
        let retries = waited.iter().filter(|event| matches!(event, Event::StepRetryScheduled { .. })).count();
        assert_eq!(retries, 4, "and waits between them");
    });
}

async fn late(ctx: Ctx, shop: Shop) -> outlast::Result<u32> {
    let first = ctx.step("first", async |s| shop.does(&s, "first")).await?;
    let one = ctx.wait_for::<u32>("one").timeout(seconds(20));
    let two = ctx.wait_for::<u32>("two").timeout(seconds(30));
    let slept = ctx.sleep(seconds(5));
    let (one, two, slept) = ctx.all_settled((one, two, slept)).await;
    slept?;
    let missing = || Error::new("late", "somebody was late");
    Ok(first + one?.ok_or_else(missing)? + two?.ok_or_else(missing)?)
}

#[test]
fn deadlines_that_passed_are_counted_anew() {
    Scene::play(async |scene| {
        let shop = Shop::default();
        let engine = engine(scene, &shop, late).await;
        fails(scene, &engine).await;
        let again = engine.run("a").unwrap().retry().await.unwrap().run;
        scene.pass(seconds(15)).await;
        assert_eq!(again.status().await.unwrap(), Status::Waiting, "{:?}", again.journal().await.unwrap());
        again.signal("one", &1, "1").await.unwrap();
        again.signal("two", &2, "2").await.unwrap();
        let slept = again.journal().await.unwrap();
        let sleeps = slept.iter().filter(|event| matches!(event, Event::TimerFired { .. })).count();
        assert_eq!((again.result::<u32>().await.unwrap(), sleeps), (4, 1));
    });
}

#[test]
fn what_was_tried_again_once_is_not_tried_twice() {
    Scene::play(async |scene| {
        let shop = Shop::broken(&["a", "b"]);
        let engine = engine(scene, &shop, both).await;
        fails(scene, &engine).await;
        let (first, ended) = again(scene, &engine).await;
        assert_eq!(ended, Status::Failed);
        // Its fork has failed as well, and is what is tried again.
        shop.mend("a");
        shop.mend("b");
        let (second, ended) = again(scene, &engine).await;
        assert_eq!((ended, first == second), (Status::Completed, false));
        let (third, _) = again(scene, &engine).await;
        assert_eq!((&third, shop.tried(&second, "a")), (&second, 1));
        assert_eq!(engine.list().await.unwrap().runs.len(), 3);
    });
}

async fn gives_up(_: Ctx, _: Shop) -> outlast::Result<u32> {
    Err(Error::new("mine", "no"))
}

#[test]
fn what_gave_up_by_itself_is_not_tried_again() {
    Scene::play(async |scene| {
        let engine = engine(scene, &Shop::default(), gives_up).await;
        fails(scene, &engine).await;
        let refused = engine.run("a").unwrap().retry().await.err().unwrap();
        assert_eq!(refused.code(), "nothing_to_retry");
    });
}
