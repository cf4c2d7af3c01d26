//! Lines of JSON.

use serde_json::json;

/// Prints figures of one store.
pub(crate) struct Report {
    pub(crate) store: &'static str,
}

impl Report {
    /// A figure of its own.
    pub(crate) fn plain(&self, bench: &str, value: f64, unit: &str) {
        let store = self.store;
        println!(
            "{}",
            json!({ "bench": bench, "store": store, "value": round(value), "unit": unit, "bare": null, "ratio": null })
        );
    }

    /// Ours and the ceiling.
    pub(crate) fn against(&self, bench: &str, value: f64, bare: f64, unit: &str) {
        let (store, ratio) = (self.store, round(value / bare));
        println!(
            "{}",
            json!({ "bench": bench, "store": store, "value": round(value), "unit": unit, "bare": round(bare), "ratio": ratio })
        );
    }
}

pub(crate) fn median(samples: &[f64]) -> f64 {
    percentile(samples, 50)
}

pub(crate) fn percentile(samples: &[f64], percent: usize) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn round(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { (value * 1_000.0).round() / 1_000.0 }
}
