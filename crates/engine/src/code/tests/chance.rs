//! Workflows and histories made by chance: whatever happens in whatever order, replay asks for the same.

use std::pin::Pin;
use std::time::Duration;

use outlast_core::event::Event;
use outlast_core::id::DeliveryId;
use outlast_core::journal::Journal;
use outlast_core::operation::OperationKind;
use outlast_core::program::{Input, Progress};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Stage;
use crate::code::{Ctx, Scope};
use crate::error::{Error, Result};

/// How many histories one run of the tests makes.
const HISTORIES: u64 = 300;
/// How deep workflows nest.
const DEPTH_MAX: u32 = 4;

/// A part of a workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Part {
    Step { fails: bool },
    StartedStep(Box<Part>),
    Sleep,
    Signal,
    Question,
    Sequence(Vec<Part>),
    Scope(Box<Part>),
    StartedScope(Box<Part>),
    Race(Vec<Part>),
    Any(Vec<Part>),
    All(Vec<Part>),
    Select(Box<Part>, Box<Part>),
    Map { parts: Vec<Part>, concurrency: usize, min: Option<usize>, tolerate: Option<usize> },
    Caught(Box<Part>, Box<Part>),
}

/// A small generator: the same seed makes the same story.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }

    fn parts(&mut self, depth: u32) -> Vec<Part> {
        (0..self.below(4)).map(|_| self.part(depth + 1)).collect()
    }

    fn boxed(&mut self, depth: u32) -> Box<Part> {
        Box::new(self.part(depth + 1))
    }

    fn part(&mut self, depth: u32) -> Part {
        let kinds = if depth < DEPTH_MAX { 16 } else { 6 };
        match self.below(kinds) {
            0 | 1 => Part::Step { fails: self.below(4) == 0 },
            2 => Part::Sleep,
            3 | 4 => Part::Signal,
            5 => Part::Question,
            6 | 7 => Part::Sequence(self.parts(depth)),
            8 => Part::Scope(self.boxed(depth)),
            9 => Part::StartedScope(self.boxed(depth)),
            10 => Part::Race(self.parts(depth)),
            11 => Part::Any(self.parts(depth)),
            12 => Part::All(self.parts(depth)),
            13 => Part::Caught(self.boxed(depth), self.boxed(depth)),
            14 => Part::StartedStep(self.boxed(depth)),
            _ => {
                let parts = self.parts(depth);
                let concurrency = 1 + self.below(3) as usize;
                let min = (self.below(3) == 0).then(|| self.below(3) as usize);
                let tolerate = (self.below(2) == 0).then(|| self.below(3) as usize);
                if self.below(4) == 0 {
                    return Part::Select(self.boxed(depth), self.boxed(depth));
                }
                Part::Map { parts, concurrency, min, tolerate }
            }
        }
    }
}

async fn whole(ctx: Ctx, part: Part) -> Result<u64> {
    play(ctx, part).await
}

fn play(ctx: Ctx, part: Part) -> Pin<Box<dyn Future<Output = Result<u64>>>> {
    Box::pin(async move {
        match part {
            Part::Step { fails } => step(&ctx, fails).await,
            Part::StartedStep(part) => {
                let handle = ctx.step("beside", async |_| Ok(1)).start();
                let first = play(ctx, *part).await;
                Ok(handle.await? + first?)
            }
            Part::Sleep => ctx.sleep(Duration::from_secs(1)).await.map(|()| 1),
            Part::Signal => ctx.wait_for("signal").await,
            Part::Question => Ok(ctx.random().await? % 9),
            Part::Sequence(parts) => {
                let mut sum = 0;
                for part in parts {
                    sum += play(ctx.clone(), part).await?;
                }
                Ok(sum)
            }
            Part::Scope(part) => ctx.scope("scope", async |ctx| play(ctx, *part).await).await,
            Part::StartedScope(part) => {
                let handle = ctx.scope("scope", async |ctx| play(ctx, *part).await).start();
                ctx.sleep(Duration::from_secs(1)).await?;
                handle.await
            }
            Part::Race(parts) => Ok(ctx.race(scopes(&ctx, parts)).await?.1),
            Part::Any(parts) => Ok(ctx.any(scopes(&ctx, parts)).await?.1),
            Part::All(parts) => Ok(ctx.all(scopes(&ctx, parts)).await?.len() as u64),
            Part::Select(left, right) => {
                let (left, right) = (play(ctx.clone(), *left), play(ctx.clone(), *right));
                match futures_util::future::select(left, right).await {
                    futures_util::future::Either::Left((outcome, _))
                    | futures_util::future::Either::Right((outcome, _)) => outcome,
                }
            }
            Part::Map { parts, concurrency, min, tolerate } => {
                let mut map = ctx.map("map", parts, async |ctx, part, _| play(ctx, part).await);
                map = map.max_concurrency(concurrency);
                if let Some(min) = min {
                    map = map.min_successful(min);
                }
                if let Some(max) = tolerate {
                    map = map.tolerate_failures(max);
                }
                Ok(map.await?.succeeded() as u64)
            }
            Part::Caught(part, cleanup) => match play(ctx.clone(), *part).await {
                Ok(value) => Ok(value),
                Err(_) => play(ctx, *cleanup).await,
            },
        }
    })
}

async fn step(ctx: &Ctx, fails: bool) -> Result<u64> {
    ctx.step("step", async move |step| {
        // The first attempt fails now and then, and another follows.
        match (fails, step.attempt()) {
            (false, _) => Ok(1),
            (true, 1) => Err(Error::new("flaky", "not yet")),
            (true, _) => Err(Error::new("broken", "never").permanent()),
        }
    })
    .await
}

fn scopes(ctx: &Ctx, parts: Vec<Part>) -> Vec<Scope<'static, u64>> {
    parts.into_iter().map(|part| ctx.scope("branch", async move |ctx| play(ctx, part).await)).collect()
}

/// Something that could happen now.
enum Move {
    Execute(usize),
    Happen(Event),
}

fn moves(stage: &Stage) -> Vec<Move> {
    let open = stage.law.as_ref().unwrap().open();
    let waits = open.into_iter().filter_map(|operation| match operation.kind {
        OperationKind::Timer => Some(Event::TimerFired { key: operation.key }),
        OperationKind::Signal => Some(Event::SignalResolved {
            key: operation.key,
            name: "signal".try_into().unwrap(),
            signal_id: DeliveryId::new("id").unwrap(),
            payload: json!(2).to_string().into(),
        }),
        _ => None,
    });
    (0..stage.attempts.len()).map(Move::Execute).chain(waits.map(Move::Happen)).collect()
}

/// One history of one workflow; true if it was cancelled on the way.
fn history(seed: u64) -> bool {
    let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let part = Part::Sequence((0..4).map(|_| chance.part(0)).collect());
    let mut stage = Stage::new(whole, part.clone());
    stage.law = Some(Journal::new());
    stage.executes = false;
    stage.start();
    let mut cancelled = false;
    while !stage.is_over() {
        assert_ne!(stage.progress, Some(Progress::Executing), "no body here waits");
        let mut moves = moves(&stage);
        assert!(!moves.is_empty(), "seed {seed}: nothing can happen to {part:?}, journal {:#?}", stage.journal);
        if !cancelled && chance.below(25) == 0 {
            cancelled = true;
            stage.cancel();
            continue;
        }
        let choice = usize::try_from(chance.below(moves.len() as u64)).unwrap();
        match moves.swap_remove(choice) {
            Move::Execute(place) => {
                let (key, attempt) = stage.attempts.remove(place).unwrap();
                stage.resume(Input::Execute { key: &key, attempt });
                stage.run();
            }
            Move::Happen(event) => {
                stage.happen(event);
            }
        }
        if chance.below(4) == 0 {
            stage.assert_replays();
        }
    }
    stage.assert_replays();
    cancelled
}

#[test]
fn whatever_happens_in_whatever_order_replay_asks_for_the_same() {
    let cancelled = (0..HISTORIES).filter(|seed| history(*seed)).count();
    assert!(cancelled > 20, "only {cancelled} histories were cancelled");
}
