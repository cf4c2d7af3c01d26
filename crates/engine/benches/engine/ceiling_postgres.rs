//! What bare tokio-postgres can do on one connection: the rows a journal must have, one statement per group.

use std::time::Instant;

use tokio_postgres::{Client, NoTls};

use crate::report::median;
use crate::workloads::{W2_IN_FLIGHT, W2_STEPS};

const PAYLOAD: &[u8] = &[b'x'; 100];
const W1_STEPS: i64 = 1_000;
const W2_GROUPS: usize = 20;
const W4_STEPS: i64 = 1_000;
const W7_GROUPS: i64 = 500;

const CREATE: &str = "INSERT INTO bare_run (id, ns, key, workflow, status, next, fence, input) \
     SELECT id, 1, 'run-' || id, 1, 1, 0, 1, '5' FROM unnest($1::bigint[]) AS b (id)";
const COMMIT: &str = "WITH batch AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS b (run, first, events)), \
     moved AS (UPDATE bare_run SET next = batch.first + batch.events FROM batch \
               WHERE bare_run.id = batch.run AND bare_run.next = batch.first AND bare_run.fence = 1 RETURNING bare_run.id) \
     INSERT INTO bare_event (run, idx, kind, key, at, payload) \
     SELECT batch.run, batch.first + n, 21, 'step', 1700000000000, $4::bytea \
     FROM batch JOIN moved ON moved.id = batch.run, generate_series(0, batch.events - 1) AS n";

pub(crate) struct Ceiling {
    client: Client,
    last: i64,
    /// The run that commits now and then, and how far it is.
    paced: Option<(Vec<i64>, i64)>,
}

impl Ceiling {
    pub(crate) async fn connect(url: &str) -> Ceiling {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let setup = "DROP TABLE IF EXISTS bare_run, bare_event; \
                     CREATE TABLE bare_run (id bigint PRIMARY KEY, ns int, key text, workflow int, status smallint, \
                     next bigint NOT NULL, fence bigint NOT NULL, input bytea, UNIQUE (ns, key)) WITH (fillfactor = 80); \
                     CREATE TABLE bare_event (run bigint, idx bigint, kind smallint, key text, at bigint, payload bytea, \
                     PRIMARY KEY (run, idx));";
        client.batch_execute(setup).await.unwrap();
        Ceiling { client, last: 0, paced: None }
    }

    async fn create(&mut self, runs: usize) -> Vec<i64> {
        let runs: Vec<i64> = (1..=i64::try_from(runs).unwrap()).map(|n| self.last + n).collect();
        self.last += i64::try_from(runs.len()).unwrap();
        let statement = self.client.prepare(CREATE).await.unwrap();
        self.client.execute(&statement, &[&runs]).await.unwrap();
        runs
    }

    async fn commit(&self, statement: &tokio_postgres::Statement, runs: &[i64], first: i64, events: i64) {
        let (first, each) = (vec![first; runs.len()], vec![events; runs.len()]);
        let written = self.client.execute(statement, &[&runs, &first, &each, &PAYLOAD]).await.unwrap();
        assert_eq!(written, runs.len() as u64 * events.unsigned_abs());
    }

    pub(crate) async fn w1(&mut self) -> f64 {
        let runs = self.create(1).await;
        let statement = self.client.prepare(COMMIT).await.unwrap();
        let begun = Instant::now();
        for step in 0..W1_STEPS {
            self.commit(&statement, &runs, step, 1).await;
        }
        W1_STEPS as f64 / begun.elapsed().as_secs_f64()
    }

    pub(crate) async fn w2(&mut self) -> f64 {
        let statement = self.client.prepare(COMMIT).await.unwrap();
        let begun = Instant::now();
        for _ in 0..W2_GROUPS {
            let runs = self.create(W2_IN_FLIGHT).await;
            let last = i64::try_from(W2_STEPS).unwrap() - 1;
            for step in 0..=last {
                self.commit(&statement, &runs, step, if step == last { 2 } else { 1 }).await;
            }
        }
        (W2_GROUPS * W2_IN_FLIGHT) as f64 / begun.elapsed().as_secs_f64()
    }

    pub(crate) async fn w3(&mut self) -> f64 {
        let runs = self.create(1).await;
        let statement = self.client.prepare(COMMIT).await.unwrap();
        let mut took = Vec::new();
        for step in 0..500 {
            let begun = Instant::now();
            self.commit(&statement, &runs, step, 1).await;
            took.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
        median(&took)
    }

    /// Milliseconds of one durable commit now, of whoever calls this now and then.
    pub(crate) async fn commit_once(&mut self) -> f64 {
        let (runs, step) = match self.paced.take() {
            Some(paced) => paced,
            None => (self.create(1).await, 0),
        };
        let statement = self.client.prepare(COMMIT).await.unwrap();
        let begun = Instant::now();
        self.commit(&statement, &runs, step, 1).await;
        let took = begun.elapsed().as_secs_f64() * 1_000.0;
        self.paced = Some((runs, step + 1));
        took
    }

    pub(crate) async fn w4(&mut self) -> f64 {
        let statement = self.client.prepare(COMMIT).await.unwrap();
        let begun = Instant::now();
        let runs = self.create(1).await;
        self.commit(&statement, &runs, 0, W4_STEPS + 1).await;
        begun.elapsed().as_secs_f64() * 1_000.0
    }

    /// Rows per second, a hundred in each statement.
    pub(crate) async fn w7(&mut self) -> f64 {
        let runs = self.create(1).await;
        let statement = self.client.prepare(COMMIT).await.unwrap();
        let begun = Instant::now();
        for group in 0..W7_GROUPS {
            self.commit(&statement, &runs, group * 100, 100).await;
        }
        (W7_GROUPS * 100) as f64 / begun.elapsed().as_secs_f64()
    }

    /// Milliseconds to read the journal that a resumed run reads.
    pub(crate) async fn read_journal(&self, schema: &str, events: usize) -> f64 {
        self.client.batch_execute(&format!("SET search_path TO {schema}")).await.unwrap();
        let begun = Instant::now();
        let sql = "SELECT idx, kind, version, key, at, meta, payload FROM event WHERE generation = 0 ORDER BY idx";
        let rows = self.client.query(sql, &[]).await.unwrap();
        type Row = (i64, Option<String>, i64, Option<Vec<u8>>, Option<Vec<u8>>);
        let rows: Vec<Row> =
            rows.iter().map(|row| (row.get(0), row.get(3), row.get(4), row.get(5), row.get(6))).collect();
        assert!(rows.len() > events);
        let took = begun.elapsed().as_secs_f64() * 1_000.0;
        self.client.batch_execute("RESET search_path").await.unwrap();
        took
    }
}
