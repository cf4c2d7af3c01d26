use outlast_core::id::{Namespace, RunId};

use super::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn run(id: &str) -> RunKey {
    RunKey::new(Namespace::default_namespace(), RunId::new(id).unwrap())
}

fn suspects(ids: &[&str]) -> Suspects {
    let mut suspects = Suspects::default();
    ids.iter().for_each(|id| suspects.remember(run(id)));
    suspects
}

#[test]
fn without_suspects_nobody_is_kept_out() {
    let (mut none, board) = (Suspects::default(), Board::new());
    board.driven_more(3);
    assert_eq!(none.next(seconds(0), &board), None);
    assert!(!none.excludes_others() && board.enter(10));
    assert_eq!(none.ask_at(), None);
}

#[test]
fn a_suspect_begins_when_the_last_of_the_others_has_left() {
    let (mut one, board) = (suspects(&["a"]), Board::new());
    board.driven_more(2);
    assert_eq!(one.next(seconds(0), &board), None);
    assert!(one.excludes_others());
    assert!(!board.enter(10), "nor may a run that is started here begin");
    board.driven_one_less();
    assert_eq!(one.next(seconds(1), &board), None);
    board.driven_one_less();
    assert_eq!(one.next(seconds(2), &board), Some(run("a")));
    board.suspect_begins();
    board.driven_more(1);
    assert_eq!(one.next(seconds(3), &board), None);
    assert!(one.excludes_others());
    board.suspect_settled();
    assert_eq!(one.next(seconds(4), &board), None);
    assert!(!one.excludes_others(), "it has committed, and nobody else is suspected");
    assert!(board.enter(10));
}

#[test]
fn suspects_come_one_after_the_other() {
    let (mut two, board) = (suspects(&["a", "b", "a"]), Board::new());
    assert_eq!(two.next(seconds(0), &board), Some(run("a")));
    board.suspect_begins();
    board.driven_more(1);
    board.suspect_settled();
    assert_eq!(two.next(seconds(1), &board), None, "the first has committed, but is still driven");
    board.driven_one_less();
    assert_eq!(two.next(seconds(2), &board), Some(run("b")));
    assert_eq!(two.next(seconds(3), &board), None, "each once");
    assert!(!two.excludes_others(), "the second could not be claimed, so nothing of it is driven");
}

#[test]
fn others_that_do_not_leave_go_on_after_a_while() {
    let (mut one, board) = (suspects(&["a"]), Board::new());
    board.driven_more(1);
    assert_eq!(one.next(seconds(0), &board), None);
    assert_eq!(one.ask_at(), Some(PATIENCE));
    assert_eq!(one.next(PATIENCE, &board), None);
    assert!(!one.excludes_others() && one.is_resting());
    assert_eq!(one.next(PATIENCE + REST, &board), None);
    assert!(one.excludes_others(), "it is tried again");
    board.driven_one_less();
    assert_eq!(one.next(PATIENCE + REST + seconds(1), &board), Some(run("a")));
}

#[test]
fn a_suspect_with_a_long_body_does_not_keep_others_out_for_ever() {
    let (mut two, board) = (suspects(&["a", "b"]), Board::new());
    assert_eq!(two.next(seconds(0), &board), Some(run("a")));
    board.suspect_begins();
    board.driven_more(1);
    assert_eq!(two.next(SESSION - seconds(1), &board), None);
    assert!(two.excludes_others());
    assert_eq!(two.next(SESSION, &board), None);
    assert!(!two.excludes_others());
}

#[cfg(feature = "testing")]
mod poison {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::task::Poll;

    use futures_util::future::{Either, select};
    use futures_util::task::AtomicWaker;
    use outlast_core::commit::{NewRun, Owner};
    use outlast_core::id::{ClaimId, Index, NodeId, Version, WorkflowName};
    use outlast_core::limits::{Limits, TRIES_ALONE, TRIES_MAX};
    use outlast_store::{Claim, MemoryStore, Pick, Serves, Store};
    use tokio::sync::Notify;

    use super::*;
    use crate::testing::World;
    use crate::{Ctx, Engine, Outlast};

    /// What the process that is about to die knew.
    #[derive(Default)]
    struct Process {
        exploded: AtomicBool,
        watcher: AtomicWaker,
        second: Notify,
        /// Bodies of innocent runs that run right now.
        bodies: AtomicUsize,
    }

    impl Process {
        fn explode(&self) {
            self.exploded.store(true, Ordering::SeqCst);
            self.watcher.wake();
        }

        async fn dies(&self) {
            std::future::poll_fn(|context| {
                self.watcher.register(context.waker());
                if self.exploded.swap(false, Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    struct Body<'p>(&'p Process);

    impl<'p> Body<'p> {
        fn begins(process: &'p Process) -> Body<'p> {
            process.bodies.fetch_add(1, Ordering::SeqCst);
            Body(process)
        }
    }

    impl Drop for Body<'_> {
        fn drop(&mut self) {
            self.0.bodies.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Takes a second, long enough for whoever runs beside it to die.
    async fn work(process: &Process) {
        let _running = Body::begins(process);
        process.second.notified().await;
    }

    async fn nap(ctx: Ctx, (): ()) -> crate::Result<()> {
        ctx.sleep(seconds(1)).await
    }

    /// Lets time go by, a second at a time, and ends the work of those who began before.
    async fn tick(world: &World, process: &Process) {
        let engine = world.engine().workflow("nap", nap).start().await.unwrap();
        loop {
            engine.start("nap", &()).await.unwrap().result::<()>().await.unwrap();
            process.second.notify_waiters();
        }
    }

    fn register(engine: Outlast, process: &Arc<Process>) -> Outlast {
        let (bomb, worker) = (Arc::clone(process), Arc::clone(process));
        engine
            .node(NodeId::new("n").unwrap())
            .workflow("poison", move |ctx: Ctx, (): ()| {
                let bomb = Arc::clone(&bomb);
                async move {
                    ctx.step("boom", async |_| {
                        bomb.explode();
                        std::future::pending::<crate::Result<()>>().await
                    })
                    .await
                }
            })
            .workflow("innocent", move |ctx: Ctx, (): ()| {
                let worker = Arc::clone(&worker);
                async move {
                    ctx.step("work", async |_| {
                        work(&worker).await;
                        Ok(())
                    })
                    .await
                }
            })
    }

    /// The run that kills parks, and the others end.
    async fn survivors(engine: &Engine) {
        let poison = engine.run("poison").unwrap().result::<()>().await.unwrap_err();
        assert_eq!(poison.code(), "parked", "{poison}");
        assert!(poison.to_string().contains("claimed 10 times without progress"), "{poison}");
        for id in ["a", "b", "c"] {
            engine.run(id).unwrap().result::<()>().await.unwrap();
        }
    }

    /// "From the third on a run is driven alone; at ten it parks", so that a run that kills its process takes nobody along.
    #[test]
    fn a_run_that_kills_its_process_parks_and_takes_nobody_along() {
        let (world, process) = (World::new(), Arc::new(Process::default()));
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        let (mut explosions, mut victims) = (0, Vec::new());
        loop {
            let host = world.process(store.clone());
            let died = world.block_on(async {
                let engine = register(host.engine(), &process).start().await.unwrap();
                if explosions == 0 {
                    for id in ["a", "b", "c"] {
                        engine.start("innocent", &()).id(id).await.unwrap();
                    }
                    engine.start("poison", &()).id("poison").await.unwrap();
                }
                let (death, survival) = (pin!(process.dies()), pin!(survivors(&engine)));
                match select(select(death, survival), pin!(tick(&world, &process))).await {
                    Either::Left((Either::Left(_), _)) => true,
                    Either::Left((Either::Right(_), _)) | Either::Right(_) => false,
                }
            });
            if !died {
                break;
            }
            victims.push(process.bodies.load(Ordering::SeqCst));
            host.crash();
            explosions += 1;
            assert!(explosions <= TRIES_MAX, "it should have parked");
        }
        assert_eq!(explosions, TRIES_MAX);
        let (beside, alone) = victims.split_at(TRIES_ALONE as usize);
        assert!(beside.iter().all(|victims| *victims > 0), "at first they run side by side: {victims:?}");
        assert!(alone.iter().all(|victims| *victims == 0), "from the third try on it is alone: {victims:?}");
    }

    /// Runs that were there each time when the process died.
    async fn suspected(store: &MemoryStore, workflow: &str, ids: &[&str]) {
        let lease = store.register(NodeId::new("first").unwrap(), seconds(1)).await.unwrap();
        for id in ids {
            let (name, version) = (WorkflowName::new(workflow).unwrap(), Version::new("1").unwrap());
            let owner = Some(Owner { lease: lease.id, claim: ClaimId(1) });
            let new = NewRun { owner, ..NewRun::new(run(id), name, version, "null".into()) };
            store.create(vec![new]).await.remove(0).unwrap();
        }
        store.retire(lease.id).await.unwrap();
        for _ in 1..TRIES_ALONE {
            let lease = store.register(NodeId::new("mortal").unwrap(), seconds(1)).await.unwrap().id;
            let (pick, serves) = (Pick::Ready, Serves::Everything);
            let claim = Claim { lease, id: ClaimId(1), limit: 10, pick, serves };
            assert_eq!(store.claim(claim).await.unwrap().len(), ids.len());
            store.retire(lease).await.unwrap();
        }
    }

    /// Suspicion ends with the first commit: others are not kept waiting for the rest of the run.
    #[test]
    fn others_go_on_as_soon_as_a_suspect_has_committed() {
        async fn long(ctx: Ctx, (): ()) -> crate::Result<()> {
            ctx.step("short", async |_| Ok(())).await?;
            ctx.step("long", async |_| std::future::pending().await).await
        }
        let (world, process) = (World::new(), Arc::new(Process::default()));
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        world.block_on(async {
            suspected(&store, "long", &["a"]).await;
            let builder = register(world.engine_on(store.clone()), &process).workflow("long", long);
            let engine = builder.start().await.unwrap();
            let began = world.now();
            let other = pin!(async {
                // Until the suspect has been taken in.
                engine.start("innocent", &()).await.unwrap().result::<()>().await.unwrap();
                while store.get(run("a")).await.unwrap().next == Index(0) {
                    engine.start("innocent", &()).await.unwrap().result::<()>().await.unwrap();
                }
                engine.start("innocent", &()).await.unwrap().result::<()>().await.unwrap();
            });
            select(other, pin!(tick(&world, &process))).await;
            let took = world.now().as_millis() - began.as_millis();
            assert!(took < 10_000, "nobody waited for the long body: {took} ms");
        });
    }

    #[test]
    fn runs_that_died_with_others_go_on_one_by_one_and_are_no_suspects_then() {
        let (world, process) = (World::new(), Arc::new(Process::default()));
        let store = Arc::new(MemoryStore::new(world.clock(), Limits::default()));
        world.block_on(async {
            suspected(&store, "innocent", &["a", "b", "c", "d"]).await;
            let engine = register(world.engine_on(store.clone()), &process).start().await.unwrap();
            let began = world.now();
            let ended = pin!(async {
                for id in ["a", "b", "c", "d"] {
                    engine.run(id).unwrap().result::<()>().await.unwrap();
                    assert_eq!(store.get(run(id)).await.unwrap().tries, 0);
                }
            });
            select(ended, pin!(tick(&world, &process))).await;
            let took = world.now().as_millis() - began.as_millis();
            assert!((4_000..6_000).contains(&took), "each alone, a second each, and no rest between: {took} ms");
        });
    }
}
