//! One action for many runs. Whoever asks may leave: it goes on here, and can be asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Extension;
use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use futures_util::FutureExt;
use outlast::{Engine, RunView, Status, Timestamp};
use sha2::{Digest, Sha256};

use super::control::fresh_id;
use super::convert;
use crate::app::App;
use crate::audit::Made;
use crate::auth::{Caller, hex};
use crate::body::{IdempotencyKey, Json, Path, TEXT_BYTES_MAX, text};
use crate::bulk::Progress;
use crate::dto::{BulkRequest, BulkView};
use crate::error::{ApiError, ApiResult};
use crate::replies;

/// The most runs one of them is about.
const RUNS_MAX: usize = 100_000;

/// What is done to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Pause,
    Resume,
    Unpark,
    Retry,
    Cancel,
    Terminate,
    Delete,
}

impl Action {
    const ALL: [(&'static str, Action); 7] = [
        ("pause", Action::Pause),
        ("resume", Action::Resume),
        ("unpark", Action::Unpark),
        ("retry", Action::Retry),
        ("cancel", Action::Cancel),
        ("terminate", Action::Terminate),
        ("delete", Action::Delete),
    ];

    fn of(text: &str) -> ApiResult<Action> {
        let found = Action::ALL.into_iter().find(|(name, _)| *name == text);
        let known = || Action::ALL.map(|(name, _)| name).join(", ");
        found
            .map(|(_, action)| action)
            .ok_or_else(|| ApiError::invalid(format!("there is no action {text:?}; there are {}", known())))
    }

    /// Where a run must stand for it to make sense.
    fn makes_sense(self, status: Status) -> bool {
        match self {
            Action::Pause => !status.is_terminal() && status != Status::Paused && status != Status::Parked,
            Action::Resume => status == Status::Paused,
            Action::Unpark => status == Status::Parked,
            Action::Retry => status == Status::Failed,
            Action::Cancel | Action::Terminate => !status.is_terminal(),
            Action::Delete => status.is_terminal(),
        }
    }

    /// Does it. The id makes it count once for each run, however often it is asked for.
    async fn perform(self, engine: &Engine, run: &str, reason: &str, by: &str, id: &str) -> ApiResult<()> {
        let run = engine.run(run)?;
        match self {
            Action::Pause => drop(run.pause(reason).by(by).id(id).await?),
            Action::Resume => drop(run.resume().by(by).id(id).await?),
            Action::Unpark => drop(run.unpark().await?),
            // Named for what is tried again, whoever asks: what was tried again before is not once more.
            Action::Retry => drop(run.retry().await?),
            Action::Cancel => drop(run.cancel(reason).by(by).id(id).await?),
            Action::Terminate => run.terminate(reason).by(by).await?,
            Action::Delete => run.delete(reason).await?,
        }
        Ok(())
    }
}

/// What can be done to many.
pub(super) fn actions() -> Vec<&'static str> {
    Action::ALL.map(|(name, _)| name).to_vec()
}

/// Does one thing to every run that fits, or only counts them. It goes on when the connection ends; asked again under the same
/// `Idempotency-Key` it is the same one, and one that a stopped server left undone goes on.
#[utoipa::path(
    post,
    path = "/api/v1/bulk",
    request_body = BulkRequest,
    responses((status = 202, body = BulkView), (status = 200, description = "They were counted.", body = BulkView))
)]
pub(super) async fn begin(
    State(app): State<App>,
    caller: Caller,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<BulkRequest>,
) -> ApiResult<(StatusCode, Option<Extension<Made>>, Answer<BulkView>)> {
    let action = Action::of(&request.action)?;
    let reason = text("`reason`", &request.reason, TEXT_BYTES_MAX)?.to_owned();
    let mut runs = find(&caller.engine, action, &request, None).await?;
    if request.dry_run {
        return Ok((StatusCode::OK, None, Answer(Progress::counted(runs.len()))));
    }
    let id = match &key {
        Some(key) => hex(&Sha256::digest(key.as_bytes()))[..32].to_owned(),
        None => fresh_id()?,
    };
    if key.is_some()
        && let Some(asked_at) = asked_first(&caller.engine, &id, &request).await?
    {
        runs = find(&caller.engine, action, &request, Some(asked_at)).await?;
    }
    let about = Arc::new((caller.engine.clone(), reason, caller.name.clone(), format!("bulk-{id}")));
    let begun = app.bulk().begin(caller.engine.namespace(), &id, runs, move |run| {
        let about = Arc::clone(&about);
        async move { action.perform(&about.0, &run, &about.1, &about.2, &about.3).await }.boxed()
    });
    let made = Some(Extension(Made(id)));
    begun.map(|view| (StatusCode::ACCEPTED, made, Answer(view))).ok_or_else(|| {
        let message = "too many bulk actions are under way";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "busy", message, "ask again when one of them is done")
    })
}

/// How far a bulk action is. A server remembers those it did since it started.
#[utoipa::path(get, path = "/api/v1/bulk/{bulk}", responses((status = 200, body = BulkView)))]
pub(super) async fn get(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> ApiResult<Answer<BulkView>> {
    let found = app.bulk().get(caller.engine.namespace(), &id);
    found.map(Answer).ok_or_else(|| ApiError::not_found("there is no such bulk action on this server"))
}

/// When the same was asked for under this key for the first time; none if that is now. Runs that came later were not meant.
async fn asked_first(engine: &Engine, id: &str, request: &BulkRequest) -> ApiResult<Option<Timestamp>> {
    let text = serde_json::to_vec(request).map_err(|_| ApiError::internal())?;
    let (asked, now) = (replies::hash(&[&text]), engine.now().as_millis());
    let new = serde_json::to_vec(&(&asked, now)).map_err(|_| ApiError::internal())?;
    let Some(kept) = engine.reply(&format!("bulk-{id}"), Some(new.into())).await? else { return Ok(None) };
    let (before, at): (String, i64) = serde_json::from_slice(&kept).map_err(|_| ApiError::internal())?;
    if before == asked { Ok(Some(Timestamp::from_millis(at))) } else { Err(replies::reused()) }
}

/// The runs that fit, by their ids.
async fn find(
    engine: &Engine,
    action: Action,
    request: &BulkRequest,
    asked_at: Option<Timestamp>,
) -> ApiResult<Vec<String>> {
    let BulkRequest { status, workflow, version, prefix, created_until, all, .. } = request;
    let says_which = !status.is_empty() || [workflow, version, prefix, created_until].iter().any(|part| part.is_some());
    if !says_which && !all {
        return Err(ApiError::unfit("say which runs are meant, or `all`"));
    }
    let status = status.iter().map(|status| convert::status_of(status)).collect::<ApiResult<Vec<_>>>()?;
    let until = created_until.as_deref().map(|at| convert::instant_of("`created_until`", at)).transpose()?;
    let until = until.into_iter().chain(asked_at).min();
    let (mut runs, mut after) = (Vec::new(), None);
    loop {
        let mut list = engine.list().page_size(1_000).after(after);
        for status in &status {
            list = list.status(*status);
        }
        if let Some(workflow) = workflow {
            list = list.workflow(workflow);
        }
        if let Some(version) = version {
            list = list.version(version);
        }
        if let Some(prefix) = prefix {
            list = list.id_prefix(text("a prefix", prefix, 255)?);
        }
        if let Some(until) = until {
            list = list.created_until(until);
        }
        let page = list.await?;
        let fit = page.runs.iter().filter(|run| action.makes_sense(run.status));
        let parent = |run: &RunView| run.parent.as_ref().map(|parent| parent.run.to_string());
        runs.extend(fit.map(|run| (run.run.id.to_string(), parent(run))));
        after = page.next;
        if runs.len() > RUNS_MAX {
            let message = format!("more than {RUNS_MAX} runs fit");
            return Err(ApiError::unfit(format!(
                "{message}; say more exactly which are meant, and ask again for the rest"
            )));
        }
        if after.is_none() {
            return Ok(without_covered(action, runs));
        }
    }
}

/// Which runs are told. The retry of a run starts its children anew: one that failed with it would be tried again beside that, for
/// nobody.
fn without_covered(action: Action, runs: Vec<(String, Option<String>)>) -> Vec<String> {
    let fit: BTreeSet<String> = runs.iter().map(|(run, _)| run.clone()).collect();
    let is_covered =
        |parent: &Option<String>| action == Action::Retry && parent.as_ref().is_some_and(|p| fit.contains(p));
    runs.into_iter().filter(|(_, parent)| !is_covered(parent)).map(|(run, _)| run).collect()
}
