//! Races: who wins, and what is left of the others.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use std::pin::pin;

use futures_util::future::{Either, select};
use outlast::testing::{Script, journal};
use outlast::{Ctx, Jitter, Outlast, Retry, TaskContext};
use serde::{Deserialize, Serialize};

use crate::support::{Scene, seconds};

/// What can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Wait {
    Sleep,
    Signal,
    SignalOrTimeout,
    Approval,
    Callback,
    Child,
    Retry,
    Task,
}

const WAITS: [Wait; 8] = [
    Wait::Sleep,
    Wait::Signal,
    Wait::SignalOrTimeout,
    Wait::Approval,
    Wait::Callback,
    Wait::Child,
    Wait::Retry,
    Wait::Task,
];

/// Waits so long, one way or the other. Nobody has to do anything for it, except for a signal or an approval.
async fn wait(ctx: &Ctx, wait: Wait, name: &str, long: u64) -> outlast::Result<()> {
    match wait {
        Wait::Sleep => ctx.sleep(seconds(long)).await,
        Wait::Signal => ctx.wait_for::<()>(name).id(name).await,
        Wait::SignalOrTimeout => ctx.wait_for::<()>("never").id(name).timeout(seconds(long)).await.map(drop),
        Wait::Approval => ctx.approve("Now?").id(name).await.map(drop),
        Wait::Callback => {
            let hand_out = async |_, _| Ok(());
            let late = ctx.wait_for_callback::<(), _>(name, hand_out).timeout(seconds(long)).await;
            assert_eq!(late.unwrap_err().code(), "timeout");
            Ok(())
        }
        Wait::Child => ctx.child("nap", &long).id(&format!("{}-{name}", ctx.run_id())).named(name).await,
        Wait::Retry => {
            let retry = Retry::attempts(2).initial(seconds(long)).cap(seconds(long)).jitter(Jitter::None);
            let flaky = async |s: outlast::StepContext| match s.attempt() {
                1 => Err(outlast::Error::new("flaky", "no")),
                _ => Ok(()),
            };
            ctx.step(name, flaky).retry(retry).await
        }
        Wait::Task => ctx.task("nap", &long).id(name).await,
    }
}

async fn nap(ctx: Ctx, long: u64) -> outlast::Result<()> {
    ctx.sleep(seconds(long)).await
}

/// The first of two waits takes a minute, the second would take an hour.
async fn race(ctx: Ctx, (first, second): (Wait, Wait)) -> outlast::Result<String> {
    let won = {
        let soon = pin!(wait(&ctx, first, "soon", 60));
        let late = pin!(wait(&ctx, second, "late", 3_600));
        match select(late, soon).await {
            Either::Left((late, _)) => late.map(|()| "late")?,
            Either::Right((soon, _)) => soon.map(|()| "soon")?,
        }
    };
    // What lost is gone now, and does nothing to what comes later.
    ctx.sleep(seconds(7_200)).await?;
    Ok(won.to_owned())
}

/// Rows 6 and 7: an event wins, and the loser's timer is never deleted; the run stays `Running`.
#[test]
fn rows_6_and_7_the_loser_of_a_race_leaves_nothing_behind_whatever_both_wait_for() {
    for first in WAITS {
        for second in WAITS {
            Scene::play(async |scene| {
                let register = |engine: Outlast| {
                    let time = scene.world.time();
                    let task = move |_: TaskContext, long: u64| {
                        let nap = time.sleep(seconds(long));
                        async move {
                            nap.await;
                            Ok(())
                        }
                    };
                    engine.workflow("race", race).workflow("nap", nap).task("nap", task)
                };
                let engine = scene.engine(register).await;
                let run = engine.start("race", &(first, second)).id("a").await.unwrap();
                let script = match first {
                    Wait::Signal => Script::new().signal_at(seconds(60), "soon", &()),
                    Wait::Approval => Script::new().approve_at(seconds(60), "soon", true),
                    _ => Script::new(),
                };
                script.play(&run).await.unwrap();
                scene.pass(seconds(120)).await;
                let awaited = scene.awaiting("a").await;
                assert_eq!(engine.tasks().await.unwrap().tasks, [], "{first:?} and {second:?}: no task is left");
                assert_eq!(awaited.len(), 1, "{first:?} and {second:?}: only the sleep is left of {awaited:?}");
                assert_eq!(run.result::<String>().await.unwrap(), "soon", "{first:?} and {second:?}");
                assert_eq!(scene.awaiting("a").await, [], "{first:?} and {second:?}: after the end nothing is left");
                journal(&engine.run("a").unwrap()).await.unwrap().shows_among_others(&["RUN_FINISHED \"soon\""]);
            });
        }
    }
}
