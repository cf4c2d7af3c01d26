//! `outlast signal`: sends a run a signal.

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::args::Global;
use crate::commands::told;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::target::{Target, Tell};

/// Send a run a signal: it is kept until the run waits for it
#[derive(Debug, Args)]
pub(crate) struct Signal {
    /// The run's id
    run: String,
    /// The signal's name
    name: String,
    /// What it says, as JSON
    #[arg(default_value = "null", value_name = "JSON")]
    payload: String,
    /// The same id is applied once for the life of the run [default: a new one]
    #[arg(long)]
    id: Option<String>,
    /// For this operation and no other, by its key
    #[arg(long, value_name = "KEY")]
    operation: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn signal(asked: Signal, global: &Global) -> Result<Exit> {
    let Signal { run, name, payload, id, operation, place } = asked;
    let payload: Value = serde_json::from_str(&payload).map_err(|error| {
        let stop = Stop::new(Exit::Usage, format!("the payload is not JSON: {error}"));
        stop.hint(format!("a text has quotes of its own: '\"{payload}\"'"))
    })?;
    let tell = Tell::Signal { name, payload, id, operation };
    let answer = Target::with(&place, async |target| target.tell(&run, tell).await).await?;
    told(global, &answer, "the signal is kept for it", &place)
}
