//! `outlast retry` and `skip`: what operators do to a flow's node, to a task that has failed for good, or to runs that failed.

use anyhow::Result;
use clap::Args;
use outlast_server::dto;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::Global;
use crate::commands::bulk::Which;
use crate::commands::done;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::words::shell;

/// Try again: a flow's node, a task that has failed for good, or all runs that failed
#[derive(Debug, Args)]
#[command(
    after_help = "A run that has failed is not touched: a new one is made out of all that was recorded before what failed, and tries \
                        that again. `outlast fork RUN --failed` does so for one of them."
)]
pub(crate) struct Retry {
    /// The run's id
    run: Option<String>,
    /// The node's key, such as `ok` or `lines/47/label`
    node: Option<String>,
    /// A task's id, instead of a run and a node
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "status", "workflow", "prefix"])]
    task: Option<String>,
    #[command(flatten)]
    which: Which,
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
    let Retry { run, node, task, which, reason, place } = asked;
    if let Some(task) = task {
        let again = async |api: &Api| api.post(&["tasks", &task, "retry"], &json!({})).await;
        let answer: Value = Api::with(&place, again).await?;
        return told(global, &answer, &format!("{task}: it is tried again"));
    }
    let Some(run) = which.one(run)? else {
        return which.all("retry", &["retry"], reason.unwrap_or_default(), &place, global).await;
    };
    let Some(node) = node else {
        let hint = format!(
            "name a node of the flow; a run that has failed is tried again with `outlast fork {} --failed`",
            shell(&run)
        );
        return Err(Stop::new(Exit::Usage, format!("what of {run} is to be tried again?")).hint(hint).into());
    };
    let body = dto::NodeRequest { node, reason };
    let again = async |api: &Api| api.post(&["runs", &run, "retry"], &body).await;
    let answer: Value = Api::with(&place, again).await?;
    told(global, &answer, &format!("{run}: {} is tried again", body.node))
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
