//! The audit log: who did what, one line of JSON each, only ever appended. Each line has the hash of the one before it, so that
//! whoever changes or removes one breaks the chain behind it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use outlast::{Namespace, Timestamp};
use sha2::{Digest, Sha256};

use crate::auth::hex;
use crate::dto::Audited;
use crate::instant;

/// What the first line has in the place of a hash.
const BEGINNING: &str = "";

/// Something somebody did.
pub(crate) struct Act {
    pub(crate) who: Arc<str>,
    /// The id of their token, where they have one.
    pub(crate) token: Option<Arc<str>>,
    pub(crate) namespace: Namespace,
    pub(crate) action: String,
    pub(crate) target: String,
}

/// What an answer names that the path of its request does not: the run, the task or the bulk action that was made, or found.
#[derive(Clone, Debug)]
pub(crate) struct Made(pub(crate) String);

/// An audit log that is open.
pub(crate) struct Audit(Mutex<Chain>);

struct Chain {
    file: File,
    index: u64,
    previous: String,
}

impl Audit {
    /// Opens a log, or begins one.
    pub(crate) fn open(path: &Path) -> io::Result<Audit> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let (mut index, mut previous, mut whole) = (0, BEGINNING.to_owned(), true);
        for line in BufReader::new(&file).split(b'\n') {
            let line = line?;
            if let Ok(audited) = serde_json::from_slice::<Audited>(&line) {
                (index, previous) = (audited.index + 1, digest(&line));
            }
        }
        if file.seek(SeekFrom::End(0))? > 0 {
            let mut last = [0];
            let mut reader = &file;
            reader.seek(SeekFrom::End(-1))?;
            io::Read::read_exact(&mut reader, &mut last)?;
            whole = last == *b"\n";
        }
        if !whole {
            // A line that was being written when its process died: it stays, and is no part of the chain.
            file.write_all(b"\n")?;
        }
        Ok(Audit(Mutex::new(Chain { file, index, previous })))
    }

    /// Appends a line.
    pub(crate) fn append(&self, act: Act, made: Option<Made>, status: StatusCode, at: Timestamp) -> io::Result<()> {
        let mut chain = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let audited = Audited {
            index: chain.index,
            at: instant::text(at),
            who: act.who.to_string(),
            token: act.token.as_deref().map(str::to_owned),
            namespace: act.namespace.to_string(),
            action: act.action,
            target: act.target,
            made: made.map(|Made(id)| id),
            status: status.as_u16(),
            previous: chain.previous.clone(),
        };
        let mut line = serde_json::to_vec(&audited)?;
        let digest = digest(&line);
        line.push(b'\n');
        chain.file.write_all(&line)?;
        chain.index += 1;
        chain.previous = digest;
        Ok(())
    }
}

/// Checks the chain of an audit log: how many lines it has, or the number of the first line that does not belong where it is.
/// Lines that were cut off when a process died are passed over.
pub fn verify_audit(path: impl AsRef<Path>) -> io::Result<Result<u64, u64>> {
    let (mut index, mut previous) = (0, BEGINNING.to_owned());
    for (number, line) in (1..).zip(BufReader::new(File::open(path)?).split(b'\n')) {
        let line = line?;
        let Ok(audited) = serde_json::from_slice::<Audited>(&line) else { continue };
        if audited.index != index || audited.previous != previous {
            return Ok(Err(number));
        }
        (index, previous) = (index + 1, digest(&line));
    }
    Ok(Ok(index))
}

fn digest(line: &[u8]) -> String {
    hex(&Sha256::digest(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(target: &str) -> Act {
        Act {
            who: "ann".into(),
            token: None,
            namespace: Namespace::new("shop").unwrap(),
            action: "POST /x".to_owned(),
            target: target.to_owned(),
        }
    }

    fn write(path: &Path, targets: &[&str]) {
        let audit = Audit::open(path).unwrap();
        for target in targets {
            audit.append(act(target), None, StatusCode::OK, Timestamp::from_millis(0)).unwrap();
        }
    }

    #[test]
    fn a_chain_goes_on_after_a_restart_and_a_line_that_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        write(&path, &["a", "b"]);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"index\":2,").unwrap();
        write(&path, &["c"]);
        assert_eq!(verify_audit(&path).unwrap(), Ok(3));
    }

    #[test]
    fn whoever_changes_or_removes_a_line_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        write(&path, &["a", "b", "c"]);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"b\"", "\"x\"")).unwrap();
        assert_eq!(verify_audit(&path).unwrap(), Err(3));
        let without: Vec<&str> =
            text.lines().enumerate().filter(|(line, _)| *line != 1).map(|(_, line)| line).collect();
        std::fs::write(&path, without.join("\n")).unwrap();
        assert_eq!(verify_audit(&path).unwrap(), Err(2));
    }
}
