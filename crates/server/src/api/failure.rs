//! Where a run that has failed is cut, so that a fork of it tries again what failed.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use outlast::{Event, Observed, RunHandle, Status};

use crate::error::{ApiError, ApiResult};

/// How many events are read at once.
const PAGE: usize = 1_000;

/// How many events are kept: all before the last failure, so that what was done beside it is not done again. A deadline that has
/// passed would pass again at once: what had one is asked for anew.
pub(super) async fn before_failure(run: &RunHandle) -> ApiResult<u64> {
    let view = run.view().await?;
    if view.status != Status::Failed {
        let message = format!("the run is {}: only one that has failed is tried again", view.status.name());
        return Err(refused(&message, "fork it where you want it to go on, with `at`"));
    }
    let (mut seen, mut from) = (Seen::default(), 0);
    loop {
        let page = run.journal_page(Some(view.generation.0), from, PAGE).await?;
        if page.is_empty() {
            break;
        }
        from += page.len() as u64;
        page.iter().for_each(|observed| seen.note(observed));
    }
    seen.cut.ok_or_else(|| {
        let message = "nothing that the run did has failed: the workflow itself gave up, and would again";
        refused(message, "fork it with another input, or start it anew with a workflow that was mended")
    })
}

fn refused(message: &str, hint: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "nothing_to_retry", message, hint)
}

/// What was read so far.
#[derive(Default)]
struct Seen {
    /// Where each wait began.
    began: BTreeMap<String, u64>,
    cut: Option<u64>,
}

impl Seen {
    fn note(&mut self, Observed { index, event, .. }: &Observed) {
        // Everything else neither fails nor has a deadline that would be kept.
        if let Event::SignalAwaited { key, .. }
        | Event::ApprovalRequested { key, .. }
        | Event::CallbackCreated { key, .. } = event
        {
            self.began.extend(index.map(|index| (key.to_string(), index)));
        } else if let Event::StepFailed { .. }
        | Event::TaskFailed { .. }
        | Event::ChildFailed { .. }
        | Event::CallbackFailed { .. } = event
        {
            self.cut = index.or(self.cut);
        } else if let Event::SignalTimedOut { key, .. }
        | Event::ApprovalTimedOut { key, .. }
        | Event::CallbackTimedOut { key, .. } = event
        {
            self.cut = self.began.get(key.as_str()).copied().or(self.cut);
        }
    }
}
