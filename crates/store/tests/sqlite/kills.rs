//! A real process, killed with SIGKILL in the middle of its commits: what it acknowledged is there.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use outlast_store::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

use super::scene::{Folder, append, create_owned, load, register};

const CHILD: &str = "OUTLAST_TEST_KILL_CHILD";

/// Not a test of its own: the process that the test below starts and kills.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let round = std::env::var("OUTLAST_TEST_KILL_ROUND").unwrap();
    let store = std::sync::Arc::new(SqliteStore::open(path, SqliteOptions::default()).await.unwrap());
    let lease = register(&*store).await;
    let mut committers = Vec::new();
    for committer in 0..8 {
        let (store, id) = (store.clone(), format!("run-{round}-{committer}"));
        committers.push(tokio::spawn(async move {
            let fence = create_owned(&*store, &id, lease).await;
            for at in 0.. {
                append(&*store, &id, fence, at, format!("event {at}")).await.unwrap();
                // One write: the line is the acknowledgement, outside the store.
                std::io::stdout().lock().write_all(format!("ACK {id} {at}\n").as_bytes()).unwrap();
            }
        }));
    }
    for committer in committers {
        committer.await.unwrap();
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_it_acknowledged() {
    let folder = Folder::new();
    let rounds = if std::env::var_os("OUTLAST_QUICK").is_some() { 4 } else { 15 };
    let mut acknowledged = std::collections::BTreeMap::<String, u64>::new();
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::child_that_is_killed", "--nocapture"])
            .env(CHILD, folder.file())
            .env("OUTLAST_TEST_KILL_ROUND", round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines.map_while(Result::ok) {
            let Some((_, ack)) = line.split_once("ACK ") else { continue };
            let (id, at) = ack.split_once(' ').unwrap();
            acknowledged.insert(id.to_owned(), at.parse().unwrap());
            seen += 1;
            if seen == 40 + round * 37 {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(seen >= 40, "the child said only {seen} lines");
    }
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    for (id, last) in &acknowledged {
        let events = load(&store, id).await.unwrap().events;
        assert!(events.len() as u64 > *last, "{id}: event {last} was acknowledged, the journal has {}", events.len());
        for (at, event) in events.iter().enumerate() {
            assert_eq!(event.payload.as_deref(), Some(format!("event {at}").as_bytes()), "{id}");
        }
    }
    drop(store);
    let connection = Connection::open(folder.file()).unwrap();
    let check: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}
