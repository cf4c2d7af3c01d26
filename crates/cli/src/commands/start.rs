//! `outlast start`: starts a run where runs are driven, and `outlast put`, which tells it what can be started.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use outlast_server::dto;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::Api;
use crate::args::Global;
use crate::commands::mistakes;
use crate::commands::run::read_input;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note, pretty};
use crate::palette::Palette;
use crate::sources::Source;
use crate::words::{parse_length, shell};

/// How long one question waits for the end of a run.
const WAIT: Duration = Duration::from_secs(20);

/// Start a run of a workflow that the server has
#[derive(Debug, Args)]
#[command(
    after_help = "A server drives it: see OUTLAST_URL. Without one it is only put into the database, and goes on with \
                        `outlast run FILE --id ID`. `outlast put FILE` tells a server a workflow."
)]
pub(crate) struct Start {
    /// The workflow's name
    workflow: String,
    /// What it begins with: JSON, @FILE, or - for standard input
    #[arg(short, long, value_name = "JSON")]
    input: Option<String>,
    /// The run's id: the same id with the same input is the same run [default: a new one]
    #[arg(long)]
    id: Option<String>,
    /// Which version [default: the current one]
    #[arg(long)]
    version: Option<String>,
    /// A search attribute; may be said more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_attribute)]
    attribute: Vec<(String, String)>,
    /// Begin so much later
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    delay: Option<Duration>,
    /// Wait for its end, and print what it came to
    #[arg(short, long)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = parse_length, requires = "wait")]
    timeout: Option<Duration>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Tell a server a workflow: new runs begin with it
#[derive(Debug, Args)]
pub(crate) struct Put {
    /// Scripts (.wf) and flows (.flow.yaml)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

fn parse_attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("an attribute is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) async fn start(asked: Start, global: &Global) -> Result<Exit> {
    let input = read_input(asked.input.as_deref())?;
    let body = dto::StartRun {
        workflow: asked.workflow.clone(),
        input,
        id: asked.id.clone(),
        version: asked.version.clone(),
        attributes: asked.attribute.iter().cloned().collect(),
        delay_ms: asked.delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
        ..dto::StartRun::default()
    };
    Api::with(&asked.place, async |api| {
        let started: dto::Started = api.post(&["runs"], &body).await?;
        if asked.wait {
            return result(api, &started.run, asked.timeout, global).await;
        }
        output::one(global.output, &started, |started| started.run.clone())?;
        if global.output == Format::Table {
            let how = if started.new { "started" } else { "was there already" };
            note(&format!("{} {}: {how}", Palette::stderr().good("✓"), started.run));
        }
        Ok(Exit::Done)
    })
    .await
}

/// Waits for the end of a run, and prints what it came to.
async fn result(api: &Api, run: &str, timeout: Option<Duration>, global: &Global) -> Result<Exit> {
    let until = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let left = until.map_or(WAIT, |until| until.saturating_duration_since(Instant::now()).min(WAIT));
        let wait = [("wait_ms", left.as_millis().to_string())];
        let result: dto::RunResult = api.get(&["runs", run, "result"], &wait).await?;
        let exit = match result.status.as_str() {
            "completed" => Exit::Done,
            "failed" | "cancelled" => Exit::RunFailed,
            _ if until.is_some_and(|until| Instant::now() >= until) => Exit::Timeout,
            "parked" | "paused" => Exit::Timeout,
            _ => continue,
        };
        output::one(global.output, &result, |result| {
            result.output.as_ref().map_or(String::new(), |output| pretty(output.get()))
        })?;
        if let (Format::Table, Some(error)) = (global.output, &result.error) {
            note(&format!("{} {}: {}", Palette::stderr().bad(&result.status), error.code, error.message));
        } else if exit == Exit::Timeout {
            let message = format!("the run {run} is {}, and not over", result.status);
            return Err(Stop::new(exit, message).hint(format!("outlast explain {}", shell(run))).into());
        }
        return Ok(exit);
    }
}

pub(crate) async fn put(asked: Put, global: &Global) -> Result<Exit> {
    let sources = asked.files.iter().map(|file| Source::read(file)).collect::<Result<Vec<_>>>()?;
    for source in &sources {
        source.compile().map_err(mistakes)?;
    }
    Api::with(&asked.place, async |api| {
        let mut answers = Vec::new();
        for source in &sources {
            let body = json!({ "file": source.name(), "text": source.text });
            match api.write::<Value>(Method::PUT, &["workflows"], &body).await {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    // Those before it are put, and whoever asked must know.
                    output::many(global.output, &answers, |_| String::new())?;
                    return Err(error.context(format!("{} was not put", source.path.display())));
                }
            }
            if global.output == Format::Table {
                note(&format!("{} {}", Palette::stderr().good("✓"), source.path.display()));
            }
        }
        output::many(global.output, &answers, |_| String::new())?;
        Ok(Exit::Done)
    })
    .await
}
