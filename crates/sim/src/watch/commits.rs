//! Commits that were applied, and those that were not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use outlast_core::commit::{Commit, Delivery, Then, TimerKind, TimerRef};
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::id::{Key, RunId, RunKey};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use outlast_store::{Committed, RunView};

use super::shadow::{Chapter, Entry, Shadow};
use super::sight::{Sight, Stand};
use super::turns::{Order, order_of};
use crate::ledger::tick;
use crate::violation::Findings;

impl Sight {
    /// A commit was applied.
    pub(super) fn applied(&mut self, commit: &Commit, committed: &Committed, stand: Stand) {
        self.told(committed.now);
        self.note_all(commit);
        self.tasks.committed(commit);
        let run = &commit.run;
        let Some(mut shadow) = self.runs.remove(run) else {
            let loose = self.loose;
            self.findings.ensure_unless(loose, 1, false, || format!("{run} was committed to, and nobody created it"));
            return;
        };
        let events = decoded(commit);
        for event in &events {
            *self.events.entry(event.kind().name().to_owned()).or_default() += 1;
        }
        self.judge_park(commit);
        if !stand.alone && commit.expected != shadow.next() {
            // Answers came in another order than the calls were applied: what is known of this run is incomplete.
            shadow.sure = false;
        }
        self.take_note_of_orders(commit);
        if shadow.sure {
            judge_owner(&mut self.findings, commit, &shadow, stand);
            judge_end(&mut self.findings, commit, &events, &shadow);
            self.judge_timers(commit, &events, &shadow, committed.now);
            self.judge_orders(commit, &shadow);
            append(&mut self.findings, commit, &mut shadow);
            self.judge_close_policies(commit, &shadow);
            self.consume(commit, &events, &mut shadow, stand);
            self.judge_pause(commit, &shadow, stand);
            self.judge_children_left(commit, &shadow);
        }
        settle_rows(commit, &mut shadow);
        if shadow.ended {
            shadow.ended_at.get_or_insert(committed.now);
        }
        self.runs.insert(run.clone(), shadow);
        for child in &commit.children {
            self.findings.ensure(20, child.run.namespace == run.namespace, || {
                format!("{run} started {} in another namespace", child.run)
            });
            self.born(child);
        }
        for (delivery, delivered) in commit.deliveries.iter().zip(&committed.delivered) {
            self.delivered(delivery, *delivered, stand);
        }
        self.clock.stays();
    }

    /// A commit was refused: the run stands where it stood.
    pub(super) fn refused(&mut self, commit: &Commit, view: &RunView) {
        let Some(shadow) = self.runs.get(&commit.run).filter(|shadow| shadow.sure) else { return };
        let stands = (shadow.generation(), shadow.next());
        self.findings.ensure(7, (view.generation, view.next) == stands, || {
            let found = format!("{}/{}", view.generation, view.next);
            format!("a commit to {} was refused, and it went from {}/{} to {found}", commit.run, stands.0, stands.1)
        });
    }

    /// Nothing that waits for a time ends before it, by the store's clock.
    fn judge_timers(&mut self, commit: &Commit, events: &[Event], shadow: &Shadow, now: Timestamp) {
        for timer in &commit.timers_fired {
            let due = shadow.timers.get(timer).copied();
            self.findings.ensure(10, due.is_some_and(|due| due <= now), || {
                format!("{}: {timer:?} was fired at {now}, and is due at {due:?}", commit.run)
            });
        }
        for event in events {
            let Some(key) = event.key().filter(|_| !ends_by(event).is_empty()) else { continue };
            let began = shadow.chapter().and_then(|chapter| began(chapter, key));
            // One that had nothing to wait for begins in the commit that ends it.
            let here = commit.events.iter().find(|record| record.key.as_ref() == Some(key) && !is_mark(record));
            let here = here.filter(|_| began.is_none());
            // Whoever has nothing to wait for goes by its own clock, which may not know yet that the store's was set back.
            let latest = began.map_or(self.clock.latest(), |began| self.clock.latest_since(began.tick));
            let slept = !here.is_some_and(takes_time);
            self.findings.ensure(10, slept, || format!("{}: {key} is a sleep that nobody slept", commit.run));
            let began = began.map(|entry| &entry.record).or(here);
            // A fork's history was written by another one's clock, and signs of life are written nowhere.
            let given = |kind: &TimerKind| shadow.given.get(&TimerRef { key: key.clone(), kind: *kind }).copied();
            let said = began.and_then(|record| deadline(record, given(&TimerKind::Heartbeat)));
            let due = said.into_iter().chain(ends_by(event).iter().filter_map(given)).min();
            self.findings.ensure(10, due.is_some_and(|due| due <= latest), || {
                format!(
                    "{}: {} of {key}, due at {due:?}; the store's clock has not passed {latest} since",
                    commit.run,
                    event.kind()
                )
            });
        }
    }

    /// A run stops its own children and nobody else's, and reports to its own parent.
    fn judge_orders(&mut self, commit: &Commit, shadow: &Shadow) {
        let run = &commit.run;
        for delivery in &commit.deliveries {
            if let Some(Order { child, .. }) = order_of(delivery) {
                let parent = self.runs.get(&child).and_then(|child| child.parent.clone());
                let own = parent.as_ref().is_some_and(|parent| {
                    parent.run == run.id && parent.generation == shadow.generation() && !parent.detached
                });
                // One that begins with this commit is told at once.
                let born = commit.children.iter().any(|new| new.run == child);
                self.findings.ensure_unless(self.loose, 13, own || born, || {
                    format!("{run} told {child} to stop, which is {parent:?}'s")
                });
            }
            if let Delivery::Child { run: to, generation, key, child, .. } = delivery {
                let mine = shadow.parent.as_ref().is_some_and(|parent| {
                    (&parent.run, parent.generation, &parent.key) == (&to.id, *generation, key) && *child == run.id
                });
                self.findings.ensure(13, mine, || {
                    format!("{run} reported to {to} as {child}, its parent is {:?}", shadow.parent)
                });
            }
        }
    }

    /// A run that ends leaves no child behind that nobody told, unless that was what it said.
    fn judge_children_left(&mut self, commit: &Commit, shadow: &Shadow) {
        if !matches!(commit.then, Then::Finish(_) | Then::ContinueAsNew { .. }) {
            return;
        }
        let Some(chapter) = shadow.chapter() else { return };
        for child in children_left(chapter) {
            let key = RunKey::new(commit.run.namespace.clone(), child);
            let gone = match self.runs.get(&key) {
                Some(child) => child.ended || child.deleted || child.doomed || !child.sure,
                None => commit.children.iter().all(|new| new.run != key),
            };
            let told = gone || self.told_to_stop.contains_key(&key);
            self.findings.ensure(13, told, || format!("{} ended, and nobody told its child {key}", commit.run));
        }
    }
}

fn decoded(commit: &Commit) -> Vec<Event> {
    commit.events.iter().filter_map(|record| Event::decode(record).ok()).collect()
}

/// Children that were started, are awaited by nobody any more, and may not simply go on.
fn children_left(chapter: &Chapter) -> BTreeSet<RunId> {
    let mut left = BTreeMap::new();
    for event in chapter.journal.events().iter().skip(chapter.history) {
        match event {
            Event::ChildStarted { key, child, detached: false, on_close, .. } if *on_close != ClosePolicy::Abandon => {
                left.insert(key.clone(), child.clone());
            }
            Event::ChildFinished { key, .. } | Event::ChildFailed { key, .. } => {
                left.remove(key);
            }
            _ => {}
        }
    }
    left.into_values().collect()
}

fn judge_owner(findings: &mut Findings, commit: &Commit, shadow: &Shadow, stand: Stand) {
    let Commit { run, fence, expected, .. } = commit;
    // Where calls overlap, a claim may be answered before the commit that came before it.
    if stand.alone {
        findings.ensure(7, shadow.owned && *fence == shadow.fence, || {
            let held = if shadow.owned { "held" } else { "nobody's" };
            format!("a commit to {run} under fence {fence} was applied; it is {held} at fence {}", shadow.fence)
        });
    }
    findings.ensure(1, *expected == shadow.next(), || {
        format!("a commit to {run} at index {expected} was applied; it stands at {}", shadow.next())
    });
}

fn judge_end(findings: &mut Findings, commit: &Commit, events: &[Event], shadow: &Shadow) {
    let run = &commit.run;
    findings.ensure(3, !shadow.ended, || format!("{run} has ended, and a commit to it was applied"));
    let ends = events.iter().any(Event::is_terminal);
    let continues = matches!(events.last(), Some(Event::RunContinued { .. }));
    let (finish, next) = match commit.then {
        Then::Finish(_) => (true, false),
        Then::ContinueAsNew { .. } => (false, true),
        Then::Continue | Then::Suspend | Then::Pause | Then::Park { .. } => (false, false),
    };
    findings.ensure(3, (ends, continues) == (finish, next), || {
        format!("{run}: the commit says {:?}, its events {:?}", commit.then, events.last().map(Event::kind))
    });
}

fn append(findings: &mut Findings, commit: &Commit, shadow: &mut Shadow) {
    let tick = tick();
    let Some(chapter) = shadow.chapters.last_mut() else { return };
    for record in &commit.events {
        let over = chapter.journal.is_over();
        let verdict = chapter.append(record, Some(commit.fence), tick);
        let invariant = match &verdict {
            Err(_) if over => 3,
            Err(text) if text.contains("settled before") => 4,
            Err(_) | Ok(()) => 1,
        };
        findings.check(invariant, verdict.map_err(|text| format!("{}: {text}", commit.run)));
    }
    if let Some(snapshot) = &commit.snapshot {
        let next = chapter.entries.len() as u64;
        findings.ensure(14, snapshot.index.0 == next, || {
            format!("{}: a state is kept for {}, and the journal is at {next}", commit.run, snapshot.index)
        });
        chapter.snapshots.push(snapshot.clone());
    }
}

/// Timers, ownership and generation after a commit.
fn settle_rows(commit: &Commit, shadow: &mut Shadow) {
    shadow.progressed(commit.fence, !commit.events.is_empty());
    for timer in commit.timers_cancelled.iter().chain(&commit.timers_fired) {
        shadow.timers.remove(timer);
    }
    shadow.timers.extend(commit.timers.iter().map(|new| (new.timer.clone(), new.due)));
    match &commit.then {
        Then::Continue => {}
        Then::Suspend | Then::Pause | Then::Park { .. } => shadow.let_go(),
        Then::Finish(_) => {
            shadow.let_go();
            shadow.ended = true;
            shadow.timers.clear();
        }
        Then::ContinueAsNew { input, version } => {
            let before = shadow.chapter().map(|chapter| chapter.version.clone());
            shadow.timers.clear();
            shadow.given.clear();
            if let Some(version) = version.clone().or(before) {
                shadow.chapters.push(Chapter::new(version, input.clone()));
            }
        }
    }
}

/// Whether it is what a flow says of one of its nodes, which has the key of what the node waits for.
fn is_mark(record: &Record) -> bool {
    Event::decode(record)
        .is_ok_and(|event| matches!(event, Event::NodeStarted { .. } | Event::ContainerChildStarted { .. }))
}

/// The event with which an operation began.
pub(super) fn began<'c>(chapter: &'c Chapter, key: &Key) -> Option<&'c Entry> {
    let since = chapter.journal.operation(key)?.since;
    usize::try_from(since.0).ok().and_then(|since| chapter.entries.get(since))
}

/// The timers an event may say the end of.
fn ends_by(event: &Event) -> &'static [TimerKind] {
    match event {
        Event::TimerFired { .. } => &[TimerKind::Delay],
        Event::SignalTimedOut { .. } | Event::ApprovalTimedOut { .. } => &[TimerKind::Timeout],
        Event::CallbackTimedOut { .. } => &[TimerKind::Timeout, TimerKind::Heartbeat],
        _ => &[],
    }
}

/// Whether it is a sleep of some time, whatever a clock shows.
fn takes_time(record: &Record) -> bool {
    matches!(Event::decode(record), Ok(Event::TimerStarted { duration_ms: Some(1..), .. }))
}

/// When what waits for a time may end at the earliest; `put_off` is what signs of life have put silence off to.
fn deadline(record: &Record, put_off: Option<Timestamp>) -> Option<Timestamp> {
    match Event::decode(record).ok()? {
        // A sleep of no time ends where it begins, by the clock of whoever sleeps it.
        Event::TimerStarted { duration_ms: Some(0), .. } => Some(Timestamp::EPOCH),
        Event::TimerStarted { deadline, .. } => Some(deadline),
        Event::SignalAwaited { deadline, .. } | Event::ApprovalRequested { deadline, .. } => deadline,
        Event::CallbackCreated { deadline, heartbeat_ms, .. } => {
            let silent = heartbeat_ms.map(|silence| record.at + Duration::from_millis(silence));
            deadline.into_iter().chain(put_off.or(silent)).min()
        }
        _ => None,
    }
}
