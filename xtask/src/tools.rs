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

/// Whether `cargo deny` is installed. It is optional: its rules change rarely, and building it takes long.
pub(crate) fn has_deny() -> bool {
    process::succeeds(&mut process::cargo(&["deny", "--version"]))
}
