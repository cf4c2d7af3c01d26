//! What a disk allows: appending a little and waiting until it is there.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

/// How often.
const SYNCS: usize = 300;
/// What one commit of SQLite must write, at least: a page of its log.
const COMMIT_BYTES: usize = 4_096 + 24;
/// How many pages a group of [`super::workloads::IN_FLIGHT`] runs must write with one sync.
const GROUP_PAGES: usize = 64;
/// Commits of a run with five steps: one for each, and the start. Groups share them.
const COMMITS_PER_RUN: f64 = 6.0;

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk {
    /// Appends that were waited for, per second.
    pub(super) syncs: f64,
    /// Runs of five steps per second, if 256 of them share every sync and nothing else is to be done.
    pub(super) grouped_runs: f64,
    /// The time of two syncs, in milliseconds: a start and a result.
    pub(super) two_syncs_ms: f64,
}

/// Measures the disk a folder is on.
pub(super) fn measure(folder: &Path) -> Result<Disk> {
    let single = rate(folder, COMMIT_BYTES)?;
    let grouped = rate(folder, COMMIT_BYTES * GROUP_PAGES)?;
    let in_flight = super::workloads::IN_FLIGHT as f64;
    Ok(Disk { syncs: single, grouped_runs: grouped * in_flight / COMMITS_PER_RUN, two_syncs_ms: 2_000.0 / single })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn rate(folder: &Path, bytes: usize) -> Result<f64> {
    let path = folder.join("disk");
    let mut file = File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    let block = vec![b'x'; bytes];
    // The file has its size before: a log that is used again does not grow either.
    for _ in 0..SYNCS {
        file.write_all(&block).context("the disk cannot be written")?;
    }
    file.sync_all().context("the disk cannot be synced")?;
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).context("the disk cannot be written")?;
    let begun = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&block).context("the disk cannot be written")?;
        file.sync_data().context("the disk cannot be synced")?;
    }
    Ok(SYNCS as f64 / begun.elapsed().as_secs_f64())
}
