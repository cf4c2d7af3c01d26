//! Questions in SQL. Off unless the server's operator turns them on.

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use outlast::SqlQuestion;

use crate::app::App;
use crate::auth::Caller;
use crate::body::{Json, text};
use crate::dto::{AskSql, SqlAnswer};
use crate::error::{ApiError, ApiResult};

/// The longest question.
const QUERY_BYTES_MAX: usize = 64 * 1024;
/// How long one may take.
const TIME_MAX: Duration = Duration::from_secs(5);
/// How many rows are given.
const ROWS_MAX: u32 = 1_000;
/// How many bytes they have together.
const BYTES_MAX: usize = 1024 * 1024;

/// Answers a question in SQL that only reads, about the database's tables as they are. Off unless the server was started with
/// `sql`. It sees every namespace, so that only an admin of the server's own namespace may ask; nobody sees the database's secret.
#[utoipa::path(post, path = "/api/v1/sql", request_body = AskSql, responses((status = 200, body = SqlAnswer)))]
pub(super) async fn ask(
    State(app): State<App>,
    caller: Caller,
    Json(request): Json<AskSql>,
) -> ApiResult<Answer<SqlAnswer>> {
    if !app.answers_sql() {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "this server answers no questions in SQL",
            "whoever runs it can turn them on: `sql = true` under `[server]` in outlast.toml",
        ));
    }
    caller.is_of_the_house(&app, "a question in SQL sees every namespace, and only an admin of")?;
    let limit = request.limit.unwrap_or(ROWS_MAX);
    if limit == 0 || limit > ROWS_MAX {
        return Err(ApiError::unfit(format!("`limit` must be from 1 to {ROWS_MAX}")));
    }
    let question = SqlQuestion {
        text: text("the question", &request.query, QUERY_BYTES_MAX)?.to_owned(),
        time: TIME_MAX,
        rows: limit as usize,
        bytes: BYTES_MAX,
    };
    let outlast::SqlAnswer { columns, rows, more } = caller.engine.ask_sql(question).await?;
    Ok(Answer(SqlAnswer { columns, rows, more }))
}
