//! A program as a task: JSON in, JSON out.

mod group;
mod pipes;
mod secrets;
mod verdict;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use outlast::{Error, Handler, Result, TaskContext};
use serde_json::value::RawValue;
use tokio::process::Command;

use group::Group;
use pipes::{Overflow, Tail, collect, feed, listen};
use secrets::Secrets;

/// The codes of errors that only these tasks have.
pub mod code {
    /// A program ended with another exit code than 0, or was killed by a signal.
    pub const COMMAND_FAILED: &str = "command_failed";
    /// A program could not be started.
    pub const COMMAND_NOT_STARTED: &str = "command_not_started";
    /// What a program wrote to its standard output is not JSON.
    pub const INVALID_OUTPUT: &str = "invalid_output";
    /// The address of an HTTP request is one that is not allowed.
    pub const ADDRESS_REFUSED: &str = "address_refused";
    /// An HTTP request got no answer.
    pub const HTTP_UNREACHABLE: &str = "http_unreachable";
    /// An HTTP request was answered with a status that is an error.
    pub const HTTP_STATUS: &str = "http_status";
    /// An HTTP request was sent on to somewhere it must not go, or too often.
    pub const HTTP_REDIRECT: &str = "http_redirect";
}

/// How long a program may take, unless its task says otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long a program has between being asked to end and being killed.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// What a program may write to its standard output, in bytes: as much as the engine stores of one payload.
pub(crate) const OUTPUT_BYTES: usize = 2 * 1024 * 1024;
/// How long to wait for output after a program has ended, if something that left its process group keeps the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A program as a task.
///
/// It is given the task's arguments as JSON on its standard input, and gives its result as JSON on its standard output;
/// writing nothing gives `null`. It sees `PATH`, the variables that [`env`](CommandTask::env) allows, and what is known of the
/// attempt: `OUTLAST_TASK`, `OUTLAST_TASK_ID`, `OUTLAST_RUN_ID`, `OUTLAST_NAMESPACE`, `OUTLAST_ATTEMPT` and
/// `OUTLAST_IDEMPOTENCY_KEY`.
///
/// It is the leader of a process group of its own. What it leaves running there ends with it.
///
/// ```
/// use std::time::Duration;
/// use outlast::Outlast;
/// use outlast_tasks::CommandTask;
///
/// let charge = CommandTask::new("charge", ["python3", "charge.py"])
///     .cwd("/srv/shop")
///     .env(["STRIPE_KEY"])
///     .timeout(Duration::from_secs(30));
/// let engine = Outlast::memory().handler(charge.into());
/// # drop(engine);
/// ```
#[derive(Clone, Debug)]
pub struct CommandTask {
    name: String,
    command: Vec<String>,
    cwd: PathBuf,
    env: Vec<String>,
    timeout: Duration,
    grace: Duration,
    output_limit: usize,
    permanent: Vec<i32>,
    queue: Option<String>,
    concurrency: Option<usize>,
}

impl CommandTask {
    /// A task of this name, done by a program with arguments. No shell is involved.
    pub fn new(name: &str, command: impl IntoIterator<Item = impl Into<String>>) -> CommandTask {
        CommandTask {
            name: name.to_owned(),
            command: command.into_iter().map(Into::into).collect(),
            cwd: PathBuf::from("."),
            env: Vec::new(),
            timeout: TIMEOUT,
            grace: GRACE,
            output_limit: OUTPUT_BYTES,
            permanent: Vec::new(),
            queue: None,
            concurrency: None,
        }
    }

    /// Where it runs, and what a program with a `/` in its name is relative to; the worker's own directory otherwise.
    #[must_use]
    pub fn cwd(mut self, directory: impl AsRef<Path>) -> CommandTask {
        self.cwd = directory.as_ref().to_owned();
        self
    }

    /// The variables of the worker's environment that it may see, besides `PATH`. One that is not set is not passed.
    ///
    /// What such a variable holds is taken for a secret if it has at least 8 bytes: `***` stands for it in whatever is kept and
    /// shown of the program, its result included. Those that everybody knows (`HOME`, `USER`, `LANG`, …) are no secrets.
    #[must_use]
    pub fn env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> CommandTask {
        self.env = names.into_iter().map(Into::into).collect();
        self
    }

    /// How long it may take; ten minutes otherwise. Its whole process group is then asked to end (`SIGTERM`), and after
    /// [`grace`](CommandTask::grace) is killed.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> CommandTask {
        self.timeout = timeout;
        self
    }

    /// How long it has between being asked to end and being killed; five seconds otherwise.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> CommandTask {
        self.grace = grace;
        self
    }

    /// How many bytes it may write to its standard output; 2 MiB otherwise, which is also what the engine stores of one result.
    #[must_use]
    pub fn output_limit(mut self, bytes: usize) -> CommandTask {
        self.output_limit = bytes;
        self
    }

    /// Exit codes after which it is not tried again. All others may be.
    #[must_use]
    pub fn permanent_exit_codes(mut self, codes: impl IntoIterator<Item = i32>) -> CommandTask {
        self.permanent = codes.into_iter().collect();
        self
    }

    /// The queue its tasks are taken from; `default` otherwise.
    #[must_use]
    pub fn queue(mut self, queue: &str) -> CommandTask {
        self.queue = Some(queue.to_owned());
        self
    }

    /// How many of these tasks one worker does at once; as many as it does of all otherwise.
    #[must_use]
    pub fn concurrency(mut self, tasks: usize) -> CommandTask {
        self.concurrency = Some(tasks);
        self
    }

    /// One attempt.
    async fn attempt(&self, context: &TaskContext, args: &RawValue) -> Result<Box<RawValue>> {
        let variables = self.variables();
        let secrets = Secrets::of(&variables);
        let mut group = self.start(context, variables)?;
        let mut heard = Heard { output: Vec::new(), stderr: Tail::new(secrets.clone()) };
        let talk = self.talk(&mut group, context, args, &mut heard);
        let ended = tokio::time::timeout(self.timeout, talk).await;
        let Heard { output, stderr } = heard;
        match ended {
            Ok(Ok(status)) => self.judge(status, &Said { output, stderr, secrets }, context),
            Ok(Err(Trouble::Overflow(Overflow))) => {
                group.stop(self.grace).await;
                Err(self.overflow(&stderr))
            }
            Ok(Err(Trouble::Unknown(error))) => {
                group.stop(self.grace).await;
                Err(Error::new(code::COMMAND_FAILED, format!("nobody knows how {} ended: {error}", self.told())))
            }
            Err(_) => {
                group.stop(self.grace).await;
                Err(self.late(&stderr))
            }
        }
    }

    /// Those it may see that are set.
    fn variables(&self) -> Vec<(&str, OsString)> {
        let names = self.env.iter().map(String::as_str);
        names.filter_map(|name| Some((name, std::env::var_os(name)?))).collect()
    }

    fn start(&self, context: &TaskContext, variables: Vec<(&str, OsString)>) -> Result<Group> {
        let mut command = Command::new(self.program()?);
        command.args(&self.command[1..]).current_dir(&self.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env_clear();
        command.envs(variables);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("OUTLAST_TASK", context.name().as_str());
        command.env("OUTLAST_TASK_ID", context.id().as_str());
        command.env("OUTLAST_NAMESPACE", context.namespace().as_str());
        command.env("OUTLAST_ATTEMPT", context.attempt().to_string());
        command.env("OUTLAST_IDEMPOTENCY_KEY", context.idempotency_key());
        if let Some(run) = context.run_id() {
            command.env("OUTLAST_RUN_ID", run.as_str());
        }
        Group::start(command, self.grace).map_err(|error| self.not_started(&error))
    }

    /// A program with a `/` in its name is relative to its directory: what the system does then differs between systems.
    fn program(&self) -> Result<PathBuf> {
        let program = self.command.first().ok_or_else(|| {
            Error::new(code::COMMAND_NOT_STARTED, format!("task `{}` has an empty command", self.name)).permanent()
        })?;
        if program.contains('/') { Ok(self.absolute_cwd()?.join(program)) } else { Ok(PathBuf::from(program)) }
    }

    fn absolute_cwd(&self) -> std::io::Result<PathBuf> {
        std::path::absolute(&self.cwd)
    }

    /// Gives the program what it is to work on, and listens until it has ended.
    async fn talk(
        &self,
        group: &mut Group,
        context: &TaskContext,
        args: &RawValue,
        heard: &mut Heard,
    ) -> Result<ExitStatus, Trouble> {
        let (stdin, stdout, stderr) = group.pipes();
        let Heard { output, stderr: tail } = heard;
        // All at once: a program may write before it has read, or read nothing at all.
        let mut pipes = std::pin::pin!(async {
            let fed = async {
                feed(stdin, args.get()).await;
                Ok(())
            };
            let told = async {
                listen(stderr, tail, context).await;
                Ok(())
            };
            tokio::try_join!(fed, told, collect(stdout, output, self.output_limit)).map(drop)
        });
        let mut closed = false;
        let status = loop {
            tokio::select! {
                status = group.ended() => break status.map_err(Trouble::Unknown)?,
                done = &mut pipes, if !closed => {
                    done.map_err(Trouble::Overflow)?;
                    closed = true;
                }
            }
        };
        if !closed && let Ok(done) = tokio::time::timeout(LAST_WORDS, pipes).await {
            done.map_err(Trouble::Overflow)?;
        }
        Ok(status)
    }
}

/// What came out of a program.
struct Heard {
    output: Vec<u8>,
    stderr: Tail,
}

/// What came out of a program that has ended, and what must not be told of it.
struct Said {
    output: Vec<u8>,
    stderr: Tail,
    secrets: Secrets,
}

/// Why listening to a program was given up.
enum Trouble {
    Overflow(Overflow),
    Unknown(std::io::Error),
}

impl From<CommandTask> for Handler {
    fn from(task: CommandTask) -> Handler {
        let (name, queue, concurrency) = (task.name.clone(), task.queue.clone(), task.concurrency);
        let task = Arc::new(task);
        let mut handler = Handler::new(&name, move |context: TaskContext, args: Box<RawValue>| {
            let task = Arc::clone(&task);
            async move { task.attempt(&context, &args).await }
        });
        if let Some(queue) = queue {
            handler = handler.queue(&queue);
        }
        if let Some(tasks) = concurrency {
            handler = handler.concurrency(tasks);
        }
        handler
    }
}
