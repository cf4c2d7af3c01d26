//! The plans of the hot queries, on a hundred thousand rows and without statistics: each uses its index, none scans.

use rusqlite::Connection;

use outlast_core::commit::Status;

use super::query::list_sql;
use super::{admit, definitions, outlook, schema, statements, workers};
use crate::{Cursor, Filter};

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
        "INSERT INTO task (ns, id, name, queue, priority, args, state, attempt, token, available_at, place, cancelled) \
         SELECT 1, 'task-' || i, 't', 'q', 0, x'', 0, 0, 0, i, i, 0 FROM n",
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
        ("claim: priority", statements::READY_PRIORITY, "run_ready"),
        ("claim: namespace", statements::READY_NAMESPACE, "run_ready"),
        ("claim: ready", statements::READY, "run_ready"),
        ("claim: held", statements::HELD, "run_owned"),
        ("claim: orphaned", statements::ORPHANED, "run_owned"),
        ("wakes", statements::WOKEN, "run_woken"),
        ("versions: served", statements::SERVED, "served_at"),
        ("versions: forget", statements::FORGET_SERVED, "served_at"),
        ("outlook: run", outlook::RUN, "run_ready"),
        ("outlook: orphan", outlook::ORPHAN, "run_owned"),
        ("outlook: timer", outlook::TIMER, "timer_due"),
        ("outlook: ended", outlook::ENDED, "slot_done"),
        ("outlook: gate", outlook::GATE, "gate_due"),
        ("outlook: waiting", outlook::WAITING, "held_line"),
        ("outlook: ready task", outlook::READY_TASK, "task_ready"),
        ("outlook: next task", outlook::NEXT_TASK, "task_until"),
        ("sweep", statements::TIMERS_DUE, "timer_due"),
        ("load", statements::EVENTS_FROM, "PRIMARY KEY"),
        ("inbox", statements::INBOX, "PRIMARY KEY"),
        ("inbox of a claim", statements::INBOX_OF, "PRIMARY KEY"),
        ("task: ready", statements::TASKS_READY, "task_ready"),
        ("task: held", statements::TASKS_HELD, "task_claim"),
        ("workers: holds", workers::HOLDS, "task_claim"),
        ("task: ended", statements::TASKS_ENDED, "task_until"),
        ("task: priority", statements::TASK_PRIORITY, "task_ready"),
        ("task: namespace", statements::TASK_NAMESPACE, "task_ready"),
        ("task: bury old", statements::BURY_OLD, "task_died"),
        ("task: bury of", statements::BURY_OF, "task_grave"),
        ("task of an operation", statements::TASK_OF, "PRIMARY KEY (ns=? AND id=?)"),
        ("task of an operation, elsewhere", statements::TASK_OF_ELSEWHERE, "task_awaited"),
        ("tasks of a run", statements::TASKS_OF, "PRIMARY KEY (ns=? AND id>? AND id<?)"),
        ("tasks of a run, elsewhere", statements::TASKS_OF, "task_awaited"),
        ("end: detach tasks", statements::DETACH_TASKS[0], "PRIMARY KEY (ns=? AND id>? AND id<?)"),
        ("end: detach tasks, elsewhere", statements::DETACH_TASKS[1], "task_awaited"),
        ("delete: live member", statements::LIVE_MEMBER, "run_tree"),
        ("children", statements::CHILDREN_OF, "run_child"),
        ("schedules: one", statements::SCHEDULE, "PRIMARY KEY"),
        ("schedules: due", statements::SCHEDULES_DUE, "schedule_due"),
        ("schedules: due after", statements::SCHEDULES_DUE_AFTER, "schedule_due"),
        ("schedules: next", statements::SCHEDULE_NEXT, "schedule_due"),
        ("definitions: known", definitions::KNOWN, "sqlite_autoindex_definition_2"),
        ("definitions: one", definitions::ONE, "sqlite_autoindex_definition_2"),
        ("definitions: current", definitions::CURRENT, "definition_latest"),
        ("definitions: news", definitions::LIST, "sqlite_autoindex_definition_1"),
        ("definitions: versions", definitions::VERSIONS, "definition_latest"),
        ("definitions: needed", definitions::NEEDED, "run_live"),
        ("admit: done", admit::DONE_SLOTS, "slot_done"),
        ("admit: fresh", admit::FRESH, "held_fresh"),
        ("admit: line", admit::LINE, "held_line"),
        ("admit: shared", admit::SHARED, "held_first"),
        ("admit: due", admit::DUE_GATES, "gate_due"),
        ("admit: next", admit::NEXT_FRESH, "held_fresh"),
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

/// What SQLite does for a statement, in steps of its machine.
fn steps(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> i32 {
    let mut statement = connection.prepare(sql).unwrap();
    let mut rows = statement.query(params).unwrap();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    statement.get_status(rusqlite::StatementStatus::VmStep)
}

#[test]
fn a_hundred_thousand_delayed_tasks_and_as_many_of_another_namespace_cost_a_claim_nothing() {
    let (_dir, connection) = crowded();
    connection.execute("UPDATE task SET state = 2 WHERE id <> 'task-1'", []).unwrap();
    let claim = || {
        [
            steps(&connection, statements::TASKS_ENDED, rusqlite::params!["q", 1_000_000, 10]),
            steps(&connection, statements::TASK_PRIORITY, rusqlite::params!["q", 1_000]),
            steps(&connection, statements::TASK_NAMESPACE, rusqlite::params!["q", 0, 0]),
            steps(&connection, statements::TASK_NAMESPACE, rusqlite::params!["q", 0, 2]),
            steps(&connection, statements::TASKS_READY, rusqlite::params!["q", 0, 1]),
        ]
    };
    let before = claim();
    let fill = |sql: &str| connection.execute(&[ROWS, sql].concat(), []).unwrap();
    let columns = "INSERT INTO task (ns, id, name, queue, priority, args, state, attempt, token, available_at, place, until, \
                   cancelled) SELECT ";
    fill(&[columns, "1, 'later-' || i, 't', 'q', 0, x'', 3, 0, 0, 0, 0, 2000000 + i, 0 FROM n"].concat());
    fill(&[columns, "2, 'noise-' || i, 't', 'q', 0, x'', 0, 0, 0, 0, 0, NULL, 0 FROM n"].concat());
    let after = claim();
    // To look for the next one where nothing is takes a few steps fewer than where something else is.
    assert!(after.iter().zip(before).all(|(after, before)| *after <= before + 8), "{before:?}, then {after:?}");
}

#[test]
fn lists_come_in_index_order_and_sort_nothing() {
    let (_dir, connection) = crowded();
    let namespace = outlast_core::id::Namespace::new("default").unwrap();
    let all = Filter::all(namespace);
    let after = Filter { after: Some(Cursor(50_000)), ..all.clone() };
    let live = Filter { status: vec![Status::Waiting], ..all.clone() };
    let over = Filter { status: vec![Status::Completed], ..all.clone() };
    for (filter, index) in [(all, "run_newest"), (after, "run_newest"), (live, "run_live"), (over, "run_newest")] {
        let (sql, _) = list_sql(1, &filter, 101);
        let plan = plan(&connection, &sql);
        assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{filter:?}:\n{plan}");
    }
}

#[test]
fn claim_and_sweep_come_in_index_order_and_sort_nothing() {
    let (_dir, connection) = crowded();
    for (what, sql) in [
        ("claim", statements::READY),
        ("next priority", statements::READY_PRIORITY),
        ("next namespace", statements::READY_NAMESPACE),
        ("tasks", statements::TASKS_READY),
        ("next priority of tasks", statements::TASK_PRIORITY),
        ("next namespace of tasks", statements::TASK_NAMESPACE),
        ("sweep", statements::TIMERS_DUE),
        ("load", statements::EVENTS_FROM),
        ("inbox of a claim", statements::INBOX_OF),
        ("admit: fresh", admit::FRESH),
        ("admit: line", admit::LINE),
    ] {
        let plan = plan(&connection, sql);
        assert!(!plan.contains("TEMP B-TREE"), "{what} sorts:\n{plan}");
    }
}
