//! Dropping any future at any await leaves the store healthy.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use outlast_core::commit::{Commit, Then};
use outlast_core::id::{ClaimId, Index};
use outlast_store::{Pick, SqliteOptions, Store};

use super::scene::{Folder, append, claim, create_owned, load, new_run, register, run, signal};

/// Resolves to none after so many polls of what it wraps.
struct AfterPolls<F> {
    inner: Pin<Box<F>>,
    left: u32,
}

impl<F: Future> Future for AfterPolls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match self.inner.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => {
                // Come back at once: the next poll may be the last.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

async fn abort_after<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    pin!(AfterPolls { inner: Box::pin(future), left: polls }).await
}

fn count() -> u64 {
    let quick = std::env::var_os("OUTLAST_QUICK").is_some();
    let asked = std::env::var("OUTLAST_CASES").ok().and_then(|cases| cases.parse().ok());
    asked.unwrap_or(if quick { 1_000 } else { 10_000 })
}

/// A small generator of its own: the sequence is the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_aborted_calls_leave_the_store_healthy() {
    let folder = Folder::new();
    let store = Arc::new(folder.open(SqliteOptions::default()).await.unwrap());
    let lease = register(&*store).await;
    let fence = create_owned(&*store, "driven", lease).await;
    let seed = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let mut dice = Dice(seed);
    let mut aborted = 0;
    for round in 0..count() {
        let polls = u32::try_from(dice.roll(4)).unwrap();
        let finished = match dice.roll(7) {
            0 => abort_after(polls, append(&*store, "driven", fence, round, "x")).await.is_some(),
            1 => abort_after(polls, store.create(vec![new_run(&format!("run-{round}"), None)])).await.is_some(),
            2 => abort_after(polls, store.claim(claim(lease, 2, 3))).await.is_some(),
            3 => abort_after(polls, store.deliver(vec![signal("driven", &format!("d-{}", dice.roll(50)))]))
                .await
                .is_some(),
            4 => abort_after(polls, load(&*store, "driven")).await.is_some(),
            5 => abort_after(polls, store.sweep(10)).await.is_some(),
            _ => abort_after(polls, store.wakes(lease, 10)).await.is_some(),
        };
        aborted += u64::from(!finished);
    }
    assert!(aborted * 4 > count(), "only {aborted} calls were aborted");

    // Healthy: the journal is whole, a commit at its end works, and nothing that was claimed is stranded.
    let loaded = load(&*store, "driven").await.unwrap();
    append(&*store, "driven", fence, loaded.events.len() as u64, "last").await.unwrap();
    let again = store.claim(claim(lease, 2, 256)).await.unwrap();
    for claimed in again {
        let suspend = Commit { then: Then::Suspend, ..Commit::new(claimed.run, claimed.fence, claimed.next) };
        store.commit(vec![suspend]).await.remove(0).unwrap();
    }
}

#[tokio::test]
async fn a_claim_whose_reply_nobody_took_is_given_again_to_whoever_asks_with_its_id() {
    let folder = Folder::new();
    let store = folder.open(SqliteOptions::default()).await.unwrap();
    let lease = register(&store).await;
    store.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    // One poll sends the request. Its answer is never read, also if it comes as quickly as that.
    drop(abort_after(1, store.claim(claim(lease, 5, 10))).await);
    let again = store.claim(claim(lease, 5, 10)).await.unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].tries, 0, "the same claim, not a second one");
    let other = outlast_store::Claim { id: ClaimId(6), pick: Pick::Ready, ..claim(lease, 6, 10) };
    assert_eq!(store.claim(other).await.unwrap(), vec![]);
    assert_eq!(store.get(run("a")).await.unwrap().next, Index(0));
}
