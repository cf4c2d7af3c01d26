//! `cargo xtask sim`: the simulator, built for speed but with every assertion, and with planted bugs if asked.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::cluster::{Cluster, Synced};
use crate::process::{self, CtrlC, cargo};

/// What plants bugs. A flag of the compiler and not a feature, so that no dependency can switch it on.
const PLANTED: [&str; 2] = ["--cfg", "outlast_planted"];
/// Set where this program stands before the compiler.
const PLANTS: &str = "OUTLAST_PLANTS";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut command = command(args)?;
    let cluster = needs_server(args).then(|| Cluster::start(Synced::No)).transpose()?;
    if let Some(cluster) = &cluster {
        command.envs(cluster.variables());
    }
    process::run(&mut command, CtrlC::EndsUs)?;
    match cluster.as_ref().filter(|_| is_planted(args)) {
        Some(cluster) => process::run(contract(args)?.envs(cluster.variables()), CtrlC::EndsUs),
        None => Ok(()),
    }
}

fn is_planted(args: &[String]) -> bool {
    args.iter().any(|arg| arg == "--planted")
}

/// The contract of the stores, with bugs planted in their adapters.
pub(crate) fn contract(args: &[String]) -> Result<Command> {
    // Of the whole workspace: what it depends on has the features then with which the tests have built it.
    let mut command = cargo(&["test", "--quiet", "--workspace", "--all-features", "--locked"]);
    command.args(["--test", "contract", "--"]).args(args);
    plants(&mut command)?;
    Ok(command)
}

/// Has this program stand before the compiler of our own packages: what they depend on is then built once for all, and the planted
/// ones have names of their own.
fn plants(command: &mut Command) -> Result<()> {
    command.env("RUSTC_WORKSPACE_WRAPPER", in_place(&std::env::current_exe()?)).env(PLANTS, "1");
    Ok(())
}

/// Where this program is found, also after it was built anew while it runs: then the system calls its file deleted.
fn in_place(program: &Path) -> PathBuf {
    let path = program.to_string_lossy();
    PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(&path))
}

/// Whether cargo has called this program instead of the compiler.
pub(crate) fn is_compiler() -> bool {
    std::env::var_os(PLANTS).is_some()
}

/// Becomes the compiler, with the flag that plants bugs.
pub(crate) fn compile(args: &[String]) -> Result<()> {
    let Some((compiler, args)) = args.split_first() else { bail!("cargo names the compiler") };
    Err(Command::new(compiler).args(args).args(PLANTED).exec()).context("cannot run the compiler")
}

/// Whether cases are to be played on PostgreSQL, or its contract.
fn needs_server(args: &[String]) -> bool {
    is_planted(args) || args.windows(2).any(|pair| pair[0] == "--store" && pair[1] == "postgres")
}

/// The simulator with these arguments.
pub(crate) fn command(args: &[String]) -> Result<Command> {
    let mut command = cargo(&["run", "--quiet", "--package", "outlast-sim", "--profile", "sim", "--locked"]);
    if args.iter().any(|arg| arg == "--store") {
        // Only then: what is not built cannot slow the rest down.
        command.arg("--all-features");
    }
    if is_planted(args) {
        plants(&mut command)?;
    }
    command.arg("--").args(args);
    Ok(command)
}

/// Where things are built.
pub(crate) fn target() -> PathBuf {
    let chosen: Option<OsString> = std::env::var_os("CARGO_TARGET_DIR");
    chosen.map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_set(args: &[&str]) -> bool {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let command = command(&args).expect("this program has a path");
        let set = |name: &str| command.get_envs().any(|(of, value)| of == name && value.is_some());
        set("RUSTC_WORKSPACE_WRAPPER") && set(PLANTS)
    }

    #[test]
    fn a_server_is_started_only_for_cases_that_are_played_on_it() {
        let needs = |args: &[&str]| needs_server(&args.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(needs(&["--seeds", "5", "--store", "postgres"]) && needs(&["--planted"]));
        assert!(!needs(&["--store", "sqlite"]) && !needs(&["--case", "postgres"]));
    }

    #[test]
    fn a_program_that_was_built_anew_while_it_runs_is_found_in_its_place() {
        assert_eq!(in_place(Path::new("/a/xtask (deleted)")), Path::new("/a/xtask"));
        assert_eq!(in_place(Path::new("/a/xtask")), Path::new("/a/xtask"));
    }

    #[test]
    fn bugs_are_planted_only_when_asked() {
        assert!(!is_set(&["--seeds", "5"]));
        assert!(is_set(&["--planted"]));
    }
}
