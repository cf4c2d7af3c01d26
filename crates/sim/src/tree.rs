//! Random workflows, as data: what one program does. A tree is played by an interpreter that is an ordinary workflow,
//! and judged by a model that knows nothing of the engine.

mod needs;
mod place;
mod smaller;
mod valid;

use outlast::ClosePolicy;
use serde::{Deserialize, Serialize};

pub use crate::generate::grow;
pub use needs::{Needs, needs};
pub(crate) use needs::{callback_key, first_place, member_place};
pub use place::Place;
pub use smaller::{smaller, weight};
pub use valid::is_valid;
pub(crate) use valid::passes_failures_on;

/// What a program does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tree {
    /// One after the other; the first failure ends it.
    Seq(Vec<Tree>),
    /// A failure is caught.
    Try(Box<Tree>),
    /// The time is asked for before and after.
    Timed(Box<Tree>),
    /// A scope.
    Scope(Box<Tree>),
    /// If the body was cancelled, it is cleaned up; the failure is passed on.
    Cleanup {
        /// What may be cancelled.
        body: Box<Tree>,
        /// What is done then.
        cleanup: Box<Tree>,
    },
    /// A step.
    Step(Work),
    /// A transaction. Of the options of a step it has only attempts and their failures.
    Transaction(Work),
    /// A task.
    Task(Errand),
    /// A sleep of so many milliseconds.
    Sleep(u64),
    /// A sleep until so many milliseconds after now, which may be before now.
    SleepUntil(i64),
    /// A wait for a signal.
    Wait(Wait),
    /// A question, and for how many milliseconds it is asked.
    Approve(Option<u64>),
    /// A callback.
    Callback(Call),
    /// A condition.
    Condition {
        /// How many checks say that it does not hold; the one after them says that it does.
        not: u32,
        /// How many checks there are at most.
        checks: u32,
        /// How many checks fail before that; they count.
        #[serde(default)]
        fails: u32,
        /// Whether those panic.
        #[serde(default)]
        panics: bool,
    },
    /// Another run.
    Child(Child),
    /// A map or a parallel.
    Batch(Batch),
    /// Several operations at once.
    Group(Group),
    /// An operation that is started, something else, and then the operation again.
    Started {
        /// What is started.
        first: Box<Tree>,
        /// What is done meanwhile.
        meanwhile: Box<Tree>,
        /// What becomes of it.
        last: Last,
    },
    /// A wait that is lent to one race after another, each against a sleep.
    Lent {
        /// The wait; it has no timeout, or fails when it is late.
        wait: Wait,
        /// The sleeps, in milliseconds.
        naps: Vec<u64>,
        /// What becomes of the wait when all sleeps have won.
        last: Last,
    },
    /// Asks for the time.
    Now,
    /// Asks for a unique id.
    Uuid,
    /// Asks for a random number.
    Random,
    /// Tells observers something.
    Emit,
    /// Shows a state.
    SetState,
    /// The program itself fails.
    Fail,
    /// The program itself panics, which nothing in it catches.
    Panic,
    /// The next generation goes on with this. Only at the end of a program; see [`is_valid`].
    Renew(Box<Tree>),
}

/// A step's body and its options. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// So many attempts fail.
    pub fails: u32,
    /// And not for the sake of being tried again.
    pub permanent: bool,
    /// In which way they fail.
    #[serde(default)]
    pub mishap: Mishap,
    /// Whether the body is to run on a runtime, which a world of its own does not have: so the step must fail.
    #[serde(default)]
    pub spawned: bool,
    /// How many attempts there are.
    pub attempts: u32,
    /// How long to wait before the second attempt.
    pub delay: u64,
    /// Not to be run again after a crash.
    pub at_most_once: bool,
    /// How long the body takes; none if it never returns.
    pub takes: Option<u64>,
    /// How long an attempt may take.
    pub timeout: Option<u64>,
    /// How long an attempt may be silent.
    pub heartbeat: Option<u64>,
    /// Whether the body gives signs of life.
    pub beats: bool,
}

/// A task: work that some worker does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errand {
    /// What its handler does, and the options of its attempts.
    pub work: Work,
    /// Whether it is of the kind of which a worker does one at a time.
    pub alone: bool,
    /// Larger is done sooner.
    pub priority: i16,
    /// So many milliseconds before it may begin.
    pub later: u64,
    /// Whether nobody waits for it.
    pub detached: bool,
}

/// In which way an attempt fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mishap {
    /// With an error.
    #[default]
    Error,
    /// It panics.
    Panic,
    /// What it returns is larger than allowed. Trying again would not help.
    TooLarge,
}

/// A wait for a signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Which signal. Few names for many waits, so that they compete.
    pub name: String,
    /// Whether only a number will do.
    pub number: bool,
    /// Whether it hopes for a signal that is aimed at it.
    pub aimed: bool,
    /// For how many milliseconds; none for ever.
    pub timeout: Option<u64>,
    /// Whether it fails when it is late.
    pub or_fail: bool,
}

/// A callback. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Whether it is one `wait_for_callback`, or a callback and a step that hands out its token.
    pub submitted: bool,
    /// How often handing out the token fails.
    pub fails: u32,
    /// How long it waits.
    pub timeout: Option<u64>,
    /// How long its holder may be silent.
    pub heartbeat: Option<u64>,
}

/// Another run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Child {
    /// What it does.
    pub tree: Box<Tree>,
    /// Whether its end is awaited.
    pub how: Kin,
    /// What becomes of it when its parent ends first.
    pub close: Option<ClosePolicy>,
}

/// How a parent has a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kin {
    /// It awaits the child's end.
    Awaited,
    /// It does not.
    Detached,
    /// It starts the child and forgets it.
    Left,
}

/// A map or a parallel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Whether it is a parallel.
    pub parallel: bool,
    /// What each branch does.
    pub branches: Vec<Tree>,
    /// How many run at once.
    pub concurrency: Option<usize>,
    /// How many successes are enough.
    pub enough: Option<usize>,
    /// How many failures are tolerated.
    pub tolerated: Option<usize>,
    /// Which part of all branches may fail.
    pub percent: Option<u32>,
}

/// Several operations at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What is awaited.
    pub how: How,
    /// What the operations are.
    pub made: Made,
    /// The operations.
    pub members: Vec<Tree>,
}

/// What is awaited of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// All, or the first failure.
    All,
    /// The first success.
    Any,
    /// The first to settle.
    Race,
    /// What became of each.
    AllSettled,
}

/// What the operations of a group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// Scopes, in a `Vec`.
    Scopes,
    /// Scopes that were started before, in a `Vec`.
    Started,
    /// Sleeps, in a `Vec`.
    Sleeps,
    /// A sleep, a wait and a step, in a tuple.
    Trio,
    /// A child and a sleep, in a tuple.
    Family,
    /// Tasks, in a `Vec`.
    Tasks,
}

/// What becomes of an operation that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Last {
    /// It is awaited.
    Await,
    /// It is cancelled.
    Cancel,
    /// It is forgotten, and goes on.
    Leave,
}

impl Tree {
    /// What it is called, for counting.
    pub fn kind(&self) -> &'static str {
        match self {
            Tree::Seq(_) => "seq",
            Tree::Try(_) => "try",
            Tree::Timed(_) => "timed",
            Tree::Scope(_) => "scope",
            Tree::Cleanup { .. } => "cleanup",
            Tree::Step(_) => "step",
            Tree::Transaction(_) => "transaction",
            Tree::Task(_) => "task",
            Tree::Sleep(_) => "sleep",
            Tree::SleepUntil(_) => "sleep until",
            Tree::Wait(_) => "wait",
            Tree::Approve(_) => "approve",
            Tree::Callback(_) => "callback",
            Tree::Condition { .. } => "condition",
            Tree::Child(_) => "child",
            Tree::Batch(_) => "batch",
            Tree::Group(_) => "group",
            Tree::Started { .. } => "started",
            Tree::Lent { .. } => "lent",
            Tree::Now => "now",
            Tree::Uuid => "uuid",
            Tree::Random => "random",
            Tree::Emit => "emit",
            Tree::SetState => "set state",
            Tree::Fail => "fail",
            Tree::Panic => "panic",
            Tree::Renew(_) => "renew",
        }
    }

    /// What it is made of, the trees of children and of later generations included.
    pub fn parts(&self) -> Vec<&Tree> {
        match self {
            Tree::Seq(parts) => parts.iter().collect(),
            Tree::Try(part) | Tree::Timed(part) | Tree::Scope(part) | Tree::Renew(part) => vec![part],
            Tree::Cleanup { body, cleanup } => vec![body, cleanup],
            Tree::Child(child) => vec![&child.tree],
            Tree::Batch(batch) => batch.branches.iter().collect(),
            Tree::Group(group) => group.members.iter().collect(),
            Tree::Started { first, meanwhile, .. } => vec![first, meanwhile],
            Tree::Step(_)
            | Tree::Transaction(_)
            | Tree::Task(_)
            | Tree::Sleep(_)
            | Tree::SleepUntil(_)
            | Tree::Wait(_)
            | Tree::Approve(_)
            | Tree::Callback(_)
            | Tree::Condition { .. }
            | Tree::Lent { .. }
            | Tree::Now
            | Tree::Uuid
            | Tree::Random
            | Tree::Emit
            | Tree::SetState
            | Tree::Fail
            | Tree::Panic => Vec::new(),
        }
    }

    /// Itself and everything in it.
    pub fn all(&self) -> Vec<&Tree> {
        let below = self.parts().into_iter().flat_map(Tree::all);
        std::iter::once(self).chain(below).collect()
    }
}
