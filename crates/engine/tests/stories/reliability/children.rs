//! Closing a parent closes the run its operation started, wherever that has got to, and nobody else.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::{ClosePolicy, Ctx, Engine, Outlast, Status};
use outlast_core::limits::TOMBSTONE_DAYS;
use outlast_store::Retention;

use crate::support::{Scene, kinds, seconds, status};

/// Sleeps in many generations; cleans up if it is asked to stop.
async fn rolls(ctx: Ctx, generation: u32) -> outlast::Result<()> {
    if let Err(error) = ctx.sleep(seconds(10)).await {
        ctx.step("clean up", async |_| Ok(())).await?;
        return Err(error);
    }
    if generation == 20 { Ok(()) } else { ctx.continue_as_new(&(generation + 1)) }
}

/// How a parent comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Returns,
    Fails,
    IsCancelled,
    IsTerminated,
}

const ENDS: [End; 4] = [End::Returns, End::Fails, End::IsCancelled, End::IsTerminated];
const POLICIES: [ClosePolicy; 3] = [ClosePolicy::Cancel, ClosePolicy::Terminate, ClosePolicy::Abandon];

/// A parent that starts a child and ends after a while, or waits to be ended.
fn parent(engine: Outlast, policy: ClosePolicy, end: End, after: u64) -> Outlast {
    engine.workflow("parent", move |ctx: Ctx, workflow: String| async move {
        let _child = ctx.child::<()>(&workflow, &0).id("c").on_close(policy).start();
        match end {
            End::Returns => ctx.sleep(seconds(after)).await,
            End::Fails => {
                ctx.sleep(seconds(after)).await?;
                Err(outlast::Error::new("mine", "no").permanent())
            }
            End::IsCancelled | End::IsTerminated => ctx.wait_for("never").await,
        }
    })
}

/// Row 38: the close policy misses a child that has continued as new. Around the instants at which it does.
#[test]
fn row_38_a_child_that_continued_as_new_is_closed_as_was_said() {
    for (policy, end, after) in POLICIES
        .iter()
        .flat_map(|policy| ENDS.iter().flat_map(move |end| [29, 30, 31, 35].map(|after| (*policy, *end, after))))
    {
        Scene::play(async |scene| {
            let engine = scene.engine(|engine| parent(engine.workflow("rolls", rolls), policy, end, after)).await;
            let run = engine.start("parent", "rolls").id("a").await.unwrap();
            match end {
                End::Returns | End::Fails => {}
                End::IsCancelled => {
                    scene.pass(seconds(after)).await;
                    run.cancel("enough").await.unwrap();
                }
                End::IsTerminated => {
                    scene.pass(seconds(after)).await;
                    run.terminate("enough").await.unwrap();
                }
            }
            let _ = run.result::<()>().await;
            scene.pass(seconds(1)).await;
            let told = format!("{policy:?} {end:?} {after}");
            // A request to stop reaches whatever the run has started, whatever was said about its end.
            let policy = if end == End::IsCancelled { ClosePolicy::Cancel } else { policy };
            child_is_closed(&engine, policy, &told).await;
        });
    }
}

async fn child_is_closed(engine: &Engine, policy: ClosePolicy, told: &str) {
    let child = engine.run("c").unwrap();
    assert!(child.view().await.unwrap().generation.0 >= 2, "{told}: it has continued as new");
    let kinds = kinds(engine, "c").await;
    match policy {
        ClosePolicy::Cancel => {
            assert_eq!(status(engine, "c").await, Status::Cancelled, "{told}");
            assert!(kinds.contains(&"STEP_FINISHED"), "{told}: its cleanup ran");
        }
        ClosePolicy::Terminate => {
            assert_eq!(status(engine, "c").await, Status::Cancelled, "{told}");
            assert_eq!(kinds.last(), Some(&"RUN_TERMINATED"), "{told}: it was not asked");
        }
        ClosePolicy::Abandon => {
            assert_eq!(status(engine, "c").await, Status::Waiting, "{told}");
            child.result::<()>().await.unwrap();
        }
    }
}

/// Row 38: the close policy ends a run that was never its child. The child has ended and is deleted, its tombstone is gone, and
/// its id belongs to somebody else; the parent, which was paused, has not heard of any of that.
#[test]
fn row_38_a_stranger_that_has_the_id_of_a_child_that_is_gone_is_left_alone() {
    async fn short(_: Ctx, _: u32) -> outlast::Result<()> {
        Ok(())
    }
    async fn stranger(ctx: Ctx, (): ()) -> outlast::Result<u32> {
        ctx.wait_for("word").await
    }
    for (policy, end) in POLICIES.iter().flat_map(|policy| ENDS.iter().map(move |end| (*policy, *end))) {
        Scene::play(async |scene| {
            let register = |engine: Outlast| {
                parent(engine.workflow("short", short), policy, end, 60).workflow("stranger", stranger)
            };
            // Others drive the child: its parent is paused before it can hear of its end.
            let engine = scene.engine(|engine| register(engine).without_loops()).await;
            let run = engine.start("parent", "short").id("a").await.unwrap();
            engine.drive_once("a").await.unwrap();
            run.pause("lunch").await.unwrap();
            assert_eq!(engine.drive_once("a").await.unwrap().status, Status::Paused);
            assert_eq!(engine.drive_once("c").await.unwrap().status, Status::Completed);
            engine.run("c").unwrap().delete("no longer needed").await.unwrap();
            scene.pass(seconds((TOMBSTONE_DAYS + 1) * 86_400)).await;
            while scene.store.retain(Retention { age: seconds(u64::MAX / 2_000), limit: 100 }).await.unwrap().more {}
            engine.start("stranger", &()).id("c").await.expect("the id is free");
            engine.drive_once("c").await.unwrap();

            match end {
                End::Returns | End::Fails => drop(run.resume().await.unwrap()),
                End::IsCancelled => drop(run.cancel("enough").await.unwrap()),
                End::IsTerminated => run.terminate("enough").await.unwrap(),
            }
            assert!(engine.drive_once("a").await.unwrap().status.is_terminal(), "{policy:?} {end:?}");
            assert_eq!(engine.drive_once("c").await.unwrap().status, Status::Waiting, "{policy:?} {end:?}");
            assert_eq!(kinds(&engine, "c").await, ["SIGNAL_AWAITED"], "{policy:?} {end:?}");
        });
    }
}
