//! An explanation in plain sentences.

use std::fmt;

use outlast_core::commit::{Bound, InboxKind};
use outlast_core::lifecycle::{State, SuspendReason};
use outlast_core::operation::OperationKind;
use outlast_core::time::Timestamp;
use outlast_store::{Held, HeldLimit, LIST_PAGE_MAX, TaskState};

use super::{Ended, Explanation, Standing, Unread, Waiting, WaitsFor};
use crate::utc::Utc;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} version {}) {}", self.run.id, self.workflow, self.version, self.standing)?;
        if self.woken {
            f.write_str(" Something came for it: it goes on as soon as a node takes it up.")?;
        }
        if let Some(error) = &self.unreadable {
            write!(f, "\nIts journal cannot be read: {error}.")?;
        }
        for operation in &self.operations {
            write!(f, "\n- {operation}")?;
        }
        for unread in &self.inbox {
            write!(f, "\n- In its inbox since {}: {unread}.", Utc(unread.since))?;
        }
        Ok(())
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Queued { since } => {
                let since = Utc(*since);
                write!(f, "is queued since {since}: a node that has this workflow and version takes it up.")
            }
            Standing::Held { since, held } => why_held(f, *since, held),
            Standing::DrivenHere { because: Some(rule) } => {
                write!(f, "is running here, and its turn goes on: {}.", rule.unmet())
            }
            Standing::DrivenHere { because: None } => f.write_str("is running here, and its turn is about to end."),
            Standing::DrivenElsewhere { lease: Some(lease) } => {
                write!(f, "is running elsewhere, under lease {lease}: only there is it known what executes.")
            }
            Standing::DrivenElsewhere { lease: None } => f.write_str("is about to be taken up."),
            Standing::Suspended { reason: Some(reason) } => {
                write!(f, "is waiting: nothing executes, and {} ({}).", in_words(*reason), reason.name())
            }
            Standing::Suspended { reason: None } => f.write_str("is waiting."),
            Standing::Paused { since, reason } => {
                f.write_str("is paused")?;
                if let Some(since) = since {
                    write!(f, " since {}", Utc(*since))?;
                }
                because(f, reason.as_deref())?;
                f.write_str(" Resume it to let it go on, or cancel it.")
            }
            Standing::Parked { since, note } => {
                f.write_str("is parked")?;
                if let Some(since) = since {
                    write!(f, " since {}", Utc(*since))?;
                }
                write!(f, ": {note}. Nothing is lost: once that is mended unpark it, or else terminate it.")
            }
            Standing::Ended { at, how } => ended(f, *at, how.as_ref()),
        }
    }
}

/// The limit that has no room, and the place in its line; or until when it is delayed.
fn why_held(f: &mut fmt::Formatter<'_>, since: Timestamp, held: &Held) -> fmt::Result {
    write!(f, "is held back since {}: ", Utc(since))?;
    let Some(limit) = held.at.and_then(|at| held.limits.get(at)) else {
        return write!(f, "it begins at {} at the earliest.", Utc(held.not_before));
    };
    let HeldLimit { key, bound, single, used, room_at } = limit;
    match bound {
        _ if *single => write!(f, "it takes the place of another run under {key:?}, which has not ended")?,
        Bound::Concurrency { max } => write!(f, "{used} of {max} runs under {key:?}")?,
        Bound::Rate(_) => write!(f, "the rate under {key:?} is {bound}")?,
    }
    if let Some(at) = room_at {
        write!(f, ", and the next may begin at {}", Utc(*at))?;
    }
    let ahead = match held.ahead {
        ahead if ahead >= LIST_PAGE_MAX => format!("more than {LIST_PAGE_MAX} are"),
        0 => "nobody is".to_owned(),
        1 => "1 is".to_owned(),
        ahead => format!("{ahead} are"),
    };
    write!(f, "; {ahead} before it in the line.")
}

fn in_words(reason: SuspendReason) -> &'static str {
    match reason {
        SuspendReason::RetryScheduled => "a step is tried again later",
        SuspendReason::WaitScheduled => "a sleep ends later",
        SuspendReason::CallbackPending => "somebody else has to act",
    }
}

fn because(f: &mut fmt::Formatter<'_>, reason: Option<&str>) -> fmt::Result {
    match reason {
        Some(reason) => write!(f, ": {reason}."),
        None => f.write_str("."),
    }
}

fn ended(f: &mut fmt::Formatter<'_>, at: Option<Timestamp>, how: Option<&Ended>) -> fmt::Result {
    let (verb, why) = match how {
        Some(Ended::Completed { .. }) => ("completed", None),
        Some(Ended::Failed { error }) => ("failed", Some(error.to_string())),
        Some(Ended::Cancelled { reason }) => ("was cancelled", reason.clone()),
        Some(Ended::Terminated { reason }) => ("was terminated", reason.clone()),
        None => ("ended", Some("how cannot be read".to_owned())),
    };
    f.write_str(verb)?;
    if let Some(at) = at {
        write!(f, " at {}", Utc(at))?;
    }
    because(f, why.as_deref())
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The {} {}", noun(self.kind), self.key)?;
        match &self.on {
            WaitsFor::Body => f.write_str(" executes")?,
            WaitsFor::Retry { attempts, error: Some(error) } => {
                write!(f, " failed at attempt {attempts} ({error}) and is tried again")?;
            }
            WaitsFor::Retry { attempts, error: None } => {
                write!(f, " does not hold after check {attempts} and is checked again")?;
            }
            WaitsFor::Timer => f.write_str(" sleeps")?,
            WaitsFor::Signal { name, .. } => write!(f, " waits for the signal {name:?}")?,
            WaitsFor::Approval { approval, title, assignee, .. } => {
                write!(f, " ({title:?}) waits to be decided under the id {approval:?}")?;
                if let Some(assignee) = assignee {
                    write!(f, " by {assignee}")?;
                }
            }
            WaitsFor::Callback { .. } => f.write_str(" waits for whoever holds its token")?,
            WaitsFor::Child { run, status: Some(status) } => {
                write!(f, " waits for the end of the run {run}, which is {}", status.name())?;
            }
            WaitsFor::Child { run, status: None } => write!(f, " waits for the run {run}, which has ended")?,
            WaitsFor::Task { task, state, failed, error } => {
                write!(f, " waits for the task {task}, which {}", task_words(*state, *failed))?;
                match (failed, error) {
                    (0, _) => {}
                    (1, None) => f.write_str(", after 1 attempt in vain")?,
                    (failed, None) => write!(f, ", after {failed} attempts in vain")?,
                    (failed, Some(error)) => write!(f, ", after attempt {failed} failed ({error})")?,
                }
            }
            WaitsFor::Inside => f.write_str(" waits for what is in it")?,
        }
        self.times(f)?;
        self.notes(f)
    }
}

impl Waiting {
    fn times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retry = matches!(self.on, WaitsFor::Retry { .. });
        if let Some(since) = self.since.filter(|_| !retry) {
            write!(f, " since {}", Utc(since))?;
        }
        let Some(until) = self.until.map(Utc) else { return f.write_str(".") };
        match &self.on {
            WaitsFor::Retry { .. } => write!(f, " at {until}."),
            WaitsFor::Body => write!(f, "; its time is up at {until}."),
            // Only one that is delayed has such an instant.
            WaitsFor::Task { .. } => write!(f, "; its next attempt is at {until}."),
            WaitsFor::Timer => write!(f, " until {until}; its timer wakes the run then."),
            WaitsFor::Signal { .. }
            | WaitsFor::Approval { .. }
            | WaitsFor::Callback { .. }
            | WaitsFor::Child { .. }
            | WaitsFor::Inside => write!(f, ", until {until} at the latest."),
        }
    }

    fn notes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let WaitsFor::Callback { heartbeat_by: Some(by), .. } = &self.on {
            write!(f, " A sign of life is owed by {}.", Utc(*by))?;
        }
        let (WaitsFor::Signal { arrived, .. }
        | WaitsFor::Approval { arrived, .. }
        | WaitsFor::Callback { arrived, .. }) = &self.on
        else {
            return self.awaited(f);
        };
        if *arrived {
            f.write_str(" The answer is there, and is about to be read.")?;
        }
        self.awaited(f)
    }

    fn awaited(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.state == Some(State::IdleNotAwaited) && self.kind != OperationKind::Scope {
            f.write_str(" The program does not await it yet.")?;
        }
        Ok(())
    }
}

fn noun(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Approval => "approval",
        OperationKind::Step
        | OperationKind::Task
        | OperationKind::Timer
        | OperationKind::Signal
        | OperationKind::Callback
        | OperationKind::Child
        | OperationKind::Condition
        | OperationKind::Scope
        | OperationKind::Now
        | OperationKind::Uuid
        | OperationKind::Random => kind.name(),
    }
}

fn task_words(state: Option<TaskState>, failed: u32) -> &'static str {
    match state {
        Some(TaskState::Ready) => "no worker has taken yet",
        Some(TaskState::Delayed) if failed > 0 => "is tried again later",
        Some(TaskState::Delayed) => "is to begin later",
        Some(TaskState::Claimed) => "a worker has taken",
        Some(TaskState::Dead) => "failed for good",
        None => "has ended",
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            InboxKind::Signal => write!(f, "a signal {:?}", self.name.as_deref().unwrap_or_default())?,
            InboxKind::Approval => f.write_str("a decision")?,
            InboxKind::Callback => f.write_str("an answer")?,
            InboxKind::Timer => f.write_str("a timer that fired")?,
            InboxKind::TaskFinished => f.write_str("the result of a task")?,
            InboxKind::TaskFailed => f.write_str("the failure of a task")?,
            InboxKind::Child => write!(f, "the end of the run {}", self.name.as_deref().unwrap_or_default())?,
            InboxKind::Cancel => f.write_str("a request to cancel")?,
            InboxKind::Pause => f.write_str("a request to pause")?,
            InboxKind::Resume => f.write_str("a request to resume")?,
            InboxKind::Intervene => f.write_str("a request to skip a node, or to begin it again")?,
        }
        match &self.key {
            Some(key) => write!(f, " for {key}"),
            None => Ok(()),
        }
    }
}
