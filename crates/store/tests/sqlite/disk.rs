//! A disk that is full or cannot be written: clear errors, reads go on, and so do writes once there is space again.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use outlast_core::Bytes;
use outlast_store::{CommitError, Retention, SqliteOptions, SqliteStore, Store, StoreError, Trouble};

use super::scene::{Folder, append, create_owned, finish, load, register, run};

fn chunk() -> Bytes {
    Bytes::from(vec![b'x'; 64 * 1024])
}

fn is(error: &CommitError, trouble: Trouble) -> bool {
    matches!(error, CommitError::NotApplied(StoreError::Unavailable { trouble: found, .. }) if *found == trouble)
}

/// Appends until the store says it is full; how many events were acknowledged.
async fn fill(store: &dyn Store, id: &str, fence: outlast_core::id::Fence) -> u64 {
    for at in 0..10_000 {
        match append(store, id, fence, at, chunk()).await {
            Ok(_) => {}
            Err(error) => {
                assert!(is(&error, Trouble::DiskFull), "{error}");
                return at;
            }
        }
    }
    panic!("it never filled");
}

#[tokio::test]
async fn a_full_file_refuses_writes_keeps_reading_and_goes_on_once_rows_are_deleted() {
    let folder = Folder::new();
    let options = SqliteOptions { bytes_max: Some(4 * 1024 * 1024), ..SqliteOptions::default() };
    let store = folder.open(options).await.unwrap();
    let lease = register(&store).await;
    let old = create_owned(&store, "old", lease).await;
    append(&store, "old", old, 0, Bytes::from(vec![b'x'; 1024 * 1024])).await.unwrap();
    finish(&store, "old", old, 1).await.unwrap();
    let fence = create_owned(&store, "new", lease).await;

    let acknowledged = fill(&store, "new", fence).await;
    assert!(acknowledged > 10);
    assert_eq!(load(&store, "new").await.unwrap().events.len() as u64, acknowledged, "what was acknowledged is there");
    assert_eq!(store.get(run("new")).await.unwrap().next.0, acknowledged);

    let retention = Retention { age: Duration::ZERO, limit: 1_000 };
    while store.retain(retention).await.expect("deleting works on a full file").more {}
    append(&store, "new", fence, acknowledged, chunk()).await.expect("there is space again");
}

/// A small disk of its own; none where this process may not make one.
struct SmallDisk {
    dir: tempfile::TempDir,
}

impl SmallDisk {
    fn mount(size: &str) -> Option<SmallDisk> {
        let dir = tempfile::tempdir().unwrap();
        mount(&["-t", "tmpfs", "-o", size, "tmpfs"], dir.path()).then_some(SmallDisk { dir })
    }

    fn remount(&self, how: &str) {
        assert!(mount(&["-o", how], self.dir.path()), "remount {how}");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.dir.path()).status();
    }
}

fn mount(args: &[&str], path: &Path) -> bool {
    let done = Command::new("mount").args(args).arg(path).stderr(std::process::Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

#[tokio::test]
async fn a_full_disk_and_a_read_only_disk_are_told_apart_and_both_survived() {
    let Some(disk) = SmallDisk::mount("size=6m") else {
        eprintln!("left out: mounting a small disk needs root on Linux; the test above covers a full file everywhere");
        return;
    };
    let store = SqliteStore::open(disk.dir.path().join("test.db"), SqliteOptions::default()).await.unwrap();
    let lease = register(&store).await;
    let fence = create_owned(&store, "a", lease).await;

    let acknowledged = fill(&store, "a", fence).await;
    assert_eq!(load(&store, "a").await.unwrap().events.len() as u64, acknowledged);
    disk.remount("remount,size=32m");
    append(&store, "a", fence, acknowledged, chunk()).await.expect("it goes on by itself, without being opened again");

    drop(store);
    disk.remount("remount,ro");
    let error = SqliteStore::open(disk.dir.path().join("test.db"), SqliteOptions::default()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { trouble: Trouble::ReadOnly, .. }), "{error}");
    disk.remount("remount,rw");
    let store = SqliteStore::open(disk.dir.path().join("test.db"), SqliteOptions::default()).await.unwrap();
    assert_eq!(load(&store, "a").await.unwrap().events.len() as u64, acknowledged + 1);
}
