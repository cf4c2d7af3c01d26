//! Where runs are, for the commands that look at them and talk to them. Each verb is asked of a [`Target`] and written once:
//! whoever adds another way to reach runs adds a variant here, and no command changes.

mod data;
mod local;
mod timeline;

use std::time::Duration;

use anyhow::Result;
use outlast_flow::Position;

pub(crate) use data::{Approval, Awaiting, Explained, Forked, Happened, Run, Told};
use local::Local;
pub(crate) use timeline::{Line, timeline};

use crate::database::DatabaseArgs;

/// How often it is looked for what is new.
pub(crate) const FOLLOW: Duration = Duration::from_millis(300);

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Which {
    pub(crate) status: Vec<outlast::Status>,
    pub(crate) workflow: Option<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) limit: usize,
}

/// What a run is told.
#[derive(Clone, Debug)]
pub(crate) enum Tell {
    Signal { name: String, payload: serde_json::Value, id: Option<String>, operation: Option<String> },
    Decide { approval: Option<String>, approved: bool, by: Option<String>, feedback: Option<String> },
    Pause { reason: String },
    Resume { message: Option<serde_json::Value> },
    Cancel { reason: String },
    Terminate { reason: String },
}

/// How a run is forked.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) at: Option<u64>,
    pub(crate) node: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) input: Option<serde_json::Value>,
}

/// Where runs are.
pub(crate) enum Target {
    /// In a database that this process opens itself.
    Local(Local),
}

impl Target {
    /// Opens it, asks, and closes it again.
    pub(crate) async fn with<T>(database: &DatabaseArgs, ask: impl AsyncFnOnce(&Target) -> Result<T>) -> Result<T> {
        let target = Target::Local(Local::open(&database.get()).await?);
        let answer = ask(&target).await;
        let Target::Local(local) = target;
        local.close().await;
        answer
    }

    /// Runs, the newest first.
    pub(crate) async fn list(&self, which: &Which) -> Result<Vec<Run>> {
        let Target::Local(local) = self;
        local.list(which).await
    }

    /// One run, and what it waits for.
    pub(crate) async fn run(&self, run: &str) -> Result<(Run, Vec<Awaiting>)> {
        let Target::Local(local) = self;
        local.run(run).await
    }

    /// Its journal, from an index on.
    pub(crate) async fn events(&self, run: &str, from: u64) -> Result<Vec<Happened>> {
        let Target::Local(local) = self;
        local.events(run, from).await
    }

    /// Its recorded journal, to replay.
    pub(crate) async fn recording(&self, run: &str) -> Result<outlast::Recording> {
        let Target::Local(local) = self;
        local.recording(run).await
    }

    /// Why it stands where it stands.
    pub(crate) async fn explain(&self, run: &str) -> Result<Explained> {
        let Target::Local(local) = self;
        local.explain(run).await
    }

    /// Where a run of a flow stands.
    pub(crate) async fn position(&self, run: &str) -> Result<Position> {
        let Target::Local(local) = self;
        local.position(run).await
    }

    /// What somebody has to decide; of one run, or of all.
    pub(crate) async fn approvals(&self, run: Option<&str>) -> Result<Vec<Approval>> {
        let Target::Local(local) = self;
        local.approvals(run).await
    }

    /// Tells a run something. It is durable when this returns.
    pub(crate) async fn tell(&self, run: &str, tell: Tell) -> Result<Told> {
        let Target::Local(local) = self;
        local.tell(run, tell).await
    }

    /// Makes a new run out of the beginning of another one.
    pub(crate) async fn fork(&self, run: &str, cut: Cut) -> Result<Forked> {
        let Target::Local(local) = self;
        local.fork(run, cut).await
    }
}
