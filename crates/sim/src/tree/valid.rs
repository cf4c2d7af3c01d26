//! Which trees are programs.

use super::{Batch, Child, Errand, Group, How, Made, Tree, Wait, Work};

/// Whether a tree is a program that comes to an end if the outside does its part.
///
/// - A new generation begins only where a program ends, so that nothing can come after it.
/// - A body that never returns has a limit.
/// - What the children wait for has a timeout: nobody outside knows of them.
/// - Groups are not empty, and are made of what they say.
pub fn is_valid(tree: &Tree) -> bool {
    At { is_tail: true, is_child: false }.accepts(tree)
}

#[derive(Clone, Copy)]
struct At {
    /// Whether nothing comes after it in its generation.
    is_tail: bool,
    is_child: bool,
}

impl At {
    fn inner(self) -> At {
        At { is_tail: false, ..self }
    }

    fn accepts(self, tree: &Tree) -> bool {
        match tree {
            Tree::Seq(parts) => parts.iter().enumerate().all(|(number, part)| {
                let at = if number + 1 == parts.len() { self } else { self.inner() };
                at.accepts(part)
            }),
            Tree::Try(part) | Tree::Scope(part) => self.accepts(part),
            Tree::Timed(part) => self.inner().accepts(part),
            Tree::Cleanup { body, cleanup } => self.inner().accepts(body) && self.inner().accepts(cleanup),
            Tree::Step(work) => returns(work),
            Tree::Transaction(work) => is_transaction(work),
            Tree::Task(errand) => is_errand(errand),
            Tree::Wait(wait) => self.is_patient(wait.timeout),
            Tree::Approve(timeout) => self.is_patient(*timeout),
            Tree::Callback(call) => {
                self.is_patient(call.timeout)
                    && call.fails < crate::interpret::SUBMISSIONS
                    && is_some_time(call.heartbeat)
            }
            Tree::Condition { checks, .. } => *checks > 0,
            Tree::Child(child) => self.child(child),
            Tree::Batch(batch) => self.batch(batch),
            Tree::Group(group) => self.group(group),
            Tree::Started { first, meanwhile, .. } => self.inner().accepts(first) && self.inner().accepts(meanwhile),
            Tree::Lent { wait, .. } => self.is_patient(wait.timeout) && fails_when_late(wait),
            Tree::Renew(rest) => self.is_tail && self.accepts(rest),
            Tree::Sleep(_)
            | Tree::SleepUntil(_)
            | Tree::Now
            | Tree::Uuid
            | Tree::Random
            | Tree::Emit
            | Tree::SetState
            | Tree::Fail
            | Tree::Panic => true,
        }
    }

    fn is_patient(self, timeout: Option<u64>) -> bool {
        is_some_time(timeout) && (timeout.is_some() || !self.is_child)
    }

    fn child(self, child: &Child) -> bool {
        At { is_tail: true, is_child: true }.accepts(&child.tree)
    }

    fn batch(self, batch: &Batch) -> bool {
        batch.branches.iter().all(|branch| self.accepts(branch))
    }

    fn group(self, group: &Group) -> bool {
        let made = match (group.made, group.members.as_slice()) {
            (Made::Scopes | Made::Started, members) => !members.is_empty(),
            (Made::Sleeps, members) => {
                !members.is_empty() && members.iter().all(|member| matches!(member, Tree::Sleep(_)))
            }
            (Made::Trio, [Tree::Sleep(_), Tree::Wait(wait), Tree::Step(work)]) => {
                fails_when_late(wait) && !work.spawned
            }
            (Made::Family, [Tree::Child(child), Tree::Sleep(_)]) => child.how == super::Kin::Awaited,
            (Made::Tasks, members) => {
                let awaited = |member: &Tree| matches!(member, Tree::Task(errand) if !errand.detached);
                !members.is_empty() && members.iter().all(awaited)
            }
            (Made::Trio | Made::Family, _) => false,
        };
        made && group.members.iter().all(|member| self.inner().accepts(member))
    }
}

fn is_some_time(timeout: Option<u64>) -> bool {
    timeout != Some(0)
}

/// Whether it gives a payload or fails.
fn fails_when_late(wait: &Wait) -> bool {
    wait.timeout.is_none() || wait.or_fail
}

/// Whether its attempts end.
fn returns(work: &Work) -> bool {
    let is_limited = work.timeout.is_some() || (work.heartbeat.is_some() && !work.beats);
    work.attempts > 0
        && is_some_time(work.timeout)
        && is_some_time(work.heartbeat)
        && (work.takes.is_some() || is_limited)
}

/// Whether its attempts end, and it has nothing that only steps have.
fn is_errand(errand: &Errand) -> bool {
    returns(&errand.work) && !errand.work.spawned && !errand.work.at_most_once
}

/// Whether it has only what a transaction can have.
fn is_transaction(work: &Work) -> bool {
    let Work { fails, permanent, mishap, attempts, delay, takes, .. } = work.clone();
    let plain = Work { fails, permanent, mishap, attempts, delay, takes, ..Work::default() };
    attempts > 0 && takes == Some(0) && plain == *work
}

/// Whether a group can come to an end with a failure of its members.
pub(crate) fn passes_failures_on(how: How) -> bool {
    match how {
        How::All | How::Race => true,
        How::Any | How::AllSettled => false,
    }
}
