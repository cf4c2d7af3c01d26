//! `outlast events`: a run's journal.

use anyhow::Result;
use clap::Args;
use tokio::time::interval;

use crate::args::Global;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::palette::Palette;
use crate::target::{FOLLOW, Happened, Target};
use crate::words::short;

/// Print a run's journal
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// The run's id
    run: String,
    /// From this index on
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    from: u64,
    /// Go on until the run ends, or rests
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn events(asked: Events, global: &Global) -> Result<Exit> {
    Target::with(&asked.place, async |target| {
        let mut from = asked.from;
        let mut looks = interval(FOLLOW);
        loop {
            looks.tick().await;
            // The run first: what it says must not be newer than what is read.
            let (run, _) = target.run(&asked.run).await?;
            let rests = ["completed", "failed", "cancelled", "paused", "parked"].contains(&run.status.as_str());
            let is_last = !asked.follow || rests;
            let found =
                if from < run.events || !asked.follow { target.events(&asked.run, from).await? } else { Vec::new() };
            from += found.len() as u64;
            // One value cannot be printed in parts.
            let format = if asked.follow && global.output == Format::Json { Format::Jsonl } else { global.output };
            if !found.is_empty() || !asked.follow {
                output::many(format, &found, for_people)?;
            }
            if is_last {
                return Ok(Exit::Done);
            }
        }
    })
    .await
}

fn for_people(events: &[Happened]) -> String {
    let palette = Palette::stdout();
    let line = |event: &Happened| {
        let key = event.key.as_deref().unwrap_or_default();
        let payload = event.payload.as_ref().map_or(String::new(), |payload| short(&payload.to_string(), 80));
        let (at, index) = (palette.dim(&event.at), event.index);
        format!("{index:>5}  {at}  {:<24} {key:<24} {payload}", event.kind).trim_end().to_owned()
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}
