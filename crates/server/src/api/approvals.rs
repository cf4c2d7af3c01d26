//! What waits for people.

use axum::Json as Answer;
use outlast::OpenApproval;
use serde::Deserialize;
use utoipa::IntoParams;

use super::convert;
use super::runs::page_size;
use crate::auth::Caller;
use crate::body::{IdempotencyKey, Json, Path, Query, TEXT_BYTES_MAX, text};
use crate::dto::{ApprovalList, ApprovalView, Decision, Delivered};
use crate::error::ApiResult;

/// Which approvals.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Those that this one should decide.
    assignee: Option<String>,
    /// Looks at so many runs for a page: from 1 to 1000, 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// The approvals that nobody has decided, those of the newest runs first.
#[utoipa::path(get, path = "/api/v1/approvals", params(Which), responses((status = 200, body = ApprovalList)))]
pub(super) async fn list(caller: Caller, Query(which): Query<Which>) -> ApiResult<Answer<ApprovalList>> {
    let after = convert::cursor_of(which.cursor.as_deref())?;
    let page = caller.engine.approvals(after, page_size(which.limit)?).await?;
    let wanted = |approval: &&OpenApproval| which.assignee.is_none() || approval.assignee == which.assignee;
    let approvals = page.approvals.iter().filter(wanted).map(|approval| ApprovalView {
        run: approval.run.to_string(),
        workflow: approval.workflow.to_string(),
        approval: approval.approval.to_string(),
        title: approval.title.clone(),
        assignee: approval.assignee.clone(),
        since: convert::at(approval.since),
        until: convert::maybe_at(approval.until),
    });
    Ok(Answer(ApprovalList { approvals: approvals.collect(), next: convert::cursor(page.next) }))
}

/// Decides an approval, once: whoever comes second is told `approval_lost`. Who decided is whose token it was.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{run}/approvals/{approval}",
    request_body = Decision,
    responses((status = 200, body = Delivered))
)]
pub(super) async fn decide(
    caller: Caller,
    Path((run, approval)): Path<(String, String)>,
    IdempotencyKey(key): IdempotencyKey,
    Json(decision): Json<Decision>,
) -> ApiResult<Answer<Delivered>> {
    let mut decide = caller.engine.run(&run)?.approve(&approval, decision.approved).by(&caller.name);
    if let Some(feedback) = &decision.feedback {
        decide = decide.feedback(text("the feedback", feedback, TEXT_BYTES_MAX)?);
    }
    if let Some(key) = &key {
        decide = decide.id(key);
    }
    Ok(Answer(convert::delivered(decide.await?)))
}
