//! A real process is killed with SIGKILL again and again; what was acknowledged is never lost, and everything ends.
#![cfg(all(feature = "sqlite", feature = "postgres"))]
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "these stories are about real time")]

mod check;
mod workflows;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outlast::{Engine, Outlast, Status};
use outlast_store::{PostgresOptions, PostgresStore};
use workflows::{CALLED, CANCELLED, NAMES, register};

/// The input of every run, and so about how long it is.
const LENGTH: u32 = 6;

/// The worker: this test's own binary, started again. It starts every run, tells every run what it waits for, says what was
/// acknowledged, and drives until it is killed or all runs have ended.
#[test]
fn worker() {
    let Ok(place) = std::env::var("OUTLAST_KILL_WORKER") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = register(open(&place).await).poll(Duration::from_millis(50)).lease(Duration::from_millis(400));
        let engine = engine.start().await.unwrap();
        unpark(&engine).await;
        for name in NAMES.into_iter().chain([CANCELLED]) {
            engine.start(name, &LENGTH).id(name).await.unwrap();
            println!("ack start {name}");
        }
        send_signals(&engine).await;
        let asked = engine.clone();
        tokio::spawn(async move { answer_all(&asked).await });
        for name in NAMES {
            let value = engine.run(name).unwrap().result::<u32>().await.unwrap();
            println!("result {name} {value}");
        }
        let stopped = engine.run(CANCELLED).unwrap().result::<u32>().await.unwrap_err();
        println!("result {CANCELLED} {}", stopped.code());
        // A child that was detached, or told to stop, may end after its parent.
        for view in engine.list().page_size(1_000).await.unwrap().runs {
            let _ = engine.run(view.run.id.as_str()).unwrap().result::<serde_json::Value>().await;
        }
        println!("all done");
    });
}

/// A run that was claimed ten times without progress is parked, because it may be what kills its process. Here it is not,
/// and somebody says so.
async fn unpark(engine: &Engine) {
    for view in engine.list().status(Status::Parked).page_size(1_000).await.unwrap().runs {
        let note = view.note.unwrap_or_default();
        assert!(note.contains("without progress"), "{} is parked: {note}", view.run);
        engine.run(view.run.id.as_str()).unwrap().unpark().await.unwrap();
        println!("unparked {}", view.run.id);
    }
}

/// Refused where the run has ended: then it had all it wanted.
async fn send_signals(engine: &Engine) {
    for n in 0..=LENGTH {
        for name in ["signals", "generations"] {
            if engine.run(name).unwrap().signal("value", &(n + 1), &format!("value-{n}")).await.is_ok() {
                println!("ack signal {name} value-{n}");
            }
        }
    }
    if engine.run("signals").unwrap().signal_to("aimed", "direct", &100, "direct-1").await.is_ok() {
        println!("ack signal signals direct-1");
    }
}

/// Decides, answers, pauses and cancels, again and again: not asked yet, or done already by somebody who was killed.
async fn answer_all(engine: &Engine) {
    let (answers, stopped) = (engine.run("answers").unwrap(), engine.run(CANCELLED).unwrap());
    let ledger = std::env::var("OUTLAST_KILL_LEDGER").unwrap();
    for _ in 0..3 {
        if stopped.pause("a moment").await.is_ok() && stopped.resume().await.is_ok() {
            println!("ack pause {CANCELLED}");
        }
    }
    loop {
        for n in 0..LENGTH {
            if answers.approve(&format!("__approve-{n}"), true).by("Ada").await.is_ok() {
                println!("ack approve __approve-{n}");
            }
        }
        let known = std::fs::read_to_string(&ledger).unwrap_or_default();
        for token in known.lines().filter_map(|line| line.strip_prefix(CALLED)) {
            if answers.resolve_callback("call/__callback-0", token, &7).await.is_ok() {
                println!("ack callback");
            }
        }
        // Only what has begun to wait can clean up.
        if answers.status().await.is_ok_and(Status::is_terminal) && stopped.cancel("enough").await.is_ok() {
            println!("ack cancel");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn open(place: &str) -> Outlast {
    match place.split_once(' ') {
        None => Outlast::sqlite(place),
        Some((url, schema)) => {
            let options = PostgresOptions { schema: Some(schema.to_owned()), ..PostgresOptions::default() };
            Outlast::store(Arc::new(PostgresStore::connect(url, options).await.unwrap()))
        }
    }
}

fn spawn(place: &str, ledger: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker", "--nocapture"])
        .env("OUTLAST_KILL_WORKER", place)
        .env("OUTLAST_KILL_LEDGER", ledger)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Numbers that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Kills workers until all runs have ended in spite of it, and at least so often.
fn kill(place: impl Fn(u32) -> String, dir: &Path, kills: u64) {
    let mut dice = Dice(7);
    let (mut killed, mut life) = (0, 0);
    while killed < kills {
        // A new database for each life story; a story is over when all runs have ended.
        let (place, ledger) = (place(life), dir.join(format!("ledger-{life}")));
        life += 1;
        let mut said = Vec::new();
        for round in 1.. {
            assert!(round < 200, "the runs do not come to an end, however long the process lives: {said:#?}");
            let mut worker = spawn(&place, &ledger);
            let lines = BufReader::new(worker.stdout.take().unwrap()).lines();
            // Longer and longer, so that on a busy machine too a process comes to do something before it is killed.
            let patience = Duration::from_millis(20 + dice.roll(60 + 20 * round));
            let killer = std::thread::spawn(move || {
                std::thread::sleep(patience);
                // The only one who may not be there any more.
                let _ = worker.kill();
                worker.wait().unwrap()
            });
            said.extend(lines.map_while(Result::ok));
            let status = killer.join().unwrap();
            if said.iter().any(|line| line.contains("all done")) {
                break;
            }
            assert!(!status.success() && status.code().is_none(), "the worker failed by itself: {status}\n{said:#?}");
            killed += 1;
        }
        check::results(&said);
        check::runs(&place, &ledger, &said);
    }
    println!("{killed} kills over {life} databases");
}

/// How often a worker is killed; `OUTLAST_KILLS` says otherwise.
fn kills() -> u64 {
    let chosen = std::env::var("OUTLAST_KILLS").ok().and_then(|kills| kills.parse().ok());
    chosen.unwrap_or(if std::env::var_os("OUTLAST_QUICK").is_some() { 5 } else { 100 })
}

#[test]
fn nothing_is_lost_on_sqlite_however_often_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    kill(move |life| path.join(format!("{life}.db")).to_str().unwrap().to_owned(), dir.path(), kills());
}

#[test]
fn nothing_is_lost_on_postgresql_however_often_the_process_is_killed() {
    let url = std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES");
    let dir = tempfile::tempdir().unwrap();
    let schema = format!("kill_{}", std::process::id());
    kill(move |life| format!("{url} {schema}_{life}"), dir.path(), kills());
}
