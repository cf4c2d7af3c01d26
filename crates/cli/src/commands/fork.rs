//! `outlast fork`: a new run that begins in the middle of another one's history.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::Global;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::output;
use crate::palette::Palette;
use crate::target::{Cut, Forked, Target};

/// Make a new run out of the beginning of another one's history
#[derive(Debug, Args)]
#[command(
    after_help = "What is recorded before the cut is not done again. `outlast events RUN` shows the indices. The new run goes on \
                        with `outlast run FILE --id NEW`."
)]
#[command(group(clap::ArgGroup::new("cut").required(true).args(["at", "node", "failed"])))]
pub(crate) struct Fork {
    /// The run's id
    run: String,
    /// How many events to keep
    #[arg(long, value_name = "INDEX")]
    at: Option<u64>,
    /// Of a flow: the node to begin with again
    #[arg(long, value_name = "KEY")]
    node: Option<String>,
    /// Of a run that has failed: keep all before what failed, and try that again
    #[arg(long)]
    failed: bool,
    /// The new run's id [default: a new one]
    #[arg(long)]
    id: Option<String>,
    /// Another input, as JSON
    #[arg(short, long, value_name = "JSON")]
    input: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn fork(asked: Fork, global: &Global) -> Result<Exit> {
    let Fork { run, at, node, failed, id, input, place } = asked;
    let input: Option<Value> = match input {
        Some(text) => Some(
            serde_json::from_str(&text)
                .map_err(|error| Stop::new(Exit::Usage, format!("--input is not JSON: {error}")))?,
        ),
        None => None,
    };
    let forked: Forked = if failed {
        let mut body = json!({ "failed": true, "id": id });
        if let Some(input) = input {
            body["input"] = input;
        }
        Api::with(&place, async |api| api.post(&["runs", &run, "fork"], &body).await).await?
    } else {
        Target::with(&place, async |target| target.fork(&run, Cut { at, node, id, input }).await).await?
    };
    output::one(global.output, &forked, for_people)?;
    Ok(Exit::Done)
}

fn for_people(forked: &Forked) -> String {
    let palette = Palette::stdout();
    let again = forked.reissued.iter().map(|open| format!("  {} {} is asked for again", open.kind, open.key));
    std::iter::once(format!("{} {}", palette.good("✓"), forked.run)).chain(again).collect::<Vec<_>>().join("\n")
}
