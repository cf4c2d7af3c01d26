//! A real process is killed with SIGKILL again and again; what was acknowledged is never lost, and everything ends.
#![cfg(all(feature = "sqlite", feature = "postgres"))]
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "these stories are about real time")]

mod workflows;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outlast::{Engine, Event, Outlast};
use outlast_store::{PostgresOptions, PostgresStore};
use workflows::{NAMES, register};

/// The input of every run, and so about how long it is.
const LENGTH: u32 = 6;
/// What each workflow comes to.
const EXPECTED: [u32; 8] = [18, 6, 21, 11, 20, 30, 6, 7];

/// The worker: this test's own binary, started again. It starts every run, sends every signal and approval, says what was
/// acknowledged, and drives until it is killed or all runs have ended.
#[test]
fn worker() {
    let Ok(place) = std::env::var("OUTLAST_KILL_WORKER") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = register(open(&place).await).poll(Duration::from_millis(50)).lease(Duration::from_millis(400));
        let engine = engine.start().await.unwrap();
        for name in NAMES {
            engine.start(name, &LENGTH).id(name).await.unwrap();
            println!("ack start {name}");
        }
        for n in 0..=LENGTH {
            for name in ["signals", "generations"] {
                // Lost if the run has ended: then it had all it wanted.
                if engine.run(name).unwrap().signal("value", &(n + 1), &format!("value-{n}")).await.is_ok() {
                    println!("ack signal {name}");
                }
            }
        }
        let asked = engine.clone();
        tokio::spawn(async move { approve_all(&asked).await });
        for name in NAMES {
            let value = engine.run(name).unwrap().result::<u32>().await.unwrap();
            println!("result {name} {value}");
        }
        println!("all done");
    });
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

async fn approve_all(engine: &Engine) {
    let run = engine.run("approvals").unwrap();
    loop {
        for n in 0..LENGTH {
            // Not asked yet, or decided already: somebody may have been killed just after.
            let _ = run.approve(&format!("__approve-{n}"), true, Some("Ada"), None).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
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
        for round in 1.. {
            assert!(round < 200, "the runs do not come to an end, however long the process lives");
            let mut worker = spawn(&place, &ledger);
            let lines = BufReader::new(worker.stdout.take().unwrap()).lines();
            // Longer and longer, so that on a busy machine too a process comes to do something before it is killed.
            let patience = Duration::from_millis(30 + dice.roll(220 + 20 * round));
            let killer = std::thread::spawn(move || {
                std::thread::sleep(patience);
                // The only one who may not be there any more.
                let _ = worker.kill();
                worker.wait().unwrap()
            });
            let said: Vec<String> = lines.map_while(Result::ok).collect();
            let status = killer.join().unwrap();
            if said.iter().any(|line| line.contains("all done")) {
                check_results(&said);
                break;
            }
            assert!(!status.success() && status.code().is_none(), "the worker failed by itself: {status}\n{said:#?}");
            killed += 1;
        }
        check_journals(&place, &ledger);
    }
}

fn check_results(said: &[String]) {
    for (name, expected) in NAMES.iter().zip(EXPECTED) {
        let line = format!("result {name} {expected}");
        assert!(said.iter().any(|said| said.contains(&line)), "{line} is not among {said:#?}");
    }
}

/// Every recorded step ran, as somebody outside saw; no result is recorded twice; nobody waits any more.
fn check_journals(place: &str, ledger: &Path) {
    let mut ran: BTreeMap<String, u32> = BTreeMap::new();
    for key in std::fs::read_to_string(ledger).unwrap().lines() {
        *ran.entry(key.to_owned()).or_default() += 1;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = register(open(place).await).start().await.unwrap();
        for name in NAMES {
            let run = engine.run(name).unwrap();
            let generation = run.view().await.unwrap().generation;
            let journal = run.journal().await.unwrap();
            let mut recorded = BTreeMap::new();
            for event in &journal {
                if let Event::StepFinished { key, .. } = event {
                    let id = format!("default/{name}/{generation}/{key}");
                    assert!(ran.contains_key(&id), "{id} is recorded and nobody saw it run");
                    assert!(recorded.insert(key.clone(), ()).is_none(), "{key} is recorded twice");
                }
            }
            assert!(matches!(journal.last(), Some(Event::RunFinished { .. })), "{name} ends with its result");
        }
        engine.shutdown().await;
    });
}

/// How often a worker is killed; `OUTLAST_KILLS` says otherwise.
fn kills() -> u64 {
    let chosen = std::env::var("OUTLAST_KILLS").ok().and_then(|kills| kills.parse().ok());
    chosen.unwrap_or(if std::env::var_os("OUTLAST_QUICK").is_some() { 5 } else { 30 })
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
