//! PostgreSQL refuses to run as root; then it runs as somebody else.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process;

/// In order of preference. `nobody` exists everywhere.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// An account of the operating system.
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account to switch to, or none when we may run PostgreSQL ourselves.
    pub(super) fn for_postgres() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        match CANDIDATES.iter().find_map(|name| Self::named(name).ok()) {
            Some(account) => Ok(Some(account)),
            None => bail!("PostgreSQL refuses to run as root, and there is no user {}", CANDIDATES.join(" or ")),
        }
    }

    fn named(name: &str) -> Result<Self> {
        let id = |flag: &str| -> Result<u32> {
            let printed = process::capture(Command::new("id").args([flag, name]))?;
            printed.trim().parse().with_context(|| format!("`id {flag} {name}` printed {printed:?}"))
        };
        Ok(Self { uid: id("-u")?, gid: id("-g")? })
    }

    /// Makes a command run as this account.
    pub(super) fn applies_to(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Makes a path belong to this account.
    pub(super) fn give(&self, path: &Path) -> Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .with_context(|| format!("cannot give {} to user {}", path.display(), self.uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_looked_up_by_name() {
        assert_eq!(Account::named("root").map(|account| account.uid).ok(), Some(0));
        assert!(Account::named("no-such-user-anywhere").is_err());
    }
}
