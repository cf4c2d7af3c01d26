//! One verb for many runs: they are counted first, and whoever asked says that these are meant.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use outlast::Status;
use outlast_server::dto;

use crate::api::Api;
use crate::args::Global;
use crate::commands::list::parse_status;
use crate::database::{Place, PlaceArgs};
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note};
use crate::palette::Palette;
use crate::target::{self, Target};

/// How often it is asked how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// Which runs, instead of one.
#[derive(Clone, Debug, Args)]
pub(crate) struct Which {
    /// Instead of a run: all that stand here; may be said more than once
    #[arg(long, value_parser = parse_status, value_name = "STATUS", conflicts_with = "run")]
    status: Vec<Status>,
    /// Instead of a run: all of this workflow
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    workflow: Option<String>,
    /// Instead of a run: all whose id begins so
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    prefix: Option<String>,
    /// Do not ask whether so many are meant
    #[arg(short, long)]
    yes: bool,
}

impl Which {
    /// The run that is meant; none if many are.
    pub(crate) fn one(&self, run: Option<String>) -> Result<Option<String>> {
        let many = !self.status.is_empty() || self.workflow.is_some() || self.prefix.is_some();
        match run {
            Some(run) => Ok(Some(run)),
            None if many => Ok(None),
            None => {
                let stop = Stop::new(Exit::Usage, "which run?");
                Err(stop.hint("name one; or say which with --status, --workflow or --prefix").into())
            }
        }
    }

    /// Does it to all of them. What it is called may be another thing for each: a run that is paused is resumed, and one that is
    /// parked unparked.
    pub(crate) async fn all(
        self,
        verb: &str,
        actions: &[&str],
        reason: String,
        place: &PlaceArgs,
        global: &Global,
    ) -> Result<Exit> {
        let request = |action: &str, dry_run: bool| dto::BulkRequest {
            action: action.to_owned(),
            status: self.status.iter().map(|status| status.name().to_owned()).collect(),
            workflow: self.workflow.clone(),
            prefix: self.prefix.clone(),
            reason: reason.clone(),
            dry_run,
            ..dto::BulkRequest::default()
        };
        let done = Api::with(place, async |api| {
            let (mut fitting, mut count) = (Vec::new(), 0);
            for action in actions {
                let counted: dto::BulkView = api.post(&["bulk"], &request(action, true)).await?;
                count += counted.matched;
                if counted.matched > 0 {
                    fitting.push(request(action, false));
                }
            }
            confirm(verb, count, self.yes)?;
            let mut done: Option<dto::BulkView> = None;
            for request in &fitting {
                let view = finish(api, request).await?;
                done = Some(done.map_or(view.clone(), |before| together(before, view)));
            }
            Ok(done)
        })
        .await?;
        if ["pause", "cancel"].contains(&verb) {
            let Which { status, workflow, prefix, .. } = self.clone();
            let which = target::Which { status, workflow, prefix, limit: usize::MAX };
            take_notice(place, &which).await?;
        }
        done.map_or(Ok(Exit::Done), |view| tell(&view, verb, global))
    }
}

/// In a database that nobody serves, runs are driven by whoever tells them to stop: as it is with one of them.
async fn take_notice(place: &PlaceArgs, which: &target::Which) -> Result<()> {
    match place.get()? {
        Place::Server(_) => Ok(()),
        Place::Database(_) => Target::with(place, async |target| target.take_notice(which).await).await,
    }
}

/// Waits until it is done to all of them.
async fn finish(api: &Api, request: &dto::BulkRequest) -> Result<dto::BulkView> {
    let mut view: dto::BulkView = api.post(&["bulk"], request).await?;
    let id = view.bulk.clone().unwrap_or_default();
    let mut looks = tokio::time::interval(LOOK);
    while view.state == "running" {
        looks.tick().await;
        view = api.get(&["bulk", &id], &[]).await?;
    }
    Ok(view)
}

/// Two of them as one, which has no id.
fn together(one: dto::BulkView, other: dto::BulkView) -> dto::BulkView {
    dto::BulkView {
        bulk: None,
        state: other.state,
        matched: one.matched + other.matched,
        done: one.done + other.done,
        refused: one.refused + other.refused,
        refusals: [one.refusals, other.refusals].concat(),
    }
}

fn runs(count: u64) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

/// The count comes first.
fn confirm(action: &str, count: u64, yes: bool) -> Result<()> {
    if count == 0 {
        return Err(Stop::new(Exit::NotFound, format!("no run fits that it makes sense to {action}")).into());
    }
    note(&format!("{} {}", runs(count), if count == 1 { "fits" } else { "fit" }));
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let stop = Stop::new(Exit::Usage, format!("{action} {}? There is nobody to ask", runs(count)));
        return Err(stop.hint("say --yes if these are meant").into());
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{action} {}? [y/N] ", runs(count));
    let _ = stderr.flush();
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    if line.trim().eq_ignore_ascii_case("y") || line.trim().eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    Err(Stop::new(Exit::Error, "nothing was done").into())
}

fn tell(view: &dto::BulkView, action: &str, global: &Global) -> Result<Exit> {
    output::one(global.output, view, |_| String::new())?;
    if global.output == Format::Table {
        let palette = Palette::stderr();
        note(&format!("{} {action}: {} told", palette.good("✓"), runs(view.done)));
        for refusal in &view.refusals {
            note(&format!("{} {}: {}", palette.bad("✗"), refusal.run, refusal.message));
        }
    }
    Ok(if view.refused == 0 { Exit::Done } else { Exit::Error })
}
