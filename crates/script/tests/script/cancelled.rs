//! Cancelling a run that waits for several things at once: no combination may take the cancellation for an outcome.

use outlast_core::event::Event;
use outlast_core::id::Key;
use outlast_core::operation::Operation;
use outlast_script::Script;
use serde_json::{Value as Json, json};

use crate::stage::{Ended, Memory, Stage, tasks};

/// Cancels a run once everything in it waits, and tells how it ended and which tasks it asked for afterwards.
fn cancelled(text: &str, memory: Memory) -> (Ended, Vec<String>) {
    let script = Script::compile("test.wf", text).unwrap_or_else(|found| panic!("{found}"));
    let mut stage = Stage::new(&script, "test", &Json::Null, tasks);
    let before = stage.requests.len();
    stage.remember(memory);
    stage.feed(Event::CancelRequested { reason: None, by: None });
    stage.run(memory);
    let later = stage.requests[before..].iter().filter_map(|request| match request {
        Operation::ScheduleTask { name, .. } => Some(name.to_string()),
        _ => None,
    });
    (stage.ended(), later.collect())
}

const WAYS: [Memory; 3] = [Memory::Hot, Memory::Restored, Memory::Rebuilt];

/// Waits for two things with a combinator and then does a task, which it must not come to.
#[track_caller]
fn throws_where_it_waits(combinator: &str) {
    let waits = "[Signal.next('x'), Task.delay('1d')]";
    let both = "{ a: Signal.next('x'), b: Task.delay('1d') }";
    let nested = "[Promise.race([Signal.next('x')]), Promise.allSettled([Task.delay('1d')])]";
    for items in [waits, both, nested] {
        for memory in WAYS {
            let bare = format!("await {combinator}({items})\nawait Task.run('charge')\nreturn 1");
            let (ended, later) = cancelled(&bare, memory);
            let failure = ended.result.expect_err(combinator);
            assert_eq!((failure.code.as_str(), later.len()), ("cancelled", 0), "{bare}\n{failure}");
            assert!(failure.message.starts_with("the run was cancelled"), "{failure}");
            let caught = format!("try {{ await {combinator}({items}) }} catch (e) {{ return [e.code, e.message] }}");
            let (ended, _) = cancelled(&caught, memory);
            assert_eq!(ended.result.unwrap(), json!(["cancelled", "the run was cancelled"]), "{caught}");
        }
    }
}

#[test]
fn task_all_throws_cancelled() {
    throws_where_it_waits("Task.all");
}

#[test]
fn task_any_throws_cancelled() {
    throws_where_it_waits("Task.any");
}

#[test]
fn task_race_throws_cancelled() {
    throws_where_it_waits("Task.race");
}

#[test]
fn task_all_settled_throws_cancelled() {
    throws_where_it_waits("Task.allSettled");
}

#[test]
fn promise_all_throws_cancelled() {
    throws_where_it_waits("Promise.all");
}

#[test]
fn promise_any_throws_cancelled() {
    throws_where_it_waits("Promise.any");
}

#[test]
fn promise_race_throws_cancelled() {
    throws_where_it_waits("Promise.race");
}

#[test]
fn promise_all_settled_throws_cancelled() {
    throws_where_it_waits("Promise.allSettled");
}

/// A combination of branches ends when the branches do, so that each can clean up.
#[test]
fn branches_clean_up_before_the_combination_of_them_throws() {
    let text = "
        async function branch(n) { try { await Task.delay(100) } finally { log(await Task.run('undo', n)) } }
        try { await Promise.allSettled([branch(1), branch(2)]) } catch (e) { log(e.code); throw e }
        await Task.run('charge')";
    for memory in WAYS {
        let (ended, later) = cancelled(text, memory);
        assert_eq!(ended.logs, [json!([1]), json!([2]), json!(["cancelled"])], "{memory:?}");
        assert_eq!(ended.result.unwrap_err().code, "cancelled");
        assert_eq!(later, ["undo", "undo"]);
    }
}

/// Whoever catches the cancellation decides: a branch that returns has an outcome, and that is all there is to tell.
#[test]
fn branches_that_catch_the_cancellation_give_what_they_return() {
    let text = "
        async function branch(n) { try { await Task.delay(100) } catch (e) { return n } }
        return [await Task.all([branch(1), branch(2)]), 3]";
    let settled = "
        async function branch(n) { try { await Task.delay(100) } catch (e) { return n } }
        return (await Promise.allSettled([branch(1), branch(2)])).map(end => end.value)";
    for memory in WAYS {
        assert_eq!(cancelled(text, memory).0.result.unwrap(), json!([[1, 2], 3]));
        assert_eq!(cancelled(settled, memory).0.result.unwrap(), json!([1, 2]));
    }
}

/// Only what waits when it happens: what cleans up combines as ever.
#[test]
fn combinations_that_are_made_after_the_cancellation_are_untouched() {
    let text = "
        try { await Task.delay(100) }
        finally { log((await Promise.allSettled([Task.run('undo', 1), Task.run('fail', { code: 'x' })])).map(end => end.status)) }";
    for memory in WAYS {
        assert_eq!(cancelled(text, memory).0.logs, [json!([["fulfilled", "rejected"]])]);
    }
}

/// The keys of what was cancelled, in order.
fn given_up(stage: &Stage) -> Vec<&str> {
    let keys = stage.requests.iter().filter_map(|request| match request {
        Operation::Cancel { key } => Some(Key::as_str(key)),
        _ => None,
    });
    keys.collect()
}

fn stage(text: &str) -> Stage {
    let script = Script::compile("test.wf", text).unwrap_or_else(|found| panic!("{found}"));
    Stage::new(&script, "test", &Json::Null, tasks)
}

/// The losers of a race are nobody's: they are taken back, and what comes later reaches the next race.
#[test]
fn a_loop_of_races_keeps_one_timer_and_one_wait() {
    let loops = [
        "while (true) log((await Task.race({ s: Signal.next('x'), t: Task.delay(60) })).result)",
        "while (true) { const s = Signal.next('x'); const t = Task.delay(60); log((await Task.race([s, t])).result) }",
        "while (true) log((await Task.any([Signal.next('x'), Signal.next('never')])).result)",
    ];
    for text in loops {
        for memory in WAYS {
            let mut stage = stage(text);
            for n in 0..20 {
                stage.remember(memory);
                stage.signal(&format!("__wait-x-{n}"), &json!(n));
                assert_eq!(given_up(&stage).len(), n + 1, "{text}\n{:?}", stage.requests);
            }
            assert_eq!(stage.logs, (0..20).map(|n| json!([n])).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_wait_that_lost_is_taken_back_and_the_next_signal_is_for_the_next_race() {
    let mut stage = stage("while (true) log(await Task.race({ s: Signal.next('x'), t: Task.delay(60) }))");
    assert!(stage.step(Memory::Restored), "the timer fires");
    assert_eq!(given_up(&stage), ["__wait-x-0"]);
    stage.signal("__wait-x-1", &json!("late"));
    assert_eq!(given_up(&stage), ["__wait-x-0", "__sleep-1"]);
    let seen = json!([{ "item_id": "s", "status": "completed", "result": "late" }]);
    assert_eq!(stage.logs[1], seen);
}

/// What somebody still has a name for, or waits for, goes on.
#[test]
fn losers_that_are_needed_go_on() {
    let kept = [
        // A variable.
        "const s = Signal.next('s'); await Task.race([s, Task.delay(1)]); return await s",
        // A list that a variable names.
        "const l = [Signal.next('s'), Task.delay(1)]; await Task.race(l); return await l[0]",
        // A closure.
        "const s = Signal.next('s'); const f = () => s; await Task.race([s, Task.delay(1)]); return await f()",
        // Somebody else waits for it.
        "const o = {}; { const s = Signal.next('s'); s.then(v => { o.v = v }); await Task.race([s, Task.delay(1)]) }
         let n = 0; while (o.v == null) await Task.delay(1); return o.v",
        // Another combination.
        "const o = {}; { const s = Signal.next('s'); o.all = Promise.all([s]); await Task.race([s, Task.delay(1)]) }
         return (await o.all)[0]",
        // JavaScript's own race cancels nothing.
        "await Promise.race([Signal.next('s').then(v => v), Task.delay(1)]); return await Signal.next('t')",
        "await Promise.race([Signal.next('s'), Task.delay(1)]); return await Signal.next('t')",
        "await Promise.any([Signal.next('s'), Task.delay(1)]); return await Signal.next('t')",
        // A branch is not an operation: it goes on.
        "const o = {}; async function branch() { o.v = await Signal.next('s') }
         await Task.race([branch(), Task.delay(1)]); while (o.v == null) await Task.delay(1); return o.v",
    ];
    for text in kept {
        for memory in WAYS {
            let mut stage = stage(text);
            stage.step(memory);
            assert_eq!(given_up(&stage), [""; 0], "{text}");
            stage.signal("__wait-s-0", &json!("there"));
            if text.contains("('t')") {
                stage.signal("__wait-t-0", &json!("there"));
            }
            assert_eq!(stage.run(memory).ended().result.unwrap(), json!("there"), "{text}");
        }
    }
}

/// The parts of a combination that lost, and what a function only passed on, are losers too.
#[test]
fn losers_that_are_combinations_are_taken_back_with_all_their_parts() {
    let text = "
        const pass = async () => { await null; return Signal.next('passed') }
        await Task.race([Task.all([Signal.next('a'), Promise.race([Signal.next('b')])]), pass(), Task.delay(1)])
        return await Signal.next('next')";
    for memory in WAYS {
        let mut stage = stage(text);
        stage.step(memory);
        assert_eq!(given_up(&stage), ["__wait-a-0", "__wait-b-0", "__wait-passed-0"]);
    }
}

/// A child goes as its `onClose` says, and what was detached goes on.
#[test]
fn losers_that_were_meant_to_go_on_do() {
    let text = "
        await Task.race([
            Workflow.run('a', 1, { name: 'kept', onClose: 'abandon' }), Workflow.run('a', 1, { name: 'ended', onClose: 'terminate' }),
            Workflow.run('a', 1, { name: 'own' }), Workflow.start('a', 1, { name: 'alone' }), Task.start('t', 1), 5,
        ])
        await Signal.next('next')";
    let stage = stage(text);
    assert_eq!(given_up(&stage), ["own"]);
}

/// To find out who can reach a loser is to look at everything. So sleeps, which take nothing from anybody, wait for each other
/// where much is open.
#[test]
fn sleeps_that_lost_are_taken_back_together_where_much_is_open() {
    let text = "
        async function one(n) { return (await Task.race([Signal.next('n' + n), Task.delay(60)])).result }
        const all = []
        for (let n = 0; n < 40; n++) all.push(one(n))
        return (await Promise.all(all)).length";
    for memory in WAYS {
        let mut stage = stage(text);
        let mut looks = 0;
        let mut before = 0;
        for n in 0..39 {
            stage.remember(memory);
            stage.signal(&format!("__wait-n{n}-0"), &json!(n));
            let given_up = given_up(&stage).len();
            let (lost, open) = (n + 1 - given_up, 80 - (n + 1) - given_up);
            assert!(lost * 8 < open, "{lost} of {open} are left");
            looks += usize::from(given_up > before);
            before = given_up;
        }
        assert!((2..30).contains(&looks), "{looks} times");
        stage.signal("__wait-n39-0", &json!(39));
        assert_eq!(stage.ended().result.unwrap(), json!(40));
    }
}

/// Whatever else lost takes a signal from somebody, or makes a worker work.
#[test]
fn what_is_no_sleep_is_taken_back_at_once_whatever_is_open() {
    for (loser, key) in [("Signal.next('s')", "__wait-s-0"), ("Task.run('late', 1)", "__task-late-0")] {
        let text = format!(
            "const all = []
             for (let n = 0; n < 40; n++) all.push(Signal.next('n' + n))
             log((await Task.race([{loser}, Signal.next('first')])).status)
             return (await Promise.all(all)).length"
        );
        for memory in WAYS {
            let mut stage = stage(&text);
            stage.remember(memory);
            stage.signal("__wait-first-0", &json!(1));
            assert_eq!(given_up(&stage), [key], "{text}");
        }
    }
}
