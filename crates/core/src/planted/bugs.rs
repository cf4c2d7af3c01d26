//! Which bugs there are, and which one is at work.

use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;

/// A bug that is planted somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bug {
    /// Its name: what its place in the code says.
    pub name: &'static str,
    /// What it is like.
    pub family: &'static str,
    /// Failures of other systems it is like, by their number in the catalogue of reliability; none if it is like none of them.
    pub rows: &'static [u8],
    /// What is wrong when it is at work.
    pub what: &'static str,
}

/// The families of bugs in what only one store has: the store's contract finds them, and no world in memory can.
const SQLITE: &str = "SQLite";
const POSTGRES: &str = "PostgreSQL";

impl Bug {
    /// Whose adapter it is in, by the name that the store's contract has for it; none if it is in what all stores share.
    pub fn adapter(&self) -> Option<&'static str> {
        match self.family {
            SQLITE => Some("sqlite"),
            POSTGRES => Some("postgres"),
            _ => None,
        }
    }
}

/// There is no such bug.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no bug is named {0:?}; `BUGS` has all names")]
pub struct UnknownBug(pub String);

/// The place of the one that is at work in [`BUGS`]; their number for none.
static AT_WORK: AtomicUsize = AtomicUsize::new(BUGS.len());

/// Lets a bug work from now on, in the whole process, and no other; none for a sound program.
pub fn plant(name: Option<&str>) -> Result<(), UnknownBug> {
    let place = match name {
        None => BUGS.len(),
        Some(name) => BUGS.iter().position(|bug| bug.name == name).ok_or_else(|| UnknownBug(name.to_owned()))?,
    };
    AT_WORK.store(place, Ordering::SeqCst);
    Ok(())
}

/// Whether the bug at this place of [`BUGS`] is at work.
pub fn is(number: usize) -> bool {
    AT_WORK.load(Ordering::Relaxed) == number
}

/// The place of a bug in [`BUGS`], for the compiler: it stops at a name that is not there.
pub const fn number(name: &str) -> usize {
    let mut number = 0;
    while number < BUGS.len() {
        if same(BUGS[number].name, name) {
            return number;
        }
        number += 1;
    }
    panic!("there is no planted bug of this name in BUGS")
}

/// `==`, which constants do not have for texts.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

const fn bug(name: &'static str, family: &'static str, rows: &'static [u8], what: &'static str) -> Bug {
    Bug { name, family, rows, what }
}

/// Every planted bug.
#[rustfmt::skip]
pub const BUGS: &[Bug] = &[
    bug("wake-lost-while-owned", "lost wake", &[1, 30], "what is left for a run while it is driven does not wake it"),
    bug("wake-lost-at-suspend", "lost wake", &[1, 8], "the end of a turn takes a wake along that came during it"),
    bug("read-while-leaving", "lost wake", &[1, 8], "a wake is taken while the commit that ends the turn is under way"),
    bug("turn-ends-while-reading", "lost wake", &[1, 8], "a turn ends while its inbox is being read"),
    bug("task-outlives-its-run", "task", &[6], "a task that nobody settled is left in its queue when its run ends"),
    bug("task-queued-although-cancelled", "task", &[39], "a task that is cancelled as soon as it is started is queued all the same"),
    bug("cancelled-task-handed-out", "task", &[7], "a task that nobody wants any more is handed to the next worker when its own falls silent"),
    bug("task-attempt-not-counted", "task", &[19, 52], "handing a task to another worker does not count as an attempt"),
    bug("silent-worker-keeps-its-task", "task", &[29], "a task whose worker has fallen silent is handed to nobody else"),
    bug("stale-task-token-accepted", "task", &[20, 21], "the result of a worker that lost its task is accepted"),
    bug("task-retried-at-once", "task", &[50], "a task that failed is tried again without delay"),
    bug("task-result-wakes-nobody", "lost wake", &[1], "the result of a task is left for its run and does not wake it"),
    bug("task-tried-once-too-often", "task", &[19], "a task whose attempts are used up is tried all the same"),
    bug("task-concurrency-ignored", "task", &[52], "a worker does more tasks of a name at once than its handler says"),
    bug("retention-forgets-children", "retention", &[], "a run that ended long ago is removed although children of it live"),
    bug("retention-too-early", "retention", &[], "runs are removed as soon as they have ended"),
    bug("claim-driven-twice", "two owners", &[22, 23], "what a claim took whose reply was lost is driven when it is asked for, and once more when the claim is repeated"),
    bug("unread-wake-taken", "lost wake", &[1], "a wake is taken although something came since the inbox was read"),
    bug("turn-ends-under-a-body", "lost wake", &[7, 30], "a turn ends while a body runs, because something else is waited for"),
    bug("timer-in-whole-seconds", "early timer", &[3], "timers are kept in whole seconds, rounded down"),
    bug("sleep-skipped-by-old-clock", "early timer", &[3, 4], "after the clock went back, a sleep whose end was seen before is not slept"),
    bug("timer-lost-while-owned", "lost timer", &[1, 3], "a timer that comes due while its run is driven is removed and tells nobody"),
    bug("outlook-forgets-timers", "lost timer", &[1, 29], "an engine that drives nothing forgets to ask when the next timer is due"),
    bug("deadline-recomputed", "lost timer", &[18, 34], "replay starts a sleep anew instead of leaving the timer that runs"),
    bug("retry-consumed-early", "lost timer", &[1, 24], "that a retry is due is consumed before the attempt has ended, so that a crash loses it"),
    bug("timer-kept-by-loser", "loser keeps its timer", &[6, 7], "a sleep that is cancelled leaves its timer behind"),
    bug("timeout-kept-by-wait", "loser keeps its timer", &[6, 7], "a wait that is closed leaves the timer of its timeout behind"),
    bug("scope-end-cancels-nothing", "loser keeps its timer", &[6, 7], "what is open in a scope outlives its end"),
    bug("signal-before-first-turn-dropped", "lost signal", &[11, 12], "a signal for a run that was never driven is acknowledged and dropped"),
    bug("mailbox-dropped-at-continue", "lost signal", &[16], "signals nobody consumed do not move to the next generation"),
    bug("signal-not-consumed", "signal twice", &[16, 31], "a signal that was recorded stays in the inbox"),
    bug("newest-signal-first", "signal order", &[16], "of several signals of one name the newest is given first"),
    bug("dedup-lost-at-continue", "signal twice", &[13], "a run that continued as new no longer knows which deliveries it had"),
    bug("second-decision-accepted", "double result", &[17, 20], "a second decision on the same question is accepted"),
    bug("late-decision-accepted", "double result", &[17], "a decision is accepted after the question was closed"),
    bug("answer-lost-to-timeout", "lost answer", &[17, 18], "a wait is closed over an answer that was acknowledged"),
    bug("commit-unfenced", "forgotten fence", &[20, 21], "a commit under an old fence is accepted if its index fits"),
    bug("claim-takes-owned", "forgotten fence", &[22, 23, 30], "a run that is woken while it is driven can be claimed by anybody"),
    bug("stale-program-kept", "forgotten fence", &[23, 34], "a program in memory goes on although somebody else drove its run meanwhile"),
    bug("late-claim-not-asked-for", "stranded run", &[23, 24], "a claim arrives when its repetition was answered, and nobody asks what it took"),
    bug("unknown-taken-for-lost", "unknown outcome", &[31], "a commit whose reply was lost is sent again without asking what became of it"),
    bug("unknown-taken-for-applied", "unknown outcome", &[31], "a commit whose reply was lost is taken for durable"),
    bug("poison-not-counted", "poison", &[19, 37, 52], "taking a run over from a dead driver is not counted"),
    bug("suspect-driven-with-others", "poison", &[37, 52], "a run that may kill its driver is driven beside others"),
    bug("orphans-last", "lost wake", &[22], "a run whose owner died is taken over when nobody else is ready"),
    bug("damaged-run-forgotten", "poison", &[37], "a run that cannot be read is dropped and not parked"),
    bug("trouble-taken-for-damage", "poison", &[33], "a run that could not be read once, because the store was not reached, is parked as damaged"),
    bug("one-attempt-too-many", "retries", &[49, 50], "a step is tried once more than its policy says"),
    bug("no-backoff", "retries", &[49, 50], "a step that failed is tried again at once"),
    bug("idempotency-key-per-attempt", "retries", &[], "each attempt has an idempotency key of its own"),
    bug("at-most-once-again", "double body", &[22], "replay forgets that a step runs at most once"),
    bug("body-before-durable", "double body", &[31], "a body starts before what led to it is durable"),
    bug("outcome-lost-on-rejection", "double body", &[22], "what bodies came to is thrown away with a commit that is turned down"),
    bug("one-branch-too-many", "concurrency", &[52], "a batch runs one branch more at once than it may"),
    bug("operation-limit-ignored", "concurrency", &[52], "a run has more operations pending than it may"),
    bug("operation-refused-too-early", "concurrency", &[], "an operation is refused although there is room for one more"),
    bug("cancel-swallowed", "unjournaled cancel", &[39], "a request to stop is consumed and not recorded"),
    bug("operation-cancel-not-recorded", "unjournaled cancel", &[7, 39], "an operation is cancelled and that is not recorded"),
    bug("cancel-leaves-pause", "pause and cancel", &[39], "a paused run that is asked to stop stays paused"),
    bug("resume-forgotten", "pause and cancel", &[29, 39], "a paused run that is resumed stays paused"),
    bug("pause-over-unread-resume", "pause and cancel", &[29, 39], "a run is paused over a resume it has not read"),
    bug("cancel-not-passed-to-children", "parents and children", &[38], "a child is not told when its parent no longer waits for it"),
    bug("close-policy-ignored", "parents and children", &[38], "a child that was to go on alone is stopped when its parent ends"),
    bug("close-policy-swapped", "parents and children", &[38], "a child that was to be asked to stop is ended, and one that was to be ended is asked"),
    bug("children-left-by-failure", "parents and children", &[38], "a run that fails leaves its children behind"),
    bug("children-left-by-termination", "parents and children", &[38, 39], "a run that is terminated leaves its children behind"),
    bug("child-of-old-generation", "old generation", &[5], "a child that an earlier generation started reports to the present one"),
    bug("old-generation-keeps-rows", "old generation", &[5], "timers and waits of the generation before stay"),
    bug("terminal-keeps-rows", "old rows", &[6], "a run that ended keeps its timers, waits and inbox"),
    bug("now-not-remembered", "replay", &[34], "replay gives the present time for one that is recorded"),
    bug("uuid-not-remembered", "replay", &[34], "replay draws a new id for one that is recorded"),
    bug("fork-keeps-children", "replay", &[38], "a fork waits for the children of the original"),
    bug("delivery-ignores-namespace", "namespaces", &[], "a signal goes to the first run of its id, whatever the namespace"),
    bug("claim-ignores-version", "versions", &[], "a run goes to whoever has its workflow, in whatever version"),
    bug("start-ignores-input", "double start", &[26], "a second start with another input is answered as if it were the same"),
    bug("schedule-fires-twice", "schedule", &[28], "two who decide on the same state of a schedule both fire, each with a run of its own"),
    bug("schedule-instant-skipped", "schedule", &[28], "an instant nobody was there for does not fire, although it is not too late"),
    bug("overlap-ignored", "schedule", &[28], "the run of an instant begins although the one before has not ended"),
    bug("slot-not-given-back", "flow control", &[52], "a run that ends keeps its place under a limit"),
    bug("stop-crosses-namespaces", "namespaces", &[], "a request to stop reaches a run of another namespace, too"),
    bug("limit-ignored", "flow control", &[52], "more runs are admitted under a key than it allows"),
    bug("held-admitted-late", "flow control", &[], "runs whose time has come are let in ten minutes later"),
    bug("held-never-admitted", "flow control", &[29], "nobody looks at those who wait when a place is given back"),
    bug("plain-singleton-holds-no-place", "flow control", &[52], "a run that takes the place of a plain singleton does not wait for its end"),
    bug("priority-ignored", "task", &[29], "tasks are handed out as they came, whatever their priority"),
    bug("sqlite-advance-unfenced", SQLITE, &[20, 21], "the short way of a commit does not look at the fence"),
    bug("sqlite-inbox-item-kept", SQLITE, &[31], "what a commit consumed stays in the inbox"),
    bug("sqlite-timer-too-early", SQLITE, &[3], "a timer is written down for a millisecond before it is due"),
    bug("postgres-advance-unfenced", POSTGRES, &[20, 21], "the short way of a commit does not look at the fence"),
    bug("postgres-inbox-item-kept", POSTGRES, &[31], "what a commit consumed stays in the inbox"),
    bug("postgres-timer-too-early", POSTGRES, &[3], "a timer is written down for a millisecond before it is due"),
    bug("postgres-claimed-twice", POSTGRES, &[22, 23], "a run that is driven is handed to whoever claims next"),
    bug("delay-ignored", "flow control", &[3], "a run that is to begin later begins at once"),
    bug("snapshot-one-event-late", "text", &[], "the state that is kept is said to be one event further than it is"),
    bug("snapshot-forgets-cancel", "text", &[], "a run that goes on from a state does not know that it was asked to stop"),
    bug("snapshot-checksum-ignored", "text", &[], "a state that is damaged is used"),
    bug("torn-snapshot-parks", "text", &[], "a run whose state is damaged is parked, and not rebuilt"),
    bug("text-of-another-version", "text", &[], "a run goes on with the text that is current, and not with its own"),
    bug("pause-ignored-by-flow", "text", &[], "a flow that is to pause goes on"),
    bug("open-step-forgotten", "text", &[], "a flow that goes on from a state does not ask again for the steps that are open"),
    bug("iteration-left-out", "text", &[], "a container that goes on from a state leaves out its next iteration"),
    bug("node-condition-ignored", "text", &[], "a node whose condition does not hold runs all the same"),
    bug("skipped-node-runs", "text", &[], "a node that was skipped begins all the same"),
    bug("step-begun-twice", "text", &[], "two bodies of one attempt at a step run at once"),
    bug("script-keys-forgotten", "text", &[], "a script that goes on from a state counts its operations from the beginning"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bug_at_most_is_at_work_and_an_unknown_one_is_refused() {
        let at_work = || BUGS.iter().filter(|bug| is(number(bug.name))).map(|bug| bug.name).collect::<Vec<_>>();
        assert!(at_work().is_empty());
        for bug in BUGS {
            plant(Some(bug.name)).unwrap();
            assert_eq!(at_work(), [bug.name]);
        }
        assert_eq!(plant(Some("no-such-bug")), Err(UnknownBug("no-such-bug".to_owned())));
        plant(None).unwrap();
        assert!(at_work().is_empty());
    }

    #[test]
    fn every_bug_has_its_own_name_a_family_and_only_rows_of_the_catalogue() {
        for (number, bug) in BUGS.iter().enumerate() {
            assert_eq!(BUGS.iter().position(|other| other.name == bug.name), Some(number));
            assert!(!bug.family.is_empty() && !bug.what.is_empty());
            assert!(bug.rows.iter().all(|row| (1..=52).contains(row)), "{}", bug.name);
        }
    }
}
