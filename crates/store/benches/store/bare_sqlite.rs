//! What bare rusqlite can do: just the rows a commit must write, and just the rows a load must read.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

pub(crate) struct Bare {
    connection: Connection,
    /// The next index of each run.
    next: Vec<i64>,
}

impl Bare {
    pub(crate) fn open(path: &Path, runs: usize) -> Bare {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        connection
            .execute_batch(
                "CREATE TABLE run (id INTEGER PRIMARY KEY, next INTEGER NOT NULL, fence INTEGER NOT NULL);
                 CREATE TABLE event (run INTEGER, idx INTEGER, kind INTEGER, key TEXT, at INTEGER, payload BLOB,
                                     PRIMARY KEY (run, idx)) WITHOUT ROWID;",
            )
            .unwrap();
        for run in 0..runs {
            connection.execute("INSERT INTO run VALUES (?1, 0, 1)", [i64::try_from(run).unwrap()]).unwrap();
        }
        Bare { connection, next: vec![0; runs] }
    }

    /// Commits (a compare-and-swap on the run's row, and one event) per second, `group` to a transaction.
    pub(crate) fn commits_per_second(&mut self, group: usize, sample: Duration) -> f64 {
        let begun = Instant::now();
        let mut commits = 0_usize;
        while begun.elapsed() < sample {
            self.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            for _ in 0..group {
                let run = commits % self.next.len();
                self.commit(run);
                commits += 1;
            }
            self.connection.execute_batch("COMMIT").unwrap();
        }
        commits as f64 / begun.elapsed().as_secs_f64()
    }

    fn commit(&mut self, run: usize) {
        let next = self.next[run];
        self.next[run] = next + 1;
        let id = i64::try_from(run).unwrap();
        let sql = "UPDATE run SET next = ?2 + 1 WHERE id = ?1 AND next = ?2 AND fence = 1";
        let changed = self.connection.prepare_cached(sql).unwrap().execute(params![id, next]).unwrap();
        assert_eq!(changed, 1);
        let sql = "INSERT INTO event (run, idx, kind, key, at, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = self.connection.prepare_cached(sql).unwrap();
        insert.execute(params![id, next, 20, "step", 1_700_000_000_000_i64, super::ours::PAYLOAD]).unwrap();
    }
}

pub(crate) struct Reader(Connection);

impl Reader {
    pub(crate) fn open(path: &Path) -> Reader {
        Reader(Connection::open(path).unwrap())
    }

    /// Milliseconds to read the same rows, as owned values.
    pub(crate) fn read_journal(&self, events: usize) -> f64 {
        let begun = Instant::now();
        let sql = "SELECT idx, kind, version, key, at, meta, payload FROM event WHERE ns = 1 AND run = 1 AND generation = 0 \
                   AND idx >= 0 ORDER BY idx";
        type Row = (i64, i64, i64, Option<String>, i64, Option<Vec<u8>>, Option<Vec<u8>>);
        let mut statement = self.0.prepare_cached(sql).unwrap();
        let rows = statement.query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
        });
        let rows: Vec<Row> = rows.unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), events);
        begun.elapsed().as_secs_f64() * 1_000.0
    }
}
