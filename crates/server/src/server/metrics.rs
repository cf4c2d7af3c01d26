//! The process's metrics.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Seconds, from a commit on a fast disk to a minute.
const SECONDS: [f64; 12] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

/// What keeps this process's metrics: installed once. None if somebody else keeps them already.
pub(super) fn handle() -> Option<PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let install = || {
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS).ok()?;
        let handle =
            builder.install_recorder().inspect_err(|error| tracing::warn!(%error, "no metrics are kept")).ok()?;
        outlast::describe_metrics();
        Some(handle)
    };
    HANDLE.get_or_init(install).clone()
}
