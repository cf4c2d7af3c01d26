//! Everything has a limit, and whoever exceeds it is told so.

use outlast::testing::Programs;
use outlast::testing::crash_everywhere;
use outlast::{Ctx, Engine, Error, Event, Outlast, Retry, StepContext};
use outlast_core::limits::Limits;

use crate::support::{Ear, Scene, Tally, journal, kinds, seconds};

fn few(engine: Outlast) -> Outlast {
    engine.limits(Limits { pending_operations: 3, ..Limits::default() })
}

/// What became of each of some operations.
fn code<T>(outcome: outlast::Result<T>) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

/// One of each kind too many, while three naps go on.
async fn too_many(ctx: Ctx, (): ()) -> outlast::Result<Vec<String>> {
    let nap = || ctx.sleep(seconds(3_600)).start();
    let (a, b, c) = (nap(), nap(), nap());
    let mut told = vec![
        code(ctx.step("step", async |_| Ok(())).await),
        code(ctx.sleep(seconds(1)).await),
        code(ctx.wait_for::<u32>("other").await),
        code(ctx.approve("Really?").await),
        code(ctx.callback::<u32>().create().await),
        code(ctx.child::<()>("nothing", &()).await),
    ];
    told.push(code(a.await));
    told.push(code(ctx.step("room", async |_| Ok(())).await));
    told.push(code(b.await));
    told.push(code(c.await));
    told.push(code(ctx.sleep(seconds(1)).await));
    Ok(told)
}

async fn nothing(_: Ctx, (): ()) -> outlast::Result<()> {
    Ok(())
}

fn expected() -> Vec<&'static str> {
    [vec!["limit_exceeded"; 6], vec!["ok"; 5]].concat()
}

#[test]
fn an_operation_too_many_fails_and_the_run_can_catch_that() {
    Scene::play(async |scene| {
        let register = |engine| few(engine).workflow("w", too_many).workflow("nothing", nothing);
        let engine = scene.engine(register).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        assert_eq!(scene.awaiting("a").await.len(), 3, "what was refused left nothing behind");
        assert_eq!(run.result::<Vec<String>>().await.unwrap(), expected());
        let told = journal(&engine, "a").await;
        let refused: Vec<&str> = told
            .iter()
            .filter_map(|event| match event {
                Event::StepFailed { error, .. }
                | Event::ChildFailed { error, .. }
                | Event::OperationRefused { error, .. } => Some(error),
                _ => None,
            })
            .map(|error| {
                let limit = "the run has 3 operations pending, which is the limit (`Limits::pending_operations`)";
                assert!(error.permanent && error.message.contains(limit), "{error}");
                error.code.as_str()
            })
            .collect();
        assert_eq!(refused, ["limit_exceeded"; 6]);
    });
}

#[test]
fn a_refusal_is_the_same_when_it_is_replayed() {
    let crashes = crash_everywhere(
        |engine| few(engine).workflow("w", too_many).workflow("nothing", nothing),
        async |engine: Engine| {
            let run = engine.start("w", &()).id("a").await.ok()?;
            let told = run.result::<Vec<String>>().await.ok()?;
            assert_eq!(told, expected());
            let journal = engine.run("a").ok()?.journal().await.ok()?;
            Some((told, journal.iter().map(|event| event.kind().name()).collect::<Vec<_>>()))
        },
    );
    assert!(crashes.kills > 40, "{crashes:?}");
}

/// What is refused does not run, and what is completed makes room.
#[test]
fn a_body_too_many_does_not_run() {
    let (codes, ran) = Scene::play(async |scene| {
        let ran = Tally::default();
        let counted = ran.clone();
        let engine = scene
            .engine(|engine| {
                few(engine).workflow("w", move |ctx: Ctx, (): ()| {
                    let ran = counted.clone();
                    async move {
                        let ran = &ran;
                        let steps = (0..5).map(|_| ctx.step("many", async move |_| Ok(ran.add())));
                        let first: Vec<String> =
                            futures_util::future::join_all(steps).await.into_iter().map(code).collect();
                        let steps = (0..3).map(|_| ctx.step("few", async move |_| Ok(ran.add())));
                        let then = futures_util::future::join_all(steps).await.into_iter().map(code);
                        Ok::<_, outlast::Error>(first.into_iter().chain(then).collect::<Vec<_>>())
                    }
                })
            })
            .await;
        (engine.start("w", &()).await.unwrap().result::<Vec<String>>().await.unwrap(), ran.count())
    });
    assert_eq!(codes, ["ok", "ok", "ok", "limit_exceeded", "limit_exceeded", "ok", "ok", "ok"]);
    assert_eq!(ran, 6);
}

/// A program that was asked to stop cleans up with all the room there is.
#[test]
fn what_was_cancelled_makes_room_for_the_cleanup() {
    async fn careful(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let naps: Vec<_> = (0..3).map(|_| ctx.sleep(seconds(3_600))).collect();
        let Err(error) = ctx.all(naps).await else { return Ok(0) };
        assert!(error.is_cancelled());
        for _ in 0..3 {
            ctx.step("tidy up", async |_| Ok(())).await?;
        }
        Err(error)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| few(engine).workflow("careful", careful)).await;
        let run = engine.start("careful", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        assert_eq!(scene.awaiting("a").await.len(), 3);
        run.cancel("enough").await.unwrap();
        let error = run.result::<u32>().await.unwrap_err();
        assert!(error.to_string().ends_with("the run was cancelled: enough"), "{error}");
        let told = kinds(&engine, "a").await;
        assert_eq!(told.iter().filter(|kind| **kind == "STEP_FINISHED").count(), 3, "{told:?}");
    });
}

/// A deploy may lower the limit: what is recorded goes on as it began.
#[test]
fn a_lower_limit_leaves_alone_what_is_recorded() {
    async fn busy(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let naps = [ctx.sleep(seconds(3_600)).start(), ctx.sleep(seconds(3_600)).start()];
        let body = async |s: StepContext| if s.attempt() < 2 { Err(Error::new("x", "y")) } else { Ok(s.attempt()) };
        let retry = Retry::attempts(3).initial(seconds(1_200)).cap(seconds(1_200));
        let attempt = ctx.step("flaky", body).retry(retry).await?;
        for nap in naps {
            nap.await?;
        }
        Ok(attempt)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("busy", busy)).await;
        engine.start("busy", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        assert_eq!(scene.awaiting("a").await.len(), 3);
        engine.shutdown().await;
        let limits = Limits { pending_operations: 1, ..Limits::default() };
        let engine = scene.engine(|engine| engine.limits(limits).workflow("busy", busy)).await;
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 2);
    });
}

/// Whoever does not catch it fails with it.
#[test]
fn a_run_that_does_not_catch_a_refusal_fails_with_it() {
    async fn careless(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let naps: Vec<_> = (0..4).map(|_| ctx.sleep(seconds(1)).start()).collect();
        for nap in naps {
            nap.await?;
        }
        Ok(())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| few(engine).workflow("w", careless)).await;
        let error = engine.start("w", &()).id("a").await.unwrap().result::<()>().await.unwrap_err();
        assert_eq!(error.code(), "limit_exceeded");
        assert_eq!(scene.awaiting("a").await.len(), 0);
    });
}

#[test]
fn a_journal_that_becomes_long_is_warned_of_once() {
    async fn long(ctx: Ctx, (): ()) -> outlast::Result<()> {
        for _ in 0..10 {
            ctx.step("step", async |_| Ok(())).await?;
            ctx.sleep(seconds(1)).await?;
        }
        Ok(())
    }
    let warnings = Ear::for_what(|metadata| *metadata.level() == tracing::Level::WARN);
    let heard = warnings.during(|| {
        // Without programs that are kept the journal is loaded at every wake.
        Scene::play_with(Programs::Dropped, async |scene| {
            let limits = Limits { journal_events_warn: 20, ..Limits::default() };
            let engine = scene.engine(|engine| engine.limits(limits).workflow("long", long)).await;
            engine.start("long", &()).id("a").await.unwrap().result::<()>().await.unwrap();
            assert_eq!(kinds(&engine, "a").await.len(), 31);
        });
    });
    let long: Vec<_> = heard.iter().filter(|words| words.contains("the journal is long")).collect();
    assert_eq!(long.len(), 1, "{heard:?}");
    assert!(long[0].contains("run=default/a"), "{long:?}");
}
