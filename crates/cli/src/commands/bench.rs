//! `outlast bench`: what the disk allows and what the engine does with it, on this machine.

mod disk;
mod workloads;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use outlast::{Engine, Outlast};
use serde::Serialize;

use crate::args::Global;
use crate::commands::run::refused;
use crate::database::{Database, DatabaseArgs};
use crate::exit::{Exit, Stop};
use crate::output::{self, Format, note, table};

/// Measure the disk and the engine on this machine, side by side
#[derive(Debug, Args)]
#[command(
    after_help = "W1: one run of a thousand steps, each durable before the next. W2: runs of five steps, 256 at once. W3: from \
                        the start to the result of a run with one step, one at a time. The disk's limit is what appending and \
                        syncing as little as a step must write gives, without an engine. Nothing in an existing database is \
                        touched: beside a SQLite file a folder is made, and removed; on PostgreSQL the runs have a namespace of \
                        their own, and are deleted."
)]
pub(crate) struct Bench {
    /// What to measure
    #[arg(short, long, value_name = "W1,W2,…", value_delimiter = ',', default_value = "W1,W2,W3", value_parser = parse_workload)]
    workload: Vec<String>,
    #[command(flatten)]
    database: DatabaseArgs,
}

fn parse_workload(text: &str) -> Result<String, String> {
    let known = ["W1", "W2", "W3"].into_iter().find(|known| known.eq_ignore_ascii_case(text));
    known.map(str::to_owned).ok_or_else(|| "there are W1, W2 and W3".to_owned())
}

/// A figure, as `cargo xtask bench` writes it.
#[derive(Serialize)]
struct Figure {
    bench: &'static str,
    store: &'static str,
    value: f64,
    unit: &'static str,
    /// The disk's limit.
    bare: Option<f64>,
    ratio: Option<f64>,
}

impl Figure {
    fn new(bench: &'static str, store: &'static str, unit: &'static str, value: f64, bare: Option<f64>) -> Figure {
        let ratio = bare.filter(|bare| *bare > 0.0).map(|bare| round(value / bare));
        Figure { bench, store, value: round(value), unit, bare: bare.map(round), ratio }
    }
}

fn round(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { (value * 1_000.0).round() / 1_000.0 }
}

pub(crate) async fn bench(asked: Bench, global: &Global) -> Result<Exit> {
    let database = asked.database.get();
    let scratch = Scratch::beside(&database)?;
    let disk = scratch.as_ref().map(|scratch| disk::measure(&scratch.0)).transpose()?;
    let mut figures = Vec::new();
    for workload in &asked.workload {
        let (engine, store) = start(&database, scratch.as_ref(), workload).await?;
        if global.output == Format::Table {
            note(&format!("{workload} …"));
        }
        let measured = match workload.as_str() {
            "W1" => workloads::w1(&engine).await.map(|value| ("steps/s", value, disk.map(|disk| disk.syncs))),
            "W2" => workloads::w2(&engine).await.map(|value| ("runs/s", value, disk.map(|disk| disk.grouped_runs))),
            _ => workloads::w3(&engine).await.map(|value| ("ms (p50)", value, disk.map(|disk| disk.two_syncs_ms))),
        };
        let cleaned = if database.is_sole() { Ok(()) } else { workloads::delete_all(&engine).await };
        engine.shutdown().await;
        cleaned?;
        let (unit, value, bare) = measured?;
        let name = ["W1", "W2", "W3"].into_iter().find(|name| name == workload).unwrap_or("W1");
        figures.push(Figure::new(name, store, unit, value, bare));
    }
    // One per line, as `cargo xtask bench` has them.
    let format = if global.output == Format::Json { Format::Jsonl } else { global.output };
    output::many(format, &figures, for_people)?;
    Ok(Exit::Done)
}

async fn start(database: &Database, scratch: Option<&Scratch>, workload: &str) -> Result<(Engine, &'static str)> {
    let (builder, store) = match (database, scratch) {
        (Database::Postgres(url), _) => (Outlast::postgres(url), "postgres"),
        (Database::Sqlite(_), Some(scratch)) => (Outlast::sqlite(scratch.0.join(format!("{workload}.db"))), "sqlite"),
        (Database::Sqlite(path), None) => (Outlast::sqlite(path), "sqlite"),
    };
    let engine = workloads::register(builder).start().await.map_err(|error| refused(error, database))?;
    if database.is_sole() {
        return Ok((engine, store));
    }
    // Others have runs there, too.
    let namespace = format!("bench-{}", uuid::Uuid::new_v4().simple());
    Ok((engine.in_namespace(&namespace).await?, store))
}

fn for_people(figures: &[Figure]) -> String {
    let lines = figures.iter().map(|figure| {
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| value.to_string());
        let value = format!("{} {}", figure.value, figure.unit);
        vec![figure.bench.to_owned(), figure.store.to_owned(), value, number(figure.bare), number(figure.ratio)]
    });
    table(&["WORKLOAD", "STORE", "ENGINE", "DISK", "RATIO"], lines)
}

/// A folder on the disk of a SQLite file, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(database: &Database) -> Result<Option<Scratch>> {
        let Database::Sqlite(path) = database else { return Ok(None) };
        let parent = path.parent().filter(|folder| folder.is_dir()).unwrap_or(Path::new("."));
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
