//! Workers: what they take, how they hold it, and what becomes of it when they do not finish. Seed 002, Workers.

use std::sync::Arc;
use std::time::Duration;

use outlast::{ClaimRequest, Ctx, Engine, Error, Handler, Jitter, Retry, TaskContext, TaskState};
use tokio::sync::Notify;

use crate::jobs::{Jobs, gives, kinds};
use crate::place::{LEASE, Place, node, seconds, stories};

stories! {
    a_worker_takes_the_tasks_it_has_handlers_for_by_their_names,
    a_worker_takes_tasks_of_its_queues_only,
    a_worker_takes_the_highest_priority_first,
    a_worker_keeps_to_its_limits,
    a_task_that_takes_many_leases_is_held_by_heartbeats,
    a_failed_task_is_tried_again_after_its_time_whoever_is_there_then,
    an_attempt_has_a_time_limit,
    cancellation_reaches_a_running_handler_in_another_process,
    a_task_that_ends_within_the_grace_is_completed,
    a_task_that_does_not_end_within_the_grace_is_given_back,
    the_task_of_a_worker_that_died_is_done_elsewhere,
    a_late_result_is_refused_without_harm,
    who_works_is_listed_with_what_it_does,
    a_worker_elsewhere_claims_beats_fails_and_completes,
}

const LINE: [&str; 3] = ["TASK_SCHEDULED", "TASK_FINISHED", "RUN_FINISHED"];

async fn one(ctx: Ctx, takes: u64) -> outlast::Result<u32> {
    ctx.task("job", &gives(7, takes)).await
}

async fn driving(place: &Place) -> Engine {
    node(&place.process()).workflow("one", one).start().await.unwrap()
}

/// The tasks there are: where each stands, and how many attempts were begun.
async fn tasks(engine: &Engine) -> Vec<(String, TaskState, u32)> {
    let views = engine.tasks().await.unwrap().tasks;
    views.into_iter().map(|view| (view.name.to_string(), view.state, view.attempt)).collect()
}

/// "Register task handlers by name in Rust."
fn a_worker_takes_the_tasks_it_has_handlers_for_by_their_names(place: &Place) {
    place.world.block_on(async {
        let (packs, ships) = (Jobs::new(&place.world), Jobs::new(&place.world));
        let worker = node(&place.process()).handler(packs.named("pack")).start().await.unwrap();
        worker.enqueue("pack", &gives(1, 0)).await.unwrap();
        worker.enqueue("ship", &gives(2, 0)).await.unwrap();
        place.world.sleep(seconds(10)).await;
        assert_eq!(packs.numbers(), [1]);
        assert_eq!(tasks(&worker).await, [("ship".to_owned(), TaskState::Ready, 0)], "it waits for somebody who can");
        let other = node(&place.process()).handler(ships.named("ship")).start().await.unwrap();
        place.world.sleep(seconds(10)).await;
        assert_eq!((packs.numbers(), ships.numbers(), tasks(&other).await), (vec![1], vec![2], vec![]));
    });
}

/// "Claim by queue."
fn a_worker_takes_tasks_of_its_queues_only(place: &Place) {
    place.world.block_on(async {
        let jobs = Jobs::new(&place.world);
        let worker = node(&place.process()).handler(jobs.handler().queue("parcels")).start().await.unwrap();
        worker.enqueue("job", &gives(1, 0)).await.unwrap();
        worker.enqueue("job", &gives(2, 0)).queue("parcels").await.unwrap();
        place.world.sleep(seconds(10)).await;
        assert_eq!(jobs.numbers(), [2]);
        assert_eq!(tasks(&worker).await, [("job".to_owned(), TaskState::Ready, 0)]);
    });
}

/// "Claim by … priority."
fn a_worker_takes_the_highest_priority_first(place: &Place) {
    place.world.block_on(async {
        let (client, jobs) = (driving(place).await, Jobs::new(&place.world));
        for (number, priority) in [(1, 0), (2, -5), (3, 5), (4, 0), (5, 5)] {
            client.enqueue("job", &gives(number, 1)).priority(priority).await.unwrap();
            place.world.sleep(seconds(1)).await;
        }
        let _worker = node(&place.process()).handler(jobs.handler()).tasks_max(1).start().await.unwrap();
        place.world.sleep(seconds(20)).await;
        assert_eq!(jobs.numbers(), [3, 5, 1, 4, 2], "by priority, and then in their order");
    });
}

/// "Concurrency limits": of a worker, and of one task.
fn a_worker_keeps_to_its_limits(place: &Place) {
    place.world.block_on(async {
        let (few, others) = (Jobs::new(&place.world), Jobs::new(&place.world));
        let client = driving(place).await;
        for number in 0..20 {
            client.enqueue("few", &gives(number, 1)).await.unwrap();
            client.enqueue("others", &gives(number, 1)).await.unwrap();
        }
        let worker = node(&place.process()).handler(few.named("few").concurrency(2)).handler(others.named("others"));
        let worker = worker.tasks_max(5).start().await.unwrap();
        let mut most = 0;
        while !tasks(&worker).await.is_empty() {
            place.world.sleep(Duration::from_millis(100)).await;
            most = most.max(few.under_way().0 + others.under_way().0);
        }
        assert_eq!((few.numbers().len(), others.numbers().len()), (20, 20));
        assert_eq!((few.under_way().1, most), (2, 5));
    });
}

/// "Lease with heartbeat."
fn a_task_that_takes_many_leases_is_held_by_heartbeats(place: &Place) {
    place.world.block_on(async {
        let (engine, jobs) = (driving(place).await, Jobs::new(&place.world));
        let _first = node(&place.process()).handler(jobs.handler()).start().await.unwrap();
        let _second = node(&place.process()).handler(jobs.handler()).start().await.unwrap();
        let run = engine.start("one", &(10 * LEASE.as_secs())).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        assert_eq!(jobs.attempts().len(), 1, "{:?}", jobs.attempts());
    });
}

/// "Retry with durable back-off": each attempt is another process's, and the one before is dead by then.
fn a_failed_task_is_tried_again_after_its_time_whoever_is_there_then(place: &Place) {
    async fn patient(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let retry = Retry::attempts(4).initial(seconds(60)).cap(seconds(600)).jitter(Jitter::None);
        ctx.task("flaky", &()).retry(retry).await
    }
    place.world.block_on(async {
        let engine = node(&place.process()).workflow("patient", patient).start().await.unwrap();
        let run = engine.start("patient", &()).id("a").await.unwrap();
        let mut begun = Vec::new();
        for number in 1..=4 {
            let (process, tried, time) = (place.process(), Arc::new(Notify::new()), place.world.time());
            let told = Arc::clone(&tried);
            let flaky = move |task: TaskContext, (): ()| {
                assert_eq!(task.attempt(), number);
                told.notify_one();
                async move { if number < 4 { Err(Error::new("busy", "not now")) } else { Ok(number) } }
            };
            let _worker = node(&process).handler(Handler::new("flaky", flaky)).start().await.unwrap();
            tried.notified().await;
            begun.push(time.elapsed().as_secs());
            place.world.sleep(seconds(2)).await;
            process.crash();
        }
        assert_eq!(run.result::<u32>().await.unwrap(), 4);
        let delays: Vec<u64> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(delays.iter().zip([60, 120, 240]).all(|(delay, due)| (due..=due + 3).contains(delay)), "{delays:?}");
        assert_eq!(kinds(&engine, "a").await, LINE, "only its end is recorded");
    });
}

/// "Per-attempt timeout."
fn an_attempt_has_a_time_limit(place: &Place) {
    async fn hasty(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let retry = Retry::attempts(2).initial(seconds(1)).jitter(Jitter::None);
        let late = ctx.task::<u32>("job", &gives(7, 3_600)).timeout(seconds(30)).retry(retry).await;
        let late = late.unwrap_err();
        Ok(format!("{}: {}", late.code(), late.message()))
    }
    place.world.block_on(async {
        let jobs = Jobs::new(&place.world);
        let engine = node(&place.process()).workflow("hasty", hasty).handler(jobs.handler()).start().await.unwrap();
        let told: String = engine.start("hasty", &()).id("a").await.unwrap().result().await.unwrap();
        assert_eq!(told, "timeout: attempt 2 took longer than 30s");
        let begun: Vec<u64> = jobs.attempts().iter().map(|attempt| attempt.begun.as_secs()).collect();
        assert!((31..=33).contains(&(begun[1] - begun[0])), "{begun:?}");
        assert_eq!(jobs.under_way(), (0, 1), "each was stopped");
    });
}

/// "Cancellation reaches a running handler": it learns of it with its next sign of life.
fn cancellation_reaches_a_running_handler_in_another_process(place: &Place) {
    place.world.block_on(async {
        let (engine, jobs) = (driving(place).await, Jobs::new(&place.world));
        let worker = node(&place.process()).handler(jobs.handler()).start().await.unwrap();
        let run = engine.start("one", &3_600).id("a").await.unwrap();
        place.world.sleep(seconds(10)).await;
        assert_eq!(jobs.under_way().0, 1);
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        run.result::<u32>().await.unwrap_err();
        place.world.sleep(LEASE / 3 + seconds(3)).await;
        assert_eq!((jobs.under_way().0, tasks(&worker).await), (0, vec![]));
    });
}

/// "Graceful drain on shutdown", of a task that ends in time.
fn a_task_that_ends_within_the_grace_is_completed(place: &Place) {
    place.world.block_on(async {
        let (engine, jobs) = (driving(place).await, Jobs::new(&place.world));
        let worker = node(&place.process()).handler(jobs.handler()).grace(seconds(30)).start().await.unwrap();
        let run = engine.start("one", &10).id("a").await.unwrap();
        place.world.sleep(seconds(5)).await;
        // Nothing new is begun meanwhile.
        engine.enqueue("job", &gives(8, 0)).delay(seconds(1)).await.unwrap();
        let begun = place.world.elapsed();
        worker.shutdown().await;
        let took = place.world.elapsed() - begun;
        assert!(took >= seconds(4) && took < seconds(12), "as long as the task takes: {took:?}");
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        assert_eq!((jobs.numbers(), kinds(&engine, "a").await), (vec![7], LINE.to_vec()));
    });
}

/// The same of one that does not: it is there for others at once, and the attempt does not count.
fn a_task_that_does_not_end_within_the_grace_is_given_back(place: &Place) {
    async fn once(ctx: Ctx, takes: u64) -> outlast::Result<u32> {
        ctx.task("job", &gives(7, takes)).retry(Retry::never()).await
    }
    place.world.block_on(async {
        let jobs = Jobs::new(&place.world);
        let engine = node(&place.process()).workflow("once", once).start().await.unwrap();
        let worker = node(&place.process()).handler(jobs.handler()).grace(seconds(5)).start().await.unwrap();
        let run = engine.start("once", &60).id("a").await.unwrap();
        place.world.sleep(seconds(5)).await;
        worker.shutdown().await;
        assert_eq!(tasks(&engine).await, [("job".to_owned(), TaskState::Ready, 0)]);
        assert_eq!(jobs.under_way().0, 0, "its handler was stopped");
        let _other = node(&place.process()).handler(jobs.handler()).start().await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        let attempts: Vec<u32> = jobs.attempts().iter().map(|attempt| attempt.attempt).collect();
        assert_eq!(attempts, [1, 1]);
        let waited = jobs.attempts()[1].begun - jobs.attempts()[0].begun;
        assert!(waited < LEASE, "nobody waited for a lease to end: {waited:?}");
    });
}

/// "A worker that dies loses its lease and the task runs elsewhere."
fn the_task_of_a_worker_that_died_is_done_elsewhere(place: &Place) {
    place.world.block_on(async {
        let (engine, jobs, process) = (driving(place).await, Jobs::new(&place.world), place.process());
        let _first = node(&process).handler(jobs.handler()).start().await.unwrap();
        let run = engine.start("one", &60).id("a").await.unwrap();
        place.world.sleep(seconds(5)).await;
        process.crash();
        let died = place.world.elapsed();
        let _second = node(&place.process()).handler(jobs.handler()).start().await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
        let attempts = jobs.attempts();
        assert_eq!(attempts.iter().map(|attempt| attempt.attempt).collect::<Vec<_>>(), [1, 2]);
        let waited = attempts[1].begun - died;
        assert!(waited >= LEASE - seconds(6) && waited <= LEASE + seconds(4), "{waited:?}");
        assert_eq!(kinds(&engine, "a").await, LINE);
    });
}

/// "A late result is refused without harm." It comes while the next attempt is under way.
fn a_late_result_is_refused_without_harm(place: &Place) {
    place.world.block_on(async {
        let (engine, sleeper) = (driving(place).await, place.process());
        let (early, late) = (Jobs::new(&place.world), Jobs::new(&place.world));
        let _first = node(&sleeper).handler(early.handler()).start().await.unwrap();
        let run = engine.start("one", &25).id("a").await.unwrap();
        place.world.sleep(seconds(5)).await;
        assert_eq!(early.numbers(), [7]);
        sleeper.freeze();
        let _second = node(&place.process()).handler(late.handler()).start().await.unwrap();
        while late.numbers().is_empty() {
            place.world.sleep(seconds(1)).await;
        }
        // By now the first is ready with it.
        place.world.sleep(seconds(10)).await;
        let delivered = || sleeper.faults().log().iter().filter(|call| **call == "deliver").count();
        let before = delivered();
        sleeper.thaw();
        place.world.sleep(seconds(2)).await;
        assert_eq!(delivered(), before + 1, "the late result was sent");
        assert_eq!(kinds(&engine, "a").await, ["TASK_SCHEDULED"], "and refused");
        assert_eq!(run.result::<u32>().await.unwrap(), 7, "the winner stands");
        place.world.sleep(LEASE * 2).await;
        assert_eq!(kinds(&engine, "a").await, LINE);
        assert_eq!((early.attempts().len(), late.attempts().len()), (1, 1));
    });
}

/// Who is there, since when, when it was seen last, and its current work.
fn who_works_is_listed_with_what_it_does(place: &Place) {
    place.world.block_on(async {
        let engine = driving(place).await;
        let jobs = Jobs::new(&place.world);
        let dying = place.process();
        let worker = node(&dying).handler(jobs.handler()).tasks_max(3).start().await.unwrap();
        engine.start("one", &100).id("a").await.unwrap();
        place.world.sleep(seconds(60)).await;
        let shown = engine.workers().await.unwrap();
        assert_eq!(shown.len(), 1, "one without handlers is no worker: {shown:?}");
        let (listed, task) = (&shown[0], &shown[0].holds[0]);
        assert_eq!((listed.tasks.as_slice(), listed.tasks_max), (&["job".to_owned()][..], 3));
        let silent = place.world.now().since(listed.seen);
        assert!(listed.seen > listed.started && silent <= LEASE, "seen {silent:?} ago");
        assert_eq!((task.name.as_str(), task.attempt, task.run.as_ref().unwrap().as_str()), ("job", 1, "a"));
        assert!(task.until.unwrap() > place.world.now());
        drop(worker);
        dying.crash();
        place.world.sleep(seconds(600)).await;
        let listed = engine.workers().await.unwrap().remove(0);
        assert!(place.world.now().since(listed.seen) >= seconds(500), "it is gone, and that is seen");
        let other = node(&place.process()).handler(jobs.handler()).start().await.unwrap();
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 7);
        other.shutdown().await;
        assert_eq!(engine.workers().await.unwrap().len(), 1, "one that says good-bye is not listed any more");
    });
}

/// The worker protocol: the calls of a worker that no code of ours runs in.
fn a_worker_elsewhere_claims_beats_fails_and_completes(place: &Place) {
    let request = |id| ClaimRequest {
        worker: "mill".to_owned(),
        id,
        queues: vec!["default".to_owned()],
        names: vec!["job".to_owned()],
        host: None,
        limit: 10,
        lease: seconds(30),
    };
    place.world.block_on(async {
        let engine = driving(place).await;
        let run = engine.start("one", &0).id("a").await.unwrap();
        place.world.sleep(seconds(1)).await;
        let offer = engine.claim_tasks(request(1)).await.unwrap().remove(0);
        assert_eq!(engine.claim_tasks(request(1)).await.unwrap()[0].id, offer.id, "its answer may have been lost");
        assert_eq!(engine.claim_tasks(request(2)).await.unwrap(), []);
        let extended = engine.heartbeat_task(&offer.token, Some(&serde_json::json!(0.5))).await.unwrap();
        assert!(!extended.cancelled && extended.until >= offer.until);
        let again = engine.fail_task(&offer.token, outlast::Failure::new("busy", "not now")).await.unwrap();
        assert!(again.is_some_and(|at| at >= place.world.now()), "it is tried again");
        let late = engine.complete_task(&offer.token, &1).await.err().unwrap();
        assert_eq!(late.code(), "task_lost");
        place.world.sleep(seconds(60)).await;
        let offer = engine.claim_tasks(request(3)).await.unwrap().remove(0);
        assert_eq!(offer.attempt, 2);
        engine.complete_task(&offer.token, &8).await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 8);
        assert_eq!(kinds(&engine, "a").await, LINE);
    });
}
