//! The plans of every statement on a hot path, asserted: on empty tables, where all indexes look alike and where a plan
//! that is kept may well be made, with 100,000 rows and no statistics, and with a queue of tasks that was emptied while somebody held an
//! old snapshot: full of what is dead, and with statistics that know of no row. It is also asserted that what wakes runs
//! does not take long; `OUTLAST_PLAN_ROWS=1000000` says so of a million.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use outlast_core::id::{ClaimId, Index, NodeId};
use tokio_postgres::{Client, NoTls};

use super::options::PostgresOptions;
use super::{admit, claim, definition, fetch, flush, load, outlook, retention, serve, session, sweep, task, worker};
use crate::{Claim, Claimed, Clock, Load, LoadFrom, ManualClock, Pick, PostgresStore, Serves, Store};

/// Statements, and the indexes each may use: all of them, and no other. A star: read in its order, from its beginning;
/// everything else is looked up.
fn expected() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    let mut statements = vec![
        ("claim: held", claim::HELD, &["run_owned"][..]),
        ("claim: lines", claim::LINES, &["run_claimable", "run_claimable*"]),
        ("claim: ready", claim::READY, &["run_claimable"]),
        ("claim: lapsed owners", claim::LAPSED, &["lease_open*", "run_owned"]),
        ("claim: orphaned", claim::ORPHANED, &["run_owned"]),
        ("claim: wakes", claim::WAKES, &["run_woken"]),
        ("versions: unserved", serve::UNSERVED, &["run_claimable", "run_claimable*", "run_pkey", "served_pkey"]),
        ("versions: orphaned", serve::ORPHANED, &["run_owned", "served_pkey"]),
        ("versions: forget", serve::FORGET, &["served_at", "served_pkey"]),
        (
            "outlook",
            outlook::OUTLOOK,
            &[
                "gate_due*",
                "held_fresh*",
                "held_line*",
                "lease_open*",
                "run_claimable*",
                "run_owned",
                "run_pkey",
                "slot_done*",
                "task_ready",
                "task_until",
                "timer_due*",
            ],
        ),
        ("sweep: due", sweep::DUE, &["run_pkey", "timer_due"]),
        ("sweep: next due", sweep::NEXT_DUE, &["timer_due*"]),
        ("sweep: drain leases", sweep::DRAIN_LEASES, &["lease_open*", "lease_pkey", "run_owned"]),
        ("sweep: forget transactions", sweep::FORGET_TXNS, &["txn_at", "txn_pkey"]),
        ("load: runs", load::RUNS, &["run_input_pkey", "run_ns_id_key", "snapshot_pkey"]),
        ("load: events", load::EVENTS, &["event_pkey"]),
        ("load: inbox", load::INBOX, &["inbox_pkey"]),
        ("definitions: known", definition::KNOWN, &["definition_latest", "definition_pkey"]),
        ("definitions: one", definition::ONE, &["definition_latest", "definition_pkey"]),
        ("definitions: current", definition::CURRENT, &["definition_latest"]),
        ("definitions: news", definition::LIST, &["definition_latest", "definition_revision_key"]),
        ("definitions: versions", definition::VERSIONS, &["definition_latest"]),
        ("tasks: held", task::HELD, &["task_held"]),
        ("workers: holds", worker::HOLDS, &["task_held"]),
        ("tasks: ready", task::READY, &["task_ready"]),
        ("tasks: promote", task::PROMOTE, &["task_pkey", "task_until"]),
        ("tasks: heads", task::lines::HEADS, &["task_ready"]),
        ("tasks: ends", task::lines::ENDS, &["task_until"]),
        ("tasks: gaps", task::lines::GAPS, &["task_ready"]),
        ("tasks: bury old", retention::BURY_OLD, &["task_died", "task_pkey"]),
        ("tasks: bury of", retention::BURY_OF, &["run_pkey", "task_grave", "task_pkey"]),
    ];
    statements.extend(fetch::statements());
    statements.extend(flush::statements());
    statements.extend(admit::statements());
    statements.push(("group: advance", super::group::advance::ADVANCE, &["run_ns_id_key"]));
    statements.push(("group: advance one", super::group::advance::ADVANCE_ONE, &["run_ns_id_key"]));
    statements
}

fn url() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES")
}

async fn connect(schema: &str) -> Client {
    let url = url();
    let options = PostgresOptions { schema: Some(schema.to_owned()), ..PostgresOptions::default() };
    drop(PostgresStore::connect(&url, options.clone()).await.unwrap());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "the connection of a test")]
    tokio::spawn(connection);
    client.batch_execute(&session::settings(&options)).await.unwrap();
    client
}

async fn explain(client: &Client, sql: &str) -> String {
    let params = client.prepare(sql).await.unwrap().params().len();
    let nulls = vec!["NULL"; params].join(", ");
    let arguments = if params == 0 { String::new() } else { format!("({nulls})") };
    client.batch_execute(&format!("PREPARE explained AS {sql}")).await.unwrap();
    let rows = client.query(&format!("EXPLAIN EXECUTE explained{arguments}"), &[]).await.unwrap();
    client.batch_execute("DEALLOCATE explained").await.unwrap();
    rows.iter().map(|row| row.get::<_, &str>(0)).collect::<Vec<_>>().join("\n")
}

/// The indexes a plan reads, with a star if not by a condition.
fn indexes(plan: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = plan.lines().collect();
    let named = |(at, line): (usize, &&str)| {
        let name = line.split(" using ").nth(1)?.split_whitespace().next()?;
        let looked_up = lines.get(at + 1).is_some_and(|next| next.contains("Index Cond"));
        Some(format!("{name}{}", if looked_up { "" } else { "*" }))
    };
    lines.iter().enumerate().filter_map(named).collect()
}

async fn check_all(client: &Client, when: &str) {
    check(client, when, |_| true).await;
}

async fn check(client: &Client, when: &str, is_asked: impl Fn(&str) -> bool) {
    let mut wrong = String::new();
    for (name, sql, expected) in expected().into_iter().filter(|(name, ..)| is_asked(name)) {
        let plan = explain(client, sql).await;
        let expected: BTreeSet<String> = expected.iter().map(ToString::to_string).collect();
        if indexes(&plan) != expected || plan.contains("Seq Scan") || plan.contains("Bitmap") {
            wrong.push_str(&format!("\n{name} ({when}) should use {expected:?}:\n{plan}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// As many rows as make a wrong index hurt, without a single statistic.
const FILL: &str = "
    INSERT INTO run SELECT 1, i, 'run-' || i, 'w', '1', CASE WHEN i % 2 = 0 THEN 2 ELSE 5 END, 0, 1, 1,
        CASE WHEN i % 10 = 0 THEN i % 7 + 1 END, CASE WHEN i % 10 = 0 THEN 1 END, CASE WHEN i % 4 = 0 THEN i END, 10, 0,
        NULL, NULL, NULL, NULL, NULL, i, CASE WHEN i % 2 = 1 THEN i END, NULL, NULL, 1, 1, 0, false, NULL, ''
        FROM generate_series(1, $rows) i;
    INSERT INTO served SELECT 'w' || i, '1', i FROM generate_series(1, 1000) i;
    INSERT INTO lease (node, until) SELECT 'n' || i, i FROM generate_series(1, 100) i;
    INSERT INTO event SELECT 1, i, 0, 0, 20, 1, 'k', i, NULL, 'x' FROM generate_series(1, $rows) i;
    INSERT INTO timer SELECT 1, i, 'k', 0, i FROM generate_series(1, $rows) i;
    INSERT INTO wait SELECT 1, i, 'k', 0, 1, 's', NULL, NULL, NULL, NULL, i, NULL FROM generate_series(1, $rows) i;
    INSERT INTO inbox SELECT 1, i, 0, 0, NULL, 's', NULL, i, NULL, 'x' FROM generate_series(1, $rows) i;
    INSERT INTO delivered SELECT 1, i, 'd' FROM generate_series(1, $rows) i;
    INSERT INTO attribute SELECT 1, i, 'a', 'v' || i FROM generate_series(1, $rows) i;
    INSERT INTO task SELECT 1, 'task-' || i, 'run-' || i, 'k', 't', 'q', 10, '', i % 4, 0, 0,
        CASE WHEN i % 4 = 1 THEN 'w' END, CASE WHEN i % 4 = 1 THEN i END, i, CASE WHEN i % 2 = 1 THEN i END, false,
        NULL, NULL, 'run-' || i, i, CASE WHEN i % 4 = 2 THEN i END, NULL, NULL, NULL FROM generate_series(1, $rows) i;
    INSERT INTO held SELECT 1, i, i, 10, i, CASE WHEN i % 2 = 0 THEN 'c:k' || i % 100 END, 'c:k' || i % 100, '[[],null]'
        FROM generate_series(1, $rows) i;
    INSERT INTO gate SELECT 1, 'c:k' || i, '{}', 1, NULL, 0, NULL FROM generate_series(1, $rows / 10) i;
    INSERT INTO slot SELECT 1, i, 'c:k', i % 100 = 0 FROM generate_series(1, $rows) i;
    INSERT INTO flow SELECT 1, 'c:k', i::text, i FROM generate_series(1, $rows / 10) i;
    INSERT INTO start_key SELECT 1, i % 3, i::text, 'run-' || i, i FROM generate_series(1, $rows) i;
    INSERT INTO definition SELECT 1, 'w' || i % 1000, i::text, 0, 'f', i, i, 'x' FROM generate_series(1, $rows) i;";

/// How many runs, and rows of all other kinds.
fn rows() -> u32 {
    let asked = std::env::var("OUTLAST_PLAN_ROWS").ok().map(|rows| rows.parse());
    asked.map_or(100_000, |rows| rows.expect("OUTLAST_PLAN_ROWS is a number"))
}

/// An empty schema whose tables are never analyzed.
async fn unanalyzed(schema: &str) -> Client {
    let client = connect(schema).await;
    let tables = [
        "run",
        "event",
        "timer",
        "wait",
        "inbox",
        "delivered",
        "attribute",
        "task",
        "lease",
        "txn",
        "served",
        "held",
        "gate",
        "slot",
        "flow",
        "start_key",
        "definition",
    ];
    for table in tables {
        let sql = format!("ALTER TABLE {table} SET (autovacuum_enabled = false)");
        client.batch_execute(&sql).await.unwrap();
    }
    client
}

async fn fill(client: &Client) {
    client.batch_execute(&FILL.replace("$rows", &rows().to_string())).await.unwrap();
}

async fn assert_no_statistics(client: &Client, schema: &str) {
    let sql = "SELECT count(*) FROM pg_stats WHERE schemaname = $1";
    assert_eq!(client.query_one(sql, &[&schema]).await.unwrap().get::<_, i64>(0), 0, "statistics were gathered");
}

/// Removes every task, and has the server look at what is left, while somebody may still see all of it.
async fn empty_queue(client: &Client, schema: &str) {
    let (holder, connection) = tokio_postgres::connect(&url(), NoTls).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "the connection of a test")]
    tokio::spawn(connection);
    // tidy: constant sql
    let hold = format!("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM {schema}.task");
    holder.batch_execute(&hold).await.unwrap();
    client.batch_execute("DELETE FROM task").await.unwrap();
    client.batch_execute("VACUUM ANALYZE task").await.unwrap();
    let sql = "SELECT reltuples::bigint, relpages FROM pg_class WHERE oid = 'task'::regclass";
    let row = client.query_one(sql, &[]).await.unwrap();
    let (rows, pages): (i64, i32) = (row.get(0), row.get(1));
    assert!(rows == 0 && pages > 500, "{rows} rows and {pages} pages");
}

/// Statements about the tasks of runs that end or were deleted, which no claim waits for: with an empty queue they may walk
/// through an index of those that belong to runs.
const SELDOM: [&str; 3] = ["fetch: tasks of runs", "flush: detach tasks", "tasks: bury of"];

#[tokio::test]
async fn the_queue_uses_its_indexes_when_it_was_emptied_and_nothing_dead_can_be_removed() {
    let schema = format!("emptied_{}", uuid::Uuid::new_v4().simple());
    let client = unanalyzed(&schema).await;
    fill(&client).await;
    empty_queue(&client, &schema).await;
    check(&client, "emptied", |name| !SELDOM.contains(&name)).await;
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}

#[tokio::test]
async fn every_hot_statement_uses_its_index_when_tables_are_empty_and_when_they_are_full() {
    let schema = format!("plans_{}", uuid::Uuid::new_v4().simple());
    let client = unanalyzed(&schema).await;
    check_all(&client, "empty").await;
    fill(&client).await;
    check_all(&client, "full").await;
    assert_no_statistics(&client, &schema).await;
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}

/// What a sweep, a claim, a look for wakes and a load may take, nearly always. A wrong plan takes a hundred times as long.
const WAKE_P99: Duration = Duration::from_millis(250);

/// The figure that 99 of 100 do not exceed.
fn p99(mut took: Vec<Duration>) -> Duration {
    took.sort();
    took[took.len() * 99 / 100]
}

/// Row 10: without statistics a query took half a minute, and parents were never woken. Here timers fire, and the runs
/// they wake are claimed and loaded.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "what is measured is how long a server really takes")]
async fn what_wakes_runs_is_quick_among_very_many_rows_without_statistics() {
    let schema = format!("wakes_{}", uuid::Uuid::new_v4().simple());
    let client = unanalyzed(&schema).await;
    fill(&client).await;
    let clock = ManualClock::at(i64::from(rows()));
    let options =
        PostgresOptions { schema: Some(schema.clone()), clock: Clock::Manual(clock), ..PostgresOptions::default() };
    let store = PostgresStore::connect(&url(), options).await.unwrap();
    let lease = store.register(NodeId::new("awake").unwrap(), Duration::from_secs(3_600)).await.unwrap().id;
    let mut took: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for n in 0..200 {
        let begun = Instant::now();
        let swept = store.sweep(16).await.unwrap();
        took.entry("sweep").or_default().push(begun.elapsed());
        assert!(swept.fired > 0, "everything is due");

        let begun = Instant::now();
        let (id, pick, serves) = (ClaimId(n), Pick::Ready, Serves::Everything);
        let claimed = store.claim(Claim { lease, id, limit: 16, pick, serves }).await.unwrap();
        took.entry("claim").or_default().push(begun.elapsed());
        assert_eq!(claimed.len(), 16);
        let begun = Instant::now();
        store.wakes(lease, 16).await.unwrap();
        took.entry("wakes").or_default().push(begun.elapsed());

        let load = |claimed: &Claimed| Load { run: claimed.run.clone(), from: LoadFrom::Index(Index(0)) };
        let begun = Instant::now();
        let loaded = store.load(claimed.iter().map(load).collect()).await;
        took.entry("load").or_default().push(begun.elapsed());
        assert!(loaded.iter().all(|loaded| loaded.as_ref().is_ok_and(|loaded| loaded.events.len() == 1)), "{loaded:?}");
    }
    assert_no_statistics(&client, &schema).await;
    for (what, took) in took {
        let p99 = p99(took);
        println!("{what} among {} rows: p99 {p99:?}", rows());
        assert!(p99 <= WAKE_P99, "{what}: p99 {p99:?}");
    }
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}
