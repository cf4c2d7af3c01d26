//! How a run goes on: through resumes, which are left by whatever it waits for. Seed 002, Engine 1, 2, 4 to 6 and 8 to 10.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::select;
use outlast::testing::Process;
use outlast::{Ctx, Engine, Overlap, ResumeItem, Status};
use outlast_store::faults::Fault;

use crate::counts::counted;
use crate::jobs::{Jobs, gives, kinds};
use crate::place::{Place, node, seconds, stories};

stories! {
    a_completion_enqueues_exactly_one_resume,
    a_resume_is_a_queue_item_and_can_be_queued_by_hand,
    waiting_runs_are_not_looked_at,
    a_waiting_run_does_not_become_queued_again,
    a_completion_that_is_sent_twice_counts_once,
    a_result_does_not_ask_whether_its_run_waits,
    a_task_without_a_parent_resumes_nobody,
    a_delay_is_one_timer_and_one_resume_and_is_not_early,
    a_timer_that_fires_while_its_process_dies_fires_once,
    each_resume_checks_again_what_the_journal_awaits,
    of_three_tasks_two_resume_and_wait_again_and_the_third_goes_on,
    a_hundred_tasks_need_a_handful_of_resumes,
    a_thousand_tasks_need_at_most_twenty_resumes,
    a_run_whose_driver_dies_while_resuming_is_resumed_again,
    of_many_resumes_the_first_goes_on_and_the_others_do_nothing,
    a_signal_resumes_its_run_as_a_task_does,
    a_schedule_fires_and_sets_its_next_time_in_one_transaction,
}

const LINE: [&str; 3] = ["TASK_SCHEDULED", "TASK_FINISHED", "RUN_FINISHED"];
/// How many resumes tasks that end together may cost, and a thousand.
const HANDFUL: u64 = 5;
const RESUMES_MAX: u64 = 20;

async fn one(ctx: Ctx, takes: u64) -> outlast::Result<u32> {
    ctx.task("job", &gives(7, takes)).await
}

async fn all(ctx: Ctx, jobs: Vec<u64>) -> outlast::Result<Vec<u32>> {
    let tasks = (1..).zip(jobs).map(|(number, takes)| ctx.task("job", &gives(number, takes)));
    ctx.all(tasks.collect::<Vec<_>>()).await
}

async fn driving(process: &Process) -> Engine {
    node(process).workflow("one", one).workflow("all", all).start().await.unwrap()
}

async fn working(process: &Process, jobs: &Jobs) -> Engine {
    node(process).handler(jobs.handler()).start().await.unwrap()
}

async fn status(engine: &Engine, run: &str) -> Status {
    engine.run(run).unwrap().status().await.unwrap()
}

/// How many runs could go on and are driven by nobody, and where all runs stand.
async fn ready(engine: &Engine) -> (u64, Vec<(Status, u64)>) {
    let measured = engine.measure().await.unwrap();
    (measured.depths.ready, measured.runs)
}

/// 1 and 11: "completion enqueues exactly one resume", "single await". Nobody drives when the task ends.
fn a_completion_enqueues_exactly_one_resume(place: &Place) {
    counted(|counts| {
        place.world.block_on(async {
            let [first, worker, second] = [(); 3].map(|()| place.process());
            let engine = driving(&first).await;
            engine.start("one", &0).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            engine.shutdown().await;
            let worker = working(&worker, &Jobs::new(&place.world)).await;
            place.world.sleep(seconds(10)).await;
            assert_eq!(worker.tasks().await.unwrap().tasks, [], "the task is done");
            assert_eq!(ready(&worker).await, (1, vec![(Status::Waiting, 1)]), "it waits, and there is one resume");
            assert_eq!(counts.resumes(), 0);
            let engine = driving(&second).await;
            assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 7);
            place.world.sleep(seconds(10)).await;
            assert_eq!((counts.resumes(), counts.idle_resumes()), (1, 0));
            assert_eq!(ready(&engine).await.0, 0);
            assert_eq!(kinds(&engine, "a").await, LINE);
        });
    });
}

/// 1: "Nothing scans waiting runs." What an engine asks does not depend on how many wait.
fn waiting_runs_are_not_looked_at(place: &Place) {
    let mut asked = Vec::new();
    for runs in [1, 100] {
        place.world.block_on(async {
            let process = place.process();
            let engine = driving(&process).await;
            for number in 0..runs {
                engine.start("one", &0).id(&format!("{runs}-{number}")).await.unwrap();
            }
            place.world.sleep(seconds(70)).await;
            let before = process.faults().log().len();
            place.world.sleep(seconds(60)).await;
            let calls = process.faults().log().split_off(before);
            asked.push((calls.len(), calls.into_iter().collect::<BTreeSet<_>>()));
            engine.shutdown().await;
        });
    }
    assert!(asked[0].0.abs_diff(asked[1].0) <= 2 && asked[0].1 == asked[1].1, "{asked:?}");
}

/// 2: "a waiting run is a state record, never a queue item; it does not become `queued` again".
fn a_waiting_run_does_not_become_queued_again(place: &Place) {
    async fn varied(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.task::<u32>("job", &gives(1, 2)).await?;
        ctx.sleep(seconds(2)).await?;
        ctx.child::<u32>("one", &2).id("child").await?;
        ctx.wait_for::<()>("go").await
    }
    place.world.block_on(async {
        let process = place.process();
        let engine = node(&process).workflow("varied", varied).workflow("one", one);
        let engine = engine.handler(Jobs::new(&place.world).handler()).start().await.unwrap();
        let run = engine.start("varied", &()).id("a").await.unwrap();
        let seen = RefCell::new(Vec::new());
        let told = pin!(async {
            place.world.sleep(seconds(10)).await;
            engine.run("a").unwrap().signal("go", &(), "1").await.unwrap();
            run.result::<()>().await.unwrap();
        });
        let watched = pin!(async {
            loop {
                let status = status(&engine, "a").await;
                seen.borrow_mut().push(status);
                place.world.sleep(Duration::from_millis(20)).await;
            }
        });
        select(told, watched).await;
        let seen = seen.borrow();
        let waits = seen.iter().position(|status| *status == Status::Waiting).expect("it waits");
        assert!(!seen[waits..].contains(&Status::Queued), "{seen:?}");
    });
}

/// 4: "completion + result + parent's resume: one atomic statement, guarded": sent again because the answer was lost.
fn a_completion_that_is_sent_twice_counts_once(place: &Place) {
    counted(|counts| {
        place.world.block_on(async {
            let [driver, process] = [(); 2].map(|()| place.process());
            let (engine, jobs) = (driving(&driver).await, Jobs::new(&place.world));
            let _worker = working(&process, &jobs).await;
            for (number, fault) in
                [Fault::AppliedThenError, Fault::NotApplied { in_doubt: false }].into_iter().enumerate()
            {
                let id = number.to_string();
                let run = engine.start("one", &5).id(&id).await.unwrap();
                place.world.sleep(seconds(2)).await;
                process.faults().plan_next_of("deliver", 0, fault);
                assert_eq!(run.result::<u32>().await.unwrap(), 7);
                place.world.sleep(seconds(20)).await;
                assert_eq!(process.faults().landed(), number + 1);
                assert_eq!(kinds(&engine, &id).await, LINE);
                assert_eq!(counts.resumes(), number as u64 + 1);
            }
            assert_eq!(jobs.numbers(), [7, 7], "each was done once");
        });
    });
}

/// 4: "it does not ask whether the parent waits". Here it does something else meanwhile.
fn a_result_does_not_ask_whether_its_run_waits(place: &Place) {
    counted(|counts| {
        place.world.block_on(async {
            let [driver, worker] = [(); 2].map(|()| place.process());
            let time = place.world.time();
            let busy = move |ctx: Ctx, (): ()| {
                let time = time.clone();
                async move {
                    let task = ctx.task::<u32>("job", &gives(7, 1)).start();
                    let nap = async |_| {
                        time.sleep(seconds(5)).await;
                        Ok(())
                    };
                    ctx.step("nap", nap).await?;
                    task.await
                }
            };
            let engine = node(&driver).workflow("busy", busy).start().await.unwrap();
            let _worker = working(&worker, &Jobs::new(&place.world)).await;
            let run = engine.start("busy", &()).id("a").await.unwrap();
            assert_eq!(run.result::<u32>().await.unwrap(), 7);
            assert!(place.world.elapsed() < seconds(10), "{:?}", place.world.elapsed());
            assert_eq!(counts.resumes(), 0, "it never waited");
        });
    });
}

/// 4: "no parent → no resume (fire and forget)".
fn a_task_without_a_parent_resumes_nobody(place: &Place) {
    async fn forgetful(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.task::<u32>("job", &gives(1, 5)).detach().await?;
        ctx.wait_for::<()>("go").await
    }
    counted(|counts| {
        place.world.block_on(async {
            let (process, jobs) = (place.process(), Jobs::new(&place.world));
            let engine = node(&process).workflow("forgetful", forgetful).handler(jobs.handler()).start().await.unwrap();
            let run = engine.start("forgetful", &()).id("a").await.unwrap();
            engine.enqueue("job", &gives(2, 5)).await.unwrap();
            place.world.sleep(seconds(20)).await;
            assert_eq!((jobs.numbers().len(), engine.tasks().await.unwrap().tasks.len()), (2, 0), "both are done");
            assert_eq!((counts.resumes(), ready(&engine).await.0), (0, 0));
            assert_eq!(kinds(&engine, "a").await, ["TASK_SCHEDULED", "SIGNAL_AWAITED"]);
            engine.run("a").unwrap().signal("go", &(), "1").await.unwrap();
            run.result::<()>().await.unwrap();
        });
    });
}

async fn nap(ctx: Ctx, long: u64) -> outlast::Result<()> {
    ctx.sleep(seconds(long)).await
}

/// 5, 7 and 11: "`Task.delay(30)` is seconds"; a timer fires, and not before it is due.
fn a_delay_is_one_timer_and_one_resume_and_is_not_early(place: &Place) {
    counted(|counts| {
        place.world.block_on(async {
            let process = place.process();
            let engine = node(&process).workflow("nap", nap).start().await.unwrap();
            let begun = place.world.elapsed();
            let run = engine.start("nap", &30).id("a").await.unwrap();
            run.result::<()>().await.unwrap();
            let took = place.world.elapsed() - begun;
            assert!(took >= seconds(30) && took <= seconds(33), "{took:?}");
            assert_eq!(kinds(&engine, "a").await, ["TIMER_STARTED", "TIMER_FIRED", "RUN_FINISHED"]);
            assert_eq!(counts.resumes(), 1);
        });
    });
}

/// 5: "firing and enqueueing is one transaction".
fn a_timer_that_fires_while_its_process_dies_fires_once(place: &Place) {
    place.world.block_on(async {
        for fault in [Fault::NotAppliedThenCrash, Fault::AppliedThenCrash] {
            let [first, second] = [(); 2].map(|()| place.process());
            let engine = node(&first).workflow("nap", nap).start().await.unwrap();
            let id = fault.kind();
            engine.start("nap", &30).id(id).await.unwrap();
            place.world.sleep(seconds(20)).await;
            first.faults().plan_next_of("sweep", 0, fault);
            place.world.sleep(seconds(15)).await;
            assert!(first.has_crashed());
            first.crash();
            let engine = node(&second).workflow("nap", nap).start().await.unwrap();
            engine.run(id).unwrap().result::<()>().await.unwrap();
            assert_eq!(kinds(&engine, id).await, ["TIMER_STARTED", "TIMER_FIRED", "RUN_FINISHED"]);
            engine.shutdown().await;
        }
    });
}

/// 6: "the driver re-checks what the run awaits; it continues or suspends again". Each time it is another process, which
/// knows nothing but the journal.
fn each_resume_checks_again_what_the_journal_awaits(place: &Place) {
    place.world.block_on(async {
        let worker = working(&place.process(), &Jobs::new(&place.world)).await;
        for finished in 1..=3 {
            let engine = driving(&place.process()).await;
            if finished == 1 {
                engine.start("all", &[15, 5, 25]).id("a").await.unwrap();
            }
            place.world.sleep(seconds(10)).await;
            let kinds = kinds(&engine, "a").await;
            assert_eq!(kinds.iter().filter(|kind| **kind == "TASK_FINISHED").count(), finished, "{kinds:?}");
            let expected = if finished == 3 { Status::Completed } else { Status::Waiting };
            assert_eq!(status(&engine, "a").await, expected);
            engine.shutdown().await;
        }
        assert_eq!(worker.run("a").unwrap().result::<Vec<u32>>().await.unwrap(), [1, 2, 3]);
    });
}

/// 8 and 11: "3 tasks in `all`: two no-op resumes, the third advances".
fn of_three_tasks_two_resume_and_wait_again_and_the_third_goes_on(place: &Place) {
    counted(|counts| {
        place.world.block_on(async {
            let [driver, worker] = [(); 2].map(|()| place.process());
            let _worker = working(&worker, &Jobs::new(&place.world)).await;
            let engine = driving(&driver).await;
            let run = engine.start("all", &[20, 10, 30]).id("a").await.unwrap();
            place.world.sleep(seconds(5)).await;
            for resumes in 1..=2 {
                place.world.sleep(seconds(10)).await;
                assert_eq!((counts.resumes(), status(&engine, "a").await), (resumes, Status::Waiting));
            }
            assert_eq!(run.result::<Vec<u32>>().await.unwrap(), [1, 2, 3], "in their order, not in that of their ends");
            place.world.sleep(seconds(10)).await;
            assert_eq!(counts.resumes(), 3);
        });
    });
}

/// How many resumes so many tasks cost that one worker does, in the driver's process or in another.
fn resumes_of(place: &Place, tasks: u32, apart: bool) -> u64 {
    let mut resumes = 0;
    counted(|counts| {
        place.world.block_on(async {
            let [driver, worker] = [(); 2].map(|()| place.process());
            let jobs = Jobs::new(&place.world);
            let (engine, _worker) = if apart {
                (driving(&driver).await, working(&worker, &jobs).await)
            } else {
                let engine = node(&driver).workflow("all", all).handler(jobs.handler()).start().await.unwrap();
                (engine, node(&worker).start().await.unwrap())
            };
            let durations = vec![0_u64; tasks as usize];
            let run = engine.start("all", &durations).id(&format!("{tasks}-{apart}")).await.unwrap();
            assert_eq!(run.result::<Vec<u32>>().await.unwrap(), (1..=tasks).collect::<Vec<_>>());
            assert_eq!(jobs.numbers().len(), tasks as usize, "each was done once");
            engine.shutdown().await;
        });
        resumes = counts.resumes();
        println!("{tasks} tasks, worker apart: {apart}: {resumes} resumes, {} of them idle", counts.idle_resumes());
    });
    resumes
}

/// 8: "100 in `all`: at most a handful of resumes (deduplicated)".
fn a_hundred_tasks_need_a_handful_of_resumes(place: &Place) {
    for apart in [false, true] {
        let resumes = resumes_of(place, 100, apart);
        assert!(resumes <= HANDFUL, "{resumes} resumes, apart: {apart}");
    }
}

/// 8: "1,000 in `all` works", with few resumes.
fn a_thousand_tasks_need_at_most_twenty_resumes(place: &Place) {
    for apart in [false, true] {
        let resumes = resumes_of(place, 1_000, apart);
        assert!(resumes <= RESUMES_MAX, "{resumes} resumes, apart: {apart}");
    }
}

/// 9: "crash while resuming → the run stays waiting and is resumed again". The driver dies at its first call about the time the
/// task ends, at its second, and so on, until it has ended the run before.
fn a_run_whose_driver_dies_while_resuming_is_resumed_again(place: &Place) {
    place.world.block_on(async {
        let jobs = Jobs::new(&place.world);
        let worker = working(&place.process(), &jobs).await;
        let mut crashes = 0;
        for at in 0..CALLS_MAX {
            let (process, id) = (place.process(), at.to_string());
            let engine = driving(&process).await;
            engine.start("one", &10).id(&id).await.unwrap();
            place.world.sleep(Duration::from_millis(9_500)).await;
            process.faults().plan_next(at, crash(at));
            let ended = ends(place, &process, &worker, &id).await;
            process.crash();
            let other = driving(&place.process()).await;
            assert_eq!(other.run(&id).unwrap().result::<u32>().await.unwrap(), 7, "after a crash at call {at}");
            assert_eq!(kinds(&other, &id).await, LINE, "after a crash at call {at}");
            other.shutdown().await;
            if ended {
                break;
            }
            crashes += 1;
        }
        assert!((3..CALLS_MAX).contains(&crashes), "{crashes}");
        assert!(jobs.attempts().iter().all(|attempt| attempt.attempt == 1), "no task was done again");
    });
}

/// How many calls it may take a driver to resume a run.
const CALLS_MAX: u64 = 40;

fn crash(at: u64) -> Fault {
    if at.is_multiple_of(2) { Fault::AppliedThenCrash } else { Fault::NotAppliedThenCrash }
}

/// Whether the run ends before that process dies. Somebody else looks.
async fn ends(place: &Place, process: &Process, onlooker: &Engine, run: &str) -> bool {
    loop {
        if status(onlooker, run).await.is_terminal() && !process.has_crashed() {
            return true;
        }
        if process.has_crashed() {
            return false;
        }
        place.world.sleep(Duration::from_millis(100)).await;
    }
}

/// 9: "N resumes → the first progresses, the rest no-op". A signal that it does not wait for resumes a run for nothing.
fn of_many_resumes_the_first_goes_on_and_the_others_do_nothing(place: &Place) {
    counted(|counts| {
        place.world.block_on(async {
            let [first, second, third] = [(); 3].map(|()| place.process());
            let engine = driving(&first).await;
            let run = engine.start("one", &0).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            for number in 1..=5 {
                run.signal("other", &(), &number.to_string()).await.unwrap();
                place.world.sleep(seconds(5)).await;
                assert_eq!((counts.resumes(), counts.idle_resumes()), (number, number), "each resume finds nothing");
                assert_eq!((kinds(&engine, "a").await, status(&engine, "a").await), (vec![LINE[0]], Status::Waiting));
            }
            engine.shutdown().await;
            // Nobody drives; a result and more signals come.
            let worker = working(&second, &Jobs::new(&place.world)).await;
            for number in 6..=20 {
                worker.run("a").unwrap().signal("other", &(), &number.to_string()).await.unwrap();
            }
            place.world.sleep(seconds(5)).await;
            assert_eq!(ready(&worker).await, (1, vec![(Status::Waiting, 1)]));
            let engine = driving(&third).await;
            assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 7);
            place.world.sleep(seconds(5)).await;
            assert_eq!((counts.resumes(), counts.idle_resumes()), (6, 5), "all of them are one");
            assert_eq!(kinds(&engine, "a").await, LINE);
        });
    });
}

/// 10: "signals use the same path".
fn a_signal_resumes_its_run_as_a_task_does(place: &Place) {
    async fn wait(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.wait_for("go").await
    }
    counted(|counts| {
        place.world.block_on(async {
            let engine = node(&place.process()).workflow("wait", wait).start().await.unwrap();
            engine.start("wait", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            engine.shutdown().await;
            let client = node(&place.process()).start().await.unwrap();
            client.run("a").unwrap().signal("go", &7, "1").await.unwrap();
            place.world.sleep(seconds(5)).await;
            assert_eq!(ready(&client).await, (1, vec![(Status::Waiting, 1)]));
            let engine = node(&place.process()).workflow("wait", wait).start().await.unwrap();
            assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 7);
            place.world.sleep(seconds(5)).await;
            assert_eq!((counts.resumes(), counts.idle_resumes()), (1, 0));
        });
    });
}

/// 10: "fire, start the run, compute the next time, reinsert, in one transaction; unique per (schedule, fire time)". Its process
/// dies at its first call after the time has come, at its second, and so on.
fn a_schedule_fires_and_sets_its_next_time_in_one_transaction(place: &Place) {
    async fn nothing(_: Ctx, (): ()) -> outlast::Result<()> {
        Ok(())
    }
    place.world.block_on(async {
        let mut crashes = 0;
        for at in 0..20 {
            let (process, id) = (place.process(), format!("s{at}"));
            let engine = node(&process).workflow("nothing", nothing).start().await.unwrap();
            let until = place.world.now() + seconds(25);
            let put = engine
                .schedule(&id)
                .every(seconds(10))
                .until(until)
                .start("nothing", &())
                .overlap(Overlap::Allow)
                .put()
                .await
                .unwrap();
            let first = put.next_times(1).await.unwrap()[0];
            let wait = Duration::from_millis(u64::try_from(first.as_millis() - place.world.now().as_millis()).unwrap());
            place.world.sleep(wait - Duration::from_millis(1)).await;
            process.faults().plan_next(at / 2, crash(at));
            place.world.sleep(seconds(1)).await;
            let landed = process.has_crashed();
            process.crash();
            let other = node(&place.process()).workflow("nothing", nothing).start().await.unwrap();
            place.world.sleep(seconds(45)).await;
            let runs = other.list().attribute(outlast::SCHEDULE_ATTRIBUTE, &id).await.unwrap().runs;
            let mut ids: Vec<String> = runs.iter().map(|view| view.run.id.to_string()).collect();
            ids.sort();
            ids.dedup();
            let expected = if until.as_millis() - first.as_millis() >= 20_000 { 3 } else { 2 };
            assert_eq!(
                (runs.len(), ids.len()),
                (expected, expected),
                "one run for each time, after a crash at call {at}: {ids:?}"
            );
            assert!(runs.iter().all(|view| view.status == Status::Completed));
            other.shutdown().await;
            crashes += usize::from(landed);
            if !landed && at % 2 == 1 {
                break;
            }
        }
        assert!(crashes >= 4, "{crashes}");
    });
}

/// 3: "An ordinary queue item `builtin.resume_workflow`, queue `system`, priority 10, args `[run_id]`; without its argument:
/// \"resume_workflow requires workflow_id\"."
fn a_resume_is_a_queue_item_and_can_be_queued_by_hand(place: &Place) {
    place.world.block_on(async {
        let [first, worker, second] = [(); 3].map(|()| place.process());
        let engine = driving(&first).await;
        engine.start("one", &0).id("a").await.unwrap();
        place.world.sleep(seconds(1)).await;
        assert_eq!(engine.resumes(None).await.unwrap().items, [], "a waiting run is no queue item");
        engine.shutdown().await;
        let worker = working(&worker, &Jobs::new(&place.world)).await;
        for _ in 0..3 {
            worker.enqueue(ResumeItem::NAME, &["a"]).queue("system").priority(10).await.unwrap();
        }
        place.world.sleep(seconds(10)).await;
        let items = worker.resumes(None).await.unwrap().items;
        assert_eq!((items.len(), items[0].claimed, &items[0].args()[..]), (1, false, &b"[\"a\"]"[..]));
        assert_eq!((ResumeItem::NAME, ResumeItem::QUEUE), ("builtin.resume_workflow", "system"));
        assert_eq!(ResumeItem::PRIORITY, 10);
        let none: [&str; 0] = [];
        let refused = worker.enqueue(ResumeItem::NAME, &none).await.err().unwrap().to_string();
        assert!(refused.contains("resume_workflow requires workflow_id"), "{refused}");
        let engine = driving(&second).await;
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 7);
        assert_eq!(engine.resumes(None).await.unwrap().items, []);
    });
}
