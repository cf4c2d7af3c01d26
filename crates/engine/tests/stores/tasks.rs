//! Tasks awaited alone and together, with one another and with whatever else a run waits for. Seed 002, Engine 7 and 11.

use outlast::{Ctx, Engine, Outlast, Race2, Race4};
use serde_json::{Value, json};

use crate::jobs::{Jobs, fails, gives, kinds};
use crate::place::{Place, node, seconds, stories};

stories! {
    a_task_gives_its_value_or_throws_its_error,
    all_gives_an_ordered_list_and_throws_the_first_failure_although_an_earlier_one_is_pending,
    any_gives_the_first_success_and_ignores_failures_while_anything_is_pending,
    any_of_which_all_fail_throws_them_together,
    race_gives_the_first_that_ends_well_or_badly,
    tasks_timers_signals_and_children_mix,
    a_task_and_a_timer_mix,
    combinators_nest,
}

type Tasks = Vec<outlast::Task<u32>>;

fn tasks(ctx: &Ctx, jobs: &[crate::jobs::Job]) -> Tasks {
    jobs.iter().map(|job| ctx.task("job", job)).collect()
}

/// Tells a story to one engine with its worker; what it gives, and after how many tens of seconds. Whatever nobody gave notice
/// of is found a second later.
fn tell(place: &Place, register: impl Fn(Outlast) -> Outlast, story: impl AsyncFn(&Engine)) -> (Value, u64) {
    place.world.block_on(async {
        let process = place.process();
        let engine = register(node(&process)).handler(Jobs::new(&place.world).handler()).start().await.unwrap();
        let begun = place.world.elapsed();
        let run = engine.start("w", &()).id("a").await.unwrap();
        story(&engine).await;
        let value = run.result::<Value>().await.unwrap();
        let took = (place.world.elapsed() - begun).as_secs() / 10;
        place.world.sleep(seconds(1_200)).await;
        assert_eq!(
            engine.tasks().await.unwrap().tasks.iter().filter(|task| task.died_at.is_none()).count(),
            0,
            "no task is left"
        );
        engine.shutdown().await;
        (value, took)
    })
}

async fn nothing(_: &Engine) {}

/// "`Task.run` → value, or a thrown error."
fn a_task_gives_its_value_or_throws_its_error(place: &Place) {
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let value = ctx.task::<u32>("job", &gives(7, 10)).await?;
        let error = ctx.task::<u32>("job", &fails(8, 10)).await.unwrap_err();
        Ok(json!([value, error.code(), error.message()]))
    }
    let (told, took) = tell(place, |engine| engine.workflow("w", w), nothing);
    assert_eq!((told, took), (json!([7, "broke", "8 broke"]), 2));
}

/// "`Task.all` → ordered array when all are done; the first recorded failure throws even if an earlier item is pending."
fn all_gives_an_ordered_list_and_throws_the_first_failure_although_an_earlier_one_is_pending(place: &Place) {
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let values = ctx.all(tasks(&ctx, &[gives(1, 30), gives(2, 10), gives(3, 20)])).await?;
        let error = ctx.all(tasks(&ctx, &[gives(4, 600), fails(5, 20), fails(6, 40)])).await.unwrap_err();
        Ok(json!([values, error.message()]))
    }
    let (told, took) = tell(place, |engine| engine.workflow("w", w), nothing);
    assert_eq!((told, took), (json!([[1, 2, 3], "5 broke"]), 5));
}

/// "`Task.any` → first success `{item_id, result}`, failures ignored while anything is pending."
fn any_gives_the_first_success_and_ignores_failures_while_anything_is_pending(place: &Place) {
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let (place, number) = ctx.any(tasks(&ctx, &[fails(1, 10), gives(2, 600), gives(3, 30), fails(4, 20)])).await?;
        Ok(json!([place, number]))
    }
    let (told, took) = tell(place, |engine| engine.workflow("w", w), nothing);
    assert_eq!((told, took), (json!([2, 3]), 3));
}

/// "All failed → `AggregateError`."
fn any_of_which_all_fail_throws_them_together(place: &Place) {
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let error = ctx.any(tasks(&ctx, &[fails(1, 20), fails(2, 10)])).await.unwrap_err();
        Ok(json!([error.code(), error.data::<Value>()]))
    }
    let (told, took) = tell(place, |engine| engine.workflow("w", w), nothing);
    assert_eq!((&told[0], took), (&json!("all_failed"), 2));
    let failures = told[1].to_string();
    assert!(failures.contains("1 broke") && failures.contains("2 broke"), "{failures}");
}

/// "`Task.race` → first terminal `{item_id, status, result|error}`."
fn race_gives_the_first_that_ends_well_or_badly(place: &Place) {
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let (place, number) = ctx.race(tasks(&ctx, &[gives(1, 600), gives(2, 10), fails(3, 20)])).await?;
        let error = ctx.race(tasks(&ctx, &[gives(4, 600), gives(5, 20), fails(6, 10)])).await.unwrap_err();
        Ok(json!([place, number, error.message()]))
    }
    let (told, took) = tell(place, |engine| engine.workflow("w", w), nothing);
    assert_eq!((told, took), (json!([1, 2, "6 broke"]), 2));
}

async fn child(ctx: Ctx, long: u64) -> outlast::Result<u32> {
    ctx.task("job", &gives(9, long)).await
}

/// "Tasks, timers, signals and children mix freely in all of them." Each of the four wins a race once.
fn tasks_timers_signals_and_children_mix(place: &Place) {
    /// The four of them; each takes so many seconds, but for the signal, which somebody sends.
    async fn four(ctx: &Ctx, round: u64, [task, timer, kid]: [u64; 3]) -> outlast::Result<&'static str> {
        let four = (
            ctx.task::<u32>("job", &gives(1, task)),
            ctx.sleep(seconds(timer)),
            ctx.wait_for::<u32>(&format!("go-{round}")),
            ctx.child::<u32>("child", &kid).id(&format!("kid-{round}")),
        );
        Ok(match ctx.race(four).await? {
            Race4::First(_) => "task",
            Race4::Second(()) => "timer",
            Race4::Third(_) => "signal",
            Race4::Fourth(_) => "child",
        })
    }
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let mut won = Vec::new();
        for (round, long) in [[20, 600, 600], [600, 20, 600], [600, 600, 600], [600, 600, 20]].into_iter().enumerate() {
            won.push(four(&ctx, round as u64, long).await?);
        }
        let all = (
            ctx.task::<u32>("job", &gives(1, 10)),
            ctx.sleep(seconds(20)),
            ctx.wait_for::<u32>("last"),
            ctx.child::<u32>("child", &10).id("kid-last"),
        );
        let (task, (), signal, kid) = ctx.all(all).await?;
        Ok(json!([won, task, signal, kid]))
    }
    let (told, _) = tell(
        place,
        |engine| engine.workflow("w", w).workflow("child", child),
        async |engine: &Engine| {
            let run = engine.run("a").unwrap();
            // The third round begins after forty seconds.
            place.world.sleep(seconds(70)).await;
            run.signal("go-2", &3, "1").await.unwrap();
            run.signal("last", &4, "2").await.unwrap();
        },
    );
    assert_eq!(told, json!([["task", "timer", "signal", "child"], 1, 4, 9]));
}

/// 11: "mixed task + timer".
fn a_task_and_a_timer_mix(place: &Place) {
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let both = ctx.all((ctx.task::<u32>("job", &gives(7, 20)), ctx.sleep(seconds(50)))).await?;
        let late = matches!(
            ctx.race((ctx.task::<u32>("job", &gives(8, 600)), ctx.sleep(seconds(50)))).await?,
            Race2::Second(())
        );
        Ok(json!([both.0, late]))
    }
    place.world.block_on(async {
        let engine = node(&place.process()).workflow("w", w).handler(Jobs::new(&place.world).handler());
        let engine = engine.start().await.unwrap();
        let begun = place.world.elapsed();
        let value: Value = engine.start("w", &()).id("a").await.unwrap().result().await.unwrap();
        assert_eq!((value, (place.world.elapsed() - begun).as_secs() / 10), (json!([7, true]), 10));
        let all = ["TASK_SCHEDULED", "TIMER_STARTED", "TASK_FINISHED", "TIMER_FIRED"];
        let race = ["TASK_SCHEDULED", "TIMER_STARTED", "TIMER_FIRED", "OPERATION_CANCELLED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, [&all[..], &race[..]].concat());
    });
}

/// "Combinators nest."
fn combinators_nest(place: &Place) {
    async fn w(ctx: Ctx, (): ()) -> outlast::Result<Value> {
        let quick = ctx.all((ctx.task::<u32>("job", &gives(1, 20)), ctx.task::<u32>("job", &gives(2, 10))));
        let slow = ctx.all((ctx.task::<u32>("job", &gives(3, 600)), ctx.sleep(seconds(10))));
        let nested = ctx.race((ctx.any((quick, ctx.task::<u32>("job", &fails(4, 0)))), slow)).await?;
        Ok(match nested {
            Race2::First(Race2::First((one, two))) => json!([one, two]),
            Race2::First(Race2::Second(_)) | Race2::Second(_) => json!("another won"),
        })
    }
    let (told, took) = tell(place, |engine| engine.workflow("w", w), nothing);
    assert_eq!((told, took), (json!([1, 2]), 2));
}
