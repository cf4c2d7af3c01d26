//! Opening the file: one owner, a schema we know, old leases over, locks waited for.

use std::time::Duration;

use outlast_core::id::NodeId;
use outlast_core::time::Timestamp;
use outlast_store::{Clock, ManualClock, SqliteOptions, SqliteStore, Store, StoreError, Trouble};
use rusqlite::Connection;

use super::scene::{Folder, append, claim, create_owned, load, register};

#[tokio::test]
async fn a_second_owner_is_refused_and_told_the_first_ones_process_id() {
    let folder = Folder::new();
    let first = folder.open(SqliteOptions::default()).await.unwrap();
    match folder.open(SqliteOptions::default()).await.unwrap_err() {
        StoreError::Locked { pid, .. } => assert_eq!(pid, std::process::id().to_string()),
        other => panic!("{other}"),
    }
    drop(first);
    folder.open(SqliteOptions::default()).await.expect("the file is free again once its owner is gone");
}

/// A program that a killed owner was about to start has the owner's handles until it begins.
#[tokio::test]
async fn a_file_whose_owner_is_gone_is_waited_for() {
    let folder = Folder::new();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let mut name = folder.file().into_os_string();
    name.push(".lock");
    std::fs::write(&name, gone.id().to_string()).unwrap();
    let heir = std::fs::File::open(&name).unwrap();
    heir.lock().unwrap();
    let begins = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(heir);
    });
    folder.open(SqliteOptions::default()).await.expect("it is free as soon as that program has begun");
    begins.join().unwrap();
}

#[tokio::test]
async fn taking_the_file_ends_every_lease_of_the_process_before() {
    let folder = Folder::new();
    let options = || SqliteOptions { clock: Clock::Manual(ManualClock::at(0)), ..SqliteOptions::default() };
    let before = folder.open(options()).await.unwrap();
    let old = register(&before).await;
    create_owned(&before, "a", old).await;
    drop(before);

    let after = folder.open(options()).await.unwrap();
    assert!(matches!(after.renew(old, Duration::from_secs(1)).await, Err(StoreError::LeaseLapsed { .. })));
    let new = register(&after).await;
    let claimed = after.claim(claim(new, 1, 10)).await.unwrap();
    assert_eq!(claimed.len(), 1, "the run of the dead process is free at once, whatever its lease said");
}

#[tokio::test]
async fn a_database_of_a_newer_release_is_refused_and_left_alone() {
    let folder = Folder::new();
    drop(folder.open(SqliteOptions::default()).await.unwrap());
    let connection = Connection::open(folder.file()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = folder.open(SqliteOptions::default()).await.unwrap_err();
    assert_eq!(error, StoreError::NewerDatabase { found: 99, known: 1 });
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = Folder::new();
    let connection = Connection::open(folder.file()).unwrap();
    connection.execute_batch("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1);").unwrap();
    drop(connection);
    let error = folder.open(SqliteOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("another program"), "{error}");
    let connection = Connection::open(folder.file()).unwrap();
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_called_that() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "once upon a time there was a text file that was long enough".repeat(100)).unwrap();
    let error = folder.open(SqliteOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error_that_names_the_path() {
    let folder = Folder::new();
    let path = folder.file().join("deeper").join("test.db");
    let error = SqliteStore::open(&path, SqliteOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("deeper"), "{error}");
}

#[tokio::test]
async fn several_openings_at_once_leave_one_owner_and_a_whole_schema() {
    let folder = Folder::new();
    let path = folder.file();
    let opening = |_| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
                .block_on(SqliteStore::open(path, SqliteOptions::default()))
        })
    };
    let handles: Vec<_> = (0..8).map(opening).collect();
    let mut owners = Vec::new();
    for handle in handles {
        match handle.await.unwrap() {
            Ok(store) => owners.push(store),
            Err(error) => assert!(matches!(error, StoreError::Locked { .. }), "{error}"),
        }
    }
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].namespaces().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_taken_while_somebody_holds_the_lock_is_not_born_expired() {
    let folder = Folder::new();
    let clock = ManualClock::at(0);
    let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
    let store = std::sync::Arc::new(folder.open(options).await.unwrap());
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.register(NodeId::new("node").unwrap(), Duration::from_millis(100)).await }
    });
    // The writer is waiting for the lock, or about to. Either way the lease must count from after the wait.
    while !waiting_for_lock(&folder) {
        tokio::task::yield_now().await;
    }
    clock.set(1_000);
    other.execute_batch("COMMIT").unwrap();
    let lease = waiting.await.unwrap().unwrap();
    assert_eq!((lease.now, lease.until), (Timestamp::from_millis(1_000), Timestamp::from_millis(1_100)));
}

/// The writer's queue is empty of our request once another request, sent after it, would find it taken. There is no
/// such probe from outside, so give the writer's thread the time of many thousand file operations.
fn waiting_for_lock(folder: &Folder) -> bool {
    (0..20_000).all(|_| std::fs::metadata(folder.file()).is_ok())
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_writers_and_a_stranger_on_the_file_are_never_told_busy() {
    let folder = Folder::new();
    let store = std::sync::Arc::new(folder.open(SqliteOptions::default()).await.unwrap());
    let lease = register(&*store).await;
    let stranger = std::thread::spawn({
        let path = folder.file();
        move || {
            let connection = Connection::open(path).unwrap();
            connection.busy_timeout(Duration::from_secs(30)).unwrap();
            for _ in 0..50 {
                connection.execute_batch("BEGIN IMMEDIATE; UPDATE namespace SET name = name; COMMIT;").unwrap();
            }
        }
    });
    let mut writers = Vec::new();
    for writer in 0..16 {
        let store = store.clone();
        writers.push(tokio::spawn(async move {
            let id = format!("run-{writer}");
            let fence = create_owned(&*store, &id, lease).await;
            for at in 0..25 {
                append(&*store, &id, fence, at, "x").await.unwrap();
            }
            load(&*store, &id).await.unwrap().events.len()
        }));
    }
    for writer in writers {
        assert_eq!(writer.await.unwrap(), 25);
    }
    stranger.join().unwrap();
}

#[tokio::test]
async fn a_file_whose_folder_is_read_only_says_what_to_do() {
    let folder = Folder::new();
    drop(folder.open(SqliteOptions::default()).await.unwrap());
    // The lock file cannot be opened: as on a read-only disk, whoever we are.
    let lock = folder.file().with_extension("db.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    let error = folder.open(SqliteOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { trouble: Trouble::ReadOnly, .. }), "{error}");
    assert!(error.to_string().contains("writable"), "{error}");
}
