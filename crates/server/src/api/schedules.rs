//! Schedules.

use axum::Extension;
use axum::Json as Answer;
use outlast::{Engine, FiringOutcome, NewSchedule, Overlap};

use super::control::reason;
use super::convert;
use crate::audit::Made;
use crate::auth::Caller;
use crate::body::{IdempotencyKey, Json, Path, TEXT_BYTES_MAX, text};
use crate::dto::{
    self, Backfill, Backfilled, Done, PutSchedule, Reason, ScheduleFiring, ScheduleList, ScheduleView, Triggered,
};
use crate::error::{ApiError, ApiResult};

const OVERLAPS: [(&str, Overlap); 6] = [
    ("skip", Overlap::Skip),
    ("allow", Overlap::Allow),
    ("buffer_one", Overlap::BufferOne),
    ("buffer_all", Overlap::BufferAll),
    ("cancel_previous", Overlap::CancelPrevious),
    ("terminate_previous", Overlap::TerminatePrevious),
];

/// What can become of a firing while the run before it has not ended.
pub(super) fn overlaps() -> Vec<&'static str> {
    OVERLAPS.map(|(name, _)| name).to_vec()
}

/// The schedules of the namespace, by id.
#[utoipa::path(get, path = "/api/v1/schedules", responses((status = 200, body = ScheduleList)))]
pub(super) async fn list(caller: Caller) -> ApiResult<Answer<ScheduleList>> {
    let schedules = caller.engine.schedules().await?.iter().map(view).collect();
    Ok(Answer(ScheduleList { schedules }))
}

/// Puts a schedule: creates it, or replaces what it said before. The same again changes nothing.
#[utoipa::path(
    put,
    path = "/api/v1/schedules/{schedule}",
    request_body = PutSchedule,
    responses((status = 200, body = ScheduleView))
)]
pub(super) async fn put(
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<PutSchedule>,
) -> ApiResult<Answer<ScheduleView>> {
    let input = convert::value(request.input.as_ref());
    let schedule = draft(&caller.engine, &id, &request)?.start(&request.workflow, &input);
    let put = schedule.put().await?;
    Ok(Answer(view(&put.describe().await?)))
}

fn draft<'e>(engine: &'e Engine, id: &str, request: &PutSchedule) -> ApiResult<NewSchedule<'e>> {
    let mut schedule = engine.schedule(id);
    if let Some(cron) = &request.cron {
        schedule = schedule.cron(text("`cron`", cron, TEXT_BYTES_MAX)?);
    }
    if let Some(every) = request.every_ms {
        schedule = schedule.every(convert::duration("`every_ms`", every)?);
    }
    if let Some(at) = &request.once_at {
        schedule = schedule.once_at(convert::instant_of("`once_at`", at)?);
    }
    if let Some(zone) = &request.zone {
        schedule = schedule.zone(text("`zone`", zone, 255)?);
    }
    if let Some(offset) = request.offset_ms {
        schedule = schedule.offset(convert::duration("`offset_ms`", offset)?);
    }
    if let Some(version) = &request.version {
        schedule = schedule.version(version);
    }
    if let Some(overlap) = &request.overlap {
        let found = OVERLAPS.iter().find(|(name, _)| name == overlap);
        let (_, overlap) = found.ok_or_else(|| {
            let known = OVERLAPS.map(|(name, _)| name).join(", ");
            ApiError::invalid(format!("there is no overlap {overlap:?}; there are {known}"))
        })?;
        schedule = schedule.overlap(*overlap);
    }
    if let Some(window) = request.catch_up_ms {
        schedule = schedule.catch_up(convert::duration("`catch_up_ms`", window)?);
    }
    if let Some(jitter) = request.jitter_ms {
        schedule = schedule.jitter(convert::duration("`jitter_ms`", jitter)?);
    }
    if let Some(from) = &request.from {
        schedule = schedule.from(convert::instant_of("`from`", from)?);
    }
    if let Some(until) = &request.until {
        schedule = schedule.until(convert::instant_of("`until`", until)?);
    }
    if let Some(remaining) = request.remaining {
        schedule = schedule.remaining(remaining);
    }
    if let Some(note) = &request.note {
        schedule = schedule.note(text("`note`", note, TEXT_BYTES_MAX)?);
    }
    Ok(if request.paused { schedule.paused() } else { schedule })
}

/// A schedule, and how far it is.
#[utoipa::path(get, path = "/api/v1/schedules/{schedule}", responses((status = 200, body = ScheduleView)))]
pub(super) async fn get(caller: Caller, Path(id): Path<String>) -> ApiResult<Answer<ScheduleView>> {
    Ok(Answer(view(&caller.engine.schedule_handle(&id)?.describe().await?)))
}

/// Removes a schedule. Runs that it started go on; what waits is forgotten.
#[utoipa::path(delete, path = "/api/v1/schedules/{schedule}", responses((status = 200, body = Done)))]
pub(super) async fn remove(caller: Caller, Path(id): Path<String>) -> ApiResult<Answer<Done>> {
    if caller.engine.schedule_handle(&id)?.remove().await? {
        return Ok(Answer(Done {}));
    }
    Err(outlast::EngineError::UnknownSchedule(id).into())
}

/// Lets no instant fire until it is resumed.
#[utoipa::path(
    post,
    path = "/api/v1/schedules/{schedule}/pause",
    request_body = Option<Reason>,
    responses((status = 200, body = Done))
)]
pub(super) async fn pause(
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<Reason>,
) -> ApiResult<Answer<Done>> {
    caller.engine.schedule_handle(&id)?.pause(reason(&request)?).await?;
    Ok(Answer(Done {}))
}

/// Lets it fire again, from now on.
#[utoipa::path(post, path = "/api/v1/schedules/{schedule}/resume", responses((status = 200, body = Done)))]
pub(super) async fn resume(
    caller: Caller,
    Path(id): Path<String>,
    Json(Done {}): Json<Done>,
) -> ApiResult<Answer<Done>> {
    caller.engine.schedule_handle(&id)?.resume().await?;
    Ok(Answer(Done {}))
}

/// Starts a run now, as if an instant came. Under the same `Idempotency-Key` once: again the answer is that of the first time.
#[utoipa::path(post, path = "/api/v1/schedules/{schedule}/trigger", responses((status = 200, body = Triggered)))]
pub(super) async fn trigger(
    caller: Caller,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(Done {}): Json<Done>,
) -> ApiResult<(Option<Extension<Made>>, Answer<Triggered>)> {
    let schedule = caller.engine.schedule_handle(&id)?;
    let triggered = match &key {
        Some(key) => schedule.trigger_once(key).await?,
        None => schedule.trigger_now().await?,
    };
    let (outcome, run) = match triggered {
        outlast::Triggered::Started(run) => ("started", Some(run.id().to_string())),
        outlast::Triggered::Waits => ("waits", None),
        outlast::Triggered::Skipped => ("skipped", None),
    };
    let made = run.clone().map(|run| Extension(Made(run)));
    Ok((made, Answer(Triggered { outcome: outcome.to_owned(), run })))
}

/// Starts the runs of all instants from one moment to another.
#[utoipa::path(
    post,
    path = "/api/v1/schedules/{schedule}/backfill",
    request_body = Backfill,
    responses((status = 200, body = Backfilled))
)]
pub(super) async fn backfill(
    caller: Caller,
    Path(id): Path<String>,
    Json(request): Json<Backfill>,
) -> ApiResult<Answer<Backfilled>> {
    let from = convert::instant_of("`from`", &request.from)?;
    let to = convert::instant_of("`to`", &request.to)?;
    let instants = caller.engine.schedule_handle(&id)?.backfill(from, to).await? as u64;
    Ok(Answer(Backfilled { instants }))
}

fn view(schedule: &outlast::ScheduleView) -> ScheduleView {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let overlap = OVERLAPS.iter().find(|(_, overlap)| *overlap == schedule.overlap);
    ScheduleView {
        schedule: schedule.id.to_string(),
        when: schedule.when.clone(),
        workflow: schedule.workflow.to_string(),
        version: schedule.version.as_ref().map(ToString::to_string),
        input: dto::json(schedule.input.as_bytes()),
        overlap: overlap.map_or("skip", |(name, _)| name).to_owned(),
        catch_up_ms: millis(schedule.catch_up),
        jitter_ms: millis(schedule.jitter),
        from: convert::maybe_at(schedule.from),
        until: convert::maybe_at(schedule.until),
        remaining: schedule.remaining,
        note: schedule.note.clone(),
        paused: schedule.paused.as_ref().map(|(reason, _)| reason.clone()),
        paused_at: schedule.paused.as_ref().map(|(_, at)| convert::at(*at)),
        next_times: schedule.next_times.iter().map(|at| convert::at(*at)).collect(),
        waiting: schedule.waiting.iter().map(|at| convert::at(*at)).collect(),
        last_run: schedule.last_run.as_ref().map(ToString::to_string),
        started: schedule.started,
        skipped: schedule.skipped,
        recent: schedule.recent.iter().map(firing).collect(),
    }
}

fn firing(firing: &outlast::Firing) -> ScheduleFiring {
    let (outcome, detail) = match &firing.outcome {
        FiringOutcome::Started(run) => ("started", Some(run.to_string())),
        FiringOutcome::Skipped => ("skipped", None),
        FiringOutcome::Replaced => ("replaced", None),
        FiringOutcome::Missed => ("missed", None),
        FiringOutcome::Refused(why) => ("refused", Some(why.clone())),
        other => ("other", Some(format!("{other:?}"))),
    };
    ScheduleFiring { at: convert::at(firing.at), outcome: outcome.to_owned(), detail }
}
