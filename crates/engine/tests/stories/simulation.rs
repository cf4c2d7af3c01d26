//! Simulations: right workflows pass, and an author's mistake is found.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use outlast::testing::{Faults, Simulation};
use outlast::{Ctx, Engine, Outlast};

use crate::support::{Tally, seconds};

/// What became of bookings, outside of the workflow. Who books twice with the same key books once.
#[derive(Clone, Default)]
struct Agency(Arc<Mutex<Vec<String>>>);

impl Agency {
    fn book(&self, what: &str) {
        let mut booked = self.0.lock().unwrap();
        if !booked.iter().any(|known| known == what) {
            booked.push(what.to_owned());
        }
    }

    fn cancel(&self, what: &str) {
        self.0.lock().unwrap().retain(|known| known != what);
    }

    fn register(&self, engine: Outlast) -> Outlast {
        let agency = self.clone();
        engine.workflow("trip", move |ctx: Ctx, full: bool| trip(ctx, full, agency.clone()))
    }
}

/// A saga: a flight, a hotel that may be full, and the way back.
async fn trip(ctx: Ctx, full: bool, agency: Agency) -> outlast::Result<String> {
    let run = ctx.run_id().to_string();
    let flight = format!("flight of {run}");
    ctx.step("flight", async |_| {
        agency.book(&flight);
        Ok(())
    })
    .await?;
    ctx.sleep(seconds(30)).await?;
    if full {
        ctx.step("give back", async |_| {
            agency.cancel(&flight);
            Ok(())
        })
        .await?;
        return Ok(format!("{run} stays at home"));
    }
    ctx.step("hotel", async |_| {
        agency.book(&format!("hotel of {run}"));
        Ok(())
    })
    .await?;
    let word: String = ctx.wait_for("bon voyage").await?;
    Ok(format!("{run} travels: {word}"))
}

/// Two trips, of which one goes wrong.
async fn two_trips(engine: Engine, agency: &Agency) -> Option<(String, String, Vec<String>)> {
    agency.0.lock().unwrap().clear();
    let ada = engine.start("trip", &false).id("ada").await.ok()?;
    let bob = engine.start("trip", &true).id("bob").await.ok()?;
    engine.run("ada").ok()?.signal("bon voyage", "go", "s").await.ok()?;
    let told = (ada.result().await.ok()?, bob.result().await.ok()?);
    let mut booked = agency.0.lock().unwrap().clone();
    booked.sort();
    Some((told.0, told.1, booked))
}

#[test]
fn a_saga_ends_in_the_same_way_whatever_happens() {
    let agency = Agency::default();
    let simulated = Simulation::new(|engine| agency.register(engine))
        .seeds(0..200)
        .processes(3)
        .play(async |engine: Engine| two_trips(engine, &agency).await);
    assert_eq!(simulated.seeds, 200);
    let kinds = [
        "applied_then_crash",
        "applied_then_error",
        "crash",
        "cut",
        "drift",
        "freeze",
        "full",
        "hang",
        "in_doubt",
        "jump",
        "lost_wakes",
        "not_applied",
        "not_applied_then_crash",
        "slow",
    ];
    assert_eq!(simulated.faults.keys().copied().collect::<Vec<_>>(), kinds);
    assert!(simulated.faults.values().all(|times| *times >= 5), "{:?}", simulated.faults);
}

#[test]
fn a_story_of_months_is_told_in_a_moment() {
    async fn subscription(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        for _ in 0..12 {
            ctx.sleep(seconds(30 * 86_400)).await?;
        }
        ctx.step("end", async |_| Ok(12)).await
    }
    Simulation::new(|engine| engine.workflow("subscription", subscription))
        .seeds(0..10)
        .play(async |engine: Engine| engine.start("subscription", &()).id("a").await.ok()?.result::<u32>().await.ok());
}

/// A simulation of whatever a test registers.
type Any = Simulation<Box<dyn Fn(Outlast) -> Outlast>>;

/// Simulates a workflow that should count once; what its author reads.
fn found<Fut>(miscounts: fn(Ctx, Tally) -> Fut, set: impl Fn(Any) -> Any) -> String
where
    Fut: Future<Output = outlast::Result<()>> + 'static,
{
    let tally = Tally::default();
    let counted = tally.clone();
    let register: Box<dyn Fn(Outlast) -> Outlast> = Box::new(move |engine| {
        let counted = counted.clone();
        engine.workflow("miscounts", move |ctx: Ctx, (): ()| miscounts(ctx, counted.clone()))
    });
    let simulation = set(Simulation::new(register));
    let failed = catch_unwind(AssertUnwindSafe(|| {
        simulation.play(async |engine: Engine| {
            // The tally only grows: what counts is by how much.
            let before = tally.count();
            engine.start("miscounts", &()).id("a").await.ok()?.result::<()>().await.ok()?;
            Some(tally.count() - before)
        })
    }));
    failed.unwrap_err().downcast_ref::<String>().unwrap().clone()
}

/// Its author counts outside of a step: whenever it is replayed, it counts again.
async fn counts_outside(ctx: Ctx, tally: Tally) -> outlast::Result<()> {
    ctx.step("before", async |_| Ok(())).await?;
    tally.add();
    ctx.sleep(seconds(10)).await?;
    ctx.step("after", async |_| Ok(())).await
}

#[test]
fn an_effect_outside_of_a_step_is_found() {
    let text = found(counts_outside, |simulation| simulation.seeds(0..3));
    assert!(text.starts_with("the story ends in another way with seed "), "{text}");
    assert!(text.contains("without faults: Some(1)\n    with these: Some("), "{text}");
    let dropped = found(counts_outside, |simulation| simulation.faults(Faults::none()).processes(1).seed(1));
    let told = "the story ends in another way with seed 1\nwithout faults: Some(1)\n    with these: Some(2)\n  \
                programs are dropped whenever they wait\nto repeat it: .seed(1)";
    assert_eq!(dropped, told);
}

/// Its author takes it that a body runs once.
async fn counts_in_a_body(ctx: Ctx, tally: Tally) -> outlast::Result<()> {
    ctx.sleep(seconds(10)).await?;
    ctx.step("count", async |_| {
        tally.add();
        Ok(())
    })
    .await?;
    ctx.sleep(seconds(10)).await
}

#[test]
fn a_body_that_must_not_run_twice_is_found_and_told_as_a_short_story() {
    // Which seed finds it first depends on every call an engine makes, and some need two faults for it.
    let search = |first: u64| found(counts_in_a_body, |simulation| simulation.seeds(first..first + 400));
    let faults = |text: &str| text.lines().filter(|line| line.starts_with("  at ")).count();
    let stories = [400, 800, 1_200, 1_600].map(|first| (first, search(first)));
    for (_, text) in &stories {
        assert!(text.contains("without faults: Some(1)\n    with these: Some(2)"), "{text}");
        assert!((1..=2).contains(&faults(text)), "few faults are enough for it: {text}");
    }
    let (first, text) = stories.into_iter().find(|(_, text)| faults(text) == 1).expect("one fault is enough for it");
    assert!(text.contains("(1 of the "), "{text}");
    let seed: u64 = text.rsplit_once("to repeat it: .seed(").unwrap().1.trim_end_matches(')').parse().unwrap();
    assert!(text.starts_with(&format!("the story ends in another way with seed {seed}\n")), "{text}");
    assert_eq!(search(first), text, "the same seeds tell the same stories");
}

#[test]
fn a_story_that_does_not_end_by_itself_is_no_story() {
    async fn waits(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.wait_for::<()>("never").await
    }
    let played = catch_unwind(|| {
        Simulation::new(|engine| engine.workflow("waits", waits))
            .play(async |engine: Engine| engine.start("waits", &()).id("a").await.ok()?.result::<()>().await.ok())
    });
    let text = played.unwrap_err().downcast_ref::<String>().unwrap().clone();
    assert!(
        text.starts_with("the story must end without any fault first; it does not; it has not ended after"),
        "{text}"
    );
}

#[test]
fn a_simulation_of_no_seeds_is_refused_before_it_is_played() {
    let refused = catch_unwind(|| {
        let _ = Simulation::new(|engine| engine).seeds(0..0);
    });
    let text = refused.unwrap_err().downcast_ref::<String>().unwrap().clone();
    assert_eq!(text, "nothing would be played: there are no seeds in 0..0; use at least one, like 0..100");
}
