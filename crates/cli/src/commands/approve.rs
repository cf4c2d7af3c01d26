//! `outlast approve`, `deny` and `approvals`: what somebody has to decide.

use anyhow::Result;
use clap::Args;

use crate::args::Global;
use crate::commands::run::who;
use crate::commands::told;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output::{self, table};
use crate::target::{Approval, Target, Tell};

/// Decide an approval
#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The run's id
    run: String,
    /// The approval's id [default: the one that is open]
    approval: Option<String>,
    /// What you say about it
    #[arg(short, long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Who decides
    #[arg(long, value_name = "NAME", default_value_t = who().unwrap_or_default())]
    by: String,
    #[command(flatten)]
    place: PlaceArgs,
}

/// List what somebody has to decide
#[derive(Debug, Args)]
pub(crate) struct Approvals {
    /// Only those of this run
    run: Option<String>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn decide(asked: Decide, approved: bool, global: &Global) -> Result<Exit> {
    let Decide { run, approval, feedback, by, place } = asked;
    let by = Some(by).filter(|by| !by.is_empty());
    let tell = Tell::Decide { approval, approved, by, feedback };
    let answer = Target::with(&place, async |target| target.tell(&run, tell).await).await?;
    told(global, &answer, if approved { "approved" } else { "denied" }, &place)
}

pub(crate) async fn approvals(asked: Approvals, global: &Global) -> Result<Exit> {
    let open = Target::with(&asked.place, async |target| target.approvals(asked.run.as_deref()).await).await?;
    output::many(global.output, &open, for_people)?;
    if open.is_empty() && global.output == output::Format::Table {
        output::note("nobody has to decide anything");
    }
    Ok(Exit::Done)
}

fn for_people(open: &[Approval]) -> String {
    if open.is_empty() {
        return String::new();
    }
    let lines = open.iter().map(|open| {
        let (assignee, until) = (open.assignee.clone().unwrap_or_default(), open.until.clone().unwrap_or_default());
        vec![open.run.clone(), open.approval.clone(), open.title.clone(), assignee, until]
    });
    table(&["RUN", "APPROVAL", "TITLE", "FOR", "UNTIL"], lines)
}
