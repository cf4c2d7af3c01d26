//! `outlast retry` and `skip`: what operators do to a flow's node, or to a task that has failed for good.

use anyhow::Result;
use clap::Args;
use outlast_server::dto;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::Global;
use crate::commands::done;
use crate::database::PlaceArgs;
use crate::exit::Exit;

/// Try a flow's node again, or a task that has failed for good
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["node", "task"])))]
pub(crate) struct Retry {
    /// The run's id
    #[arg(requires = "node")]
    run: Option<String>,
    /// The node's key, such as `ok` or `lines/47/label`
    node: Option<String>,
    /// A task's id, instead of a run and a node
    #[arg(long, value_name = "ID", conflicts_with = "run")]
    task: Option<String>,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Let a flow go on without a node
#[derive(Debug, Args)]
pub(crate) struct Skip {
    /// The run's id
    run: String,
    /// The node's key, such as `ok` or `lines/47/label`
    node: String,
    /// Why
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn retry(asked: Retry, global: &Global) -> Result<Exit> {
    let Retry { run, node, task, reason, place } = asked;
    Api::with(&place, async |api| match (run, node, task) {
        (_, _, Some(task)) => {
            let answer: Value = api.post(&["tasks", &task, "retry"], &json!({})).await?;
            told(global, &answer, &format!("{task}: it is tried again"))
        }
        (run, node, None) => {
            let body = dto::NodeRequest { node: node.unwrap_or_default(), reason };
            let run = run.unwrap_or_default();
            let answer: Value = api.post(&["runs", &run, "retry"], &body).await?;
            told(global, &answer, &format!("{run}: {} is tried again", body.node))
        }
    })
    .await
}

pub(crate) async fn skip(asked: Skip, global: &Global) -> Result<Exit> {
    let Skip { run, node, reason, place } = asked;
    Api::with(&place, async |api| {
        let body = dto::NodeRequest { node, reason };
        let answer: Value = api.post(&["runs", &run, "skip"], &body).await?;
        told(global, &answer, &format!("{run}: it goes on without {}", body.node))
    })
    .await
}

fn told(global: &Global, answer: &Value, what: &str) -> Result<Exit> {
    done(global, answer, what)?;
    Ok(Exit::Done)
}
