//! The binary itself: its size, and how soon it is there.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::house::{House, OUTLAST, folder};

const MIB: f64 = 1_048_576.0;

/// Its size without what only debuggers read.
pub(crate) fn size_mib() -> f64 {
    let folder = folder();
    let stripped = folder.path().join("outlast");
    let done =
        Command::new("strip").arg("-o").arg(&stripped).arg(OUTLAST).status().is_ok_and(|status| status.success());
    let path = if done { stripped.as_path() } else { OUTLAST.as_ref() };
    round(std::fs::metadata(path).unwrap().len() as f64 / MIB)
}

/// The median time of `outlast --version`.
pub(crate) fn version_ms() -> f64 {
    median(20, || {
        let begun = Instant::now();
        assert!(Command::new(OUTLAST).arg("--version").output().unwrap().status.success());
        begun.elapsed()
    })
}

/// The median time until `outlast dev` listens, in a folder with a few files.
pub(crate) fn dev_ready_ms() -> f64 {
    let files = [
        ("a.wf", "return await Task.run(\"noop\", 1)\n"),
        ("b.flow.yaml", "flow: b\nnodes:\n  - { id: one, type: task, task: noop }\n"),
        ("outlast.toml", "[tasks.cat]\ncommand = [\"cat\"]\n"),
    ];
    median(9, || House::start("dev", &files).ready)
}

/// What `outlast serve` keeps in memory when nothing happens.
pub(crate) fn idle_resident_mib() -> f64 {
    let house = House::start("serve", &[]);
    std::thread::sleep(Duration::from_secs(3));
    let status = std::fs::read_to_string(format!("/proc/{}/status", house.child.id())).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    round(resident.unwrap_or(f64::NAN) * 1_024.0 / MIB)
}

fn median(times: usize, mut once: impl FnMut() -> Duration) -> f64 {
    let mut took: Vec<Duration> = (0..times).map(|_| once()).collect();
    took.sort();
    round(took[times / 2].as_secs_f64() * 1_000.0)
}

pub(crate) fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
