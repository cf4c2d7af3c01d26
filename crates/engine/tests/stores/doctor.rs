//! The doctor finds what hands did to a database, and repairs what the journals prove.

use std::sync::Mutex;

use outlast::{Ailment, Awaited, Ctx, Engine, Error, Finding, Outlast, Retry, Status, TaskContext};

use crate::place::{Place, seconds};

const HOUR: u64 = 3_600;

/// What the callback was handed out with.
static TOKEN: Mutex<String> = Mutex::new(String::new());

/// Sleeps, waits for whatever there is, asks for a task and a child.
async fn everything(ctx: Ctx, (): ()) -> outlast::Result<Vec<String>> {
    let nap = ctx.sleep(seconds(HOUR)).start();
    let signal = ctx.wait_for::<String>("go").timeout(seconds(2 * HOUR)).start();
    let approval = ctx.approve("Ship it?").assignee("ann").start();
    let callback = ctx.callback::<String>().id("paid").create();
    *TOKEN.lock().unwrap() = callback.token();
    let task = ctx.task::<String>("pack", &"socks").start();
    let child = ctx.child::<String>("kid", &()).id("kid").start();
    let retried = ctx
        .step("shaky", async |step| match step.attempt() {
            1 => Err(Error::new("shaky", "not yet")),
            _ => Ok("stepped".to_owned()),
        })
        .retry(Retry::attempts(2).initial(seconds(HOUR)).cap(seconds(HOUR)).jitter(outlast::Jitter::None));
    let retried = retried.await?;
    nap.await?;
    let signal = signal.await?.unwrap_or_default();
    let decided = approval.await?.approved.to_string();
    Ok(vec![retried, signal, decided, callback.await?, task.await?, child.await?])
}

async fn kid(ctx: Ctx, (): ()) -> outlast::Result<String> {
    ctx.wait_for::<String>("grow").await
}

/// Is driven for as long as its process lives.
async fn busy(ctx: Ctx, (): ()) -> outlast::Result<()> {
    ctx.step("busy", async |_| std::future::pending().await).await
}

async fn pack(_: TaskContext, what: String) -> outlast::Result<String> {
    Ok(format!("packed {what}"))
}

fn with_workflows(engine: Outlast) -> Outlast {
    engine.workflow("everything", everything).workflow("kid", kid)
}

async fn findings(engine: &Engine) -> Vec<Finding> {
    engine.doctor().await.unwrap().findings
}

/// What is wrong with the run, in short.
async fn names(engine: &Engine) -> Vec<String> {
    let short = |finding: Finding| match finding.ailment {
        Ailment::NoWakeSource => "no wake source".to_owned(),
        Ailment::ForgottenWake => "forgotten wake".to_owned(),
        Ailment::LeaseOver { .. } => "lease over".to_owned(),
        Ailment::MissingTimer { key, kind, .. } => format!("missing {} of {key}", kind.name()),
        Ailment::MovedTimer { key, kind, .. } => format!("moved {} of {key}", kind.name()),
        Ailment::OrphanedTimer { key, kind } => format!("orphaned {} of {key}", kind.name()),
        Ailment::MissingWait { key, .. } => format!("missing wait {key}"),
        Ailment::OrphanedWait { key } => format!("orphaned wait {key}"),
        Ailment::MissingTask { key, .. } => format!("missing task {key}"),
        Ailment::OrphanedTask { key } => format!("orphaned task {key}"),
        Ailment::UnheardChild { key, .. } => format!("unheard child {key}"),
        Ailment::Unreadable { .. } => "unreadable".to_owned(),
    };
    findings(engine).await.into_iter().map(short).collect()
}

async fn repair(engine: &Engine) {
    let diagnosis = engine.doctor().repair().await.unwrap();
    assert!(!diagnosis.findings.is_empty() && diagnosis.is_healthy(), "{:?}", diagnosis.findings);
}

fn keys(rows: &[Awaited]) -> Vec<String> {
    let mut keys: Vec<String> = rows.iter().map(|row| format!("{row:?}").chars().take(60).collect()).collect();
    keys.sort();
    keys
}

#[test]
fn doctor_finds_nothing_wrong_with_a_healthy_run() {
    Place::each("doctor_well", |place| {
        place.world.block_on(async {
            let engine = with_workflows(place.engine()).start().await.unwrap();
            engine.start("everything", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            let diagnosis = engine.doctor().await.unwrap();
            assert_eq!((diagnosis.runs, diagnosis.findings.len()), (2, 0), "{:?}", diagnosis.findings);
        });
    });
}

/// A worker that found nothing rests for minutes where nobody else can queue anything.
#[test]
fn doctor_tells_resting_workers_of_a_task_that_is_queued_again() {
    async fn packs(ctx: Ctx, (): ()) -> outlast::Result<String> {
        ctx.task::<String>("pack", &"socks").await
    }
    Place::each("doctor_worker", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let engine = place.engine().workflow("packs", packs).start().await.unwrap();
            engine.start("packs", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            engine.shutdown().await;
            place.write("DELETE FROM task");
            let second = place.process();
            let engine = second.engine().workflow("packs", packs).task("pack", pack).start().await.unwrap();
            place.world.sleep(seconds(10)).await;
            repair(&engine).await;
            place.world.sleep(seconds(5)).await;
            assert_eq!(engine.run("a").unwrap().status().await.unwrap(), Status::Completed);
        });
    });
}

/// Row 1, and the checklist's correction: a missing timer row is not "fired"; it is rebuilt from the journal.
#[test]
fn doctor_writes_missing_timers_waits_and_tasks_again_from_the_journal() {
    Place::each("doctor_rows", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let engine = with_workflows(place.engine()).start().await.unwrap();
            let run = engine.start("everything", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            let before = run.awaiting().await.unwrap();
            place.write("DELETE FROM timer; DELETE FROM wait; DELETE FROM task");
            let missing = [
                "missing delay of __sleep-0",
                "missing wait __wait-go-0",
                "missing timeout of __wait-go-0",
                "missing wait __approve-0",
                "missing wait paid",
                "missing task __task-pack-0",
                "missing retry of shaky",
            ];
            let found = names(&engine).await;
            assert!(missing.iter().all(|missing| found.iter().any(|found| found == missing)), "{found:?}");
            assert!(findings(&engine).await.iter().all(|finding| !finding.repaired));
            repair(&engine).await;
            place.world.sleep(seconds(1)).await;
            assert_eq!(keys(&run.awaiting().await.unwrap()), keys(&before), "what was there is there again");
            assert_eq!(names(&engine).await, Vec::<String>::new());
            finish(&place, &engine).await;
        });
    });
}

/// A task that is queued again is what it was: also how often it may be tried, how soon, and how long.
#[test]
fn doctor_queues_a_task_again_with_the_plan_it_had() {
    async fn once(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let task = ctx.task::<String>("pack", &"socks").retry(Retry::never()).priority(7);
        task.timeout(seconds(9)).heartbeat(seconds(3)).delay(seconds(60)).await
    }
    Place::each("doctor_plan", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let engine = place.engine().workflow("once", once).start().await.unwrap();
            engine.start("once", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            let plan = async || {
                let task = engine.task("a/0/__task-pack-0").await.unwrap();
                (task.view.priority, task.view.available_at, task.meta)
            };
            let before = plan().await;
            assert_eq!(before.0, 7);
            place.write("DELETE FROM task");
            repair(&engine).await;
            assert_eq!(plan().await, before);
            engine.shutdown().await;
        });
    });
}

/// Answers everything; it takes as long as it would have.
async fn finish(place: &Place, engine: &Engine) {
    let run = engine.run("a").unwrap();
    let worker = place.engine().task("pack", pack).start().await.unwrap();
    engine.run("kid").unwrap().signal("grow", &"grown", "1").await.unwrap();
    run.signal("go", &"gone", "1").await.unwrap();
    run.approve("__approve-0", true).await.unwrap();
    let token = TOKEN.lock().unwrap().clone();
    run.resolve_callback("paid", &token, &"paid").await.unwrap();
    let result = run.result::<Vec<String>>().await.unwrap();
    assert_eq!(result, ["stepped", "gone", "true", "paid", "packed socks", "grown"]);
    let late = place.world.elapsed().checked_sub(seconds(HOUR)).unwrap();
    assert!(late < seconds(5), "the deadline that was recorded counts: {late:?} late");
    worker.shutdown().await;
    engine.shutdown().await;
}

#[test]
fn doctor_sets_a_timer_that_was_moved_and_removes_one_that_belongs_to_nothing() {
    Place::each("doctor_timers", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let engine = with_workflows(place.engine()).start().await.unwrap();
            let run = engine.start("everything", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            let before = run.awaiting().await.unwrap();
            let orphan = "INSERT INTO timer (ns, run, key, kind, due) SELECT ns, run, 'nobody', 0, due FROM timer WHERE key = '__sleep-0'";
            place.write(&format!("UPDATE timer SET due = due + 999999999 WHERE key = '__sleep-0'; {orphan}"));
            assert_eq!(names(&engine).await, ["moved delay of __sleep-0", "orphaned delay of nobody"]);
            repair(&engine).await;
            place.world.sleep(seconds(1)).await;
            assert_eq!(keys(&run.awaiting().await.unwrap()), keys(&before));
            finish(&place, &engine).await;
        });
    });
}

/// Sleeps, tries again, waits until some time, and waits for a sign of life.
async fn timed(ctx: Ctx, (): ()) -> outlast::Result<bool> {
    let nap = ctx.sleep(seconds(HOUR)).start();
    let answer = ctx.callback::<String>().id("paid").heartbeat(seconds(HOUR)).create();
    let endless = ctx.wait_for::<String>("never").start();
    let timely = ctx.wait_for::<String>("go").timeout(seconds(HOUR)).start();
    nap.await?;
    let silent = answer.await.is_err_and(|error| error.code() == "timeout");
    let late = timely.await?.is_none();
    endless.cancel();
    Ok(silent && late)
}

/// "Missing timer rows", each kind of them, and "orphaned timers", also those of an operation that has no timer of this kind.
#[test]
fn doctor_gives_back_every_timer_that_is_missing_and_takes_away_those_that_nothing_owes() {
    Place::each("doctor_owed", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let engine = place.engine().workflow("timed", timed).start().await.unwrap();
            let run = engine.start("timed", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            assert_eq!(names(&engine).await, Vec::<String>::new());
            let orphans = "INSERT INTO timer (ns, run, key, kind, due) SELECT ns, run, '__wait-never-0', 1, 1 FROM timer \
                           WHERE key = '__sleep-0'; \
                           INSERT INTO timer (ns, run, key, kind, due) SELECT ns, run, '__wait-go-0', 0, 1 FROM timer \
                           WHERE key = '__sleep-0'";
            place.write(&format!("{orphans}; DELETE FROM timer WHERE due > 1"));
            let mut found = names(&engine).await;
            found.sort();
            let expected = [
                "missing delay of __sleep-0",
                "missing heartbeat of paid",
                "missing timeout of __wait-go-0",
                "orphaned delay of __wait-go-0",
                "orphaned timeout of __wait-never-0",
            ];
            assert_eq!(found, expected);
            repair(&engine).await;
            place.world.sleep(seconds(1)).await;
            assert_eq!(names(&engine).await, Vec::<String>::new());
            assert!(run.result::<bool>().await.unwrap());
            let late = place.world.elapsed().checked_sub(seconds(HOUR)).unwrap();
            assert!(late < seconds(10), "{late:?} late");
        });
    });
}

/// A timer of a run that has ended, and one of a run that is gone: nobody is woken, and nobody behind them waits.
#[test]
fn timer_of_a_run_that_has_ended_or_is_gone_goes_when_it_is_due_and_harms_nobody() {
    async fn nap(ctx: Ctx, long: u64) -> outlast::Result<()> {
        ctx.sleep(seconds(long)).await
    }
    Place::each("doctor_ended", |place| {
        place.world.block_on(async {
            let engine = place.engine().workflow("nap", nap).start().await.unwrap();
            engine.start("nap", &1).id("ended").await.unwrap().result::<()>().await.unwrap();
            let ended = engine.run("ended").unwrap().view().await.unwrap();
            let run = engine.start("nap", &HOUR).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            let number = place.number();
            let timer = |of: &str| {
                format!(
                    "INSERT INTO timer (ns, run, key, kind, due) SELECT ns, {of}, '__sleep-0', 0, due - 60000 FROM timer \
                     WHERE due > 1 AND key = '__sleep-0' LIMIT 1"
                )
            };
            let of_ended = timer(&format!("(SELECT {number} FROM run WHERE id = 'ended')"));
            place.write(&format!("{of_ended}; {}", timer("987654")));
            run.result::<()>().await.unwrap();
            let late = place.world.elapsed().checked_sub(seconds(HOUR)).unwrap();
            assert!(late < seconds(10), "{late:?} late");
            place.world.sleep(seconds(HOUR)).await;
            let still = engine.run("ended").unwrap().view().await.unwrap();
            assert_eq!(format!("{still:?}"), format!("{ended:?}"), "what has ended stays as it is");
            assert_eq!(engine.resumes(None).await.unwrap().items, []);
        });
    });
}

#[test]
fn doctor_wakes_a_run_whose_wake_was_forgotten() {
    Place::each("doctor_wake", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let engine = place.engine().workflow("kid", kid).start().await.unwrap();
            let run = engine.start("kid", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            engine.shutdown().await;
            let client = place.engine().without_loops().start().await.unwrap();
            client.run("a").unwrap().signal("grow", &"grown", "1").await.unwrap();
            place.write("UPDATE run SET ready_at = NULL");
            assert_eq!(names(&client).await, ["forgotten wake"]);
            let refused = client.doctor().repair().await.unwrap();
            assert!(!refused.is_healthy());
            assert!(refused.findings[0].to_string().contains("has no lease"), "{}", refused.findings[0]);
            let engine = place.engine().workflow("kid", kid).start().await.unwrap();
            repair(&engine).await;
            assert_eq!(engine.run("a").unwrap().result::<String>().await.unwrap(), "grown");
            drop(run);
        });
    });
}

#[test]
fn doctor_wakes_a_run_that_nothing_would_ever_move() {
    Place::each("doctor_still", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let client = place.engine().without_loops().workflow("kid", kid).start().await.unwrap();
            let run = client.start("kid", &()).id("a").await.unwrap();
            place.write("UPDATE run SET ready_at = NULL");
            assert_eq!(names(&client).await, ["no wake source"]);
            let engine = place.engine().workflow("kid", kid).start().await.unwrap();
            place.world.sleep(seconds(2 * HOUR)).await;
            assert_eq!(run.status().await.unwrap(), Status::Queued, "nobody looks at it");
            repair(&engine).await;
            place.world.sleep(seconds(1)).await;
            assert_eq!(run.status().await.unwrap(), Status::Waiting);
        });
    });
}

#[test]
fn doctor_tells_a_run_of_its_child_that_ended_unheard() {
    Place::each("doctor_child", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let engine = with_workflows(place.engine()).start().await.unwrap();
            engine.start("everything", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            engine.shutdown().await;
            // Only the child is driven: its parent is told, and cannot hear it.
            let nursery = place.engine().workflow("kid", kid).start().await.unwrap();
            nursery.run("kid").unwrap().signal("grow", &"grown", "1").await.unwrap();
            assert_eq!(nursery.run("kid").unwrap().result::<String>().await.unwrap(), "grown");
            nursery.shutdown().await;
            place.write("DELETE FROM inbox; UPDATE run SET ready_at = NULL");
            let engine = with_workflows(place.engine()).start().await.unwrap();
            assert_eq!(names(&engine).await, ["unheard child __child-0"]);
            repair(&engine).await;
            engine.run("kid").unwrap().status().await.unwrap();
            let run = engine.run("a").unwrap();
            let worker = place.engine().task("pack", pack).start().await.unwrap();
            run.signal("go", &"gone", "1").await.unwrap();
            run.approve("__approve-0", true).await.unwrap();
            let token = TOKEN.lock().unwrap().clone();
            run.resolve_callback("paid", &token, &"paid").await.unwrap();
            assert_eq!(run.result::<Vec<String>>().await.unwrap().last().unwrap(), "grown");
            worker.shutdown().await;
        });
    });
}

#[test]
fn doctor_names_a_run_whose_driver_is_gone_and_one_that_cannot_be_read() {
    Place::each("doctor_gone", |place| {
        let place = place.unexamined();
        place.world.block_on(async {
            let process = place.world.process(place.store());
            let engine = with_workflows(process.engine()).workflow("busy", busy).start().await.unwrap();
            engine.start("kid", &()).id("unreadable").await.unwrap();
            let run = engine.start("busy", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            process.crash();
            drop((engine, run));
            place.world.sleep(seconds(2 * HOUR)).await;
            place.write("UPDATE event SET kind = 9999 WHERE key = '__wait-grow-0'");
            let client = place.engine().without_loops().start().await.unwrap();
            let mut found = names(&client).await;
            found.sort();
            assert_eq!(found, ["lease over", "unreadable"]);
        });
    });
}

/// "Expired leases": the run is not repaired but taken, by whoever looks for work next.
#[test]
fn doctor_names_a_lease_that_is_over_until_somebody_takes_the_run() {
    async fn slow(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.step("slow", async |step| match step.attempt() {
            0 | 1 => std::future::pending().await,
            attempt => Ok(attempt),
        })
        .timeout(seconds(HOUR))
        .retry(Retry::attempts(3))
        .await
    }
    Place::each("doctor_lease", |place| {
        place.world.block_on(async {
            let process = place.process();
            let engine = process.engine().workflow("slow", slow).start().await.unwrap();
            let run = engine.start("slow", &()).id("a").await.unwrap();
            place.world.sleep(seconds(1)).await;
            process.crash();
            drop((engine, run));
            let client = place.engine().without_loops().start().await.unwrap();
            assert_eq!(names(&client).await, Vec::<String>::new(), "its lease is not over");
            place.world.sleep(seconds(2 * HOUR)).await;
            assert_eq!(names(&client).await, ["lease over"]);
            let diagnosis = client.doctor().repair().await.unwrap();
            assert!(!diagnosis.is_healthy() && diagnosis.findings[0].refused.is_none(), "{diagnosis:?}");
            let engine = place.engine().workflow("slow", slow).start().await.unwrap();
            place.world.sleep(seconds(60)).await;
            assert_eq!(names(&client).await, Vec::<String>::new(), "somebody has it");
            assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 2);
        });
    });
}

#[test]
#[should_panic(expected = "the doctor has found")]
fn doctor_comes_at_the_end_of_every_story() {
    let place = Place::sqlite();
    place.world.block_on(async {
        let engine = place.engine().workflow("kid", kid).start().await.unwrap();
        engine.start("kid", &()).id("a").await.unwrap();
        place.world.sleep(seconds(1)).await;
        place.write("DELETE FROM wait");
    });
}

/// Also to runs that have ended: those own nothing.
#[test]
#[should_panic(expected = "a timer (delay) runs for `nobody`")]
fn doctor_comes_at_the_end_of_every_story_to_those_who_have_ended_too() {
    async fn nothing(_: Ctx, (): ()) -> outlast::Result<()> {
        Ok(())
    }
    let place = Place::sqlite();
    place.world.block_on(async {
        let engine = place.engine().workflow("nothing", nothing).start().await.unwrap();
        engine.start("nothing", &()).id("a").await.unwrap().result::<()>().await.unwrap();
        place.write("INSERT INTO timer (ns, run, key, kind, due) SELECT ns, row, 'nobody', 0, 9999999999999 FROM run");
    });
}

/// And to all of them, however many there are.
#[test]
#[should_panic(expected = "the doctor has found")]
fn doctor_comes_at_the_end_of_every_story_to_everybody() {
    let place = Place::sqlite();
    place.world.block_on(async {
        let engine = place.engine().workflow("kid", kid).start().await.unwrap();
        for number in 0..=outlast_store::LIST_PAGE_MAX {
            engine.start("kid", &()).id(&number.to_string()).await.unwrap();
        }
        place.world.sleep(seconds(1)).await;
        place.write("DELETE FROM wait WHERE run = (SELECT row FROM run WHERE id = '0')");
    });
}
