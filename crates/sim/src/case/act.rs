//! What clients do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Deed;
use crate::tree::Errand;

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
    /// Queues a task that no run waits for. The same one again changes nothing as long as it is there.
    Enqueue {
        /// Its id.
        id: String,
        /// What it is.
        errand: Errand,
    },
    /// Puts a schedule. The same again changes nothing.
    PutSchedule {
        /// Which.
        schedule: usize,
        /// Whether it fires half as often from now on.
        other: bool,
    },
    /// Lets a schedule fire no instant.
    PauseSchedule(usize),
    /// Lets it fire again.
    ResumeSchedule(usize),
    /// Wants a run of a schedule at once.
    TriggerSchedule(usize),
    /// Wants the runs of instants that have passed.
    BackfillSchedule {
        /// Which.
        schedule: usize,
        /// From so many milliseconds before now.
        back: u64,
        /// For so many.
        long: u64,
    },
    /// Removes a schedule.
    RemoveSchedule(usize),
    /// Does something with a run that flow control holds back.
    Guest {
        /// Which.
        guest: usize,
        /// What.
        what: Deed,
    },
    /// Queues a task again that failed for good, or removes it: one of those there are at that time.
    Dead {
        /// Which.
        nth: u64,
        /// Whether it is queued again.
        retry: bool,
    },
    /// Starts the run of a text.
    StartWritten(usize),
    /// Does something to the run of a text.
    Written {
        /// Which text.
        written: usize,
        /// What is done.
        what: Box<Act>,
    },
    /// Puts an edition of a text in the place of the one that is there.
    Define {
        /// Which text.
        written: usize,
        /// Which edition.
        edition: u32,
    },
    /// Lets a paused run of a text go on, and tells it something.
    Say {
        /// Which text.
        written: usize,
        /// What.
        message: u64,
    },
    /// Has a flow go on without one of the nodes that wait, or has it begin again.
    Node {
        /// Which text.
        written: usize,
        /// Which of the nodes that wait at that time.
        nth: u64,
        /// Whether it is skipped.
        skip: bool,
    },
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
            Act::Enqueue { .. } => "enqueue",
            Act::PutSchedule { .. } => "put a schedule",
            Act::PauseSchedule(_) => "pause a schedule",
            Act::ResumeSchedule(_) => "resume a schedule",
            Act::TriggerSchedule(_) => "trigger a schedule",
            Act::BackfillSchedule { .. } => "backfill a schedule",
            Act::RemoveSchedule(_) => "remove a schedule",
            Act::Guest { what: Deed::Start, .. } => "start a guest",
            Act::Guest { what: Deed::Signal, .. } => "signal a guest",
            Act::Guest { what: Deed::Cancel, .. } => "cancel a guest",
            Act::Guest { what: Deed::Terminate, .. } => "terminate a guest",
            Act::Dead { retry: true, .. } => "retry a dead task",
            Act::Dead { retry: false, .. } => "discard a dead task",
            Act::StartWritten(_) => "start a text",
            Act::Written { .. } => "something to a text",
            Act::Define { .. } => "define a text",
            Act::Say { .. } => "resume with a message",
            Act::Node { skip: true, .. } => "skip a node",
            Act::Node { skip: false, .. } => "retry a node",
        }
    }

    /// Every kind there is.
    pub const KINDS: [&'static str; 38] = [
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
        "enqueue",
        "put a schedule",
        "pause a schedule",
        "resume a schedule",
        "trigger a schedule",
        "backfill a schedule",
        "remove a schedule",
        "start a guest",
        "signal a guest",
        "cancel a guest",
        "terminate a guest",
        "retry a dead task",
        "discard a dead task",
        "start a text",
        "something to a text",
        "define a text",
        "resume with a message",
        "skip a node",
        "retry a node",
    ];

    /// The run it is about, if it is about one.
    pub fn run(&self) -> Option<usize> {
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
            | Act::Delete(run) => Some(*run),
            Act::Enqueue { .. }
            | Act::PutSchedule { .. }
            | Act::PauseSchedule(_)
            | Act::ResumeSchedule(_)
            | Act::TriggerSchedule(_)
            | Act::BackfillSchedule { .. }
            | Act::RemoveSchedule(_)
            | Act::Guest { .. }
            | Act::Dead { .. }
            | Act::StartWritten(_)
            | Act::Written { .. }
            | Act::Define { .. }
            | Act::Say { .. }
            | Act::Node { .. } => None,
        }
    }

    /// The schedule it is about, if it is about one.
    pub fn schedule(&self) -> Option<usize> {
        match self {
            Act::PutSchedule { schedule, .. }
            | Act::PauseSchedule(schedule)
            | Act::ResumeSchedule(schedule)
            | Act::TriggerSchedule(schedule)
            | Act::BackfillSchedule { schedule, .. }
            | Act::RemoveSchedule(schedule) => Some(*schedule),
            Act::Start(_)
            | Act::StartOther(_)
            | Act::SignalWithStart { .. }
            | Act::Signal { .. }
            | Act::Aimed { .. }
            | Act::Below { .. }
            | Act::Answer { .. }
            | Act::AnswerAgain { .. }
            | Act::Heartbeat(_)
            | Act::Cancel(_)
            | Act::Terminate(_)
            | Act::Pause(_)
            | Act::Resume(_)
            | Act::Fork { .. }
            | Act::Explain(_)
            | Act::Delete(_)
            | Act::Enqueue { .. }
            | Act::Guest { .. }
            | Act::Dead { .. }
            | Act::StartWritten(_)
            | Act::Written { .. }
            | Act::Define { .. }
            | Act::Say { .. }
            | Act::Node { .. } => None,
        }
    }

    /// The text it is about, if it is about one.
    pub fn written(&self) -> Option<usize> {
        match self {
            Act::StartWritten(written)
            | Act::Written { written, .. }
            | Act::Define { written, .. }
            | Act::Say { written, .. }
            | Act::Node { written, .. } => Some(*written),
            _ => None,
        }
    }
}
