//! `outlast graph`: draws a flow.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use outlast_flow::{Picture, Position, render};

use crate::args::Global;
use crate::commands::mistakes;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format};
use crate::sources::{Compiled, Source};
use crate::target::Target;

/// Draw a flow, as Mermaid or DOT
#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// A flow (.flow.yaml)
    file: PathBuf,
    /// What it is written in
    #[arg(long, value_enum, default_value_t = Language::Mermaid, value_name = "LANGUAGE")]
    r#as: Language,
    /// With how every node of a run stands
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// What Markdown viewers draw.
    Mermaid,
    /// What Graphviz draws.
    Dot,
}

pub(crate) async fn graph(asked: Graph, global: &Global) -> Result<Exit> {
    let source = Source::read(&asked.file)?;
    let flow = match source.compile().map_err(mistakes)? {
        Compiled::Flow(flow) => flow,
        Compiled::Script(_) => {
            let message = format!("{} is a script, and only flows are graphs", asked.file.display());
            return Err(Stop::new(Exit::Usage, message).hint("name a file that ends in .flow.yaml").into());
        }
    };
    let position: Option<Position> = match &asked.run {
        Some(run) => Some(Target::with(&asked.place, async |target| target.position(run).await).await?),
        None => None,
    };
    let picture = match asked.r#as {
        Language::Mermaid => Picture::Mermaid,
        Language::Dot => Picture::Dot,
    };
    let drawn = render(&flow, position.as_ref(), picture);
    match global.output {
        Format::Table => output::print(&drawn),
        format => output::one(format, &serde_json::json!({ "flow": flow.name(), "graph": drawn }), |_| String::new())?,
    }
    Ok(Exit::Done)
}
