//! `outlast show`: a run, what it did and what it waits for.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::args::Global;
use crate::commands::list::status;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output::{self, table};
use crate::palette::Palette;
use crate::target::{Awaiting, Happened, Line, Run, Target, timeline};
use crate::words::{length, short};

/// Show a run: what it did, and what it waits for
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run's id
    run: String,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    run: Run,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    timeline: Vec<Line>,
    awaiting: Vec<Awaiting>,
}

pub(crate) async fn show(asked: Show, global: &Global) -> Result<Exit> {
    let shown = Target::with(&asked.place, async |target| {
        let (run, awaiting) = target.run(&asked.run).await?;
        let events = target.events(&asked.run, 0).await?;
        let (output, error) = end(&events);
        Ok(Shown { run, output, error, timeline: timeline(&events), awaiting })
    })
    .await?;
    output::one(global.output, &shown, for_people)?;
    Ok(Exit::Done)
}

/// How the run ended.
fn end(events: &[Happened]) -> (Option<Value>, Option<Value>) {
    match events.last() {
        Some(last) if last.kind == "RUN_FINISHED" => (last.payload.clone(), None),
        Some(last) if ["RUN_ERRORED", "RUN_CANCELLED", "RUN_TERMINATED"].contains(&last.kind.as_str()) => {
            (None, last.data.clone())
        }
        Some(_) | None => (None, None),
    }
}

fn for_people(shown: &Shown) -> String {
    let palette = Palette::stdout();
    let Run { run, workflow, version, status: word, created_at, finished_at, events, note, parked_at, .. } = &shown.run;
    let mut parts = vec![format!("{}  {workflow}  {}", palette.bold(run), status(palette, word))];
    let ended = finished_at.as_deref().map_or(String::new(), |at| format!(", ended {at}{}", took(created_at, at)));
    let parked = parked_at.as_deref().map_or(String::new(), |at| format!(", parked {at}"));
    parts.push(
        palette.dim(&format!("created {created_at}{ended}{parked}, {events} events, version {}", short(version, 13))),
    );
    parts.extend(note.iter().map(|note| palette.warn(note)));
    if !shown.timeline.is_empty() {
        let lines = shown.timeline.iter().map(|line| cells(line, created_at, palette));
        parts.push(format!("\n{}", table(&["AFTER", "OPERATION", "KIND", "STATE", "TOOK", ""], lines)));
    }
    if let Some(output) = &shown.output {
        parts.push(format!("\n{} {}", palette.dim("output"), serde_json::to_string_pretty(output).unwrap_or_default()));
    }
    if let Some(error) = &shown.error {
        parts.push(format!("\n{} {}", palette.bad("error"), serde_json::to_string_pretty(error).unwrap_or_default()));
    }
    if !shown.awaiting.is_empty() {
        let lines = shown.awaiting.iter().map(|open| {
            vec![open.r#type.clone(), open.key.clone(), open.name.clone().unwrap_or_default(), open.state.clone()]
        });
        parts.push(format!("\n{}", table(&["WAITS FOR", "OPERATION", "NAME", ""], lines)));
    }
    parts.join("\n")
}

fn cells(line: &Line, created_at: &str, palette: Palette) -> Vec<String> {
    let state = match line.state {
        "done" => palette.good(line.state),
        "failed" | "timed out" => palette.bad(line.state),
        other => palette.warn(other),
    };
    let took = line.ended_at.as_deref().and_then(|end| between(&line.began_at, end)).unwrap_or_default();
    let after = between(created_at, &line.began_at).unwrap_or_default();
    let error = line.error.as_deref().map_or(String::new(), |error| short(error, 100));
    vec![after, line.key.clone(), line.kind.clone(), state, took, error]
}

fn took(from: &str, to: &str) -> String {
    between(from, to).map_or(String::new(), |time| format!(" after {time}"))
}

fn between(from: &str, to: &str) -> Option<String> {
    let (from, to): (jiff::Timestamp, jiff::Timestamp) = (from.parse().ok()?, to.parse().ok()?);
    Some(length(to.duration_since(from).unsigned_abs()))
}
