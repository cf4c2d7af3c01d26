//! What a fresh machine may lack: found, or installed, or named exactly.

pub(crate) mod postgres;

use std::process::Command;

use anyhow::{Result, bail};

use crate::process::{self, CtrlC};

/// Makes `cargo nextest` available.
pub(crate) fn need_nextest() -> Result<()> {
    if process::succeeds(&mut process::cargo(&["nextest", "--version"])) {
        return Ok(());
    }
    eprintln!("cargo-nextest is missing; installing it (this takes some minutes, once)");
    process::run(&mut process::cargo(&["install", "cargo-nextest", "--locked"]), CtrlC::EndsUs)
}

/// Makes `cargo fmt` and `cargo clippy` available.
pub(crate) fn need_components() -> Result<()> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if process::succeeds(&mut process::cargo(&[subcommand, "--version"])) {
            continue;
        }
        let install = format!("rustup component add {component}");
        if process::find_in_path("rustup").is_none() {
            bail!("`cargo {subcommand}` is missing. Install rustup from https://rustup.rs and run `{install}`");
        }
        eprintln!("`cargo {subcommand}` is missing; running `{install}`");
        process::run(Command::new("rustup").args(["component", "add", component]), CtrlC::EndsUs)?;
    }
    Ok(())
}

/// Makes sure of Node.js, with which the tests of the script language compare. It is not installed from here: every
/// system has its own way.
pub(crate) fn need_node() -> Result<()> {
    const OLDEST: u32 = 20;
    let found = Command::new("node").arg("--version").output();
    let version = found.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned()).unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= OLDEST) {
        return Ok(());
    }
    let found = if version.is_empty() { "is missing".to_owned() } else { format!("is version {version}") };
    bail!(
        "`node` {found}. The tests of the script language compare with Node.js: install version {OLDEST} or newer, \
         on Debian with `apt-get install nodejs`"
    )
}

/// Makes sure of Python, in which one of the SDKs is written.
pub(crate) fn need_python() -> Result<()> {
    let is_new_enough = "import sys; sys.exit(sys.version_info < (3, 11))";
    if process::succeeds(Command::new("python3").args(["-c", is_new_enough])) {
        return Ok(());
    }
    bail!(
        "`python3` is missing or older than 3.11. The tests of the Python SDK need it: on Debian, `apt-get install python3`"
    )
}

/// Whether `cargo deny` is installed. It is optional: its rules change rarely, and building it takes long.
pub(crate) fn has_deny() -> bool {
    process::succeeds(&mut process::cargo(&["deny", "--version"]))
}
