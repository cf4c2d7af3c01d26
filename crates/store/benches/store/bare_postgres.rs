//! What bare tokio-postgres can do: just the rows a commit must write, in one `UNNEST` statement per transaction.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

const COMMIT: &str = "WITH batch AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS b (id, next, payload)), \
     moved AS (UPDATE bare_run SET next = batch.next + 1 FROM batch \
               WHERE bare_run.id = batch.id AND bare_run.next = batch.next AND bare_run.fence = 1 RETURNING bare_run.id) \
     INSERT INTO bare_event (run, idx, kind, key, at, payload) \
     SELECT batch.id, batch.next, 20, 'step', 1700000000000, batch.payload FROM batch JOIN moved USING (id)";

pub(crate) struct Bare {
    clients: Vec<Arc<Client>>,
    runs: i64,
}

impl Bare {
    pub(crate) async fn connect(url: &str, connections: usize, group: usize) -> Bare {
        let mut clients = Vec::new();
        for _ in 0..connections {
            clients.push(Arc::new(client(url).await));
        }
        let setup = "CREATE TABLE IF NOT EXISTS bare_run (id bigint PRIMARY KEY, next bigint NOT NULL, fence bigint NOT NULL) \
                     WITH (fillfactor = 80); \
                     CREATE TABLE IF NOT EXISTS bare_event (run bigint, idx bigint, kind smallint, key text, at bigint, \
                     payload bytea, PRIMARY KEY (run, idx)); TRUNCATE bare_run, bare_event;";
        clients[0].batch_execute(setup).await.unwrap();
        let runs = i64::try_from(connections * group).unwrap();
        let sql = "INSERT INTO bare_run SELECT id, 0, 1 FROM generate_series(0, $1::bigint - 1) AS id";
        clients[0].execute(sql, &[&runs]).await.unwrap();
        Bare { clients, runs }
    }

    /// Commits per second on `connections` connections, `group` to a transaction.
    pub(crate) async fn commits_per_second(&self, connections: usize, group: usize, sample: Duration) -> f64 {
        self.clients[0].batch_execute("UPDATE bare_run SET next = 0; TRUNCATE bare_event;").await.unwrap();
        let begun = Instant::now();
        let mut lanes = Vec::new();
        for (lane, client) in self.clients.iter().take(connections).enumerate() {
            let share = self.runs / i64::try_from(connections).unwrap();
            let first = i64::try_from(lane).unwrap() * share;
            lanes.push(tokio::spawn(run_lane(client.clone(), first, share, group, begun, sample)));
        }
        let mut commits = 0;
        for lane in lanes {
            commits += lane.await.unwrap();
        }
        commits as f64 / begun.elapsed().as_secs_f64()
    }
}

async fn run_lane(
    client: Arc<Client>,
    first: i64,
    share: i64,
    group: usize,
    begun: Instant,
    sample: Duration,
) -> usize {
    let statement = client.prepare(COMMIT).await.unwrap();
    let mut next = vec![0_i64; usize::try_from(share).unwrap()];
    let mut commits = 0;
    while begun.elapsed() < sample {
        let picked: Vec<usize> = (0..group).map(|item| (commits + item) % next.len()).collect();
        let ids: Vec<i64> = picked.iter().map(|run| first + i64::try_from(*run).unwrap()).collect();
        let expected: Vec<i64> = picked.iter().map(|run| next[*run]).collect();
        let payloads: Vec<&[u8]> = picked.iter().map(|_| super::ours::PAYLOAD).collect();
        let written = client.execute(&statement, &[&ids, &expected, &payloads]).await.unwrap();
        assert_eq!(written, group as u64);
        for run in picked {
            next[run] += 1;
        }
        commits += group;
    }
    commits
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) struct Reader(Client);

impl Reader {
    pub(crate) async fn connect(url: &str, schema: &str) -> Reader {
        let client = client(url).await;
        client.batch_execute(&format!("SET search_path TO {schema}")).await.unwrap();
        Reader(client)
    }

    /// Milliseconds to read the same rows, as owned values.
    pub(crate) async fn read_journal(&self, events: usize) -> f64 {
        let begun = Instant::now();
        let sql = "SELECT idx, kind, version, key, at, meta, payload FROM event WHERE generation = 0 ORDER BY idx";
        let rows = self.0.query(sql, &[]).await.unwrap();
        type Row = (i64, Option<String>, i64, Option<Vec<u8>>, Option<Vec<u8>>);
        let rows: Vec<Row> =
            rows.iter().map(|row| (row.get(0), row.get(3), row.get(4), row.get(5), row.get(6))).collect();
        assert_eq!(rows.len(), events);
        begun.elapsed().as_secs_f64() * 1_000.0
    }
}
