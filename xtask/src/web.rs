//! `cargo xtask web`: builds the web page, checks its types and its size, and puts it where the server's build finds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{self, CtrlC, cargo};
use crate::tools;
use crate::usage::Usage;

/// Where Debian has its browser.
const CHROMIUM: &str = "/usr/bin/chromium";

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => build(),
        [flag] if flag == "--test" => build().and_then(|()| test()),
        [other, ..] => Err(Usage::unknown_argument("web", other).into()),
    }
}

/// Builds the page. The next build of the server has it.
pub(crate) fn build() -> Result<()> {
    tools::need_node()?;
    // Not `ci`, which refuses a lock file that names no hosts.
    npm(&["install", "--no-audit", "--no-fund"])?;
    npm(&["run", "build"])?;
    let page = process::root().join("crates/server/page");
    empty(&page)?;
    copy(&folder().join("dist"), &page)
}

/// Tries it in a real browser, with a real server.
fn test() -> Result<()> {
    let browser = std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from);
    if !browser.exists() {
        bail!("there is no {}: run `apt-get install chromium`, or set CHROMIUM to a browser", browser.display());
    }
    process::run(&mut cargo(&["build", "--package", "outlast-cli", "--locked"]), CtrlC::EndsUs)?;
    let mut command = npm_command(&["test"]);
    command.env("OUTLAST_BIN", process::root().join("target/debug/outlast")).env("CHROMIUM", browser);
    process::run(&mut command, CtrlC::EndsUs)
}

fn folder() -> PathBuf {
    process::root().join("web")
}

fn npm(args: &[&str]) -> Result<()> {
    process::run(&mut npm_command(args), CtrlC::EndsUs)
}

fn npm_command(args: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(args).current_dir(folder());
    command
}

/// Removes what was built before: names have hashes, so that it would stay for ever.
fn empty(page: &Path) -> Result<()> {
    for entry in fs::read_dir(page).with_context(|| format!("cannot read {}", page.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else if path.file_name().is_some_and(|name| name != ".gitignore") {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
