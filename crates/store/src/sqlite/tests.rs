//! What waits for the disk.

use bytes::Bytes;
use outlast_core::commit::{NewTask, PRIORITY_DEFAULT};
use outlast_core::id::{ClaimId, QueueName, RunId, TaskName, WorkerId};

use super::*;
use crate::api::{Pick, Serves};

/// What others are told must outlive the machine; who does what need only outlive this process.
#[test]
fn only_what_ends_with_the_process_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(folder.path().join("a.db"), SqliteOptions::default()).await.unwrap();
        let last = || store.queues.as_ref().unwrap().0.last();
        let minute = Duration::from_secs(60);
        let run = RunKey { namespace: Namespace::default_namespace(), id: RunId::new("a").unwrap() };
        let (workflow, version) = (WorkflowName::new("w").unwrap(), Version::new("1").unwrap());
        store.create(vec![NewRun::new(run.clone(), workflow, version, Bytes::new())]).await;
        assert_eq!(last(), Lasting::Forever, "a start");
        let lease = store.register(NodeId::new("n").unwrap(), minute).await.unwrap().id;
        assert_eq!(last(), Lasting::Process, "a lease");
        let (pick, serves) = (Pick::Ready, Serves::Everything);
        let claim = Claim { lease, id: ClaimId(1), limit: 1, pick, serves };
        let claimed = store.claim(claim).await.unwrap().remove(0);
        assert_eq!(last(), Lasting::Process, "a claim");
        store.commit(vec![Commit::new(run.clone(), claimed.fence, claimed.next)]).await.remove(0).unwrap();
        assert_eq!(last(), Lasting::Forever, "a commit");
        store
            .take(vec![Take { run: run.clone(), fence: claimed.fence, read: outlast_core::id::InboxId(0) }])
            .await
            .remove(0)
            .unwrap();
        store.sweep(1).await.unwrap();
        assert_eq!(last(), Lasting::Process, "what is taken, and what is due");
        let task = NewTask {
            id: outlast_core::id::TaskId::new("t").unwrap(),
            key: None,
            name: TaskName::new("t").unwrap(),
            queue: QueueName::new("q").unwrap(),
            priority: PRIORITY_DEFAULT,
            args: Bytes::new(),
            available_at: None,
            meta: None,
        };
        store
            .enqueue(vec![StandaloneTask { namespace: Namespace::default_namespace(), task: task.clone() }])
            .await
            .remove(0)
            .unwrap();
        assert_eq!(last(), Lasting::Forever, "a task");
        store.renew(lease, minute).await.unwrap();
        assert_eq!(last(), Lasting::Process, "a renewal");
        let definition = crate::Definition {
            namespace: Namespace::default_namespace(),
            workflow: WorkflowName::new("w").unwrap(),
            version: Version::new("hash").unwrap(),
            style: crate::Style::Flow,
            file: String::new(),
            text: Bytes::new(),
        };
        store.define(vec![definition]).await.remove(0).unwrap();
        assert_eq!(last(), Lasting::Forever, "a definition");
        store.renew(lease, minute).await.unwrap();
        let worker = WorkerId::new("n").unwrap();
        let (queues, names) = (vec![task.queue], Vec::new());
        let claim = ClaimTasks { worker, id: ClaimId(2), namespace: None, queues, names, lease: minute, limit: 1 };
        assert_eq!(store.claim_tasks(claim).await.unwrap().len(), 1);
        assert_eq!(last(), Lasting::Forever, "an attempt counts, whatever happens to the machine");
    });
}
