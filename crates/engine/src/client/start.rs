//! Starting a run.

mod admission;

use std::future::IntoFuture;
use std::pin::Pin;

use bytes::Bytes;
use outlast_core::commit::{NewRun, PRIORITY_DEFAULT, Signal};
use outlast_core::id::{AttributeName, DeliveryId, RunId, RunKey, SignalName, Version, WorkflowName};
use outlast_core::time::Timestamp;
use outlast_store::Created;
use serde::Serialize;
use tokio::sync::oneshot;

use self::admission::Flow;
use super::{EngineError, RunHandle, encode};
use crate::driver::Command;
use crate::engine::Engine;

/// A run that is about to be started. Await it to start it: when that returns, the start is durable.
#[must_use = "a run is started when this is awaited"]
pub struct Start<'e> {
    engine: &'e Engine,
    workflow: String,
    input: Result<Bytes, EngineError>,
    id: Option<String>,
    version: Option<String>,
    signals: Vec<Result<Signal, EngineError>>,
    attributes: Vec<(String, String)>,
    priority: i16,
    flow: Flow,
}

impl<'e> Start<'e> {
    pub(super) fn new(engine: &'e Engine, workflow: &str, input: Result<Bytes, EngineError>) -> Self {
        let workflow = workflow.to_owned();
        Start {
            engine,
            workflow,
            input,
            id: None,
            version: None,
            signals: Vec::new(),
            attributes: Vec::new(),
            priority: PRIORITY_DEFAULT,
            flow: Flow::default(),
        }
    }

    /// The run's id; a new unique one if nobody says otherwise.
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Which version to start; the newest that is registered here if nobody says otherwise. Of a workflow that is
    /// registered here only registered versions can be started; one that is not is started for others to drive.
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Delivers a signal with the start, atomically, whether the run is new or was there already.
    pub fn signal<T: Serialize + ?Sized>(mut self, name: &str, payload: &T, signal_id: &str) -> Self {
        self.signals.push(new_signal(name, encode(payload), signal_id));
        self
    }

    /// Sets a search attribute.
    pub fn attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((name.to_owned(), value.to_owned()));
        self
    }

    async fn send(self) -> Result<RunHandle, EngineError> {
        let inner = &self.engine.inner;
        let workflow = WorkflowName::new(&self.workflow)?;
        let version = match &self.version {
            Some(version) => {
                let version = Version::new(version)?;
                if inner.registry.check(&workflow, &version).is_err() {
                    inner.registry.learn(&*inner.store()?).await?;
                }
                inner.registry.check(&workflow, &version)?;
                version
            }
            None => {
                if inner.registry.newest(&self.engine.namespace, &workflow).is_none() {
                    // Another node may have been given its text.
                    inner.registry.learn(&*inner.store()?).await?;
                }
                let newest = inner.registry.newest(&self.engine.namespace, &workflow);
                newest.ok_or(EngineError::UnknownWorkflow(self.workflow))?
            }
        };
        let id = match &self.id {
            Some(id) => RunId::new(id)?,
            None => fresh_id(inner.time.now(), inner.time.host().random())?,
        };
        let run = RunKey::new(self.engine.namespace.clone(), id);
        let mut new = NewRun::new(run.clone(), workflow, version, self.input?);
        new.signals = self.signals.into_iter().collect::<Result<_, _>>()?;
        for (name, value) in self.attributes {
            new.attributes.push((AttributeName::new(name)?, value));
        }
        new.priority = self.priority;
        new.admission = self.flow.admission(&run)?;
        let held = new.admission.as_ref().is_some_and(|admission| admission.holds());
        // Before the run begins, so that its end is not missed.
        let end = inner.board.await_end(&run);
        let signalled = !new.signals.is_empty();
        new.owner = if held { None } else { inner.new_owner(&new.workflow, &new.version)? };
        let owned = new.owner.is_some();
        let (reply, answer) = oneshot::channel();
        if !inner.drivers.send(&run, Command::Create { new: Box::new(new), reply }) {
            return Err(EngineError::Stopped);
        }
        let created = answer.await.map_err(|_| EngineError::Stopped)??;
        let made = matches!(created, Created::Created { .. });
        let mine = made && owned;
        if held {
            inner.board.somebody_held();
        } else if !mine || signalled {
            inner.board.somebody_woken();
        }
        let (run, end) = match created {
            Created::Joined { run: other, .. } => {
                let other = RunKey::new(run.namespace, other);
                let end = inner.board.await_end(&other);
                (other, end)
            }
            Created::Created { .. } | Created::Existing { .. } => (run, end),
        };
        Ok(RunHandle::started(self.engine, run, end, mine).made(made))
    }
}

/// A unique id that begins with the time, so that ids made together lie together in the database.
pub(super) fn fresh_id(now: Timestamp, random: u128) -> Result<RunId, EngineError> {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    let mut chance = [0; 10];
    chance.copy_from_slice(&random.to_be_bytes()[6..]);
    let id = uuid::Builder::from_unix_timestamp_millis(millis, &chance).into_uuid();
    Ok(RunId::new(id.to_string())?)
}

pub(super) fn new_signal(
    name: &str,
    payload: Result<Bytes, EngineError>,
    signal_id: &str,
) -> Result<Signal, EngineError> {
    let (name, id) = (SignalName::new(name)?, DeliveryId::new(signal_id)?);
    Ok(Signal { name, id, payload: payload?, aimed: None })
}

impl<'e> IntoFuture for Start<'e> {
    type Output = Result<RunHandle, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'e>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
