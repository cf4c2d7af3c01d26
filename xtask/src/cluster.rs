//! A private PostgreSQL: its own directory, its own port, gone when it is dropped.

mod account;
mod stale;

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use self::account::Account;
use crate::{interrupt, process, tools};

const PREFIX: &str = "outlast-pg-";
const MAX_CONNECTIONS: u16 = 300;
/// Between choosing a free port and PostgreSQL taking it, somebody else may.
const PORT_ATTEMPTS: u32 = 5;
const START_TIMEOUT_SECONDS: &str = "60";

/// Whether what is written to it must outlast the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synced {
    /// Every commit is: for benchmarks, and for whoever wants to see it as it is in production.
    Yes,
    /// Nobody cuts the power in the tests. Where one kills the server, the operating system still has what was written; and each
    /// test makes and drops a schema of its own, whose files take ten times as long to sync as everything else.
    No,
}

/// A running PostgreSQL that belongs to this process.
pub(crate) struct Cluster {
    binaries: PathBuf,
    account: Option<Account>,
    port: u16,
    dir: TempDir,
    // Locked for as long as we live: see `stale`. Last, because fields are dropped in order.
    _owner: File,
}

impl Cluster {
    /// Finds or installs PostgreSQL, and starts a fresh cluster.
    pub(crate) fn start(synced: Synced) -> Result<Self> {
        let binaries = tools::postgres::binaries()?;
        let account = Account::for_postgres()?;
        let parent = parent_directory();
        stale::remove(&parent, &binaries, account.as_ref());

        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            // PostgreSQL may run as another user, who must get through.
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(&parent)
            .with_context(|| format!("cannot create a directory in {}", parent.display()))?;
        let owner = stale::claim(dir.path())?;
        let mut cluster = Self { binaries, account, port: 0, dir, _owner: owner };
        cluster.initialise(synced).context("cannot create a PostgreSQL cluster")?;
        cluster.launch().context("cannot start PostgreSQL")?;
        Ok(cluster)
    }

    /// Where its superuser connects.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The variables by which tests and benchmarks find it.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        [("OUTLAST_TEST_POSTGRES", self.url()), ("OUTLAST_TEST_PG_BIN", self.binaries.display().to_string())]
    }

    fn data(&self) -> PathBuf {
        data_directory(self.dir.path())
    }

    fn program(&self, name: &str) -> Command {
        program(&self.binaries, name, self.account.as_ref(), self.dir.path())
    }

    fn initialise(&self, synced: Synced) -> Result<()> {
        for directory in [self.data(), socket_directory(self.dir.path())] {
            fs::create_dir(&directory)?;
            fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
            if let Some(account) = &self.account {
                account.give(&directory)?;
            }
        }
        let mut initdb = self.program("initdb");
        initdb.arg("--pgdata").arg(self.data());
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        process::capture(&mut initdb)?;

        let socket = socket_directory(self.dir.path()).display().to_string().replace('\'', "''");
        let mut settings = File::options().append(true).open(self.data().join("postgresql.conf"))?;
        writeln!(settings, "listen_addresses = '127.0.0.1'")?;
        writeln!(settings, "unix_socket_directories = '{socket}'")?;
        writeln!(settings, "max_connections = {MAX_CONNECTIONS}")?;
        let switch = if synced == Synced::Yes { "on" } else { "off" };
        writeln!(settings, "fsync = {switch}")?;
        writeln!(settings, "full_page_writes = {switch}")?;
        Ok(())
    }

    fn launch(&mut self) -> Result<()> {
        let mut attempt = 1;
        loop {
            interrupt::check()?;
            self.port = free_port()?;
            match self.launch_on_port() {
                Ok(()) => return Ok(()),
                Err(_) if attempt < PORT_ATTEMPTS => attempt += 1,
                Err(error) => {
                    let log = fs::read_to_string(self.log()).unwrap_or_default();
                    return Err(error.context(format!("its log says:\n{}", log.trim_end())));
                }
            }
        }
    }

    /// Returns once it accepts connections.
    fn launch_on_port(&self) -> Result<()> {
        let mut start = self.program("pg_ctl");
        start.args(["start", "--wait", "--timeout", START_TIMEOUT_SECONDS, "--options", &format!("-p {}", self.port)]);
        start.arg("--pgdata").arg(self.data()).arg("--log").arg(self.log());
        // Not captured: the server would inherit the pipe and keep it open.
        start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Not interruptible: half-way, a server may exist that has not yet written down its process id.
        let status = start.status().context("cannot run `pg_ctl`")?;
        ensure!(status.success(), "`pg_ctl start` failed ({status})");
        Ok(())
    }

    fn log(&self) -> PathBuf {
        // Inside the data directory, where the account PostgreSQL runs as may write.
        self.data().join("server.log")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        stop(&self.binaries, self.account.as_ref(), self.dir.path());
    }
}

/// `/var/tmp` is on a real disk and open to every user; the usual temporary directory may be neither.
fn parent_directory() -> PathBuf {
    let preferred = Path::new("/var/tmp");
    if preferred.is_dir() { preferred.to_path_buf() } else { std::env::temp_dir() }
}

fn data_directory(dir: &Path) -> PathBuf {
    dir.join("data")
}

fn socket_directory(dir: &Path) -> PathBuf {
    dir.join("socket")
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// A program of PostgreSQL, as the account it may run as and with none of the developer's own settings.
fn program(binaries: &Path, name: &str, account: Option<&Account>, dir: &Path) -> Command {
    let mut command = Command::new(binaries.join(name));
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("PG") {
            command.env_remove(variable);
        }
    }
    // Its own process group: Ctrl-C must not stop it in the middle of a start or a stop.
    command.env("LC_ALL", "C").current_dir(dir).process_group(0);
    if let Some(account) = account {
        account.applies_to(&mut command);
    }
    command
}

/// Stops the server of this directory, whatever state it is in. Nobody is left to hear about a failure.
fn stop(binaries: &Path, account: Option<&Account>, dir: &Path) {
    let Some(postmaster) = postmaster_pid(dir) else { return };
    let mut pg_ctl = program(binaries, "pg_ctl", account, dir);
    pg_ctl.args(["stop", "--mode=immediate", "--wait", "--timeout=30"]).arg("--pgdata").arg(data_directory(dir));
    if !process::succeeds(&mut pg_ctl) && postmaster_pid(dir) == Some(postmaster) {
        let _ = kill_process(postmaster, Signal::KILL);
    }
}

/// The first line of `postmaster.pid`, which exists while the server runs.
fn postmaster_pid(dir: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data_directory(dir).join("postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok().and_then(Pid::from_raw)
}
