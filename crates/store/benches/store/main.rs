//! `cargo xtask bench store`: the stores against what the bare drivers and the disk can do, all in one run on one disk.
//!
//! One JSON object per line: `{"bench","store","value","unit","bare","ratio"}`. A figure alone says little on a shared
//! machine; the ratio within one run does. Every commit is durable (SQLite `synchronous=FULL`, PostgreSQL `fsync=on`)
//! before it is acknowledged.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first error")]

#[cfg(feature = "postgres")]
mod bare_postgres;
mod bare_sqlite;
mod disk;
mod ours;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "postgres")]
use outlast_store::{PostgresOptions, PostgresStore};
use outlast_store::{SqliteOptions, SqliteStore, Store};

use report::{Report, median};

/// How long one sample of a rate takes.
const SAMPLE: Duration = Duration::from_millis(1_500);
/// Samples per figure; ours and bare take turns.
const ROUNDS: usize = 5;
/// Committers in the concurrent figures.
const COMMITTERS: usize = 256;
/// Commits per transaction in the bare concurrent figure.
const BARE_GROUP: usize = 100;
/// Connections of the bare PostgreSQL figure.
#[cfg(feature = "postgres")]
const BARE_CONNECTIONS: usize = 8;

struct Options {
    stores: Vec<String>,
    benches: Vec<String>,
    waiting: usize,
}

fn main() {
    let Some(options) = options() else {
        eprintln!(
            "usage: cargo xtask bench store [--store sqlite|postgres] [--only disk|commit|claim_1m|load_10k] [--waiting N]"
        );
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dir = std::env::var_os("OUTLAST_BENCH_DIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let dir = tempfile::Builder::new().prefix("outlast-bench-").tempdir_in(dir).unwrap();
    let report = Report;
    if wants(&options.benches, "disk") {
        report.plain("disk", "disk", disk::appends_per_second(dir.path(), SAMPLE), "appends/s");
    }
    if wants(&options.stores, "sqlite") {
        runtime.block_on(sqlite(&options, dir.path(), &report));
    }
    #[cfg(feature = "postgres")]
    if wants(&options.stores, "postgres") {
        match std::env::var("OUTLAST_TEST_POSTGRES") {
            Ok(url) => runtime.block_on(postgres(&options, &url, &report)),
            Err(_) => eprintln!("postgres is left out: run `cargo xtask bench store`, or set OUTLAST_TEST_POSTGRES"),
        }
    }
}

fn options() -> Option<Options> {
    let mut options = Options { stores: Vec::new(), benches: Vec::new(), waiting: 1_000_000 };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--store" => options.stores.push(args.next()?),
            "--only" => options.benches.push(args.next()?),
            "--waiting" => options.waiting = args.next()?.parse().ok()?,
            // Cargo says so to every benchmark.
            "--bench" => {}
            _ => return None,
        }
    }
    Some(options)
}

fn wants(chosen: &[String], name: &str) -> bool {
    chosen.is_empty() || chosen.iter().any(|choice| choice == name)
}

async fn sqlite(options: &Options, dir: &std::path::Path, report: &Report) {
    let open = async |name: &str| {
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(dir.join(name), SqliteOptions::default()).await.unwrap());
        store
    };
    if wants(&options.benches, "commit") {
        let store = open("commit.db").await;
        let driver = ours::Committers::prepare(store, COMMITTERS).await;
        let mut bare = bare_sqlite::Bare::open(&dir.join("bare.db"), COMMITTERS);
        let mut samples = report::Commits::default();
        for _ in 0..ROUNDS {
            samples.bare_1.push(bare.commits_per_second(1, SAMPLE));
            samples.ours_1.push(driver.commits_per_second(1, SAMPLE).await);
            samples.bare_100.push(bare.commits_per_second(BARE_GROUP, SAMPLE));
            samples.ours_256.push(driver.commits_per_second(COMMITTERS, SAMPLE).await);
        }
        report.commits("sqlite", &samples);
    }
    if wants(&options.benches, "claim_1m") {
        let (few, many) = (open("few.db").await, open("many.db").await);
        report.claim("sqlite", &ours::claim_samples(few, many, options.waiting).await);
    }
    if wants(&options.benches, "load_10k") {
        let store = open("load.db").await;
        let run = ours::journal_of(&*store, 10_000).await;
        let bare = bare_sqlite::Reader::open(&dir.join("load.db"));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS * 4 {
            theirs.push(bare.read_journal(10_000));
            ours.push(ours::load(&*store, &run, 10_000).await);
        }
        report.times("load_10k", "sqlite", median(&ours), median(&theirs), "ms");
    }
}

#[cfg(feature = "postgres")]
async fn postgres(options: &Options, url: &str, report: &Report) {
    let open = async |schema: &str| {
        let schema = Some(format!("bench_{schema}_{}", std::process::id()));
        let options = PostgresOptions { schema, ..PostgresOptions::default() };
        let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(url, options).await.unwrap());
        store
    };
    if wants(&options.benches, "commit") {
        let driver = ours::Committers::prepare(open("commit").await, COMMITTERS).await;
        let bare = bare_postgres::Bare::connect(url, BARE_CONNECTIONS, BARE_GROUP).await;
        let mut samples = report::Commits::default();
        for _ in 0..ROUNDS {
            samples.bare_1.push(bare.commits_per_second(1, 1, SAMPLE).await);
            samples.ours_1.push(driver.commits_per_second(1, SAMPLE).await);
            samples.bare_100.push(bare.commits_per_second(BARE_CONNECTIONS, BARE_GROUP, SAMPLE).await);
            samples.ours_256.push(driver.commits_per_second(COMMITTERS, SAMPLE).await);
        }
        report.commits("postgres", &samples);
    }
    if wants(&options.benches, "claim_1m") {
        let (few, many) = (open("few").await, open("many").await);
        report.claim("postgres", &ours::claim_samples(few, many, options.waiting).await);
    }
    if wants(&options.benches, "load_10k") {
        let store = open("load").await;
        let run = ours::journal_of(&*store, 10_000).await;
        let schema = format!("bench_load_{}", std::process::id());
        let bare = bare_postgres::Reader::connect(url, &schema).await;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS * 4 {
            theirs.push(bare.read_journal(10_000).await);
            ours.push(ours::load(&*store, &run, 10_000).await);
        }
        report.times("load_10k", "postgres", median(&ours), median(&theirs), "ms");
    }
}
