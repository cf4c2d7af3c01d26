//! Starting children, and ending them when a signal comes.

use std::fmt;
use std::io::IsTerminal as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::interrupt::{self, Interrupted};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long a child may take to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(15);

/// A command ended with something other than success.
#[derive(Debug)]
pub(crate) struct ChildFailed {
    pub(crate) command: String,
    pub(crate) code: u8,
}

impl fmt::Display for ChildFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed with code {}", self.command, self.code)
    }
}

impl std::error::Error for ChildFailed {}

/// Who decides what Ctrl-C at the terminal means while a child runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CtrlC {
    /// We end, and so does the child.
    EndsUs,
    /// The child: it may be a shell or `psql`, where Ctrl-C is everyday use.
    BelongsToChild,
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().map_or_else(|| here.clone(), Path::to_path_buf)
}

/// `cargo <args>` in the workspace root, as if typed by hand.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    forget_us(&mut command);
    command
}

/// `cargo run` describes *this* package to us. Build scripts that watch these variables would rebuild everything each time one
/// switches between `cargo xtask …` and plain cargo.
pub(crate) fn forget_us(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
}

/// Runs to the end and fails unless it succeeds, or with [`Interrupted`] when a signal came first.
pub(crate) fn run(command: &mut Command, ctrl_c: CtrlC) -> Result<()> {
    let status = wait(command, ctrl_c)?;
    if status.success() {
        return Ok(());
    }
    // As a shell would report it.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(ChildFailed { command: describe(command), code }.into())
}

/// Runs without showing anything; the answer is what it printed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{}`", describe(command)))?;
    if !output.status.success() {
        let printed = [output.stdout, output.stderr].concat();
        bail!("`{}` failed ({}):\n{}", describe(command), output.status, String::from_utf8_lossy(&printed).trim_end());
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not text", describe(command)))
}

/// Whether a probe such as `tool --version` works here.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    capture(command).is_ok()
}

/// The executable of this name on the search path.
pub(crate) fn find_in_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| is_executable(path))
}

/// Whether this is a file that may be executed.
pub(crate) fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy();
    let words = std::iter::once(name).chain(command.get_args().map(|arg| arg.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

fn wait(command: &mut Command, ctrl_c: CtrlC) -> Result<ExitStatus> {
    interrupt::check()?;
    // At a terminal the child stays in the foreground group, where it can read keys and gets Ctrl-C itself. Elsewhere
    // it leads a group of its own, so that its descendants can be ended with it.
    let at_terminal = std::io::stdin().is_terminal();
    if !at_terminal {
        command.process_group(0);
    }
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", describe(command)))?;
    loop {
        let ended = child.try_wait().context("cannot wait for a child")?;
        let signal = interrupt::received()
            .filter(|signal| !(at_terminal && ctrl_c == CtrlC::BelongsToChild && interrupt::is_ctrl_c(*signal)));
        match (ended, signal) {
            (None, None) => std::thread::sleep(POLL_INTERVAL),
            (Some(status), None) => return Ok(status),
            (Some(_), Some(signal)) => return Err(Interrupted { signal }.into()),
            (None, Some(signal)) => {
                end(&mut child, !at_terminal)?;
                return Err(Interrupted { signal }.into());
            }
        }
    }
}

/// A child that runs beside others, with all it starts. It ends when this goes.
pub(crate) struct Beside(Child);

impl Beside {
    pub(crate) fn start(command: &mut Command) -> Result<Beside> {
        // A group of its own: Ctrl-C is for whoever is in the foreground, and this one is ended after them.
        command.stdin(Stdio::null()).process_group(0);
        command.spawn().map(Beside).with_context(|| format!("cannot run `{}`", describe(command)))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Err(error) = end(&mut self.0, true) {
            eprintln!("{error:#}");
        }
    }
}

/// Asks a child to end, and kills it when it does not.
fn end(child: &mut Child, leads_group: bool) -> Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process id fits")?;
    let send = |signal| if leads_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
    // A failure here means that it has just ended by itself.
    let _ = send(Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while child.try_wait().context("cannot wait for a child")?.is_none() {
        if Instant::now() > deadline {
            let _ = send(Signal::KILL);
            child.wait().context("cannot wait for a child")?;
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_of_a_child_is_kept() {
        let error = run(Command::new("sh").args(["-c", "exit 7"]), CtrlC::EndsUs).expect_err("7 is a failure");
        let failed = error.downcast_ref::<ChildFailed>().expect("a failed child");
        assert_eq!((failed.code, failed.command.as_str()), (7, "sh -c exit 7"));

        let error = run(Command::new("sh").args(["-c", "kill -TERM $$"]), CtrlC::EndsUs).expect_err("killed");
        assert_eq!(error.downcast_ref::<ChildFailed>().map(|failed| failed.code), Some(143));
    }

    #[test]
    fn captured_failure_shows_what_was_printed() {
        let error = capture(Command::new("sh").args(["-c", "echo no disk >&2; exit 1"])).expect_err("1 is a failure");
        assert!(error.to_string().contains("no disk"), "{error}");
    }

    #[test]
    fn search_path_finds_what_exists() {
        assert!(find_in_path("sh").is_some());
        assert_eq!(find_in_path("no-such-program-anywhere"), None);
    }

    #[test]
    fn a_child_and_its_children_end_when_asked() {
        let mut child =
            Command::new("sh").args(["-c", "sleep 600 & wait"]).process_group(0).spawn().expect("sh starts");
        end(&mut child, true).expect("it ends");
        assert!(child.try_wait().expect("its status is known").is_some());
    }
}
