//! What others leave for a run: an inbox item and a wake, in one transaction.

use bytes::Bytes;
use outlast_core::commit::{
    Control, Delivery, HELD_CANCEL, InboxItem, InboxKind, Opener, Signal, Status, TimerKind, TimerRef, WaitKind,
};
use outlast_core::id::{DeliveryId, InboxId, Key, RunKey};
use outlast_core::limits::{LimitExceeded, Limits, within};
use outlast_core::planted;

use super::{Halt, task};
use crate::api::Delivered;
use crate::error::StoreError;
use crate::rows::{Rows, RunRow, TimerRow, WaitRow, WaitState};

/// Leaves one delivery.
pub(crate) fn deliver(
    rows: &mut dyn Rows,
    delivery: &Delivery,
    limits: &Limits,
) -> Result<Delivered, Halt<StoreError>> {
    check_limits(delivery, limits).map_err(|error| Halt::Refused(error.into()))?;
    match delivery {
        Delivery::Signal { run, signal: message } => signal(rows, run, message, limits),
        Delivery::Answer { run, key, kind, id, token, meta, payload } => {
            let answer = Answer { key, kind: *kind, id, token, meta, payload };
            answer_wait(rows, run, &answer)
        }
        Delivery::Heartbeat { run, key, token } => heartbeat(rows, run, key, token),
        Delivery::Child { run, generation, key, child, meta, payload } => {
            let run = match open_run(rows, run)? {
                Ok(run) if run.generation == *generation || planted!("child-of-old-generation") => run,
                Ok(_) => return Ok(Delivered::Lost),
                Err(refused) => return Ok(refused),
            };
            let item = Item { key: Some(key), name: Some(child.as_str()), delivery: None, meta, payload };
            push(rows, &run, InboxKind::Child, item)
        }
        Delivery::Control { run, control: request, id, meta, child_of } => {
            let request = Request { control: *request, id, meta, child_of };
            control(rows, run, &request)
        }
        Delivery::Task { namespace, task: id, token, outcome, receipt } => {
            let end = task::End { namespace, id, token: *token, outcome, receipt: receipt.as_ref() };
            task::finish(rows, &end)
        }
    }
}

/// What a delivery brings must fit.
pub(crate) fn check_limits(delivery: &Delivery, limits: &Limits) -> Result<(), LimitExceeded> {
    let bytes = match delivery {
        Delivery::Signal { signal, .. } => signal.payload.len(),
        Delivery::Answer { meta, payload, .. } | Delivery::Child { meta, payload, .. } => size(meta) + size(payload),
        Delivery::Control { meta, .. } => size(meta),
        Delivery::Heartbeat { .. } => 0,
        Delivery::Task { outcome, .. } => task::outcome_bytes(outcome),
    };
    limits.check_payload("a delivery's payload", bytes)
}

fn size(bytes: &Option<Bytes>) -> usize {
    bytes.as_ref().map_or(0, Bytes::len)
}

/// The run, if it can still be left something; otherwise what to answer.
fn open_run(rows: &mut dyn Rows, key: &RunKey) -> Result<Result<RunRow, Delivered>, Halt<StoreError>> {
    Ok(match rows.run(key)? {
        None => Err(Delivered::NotFound),
        Some(run) if run.deleted_at.is_some() => Err(Delivered::Deleted),
        Some(run) if run.status.is_terminal() => Err(Delivered::Lost),
        Some(run) => Ok(run),
    })
}

/// As [`open_run`], but an id that was accepted before is a duplicate, also after the run has ended.
fn open_run_once(
    rows: &mut dyn Rows,
    key: &RunKey,
    id: &DeliveryId,
) -> Result<Result<RunRow, Delivered>, Halt<StoreError>> {
    match rows.run(key)? {
        Some(run)
            if run.deleted_at.is_none()
                && rows.was_delivered(&run, id)?
                && !(planted!("dedup-lost-at-continue") && run.generation.0 > 0) =>
        {
            Ok(Err(Delivered::Duplicate))
        }
        _ => open_run(rows, key),
    }
}

pub(crate) struct Item<'a> {
    pub(crate) key: Option<&'a Key>,
    pub(crate) name: Option<&'a str>,
    pub(crate) delivery: Option<&'a DeliveryId>,
    pub(crate) meta: &'a Option<Bytes>,
    pub(crate) payload: &'a Option<Bytes>,
}

/// Puts an item into the inbox of `run` and wakes it. `run` may be ahead of the stored row; what it changes is kept.
fn push(rows: &mut dyn Rows, run: &RunRow, kind: InboxKind, item: Item<'_>) -> Result<Delivered, Halt<StoreError>> {
    let before = run.clone();
    push_changed(rows, &before, run.clone(), kind, item)?;
    Ok(Delivered::Delivered)
}

fn push_changed(
    rows: &mut dyn Rows,
    before: &RunRow,
    mut after: RunRow,
    kind: InboxKind,
    item: Item<'_>,
) -> Result<InboxId, Halt<StoreError>> {
    let now = rows.now();
    let id = after.inbox_next;
    after.inbox_next = id.next();
    let unheard = planted!("task-result-wakes-nobody") && kind == InboxKind::TaskFinished;
    let lost = planted!("wake-lost-while-owned") && after.owner.is_some();
    if !lost && !unheard {
        after.wake(now);
    }
    let stored = InboxItem {
        id,
        kind,
        key: item.key.cloned(),
        name: item.name.map(str::to_owned),
        delivery: item.delivery.cloned(),
        at: now,
        meta: item.meta.clone(),
        payload: item.payload.clone(),
    };
    rows.update_run(before, &after)?;
    rows.push_inbox(&after, &stored)?;
    if let Some(delivery) = item.delivery {
        rows.remember_delivery(&after, delivery)?;
    }
    Ok(id)
}

/// A timer's firing, as the sweep leaves it.
pub(crate) fn fire_timer(rows: &mut dyn Rows, run: &RunKey, timer: &TimerRef) -> Result<bool, Halt<StoreError>> {
    let Some(run) = rows.run(run)? else { return Ok(false) };
    // Removing the row is the firing: whoever finds none is told that somebody else fired it.
    match rows.timer(&run, timer)? {
        Some(found) if found.due <= rows.now() => {}
        Some(_) | None => return Ok(false),
    }
    rows.remove_timer(&run, timer)?;
    if run.status.is_terminal() {
        // Somebody wrote past the store. Nobody would ever read of it, and the run would be ready for good.
        return Ok(false);
    }
    if planted!("timer-lost-while-owned") && run.owner.is_some() {
        return Ok(true);
    }
    let name = Some(timer.kind.name());
    let item = Item { key: Some(&timer.key), name, delivery: None, meta: &None, payload: &None };
    push(rows, &run, InboxKind::Timer, item)?;
    Ok(true)
}

/// A task's end, as its worker leaves it for the run that awaits it.
pub(crate) fn push_task(
    rows: &mut dyn Rows,
    run: &RunKey,
    kind: InboxKind,
    item: Item<'_>,
) -> Result<(), Halt<StoreError>> {
    if let Ok(run) = open_run(rows, run)? {
        push(rows, &run, kind, item)?;
    }
    Ok(())
}

/// A signal: for the mailbox, or aimed at one operation.
pub(crate) fn signal(
    rows: &mut dyn Rows,
    run: &RunKey,
    signal: &Signal,
    limits: &Limits,
) -> Result<Delivered, Halt<StoreError>> {
    let run = match open_run_once(rows, run, &signal.id)? {
        Ok(run) => run,
        Err(refused) => return Ok(refused),
    };
    let waiting = run.signals as usize + 1;
    within("the number of signals nobody consumed", waiting, limits.unconsumed_signals, "signals")
        .map_err(|error| Halt::Refused(error.into()))?;
    match &signal.aimed {
        Some(key) => aimed_signal(rows, &run, key, signal),
        None => mailbox_signal(rows, &run, signal),
    }
}

fn signal_item<'a>(signal: &'a Signal, payload: &'a Option<Bytes>) -> Item<'a> {
    Item {
        key: signal.aimed.as_ref(),
        name: Some(signal.name.as_str()),
        delivery: Some(&signal.id),
        meta: &None,
        payload,
    }
}

fn mailbox_signal(rows: &mut dyn Rows, run: &RunRow, signal: &Signal) -> Result<Delivered, Halt<StoreError>> {
    if planted!("signal-before-first-turn-dropped") && run.status == Status::Queued {
        return Ok(Delivered::Buffered);
    }
    let open = if run.side { rows.open_waits(run, &signal.name)? } else { 0 };
    let wanted = open > 0 && open > rows.mailbox(run, &signal.name)?.len();
    let after = RunRow { signals: run.signals + 1, ..run.clone() };
    let payload = Some(signal.payload.clone());
    push_changed(rows, run, after, InboxKind::Signal, signal_item(signal, &payload))?;
    Ok(if wanted { Delivered::Delivered } else { Delivered::Buffered })
}

/// An aimed signal takes the one slot of its key, also before that wait is opened.
fn aimed_signal(rows: &mut dyn Rows, run: &RunRow, key: &Key, signal: &Signal) -> Result<Delivered, Halt<StoreError>> {
    let payload = Some(signal.payload.clone());
    let mut after = RunRow { signals: run.signals + 1, side: true, ..run.clone() };
    let (mut wait, delivered) = match rows.wait(run, key)? {
        None => (slot(key, signal, rows), Delivered::Buffered),
        Some(wait) => match (wait.kind, wait.state) {
            (WaitKind::Signal, WaitState::Open) if wait.name.as_ref() == Some(&signal.name) => {
                after.answered += 1;
                (WaitRow { state: WaitState::Answered, ..wait }, Delivered::Delivered)
            }
            (WaitKind::Signal, WaitState::Open | WaitState::Slotted | WaitState::Answered | WaitState::Closed)
            | (WaitKind::Approval | WaitKind::Callback, _) => return Ok(Delivered::Lost),
        },
    };
    let id = push_changed(rows, run, after, InboxKind::Signal, signal_item(signal, &payload))?;
    wait.answer = Some(id);
    rows.put_wait(run, &wait)?;
    Ok(delivered)
}

fn slot(key: &Key, signal: &Signal, rows: &dyn Rows) -> WaitRow {
    WaitRow {
        key: key.clone(),
        kind: WaitKind::Signal,
        state: WaitState::Slotted,
        name: Some(signal.name.clone()),
        token: None,
        heartbeat: None,
        assignee: None,
        meta: None,
        since: rows.now(),
        answer: None,
    }
}

struct Answer<'a> {
    key: &'a Key,
    kind: WaitKind,
    id: &'a DeliveryId,
    token: &'a Option<String>,
    meta: &'a Option<Bytes>,
    payload: &'a Option<Bytes>,
}

/// The one answer to an approval or callback, decided on the wait's row: open → answered.
fn answer_wait(rows: &mut dyn Rows, run: &RunKey, answer: &Answer<'_>) -> Result<Delivered, Halt<StoreError>> {
    let run = match open_run_once(rows, run, answer.id)? {
        Ok(run) => run,
        Err(refused) => return Ok(refused),
    };
    let kind = match answer.kind {
        WaitKind::Approval => InboxKind::Approval,
        WaitKind::Callback => InboxKind::Callback,
        WaitKind::Signal => return Ok(Delivered::NotFound),
    };
    let mut wait = match rows.wait(&run, answer.key)? {
        // A wrong token and a wrong key look alike: nothing to learn by guessing.
        Some(wait) if wait.kind == answer.kind && token_fits(&wait, answer.token) => wait,
        Some(_) | None => return Ok(Delivered::NotFound),
    };
    match wait.state {
        WaitState::Open => {}
        WaitState::Answered if planted!("second-decision-accepted") => {}
        WaitState::Closed if planted!("late-decision-accepted") => {}
        WaitState::Slotted | WaitState::Answered | WaitState::Closed => return Ok(Delivered::Lost),
    }
    let after = RunRow { answered: run.answered + 1, ..run.clone() };
    let item = Item {
        key: Some(answer.key),
        name: None,
        delivery: Some(answer.id),
        meta: answer.meta,
        payload: answer.payload,
    };
    wait.state = WaitState::Answered;
    wait.answer = Some(push_changed(rows, &run, after, kind, item)?);
    rows.put_wait(&run, &wait)?;
    Ok(Delivered::Delivered)
}

/// Compares in constant time, so that a token cannot be guessed byte by byte.
fn token_fits(wait: &WaitRow, shown: &Option<String>) -> bool {
    let Some(token) = &wait.token else { return true };
    let shown = shown.as_deref().unwrap_or_default().as_bytes();
    let differences = token.bytes().zip(shown).fold(0, |differences, (a, b)| differences | (a ^ b));
    token.len() == shown.len() && differences == 0
}

/// A sign of life of a callback's holder.
fn heartbeat(
    rows: &mut dyn Rows,
    run: &RunKey,
    key: &Key,
    token: &Option<String>,
) -> Result<Delivered, Halt<StoreError>> {
    let run = match open_run(rows, run)? {
        Ok(run) => run,
        Err(refused) => return Ok(refused),
    };
    let wait = match rows.wait(&run, key)? {
        Some(wait) if wait.kind == WaitKind::Callback && token_fits(&wait, token) => wait,
        Some(_) | None => return Ok(Delivered::NotFound),
    };
    let timer = TimerRef { key: key.clone(), kind: TimerKind::Heartbeat };
    match (wait.state, wait.heartbeat, rows.timer(&run, &timer)?) {
        (WaitState::Open, Some(silence), Some(_)) => {
            rows.put_timer(&run, &TimerRow { timer, due: rows.now() + silence })?;
            Ok(Delivered::Delivered)
        }
        (WaitState::Open, None, _) => Ok(Delivered::Delivered),
        (WaitState::Open, Some(_), None) | (WaitState::Slotted | WaitState::Answered | WaitState::Closed, _, _) => {
            Ok(Delivered::Lost)
        }
    }
}

struct Request<'a> {
    control: Control,
    id: &'a DeliveryId,
    meta: &'a Option<Bytes>,
    child_of: &'a Option<Opener>,
}

/// An operator's request. Cancelling and resuming reach a paused run; nothing else does.
fn control(rows: &mut dyn Rows, run: &RunKey, request: &Request<'_>) -> Result<Delivered, Halt<StoreError>> {
    let Request { control, id, meta, child_of } = *request;
    let run = match open_run_once(rows, run, id)? {
        Ok(run) => run,
        Err(refused) => return Ok(refused),
    };
    // The child may be gone for so long that its id belongs to somebody else.
    let mine = |opener| run.parent.as_ref().is_some_and(|parent| parent.is(opener));
    if !child_of.as_ref().is_none_or(mine) {
        return Ok(Delivered::NotFound);
    }
    let mut after = run.clone();
    let kind = match control {
        Control::Cancel => InboxKind::Cancel,
        Control::Pause => InboxKind::Pause,
        Control::Resume => InboxKind::Resume,
        Control::Intervene => InboxKind::Intervene,
        Control::Recall => return Ok(Delivered::Lost),
    };
    let forgotten = planted!("resume-forgotten") && control == Control::Resume;
    let frees = matches!(control, Control::Cancel | Control::Resume);
    if run.status == Status::Paused && frees && !forgotten {
        after.status = Status::Waiting;
    }
    let mut name = None;
    if run.is_held() && control == Control::Cancel {
        // It is admitted past every limit, to end and do nothing else.
        name = Some(HELD_CANCEL);
        after.ready_at = Some(rows.now());
        rows.remove_held(&run)?;
    }
    let item = Item { key: None, name, delivery: Some(id), meta, payload: &None };
    push_changed(rows, &run, after, kind, item)?;
    Ok(Delivered::Delivered)
}
