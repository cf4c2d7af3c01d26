//! Announcements of versions.

use std::time::Duration;

use outlast_core::id::{Version, WorkflowName};
use outlast_store::{Clock, ManualClock, SqliteOptions, Store};
use rusqlite::Connection;

use super::scene::Folder;

fn pair(workflow: u32) -> (WorkflowName, Version) {
    (WorkflowName::new(format!("w-{workflow}")).unwrap(), Version::new("1").unwrap())
}

#[tokio::test]
async fn old_announcements_leave_no_rows() {
    let (folder, clock) = (Folder::new(), ManualClock::at(0));
    let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
    let store = folder.open(options).await.unwrap();
    store.announce((0..5).map(pair).collect()).await.unwrap();
    clock.set(31 * 24 * 3_600_000);
    store.announce(vec![pair(9)]).await.unwrap();
    let raw = Connection::open(folder.file()).unwrap();
    for left in [4, 2, 1, 1] {
        store.park_unserved(Duration::from_secs(300), 2).await.unwrap();
        let count: i64 = raw.query_row("SELECT count(*) FROM served", [], |row| row.get(0)).unwrap();
        assert_eq!(count, left, "at most two at a time, and never one that is in use");
    }
}
