//! The types of the SDKs, checked by those who know them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;

/// What `package.json` of the SDK asks for, at fixed versions.
const PACKAGES: &str = r#"{ "private": true, "dependencies": { "typescript": "5.9.3", "@types/node": "20.19.0" } }"#;

fn sdk(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").join(name)
}

#[track_caller]
fn finds_nothing(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

#[test]
fn mypy_finds_nothing_in_the_python_sdk() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy");
    finds_nothing(Command::new(python::program("mypy")).arg("--cache-dir").arg(cache).current_dir(sdk("python")));
}

/// `npm run check`, with packages that are put beside what is built, and not into the SDK.
#[test]
fn tsc_finds_nothing_in_the_typescript_sdk() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    fs::create_dir_all(&place).unwrap();
    let lock = File::create(place.join("lock")).unwrap();
    lock.lock().unwrap();
    let installed = place.join("installed.json");
    if fs::read_to_string(&installed).ok().as_deref() != Some(PACKAGES) {
        fs::write(place.join("package.json"), PACKAGES).unwrap();
        let install = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
        finds_nothing(Command::new("npm").args(install).current_dir(&place));
        fs::write(installed, PACKAGES).unwrap();
    }
    let types = place.join("node_modules/@types");
    let mut tsc = Command::new(place.join("node_modules/.bin/tsc"));
    finds_nothing(tsc.arg("--typeRoots").arg(types).args(["-p", "tsconfig.json"]).current_dir(sdk("typescript")));
}
