//! Payloads at their limit, one byte below and one above: whatever is too large is refused, and the run is intact.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;

use outlast::testing::Programs;
use outlast::{Ctx, Engine, Event, Status, StepContext};
use outlast_core::id::Index;
use outlast_core::limits::{Limits, MESSAGE_BYTES_MAX, TOLD_BYTES_MAX};
use outlast_core::record::Record;
use outlast_store::{EXCERPT_BYTES_MAX, Excerpt, MemoryStore};

use crate::support::{Scene, key, kinds, seconds, status};

const LIMIT: usize = 1_000;

/// A text that is so many bytes as JSON.
fn text(bytes: usize) -> String {
    "x".repeat(bytes - 2)
}

async fn large(ctx: Ctx, (what, bytes): (String, usize)) -> outlast::Result<String> {
    let tried = match what.as_str() {
        "step" => ctx.step("large", async |_| Ok(text(bytes))).await.map(drop),
        // Its record has a little more to say than one of the first attempt.
        "second attempt" => {
            let body = async |step: StepContext| match step.attempt() {
                1 => Err(outlast::Error::new("once", "no")),
                _ => Ok(text(bytes)),
            };
            ctx.step("large", body).await.map(drop)
        }
        "child" => ctx.child::<()>("echo", &text(bytes)).await.map(drop),
        _ => return Ok(text(bytes)),
    };
    Ok(tried.err().map_or_else(|| "fits".to_owned(), |error| error.code().to_owned()))
}

async fn echo(_: Ctx, _: String) -> outlast::Result<()> {
    Ok(())
}

async fn hear(ctx: Ctx, _: String) -> outlast::Result<usize> {
    Ok(ctx.wait_for::<String>("word").await?.len())
}

/// An engine and its store, both with the limit.
async fn limited(scene: &Scene) -> Engine {
    let limits = Limits { payload_bytes: LIMIT, ..Limits::default() };
    let store = Arc::new(MemoryStore::new(scene.world.clock(), limits.clone()));
    let engine = scene.world.engine_on(store).limits(limits);
    engine.workflow("large", large).workflow("echo", echo).workflow("hear", hear).start().await.unwrap()
}

/// Row 40: what a run makes itself.
#[test]
fn row_40_what_a_run_makes_may_be_as_large_as_the_limit_and_no_larger() {
    for (what, at) in
        ["step", "second attempt", "child", "output"].iter().flat_map(|what| [-1, 0, 1].map(|at| (*what, at)))
    {
        Scene::play(async |scene| {
            let engine = limited(scene).await;
            let bytes = LIMIT.checked_add_signed(at).unwrap();
            let run = engine.start("large", &(what, bytes)).id("a").await.unwrap();
            let said = run.result::<String>().await;
            match (what, at <= 0) {
                ("output", true) => assert_eq!(said.unwrap(), text(bytes)),
                ("output", false) => assert_eq!(said.unwrap_err().code(), "limit_exceeded"),
                (_, true) => assert_eq!(said.unwrap(), "fits", "{what} {at}"),
                (_, false) => assert_eq!(said.unwrap(), "limit_exceeded", "{what} {at}: and the run goes on"),
            }
        });
    }
}

/// Row 40: what comes from outside.
#[test]
fn row_40_an_input_or_a_signal_may_be_as_large_as_the_limit_and_no_larger() {
    for at in [-1, 0, 1] {
        Scene::play(async |scene| {
            let engine = limited(scene).await;
            let bytes = LIMIT.checked_add_signed(at).unwrap();
            let started = engine.start("hear", &text(bytes)).id("a").await;
            match started {
                Ok(_) => assert!(at <= 0),
                Err(error) => {
                    assert_eq!((at, error.code()), (1, "limit_exceeded"));
                    engine.start("hear", "").id("a").await.expect("nothing of the first start is there");
                }
            }
            hears(&engine, at, bytes).await;
        });
    }
}

async fn hears(engine: &Engine, at: isize, bytes: usize) {
    let run = engine.run("a").unwrap();
    match run.signal("word", &text(bytes), "s").await {
        Ok(_) => assert!(at <= 0),
        Err(error) => {
            assert_eq!((at, error.code()), (1, "limit_exceeded"));
            assert_ne!(status(engine, "a").await, Status::Completed);
            run.signal("word", &text(LIMIT), "s").await.expect("its id was not used up");
        }
    }
    assert_eq!(run.result::<usize>().await.unwrap(), bytes.min(LIMIT) - 2);
}

/// Row 40: what is only told has a limit that does not depend on how an engine is configured. It is not recorded, so that a
/// replay under another limit must come to the same.
#[test]
fn row_40_what_is_told_may_be_as_large_as_its_limit_and_no_larger() {
    async fn tells(ctx: Ctx, at: isize) -> outlast::Result<[String; 2]> {
        // Until somebody watches.
        ctx.sleep(seconds(1)).await?;
        let text = text(TOLD_BYTES_MAX.checked_add_signed(at).unwrap());
        let told = [ctx.emit("large", &text), ctx.set_state(&text)];
        ctx.sleep(seconds(1)).await?;
        Ok(told.map(|told| told.err().map_or_else(String::new, |error| error.code().to_owned())))
    }
    for at in [-1, 0, 1] {
        let (told, seen) = Scene::play_with(Programs::Dropped, async |scene| {
            let engine = scene.engine(|engine| engine.workflow("tells", tells)).await;
            let run = engine.start("tells", &at).id("a").await.unwrap();
            let mut attached = run.attach();
            let mut seen = 0;
            while let Some(event) = attached.next().await.unwrap() {
                seen += usize::from(matches!(event, Event::Custom { .. } | Event::StateDelta { .. }));
            }
            (run.result::<[String; 2]>().await.unwrap(), seen)
        });
        match at {
            1 => assert_eq!((told, seen), (["limit_exceeded".to_owned(), "limit_exceeded".to_owned()], 0)),
            _ => assert_eq!((told, seen), ([String::new(), String::new()], 2)),
        }
    }
}

/// Row 40: what somebody says beside a decision, and what an error says, is recorded too.
#[test]
fn row_40_a_decision_at_the_limit_and_an_endless_error_are_recorded() {
    async fn asks(ctx: Ctx, (): ()) -> outlast::Result<usize> {
        let decision = ctx.approve("Well?").id("well").await?;
        let step =
            ctx.step("fails", async |_| Err::<(), _>(outlast::Error::new("long", "é".repeat(1_000_000)).permanent()));
        let said = step.await.unwrap_err().to_string();
        assert!(said.len() <= MESSAGE_BYTES_MAX + 100 && said.ends_with("(2000000 bytes in all)"), "{}", said.len());
        Ok(decision.feedback.unwrap_or_default().len())
    }
    Scene::play(async |scene| {
        let limits = Limits { payload_bytes: LIMIT, ..Limits::default() };
        let store = Arc::new(MemoryStore::new(scene.world.clock(), limits.clone()));
        let engine = scene.world.engine_on(store).limits(limits).workflow("asks", asks).start().await.unwrap();
        let run = engine.start("asks", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        // The largest that is accepted.
        let accepted = (1..LIMIT).rev();
        for bytes in accepted {
            match run.approve("well", true).feedback(&"x".repeat(bytes)).id("d").await {
                Ok(_) => {
                    assert_eq!(run.result::<usize>().await.unwrap(), bytes);
                    break;
                }
                Err(error) => assert_eq!(error.code(), "limit_exceeded"),
            }
        }
        assert_eq!(kinds(&engine, "a").await.last(), Some(&"RUN_FINISHED"));
    });
}

/// Row 40: pages are counted in bytes too, so a journal of large events is told to the end, and none of its pages is large.
#[test]
fn row_40_a_journal_of_many_large_events_is_read_page_by_page() {
    const LARGE: usize = (2 << 20) - 2;
    async fn much(ctx: Ctx, (): ()) -> outlast::Result<()> {
        for _ in 0..7 {
            ctx.step("much", async |_| Ok("x".repeat(LARGE))).await?;
        }
        ctx.sleep(seconds(60)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("much", much)).await;
        let run = engine.start("much", &()).id("a").await.unwrap();
        run.result::<()>().await.unwrap();
        let all = kinds(&engine, "a").await;
        assert_eq!(all.len(), 10, "{all:?}");

        let mut attached = engine.run("a").unwrap().attach();
        let mut told = Vec::new();
        while let Some(event) = attached.next().await.unwrap() {
            told.push(event.kind().name());
        }
        assert_eq!(told[0], "RUN_STARTED");
        assert_eq!(told[1..], all);

        let excerpt = Excerpt { run: key("a"), generation: None, from: Index(0), limit: usize::MAX };
        let page = scene.store.excerpt(excerpt).await.unwrap();
        let bytes: usize = page.iter().map(Record::payload_bytes).sum();
        assert!((1..EXCERPT_BYTES_MAX + LARGE + 1_000).contains(&bytes), "{bytes}");
    });
}
