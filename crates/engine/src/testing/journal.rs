//! Journals as text, to look at and to compare with.

use std::fmt;
use std::path::Path;

use outlast_core::event::Event;
use outlast_core::time::Timestamp;
use serde_json::Value;

use super::diff::diff;
use crate::client::{EngineError, RunHandle};

/// Payloads are cut here.
const PAYLOAD_CHARS_MAX: usize = 80;
/// Set to `rewrite`, golden files are written instead of compared with.
const GOLDEN: &str = "OUTLAST_GOLDEN";

/// The journal of a run's current generation, as text.
///
/// ```
/// use std::time::Duration;
/// use outlast::Ctx;
/// use outlast::testing::{World, journal};
///
/// async fn nap(ctx: Ctx, _: ()) -> outlast::Result<()> {
///     ctx.step("make bed", async |_| Ok(true)).await?;
///     ctx.sleep(Duration::from_secs(60)).await
/// }
///
/// let world = World::new();
/// world.block_on(async {
///     let engine = world.engine().workflow("nap", nap).start().await.unwrap();
///     engine.start("nap", &()).id("a").await.unwrap().result::<()>().await.unwrap();
///     let journal = journal(&engine.run("a").unwrap()).await.unwrap();
///     journal.shows(&[
///         "STEP_FINISHED make bed true",
///         "TIMER_STARTED __sleep-0",
///         "TIMER_FIRED",
///         "RUN_FINISHED null",
///     ]);
///     journal.shows_among_others(&["STEP_FINISHED", "RUN_FINISHED"]);
/// });
/// ```
pub async fn journal(run: &RunHandle) -> Result<JournalText, EngineError> {
    Ok(JournalText::of(&run.journal().await?))
}

/// A journal as text: a line for each event, with its kind, its key, its payload, and then its other fields as
/// `name=value`. Where a line is expected, its beginning is enough: `STEP_FINISHED charge` is any end of that step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalText {
    lines: Vec<String>,
}

impl JournalText {
    /// The text of these events.
    pub fn of(events: &[Event]) -> JournalText {
        JournalText { lines: events.iter().map(line).collect() }
    }

    /// The lines, without their numbers.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The journal has these events, in this order, and no others.
    ///
    /// # Panics
    ///
    /// If it has not, with the difference.
    #[track_caller]
    pub fn shows(&self, expected: &[&str]) {
        let found = self.found();
        let same = expected.len() == found.len() && expected.iter().zip(&found).all(|(is, line)| begins(is, line));
        assert!(same, "the journal is another one (- expected, + found):\n{}", diff(expected, &found, begins));
    }

    /// The journal has these events, in this order, and maybe others.
    ///
    /// # Panics
    ///
    /// If one is missing.
    #[track_caller]
    pub fn shows_among_others(&self, expected: &[&str]) {
        let mut rest = self.lines.iter();
        for expected in expected {
            let there = rest.any(|line| begins(expected, line));
            assert!(there, "{expected:?} is not in the journal, or not at its place:\n{self}");
        }
    }

    /// The journal has no such event.
    ///
    /// # Panics
    ///
    /// If it has.
    #[track_caller]
    pub fn lacks(&self, unexpected: &str) {
        let there = self.lines.iter().any(|line| begins(unexpected, line));
        assert!(!there, "{unexpected:?} is in the journal:\n{self}");
    }

    /// The journal is as it is written in a file. With `OUTLAST_GOLDEN=rewrite` in the environment the file is written.
    ///
    /// # Panics
    ///
    /// If it is not, with the difference; or if the file cannot be read, or written.
    #[track_caller]
    pub fn is_golden(&self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        if std::env::var(GOLDEN).is_ok_and(|value| value == "rewrite") {
            let written = std::fs::write(path, self.to_string());
            written.unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
            return;
        }
        let golden = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}; {GOLDEN}=rewrite writes it", path.display()));
        let text = self.to_string();
        let (expected, found): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), text.lines().collect());
        let difference = diff(&expected, &found, |expected, found| expected == found);
        assert!(
            expected == found,
            "the journal is not as in {} (- expected, + found):\n{difference}if it should be so now, {GOLDEN}=rewrite writes it",
            path.display()
        );
    }

    fn found(&self) -> Vec<&str> {
        self.lines.iter().map(String::as_str).collect()
    }
}

impl fmt::Display for JournalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.lines.iter().enumerate() {
            writeln!(f, "{index:>4} {line}")?;
        }
        Ok(())
    }
}

/// Whether a line begins so, and goes on with another word.
fn begins(expected: &str, line: &str) -> bool {
    line.strip_prefix(expected).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn line(event: &Event) -> String {
    let record = event.encode(Timestamp::EPOCH);
    let mut parts = vec![event.kind().name().to_owned()];
    parts.extend(record.key.map(|key| key.to_string()));
    parts.extend(record.payload.map(|payload| short(&String::from_utf8_lossy(&payload))));
    let meta = record.meta.and_then(|meta| serde_json::from_slice(&meta).ok());
    if let Some(Value::Object(fields)) = meta {
        parts.extend(fields.into_iter().map(|(name, value)| format!("{name}={}", short(&value.to_string()))));
    }
    parts.join(" ")
}

fn short(text: &str) -> String {
    if text.chars().count() <= PAYLOAD_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(PAYLOAD_CHARS_MAX).chain(['…']).collect()
}
