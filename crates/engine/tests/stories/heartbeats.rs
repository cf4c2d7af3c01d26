//! Steps that give signs of life. `StepContext` has a heartbeat.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::{Arc, Mutex};

use outlast::{Ctx, Jitter, Retry, StepContext};
use outlast_core::event::Event;
use tokio::sync::mpsc;

use crate::support::{Scene, journal, kinds, seconds};

/// What the world outside tells a body.
enum Word {
    Beat,
    Return,
}

type Line = Arc<Mutex<Option<mpsc::UnboundedReceiver<Word>>>>;

fn line() -> (mpsc::UnboundedSender<Word>, Line) {
    let (words, line) = mpsc::unbounded_channel();
    (words, Arc::new(Mutex::new(Some(line))))
}

/// The first attempt does what it is told, a later one returns at once.
async fn obedient(ctx: Ctx, line: Line) -> outlast::Result<u32> {
    let body = async |s: StepContext| {
        let words = line.lock().unwrap().take();
        let Some(mut words) = words else { return Ok(s.attempt()) };
        while let Some(Word::Beat) = words.recv().await {
            s.heartbeat();
        }
        Ok(s.attempt())
    };
    ctx.step("long", body)
        .heartbeat(seconds(30))
        .retry(Retry::attempts(2).initial(seconds(1)).jitter(Jitter::None))
        .await
}

#[test]
fn a_body_that_gives_signs_of_life_may_take_as_long_as_it_likes() {
    Scene::play(async |scene| {
        let (words, line) = line();
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| obedient(ctx, line.clone()))).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        for _ in 0..5 {
            scene.pass(seconds(20)).await;
            assert!(words.send(Word::Beat).is_ok());
        }
        scene.pass(seconds(20)).await;
        assert!(words.send(Word::Return).is_ok());
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "RUN_FINISHED"]);
    });
}

#[test]
fn a_body_that_falls_silent_is_dropped_and_tried_again() {
    Scene::play(async |scene| {
        let (words, line) = line();
        let engine = scene.engine(|engine| engine.workflow("w", move |ctx, ()| obedient(ctx, line.clone()))).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(20)).await;
        assert!(words.send(Word::Beat).is_ok());
        let heard = scene.world.now();
        assert_eq!(run.result::<u32>().await.unwrap(), 2);
        assert!(words.is_closed(), "the silent body is gone");
        let journal = journal(&engine, "a").await;
        let [Event::StepRetryScheduled { next_at, error, .. }, Event::StepFinished { .. }, Event::RunFinished { .. }] =
            &journal[..]
        else {
            panic!("{journal:?}")
        };
        assert_eq!(error.code, "timeout");
        assert_eq!(error.message, "the step long gave no sign of life for 30s");
        let silence = next_at.since(heard).as_millis();
        assert!(
            (31_000..31_100).contains(&silence),
            "thirty seconds after the last sign, and one of back-off: {silence}"
        );
    });
}

#[test]
fn no_silence_at_all_is_refused() {
    async fn hasty(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("hasty", async |_| Ok(())).heartbeat(seconds(0)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", hasty)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let refused = run.result::<()>().await.unwrap_err();
        assert_eq!(refused.code(), "validation_error", "{refused}");
    });
}

/// An attempt may leave something behind that goes on giving signs of life. They are its own.
#[test]
fn signs_of_life_of_an_earlier_attempt_do_not_keep_a_later_one_alive() {
    async fn leaves_one_behind(ctx: Ctx, left: Arc<Mutex<Option<StepContext>>>) -> outlast::Result<u32> {
        let body = async |s: StepContext| match s.attempt() {
            1 => {
                *left.lock().unwrap() = Some(s);
                Err(outlast::Error::new("flaky", "again"))
            }
            2 => std::future::pending().await,
            attempt => Ok(attempt),
        };
        let retry = Retry::attempts(3).initial(seconds(1)).jitter(Jitter::None);
        ctx.step("long", body).heartbeat(seconds(30)).retry(retry).await
    }
    Scene::play(async |scene| {
        let left = Arc::new(Mutex::new(None));
        let kept = left.clone();
        let register =
            |engine: outlast::Outlast| engine.workflow("w", move |ctx, ()| leaves_one_behind(ctx, kept.clone()));
        let engine = scene.engine(register).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        for _ in 0..10 {
            scene.pass(seconds(10)).await;
            let first: Option<StepContext> = left.lock().unwrap().clone();
            first.into_iter().for_each(|first| first.heartbeat());
        }
        assert_eq!(run.result::<u32>().await.unwrap(), 3);
    });
}
