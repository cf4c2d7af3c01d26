//! Stages of a long check: a heading and the time of each, all of them even after a failure, a summary at the end.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::interrupt::Interrupted;
use crate::process::{self, CtrlC};

/// What was run so far.
#[derive(Default)]
pub(crate) struct Stages {
    done: Vec<Stage>,
}

struct Stage {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

enum Outcome {
    Passed,
    Failed,
    Skipped(String),
}

impl Stages {
    /// Runs a command as a stage. An error means that a signal came; a failed command is only noted.
    pub(crate) fn command(&mut self, name: &'static str, command: &mut Command) -> Result<()> {
        let heading = process::describe(command);
        self.check(name, &heading, || process::run(command, CtrlC::EndsUs))
    }

    /// Runs a function as a stage. An error means that a signal came; a failed check is only noted.
    pub(crate) fn check(
        &mut self,
        name: &'static str,
        heading: &str,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        eprintln!("\n==> {name}: {heading}");
        let start = Instant::now();
        let outcome = match check() {
            Ok(()) => Outcome::Passed,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                eprintln!("{error:#}");
                Outcome::Failed
            }
        };
        let took = start.elapsed();
        let word = if matches!(outcome, Outcome::Passed) { "ok" } else { "FAILED" };
        eprintln!("<== {name}: {word} in {:.1} s", took.as_secs_f64());
        self.done.push(Stage { name, outcome, took });
        Ok(())
    }

    /// Notes that a stage was left out, and why.
    pub(crate) fn skip(&mut self, name: &'static str, why: &str) {
        eprintln!("\n==> {name}: skipped; {why}");
        self.done.push(Stage { name, outcome: Outcome::Skipped(why.to_owned()), took: Duration::ZERO });
    }

    /// Prints the summary, and fails if any stage did.
    pub(crate) fn finish(self) -> Result<()> {
        eprint!("\n{}", self.summary());
        let failed: Vec<_> =
            self.done.iter().filter(|stage| matches!(stage.outcome, Outcome::Failed)).map(|stage| stage.name).collect();
        if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        for Stage { name, outcome, took } in &self.done {
            let seconds = took.as_secs_f64();
            // Writing to a string does not fail.
            let _ = match outcome {
                Outcome::Passed => writeln!(text, "{name:<10} ok       {seconds:>7.1} s"),
                Outcome::Failed => writeln!(text, "{name:<10} FAILED   {seconds:>7.1} s"),
                Outcome::Skipped(why) => writeln!(text, "{name:<10} skipped  ({why})"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_failed_stage_does_not_hide_the_later_ones() {
        let mut stages = Stages::default();
        stages.check("first", "fails", || Err(anyhow!("no"))).expect("noted");
        stages.check("second", "passes", || Ok(())).expect("noted");
        stages.skip("third", "not installed");

        let summary = stages.summary();
        let outcomes: Vec<_> = summary.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(outcomes, ["FAILED", "ok", "skipped"]);
        assert_eq!(stages.finish().expect_err("one failed").to_string(), "failed: first");
    }

    #[test]
    fn an_interrupt_ends_the_stages_at_once() {
        let mut stages = Stages::default();
        let ended = stages.check("first", "interrupted", || Err(Interrupted { signal: 2 }.into()));
        assert!(ended.expect_err("an interrupt is passed on").is::<Interrupted>());
    }
}
