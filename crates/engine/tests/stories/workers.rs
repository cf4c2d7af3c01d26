//! Workers that die, freeze, lose their store or hear nothing. Seed 002, Workers; rows 20, 21, 30 and 52 of the catalogue.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::sync::Arc;
use std::time::Duration;

use outlast::testing::{Process, World};
use outlast::{Ctx, Engine, EngineError, Handler, Outlast, Retry, TaskContext};
use outlast_store::faults::Fault;
use tokio::sync::Notify;

use crate::support::{Tally, crash_at, kinds, seconds};

const LEASE: Duration = seconds(15);

async fn start(process: &Process, register: impl Fn(Outlast) -> Outlast) -> Engine {
    register(process.engine().lease(LEASE).poll(seconds(1))).start().await.unwrap()
}

/// A task whose first attempt ends when somebody says so, and whose others end at once. Each answers its number.
#[derive(Clone, Default)]
struct Slow {
    begun: Tally,
    gate: Arc<Notify>,
}

impl Slow {
    fn handler(&self) -> Handler {
        self.held_at(1)
    }

    /// The same, with another attempt that waits.
    fn held_at(&self, waits: u32) -> Handler {
        let slow = self.clone();
        Handler::new("slow", move |_: TaskContext, (): ()| {
            let (number, gate) = (slow.begun.add(), Arc::clone(&slow.gate));
            async move {
                if number == waits {
                    gate.notified().await;
                }
                Ok(number)
            }
        })
    }
}

async fn wait(ctx: Ctx, attempts: u32) -> outlast::Result<u32> {
    ctx.task("slow", &()).retry(Retry::attempts(attempts)).await
}

fn driving(engine: Outlast) -> Outlast {
    engine.workflow("wait", wait)
}

/// "A worker that dies loses its lease and the task runs elsewhere."
#[test]
fn what_a_dead_worker_held_is_done_by_another_when_its_lease_is_over() {
    let (world, slow) = (World::new(), Slow::default());
    let store = world.store();
    let [driver, first, second] = [(); 3].map(|()| world.process(store.clone()));
    world.block_on(async {
        let engine = start(&driver, driving).await;
        let _first = start(&first, |engine| engine.handler(slow.handler())).await;
        let run = engine.start("wait", &3).id("a").await.unwrap();
        world.sleep(seconds(2)).await;
        let _second = start(&second, |engine| engine.handler(slow.handler())).await;
        first.crash();
        let died = world.elapsed();
        assert_eq!(run.result::<u32>().await.unwrap(), 2);
        let took = world.elapsed() - died;
        assert!(took >= LEASE - seconds(5) && took <= LEASE + seconds(2), "{took:?}");
        assert_eq!(kinds(&engine, "a").await, ["TASK_SCHEDULED", "TASK_FINISHED", "RUN_FINISHED"]);
    });
}

/// Row 21: "A late result is refused without harm." It comes while the next attempt is under way.
#[test]
fn the_result_of_a_worker_that_slept_past_its_lease_is_refused_and_harms_nobody() {
    let (world, early, late) = (World::new(), Slow::default(), Slow::default());
    let store = world.store();
    let [driver, first, second] = [(); 3].map(|()| world.process(store.clone()));
    world.block_on(async {
        let engine = start(&driver, driving).await;
        let _first = start(&first, |engine| engine.handler(early.handler())).await;
        let run = engine.start("wait", &3).id("a").await.unwrap();
        world.sleep(seconds(2)).await;
        first.freeze();
        late.begun.add();
        let _second = start(&second, |engine| engine.handler(late.held_at(2))).await;
        while late.begun.count() < 2 {
            world.sleep(seconds(1)).await;
        }
        let lost = first.faults().log().iter().filter(|call| **call == "deliver").count();
        early.gate.notify_one();
        first.thaw();
        world.sleep(seconds(2)).await;
        let sent = first.faults().log().iter().filter(|call| **call == "deliver").count();
        assert_eq!(sent, lost + 1, "the late result was sent");
        assert_eq!(kinds(&engine, "a").await, ["TASK_SCHEDULED"], "and refused");
        late.gate.notify_one();
        assert_eq!(run.result::<u32>().await.unwrap(), 2, "the winner stands");
        world.sleep(LEASE * 2).await;
        assert_eq!(kinds(&engine, "a").await, ["TASK_SCHEDULED", "TASK_FINISHED", "RUN_FINISHED"]);
    });
}

/// A long task is kept by signs of life that its handler need not give.
#[test]
fn a_task_that_takes_longer_than_a_lease_is_not_done_twice() {
    let (world, slow) = (World::new(), Slow::default());
    let store = world.store();
    let [first, second] = [(); 2].map(|()| world.process(store.clone()));
    world.block_on(async {
        let engine = start(&first, |engine| driving(engine).handler(slow.handler())).await;
        let run = engine.start("wait", &1).id("a").await.unwrap();
        world.sleep(seconds(1)).await;
        let _second = start(&second, |engine| engine.handler(slow.handler())).await;
        world.sleep(LEASE * 10).await;
        assert_eq!(slow.begun.count(), 1);
        slow.gate.notify_one();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
    });
}

/// A task that kills each worker that begins it uses its attempts up, and then its run is told why.
#[test]
fn a_task_that_kills_its_workers_fails_when_its_attempts_are_used_up() {
    let world = World::new();
    let store = world.store();
    let driver = world.process(store.clone());
    world.block_on(async {
        let engine = start(&driver, driving).await;
        let run = engine.start("wait", &2).id("a").await.unwrap();
        for _ in 0..2 {
            let slow = Slow::default();
            let victim = world.process(store.clone());
            let _worker = start(&victim, |engine| engine.handler(slow.handler())).await;
            while slow.begun.count() == 0 {
                world.sleep(seconds(1)).await;
            }
            victim.crash();
        }
        let slow = Slow::default();
        let last = world.process(store.clone());
        let _worker = start(&last, |engine| engine.handler(slow.handler())).await;
        let Err(EngineError::Failed(failure)) = run.result::<u32>().await else { panic!("it was done") };
        assert_eq!((failure.code.as_str(), slow.begun.count()), ("worker_lost", 0));
        assert!(failure.message.contains("begun 2 times"), "{}", failure.message);
    });
}

/// "Every poll path still works" with no notice heard at all.
#[test]
fn workers_and_drivers_that_hear_nothing_find_everything_by_looking() {
    let (world, slow) = (World::new(), Slow::default());
    let store = world.store();
    let [driver, worker] = [(); 2].map(|()| world.process(store.clone()));
    driver.deaf(true);
    worker.deaf(true);
    world.block_on(async {
        let engine = start(&driver, driving).await;
        let _worker = start(&worker, |engine| engine.handler(slow.handler())).await;
        // Whatever both do when they begin is done: from here on they only look now and then.
        world.sleep(seconds(3)).await;
        slow.gate.notify_one();
        let run = engine.start("wait", &1).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
        assert!(world.elapsed() <= seconds(8), "{:?}", world.elapsed());
    });
}

/// "Completion + result + parent's resume: one atomic statement": a crash at any call loses nothing and repeats nothing that
/// was recorded.
#[test]
fn a_task_survives_a_crash_at_every_call() {
    let mut crashes = 0;
    for at in 1.. {
        let told = crash_at(
            at,
            |_, engine| driving(engine).handler(Handler::new("slow", |_: TaskContext, (): ()| async { Ok(7_u32) })),
            async |engine: Engine| {
                engine.start("wait", &9).id("a").await.ok()?;
                let result = engine.run("a").ok()?.result::<u32>().await.ok()?;
                let journal = engine.run("a").ok()?.journal().await.ok()?;
                Some((result, journal.iter().map(|event| event.kind().name()).collect::<Vec<_>>()))
            },
        );
        let Some((result, kinds)) = told else { break };
        assert_eq!(result, 7, "crash at call {at}");
        assert_eq!(kinds, ["TASK_SCHEDULED", "TASK_FINISHED", "RUN_FINISHED"], "crash at call {at}");
        crashes += 1;
    }
    assert!(crashes >= 8, "{crashes}");
}

/// A store that does not answer for a while costs no result.
#[test]
fn a_result_that_could_not_be_stored_is_stored_later() {
    for fault in [Fault::NotApplied { in_doubt: false }, Fault::AppliedThenError] {
        let (world, slow) = (World::new(), Slow::default());
        let process = world.process(world.store());
        world.block_on(async {
            let engine = start(&process, |engine| driving(engine).handler(slow.handler())).await;
            let run = engine.start("wait", &1).id("a").await.unwrap();
            world.sleep(seconds(2)).await;
            process.faults().plan_next_of("deliver", 0, fault);
            slow.gate.notify_one();
            assert_eq!(run.result::<u32>().await.unwrap(), 1);
            assert_eq!((slow.begun.count(), process.faults().landed()), (1, 1));
        });
    }
}

/// A worker whose store does not answer shows signs of life all the same; what it holds stays its own.
#[test]
fn a_call_of_a_worker_that_hangs_does_not_cost_it_its_tasks() {
    let (world, slow) = (World::new(), Slow::default());
    let store = world.store();
    let [driver, first, second] = [(); 3].map(|()| world.process(store.clone()));
    world.block_on(async {
        let engine = start(&driver, driving).await;
        let run = engine.start("wait", &3_u32).id("a").await.unwrap();
        let _first = start(&first, |engine| engine.handler(slow.handler())).await;
        world.sleep(seconds(2)).await;
        assert_eq!(slow.begun.count(), 1);
        let _second = start(&second, |engine| engine.handler(slow.handler())).await;
        // What it asks next, about tasks, is answered after many leases.
        first.faults().plan_next_of("outlook", 0, Fault::Hang { long: seconds(600), applied: true });
        world.sleep(seconds(300)).await;
        assert_eq!(slow.begun.count(), 1, "nobody began it again");
        slow.gate.notify_one();
        assert_eq!(run.result::<u32>().await.unwrap(), 1);
    });
}

/// Counts when it is dropped.
struct Dropped(Tally);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add();
    }
}

/// Whoever cannot show signs of life stops before somebody else may begin.
#[test]
fn an_attempt_whose_signs_of_life_do_not_arrive_is_stopped_when_its_lease_ends() {
    let (world, stopped) = (World::new(), Tally::default());
    let store = world.store();
    let [driver, first] = [(); 2].map(|()| world.process(store.clone()));
    world.block_on(async {
        let engine = start(&driver, driving).await;
        engine.start("wait", &3_u32).id("a").await.unwrap();
        let seen = stopped.clone();
        let hang = move |_: TaskContext, (): ()| {
            let dropped = Dropped(seen.clone());
            async move {
                let _dropped = dropped;
                std::future::pending::<outlast::Result<u32>>().await
            }
        };
        let _first = start(&first, |engine| engine.task("slow", hang.clone())).await;
        world.sleep(seconds(2)).await;
        first.faults().fail_next("heartbeat", 100, Fault::Hang { long: seconds(600), applied: false });
        assert_eq!(stopped.count(), 0);
        world.sleep(LEASE).await;
        assert_eq!(stopped.count(), 1, "it was stopped");
    });
}

/// Seed 002, Workers: claiming is fair. A queue that never runs dry is not all a worker does.
#[test]
fn a_worker_of_two_queues_and_a_limited_task_does_some_of_each() {
    let world = World::new();
    let process = world.process(world.store());
    world.block_on(async {
        let done: [Tally; 3] = Default::default();
        let count = |of: usize| {
            let (tally, time) = (done[of].clone(), world.time());
            move |_: TaskContext, (): ()| {
                let (tally, nap) = (tally.clone(), time.sleep(seconds(1)));
                async move {
                    nap.await;
                    tally.add();
                    Ok(())
                }
            }
        };
        let engine = start(&process, |engine| {
            let limited = Handler::new("few", count(1)).concurrency(1);
            let other = Handler::new("other", count(2)).queue("z");
            engine.task("many", count(0)).handler(limited).handler(other).tasks_max(2)
        })
        .await;
        for name in ["many", "few"] {
            for _ in 0..60 {
                engine.enqueue(name, &()).await.unwrap();
            }
        }
        for _ in 0..60 {
            engine.enqueue("other", &()).queue("z").await.unwrap();
        }
        world.sleep(seconds(30)).await;
        let done = done.map(|tally| tally.count());
        assert!(done.iter().all(|done| *done >= 10), "of each some, and not all of one: {done:?}");
    });
}

/// Each queue is given a share of the room, and what one does not use is the other's at once, not when something ends.
#[test]
fn a_worker_of_two_queues_has_all_its_hands_for_the_one_that_has_work() {
    let world = World::new();
    let store = world.store();
    let process = world.process(Arc::clone(&store));
    world.block_on(async {
        let client = start(&world.process(store), |engine| engine).await;
        for _ in 0..9 {
            client.enqueue("many", &()).await.unwrap();
        }
        let begun = Tally::default();
        let tally = begun.clone();
        let endless = move |_: TaskContext, (): ()| {
            tally.add();
            std::future::pending::<outlast::Result<()>>()
        };
        let other = || Handler::new("other", |_: TaskContext, (): ()| async { Ok(()) }).queue("z");
        let _worker =
            start(&process, |engine| engine.task("many", endless.clone()).handler(other()).tasks_max(8)).await;
        world.sleep(Duration::from_millis(10)).await;
        assert_eq!(begun.count(), 8, "one has to wait");
    });
}

/// Handlers are exchanged while the engine runs: what runs ends with the handler it began with, what was waited for is done.
#[test]
fn handlers_that_come_later_do_what_was_waited_for_and_those_that_are_gone_do_no_more() {
    let (world, slow) = (World::new(), Slow::default());
    let process = world.process(world.store());
    let other = || Handler::new("other", |_: TaskContext, (): ()| async { Ok(7_u32) });
    world.block_on(async {
        let engine = start(&process, |engine| driving(engine).handler(other())).await;
        let run = engine.start("wait", &3).id("a").await.unwrap();
        world.sleep(seconds(2)).await;
        assert_eq!(slow.begun.count(), 0, "nobody can do it");
        engine.replace_handlers(vec![slow.handler()]).unwrap();
        world.sleep(seconds(2)).await;
        assert_eq!(slow.begun.count(), 1, "it is noticed without a restart");
        // One that cannot be used changes nothing.
        assert!(engine.replace_handlers(vec![other(), other()]).is_err());
        engine.replace_handlers(vec![other()]).unwrap();
        world.sleep(seconds(2)).await;
        slow.gate.notify_one();
        assert_eq!(run.result::<u32>().await.unwrap(), 1, "it ends with the handler it began with");
        let late = engine.start("wait", &3).id("b").await.unwrap();
        world.sleep(seconds(60)).await;
        assert_eq!((slow.begun.count(), late.status().await.unwrap()), (1, outlast::Status::Waiting));
        engine.replace_handlers(vec![slow.handler()]).unwrap();
        assert_eq!(late.result::<u32>().await.unwrap(), 2);
        engine.shutdown().await;
    });
    world.block_on(async {
        let none = start(&world.process(world.store()), driving).await;
        assert!(none.replace_handlers(Vec::new()).is_err(), "an engine without handlers is no worker");
    });
}
