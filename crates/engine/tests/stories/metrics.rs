//! What the engine counts, seen by a recorder that is installed for the story.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use outlast::testing::World;
use outlast::{Ctx, Error, Handler, Retry, TaskContext, describe_metrics};

use crate::support::{Tally, seconds};

/// Keeps every number by its name and labels, as Prometheus would write it.
#[derive(Clone, Default)]
struct Notebook(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    values: BTreeMap<String, Vec<f64>>,
    described: BTreeMap<String, String>,
}

struct Line {
    notebook: Notebook,
    name: String,
}

impl Line {
    fn write(&self, change: impl Fn(&mut Vec<f64>)) {
        change(self.notebook.0.lock().unwrap().values.entry(self.name.clone()).or_default());
    }
}

impl CounterFn for Line {
    fn increment(&self, value: u64) {
        self.write(|values| *values = vec![values.last().unwrap_or(&0.0) + value as f64]);
    }

    fn absolute(&self, value: u64) {
        self.write(|values| *values = vec![value as f64]);
    }
}

impl GaugeFn for Line {
    fn increment(&self, value: f64) {
        self.write(|values| *values = vec![values.last().unwrap_or(&0.0) + value]);
    }

    fn decrement(&self, value: f64) {
        GaugeFn::increment(self, -value);
    }

    fn set(&self, value: f64) {
        self.write(|values| *values = vec![value]);
    }
}

impl HistogramFn for Line {
    fn record(&self, value: f64) {
        self.write(|values| values.push(value));
    }
}

impl Notebook {
    fn line(&self, key: &Key) -> Arc<Line> {
        let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        Arc::new(Line { notebook: self.clone(), name: format!("{}{labels}", key.name()) })
    }

    fn describe(&self, name: &KeyName, what: &SharedString) {
        self.0.lock().unwrap().described.insert(name.as_str().to_owned(), what.to_string());
    }

    /// The last value; none if there never was one.
    fn value(&self, name: &str) -> Option<f64> {
        self.0.lock().unwrap().values.get(name).and_then(|values| values.last().copied())
    }

    fn values(&self, name: &str) -> Vec<f64> {
        self.0.lock().unwrap().values.get(name).cloned().unwrap_or_default()
    }

    /// Everything that was recorded was described before.
    fn check_descriptions(&self) {
        let pages = self.0.lock().unwrap();
        for name in pages.values.keys() {
            let bare = name.split('{').next().unwrap();
            assert!(pages.described.contains_key(bare), "{bare} is recorded and not described");
        }
        for name in pages.described.keys() {
            let guide = include_str!("../../../../docs/operations.md");
            assert!(guide.contains(&format!("`{name}`")), "docs/operations.md does not know {name}");
        }
    }
}

impl Recorder for Notebook {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, what: SharedString) {
        self.describe(&name, &what);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, what: SharedString) {
        self.describe(&name, &what);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, what: SharedString) {
        self.describe(&name, &what);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.line(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.line(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.line(key))
    }
}

/// Tells a story while everything is written down.
fn noted(story: impl FnOnce(&Notebook)) {
    let notebook = Notebook::default();
    metrics::with_local_recorder(&notebook, || {
        describe_metrics();
        story(&notebook);
    });
    notebook.check_descriptions();
}

async fn work(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    ctx.sleep(seconds(60)).await?;
    let done = ctx.task("flaky", &()).retry(Retry::attempts(3)).await?;
    ctx.wait_for::<()>("go").timeout(seconds(600)).or_fail().await?;
    Ok(done)
}

/// Fails once, then gives the number of its attempt.
fn flaky() -> Handler {
    Handler::new("flaky", move |task: TaskContext, (): ()| async move {
        if task.attempt() == 1 { Err(Error::new("busy", "not now")) } else { Ok(task.attempt()) }
    })
}

#[test]
fn what_happens_to_runs_and_tasks_is_counted() {
    noted(|notebook| {
        let world = World::new();
        world.block_on(async {
            let engine = world.engine().workflow("work", work).handler(flaky()).start().await.unwrap();
            let run = engine.start("work", &()).id("r").await.unwrap();
            world.sleep(seconds(300)).await;
            engine.run("r").unwrap().signal("go", &(), "go").await.unwrap();
            assert_eq!(run.result::<u32>().await.unwrap(), 2);
        });
        assert_eq!(notebook.value("outlast_tasks_claimed_total"), Some(2.0));
        assert_eq!(notebook.value("outlast_tasks_ended_total{queue=default,outcome=retry}"), Some(1.0));
        assert_eq!(notebook.value("outlast_tasks_ended_total{queue=default,outcome=finished}"), Some(1.0));
        assert_eq!(notebook.value("outlast_tasks_ended_total{queue=default,outcome=failed}"), None);
        // The sleep; the wait's timeout never fired.
        assert_eq!(notebook.value("outlast_timers_fired_total"), Some(1.0));
        let late = notebook.values("outlast_timer_late_seconds");
        assert!(late.len() == 1 && late[0] < 1.0, "{late:?}");
        // The sleep, the task, the signal.
        assert_eq!(notebook.value("outlast_resumes_total"), Some(3.0));
        assert_eq!(notebook.value("outlast_resumes_idle_total"), None);
        assert_eq!(notebook.value("outlast_claims_total"), Some(3.0));
        assert!(notebook.values("outlast_commit_seconds").len() >= 4, "one for each pause, and the end");
        assert_eq!(notebook.value("outlast_commits_fenced_total"), None);
    });
}

/// Row 29: "5,133 jobs running for months": the oldest that does not go on is seen.
#[test]
fn gauges_tell_what_waits_and_for_how_long_and_go_back_to_zero() {
    noted(|notebook| {
        let world = World::new();
        let store = world.store();
        world.block_on(async {
            let engine = world.engine_on(store.clone()).workflow("work", work).start().await.unwrap();
            engine.start("work", &()).id("r").await.unwrap();
            engine.enqueue("flaky", &()).id("t").queue("parcels").await.unwrap();
            world.sleep(seconds(30)).await;
            engine.measure().await.unwrap();
            assert_eq!(notebook.value("outlast_runs{namespace=default,status=waiting}"), Some(1.0));
            assert_eq!(notebook.value("outlast_runs{namespace=default,status=failed}"), Some(0.0));
            assert_eq!(notebook.value("outlast_runs_ready"), Some(0.0));
            assert_eq!(notebook.value("outlast_queue_tasks{queue=parcels,state=ready}"), Some(1.0));
            let age = notebook.value("outlast_queue_oldest_seconds{queue=parcels}").unwrap();
            assert!((29.0..32.0).contains(&age), "{age}");

            let worker = world.process(store.clone());
            let worker = worker.engine().handler(flaky().queue("parcels")).start().await.unwrap();
            world.sleep(seconds(10)).await;
            worker.measure().await.unwrap();
            engine.measure().await.unwrap();
            assert_eq!(notebook.value("outlast_queue_tasks{queue=parcels,state=ready}"), Some(0.0));
            assert_eq!(notebook.value("outlast_queue_oldest_seconds{queue=parcels}"), Some(0.0));
            engine.run("r").unwrap().terminate("the end").await.unwrap();
        });
    });
}

/// A run that is ready and that nobody drives is what to worry about.
#[test]
fn gauges_tell_how_long_a_ready_run_was_left_alone() {
    noted(|notebook| {
        let world = World::new();
        let store = world.store();
        world.block_on(async {
            let driver = world.process(store.clone());
            let engine = driver.engine().workflow("work", work).start().await.unwrap();
            engine.start("work", &()).id("r").await.unwrap();
            world.sleep(seconds(1)).await;
            driver.crash();
            let onlooker = world.engine_on(store.clone()).start().await.unwrap();
            world.sleep(seconds(100)).await;
            onlooker.measure().await.unwrap();
            assert_eq!(notebook.value("outlast_runs_ready"), Some(1.0));
            let age = notebook.value("outlast_runs_ready_oldest_seconds").unwrap();
            assert!((39.0..43.0).contains(&age), "the sleep ended after 60 s: {age}");
            onlooker.run("r").unwrap().terminate("the end").await.unwrap();
        });
    });
}

/// "Fenced commits": somebody slept while its run was given to another.
#[test]
fn a_commit_that_came_too_late_is_counted() {
    noted(|notebook| {
        let (world, gate, tally) = (World::new(), Arc::new(tokio::sync::Notify::new()), Tally::default());
        let store = world.store();
        let [first, second] = [(); 2].map(|()| world.process(store.clone()));
        world.block_on(async {
            let workflow = |ctx: Ctx, (gate, tally): (Arc<tokio::sync::Notify>, Tally)| async move {
                let body = async |_| {
                    if tally.add() == 1 {
                        gate.notified().await;
                    }
                    Ok(())
                };
                ctx.step("slow", body).await
            };
            let engine = |process: &outlast::testing::Process| {
                let given = (gate.clone(), tally.clone());
                let engine = process.engine().lease(Duration::from_secs(15)).poll(seconds(1));
                engine.workflow("slow", move |ctx: Ctx, (): ()| workflow(ctx, given.clone()))
            };
            let slow = engine(&first).start().await.unwrap();
            slow.start("slow", &()).id("r").await.unwrap();
            world.sleep(seconds(1)).await;
            first.freeze();
            let quick = engine(&second).start().await.unwrap();
            quick.run("r").unwrap().attach();
            world.sleep(seconds(60)).await;
            gate.notify_one();
            first.thaw();
            world.sleep(seconds(60)).await;
            assert_eq!(quick.run("r").unwrap().status().await.unwrap(), outlast::Status::Completed);
        });
        assert!(notebook.value("outlast_commits_fenced_total").is_some_and(|fenced| fenced >= 1.0));
    });
}
