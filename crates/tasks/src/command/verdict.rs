//! What became of a program, as the task's result or its error.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use outlast::{Error, Failure, Result, TaskContext};
use rustix::process::Signal;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::pipes::Tail;
use super::{CommandTask, Said, code};

/// What is shown of output that is not JSON, and of the last line of the standard error stream, in characters.
const SHOWN: usize = 300;
/// Told with the attempt: a result that is not what the program wrote must not surprise anybody.
const HIDDEN: &str = "outlast: the result had the value of a variable of `env` in it; *** stands for it";

impl CommandTask {
    pub(super) fn judge(&self, status: ExitStatus, said: &Said, context: &TaskContext) -> Result<Box<RawValue>> {
        let stderr = said.stderr.text();
        let (task, attempt) = (context.id(), context.attempt());
        if !said.stderr.is_empty() {
            tracing::info!(%task, attempt, name = self.name, stderr, "what a command wrote to stderr");
            context.log(stderr.as_str());
        }
        if !status.success() {
            return Err(self.failed(status, &said.stderr));
        }
        let read = self.read(said).map_err(|error| error.with_data(&json!({ "stderr": stderr })))?;
        let Some(hidden) = said.secrets.hide_in_json(read.get()) else { return Ok(read) };
        tracing::warn!(%task, attempt, name = self.name, "{HIDDEN}");
        context.log(format!("{stderr}{HIDDEN}\n"));
        Ok(RawValue::from_string(hidden)?)
    }

    fn read(&self, said: &Said) -> Result<Box<RawValue>> {
        let wrong = |reason: String, shown: &str| {
            let message = format!(
                "{} wrote something to stdout that is not JSON ({reason}); it begins with: {shown}; write the result to stdout \
                 and everything else to stderr",
                self.told()
            );
            Error::new(code::INVALID_OUTPUT, message).permanent()
        };
        let shown = || begin(&String::from_utf8_lossy(&said.secrets.hide(&said.output)));
        let text = std::str::from_utf8(&said.output).map_err(|_| wrong("it is not UTF-8".to_owned(), &shown()))?;
        let text = if text.trim().is_empty() { "null" } else { text };
        // Checked more strictly than it is kept: whoever reads it must be able to.
        serde_json::from_str::<Value>(text).map_err(|error| wrong(error.to_string(), &shown()))?;
        serde_json::from_str(text).map_err(|error| wrong(error.to_string(), &shown()))
    }

    fn failed(&self, status: ExitStatus, stderr: &Tail) -> Error {
        let signal = status.signal().map(signal_name);
        let how = match (&signal, status.code()) {
            (Some(signal), _) => format!("was killed by {signal}"),
            (None, Some(code)) => format!("ended with exit code {code}"),
            (None, None) => "ended without an exit code".to_owned(),
        };
        let stderr = stderr.text();
        let last = stderr.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map_or_else(|| " and wrote nothing to stderr".to_owned(), |line| format!(": {}", begin(line)));
        let data = json!({ "exit_code": status.code(), "signal": signal, "stderr": stderr });
        let error = Error::new(code::COMMAND_FAILED, format!("{} {how}{last}", self.told())).with_data(&data);
        if status.code().is_some_and(|code| self.permanent.contains(&code)) { error.permanent() } else { error }
    }

    pub(super) fn overflow(&self, stderr: &Tail) -> Error {
        let message = format!(
            "{} wrote more than {} bytes to stdout, and was stopped; write less, or raise `output_limit`",
            self.told(),
            self.output_limit
        );
        Error::new("limit_exceeded", message).permanent().with_data(&json!({ "stderr": stderr.text() }))
    }

    pub(super) fn late(&self, stderr: &Tail) -> Error {
        let message = format!("{} took longer than {:?}, and was stopped; see `timeout`", self.told(), self.timeout);
        Error::from(Failure::timeout(message)).with_data(&json!({ "stderr": stderr.text() }))
    }

    pub(super) fn not_started(&self, error: &io::Error) -> Error {
        let why = if self.cwd.is_dir() {
            format!("{error}; is it installed on this worker, and is it executable?")
        } else {
            format!("its directory {} does not exist", self.cwd.display())
        };
        Error::new(code::COMMAND_NOT_STARTED, format!("{} could not be started: {why}", self.told()))
    }

    /// The program as it is told of: not with its arguments, which may be anything.
    pub(super) fn told(&self) -> String {
        format!("`{}` of task `{}`", self.command.first().map_or("", String::as_str), self.name)
    }
}

fn begin(text: &str) -> String {
    let mut shown: String = text.trim().chars().take(SHOWN).collect();
    if text.trim().chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

fn signal_name(number: i32) -> String {
    let known = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::SYS, "SIGSYS"),
    ];
    let name = known.into_iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| name.to_owned());
    name.unwrap_or_else(|| format!("signal {number}"))
}
