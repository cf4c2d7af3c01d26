//! Rest: trouble is over, and nobody helps. What engines do by themselves, and a look at what they leave undone.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use outlast_core::commit::{InboxItem, InboxKind};
use outlast_core::event::Event;
use outlast_core::id::RunKey;
use outlast_core::limits::TRIES_ALONE;
use outlast_core::time::Timestamp;
use outlast_store::invariants::{RunState, World};
use outlast_store::{Awaited, Store, TaskState, TaskView};

use crate::case::Options;
use crate::cluster::Cluster;
use crate::interpret::ALONE;
use crate::oracle::{Evidence, Findings, Scene};
use crate::watch::State;

/// How long clients may still wait for an answer.
const CLIENTS_MAX: u32 = 120;
/// What an engine needs beside a lease and a poll: to start again, and for calls that take time.
const MARGIN: Duration = Duration::from_secs(5);
/// Whoever waits in line has its turn within so long beside that: a suspect has two minutes, and bodies take their time.
const IN_LINE: Duration = Duration::from_secs(600);
/// How often to look whether everything is over.
const LOOK: Duration = Duration::from_secs(1);

/// Within this everything that can go on does: whoever held it has lost it, and somebody has looked around.
pub(crate) fn bound(options: &Options) -> Duration {
    // Clocks of processes are wrong by a tenth.
    (Duration::from_millis(options.lease) + 2 * Duration::from_millis(options.poll)) * 11 / 10 + MARGIN
}

/// Lets the engines alone for as long as they may need, and judges what is then there.
pub(crate) async fn rest(cluster: &Rc<Cluster>, store: &dyn Store) -> Findings {
    for _ in 0..CLIENTS_MAX {
        if cluster.left.get() == 0 {
            break;
        }
        cluster.world.sleep(LOOK).await;
    }
    let mut findings = Findings::default();
    let bound = bound(&cluster.case.options);
    let Some(evidence) = gather(cluster, store, &mut findings).await else { return findings };
    let before = to_do(&evidence, cluster.world.now());
    pass(cluster, bound).await;
    let Some(evidence) = gather(cluster, store, &mut findings).await else { return findings };
    let scene = Scene { patience: Some(bound), at_rest: true, ..Scene::default() };
    evidence.judge(&scene, &mut findings);
    let after = to_do(&evidence, cluster.world.now());
    let crowd = Crowd::of(&cluster.case.options, &evidence);
    let (in_line, rest): (BTreeSet<_>, BTreeSet<_>) = before.into_iter().partition(|one| crowd.excuses(one.line));
    undone(&rest, &after, &mut findings);
    // Whoever waits in line comes to their turn, only later.
    let mut waiting: BTreeSet<Pending> = in_line.intersection(&after).cloned().collect();
    let checked = in_line.difference(&waiting).cloned().collect();
    undone(&checked, &after, &mut findings);
    let until = cluster.world.elapsed() + IN_LINE;
    while !waiting.is_empty() && cluster.world.elapsed() < until {
        pass(cluster, bound).await;
        let Some(evidence) = gather(cluster, store, &mut findings).await else { return findings };
        let now = to_do(&evidence, cluster.world.now());
        waiting.retain(|one| now.contains(one));
    }
    undone(&waiting, &waiting, &mut findings);
    findings
}

/// What is there now. That it cannot be read is a finding.
async fn gather(cluster: &Rc<Cluster>, store: &dyn Store, findings: &mut Findings) -> Option<Evidence> {
    match cluster.still(Evidence::gather(store, &cluster.watch, &cluster.ledger)).await {
        Ok(evidence) => Some(evidence),
        Err(unreadable) => {
            findings.check(2, Err(unreadable));
            None
        }
    }
}

/// Lets time pass, unless everything is over before.
async fn pass(cluster: &Rc<Cluster>, long: Duration) {
    let until = cluster.world.elapsed() + long;
    let is_over = || {
        let sight = cluster.watch.sight();
        sight.is_over() && sight.tasks.are_over()
    };
    while cluster.world.elapsed() < until && !is_over() {
        cluster.world.sleep(LOOK).await;
    }
}

fn to_do(evidence: &Evidence, now: Timestamp) -> BTreeSet<Pending> {
    let mut found = pending(evidence.worlds.iter().map(|(_, world)| world), now);
    found.extend(silent(evidence, now));
    found.extend(held_back(evidence, now));
    found
}

/// Runs that flow control holds back although their time has come and there is room: also one that was debounced, when nobody has
/// started another for as long as was said, or it has waited for as long as it may.
fn held_back(evidence: &Evidence, now: Timestamp) -> BTreeSet<Pending> {
    let outside = evidence.lobby.held_with_room(&evidence.shadows, now);
    let outside = outside.into_iter().filter(|_| evidence.ordered);
    let tell = |(run, since): (&RunKey, Timestamp)| {
        let what = format!("may begin since {since}, and nobody lets it");
        Pending { whose: run.to_string(), invariant: 17, what, line: Line::None }
    };
    outside.map(tell).collect()
}

/// What somebody may wait in line for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    /// For nothing: timers fire however many wait.
    None,
    /// To be driven.
    Runs,
    /// To be done by a worker.
    Tasks,
    /// To be done by a worker that does one of its kind at a time.
    Alone,
}

/// Where there is little room.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    runs: bool,
    tasks: bool,
}

impl Crowd {
    /// Runs wait for the only place there is, or for one that is driven alone; tasks for the only place.
    fn of(options: &Options, evidence: &Evidence) -> Crowd {
        let suspected = evidence.shadows.values().any(|shadow| shadow.tries >= TRIES_ALONE);
        Crowd { runs: options.runs_max == 1 || suspected, tasks: options.tasks_max == 1 }
    }

    /// Whether what waits there may wait longer.
    fn excuses(self, line: Line) -> bool {
        match line {
            Line::None => false,
            Line::Runs => self.runs,
            Line::Tasks => self.tasks,
            Line::Alone => true,
        }
    }
}

/// Something that somebody should do something about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    /// The run, or the task.
    whose: String,
    invariant: u8,
    what: String,
    line: Line,
}

/// What is there to be done.
fn pending<'w>(worlds: impl IntoIterator<Item = &'w World>, now: Timestamp) -> BTreeSet<Pending> {
    let mut found = BTreeSet::new();
    for world in worlds {
        for (run, state) in &world.runs {
            let tell = |(invariant, what, line)| Pending { whose: run.to_string(), invariant, what, line };
            found.extend(pending_of(state, now).into_iter().map(tell));
        }
        found.extend(world.tasks.iter().filter_map(|task| waiting(task, now)));
    }
    found
}

/// A task that somebody should do.
fn waiting(task: &TaskView, now: Timestamp) -> Option<Pending> {
    let due = task.state == TaskState::Ready && task.available_at <= now;
    due.then(|| {
        let what =
            format!("may begin since {}, after {} attempts, and nobody does it", task.available_at, task.attempt);
        let line = if task.name.as_str() == ALONE { Line::Alone } else { Line::Tasks };
        Pending { whose: format!("task {}", task.id), invariant: 17, what, line }
    })
}

/// Tasks in the hands of somebody who was silent for too long.
fn silent(evidence: &Evidence, now: Timestamp) -> BTreeSet<Pending> {
    let tasks = evidence.tasks.all().filter(|_| evidence.ordered);
    let silent = tasks.filter_map(|((_, id), book)| match &book.state {
        State::Held { worker, until, unwanted: false, .. } if *until <= now => {
            let what = format!("was {worker}'s until {until}, and is handed to nobody else");
            Some(Pending { whose: format!("task {id}"), invariant: 17, what, line: Line::Tasks })
        }
        State::Ready | State::Held { .. } | State::Dead | State::Buried | State::Gone => None,
    });
    silent.collect()
}

fn pending_of(state: &RunState, now: Timestamp) -> Vec<(u8, String, Line)> {
    let mut found = Vec::new();
    let stands = (state.view.generation, state.view.next);
    if !state.view.status.is_claimable() {
        return found;
    }
    // Whoever is driven reads, however many wait.
    let line = if state.view.ready && state.view.owner.is_none() { Line::Runs } else { Line::None };
    if line == Line::Runs {
        found.push((5, format!("is ready at {}/{}, and nobody drives it", stands.0, stands.1), line));
    }
    for awaited in &state.awaiting {
        if let Awaited::Timer { key, kind, due } = awaited
            && *due <= now
        {
            found.push((
                10,
                format!("has the {} of {key}, due at {due}, and it does not fire", kind.name()),
                Line::None,
            ));
        }
    }
    let first_of_name = |item: &InboxItem| {
        let of_name = |other: &&InboxItem| other.kind == InboxKind::Signal && other.name == item.name;
        state.inbox.iter().find(of_name).is_some_and(|first| first.id == item.id)
    };
    let is_open = |item: &InboxItem| {
        item.key.as_ref().is_none_or(|key| state.awaiting.iter().any(|awaited| is_of(awaited, key.as_str())))
    };
    let is_pausing = is_pausing(state);
    for item in &state.inbox {
        let is_urgent = match item.kind {
            InboxKind::Signal if is_pausing => false,
            InboxKind::Signal => match &item.key {
                None => is_awaited(state, item) && first_of_name(item),
                Some(key) => state.awaiting.iter().any(|awaited| is_answered(awaited, key.as_str())),
            },
            InboxKind::Cancel | InboxKind::Resume | InboxKind::Intervene => true,
            InboxKind::TaskFinished | InboxKind::TaskFailed => is_open(item),
            // What is not for an open operation any more waits for whoever comes.
            InboxKind::Approval | InboxKind::Callback | InboxKind::Timer | InboxKind::Child | InboxKind::Pause => {
                !is_pausing && is_open(item)
            }
        };
        if is_urgent {
            found.push((8, format!("has {:?} {:?} in its inbox and does not read it", item.kind, item.id), line));
        }
    }
    found
}

/// The pause of a flow begins when the tasks that run have ended, and until then nothing else is read.
fn is_pausing(state: &RunState) -> bool {
    let is_flow = state.events().iter().any(Event::is_mark);
    let has_tasks = state.awaiting.iter().any(|awaited| matches!(awaited, Awaited::Task { .. }));
    is_flow && has_tasks && state.inbox.iter().any(|item| item.kind == InboxKind::Pause)
}

fn is_awaited(state: &RunState, signal: &InboxItem) -> bool {
    state.awaiting.iter().any(|awaited| matches!(awaited, Awaited::Wait { name, .. } if *name == signal.name))
}

fn is_answered(awaited: &Awaited, of: &str) -> bool {
    matches!(awaited, Awaited::Wait { key, answered: true, .. } if key.as_str() == of)
}

fn is_of(awaited: &Awaited, of: &str) -> bool {
    match awaited {
        Awaited::Timer { key, .. } | Awaited::Wait { key, .. } | Awaited::Task { key, .. } => key.as_str() == of,
        Awaited::Child { key, .. } => key.as_str() == of,
    }
}

/// What was to be done and still is, although there was time.
fn undone(before: &BTreeSet<Pending>, after: &BTreeSet<Pending>, findings: &mut Findings) {
    for pending in before {
        let Pending { whose, invariant, what, .. } = pending;
        findings.ensure(*invariant, !after.contains(pending), || format!("{whose}, left to itself, {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;

    fn pending_of_run(invariant: u8, what: &str) -> Pending {
        Pending { whose: "default/r".to_owned(), invariant, what: what.to_owned(), line: Line::None }
    }

    #[test]
    fn what_was_to_be_done_and_still_is_is_reported_and_what_is_new_is_not() {
        let before = BTreeSet::from([pending_of_run(10, "an old timer"), pending_of_run(5, "is ready")]);
        let after = BTreeSet::from([pending_of_run(10, "an old timer"), pending_of_run(8, "a new signal")]);
        let mut findings = Findings::default();
        undone(&before, &after, &mut findings);
        assert_eq!(findings.broken(), [10]);
        assert!(findings.violations[0].text.contains("left to itself, an old timer"));
        assert_eq!((findings.checked[&10], findings.checked[&5]), (1, 1));
    }

    #[test]
    fn only_what_waits_in_line_may_wait_longer() {
        let crowd = |runs, tasks| Crowd { runs, tasks };
        let excused = |crowd: Crowd| {
            let all = [Line::None, Line::Runs, Line::Tasks, Line::Alone];
            all.into_iter().filter(|line| crowd.excuses(*line)).collect::<Vec<Line>>()
        };
        assert_eq!(excused(crowd(false, false)), [Line::Alone]);
        assert_eq!(excused(crowd(true, false)), [Line::Runs, Line::Alone]);
        assert_eq!(excused(crowd(false, true)), [Line::Tasks, Line::Alone]);
    }

    #[test]
    fn nobody_needs_longer_than_a_lease_and_two_polls_by_the_slowest_clock() {
        let options = Options { lease: 10_000, poll: 1_000, ..draw(0).options };
        assert_eq!(bound(&options), Duration::from_millis(13_200) + MARGIN);
    }
}
