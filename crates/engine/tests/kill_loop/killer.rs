//! The one who kills, and looks at what is left.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast::{Ailment, Finding, Outlast, Recording};
use outlast_core::id::{Namespace, RunId, RunKey};
use outlast_store::Store;

use crate::check::{self, Coverage, Findings};
use crate::evidence::Snapshot;
use crate::ledger::{self, Entry};
use crate::place::Place;
use crate::workflows::register;

/// How long a story may take, on the busiest machine: some seconds otherwise.
const STORY_MAX: Duration = Duration::from_secs(120);

/// Kills workers until all runs have ended in spite of it, in one database after the other, and at least so often.
pub(crate) fn kill(place: impl Fn(u32) -> Place, dir: &Path, kills: u32) {
    let mut dice = Dice(7);
    let mut covered = Coverage::default();
    let (mut killed, mut stories) = (0, 0);
    while killed < kills {
        let mut story = Story::begin(place(stories), dir, stories);
        killed += story.live(&mut dice);
        story.end(&mut covered);
        stories += 1;
    }
    println!("{killed} kills over {stories} databases");
    assert_eq!(covered.missing(), [""; 0], "some kinds of events never happened");
}

/// One database, from its creation until all its runs have ended.
struct Story {
    place: Place,
    ledger: PathBuf,
    scratch: PathBuf,
    /// How many processes there were.
    lives: u32,
    runtime: tokio::runtime::Runtime,
    /// Kept open where several may read.
    reader: Option<Arc<dyn Store>>,
    before: Snapshot,
}

impl Story {
    fn begin(place: Place, dir: &Path, number: u32) -> Story {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (ledger, scratch) = (dir.join(format!("ledger-{number}")), dir.join(format!("scratch-{number}")));
        Story { place, ledger, scratch, lives: 0, runtime, reader: None, before: Snapshot::default() }
    }

    /// How often somebody was killed until all runs had ended.
    fn live(&mut self, dice: &mut Dice) -> u32 {
        let (mut killed, begun) = (0, Instant::now());
        let mut round = 0;
        while begun.elapsed() < STORY_MAX {
            round += 1;
            let mut victims = vec![(self.spawn(dice, false), Moment::draw(dice, round))];
            if self.place.is_shared() && dice.roll(4) == 0 {
                victims.push((self.spawn(dice, true), Moment::draw(dice, round)));
            }
            let ledger = &self.ledger;
            let ends: Vec<ExitStatus> = std::thread::scope(|scope| {
                let wait = |(child, moment): (Child, Moment)| scope.spawn(move || moment.kill(child, ledger));
                let threads: Vec<_> = victims.into_iter().map(wait).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let entries = ledger::read(&self.ledger);
            for end in &ends {
                assert!(end.success() || end.code().is_none(), "a worker failed by itself: {end}\n{}", tail(&entries));
            }
            killed += u32::try_from(ends.iter().filter(|end| end.code().is_none()).count()).unwrap();
            self.look(&entries);
            if ends.iter().any(ExitStatus::success) {
                return killed;
            }
        }
        let live = self.before.runs.iter().filter(|(_, seen)| !seen.status.is_terminal());
        let live: Vec<_> = live.map(|(run, seen)| (run, seen.status, seen.events().pop())).collect();
        panic!("these do not come to an end: {live:#?}\n{}", tail(&ledger::read(&self.ledger)));
    }

    fn spawn(&mut self, dice: &mut Dice, twin: bool) -> Child {
        self.lives += 1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker", "--nocapture"]).stdout(Stdio::null());
        command.env("OUTLAST_KILL_WORKER", serde_json::to_string(&self.place).unwrap());
        command.env("OUTLAST_KILL_LEDGER", &self.ledger).env("OUTLAST_KILL_LIFE", self.lives.to_string());
        if twin {
            command.env("OUTLAST_KILL_TWIN", "1");
        } else if dice.roll(4) > 0 {
            // Under the name of the one before, a process has at once what that one held; the others wait for its lease.
            command.env("OUTLAST_KILL_NODE", "worker");
        }
        command.spawn().unwrap()
    }

    /// Compares what the dead process left with what was there before.
    fn look(&mut self, entries: &[Entry]) {
        if entries.is_empty() {
            // Nothing was promised, and there may be no database.
            return;
        }
        let store = self.read();
        let now = self.runtime.block_on(Snapshot::take(&*store, entries.len()));
        let mut findings = Findings::default();
        check::at_any_time(&now, entries, &mut findings);
        check::between(&self.before, &now, entries, &mut findings);
        conclude(&findings, entries);
        self.before = now;
        let diagnosis = self.runtime.block_on(examine(store));
        assert_eq!(diagnosis, [], "the doctor has found something\n{}", tail(entries));
    }

    fn read(&mut self) -> Arc<dyn Store> {
        let open = || self.runtime.block_on(self.place.reader(&self.scratch));
        if !self.place.is_shared() {
            return open();
        }
        let store = self.reader.clone().unwrap_or_else(open);
        Arc::clone(self.reader.insert(store))
    }

    /// Looks for the last time, when all runs have ended.
    fn end(mut self, covered: &mut Coverage) {
        let entries = ledger::read(&self.ledger);
        let mut findings = Findings::default();
        check::at_the_end(&self.before, &entries, &mut findings);
        conclude(&findings, &entries);
        covered.add(&self.before, &entries);
        let (store, code) = (self.read(), register(Outlast::memory()).checker());
        for run in self.before.runs.keys() {
            let run = RunKey::new(Namespace::default_namespace(), RunId::new(run).unwrap());
            let recording = self.runtime.block_on(Recording::read(&*store, &run)).unwrap();
            code.check(&recording).unwrap_or_else(|error| panic!("{run} does not replay: {error}"));
        }
    }
}

/// What the doctor finds, but for what every killed process leaves behind.
async fn examine(store: Arc<dyn Store>) -> Vec<Finding> {
    let engine = Outlast::store(store).without_loops().start().await.unwrap();
    let findings = engine.doctor().await.unwrap().findings;
    engine.shutdown().await;
    findings.into_iter().filter(|finding| !matches!(finding.ailment, Ailment::LeaseOver { .. })).collect()
}

fn conclude(findings: &Findings, entries: &[Entry]) {
    assert!(findings.0.is_empty(), "{:#?}\n{}", findings.0, tail(entries));
}

/// The end of the ledger, for people.
fn tail(entries: &[Entry]) -> String {
    let last = entries.iter().skip(entries.len().saturating_sub(40));
    last.map(|entry| format!("{} life {}: {:?}\n", entry.at, entry.life, entry.note)).collect()
}

/// When somebody is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// So long after it began: also long before it has opened the store.
    After(Duration),
    /// When the ledger has grown by so much: a body just ran, or something was acknowledged, and its commit is under way.
    Grown(u64),
}

impl Moment {
    fn draw(dice: &mut Dice, round: u32) -> Moment {
        // Longer and longer, so that on a busy machine too a process comes to do something before it is killed.
        let patience = u64::from(round);
        match dice.roll(8) {
            0 => Moment::After(Duration::from_millis(dice.roll(20))),
            1..=3 => Moment::After(Duration::from_millis(15 + dice.roll(40 + 2 * patience))),
            _ => Moment::Grown(1 + dice.roll(1_200 + 25 * patience)),
        }
    }

    /// Kills the child at this moment, if it has not ended before.
    fn kill(self, mut child: Child, ledger: &Path) -> ExitStatus {
        let length = || std::fs::metadata(ledger).map_or(0, |file| file.len());
        let (begun, before) = (Instant::now(), length());
        let come = || match self {
            Moment::After(patience) => begun.elapsed() >= patience,
            Moment::Grown(bytes) => length() >= before + bytes || begun.elapsed() > Duration::from_secs(2),
        };
        while !come() {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        // It may have ended by itself meanwhile.
        let _ = child.kill();
        child.wait().unwrap()
    }
}

/// Numbers that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
