//! `outlast completions` and `outlast man`: what shells and manuals know of the command.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output::print;

/// Print what a shell needs to complete commands
#[derive(Debug, Args)]
#[command(after_help = "For bash: outlast completions bash > ~/.local/share/bash-completion/completions/outlast")]
pub(crate) struct Completions {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write one per command into a folder
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to write them; the page of the whole command is printed otherwise
    folder: Option<PathBuf>,
}

pub(crate) fn completions(asked: &Completions) -> Exit {
    let mut written = Vec::new();
    clap_complete::generate(asked.shell, &mut Cli::command(), "outlast", &mut written);
    print(&String::from_utf8_lossy(&written));
    Exit::Done
}

pub(crate) fn man(asked: &Man) -> Result<Exit> {
    match &asked.folder {
        Some(folder) => write_pages(folder)?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).context("the page cannot be written")?;
            let _ = std::io::stdout().write_all(&page);
        }
    }
    Ok(Exit::Done)
}

fn write_pages(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("{} cannot be written to", folder.display()))
}
