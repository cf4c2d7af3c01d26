//! Who has a database file: one process at a time.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{StoreError, Trouble};

/// How often it is looked again whether a file is free whose owner is gone, and how long is waited in between: two seconds in all.
const LOOKS_MAX: u32 = 200;
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Takes the file for this process; the lock goes with the returned handle.
///
/// A process that is killed while it starts another one leaves that one with its handles, the lock among them, until that becomes its own
/// program: a moment later the file is free.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let lock_path = lock_path(path);
    let failed = |error: std::io::Error| {
        StoreError::unavailable(Trouble::ReadOnly, format!("cannot open {}: {error}", lock_path.display()))
    };
    let options = File::options().read(true).write(true).create(true).truncate(false).open(&lock_path);
    let mut file = options.map_err(failed)?;
    for look in 0.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        let owner = owner(&mut file);
        if look >= LOOKS_MAX || !owner.as_deref().is_some_and(is_gone) {
            let pid = owner.unwrap_or_else(|| "unknown".to_owned());
            return Err(StoreError::Locked { path: path.display().to_string(), pid });
        }
        #[expect(clippy::disallowed_methods, reason = "nobody tells when a lock of the operating system is free")]
        std::thread::sleep(LOOK_PAUSE);
    }
    let written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
    written.map_err(failed)?;
    Ok(file)
}

/// The process that wrote its number down last.
fn owner(file: &mut File) -> Option<String> {
    let mut pid = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut pid)).ok()?;
    Some(pid.trim().to_owned()).filter(|pid| !pid.is_empty())
}

/// Whether a process has certainly ended. Where nobody can be asked it has not.
fn is_gone(pid: &str) -> bool {
    let about = Path::new("/proc").join(pid).join("stat");
    match std::fs::read_to_string(about) {
        // `17 (name) Z …`: it has ended, and whoever started it has not looked yet.
        Ok(about) => about.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z')),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound && Path::new("/proc/self/stat").exists(),
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
