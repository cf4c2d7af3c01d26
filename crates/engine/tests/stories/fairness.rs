//! Workers are fair: to namespaces, to runs, and to whatever waits behind a task that nobody survives. And what failed for good
//! is there to be looked at. Seed 002, Workers; row 52 of the catalogue.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::testing::World;
use outlast::{Ctx, Engine, Error, Outlast, Retry, TaskContext, TaskState};
use outlast_core::Bytes;
use outlast_core::commit::{NewTask, StandaloneTask};
use outlast_core::id::{Namespace, QueueName, TaskId, TaskName};
use outlast_store::Store;

use crate::support::{Scene, Tally, seconds};

/// A task without a policy.
fn task(space: &str, name: &str, id: &str) -> StandaloneTask {
    let task = NewTask {
        id: TaskId::new(id).unwrap(),
        key: None,
        name: TaskName::new(name).unwrap(),
        queue: QueueName::new("default").unwrap(),
        priority: 0,
        args: Bytes::from_static(b"null"),
        available_at: None,
        meta: None,
    };
    StandaloneTask { namespace: Namespace::new(space).unwrap(), task }
}

/// When each was done.
type Done = Arc<Mutex<BTreeMap<String, Duration>>>;

/// A worker with ten hands, each of which needs a second for a task.
async fn ten_hands(world: &World, store: &Arc<dyn Store>) -> (Engine, Done) {
    let (done, time) = (Done::default(), world.time());
    let taken = done.clone();
    let work = move |task: TaskContext, (): ()| {
        let (done, time) = (taken.clone(), time.clone());
        async move {
            time.sleep(seconds(1)).await;
            done.lock().unwrap().insert(task.idempotency_key().to_owned(), time.elapsed());
            Ok(())
        }
    };
    let engine = world.engine_on(Arc::clone(store)).task("work", work).tasks_max(10).poll(seconds(1));
    (engine.start().await.unwrap(), done)
}

/// The time within which 99 of 100 quiet namespaces have their one task done, beside one with so many.
fn quiet_p99(noise: usize) -> Duration {
    let world = World::new();
    let store = world.store();
    world.block_on(async {
        let quiet: Vec<String> = (0..99).map(|number| format!("quiet-{number}")).collect();
        for name in &quiet {
            store.put_namespace(Namespace::new(name.clone()).unwrap()).await.unwrap();
        }
        store.enqueue((0..noise).map(|number| task("default", "work", &format!("{number}"))).collect()).await;
        let (engine, done) = ten_hands(&world, &store).await;
        world.sleep(seconds(5)).await;
        let begun = world.elapsed();
        store.enqueue(quiet.iter().map(|name| task(name, "work", "only")).collect()).await;
        let is_quiet = |(name, _): &(&String, &Duration)| name.starts_with("quiet");
        while done.lock().unwrap().iter().filter(is_quiet).count() < quiet.len() {
            world.sleep(seconds(1)).await;
            assert!(world.elapsed() < seconds(10_000), "they were never done");
        }
        let mut took: Vec<Duration> = done.lock().unwrap().iter().filter(is_quiet).map(|(_, at)| *at - begun).collect();
        took.sort();
        engine.shutdown().await;
        took[took.len() * 99 / 100]
    })
}

/// "One noisy namespace of 100: the quiet ones' p99 ≤ 3 × alone."
#[test]
fn a_noisy_namespace_does_not_keep_the_quiet_ones_waiting() {
    let (alone, beside) = (quiet_p99(0), quiet_p99(2_000));
    assert!(beside <= 3 * alone, "alone {alone:?}, beside a noisy one {beside:?}");
}

/// A run that queues very many tasks, and one that queues a single one.
#[test]
fn a_run_with_a_thousand_tasks_does_not_keep_one_with_a_single_task_waiting() {
    let world = World::new();
    let store = world.store();
    async fn fan_out(ctx: Ctx, tasks: usize) -> outlast::Result<()> {
        let all: Vec<_> = (0..tasks).map(|_| ctx.task::<()>("work", &())).collect();
        ctx.all(all).await.map(drop)
    }
    world.block_on(async {
        let driver = world.engine_on(Arc::clone(&store)).workflow("fan_out", fan_out).poll(seconds(1));
        let driver = driver.start().await.unwrap();
        let (worker, _) = ten_hands(&world, &store).await;
        let many = driver.start("fan_out", &1_000).id("many").await.unwrap();
        world.sleep(seconds(10)).await;
        let begun = world.elapsed();
        driver.start("fan_out", &1).id("one").await.unwrap().result::<()>().await.unwrap();
        let took = world.elapsed() - begun;
        assert!(took <= seconds(5), "it waited for {took:?} of the hundred seconds the other one needs");
        many.result::<()>().await.unwrap();
        driver.shutdown().await;
        worker.shutdown().await;
    });
}

/// Row 52: "poison at head: others progress". Whoever takes the poison dies, and it may be tried for ever.
#[test]
fn a_task_that_kills_its_workers_does_not_stop_those_behind_it() {
    let world = World::new();
    let store = world.store();
    world.block_on(async {
        let others = Tally::default();
        let client = world.engine_on(Arc::clone(&store)).start().await.unwrap();
        client.enqueue("poison", &()).id("poison").retry(Retry::attempts(1_000)).await.unwrap();
        for number in 0..10 {
            client.enqueue("other", &()).id(format!("other-{number}")).await.unwrap();
        }
        let mut deaths = 0;
        while others.count() < 10 {
            let (died, other) = (Tally::default(), others.clone());
            let dies = died.clone();
            let process = world.process(Arc::clone(&store));
            let poison = move |_: TaskContext, (): ()| {
                dies.add();
                std::future::pending::<outlast::Result<()>>()
            };
            let other = move |_: TaskContext, (): ()| {
                other.add();
                async { Ok(()) }
            };
            // One hand: whatever it takes first is all it has.
            let engine = process.engine().lease(seconds(15)).poll(seconds(1)).tasks_max(1);
            let _worker = engine.task("poison", poison).task("other", other).start().await.unwrap();
            while died.count() == 0 && others.count() < 10 {
                world.sleep(seconds(1)).await;
            }
            process.crash();
            deaths += died.count();
            assert!(deaths < 10, "the others wait for ever: {} of them were done", others.count());
        }
        assert_eq!(client.task("poison").await.unwrap().view.attempt, deaths);
        client.shutdown().await;
    });
}

async fn broke(_: TaskContext, _: u32) -> outlast::Result<()> {
    Err(Error::new("broke", "no funds").permanent())
}

async fn pay(ctx: Ctx, sum: u32) -> outlast::Result<String> {
    let paid = ctx.task::<()>("charge", &sum).await;
    Ok(paid.unwrap_err().to_string())
}

fn charging(engine: Outlast) -> Outlast {
    engine.workflow("pay", pay).task("charge", broke)
}

#[test]
fn a_task_that_failed_for_good_is_shown_with_all_that_is_known_and_listed() {
    Scene::play(async |scene| {
        let engine = scene.engine(charging).await;
        for run in ["a", "b"] {
            engine.start("pay", &7).id(run).await.unwrap().result::<String>().await.unwrap();
        }
        let dead = engine.task("a/0/__task-charge-0").await.unwrap();
        assert_eq!((dead.view.state, dead.view.attempt, &dead.args[..]), (TaskState::Dead, 1, &b"7"[..]));
        assert!(String::from_utf8_lossy(dead.view.note.as_deref().unwrap()).contains("no funds"));
        assert_eq!(dead.view.origin.unwrap().as_str(), "a");
        assert!(dead.view.died_at.is_some());
        let page = engine.tasks().state(TaskState::Dead).name("charge").page_size(1).await.unwrap();
        let rest = engine.tasks().state(TaskState::Dead).queue("default").after(page.next).await.unwrap();
        assert_eq!((page.tasks.len(), rest.tasks.len(), rest.next), (1, 1, None));
        assert_eq!(engine.tasks().run("b").await.unwrap().tasks.len(), 1);
        assert_eq!(engine.tasks().state(TaskState::Ready).await.unwrap().tasks, []);
        let unknown = engine.task("none").await.unwrap_err();
        assert_eq!(unknown.code(), "not_found");
    });
}

#[test]
fn a_task_that_failed_for_good_is_tried_again_when_somebody_says_so() {
    Scene::play(async |scene| {
        let engine = scene.engine(charging).await;
        let said: String = engine.start("pay", &7).id("a").await.unwrap().result().await.unwrap();
        engine.shutdown().await;
        let tally = Tally::default();
        let paid = tally.clone();
        let charge = move |task: TaskContext, sum: u32| {
            assert_eq!((task.attempt(), sum, task.run_id()), (1, 7, None));
            paid.add();
            async { Ok(()) }
        };
        let engine = scene.engine(|engine| engine.workflow("pay", pay).task("charge", charge)).await;
        engine.retry_task("a/0/__task-charge-0").await.unwrap();
        scene.pass(seconds(5)).await;
        assert_eq!((tally.count(), engine.tasks().await.unwrap().tasks.len()), (1, 0));
        let again: String = engine.run("a").unwrap().result().await.unwrap();
        assert_eq!(again, said, "its run has got the failure, and that stays");
    });
}

#[test]
fn only_what_failed_for_good_is_tried_again_or_discarded() {
    Scene::play(async |scene| {
        let engine = scene.engine(charging).await;
        engine.enqueue("charge", &1).id("later").delay(seconds(3_600)).await.unwrap();
        for refused in [engine.retry_task("later").await, engine.discard_task("later").await] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), "task_not_dead");
            assert!(refused.to_string().contains("Delayed and not dead"), "{refused}");
        }
        assert_eq!(engine.retry_task("none").await.unwrap_err().code(), "not_found");
        engine.enqueue("charge", &1).id("now").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.discard_task("now").await.unwrap();
        assert_eq!(engine.tasks().await.unwrap().tasks.len(), 1, "the other one waits");
    });
}
