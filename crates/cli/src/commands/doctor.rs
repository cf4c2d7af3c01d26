//! `outlast doctor` and `workers`: is everything in order, and who works?

use anyhow::Result;
use clap::Args;
use outlast_server::dto;

use crate::api::Api;
use crate::args::Global;
use crate::database::PlaceArgs;
use crate::exit::Exit;
use crate::output::{self, table};
use crate::palette::Palette;

/// Look for runs that nothing would ever move again
#[derive(Debug, Args)]
#[command(
    after_help = "Without a server, whoever repairs has the database meanwhile, and drives the runs there as far as it can: as \
                        `outlast run` does."
)]
pub(crate) struct Doctor {
    /// Repair what the journals prove
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// List who works: which tasks each can do, and which it does
#[derive(Debug, Args)]
pub(crate) struct Workers {
    #[command(flatten)]
    place: PlaceArgs,
}

pub(crate) async fn doctor(asked: Doctor, global: &Global) -> Result<Exit> {
    let request = dto::DoctorRequest { repair: asked.repair };
    let ask = async |api: &Api| api.post(&["doctor"], &request).await;
    let report: dto::DoctorReport =
        if asked.repair { Api::with_driver(&asked.place, ask).await? } else { Api::with(&asked.place, ask).await? };
    output::one(global.output, &report, for_people)?;
    Ok(if report.healthy { Exit::Done } else { Exit::Error })
}

fn for_people(report: &dto::DoctorReport) -> String {
    let palette = Palette::stdout();
    let sign = |good: bool| if good { palette.good("✓") } else { palette.bad("✗") };
    let found = report.findings.iter().map(|finding| {
        let end = match (&finding.refused, finding.repaired) {
            (Some(why), _) => format!("; not repaired: {why}"),
            (None, true) => "; repaired".to_owned(),
            (None, false) => String::new(),
        };
        format!("{} {}  {}{end}", sign(finding.repaired), finding.run, finding.ailment)
    });
    let runs = if report.runs == 1 { "1 run".to_owned() } else { format!("{} runs", report.runs) };
    let last = match (report.findings.is_empty(), report.healthy) {
        (true, _) => format!("{} {runs} looked at, and nothing is wrong", sign(true)),
        (false, true) => format!("{} {runs} looked at, and what was wrong is repaired", sign(true)),
        (false, false) => {
            format!("{} {runs} looked at; `outlast doctor --repair` repairs what the journals prove", sign(false))
        }
    };
    found.chain([last]).collect::<Vec<_>>().join("\n")
}

pub(crate) async fn workers(asked: Workers, global: &Global) -> Result<Exit> {
    let found: dto::WorkerList = Api::with(&asked.place, async |api| api.get(&["workers"], &[]).await).await?;
    output::many(global.output, &found.workers, |workers| {
        let lines = workers.iter().map(|worker| {
            let holds: Vec<String> = worker.holds.iter().map(|held| held.task.clone()).collect();
            vec![
                worker.worker.clone(),
                worker.queues.join(","),
                worker.tasks.join(","),
                worker.seen.clone(),
                holds.join(","),
            ]
        });
        table(&["WORKER", "QUEUES", "TASKS", "SEEN", "DOES"], lines)
    })?;
    Ok(Exit::Done)
}
