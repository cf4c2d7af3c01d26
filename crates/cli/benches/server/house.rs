//! A server that is a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The binary that is measured.
pub(crate) const OUTLAST: &str = env!("CARGO_BIN_EXE_outlast");

pub(crate) struct House {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// From its start until it said where it listens.
    pub(crate) ready: Duration,
    _folder: tempfile::TempDir,
}

impl House {
    /// Starts `outlast serve` or `dev` in a folder with these files, and waits until it is ready.
    pub(crate) fn start(verb: &str, files: &[(&str, &str)]) -> House {
        let folder = folder();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut command = Command::new(OUTLAST);
        command.current_dir(folder.path()).arg(verb).args(["--listen", "127.0.0.1:0"]);
        if verb == "serve" {
            command.args(["--workflows", "."]);
        }
        let begun = Instant::now();
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.by_ref().map(Result::unwrap).find(|line| line.contains("http://")).unwrap();
        let ready = begun.elapsed();
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.split("http://").nth(1).unwrap();
        let address = address.chars().take_while(|letter| letter.is_ascii_digit() || ".:".contains(*letter)).collect();
        House { child, address, ready, _folder: folder }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// On the disk the repository is on: a folder for temporary files may be memory.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
