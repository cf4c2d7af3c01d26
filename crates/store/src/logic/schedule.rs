//! Firing schedules: unique per schedule and instant.

use outlast_core::limits::Limits;

use super::{Halt, create, refuse};
use crate::api::{Fire, Fired, Schedule};
use crate::error::StoreError;
use crate::rows::Rows;

/// Creates or replaces a schedule.
pub(crate) fn put(rows: &mut dyn Rows, schedule: &Schedule, limits: &Limits) -> Result<(), Halt<StoreError>> {
    limits.check_payload("a schedule's rule", schedule.spec.len()).map_err(|error| Halt::Refused(error.into()))?;
    if !rows.has_namespace(&schedule.namespace)? {
        return refuse(StoreError::UnknownNamespace(schedule.namespace.clone()));
    }
    Ok(rows.put_schedule(schedule)?)
}

/// Fires one instant. It must be the schedule's next one, so that of two nodes one is told it is stale.
pub(crate) fn fire(rows: &mut dyn Rows, fire: &Fire, limits: &Limits) -> Result<Fired, Halt<StoreError>> {
    let Some(schedule) = rows.schedule(&fire.namespace, &fire.id)? else { return Ok(Fired::Stale) };
    if fire.run.as_ref().is_some_and(|run| run.run.namespace != fire.namespace) {
        return refuse(StoreError::Settings("a schedule starts runs of its own namespace; name that one".to_owned()));
    }
    if schedule.next_at != Some(fire.at) {
        return Ok(Fired::Stale);
    }
    if fire.at > rows.now() {
        return Ok(Fired::Early);
    }
    let run = match &fire.run {
        None => None,
        Some(new) => Some(create::create(rows, new, limits)?),
    };
    rows.put_schedule(&Schedule { next_at: fire.next_at, ..schedule })?;
    Ok(Fired::Fired { run })
}
