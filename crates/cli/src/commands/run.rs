//! `outlast run`: runs a workflow to its end, here.

mod ask;
mod begin;
mod report;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use outlast::{Engine, EngineError, StoreError};

use crate::args::Global;
use crate::database::{Database, DatabaseArgs};
use crate::exit::{Exit, Stop};
use crate::output::{Format, note};
use crate::palette::Palette;
use crate::progress::{Progress, Screen, show_logs};
use crate::sources::Folder;
use crate::words::{length, parse_length, shell};
pub(crate) use ask::who;
pub(crate) use begin::read_input;
use begin::{Beginning, Begun};
use report::Report;
use watch::{Outcome, Watcher};

/// How long what runs has to end after Ctrl-C. Whatever it does not finish is done again.
const GRACE: Duration = Duration::from_secs(2);

/// How long a task stays with a process that was killed, on a database that nobody else has. Whoever goes on waits for that.
const LEASE: Duration = Duration::from_secs(5);

/// Run a workflow to its end, here
#[derive(Debug, Args)]
#[command(
    after_help = "A run is durable: after Ctrl-C, a crash or a reboot the same command with the run's --id goes on where it \
                        stopped. Tasks are `http.request`, `log`, `noop` and the commands of the outlast.toml beside the file; other \
                        workflows in its folder can be called by name."
)]
pub(crate) struct Run {
    /// A script (.wf) or a flow (.flow.yaml)
    file: PathBuf,
    /// What it begins with: JSON, @FILE, or - for standard input
    #[arg(short, long, value_name = "JSON")]
    input: Option<String>,
    /// The run's id; one that is there goes on [default: a new one]
    #[arg(long)]
    id: Option<String>,
    /// Which workflow of the file [default: the one with the file's name, or the first]
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
    /// How long to wait for the end, such as 30s or 5m; the run can go on afterwards
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    timeout: Option<Duration>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

impl Run {
    /// The command that goes on with a run.
    fn again(&self, id: &str) -> String {
        let workflow = self.workflow.as_deref().map_or(String::new(), |name| format!(" --workflow {}", shell(name)));
        let (file, id) = (shell(&self.file.to_string_lossy()), shell(id));
        format!("outlast run {file}{workflow} --id {id}{}", self.database.flag())
    }
}

pub(crate) async fn run(asked: Run, global: &Global) -> Result<Exit> {
    let folder = Folder::around(&asked.file)?;
    let workflow = folder.workflow(asked.workflow.as_deref())?;
    let input = begin::read_input(asked.input.as_deref())?;
    let screen = Screen::stderr(asked.quiet);
    tell_notes(&folder, asked.quiet);
    show_logs(screen.clone());
    // Before the engine: what began earlier began in another process.
    let mut progress = Progress::new(screen);
    let (known, version, database) = (folder.tasks(), folder.compiled.version().to_owned(), asked.database.get());
    let builder = folder.register(database.create()?).grace(GRACE);
    let builder = if database.is_sole() { builder.lease(LEASE) } else { builder };
    let engine = builder.start().await.map_err(|error| refused(error, &database))?;
    progress.set_now(engine.now());
    let begun = begin::begin(&engine, &asked, begin::Wanted { workflow, version, input }).await;
    let (begun, attached) = match begun {
        Ok(Beginning::Runs(begun, attached)) => (begun, attached),
        Ok(Beginning::Rests(begun, view)) => {
            let exit = conclude(&engine, &asked, global.output, &begun, Ok(Outcome::Rests(view))).await;
            engine.shutdown().await;
            return exit;
        }
        Err(error) => {
            engine.shutdown().await;
            return Err(error);
        }
    };
    if !asked.quiet {
        begin::tell(&engine, &begun).await?;
    }
    let watcher = Watcher::new(&engine, (&begun, attached), progress, known, database.is_sole());
    let outcome = watcher.watch(asked.timeout).await;
    let exit = conclude(&engine, &asked, global.output, &begun, outcome).await;
    if !matches!(exit, Ok(Exit::Interrupted)) {
        engine.shutdown().await;
    }
    exit
}

/// What the author should know before it begins.
fn tell_notes(folder: &Folder, quiet: bool) {
    if quiet {
        return;
    }
    let warnings = folder.compiled.warnings();
    if !warnings.list().is_empty() {
        note(&warnings.to_string());
    }
    folder.notes.iter().for_each(|line| note(&format!("{} {line}", Palette::stderr().warn("note:"))));
}

/// The database could not be opened.
pub(crate) fn refused(error: EngineError, database: &Database) -> anyhow::Error {
    match &error {
        EngineError::Store(StoreError::Locked { path, pid }) => {
            let message =
                format!("{path} is in use by process {pid}, and a SQLite file belongs to one process at a time");
            Stop::new(Exit::Error, message)
                .hint("wait for it or stop it; or use another file (--database sqlite:PATH), or PostgreSQL, which many share")
                .into()
        }
        EngineError::Store(StoreError::Corrupt { detail, .. }) => {
            let message = format!("{database} cannot be read as a database: {detail}");
            Stop::new(Exit::Error, message).hint("name another one with --database, or restore it from a copy").into()
        }
        _ => anyhow::Error::from(error).context(format!("the database {database} cannot be opened")),
    }
}

/// Says what became of the run.
async fn conclude(
    engine: &Engine,
    asked: &Run,
    format: Format,
    begun: &Begun,
    outcome: Result<Outcome, EngineError>,
) -> Result<Exit> {
    let palette = Palette::stderr();
    let again = asked.again(&begun.id);
    let flag = asked.database.flag();
    let report = match outcome? {
        Outcome::Ended(event) => {
            let report = Report::ended(begun, &event);
            if !asked.quiet {
                note(&report.last_words(palette, begun.since.elapsed(), &flag));
            }
            report
        }
        Outcome::Interrupted => {
            let status = engine.run(&begun.id)?.status().await?;
            let patience = format!("what runs has {} to end; Ctrl-C again stops at once", length(GRACE));
            let explain = || note(&format!("{} {patience}", palette.warn("stopping:")));
            watch::shutdown_or_interrupt(engine, explain).await;
            note(&format!("{} {} is safe, and goes on with\n\n    {again}\n", palette.warn("interrupted:"), begun.id));
            note(&format!("To end it instead: outlast cancel {}{flag}", shell(&begun.id)));
            Report::open(begun, status, "interrupted", "the process that ran it was asked to stop")
        }
        Outcome::TimedOut(status) => {
            let time = length(asked.timeout.unwrap_or_default());
            note(&format!(
                "{} {} is not over after {time}; it goes on with\n\n    {again}\n",
                palette.warn("timeout:"),
                begun.id
            ));
            Report::open(begun, status, "timeout", "the time given is up, and the run is not over")
        }
        Outcome::Waits(waits) => {
            note(&report::who_is_waited_for(palette, &begun.id, &waits, &flag));
            note(&format!("and then go on with\n\n    {again}\n"));
            Report::open(
                begun,
                outlast::Status::Waiting,
                "waiting",
                "it waits for somebody, and there is no terminal to ask in",
            )
        }
        Outcome::Nobody(task) => {
            let toml = asked.file.with_file_name("outlast.toml");
            let message = format!("nobody can do the task {task:?}");
            note(&format!("{} {message}", palette.bad("error:")));
            note(&format!(
                "{} add it to {} and go on with\n\n    {again}\n\n    [tasks.{}]\n    command = [\"python3\", \"{task}.py\"]\n",
                palette.info("hint:"),
                toml.display(),
                report::toml_key(&task),
            ));
            Report::open(begun, outlast::Status::Waiting, "unknown_task", &message)
        }
        Outcome::Rests(view) => report::resting(palette, begun, &view, &again, &flag),
    };
    report.print(format)?;
    Ok(report.exit())
}
