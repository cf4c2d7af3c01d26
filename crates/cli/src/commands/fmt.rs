//! `outlast fmt`: lays scripts out.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::args::Global;
use crate::commands::mistakes;
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note};
use crate::palette::Palette;
use crate::sources::{Source, Style};

/// Lay scripts out as everybody does
#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// Scripts (.wf); flows are YAML, which other tools lay out
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing, and exit with 1 if a file would change
    #[arg(long)]
    check: bool,
}

/// What became of a file, for programs.
#[derive(Serialize)]
struct LaidOut {
    file: String,
    /// Or would be, if nothing is to be changed.
    changed: bool,
}

pub(crate) fn fmt(asked: &Fmt, global: &Global) -> Result<Exit> {
    let palette = Palette::stderr();
    let mut files = Vec::new();
    for path in &asked.files {
        let source = Source::read(path)?;
        let shown = path.display();
        if source.style == Style::Flow {
            let stop = Stop::new(Exit::Usage, format!("{shown} is a flow, and only scripts are laid out"));
            return Err(stop.hint("leave it out; tools for YAML can lay it out").into());
        }
        let laid_out = outlast_script::format(&path.to_string_lossy(), &source.text).map_err(mistakes)?;
        let changed = laid_out != source.text;
        files.push(LaidOut { file: shown.to_string(), changed });
        let line = match (changed, asked.check) {
            (false, _) => continue,
            (true, true) => format!("{} {shown} would change", palette.warn("✗")),
            (true, false) => {
                fs::write(path, laid_out).with_context(|| format!("{shown} cannot be written"))?;
                format!("{} {shown}", palette.good("✓"))
            }
        };
        if global.output == Format::Table {
            note(&line);
        }
    }
    output::many(global.output, &files, |_| String::new())?;
    Ok(if asked.check && files.iter().any(|file| file.changed) { Exit::Error } else { Exit::Done })
}
