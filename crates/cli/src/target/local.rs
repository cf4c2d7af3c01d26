//! Runs in a database that this process opens itself. Nothing is driven there in the background: what a run is told it finds
//! when somebody runs it. Only a request to stop or to pause is taken up at once, where nobody else can.

use anyhow::Result;
use outlast::{Awaited, Delivered, Engine, EngineError, Event, Status};
use outlast_flow::Position;
use serde::Deserialize;
use serde_json::Value;

use super::data::{Approval, Awaiting, Explained, Forked, Happened, Reissued, Run, Told};
use super::{Cut, Tell, Which, one_of};
use crate::commands::run::refused;
use crate::database::Database;
use crate::exit::{Exit, Stop};
use crate::words::instant;

/// A database that is open.
pub(crate) struct Local {
    engine: Engine,
}

impl Local {
    pub(super) async fn open(database: &Database) -> Result<Local> {
        let opened = database.open()?.without_loops().start().await;
        Ok(Local { engine: opened.map_err(|error| refused(error, database))? })
    }

    pub(super) async fn close(self) {
        self.engine.shutdown().await;
    }

    pub(super) async fn list(&self, which: &Which) -> Result<Vec<Run>> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let mut list = self.engine.list().page_size((which.limit - found.len()).min(1_000)).after(after);
            for status in &which.status {
                list = list.status(*status);
            }
            if let Some(workflow) = &which.workflow {
                list = list.workflow(workflow);
            }
            if let Some(prefix) = &which.prefix {
                list = list.id_prefix(prefix);
            }
            let page = list.await?;
            found.extend(page.runs.into_iter().map(Run::from));
            after = page.next;
            if after.is_none() || found.len() >= which.limit {
                return Ok(found);
            }
        }
    }

    pub(super) async fn run(&self, run: &str) -> Result<(Run, Vec<Awaiting>)> {
        let handle = self.engine.run(run)?;
        let view = handle.view().await?;
        let awaiting = handle.awaiting().await?.into_iter().map(Awaiting::from).collect();
        Ok((view.into(), awaiting))
    }

    pub(super) async fn recording(&self, run: &str) -> Result<outlast::Recording> {
        Ok(self.engine.run(run)?.export().await?)
    }

    pub(super) async fn events(&self, run: &str, from: u64) -> Result<Vec<Happened>> {
        let recording = serde_json::to_value(self.recording(run).await?)?;
        let Recorded { generation, events } = Recorded::deserialize(&recording)?;
        let events = events.into_iter().zip(0..).skip(usize::try_from(from).unwrap_or(usize::MAX));
        let happened = events.map(|(event, index)| Happened {
            generation,
            index,
            kind: event.kind,
            key: event.key,
            at: instant(outlast::Timestamp::from_millis(event.at)),
            data: event.meta,
            payload: event.payload,
        });
        Ok(happened.collect())
    }

    pub(super) async fn explain(&self, run: &str) -> Result<Explained> {
        Ok(self.engine.run(run)?.explain().await?.into())
    }

    pub(super) async fn position(&self, run: &str) -> Result<Position> {
        Ok(self.engine.run(run)?.position().await?)
    }

    pub(super) async fn approvals(&self, run: Option<&str>) -> Result<Vec<Approval>> {
        let waiting = match run {
            Some(run) => vec![self.run(run).await?.0],
            None => {
                let status = vec![Status::Waiting, Status::Paused, Status::Running, Status::Queued];
                self.list(&Which { status, limit: 1_000, ..Which::default() }).await?
            }
        };
        let mut found = Vec::new();
        for run in waiting {
            let handle = self.engine.run(&run.run)?;
            let is_open = |awaited: &Awaited| matches!(awaited, Awaited::Wait { answered: false, .. });
            let open = handle.awaiting().await?.into_iter().filter(is_open);
            let open: Vec<String> = open.map(Awaiting::from).map(|open| open.key).collect();
            for event in handle.journal().await? {
                if let Event::ApprovalRequested { key, approval, title, assignee, deadline } = event
                    && open.iter().any(|open| open == key.as_str())
                {
                    let (run, workflow) = (run.run.clone(), run.workflow.clone());
                    found.push(Approval { run, workflow, approval, title, assignee, until: deadline.map(instant) });
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn tell(&self, run: &str, tell: Tell) -> Result<Told> {
        let handle = self.engine.run(run)?;
        let id = |asked: Option<String>| asked.unwrap_or_else(|| format!("cli-{}", uuid::Uuid::new_v4().simple()));
        let is_urgent = matches!(tell, Tell::Cancel { .. } | Tell::Pause { .. });
        // A run that does not exist is said to be missing, whatever it is told.
        let before = handle.view().await?.status;
        let delivered = match tell {
            Tell::Signal { name, payload, id: asked, operation: None } => {
                handle.signal(&name, &payload, &id(asked)).await?
            }
            Tell::Signal { name, payload, id: asked, operation: Some(operation) } => {
                handle.signal_to(&operation, &name, &payload, &id(asked)).await?
            }
            Tell::Decide { approval, approved, by, feedback } => {
                let approval = self.which_approval(run, approval).await?;
                let mut decision = handle.approve(&approval, approved);
                if let Some(by) = by {
                    decision = decision.by(&by);
                }
                if let Some(feedback) = feedback {
                    decision = decision.feedback(&feedback);
                }
                decision.await?
            }
            Tell::Pause { reason } => handle.pause(&reason).await?,
            Tell::Resume { .. } if before == Status::Parked => {
                handle.unpark().await?;
                Delivered::Delivered
            }
            Tell::Resume { message: Some(message) } => handle.resume_with(&message).await?,
            Tell::Resume { message: None } if before != Status::Paused => {
                let stop = Stop::new(Exit::Error, format!("the run {run} is {}, and not paused", before.name()));
                return Err(stop.hint(format!("`outlast explain {run}` says what it waits for")).into());
            }
            Tell::Resume { message: None } => handle.resume().await?,
            Tell::Cancel { reason } => handle.cancel(&reason).await?,
            Tell::Terminate { reason } => {
                handle.terminate(&reason).await?;
                Delivered::Delivered
            }
        };
        if is_urgent {
            self.drive(run).await?;
        }
        let status = handle.status().await?.name().to_owned();
        let root = self.root(run).await?;
        Ok(Told { run: run.to_owned(), outcome: word(delivered).to_owned(), status, root })
    }

    /// Who started the run, if nobody started that one.
    async fn root(&self, run: &str) -> Result<String> {
        let mut root = run.to_owned();
        while let Some(parent) = self.engine.run(&root)?.view().await?.parent.filter(|parent| !parent.detached) {
            root = parent.run.to_string();
        }
        Ok(root)
    }

    /// Lets those take notice that have not ended, and do not rest.
    pub(super) async fn take_notice(&self, which: &Which) -> Result<()> {
        let rests = ["completed", "failed", "cancelled", "parked"];
        for run in self.list(which).await?.iter().filter(|run| !rests.contains(&run.status.as_str())) {
            self.drive(&run.run).await?;
        }
        Ok(())
    }

    /// Lets the run take notice at once, if nobody else has it.
    async fn drive(&self, run: &str) -> Result<()> {
        match self.engine.drive_once(run).await {
            // It goes on where it is driven.
            Ok(_) | Err(EngineError::Held { .. } | EngineError::UnknownWorkflow(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The approval that is meant: where there is one, it need not be named.
    async fn which_approval(&self, run: &str, asked: Option<String>) -> Result<String> {
        if let Some(asked) = asked {
            return Ok(asked);
        }
        one_of(run, &self.approvals(Some(run)).await?)
    }

    pub(super) async fn fork(&self, run: &str, cut: Cut) -> Result<Forked> {
        let handle = self.engine.run(run)?;
        let mut fork = match (&cut.node, cut.at) {
            (Some(node), _) => handle.fork_at_node(node).await?,
            (None, at) => handle.fork(at.unwrap_or_default()),
        };
        if let Some(id) = &cut.id {
            fork = fork.id(id);
        }
        if let Some(input) = &cut.input {
            fork = fork.input(input);
        }
        let forked = fork.await?;
        let reissued = forked.reissued.iter().map(|again| Reissued {
            key: again.key.to_string(),
            kind: again.kind.to_string(),
            deadline: again.deadline.map(instant),
        });
        Ok(Forked { run: forked.run.id().to_string(), new: forked.run.is_new(), reissued: reissued.collect() })
    }
}

fn word(delivered: Delivered) -> &'static str {
    match delivered {
        Delivered::Delivered => "delivered",
        Delivered::Buffered => "buffered",
        Delivered::Duplicate => "duplicate",
        // Of all but the first, and of that but for a pause, the engine has made errors.
        Delivered::Lost | Delivered::NotFound | Delivered::Deleted | Delivered::Full => "lost",
    }
}

/// A recording, as far as it is shown.
#[derive(Deserialize)]
struct Recorded {
    generation: u64,
    events: Vec<RecordedEvent>,
}

#[derive(Deserialize)]
struct RecordedEvent {
    kind: String,
    #[serde(default)]
    key: Option<String>,
    at: i64,
    #[serde(default)]
    meta: Option<Value>,
    #[serde(default)]
    payload: Option<Value>,
}
