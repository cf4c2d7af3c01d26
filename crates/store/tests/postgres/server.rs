//! A PostgreSQL of a story's own: it can be killed, and it can have a certificate.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub(crate) struct Server {
    binaries: PathBuf,
    account: Option<(u32, u32)>,
    dir: TempDir,
    pub(crate) port: u16,
}

impl Server {
    /// A fresh cluster, with these files in its data directory and these lines in its settings, not running yet.
    pub(crate) fn prepare(files: &[(&str, &str)], settings: &str) -> Server {
        let binaries = match std::env::var_os("OUTLAST_TEST_PG_BIN") {
            Some(path) => PathBuf::from(path),
            None => panic!("run `cargo xtask test`, or set OUTLAST_TEST_PG_BIN to the folder of initdb and pg_ctl"),
        };
        let dir = tempfile::Builder::new().prefix("outlast-story-").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // PostgreSQL refuses to run as root.
        let root = fs::metadata(dir.path()).unwrap().uid() == 0;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Server { binaries, account: root.then(unprivileged), dir, port };
        fs::create_dir(server.data()).unwrap();
        server.give(&server.data(), 0o700);
        let data = server.data().display().to_string();
        server.run("initdb", &["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        for (name, text) in files {
            fs::write(server.data().join(name), text).unwrap();
            server.give(&server.data().join(name), 0o600);
        }
        let file = server.data().join("postgresql.conf");
        let defaults = fs::read_to_string(&file).unwrap();
        let ours = "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = on\n";
        fs::write(&file, format!("{defaults}\n{ours}{settings}\n")).unwrap();
        server
    }

    pub(crate) fn started(files: &[(&str, &str)], settings: &str) -> Server {
        let server = Server::prepare(files, settings);
        server.start();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns once it takes connections.
    pub(crate) fn start(&self) {
        let (data, log) = (self.data().display().to_string(), self.data().join("log").display().to_string());
        self.run("pg_ctl", &["start", "-w", "-D", &data, "-l", &log, "-o", &format!("-p {}", self.port)]);
    }

    /// As if the machine had lost power: no goodbye to clients, no checkpoint.
    pub(crate) fn kill(&self) {
        self.run("pg_ctl", &["stop", "-w", "-m", "immediate", "-D", &self.data().display().to_string()]);
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn give(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        if let Some((user, group)) = self.account {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.binaries.join(program));
        // Not captured: the server would inherit the pipe and keep it open.
        command.args(arguments).current_dir(self.dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = self.account {
            command.uid(user).gid(group);
        }
        let status = command.status().unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
        let log = || fs::read_to_string(self.data().join("log")).unwrap_or_default();
        assert!(status.success(), "{program} {arguments:?} failed: {}", log());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            let mut stop = Command::new(self.binaries.join("pg_ctl"));
            stop.args(["stop", "-w", "-m", "immediate", "-D"])
                .arg(self.data())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if let Some((user, group)) = self.account {
                stop.uid(user).gid(group);
            }
            let _ = stop.status();
        }
    }
}

/// The account PostgreSQL runs as when we are root.
fn unprivileged() -> (u32, u32) {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody")).expect("there is neither an account postgres nor nobody")
}
