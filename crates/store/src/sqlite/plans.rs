//! The plans of the hot queries, on a hundred thousand rows and without statistics: each uses its index, none scans.

use rusqlite::Connection;

use super::{schema, statements};

const ROWS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) ";

fn crowded() -> (tempfile::TempDir, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("crowded.db");
    let mut connection = schema::open_writer(&path).unwrap();
    schema::migrate(&mut connection, &path).unwrap();
    connection.pragma_update(None, "synchronous", "OFF").unwrap();
    let fill = |sql: &str| connection.execute(&[ROWS, sql].concat(), []).unwrap();
    fill(
        "INSERT INTO run (row, ns, id, workflow, version, status, generation, next, fence, priority, tries, detached, \
         created_at, inbox_next, signals, answered, side) \
         SELECT i, 1, 'run-' || i, 'w', '1', 2, 0, 1, 1, 10, 0, 0, i, 0, 0, 0, 0 FROM n",
    );
    fill("INSERT INTO event (ns, run, generation, idx, kind, version, at) SELECT 1, i, 0, 0, 20, 1, i FROM n");
    fill("INSERT INTO timer (ns, run, key, kind, due) SELECT 1, i, 'sleep', 0, 1000000 + i FROM n");
    fill(
        "INSERT INTO task (ns, id, name, queue, priority, args, state, attempt, token, available_at, cancelled) \
         SELECT 1, 'task-' || i, 't', 'q', 0, x'', 0, 0, 0, i, 0 FROM n",
    );
    (dir, connection)
}

/// The plan's steps, one to a line. Parameters are left unbound: the plan may not depend on their values.
fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&["EXPLAIN QUERY PLAN ", sql].concat()).unwrap();
    let nulls = vec![rusqlite::types::Value::Null; statement.parameter_count()];
    let steps = statement.query_map(rusqlite::params_from_iter(nulls), |row| row.get::<_, String>(3)).unwrap();
    steps.map(Result::unwrap).collect::<Vec<_>>().join("\n")
}

#[test]
fn hot_queries_use_their_index_without_statistics() {
    let (_dir, connection) = crowded();
    let expected = [
        ("find a run", statements::RUN_BY_ID, "sqlite_autoindex_run_1"),
        ("claim: ready", statements::READY, "run_ready"),
        ("claim: held", statements::HELD, "run_owned"),
        ("claim: orphaned", statements::ORPHANED, "run_owned"),
        ("wakes", statements::WOKEN, "run_woken"),
        ("versions: served", statements::SERVED, "served_at"),
        ("versions: forget", statements::FORGET_SERVED, "served_at"),
        ("sweep", statements::TIMERS_DUE, "timer_due"),
        ("load", statements::EVENTS_FROM, "PRIMARY KEY"),
        ("inbox", statements::INBOX, "PRIMARY KEY"),
        ("task: ready", statements::TASKS_READY, "task_ready"),
        ("task: held", statements::TASKS_HELD, "task_claim"),
        ("task: silent", statements::TASKS_SILENT, "task_held"),
        ("task of an operation", statements::TASK_OF, "task_awaited"),
        ("tasks of a run", statements::TASKS_OF, "task_awaited"),
        ("end: detach tasks", statements::DETACH_TASKS, "task_awaited"),
        ("delete: live member", statements::LIVE_MEMBER, "run_tree"),
        ("children", statements::CHILDREN_OF, "run_child"),
        ("retention: ripe", statements::RIPE, "run_ripe"),
        ("retention: doomed", statements::DOOMED, "run_deleted"),
        ("retention: forget", statements::FORGET, "run_deleted"),
        ("retention: members", statements::DOOMED_MEMBERS, "run_tree"),
    ];
    for (what, sql, index) in expected {
        let plan = plan(&connection, sql);
        assert!(plan.contains(index), "{what} does not use {index}:\n{plan}");
        let scans = plan.lines().filter(|step| step.starts_with("SCAN") && !step.contains("USING"));
        assert_eq!(scans.collect::<Vec<_>>(), Vec::<&str>::new(), "{what} scans:\n{plan}");
    }
}

#[test]
fn claim_and_sweep_come_in_index_order_and_sort_nothing() {
    let (_dir, connection) = crowded();
    for (what, sql) in
        [("claim", statements::READY), ("sweep", statements::TIMERS_DUE), ("load", statements::EVENTS_FROM)]
    {
        let plan = plan(&connection, sql);
        assert!(!plan.contains("TEMP B-TREE"), "{what} sorts:\n{plan}");
    }
}
