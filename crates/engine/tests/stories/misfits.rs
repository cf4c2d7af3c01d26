//! Signals that are not what the run waits for. Semantics R15: "Payload validation happens before the signal is
//! consumed, never after."

use outlast::Ctx;
use outlast_core::event::Event;

use crate::support::{Scene, Tally, journal, kinds, seconds};

async fn adds(ctx: Ctx, (): ()) -> outlast::Result<u64> {
    let first = ctx.wait_for::<u64>("number").id("first").start();
    let second = ctx.wait_for::<u64>("number").id("second").start();
    Ok(first.await? + second.await?)
}

#[test]
fn a_signal_that_does_not_fit_is_recorded_and_the_wait_goes_on() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("adds", adds)).await;
        let run = engine.start("adds", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.signal("number", "seven", "s1").await.unwrap();
        handle.signal("number", &7, "s2").await.unwrap();
        handle.signal("number", &8, "s3").await.unwrap();
        assert_eq!(run.result::<u64>().await.unwrap(), 15);
        let journal = journal(&engine, "a").await;
        let Event::SignalRejected { key, signal_id, error, .. } = &journal[2] else { panic!("{journal:?}") };
        assert_eq!((key.as_str(), signal_id.as_str(), error.code.as_str()), ("first", "s1", "validation_error"));
        assert!(error.message.contains("the payload is not a u64"), "{}", error.message);
    });
}

/// An aimed signal takes the place of the answer; one that does not fit gives it back.
#[test]
fn a_wait_can_be_answered_again_after_a_signal_for_it_alone_did_not_fit() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("adds", adds)).await;
        let run = engine.start("adds", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.signal_to("second", "number", &[1, 2], "s1").await.unwrap();
        scene.pass(seconds(1)).await;
        handle.signal_to("second", "number", &5, "s2").await.unwrap();
        assert_eq!(handle.signal_to("second", "number", &6, "s3").await.unwrap_err().code(), "signal_lost");
        handle.signal("number", &1, "s4").await.unwrap();
        assert_eq!(run.result::<u64>().await.unwrap(), 6);
        let kinds = kinds(&engine, "a").await;
        assert_eq!(kinds.iter().filter(|kind| **kind == "SIGNAL_REJECTED").count(), 1, "{kinds:?}");
    });
}

/// One that came before the wait was there is rejected too, and its rejection replays.
#[test]
fn a_signal_that_came_early_and_does_not_fit_is_rejected_once() {
    async fn late(ctx: Ctx, bodies: Tally) -> outlast::Result<u64> {
        ctx.sleep(seconds(60)).await?;
        let number = ctx.wait_for::<u64>("number").await?;
        ctx.step("count", async |_| Ok(bodies.add())).await?;
        ctx.sleep(seconds(60)).await?;
        Ok(number)
    }
    Scene::play(async |scene| {
        let bodies = Tally::default();
        let counted = bodies.clone();
        let register = move |engine: outlast::Outlast| {
            engine.hot_runs(0).workflow("late", move |ctx, ()| late(ctx, counted.clone()))
        };
        let engine = scene.engine(register).await;
        let run = engine.start("late", &()).id("a").await.unwrap();
        let handle = engine.run("a").unwrap();
        handle.signal("number", &(), "s1").await.unwrap();
        handle.signal("number", &3, "s2").await.unwrap();
        assert_eq!(run.result::<u64>().await.unwrap(), 3);
        assert_eq!(bodies.count(), 1);
        assert_eq!(
            kinds(&engine, "a").await[2..5],
            ["SIGNAL_AWAITED", "SIGNAL_REJECTED", "SIGNAL_RESOLVED"],
            "early ones are kept, and looked at in their order"
        );
        assert_eq!(handle.signal("number", &4, "s1").await.unwrap(), outlast::Delivered::Duplicate);
    });
}

/// Semantics P7: "timed out → `WaitTimeout { event }`".
#[test]
fn a_wait_that_must_not_be_late_fails_with_the_name_of_its_signal() {
    async fn strict(ctx: Ctx, (): ()) -> outlast::Result<u64> {
        ctx.wait_for::<u64>("number").timeout(seconds(5)).or_fail().await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("strict", strict)).await;
        let late = engine.start("strict", &()).id("late").await.unwrap();
        let failed = late.result::<u64>().await.unwrap_err();
        assert_eq!(failed.code(), "wait_timeout");
        assert!(failed.to_string().contains("\"number\""), "{failed}");
        let timely = engine.start("strict", &()).id("timely").signal("number", &3, "s1").await.unwrap();
        assert_eq!(timely.result::<u64>().await.unwrap(), 3);
    });
}
