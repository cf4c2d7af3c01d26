//! What bare rusqlite can do: the rows a journal must have, in ideal groups.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params};

use crate::report::median;
use crate::workloads::{W2_IN_FLIGHT, W2_STEPS};

const PAYLOAD: &[u8] = &[b'x'; 100];
const W1_STEPS: i64 = 1_000;
const W2_GROUPS: usize = 20;
const W4_STEPS: i64 = 1_000;
const W7_GROUPS: i64 = 500;

pub(crate) struct Ceiling {
    connection: Connection,
    last: i64,
    /// The run that commits now and then, and how far it is.
    paced: Option<(i64, i64)>,
}

impl Ceiling {
    pub(crate) fn open(path: &Path) -> Ceiling {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        connection
            .execute_batch(
                "CREATE TABLE run (id INTEGER PRIMARY KEY, ns INTEGER, key TEXT, workflow INTEGER, status INTEGER,
                                   next INTEGER, fence INTEGER, input BLOB, UNIQUE (ns, key));
                 CREATE TABLE event (run INTEGER, idx INTEGER, kind INTEGER, key TEXT, at INTEGER, payload BLOB,
                                     PRIMARY KEY (run, idx)) WITHOUT ROWID;",
            )
            .unwrap();
        Ceiling { connection, last: 0, paced: None }
    }

    fn transaction(&mut self, work: impl FnOnce(&mut Ceiling)) {
        self.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        work(self);
        self.connection.execute_batch("COMMIT").unwrap();
    }

    fn create(&mut self) -> i64 {
        self.last += 1;
        let sql =
            "INSERT INTO run (id, ns, key, workflow, status, next, fence, input) VALUES (?1, 1, ?2, 1, 1, 0, 1, ?3)";
        let key = format!("run-{}", self.last);
        self.connection.prepare_cached(sql).unwrap().execute(params![self.last, key, b"5"]).unwrap();
        self.last
    }

    fn event(&mut self, run: i64, index: i64) {
        let sql = "INSERT INTO event (run, idx, kind, key, at, payload) VALUES (?1, ?2, 21, 'step', 1700000000000, ?3)";
        self.connection.prepare_cached(sql).unwrap().execute(params![run, index, PAYLOAD]).unwrap();
    }

    fn advance(&mut self, run: i64, from: i64, to: i64) {
        let sql = "UPDATE run SET next = ?3 WHERE id = ?1 AND next = ?2 AND fence = 1";
        let changed = self.connection.prepare_cached(sql).unwrap().execute(params![run, from, to]).unwrap();
        assert_eq!(changed, 1);
    }

    /// Steps per second: one commit each.
    pub(crate) fn w1(&mut self) -> f64 {
        let mut run = 0;
        self.transaction(|ceiling| run = ceiling.create());
        let begun = Instant::now();
        for step in 0..W1_STEPS {
            self.transaction(|ceiling| {
                ceiling.advance(run, step, step + 1);
                ceiling.event(run, step);
            });
        }
        W1_STEPS as f64 / begun.elapsed().as_secs_f64()
    }

    /// Runs per second: all runs in flight share every commit; the last step and the end share theirs.
    pub(crate) fn w2(&mut self) -> f64 {
        let begun = Instant::now();
        for _ in 0..W2_GROUPS {
            let mut runs = Vec::new();
            self.transaction(|ceiling| runs.extend((0..W2_IN_FLIGHT).map(|_| ceiling.create())));
            for step in 0..i64::try_from(W2_STEPS).unwrap() {
                let last = step + 1 == i64::try_from(W2_STEPS).unwrap();
                self.transaction(|ceiling| {
                    for run in &runs {
                        ceiling.advance(*run, step, step + 1 + i64::from(last));
                        ceiling.event(*run, step);
                        if last {
                            ceiling.event(*run, step + 1);
                        }
                    }
                });
            }
        }
        (W2_GROUPS * W2_IN_FLIGHT) as f64 / begun.elapsed().as_secs_f64()
    }

    /// Milliseconds of one durable commit.
    pub(crate) fn w3(&mut self) -> f64 {
        let mut run = 0;
        self.transaction(|ceiling| run = ceiling.create());
        let mut took = Vec::new();
        for step in 0..500 {
            let begun = Instant::now();
            self.transaction(|ceiling| {
                ceiling.advance(run, step, step + 1);
                ceiling.event(run, step);
            });
            took.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
        median(&took)
    }

    /// Milliseconds of one durable commit now, of whoever calls this now and then.
    pub(crate) fn commit_once(&mut self) -> f64 {
        let (run, step) = self.paced.unwrap_or_else(|| {
            let mut run = 0;
            self.transaction(|ceiling| run = ceiling.create());
            (run, 0)
        });
        self.paced = Some((run, step + 1));
        let begun = Instant::now();
        self.transaction(|ceiling| {
            ceiling.advance(run, step, step + 1);
            ceiling.event(run, step);
        });
        begun.elapsed().as_secs_f64() * 1_000.0
    }

    /// Milliseconds for a thousand results at once: a start, and one commit for all of them.
    pub(crate) fn w4(&mut self) -> f64 {
        let begun = Instant::now();
        let mut run = 0;
        self.transaction(|ceiling| run = ceiling.create());
        self.transaction(|ceiling| {
            ceiling.advance(run, 0, W4_STEPS + 1);
            (0..=W4_STEPS).for_each(|index| ceiling.event(run, index));
        });
        begun.elapsed().as_secs_f64() * 1_000.0
    }
}

impl Ceiling {
    /// Rows per second, a hundred in each transaction.
    pub(crate) fn w7(&mut self) -> f64 {
        let mut run = 0;
        self.transaction(|ceiling| run = ceiling.create());
        let begun = Instant::now();
        for group in 0..W7_GROUPS {
            self.transaction(|ceiling| (0..100).for_each(|row| ceiling.event(run, group * 100 + row)));
        }
        (W7_GROUPS * 100) as f64 / begun.elapsed().as_secs_f64()
    }
}

/// Milliseconds to read what the steps of the second run gave, as values.
pub(crate) fn read_outputs(path: &Path, steps: usize) -> f64 {
    let connection = Connection::open(path).unwrap();
    let kind = i64::from(outlast_core::event::Kind::StepFinished.code());
    let begun = Instant::now();
    let sql =
        "SELECT payload FROM event WHERE ns = 1 AND run = 2 AND generation = 0 AND idx >= 0 AND kind = ?1 ORDER BY idx";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([kind], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    let outputs: Vec<serde_json::Value> = rows.map(|row| serde_json::from_slice(&row.unwrap()).unwrap()).collect();
    assert!(outputs.len() > steps);
    begun.elapsed().as_secs_f64() * 1_000.0
}

/// Milliseconds to read the journal that a resumed run reads.
pub(crate) fn read_journal(path: &Path, events: usize) -> f64 {
    let connection = Connection::open(path).unwrap();
    let begun = Instant::now();
    let sql = "SELECT idx, kind, version, key, at, meta, payload FROM event WHERE ns = 1 AND run = 1 AND generation = 0 \
               AND idx >= 0 ORDER BY idx";
    type Row = (i64, i64, i64, Option<String>, i64, Option<Vec<u8>>, Option<Vec<u8>>);
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
    });
    let rows: Vec<Row> = rows.unwrap().map(Result::unwrap).collect();
    assert!(rows.len() > events);
    begun.elapsed().as_secs_f64() * 1_000.0
}
