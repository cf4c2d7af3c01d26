//! `outlast schedule`: runs that start by the clock.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use outlast_server::dto;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::Global;
use crate::commands::done;
use crate::commands::run::read_input;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output::{self, table};
use crate::palette::Palette;
use crate::words::parse_length;

/// Start runs by the clock
#[derive(Debug, Args)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List schedules
    List,
    /// Show a schedule, its next instants and what became of the last ones
    Show {
        /// The schedule's id
        id: String,
    },
    Put(Box<Put>),
    /// Let no instant fire until it is resumed
    Pause {
        /// The schedule's id
        id: String,
        /// Why
        #[arg(long, default_value = "paused by hand")]
        reason: String,
    },
    /// Let it fire again, from now on
    Resume {
        /// The schedule's id
        id: String,
    },
    /// Start a run now, as if an instant came
    Trigger {
        /// The schedule's id
        id: String,
    },
    /// Start the runs of instants that passed
    Backfill {
        /// The schedule's id
        id: String,
        /// From this instant on, such as 2026-11-01T00:00:00Z
        #[arg(long)]
        from: String,
        /// Up to this one
        #[arg(long)]
        to: String,
    },
    /// Remove a schedule. Runs that it started go on
    Delete {
        /// The schedule's id
        id: String,
    },
}

/// Create a schedule, or replace what it says
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("when").required(true).args(["cron", "every", "once_at"])))]
struct Put {
    /// The schedule's id
    id: String,
    /// Which workflow to start
    #[arg(long, value_name = "NAME")]
    workflow: String,
    /// With which input: JSON, @FILE, or - for standard input
    #[arg(short, long, value_name = "JSON")]
    input: Option<String>,
    /// When the wall clock shows this, such as '0 3 * * *'
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// At regular intervals
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    every: Option<Duration>,
    /// Once, at this instant
    #[arg(long, value_name = "INSTANT")]
    once_at: Option<String>,
    /// Whose wall clock, such as Europe/Berlin [default: UTC]
    #[arg(long, requires = "cron")]
    zone: Option<String>,
    /// While the run before has not ended: skip, allow, buffer_one, buffer_all, cancel_previous or terminate_previous
    #[arg(long)]
    overlap: Option<String>,
    /// How late a firing may be
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    catch_up: Option<Duration>,
    /// If it is new, it is paused from the start
    #[arg(long)]
    paused: bool,
}

pub(crate) async fn schedule(asked: ScheduleArgs, global: &Global) -> Result<Exit> {
    let ScheduleArgs { verb, place } = asked;
    Api::with(&place, async |api| {
        match verb {
            Verb::List => {
                let found: dto::ScheduleList = api.get(&["schedules"], &[]).await?;
                output::many(global.output, &found.schedules, for_people)?;
            }
            Verb::Show { id } => {
                let found: dto::ScheduleView = api.get(&["schedules", &id], &[]).await?;
                output::one(global.output, &found, detail)?;
            }
            Verb::Put(put) => {
                let id = put.id.clone();
                let found: dto::ScheduleView = api.write(Method::PUT, &["schedules", &id], &body(*put)?).await?;
                output::one(global.output, &found, detail)?;
            }
            Verb::Pause { id, reason } => {
                let answer: Value = api.post(&["schedules", &id, "pause"], &dto::Reason { reason }).await?;
                done(global, &answer, &format!("{id}: it fires no more"))?;
            }
            Verb::Resume { id } => {
                let answer: Value = api.post(&["schedules", &id, "resume"], &json!({})).await?;
                done(global, &answer, &format!("{id}: it fires again"))?;
            }
            Verb::Trigger { id } => {
                let answer: dto::Triggered = api.post(&["schedules", &id, "trigger"], &json!({})).await?;
                let what = format!("{id}: {}", answer.run.clone().unwrap_or_else(|| answer.outcome.clone()));
                done(global, &answer, &what)?;
            }
            Verb::Backfill { id, from, to } => {
                let body = dto::Backfill { from, to };
                let answer: dto::Backfilled = api.post(&["schedules", &id, "backfill"], &body).await?;
                done(global, &answer, &format!("{id}: {} instants", answer.instants))?;
            }
            Verb::Delete { id } => {
                let answer: Value = api.write(Method::DELETE, &["schedules", &id], &json!({})).await?;
                done(global, &answer, &format!("{id}: it is gone"))?;
            }
        }
        Ok(Exit::Done)
    })
    .await
}

fn body(put: Put) -> Result<dto::PutSchedule> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Ok(dto::PutSchedule {
        cron: put.cron,
        every_ms: put.every.map(millis),
        once_at: put.once_at,
        zone: put.zone,
        workflow: put.workflow,
        input: read_input(put.input.as_deref())?,
        overlap: put.overlap,
        catch_up_ms: put.catch_up.map(millis),
        paused: put.paused,
        ..dto::PutSchedule::default()
    })
}

fn for_people(schedules: &[dto::ScheduleView]) -> String {
    let lines = schedules.iter().map(|view| {
        let next = match &view.paused {
            Some(_) => "paused".to_owned(),
            None => view.next_times.first().cloned().unwrap_or_default(),
        };
        vec![view.schedule.clone(), view.workflow.clone(), view.when.clone(), next, view.started.to_string()]
    });
    table(&["SCHEDULE", "WORKFLOW", "WHEN", "NEXT", "STARTED"], lines)
}

fn detail(view: &dto::ScheduleView) -> String {
    let palette = Palette::stdout();
    let mut lines = vec![format!("{}  {}  {}", palette.bold(&view.schedule), view.workflow, view.when)];
    lines.extend(view.paused.iter().map(|why| format!("paused: {why}")));
    lines.extend(view.next_times.iter().map(|at| format!("next  {at}")));
    lines.extend(
        view.recent.iter().map(|firing| {
            format!("{:<8} {}  {}", firing.outcome, firing.at, firing.detail.clone().unwrap_or_default())
        }),
    );
    lines.join("\n")
}
