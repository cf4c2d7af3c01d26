//! Start keys: which other run answers for a start, or makes way for it. Decided in the transaction that would create.

use outlast_core::commit::{Control, Debounce, Delivery, NewRun, Single, Window};
use outlast_core::id::{DeliveryId, Generation, LimitKey, RunKey};
use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;

use super::{Halt, deliver, refuse};
use crate::api::Created;
use crate::error::StoreError;
use crate::rows::{HeldRow, Rows, RunRow, StartKey, StartKeyRow, StartKind, put_off};

/// The request to make way for the next one: one in the life of a run.
const REPLACED: &str = "outlast.singleton.replaced";

/// The other run with the start key of a new one.
pub(crate) enum Other {
    None,
    /// It answers for the start.
    Joined(RunRow),
    /// It makes way.
    Replaced(RunRow),
}

impl Other {
    pub(crate) fn joined(&self) -> Option<&RunRow> {
        match self {
            Other::Joined(run) => Some(run),
            Other::None | Other::Replaced(_) => None,
        }
    }
}

/// Refuses what cannot be admitted.
pub(crate) fn check(new: &NewRun) -> Result<(), StoreError> {
    let Some(admission) = &new.admission else { return Ok(()) };
    admission.check().map_err(|error| StoreError::Settings(error.to_string()))?;
    if admission.holds() && new.owner.is_some() {
        return Err(StoreError::Settings("a run that waits to be admitted has no owner; create it without".to_owned()));
    }
    Ok(())
}

/// The other run with the same start key, if there is one that counts. Reads, and writes nothing.
pub(crate) fn other(rows: &mut dyn Rows, new: &NewRun) -> Result<Other, Halt<StoreError>> {
    let Some(admission) = &new.admission else { return Ok(Other::None) };
    if let Some(window) = &admission.window
        && let Some(run) = within_window(rows, new, window)?
    {
        return Ok(Other::Joined(run));
    }
    if let Some(debounce) = &admission.debounce
        && let Some(run) = not_begun(rows, new, debounce)?
    {
        return Ok(Other::Joined(run));
    }
    match &admission.single {
        Some(single) => occupant(rows, new, single),
        None => Ok(Other::None),
    }
}

fn key_of(new: &NewRun, kind: StartKind, key: &LimitKey) -> StartKey {
    (new.run.namespace.clone(), kind, key.clone())
}

/// The run that has a start key, and until when.
fn holder(
    rows: &mut dyn Rows,
    new: &NewRun,
    kind: StartKind,
    key: &LimitKey,
) -> Result<Option<(RunRow, Timestamp)>, Halt<StoreError>> {
    let Some(row) = rows.start_key(&key_of(new, kind, key))? else { return Ok(None) };
    let run = rows.run(&RunKey::new(new.run.namespace.clone(), row.run))?;
    Ok(run.map(|run| (run, row.until)))
}

/// A start within the window, which must be the same one.
fn within_window(rows: &mut dyn Rows, new: &NewRun, window: &Window) -> Result<Option<RunRow>, Halt<StoreError>> {
    let found = holder(rows, new, StartKind::Window, &window.key)?;
    let Some((run, _)) = found.filter(|(_, until)| *until > rows.now()) else { return Ok(None) };
    if run.deleted_at.is_some() {
        return refuse(run.deleted());
    }
    check_workflow(&run, new)?;
    if rows.input(&run, Generation(0))? != new.input {
        return refuse(StoreError::Exists { run: run.key, what: "input" });
    }
    Ok(Some(run))
}

fn check_workflow(run: &RunRow, new: &NewRun) -> Result<(), Halt<StoreError>> {
    if run.workflow == new.workflow {
        return Ok(());
    }
    refuse(StoreError::Exists { run: run.key.clone(), what: "workflow" })
}

/// A debounced run that has not begun.
fn not_begun(rows: &mut dyn Rows, new: &NewRun, debounce: &Debounce) -> Result<Option<RunRow>, Halt<StoreError>> {
    let Some((run, _)) = holder(rows, new, StartKind::Debounce, &debounce.key)? else { return Ok(None) };
    if !run.is_held() || run.deleted_at.is_some() {
        return Ok(None);
    }
    check_workflow(&run, new)?;
    Ok(Some(run))
}

/// The live run that has the place.
fn occupant(rows: &mut dyn Rows, new: &NewRun, single: &Single) -> Result<Other, Halt<StoreError>> {
    let found = holder(rows, new, StartKind::Single, &single.key)?;
    let live = found.map(|(run, _)| run).filter(|run| !run.status.is_terminal() && run.deleted_at.is_none());
    Ok(match live {
        None => Other::None,
        Some(run) if single.replace => Other::Replaced(run),
        Some(run) => Other::Joined(run),
    })
}

/// Has another run answer for a start.
pub(crate) fn join(rows: &mut dyn Rows, run: &RunRow, new: &NewRun) -> Result<Created, Halt<StoreError>> {
    let debounce = new.admission.as_ref().and_then(|admission| admission.debounce.as_ref());
    if let Some(debounce) = debounce {
        let key = key_of(new, StartKind::Debounce, &debounce.key);
        let until = rows.start_key(&key)?.map_or(Timestamp::MAX, |row| row.until);
        let held = rows.held(run)?;
        rows.replace_input(run, &new.input)?;
        // One that is in line keeps its place: its delay is over.
        if let Some(held) = held.filter(|held| held.gate.is_none()) {
            let not_before = put_off(rows.now(), debounce.wait, until);
            rows.put_held(&HeldRow { not_before, ..held })?;
        }
    }
    Ok(Created::Joined { run: run.key.id.clone(), status: run.status })
}

/// Gives a new run its start keys, and asks the one whose place it takes to make way.
pub(crate) fn settle(rows: &mut dyn Rows, new: &NewRun, other: Other, limits: &Limits) -> Result<(), Halt<StoreError>> {
    let Some(admission) = &new.admission else { return Ok(()) };
    let now = rows.now();
    let mut put = |kind, key: &LimitKey, until| {
        let row = StartKeyRow { run: new.run.id.clone(), until };
        rows.put_start_key(&key_of(new, kind, key), &row)
    };
    if let Some(window) = &admission.window {
        put(StartKind::Window, &window.key, now + window.window)?;
    }
    if let Some(debounce) = &admission.debounce {
        put(StartKind::Debounce, &debounce.key, now + debounce.at_most)?;
    }
    let Some(single) = &admission.single else { return Ok(()) };
    put(StartKind::Single, &single.key, Timestamp::MAX)?;
    let Other::Replaced(before) = other else { return Ok(()) };
    let id = DeliveryId::new(REPLACED).map_err(|error| Halt::Refused(StoreError::Settings(error.to_string())))?;
    let (run, meta) = (before.key, single.meta.clone());
    let cancel = Delivery::Control { run, control: Control::Cancel, id, meta, child_of: None };
    deliver::deliver(rows, &cancel, limits)?;
    Ok(())
}
