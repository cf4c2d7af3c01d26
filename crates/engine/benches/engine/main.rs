//! `cargo xtask bench engine`: whole workflows against a storage-only ceiling, all in one run on one disk.
//!
//! One JSON object per line: `{"bench","store","value","unit","bare","ratio"}`. The ceiling writes just the rows a journal
//! must have, in ideal groups, with no workflow at all. Every commit is durable (SQLite `synchronous=FULL`, PostgreSQL
//! `fsync=on`) before it is acknowledged. For W1, W2 and W7 the ratio is ours to the ceiling and more is better; for W3, W4, W6
//! and the wake of W7 it is our time to the bare time and less is better. For `W2_script` the other side is code that has the
//! same tasks done, and more is better; for `W6_script` it is the same script near its beginning, and less is better. The wake of
//! W7 is against bare commits that take turns with it: like the end of a task, each follows another commit at once.
//!
//! `noisy_burst` and `noisy_sparse` (`--only noisy`): the p99 of a task's time in 99 quiet namespaces beside a noisy one, against the
//! same without it, in turn; less is better, and it must stay below 3.
//!
//! `--only flow_map` and `--only flow_resume` (both: `cargo xtask bench flow`): a foreach over 10,000 items with two children that
//! do nothing. `flow_map` and `flow_map_wide` (one at a time, a hundred at once) are against the map of code, and more is better;
//! everything else is time or memory, and less is better: `flow_memory` is what 7,900 iterations leave behind, against that map; `flow_resume_*` is a wake
//! in item 9,999 against one in item 10, and against reading the outputs; `flow_replay` is that wake without snapshots, against
//! loading the journal, and `flow_replay_linear` against the wake at a quarter of the way.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first error")]

mod ceiling_postgres;
mod ceiling_sqlite;
mod flows;
mod neighbours;
mod report;
mod scripts;
mod sleepers;
mod tasks;
mod workflows;
mod workloads;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast::Outlast;
use outlast_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store};

use report::{Report, median};

/// Samples per figure; ours and bare take turns.
const ROUNDS: usize = 5;
/// The same for a figure that takes long.
const SCRIPT_ROUNDS: usize = 3;

struct Options {
    stores: Vec<String>,
    benches: Vec<String>,
    sleepers: usize,
}

/// Where an engine of the benchmark keeps its runs.
#[derive(Clone)]
pub(crate) enum Place {
    Sqlite(PathBuf),
    Postgres { url: String, schema: String },
}

impl Place {
    pub(crate) async fn engine(&self) -> Outlast {
        match self {
            Place::Sqlite(path) => Outlast::sqlite(path),
            Place::Postgres { .. } => Outlast::store(self.store().await),
        }
    }

    /// The store alone.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self {
            Place::Sqlite(path) => Arc::new(SqliteStore::open(path, SqliteOptions::default()).await.unwrap()),
            Place::Postgres { url, schema } => {
                let options = PostgresOptions { schema: Some(schema.clone()), ..PostgresOptions::default() };
                Arc::new(PostgresStore::connect(url, options).await.unwrap())
            }
        }
    }

    /// Another one beside it, empty.
    pub(crate) fn fresh_sibling(&self) -> Place {
        match self {
            Place::Sqlite(file) => Place::Sqlite(file.with_extension("second.db")),
            Place::Postgres { url, schema } => Place::Postgres { url: url.clone(), schema: format!("{schema}_second") },
        }
    }

    pub(crate) fn fresh(&self, name: &str) -> Place {
        match self {
            Place::Sqlite(dir) => Place::Sqlite(dir.join(format!("{name}.db"))),
            Place::Postgres { url, schema } => {
                Place::Postgres { url: url.clone(), schema: format!("{schema}_{}", name.to_lowercase()) }
            }
        }
    }
}

fn main() {
    let Some(options) = options() else {
        eprintln!(
            "usage: cargo xtask bench engine [--store sqlite|postgres] [--only W1|W2|W2_script|…|W7|noisy|flow_map|flow_resume] [--sleepers N]"
        );
        std::process::exit(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let dir = std::env::var_os("OUTLAST_BENCH_DIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let dir = tempfile::Builder::new().prefix("outlast-bench-").tempdir_in(dir).unwrap();
    if wants(&options.stores, "sqlite") {
        runtime.block_on(sqlite(&options, dir.path()));
    }
    if wants(&options.stores, "postgres") {
        match std::env::var("OUTLAST_TEST_POSTGRES") {
            Ok(url) => runtime.block_on(postgres(&options, &url)),
            Err(_) => eprintln!("postgres is left out: run `cargo xtask bench engine`, or set OUTLAST_TEST_POSTGRES"),
        }
    }
}

fn options() -> Option<Options> {
    let mut options = Options { stores: Vec::new(), benches: Vec::new(), sleepers: 100_000 };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--store" => options.stores.push(args.next()?),
            "--only" => options.benches.push(args.next()?),
            "--sleepers" => options.sleepers = args.next()?.parse().ok()?,
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

async fn sqlite(options: &Options, dir: &Path) {
    let ceiling = Ceiling::Sqlite(ceiling_sqlite::Ceiling::open(&dir.join("ceiling.db")));
    measure(options, &Place::Sqlite(dir.to_owned()), ceiling, Report { store: "sqlite" }).await;
}

async fn postgres(options: &Options, url: &str) {
    let place = Place::Postgres { url: url.to_owned(), schema: format!("engine_{}", std::process::id()) };
    let ceiling = Ceiling::Postgres(ceiling_postgres::Ceiling::connect(url).await);
    measure(options, &place, ceiling, Report { store: "postgres" }).await;
}

async fn measure(options: &Options, place: &Place, mut ceiling: Ceiling, report: Report) {
    if wants(&options.benches, "W1") {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(ceiling.w1().await);
            ours.push(workloads::w1(&place.fresh("w1")).await);
        }
        report.against("W1", median(&ours), median(&bare), "steps/s");
    }
    if wants(&options.benches, "W2") {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(ceiling.w2().await);
            ours.push(workloads::w2(&place.fresh("w2")).await);
        }
        report.against("W2", median(&ours), median(&bare), "runs/s");
    }
    if wants(&options.benches, "W2_script") {
        let (mut script, mut code) = (Vec::new(), Vec::new());
        for _ in 0..SCRIPT_ROUNDS {
            code.push(scripts::w2(&place.fresh("w2_code"), "code").await);
            script.push(scripts::w2(&place.fresh("w2_script"), "script").await);
        }
        report.against("W2_script", median(&script), median(&code), "runs/s");
    }
    if wants(&options.benches, "W3") {
        let bare = ceiling.w3().await;
        let ours = workloads::w3(&place.fresh("w3")).await;
        report.against("W3", ours.p50, bare, "ms p50");
        report.plain("W3_p99", ours.p99, "ms");
    }
    if wants(&options.benches, "W4") {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(ceiling.w4().await);
            ours.push(workloads::w4(&place.fresh("w4")).await);
        }
        report.against("W4", median(&ours), median(&bare), "ms");
    }
    if wants(&options.benches, "W5") {
        sleepers::w5(&place.fresh("w5"), &report, options.sleepers).await;
    }
    if wants(&options.benches, "W6") {
        let place = place.fresh("w6");
        workloads::prepare_w6(&place).await;
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS * 4 {
            bare.push(ceiling.read_journal(&place, workloads::W6_STEPS).await);
            ours.push(workloads::w6(&place).await);
        }
        report.against("W6", median(&ours), median(&bare), "ms");
    }
    if wants(&options.benches, "W6_script") {
        let (short, long) = scripts::resume(&place.fresh("w6_script")).await;
        report.against("W6_script", long, short, "ms p50");
    }
    if wants(&options.benches, "flow_map") {
        flows::measure_map(place, &report).await;
    }
    if wants(&options.benches, "flow_resume") {
        flows::measure_resume(place, &report).await;
    }
    if wants(&options.benches, "noisy") {
        neighbours::measure(&place.fresh("noisy"), &report).await;
    }
    if wants(&options.benches, "W7") {
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(ceiling.w7().await);
            ours.push(tasks::w7(&place.fresh("w7")).await);
        }
        report.against("W7", median(&ours), median(&bare), "tasks/s");
        let (ours, bare) = tasks::wake(&place.fresh("w7_wake"), &mut ceiling).await;
        report.against("W7_wake", ours, bare, "ms p50");
    }
}

/// What a bare driver can do.
enum Ceiling {
    Sqlite(ceiling_sqlite::Ceiling),
    Postgres(ceiling_postgres::Ceiling),
}

impl Ceiling {
    async fn w1(&mut self) -> f64 {
        match self {
            Ceiling::Sqlite(ceiling) => ceiling.w1(),
            Ceiling::Postgres(ceiling) => ceiling.w1().await,
        }
    }

    async fn w2(&mut self) -> f64 {
        match self {
            Ceiling::Sqlite(ceiling) => ceiling.w2(),
            Ceiling::Postgres(ceiling) => ceiling.w2().await,
        }
    }

    async fn w3(&mut self) -> f64 {
        match self {
            Ceiling::Sqlite(ceiling) => ceiling.w3(),
            Ceiling::Postgres(ceiling) => ceiling.w3().await,
        }
    }

    async fn commit_once(&mut self) -> f64 {
        match self {
            Ceiling::Sqlite(ceiling) => ceiling.commit_once(),
            Ceiling::Postgres(ceiling) => ceiling.commit_once().await,
        }
    }

    async fn w4(&mut self) -> f64 {
        match self {
            Ceiling::Sqlite(ceiling) => ceiling.w4(),
            Ceiling::Postgres(ceiling) => ceiling.w4().await,
        }
    }

    async fn w7(&mut self) -> f64 {
        match self {
            Ceiling::Sqlite(ceiling) => ceiling.w7(),
            Ceiling::Postgres(ceiling) => ceiling.w7().await,
        }
    }

    async fn read_journal(&self, place: &Place, events: usize) -> f64 {
        match (self, place) {
            (Ceiling::Sqlite(_), Place::Sqlite(file)) => ceiling_sqlite::read_journal(file, events),
            (Ceiling::Postgres(ceiling), Place::Postgres { schema, .. }) => ceiling.read_journal(schema, events).await,
            _ => unreachable!("a ceiling is measured where its engine is"),
        }
    }
}
