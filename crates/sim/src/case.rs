//! A case: everything that will happen in one life of a cluster, as plain data. So it can be repeated, made smaller, kept.

mod act;
mod fault;
mod guest;
mod timetable;

use serde::{Deserialize, Serialize};

use crate::interpret::{FIRST_VERSION, SECOND_VERSION};
use crate::tree::Tree;
use crate::written::Written;
pub use act::Act;
pub use fault::{Aim, DRIFT, DROPPED, FORBIDDEN, Fails, Fault, HERE, LATENCY, LOST, REMOVED, ROW, TORN};
pub use guest::{Deed, Flow, Guest, guest_id, is_guest, rate};
pub use timetable::{Timetable, schedule_id, schedule_of};

/// One life of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Decides everything the rest leaves open: the order of tasks, latencies, ids.
    pub seed: u64,
    /// What the cluster is like.
    pub options: Options,
    /// The workflows; a run is named by its place here.
    pub runs: Vec<Tree>,
    /// The schedules; one is named by its place here.
    #[serde(default)]
    pub schedules: Vec<Timetable>,
    /// The runs that flow control holds back; one is named by its place here.
    #[serde(default)]
    pub guests: Vec<Guest>,
    /// Workflows that are text; one is named by its place here.
    #[serde(default)]
    pub written: Vec<Written>,
    /// What clients do.
    pub acts: Vec<Timed<Act>>,
    /// What goes wrong.
    pub faults: Vec<Timed<Fault>>,
}

/// Something that happens at an instant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timed<T> {
    /// Virtual milliseconds since the beginning.
    pub at: u64,
    /// What happens.
    pub what: T,
}

/// What a cluster is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Engines that drive.
    pub processes: usize,
    /// How long a lease lasts, in milliseconds.
    pub lease: u64,
    /// How often an engine looks around, in milliseconds.
    pub poll: u64,
    /// What becomes of the programs of suspended runs.
    pub programs: Programs,
    /// The most milliseconds a call to the store takes; 0 for calls that are answered at once.
    pub latency: u64,
    /// How much faster each process's clock runs than the world's, in thousandths.
    pub drift: Vec<i32>,
    /// Runs one process drives at once.
    pub runs_max: usize,
    /// Whether drivers that have nothing else to do write on their own thread.
    #[serde(default)]
    pub here: bool,
    /// Whether there are two versions of the workflow, and processes that know only the older one. Every second run is
    /// started in that.
    #[serde(default)]
    pub versions: bool,
    /// Whether there is another namespace, with a run of the same id for each run, which nothing of all this is to reach.
    #[serde(default)]
    pub beside: bool,
    /// Who drives and who works, by the number of the process; those that are not named only drive. The first drives.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// How long runs are kept that have ended, in milliseconds; for ever if none.
    #[serde(default)]
    pub retention: Option<u64>,
    /// Tasks one process does at once.
    #[serde(default = "many")]
    pub tasks_max: usize,
    /// How many operations of a run may be pending at once, if only a few.
    #[serde(default)]
    pub pending_max: Option<usize>,
    /// After how many events the state of a text is kept, and what becomes of it.
    #[serde(default)]
    pub snapshots: Snapshots,
}

/// What becomes of the states of texts that are kept. Counted over all that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshots {
    /// After how many events one is made.
    pub after: u64,
    /// One in so many is damaged; none if 0.
    pub torn: u64,
    /// One in so many is gone.
    pub lost: u64,
}

fn many() -> usize {
    100
}

/// What a process is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It drives runs.
    Drives,
    /// It does tasks.
    Works,
    /// It does both.
    Both,
}

impl Role {
    /// Whether it drives.
    pub fn drives(self) -> bool {
        self != Role::Works
    }

    /// Whether it works.
    pub fn works(self) -> bool {
        self != Role::Drives
    }
}

/// What becomes of the programs of suspended runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Programs {
    /// They stay in memory.
    Kept,
    /// They are dropped.
    Dropped,
    /// Some are dropped, at random.
    Evicted,
}

impl Options {
    /// The versions of the workflow that a process has, the newest first. Those with even numbers have all of them.
    pub fn versions_of(&self, process: usize) -> &'static [&'static str] {
        match (self.versions, process % 2) {
            (false, _) | (true, 1) => &[FIRST_VERSION],
            (true, _) => &[SECOND_VERSION, FIRST_VERSION],
        }
    }

    /// What a process is there for.
    pub fn role_of(&self, process: usize) -> Role {
        self.roles.get(process).copied().unwrap_or(Role::Drives)
    }

    /// Sees to it that somebody works, if somebody was to, and that the first drives.
    pub fn staff(&mut self) {
        let wanted = !self.roles.is_empty();
        self.roles.truncate(self.processes);
        if let Some(first) = self.roles.first_mut().filter(|first| !first.drives()) {
            *first = Role::Both;
        }
        if wanted && !self.roles.iter().any(|role| role.works()) {
            self.roles[0] = Role::Both;
        }
    }

    /// The version in which a run is started.
    pub fn version_of(&self, run: usize) -> &'static str {
        if self.versions && run.is_multiple_of(2) { SECOND_VERSION } else { FIRST_VERSION }
    }
}

/// Whether somebody has to work.
pub fn has_tasks(runs: &[Tree], acts: &[Timed<Act>], written: &[Written]) -> bool {
    written.iter().any(Written::has_tasks)
        || runs.iter().flat_map(Tree::all).any(|part| matches!(part, Tree::Task(_)))
        || acts.iter().any(|act| matches!(act.what, Act::Enqueue { .. }))
}

/// The id of a run, by its place in the case.
pub fn run_id(run: usize) -> String {
    format!("run-{run}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;

    fn staffed(processes: usize, roles: &[Role]) -> Vec<Role> {
        let mut options = Options { processes, roles: roles.to_vec(), ..draw(0).options };
        options.staff();
        options.roles
    }

    #[test]
    fn the_first_drives_and_somebody_works_if_somebody_was_to() {
        use Role::{Both, Drives, Works};
        assert_eq!(staffed(2, &[Drives, Works]), [Drives, Works]);
        assert_eq!(staffed(1, &[Drives, Works]), [Both], "the worker is gone");
        assert_eq!(staffed(2, &[Works, Drives]), [Both, Drives]);
        assert_eq!(staffed(2, &[]), [], "nobody was to work");
    }

    #[test]
    fn cases_with_tasks_have_workers_and_others_have_none() {
        for case in (0..300).map(draw) {
            let works = (0..case.options.processes).any(|process| case.options.role_of(process).works());
            assert_eq!(works, has_tasks(&case.runs, &case.acts, &case.written), "seed {}", case.seed);
            assert!(case.options.role_of(0).drives(), "seed {}", case.seed);
        }
    }
}
