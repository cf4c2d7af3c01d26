//! Traces of runs, for those who gather them by OTLP. A run is told when it has ended, from its journal: nothing is noted while it
//! runs, and nothing of it waits for a collector.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use outlast::{Engine, Observed, RunHandle, RunView, Timestamp};
use sha2::{Digest, Sha256};

/// How long the collector may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How many operations of a run are told, of a longer one the first; and about how many spans are told at once.
const SPANS_MAX: usize = 2_000;
/// Events that are read at once.
const PAGE: usize = 1_000;

/// Tells a collector of runs.
pub(crate) struct Traces {
    exporter: SpanExporter,
}

impl Traces {
    /// Takes the address of a collector, such as `http://127.0.0.1:4318`, or that of its traces.
    pub(crate) fn to(endpoint: &str) -> Result<Traces> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            reqwest::Client::builder().timeout(ANSWER_TIME_MAX).build().context("nothing can be told over HTTP")?;
        let endpoint = endpoint.trim_end_matches('/');
        let endpoint =
            if endpoint.ends_with("/v1/traces") { endpoint.to_owned() } else { format!("{endpoint}/v1/traces") };
        let builder = SpanExporter::builder().with_http().with_http_client(client);
        let mut exporter = builder
            .with_endpoint(&endpoint)
            .with_timeout(ANSWER_TIME_MAX)
            .build()
            .with_context(|| format!("{endpoint} is no address of a collector"))?;
        exporter.set_resource(&Resource::builder().with_service_name("outlast").build());
        Ok(Traces { exporter })
    }

    /// Tells of the runs that end, one after the other. If the collector is away, those are not told.
    pub(crate) async fn follow(self, engine: Engine) {
        let mut ends = engine.ends();
        let mut away = false;
        while let Some(first) = ends.next().await {
            let (mut next, mut told) = (Some(first), Vec::new());
            while let Some(run) = next {
                match spans(&run).await {
                    Ok(spans) => told.extend(spans),
                    Err(error) => tracing::debug!(run = %run.key(), %error, "a run that ended is not traced"),
                }
                next = if told.len() < SPANS_MAX { ends.ready() } else { None };
            }
            let told = self.exporter.export(told).await;
            // Once for each time it goes away: there may be thousands of runs.
            if let (Err(error), false) = (&told, away) {
                tracing::warn!(%error, "the collector does not take traces; what ends meanwhile is not traced");
            }
            away = told.is_err();
        }
    }
}

/// The spans of a run: its own, and one for each operation.
async fn spans(run: &RunHandle) -> Result<Vec<SpanData>> {
    let view = run.view().await?;
    let mut spans = vec![whole(&view)];
    let mut gathered = Gathered::new(view.created_at);
    let mut from = 0;
    loop {
        let page = run.journal_page(Some(view.generation.0), from, PAGE).await?;
        from += page.len() as u64;
        page.iter().for_each(|observed| gathered.add(observed));
        if page.is_empty() || from >= view.next.0 || gathered.operations.len() >= SPANS_MAX {
            break;
        }
    }
    let operations = gathered.operations.iter().take(SPANS_MAX);
    spans.extend(operations.map(|((kind, key), times)| part(&view, kind, key, times)));
    Ok(spans)
}

/// When an operation was heard of first and last.
struct Times {
    first: Timestamp,
    last: Timestamp,
    failed: Option<&'static str>,
}

struct Gathered {
    operations: BTreeMap<(String, String), Times>,
    /// When the event before happened: what executes leaves no trace of its beginning, and began no earlier.
    before: Timestamp,
}

impl Gathered {
    fn new(before: Timestamp) -> Gathered {
        Gathered { operations: BTreeMap::new(), before }
    }

    fn add(&mut self, observed: &Observed) {
        let at = observed.at.unwrap_or(self.before);
        let name = observed.event.kind().name();
        let (kind, what) = name.split_once('_').unwrap_or((name, ""));
        if let Some(key) = observed.event.encode(at).key.filter(|_| kind != "RUN") {
            let begins = ["STARTED", "SCHEDULED", "AWAITED", "REQUESTED", "CREATED"].contains(&what);
            let first = if begins { at } else { self.before };
            let times = self.operations.entry((kind.to_lowercase(), key.to_string()));
            let times = times.or_insert(Times { first, last: at, failed: None });
            times.last = at;
            times.failed = ["FAILED", "TIMED_OUT", "ERROR"].contains(&what).then_some(name);
        }
        self.before = at;
    }
}

fn whole(view: &RunView) -> SpanData {
    let status = match view.status {
        outlast::Status::Completed => Status::Ok,
        other => Status::error(other.name()),
    };
    let name = format!("run {}", view.workflow);
    let end = view.finished_at.unwrap_or(view.created_at);
    let attributes = vec![KeyValue::new("outlast.status", view.status.name())];
    SpanData { status, ..span(view, "", SpanId::INVALID, name, (view.created_at, end), attributes) }
}

fn part(view: &RunView, kind: &str, key: &str, times: &Times) -> SpanData {
    let attributes =
        vec![KeyValue::new("outlast.step", key.to_owned()), KeyValue::new("outlast.kind", kind.to_owned())];
    let status = times.failed.map_or(Status::Unset, Status::error);
    let (whole, own) = (span_id(view, ""), format!("{kind}\n{key}"));
    SpanData { status, ..span(view, &own, whole, format!("{kind} {key}"), (times.first, times.last), attributes) }
}

fn span(
    view: &RunView,
    own: &str,
    parent: SpanId,
    name: String,
    (start, end): (Timestamp, Timestamp),
    more: Vec<KeyValue>,
) -> SpanData {
    let mut attributes = vec![
        KeyValue::new("outlast.run", view.run.id.to_string()),
        KeyValue::new("outlast.workflow", view.workflow.to_string()),
        KeyValue::new("outlast.version", view.version.to_string()),
        KeyValue::new("outlast.namespace", view.run.namespace.to_string()),
    ];
    attributes.extend(more);
    let (trace, id) = (TraceId::from_bytes(digest(view, "trace")), span_id(view, own));
    SpanData {
        span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::default()),
        parent_span_id: parent,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: name.into(),
        start_time: system(start),
        end_time: system(end),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("outlast").with_version(env!("CARGO_PKG_VERSION")).build(),
    }
}

/// The same for the same run wherever it is made: what is told twice is one trace.
fn digest<const N: usize>(view: &RunView, what: &str) -> [u8; N] {
    let text = format!("{}\n{}\n{}\n{what}", view.run.namespace, view.run.id, view.generation.0);
    let mut bytes = [0; N];
    bytes.copy_from_slice(&Sha256::digest(text.as_bytes())[..N]);
    bytes
}

fn span_id(view: &RunView, own: &str) -> SpanId {
    SpanId::from_bytes(digest(view, &format!("span\n{own}")))
}

fn system(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or(0))
}
