//! A program and everything it starts, as one process group: it is ended together.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;

/// How often to look whether a process group is gone: nobody gives notice of grandchildren.
const LOOK: Duration = Duration::from_millis(10);

/// A program that was started, with what it started itself. Dropped, it is stopped.
pub(super) struct Group {
    child: Option<Child>,
    id: Pid,
    grace: Duration,
    /// Whether nobody else stops it if this is dropped.
    last: bool,
}

impl Group {
    /// Starts a program as the leader of a process group of its own.
    pub(super) fn start(mut command: Command, grace: Duration) -> io::Result<Group> {
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::other("a program that was just started has no process id"))?;
        Ok(Group { child: Some(child), id, grace, last: false })
    }

    /// Its standard streams, once.
    pub(super) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        let Some(child) = &mut self.child else { return (None, None, None) };
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    }

    /// Waits until the program has ended, and ends what it left behind. What is dropped before is as if never asked.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let Some(child) = &mut self.child else { return Err(io::Error::other("it was stopped")) };
        let status = child.wait().await?;
        // At once, while the id cannot belong to anybody else: ids are given out in turn.
        self.signal(Signal::KILL);
        self.child = None;
        Ok(status)
    }

    /// Asks all of it to end, waits for so long, and kills what is left.
    pub(super) async fn stop(mut self, grace: Duration) {
        self.signal(Signal::TERM);
        if tokio::time::timeout(grace, self.gone()).await.is_err() {
            self.signal(Signal::KILL);
        }
        if let Some(child) = &mut self.child {
            let _ = child.wait().await;
        }
        self.child = None;
    }

    /// Completes when no process of the group is left.
    async fn gone(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.wait().await;
        }
        let mut look = tokio::time::interval(LOOK);
        while test_kill_process_group(self.id).is_ok() {
            look.tick().await;
        }
    }

    /// One that is gone needs no signal.
    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.id, signal);
    }
}

impl Drop for Group {
    /// Nobody wants its result any more: it is stopped in the background, or at once where there is none.
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        match Handle::try_current() {
            Ok(runtime) if !self.last => {
                let group = Group { child: Some(child), id: self.id, grace: self.grace, last: true };
                #[expect(clippy::disallowed_methods, reason = "a drop cannot wait, and the group must not survive it")]
                runtime.spawn(group.stop(self.grace));
            }
            Ok(_) | Err(_) => self.signal(Signal::KILL),
        }
    }
}
