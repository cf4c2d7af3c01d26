//! The testing kit itself.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use outlast::testing::{JournalText, Programs, Script, World, crash_everywhere, crash_everywhere_or, journal};
use outlast::{Ctx, Engine, EngineError};

use crate::support::{Scene, Tally, seconds};

/// What somebody who is told of a failure reads.
fn panics(test: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(test)).expect_err("it panics");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

/// Chance is the same whatever became of the program: an id drawn after a wake is the one a replay would draw.
#[test]
fn values_of_chance_do_not_depend_on_what_is_kept() {
    async fn draws(ctx: Ctx, (): ()) -> outlast::Result<Vec<String>> {
        let mut drawn = Vec::new();
        for n in 0..10 {
            drawn.push(ctx.uuid().await?.to_string());
            drawn.push(ctx.random().await?.to_string());
            ctx.sleep(seconds(n)).await?;
        }
        Ok(drawn)
    }
    let drawn = Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("draws", draws)).await;
        let mut all = Vec::new();
        for id in ["a", "b"] {
            all.extend(engine.start("draws", &()).id(id).await.unwrap().result::<Vec<String>>().await.unwrap());
        }
        all
    });
    let mut different = drawn.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), drawn.len(), "nothing is drawn twice: {drawn:?}");
}

/// How often a program was begun, with ten sleeps in it.
fn beginnings(programs: Programs) -> u32 {
    let (world, begun) = (World::new().programs(programs), Tally::default());
    let counted = begun.clone();
    world.block_on(async {
        let naps = move |ctx: Ctx, (): ()| {
            counted.add();
            async move {
                for _ in 0..10 {
                    ctx.sleep(seconds(1)).await?;
                }
                Ok::<_, outlast::Error>(())
            }
        };
        let engine = world.engine().workflow("naps", naps).start().await.unwrap();
        engine.start("naps", &()).await.unwrap().result::<()>().await.unwrap();
    });
    begun.count()
}

#[test]
fn programs_are_kept_dropped_or_evicted_at_random_as_the_world_was_told() {
    assert_eq!(beginnings(Programs::Kept), 1);
    assert_eq!(beginnings(Programs::Dropped), 11, "every wake replays");
    let evicted: Vec<u32> = (0..20).map(|seed| beginnings(Programs::Evicted { seed })).collect();
    assert!(evicted.iter().all(|begun| (1..=11).contains(begun)), "{evicted:?}");
    assert!(evicted.iter().any(|begun| *begun != evicted[0]), "chance has a say: {evicted:?}");
    assert_eq!(evicted[7], beginnings(Programs::Evicted { seed: 7 }), "and says the same for the same seed");
}

/// "One name from two source locations is a warning, and an error in the testing kit".
#[test]
fn one_name_at_two_places_parks_the_run_with_both_places() {
    async fn twice(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let one = ctx.step("pay", async |_| Ok(1)).await?;
        Ok(one + ctx.step("pay", async |_| Ok(2)).await?)
    }
    let world = World::new();
    let message = world.block_on(async {
        let engine = world.engine().workflow("twice", twice).start().await.unwrap();
        let refused = engine.start("twice", &()).id("a").await.unwrap().result::<u32>().await.unwrap_err();
        assert_eq!(refused.code(), "parked");
        refused.to_string()
    });
    let here = "crates/engine/tests/stories/kit.rs:";
    assert!(message.contains(&format!("\"pay\" is used at {here}")), "{message}");
    assert!(
        message.contains(&format!("and at {here}")) && message.contains("give each place its own name"),
        "{message}"
    );
}

/// A loop is one place.
#[test]
fn one_name_many_times_at_one_place_is_fine() {
    async fn often(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let mut sum = 0;
        for n in 0..3 {
            sum += ctx.step("add", async |_| Ok(n)).await?;
        }
        Ok(sum)
    }
    let sum = Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("often", often)).await;
        engine.start("often", &()).id("a").await.unwrap().result::<u32>().await.unwrap()
    });
    assert_eq!(sum, 3);
}

async fn asks(ctx: Ctx, (): ()) -> outlast::Result<(String, bool)> {
    let word = ctx.wait_for("word").await?;
    let decision = ctx.approve("Say it?").id("say").await?;
    ctx.sleep(seconds(60)).await?;
    Ok((word, decision.approved))
}

fn whole_script() -> Script {
    // Not in order: times count.
    Script::new()
        .approve_at(seconds(30), "say", true)
        .signal_at(seconds(10), "word", "hello")
        .pause_at(seconds(40))
        .resume_at(seconds(1_000))
}

#[test]
fn a_script_is_played_at_its_times_and_twice_is_once() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("asks", asks)).await;
        let (run, begun) = (engine.start("asks", &()).id("a").await.unwrap(), scene.world.now());
        whole_script().play(&run).await.unwrap();
        whole_script().play(&run).await.unwrap();
        assert_eq!(run.result::<(String, bool)>().await.unwrap(), ("hello".to_owned(), true));
        assert_eq!(scene.world.now().since(begun), seconds(1_000), "the sleep was over when it was resumed");
        journal(&engine.run("a").unwrap()).await.unwrap().shows(&[
            "SIGNAL_AWAITED __wait-word-0",
            "SIGNAL_RESOLVED __wait-word-0 \"hello\" name=\"word\" signal_id=\"script-1\"",
            "APPROVAL_REQUESTED say",
            "APPROVAL_RESOLVED say",
            "TIMER_STARTED __sleep-0",
            "RUN_PAUSED",
            "RUN_RESUMED",
            "TIMER_FIRED __sleep-0",
            "RUN_FINISHED",
        ]);
    });
}

#[test]
fn a_script_survives_a_crash_at_every_call() {
    let crashes = crash_everywhere(
        |engine| engine.workflow("asks", asks),
        async |engine: Engine| {
            let run = engine.start("asks", &()).id("a").await.ok()?;
            whole_script().play(&run).await.ok()?;
            run.result::<(String, bool)>().await.ok()
        },
    );
    assert!(crashes.kills > 100, "{crashes:?}");
}

#[test]
fn a_script_can_cancel_and_do_anything_else() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("asks", asks)).await;
        let (run, done) = (engine.start("asks", &()).id("a").await.unwrap(), Tally::default());
        let counted = done.clone();
        let act = move |run: outlast_core::id::RunKey| {
            let counted = counted.clone();
            async move {
                assert_eq!(run.id.as_str(), "a");
                counted.add();
                Ok(())
            }
        };
        Script::new().at(seconds(5), act).cancel_at(seconds(9), "enough").play(&run).await.unwrap();
        assert!(matches!(run.result::<(String, bool)>().await, Err(EngineError::Cancelled(_))));
        assert_eq!(done.count(), 1);
    });
}

/// A crash takes its time, and so decides who is late.
#[test]
fn a_story_that_may_end_in_two_ways_says_which() {
    async fn punctual(ctx: Ctx, (): ()) -> outlast::Result<bool> {
        let begun = ctx.now().await?;
        ctx.sleep(seconds(60)).await?;
        Ok(ctx.now().await? == begun + seconds(60))
    }
    let client = async |engine: Engine| engine.start("w", &()).id("a").await.ok()?.result::<bool>().await.ok();
    let accepted = crash_everywhere_or(|engine| engine.workflow("w", punctual), client, |on_time| !on_time);
    assert!(accepted.kills > 20, "{accepted:?}");
    let message = panics(|| {
        crash_everywhere(|engine| engine.workflow("w", punctual), client);
    });
    assert!(message.contains("the story ends in another way when the engine is killed at call "), "{message}");
    assert!(message.contains("without a crash: Some(true)\n    with this one: Some(false)"), "{message}");
}

#[test]
fn a_journal_that_is_another_one_is_shown_with_the_difference() {
    async fn short(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("one", async |_| Ok("x".repeat(1_000))).await?;
        ctx.sleep(seconds(1)).await
    }
    let text: JournalText = Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("short", short)).await;
        engine.start("short", &()).id("a").await.unwrap().result::<()>().await.unwrap();
        journal(&engine.run("a").unwrap()).await.unwrap()
    });
    text.shows_among_others(&["STEP_FINISHED", "TIMER_FIRED"]);
    text.lacks("STEP_FAILED");
    text.lacks("STEP_FINISHED on");
    let message =
        panics(|| text.shows(&["STEP_FINISHED two", "TIMER_STARTED __sleep-0", "TIMER_FIRED", "RUN_FINISHED"]));
    let cut = format!("\"{}…", "x".repeat(79));
    let expected = format!(
        "the journal is another one (- expected, + found):\n  - STEP_FINISHED two\n  + STEP_FINISHED one {cut}\n    \
         TIMER_STARTED __sleep-0 deadline=1700000001000 duration_ms=1000\n    TIMER_FIRED __sleep-0\n    RUN_FINISHED null\n"
    );
    assert_eq!(message, expected);
    let message = panics(|| text.shows_among_others(&["TIMER_FIRED", "STEP_FINISHED"]));
    assert!(message.contains("\"STEP_FINISHED\" is not in the journal, or not at its place"), "{message}");
    let message = panics(|| text.lacks("TIMER_FIRED"));
    assert!(message.contains("   2 TIMER_FIRED __sleep-0\n"), "{message}");
    let message = panics(|| text.is_golden("there/is/no/such/file"));
    assert!(message.contains("OUTLAST_GOLDEN=rewrite writes it"), "{message}");
}
