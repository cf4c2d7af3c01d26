//! What the engine is given to do.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::future::try_join_all;
use outlast::{Ctx, Engine, Outlast, Status, TaskContext};

use super::limit::{GROUP, Limit};

/// Runs at once.
const IN_FLIGHT: usize = GROUP;
const SEQUENCE: &str = "bench.sequence";
const PARALLEL: &str = "bench.parallel";
const ASLEEP: &str = "bench.asleep";
const LONG: &str = "bench.long";
const TASKS: &str = "bench.tasks";
const TASK: &str = "bench.noop";

const W2_STEPS: u64 = 5;
/// Commits of such a run: one for each step, and the start. Groups share them.
const W2_COMMITS: f64 = 6.0;
/// Commits of a task: it is queued, claimed, and done. Groups share them.
const W7_COMMITS: f64 = 3.0;
const W5_SLEEP: Duration = Duration::from_secs(2);
const W6_ROUNDS: usize = 5;
/// How often it is looked where runs stand.
const LOOK: Duration = Duration::from_millis(20);
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "UPPER")]
pub(super) enum Workload {
    /// One run of 1,000 steps, each durable before the next
    W1,
    /// 3,000 runs of five steps, 256 at once
    W2,
    /// From the start to the result of a run with one step, one at a time
    W3,
    /// One run with 1,000 steps at once
    W4,
    /// 2,000 runs that sleep two seconds, from the first start to the last end
    W5,
    /// A run with 2,000 recorded steps is woken in a fresh engine, until its next step runs
    W6,
    /// 2,000 tasks of four runs through a worker, 64 at once
    W7,
}

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) quick: bool,
}

impl Size {
    fn of(self, usual: usize) -> usize {
        if self.quick { usual.div_ceil(10) } else { usual }
    }
}

/// What came out: a value, and what the place would allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) value: f64,
    /// Beside what the place allows, something only the engine can tell: seconds to read a journal.
    reading: f64,
}

impl Workload {
    pub(super) fn name(self) -> &'static str {
        match self {
            Workload::W1 => "W1",
            Workload::W2 => "W2",
            Workload::W3 => "W3",
            Workload::W4 => "W4",
            Workload::W5 => "W5",
            Workload::W6 => "W6",
            Workload::W7 => "W7",
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Workload::W1 => "steps/s",
            Workload::W2 => "runs/s",
            Workload::W3 => "ms p50",
            Workload::W4 | Workload::W6 => "ms",
            Workload::W5 => "s",
            Workload::W7 => "tasks/s",
        }
    }

    /// Whether it is a time, of which less is better.
    pub(super) fn is_time(self) -> bool {
        !self.unit().ends_with("/s")
    }

    /// What could be reached if nothing had to be done but to make durable what must be.
    pub(super) fn limit(self, size: Size, limit: Limit, measured: Measured) -> f64 {
        let grouped = limit.groups * GROUP as f64;
        match self {
            Workload::W1 => limit.singles,
            Workload::W2 => grouped / W2_COMMITS,
            // A start and a result.
            Workload::W3 => 2_000.0 * limit.single_seconds(),
            // A start, and all results at once.
            Workload::W4 => 1_000.0 * (limit.single_seconds() + limit.grouped_seconds(GROUP)),
            // The starts that are over when the first wakes cost nothing; all ends do.
            Workload::W5 => W5_SLEEP.as_secs_f64() + limit.grouped_seconds(size.of(2_000)),
            // The wake is durable, and what was recorded is read.
            Workload::W6 => 1_000.0 * (limit.single_seconds() + measured.reading),
            Workload::W7 => grouped / W7_COMMITS,
        }
    }
}

/// When the first step after the last wake ran.
static WOKEN: Mutex<Option<Instant>> = Mutex::new(None);

fn woken() -> std::sync::MutexGuard<'static, Option<Instant>> {
    WOKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// About a hundred bytes, as in every figure of the project.
fn payload() -> String {
    "x".repeat(98)
}

/// What is measured.
pub(super) fn register(engine: Outlast) -> Outlast {
    engine
        .workflow(SEQUENCE, |ctx: Ctx, steps: u64| async move {
            for _ in 0..steps {
                ctx.step("step", |_| async { Ok(payload()) }).await?;
            }
            Ok(steps)
        })
        .workflow(PARALLEL, |ctx: Ctx, steps: u64| async move {
            let all = (0..steps).map(|_| ctx.step("step", |_| async { Ok(payload()) }));
            Ok(try_join_all(all).await?.len())
        })
        .workflow(ASLEEP, |ctx: Ctx, (): ()| async move { ctx.sleep(W5_SLEEP).await })
        .workflow(LONG, long)
        .workflow(TASKS, |ctx: Ctx, tasks: u64| async move {
            let all: Vec<_> = (0..tasks).map(|number| ctx.task::<u64>(TASK, &number)).collect();
            Ok(ctx.all(all).await?.len())
        })
        .task(TASK, |_: TaskContext, number: u64| async move { Ok(number) })
        .tasks_max(64)
}

/// Many steps, and then one more for each signal.
async fn long(ctx: Ctx, steps: u64) -> outlast::Result<()> {
    for _ in 0..steps {
        ctx.step("step", |_| async { Ok(payload()) }).await?;
    }
    loop {
        ctx.wait_for::<bool>("more").await?;
        ctx.step("next", |_| async {
            #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
            woken().get_or_insert_with(Instant::now);
            Ok(())
        })
        .await?;
    }
}

/// Whoever measures. Its runs have names of their own, so that it finds no others when it tidies up.
pub(super) struct Bench {
    pub(super) engine: Engine,
    pub(super) prefix: String,
    pub(super) size: Size,
    next: AtomicUsize,
}

impl Bench {
    pub(super) fn new(engine: Engine, prefix: String, size: Size) -> Bench {
        Bench { engine, prefix, size, next: AtomicUsize::new(0) }
    }

    /// Goes on with another engine on the same database.
    pub(super) fn with(self, engine: Engine) -> Bench {
        Bench { engine, ..self }
    }

    /// Starts a run.
    async fn start(&self, workflow: &str, input: &impl serde::Serialize) -> Result<outlast::RunHandle> {
        let id = format!("{}{}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed));
        Ok(self.engine.start(workflow, input).id(&id).await?)
    }

    async fn sequence(&self, steps: u64) -> Result<()> {
        self.start(SEQUENCE, &steps).await?.result::<u64>().await?;
        Ok(())
    }

    /// Many at once, one after the other in each place.
    async fn crowd<F: Future<Output = Result<()>>>(&self, runs: usize, one: impl Fn() -> F) -> Result<()> {
        let left = AtomicUsize::new(runs);
        let take = |left: usize| left.checked_sub(1);
        let client = || async {
            while left.try_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                one().await?;
            }
            anyhow::Ok(())
        };
        try_join_all((0..IN_FLIGHT.min(runs)).map(|_| client())).await.map(drop)
    }

    /// Measures one; not W6, which needs a second engine.
    pub(super) async fn measure(&self, workload: Workload) -> Result<Measured> {
        let value = match workload {
            Workload::W1 => self.w1().await?,
            Workload::W2 => {
                let runs = self.size.of(3_000);
                runs as f64 / time(self.crowd(runs, || self.sequence(W2_STEPS))).await?
            }
            Workload::W3 => self.w3().await?,
            Workload::W4 => self.w4().await?,
            Workload::W5 => time(self.asleep(self.size.of(2_000))).await?,
            Workload::W6 => bail!("W6 is measured with an engine that is fresh"),
            Workload::W7 => self.w7().await?,
        };
        Ok(Measured { value, reading: 0.0 })
    }

    async fn w1(&self) -> Result<f64> {
        let steps = self.size.of(1_000) as u64;
        // A log that still grows costs twice as much per sync.
        self.sequence(steps).await?;
        Ok(steps as f64 / time(self.sequence(steps)).await?)
    }

    async fn w3(&self) -> Result<f64> {
        let mut took = Vec::new();
        for _ in 0..self.size.of(200) {
            took.push(time(self.sequence(1)).await? * 1_000.0);
        }
        Ok(median(took))
    }

    async fn w4(&self) -> Result<f64> {
        let steps = self.size.of(1_000) as u64;
        let once = || async {
            self.start(PARALLEL, &steps).await?.result::<u64>().await?;
            Ok(())
        };
        once().await?;
        Ok(time(once()).await? * 1_000.0)
    }

    async fn asleep(&self, runs: usize) -> Result<()> {
        self.crowd(runs, || async { self.start(ASLEEP, &()).await.map(drop) }).await?;
        self.wait_for(Status::Completed, runs).await
    }

    /// Waits until so many of its runs stand there.
    async fn wait_for(&self, status: Status, runs: usize) -> Result<()> {
        let mut looks = tokio::time::interval(LOOK);
        let all = async {
            loop {
                looks.tick().await;
                let mut found = 0;
                let mut after = None;
                loop {
                    let list = self.engine.list().id_prefix(&self.prefix).status(status);
                    let page = list.page_size(1_000).after(after).await?;
                    found += page.runs.len();
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
                if found >= runs {
                    return Ok(());
                }
            }
        };
        tokio::time::timeout(PATIENCE, all).await.context("the runs do not end")?
    }

    async fn w7(&self) -> Result<f64> {
        let (runs, tasks) = (4, self.size.of(500) as u64);
        let all = async {
            let mut started = Vec::new();
            for _ in 0..runs {
                started.push(self.start(TASKS, &tasks).await?);
            }
            for run in started {
                run.result::<u64>().await?;
            }
            Ok(())
        };
        Ok((runs * tasks) as f64 / time(all).await?)
    }

    /// A run with a long journal, which waits.
    pub(super) async fn prepare_w6(&self) -> Result<String> {
        let steps = self.size.of(2_000) as u64;
        let run = self.start(LONG, &steps).await?;
        self.wait_for(Status::Waiting, 1).await?;
        Ok(run.id().to_string())
    }

    /// Wakes it: milliseconds until its next step ran, and the seconds it takes to read what is recorded. For the first in an engine
    /// that never had it, which is what counts.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    pub(super) async fn w6(&self, id: &str) -> Result<Measured> {
        let run = self.engine.run(id)?;
        *woken() = None;
        let begun = Instant::now();
        run.signal("more", &true, &uuid::Uuid::new_v4().simple().to_string()).await?;
        let ran = async {
            loop {
                if let Some(ran) = *woken() {
                    return ran;
                }
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        let ran = tokio::time::timeout(PATIENCE, ran).await.context("the run does not wake")?;
        self.wait_for(Status::Waiting, 1).await?;
        let reading = time(async { run.journal().await.map(drop).map_err(Into::into) }).await?;
        Ok(Measured { value: ran.duration_since(begun).as_secs_f64() * 1_000.0, reading })
    }

    /// Deletes its runs, in a database that others use.
    pub(super) async fn tidy_up(&self) -> Result<()> {
        loop {
            let page = self.engine.list().id_prefix(&self.prefix).page_size(1_000).await?;
            if page.runs.is_empty() {
                return Ok(());
            }
            for some in page.runs.chunks(IN_FLIGHT) {
                let delete = |view: &outlast::RunView| {
                    let (run, is_over) = (self.engine.run(view.run.id.as_str()), view.status.is_terminal());
                    async move {
                        let run = run?;
                        if !is_over {
                            run.terminate("measured").await?;
                        }
                        anyhow::Ok(run.delete("measured").await?)
                    }
                };
                try_join_all(some.iter().map(delete)).await?;
            }
        }
    }
}

/// The median of several, each with a fresh engine.
pub(super) fn middle(measured: &[Measured]) -> Measured {
    Measured {
        value: median(measured.iter().map(|one| one.value).collect()),
        reading: median(measured.iter().map(|one| one.reading).collect()),
    }
}

/// How many fresh engines W6 has.
pub(super) const fn w6_rounds(size: Size) -> usize {
    if size.quick { 1 } else { W6_ROUNDS }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
async fn time(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let begun = Instant::now();
    work.await?;
    Ok(begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn a_limit_is_what_must_be_durable_and_nothing_else() {
        // A commit takes a millisecond, one of 256 takes ten.
        let limit = Limit { singles: 1_000.0, groups: 100.0 };
        let (size, measured) = (Size { quick: false }, Measured { value: 0.0, reading: 0.004 });
        let of = |workload: Workload| workload.limit(size, limit, measured);
        let expected = [1_000.0, 25_600.0 / 6.0, 2.0, 11.0, 2.08, 5.0, 25_600.0 / 3.0];
        for (workload, expected) in Workload::value_variants().iter().zip(expected) {
            assert!((of(*workload) - expected).abs() < 1e-6, "{workload:?}: {}", of(*workload));
        }
        assert!(Workload::W3.is_time() && Workload::W5.is_time() && !Workload::W1.is_time() && !Workload::W7.is_time());
    }
}
