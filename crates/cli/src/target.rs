//! Where runs are, for the commands that look at them and talk to them. Each verb is asked of a [`Target`] and written once:
//! whoever adds another way to reach runs adds a variant here, and no command changes.

mod data;
mod local;
mod remote;
mod timeline;

use std::time::Duration;

use anyhow::Result;
use outlast_flow::Position;

pub(crate) use data::{Approval, Awaiting, Explained, Forked, Happened, Run, Told};
use local::Local;
use remote::Remote;
pub(crate) use timeline::{Line, timeline};

use crate::api::Api;
use crate::database::{Place, PlaceArgs};
use crate::exit::{Exit, Stop};

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
    /// Behind a server.
    Remote(Remote),
}

/// Asks whichever it is.
macro_rules! ask {
    ($target:expr, $place:ident => $question:expr) => {
        match $target {
            Target::Local($place) => $question.await,
            Target::Remote($place) => $question.await,
        }
    };
}

impl Target {
    /// Opens it, asks, and closes it again.
    pub(crate) async fn with<T>(place: &PlaceArgs, ask: impl AsyncFnOnce(&Target) -> Result<T>) -> Result<T> {
        let target = match place.get()? {
            Place::Database(database) => Target::Local(Local::open(&database).await?),
            Place::Server(url) => Target::Remote(Remote::new(Api::new(url, std::env::var("OUTLAST_TOKEN").ok())?)),
        };
        let answer = ask(&target).await;
        match target {
            Target::Local(local) => local.close().await,
            Target::Remote(_) => {}
        }
        answer
    }

    /// Runs, the newest first.
    pub(crate) async fn list(&self, which: &Which) -> Result<Vec<Run>> {
        ask!(self, place => place.list(which))
    }

    /// One run, and what it waits for.
    pub(crate) async fn run(&self, run: &str) -> Result<(Run, Vec<Awaiting>)> {
        ask!(self, place => place.run(run))
    }

    /// Its journal, from an index on.
    pub(crate) async fn events(&self, run: &str, from: u64) -> Result<Vec<Happened>> {
        ask!(self, place => place.events(run, from))
    }

    /// Its recorded journal, to replay.
    pub(crate) async fn recording(&self, run: &str) -> Result<outlast::Recording> {
        ask!(self, place => place.recording(run))
    }

    /// Why it stands where it stands.
    pub(crate) async fn explain(&self, run: &str) -> Result<Explained> {
        ask!(self, place => place.explain(run))
    }

    /// Where a run of a flow stands.
    pub(crate) async fn position(&self, run: &str) -> Result<Position> {
        ask!(self, place => place.position(run))
    }

    /// What somebody has to decide; of one run, or of all.
    pub(crate) async fn approvals(&self, run: Option<&str>) -> Result<Vec<Approval>> {
        ask!(self, place => place.approvals(run))
    }

    /// Tells a run something. It is durable when this returns.
    pub(crate) async fn tell(&self, run: &str, tell: Tell) -> Result<Told> {
        ask!(self, place => place.tell(run, tell))
    }

    /// Lets runs take notice at once of what they were told, if nobody else does.
    pub(crate) async fn take_notice(&self, which: &Which) -> Result<()> {
        match self {
            Target::Local(local) => local.take_notice(which).await,
            Target::Remote(_) => Ok(()),
        }
    }

    /// Makes a new run out of the beginning of another one.
    pub(crate) async fn fork(&self, run: &str, cut: Cut) -> Result<Forked> {
        ask!(self, place => place.fork(run, cut))
    }
}

/// The approval that is meant where none is named: the one that is open.
fn one_of(run: &str, open: &[Approval]) -> Result<String> {
    match open {
        [only] => Ok(only.approval.clone()),
        [] => {
            let stop = Stop::new(Exit::NotFound, format!("the run {run} waits for no approval"));
            Err(stop.hint(format!("`outlast explain {run}` says what it waits for")).into())
        }
        several => {
            let ids: Vec<String> = several.iter().map(|open| format!("{} ({})", open.approval, open.title)).collect();
            let stop = Stop::new(Exit::Usage, format!("the run {run} waits for {} approvals", ids.len()));
            Err(stop.hint(format!("name one of {}", ids.join(", "))).into())
        }
    }
}
