//! Runs behind a server.

use anyhow::Result;
use outlast_flow::Position;
use outlast_server::dto;
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::data::{Approval, Awaiting, Explained, Forked, Happened, Run, Told};
use super::{Cut, Tell, Which, one_of};
use crate::api::Api;

/// How many events are asked for at once.
const EVENTS_PAGE: usize = 1_000;
/// The most approvals that are listed.
const APPROVALS_MAX: usize = 1_000;

/// A server that is asked.
pub(crate) struct Remote {
    api: Api,
}

/// A part of a journal, as far as it is shown.
#[derive(serde::Deserialize)]
struct Part {
    events: Vec<Happened>,
    next: u64,
}

impl Remote {
    pub(super) fn new(api: Api) -> Remote {
        Remote { api }
    }

    pub(super) async fn list(&self, which: &Which) -> Result<Vec<Run>> {
        let mut found: Vec<Run> = Vec::new();
        let mut cursor = None;
        loop {
            let mut query = vec![("limit", (which.limit - found.len()).min(1_000).to_string())];
            if !which.status.is_empty() {
                query.push(("status", which.status.iter().map(|status| status.name()).collect::<Vec<_>>().join(",")));
            }
            query.extend(which.workflow.clone().map(|workflow| ("workflow", workflow)));
            query.extend(which.prefix.clone().map(|prefix| ("prefix", prefix)));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page: dto::RunList = self.api.get(&["runs"], &query).await?;
            found.extend(page.runs.into_iter().map(run));
            cursor = page.next;
            if cursor.is_none() || found.len() >= which.limit {
                return Ok(found);
            }
        }
    }

    pub(super) async fn run(&self, id: &str) -> Result<(Run, Vec<Awaiting>)> {
        let view: dto::RunView = self.api.get(&["runs", id], &[]).await?;
        Ok((run(view.summary), view.awaiting.into_iter().map(awaiting).collect()))
    }

    pub(super) async fn events(&self, run: &str, mut from: u64) -> Result<Vec<Happened>> {
        let mut found = Vec::new();
        loop {
            let query = [("from", from.to_string()), ("limit", EVENTS_PAGE.to_string())];
            let part: Part = self.api.get(&["runs", run, "events"], &query).await?;
            let is_last = part.events.is_empty();
            found.extend(part.events);
            if is_last {
                return Ok(found);
            }
            from = part.next;
        }
    }

    pub(super) async fn recording(&self, run: &str) -> Result<outlast::Recording> {
        self.api.get(&["runs", run, "export"], &[]).await
    }

    pub(super) async fn explain(&self, run: &str) -> Result<Explained> {
        self.api.get(&["runs", run, "explain"], &[]).await
    }

    pub(super) async fn position(&self, run: &str) -> Result<Position> {
        self.api.get(&["runs", run, "position"], &[]).await
    }

    pub(super) async fn approvals(&self, run: Option<&str>) -> Result<Vec<Approval>> {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let query: Vec<_> = cursor.into_iter().map(|cursor| ("cursor", cursor)).collect();
            let page: dto::ApprovalList = self.api.get(&["approvals"], &query).await?;
            let wanted = page.approvals.into_iter().filter(|open| run.is_none_or(|run| open.run == run));
            found.extend(wanted.map(approval));
            cursor = page.next;
            if cursor.is_none() || found.len() >= APPROVALS_MAX {
                return Ok(found);
            }
        }
    }

    pub(super) async fn tell(&self, id: &str, tell: Tell) -> Result<Told> {
        // A run that does not exist is said to be missing, whatever it is told.
        let (before, _) = self.run(id).await?;
        let outcome = match tell {
            Tell::Signal { name, payload, id: asked, operation } => {
                let body = json!({ "payload": payload, "id": asked, "operation": operation });
                self.deliver(&["runs", id, "signals", &name], &body).await?
            }
            Tell::Decide { approval, approved, by: _, feedback } => {
                let approval = match approval {
                    Some(approval) => approval,
                    None => one_of(id, &self.approvals(Some(id)).await?)?,
                };
                let body = dto::Decision { approved, feedback };
                self.deliver(&["runs", id, "approvals", &approval], &body).await?
            }
            Tell::Pause { reason } => self.deliver(&["runs", id, "pause"], &dto::Reason { reason }).await?,
            Tell::Resume { .. } if before.status == "parked" => {
                let _: dto::Unparked = self.api.post(&["runs", id, "unpark"], &json!({})).await?;
                "delivered".to_owned()
            }
            Tell::Resume { message } => {
                let body = message.map_or(json!({}), |message| json!({ "message": message }));
                self.deliver(&["runs", id, "resume"], &body).await?
            }
            Tell::Cancel { reason } => self.deliver(&["runs", id, "cancel"], &dto::Reason { reason }).await?,
            Tell::Terminate { reason } => {
                let _: Value = self.api.post(&["runs", id, "terminate"], &dto::Reason { reason }).await?;
                "delivered".to_owned()
            }
        };
        let (after, _) = self.run(id).await?;
        Ok(Told { run: id.to_owned(), outcome, status: after.status, root: id.to_owned() })
    }

    async fn deliver(&self, parts: &[&str], body: &impl Serialize) -> Result<String> {
        let delivered: dto::Delivered = self.api.post(parts, body).await?;
        Ok(delivered.outcome)
    }

    pub(super) async fn fork(&self, run: &str, cut: Cut) -> Result<Forked> {
        let Cut { at, node, id, input } = cut;
        let at = if node.is_none() { Some(at.unwrap_or_default()) } else { None };
        let mut body = json!({ "at": at, "node": node, "id": id });
        if let Some(input) = input {
            body["input"] = input;
        }
        self.api.write(Method::POST, &["runs", run, "fork"], &body).await
    }
}

fn run(summary: dto::RunSummary) -> Run {
    let dto::RunSummary {
        run,
        workflow,
        version,
        status,
        note,
        parked_at,
        generation,
        events,
        parent,
        created_at,
        finished_at,
    } = summary;
    Run { run, workflow, version, status, note, parked_at, generation, events, parent, created_at, finished_at }
}

fn approval(view: dto::ApprovalView) -> Approval {
    let dto::ApprovalView { run, workflow, approval, title, assignee, until, since: _ } = view;
    Approval { run, workflow, approval, title, assignee, until }
}

fn awaiting(view: dto::AwaitedView) -> Awaiting {
    let since = |answered: bool, since: String| if answered { "answered".to_owned() } else { format!("since {since}") };
    let (kind, key, name, state) = match view {
        dto::AwaitedView::Timer { key, due, .. } => ("timer", key, None, format!("until {due}")),
        dto::AwaitedView::Signal { key, name, answered, since: at } => ("signal", key, Some(name), since(answered, at)),
        dto::AwaitedView::Approval { key, assignee, answered, since: at } => {
            ("approval", key, assignee, since(answered, at))
        }
        dto::AwaitedView::Callback { key, answered, since: at } => ("callback", key, None, since(answered, at)),
        dto::AwaitedView::Task { key, task, state } => ("task", key, Some(task), state),
        dto::AwaitedView::Child { key, run, status } => ("child", key, Some(run), status),
    };
    Awaiting { key, r#type: kind.to_owned(), name, state }
}
