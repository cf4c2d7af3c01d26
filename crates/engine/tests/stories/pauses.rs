//! Sleeps and waits: semantics P1 to P15.

use std::time::Duration;

use outlast::{Ctx, Outlast, Race2, Status};
use outlast_core::commit::{TimerKind, WaitKind};
use outlast_core::event::Event;
use outlast_core::time::Timestamp;
use outlast_store::{Awaited, Delivered};

use crate::support::{Pauses, Scene, Tally, journal, kinds, pauses, seconds, status, tell};

async fn two_sleeps(ctx: Ctx, _: ()) -> outlast::Result<u32> {
    ctx.sleep(Duration::from_secs(5)).await?;
    let n = ctx.step("n", async |_| Ok(1)).await?;
    ctx.sleep(Duration::from_secs(10)).await?;
    Ok(n + 1)
}

#[test]
fn two_sleeps_take_fifteen_seconds_and_no_more() {
    let journal = tell(
        |engine| engine.workflow("naps", two_sleeps),
        async |world, engine| {
            let begun = world.now();
            let n: u32 = engine.start("naps", &()).id("a").await.unwrap().result().await.unwrap();
            assert_eq!(n, 2);
            let took = world.now().since(begun);
            assert!((15_000..15_100).contains(&took.as_millis()), "{took:?}");
            kinds(&engine, "a").await
        },
    );
    let expected = ["TIMER_STARTED", "TIMER_FIRED", "STEP_FINISHED", "TIMER_STARTED", "TIMER_FIRED", "RUN_FINISHED"];
    assert_eq!(journal, expected);
}

/// `sleep 5s; step; sleep 10s`, with a count of how often the step's body ran.
fn counted_sleeps(ran: Tally) -> impl FnOnce(Outlast) -> Outlast {
    move |engine| {
        engine.workflow("naps", move |ctx: Ctx, (): ()| {
            let ran = ran.clone();
            async move {
                ctx.sleep(seconds(5)).await?;
                ctx.step("between", async |_| Ok(ran.add())).await?;
                ctx.sleep(seconds(10)).await
            }
        })
    }
}

/// Semantics P5, and P2, P4 and P6 on the way: the table row for row, with programs kept and without.
#[test]
fn the_table_of_two_sleeps_holds_row_for_row() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let engine = scene.engine(|engine| counted_sleeps(ran.clone())(engine)).await;
        let begun = scene.world.now();
        let run = engine.start("naps", &()).id("a").await.unwrap();

        scene.pass(seconds(1)).await;
        let first = begun + seconds(5);
        let row = Pauses { reached: 1, completed: 0, resume_at: Some(first) };
        assert_eq!(pauses(&engine, "a").await, row, "sleep 1 pauses");
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        assert_eq!(timer(&scene.awaiting("a").await), first);
        assert_eq!(ran.count(), 0);

        scene.pass(seconds(5)).await;
        let second = pauses(&engine, "a").await.resume_at.unwrap();
        let row = Pauses { reached: 2, completed: 1, resume_at: Some(second) };
        assert_eq!(pauses(&engine, "a").await, row, "sleep 1 resumes, the step runs, sleep 2 pauses");
        assert!((15_000..15_050).contains(&second.since(begun).as_millis()), "{second:?}");
        assert_eq!(timer(&scene.awaiting("a").await), second);
        assert_eq!(ran.count(), 1, "the step ran");

        run.result::<()>().await.unwrap();
        let row = Pauses { reached: 2, completed: 2, resume_at: None };
        assert_eq!(pauses(&engine, "a").await, row, "sleep 1 is skipped, sleep 2 resumes, the run completes");
        assert_eq!(ran.count(), 1, "the step came from the journal");
        assert_eq!(scene.awaiting("a").await, []);
    });
}

/// The instant of the one timer a run waits for.
fn timer(awaiting: &[Awaited]) -> Timestamp {
    match awaiting {
        [Awaited::Timer { kind: TimerKind::Delay, due, .. }] => *due,
        other => panic!("one timer, not {other:?}"),
    }
}

/// Semantics P5, "start (0,0,–)": a run that nobody could drive yet has reached no pause.
#[test]
fn a_run_that_has_not_begun_has_no_pauses() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine).await;
        engine.start("naps", &()).id("a").version("1").await.unwrap();
        let row = Pauses { reached: 0, completed: 0, resume_at: None };
        assert_eq!(pauses(&engine, "a").await, row);
        assert_eq!(status(&engine, "a").await, Status::Queued);
        let able = scene.engine(counted_sleeps(Tally::default())).await;
        able.run("a").unwrap().result::<()>().await.unwrap();
    });
}

/// Semantics P6: "no infinite sleep loop, for any number of pause points", and no step twice.
#[test]
fn fifty_sleeps_are_slept_once_each_also_when_every_wake_replays() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let counted = ran.clone();
        let register = |engine: Outlast| {
            engine.workflow("naps", move |ctx: Ctx, (): ()| {
                let ran = counted.clone();
                async move {
                    for _ in 0..50 {
                        ctx.sleep(seconds(1)).await?;
                        ctx.step("tick", async |_| Ok(ran.add())).await?;
                    }
                    Ok::<_, outlast::Error>(())
                }
            })
        };
        let engine = scene.engine(register).await;
        let begun = scene.world.now();
        engine.start("naps", &()).id("a").await.unwrap().result::<()>().await.unwrap();
        let took = scene.world.now().since(begun);
        assert!((50_000..51_000).contains(&took.as_millis()), "{took:?}");
        assert_eq!(ran.count(), 50);
        assert_eq!(pauses(&engine, "a").await, Pauses { reached: 50, completed: 50, resume_at: None });
    });
}

/// Semantics P10: "an early or spurious wake before the deadline must not extend the sleep".
#[test]
fn an_early_wake_does_not_extend_a_sleep() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| counted_sleeps(Tally::default())(engine)).await;
        let begun = scene.world.now();
        let run = engine.start("naps", &()).id("a").await.unwrap();
        for n in 0..4 {
            scene.pass(seconds(1)).await;
            let unrelated = engine.run("a").unwrap().signal("unrelated", &n, &n.to_string()).await.unwrap();
            assert_eq!(unrelated, Delivered::Buffered);
            assert_eq!(timer(&scene.awaiting("a").await), begun + seconds(5), "after wake {n}");
        }
        run.result::<()>().await.unwrap();
        let took = scene.world.now().since(begun);
        assert!((15_000..15_100).contains(&took.as_millis()), "{took:?}");
        let starts = kinds(&engine, "a").await.iter().filter(|kind| **kind == "TIMER_STARTED").count();
        assert_eq!(starts, 2, "a deadline is recorded once");
    });
}

/// Semantics P10: an early wake does not extend a timeout either.
#[test]
fn an_early_wake_does_not_extend_the_timeout_of_a_wait() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("wait", patient)).await;
        let begun = scene.world.now();
        let run = engine.start("wait", &60).id("a").await.unwrap();
        scene.pass(seconds(40)).await;
        engine.run("a").unwrap().signal("unrelated", &1, "1").await.unwrap();
        assert_eq!(run.result::<Option<u32>>().await.unwrap(), None);
        let took = scene.world.now().since(begun);
        assert!((60_000..60_100).contains(&took.as_millis()), "{took:?}");
    });
}

async fn patient(ctx: Ctx, timeout: u64) -> outlast::Result<Option<u32>> {
    ctx.wait_for("go").timeout(seconds(timeout)).await
}

/// Semantics P12: "`sleep_until(past)` completes its index at once"; a sleep of no time does too.
#[test]
fn sleeps_of_no_time_and_until_the_past_end_at_once() {
    async fn no_time(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(Duration::ZERO).await?;
        ctx.sleep_until(Timestamp::from_millis(1)).await?;
        let now = ctx.now().await?;
        ctx.sleep_until(Timestamp::from_millis(now.as_millis() - 1)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", no_time)).await;
        let begun = scene.world.now();
        engine.start("w", &()).id("a").await.unwrap().result::<()>().await.unwrap();
        assert!(scene.world.now().since(begun).as_millis() < 10, "no time passes");
        assert_eq!(pauses(&engine, "a").await, Pauses { reached: 3, completed: 3, resume_at: None });
    });
}

/// Semantics P7: without a timeout a wait has no timer, and stays for as long as it takes.
#[test]
fn a_wait_without_a_timeout_has_no_timer() {
    async fn forever(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.wait_for("go").await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("wait", forever)).await;
        let run = engine.start("wait", &()).id("a").await.unwrap();
        scene.pass(seconds(30 * 24 * 3_600)).await;
        let awaiting = scene.awaiting("a").await;
        assert!(matches!(&awaiting[..], [Awaited::Wait { kind: WaitKind::Signal, .. }]), "{awaiting:?}");
        assert_eq!(engine.run("a").unwrap().signal("go", &7, "1").await.unwrap(), Delivered::Delivered);
        assert_eq!(run.result::<u32>().await.unwrap(), 7);
    });
}

/// Semantics P7 and P8: the payload comes, and wakes the run at once.
#[test]
fn a_signal_resolves_a_wait_at_once() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("wait", patient)).await;
        let run = engine.start("wait", &60).id("a").await.unwrap();
        scene.pass(seconds(59)).await;
        let before = scene.world.now();
        engine.run("a").unwrap().signal("go", &7, "1").await.unwrap();
        assert_eq!(run.result::<Option<u32>>().await.unwrap(), Some(7));
        assert!(scene.world.now().since(before).as_millis() < 10);
        assert_eq!(kinds(&engine, "a").await, ["SIGNAL_AWAITED", "SIGNAL_RESOLVED", "RUN_FINISHED"]);
    });
}

/// Semantics P7: timed out. In Rust the wait gives `None`; the journal names the signal.
#[test]
fn a_wait_that_timed_out_is_recorded_with_the_name_of_its_signal() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("wait", patient)).await;
        let run = engine.start("wait", &60).id("a").await.unwrap();
        assert_eq!(run.result::<Option<u32>>().await.unwrap(), None);
        let journal = journal(&engine, "a").await;
        assert!(matches!(&journal[1], Event::SignalTimedOut { name, .. } if name.as_str() == "go"), "{journal:?}");
        assert_eq!(scene.awaiting("a").await, []);
    });
}

/// Semantics P11: "a wait already passed replays with its payload, not as a timeout".
#[test]
fn a_wait_that_has_passed_replays_with_its_payload() {
    async fn wait_then_sleep(ctx: Ctx, (): ()) -> outlast::Result<Option<u32>> {
        let payload = ctx.wait_for("go").timeout(seconds(60)).await?;
        ctx.sleep(seconds(3_600)).await?;
        Ok(payload)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("wait", wait_then_sleep)).await;
        let run = engine.start("wait", &()).id("a").await.unwrap();
        engine.run("a").unwrap().signal("go", &7, "1").await.unwrap();
        assert_eq!(run.result::<Option<u32>>().await.unwrap(), Some(7));
    });
}

/// Semantics P13: "a falsy, `null` or empty payload is a payload".
#[test]
fn payloads_that_look_like_nothing_are_payloads() {
    async fn anything(ctx: Ctx, (): ()) -> outlast::Result<Vec<serde_json::Value>> {
        let mut payloads = Vec::new();
        for _ in 0..4 {
            let payload = ctx.wait_for::<serde_json::Value>("go").timeout(seconds(60)).await?;
            payloads.push(payload.ok_or_else(|| outlast::Error::new("late", "a payload counts as none"))?);
        }
        Ok(payloads)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("wait", anything)).await;
        let run = engine.start("wait", &()).id("a").await.unwrap();
        let sent = [serde_json::json!(null), serde_json::json!(false), serde_json::json!(0), serde_json::json!("")];
        for (n, payload) in sent.iter().enumerate() {
            scene.pass(seconds(1)).await;
            engine.run("a").unwrap().signal("go", payload, &n.to_string()).await.unwrap();
        }
        assert_eq!(run.result::<Vec<serde_json::Value>>().await.unwrap(), sent);
    });
}

/// Semantics P15: "a signal nobody waits for yet is kept"; first in, first out.
#[test]
fn early_signals_are_kept_and_taken_in_order() {
    async fn late(ctx: Ctx, (): ()) -> outlast::Result<(u32, u32)> {
        ctx.sleep(seconds(60)).await?;
        Ok((ctx.wait_for("go").await?, ctx.wait_for("go").await?))
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("late", late)).await;
        let run = engine.start("late", &()).id("a").await.unwrap();
        for n in 1..=2 {
            let kept = engine.run("a").unwrap().signal("go", &n, &n.to_string()).await.unwrap();
            assert_eq!(kept, Delivered::Buffered);
        }
        assert_eq!(run.result::<(u32, u32)>().await.unwrap(), (1, 2));
    });
}

/// Semantics P9: "a conditional pause on a recorded step result is valid".
#[test]
fn a_pause_may_depend_on_the_result_of_a_step() {
    async fn maybe(ctx: Ctx, nap: bool) -> outlast::Result<()> {
        if ctx.step("nap?", async |_| Ok(nap)).await? {
            ctx.sleep(seconds(60)).await?;
        }
        ctx.sleep(seconds(1)).await
    }
    for (nap, reached, least) in [(true, 2, 61_000), (false, 1, 1_000)] {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| engine.workflow("maybe", maybe)).await;
            let begun = scene.world.now();
            engine.start("maybe", &nap).id("a").await.unwrap().result::<()>().await.unwrap();
            let took = scene.world.now().since(begun).as_millis();
            assert!((least..least + 100).contains(&took), "{took}");
            assert_eq!(pauses(&engine, "a").await, Pauses { reached, completed: reached, resume_at: None });
        });
    }
}

async fn go_or_give_up(ctx: Ctx, _: ()) -> outlast::Result<String> {
    match ctx.race((ctx.wait_for::<String>("go"), ctx.sleep(Duration::from_secs(60)))).await? {
        Race2::First(word) => Ok(word),
        Race2::Second(()) => Ok("late".to_owned()),
    }
}

/// Semantics P14: "two or more pauses may be pending at once".
#[test]
fn a_sleep_and_a_wait_are_pending_at_once() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("go", go_or_give_up)).await;
        let run = engine.start("go", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(scene.awaiting("a").await.len(), 2);
        assert_eq!(pauses(&engine, "a").await.reached, 2);
        assert_eq!(run.result::<String>().await.unwrap(), "late");
        assert_eq!(scene.awaiting("a").await, []);
    });
}

#[test]
fn a_signal_wins_a_race_and_the_timer_goes() {
    let journal = tell(
        |engine| engine.workflow("go", go_or_give_up),
        async |_, engine| {
            let run = engine.start("go", &()).id("a").await.unwrap();
            engine.run("a").unwrap().signal("go", "now", "1").await.unwrap();
            assert_eq!(run.result::<String>().await.unwrap(), "now");
            kinds(&engine, "a").await
        },
    );
    assert_eq!(journal, ["SIGNAL_AWAITED", "TIMER_STARTED", "SIGNAL_RESOLVED", "OPERATION_CANCELLED", "RUN_FINISHED"]);
}

#[test]
fn nobody_signals_and_the_sleep_wins() {
    let word = tell(
        |engine| engine.workflow("go", go_or_give_up),
        async |_, engine| engine.start("go", &()).await.unwrap().result::<String>().await.unwrap(),
    );
    assert_eq!(word, "late");
}
