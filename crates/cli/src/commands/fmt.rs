//! `outlast fmt`: lays scripts out.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::commands::mistakes;
use crate::exit::{Exit, Stop};
use crate::output::note;
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

pub(crate) fn fmt(asked: &Fmt) -> Result<Exit> {
    let palette = Palette::stderr();
    let mut changed = 0;
    for path in &asked.files {
        let source = Source::read(path)?;
        let shown = path.display();
        if source.style == Style::Flow {
            let stop = Stop::new(Exit::Usage, format!("{shown} is a flow, and only scripts are laid out"));
            return Err(stop.hint("leave it out; tools for YAML can lay it out").into());
        }
        let laid_out = outlast_script::format(&path.to_string_lossy(), &source.text).map_err(mistakes)?;
        if laid_out == source.text {
            continue;
        }
        changed += 1;
        if asked.check {
            note(&format!("{} {shown} would change", palette.warn("✗")));
        } else {
            fs::write(path, laid_out).with_context(|| format!("{shown} cannot be written"))?;
            note(&format!("{} {shown}", palette.good("✓")));
        }
    }
    Ok(if asked.check && changed > 0 { Exit::Error } else { Exit::Done })
}
