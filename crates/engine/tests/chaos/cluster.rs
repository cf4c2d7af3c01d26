//! The processes, and what is done to them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{self, Acked};
use crate::dice::Dice;
use crate::server::Server;
use crate::{judge, member, witness};

const ENGINES: usize = 4;
const WORKERS: usize = 4;
/// Orders that must have been asked for in each second of trouble: on a busy machine it lasts longer for that, by half at most.
const ORDERS_PER_SECOND_MIN: u64 = 3;
/// One freeze in so many is long: past every lease, and past the time after which the server ends a transaction that stands
/// still.
const LONG_ONE_IN: u64 = 6;

/// What was done.
#[derive(Debug, Default)]
struct Done {
    killed: u64,
    frozen: u64,
    frozen_long: u64,
    server_killed: u64,
}

impl Done {
    /// So much must have happened in so many seconds.
    fn check(&self, seconds: u64) {
        let enough = self.killed >= seconds / 5 && self.frozen >= seconds / 10 && self.server_killed >= seconds / 10;
        let long = self.frozen_long >= seconds / 60;
        assert!(enough && long && self.killed > 0 && self.frozen > 0, "too little happened: {self:?}");
    }
}

/// So long everything that can go wrong does, the second half of it without hints; then everything must come to its end.
pub(crate) fn trouble(duration: Duration) {
    let server = Server::started(&[], "max_connections = 200");
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    let (stop, acked) = (AtomicBool::new(false), Mutex::new(Acked::default()));
    let mut cluster = Cluster::start(&server, &witness);
    let orders_min = usize::try_from(duration.as_secs() * ORDERS_PER_SECOND_MIN).unwrap();
    let done = std::thread::scope(|scope| {
        let url = server.url();
        let (stop, acked) = (&stop, &acked);
        let trading = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(client::ask(&url, stop, acked));
        });
        let started = || acked.lock().unwrap().started.len();
        let mut done = Done::default();
        cluster.suffer(&server, duration / 2, &mut done, || started() >= orders_min / 2);
        println!("with hints: {done:?}, {} orders started", started());
        cluster.fall_silent();
        cluster.suffer(&server, duration / 2, &mut done, || started() >= orders_min);
        stop.store(true, Ordering::SeqCst);
        trading.join().unwrap();
        done
    });
    let acked = acked.into_inner().unwrap();
    println!("in all: {done:?}, {} orders started, {} seen to end", acked.started.len(), acked.seen.len());
    let (stopped, late, lingered) = (acked.cancelled.len(), acked.too_late.len(), acked.lingered.len());
    println!("{stopped} of them cancelled, {late} too late for that; {lingered} that stay cancelled");
    done.check(duration.as_secs());
    let enough = acked.started.len() >= orders_min && stopped > 0 && lingered > 0 && !acked.schedules.is_empty();
    assert!(enough, "too little was asked for: {acked:?}");
    judge::judge(&server.url(), &acked, &witness);
    drop(cluster);
}

struct Cluster {
    members: Vec<Member>,
    url: String,
    witness: PathBuf,
    hints: bool,
    dice: Dice,
}

struct Member {
    role: &'static str,
    process: Child,
    /// Frozen until then.
    frozen: Option<Instant>,
}

impl Cluster {
    fn start(server: &Server, witness: &Path) -> Cluster {
        let (url, witness) = (server.url(), witness.to_owned());
        let dice = Dice(u64::from(std::process::id()) | 1);
        let mut cluster = Cluster { members: Vec::new(), url, witness, hints: true, dice };
        let roles = [("engine", ENGINES), ("worker", WORKERS)];
        for (role, count) in roles {
            for _ in 0..count {
                let process = cluster.spawn(role);
                cluster.members.push(Member { role, process, frozen: None });
            }
        }
        cluster
    }

    fn spawn(&self, role: &str) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "member", "--nocapture"]).stdout(Stdio::null());
        command.env(member::ROLE, role).env(member::URL, &self.url).env(witness::FILE, &self.witness);
        if self.hints {
            command.env(member::HINTS, "1");
        }
        command.spawn().unwrap()
    }

    /// From now on nobody hints and nobody listens: each is replaced by one that does not.
    fn fall_silent(&mut self) {
        self.hints = false;
        for victim in 0..self.members.len() {
            self.kill(victim);
        }
    }

    /// Kills and freezes, and ends with everybody alive.
    fn suffer(&mut self, server: &Server, duration: Duration, done: &mut Done, enough: impl Fn() -> bool) {
        let begun = Instant::now();
        let mut next_server = begun + Duration::from_secs(2);
        while begun.elapsed() < duration || !enough() && begun.elapsed() < duration * 3 / 2 {
            std::thread::sleep(Duration::from_millis(100 + self.dice.roll(400)));
            self.thaw(false);
            if Instant::now() >= next_server {
                server.kill();
                done.server_killed += 1;
                std::thread::sleep(Duration::from_millis(self.dice.roll(500)));
                server.start();
                next_server = Instant::now() + Duration::from_millis(2_000 + self.dice.roll(4_000));
            }
            let victim = usize::try_from(self.dice.roll(self.members.len() as u64)).unwrap();
            if self.dice.roll(2) == 0 {
                self.kill(victim);
                done.killed += 1;
            } else if self.members[victim].frozen.is_none() {
                self.freeze(victim, done);
            }
        }
        self.thaw(true);
        for member in &mut self.members {
            assert!(member.process.try_wait().unwrap().is_none(), "a member ended by itself");
        }
    }

    fn freeze(&mut self, victim: usize, done: &mut Done) {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
        let long = self.dice.roll(LONG_ONE_IN) == 0;
        // Mostly past its lease.
        let extent = millis(member::LEASE) * 2;
        let least = if long { millis(member::STATEMENT_TIMEOUT) + 500 } else { 200 };
        let member = &mut self.members[victim];
        signal(&member.process, Signal::STOP);
        member.frozen = Some(Instant::now() + Duration::from_millis(least + self.dice.roll(extent)));
        done.frozen += 1;
        done.frozen_long += u64::from(long);
    }

    fn kill(&mut self, victim: usize) {
        let member = &mut self.members[victim];
        if let Some(end) = member.process.try_wait().unwrap() {
            panic!("a member ended by itself: {end}");
        }
        member.process.kill().unwrap();
        member.process.wait().unwrap();
        let process = self.spawn(self.members[victim].role);
        self.members[victim] = Member { role: self.members[victim].role, process, frozen: None };
    }

    /// Thaws those whose time has come, or all.
    fn thaw(&mut self, all: bool) {
        for member in &mut self.members {
            if member.frozen.is_some_and(|until| all || until <= Instant::now()) {
                signal(&member.process, Signal::CONT);
                member.frozen = None;
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.process.kill();
            let _ = member.process.wait();
        }
    }
}

fn signal(process: &Child, signal: Signal) {
    let id = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
    kill_process(id, signal).unwrap();
}
