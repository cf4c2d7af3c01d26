//! Finding the PostgreSQL server programs, which distributions like to keep off the search path.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{self, CtrlC};

/// Every one of them must be there: client packages bring some.
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];
const DEBIAN: &str = "/usr/lib/postgresql";
const HOMEBREW_FORMULA: &str = "postgresql@16";
const HOMEBREW: [&str; 2] = ["/opt/homebrew", "/usr/local"];

/// The directory of the server programs; installs PostgreSQL if there is none and we may.
pub(crate) fn binaries() -> Result<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    install()?;
    find().context("PostgreSQL was installed, but `initdb` is still not found: put its directory on the PATH")
}

fn find() -> Option<PathBuf> {
    let on_path = process::find_in_path("initdb").and_then(|initdb| {
        // The search path may hold links; the other programs are beside the real one.
        let real = initdb.canonicalize().ok()?;
        Some(real.parent()?.to_path_buf())
    });
    let configured = process::capture(Command::new("pg_config").arg("--bindir")).ok();
    let candidates = on_path
        .into_iter()
        .chain(configured.map(|printed| PathBuf::from(printed.trim())))
        .chain(versions(Path::new(DEBIAN), "").into_iter().map(|version| version.join("bin")))
        .chain(HOMEBREW.iter().flat_map(|prefix| homebrew(Path::new(prefix))));
    first_complete(candidates)
}

fn first_complete(mut candidates: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    candidates.find(|dir| PROGRAMS.iter().all(|program| process::is_executable(&dir.join(program))))
}

fn homebrew(prefix: &Path) -> Vec<PathBuf> {
    versions(&prefix.join("opt"), "postgresql@").into_iter().map(|version| version.join("bin")).collect()
}

/// The subdirectories named `<prefix><major version>`, newest first.
fn versions(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path()))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

fn install() -> Result<()> {
    if cfg!(target_os = "macos") { install_with_homebrew() } else { install_with_apt() }
}

fn install_with_apt() -> Result<()> {
    const BY_HAND: &str = "PostgreSQL is missing. Install its server programs (Debian: `apt-get install postgresql`; \
        elsewhere the package that has `initdb`), or put the directory of `initdb` on the PATH";
    if process::find_in_path("apt-get").is_none() {
        bail!(BY_HAND);
    }
    let privileged: &[&str] = if rustix::process::geteuid().is_root() {
        &["env"]
    } else if process::succeeds(Command::new("sudo").args(["-n", "true"])) {
        &["sudo", "-n", "env"]
    } else {
        bail!(BY_HAND);
    };
    eprintln!("PostgreSQL is missing; installing it");
    for arguments in [&["update"][..], &["install", "-y", "postgresql"]] {
        let mut command = Command::new(privileged[0]);
        command.args(&privileged[1..]).args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(arguments);
        process::run(&mut command, CtrlC::EndsUs).context(BY_HAND)?;
    }
    Ok(())
}

fn install_with_homebrew() -> Result<()> {
    let on_prefix = || HOMEBREW.iter().map(|prefix| Path::new(prefix).join("bin/brew")).find(|brew| brew.is_file());
    let Some(brew) = process::find_in_path("brew").or_else(on_prefix) else {
        bail!("PostgreSQL is missing. Install Homebrew from https://brew.sh and run `brew install {HOMEBREW_FORMULA}`");
    };
    eprintln!("PostgreSQL is missing; installing it");
    process::run(Command::new(brew).args(["install", HOMEBREW_FORMULA]), CtrlC::EndsUs)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn newest_version_comes_first_by_number() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["9", "16", "15", "notes"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let names: Vec<_> =
            versions(dir.path(), "").into_iter().map(|path| path.file_name().map(ToOwned::to_owned)).collect();
        assert_eq!(names, ["16", "15", "9"].map(|name| Some(name.into())));
        assert!(versions(&dir.path().join("absent"), "").is_empty());
    }

    #[test]
    fn homebrew_formulas_carry_their_version() {
        let prefix = tempfile::tempdir().expect("a temporary directory");
        for name in ["postgresql@14", "postgresql@17", "openssl@3"] {
            fs::create_dir_all(prefix.path().join("opt").join(name)).expect("a directory");
        }
        let opt = prefix.path().join("opt");
        assert_eq!(homebrew(prefix.path()), [opt.join("postgresql@17/bin"), opt.join("postgresql@14/bin")]);
    }

    #[test]
    fn a_directory_that_lacks_a_program_is_passed_over() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (client, server) = (dir.path().join("client"), dir.path().join("server"));
        for (home, programs) in [(&client, &PROGRAMS[..1]), (&server, &PROGRAMS[..])] {
            fs::create_dir(home).expect("a directory");
            for program in programs {
                File::create(home.join(program)).expect("a file");
                fs::set_permissions(home.join(program), Permissions::from_mode(0o755)).expect("executable");
            }
        }
        assert_eq!(first_complete([client, server.clone()].into_iter()), Some(server));
    }
}
