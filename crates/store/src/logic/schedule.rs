//! Firing schedules. Every change is decided on a revision, so that of two who decide on the same one comes first and the
//! other is told that it is stale.

use outlast_core::commit::NewRun;
use outlast_core::id::{Revision, RunId};
use outlast_core::limits::Limits;
use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::{Halt, create, refuse};
use crate::api::{Fire, Fired, Schedule};
use crate::error::StoreError;
use crate::rows::Rows;

/// Creates or replaces a schedule.
pub(crate) fn put(
    rows: &mut dyn Rows,
    schedule: &Schedule,
    limits: &Limits,
) -> Result<Option<Revision>, Halt<StoreError>> {
    check(limits, "a schedule's rule", schedule.spec.len())?;
    check(limits, "a schedule's state", schedule.state.len())?;
    if !rows.has_namespace(&schedule.namespace)? {
        return refuse(StoreError::UnknownNamespace(schedule.namespace.clone()));
    }
    let stored = rows.schedule(&schedule.namespace, &schedule.id)?;
    let current = stored.map_or(Revision(0), |stored| stored.revision);
    if current != schedule.revision {
        return Ok(None);
    }
    let revision = after(current, rows.now());
    rows.put_schedule(&Schedule { revision, ..schedule.clone() })?;
    Ok(Some(revision))
}

/// Fires once, with everything that changes by it.
pub(crate) fn fire(rows: &mut dyn Rows, fire: &Fire, limits: &Limits) -> Result<Fired, Halt<StoreError>> {
    check(limits, "a schedule's state", fire.state.len())?;
    let Some(schedule) = rows.schedule(&fire.namespace, &fire.id)? else { return Ok(Fired::Stale) };
    if fire.run.as_ref().is_some_and(|run| run.run.namespace != fire.namespace) {
        return refuse(StoreError::Settings("a schedule starts runs of its own namespace; name that one".to_owned()));
    }
    let stale = schedule.revision != fire.revision;
    if stale && !planted!("schedule-fires-twice") {
        return Ok(Fired::Stale);
    }
    if fire.at.is_some_and(|at| at > rows.now()) {
        return Ok(Fired::Early);
    }
    let run = match &fire.run {
        None => None,
        Some(new) if stale => Some(create::create(rows, &again(new), limits)?),
        Some(new) => Some(create::create(rows, new, limits)?),
    };
    let revision = after(schedule.revision, rows.now());
    rows.put_schedule(&Schedule { revision, state: fire.state.clone(), next_at: fire.next_at, ..schedule })?;
    Ok(Fired::Fired { revision, run })
}

/// The same run under another id. Only a planted bug fires on an old revision.
fn again(new: &NewRun) -> NewRun {
    let mut again = new.clone();
    if let Ok(id) = RunId::new(format!("{}-again", new.run.id)) {
        again.run.id = id;
    }
    again
}

fn check(limits: &Limits, what: &'static str, bytes: usize) -> Result<(), Halt<StoreError>> {
    limits.check_payload(what, bytes).map_err(|error| Halt::Refused(error.into()))
}

/// The revision after this one. It does not begin at 1: what was decided on a schedule that was removed must not fit one that
/// was put in its place.
fn after(revision: Revision, now: Timestamp) -> Revision {
    revision.next().max(Revision(u64::try_from(now.as_millis()).unwrap_or(0)))
}
