//! What a place allows without an engine: writing as little as must be written, and waiting until it is durable.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use outlast::{BareCommits, EngineError};

/// How often a single commit is made, and how often one of a group.
const SINGLES: u32 = 100;
const GROUPS: u32 = 30;
/// A single moment says little: of so many the best counts.
const ROUNDS: usize = 3;
/// How many commits share a sync in a group: as many as runs are in flight.
pub(super) const GROUP: usize = 256;
/// What one commit of SQLite must write, at least: a page of its log.
const COMMIT_BYTES: usize = 4_096 + 24;
/// How many pages a group must write.
const GROUP_PAGES: usize = 64;
/// What a step's result has, about.
const ROW: &str =
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
/// What was measured, in commits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Limit {
    /// One after the other, each durable before the next.
    pub(super) singles: f64,
    /// Groups of [`GROUP`], each durable as a whole.
    pub(super) groups: f64,
}

impl Limit {
    /// The better of both: a machine that was busy for a moment did not become slower.
    pub(super) fn best(self, other: Limit) -> Limit {
        Limit { singles: self.singles.max(other.singles), groups: self.groups.max(other.groups) }
    }

    /// Seconds of one commit.
    pub(super) fn single_seconds(self) -> f64 {
        1.0 / self.singles
    }

    /// Seconds until so many commits are durable, in groups.
    pub(super) fn grouped_seconds(self, commits: usize) -> f64 {
        commits.div_ceil(GROUP) as f64 / self.groups
    }
}

/// Where it is measured.
pub(super) enum Place {
    /// The disk this folder is on.
    Disk(PathBuf),
    /// A database's server.
    Server(BareCommits),
}

impl Place {
    /// Measures it, a few times.
    pub(super) async fn measure(&self) -> Result<Limit> {
        let mut best = Limit::default();
        for _ in 0..ROUNDS {
            best = best.best(match self {
                Place::Disk(folder) => Limit {
                    singles: sync_rate(folder, SINGLES, COMMIT_BYTES)?,
                    groups: sync_rate(folder, GROUPS, COMMIT_BYTES * GROUP_PAGES)?,
                },
                Place::Server(server) => Limit {
                    singles: commit_rate(server, SINGLES, 1).await?,
                    groups: commit_rate(server, GROUPS, GROUP as u16).await?,
                },
            });
        }
        Ok(best)
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn sync_rate(folder: &Path, times: u32, bytes: usize) -> Result<f64> {
    let path = folder.join("disk");
    let mut file = File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
    let block = vec![b'x'; bytes];
    // The file has its size before: a log that is used again does not grow either.
    for _ in 0..times {
        file.write_all(&block).context("the disk cannot be written")?;
    }
    file.sync_all().context("the disk cannot be synced")?;
    let mut file = OpenOptions::new().write(true).open(&path).context("the disk cannot be written")?;
    let begun = Instant::now();
    for _ in 0..times {
        file.write_all(&block).context("the disk cannot be written")?;
        file.sync_data().context("the disk cannot be synced")?;
    }
    Ok(f64::from(times) / begun.elapsed().as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
async fn commit_rate(server: &BareCommits, times: u32, rows: u16) -> Result<f64> {
    let commit = async || {
        let done = server.commit(rows, ROW).await.map_err(EngineError::Store);
        done.context("the database's server does not commit")
    };
    // The first one connects.
    commit().await?;
    let begun = Instant::now();
    for _ in 0..times {
        commit().await?;
    }
    Ok(f64::from(times) / begun.elapsed().as_secs_f64())
}
