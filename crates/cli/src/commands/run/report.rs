//! What became of a run.

use std::time::Duration;

use anyhow::Result;
use outlast::{Event, Failure, RunView, Status};
use serde::Serialize;
use serde_json::value::RawValue;

use super::begin::Begun;
use crate::exit::Exit;
use crate::output::{self, Format, note, pretty};
use crate::palette::Palette;
use crate::progress::What;
use crate::words::{length, shell};

/// What became of a run, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    run: String,
    workflow: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Problem>,
    #[serde(skip)]
    exit: Exit,
}

/// Why there is no output.
#[derive(Debug, Serialize)]
struct Problem {
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
}

impl Report {
    /// The run ended.
    pub(super) fn ended(begun: &Begun, end: &Event) -> Report {
        let cancelled = |reason: &Option<String>| {
            Some(Failure::cancelled(reason.clone().unwrap_or_else(|| "it was cancelled".to_owned())))
        };
        let (status, output, failure) = match end {
            Event::RunFinished { output } => (Status::Completed, json(output), None),
            Event::RunErrored { error } => (Status::Failed, None, Some(error.clone())),
            Event::RunCancelled { reason } | Event::RunTerminated { reason, .. } => {
                (Status::Cancelled, None, cancelled(reason))
            }
            other => (Status::Failed, None, Some(Failure::new("error", format!("it ended with {}", other.kind())))),
        };
        let error = failure.map(|failure| Problem {
            code: failure.code,
            message: failure.message,
            data: failure.data.and_then(json),
        });
        let exit = if error.is_none() { Exit::Done } else { Exit::RunFailed };
        Report { run: begun.id.clone(), workflow: begun.workflow.clone(), status: status.name(), output, error, exit }
    }

    /// The run is not over.
    pub(super) fn open(begun: &Begun, status: Status, code: &str, message: &str) -> Report {
        let exit = match code {
            "interrupted" => Exit::Interrupted,
            "timeout" | "waiting" => Exit::Timeout,
            _ => Exit::Error,
        };
        let error = Problem { code: code.to_owned(), message: message.to_owned(), data: None };
        let (run, workflow) = (begun.id.clone(), begun.workflow.clone());
        Report { run, workflow, status: status.name(), output: None, error: Some(error), exit }
    }

    /// What is said at the end, for people.
    pub(super) fn last_words(&self, palette: Palette, took: Duration, flag: &str) -> String {
        let took = palette.dim(&length(took));
        let Some(error) = &self.error else {
            return format!("{} {} {took}", palette.good("✓"), palette.bold(self.status));
        };
        let data = error.data.as_ref().map_or(String::new(), |data| format!("\n  {}", palette.dim(data.get())));
        let (sign, status) = (palette.bad("✗"), palette.bold(self.status));
        let said = format!("{sign} {status} {took}\n  {}: {}{data}", palette.bad(&error.code), error.message);
        format!("{said}\n{} outlast show {}{flag}", palette.dim("  what it did:"), shell(&self.run))
    }

    /// Prints it; for people only what the run returned.
    pub(super) fn print(&self, format: Format) -> Result<()> {
        output::one(format, self, |report| report.output.as_ref().map_or(String::new(), |output| pretty(output.get())))
    }

    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}

/// As it was written, in the order in which its author wrote it.
fn json(bytes: impl AsRef<[u8]>) -> Option<Box<RawValue>> {
    serde_json::from_slice(bytes.as_ref()).ok()
}

/// Somebody paused it, or the engine cannot go on with it: says so, and how it goes on.
pub(super) fn resting(palette: Palette, begun: &Begun, view: &RunView, again: &str, flag: &str) -> Report {
    let id = &begun.id;
    let why = view.note.as_deref().map_or(String::new(), |note| format!(": {note}"));
    let (message, first) = match view.status {
        Status::Parked => (format!("the run {id} is parked, and nothing of it is lost{why}"), "mend the cause, then "),
        status => (format!("the run {id} is {}{why}", status.name()), ""),
    };
    note(&format!("{} {message}", palette.bad("error:")));
    let resume = format!("outlast resume {}{flag}", shell(id));
    note(&format!("{} {first}let it go on with\n\n    {resume}\n    {again}\n", palette.info("hint:")));
    Report::open(begun, view.status, view.status.name(), &message)
}

/// Who has to do what before a run can go on.
pub(super) fn who_is_waited_for(palette: Palette, id: &str, waits: &[(String, What)], flag: &str) -> String {
    let head = format!(
        "{} {id} waits for somebody, and there is no terminal to ask in. Answer with\n",
        palette.warn("waiting:")
    );
    let lines = waits.iter().map(|(run, what)| {
        let run = shell(run);
        match what {
            What::Approval { id, title, .. } => {
                format!("    outlast approve {run} {}{flag}    # {title}; or: outlast deny …", shell(id))
            }
            What::Signal { name, .. } => format!("    outlast signal {run} {} JSON{flag}", shell(name)),
            _ => format!("    outlast explain {run}{flag}    # a callback, which only the holder of its token answers"),
        }
    });
    std::iter::once(head).chain(lines).chain([String::new()]).collect::<Vec<_>>().join("\n")
}

/// A name as a key of TOML.
pub(super) fn toml_key(name: &str) -> String {
    let is_bare = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if is_bare { name.to_owned() } else { format!("{name:?}") }
}
