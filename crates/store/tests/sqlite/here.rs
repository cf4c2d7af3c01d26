//! A thread that has nothing else to do writes itself: with the same outcome, and never past somebody who waits.

use std::task::{Context, Waker};

use outlast_core::Bytes;
use outlast_core::commit::{Commit, Delivery, Then};
use outlast_core::id::{Fence, Index, LeaseId};
use outlast_store::{Claimed, CommitError, Created, Delivered, SqliteOptions, SqliteStore, Store, StoreError, Trouble};

use super::scene::{Folder, append, claim, create_owned, load, new_run, record, register, run, signal};

fn commit(id: &str, fence: Fence, at: u64, payload: Bytes) -> Commit {
    Commit { events: vec![record(payload)], ..Commit::new(run(id), fence, Index(at)) }
}

fn create_here(store: &SqliteStore, id: &str, lease: LeaseId) -> Fence {
    let created = store.create_here(&[new_run(id, Some(lease))]).expect("nobody else writes").remove(0).unwrap();
    match created {
        Created::Created { fence, .. } => fence,
        Created::Existing { .. } | Created::Joined { .. } => panic!("{id} is not new"),
    }
}

#[tokio::test]
async fn what_is_written_here_is_what_the_writer_would_have_written() {
    let folder = Folder::new();
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    let lease = register(&store).await;
    let (here, there) = (create_here(&store, "here", lease), create_owned(&store, "there", lease).await);
    assert_eq!(here, there);
    for at in 0..3 {
        let answers = store.commit_here(&[commit("here", here, at, Bytes::from_static(b"1"))]).unwrap();
        let [Ok(committed)] = &answers[..] else { panic!("{answers:?}") };
        let same = append(&store, "there", there, at, &b"1"[..]).await.unwrap();
        assert_eq!(committed.next, same.next);
    }
    let (here, there) = (load(&store, "here").await.unwrap(), load(&store, "there").await.unwrap());
    assert_eq!(here.events, there.events);
    assert_eq!(here.events.len(), 3);
    assert!(matches!(store.create_here(&[new_run("here", None)]).unwrap()[..], [Ok(Created::Existing { .. })]));
}

#[tokio::test]
async fn what_is_refused_here_is_refused_in_the_same_words_and_the_rest_of_the_batch_counts() {
    let folder = Folder::new();
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    let lease = register(&store).await;
    let fence = create_owned(&store, "run", lease).await;
    let stale = commit("run", Fence(fence.0 + 1), 0, Bytes::from_static(b"1"));
    let expected = store.commit(vec![stale.clone()]).await;
    let answers = store.commit_here(&[stale, commit("run", fence, 0, Bytes::from_static(b"2"))]).unwrap();
    assert_eq!(format!("{:?}", answers[0]), format!("{:?}", expected[0]));
    assert!(answers[1].is_ok(), "{answers:?}");
    assert_eq!(load(&store, "run").await.unwrap().events.len(), 1);
}

#[tokio::test]
async fn a_full_disk_is_told_here_too_and_nothing_is_applied() {
    let folder = Folder::new();
    let options = SqliteOptions { bytes_max: Some(1024 * 1024), ..SqliteOptions::default() };
    let store = folder.open(options).await.unwrap();
    let lease = register(&store).await;
    let fence = create_here(&store, "run", lease);
    let large = Bytes::from(vec![b'x'; 2 * 1024 * 1024]);
    let answers = store.commit_here(&[commit("run", fence, 0, large)]).unwrap();
    let full = |error: &CommitError| {
        matches!(error, CommitError::NotApplied(StoreError::Unavailable { trouble: Trouble::DiskFull, .. }))
    };
    assert!(answers[0].as_ref().is_err_and(full), "{answers:?}");
    let answers = store.commit_here(&[commit("run", fence, 0, Bytes::from_static(b"1"))]).unwrap();
    assert!(answers[0].is_ok(), "{answers:?}");
    assert_eq!(load(&store, "run").await.unwrap().events.len(), 1);
}

/// A run that waits.
async fn create_waiting(store: &SqliteStore, id: &str, lease: LeaseId) -> Fence {
    let fence = create_owned(store, id, lease).await;
    let turn = Commit { then: Then::Suspend, ..commit(id, fence, 0, Bytes::from_static(b"1")) };
    store.commit(vec![turn]).await.remove(0).unwrap();
    fence
}

fn deliver_here(store: &SqliteStore, lease: LeaseId, id: u64, deliveries: &[Delivery]) -> Vec<Claimed> {
    let both = store.deliver_and_claim_here(deliveries, &claim(lease, id, 10)).expect("nobody else writes");
    assert!(both.delivered.iter().all(|answer| matches!(answer, Ok(Delivered::Buffered))), "{both:?}");
    both.claimed.unwrap().unwrap()
}

#[tokio::test]
async fn what_is_delivered_here_is_claimed_with_the_inbox_that_a_load_reads() {
    let folder = Folder::new();
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    let lease = register(&store).await;
    let fence = create_waiting(&store, "run", lease).await;
    let claimed = deliver_here(&store, lease, 7, &[signal("run", "a"), signal("run", "b")]);
    let loaded = load(&store, "run").await.unwrap();
    assert_eq!((claimed.len(), claimed[0].fence, loaded.inbox.len()), (1, Fence(fence.0 + 1), 2));
    assert_eq!(claimed[0].inbox, Some(loaded.inbox));
}

#[tokio::test]
async fn an_inbox_that_is_large_is_not_read_with_a_claim() {
    let folder = Folder::new();
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    let lease = register(&store).await;
    create_waiting(&store, "many", lease).await;
    let many: Vec<Delivery> = (0..257).map(|n| signal("many", &format!("s{n}"))).collect();
    assert_eq!(deliver_here(&store, lease, 7, &many)[0].inbox, None);
    create_waiting(&store, "large", lease).await;
    let Delivery::Signal { run, signal } = signal("large", "s") else { panic!("a signal is a signal") };
    let large = outlast_core::commit::Signal { payload: vec![b'x'; 65 * 1_024].into(), ..signal };
    assert_eq!(deliver_here(&store, lease, 8, &[Delivery::Signal { run, signal: large }])[0].inbox, None);
    assert_eq!(load(&store, "many").await.unwrap().inbox.len(), 257);
}

/// Another process that holds the file's lock for a while.
struct Foreigner(rusqlite::Connection);

impl Foreigner {
    fn lock(folder: &Folder) -> Foreigner {
        let connection = rusqlite::Connection::open(folder.file()).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Foreigner(connection)
    }

    fn leave(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[tokio::test]
async fn whoever_waits_for_the_writer_is_not_overtaken() {
    let folder = Folder::new();
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    let lease = register(&store).await;
    let (first, second) = (create_owned(&store, "first", lease).await, create_owned(&store, "second", lease).await);
    let second = commit("second", second, 0, Bytes::from_static(b"1"));
    let foreigner = Foreigner::lock(&folder);
    let mut waiting = std::pin::pin!(append(&store, "first", first, 0, &b"1"[..]));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(store.commit_here(std::slice::from_ref(&second)).is_none(), "the first one waits");
    assert!(store.create_here(&[new_run("third", None)]).is_none(), "the first one waits");
    let delivered = store.deliver_and_claim_here(&[signal("second", "s")], &claim(lease, 9, 1));
    assert!(delivered.is_none(), "the first one waits");
    foreigner.leave();
    waiting.await.unwrap();
    let answers = store.commit_here(&[second]);
    assert!(answers.is_some_and(|answers| answers[0].is_ok()), "the writer has nothing to do any more");
    assert!(store.get(run("third")).await.is_err(), "what was not done here was not done at all");
    assert_eq!(load(&store, "second").await.unwrap().inbox, []);
}
