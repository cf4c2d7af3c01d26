//! `cargo xtask web`: builds the web page, checks its types and its size, and puts it where the server's build finds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::{self, Beside, CtrlC, cargo};
use crate::stages::Stages;
use crate::tools;
use crate::usage::Usage;

/// Where Debian has its browser.
const CHROMIUM: &str = "/usr/bin/chromium";
/// What to do where there is none, and none can be installed from here.
const INSTALL_CHROMIUM: &str = "there is no Chromium: `apt-get install chromium`, or set CHROMIUM to a browser";

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => build(),
        [flag] if flag == "--test" => {
            let browser = browser().context(INSTALL_CHROMIUM)?;
            build().and_then(|()| test(&browser))
        }
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

/// The page as stages of a larger check: its types, its size, and its tests in a browser where there is one.
pub(crate) fn stages(stages: &mut Stages) -> Result<()> {
    if process::find_in_path("npm").is_none() {
        stages.skip("page", "npm is not installed: on Debian, `apt-get install npm`");
        return Ok(());
    }
    stages.check("page", "npm install, tsc, vite build", build)?;
    match browser() {
        Some(browser) => stages.check("browser", "node --test web/tests", || test(&browser)),
        None => {
            stages.skip("browser", INSTALL_CHROMIUM);
            Ok(())
        }
    }
}

/// Tries it in a real browser, with a real server that has it.
fn test(browser: &Path) -> Result<()> {
    let mut command = npm_command(&["test"]);
    command.env("OUTLAST_BIN", binary(Profile::Debug)?).env("OUTLAST_SHOP", shop()?).env("CHROMIUM", browser);
    process::run(&mut command, CtrlC::EndsUs)
}

/// The command with the page inside, for whoever works on it.
pub(crate) fn command() -> Result<PathBuf> {
    binary(Profile::Debug)
}

/// Serves the page from its source, with a server's data, until what is returned goes.
pub(crate) fn follow(server: &str) -> Result<Beside> {
    let mut command = npm_command(&["run", "dev"]);
    command.env("OUTLAST_URL", server);
    Beside::start(&mut command)
}

/// Measures it: `cargo xtask bench web`.
pub(crate) fn bench(args: &[String]) -> Result<()> {
    let browser = browser().context(INSTALL_CHROMIUM)?;
    build()?;
    let mut command = Command::new("node");
    command.arg("tests/figures.mjs").args(args).current_dir(folder());
    command.env("OUTLAST_BIN", binary(Profile::Release)?).env("CHROMIUM", browser);
    process::run(&mut command, CtrlC::EndsUs)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Profile {
    Debug,
    Release,
}

/// The command `outlast` with the page as it is now.
fn binary(profile: Profile) -> Result<PathBuf> {
    process::run(
        &mut match profile {
            Profile::Debug => built_for_tests(&["--bin", "outlast"]),
            Profile::Release => cargo(&["build", "--package", "outlast-cli", "--locked", "--release"]),
        },
        CtrlC::EndsUs,
    )?;
    Ok(target().join(if profile == Profile::Release { "release/outlast" } else { "debug/outlast" }))
}

/// Of the whole workspace with all features: what the tests have built is not built again.
fn built_for_tests(what: &[&str]) -> Command {
    let mut build = cargo(&["build", "--workspace", "--all-features", "--locked"]);
    build.args(what);
    build
}

/// A program with workflows in code, which has the page, too.
fn shop() -> Result<PathBuf> {
    process::run(&mut built_for_tests(&["--example", "shop"]), CtrlC::EndsUs)?;
    Ok(target().join("debug/examples/shop"))
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| process::root().join("target"), PathBuf::from)
}

/// A browser: the one that is named, or Debian's, which is installed if it is missing and that may be done from here.
fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from);
    if !process::is_executable(&named) && named == Path::new(CHROMIUM) && may_install() {
        eprintln!("Chromium is missing; installing it (this takes some minutes, once)");
        if let Err(error) = install() {
            eprintln!("{error:#}");
        }
    }
    process::is_executable(&named).then_some(named)
}

fn install() -> Result<()> {
    let chromium = || apt_get(&["install", "-y", "--no-install-recommends", "chromium"]);
    // A fresh machine has empty lists, and knows no package: they are fetched, and it is tried again.
    chromium().or_else(|_| apt_get(&["update"]).and_then(|()| chromium()))
}

fn apt_get(args: &[&str]) -> Result<()> {
    process::run(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"), CtrlC::EndsUs)
}

fn may_install() -> bool {
    rustix::process::geteuid().is_root() && process::find_in_path("apt-get").is_some()
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
