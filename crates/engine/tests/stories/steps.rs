//! Steps: attempts, time-outs, doubts and odd results.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast::{Ctx, Engine, EngineError, Error, Jitter, Outlast, Retry};
use outlast_core::event::Event;
use outlast_core::limits::Limits;

use crate::support::{Scene, Tally, crash_at, journal, kinds, seconds};

/// Ten seconds after the first attempt, twenty after the second, and so on: no chance in it.
fn every_ten_seconds(attempts: u32) -> Retry {
    Retry::attempts(attempts).initial(seconds(10)).factor(2.0).jitter(Jitter::None)
}

async fn third_time_lucky(ctx: Ctx, (): ()) -> outlast::Result<u32> {
    let body = async |s: outlast::StepContext| match s.attempt() {
        3 => Ok(s.attempt()),
        attempt => Err(Error::new("flaky", format!("attempt {attempt}"))),
    };
    ctx.step("flaky", body).retry(every_ten_seconds(5)).await
}

/// "Retry policy durable (attempt count and next time in the journal)", exponential.
#[test]
fn attempts_and_their_times_are_in_the_journal() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", third_time_lucky)).await;
        let begun = scene.world.now();
        let run = engine.start("w", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 3);
        let journal = journal(&engine, "a").await;
        let [
            Event::StepRetryScheduled { attempt: 1, next_at: second, error, .. },
            Event::StepRetryScheduled { attempt: 2, next_at: third, .. },
            Event::StepFinished { attempts: 3, .. },
            Event::RunFinished { .. },
        ] = &journal[..]
        else {
            panic!("{journal:?}")
        };
        assert_eq!((error.code.as_str(), error.message.as_str()), ("flaky", "attempt 1"));
        assert_eq!(second.since(begun).as_millis(), 10_000);
        assert!((30_000..30_050).contains(&third.since(begun).as_millis()), "{third:?}");
        assert_eq!(scene.awaiting("a").await, []);
    });
}

/// A back-off outlasts its engine: the next attempt has the next number, at the recorded time.
#[test]
fn a_back_off_outlasts_its_engine() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", third_time_lucky)).await;
        let begun = scene.world.now();
        engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(3)).await;
        assert_eq!(kinds(&engine, "a").await, ["STEP_RETRY_SCHEDULED"]);
        engine.shutdown().await;
        let engine = scene.engine(|engine| engine.workflow("w", third_time_lucky)).await;
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 3);
        let took = scene.world.now().since(begun).as_millis();
        assert!((30_000..30_100).contains(&took), "{took}");
    });
}

/// An early wake does not bring the next attempt forward, nor count as one.
#[test]
fn a_signal_does_not_shorten_a_back_off() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", third_time_lucky)).await;
        let begun = scene.world.now();
        let run = engine.start("w", &()).id("a").await.unwrap();
        scene.pass(seconds(2)).await;
        engine.run("a").unwrap().signal("unrelated", &1, "1").await.unwrap();
        scene.pass(seconds(2)).await;
        assert_eq!(kinds(&engine, "a").await, ["STEP_RETRY_SCHEDULED"]);
        assert_eq!(run.result::<u32>().await.unwrap(), 3);
        let took = scene.world.now().since(begun).as_millis();
        assert!((30_000..30_100).contains(&took), "{took}");
    });
}

/// Runs one workflow to its failure: its error, and how often its step was attempted.
fn fails(register: impl Fn(Outlast) -> Outlast) -> (outlast_core::failure::Failure, u32) {
    Scene::play(async |scene| {
        let engine = scene.engine(&register).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let failure = match run.result::<serde_json::Value>().await {
            Err(EngineError::Failed(failure)) => failure,
            other => panic!("it fails, not {other:?}"),
        };
        let attempts = journal(&engine, "a").await.iter().find_map(|event| match event {
            Event::StepFailed { attempts, .. } => Some(*attempts),
            _ => None,
        });
        (failure, attempts.unwrap_or(0))
    })
}

#[test]
fn attempts_run_out_and_the_last_error_is_what_the_workflow_gets() {
    async fn hopeless(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let body = async |s: outlast::StepContext| Err(Error::new("flaky", format!("attempt {}", s.attempt())));
        ctx.step("flaky", body).retry(every_ten_seconds(4)).await
    }
    let (failure, attempts) = fails(|engine| engine.workflow("w", hopeless));
    assert_eq!((failure.code.as_str(), failure.message.as_str(), attempts), ("flaky", "attempt 4", 4));
}

#[test]
fn a_permanent_error_is_not_tried_again() {
    async fn declined(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("pay", async |_| Err(Error::new("declined", "no").permanent().with_data(&7))).await
    }
    let (failure, attempts) = fails(|engine| engine.workflow("w", declined));
    assert_eq!((failure.code.as_str(), attempts), ("declined", 1));
    assert_eq!(failure.data.as_deref(), Some(&b"7"[..]));
}

/// "A failed await throws, catchable."
#[test]
fn the_failure_of_a_step_can_be_caught() {
    async fn careful(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let paid: outlast::Result<()> = ctx.step("pay", async |_| Err(Error::new("declined", "no").permanent())).await;
        ctx.sleep(seconds(1)).await?;
        Ok(paid.unwrap_err().code().to_owned())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", careful)).await;
        let run = engine.start("w", &()).await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "declined", "also when it is replayed");
    });
}

/// An attempt that takes too long is dropped, and counts as a failure with the code `timeout`.
#[test]
fn an_attempt_that_takes_too_long_is_dropped_and_the_next_one_follows() {
    async fn slow(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let body = async |s: outlast::StepContext| match s.attempt() {
            1 => std::future::pending().await,
            attempt => Ok(attempt),
        };
        ctx.step("slow", body).timeout(seconds(5)).retry(every_ten_seconds(2)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", slow)).await;
        let begun = scene.world.now();
        let run = engine.start("w", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 2);
        let took = scene.world.now().since(begun).as_millis();
        assert!((15_000..15_100).contains(&took), "five seconds, and ten until the next: {took}");
        let journal = journal(&engine, "a").await;
        assert!(
            matches!(&journal[0], Event::StepRetryScheduled { error, .. } if error.code == "timeout"),
            "{journal:?}"
        );
    });
}

#[test]
fn a_time_out_of_the_last_attempt_fails_the_step() {
    async fn slow(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("slow", async |_| std::future::pending().await).timeout(seconds(5)).retry(Retry::never()).await
    }
    let (failure, attempts) = fails(|engine| engine.workflow("w", slow));
    assert_eq!((failure.code.as_str(), attempts), ("timeout", 1));
    assert!(failure.message.contains("slow"), "{failure}");
}

/// "Panics are caught around workflow and body polls."
#[test]
fn a_panic_in_a_body_is_a_failed_attempt_with_its_place() {
    async fn clumsy(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("drop", async |_| panic!("the vase")).retry(every_ten_seconds(2)).await
    }
    let (failure, attempts) = fails(|engine| engine.workflow("w", clumsy));
    assert_eq!((failure.code.as_str(), attempts), ("panic", 2));
    assert!(failure.message.contains("stories/steps.rs:"), "{failure}");
    assert!(failure.message.ends_with(": the vase"), "{failure}");
}

#[test]
fn a_panic_in_workflow_code_fails_the_run_and_no_other() {
    async fn clumsy(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(1)).await?;
        panic!("the vase")
    }
    async fn careful(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.sleep(seconds(2)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("clumsy", clumsy).workflow("careful", careful)).await;
        let neighbour = engine.start("careful", &()).await.unwrap();
        let run = engine.start("clumsy", &()).id("a").await.unwrap();
        let error = run.result::<()>().await.unwrap_err();
        assert_eq!(error.code(), "panic");
        assert!(error.to_string().contains("the vase"), "{error}");
        neighbour.result::<()>().await.unwrap();
        assert_eq!(kinds(&engine, "a").await, ["TIMER_STARTED", "TIMER_FIRED", "RUN_ERRORED"]);
    });
}

/// "Payload 2 MiB …, and a clear error." Trying again would not make it smaller.
#[test]
fn a_result_over_the_limit_fails_the_step_once_and_for_all() {
    async fn large(ctx: Ctx, (): ()) -> outlast::Result<String> {
        ctx.step("large", async |_| Ok("x".repeat(1_000))).await
    }
    let limits = Limits { payload_bytes: 1_000, ..Limits::default() };
    let (failure, attempts) = fails(|engine| engine.workflow("w", large).limits(limits.clone()));
    assert_eq!((failure.code.as_str(), attempts), ("limit_exceeded", 1));
    assert!(failure.message.contains("1002 bytes, the limit is 1000"), "{failure}");
}

#[test]
fn an_output_over_the_limit_fails_the_run() {
    async fn large(_: Ctx, (): ()) -> outlast::Result<String> {
        Ok("x".repeat(1_000))
    }
    let limits = Limits { payload_bytes: 1_000, ..Limits::default() };
    let (failure, _) = fails(|engine| engine.workflow("w", large).limits(limits.clone()));
    assert_eq!(failure.code, "limit_exceeded");
}

#[test]
fn a_result_that_is_not_json_fails_the_step_once_and_for_all() {
    async fn odd(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.step("odd", async |_| Ok(BTreeMap::from([((1, 2), 3)]))).await?;
        Ok(())
    }
    let (failure, attempts) = fails(|engine| engine.workflow("w", odd));
    assert_eq!((failure.code.as_str(), attempts), ("validation_error", 1));
}

/// "A stable idempotency key": `namespace/run/generation/key`, the same for all attempts.
#[test]
fn all_attempts_have_the_same_idempotency_key_and_no_other_step_has_it() {
    async fn keyed(ctx: Ctx, (): ()) -> outlast::Result<Vec<String>> {
        let body = async |s: outlast::StepContext| match s.attempt() {
            1 => Err(Error::new("flaky", s.idempotency_key())),
            _ => Ok(s.idempotency_key().to_owned()),
        };
        let mut keys = Vec::new();
        for _ in 0..2 {
            keys.push(ctx.step("pay", body).await?);
        }
        Ok(keys)
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", keyed)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        let keys = run.result::<Vec<String>>().await.unwrap();
        assert_eq!(keys, ["default/a/0/pay", "default/a/0/pay#2"]);
        let journal = journal(&engine, "a").await;
        assert!(
            matches!(&journal[0], Event::StepRetryScheduled { error, .. } if error.message == keys[0]),
            "{journal:?}"
        );
    });
}

/// What a body was called with: its idempotency key and attempt.
type Calls = Arc<Mutex<Vec<(String, u32)>>>;

/// The first engine's body never ends: it is in the middle when the engine dies.
fn interrupted(at_most_once: bool, calls: &Calls, life: u32, engine: Outlast) -> Outlast {
    let calls = Arc::clone(calls);
    engine.workflow("w", move |ctx: Ctx, (): ()| {
        let calls = Arc::clone(&calls);
        async move {
            let body = async |s: outlast::StepContext| {
                calls.lock().unwrap().push((s.idempotency_key().to_owned(), s.attempt()));
                if life == 1 {
                    std::future::pending::<()>().await;
                }
                Ok("done")
            };
            let step = ctx.step("pay", async |s| body(s).await.map(str::to_owned));
            if at_most_once { step.at_most_once().await } else { step.await }
        }
    })
}

/// What the run comes to, and its journal; none if its engine is dead.
async fn outcome(engine: Engine) -> Option<(String, Vec<&'static str>)> {
    let outcome = match engine.start("w", &()).id("a").await.ok()?.result::<String>().await {
        Ok(word) => word,
        Err(EngineError::Failed(failure)) => failure.code,
        Err(_) => return None,
    };
    Some((outcome, kinds(&engine, "a").await))
}

/// Semantics R17: "in-doubt steps are visible after a crash (`at_most_once` persists `STEP_STARTED`)".
#[test]
fn an_at_most_once_step_runs_at_most_once_and_is_in_doubt_after_a_crash() {
    let mut doubts = 0;
    for at in 0..30 {
        let calls = Calls::default();
        let register = |life, engine| interrupted(true, &calls, life, engine);
        let (outcome, journal) = crash_at(at, register, outcome).unwrap();
        let ran = calls.lock().unwrap().len();
        assert!(ran <= 1, "crash at call {at}: {ran} calls");
        if journal.first() == Some(&"STEP_STARTED") && outcome == "step_in_doubt" {
            assert_eq!(journal, ["STEP_STARTED", "STEP_FAILED", "RUN_ERRORED"]);
            doubts += ran;
        } else {
            assert_eq!((outcome.as_str(), ran), ("done", 1), "crash at call {at}: {journal:?}");
        }
    }
    assert!(doubts > 0, "no engine died in the middle of the body");
}

/// Promise 3: "its side effect runs at least once, with a stable idempotency key".
#[test]
fn a_step_in_the_middle_of_which_the_engine_died_runs_again_with_the_same_key() {
    let mut twice = 0;
    for at in 0..30 {
        let calls = Calls::default();
        let register = |life, engine| interrupted(false, &calls, life, engine);
        let (outcome, journal) = crash_at(at, register, outcome).unwrap();
        assert_eq!((outcome.as_str(), &journal[..]), ("done", &["STEP_FINISHED", "RUN_FINISHED"][..]));
        let calls = calls.lock().unwrap();
        assert!(calls.iter().all(|(key, attempt)| key == "default/a/0/pay" && *attempt == 1), "{calls:?}");
        twice += usize::from(calls.len() == 2);
    }
    assert!(twice > 0, "no engine died in the middle of the body");
}

/// An at-most-once attempt that is known to have failed is tried again all the same.
#[test]
fn an_at_most_once_step_that_failed_is_tried_again() {
    async fn flaky(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        let body = async |s: outlast::StepContext| match s.attempt() {
            2 => Ok(2),
            _ => Err(Error::new("flaky", "no")),
        };
        ctx.step("pay", body).at_most_once().retry(every_ten_seconds(3)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("w", flaky)).await;
        let run = engine.start("w", &()).id("a").await.unwrap();
        assert_eq!(run.result::<u32>().await.unwrap(), 2);
        let expected = ["STEP_STARTED", "STEP_RETRY_SCHEDULED", "STEP_STARTED", "STEP_FINISHED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

/// "The result of a step is durable before anything that follows it starts", and a body's value is what is recorded.
#[test]
fn a_step_that_is_recorded_is_not_run_again() {
    Scene::play(async |scene| {
        let ran = Tally::default();
        let counted = ran.clone();
        let register = |engine: Outlast| {
            engine.workflow("w", move |ctx: Ctx, (): ()| {
                let ran = counted.clone();
                async move {
                    let first = ctx.step("once", async |_| Ok(ran.add())).await?;
                    ctx.sleep(Duration::from_millis(10)).await?;
                    let second = ctx.step("again", async |_| Ok(ran.add())).await?;
                    Ok::<_, Error>((first, second))
                }
            })
        };
        let engine = scene.engine(register).await;
        let run = engine.start("w", &()).await.unwrap();
        assert_eq!(run.result::<(u32, u32)>().await.unwrap(), (1, 2));
        assert_eq!(ran.count(), 2);
    });
}

/// Run ids may have any letters: what looks like the path of another step is not one.
#[test]
fn no_run_id_can_make_one_idempotency_key_of_two() {
    async fn flat(ctx: Ctx, (): ()) -> outlast::Result<String> {
        ctx.step("c", async |s| Ok(s.idempotency_key().to_owned())).await
    }
    async fn nested(ctx: Ctx, (): ()) -> outlast::Result<String> {
        let inner = ctx.scope("b", async |scope| scope.step("c", async |s| Ok(s.idempotency_key().to_owned())).await);
        inner.await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("flat", flat).workflow("nested", nested)).await;
        let key = async |workflow: &str, id: &str| {
            engine.start(workflow, &()).id(id).await.unwrap().result::<String>().await.unwrap()
        };
        assert_eq!(key("nested", "a").await, "default/a/0/b/c");
        assert_eq!(key("flat", "a/0/b").await, "default/a%2F0%2Fb/0/c");
        assert_eq!(key("flat", "a%2F0").await, "default/a%252F0/0/c");
    });
}
