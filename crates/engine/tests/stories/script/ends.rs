//! What becomes of what a script leaves open when it ends.
#![expect(clippy::unwrap_used, reason = "a story ends at the first error")]

use outlast::{Status, TaskContext};
use outlast_core::id::Namespace;
use outlast_store::TaskFilter;
use serde_json::{Value, json};

use super::{result, tell};
use crate::support::{Scene, Tally, seconds, status};

/// The tasks that are in the store.
async fn tasks(scene: &Scene) -> Vec<String> {
    let page = scene.store.tasks(TaskFilter::all(Namespace::default_namespace())).await.unwrap();
    let mut tasks: Vec<String> = page.tasks.into_iter().map(|task| task.name.to_string()).collect();
    tasks.sort();
    tasks
}

/// "Not awaited = still runs." And what was awaited and lost a race does not.
#[test]
fn what_was_never_awaited_goes_on_after_the_end() {
    for end in ["return 1", "throw new Error(\"no\")", "Workflow.continueAsNew({ again: true }); return 2"] {
        let text = format!(
            r#"
            if (Inputs?.again) return 3
            Task.run("never_awaited", 1)
            const loser = Task.run("loser", 2)
            const timer = Task.delay("1 day")
            const wait = Signal.next("s")
            await Task.race([loser, Task.delay(1)])
            Task.run("at_the_end", 3)
            {end}"#
        );
        tell(&text, async |scene, engine| {
            let ended = result(&engine, "story", &json!(null)).await;
            assert_eq!(ended.is_err(), end.contains("throw"));
            scene.pass(seconds(10)).await;
            assert_eq!(tasks(scene).await, ["at_the_end", "never_awaited"], "{end}");
            assert!(scene.awaiting("a").await.is_empty(), "timers and waits end with the run");
        });
    }
}

#[test]
fn a_task_that_is_never_awaited_is_done_by_a_worker_later() {
    let text = "Task.run(\"late\", 7, { delay: 60 })\nreturn 1";
    Scene::play_scripts(async |scene| {
        let done = Tally::default();
        let counted = done.clone();
        let late = move |_: TaskContext, n: u32| {
            let counted = counted.clone();
            async move {
                assert_eq!(n, 7);
                Ok(counted.add())
            }
        };
        let engine = scene.engine(|engine| engine.task("late", late).script("story.wf", text)).await;
        result(&engine, "story", &json!(null)).await.unwrap();
        assert_eq!(done.count(), 0);
        scene.pass(seconds(120)).await;
        assert_eq!(done.count(), 1);
    });
}

#[test]
fn children_that_were_never_awaited_go_on_and_losers_are_cancelled() {
    let text = r#"
        workflow nap(n) { await Task.delay(n); return n }
        workflow story() {
            Workflow.run("nap", 100, { id: "left" })
            const loser = Workflow.run("nap", 100, { id: "loser" })
            const kept = Workflow.run("nap", 100, { id: "kept", onClose: "abandon" })
            Workflow.run("nap", 100, { id: "ended", onClose: "terminate" })
            await Task.race([loser, kept, Task.delay(1)])
            return 1
        }
    "#;
    tell(text, async |scene, engine| {
        result(&engine, "story", &json!(null)).await.unwrap();
        scene.pass(seconds(200)).await;
        let ends = [
            ("left", Status::Completed),
            ("loser", Status::Cancelled),
            ("kept", Status::Completed),
            ("ended", Status::Cancelled),
        ];
        for (run, expected) in ends {
            assert_eq!(status(&engine, run).await, expected, "{run}");
        }
    });
}

/// What was detached is the run's no more, also when the run is cancelled.
#[test]
fn what_was_detached_survives_a_cancellation_and_what_is_open_does_not() {
    let text = r#"
        await Task.start("detached", 1)
        Task.run("open", 2)
        await Signal.next("never")
    "#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        assert!(run.result::<Value>().await.is_err());
        assert_eq!(tasks(scene).await, ["detached"]);
    });
}

/// No combination takes the cancellation of its run for an outcome, and goes on.
#[test]
fn a_run_that_is_cancelled_while_it_waits_for_several_things_does_not_go_on() {
    for combinator in ["Task.all", "Task.any", "Task.race", "Task.allSettled", "Promise.any", "Promise.allSettled"] {
        let text = format!(
            r#"
            await {combinator}([Signal.next("x"), Task.delay("1d")])
            await Task.run("charge", 1)"#
        );
        tell(&text, async |scene, engine| {
            let run = engine.start("story", &()).id("a").await.unwrap();
            scene.pass(seconds(1)).await;
            engine.run("a").unwrap().cancel("enough").await.unwrap();
            assert!(run.result::<Value>().await.is_err());
            assert_eq!(status(&engine, "a").await, Status::Cancelled, "{combinator}");
            assert_eq!(tasks(scene).await, [""; 0], "{combinator}");
            assert!(scene.awaiting("a").await.is_empty());
        });
    }
}

/// The loser of a race is taken back at once: a signal that comes later is for the next race.
#[test]
fn a_loop_of_races_leaves_no_timers_and_no_waits_behind() {
    let text = r#"
        const seen = []
        while (seen.length < 6) {
            const won = await Task.race({ signal: Signal.next("x"), time: Task.delay(60) })
            seen.push(won.result ?? won.item_id)
        }
        return seen
    "#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        for n in 0..3 {
            // The timer wins one race, and the signal the next one.
            scene.pass(seconds(90)).await;
            assert_eq!(scene.awaiting("a").await.len(), 2, "the wait and the timer of this race");
            engine.run("a").unwrap().signal("x", &n, &n.to_string()).await.unwrap();
        }
        let expected = json!(["time", 0, "time", 1, "time", 2]);
        assert_eq!(run.result::<Value>().await.unwrap(), expected);
    });
}
