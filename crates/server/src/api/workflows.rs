//! Workflows that are text.

use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;

use super::convert;
use crate::app::App;
use crate::auth::Caller;
use crate::body::{Json, Path, text};
use crate::dto::{FileMistake, PutWorkflow, WorkflowList, WorkflowPut, WorkflowText};
use crate::error::{ApiError, ApiResult};

/// The longest name of a file.
const FILE_BYTES_MAX: usize = 255;

/// Puts the text of a script or flow. The same text again changes nothing. Mistakes in it are told, each with its line.
#[utoipa::path(put, path = "/api/v1/workflows", request_body = PutWorkflow, responses((status = 200, body = WorkflowPut)))]
pub(super) async fn put(caller: Caller, Json(request): Json<PutWorkflow>) -> ApiResult<Answer<WorkflowPut>> {
    let file = text("the file's name", &request.file, FILE_BYTES_MAX)?;
    if file.is_empty() || file.contains(['/', '\\']) || file.chars().any(char::is_control) {
        return Err(ApiError::unfit("the file's name must be a name: not empty, without a folder"));
    }
    let is_flow = file.ends_with(".flow.yaml") || file.ends_with(".flow.yml");
    let workflows = match (is_flow, file.ends_with(".wf")) {
        (true, _) => caller.engine.define_flow(file, &request.text).await?,
        (false, true) => caller.engine.define_script(file, &request.text).await?,
        (false, false) => {
            return Err(ApiError::unfit("the file's name must end with `.wf` (a script) or `.flow.yaml` (a flow)"));
        }
    };
    Ok(Answer(WorkflowPut { workflows }))
}

/// What new runs can begin with.
#[utoipa::path(get, path = "/api/v1/workflows", responses((status = 200, body = WorkflowList)))]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> ApiResult<Answer<WorkflowList>> {
    let workflows = caller.engine.workflows().await?.into_iter().map(convert::workflow).collect();
    let is_ours = caller.engine.namespace() == app.engine().namespace();
    let known = if is_ours { app.mistakes() } else { BTreeMap::new() };
    let mistakes = known.into_iter().map(|(file, text)| FileMistake { file, text }).collect();
    Ok(Answer(WorkflowList { workflows, mistakes }))
}

/// The current version of a workflow, with its text.
#[utoipa::path(get, path = "/api/v1/workflows/{workflow}", responses((status = 200, body = WorkflowText)))]
pub(super) async fn get(caller: Caller, Path(workflow): Path<String>) -> ApiResult<Answer<WorkflowText>> {
    one(&caller, &workflow, None).await
}

/// All versions of a workflow, the oldest text first.
#[utoipa::path(get, path = "/api/v1/workflows/{workflow}/versions", responses((status = 200, body = WorkflowList)))]
pub(super) async fn versions(caller: Caller, Path(workflow): Path<String>) -> ApiResult<Answer<WorkflowList>> {
    let versions = caller.engine.workflow_versions(&workflow).await?;
    if versions.is_empty() {
        return Err(unknown(&workflow));
    }
    Ok(Answer(WorkflowList { workflows: versions.into_iter().map(convert::workflow).collect(), mistakes: Vec::new() }))
}

/// One version of a workflow, with its text.
#[utoipa::path(
    get,
    path = "/api/v1/workflows/{workflow}/versions/{version}",
    responses((status = 200, body = WorkflowText))
)]
pub(super) async fn version(
    caller: Caller,
    Path((workflow, version)): Path<(String, String)>,
) -> ApiResult<Answer<WorkflowText>> {
    one(&caller, &workflow, Some(&version)).await
}

async fn one(caller: &Caller, workflow: &str, version: Option<&str>) -> ApiResult<Answer<WorkflowText>> {
    if let Some((version, text)) = caller.engine.workflow_text(workflow, version).await? {
        return Ok(Answer(WorkflowText { version: convert::workflow(version), text: Some(text) }));
    }
    let versions = caller.engine.workflow_versions(workflow).await?;
    let wanted = versions.into_iter().find(|found| match version {
        Some(version) => found.version.as_str() == version,
        None => found.current,
    });
    let wanted = wanted.ok_or_else(|| unknown(workflow))?;
    Ok(Answer(WorkflowText { version: convert::workflow(wanted), text: None }))
}

fn unknown(workflow: &str) -> ApiError {
    ApiError::not_found(format!("there is no workflow {workflow:?} of that version in this namespace"))
}
