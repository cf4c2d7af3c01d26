//! W5: runs that sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outlast::{Engine, Status};

use crate::Place;
use crate::report::Report;
use crate::workflows::register;

/// Runs that sleep for five seconds, from the start of the first to the end of the last.
const FEW: usize = 10_000;
const FEW_ASLEEP: Duration = Duration::from_secs(5);
/// Clients that start runs.
const CLIENTS: usize = 256;

pub(crate) async fn w5(place: &Place, report: &Report, many: usize) {
    let engine = register(place.engine().await).start().await.unwrap();
    let begun = Instant::now();
    start_all(&engine, "few", FEW, FEW_ASLEEP).await;
    wait_until(&engine, Status::Completed, FEW).await;
    report.plain("W5_10k_asleep_5s", begun.elapsed().as_secs_f64(), "s");
    engine.shutdown().await;

    let place = place.fresh_sibling();
    let engine = register(place.engine().await).start().await.unwrap();
    // Due all at once, after the restart below.
    let begun = Instant::now();
    let asleep = Duration::from_secs(15 + u64::try_from(many / 2_000).unwrap());
    let due = begun + asleep;
    start_until(&engine, "many", many, due).await;
    wait_until(&engine, Status::Waiting, many).await;
    report.plain("W5_started", many as f64 / begun.elapsed().as_secs_f64(), "runs/s");
    report.plain("W5_resident", resident_mib(), "MiB");
    if let Place::Sqlite(file) = &place {
        let bytes = std::fs::metadata(file).unwrap().len();
        report.plain("W5_database", bytes as f64 / many as f64, "bytes/run");
    }
    engine.shutdown().await;

    let begun = Instant::now();
    let engine = register(place.engine().await).start().await.unwrap();
    engine.run("many-0").unwrap().status().await.unwrap();
    report.plain("W5_startup", begun.elapsed().as_secs_f64(), "s");
    tokio::time::sleep(due.saturating_duration_since(Instant::now())).await;
    let begun = Instant::now();
    wait_until(&engine, Status::Completed, many).await;
    report.plain("W5_drained", begun.elapsed().as_secs_f64(), "s");
    report.plain("W5_resident_drained", resident_mib(), "MiB");
    for run in (0..many).step_by((many / 100).max(1)) {
        let journal = engine.run(&format!("many-{run}")).unwrap().journal().await.unwrap();
        assert_eq!(journal.len(), 3, "a timer fired twice: {journal:?}");
    }
    engine.shutdown().await;
}

async fn start_all(engine: &Engine, name: &str, runs: usize, asleep: Duration) {
    start_each(engine, name, runs, move || asleep).await;
}

async fn start_until(engine: &Engine, name: &str, runs: usize, due: Instant) {
    start_each(engine, name, runs, move || due.saturating_duration_since(Instant::now())).await;
}

async fn start_each(engine: &Engine, name: &str, runs: usize, asleep: impl Fn() -> Duration + Send + Copy + 'static) {
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let (engine, next, name) = (engine.clone(), next.clone(), name.to_owned());
        clients.push(tokio::spawn(async move {
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= runs {
                    return;
                }
                let millis = u64::try_from(asleep().as_millis()).unwrap();
                engine.start("asleep", &millis).id(&format!("{name}-{run}")).await.unwrap();
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}

async fn wait_until(engine: &Engine, status: Status, runs: usize) {
    loop {
        let count = engine.count().await.unwrap();
        let there = count.into_iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| count);
        if there >= runs as u64 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// This process's memory.
pub(crate) fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("VmRSS: 0 kB");
    let kib: f64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0.0);
    kib / 1_024.0
}
