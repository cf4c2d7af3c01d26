//! `outlast replay` and `outlast check-replay`: would this text go on with what is recorded? Nothing is run and nothing is
//! changed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use outlast::{Checker, Outlast, Recording, ReplayError, Status};
use serde::Serialize;

use crate::args::Global;
use crate::commands::mistakes;
use crate::database::PlaceArgs;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note};
use crate::palette::Palette;
use crate::sources::{Source, Style};
use crate::target::{Target, Which};

/// How many runs are looked at.
const RUNS_MAX: usize = 100_000;

/// Replay a recorded run with the text of a file: nothing is run, nothing is changed
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run's id
    run: String,
    /// The script or flow to replay it with
    file: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Replay every run that has not ended with new texts, before a deploy
#[derive(Debug, Args)]
#[command(
    after_help = "Runs stay with the text they began with: this says which of them new texts could also go on with. Exits with 5 at \
                        a divergence."
)]
pub(crate) struct CheckReplay {
    /// The new scripts and flows
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// What a replay came to.
#[derive(Serialize)]
struct Verdict {
    run: String,
    workflow: String,
    /// `replayed` or `diverged`.
    outcome: &'static str,
    /// How many events are recorded.
    events: usize,
    /// Whether the text came to its end.
    ended: bool,
    /// Where the two part.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A text to replay with.
struct Text {
    workflows: Vec<String>,
    version: String,
    checker: Checker,
}

impl Text {
    fn read(path: &Path) -> Result<Text> {
        let source = Source::read(path)?;
        let compiled = source.compile().map_err(mistakes)?;
        let engine = match source.style {
            Style::Script => Outlast::memory().script(&source.name(), &source.text),
            Style::Flow => Outlast::memory().flow(&source.name(), &source.text),
        };
        Ok(Text { workflows: compiled.workflows(), version: compiled.version().to_owned(), checker: engine.checker() })
    }

    fn replay(&self, recording: &Recording) -> Result<Verdict> {
        let (run, workflow) = (recording.run().id.to_string(), recording.workflow().to_string());
        let events = recording.len();
        // As if it had begun with this text.
        let mut written = serde_json::to_value(recording)?;
        written["version"] = self.version.clone().into();
        let checked = self.checker.check(&serde_json::from_value(written)?);
        Ok(match checked {
            Ok(replayed) => {
                let (outcome, ended) = ("replayed", replayed.ended);
                Verdict { run, workflow, outcome, events, ended, index: None, problem: None }
            }
            Err(error) => {
                let index = match &error {
                    ReplayError::Diverged(divergence) => Some(divergence.index.0),
                    _ => None,
                };
                let problem = Some(match &error {
                    // What to do about it is another matter for a text that nothing began with.
                    ReplayError::Diverged(divergence) => divergence.to_string(),
                    error => error.to_string(),
                });
                Verdict { run, workflow, outcome: "diverged", events, ended: false, index, problem }
            }
        })
    }
}

pub(crate) async fn replay(asked: Replay, global: &Global) -> Result<Exit> {
    let text = Text::read(&asked.file)?;
    let recording = Target::with(&asked.place, async |target| target.recording(&asked.run).await).await?;
    if !text.workflows.iter().any(|name| name == recording.workflow().as_str()) {
        let message = format!("the run {} is one of {:?}", asked.run, recording.workflow().as_str());
        let hint = format!("{} has {}", asked.file.display(), text.workflows.join(", "));
        return Err(Stop::new(Exit::NotFound, message).hint(hint).into());
    }
    let verdict = text.replay(&recording)?;
    output::one(global.output, &verdict, |verdict| for_people(std::slice::from_ref(verdict)))?;
    Ok(exit(std::slice::from_ref(&verdict)))
}

pub(crate) async fn check_replay(asked: CheckReplay, global: &Global) -> Result<Exit> {
    let texts = asked.files.iter().map(|file| Text::read(file)).collect::<Result<Vec<_>>>()?;
    let verdicts = Target::with(&asked.place, async |target| {
        let mut verdicts = Vec::new();
        for text in &texts {
            for workflow in &text.workflows {
                let status = Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect();
                let which = Which { status, workflow: Some(workflow.clone()), limit: RUNS_MAX, ..Which::default() };
                for run in target.list(&which).await? {
                    verdicts.push(text.replay(&target.recording(&run.run).await?)?);
                }
            }
        }
        Ok(verdicts)
    })
    .await?;
    output::many(global.output, &verdicts, for_people)?;
    if global.output == Format::Table {
        let diverged = verdicts.iter().filter(|verdict| verdict.problem.is_some()).count();
        note(&format!(
            "{} of {} runs that have not ended can go on with the new text",
            verdicts.len() - diverged,
            verdicts.len()
        ));
    }
    Ok(exit(&verdicts))
}

fn exit(verdicts: &[Verdict]) -> Exit {
    if verdicts.iter().any(|verdict| verdict.problem.is_some()) { Exit::RunFailed } else { Exit::Done }
}

fn for_people(verdicts: &[Verdict]) -> String {
    let palette = Palette::stdout();
    let line = |verdict: &Verdict| match &verdict.problem {
        None => {
            let end = if verdict.ended { ", to its end" } else { "" };
            let events = if verdict.events == 1 { "1 event".to_owned() } else { format!("{} events", verdict.events) };
            format!("{} {}  {events} replayed{end}", palette.good("✓"), verdict.run)
        }
        Some(problem) => format!("{} {}  {problem}", palette.bad("✗"), verdict.run),
    };
    verdicts.iter().map(line).collect::<Vec<_>>().join("\n")
}
