//! Dropping any future at any await leaves the store healthy.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use outlast_core::commit::{Commit, Then};
use outlast_core::id::{ClaimId, Index};
use outlast_store::Store;

use super::scene::{Schema, append, claim, create_owned, load, new_run, register, run, signal};

/// Resolves to none after so many polls of what it wraps.
struct AfterPolls<F> {
    inner: Pin<Box<F>>,
    left: u64,
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

/// Whether it finished.
async fn abort_after<F: Future>(polls: u64, future: F) -> bool {
    AfterPolls { inner: Box::pin(future), left: polls }.await.is_some()
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
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = register(&store).await;
    let fence = create_owned(&store, "driven", lease).await;
    let seed = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let mut dice = Dice(seed);
    let mut aborted = 0;
    for round in 0..count() {
        let polls = dice.roll(5) * dice.roll(5);
        let finished = match dice.roll(9) {
            0 => abort_after(polls, append(&store, "driven", fence, round, "x")).await,
            1 => abort_after(polls, store.create(vec![new_run(&format!("run-{round}"), None)])).await,
            2 => abort_after(polls, store.claim(claim(lease, 2, 3))).await,
            3 => abort_after(polls, store.deliver(vec![signal("driven", &format!("d-{}", dice.roll(50)))])).await,
            4 => abort_after(polls, load(&store, "driven")).await,
            5 => abort_after(polls, store.sweep(10)).await,
            6 => abort_after(polls, store.renew(lease, std::time::Duration::from_secs(3_600))).await,
            7 => abort_after(polls, store.awaiting(run("driven"))).await,
            _ => abort_after(polls, store.wakes(lease, 10)).await,
        };
        aborted += u64::from(!finished);
    }
    assert!(aborted * 4 > count(), "only {aborted} calls were aborted");

    // Healthy: the journal is whole, a commit at its end works, and nothing that was claimed is stranded.
    let loaded = load(&store, "driven").await.unwrap();
    append(&store, "driven", fence, loaded.events.len() as u64, "last").await.unwrap();
    loop {
        let again = store.claim(claim(lease, 2, 256)).await.unwrap();
        if again.is_empty() {
            break;
        }
        for claimed in again {
            let suspend = Commit { then: Then::Suspend, ..Commit::new(claimed.run, claimed.fence, claimed.next) };
            store.commit(vec![suspend]).await.remove(0).unwrap();
        }
    }
    let stranded = "SELECT count(*) FROM run WHERE owner IS NOT NULL AND id <> 'driven' AND $1 <> ''";
    schema.until(stranded, 0).await;
    let idle =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND state LIKE 'idle in transaction%'";
    schema.until(idle, 0).await;
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_reply_nobody_took_is_given_again_to_whoever_asks_with_its_id() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = register(&store).await;
    store.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    // One poll sends the request; its answer is never read, and it may still be on its way when the next one comes.
    assert!(!abort_after(1, store.claim(claim(lease, 5, 10))).await);
    let again = store.claim(claim(lease, 5, 10)).await.unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].tries, 0, "the same claim, not a second one");
    let other = outlast_store::Claim { id: ClaimId(6), ..claim(lease, 6, 10) };
    assert_eq!(store.claim(other).await.unwrap(), vec![]);
    assert_eq!(store.get(run("a")).await.unwrap().next, Index(0));
    schema.end().await;
}
