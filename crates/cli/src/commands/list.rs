//! `outlast list`: runs, the newest first.

use anyhow::Result;
use clap::Args;
use outlast::Status;

use crate::args::Global;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output::{self, table};
use crate::palette::Palette;
use crate::target::{Run, Target, Which};

/// List runs, the newest first
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those that stand here; may be said more than once
    #[arg(long, value_parser = parse_status, value_name = "STATUS")]
    status: Vec<Status>,
    /// Only those of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only those whose id begins so
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) fn parse_status(text: &str) -> Result<Status, String> {
    let names = || Status::ALL.map(Status::name).join(", ");
    Status::ALL.into_iter().find(|status| status.name() == text).ok_or_else(|| format!("a run is {}", names()))
}

pub(crate) async fn list(asked: List, global: &Global) -> Result<Exit> {
    let List { status, workflow, prefix, limit, place } = asked;
    let which = Which { status, workflow, prefix, limit: usize::try_from(limit).unwrap_or(usize::MAX) };
    let runs = Target::with(&place, async |target| target.list(&which).await).await?;
    output::many(global.output, &runs, for_people)?;
    if runs.is_empty() && global.output == output::Format::Table {
        output::note("there are no such runs");
    }
    Ok(Exit::Done)
}

fn for_people(runs: &[Run]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let palette = Palette::stdout();
    let lines = runs.iter().map(|run| {
        let ended = run.finished_at.clone().unwrap_or_default();
        vec![run.run.clone(), run.workflow.clone(), status(palette, &run.status), run.created_at.clone(), ended]
    });
    table(&["RUN", "WORKFLOW", "STATUS", "CREATED", "ENDED"], lines)
}

/// A status in its colour.
pub(crate) fn status(palette: Palette, status: &str) -> String {
    match status {
        "completed" => palette.good(status),
        "failed" | "cancelled" | "parked" => palette.bad(status),
        "waiting" | "paused" => palette.warn(status),
        _ => palette.info(status),
    }
}
