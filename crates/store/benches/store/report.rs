//! Lines of JSON.

use serde_json::json;

/// Prints figures.
pub(crate) struct Report;

/// Samples of the commit figures, in commits per second.
#[derive(Default)]
pub(crate) struct Commits {
    pub(crate) bare_1: Vec<f64>,
    pub(crate) bare_100: Vec<f64>,
    pub(crate) ours_1: Vec<f64>,
    pub(crate) ours_256: Vec<f64>,
}

/// Samples of the claim figure, in microseconds.
#[derive(Default)]
pub(crate) struct Claims {
    pub(crate) few: Vec<f64>,
    pub(crate) many: Vec<f64>,
}

impl Report {
    /// A figure of its own.
    pub(crate) fn plain(&self, bench: &str, store: &str, value: f64, unit: &str) {
        println!(
            "{}",
            json!({ "bench": bench, "store": store, "value": round(value), "unit": unit, "bare": null, "ratio": null })
        );
    }

    /// Ours against bare. For rates more is better, for times less.
    pub(crate) fn times(&self, bench: &str, store: &str, value: f64, bare: f64, unit: &str) {
        let ratio = round(value / bare);
        println!(
            "{}",
            json!({ "bench": bench, "store": store, "value": round(value), "unit": unit, "bare": round(bare), "ratio": ratio })
        );
    }

    pub(crate) fn commits(&self, store: &str, samples: &Commits) {
        let [bare_1, bare_100] = [&samples.bare_1, &samples.bare_100].map(|samples| median(samples));
        self.plain("bare_1", store, bare_1, "commits/s");
        self.plain("bare_100", store, bare_100, "commits/s");
        self.times("commit_1", store, median(&samples.ours_1), bare_1, "commits/s");
        self.times("commit_256", store, median(&samples.ours_256), bare_100, "commits/s");
    }

    pub(crate) fn claim(&self, store: &str, samples: &Claims) {
        self.times("claim_1m", store, median(&samples.many), median(&samples.few), "us");
    }
}

pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn round(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { (value * 1_000.0).round() / 1_000.0 }
}
