//! What goes in and out of a program.

use std::collections::VecDeque;
use std::time::Duration;

use outlast::TaskContext;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::Instant;

use super::secrets::{Filter, Secrets};

/// What is kept of the standard error stream, in bytes: its end.
const STDERR_BYTES: usize = 16 * 1024;
/// What is shown of it while the task runs, in bytes.
const SHOWN_BYTES: usize = 1024;
/// How often it is shown at most: each time is written to the store.
const SHOWN_EVERY: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 16 * 1024;

/// A program wrote more than it may.
#[derive(Debug)]
pub(super) struct Overflow;

/// Gives a program its input, and no more. One that does not read it may have its reasons.
pub(super) async fn feed(stdin: Option<ChildStdin>, input: &str) {
    let Some(mut stdin) = stdin else { return };
    let written = async {
        stdin.write_all(input.as_bytes()).await?;
        // For programs that read lines.
        stdin.write_all(b"\n").await?;
        stdin.flush().await
    };
    let _ = written.await;
}

/// Takes what a program writes to its standard output.
pub(super) async fn collect(
    stdout: Option<ChildStdout>,
    output: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), Overflow> {
    let Some(stdout) = stdout else { return Ok(()) };
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    // A pipe that breaks is one that ends: what became of the program is known from its exit code.
    let _ = stdout.take(limit).read_to_end(output).await;
    if output.len() > bytes_max { Err(Overflow) } else { Ok(()) }
}

/// Keeps the end of what a program writes to its standard error stream, and shows it. Whatever it writes is a sign of life.
pub(super) async fn listen(stderr: Option<ChildStderr>, tail: &mut Tail, context: &TaskContext) {
    let Some(mut stderr) = stderr else { return };
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut next = Instant::now();
    let mut unseen = false;
    loop {
        tokio::select! {
            read = stderr.read(&mut chunk) => match read {
                Ok(0) | Err(_) => return,
                Ok(bytes) => {
                    tail.push(&chunk[..bytes]);
                    context.heartbeat();
                    unseen = true;
                }
            },
            () = tokio::time::sleep_until(next), if unseen => {
                context.progress(&json!({ "stderr": tail.last(SHOWN_BYTES) }));
                next = Instant::now() + SHOWN_EVERY;
                unseen = false;
            }
        }
    }
}

/// The end of a stream, without what is secret: taken out before anything is cut off, so that no part of it is left.
#[derive(Default)]
pub(super) struct Tail {
    filter: Filter,
    bytes: VecDeque<u8>,
    /// Whether there was more before.
    cut: bool,
}

impl Tail {
    pub(super) fn new(secrets: Secrets) -> Tail {
        Tail { filter: Filter::new(secrets), ..Tail::default() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.filter.pass(bytes, &mut self.bytes);
        let extra = self.bytes.len().saturating_sub(STDERR_BYTES);
        self.cut |= extra > 0;
        self.bytes.drain(..extra);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.filter.holds_nothing()
    }

    /// All that was kept, as text, once nothing follows.
    pub(super) fn text(&self) -> String {
        self.last(STDERR_BYTES) + &String::from_utf8_lossy(&self.filter.rest())
    }

    /// At most so much of its end, as text, while more may follow.
    fn last(&self, bytes_max: usize) -> String {
        let from = self.bytes.len().saturating_sub(bytes_max);
        // A letter that was cut in two is left out.
        let is_middle = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let cut = self.cut || from > 0;
        let middle = if cut { self.bytes.iter().skip(from).take_while(|byte| is_middle(byte)).count() } else { 0 };
        let bytes: Vec<u8> = self.bytes.iter().skip(from + middle).copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        if cut { format!("…{text}") } else { text.into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stream_is_kept_and_letters_stay_whole() {
        let mut tail = Tail::default();
        tail.push("grüße".as_bytes());
        assert_eq!((tail.text().as_str(), tail.last(4).as_str()), ("grüße", "…ße"));
        assert_eq!(tail.last(2), "…e", "the second half of ß is left out");
        tail.push(&vec![b'x'; STDERR_BYTES]);
        assert_eq!(tail.text(), format!("…{}", "x".repeat(STDERR_BYTES)));
    }

    #[test]
    fn what_is_kept_of_a_secret_is_nothing_wherever_it_is_cut() {
        let secret = "sk-live-0123456789";
        for behind in STDERR_BYTES - 2 * secret.len()..STDERR_BYTES + secret.len() {
            let mut tail = Tail::new(Secrets::of(&[("KEY", secret.into())]));
            tail.push(format!("key {secret}").as_bytes());
            tail.push(&vec![b'x'; behind]);
            assert!(!tail.text().contains(['0', '9']), "{behind}");
        }
        let mut tail = Tail::new(Secrets::of(&[("KEY", secret.into())]));
        tail.push(b"key sk-live-01");
        assert_eq!((tail.last(SHOWN_BYTES).as_str(), tail.text().as_str()), ("key ", "key ***"));
        tail.push(b"23456789.");
        assert_eq!(tail.last(SHOWN_BYTES), "key ***.");
    }
}
