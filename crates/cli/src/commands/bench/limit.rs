//! What a place allows without an engine: writing as little as must be written, and waiting until it is durable.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

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
/// A durable commit that touches no table, so that nothing is left of it.
const COMMIT: &str = "SELECT pg_logical_emit_message(true, 'outlast bench', $1::text)";
const GROUP_COMMIT: &str = "SELECT count(pg_logical_emit_message(true, 'outlast bench', $1::text)) \
                            FROM generate_series(1, $2::int)";

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
    /// A database's server, and what drives the connection to it.
    Server(Box<Client>, #[expect(dead_code, reason = "held for as long as it is asked")] JoinSet<()>),
}

impl Place {
    /// A connection of its own to a database's server.
    pub(super) async fn server(url: &str) -> Result<Place> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let mut driven = JoinSet::new();
        // What goes wrong is told to who asks.
        driven.spawn(async move { drop(connection.await) });
        Ok(Place::Server(Box::new(client), driven))
    }

    /// Measures it, a few times.
    pub(super) async fn measure(&self) -> Result<Limit> {
        let mut best = Limit::default();
        for _ in 0..ROUNDS {
            best = best.best(match self {
                Place::Disk(folder) => Limit {
                    singles: sync_rate(folder, SINGLES, COMMIT_BYTES)?,
                    groups: sync_rate(folder, GROUPS, COMMIT_BYTES * GROUP_PAGES)?,
                },
                Place::Server(client, _) => Limit {
                    singles: commit_rate(client, SINGLES, None).await?,
                    groups: commit_rate(client, GROUPS, Some(GROUP as i32)).await?,
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
async fn commit_rate(client: &Client, times: u32, group: Option<i32>) -> Result<f64> {
    let failed = "the database's server does not commit";
    let statement = if group.is_some() { GROUP_COMMIT } else { COMMIT };
    let statement = client.prepare(statement).await.context(failed)?;
    let begun = Instant::now();
    for _ in 0..times {
        match &group {
            Some(rows) => client.query(&statement, &[&ROW, rows]).await.context(failed)?,
            None => client.query(&statement, &[&ROW]).await.context(failed)?,
        };
    }
    Ok(f64::from(times) / begun.elapsed().as_secs_f64())
}
