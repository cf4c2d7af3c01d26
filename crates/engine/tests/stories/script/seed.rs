//! The examples and rules of seed 002.

use outlast::{Status, TaskContext};
use serde_json::{Value, json};

use super::{result, returns, tell};
use crate::support::{Scene, kinds, seconds, status};

/// The file of examples, with the tasks it names.
async fn seed(scene: &Scene) -> outlast::Engine {
    async fn echo(_: TaskContext, args: Value) -> outlast::Result<Value> {
        Ok(args)
    }
    let text = include_str!("../../../../../examples/scripts/seed.wf");
    scene
        .engine(|mut engine| {
            for name in ["process_data", "task1", "task2", "task3", "api1", "api2", "api3", "operation"] {
                engine = engine.task(name, echo);
            }
            engine.script("seed.wf", text)
        })
        .await
}

#[test]
fn the_examples_of_the_seed_run() {
    let input = json!({ "n": 1 });
    Scene::play_scripts(async |scene| {
        let engine = seed(scene).await;
        for (workflow, expected) in
            [("example", json!(input)), ("all", json!([input, input, input])), ("fastest", json!(input))]
        {
            let run = engine.start(workflow, &input).id(workflow).await.unwrap();
            assert_eq!(run.result::<Value>().await.unwrap(), expected, "{workflow}");
        }
        let run = engine.start("timeout", &input).id("timeout").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), input);
        let waits = engine.start("approval", &input).id("approval").await.unwrap();
        engine.run("approval").unwrap().signal("approval", &"yes", "s").await.unwrap();
        assert_eq!(waits.result::<String>().await.unwrap(), "yes");
    });
}

/// "the first recorded failure throws even if an earlier item is pending"
#[test]
fn all_throws_the_first_recorded_failure() {
    let text = r#"
        const slow = Task.delay(60)
        try { await Task.all([slow, Task.run("echo", 1), Task.run("fail", { n: 2 })]) }
        catch (error) { return { code: error.code, message: error.message, data: error.data } }
    "#;
    assert_eq!(returns(text), json!({ "code": "broken", "message": "it broke", "data": { "n": 2 } }));
}

#[test]
fn any_gives_the_first_success_and_race_the_first_end() {
    let text = r#"
        const late = Task.run("echo", "late", { delay: 5 })
        const any = await Task.any([Task.run("fail", 1), late])
        const race = await Task.race([Task.run("fail", 1), Task.delay(60)])
        let none
        try { await Task.any([Task.run("fail", 1), Task.run("fail", 2)]) } catch (error) { none = error.code }
        return { any: any.result, mine: any.item_id == late.id, race: race.status, code: race.error.code, none }
    "#;
    let expected = json!({
        "any": "late", "mine": true, "race": "failed", "code": "broken", "none": "aggregate_error"
    });
    assert_eq!(returns(text), expected);
}

/// "Tasks, timers, signals and children mix freely in all of them; combinators nest."
#[test]
fn tasks_timers_signals_and_children_mix() {
    let text = r#"
        workflow double(n) { await Task.delay(1); return n * 2 }
        workflow story() {
            const { task, timer, signal, child, nested } = await Promise.all({
                task: Task.run("echo", 1), timer: Task.delay(3), signal: Signal.next("go"),
                child: Workflow.run("double", 21),
                nested: Promise.race([Task.delay(100), Promise.all([Task.delay(2), 5])]),
            })
            return [task, timer, signal, child, nested]
        }
    "#;
    tell(text, async |_, engine| {
        let run = engine.start("story", &()).id("a").await.unwrap();
        engine.run("a").unwrap().signal("go", &"went", "s").await.unwrap();
        assert_eq!(run.result::<Value>().await.unwrap(), json!([1, null, "went", 42, [null, 5]]));
    });
}

#[test]
fn a_thousand_in_all_work() {
    let text = r#"
        const all = await Task.all(Array.from({ length: 1000 }, (_, i) => Task.run("echo", i)))
        return all.reduce((sum, n) => sum + n, 0)
    "#;
    let sum = Scene::play_with(outlast::testing::Programs::Dropped, async |scene| {
        let engine = scene.engine(|engine| super::tasks(engine).script("story.wf", text)).await;
        result(&engine, "story", &json!(null)).await.unwrap()
    });
    assert_eq!(sum, json!(499_500));
}

/// "A waiting run is a state record, never a queue item"; what it waits for is there to be seen.
#[test]
fn a_script_that_waits_says_for_what_and_where() {
    let text =
        "const timer = Task.delay(60)\nconst s = Signal.next(\"go\", { timeout: \"1h\" })\nawait timer\nreturn await s";
    tell(text, async |scene, engine| {
        engine.start("story", &()).id("a").await.unwrap();
        scene.pass(seconds(1)).await;
        assert_eq!(status(&engine, "a").await, Status::Waiting);
        let waits = scene.awaiting("a").await;
        assert_eq!(waits.len(), 3, "a timer, a wait and its deadline: {waits:?}");
        // Nobody knows more than the store does of a run whose program is not in memory.
        if let Some(operations) = engine.run("a").unwrap().operations().await {
            let seen: Vec<_> = operations
                .iter()
                .map(|info| (info.key.as_str(), info.location.as_ref().unwrap().to_string(), info.deadline.is_some()))
                .collect();
            let expected =
                [("__sleep-0", "story.wf:1:15".to_owned(), true), ("__wait-go-0", "story.wf:2:11".to_owned(), true)];
            assert_eq!(seen, expected);
        }
        let explained = engine.run("a").unwrap().explain().await.unwrap().to_string();
        assert!(explained.contains("__sleep-0") && explained.contains("__wait-go-0"), "{explained}");
        engine.run("a").unwrap().signal("go", &1, "s").await.unwrap();
        assert_eq!(engine.run("a").unwrap().result::<u32>().await.unwrap(), 1);
        let expected = ["TIMER_STARTED", "SIGNAL_AWAITED", "SIGNAL_RESOLVED", "TIMER_FIRED", "RUN_FINISHED"];
        assert_eq!(kinds(&engine, "a").await, expected);
    });
}
