//! A workflow that is killed half-way and finishes anyway.
//!
//! `cargo run --release --example hello` starts itself as a second process that makes breakfast in four steps, with a
//! short sleep after each, on one SQLite file. After the second step that process is killed with SIGKILL. A third process
//! opens the same file, does nothing again that is recorded, and finishes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use outlast::{Ctx, Event, Outlast};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const STEPS: [&str; 4] = ["boil the water", "grind the coffee", "pour", "say good morning"];

/// The parent kills the first worker when it has seen this many steps recorded.
const STEPS_BEFORE_THE_KILL: usize = 2;

/// The workflow: an `async fn`. Killed anywhere, it goes on where it stopped.
async fn breakfast(ctx: Ctx, guest: String) -> outlast::Result<String> {
    for step in STEPS {
        ctx.step(step, async |_| {
            println!("doing: {step}");
            Ok(())
        })
        .await?;
        ctx.sleep(Duration::from_millis(300)).await?;
    }
    Ok(format!("breakfast is ready, {guest}"))
}

/// Drives the run to its end, from wherever its journal stands.
async fn work(path: &Path) -> Result<()> {
    let engine = Outlast::sqlite(path).workflow("breakfast", breakfast).start().await?;
    // Starting the same id again finds the run that is there.
    let run = engine.start("breakfast", "Ada").id("breakfast-1").await?;
    let mut watched = run.attach();
    while let Some(event) = watched.next().await? {
        if let Event::StepFinished { key, .. } = event {
            println!("recorded: {key}");
        }
    }
    let words: String = run.result().await?;
    println!("{words}");
    engine.shutdown().await;
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let result = match args.get(1).map(String::as_str) {
        None => watch(),
        Some("work") if args.len() == 3 => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(work(Path::new(&args[2]))))
        }
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
    let mut recorded = 0;
    for line in lines(&mut first)? {
        let line = line?;
        println!("  {line}");
        recorded += usize::from(line.starts_with("recorded"));
        if recorded == STEPS_BEFORE_THE_KILL {
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

fn worker(path: &Path) -> Result<Child> {
    let me = std::env::current_exe()?;
    Ok(Command::new(me).arg("work").arg(path).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?)
}

fn lines(worker: &mut Child) -> Result<impl Iterator<Item = std::io::Result<String>> + use<>> {
    let stdout = worker.stdout.take().ok_or("the worker has no output")?;
    Ok(BufReader::new(stdout).lines())
}
