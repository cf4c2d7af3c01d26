//! Runs a script on a fresh SQLite file, and prints what became of it as one line of JSON.
//!
//! `cargo run --example wf -- FILE --input JSON`. Tasks are those of the `outlast.toml` beside the file, and `http.request`,
//! `log` and `noop`. A task that nobody can do fails the run instead of letting it wait for ever.
#![expect(clippy::disallowed_methods, reason = "it runs in real time")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use outlast::{Engine, EngineError, Failure, Outlast, RunHandle, TaskState};
use outlast_tasks::{Options, TaskConfig, builtins};
use serde_json::{Value, json};

const USAGE: &str = "usage: wf FILE [--input JSON] [--workflow NAME]";
/// How often it is looked for tasks that nobody can do.
const LOOK: Duration = Duration::from_millis(100);

/// The run failed, or was cancelled.
const FAILED: u8 = 5;
/// The script has mistakes, or cannot be run.
const REFUSED: u8 = 1;
const MISUSED: u8 = 2;

struct Asked {
    file: PathBuf,
    input: Value,
    workflow: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let asked = match ask(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(MISUSED);
        }
    };
    match run(&asked).await {
        Ok((line, code)) => {
            println!("{line}");
            ExitCode::from(code)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(REFUSED)
        }
    }
}

fn ask(mut args: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { file: PathBuf::new(), input: Value::Null, workflow: None };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--input" => {
                asked.input =
                    serde_json::from_str(&value()?).map_err(|error| format!("--input is not JSON: {error}"))?;
            }
            "--workflow" => asked.workflow = Some(value()?),
            _ if arg.starts_with('-') => return Err(format!("there is no option {arg}")),
            _ if asked.file.as_os_str().is_empty() => asked.file = PathBuf::from(arg),
            _ => return Err(format!("one file at a time, and {arg} is another one")),
        }
    }
    if asked.file.as_os_str().is_empty() { Err("which file?".to_owned()) } else { Ok(asked) }
}

/// What to print, and how to exit.
async fn run(asked: &Asked) -> Result<(Value, u8), Box<dyn std::error::Error>> {
    let shown = asked.file.display();
    let text = std::fs::read_to_string(&asked.file).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let name = asked.file.file_name().unwrap_or_default().to_string_lossy();
    let dir = tempfile::tempdir()?;
    let mut engine = Outlast::sqlite(dir.path().join("wf.db"));
    let mut known = BTreeSet::new();
    let configured = tasks_beside(&asked.file)?;
    for handler in configured.into_iter().chain(builtins(Options::default())) {
        known.insert(handler.name().to_owned());
        engine = engine.handler(handler);
    }
    let engine = engine.start().await?;
    let workflows = match engine.define_script(&name, &text).await {
        Err(EngineError::Mistakes { report, .. }) => return Err(report.into()),
        defined => defined?,
    };
    let workflow = chosen(asked, &workflows)?;
    let run = engine.start(workflow, &asked.input).id("wf").await?;
    let ended = tokio::select! {
        ended = run.result::<Value>() => ended,
        undone = nobody_does(&engine, &known) => Err(give_up(&engine, undone?).await?),
    };
    let said = told(ended)?;
    engine.shutdown().await;
    Ok(said)
}

fn tasks_beside(file: &Path) -> Result<Vec<outlast::Handler>, Box<dyn std::error::Error>> {
    let config = file.parent().unwrap_or(Path::new("")).join("outlast.toml");
    if config.exists() { Ok(TaskConfig::from_file(config)?) } else { Ok(Vec::new()) }
}

/// The workflow that was asked for, or the one with the file's name, or the first one.
fn chosen<'w>(asked: &'w Asked, workflows: &'w [String]) -> Result<&'w str, String> {
    let has = |name: &str| workflows.iter().any(|workflow| workflow == name);
    if let Some(name) = &asked.workflow {
        let known = || format!("the file has no workflow {name:?}; it has {}", workflows.join(", "));
        return if has(name) { Ok(name) } else { Err(known()) };
    }
    let stem = asked.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if has(stem) {
        Ok(stem)
    } else {
        workflows.first().map(String::as_str).ok_or("the file has no workflow".to_owned())
    }
}

/// Completes with the name of a task that is queued and that nobody can do.
async fn nobody_does(engine: &Engine, known: &BTreeSet<String>) -> Result<String, EngineError> {
    loop {
        let queued = engine.tasks().state(TaskState::Ready).await?;
        if let Some(task) = queued.tasks.iter().find(|task| !known.contains(task.name.as_str())) {
            return Ok(task.name.to_string());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Ends the run, which would wait for ever.
async fn give_up(engine: &Engine, task: String) -> Result<EngineError, EngineError> {
    let message = format!(
        "nobody can do the task {task:?}: add [tasks.{task}] with its command to the outlast.toml beside the file"
    );
    let run: RunHandle = engine.run("wf")?;
    run.terminate(&message).await?;
    Ok(EngineError::Failed(Failure::new("unknown_task", message)))
}

fn told(ended: Result<Value, EngineError>) -> Result<(Value, u8), EngineError> {
    match ended {
        Ok(output) => Ok((json!({ "status": "completed", "output": output }), 0)),
        Err(EngineError::Failed(failure)) => {
            let data: Value =
                failure.data.as_deref().and_then(|data| serde_json::from_slice(data).ok()).unwrap_or_default();
            let error = json!({ "code": failure.code, "message": failure.message, "data": data });
            // For whoever reads along; what is printed as the result is for programs.
            failure.trace.iter().for_each(|trace| eprintln!("{}: {}\n{trace}", failure.code, failure.message));
            Ok((json!({ "status": "failed", "error": error }), FAILED))
        }
        Err(EngineError::Cancelled(reason)) => {
            let error = json!({ "code": "cancelled", "message": reason, "data": null });
            Ok((json!({ "status": "cancelled", "error": error }), FAILED))
        }
        Err(other) => Err(other),
    }
}
