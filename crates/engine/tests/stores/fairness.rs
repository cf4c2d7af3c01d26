//! Nobody keeps others waiting: neither a run with very many tasks, nor a noisy namespace. Seed 002, Workers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::{Ctx, Engine, Retry, TaskContext};
use outlast_core::Bytes;
use outlast_core::commit::{NewTask, StandaloneTask};
use outlast_core::id::{Namespace, QueueName, TaskId, TaskName};
use outlast_store::Store;

use crate::place::{LEASE, Place, node, seconds, stories};

stories! {
    a_run_with_hundreds_of_tasks_does_not_keep_one_with_a_single_task_waiting,
    one_noisy_namespace_of_a_hundred_costs_the_quiet_ones_at_most_three_times_their_time,
    a_task_at_the_head_that_kills_every_worker_lets_the_others_go_on,
}

/// Namespaces that queue a task each.
const QUIET: usize = 99;
/// Tasks of the noisy one.
const NOISE: usize = 2_000;

/// Who was done, and when.
type Done = Arc<Mutex<Vec<(String, Duration)>>>;

/// A worker with ten hands, each of which needs a second for a task.
async fn ten_hands(place: &Place) -> (Engine, Done) {
    let (done, time) = (Done::default(), place.world.time());
    let taken = done.clone();
    let work = move |task: TaskContext, (): ()| {
        let (done, time) = (taken.clone(), time.clone());
        async move {
            time.sleep(seconds(1)).await;
            done.lock().unwrap().push((task.idempotency_key().to_owned(), time.elapsed()));
            Ok(())
        }
    };
    (node(&place.process()).task("work", work).tasks_max(10).start().await.unwrap(), done)
}

/// "Fairness across runs."
fn a_run_with_hundreds_of_tasks_does_not_keep_one_with_a_single_task_waiting(place: &Place) {
    async fn fan_out(ctx: Ctx, tasks: usize) -> outlast::Result<()> {
        let all: Vec<_> = (0..tasks).map(|_| ctx.task::<()>("work", &())).collect();
        ctx.all(all).await.map(drop)
    }
    place.world.block_on(async {
        let driver = node(&place.process()).workflow("fan_out", fan_out).start().await.unwrap();
        let (_worker, _) = ten_hands(place).await;
        let many = driver.start("fan_out", &300).id("many").await.unwrap();
        place.world.sleep(seconds(5)).await;
        let begun = place.world.elapsed();
        driver.start("fan_out", &1).id("one").await.unwrap().result::<()>().await.unwrap();
        let took = place.world.elapsed() - begun;
        assert!(took <= seconds(5), "it waited for {took:?} of the thirty seconds the other one needs");
        many.result::<()>().await.unwrap();
    });
}

fn task(space: &str, id: &str) -> StandaloneTask {
    let task = NewTask {
        id: TaskId::new(id).unwrap(),
        key: None,
        name: TaskName::new("work").unwrap(),
        queue: QueueName::new("default").unwrap(),
        priority: 0,
        args: Bytes::from_static(b"null"),
        available_at: None,
        meta: None,
    };
    StandaloneTask { namespace: Namespace::new(space).unwrap(), task }
}

/// The time within which 99 of 100 quiet namespaces have their one task done.
async fn quiet_p99(place: &Place, client: &dyn Store, done: &Done, round: &str) -> Duration {
    let quiet: Vec<String> = (0..QUIET).map(|number| format!("quiet-{number}")).collect();
    let begun = place.world.elapsed();
    for answer in client.enqueue(quiet.iter().map(|name| task(name, round)).collect()).await {
        answer.unwrap();
    }
    let took = || -> Vec<Duration> {
        let done = done.lock().unwrap();
        let ours = done.iter().filter(|(key, _)| key.starts_with("quiet") && key.ends_with(round));
        ours.map(|(_, at)| *at - begun).collect()
    };
    while took().len() < QUIET {
        place.world.sleep(seconds(1)).await;
        assert!(place.world.elapsed() - begun < seconds(1_000), "they were never done");
    }
    let mut took = took();
    took.sort();
    took[QUIET * 99 / 100]
}

/// "One noisy namespace of 100: the quiet ones' p99 ≤ 3 × alone."
fn one_noisy_namespace_of_a_hundred_costs_the_quiet_ones_at_most_three_times_their_time(place: &Place) {
    place.world.block_on(async {
        let process = place.process();
        let client: &dyn Store = &**process.faults();
        for number in 0..QUIET {
            client.put_namespace(Namespace::new(format!("quiet-{number}")).unwrap()).await.unwrap();
        }
        let (_worker, done) = ten_hands(place).await;
        let alone = quiet_p99(place, client, &done, "alone").await;
        let noise = (0..NOISE).map(|number| task("default", &format!("noise-{number}"))).collect();
        for answer in client.enqueue(noise).await {
            answer.unwrap();
        }
        place.world.sleep(seconds(5)).await;
        let beside = quiet_p99(place, client, &done, "beside").await;
        println!("the quiet ones: alone {alone:?}, beside a noisy one {beside:?}");
        assert!(beside <= 3 * alone, "alone {alone:?}, beside a noisy one {beside:?}");
    });
}

/// "A poison task at the head of the queue: the others progress." Whoever begins it dies of it, and there is always another.
fn a_task_at_the_head_that_kills_every_worker_lets_the_others_go_on(place: &Place) {
    const OTHERS: usize = 10;
    place.world.block_on(async {
        let client = node(&place.process()).start().await.unwrap();
        client.enqueue("poison", &()).id("poison").retry(Retry::attempts(1_000)).await.unwrap();
        place.world.sleep(seconds(1)).await;
        for number in 0..OTHERS {
            client.enqueue("other", &()).id(format!("other-{number}")).await.unwrap();
        }
        let (done, deaths) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let mut lives = 0;
        while *done.lock().unwrap() < OTHERS {
            lives += 1;
            assert!(lives <= OTHERS, "the others wait: {} of them were done in {lives} lives", done.lock().unwrap());
            let process = place.process();
            let (counted, died, before) = (done.clone(), deaths.clone(), *deaths.lock().unwrap());
            let poison = move |_: TaskContext, (): ()| {
                *died.lock().unwrap() += 1;
                std::future::pending::<outlast::Result<()>>()
            };
            let other = move |_: TaskContext, (): ()| {
                *counted.lock().unwrap() += 1;
                std::future::ready(Ok(()))
            };
            // One hand: whatever it takes first is all it has.
            let worker = node(&process).tasks_max(1).task("poison", poison).task("other", other);
            let _worker = worker.start().await.unwrap();
            while *deaths.lock().unwrap() == before && *done.lock().unwrap() < OTHERS {
                place.world.sleep(seconds(1)).await;
            }
            process.crash();
            // Whoever comes next finds it in the queue again.
            place.world.sleep(2 * LEASE).await;
        }
        let attempts = client.task("poison").await.unwrap().view.attempt;
        assert_eq!(attempts, *deaths.lock().unwrap(), "each of its attempts counts");
        assert!(attempts >= 2, "it was in nobody's way: {attempts}");
    });
}
