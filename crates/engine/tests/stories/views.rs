//! What clients see of runs: lists, and the views of Semantics P2 to P5 and Semantics R5, derived from the journal.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::{Awaited, Ctx, Engine, Pauses, PendingApproval, PendingWait, Status, Timestamp};
use outlast_core::commit::TimerKind;
use outlast_core::id::Key;

use crate::support::{Scene, Tally, seconds, status};

async fn pauses(engine: &Engine) -> Pauses {
    engine.run("a").unwrap().pauses().await.unwrap()
}

/// A row of the table: reached, completed, pending.
fn row(reached: u32, completed_pause_index: u32, pending_resume_at: Option<Timestamp>) -> Pauses {
    Pauses { reached, completed_pause_index, pending_resume_at, ..Pauses::default() }
}

/// Semantics P5: `sleep 5s; step; sleep 10s`, row for row.
#[test]
fn the_table_of_two_sleeps_is_what_a_client_sees() {
    for hot_runs in [1_000, 0] {
        Scene::play(async |scene| {
            let ran = Tally::default();
            let counted = ran.clone();
            let naps = move |ctx: Ctx, (): ()| {
                let ran = counted.clone();
                async move {
                    ctx.sleep(seconds(5)).await?;
                    ctx.step("between", async |_| Ok(ran.add())).await?;
                    ctx.sleep(seconds(10)).await
                }
            };
            // Nobody here knows the workflow: the run has not begun.
            let asker = scene.engine(|engine| engine).await;
            asker.start("naps", &()).version("1").id("a").await.unwrap();
            assert_eq!(pauses(&asker).await, row(0, 0, None), "start");
            assert_eq!(status(&asker, "a").await, Status::Queued);

            let engine = scene.engine(|engine| engine.workflow("naps", naps).hot_runs(hot_runs)).await;
            scene.pass(seconds(1)).await;
            let t1 = pauses(&engine).await.pending_resume_at.unwrap();
            assert_eq!(pauses(&engine).await, row(1, 0, Some(t1)), "sleep 1 pauses");
            assert_eq!(status(&engine, "a").await, Status::Waiting);
            assert_eq!(ran.count(), 0);

            scene.pass(seconds(5)).await;
            let t2 = pauses(&engine).await.pending_resume_at.unwrap();
            assert_eq!(pauses(&engine).await, row(2, 1, Some(t2)), "at T1: resume, the step runs, sleep 2 pauses");
            assert!(t2.since(t1) >= seconds(10));
            assert_eq!(status(&engine, "a").await, Status::Waiting);
            assert_eq!(ran.count(), 1);

            engine.run("a").unwrap().result::<()>().await.unwrap();
            assert_eq!(pauses(&engine).await, row(2, 2, None), "at T2: skip 1, resume 2, the run completes");
            assert!(scene.world.now() >= t2);
            assert_eq!(status(&engine, "a").await, Status::Completed);
            assert_eq!(ran.count(), 1, "the step came from the journal");
        });
    }
}

/// Semantics P3 and P7, and its corrections: waits share the count, several may be pending, `null` is a payload.
#[test]
fn waits_share_the_count_and_a_gap_stops_it() {
    async fn mixed(ctx: Ctx, (): ()) -> outlast::Result<()> {
        let long = ctx.sleep(seconds(100)).start();
        ctx.sleep(seconds(1)).await?;
        ctx.wait_for::<Option<u32>>("word").timeout(seconds(50)).await?;
        long.await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("mixed", mixed)).await;
        engine.start("mixed", &()).id("a").await.unwrap();
        let begun = scene.world.now();
        scene.pass(seconds(10)).await;
        let waiting = pauses(&engine).await;
        let timeout_at = waiting.pending_wait.as_ref().unwrap().timeout_at;
        assert!(timeout_at.is_some_and(|at| at.since(begun) >= seconds(51)));
        let wait = PendingWait {
            key: Key::new("__wait-word-0").unwrap(),
            event: "word".to_owned(),
            timeout_at,
            payload: None,
        };
        let expected = Pauses { pending_wait: Some(wait.clone()), ..row(3, 0, Some(begun + seconds(100))) };
        assert_eq!(waiting, expected, "the second is complete, the first is not");
        assert_eq!(waiting.waiting_for(), Some("word"));

        engine.run("a").unwrap().pause("so that it is not read").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().signal("word", &(), "s").await.unwrap();
        let there = PendingWait { payload: Some("null".into()), ..wait };
        assert_eq!(pauses(&engine).await, Pauses { pending_wait: Some(there), ..expected });

        engine.run("a").unwrap().resume().await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(pauses(&engine).await, row(3, 0, Some(begun + seconds(100))));
        engine.run("a").unwrap().result::<()>().await.unwrap();
        assert_eq!(pauses(&engine).await, row(3, 3, None));
    });
}

#[test]
fn a_sleep_that_lost_a_race_holds_nothing_up() {
    async fn race(ctx: Ctx, (): ()) -> outlast::Result<()> {
        ctx.race((ctx.sleep(seconds(100)), ctx.sleep(seconds(1)))).await?;
        ctx.sleep(seconds(50)).await
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("race", race)).await;
        engine.start("race", &()).id("a").await.unwrap();
        scene.pass(seconds(10)).await;
        let after = pauses(&engine).await;
        assert_eq!((after.reached, after.completed_pause_index), (3, 2));
        engine.run("a").unwrap().terminate("enough").await.unwrap();
        assert_eq!(pauses(&engine).await, row(3, 2, None), "what never became complete is not called so");
    });
}

/// Semantics R5: `awaiting[]` filled, and the projections.
#[test]
fn a_waiting_run_shows_what_it_awaits() {
    async fn ask(ctx: Ctx, (): ()) -> outlast::Result<bool> {
        Ok(ctx.approve("Ship it?").id("ship").assignee("ops").timeout(seconds(60)).await?.is_some())
    }
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("ask", ask)).await;
        engine.start("ask", &()).id("a").await.unwrap();
        let begun = scene.world.now();
        scene.pass(seconds(1)).await;
        let due = begun + seconds(60);
        let approval = PendingApproval {
            approval: "ship".to_owned(),
            title: "Ship it?".to_owned(),
            assignee: Some("ops".to_owned()),
            timeout_at: Some(due),
        };
        assert_eq!(pauses(&engine).await, Pauses { pending_approval: Some(approval), ..Pauses::default() });
        let awaiting = engine.run("a").unwrap().awaiting().await.unwrap();
        let [timer, Awaited::Wait { key, assignee, answered: false, .. }] = awaiting.as_slice() else {
            panic!("{awaiting:?}")
        };
        assert_eq!((key.as_str(), assignee.as_deref()), ("ship", Some("ops")));
        assert_eq!(*timer, Awaited::Timer { key: key.clone(), kind: TimerKind::Timeout, due });
        engine.run("a").unwrap().approve("ship", true).await.unwrap();
        engine.run("a").unwrap().result::<bool>().await.unwrap();
        assert_eq!(pauses(&engine).await, Pauses::default(), "an approval is no pause point");
        assert_eq!(engine.run("a").unwrap().awaiting().await.unwrap(), []);
    });
}

async fn nap(ctx: Ctx, seconds: u64) -> outlast::Result<()> {
    ctx.sleep(std::time::Duration::from_secs(seconds)).await
}

async fn parent(ctx: Ctx, (): ()) -> outlast::Result<()> {
    ctx.child("nap", &1_000).id("nap-child").await
}

async fn ids(list: outlast::List<'_>) -> Vec<String> {
    list.await.unwrap().runs.iter().map(|view| view.run.id.to_string()).collect()
}

#[test]
fn runs_are_found_by_everything_that_can_be_said_of_them() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("nap", nap).workflow("parent", parent)).await;
        let first = scene.world.now();
        engine.start("nap", &1).id("nap-1").attribute("bed", "left").await.unwrap().result::<()>().await.unwrap();
        scene.pass(seconds(10)).await;
        let second = scene.world.now();
        engine.start("nap", &1_000).id("nap-2").attribute("bed", "right").await.unwrap();
        engine.start("parent", &()).id("family").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.start("later", &()).id("nobody").version("7").await.unwrap();
        scene.pass(seconds(10)).await;

        assert_eq!(ids(engine.list()).await, ["nobody", "nap-child", "family", "nap-2", "nap-1"], "the newest first");
        assert_eq!(ids(engine.list().workflow("nap")).await, ["nap-child", "nap-2", "nap-1"]);
        assert_eq!(ids(engine.list().version("7")).await, ["nobody"]);
        assert_eq!(ids(engine.list().status(Status::Queued)).await, ["nobody"]);
        assert_eq!(ids(engine.list().status(Status::Queued).status(Status::Completed)).await, ["nobody", "nap-1"]);
        assert_eq!(ids(engine.list().id_prefix("nap-")).await, ["nap-child", "nap-2", "nap-1"]);
        assert_eq!(ids(engine.list().created_from(first).created_until(second)).await, ["nap-1"]);
        assert_eq!(ids(engine.list().parent("family")).await, ["nap-child"]);
        assert_eq!(ids(engine.list().attribute("bed", "right")).await, ["nap-2"]);
        assert_eq!(ids(engine.list().workflow("nap").status(Status::Waiting).id_prefix("nap-2")).await, ["nap-2"]);
        assert_eq!(engine.list().workflow("").await.unwrap_err().code(), "validation_error");
    });
}

#[test]
fn a_list_is_read_page_by_page() {
    Scene::play(async |scene| {
        let engine = scene.engine(|engine| engine.workflow("nap", nap)).await;
        for n in 0..5 {
            engine.start("nap", &1_000).id(&format!("n-{n}")).await.unwrap();
        }
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = engine.list().page_size(2).after(cursor).await.unwrap();
            assert!(page.runs.len() <= 2);
            seen.extend(page.runs.iter().map(|view| view.run.id.to_string()));
            // Runs that come meanwhile do not move the page.
            engine.start("nap", &1_000).await.unwrap();
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["n-4", "n-3", "n-2", "n-1", "n-0"]);
    });
}
