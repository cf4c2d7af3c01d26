//! A folder to call the command in.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An empty folder that goes away with the test.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

/// What the command said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Said {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Standard output as JSON, which must be all there is.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {:?}\n{}", self.out, self.err))
    }

    #[track_caller]
    pub(crate) fn complains(self, of: &[&str]) -> Said {
        for part in of {
            assert!(self.err.contains(part), "{part:?} is not in:\n{}", self.err);
        }
        self
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Place {
    pub(crate) fn new(files: &[(&str, &str)]) -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("outlast"));
        command.current_dir(self.dir.path()).args(args).stdin(Stdio::null());
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "OUTLAST_DATABASE", "OUTLAST_URL", "OUTLAST_TOKEN"] {
            command.env_remove(name);
        }
        command
    }

    /// Calls the command and waits for its end.
    pub(crate) fn call(&self, args: &[&str]) -> Said {
        self.command(args).output().unwrap().into()
    }

    /// Starts the command.
    pub(crate) fn begin(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// Changes a database behind everybody's back, while nobody has it.
pub(crate) fn tamper(database: &Path, statement: &str) {
    let program =
        "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as db: print(db.execute(sys.argv[2]).rowcount)";
    let done = Command::new("python3").args(["-c", program]).arg(database).arg(statement).output().unwrap();
    let said = Said::from(done).exits(0);
    assert_ne!(said.out.trim(), "0", "{statement}");
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap()
}
