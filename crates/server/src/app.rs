//! What all routes of a server share.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use metrics_exporter_prometheus::PrometheusHandle;
use outlast::{Engine, EngineError, Namespace};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::audit::{Act, Audit, Made};
use crate::auth::Access;
use crate::bulk::Bulk;
use crate::error::{ApiError, ApiResult};
use crate::hooks::Hooks;
use crate::mistakes::Mistakes;
use crate::rates::Rates;
use crate::server::Options;

/// How many may watch one run at once.
const SUBSCRIBERS_PER_RUN_MAX: usize = 64;
/// How many runs are looked back at at once.
const LOOKS_BACK_MAX: usize = 2;

/// What all routes share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

struct Inner {
    engine: Engine,
    access: Access,
    /// The engine as the clients of each namespace see it.
    engines: Mutex<BTreeMap<String, Engine>>,
    audit: Option<Audit>,
    hooks: Hooks,
    metrics: Option<PrometheusHandle>,
    sql: bool,
    encrypted: bool,
    mistakes: Mistakes,
    rates: Rates,
    looks_back: Arc<Semaphore>,
    bulk: Bulk,
    subscribers: Mutex<BTreeMap<String, usize>>,
    draining: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        engine: Engine,
        options: &Options,
        audit: Option<Audit>,
        metrics: Option<PrometheusHandle>,
    ) -> App {
        App(Arc::new(Inner {
            engine,
            access: options.access.clone(),
            engines: Mutex::default(),
            audit,
            hooks: options.hooks.clone(),
            metrics,
            sql: options.sql,
            encrypted: options.tls.is_some(),
            mistakes: options.mistakes.clone(),
            rates: Rates::new(options.requests_per_second),
            looks_back: Arc::new(Semaphore::new(LOOKS_BACK_MAX)),
            bulk: Bulk::default(),
            subscribers: Mutex::default(),
            draining: watch::Sender::new(false),
        }))
    }

    /// The engine, for what is nobody's: health, time. Handlers that are about runs use their caller's.
    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(crate) fn hooks(&self) -> &Hooks {
        &self.0.hooks
    }

    /// Counts a request of a namespace, and refuses one too many.
    pub(crate) fn count(&self, namespace: &Namespace) -> ApiResult<()> {
        self.0.rates.take(namespace.as_str(), self.0.engine.now()).map_err(|per_second| {
            let message = format!("the namespace {namespace} has asked more than {per_second} times in a second");
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message, "wait a second, then send it again")
        })
    }

    /// What is wrong with the files it follows.
    pub(crate) fn mistakes(&self) -> BTreeMap<String, String> {
        self.0.mistakes.all()
    }

    pub(crate) fn bulk(&self) -> &Bulk {
        &self.0.bulk
    }

    /// Whether questions in SQL are answered.
    pub(crate) fn answers_sql(&self) -> bool {
        self.0.sql
    }

    pub(crate) fn metrics(&self) -> Option<&PrometheusHandle> {
        self.0.metrics.as_ref()
    }

    /// Whether it speaks TLS itself.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.encrypted
    }

    /// The engine as the clients of a namespace see it.
    pub(crate) async fn engine_of(&self, namespace: &str) -> Result<Engine, EngineError> {
        let known = self.0.engines.lock().unwrap_or_else(PoisonError::into_inner).get(namespace).cloned();
        if let Some(engine) = known {
            return Ok(engine);
        }
        let engine = self.0.engine.in_namespace(namespace).await?;
        let mut engines = self.0.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.insert(namespace.to_owned(), engine.clone());
        Ok(engine)
    }

    /// Writes down what somebody did.
    pub(crate) async fn audit(&self, act: Act, made: Option<Made>, status: StatusCode) -> io::Result<()> {
        tracing::info!(who = %act.who, namespace = %act.namespace, action = act.action, status = status.as_u16());
        let Some(audit) = &self.0.audit else { return Ok(()) };
        let written = audit.append(act, made, status, self.0.engine.now());
        written.inspect_err(|error| tracing::error!(%error, "the audit log cannot be written"))
    }

    /// Waits until one more run may be looked back at.
    pub(crate) async fn turn_to_look_back(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.looks_back).acquire_owned().await.ok()
    }

    /// Room for one more who watches a run; none if there are too many. Dropping it gives the place back.
    pub(crate) fn subscribe(&self, run: &str) -> Option<Subscription> {
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = subscribers.entry(run.to_owned()).or_default();
        if *count >= SUBSCRIBERS_PER_RUN_MAX {
            return None;
        }
        *count += 1;
        Some(Subscription { app: self.clone(), run: run.to_owned() })
    }

    /// From now on nothing new begins, and what waits for something comes to an end.
    pub(crate) fn drain(&self) {
        self.0.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.0.draining.borrow()
    }

    /// Waits until the server is to stop.
    pub(crate) async fn drained(&self) {
        let mut draining = self.0.draining.subscribe();
        let _ = draining.wait_for(|draining| *draining).await;
    }
}

/// The place of somebody who watches a run.
pub(crate) struct Subscription {
    app: App,
    run: String,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut subscribers = self.app.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = subscribers.get_mut(&self.run) {
            *count -= 1;
            if *count == 0 {
                subscribers.remove(&self.run);
            }
        }
    }
}
