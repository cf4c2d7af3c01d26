//! `outlast bench`: what the disk or the database's server allows, and what the engine does with it, on this machine.

mod limit;
mod workloads;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use outlast::{BareCommits, Engine, Outlast, PostgresOptions};
use serde::Serialize;

use self::limit::{Limit, Place};
use self::workloads::{Measured, Size, Workload};
use crate::args::Global;
use crate::commands::run::refused;
use crate::database::{Database, DatabaseArgs};
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note, table};
use crate::palette::Palette;

/// Where the runs are, in a database that others use. Always the same: names of namespaces stay.
const NAMESPACE: &str = "bench";

/// Measure what this machine allows and what the engine does with it, side by side
#[derive(Debug, Args)]
#[command(
    after_help = "The limit is what making durable as little as must be gives, without an engine: appends and syncs beside a \
                        SQLite file, commits of a hundred bytes on PostgreSQL. It is measured before and after each workload, three \
                        times each, and the best counts.\n\nBeside a SQLite file a folder is made, and removed; the file is not \
                        touched. On PostgreSQL the runs are in the namespace `bench`, and are deleted; what stays is that name, \
                        what the database remembers of any deleted run for a week, and, in one that had none, Outlast's tables."
)]
pub(crate) struct Bench {
    /// What to measure
    #[arg(short, long, value_name = "W1,W2,…", value_enum, ignore_case = true, value_delimiter = ',')]
    workload: Vec<Workload>,
    /// A tenth of the work: to see that it works, not to compare
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// A figure, as `cargo xtask bench` writes it.
#[derive(Serialize)]
struct Figure {
    bench: &'static str,
    store: &'static str,
    value: f64,
    unit: &'static str,
    /// What the disk or the server allows.
    bare: Option<f64>,
    ratio: Option<f64>,
}

impl Figure {
    fn new(workload: Workload, store: &'static str, value: f64, bare: Option<f64>) -> Figure {
        let (bench, unit) = (workload.name(), workload.unit());
        let ratio = bare.filter(|bare| *bare > 0.0).map(|bare| round(value / bare));
        Figure { bench, store, value: round(value), unit, bare: bare.map(round), ratio }
    }

    /// What cannot be: more than the limit, or sooner.
    fn is_beyond(&self, workload: Workload) -> bool {
        self.ratio.is_some_and(|ratio| if workload.is_time() { ratio < 1.0 } else { ratio > 1.0 })
    }
}

fn round(value: f64) -> f64 {
    let finest = if value.abs() >= 100.0 {
        1.0
    } else if value.abs() >= 0.1 {
        1_000.0
    } else {
        1_000_000.0
    };
    (value * finest).round() / finest
}

pub(crate) async fn bench(asked: Bench, global: &Global) -> Result<Exit> {
    let database = asked.database.get();
    let scratch = Scratch::beside(&database)?;
    let place = match (&database, &scratch) {
        (Database::Postgres(url), _) => Some(Place::Server(BareCommits::new(url, &PostgresOptions::default())?)),
        (Database::Sqlite(_), Some(scratch)) => Some(Place::Disk(scratch.0.clone())),
        (Database::Sqlite(_), None) => None,
    };
    let session = Session { database, scratch, place, size: Size { quick: asked.quick } };
    let chosen = if asked.workload.is_empty() { Workload::value_variants().to_vec() } else { asked.workload };
    let mut figures = Vec::new();
    for workload in chosen {
        if global.output == Format::Table {
            note(&format!("{} …", workload.name()));
        }
        figures.push(session.measure(workload).await?);
    }
    // One per line, as `cargo xtask bench` has them.
    let format = if global.output == Format::Json { Format::Jsonl } else { global.output };
    output::many(format, &figures, for_people)?;
    Ok(Exit::Done)
}

/// Where it is measured.
struct Session {
    database: Database,
    scratch: Option<Scratch>,
    /// Where the limit is measured.
    place: Option<Place>,
    size: Size,
}

impl Session {
    async fn measure(&self, workload: Workload) -> Result<Figure> {
        let before = self.limit().await?;
        let measured = self.engine(workload).await?;
        let limit = self.limit().await?.zip(before).map(|(after, before)| after.best(before));
        let bare = limit.map(|limit| workload.limit(self.size, limit, measured));
        let store = if self.database.is_sole() { "sqlite" } else { "postgres" };
        let figure = Figure::new(workload, store, measured.value, bare);
        if figure.is_beyond(workload) {
            let line = format!(
                "{} went beyond its limit, which cannot be: the machine was busy with something else while the limit was \
                 measured; measure again",
                figure.bench
            );
            note(&format!("{} {line}", Palette::stderr().warn("note:")));
        }
        Ok(figure)
    }

    async fn limit(&self) -> Result<Option<Limit>> {
        match &self.place {
            Some(place) => Ok(Some(place.measure().await?)),
            None => Ok(None),
        }
    }

    async fn engine(&self, workload: Workload) -> Result<Measured> {
        let prefix = format!("{}-{}-", workload.name(), uuid::Uuid::new_v4().simple());
        let mut bench = workloads::Bench::new(self.start(workload).await?, prefix, self.size);
        let measured = if workload == Workload::W6 {
            let (measured, last) = self.cold(bench).await?;
            bench = last;
            measured
        } else {
            bench.measure(workload).await
        };
        let tidy = if self.database.is_sole() { Ok(()) } else { bench.tidy_up().await };
        bench.engine.shutdown().await;
        // Why nothing was measured is the cause; that it could not be tidied up follows from it.
        let measured = measured?;
        tidy.context("the runs that were measured cannot be deleted")?;
        Ok(measured)
    }

    /// W6: each time with an engine that never had the run.
    async fn cold(&self, mut bench: workloads::Bench) -> Result<(Result<Measured>, workloads::Bench)> {
        let id = match bench.prepare_w6().await {
            Ok(id) => id,
            Err(error) => return Ok((Err(error), bench)),
        };
        let mut measured = Vec::new();
        for _ in 0..workloads::w6_rounds(self.size) {
            bench.engine.shutdown().await;
            bench = bench.with(self.start(Workload::W6).await?);
            match bench.w6(&id).await {
                Ok(one) => measured.push(one),
                Err(error) => return Ok((Err(error), bench)),
            }
        }
        Ok((Ok(workloads::middle(&measured)), bench))
    }

    async fn start(&self, workload: Workload) -> Result<Engine> {
        let builder = match (&self.database, &self.scratch) {
            (Database::Postgres(url), _) => Outlast::postgres(url),
            (Database::Sqlite(_), Some(scratch)) => Outlast::sqlite(scratch.0.join(format!("{}.db", workload.name()))),
            (Database::Sqlite(path), None) => Outlast::sqlite(path),
        };
        let engine = workloads::register(builder).start().await.map_err(|error| refused(error, &self.database))?;
        if self.database.is_sole() {
            return Ok(engine);
        }
        // Others have runs there, too.
        Ok(engine.in_namespace(NAMESPACE).await?)
    }
}

fn for_people(figures: &[Figure]) -> String {
    let lines = figures.iter().map(|figure| {
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| value.to_string());
        let value = format!("{} {}", figure.value, figure.unit);
        vec![figure.bench.to_owned(), figure.store.to_owned(), value, number(figure.bare), number(figure.ratio)]
    });
    table(&["WORKLOAD", "STORE", "ENGINE", "LIMIT", "RATIO"], lines)
}

/// A folder on the disk of a SQLite file, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(database: &Database) -> Result<Option<Scratch>> {
        let Some(parent) = database.folder()? else { return Ok(None) };
        let folder = parent.join(format!(".outlast-bench-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&folder)
            .map_err(|error| Stop::new(Exit::Error, format!("{} cannot be made: {error}", folder.display())))?;
        Ok(Some(Scratch(folder.canonicalize().context("the folder is gone")?)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whatever is left is named after what it is.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_noticed() {
        let beyond = |workload, value, bare| Figure::new(workload, "sqlite", value, bare).is_beyond(workload);
        assert!(beyond(Workload::W1, 1_200.0, Some(1_000.0)));
        assert!(!beyond(Workload::W1, 900.0, Some(1_000.0)));
        assert!(beyond(Workload::W3, 0.5, Some(1.0)));
        assert!(!beyond(Workload::W3, 2.0, Some(1.0)));
        assert!(!beyond(Workload::W1, 900.0, None));
    }
}
