//! Flow control: limits, rates, delays, shares and start keys, told in virtual time.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

mod crowds;
mod held;
mod keys;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::testing::{World, WorldTime};
use outlast::{Ctx, Engine, Outlast, Rate, RunHandle, Status};

use crate::support::{Scene, seconds, tell};

/// Somebody outside who sees when each run begins and ends, and how many go on at once.
#[derive(Clone)]
pub(crate) struct Witness {
    time: WorldTime,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Which runs go on, and under which key.
    going: BTreeMap<String, Vec<String>>,
    most: BTreeMap<String, usize>,
    /// Who began, and when.
    began: Vec<(String, Duration)>,
}

/// What a run is told: under which keys it goes on, and for how many seconds.
pub(crate) type Job = (Vec<String>, u64);

pub(crate) fn job(keys: &[&str], length: u64) -> Job {
    (keys.iter().map(ToString::to_string).collect(), length)
}

impl Witness {
    pub(crate) fn of(world: &World) -> Witness {
        Witness { time: world.time(), seen: Arc::default() }
    }

    fn enters(&self, run: &str, keys: &[String]) {
        let mut seen = self.seen.lock().unwrap();
        if !seen.began.iter().any(|(before, _)| before == run) {
            seen.began.push((run.to_owned(), self.time.elapsed()));
        }
        for key in keys {
            let going = seen.going.entry(key.clone()).or_default();
            going.retain(|other| other != run);
            going.push(run.to_owned());
            let count = going.len();
            let most = seen.most.entry(key.clone()).or_default();
            *most = count.max(*most);
        }
    }

    fn leaves(&self, run: &str) {
        let mut seen = self.seen.lock().unwrap();
        seen.going.values_mut().for_each(|going| going.retain(|other| other != run));
    }

    /// How many went on at once, at most, under a key.
    pub(crate) fn most(&self, key: &str) -> usize {
        self.seen.lock().unwrap().most.get(key).copied().unwrap_or(0)
    }

    /// Who began, in order.
    pub(crate) fn order(&self) -> Vec<String> {
        self.seen.lock().unwrap().began.iter().map(|(run, _)| run.clone()).collect()
    }

    /// How many seconds after the beginning of the world each run began.
    pub(crate) fn instants(&self) -> Vec<u64> {
        self.seen.lock().unwrap().began.iter().map(|(_, at)| at.as_secs()).collect()
    }

    /// The workflow `work`, which the witness sees; its result is the first of its keys.
    pub(crate) fn register(&self, engine: Outlast) -> Outlast {
        let witness = self.clone();
        engine.workflow("work", move |ctx: Ctx, job: Job| work(ctx, job, witness.clone()))
    }
}

async fn work(ctx: Ctx, (keys, length): Job, witness: Witness) -> outlast::Result<String> {
    let run = ctx.run_id().to_string();
    ctx.step("enter", async |_| {
        witness.enters(&run, &keys);
        Ok(())
    })
    .await?;
    let slept = ctx.sleep(seconds(length)).await;
    ctx.step("leave", async |_| {
        witness.leaves(&run);
        Ok(())
    })
    .await?;
    slept?;
    Ok(keys.into_iter().next().unwrap_or_default())
}

/// Starts runs `id0`, `id1` … of ten seconds under a key of so many at once.
pub(crate) async fn crowd(engine: &Engine, id: &str, count: usize, key: &str, max: u32) -> Vec<RunHandle> {
    let mut runs = Vec::new();
    for n in 0..count {
        let start = engine.start("work", &job(&[key], 10)).id(&format!("{id}{n}")).concurrency(key, max);
        runs.push(start.await.unwrap());
    }
    runs
}

pub(crate) async fn results(runs: Vec<RunHandle>) {
    for run in runs {
        run.result::<String>().await.unwrap();
    }
}

/// Tells a story with a witness, to one engine, in every way.
fn witnessed<T>(story: impl AsyncFn(&Scene, Engine, Witness) -> T) -> T {
    Scene::play(async |scene| {
        let witness = Witness::of(&scene.world);
        let engine = scene.engine(|engine| witness.register(engine)).await;
        story(scene, engine, witness).await
    })
}

#[test]
fn no_more_runs_go_on_at_once_than_their_key_allows() {
    witnessed(async |_, engine, witness| {
        let runs = crowd(&engine, "r", 5, "k", 2).await;
        results(runs).await;
        assert_eq!(witness.most("k"), 2);
        assert_eq!(witness.instants(), [0, 0, 10, 10, 20], "each begins when another ends, and not later");
    });
}

#[test]
fn a_run_with_several_keys_begins_when_all_have_room() {
    witnessed(async |_, engine, witness| {
        let mut runs = Vec::new();
        for (id, keys) in [("a", &["x"][..]), ("b", &["y"]), ("both", &["x", "y"]), ("c", &["y"])] {
            let start = engine.start("work", &job(keys, 10)).id(id);
            let start = keys.iter().fold(start, |start, key| start.concurrency(key, 1));
            runs.push(start.await.unwrap());
        }
        results(runs).await;
        assert_eq!((witness.most("x"), witness.most("y")), (1, 1));
        assert_eq!(witness.order(), ["a", "b", "both", "c"]);
    });
}

#[test]
fn a_rate_spreads_the_beginnings_of_runs() {
    witnessed(async |_, engine, witness| {
        let mut runs = Vec::new();
        for n in 0..5 {
            let start = engine.start("work", &job(&["api"], 1)).id(&format!("r{n}"));
            runs.push(start.rate("api", Rate::per_minute(6)).await.unwrap());
        }
        results(runs).await;
        assert_eq!(witness.instants(), [0, 10, 20, 30, 40]);
    });
}

#[test]
fn a_delayed_run_begins_exactly_at_its_time() {
    witnessed(async |scene, engine, witness| {
        let after = engine.start("work", &job(&[], 0)).id("after").delay(seconds(3_600)).await.unwrap();
        let at = scene.world.now() + seconds(7_200);
        let until = engine.start("work", &job(&[], 0)).id("at").at(at).await.unwrap();
        assert_eq!(after.status().await.unwrap(), Status::Queued);
        results(vec![after, until]).await;
        assert_eq!(witness.instants(), [3_600, 7_200]);
    });
}

#[test]
fn priority_and_fair_shares_say_who_is_next() {
    witnessed(async |_, engine, witness| {
        let mut runs = crowd(&engine, "first", 1, "k", 1).await;
        let tenant = |id: String, key: &'static str, weight| {
            engine.start("work", &job(&["k"], 10)).id(&id).concurrency("k", 1).fair(key, weight)
        };
        for n in 0..4 {
            runs.push(tenant(format!("a{n}"), "a", 1).await.unwrap());
        }
        for n in 0..4 {
            runs.push(tenant(format!("b{n}"), "b", 2).await.unwrap());
        }
        runs.push(tenant("urgent".to_owned(), "a", 1).priority(100).await.unwrap());
        results(runs).await;
        let order = witness.order();
        assert_eq!(order[..2], ["first0", "urgent"], "{order:?}");
        let early: String = order[2..8].iter().map(|run| &run[..1]).collect();
        assert_eq!(early.matches('b').count(), 4, "twice the weight: {order:?}");
        assert_eq!(witness.most("k"), 1);
    });
}

#[test]
fn what_cannot_be_is_refused_with_what_is_allowed() {
    tell(
        |engine| engine.workflow("work", async |_: Ctx, (): ()| Ok::<_, outlast::Error>(())),
        async |_, engine| {
            let error = engine.start("work", &()).concurrency("k", 0).await.err().unwrap();
            assert_eq!(error.to_string(), "the number of runs at once is 0; it must be from 1 to 1000000");
            assert_eq!(error.code(), "validation_error");
            let error = engine.start("work", &()).concurrency("", 1).await.err().unwrap();
            assert_eq!(error.to_string(), "a limit key must not be empty");
            let error = engine.start("work", &()).at_most(seconds(1)).await.err().unwrap();
            assert!(error.to_string().contains("call `debounce` before it"), "{error}");
            let keys = (0..9).map(|n| n.to_string()).collect::<Vec<_>>();
            let many = keys.iter().fold(engine.start("work", &()), |start, key| start.concurrency(key, 1));
            assert!(many.await.err().unwrap().to_string().contains("use fewer keys"));
            assert!(engine.list().await.unwrap().runs.is_empty());
        },
    );
}
