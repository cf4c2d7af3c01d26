//! Python with the packages that the tests need, in an environment of their own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: &str = include_str!("requirements.txt");

/// A program of the environment, which is made first if it is not there.
pub(crate) fn program(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    fs::create_dir_all(&place).unwrap();
    // Every test is a process of its own: one makes it, and the others wait.
    let lock = File::create(place.join("lock")).unwrap();
    lock.lock().unwrap();
    let installed = place.join("installed.txt");
    if fs::read_to_string(&installed).ok().as_deref() != Some(PACKAGES) {
        fs::write(place.join("requirements.txt"), PACKAGES).unwrap();
        succeeds(Command::new("python3").args(["-m", "venv", "--clear", "environment"]).current_dir(&place));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        succeeds(Command::new(place.join("environment/bin/python")).args(pip).current_dir(&place));
        fs::write(installed, PACKAGES).unwrap();
    }
    place.join("environment/bin").join(name)
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}
