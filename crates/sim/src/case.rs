//! A case: everything that will happen in one life of a cluster, as plain data. So it can be repeated, made smaller, kept.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interpret::{FIRST_VERSION, SECOND_VERSION};
use crate::tree::Tree;

/// One life of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Decides everything the rest leaves open: the order of tasks, latencies, ids.
    pub seed: u64,
    /// What the cluster is like.
    pub options: Options,
    /// The workflows; a run is named by its place here.
    pub runs: Vec<Tree>,
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

/// A process whose clock is wrong.
pub const DRIFT: &str = "drift";
/// A call that took its time.
pub const LATENCY: &str = "latency";
/// A program that was dropped, and had to be replayed.
pub const DROPPED: &str = "program dropped";
/// A commit on its driver's own thread.
pub const HERE: &str = "call made here";
/// A commit in doubt that was forbidden to arrive.
pub const FORBIDDEN: &str = "call forbidden";

/// What a client does. Runs are named by their place in the case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Act {
    /// Starts a run; starting one again is answered with the run that is there.
    Start(usize),
    /// Starts a run under the id of another one, with another input: that must be refused.
    StartOther(usize),
    /// Starts a run and sends it a signal, at once.
    SignalWithStart {
        /// Which run.
        run: usize,
        /// Under which name.
        name: String,
        /// With what.
        payload: Value,
        /// The signal's id.
        id: String,
    },
    /// Sends a signal.
    Signal {
        /// Which run.
        run: usize,
        /// Under which name.
        name: String,
        /// With what.
        payload: Value,
        /// The signal's id. The same id again must change nothing.
        id: String,
    },
    /// Sends a signal to one operation and no other.
    Aimed {
        /// Which run.
        run: usize,
        /// The operation's key.
        key: String,
        /// Under which name.
        name: String,
        /// With what.
        payload: Value,
        /// The signal's id.
        id: String,
    },
    /// Does something to one of those that came of a run, a child or a fork, as they are at that time.
    Below {
        /// Which run.
        run: usize,
        /// Which of them.
        nth: u64,
        /// What is done.
        what: Box<Act>,
    },
    /// Answers an approval or a callback that is open at that time.
    Answer {
        /// Which run.
        run: usize,
        /// Which of the open ones.
        nth: u64,
        /// Yes or no; a callback that is told no fails.
        yes: bool,
    },
    /// Answers a question a second time, or after it was closed: one that was open at some time.
    AnswerAgain {
        /// Which run.
        run: usize,
        /// Which of those that were ever seen.
        nth: u64,
        /// Yes or no.
        yes: bool,
    },
    /// Gives a sign of life for every open callback.
    Heartbeat(usize),
    /// Asks a run to stop.
    Cancel(usize),
    /// Ends a run without asking it.
    Terminate(usize),
    /// Asks a run to start nothing new.
    Pause(usize),
    /// Lets a paused run go on.
    Resume(usize),
    /// Begins another run with the first part of this one's journal.
    Fork {
        /// Which run.
        run: usize,
        /// How much of the journal, in thousandths.
        part: u64,
    },
    /// Asks why a run waits: reading must never disturb.
    Explain(usize),
    /// Deletes a run, which works only if it has ended.
    Delete(usize),
}

/// What goes wrong. Processes are named by their number; the client is the one after the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fault {
    /// A process dies: its memory and everything under way is gone.
    Crash {
        /// Which.
        process: usize,
        /// When it comes back, in milliseconds.
        back: u64,
        /// Whether it comes back under the same name, which ends what the dead one held.
        same_name: bool,
    },
    /// The power fails: every process dies, and the store is closed and opened again.
    PowerCut {
        /// When the processes come back, in milliseconds.
        back: u64,
    },
    /// A process stands still.
    Freeze {
        /// Which.
        process: usize,
        /// For so many milliseconds.
        long: u64,
    },
    /// The store's clock jumps.
    Jump {
        /// Forward or back.
        forward: bool,
        /// By so many milliseconds.
        by: u64,
    },
    /// A process does not hear what its own parts tell each other.
    Deaf {
        /// Which.
        process: usize,
        /// For so many milliseconds.
        long: u64,
    },
    /// A process is told of no wakes.
    WakesLost {
        /// Which.
        process: usize,
        /// For so many milliseconds.
        long: u64,
    },
    /// A process is told of wakes again and again.
    WakesDoubled {
        /// Which.
        process: usize,
        /// For so many milliseconds.
        long: u64,
    },
    /// A process is told of wakes only when it asks the next time.
    WakesLate {
        /// Which.
        process: usize,
        /// For so many milliseconds.
        long: u64,
    },
    /// The disk is full.
    Full {
        /// For so many milliseconds.
        long: u64,
    },
    /// A process cannot reach the store.
    Cut {
        /// Which.
        process: usize,
        /// For so many milliseconds.
        long: u64,
    },
    /// One call of a process fails.
    Call {
        /// Which process.
        process: usize,
        /// How many calls pass before.
        skip: u64,
        /// Only calls of this kind count; none for all.
        #[serde(default)]
        of: Option<Aim>,
        /// In which way.
        fails: Fails,
    },
    /// The bodies of a run kill their process as soon as they begin.
    Poison {
        /// Which run.
        run: usize,
        /// How often.
        times: u32,
    },
    /// A run's journal cannot be read.
    Damage {
        /// Which.
        run: usize,
        /// For so many milliseconds.
        long: u64,
        /// Whether the store reads it, and only what it says makes no sense.
        #[serde(default)]
        event: bool,
    },
}

/// Calls that can be aimed at: those between which something can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is named as the call is")]
pub enum Aim {
    Claim,
    Commit,
    Deliver,
    Load,
    Release,
    Resolve,
    Take,
}

impl Aim {
    /// The call's name.
    pub fn name(self) -> &'static str {
        match self {
            Aim::Claim => "claim",
            Aim::Commit => "commit",
            Aim::Deliver => "deliver",
            Aim::Load => "load",
            Aim::Release => "release",
            Aim::Resolve => "resolve",
            Aim::Take => "take",
        }
    }
}

/// In which way one call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fails {
    /// Not applied, and the caller is told so.
    Refused,
    /// Not applied, and the caller of a commit is left in doubt.
    NotAppliedInDoubt,
    /// Applied, and the caller is left in doubt.
    AppliedInDoubt,
    /// Applied, and the process dies before it learns so.
    AppliedThenCrash,
    /// Sent, and then the process dies; it arrives when another one may have taken over.
    SentThenCrash {
        /// Milliseconds before it reaches the store.
        before: u64,
    },
    /// Applied, late, and answered later.
    Late {
        /// Milliseconds before it reaches the store.
        before: u64,
        /// Milliseconds before the answer comes back.
        after: u64,
    },
    /// Still on its way when the caller is left in doubt. Whoever asks before it has arrived forbids it to.
    InFlight {
        /// Milliseconds before it reaches the store.
        before: u64,
    },
    /// Not answered for long, and then with an error.
    Hangs {
        /// For so many milliseconds.
        long: u64,
        /// Whether it took effect.
        applied: bool,
    },
}

impl Fault {
    /// Its name, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Crash { .. } => "crash",
            Fault::PowerCut { .. } => "power cut",
            Fault::Freeze { .. } => "freeze",
            Fault::Jump { forward: true, .. } => "jump forward",
            Fault::Jump { forward: false, .. } => "jump back",
            Fault::Deaf { .. } => "deaf",
            Fault::WakesLost { .. } => "wakes lost",
            Fault::WakesDoubled { .. } => "wakes doubled",
            Fault::WakesLate { .. } => "wakes late",
            Fault::Full { .. } => "full disk",
            Fault::Cut { .. } => "cut off",
            Fault::Poison { .. } => "poison",
            Fault::Damage { event: false, .. } => "damaged run",
            Fault::Damage { event: true, .. } => "damaged event",
            Fault::Call { fails, .. } => match fails {
                Fails::Refused => "call refused",
                Fails::NotAppliedInDoubt => "call not applied, in doubt",
                Fails::AppliedInDoubt => "call applied, in doubt",
                Fails::AppliedThenCrash => "call applied, then crash",
                Fails::SentThenCrash { .. } => "call sent, then crash",
                Fails::Late { .. } => "call late",
                Fails::InFlight { .. } => "call in flight",
                Fails::Hangs { .. } => "call hangs",
            },
        }
    }

    /// The run it is about, if it is about one.
    pub fn run(&self) -> Option<usize> {
        match self {
            Fault::Poison { run, .. } | Fault::Damage { run, .. } => Some(*run),
            Fault::Crash { .. }
            | Fault::PowerCut { .. }
            | Fault::Freeze { .. }
            | Fault::Jump { .. }
            | Fault::Deaf { .. }
            | Fault::WakesLost { .. }
            | Fault::WakesDoubled { .. }
            | Fault::WakesLate { .. }
            | Fault::Full { .. }
            | Fault::Cut { .. }
            | Fault::Call { .. } => None,
        }
    }

    /// Every kind there is: a suite in which one of them never landed has shown nothing about it.
    pub const KINDS: [&'static str; 22] = [
        "crash",
        "power cut",
        "freeze",
        "jump forward",
        "jump back",
        "deaf",
        "wakes lost",
        "wakes doubled",
        "wakes late",
        "full disk",
        "cut off",
        "poison",
        "damaged run",
        "damaged event",
        "call refused",
        "call not applied, in doubt",
        "call applied, in doubt",
        "call applied, then crash",
        "call sent, then crash",
        "call late",
        "call in flight",
        "call hangs",
    ];

    /// What the options of a case bring about, and what comes of faults: counted with them.
    pub const EFFECTS: [&'static str; 5] = [DRIFT, LATENCY, DROPPED, HERE, FORBIDDEN];
}

impl Act {
    /// Its name, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Act::Start(_) => "start",
            Act::StartOther(_) => "start with another input",
            Act::SignalWithStart { .. } => "signal with start",
            Act::Signal { .. } => "signal",
            Act::Aimed { .. } => "aimed signal",
            Act::Below { what, .. } => match **what {
                Act::Cancel(_) => "cancel below",
                Act::Terminate(_) => "terminate below",
                Act::Pause(_) | Act::Resume(_) => "pause or resume below",
                _ => "something else below",
            },
            Act::Answer { .. } => "answer",
            Act::AnswerAgain { .. } => "answer again",
            Act::Heartbeat(_) => "heartbeat",
            Act::Cancel(_) => "cancel",
            Act::Terminate(_) => "terminate",
            Act::Pause(_) => "pause",
            Act::Resume(_) => "resume",
            Act::Fork { .. } => "fork",
            Act::Explain(_) => "explain",
            Act::Delete(_) => "delete",
        }
    }

    /// Every kind there is.
    pub const KINDS: [&'static str; 19] = [
        "start",
        "start with another input",
        "signal with start",
        "signal",
        "aimed signal",
        "cancel below",
        "terminate below",
        "pause or resume below",
        "something else below",
        "answer",
        "answer again",
        "heartbeat",
        "cancel",
        "terminate",
        "pause",
        "resume",
        "fork",
        "explain",
        "delete",
    ];

    /// The run it is about.
    pub fn run(&self) -> usize {
        match self {
            Act::Start(run)
            | Act::StartOther(run)
            | Act::SignalWithStart { run, .. }
            | Act::Signal { run, .. }
            | Act::Aimed { run, .. }
            | Act::Below { run, .. }
            | Act::Answer { run, .. }
            | Act::AnswerAgain { run, .. }
            | Act::Heartbeat(run)
            | Act::Cancel(run)
            | Act::Terminate(run)
            | Act::Pause(run)
            | Act::Resume(run)
            | Act::Fork { run, .. }
            | Act::Explain(run)
            | Act::Delete(run) => *run,
        }
    }
}

impl Options {
    /// The versions of the workflow that a process has, the newest first. Those with even numbers have all of them.
    pub fn versions_of(&self, process: usize) -> &'static [&'static str] {
        match (self.versions, process % 2) {
            (false, _) | (true, 1) => &[FIRST_VERSION],
            (true, _) => &[SECOND_VERSION, FIRST_VERSION],
        }
    }

    /// The version in which a run is started.
    pub fn version_of(&self, run: usize) -> &'static str {
        if self.versions && run.is_multiple_of(2) { SECOND_VERSION } else { FIRST_VERSION }
    }
}

/// The id of a run, by its place in the case.
pub fn run_id(run: usize) -> String {
    format!("run-{run}")
}
