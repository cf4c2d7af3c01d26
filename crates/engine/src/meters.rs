//! What an engine counts and measures, for whatever recorder the process has installed (the `metrics` facade). Without one
//! nothing is kept.
//!
//! Counters and histograms are of what has happened: counted where it happens, without a question to the store. Gauges are of what
//! there is, and are set when somebody measures.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use outlast_core::commit::{Status, TaskOutcome};
use outlast_core::id::{Namespace, QueueName};
use outlast_core::time::Timestamp;
use outlast_store::{CommitError, QueueDepth, TaskState};

use crate::client::Measured;

pub(crate) const CLAIMS: &str = "outlast_claims_total";
pub(crate) const RESUMES: &str = "outlast_resumes_total";
pub(crate) const RESUMES_IDLE: &str = "outlast_resumes_idle_total";
pub(crate) const COMMIT_SECONDS: &str = "outlast_commit_seconds";
pub(crate) const COMMITS_FENCED: &str = "outlast_commits_fenced_total";
pub(crate) const TIMERS_FIRED: &str = "outlast_timers_fired_total";
pub(crate) const TIMER_LATE_SECONDS: &str = "outlast_timer_late_seconds";
pub(crate) const TASKS_CLAIMED: &str = "outlast_tasks_claimed_total";
pub(crate) const TASKS_ENDED: &str = "outlast_tasks_ended_total";
pub(crate) const RUNS: &str = "outlast_runs";
pub(crate) const RUNS_READY: &str = "outlast_runs_ready";
pub(crate) const RUNS_OLDEST_SECONDS: &str = "outlast_runs_ready_oldest_seconds";
pub(crate) const QUEUE_TASKS: &str = "outlast_queue_tasks";
pub(crate) const QUEUE_OLDEST_SECONDS: &str = "outlast_queue_oldest_seconds";

/// Tells the recorder what each metric of Outlast means, and its unit. To be called once, after the recorder is installed.
pub fn describe_metrics() {
    describe_counter!(CLAIMS, "runs this node took to drive, because they were ready or their owner fell silent");
    describe_counter!(RESUMES, "turns of runs that were woken");
    describe_counter!(RESUMES_IDLE, "turns of runs that were woken and found nothing new for them");
    describe_histogram!(COMMIT_SECONDS, Unit::Seconds, "from handing a commit to the store until it is durable");
    describe_counter!(COMMITS_FENCED, "commits refused because the run belongs to somebody else by now");
    describe_counter!(TIMERS_FIRED, "timers that fired");
    describe_histogram!(TIMER_LATE_SECONDS, Unit::Seconds, "how long the first timer of a sweep had been due");
    describe_counter!(TASKS_CLAIMED, "attempts at tasks begun by this process");
    describe_counter!(TASKS_ENDED, "attempts at tasks that ended, by queue and outcome");
    describe_gauge!(RUNS, "runs of a namespace, by status");
    describe_gauge!(RUNS_READY, "runs that could go on and that nobody drives");
    describe_gauge!(RUNS_OLDEST_SECONDS, Unit::Seconds, "how long the first of them could have gone on");
    describe_gauge!(QUEUE_TASKS, "tasks of a queue, by state");
    describe_gauge!(
        QUEUE_OLDEST_SECONDS,
        Unit::Seconds,
        "how long the first ready task of a queue could have been claimed"
    );
    outlast_store::describe_metrics();
}

pub(crate) fn claimed(runs: usize) {
    if runs > 0 {
        counter!(CLAIMS).increment(runs as u64);
    }
}

/// A turn of a run that was woken is over.
pub(crate) fn resumed(found_something: bool) {
    counter!(RESUMES).increment(1);
    if !found_something {
        counter!(RESUMES_IDLE).increment(1);
    }
}

/// A batch of commits was answered.
pub(crate) fn committed(took: Duration) {
    histogram!(COMMIT_SECONDS).record(took);
}

pub(crate) fn refused(error: &CommitError) {
    if matches!(error, CommitError::Fenced { .. } | CommitError::Conflict { .. }) {
        counter!(COMMITS_FENCED).increment(1);
    }
}

pub(crate) fn fired(timers: usize, late: Duration) {
    if timers > 0 {
        counter!(TIMERS_FIRED).increment(timers as u64);
        histogram!(TIMER_LATE_SECONDS).record(late);
    }
}

pub(crate) fn tasks_claimed(tasks: usize) {
    if tasks > 0 {
        counter!(TASKS_CLAIMED).increment(tasks as u64);
    }
}

/// The most queues whose tasks are counted by name. Whoever may queue tasks names queues: what they name must not fill the
/// recorder. The tasks of all others are counted together, under [`OTHERS`].
const QUEUES_COUNTED_MAX: usize = 256;
const OTHERS: &str = "(others)";

/// Attempts that ended, by queue and outcome. They are told together when this is dropped: a counter with a name of its own is looked up
/// anew each time.
#[derive(Default)]
pub(crate) struct Ended(Vec<(QueueName, &'static str, u64)>);

impl Ended {
    /// An attempt at a task of this queue ended.
    pub(crate) fn note(&mut self, queue: &QueueName, outcome: &TaskOutcome) {
        let outcome = match outcome {
            TaskOutcome::Finished { .. } => "finished",
            TaskOutcome::Failed { .. } => "failed",
            TaskOutcome::Retry { .. } => "retry",
            TaskOutcome::GivenBack => "given_back",
        };
        match self.0.iter_mut().find(|(of, came_to, _)| of == queue && *came_to == outcome) {
            Some((_, _, count)) => *count += 1,
            None => self.0.push((queue.clone(), outcome, 1)),
        }
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        static COUNTED: Mutex<BTreeSet<QueueName>> = Mutex::new(BTreeSet::new());
        for (queue, outcome, count) in self.0.drain(..) {
            let queue = counted_as(&queue, &mut COUNTED.lock().unwrap_or_else(PoisonError::into_inner));
            counter!(TASKS_ENDED, "queue" => queue, "outcome" => outcome).increment(count);
        }
    }
}

/// The first so many queues of a process have their own names.
fn counted_as(queue: &QueueName, counted: &mut BTreeSet<QueueName>) -> String {
    if !counted.contains(queue) {
        if counted.len() >= QUEUES_COUNTED_MAX {
            return OTHERS.to_owned();
        }
        counted.insert(queue.clone());
    }
    queue.as_str().to_owned()
}

/// Queues whose gauges were set. A queue that is empty now says so; nobody would believe the last number for ever.
#[derive(Default)]
pub(crate) struct Gauged(Mutex<BTreeSet<QueueName>>);

/// Sets the gauges.
pub(crate) fn measured(namespace: &Namespace, measured: &Measured, gauged: &Gauged) {
    for status in Status::ALL {
        let labels = [("namespace", namespace.as_str().to_owned()), ("status", status.name().to_owned())];
        gauge!(RUNS, &labels).set(count_of(&measured.runs, status));
    }
    let depths = &measured.depths;
    gauge!(RUNS_READY).set(depths.ready as f64);
    gauge!(RUNS_OLDEST_SECONDS).set(age(depths.oldest, depths.now));
    let mut gauged = gauged.0.lock().unwrap_or_else(PoisonError::into_inner);
    gauged.extend(depths.queues.iter().map(|depth| depth.queue.clone()));
    for queue in gauged.iter() {
        let found = depths.queues.iter().find(|depth| depth.queue == *queue);
        let none = QueueDepth { queue: queue.clone(), tasks: Vec::new(), oldest: None };
        queue_measured(found.unwrap_or(&none), depths.now);
    }
}

fn queue_measured(depth: &QueueDepth, now: Timestamp) {
    let queue = depth.queue.as_str().to_owned();
    for state in TaskState::ALL {
        let labels = [("queue", queue.clone()), ("state", state.name().to_owned())];
        gauge!(QUEUE_TASKS, &labels).set(count_of(&depth.tasks, state));
    }
    gauge!(QUEUE_OLDEST_SECONDS, "queue" => queue).set(age(depth.oldest, now));
}

/// Far below 2^52.
fn count_of<T: PartialEq>(counts: &[(T, u64)], what: T) -> f64 {
    counts.iter().find(|(counted, _)| *counted == what).map_or(0.0, |(_, count)| *count as f64)
}

fn age(since: Option<Timestamp>, now: Timestamp) -> f64 {
    since.map_or(0.0, |since| now.since(since).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_queues_are_counted_by_name_and_all_others_together() {
        let mut counted = BTreeSet::new();
        let mut told = |number: usize| counted_as(&QueueName::new(format!("q-{number}")).unwrap(), &mut counted);
        let names: BTreeSet<String> = (0..10 * QUEUES_COUNTED_MAX).map(&mut told).collect();
        assert_eq!(names.len(), QUEUES_COUNTED_MAX + 1);
        assert_eq!((told(0).as_str(), told(QUEUES_COUNTED_MAX).as_str()), ("q-0", OTHERS));
    }
}
