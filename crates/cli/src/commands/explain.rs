//! `outlast explain`: why a run stands where it stands.

use anyhow::Result;
use clap::Args;

use crate::args::Global;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output;
use crate::target::Target;

/// Say why a run stands where it stands, and what would move it
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The run's id
    run: String,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn explain(asked: Explain, global: &Global) -> Result<Exit> {
    let explained = Target::with(&asked.place, async |target| target.explain(&asked.run).await).await?;
    output::one(global.output, &explained, |explained| explained.text.clone())?;
    Ok(Exit::Done)
}
