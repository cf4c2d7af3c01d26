//! `outlast check`: finds mistakes without running anything.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use outlast_script::{Diagnostic, Diagnostics, Severity};
use serde::Serialize;

use crate::args::Global;
use crate::exit::Exit;
use crate::output::{self, Format, note};
use crate::palette::Palette;
use crate::sources::Source;

/// Find mistakes in scripts and flows without running anything
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 1 if a file has mistakes. Warnings are shown and change nothing, unless --deny-warnings."
)]
pub(crate) struct Check {
    /// Scripts (.wf) and flows (.flow.yaml)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Warnings are mistakes too
    #[arg(long)]
    deny_warnings: bool,
}

/// Something to say about a place in a file.
#[derive(Serialize)]
struct Found {
    file: String,
    line: u32,
    column: u32,
    severity: &'static str,
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

impl Found {
    fn new(all: &Diagnostics, found: &Diagnostic) -> Found {
        let place = all.source().position(found.span.start);
        Found {
            file: all.source().name().to_owned(),
            line: place.line,
            column: place.column,
            severity: match found.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            code: found.code,
            message: found.message.clone(),
            help: found.help.clone(),
        }
    }
}

pub(crate) fn check(asked: &Check, global: &Global) -> Result<Exit> {
    let mut found = Vec::new();
    for path in &asked.files {
        let source = Source::read(path)?;
        found.push(match source.compile() {
            Ok(compiled) => compiled.warnings().clone(),
            Err(mistakes) => mistakes,
        });
    }
    let all = || found.iter().flat_map(|all| all.list().iter().map(move |one| (all, one)));
    match global.output {
        Format::Table => found.iter().filter(|all| !all.list().is_empty()).for_each(|all| note(&all.to_string())),
        format => {
            output::many(format, &all().map(|(all, one)| Found::new(all, one)).collect::<Vec<_>>(), |_| String::new())?
        }
    }
    let errors = all().filter(|(_, one)| one.is_error()).count();
    let warnings = all().count() - errors;
    if global.output == Format::Table {
        note(&summary(asked.files.len(), errors, warnings));
    }
    let is_bad = errors > 0 || (asked.deny_warnings && warnings > 0);
    Ok(if is_bad { Exit::Error } else { Exit::Done })
}

fn summary(files: usize, errors: usize, warnings: usize) -> String {
    let palette = Palette::stderr();
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let warned = if warnings == 0 { String::new() } else { format!(", {}", count(warnings, "warning")) };
    match errors {
        0 => format!("{} {} checked{warned}", palette.good("✓"), count(files, "file")),
        errors => format!("{} {}{warned} in {}", palette.bad("✗"), count(errors, "mistake"), count(files, "file")),
    }
}
