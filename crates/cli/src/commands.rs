//! The commands, one file each.

mod approve;
mod bench;
mod bulk;
mod check;
mod completions;
mod control;
mod dev;
mod doctor;
mod events;
mod explain;
mod fmt;
mod fork;
mod graph;
mod list;
mod replay;
mod retry;
pub(crate) mod run;
mod schedule;
mod serve;
mod show;
mod signal;
mod sql;
mod start;
mod token;
mod trace;
mod worker;

use anyhow::{Context, Result};
use clap::Subcommand;
use outlast_script::Diagnostics;
use serde::Serialize;

use crate::args::{Cli, Global};
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note};
use crate::palette::Palette;
use crate::target::Told;
use crate::words::shell;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::Run),
    Dev(dev::Dev),
    Serve(serve::Serve),
    Start(start::Start),
    Put(start::Put),
    Check(check::Check),
    Fmt(fmt::Fmt),
    Graph(graph::Graph),
    List(list::List),
    Show(show::Show),
    Explain(explain::Explain),
    Events(events::Events),
    Signal(signal::Signal),
    Approvals(approve::Approvals),
    /// Approve what a run waits for
    Approve(approve::Decide),
    /// Deny what a run waits for
    Deny(approve::Decide),
    Pause(control::Pause),
    Resume(control::Resume),
    Cancel(control::Cancel),
    Fork(fork::Fork),
    Retry(retry::Retry),
    Skip(retry::Skip),
    Schedule(schedule::ScheduleArgs),
    Worker(worker::Worker),
    Workers(doctor::Workers),
    Doctor(doctor::Doctor),
    Sql(sql::Sql),
    Token(token::TokenArgs),
    Bench(bench::Bench),
    Replay(replay::Replay),
    CheckReplay(replay::CheckReplay),
    Trace(trace::Trace),
    Completions(completions::Completions),
    Man(completions::Man),
}

/// Does what was asked.
pub(crate) fn execute(cli: Cli) -> Result<Exit> {
    let Cli { global, command } = cli;
    match command {
        Command::Run(asked) => wait(run::run(asked, &global)),
        Command::Dev(asked) => wait(dev::dev(asked)),
        Command::Serve(asked) => wait(serve::serve(asked)),
        Command::Start(asked) => wait(start::start(asked, &global)),
        Command::Put(asked) => wait(start::put(asked, &global)),
        Command::Check(asked) => check::check(&asked, &global),
        Command::Fmt(asked) => fmt::fmt(&asked, &global),
        Command::Graph(asked) => wait(graph::graph(asked, &global)),
        Command::List(asked) => wait(list::list(asked, &global)),
        Command::Show(asked) => wait(show::show(asked, &global)),
        Command::Explain(asked) => wait(explain::explain(asked, &global)),
        Command::Events(asked) => wait(events::events(asked, &global)),
        Command::Signal(asked) => wait(signal::signal(asked, &global)),
        Command::Approvals(asked) => wait(approve::approvals(asked, &global)),
        Command::Approve(asked) => wait(approve::decide(asked, true, &global)),
        Command::Deny(asked) => wait(approve::decide(asked, false, &global)),
        Command::Pause(asked) => wait(control::pause(asked, &global)),
        Command::Resume(asked) => wait(control::resume(asked, &global)),
        Command::Cancel(asked) => wait(control::cancel(asked, &global)),
        Command::Fork(asked) => wait(fork::fork(asked, &global)),
        Command::Retry(asked) => wait(retry::retry(asked, &global)),
        Command::Skip(asked) => wait(retry::skip(asked, &global)),
        Command::Schedule(asked) => wait(schedule::schedule(asked, &global)),
        Command::Worker(asked) => wait(worker::worker(asked)),
        Command::Workers(asked) => wait(doctor::workers(asked, &global)),
        Command::Doctor(asked) => wait(doctor::doctor(asked, &global)),
        Command::Sql(asked) => wait(sql::sql(asked, &global)),
        Command::Token(asked) => token::token(asked, &global),
        Command::Bench(asked) => wait(bench::bench(asked, &global)),
        Command::Replay(asked) => wait(replay::replay(asked, &global)),
        Command::CheckReplay(asked) => wait(replay::check_replay(asked, &global)),
        Command::Trace(asked) => wait(trace::trace(asked, &global)),
        Command::Completions(asked) => Ok(completions::completions(&asked)),
        Command::Man(asked) => completions::man(&asked),
    }
}

/// Commands that have a database run on threads of their own; the others start none.
fn wait(command: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the threads this needs cannot be started")?;
    let exit = runtime.block_on(command);
    // Without waiting: a thread that reads the terminal ends with the next line, and nobody types one.
    runtime.shutdown_background();
    exit
}

/// A text cannot be used: what is wrong with it, each with its line.
pub(crate) fn mistakes(found: Diagnostics) -> Stop {
    Stop::report(Exit::Error, found.to_string())
}

/// A run was told something. Nothing drives it here, so it is said who does.
fn told(global: &Global, told: &Told, what: &str, place: &PlaceArgs) -> Result<Exit> {
    let what = match told.outcome.as_str() {
        "duplicate" => "it was told so before",
        "lost" => "it had ended, and nothing was done",
        _ => what,
    };
    done(global, told, &format!("{}: {what}; it is {}", told.run, told.status))?;
    if global.output == Format::Table {
        let is_open = ["queued", "running", "waiting"].contains(&told.status.as_str());
        if is_open && place.is_sole() {
            let (run, flag) = (shell(&told.root), place.flag());
            note(&format!("  it goes on with: outlast run FILE --id {run}{flag}"));
        }
    }
    Ok(Exit::Done)
}

/// Something was done: the answer for programs, a line for people.
fn done(global: &Global, answer: &impl Serialize, line: &str) -> Result<()> {
    output::one(global.output, answer, |_| String::new())?;
    if global.output == Format::Table {
        note(&format!("{} {line}", Palette::stderr().good("✓")));
    }
    Ok(())
}
