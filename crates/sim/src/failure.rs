//! A failure, ready for whoever has to find the bug: played once more, made small, written down, and told.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::case::Case;
use crate::corpus::{self, Kept};
use crate::ground::Kind;
use crate::play::Verdict;
use crate::{shrink, story, suite};

/// Tries for making a failing case small.
const SHRINK_TRIES: usize = 600;

/// A case that breaks a promise.
#[derive(Debug)]
pub struct Failure {
    /// What it was found with: a seed, a scenario, a kept case.
    pub with: String,
    /// The smallest case that was found, if the store does the same every time.
    pub case: Case,
    /// What came of that case.
    pub verdict: Verdict,
    /// In which way a second time was another one: then the simulator has failed too.
    pub differs: Option<String>,
    /// Where the case is written down, or why it is not.
    pub file: Result<PathBuf, String>,
    /// The store it was played on.
    pub store: &'static str,
}

impl Failure {
    /// Plays a case that broke a promise once more, makes it small, and writes it down.
    pub fn found(with: &str, case: &Case, verdict: &Verdict, ground: &Kind) -> Failure {
        Failure::found_in(&directory(), with, case, verdict, ground)
    }

    fn found_in(directory: &Path, with: &str, case: &Case, verdict: &Verdict, ground: &Kind) -> Failure {
        let mut failure = Failure::again(with, case, verdict.clone(), ground);
        // What is not the same twice cannot be made small: nobody could say what was needed for it.
        if ground.repeats() && failure.differs.is_none() {
            let small = smallest(case, verdict, ground);
            let verdict = ground.play(&small);
            failure = Failure::again(with, &small, verdict, ground);
        }
        let path = directory.join(format!("{}.json", failure.name()));
        failure.file = corpus::write(&path, &failure.kept()).map(|()| path);
        failure
    }

    /// Plays a case that is written down, twice; nothing if both times every promise is kept, and in the same way.
    pub fn of_file(file: &Path, case: &Case, ground: &Kind) -> Option<Failure> {
        let mut failure = Failure::again(&file.display().to_string(), case, ground.play(case), ground);
        failure.file = Ok(file.to_owned());
        failure.is_one().then_some(failure)
    }

    /// Compares what came of a case with a second time.
    fn again(with: &str, case: &Case, verdict: Verdict, ground: &Kind) -> Failure {
        let differs = differs(&verdict, &ground.play(case), ground.repeats());
        let file = Err("nobody asked for it".to_owned());
        Failure { with: with.to_owned(), case: case.clone(), verdict, differs, file, store: ground.name() }
    }

    fn is_one(&self) -> bool {
        !self.verdict.violations.is_empty() || self.differs.is_some()
    }

    /// A file's name: what it was found with, what is broken, and where, if not in memory.
    fn name(&self) -> String {
        let mut name = slug(&self.with);
        if let Some(broken) = self.verdict.violations.first() {
            name += &format!("-invariant-{}", broken.invariant);
        }
        if self.store != Kind::Memory.name() {
            name += &format!("-on-{}", self.store);
        }
        name
    }

    fn kept(&self) -> Kept {
        let said = self.verdict.violations.first().and_then(|broken| broken.text.lines().next());
        Kept { why: format!("{}: {}", self.with, said.unwrap_or("not the same twice")), case: self.case.clone() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "FAILED: {}", self.with)?;
        if let Some(differs) = &self.differs {
            writeln!(f, "  DOES NOT REPRODUCE: {differs}")?;
        }
        if let Some(commit) = commit() {
            writeln!(f, "  at commit {commit}")?;
        }
        write!(f, "{}", story::tell(&self.case, &self.verdict))?;
        match &self.file {
            Ok(file) => {
                write!(f, "  again: cargo xtask sim --case {}", file.display())?;
                if self.store != Kind::Memory.name() {
                    write!(f, " --store {}", self.store)?;
                }
                writeln!(f, "\n  keep: move it to crates/sim/corpus/")
            }
            Err(error) => writeln!(f, "  the case could not be written down: {error}"),
        }
    }
}

/// In which way playing a case a second time was another one. Only a store that repeats itself gives the same trace.
fn differs(first: &Verdict, second: &Verdict, repeats: bool) -> Option<String> {
    let broken = |verdict: &Verdict| verdict.violations.first().map(|broken| broken.invariant);
    let said = |verdict: &Verdict| {
        broken(verdict).map_or_else(|| "nothing".to_owned(), |invariant| format!("invariant {invariant}"))
    };
    let differs = if broken(first) != broken(second) {
        format!("the first time broke {}, the second {}", said(first), said(second))
    } else if repeats && first.traced == second.traced && first.trace != second.trace {
        format!("the traces are {} and {}", first.trace, second.trace)
    } else {
        return None;
    };
    Some(if repeats {
        differs + "; something comes from outside of the world, and that is a failure of the simulator too"
    } else {
        differs + "; on this store the order of answers is nobody's choice, so play it more often"
    })
}

/// The smallest case that breaks one of the same invariants.
fn smallest(case: &Case, verdict: &Verdict, ground: &Kind) -> Case {
    let broken = suite::broken(verdict);
    shrink::shrink(case, SHRINK_TRIES, |case| !suite::broken(&ground.play(case)).is_disjoint(&broken))
}

/// Where failing cases are written: beside what is built.
fn directory() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    workspace.join(target).join("sim-failures")
}

/// What is checked out, and whether it was changed since; none where nobody knows.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let answer = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        answer.status.success().then(|| String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    Some(if changed { commit + ", with changes" } else { commit })
}

/// Letters and digits, with one dash for whatever is between them.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

#[cfg(test)]
mod tests;
