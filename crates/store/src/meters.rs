//! What a store measures, for whatever recorder the process has installed (the `metrics` facade).

use metrics::{describe_histogram, histogram};

const GROUP_SIZE: &str = "outlast_store_group_size";

/// Tells the recorder what each metric of a store means.
pub fn describe_metrics() {
    describe_histogram!(GROUP_SIZE, "calls that shared one transaction");
}

/// So many calls share a transaction.
#[cfg_attr(not(any(feature = "sqlite", feature = "postgres")), allow(dead_code))]
pub(crate) fn group(calls: usize) {
    // Far below 2^52.
    histogram!(GROUP_SIZE).record(calls as f64);
}
