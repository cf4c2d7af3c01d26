//! `outlast pause`, `resume` and `cancel`.

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::args::Global;
use crate::commands::bulk::Which;
use crate::commands::told;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::target::{Target, Tell};

/// Let a run start nothing new; what executes ends and is recorded
#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// The run's id
    run: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Why
    #[arg(long, default_value = "paused by hand")]
    reason: String,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Let a paused or parked run go on
#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run's id
    run: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Something to tell it, as JSON: a flow finds it in `messages`
    #[arg(long, value_name = "JSON", requires = "run")]
    message: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Ask a run to stop: its cleanup runs, and its children are asked too
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The run's id
    run: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Why
    #[arg(long, default_value = "cancelled by hand")]
    reason: String,
    /// Do not ask it: its cleanup does not run
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn pause(asked: Pause, global: &Global) -> Result<Exit> {
    let Pause { run, which, reason, place } = asked;
    let Some(run) = which.one(run)? else { return which.all("pause", &["pause"], reason, &place, global).await };
    let answer = Target::with(&place, async |target| target.tell(&run, Tell::Pause { reason }).await).await?;
    told(global, &answer, "it is asked to pause", &place)
}

pub(crate) async fn resume(asked: Resume, global: &Global) -> Result<Exit> {
    let Resume { run, which, message, place } = asked;
    let Some(run) = which.one(run)? else {
        return which.all("resume", &["resume", "unpark"], String::new(), &place, global).await;
    };
    let message: Option<Value> = match message {
        Some(text) => Some(serde_json::from_str(&text).map_err(|error| {
            Stop::new(Exit::Usage, format!("the message is not JSON: {error}"))
                .hint(format!("a text has quotes: '\"{text}\"'"))
        })?),
        None => None,
    };
    let answer = Target::with(&place, async |target| target.tell(&run, Tell::Resume { message }).await).await?;
    told(global, &answer, "it may go on", &place)
}

pub(crate) async fn cancel(asked: Cancel, global: &Global) -> Result<Exit> {
    let Cancel { run, which, reason, now, place } = asked;
    let Some(run) = which.one(run)? else {
        let action = if now { "terminate" } else { "cancel" };
        return which.all(action, &[action], reason, &place, global).await;
    };
    let tell = if now { Tell::Terminate { reason } } else { Tell::Cancel { reason } };
    let answer = Target::with(&place, async |target| target.tell(&run, tell).await).await?;
    told(global, &answer, "it is asked to stop", &place)
}
