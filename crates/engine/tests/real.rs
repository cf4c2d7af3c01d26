//! Real time, real threads, real databases.
#![cfg(all(feature = "sqlite", feature = "postgres"))]
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "these stories are about real time")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast::{Ailment, Ctx, Engine, EngineError, Outlast, Retry, Status, TaskContext};
use outlast_store::{PostgresOptions, PostgresStore};

async fn naps(ctx: Ctx, n: u32) -> outlast::Result<u32> {
    let mut sum = 0;
    for step in 0..n {
        sum += ctx
            .step("add", async |_| {
                tokio::time::sleep(Duration::from_millis(2)).await;
                Ok(step)
            })
            .await?;
        ctx.sleep(Duration::from_millis(10)).await?;
    }
    Ok(sum)
}

async fn busy(ctx: Ctx, _: ()) -> outlast::Result<u32> {
    for _ in 0..5_000 {
        ctx.step("step", async |_| Ok(())).await?;
    }
    Ok(5_000)
}

async fn waits(ctx: Ctx, _: ()) -> outlast::Result<String> {
    ctx.wait_for("word").await
}

/// Says something with every commit, the last one too.
async fn talks(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.wait_for::<()>("go").await?;
    for n in 0..5 {
        ctx.step("step", async |_| Ok(())).await?;
        ctx.emit("said", &n)?;
    }
    Ok(())
}

/// Something a workflow must not do: its own line is named.
async fn foolish(_: Ctx, _: ()) -> outlast::Result<()> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    Ok(())
}

/// Somebody who never ends.
async fn stuck(ctx: Ctx, _: ()) -> outlast::Result<()> {
    ctx.step("hang", async |_| {
        std::future::pending::<()>().await;
        Ok(())
    })
    .timeout(Duration::from_millis(50))
    .retry(Retry::never())
    .await
}

/// How often `gathers` was begun: once, and once more for every replay.
static GATHERINGS: AtomicUsize = AtomicUsize::new(0);

async fn gathers(ctx: Ctx, tasks: usize) -> outlast::Result<usize> {
    GATHERINGS.fetch_add(1, Ordering::Relaxed);
    let all: Vec<_> = (0..tasks).map(|n| ctx.task::<usize>("same", &n)).collect();
    let mut sum: usize = ctx.all(all).await?.into_iter().sum();
    for n in 0..tasks {
        sum += ctx.task::<usize>("same", &n).await?;
    }
    Ok(sum)
}

async fn asks(ctx: Ctx, n: usize) -> outlast::Result<usize> {
    ctx.task("same", &n).await
}

fn register(engine: Outlast) -> Outlast {
    engine
        .workflow("asks", asks)
        .workflow("gathers", gathers)
        .task("same", |_: TaskContext, n: usize| async move { Ok(n) })
        .tasks_max(8)
        .workflow("busy", busy)
        .workflow("naps", naps)
        .workflow("waits", waits)
        .workflow("foolish", foolish)
        .workflow("stuck", stuck)
        .workflow("talks", talks)
        .poll(Duration::from_millis(100))
}

async fn sqlite(path: &std::path::Path) -> Engine {
    register(Outlast::sqlite(path)).start().await.unwrap()
}

/// Engines on one schema of their own.
struct Shared {
    url: String,
    schema: String,
}

impl Shared {
    fn new(name: &str) -> Shared {
        let url = std::env::var("OUTLAST_TEST_POSTGRES")
            .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
        Shared { url, schema: format!("engine_{name}_{}", std::process::id()) }
    }

    async fn engine(&self) -> Engine {
        let options = PostgresOptions { schema: Some(self.schema.clone()), ..PostgresOptions::default() };
        let store = PostgresStore::connect(&self.url, options).await.unwrap();
        register(Outlast::store(Arc::new(store))).lease(Duration::from_secs(2)).start().await.unwrap()
    }
}

/// The doctor comes, and the engine stops.
async fn leave(engine: &Engine) {
    let mut diagnosis = engine.doctor().await.unwrap();
    // Somebody who fell silent is part of some stories.
    diagnosis.findings.retain(|finding| !matches!(finding.ailment, Ailment::LeaseOver { .. }));
    assert_eq!(diagnosis.findings, [], "the doctor has found something");
    engine.shutdown().await;
}

async fn wait_for(engine: &Engine, run: &str, status: Status) {
    let begun = Instant::now();
    while engine.run(run).unwrap().status().await.unwrap() != status {
        assert!(begun.elapsed() < Duration::from_secs(20), "{run} does not become {status:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Two programs, one of which fails at first: what each wrote, and which attempt it was.
async fn told(ctx: Ctx, _: ()) -> outlast::Result<(serde_json::Value, serde_json::Value)> {
    let again = Retry::attempts(3).initial(Duration::from_millis(1)).cap(Duration::from_millis(1));
    let whole = ctx.task("whole", &serde_json::json!({ "n": 7 })).await?;
    Ok((whole, ctx.task("shaky", &()).retry(again).await?))
}

/// A task is a program: JSON in, JSON out, its words beside it, and an exit code that is a failure.
async fn programs_do_tasks(engine: Outlast) {
    let shaky = r#"if [ "$OUTLAST_ATTEMPT" = 1 ]; then echo "not yet" >&2; exit 3; fi; echo "words" >&2; echo "$OUTLAST_ATTEMPT""#;
    let handlers = [
        outlast_tasks::CommandTask::new("whole", ["cat"]),
        outlast_tasks::CommandTask::new("shaky", ["sh", "-c", shaky]),
    ];
    let engine = handlers.into_iter().fold(engine.workflow("told", told), |engine, task| engine.handler(task.into()));
    let engine = engine.start().await.unwrap();
    let run = engine.start("told", &()).id("a").await.unwrap();
    let result = run.result::<(serde_json::Value, serde_json::Value)>().await.unwrap();
    assert_eq!(result, (serde_json::json!({ "n": 7 }), serde_json::json!(2)));
    let journal = engine.run("a").unwrap().journal().await.unwrap();
    let words = journal.iter().find_map(|event| match event {
        outlast::Event::TaskFinished { log: Some(log), .. } => Some(log.trim()),
        _ => None,
    });
    assert_eq!(words, Some("words"));
    leave(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_do_tasks_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    programs_do_tasks(Outlast::sqlite(folder.path().join("t.db"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_do_tasks_on_postgresql() {
    let shared = Shared::new("programs");
    let options = PostgresOptions { schema: Some(shared.schema.clone()), ..PostgresOptions::default() };
    let store = PostgresStore::connect(&shared.url, options).await.unwrap();
    programs_do_tasks(Outlast::store(Arc::new(store))).await;
}

/// The names of everything that was measured.
static MEASURED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

struct Names;

impl Names {
    fn note(key: &metrics::Key) {
        MEASURED.lock().unwrap().insert(key.name().to_owned());
    }
}

impl metrics::Recorder for Names {
    fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}

    fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}

    fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}

    fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        Names::note(key);
        metrics::Counter::noop()
    }

    fn register_gauge(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        Names::note(key);
        metrics::Gauge::noop()
    }

    fn register_histogram(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
        Names::note(key);
        metrics::Histogram::noop()
    }
}

/// Every metric that docs/operations.md lists is recorded, whatever the store; a fenced commit needs a frozen process.
async fn everything_is_measured(engine: &Engine) {
    MEASURED.lock().unwrap().clear();
    assert_eq!(engine.start("asks", &2).await.unwrap().result::<usize>().await.unwrap(), 2);
    assert_eq!(engine.start("naps", &3).await.unwrap().result::<u32>().await.unwrap(), 3);
    engine.start("waits", &()).id("a").await.unwrap();
    wait_for(engine, "a", Status::Waiting).await;
    engine.run("a").unwrap().signal("other", "hello", "1").await.unwrap();
    engine.enqueue("nobody", &()).await.unwrap();
    let begun = Instant::now();
    let document = include_str!("../../../docs/operations.md");
    let lines = document.lines().filter_map(|line| line.strip_prefix("| `outlast_"));
    let listed: BTreeSet<String> =
        lines.filter_map(|line| line.split_once('`')).map(|(name, _)| format!("outlast_{name}")).collect();
    assert!(listed.len() >= 15, "{listed:?}");
    loop {
        engine.measure().await.unwrap();
        let measured = MEASURED.lock().unwrap().clone();
        let missing: Vec<_> = listed.difference(&measured).filter(|name| !name.contains("fenced")).collect();
        if missing.is_empty() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "not measured: {missing:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    leave(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_listed_is_measured_on_sqlite_and_on_postgresql() {
    metrics::set_global_recorder(Names).map_err(|_| "another recorder").unwrap();
    let folder = tempfile::tempdir().unwrap();
    everything_is_measured(&sqlite(&folder.path().join("t.db")).await).await;
    everything_is_measured(&Shared::new("measured").engine().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_shutdown_the_file_is_free_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    let first = sqlite(&path).await;
    first.start("waits", &()).id("a").await.unwrap();
    wait_for(&first, "a", Status::Waiting).await;
    leave(&first).await;
    let stopped = first.start("naps", &1).await.err().unwrap();
    assert!(matches!(stopped, EngineError::Stopped), "{stopped}");
    let second = sqlite(&path).await;
    second.run("a").unwrap().signal("word", "hello", "1").await.unwrap();
    assert_eq!(second.run("a").unwrap().result::<String>().await.unwrap(), "hello");
    leave(&second).await;
}

/// A run of very many steps does not keep the engine up: it is given back after the step that is running.
#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_does_not_wait_for_the_end_of_a_long_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    let first = sqlite(&path).await;
    first.start("busy", &()).id("a").await.unwrap();
    wait_for(&first, "a", Status::Running).await;
    let begun = Instant::now();
    leave(&first).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let second = sqlite(&path).await;
    assert_eq!(second.run("a").unwrap().result::<u32>().await.unwrap(), 5_000);
    leave(&second).await;
}

/// Results come while a turn ends, and the run is claimed with them before its driver has heard that it was given back.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_results_come_while_its_turn_ends_is_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = sqlite(&folder.path().join("t.db")).await;
    let (runs, tasks) = (8, 200);
    let mut started = Vec::new();
    for _ in 0..runs {
        started.push(engine.start("gathers", &tasks).await.unwrap());
    }
    for run in started {
        assert_eq!(run.result::<usize>().await.unwrap(), tasks * (tasks - 1));
    }
    assert_eq!(GATHERINGS.load(Ordering::Relaxed), runs, "a program that is kept goes on");
    leave(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_engine_on_one_file_is_refused_with_the_owners_pid() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    let first = sqlite(&path).await;
    let refused = register(Outlast::sqlite(&path)).start().await.err().unwrap();
    assert!(refused.to_string().contains(&std::process::id().to_string()), "{refused}");
    leave(&first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tokio_timer_in_workflow_code_fails_at_the_authors_own_line() {
    let engine = register(Outlast::memory()).start().await.unwrap();
    let error = engine.start("foolish", &()).await.unwrap().result::<()>().await.unwrap_err();
    assert_eq!(error.code(), "panic");
    assert!(error.to_string().contains("tests/real.rs"), "{error}");
    leave(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_never_returns_is_ended_by_its_timeout() {
    let engine = register(Outlast::memory()).start().await.unwrap();
    let error = engine.start("stuck", &()).await.unwrap().result::<()>().await.unwrap_err();
    assert_eq!(error.code(), "timeout", "{error}");
    leave(&engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_share_one_postgresql_and_one_takes_over_from_the_other() {
    let shared = Shared::new("two");
    let (first, second) = (shared.engine().await, shared.engine().await);
    let mut runs = Vec::new();
    for run in 0..40 {
        let engine = if run % 2 == 0 { &first } else { &second };
        runs.push(engine.start("naps", &10).id(&format!("run-{run}")).await.unwrap().id().clone());
    }
    leave(&first).await;
    for run in runs {
        assert_eq!(second.run(run.as_str()).unwrap().result::<u32>().await.unwrap(), 45);
    }
    leave(&second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_falls_silent_loses_its_runs_to_another() {
    let shared = Shared::new("silent");
    let first = shared.engine().await;
    let waiting = first.start("waits", &()).id("a").await.unwrap();
    let sleeping = first.start("naps", &200).id("b").await.unwrap();
    let second = shared.engine().await;
    // Dropped without a word: nothing is given back but the lease.
    drop((waiting, sleeping));
    drop(first);
    second.run("a").unwrap().signal("word", "hello", "1").await.unwrap();
    assert_eq!(second.run("a").unwrap().result::<String>().await.unwrap(), "hello");
    assert_eq!(second.run("b").unwrap().result::<u32>().await.unwrap(), 199 * 100);
    leave(&second).await;
}

/// An observer that reads the journal while commits are under way sees what is emitted in its place, the last word too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_emitted_is_told_in_its_place_while_commits_are_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let engine = sqlite(&dir.path().join("emits.db")).await;
    for n in 0..300 {
        let run = engine.start("talks", &()).id(&format!("talks-{n}")).await.unwrap();
        let mut attached = run.attach();
        attached.next().await.unwrap();
        engine.run(&format!("talks-{n}")).unwrap().signal("go", &(), "s").await.unwrap();
        let mut told = Vec::new();
        while let Some(event) = attached.next().await.unwrap() {
            told.push(event.kind().name());
        }
        let expected = ["SIGNAL_AWAITED", "SIGNAL_RESOLVED"].into_iter();
        let expected: Vec<_> = expected.chain(["STEP_FINISHED", "CUSTOM"].repeat(5)).chain(["RUN_FINISHED"]).collect();
        assert_eq!(told, expected, "run {n}");
    }
    leave(&engine).await;
}

/// Everything a host that lives only for a request needs, on a file.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_without_loops_drives_forks_and_terminates_on_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.db");
    let engine = register(Outlast::sqlite(&path)).without_loops().start().await.unwrap();
    engine.start("waits", &()).id("a").await.unwrap();
    assert_eq!(engine.drive_once("a").await.unwrap().status, Status::Waiting);
    let original = engine.run("a").unwrap();
    let forked = original.fork(1).id("b").await.unwrap();
    assert_eq!(forked.reissued.len(), 1);
    original.signal("word", "hello", "1").await.unwrap();
    assert_eq!(engine.drive_once("a").await.unwrap().status, Status::Completed);
    let waiting = engine.drive_once("b").await.unwrap();
    assert_eq!((waiting.status, waiting.awaiting.len()), (Status::Waiting, 1), "it waits for a word of its own");
    forked.run.terminate("not needed").await.unwrap();
    let told = forked.run.explain().await.unwrap().to_string();
    assert!(told.starts_with("b (waits version 1) was terminated at "), "{told}");
    assert_eq!(engine.list().status(Status::Completed).await.unwrap().runs.len(), 1);
    leave(&engine).await;
    let second = sqlite(&path).await;
    assert_eq!(second.run("a").unwrap().result::<String>().await.unwrap(), "hello", "the file was free");
    leave(&second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_terminated_and_forked_from_another_machine() {
    let shared = Shared::new("client");
    let (first, second) = (shared.engine().await, shared.engine().await);
    let waiting = first.start("waits", &()).id("w").await.unwrap();
    wait_for(&first, "w", Status::Waiting).await;
    second.run("w").unwrap().terminate("enough").await.unwrap();
    assert_eq!(waiting.result::<String>().await.unwrap_err().code(), "aborted");

    let sum: u32 = first.start("naps", &3).id("n").await.unwrap().result().await.unwrap();
    let original = second.run("n").unwrap();
    let events = original.journal().await.unwrap().len() as u64;
    for at in 0..events {
        let forked = original.fork(at).id(&format!("n-{at}")).await.unwrap();
        assert_eq!(forked.run.result::<u32>().await.unwrap(), sum, "at {at}");
    }
    assert!(original.fork(events).await.is_err());
    leave(&first).await;
    leave(&second).await;
}
