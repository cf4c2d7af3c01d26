//! `outlast trace`: where a script was after an event, and what its variables held.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use outlast_core::Bytes;
use outlast_core::id::Index;
use outlast_script::{RunInfo, Script, Trace as Traced, trace as look};
use serde::Serialize;
use serde_json::Value;

use crate::args::Global;
use crate::commands::mistakes;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::output;
use crate::palette::Palette;
use crate::sources::{Compiled, Source};
use crate::target::Target;

/// Show where a script was after an event, and what its variables held
#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// The run's id
    run: String,
    /// The script it began with
    file: PathBuf,
    /// After so many events [default: all]
    #[arg(long, value_name = "INDEX")]
    at: Option<u64>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Serialize)]
struct Shown {
    run: String,
    index: u64,
    events: usize,
    ended: bool,
    waiting: Vec<Call>,
}

#[derive(Serialize)]
struct Call {
    function: String,
    line: u32,
    source: String,
    operations: Vec<String>,
    variables: serde_json::Map<String, Value>,
}

pub(crate) async fn trace(asked: Trace, global: &Global) -> Result<Exit> {
    let script = read(&asked)?;
    let recording = Target::with(&asked.place, async |target| target.recording(&asked.run).await).await?;
    if recording.version().as_str() != script.version() {
        let message = format!("{} is not the text the run {} began with", asked.file.display(), asked.run);
        let hint = "take the file as it was then; `outlast replay` says whether another one could go on with the run";
        return Err(Stop::new(Exit::Error, message).hint(hint).into());
    }
    let journal = recording.events()?;
    let at = asked.at.unwrap_or(journal.len() as u64).min(journal.len() as u64);
    let info = RunInfo {
        run_id: asked.run.clone(),
        workflow: recording.workflow().to_string(),
        tokens: Arc::new(|key| format!("token of {key}")),
    };
    let written = serde_json::to_value(&recording)?;
    let input = Bytes::from(written["input"].to_string());
    let shown = shown(&asked.run, journal.len(), look(&script, info, input, &journal, Index(at)));
    output::one(global.output, &shown, for_people)?;
    Ok(Exit::Done)
}

fn read(asked: &Trace) -> Result<Script> {
    match Source::read(&asked.file)?.compile().map_err(mistakes)? {
        Compiled::Script(script) => Ok(script),
        Compiled::Flow(_) => {
            let stop = Stop::new(Exit::Usage, format!("{} is a flow, which has no variables", asked.file.display()));
            Err(stop
                .hint(format!("see where it stands: outlast graph {} --run {}", asked.file.display(), asked.run))
                .into())
        }
    }
}

fn shown(run: &str, events: usize, traced: Traced) -> Shown {
    let calls = traced.waiting.into_iter().map(|call| Call {
        function: call.function,
        line: call.position.line,
        source: call.line,
        operations: call.operations,
        variables: call
            .variables
            .into_iter()
            .map(|(name, text)| {
                let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                (name, value)
            })
            .collect(),
    });
    Shown { run: run.to_owned(), index: traced.index.0, events, ended: traced.end.is_some(), waiting: calls.collect() }
}

fn for_people(shown: &Shown) -> String {
    let palette = Palette::stdout();
    let place = format!("{}  after {} of {} events", palette.bold(&shown.run), shown.index, shown.events);
    let mut lines = vec![if shown.ended { format!("{place}: it has come to its end") } else { place }];
    for call in &shown.waiting {
        lines.push(format!("\n{} line {}: {}", palette.info(&call.function), call.line, palette.bold(&call.source)));
        if !call.operations.is_empty() {
            lines.push(format!("  waits for {}", call.operations.join(", ")));
        }
        lines.extend(call.variables.iter().map(|(name, value)| format!("  {} = {value}", palette.dim(name))));
    }
    lines.join("\n")
}
