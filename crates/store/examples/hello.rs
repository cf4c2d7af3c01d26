//! A run that is killed half-way and finishes anyway.
//!
//! `cargo run --release --example hello` starts itself as a second process that makes breakfast in four steps and
//! journals each to an SQLite file. After the second step the process is killed with SIGKILL. A third process opens the
//! same file, reads the journal, repeats nothing, and finishes.
//!
//! The engine that turns an `async fn` into this is built on top; here you see what it stands on: a store, a claim, a
//! journal, commits.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use outlast_core::Bytes;
use outlast_core::commit::{Commit, Ending, NewRun, Then};
use outlast_core::event::Event;
use outlast_core::id::{ClaimId, Index, Key, Namespace, NodeId, RunId, RunKey, Version, WorkflowName};
use outlast_core::journal::Journal;
use outlast_store::{Claim, Claimed, Load, LoadFrom, Pick, Serves, SqliteOptions, SqliteStore, Store};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const STEPS: [&str; 4] = ["boil the water", "grind the coffee", "pour", "say good morning"];

/// The parent kills the first worker when it has seen this many steps done.
const STEPS_BEFORE_THE_KILL: usize = 2;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let result = match args.get(1).map(String::as_str) {
        None => watch(),
        Some("work") if args.len() == 3 => work(Path::new(&args[2])),
        Some(_) => {
            eprintln!("usage: hello            (it starts its own workers)");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hello: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts a worker, kills it half-way, starts another one.
fn watch() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("hello.db");
    println!("one SQLite file, four steps, two processes\n");

    let mut first = worker(&path)?;
    println!("process {} works:", first.id());
    let mut done = 0;
    for line in lines(&mut first)? {
        let line = line?;
        println!("  {line}");
        done += usize::from(line.starts_with("did"));
        if done == STEPS_BEFORE_THE_KILL {
            break;
        }
    }
    first.kill()?;
    println!("process {} was killed with SIGKILL ({})\n", first.id(), first.wait()?);

    let mut second = worker(&path)?;
    println!("process {} takes over:", second.id());
    for line in lines(&mut second)? {
        println!("  {}", line?);
    }
    let status = second.wait()?;
    if !status.success() {
        return Err(format!("the second worker failed: {status}").into());
    }
    println!("\nnothing was done twice, nothing was lost");
    Ok(())
}

fn worker(path: &Path) -> Result<std::process::Child> {
    let me = std::env::current_exe()?;
    Ok(Command::new(me).arg("work").arg(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

fn lines(worker: &mut std::process::Child) -> Result<impl Iterator<Item = std::io::Result<String>> + use<>> {
    let stdout = worker.stdout.take().ok_or("the worker has no output")?;
    Ok(BufReader::new(stdout).lines())
}

/// Drives the run to its end, from wherever its journal stands.
fn work(path: &Path) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let store = SqliteStore::open(path, SqliteOptions::default()).await?;
        let run = RunKey::new(Namespace::default_namespace(), RunId::new("breakfast-1")?);
        let workflow = WorkflowName::new("breakfast")?;
        let new = NewRun::new(run.clone(), workflow, Version::new("1")?, Bytes::from_static(b"{}"));
        store.create(vec![new]).await.remove(0)?;

        let claimed = claim(&store, run).await?;
        let journal = load(&store, &claimed).await?;
        for step in STEPS {
            let key = Key::new(step)?;
            let recorded = journal.events().iter().any(|event| event.key() == Some(&key));
            if recorded {
                println!("skipped, it is in the journal: {step}");
            }
        }
        finish(&store, &claimed, journal).await
    })
}

async fn claim(store: &SqliteStore, run: RunKey) -> Result<Claimed> {
    // Opening the file ended the leases of the process before us, so its run is free at once.
    let lease = store.register(NodeId::new("kitchen")?, Duration::from_secs(30)).await?;
    let pick = Pick::Run(run);
    let claim = Claim { lease: lease.id, id: ClaimId(1), limit: 1, pick, serves: Serves::Everything };
    store.claim(claim).await?.pop().ok_or_else(|| "somebody else drives the run".into())
}

async fn load(store: &SqliteStore, claimed: &Claimed) -> Result<Journal> {
    let load = Load { run: claimed.run.clone(), from: LoadFrom::Index(Index(0)) };
    let loaded = store.load(vec![load]).await.remove(0)?;
    Ok(Journal::load((0..).map(Index).zip(loaded.events))?)
}

async fn finish(store: &SqliteStore, claimed: &Claimed, mut journal: Journal) -> Result<()> {
    let done: Vec<&str> = journal.events().iter().filter_map(|event| event.key()).map(Key::as_str).collect();
    let left: Vec<&str> = STEPS.into_iter().filter(|step| !done.contains(step)).collect();
    for step in left {
        let event = Event::StepFinished { key: Key::new(step)?, result: Bytes::from_static(b"\"done\""), attempts: 1 };
        append(store, claimed, &mut journal, event, Then::Continue).await?;
        println!("did: {step}");
        if journal.next() == Index(STEPS_BEFORE_THE_KILL as u64) && claimed.tries == 0 {
            // Half-way. The parent kills us here; without it we would wait for ever.
            std::io::stdin().read_line(&mut String::new())?;
        }
    }
    let output = Bytes::from_static(b"\"good morning\"");
    append(store, claimed, &mut journal, Event::RunFinished { output }, Then::Finish(Ending::Completed)).await?;
    println!("the journal:");
    for (index, event) in journal.events().iter().enumerate() {
        println!("  {index} {} {}", event.kind().name(), event.key().map_or("", Key::as_str));
    }
    Ok(())
}

/// Decides in memory, writes once; when it returns, the event is on the disk.
async fn append(store: &SqliteStore, claimed: &Claimed, journal: &mut Journal, event: Event, then: Then) -> Result<()> {
    let expected = journal.next();
    let record = event.encode(claimed.now);
    journal.append(expected, event)?;
    let mut commit = Commit::new(claimed.run.clone(), claimed.fence, expected);
    commit.events = vec![record];
    commit.then = then;
    store.commit(vec![commit]).await.remove(0)?;
    Ok(())
}
