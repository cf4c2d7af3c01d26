//! What a killed `xtask` left behind: nothing can clean up after SIGKILL but the next one.
//!
//! Each cluster's directory holds a file that its owner keeps locked. The lock ends with the process, however it ends;
//! unlike a process id it is never taken over by a stranger.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::account::Account;

const OWNER: &str = "owner";
/// A directory without an owner is being set up, unless it is older than this.
const SETTING_UP: Duration = Duration::from_secs(60);

/// Marks a new directory as ours. It is ours until the file is closed.
pub(super) fn claim(dir: &Path) -> Result<File> {
    let unlocked = dir.join("owner.new");
    let mut file = File::create_new(&unlocked).with_context(|| format!("cannot write in {}", dir.display()))?;
    writeln!(file, "{}", std::process::id())?;
    file.lock().context("cannot lock the owner file")?;
    // Locked first and named afterwards: whoever sees it finds it locked.
    fs::rename(unlocked, dir.join(OWNER))?;
    Ok(file)
}

/// Stops and removes clusters whose owner is gone. A failure is reported, and left to the next start.
pub(super) fn remove(parent: &Path, binaries: &Path, account: Option<&Account>) {
    for dir in abandoned(parent) {
        if is_running(&dir) {
            super::stop(binaries, account, &dir);
        }
        match fs::remove_dir_all(&dir) {
            Ok(()) => eprintln!("removed {}, left behind by a run that was killed", dir.display()),
            Err(error) => eprintln!("cannot remove {}, left behind by a run that was killed: {error}", dir.display()),
        }
    }
}

fn abandoned(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(super::PREFIX))
        .map(|entry| entry.path())
        .filter(|dir| is_own_directory(dir) && is_abandoned(dir))
        .collect()
}

/// The parent is open to everybody: another user's directory, or a link to elsewhere, is none of our business.
fn is_own_directory(dir: &Path) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw())
}

fn is_abandoned(dir: &Path) -> bool {
    match File::open(dir.join(OWNER)) {
        Ok(owner) => match owner.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        },
        Err(_) => age(dir).is_some_and(|age| age > SETTING_UP),
    }
}

fn age(dir: &Path) -> Option<Duration> {
    fs::metadata(dir).ok()?.modified().ok()?.elapsed().ok()
}

/// Whether a server answers on the directory's socket. The process id in `postmaster.pid` proves nothing: after a
/// restart of the machine it may belong to anybody.
fn is_running(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(super::socket_directory(dir)) else { return false };
    entries.filter_map(|entry| entry.ok()).any(|entry| UnixStream::connect(entry.path()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster_directory(parent: &Path) -> PathBuf {
        let dir = parent.join(format!("{}test", super::super::PREFIX));
        fs::create_dir(&dir).expect("a directory");
        dir
    }

    #[test]
    fn directory_is_abandoned_once_its_owner_is_gone() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let dir = cluster_directory(parent.path());

        let owner = claim(&dir).expect("claimed");
        assert!(abandoned(parent.path()).is_empty(), "its owner lives");

        drop(owner);
        assert_eq!(abandoned(parent.path()), std::slice::from_ref(&dir));

        remove(parent.path(), Path::new("/nowhere"), None);
        assert!(!dir.exists());
    }

    #[test]
    fn directory_being_set_up_is_left_alone() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let dir = cluster_directory(parent.path());
        assert!(abandoned(parent.path()).is_empty());
        assert!(dir.exists());
    }

    #[test]
    fn links_and_strangers_are_left_alone() {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let elsewhere = tempfile::tempdir().expect("a temporary directory");
        drop(claim(elsewhere.path()).expect("claimed"));
        let link = parent.path().join(format!("{}link", super::super::PREFIX));
        std::os::unix::fs::symlink(elsewhere.path(), link).expect("a link");
        fs::create_dir(parent.path().join("somebody-elses")).expect("a directory");
        assert!(abandoned(parent.path()).is_empty());
    }
}
