//! Transactions whose engine fails, dies, is stopped or is told to stop, at any moment.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use outlast::{Ctx, Engine, Error, Retry, Status, Tx, params};
use outlast_core::event::Event;
use outlast_store::faults::{Fault, FaultStore, Plan};

use super::support::{died, journal, kinds, seconds};
use super::transaction::{Bank, enter};

/// Moves an amount from ann to ben; the credit fails at first.
async fn transfer(ctx: Ctx, amount: i64) -> outlast::Result<i64> {
    let debit = move |tx: Tx| async move {
        enter(&tx, "debit").await?;
        tx.execute("UPDATE account SET balance = balance - ?1 WHERE id = 'ann'", params![amount]).await?;
        Ok(tx.query_one("SELECT balance FROM account WHERE id = 'ann'", params![]).await?.get::<i64>(0)?)
    };
    let left = ctx.transaction("debit", debit).await?;
    ctx.step("tell", async |_| Ok(())).await?;
    let credit = move |tx: Tx| async move {
        enter(&tx, "credit").await?;
        tx.execute("UPDATE account SET balance = balance + ?1 WHERE id = 'ben'", params![amount]).await?;
        if tx.attempt() < 2 { Err(Error::new("busy", "later")) } else { Ok(()) }
    };
    ctx.transaction("credit", credit).retry(Retry::attempts(3)).await?;
    Ok(left)
}

async fn client(engine: Engine) -> Option<i64> {
    let run = engine.start("transfer", &30).id("a").await.ok()?;
    run.result().await.ok()
}

/// The author's rows and the records of them, as they are in the file.
async fn together(bank: &Bank, engine: &Engine) {
    // There is no run if its start was what failed.
    let recorded = engine.run("a").unwrap().journal().await.unwrap_or_default();
    let finished = recorded.iter().filter_map(|event| match event {
        Event::StepFinished { key, .. } if key.as_str() != "tell" => Some(key.to_string()),
        _ => None,
    });
    assert_eq!(bank.ledger(), finished.collect::<Vec<_>>());
}

/// One fault at one call; whether it happened.
fn survives(plan: Plan) -> bool {
    let bank = Bank::new();
    let faulty = Arc::new(FaultStore::new(bank.store.clone(), plan));
    let first = bank.world.engine_on(faulty.clone()).workflow("transfer", transfer);
    let ended = bank.world.block_on(async {
        let play = pin!(async { client(first.start().await.ok()?).await });
        match select(pin!(died(&faulty)), play).await {
            Either::Left(_) => None,
            Either::Right((ended, _)) => ended,
        }
    });
    // Whoever looks does not go on with it meanwhile.
    let onlooker = bank.world.engine_on(bank.store.clone());
    let second = bank.world.engine_on(bank.store.clone()).workflow("transfer", transfer);
    bank.world.block_on(async {
        let onlooker = onlooker.start().await.unwrap();
        together(&bank, &onlooker).await;
        onlooker.shutdown().await;
        let second = second.start().await.unwrap();
        // The client begins again where its engine died or refused.
        let ended = match ended {
            Some(ended) => ended,
            None => client(second).await.expect("the second engine lives"),
        };
        assert_eq!(ended, 70, "{plan:?}");
    });
    assert_eq!(bank.balances(), [70, 30], "{plan:?}");
    assert_eq!(bank.ledger(), ["debit", "credit"], "{plan:?}");
    faulty.landed() > 0
}

/// Invariant: the rows and the record are there together or not at all, whatever fails when.
fn survives_at_every_call(fault: Fault) {
    let faults = (0..).take_while(|at| survives(Plan { at: *at, fault })).count();
    assert!(faults >= 8, "only {faults} calls were made to fail");
}

#[test]
fn rows_and_record_are_together_when_any_call_is_not_applied() {
    survives_at_every_call(Fault::NotApplied { in_doubt: false });
}

#[test]
fn rows_and_record_are_together_when_any_call_is_in_doubt_and_not_applied() {
    survives_at_every_call(Fault::NotApplied { in_doubt: true });
}

#[test]
fn rows_and_record_are_together_when_any_reply_is_lost() {
    survives_at_every_call(Fault::AppliedThenError);
}

#[test]
fn rows_and_record_are_together_when_the_engine_dies_after_any_call() {
    survives_at_every_call(Fault::AppliedThenCrash);
}

/// A door in the middle of a transaction: it says that it has begun, and waits until it may end.
#[derive(Clone)]
struct Door {
    begun: SyncSender<()>,
    end: Arc<Mutex<Receiver<()>>>,
}

/// The other side of a door.
struct Outside {
    begun: Receiver<()>,
    end: SyncSender<()>,
}

fn door() -> (Door, Outside) {
    let (begun, has_begun) = sync_channel(8);
    let (end, may_end) = sync_channel(8);
    (Door { begun, end: Arc::new(Mutex::new(may_end)) }, Outside { begun: has_begun, end })
}

const PATIENCE: Duration = Duration::from_secs(20);

impl Door {
    fn pass(&self) {
        let _ = self.begun.send(());
        self.end.lock().unwrap().recv_timeout(PATIENCE).expect("somebody lets it end");
    }
}

impl Outside {
    /// Lets the engine work until the transaction has begun.
    async fn has_begun(&self) {
        for _ in 0..PATIENCE.as_millis() {
            if self.begun.recv_timeout(Duration::from_millis(1)).is_ok() {
                return;
            }
            one_round().await;
        }
        panic!("the transaction does not begin");
    }
}

/// Lets everybody else who is ready do something, without letting time pass.
async fn one_round() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A workflow with a door in its transaction, then a month of sleep.
fn guarded(door: Door) -> impl Fn(Ctx, ()) -> Pin<Box<dyn Future<Output = outlast::Result<()>>>> + Send + Sync {
    move |ctx, ()| {
        let door = door.clone();
        Box::pin(async move {
            let body = move |tx: Tx| {
                let door = door.clone();
                async move {
                    enter(&tx, "begun").await?;
                    door.pass();
                    enter(&tx, "ended").await
                }
            };
            ctx.transaction("guarded", body).await?;
            ctx.sleep(seconds(30 * 86_400)).await
        })
    }
}

#[test]
fn a_cancel_lets_a_transaction_that_has_begun_end_first() {
    let (bank, (door, outside)) = (Bank::new(), door());
    bank.world.block_on(async {
        let engine = bank.world.engine_on(bank.store.clone()).workflow("guarded", guarded(door)).start().await.unwrap();
        let run = engine.start("guarded", &()).id("a").await.unwrap();
        outside.has_begun().await;
        let handle = engine.run("a").unwrap();
        let mut cancel = pin!(handle.cancel("enough").into_future());
        // Asked for while the transaction is under way.
        assert!(futures_util::poll!(cancel.as_mut()).is_pending());
        outside.end.send(()).unwrap();
        cancel.await.unwrap();
        let error = run.result::<()>().await.unwrap_err();
        assert_eq!(error.code(), "aborted", "{error}");
        let kinds = kinds(&engine, "a").await;
        let place = |kind| kinds.iter().position(|found| *found == kind).unwrap();
        assert!(place("STEP_FINISHED") < place("CANCEL_REQUESTED"), "{kinds:?}");
    });
    assert_eq!(bank.ledger(), ["begun", "ended"]);
}

#[test]
fn a_pause_lets_a_transaction_that_has_begun_end_first() {
    let (bank, (door, outside)) = (Bank::new(), door());
    bank.world.block_on(async {
        let engine = bank.world.engine_on(bank.store.clone()).workflow("guarded", guarded(door)).start().await.unwrap();
        engine.start("guarded", &()).id("a").await.unwrap();
        outside.has_begun().await;
        let handle = engine.run("a").unwrap();
        let mut pause = pin!(handle.pause("lunch").into_future());
        assert!(futures_util::poll!(pause.as_mut()).is_pending());
        outside.end.send(()).unwrap();
        pause.await.unwrap();
        let mut attached = handle.attach();
        let mut seen = Vec::new();
        while let Some(event) = attached.next().await.unwrap() {
            seen.push(event.kind().name());
        }
        assert_eq!(handle.status().await.unwrap(), Status::Paused, "{seen:?}");
        assert!(kinds(&engine, "a").await.starts_with(&["STEP_FINISHED"]));
    });
    assert_eq!(bank.ledger(), ["begun", "ended"]);
}

#[test]
fn a_shutdown_waits_for_a_transaction_that_has_begun() {
    let (bank, (door, outside)) = (Bank::new(), door());
    bank.world.block_on(async {
        let engine = bank.world.engine_on(bank.store.clone()).workflow("guarded", guarded(door)).start().await.unwrap();
        engine.start("guarded", &()).id("a").await.unwrap();
        outside.has_begun().await;
        let mut shutdown = pin!(engine.shutdown());
        assert!(futures_util::poll!(shutdown.as_mut()).is_pending());
        outside.end.send(()).unwrap();
        shutdown.await;
        let (unused, _outside) = self::door();
        let second =
            bank.world.engine_on(bank.store.clone()).workflow("guarded", guarded(unused)).start().await.unwrap();
        assert!(
            matches!(&journal(&second, "a").await[..], [Event::StepFinished { .. }, ..]),
            "it was recorded in time"
        );
        second.shutdown().await;
    });
    assert_eq!(bank.ledger(), ["begun", "ended"]);
}

/// The program comes to its end while its transaction is under way: the end is recorded after it.
#[test]
fn a_workflow_that_ends_beside_its_transaction_ends_after_it() {
    let (bank, (door, outside)) = (Bank::new(), door());
    let (told, tell) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None::<std::task::Waker>)));
    let (flag, slot) = (told.clone(), tell.clone());
    let hasty = move |ctx: Ctx, ()| {
        let (door, flag, slot) = (door.clone(), flag.clone(), slot.clone());
        async move {
            let body = move |tx: Tx| {
                let door = door.clone();
                async move {
                    enter(&tx, "begun").await?;
                    door.pass();
                    Ok(())
                }
            };
            let transaction = ctx.transaction("slow", body).start();
            let waiting = slot.clone();
            let mut step = ctx.step("beside", async move |_| {
                std::future::poll_fn(|context| {
                    *waiting.lock().unwrap() = Some(context.waker().clone());
                    Poll::<()>::Pending
                })
                .await;
                Ok(())
            });
            std::future::poll_fn(|context| {
                let _ = Pin::new(&mut step).poll(context);
                assert!(!flag.load(Ordering::SeqCst), "enough");
                Poll::<()>::Pending
            })
            .await;
            transaction.await
        }
    };
    bank.world.block_on(async {
        let engine = bank.world.engine_on(bank.store.clone()).workflow("hasty", hasty).start().await.unwrap();
        let run = engine.start("hasty", &()).id("a").await.unwrap();
        outside.has_begun().await;
        told.store(true, Ordering::SeqCst);
        tell.lock().unwrap().take().expect("the step runs beside it").wake();
        // Time for the program to end; nothing of that can be seen yet.
        for _ in 0..100 {
            one_round().await;
        }
        outside.end.send(()).unwrap();
        assert_eq!(run.result::<()>().await.unwrap_err().code(), "panic");
        assert_eq!(kinds(&engine, "a").await, ["STEP_FINISHED", "RUN_ERRORED"]);
    });
    assert_eq!(bank.ledger(), ["begun"]);
}
