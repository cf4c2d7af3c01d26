//! `cargo xtask bench server`: the binary, as people meet it.
//!
//! One JSON object per line: `{"bench","store","value","unit","bare","ratio"}`. `http_start_result` is the median from the start of
//! a run with one task to its result, over HTTP against `outlast serve`, beside the same in one process; it must be at most twice
//! that and a millisecond. `sse_p99` is how long after an event is recorded the last of a thousand subscribers has it (250 ms at
//! most). `binary`, `version`, `dev_ready` and `idle_resident` are at most 30 MiB, 20 ms, 500 ms and 60 MiB.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first error")]

mod binary;
mod house;
mod latency;
mod streams;

use serde_json::json;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| name.contains(only.as_str()));
    raise_files();
    let mut failed = false;
    let mut tell = |name: &str, value: f64, unit: &str, bare: Option<f64>, most: f64| {
        let ratio = bare.map(|bare| (value / bare * 1_000.0).round() / 1_000.0);
        println!(
            "{}",
            json!({ "bench": name, "store": "sqlite", "value": value, "unit": unit, "bare": bare, "ratio": ratio })
        );
        if value > most {
            eprintln!("{name}: {value} {unit} is more than {most}");
            failed = true;
        }
    };
    if wanted("binary") {
        tell("binary", binary::size_mib(), "MiB", None, 30.0);
    }
    if wanted("version") {
        tell("version", binary::version_ms(), "ms", None, 20.0);
    }
    if wanted("dev_ready") {
        tell("dev_ready", binary::dev_ready_ms(), "ms", None, 500.0);
    }
    if wanted("idle_resident") {
        tell("idle_resident", binary::idle_resident_mib(), "MiB", None, 60.0);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if wanted("http_start_result") {
        let (http, embedded) = runtime.block_on(latency::measure());
        tell("http_start_result", http, "ms", Some(embedded), 2.0 * embedded + 1.0);
    }
    if wanted("sse_p99") {
        let (p50, p99) = runtime.block_on(streams::measure());
        tell("sse_p50", p50, "ms", None, 250.0);
        tell("sse_p99", p99, "ms", None, 250.0);
    }
    runtime.shutdown_background();
    std::process::exit(i32::from(failed));
}

/// A thousand connections need more files than a shell allows.
fn raise_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}
