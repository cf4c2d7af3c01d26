//! Damage: what cannot be read harms nobody else.

use std::time::Duration;

use outlast_core::Bytes;
use outlast_core::commit::{NewTask, StandaloneTask};
use outlast_core::id::{ClaimId, Namespace, QueueName, TaskId, TaskName, WorkerId};
use outlast_store::{ClaimTasks, SqliteOptions, Store};

use crate::scene::Folder;

fn task(id: &str) -> StandaloneTask {
    let task = NewTask {
        id: TaskId::new(id).unwrap(),
        key: None,
        name: TaskName::new("t").unwrap(),
        queue: QueueName::new("q").unwrap(),
        priority: 0,
        args: Bytes::from_static(b"[]"),
        available_at: None,
        meta: None,
    };
    StandaloneTask { namespace: Namespace::default_namespace(), task }
}

#[tokio::test]
async fn a_task_that_cannot_be_read_does_not_hold_up_its_queue() {
    let folder = Folder::new();
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    assert!(store.enqueue(["a", "b"].map(task).into()).await.iter().all(Result::is_ok));
    drop(store);
    let raw = rusqlite::Connection::open(folder.file()).unwrap();
    raw.execute_batch("PRAGMA ignore_check_constraints = ON; UPDATE task SET name = '' WHERE id = 'a'").unwrap();
    drop(raw);

    let store = folder.open(SqliteOptions::default()).await.unwrap();
    let claim = ClaimTasks {
        worker: WorkerId::new("w").unwrap(),
        id: ClaimId(1),
        namespace: None,
        queues: vec![QueueName::new("q").unwrap()],
        names: Vec::new(),
        lease: Duration::from_secs(60),
        limit: 2,
    };
    let claimed = store.claim_tasks(claim).await.unwrap();
    assert_eq!(claimed.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["b"]);
}
