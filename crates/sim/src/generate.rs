//! Random trees, valid by construction.

use outlast::ClosePolicy;

use crate::chance::Chance;
use crate::interpret::SUBMISSIONS;
use crate::tree::{Batch, Call, Child, Errand, Group, How, Kin, Last, Made, Mishap, Tree, Wait, Work};

/// How deep trees are nested at most.
const DEPTH_MAX: u32 = 4;
/// How many generations of children there are at most.
const KIN_MAX: u32 = 2;
/// So many milliseconds are short, long, or longer than any fault lasts.
const NAPS: [u64; 8] = [0, 1, 100, 700, 3_000, 10_000, 20_000, 45_000];
/// How long something that may be late is awaited.
const PATIENCE: [u64; 4] = [100, 2_000, 15_000, 60_000];
/// Few names, so that waits compete for signals.
pub(crate) const SIGNALS: [&str; 3] = ["apple", "pear", "plum"];

/// A tree of about `budget` operations.
pub fn grow(chance: &mut Chance, budget: u32) -> Tree {
    Grower { chance, left: budget.max(1), kin: 0 }.program(0)
}

struct Grower<'c> {
    chance: &'c mut Chance,
    /// How many operations there may be.
    left: u32,
    /// How many runs are above this one.
    kin: u32,
}

impl Grower<'_> {
    /// What one generation does.
    fn program(&mut self, generation: u32) -> Tree {
        let renews = self.left > 2 && generation < 3 && self.chance.one_in(5);
        // What is left for later generations.
        let later = if renews { self.left / 2 } else { 0 };
        self.left -= later;
        let mut parts = Vec::new();
        while self.left > 0 {
            parts.push(self.node(1));
        }
        if renews {
            self.left = later;
            let rest = self.program(generation + 1);
            parts.push(self.renew(rest));
        }
        Tree::Seq(parts)
    }

    /// The end of a generation, plain or in the middle of something that ends with it.
    fn renew(&mut self, rest: Tree) -> Tree {
        let renew = Tree::Renew(Box::new(rest));
        match self.chance.below(5) {
            0 => Tree::Scope(Box::new(renew)),
            1 => Tree::Try(Box::new(renew)),
            2 => {
                let branches = vec![Tree::Sleep(self.nap()), renew];
                Tree::Batch(Batch {
                    parallel: self.chance.one_in(2),
                    branches,
                    concurrency: None,
                    enough: None,
                    tolerated: None,
                    percent: None,
                })
            }
            _ => renew,
        }
    }

    fn node(&mut self, depth: u32) -> Tree {
        if depth < DEPTH_MAX && self.left > 1 && self.chance.one_in(2) { self.compound(depth) } else { self.leaf() }
    }

    fn boxed(&mut self, depth: u32) -> Box<Tree> {
        Box::new(self.node(depth + 1))
    }

    /// Two to four of them.
    fn several(&mut self, depth: u32) -> Vec<Tree> {
        (0..self.chance.between(2, 4)).map(|_| self.node(depth + 1)).collect()
    }

    fn compound(&mut self, depth: u32) -> Tree {
        match self.chance.below(22) {
            0 | 1 => Tree::Seq(self.several(depth)),
            2..=4 => Tree::Try(self.boxed(depth)),
            5..=7 => Tree::Timed(self.boxed(depth)),
            8 | 9 => Tree::Scope(self.boxed(depth)),
            10 | 11 => Tree::Cleanup { body: self.boxed(depth), cleanup: self.boxed(depth) },
            12..=14 => self.batch(depth),
            15..=18 => self.group(depth),
            _ => {
                let last = self.last();
                Tree::Started { first: self.boxed(depth), meanwhile: self.boxed(depth), last }
            }
        }
    }

    fn leaf(&mut self) -> Tree {
        self.left = self.left.saturating_sub(1);
        match self.chance.below(43) {
            0..=8 => Tree::Step(self.work()),
            9..=11 => Tree::Sleep(self.nap()),
            12 => Tree::SleepUntil(i64::try_from(self.nap()).unwrap_or(0) - 1_000),
            13..=17 => Tree::Wait(self.wait()),
            18 | 19 => Tree::Approve(self.patience()),
            20 | 21 => Tree::Callback(self.call()),
            22 | 23 => self.condition(),
            24..=26 if self.kin < KIN_MAX => {
                let how = *self.chance.pick(&[Kin::Awaited, Kin::Awaited, Kin::Detached, Kin::Left]);
                Tree::Child(self.child(how))
            }
            27 | 28 => self.lent(),
            29 => Tree::Now,
            30 => Tree::Uuid,
            31 => Tree::Random,
            32 => {
                if self.chance.one_in(2) {
                    Tree::Emit
                } else {
                    Tree::SetState
                }
            }
            33 if self.chance.one_in(2) => Tree::Fail,
            34 if self.chance.one_in(4) => Tree::Panic,
            35 | 36 => Tree::Transaction(self.transaction()),
            38..=42 => Tree::Task(self.errand()),
            37 if self.chance.one_in(2) => Tree::Step(Work { spawned: true, ..self.work() }),
            _ => Tree::Step(Work { takes: Some(0), attempts: 1, ..Work::default() }),
        }
    }

    fn work(&mut self) -> Work {
        let chance = &mut *self.chance;
        let attempts = u32::try_from(chance.between(1, 4)).unwrap_or(1);
        let fails = if chance.one_in(2) { u32::try_from(chance.below(6)).unwrap_or(0) } else { 0 };
        // Times are far enough apart for a body to be clearly in time or clearly late.
        let (timeout, heartbeat) = match chance.below(6) {
            0 => (Some(*chance.pick(&[1_000, 6_000])), None),
            1 => (None, Some(1_000)),
            2 => (Some(6_000), Some(1_000)),
            _ => (None, None),
        };
        let beats = heartbeat.is_some() && chance.one_in(2);
        let is_limited = timeout.is_some() || (heartbeat.is_some() && !beats);
        let takes = match chance.below(5) {
            0 => Some(300),
            1 => Some(2_500),
            2 if is_limited => None,
            _ => Some(0),
        };
        Work {
            fails,
            permanent: chance.one_in(5),
            mishap: mishap(chance),
            spawned: false,
            attempts,
            delay: *chance.pick(&[10, 500, 4_000]),
            at_most_once: chance.one_in(4),
            takes,
            timeout,
            heartbeat,
            beats,
        }
    }

    fn transaction(&mut self) -> Work {
        let Work { fails, permanent, mishap, attempts, delay, .. } = self.work();
        Work { fails, permanent, mishap, attempts, delay, takes: Some(0), ..Work::default() }
    }

    fn errand(&mut self) -> Errand {
        let (detached, work) = (self.chance.one_in(5), self.work());
        Errand { detached, ..errand(self.chance, work) }
    }

    fn nap(&mut self) -> u64 {
        *self.chance.pick(&NAPS)
    }

    /// How long to wait; in a child never for ever.
    fn patience(&mut self) -> Option<u64> {
        (self.kin > 0 || self.chance.one_in(2)).then(|| *self.chance.pick(&PATIENCE))
    }

    fn wait(&mut self) -> Wait {
        let (aimed, timeout) = (self.chance.one_in(6), self.patience());
        let chance = &mut *self.chance;
        Wait {
            name: if aimed { "aimed".to_owned() } else { (*chance.pick(&SIGNALS)).to_owned() },
            number: chance.one_in(4),
            aimed,
            timeout,
            or_fail: timeout.is_some() && chance.one_in(3),
        }
    }

    /// A wait that gives a payload or fails.
    fn sure(&mut self) -> Wait {
        let wait = self.wait();
        Wait { or_fail: wait.timeout.is_some(), ..wait }
    }

    fn call(&mut self) -> Call {
        let timeout = self.patience();
        let chance = &mut *self.chance;
        Call {
            submitted: chance.one_in(2),
            fails: u32::try_from(chance.below(u64::from(SUBMISSIONS))).unwrap_or(0),
            timeout,
            heartbeat: chance.one_in(4).then(|| *chance.pick(&[5_000, 30_000])),
        }
    }

    fn condition(&mut self) -> Tree {
        let draw = |chance: &mut Chance, most| u32::try_from(chance.below(most)).unwrap_or(0);
        let fails = if self.chance.one_in(3) { draw(self.chance, 4) } else { 0 };
        let (not, checks) = (draw(self.chance, 6), draw(self.chance, 6) + 1);
        Tree::Condition { not, checks, fails, panics: self.chance.one_in(2) }
    }

    fn child(&mut self, how: Kin) -> Child {
        let close = match self.chance.below(4) {
            0 => Some(ClosePolicy::Cancel),
            1 => Some(ClosePolicy::Terminate),
            2 => Some(ClosePolicy::Abandon),
            _ => None,
        };
        let all = self.left;
        let budget = self.chance.between(1, 3);
        self.left = u32::try_from(budget).unwrap_or(1);
        self.kin += 1;
        let tree = Box::new(self.program(2));
        self.kin -= 1;
        self.left = all;
        Child { tree, how, close }
    }

    fn lent(&mut self) -> Tree {
        let naps = (0..self.chance.between(1, 3)).map(|_| self.nap()).collect();
        Tree::Lent { wait: self.sure(), naps, last: self.last() }
    }

    fn last(&mut self) -> Last {
        *self.chance.pick(&[Last::Await, Last::Await, Last::Cancel, Last::Leave])
    }

    fn batch(&mut self, depth: u32) -> Tree {
        let branches = if self.chance.one_in(20) { Vec::new() } else { self.several(depth) };
        let count = branches.len() as u64;
        let chance = &mut *self.chance;
        let number = |chance: &mut Chance| usize::try_from(chance.below(count + 1)).unwrap_or(0);
        // Zero at once is a mistake, and is told as one.
        let concurrency = match chance.below(8) {
            0 => Some(0),
            1..=3 => Some(number(chance).max(1)),
            _ => None,
        };
        let (mut enough, mut tolerated, mut percent) = (None, None, None);
        match chance.below(6) {
            0 => enough = Some(number(chance)),
            1 => tolerated = Some(number(chance)),
            2 => percent = Some(*chance.pick(&[0, 34, 50, 100])),
            3 => (enough, tolerated) = (Some(number(chance)), Some(number(chance))),
            _ => {}
        }
        Tree::Batch(Batch { parallel: chance.one_in(2), branches, concurrency, enough, tolerated, percent })
    }

    fn group(&mut self, depth: u32) -> Tree {
        let how = *self.chance.pick(&[How::All, How::Any, How::Race, How::Race, How::AllSettled]);
        let (made, members) = match self.chance.below(7) {
            0 | 1 => (Made::Scopes, self.several(depth)),
            2 => (Made::Started, self.several(depth)),
            3 => (Made::Sleeps, (0..self.chance.between(1, 4)).map(|_| Tree::Sleep(self.nap())).collect()),
            6 => {
                let tasks = (0..self.chance.between(1, 3)).map(|_| Errand { detached: false, ..self.errand() });
                (Made::Tasks, tasks.map(Tree::Task).collect())
            }
            4 if self.kin < KIN_MAX => {
                (Made::Family, vec![Tree::Child(self.child(Kin::Awaited)), Tree::Sleep(self.nap())])
            }
            _ => (Made::Trio, vec![Tree::Sleep(self.nap()), Tree::Wait(self.sure()), Tree::Step(self.work())]),
        };
        self.left = self.left.saturating_sub(1);
        Tree::Group(Group { how, made, members })
    }
}

/// A task with this work, awaited.
pub(crate) fn errand(chance: &mut Chance, work: Work) -> Errand {
    Errand {
        work: Work { at_most_once: false, ..work },
        alone: chance.one_in(4),
        priority: *chance.pick(&[0, 0, 0, 5, -5]),
        later: if chance.one_in(5) { *chance.pick(&[50, 3_000, 20_000]) } else { 0 },
        detached: false,
    }
}

/// What a task does that no run waits for.
pub(crate) fn work(chance: &mut Chance) -> Work {
    Grower { chance, left: 1, kin: 0 }.work()
}

/// Mostly errors.
fn mishap(chance: &mut Chance) -> Mishap {
    match chance.below(6) {
        0 => Mishap::Panic,
        1 => Mishap::TooLarge,
        _ => Mishap::Error,
    }
}

#[cfg(test)]
mod tests;
