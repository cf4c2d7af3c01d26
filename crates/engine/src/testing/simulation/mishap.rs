//! What happens to the processes of a story, and when.

use std::fmt;
use std::time::Duration;

use outlast_store::faults::Fault;

use super::pace::Pace;
use crate::testing::executor::next;

/// Which kinds of faults a [`super::Simulation`] draws.
///
/// ```
/// use outlast::testing::Faults;
///
/// let crashes_only = Faults::none().crashes(true);
/// let no_jumps = Faults::all().jumps(false);
/// assert_ne!(crashes_only, no_jumps);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    kinds: Vec<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Crash,
    Freeze,
    Reply,
    Wakes,
    Slow,
    Cut,
    Full,
    Drift,
    Jump,
}

const KINDS: [Kind; 9] =
    [Kind::Crash, Kind::Freeze, Kind::Reply, Kind::Wakes, Kind::Slow, Kind::Cut, Kind::Full, Kind::Drift, Kind::Jump];

impl Faults {
    /// Every kind.
    pub fn all() -> Faults {
        Faults { kinds: KINDS.to_vec() }
    }

    /// No kind: only who goes first is a matter of chance.
    pub fn none() -> Faults {
        Faults { kinds: Vec::new() }
    }

    /// Whether processes crash, also in the middle of a call, and come back.
    #[must_use]
    pub fn crashes(self, wanted: bool) -> Faults {
        self.with(Kind::Crash, wanted)
    }

    /// Whether processes freeze and go on, sometimes after their lease is over.
    #[must_use]
    pub fn freezes(self, wanted: bool) -> Faults {
        self.with(Kind::Freeze, wanted)
    }

    /// Whether calls to the store fail: refused, lost on their way, or with their reply lost.
    #[must_use]
    pub fn lost_replies(self, wanted: bool) -> Faults {
        self.with(Kind::Reply, wanted)
    }

    /// Whether processes do not hear, for a while, that something came for a run or is due.
    #[must_use]
    pub fn lost_wakes(self, wanted: bool) -> Faults {
        self.with(Kind::Wakes, wanted)
    }

    /// Whether calls to the store are slow for a while, and overtake each other.
    #[must_use]
    pub fn slow_calls(self, wanted: bool) -> Faults {
        self.with(Kind::Slow, wanted)
    }

    /// Whether processes cannot reach the store for a while.
    #[must_use]
    pub fn cuts(self, wanted: bool) -> Faults {
        self.with(Kind::Cut, wanted)
    }

    /// Whether the store refuses what processes write for a while, as if its disk were full.
    #[must_use]
    pub fn full_disks(self, wanted: bool) -> Faults {
        self.with(Kind::Full, wanted)
    }

    /// Whether the clocks of processes run too fast or too slowly for a while.
    #[must_use]
    pub fn drifts(self, wanted: bool) -> Faults {
        self.with(Kind::Drift, wanted)
    }

    /// Whether the store's clock jumps, forward and back.
    #[must_use]
    pub fn jumps(self, wanted: bool) -> Faults {
        self.with(Kind::Jump, wanted)
    }

    fn with(mut self, kind: Kind, wanted: bool) -> Faults {
        self.kinds.retain(|known| *known != kind);
        if wanted {
            self.kinds.push(kind);
        }
        self
    }

    /// What happens with a seed, in order.
    pub(super) fn draw(&self, seed: u64, processes: usize, pace: &Pace) -> Vec<Mishap> {
        // Another chance than the world's.
        let mut chance = Chance(seed.rotate_left(32) ^ 0x5EED);
        if self.kinds.is_empty() {
            return Vec::new();
        }
        let mut mishaps: Vec<Mishap> =
            (0..chance.between(1, MISHAPS_MAX)).map(|_| self.draw_one(&mut chance, processes, pace)).collect();
        mishaps.sort_by_key(|mishap| mishap.at);
        mishaps
    }

    fn draw_one(&self, chance: &mut Chance, processes: usize, pace: &Pace) -> Mishap {
        let process = chance.pick_place(processes);
        let kind = self.kinds[chance.pick_place(self.kinds.len())];
        let at = chance.moment(pace);
        let long = chance.part(pace.lease * 3);
        let what = match kind {
            Kind::Crash if chance.one_in(3) => What::Crash { back: long },
            Kind::Crash if chance.one_in(2) => chance.call(Fault::AppliedThenCrash),
            Kind::Crash => chance.call(Fault::NotAppliedThenCrash),
            Kind::Freeze => What::Freeze { long },
            Kind::Reply => {
                let faults = [
                    Fault::NotApplied { in_doubt: false },
                    Fault::NotApplied { in_doubt: true },
                    Fault::AppliedThenError,
                    Fault::Hang { long, applied: chance.one_in(2) },
                ];
                let fault = faults[chance.pick_place(faults.len())];
                chance.call(fault)
            }
            Kind::Wakes => What::Deaf { long },
            Kind::Slow => What::Slow { long, max: chance.part(pace.poll), seed: chance.below(u64::MAX) },
            Kind::Cut => What::Cut { long },
            Kind::Full => What::Full { long },
            Kind::Drift => What::Drift { long: long * 5, per_mille: if chance.one_in(2) { 300 } else { -300 } },
            Kind::Jump => What::Jump { forward: chance.one_in(2), by: chance.part(pace.lease * 10) },
        };
        Mishap { at, process, what }
    }
}

/// Faults of one seed, at most.
const MISHAPS_MAX: u64 = 6;

/// Something that happens to a process, or to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mishap {
    /// When, since the story began.
    pub(super) at: Duration,
    /// To which process, from 0.
    pub(super) process: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Crash {
        back: Duration,
    },
    Freeze {
        long: Duration,
    },
    /// The n-th call from then on fails, or only commits count.
    Call {
        n: u64,
        commits: bool,
        fault: Fault,
    },
    Deaf {
        long: Duration,
    },
    Slow {
        long: Duration,
        max: Duration,
        seed: u64,
    },
    Cut {
        long: Duration,
    },
    Full {
        long: Duration,
    },
    Drift {
        long: Duration,
        per_mille: i32,
    },
    Jump {
        forward: bool,
        by: Duration,
    },
}

impl What {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            What::Crash { .. } => "crash",
            What::Freeze { .. } => "freeze",
            What::Call { fault, .. } => fault.kind(),
            What::Deaf { .. } => "lost_wakes",
            What::Slow { .. } => "slow",
            What::Cut { .. } => "cut",
            What::Full { .. } => "full",
            What::Drift { .. } => "drift",
            What::Jump { .. } => "jump",
        }
    }
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mishap { at, process, what } = self;
        let who = format!("process {}", process + 1);
        write!(f, "at {at:?} ")?;
        match what {
            What::Crash { back } => write!(f, "{who} crashes, and comes back after {back:?}"),
            What::Freeze { long } => write!(f, "{who} freezes, for {long:?}"),
            What::Call { n, commits, fault } => {
                let (one, many) = if *commits { ("commit", "commits") } else { ("call", "calls") };
                let fails = fails(*fault);
                match n {
                    0 => write!(f, "the next {one} of {who} to the store {fails}"),
                    1 => write!(f, "{who} makes one more {one} to the store, and the next one {fails}"),
                    n => write!(f, "{who} makes {n} more {many} to the store, and the next one {fails}"),
                }
            }
            What::Deaf { long } => write!(f, "{who} hears of no wake, for {long:?}"),
            What::Slow { long, max, .. } => write!(f, "each call of {who} begins to take up to {max:?}, for {long:?}"),
            What::Cut { long } => write!(f, "{who} is cut off from the store, for {long:?}"),
            What::Full { long } => write!(f, "the store refuses what {who} writes, for {long:?}"),
            What::Drift { long, per_mille } => {
                let how = if *per_mille > 0 { "fast" } else { "slow" };
                write!(f, "the clock of {who} runs too {how} by {} per thousand, for {long:?}", per_mille.abs())
            }
            What::Jump { forward, by } => {
                write!(f, "the store's clock jumps {} by {by:?}", if *forward { "forward" } else { "back" })
            }
        }
    }
}

/// What becomes of a call.
fn fails(fault: Fault) -> String {
    match fault {
        Fault::NotApplied { in_doubt: false } => "is refused".to_owned(),
        Fault::NotApplied { in_doubt: true } => "is lost on its way".to_owned(),
        Fault::AppliedThenError => "works, but its reply is lost".to_owned(),
        Fault::AppliedThenCrash => "works, and then the process crashes".to_owned(),
        Fault::NotAppliedThenCrash => "is never made: the process crashes".to_owned(),
        Fault::Late { before, after } => format!("takes {:?}", before + after),
        Fault::InFlight { before } => {
            format!("is missed before it works, {before:?} later, unless somebody asks before")
        }
        Fault::Hang { long, applied: true } => format!("works, but its reply is lost and missed only after {long:?}"),
        Fault::Hang { long, applied: false } => format!("is lost on its way and missed only after {long:?}"),
    }
}

/// Numbers drawn from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        next(&mut self.0) % n.max(1)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick_place(&mut self, places: usize) -> usize {
        usize::try_from(self.below(places as u64)).unwrap_or(0)
    }

    /// A fault of some call; often of one that writes down what was done.
    fn call(&mut self, fault: Fault) -> What {
        let commits = self.one_in(2);
        What::Call { n: self.below(if commits { 2 } else { 8 }), commits, fault }
    }

    /// A part of a time; short ones are as likely as long ones.
    fn part(&mut self, whole: Duration) -> Duration {
        let millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX) >> self.below(8);
        Duration::from_millis(1 + self.below(millis))
    }

    /// Mostly when something is going on; sometimes whenever.
    fn moment(&mut self, pace: &Pace) -> Duration {
        if pace.moments.is_empty() || self.one_in(4) {
            return Duration::from_millis(self.below(u64::try_from(pace.length().as_millis()).unwrap_or(u64::MAX) + 1));
        }
        let moment = pace.moments[self.pick_place(pace.moments.len())];
        let (sooner, later) = (Duration::from_millis(self.below(100)), Duration::from_millis(self.below(200)));
        (moment + later).saturating_sub(sooner)
    }
}
