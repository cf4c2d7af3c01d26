//! Every suspension of a script, with the engine killed at every call.

use outlast::testing::crash_everywhere;
use outlast::{Engine, EngineError};
use serde_json::{Value, json};

use super::tasks;
use crate::crashes::since_cancel;

/// Everything a script can wait for, one after the other and at once, in conditions, arguments, loops, `try` and `finally`.
const EVERYTHING: &str = r#"
    workflow child(n) { await Task.delay(1); if (n > 1) throw new Error("no", { code: "odd" }); return n }
    function twice(p) { return 2 * await p }
    workflow everything(n) {
        const found = [n]
        const both = Task.all([Task.run("echo", 2), Task.delay(5)])
        if (await Task.run("echo", true)) found.push(await twice(Task.run("echo", 3)))
        for (const m of [1, 2]) {
            try { found.push(await Workflow.run("child", m)) }
            catch (error) { found.push(error.code) }
            finally { found.push(await Task.run("echo", "finally")) }
        }
        found.push(await Signal.next("word"))
        try { await Signal.next("never", { timeout: 60 }) } catch (error) { found.push(error.code) }
        const any = await Task.any([Task.run("fail", 1), Task.run("echo", "any", { delay: 3 })])
        const race = await Task.race([Signal.next("never"), Task.delay(1)])
        found.push(any.result, race.status, await both)
        const uuid = Id.uuid()
        await Task.delay(1)
        return [...found, uuid.length]
    }
"#;

fn everything(snapshot_after: u64) {
    let crashes = crash_everywhere(
        |engine| tasks(engine.snapshot_after(snapshot_after)).script("everything.wf", EVERYTHING),
        async |engine: Engine| {
            let run = engine.start("everything", &7).id("a").await.ok()?;
            engine.run("a").ok()?.signal("word", "hello", "s").await.ok()?;
            run.result::<Value>().await.ok()
        },
    );
    assert!(crashes.kills > 100, "{crashes:?}");
}

#[test]
fn a_script_survives_a_crash_at_every_call() {
    everything(64);
}

#[test]
fn a_script_that_is_saved_with_every_commit_survives_a_crash_at_every_call() {
    everything(0);
}

/// Promise 1: an acknowledged cancel is not lost, and `finally` is run to its end.
#[test]
fn a_cancelled_script_and_its_cleanup_survive_a_crash_at_every_call() {
    let text = r#"
        workflow tidy() {
            try { await Task.delay("1 day") }
            finally { await Task.run("echo", "refund"); await Task.delay(5); await Task.run("echo", "tell") }
        }
        workflow nap() { await Task.delay(600) }
    "#;
    for after in [0, 64] {
        let crashes = crash_everywhere(
            |engine| tasks(engine.snapshot_after(after)).script("tidy.wf", text),
            async |engine: Engine| {
                let run = engine.start("tidy", &()).id("a").await.ok()?;
                engine.start("nap", &()).await.ok()?.result::<()>().await.ok()?;
                let _ = engine.run("a").ok()?.cancel("enough").await;
                let EngineError::Cancelled(_) = run.result::<Value>().await.err()? else { return None };
                let journal = engine.run("a").ok()?.journal().await.ok()?;
                Some(since_cancel(&journal))
            },
        );
        assert!(crashes.kills > 40, "{crashes:?}");
    }
}

/// A new text is put while a run waits; whoever takes over has both.
#[test]
fn a_text_that_was_put_survives_a_crash_at_every_call() {
    let crashes = crash_everywhere(tasks, async |engine: Engine| {
        engine.define_script("w.wf", "await Task.delay(100)\nreturn 1").await.ok()?;
        let old = engine.start("w", &()).id("old").await.ok()?;
        engine.define_script("w.wf", "return 2").await.ok()?;
        let new = engine.start("w", &()).id("new").await.ok()?;
        let both = (old.result::<u32>().await.ok()?, new.result::<u32>().await.ok()?);
        Some(json!(both))
    });
    assert!(crashes.kills > 20, "{crashes:?}");
}
