//! Commits: everything a turn changes, in one transaction, or nothing.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::commit::{
    CloseCause, ClosedWait, Commit, Delivery, InboxKind, NewRun, NewWait, Status, Then, WaitKind,
};
use outlast_core::id::{InboxId, Index, Key, Namespace};
use outlast_core::limits::Limits;
use outlast_core::planted;

use super::{Halt, claim, create, deliver, live_row, refuse, task};
use crate::api::{Committed, Created, Delivered, TaskState};
use crate::error::{CommitError, Rejection, StoreError};
use crate::rows::{Clear, Rows, RunRow, TaskRow, TimerRow, WaitRow, WaitState};

type Step<T> = Result<T, Halt<CommitError>>;

/// Applies a commit.
pub(crate) fn commit(rows: &mut dyn Rows, commit: &Commit, limits: &Limits) -> Step<Committed> {
    check_limits(commit, limits).map_err(reject)?;
    let run = owned(rows, commit)?;
    check_index(rows, &run, commit)?;
    check_pause(&run, commit).map_err(reject)?;
    check_namespaces(commit).map_err(reject)?;
    let signals_consumed = check_consumed(rows, &run, commit)?;
    let waits = stage_waits(rows, &run, commit)?;
    check_timers(rows, &run, commit)?;
    check_tasks(rows, commit)?;
    check_children(rows, &run, commit)?;
    let answered = answered_after(&run, &waits);
    check_end(rows, &run, commit, &waits, answered)?;

    // Everything is decided; from here on only writes.
    let after = advance(rows, &run, commit, signals_consumed, answered);
    write_side_rows(rows, &run, commit, &waits)?;
    write_end(rows, &run, commit)?;
    rows.update_run(&run, &after)?;
    if !commit.events.is_empty() {
        rows.append(&run, commit.expected, &commit.events)?;
    }
    create_children(rows, commit, limits)?;
    let delivered = deliver_all(rows, commit, limits)?;
    Ok(Committed { next: after.next, delivered, now: rows.now() })
}

/// Checks what guards a commit, before its events are known: its run is held under its fence, and stands at its index.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn check_guard(rows: &mut dyn Rows, commit: &Commit) -> Step<()> {
    let run = owned(rows, commit)?;
    check_index(rows, &run, commit)
}

fn reject(rejection: Rejection) -> Halt<CommitError> {
    Halt::Refused(CommitError::Rejected(rejection))
}

/// A store error inside a commit means the same: not applied.
fn not_applied(halt: Halt<StoreError>) -> Halt<CommitError> {
    match halt {
        Halt::Fault(fault) => Halt::Fault(fault),
        Halt::Refused(error) => Halt::Refused(CommitError::NotApplied(error)),
    }
}

fn check_limits(commit: &Commit, limits: &Limits) -> Result<(), Rejection> {
    limits.check_events(commit.events.len())?;
    for event in &commit.events {
        limits.check_event(event)?;
    }
    check_texts(commit, limits)?;
    for task in &commit.tasks {
        limits.check_payload("a task's arguments", task.args.len())?;
    }
    for child in &commit.children {
        create::check_limits(child, limits)?;
    }
    for delivery in &commit.deliveries {
        deliver::check_limits(delivery, limits)?;
    }
    if let Then::ContinueAsNew { input, .. } = &commit.then {
        limits.check_payload("the next generation's input", input.len())?;
    }
    match &commit.snapshot {
        Some(snapshot) => {
            limits.check_text("the definition of a snapshot", &snapshot.definition)?;
            Ok(limits.check_payload("a snapshot", snapshot.data.len())?)
        }
        None => Ok(()),
    }
}

fn check_texts(commit: &Commit, limits: &Limits) -> Result<(), Rejection> {
    create::check_waits(&commit.waits, limits)?;
    for (_, value) in &commit.attributes {
        limits.check_attribute(value.as_deref().unwrap_or_default())?;
    }
    match &commit.then {
        Then::Park { reason } => Ok(limits.check_text("the reason for parking", reason)?),
        Then::Continue | Then::Suspend | Then::Pause | Then::Finish(_) | Then::ContinueAsNew { .. } => Ok(()),
    }
}

fn owned(rows: &mut dyn Rows, commit: &Commit) -> Step<RunRow> {
    let run = live_row(rows, &commit.run).map_err(not_applied)?;
    // Fence and owner are read from the run's row alone, never from the lease's: a lapsed owner whom nobody has
    // replaced yet harms nobody.
    if run.owner.is_none() || run.fence != commit.fence && !planted!("commit-unfenced") {
        return refuse(CommitError::Fenced { held: commit.fence, current: run.fence });
    }
    Ok(run)
}

fn check_index(rows: &mut dyn Rows, run: &RunRow, commit: &Commit) -> Step<()> {
    let expected = commit.expected;
    if expected > run.next {
        return Err(reject(Rejection::SkipsAhead { next: run.next }));
    }
    if expected == run.next {
        return Ok(());
    }
    match rows.record(run, expected)? {
        Some(found) => refuse(CommitError::Conflict { expected, found: Box::new(found) }),
        None => refuse(StoreError::corrupt(
            run.key.to_string(),
            format!("event {expected} is missing below the journal's end at {}", run.next),
        )),
    }
}

/// A paused run is not claimed, so whatever its owner has not read would wait for a resume that may be in it.
fn check_pause(run: &RunRow, commit: &Commit) -> Result<(), Rejection> {
    let unread = run.ready_at.is_some() && !planted!("pause-over-unread-resume");
    if commit.then == Then::Pause && unread { Err(Rejection::Woken) } else { Ok(()) }
}

fn check_namespaces(commit: &Commit) -> Result<(), Rejection> {
    let home = &commit.run.namespace;
    let children = commit.children.iter().map(|child| &child.run.namespace);
    let targets = commit.deliveries.iter().map(|delivery| match delivery {
        Delivery::Task { namespace, .. } => namespace,
        Delivery::Signal { run, .. }
        | Delivery::Answer { run, .. }
        | Delivery::Heartbeat { run, .. }
        | Delivery::Child { run, .. }
        | Delivery::Control { run, .. } => &run.namespace,
    });
    let foreign: Option<&Namespace> = children.chain(targets).find(|namespace| *namespace != home);
    match foreign {
        Some(namespace) => Err(Rejection::ForeignNamespace { namespace: namespace.clone() }),
        None => Ok(()),
    }
}

/// Every consumed item must be there. How many of them are signals?
fn check_consumed(rows: &mut dyn Rows, run: &RunRow, commit: &Commit) -> Step<u32> {
    if commit.consumed.is_empty() {
        return Ok(0);
    }
    let heads = rows.inbox_heads(run, &commit.consumed)?;
    let there: BTreeSet<InboxId> = heads.iter().map(|head| head.id).collect();
    let wanted: BTreeSet<InboxId> = commit.consumed.iter().copied().collect();
    if let Some(&id) = wanted.difference(&there).next() {
        return Err(reject(Rejection::InboxGone { id }));
    }
    let signals = heads.iter().filter(|head| head.kind == InboxKind::Signal).count();
    Ok(u32::try_from(signals).unwrap_or(u32::MAX))
}

/// The waits this commit opens and closes, as they will be.
struct StagedWait {
    before: Option<WaitState>,
    row: WaitRow,
}

fn stage_waits(rows: &mut dyn Rows, run: &RunRow, commit: &Commit) -> Step<BTreeMap<Key, StagedWait>> {
    let mut staged = BTreeMap::new();
    for new in &commit.waits {
        let before = rows.wait(run, &new.key)?;
        let wait = open_wait(rows, new, before)?;
        if staged.insert(new.key.clone(), wait).is_some() {
            return Err(reject(Rejection::WaitExists { key: new.key.clone() }));
        }
    }
    for closed in &commit.waits_closed {
        let wait = match staged.remove(&closed.key) {
            Some(wait) => wait,
            None => match rows.wait(run, &closed.key)? {
                Some(row) => StagedWait { before: Some(row.state), row },
                None => return Err(reject(Rejection::WaitGone { key: closed.key.clone() })),
            },
        };
        let wait = close_wait(rows, run, commit, closed, wait)?;
        staged.insert(closed.key.clone(), wait);
    }
    Ok(staged)
}

fn open_wait(rows: &mut dyn Rows, new: &NewWait, before: Option<WaitRow>) -> Step<StagedWait> {
    let (state, answer) = match &before {
        None => (WaitState::Open, None),
        // The signal aimed at this key came first: the wait is born answered.
        Some(slot) if slot.state == WaitState::Slotted && new.kind == WaitKind::Signal && slot.name == new.name => {
            (WaitState::Answered, slot.answer)
        }
        // A signal that was aimed at something this key is not: it must not keep the run from going on.
        Some(slot) if slot.state == WaitState::Slotted => (WaitState::Open, None),
        Some(_) => return Err(reject(Rejection::WaitExists { key: new.key.clone() })),
    };
    let row = WaitRow { state, answer, ..WaitRow::open(new, rows.now()) };
    Ok(StagedWait { before: before.map(|wait| wait.state), row })
}

fn close_wait(
    rows: &mut dyn Rows,
    run: &RunRow,
    commit: &Commit,
    closed: &ClosedWait,
    mut wait: StagedWait,
) -> Step<StagedWait> {
    let key = || closed.key.clone();
    match (wait.row.state, closed.cause) {
        (WaitState::Slotted | WaitState::Closed, _) => return Err(reject(Rejection::WaitGone { key: key() })),
        // Given up in the same breath as it began. Whoever sent the signal was told that nobody waits for it yet.
        (WaitState::Answered, CloseCause::Cancelled) if wait.before == Some(WaitState::Slotted) => {}
        (WaitState::Answered, _) => {
            // Whatever the commit thinks, the answer was acknowledged: it must be consumed here, or be fed first.
            let consumed = wait.row.answer.is_some_and(|answer| commit.consumed.contains(&answer));
            if !consumed && !planted!("answer-lost-to-timeout") {
                return Err(reject(Rejection::Answered { key: key() }));
            }
        }
        (WaitState::Open, CloseCause::Resolved) => {
            if wait.row.kind != WaitKind::Signal {
                return Err(reject(Rejection::Unanswered { key: key() }));
            }
        }
        (WaitState::Open, CloseCause::TimedOut) => {
            if has_unread_signal(rows, run, commit, &wait.row)? {
                return Err(reject(Rejection::Answered { key: key() }));
            }
        }
        (WaitState::Open, CloseCause::Misfit) => return Err(reject(Rejection::Unanswered { key: key() })),
        (WaitState::Open, CloseCause::Cancelled) => {}
    }
    if closed.cause == CloseCause::Misfit {
        (wait.row.state, wait.row.answer) = (WaitState::Open, None);
    } else {
        wait.row.state = WaitState::Closed;
    }
    Ok(wait)
}

/// A payload beats a deadline that is not journaled yet.
fn has_unread_signal(rows: &mut dyn Rows, run: &RunRow, commit: &Commit, wait: &WaitRow) -> Step<bool> {
    match &wait.name {
        Some(name) if run.signals > 0 => Ok(rows.mailbox(run, name)?.iter().any(|id| !commit.consumed.contains(id))),
        Some(_) | None => Ok(false),
    }
}

fn check_timers(rows: &mut dyn Rows, run: &RunRow, commit: &Commit) -> Step<()> {
    let now = rows.now();
    for timer in &commit.timers_fired {
        match rows.timer(run, timer)? {
            None => return Err(reject(Rejection::TimerGone { key: timer.key.clone() })),
            Some(found) if found.due > now => {
                let key = timer.key.clone();
                return Err(reject(Rejection::TimerNotDue { key, due: found.due, now }));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn check_tasks(rows: &mut dyn Rows, commit: &Commit) -> Step<()> {
    let mut ids = BTreeSet::new();
    for new in &commit.tasks {
        let taken = rows.task(&commit.run.namespace, &new.id)?.is_some();
        if taken || !ids.insert(&new.id) {
            return Err(reject(Rejection::TaskExists { task: new.id.clone() }));
        }
    }
    Ok(())
}

fn check_children(rows: &mut dyn Rows, run: &RunRow, commit: &Commit) -> Step<()> {
    let mut ids = BTreeSet::from([&run.key.id]);
    for child in &commit.children {
        let stranger = rows.run(&child.run)?.is_some_and(|found| !is_child(&found, child));
        if stranger || !ids.insert(&child.run.id) {
            return Err(reject(Rejection::ChildExists { child: child.run.id.clone() }));
        }
    }
    Ok(())
}

fn is_child(found: &RunRow, child: &NewRun) -> bool {
    found.deleted_at.is_none() && found.parent.is_some() && found.parent == child.parent
}

/// Opened waits with an unconsumed answer, once the staged ones are written.
fn answered_after(run: &RunRow, waits: &BTreeMap<Key, StagedWait>) -> u32 {
    waits.values().fold(run.answered, |answered, wait| match (wait.before, wait.row.state) {
        (Some(WaitState::Answered), WaitState::Closed | WaitState::Open) => answered.saturating_sub(1),
        (Some(WaitState::Slotted) | None, WaitState::Answered) => answered + 1,
        (_, WaitState::Slotted | WaitState::Open | WaitState::Answered | WaitState::Closed) => answered,
    })
}

/// A run, or a generation, may not end over an answer that was acknowledged and not fed.
fn check_end(
    rows: &mut dyn Rows,
    run: &RunRow,
    commit: &Commit,
    waits: &BTreeMap<Key, StagedWait>,
    answered: u32,
) -> Step<()> {
    match commit.then {
        Then::Continue | Then::Suspend | Then::Pause | Then::Park { .. } => return Ok(()),
        Then::Finish(_) | Then::ContinueAsNew { .. } if answered == 0 => return Ok(()),
        Then::Finish(_) | Then::ContinueAsNew { .. } => {}
    }
    let staged = waits.values().filter(|wait| wait.row.state == WaitState::Answered).map(|wait| &wait.row);
    let stored = rows.answered_waits(run)?;
    let stored = stored.iter().filter(|wait| !waits.contains_key(&wait.key));
    let unfed = staged.chain(stored).find(|wait| wait.answer.is_none_or(|answer| !commit.consumed.contains(&answer)));
    match unfed {
        Some(wait) => Err(reject(Rejection::Answered { key: wait.key.clone() })),
        None => Ok(()),
    }
}

/// The run's row after the commit.
fn advance(rows: &dyn Rows, run: &RunRow, commit: &Commit, signals_consumed: u32, answered: u32) -> RunRow {
    let mut after = run.clone();
    after.next = Index(run.next.0 + commit.events.len() as u64);
    after.signals = run.signals.saturating_sub(signals_consumed);
    after.answered = answered;
    after.side |= brings_side_rows(commit);
    after.next_place = task::next_place(run, &commit.tasks, rows.now());
    if !commit.events.is_empty() {
        after.tries = 0;
    }
    match &commit.then {
        Then::Continue => {}
        Then::Suspend => {
            after.status = Status::Waiting;
            if planted!("wake-lost-at-suspend") {
                after.ready_at = None;
            }
        }
        Then::Pause => after.status = Status::Paused,
        Then::Park { reason } => {
            after.park(reason.clone(), rows.now());
        }
        Then::Finish(ending) => {
            after.status = ending.status();
            after.finished_at = Some(rows.now());
            after.ready_at = None;
            (after.signals, after.answered, after.side) = (0, 0, false);
        }
        Then::ContinueAsNew { version, .. } => {
            after.generation = run.generation.next();
            after.next = Index(0);
            after.answered = 0;
            after.version = version.clone().unwrap_or_else(|| run.version.clone());
        }
    }
    match commit.then {
        Then::Continue | Then::ContinueAsNew { .. } => {}
        Then::Suspend | Then::Pause | Then::Park { .. } | Then::Finish(_) => after.disown(),
    }
    after
}

fn brings_side_rows(commit: &Commit) -> bool {
    !(commit.timers.is_empty() && commit.waits.is_empty() && commit.tasks.is_empty() && commit.snapshot.is_none())
}

fn write_side_rows(rows: &mut dyn Rows, run: &RunRow, commit: &Commit, waits: &BTreeMap<Key, StagedWait>) -> Step<()> {
    if !commit.consumed.is_empty() {
        rows.remove_inbox(run, &commit.consumed)?;
    }
    for timer in commit.timers_fired.iter().chain(&commit.timers_cancelled) {
        rows.remove_timer(run, timer)?;
    }
    for new in &commit.timers {
        rows.put_timer(run, &TimerRow { timer: new.timer.clone(), due: new.due })?;
    }
    for wait in waits.values() {
        rows.put_wait(run, &wait.row)?;
    }
    for key in &commit.tasks_cancelled {
        cancel_task(rows, run, key)?;
    }
    for task in task::lined_up(run, &commit.tasks, rows.now()) {
        rows.put_task(&task)?;
    }
    for (name, value) in &commit.attributes {
        rows.put_attribute(run, name, value.as_deref())?;
    }
    if let Some(snapshot) = &commit.snapshot {
        rows.put_snapshot(run, snapshot)?;
    }
    Ok(())
}

/// A task nobody works on goes; one that a worker holds is told at its next heartbeat, and its result is dropped.
fn cancel_task(rows: &mut dyn Rows, run: &RunRow, key: &Key) -> Step<()> {
    let Some(task) = rows.task_of(run, key)? else { return Ok(()) };
    match task.state {
        TaskState::Claimed => rows.put_task(&TaskRow { cancelled: true, awaited: None, ..task })?,
        TaskState::Ready | TaskState::Delayed => rows.remove_task(&task.namespace, &task.id)?,
        // It is kept for inspection, whoever wanted it.
        TaskState::Dead => rows.put_task(&TaskRow { awaited: None, ..task })?,
    }
    Ok(())
}

fn write_end(rows: &mut dyn Rows, run: &RunRow, commit: &Commit) -> Step<()> {
    if run.controlled && matches!(commit.then, Then::Finish(_)) {
        rows.leave(run)?;
    }
    let had_rows = run.side || brings_side_rows(commit) || run.inbox_next > InboxId(0);
    match &commit.then {
        Then::Continue | Then::Suspend | Then::Pause | Then::Park { .. } => {}
        Then::Finish(_) if had_rows && !planted!("terminal-keeps-rows") => rows.clear(run, Clear::Run)?,
        Then::Finish(_) => {}
        Then::ContinueAsNew { input, .. } => {
            if had_rows && !planted!("old-generation-keeps-rows") {
                rows.clear(run, Clear::Generation)?;
            }
            rows.put_input(run, run.generation.next(), input)?;
        }
    }
    Ok(())
}

fn create_children(rows: &mut dyn Rows, commit: &Commit, limits: &Limits) -> Step<()> {
    for child in &commit.children {
        if rows.run(&child.run)?.is_some() {
            continue;
        }
        // A lapsed lease must not own anything new; the child is simply left to be claimed.
        let lapsed = match child.owner {
            None => false,
            Some(owner) => match claim::check_lease(rows, owner.lease) {
                Ok(()) => false,
                Err(Halt::Refused(_)) => true,
                Err(Halt::Fault(fault)) => return Err(fault.into()),
            },
        };
        let owner = child.owner.filter(|_| !lapsed);
        let _: Created = create::insert(rows, &NewRun { owner, ..child.clone() }).map_err(not_applied)?;
        for signal in &child.signals {
            deliver::signal(rows, &child.run, signal, limits).map_err(not_applied)?;
        }
    }
    Ok(())
}

fn deliver_all(rows: &mut dyn Rows, commit: &Commit, limits: &Limits) -> Step<Vec<Delivered>> {
    let mut delivered = Vec::with_capacity(commit.deliveries.len());
    for delivery in &commit.deliveries {
        delivered.push(match deliver::deliver(rows, delivery, limits) {
            Ok(answer) => answer,
            // A delivery never fails its carrier: it has an answer of its own.
            Err(Halt::Refused(_)) => Delivered::Full,
            Err(Halt::Fault(fault)) => return Err(fault.into()),
        });
    }
    Ok(delivered)
}
