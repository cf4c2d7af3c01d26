//! Starting a run, or going on with one.

use std::io::Read;

use anyhow::{Context, Result};
use outlast::{Attached, Engine, EngineError, RunView, Status, StoreError};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Run;
use crate::exit::{Exit, Stop};
use crate::output::note;
use crate::palette::Palette;
use crate::words::short;

/// How many other runs are named.
const OTHERS_SHOWN_MAX: usize = 3;

/// What is to be run.
pub(super) struct Wanted {
    pub(super) workflow: String,
    pub(super) version: String,
    pub(super) input: Option<Box<RawValue>>,
}

/// A run that has begun.
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) workflow: String,
    /// How many events were recorded before this process had it.
    pub(super) recorded: u64,
    /// It was there before.
    pub(super) is_old: bool,
    /// The file has changed since it began.
    pub(super) is_other_text: bool,
    pub(super) since: Instant,
}

/// Reads what a run begins with.
pub(crate) fn read_input(asked: Option<&str>) -> Result<Option<Box<RawValue>>> {
    let Some(asked) = asked else { return Ok(None) };
    let (text, place) = match (asked, asked.strip_prefix('@')) {
        ("-", _) => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
            (text, "standard input".to_owned())
        }
        (_, Some(file)) => {
            let unreadable = |error| Stop::new(Exit::NotFound, format!("{file}, the input, cannot be read: {error}"));
            (std::fs::read_to_string(file).map_err(unreadable)?, file.to_owned())
        }
        (text, None) => (text.to_owned(), "--input".to_owned()),
    };
    match serde_json::from_str(text.trim()) {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let stop = Stop::new(Exit::Usage, format!("{place} is not JSON: {error}: {}", short(&text, 60)));
            Err(stop
                .hint("write JSON, such as '{\"order\": 7}' or '\"text\"', or @FILE, or - for standard input")
                .into())
        }
    }
}

/// How it begins.
pub(super) enum Beginning {
    /// It goes on here.
    Runs(Begun, Attached),
    /// Somebody has to let it go on first.
    Rests(Begun, Box<RunView>),
}

/// Starts the run, or finds the one that has the id.
pub(super) async fn begin(engine: &Engine, asked: &Run, wanted: Wanted) -> Result<Beginning> {
    let since = Instant::now();
    if let Some(id) = &asked.id
        && let Some(view) = find(engine, id).await?
    {
        check_same(engine, asked, &wanted, &view).await?;
        let is_other_text = view.version.as_str() != wanted.version && !view.status.is_terminal();
        let workflow = wanted.workflow;
        let begun = Begun { id: id.clone(), workflow, recorded: view.next.0, is_old: true, is_other_text, since };
        if matches!(view.status, Status::Paused | Status::Parked) {
            return Ok(Beginning::Rests(begun, Box::new(view)));
        }
        return Ok(Beginning::Runs(begun, engine.run(id)?.attach()));
    }
    let id = asked.id.clone().unwrap_or_else(|| fresh(&wanted.workflow));
    // Before it begins: what it logs first is told once, to whoever is there.
    let attached = engine.run(&id)?.attach();
    engine.start(&wanted.workflow, &wanted.input).id(&id).await?;
    let begun = Begun { id, workflow: wanted.workflow, recorded: 0, is_old: false, is_other_text: false, since };
    Ok(Beginning::Runs(begun, attached))
}

/// A name that is short enough to be typed.
fn fresh(workflow: &str) -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{workflow}-{}", &random[..8])
}

async fn find(engine: &Engine, id: &str) -> Result<Option<RunView>> {
    match engine.run(id)?.view().await {
        Ok(view) => Ok(Some(view)),
        Err(EngineError::Store(StoreError::NotFound(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The run is there: it must be the one that is meant.
async fn check_same(engine: &Engine, asked: &Run, wanted: &Wanted, view: &RunView) -> Result<()> {
    let id = &view.run.id;
    if view.workflow.as_str() != wanted.workflow {
        let message = format!("the run {id} is one of {:?}, and not of {:?}", view.workflow.as_str(), wanted.workflow);
        return Err(Stop::new(Exit::Error, message).hint("use another --id, or the file it began with").into());
    }
    if wanted.input.is_some() {
        // The same start again: only another input is refused.
        engine.start(&wanted.workflow, &wanted.input).id(id.as_str()).version(view.version.as_str()).await.map_err(
            |error| match error {
                EngineError::Store(StoreError::Exists { .. }) => {
                    let message = format!("the run {id} began with another input");
                    let hint = format!("go on without --input: {}; or use another --id", asked.again(id.as_str()));
                    anyhow::Error::from(Stop::new(Exit::Error, message).hint(hint))
                }
                error => error.into(),
            },
        )?;
    }
    Ok(())
}

/// Says what is run.
pub(super) async fn tell(engine: &Engine, begun: &Begun) -> Result<()> {
    let palette = Palette::stderr();
    let Begun { id, workflow, recorded, .. } = begun;
    let how = match (begun.is_old, recorded) {
        (false, _) => String::new(),
        (true, 0) => " goes on".to_owned(),
        (true, 1) => " goes on after 1 recorded event".to_owned(),
        (true, events) => format!(" goes on after {events} recorded events"),
    };
    note(&format!("{} {}{how}", palette.bold(workflow), palette.dim(&format!("run {id}"))));
    if begun.is_other_text {
        let line = "the file has changed since the run began; it goes on with the text it began with";
        note(&format!("{} {line}", palette.warn("note:")));
    }
    tell_others(engine, begun).await
}

/// Whoever opens a database drives what is in it: nobody should be surprised by that.
async fn tell_others(engine: &Engine, begun: &Begun) -> Result<()> {
    let open = engine.list().status(Status::Queued).status(Status::Running).status(Status::Waiting).await?;
    let others = open.runs.iter().filter(|run| run.parent.is_none() && run.run.id.as_str() != begun.id);
    let names: Vec<&str> = others.map(|run| run.run.id.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let shown = names.iter().take(OTHERS_SHOWN_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = if names.len() > OTHERS_SHOWN_MAX { ", …" } else { "" };
    let count = if names.len() == 1 { "another run".to_owned() } else { format!("{} other runs", names.len()) };
    let line = format!("{count} of this database can go on meanwhile: {shown}{more}");
    note(&format!("{} {line}", Palette::stderr().dim("note:")));
    Ok(())
}
