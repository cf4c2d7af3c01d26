//! What the language promises and only an engine can keep.

use outlast::{Ctx, Event, Status};
use serde_json::{Value, json};

use super::{fails, result, returns, tasks, tell};
use crate::support::{Scene, kinds, seconds, status};

/// "Calls start work, await suspends": two tasks run at once, and awaiting a plain value gives it.
#[test]
fn a_call_starts_work_and_await_waits_anywhere() {
    let text = r#"
        const first = Task.run("echo", 1)
        const second = Task.run("echo", 2)
        function twice(p) { return 2 * await p }
        if (await first < await second && await true) {
            const list = [await first, ...[await second], await twice(second), await 7]
            for (let i = await Task.run("echo", 0); i < await Task.run("echo", 2); i++) list.push(`${await Task.run("echo", i)}`)
            return list
        }
    "#;
    assert_eq!(returns(text), json!([1, 2, 4, 7, "0", "1"]));
}

#[test]
fn what_is_started_together_is_recorded_together() {
    let text = r#"
        const first = Task.run("echo", 1)
        const second = Task.delay(5)
        return [await second, await first]
    "#;
    tell(text, async |_, engine| {
        result(&engine, "story", &json!(null)).await.unwrap();
        let expected = ["TASK_SCHEDULED", "TIMER_STARTED", "TASK_FINISHED", "TIMER_FIRED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

/// "A failed await throws; uncaught it fails the run": with its code, its data and its place.
#[test]
fn an_error_that_nobody_catches_fails_the_run_with_its_place() {
    let failure = fails("const x = 1\nawait Task.run(\"fail\", { n: x })");
    let place = "    at (file) (story.wf:2:1)\n    | await Task.run(\"fail\", { n: x })";
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("broken", "it broke"));
    assert_eq!(failure.trace.as_deref(), Some(place));
    assert_eq!(failure.data.as_deref(), Some(&b"{\"n\":1}"[..]));
}

/// Who catches what a child failed with reads what the child said, and not where; both runs show where they failed.
#[test]
fn a_child_that_fails_says_the_same_in_every_generation() {
    let text = r#"
        workflow stock() { throw new Error("no stock", { code: "stock" }) }
        workflow order() { await Workflow.run("stock", null, { id: "s" }) }
        workflow story() {
            try { await Workflow.run("order", null, { id: "o" }) } catch (error) { return error.message }
        }
    "#;
    tell(text, async |_, engine| {
        assert_eq!(result(&engine, "story", &json!(null)).await.unwrap(), json!("no stock"));
        for (run, line) in [("s", 2), ("o", 3)] {
            let Err(outlast::EngineError::Failed(failure)) = engine.run(run).unwrap().result::<Value>().await else {
                panic!("{run} did not fail")
            };
            assert_eq!((failure.code.as_str(), failure.message.as_str()), ("stock", "no stock"));
            let trace = failure.trace.unwrap();
            assert!(trace.contains(&format!("(story.wf:{line}:")) && trace.lines().count() <= 3, "{trace}");
        }
    });
}

#[test]
fn a_deadline_that_passes_throws_timeout() {
    let text = r#"
        const found = []
        for (const wait of [Signal.next("s", { timeout: 1 }), Approval.request({ title: "?", timeout: 2 }),
                            Callback.create({ timeout: 3 })]) {
            try { await wait } catch (error) { found.push(error.code) }
        }
        return found
    "#;
    assert_eq!(returns(text), json!(["timeout", "timeout", "timeout"]));
}

#[test]
fn approvals_and_callbacks_give_what_was_answered() {
    let text = r#"
        const decision = await Approval.request({ title: "Ship it?", assignee: "ann", id: "ship" })
        const callback = Callback.create({ id: "paid" })
        await Task.run("echo", callback.token)
        return { decision, paid: await callback }
    "#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let handle = engine.run("a").unwrap();
        handle.approve("ship", true).by("ann").id("d").await.unwrap();
        scene.pass(seconds(1)).await;
        let journal = handle.journal().await.unwrap();
        let token = journal.iter().find_map(|event| match event {
            Event::TaskFinished { result, .. } => serde_json::from_slice::<String>(result).ok(),
            _ => None,
        });
        handle.resolve_callback("paid", &token.unwrap(), &json!({ "sum": 5 })).await.unwrap();
        let expected = json!({
            "decision": { "approved": true, "by": "ann", "feedback": null, "approval": "ship" }, "paid": { "sum": 5 }
        });
        assert_eq!(run.result::<Value>().await.unwrap(), expected);
    });
}

/// "cancellation runs `finally` blocks", which may start and await new work.
#[test]
fn a_cancelled_script_runs_its_finally_blocks() {
    let text = r#"
        const left = Task.run("nobody", 1)
        try { await Task.delay("1 day") }
        finally {
            await Task.run("echo", "undo")
            await Task.delay(5)
        }
    "#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        assert!(run.result::<Value>().await.is_err());
        assert_eq!(status(&engine, "a").await, Status::Cancelled);
        let expected = [
            "TASK_SCHEDULED",
            "TIMER_STARTED",
            "CANCEL_REQUESTED",
            "OPERATION_CANCELLED",
            "OPERATION_CANCELLED",
            "TASK_SCHEDULED",
            "TASK_FINISHED",
            "TIMER_STARTED",
            "TIMER_FIRED",
            "RUN_CANCELLED",
        ];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}

#[test]
fn a_script_that_catches_its_cancellation_goes_on() {
    let text = r#"
        let code
        try { await Signal.next("never") } catch (error) { code = error.code }
        return code
    "#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        engine.run("a").unwrap().cancel("enough").await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "cancelled");
    });
}

#[test]
fn a_script_continues_as_new_with_its_mailbox() {
    let text = r#"
        workflow story(taken) {
            taken.push(await Signal.next("n"))
            if (taken.length < 3) {
                Workflow.continueAsNew(taken)
                await Task.delay(1)
                return
            }
            return taken
        }
    "#;
    tell(text, async |_, engine| {
        let run = engine.start("story", &json!([])).id("a").await.unwrap();
        for n in 1..=3 {
            engine.run("a").unwrap().signal("n", &n, &n.to_string()).await.unwrap();
        }
        assert_eq!(run.result::<Value>().await.unwrap(), json!([1, 2, 3]));
        assert_eq!(engine.run("a").unwrap().view().await.unwrap().generation.0, 2);
    });
}

/// "Any style can start any other as a child", and what fails in the child is thrown in the parent.
#[test]
fn scripts_start_code_and_code_starts_scripts() {
    async fn parent(ctx: Ctx, n: u32) -> outlast::Result<(u32, String)> {
        let doubled = ctx.child::<u32>("double", &n).await?;
        let failed = ctx.child::<u32>("double", &"not a number").await.unwrap_err();
        Ok((doubled, failed.code().to_owned()))
    }
    async fn square(ctx: Ctx, n: u32) -> outlast::Result<u32> {
        ctx.sleep(seconds(1)).await?;
        if n > 9 { Err(outlast::Error::new("too_large", "no")) } else { Ok(n * n) }
    }
    let text = r#"
        workflow double(n) {
            if (typeof n != "number") throw new Error("no number", { code: "odd" })
            return 2 * n
        }
        workflow squares(list) {
            const found = []
            for (const n of list) {
                try { found.push(await Workflow.run("square", n)) } catch (error) { found.push(error.code) }
            }
            const id = await Workflow.start("double", 5, { id: "alone" })
            return [...found, id]
        }
    "#;
    Scene::play_scripts(async |scene| {
        let engine = scene
            .engine(|engine| {
                tasks(engine).workflow("parent", parent).workflow("square", square).script("story.wf", text)
            })
            .await;
        let parent = engine.start("parent", &21).id("p").await.unwrap();
        assert_eq!(parent.result::<(u32, String)>().await.unwrap(), (42, "odd".to_owned()));
        assert_eq!(result(&engine, "squares", &json!([2, 12])).await.unwrap(), json!([4, "too_large", "alone"]));
        assert_eq!(engine.run("alone").unwrap().result::<u32>().await.unwrap(), 10);
    });
}

#[test]
fn the_clock_and_chance_are_recorded() {
    let text = r#"
        const before = [Time.now(), Id.uuid(), Math.random()]
        await Task.delay(60)
        const passed = Time.now() - before[0]
        await Task.delay(60)
        return { passed, uuid: before[1].length, random: before[2] >= 0 && before[2] < 1 }
    "#;
    assert_eq!(returns(text), json!({ "passed": 60_000, "uuid": 36, "random": true }));
}

/// "`log(...)` (an emitted event, not repeated on replay)", also while something else is waited for.
#[test]
fn what_a_script_logs_is_told_once() {
    let text = r#"
        log("begins")
        const slow = Task.delay(60)
        await Task.delay(1)
        log("one", { two: 2 })
        State.set({ half: true })
        await Signal.next("go")
        log("three")
        await slow
        log("four")
    "#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        let attached = engine.run("a").unwrap().attach();
        let watch = async {
            let mut attached = attached;
            let mut told = Vec::new();
            while let Some(event) = attached.next().await.unwrap() {
                match event {
                    Event::Custom { name, payload } => {
                        told.push(format!("{name} {}", String::from_utf8_lossy(&payload)))
                    }
                    Event::StateDelta { delta } => told.push(String::from_utf8_lossy(&delta).into_owned()),
                    _ => {}
                }
            }
            told
        };
        let client = async {
            scene.pass(seconds(10)).await;
            engine.run("a").unwrap().signal("go", &1, "s").await.unwrap();
            run.result::<Value>().await.unwrap();
        };
        let (told, ()) = futures_util::future::join(watch, client).await;
        let expected = ["log [\"one\",{\"two\":2}]", "{\"half\":true}", "log [\"three\"]", "log [\"four\"]"];
        // What it said first was said before anybody listened, or not.
        let told: Vec<&str> = told.iter().map(String::as_str).filter(|line| !line.contains("begins")).collect();
        assert_eq!(told, expected);
    });
}

#[test]
fn a_paused_script_starts_nothing_until_it_is_resumed() {
    let text = r#"
        await Task.delay(10)
        return await Task.run("echo", "done")
    "#;
    tell(text, async |scene, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        let handle = engine.run("a").unwrap();
        handle.pause("lunch").await.unwrap();
        scene.pass(seconds(60)).await;
        assert_eq!(status(&engine, "a").await, Status::Paused);
        assert_eq!(kinds(&engine, "a").await, ["TIMER_STARTED", "RUN_PAUSED"]);
        handle.resume().await.unwrap();
        assert_eq!(run.result::<String>().await.unwrap(), "done");
    });
}

#[test]
fn a_script_that_can_never_go_on_fails_and_says_so() {
    let failure = fails("const p = Promise.race([])\nawait p");
    assert_eq!(failure.code, "stuck");
}

/// A fork runs the same text from the middle.
#[test]
fn a_script_can_be_forked_and_checked() {
    let text = r#"
        const first = await Task.run("echo", Inputs.n)
        const second = await Task.run("echo", first + 1)
        return [first, second]
    "#;
    tell(text, async |_, engine| {
        assert_eq!(result(&engine, "story", &json!({ "n": 1 })).await.unwrap(), json!([1, 2]));
        let fork = engine.run("a").unwrap().fork(2).id("b").await.unwrap();
        assert_eq!(fork.run.result::<Value>().await.unwrap(), json!([1, 2]));
        let recording = engine.run("a").unwrap().export().await.unwrap();
        assert_eq!(recording.version().as_str().len(), 64, "its version is the hash of its text");
    });
}
