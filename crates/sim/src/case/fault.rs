//! What goes wrong.

use serde::{Deserialize, Serialize};

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
/// A row that was damaged where it is kept, and read. In memory there are none.
pub const ROW: &str = "damaged row";
/// The state of a text was damaged when it was read.
pub const TORN: &str = "snapshot torn";
/// It was gone.
pub const LOST: &str = "snapshot lost";
/// A run that had ended long ago and was removed.
pub const REMOVED: &str = "run removed by its age";

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
        /// Whether calls count from the process's first one on, before it has started.
        #[serde(default)]
        early: bool,
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
    ClaimTasks,
    Heartbeat,
    Enqueue,
    Fire,
    PutSchedule,
    Admit,
    Create,
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
            Aim::ClaimTasks => "claim_tasks",
            Aim::Heartbeat => "heartbeat",
            Aim::Enqueue => "enqueue",
            Aim::Fire => "fire",
            Aim::PutSchedule => "put_schedule",
            Aim::Admit => "admit",
            Aim::Create => "create",
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

    /// Whether it is planned before its process starts.
    pub fn is_early(&self) -> bool {
        matches!(self, Fault::Call { early: true, .. })
    }

    /// The process it happens to, if it happens to one.
    pub fn process_mut(&mut self) -> Option<&mut usize> {
        match self {
            Fault::Crash { process, .. }
            | Fault::Freeze { process, .. }
            | Fault::Deaf { process, .. }
            | Fault::WakesLost { process, .. }
            | Fault::WakesDoubled { process, .. }
            | Fault::WakesLate { process, .. }
            | Fault::Cut { process, .. }
            | Fault::Call { process, .. } => Some(process),
            Fault::PowerCut { .. }
            | Fault::Jump { .. }
            | Fault::Full { .. }
            | Fault::Poison { .. }
            | Fault::Damage { .. } => None,
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
    pub const EFFECTS: [&'static str; 8] = [DRIFT, LATENCY, DROPPED, HERE, FORBIDDEN, REMOVED, TORN, LOST];
}
