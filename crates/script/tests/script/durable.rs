//! Operations: what a script asks the engine for, and what it makes of the answers.

use outlast_core::Bytes;
use outlast_core::event::{ClosePolicy, Event};
use outlast_core::failure::Failure;
use outlast_core::id::Key;
use outlast_core::operation::{Due, Operation, OperationKind, Operations, Provided};
use outlast_core::program::{Input, Program, Progress};
use outlast_core::time::Timestamp;
use outlast_script::Script;
use serde_json::{Value as Json, json};
use std::time::Duration;

use crate::stage::{Memory, Stage, output, run_text, tasks};

fn stage(text: &str) -> Stage {
    let script = Script::compile("test.wf", text).unwrap_or_else(|found| panic!("{found}"));
    Stage::new(&script, "test", &json!({ "id": 7 }), tasks)
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

/// Keys of what was started, in order.
fn started(stage: &Stage) -> Vec<String> {
    let starts = stage.requests.iter().filter(|request| request.starts().is_some());
    starts.filter_map(|request| request.key().map(ToString::to_string)).collect()
}

fn finished(stage: &Stage) -> Json {
    stage.ended().result.unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn the_seeds_example_runs_as_written() {
    let text = "workflow example(inputs) {\n  result = await Task.run(\"process_data\", inputs)\n  return result\n}\n";
    let script = Script::compile("example.wf", text).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(script.workflows(), ["example"]);
    assert_eq!(script.warnings().list()[0].code, "undeclared_assignment");
    let mut stage = Stage::new(&script, "example", &json!({ "n": 1 }), tasks);
    assert_eq!(finished(stage.run(Memory::Restored)), json!({ "n": 1 }));
}

#[test]
fn the_seeds_race_with_a_timeout_runs() {
    let text = "
        workflow operation(inputs) {
            timer = Task.delay(30)
            timeout_timer = timer.id
            result = await Task.race([Task.run(\"operation\", inputs), timer])
            if (result.item_id == timeout_timer) {
                return {error: \"Operation timed out\"}
            }
            return result
        }
        workflow slow(inputs) {
            timer = Task.delay(30)
            timeout_timer = timer.id
            result = await Task.race([Signal.next(\"never\"), timer])
            if (result.item_id == timeout_timer) {
                return {error: \"Operation timed out\"}
            }
        }";
    let script = Script::compile("race.wf", text).unwrap_or_else(|found| panic!("{found}"));
    let mut stage = Stage::new(&script, "operation", &json!(5), tasks);
    let expected = json!({ "item_id": "__task-operation-0", "status": "completed", "result": 5 });
    assert_eq!(finished(stage.run(Memory::Hot)), expected);
    let mut stage = Stage::new(&script, "slow", &json!(5), tasks);
    assert_eq!(finished(stage.run(Memory::Restored)), json!({ "error": "Operation timed out" }));
}

#[test]
fn one_file_may_hold_several_workflows_which_share_functions_and_constants() {
    let text = "
        const RATE = 2
        function price(n) { return n * RATE }
        workflow a(inputs) { return price(inputs.id) }
        workflow b({ id }) { return [price(id), await a({ id: 1 }), Context.workflow, Context.runId] }";
    let script = Script::compile("shop.wf", text).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(script.workflows(), ["a", "b"]);
    assert_eq!(finished(&Stage::new(&script, "a", &json!({ "id": 7 }), tasks)), json!(14));
    assert_eq!(finished(&Stage::new(&script, "b", &json!({ "id": 7 }), tasks)), json!([14, 2, "b", "run-1"]));
}

#[test]
fn a_workflow_that_the_file_does_not_declare_is_an_error() {
    let script =
        Script::compile("shop.wf", "workflow a(inputs) { return 1 }\nworkflow b(inputs) { return 2 }").unwrap();
    let failure = Stage::new(&script, "c", &Json::Null, tasks).ended().result.unwrap_err();
    assert!(failure.message.starts_with("the file declares no workflow `c`: it has a, b"), "{failure}");
}

#[test]
fn a_call_starts_the_work_and_await_waits_for_it() {
    let mut stage = stage("const a = Task.run('x', 1)\nTask.run('y', 2)\nreturn await a");
    assert_eq!(started(&stage), ["__task-x-0", "__task-y-0"]);
    let awaits: Vec<&Operation> =
        stage.requests.iter().filter(|request| matches!(request, Operation::Await { .. })).collect();
    assert_eq!(awaits, [&Operation::Await { key: key("__task-x-0") }]);
    assert_eq!(finished(stage.run(Memory::Hot)), json!(1));
}

#[test]
fn awaiting_a_plain_value_returns_it() {
    assert_eq!(output("return [await 5, await null, await 'x', await [1]]"), json!([5, null, "x", [1]]));
}

#[test]
fn the_options_of_a_task_reach_the_driver() {
    let text = "await Task.run('charge', { amount: 5 }, {
        id: 'pay', queue: 'slow', priority: 3, timeout: '5m', heartbeat: 10, delay: 'PT1M',
        retry: { attempts: 4, initial: '2s', factor: 3, cap: 60, jitter: false },
    })";
    let stage = stage(text);
    let Operation::ScheduleTask { key, name, queue, priority, args, retry, timeout, heartbeat, begin, detached } =
        &stage.requests[0]
    else {
        panic!("{:?}", stage.requests)
    };
    assert_eq!((key.as_str(), name.as_str(), queue.as_str(), *priority), ("pay", "charge", "slow", 3));
    assert_eq!(args, &Bytes::from("{\"amount\":5}"));
    assert_eq!((*timeout, *heartbeat), (Some(Duration::from_secs(300)), Some(Duration::from_secs(10))));
    assert_eq!((*begin, *detached), (Some(Due::After(Duration::from_secs(60))), false));
    assert_eq!(retry.next_delay(2, 0), Some(Duration::from_secs(6)));
    assert_eq!(retry.attempts_max(), 4);
}

#[test]
fn options_that_do_not_exist_are_refused_with_a_suggestion() {
    let failure = run_text("await Task.run('x', 1, { timeuot: 5 })").result.unwrap_err();
    assert!(
        failure.message.starts_with("Task.run: there is no option `timeuot`: did you mean `timeout`?"),
        "{failure}"
    );
    let failure = run_text("await Task.delay('soon')").result.unwrap_err();
    assert!(failure.message.contains("\"soon\" is no duration"), "{failure}");
}

#[test]
fn a_name_that_is_used_again_is_numbered() {
    let stage = stage("for (let i = 0; i < 3; i++) Task.run('x', i, { id: 'same' })\nawait Task.delay(1)");
    assert_eq!(started(&stage), ["same", "same#2", "same#3", "__sleep-0"]);
}

#[test]
fn all_any_race_and_all_settled_have_the_seeds_shapes() {
    assert_eq!(output("return await Task.all([Task.run('a', 1), Task.delay(1), 3])"), json!([1, null, 3]));
    let any = "return await Task.any([Task.run('fail', {}), Task.run('a', 5, { id: 'second' })])";
    assert_eq!(output(any), json!({ "item_id": "second", "result": 5 }));
    let any = "try { await Task.any([Task.run('fail', { code: 'x' }), Task.run('fail', { code: 'y' })]) }
        catch (e) { return [e.name, e.errors.map(e => e.code)] }";
    assert_eq!(output(any), json!(["AggregateError", ["x", "y"]]));
    let race = "const r = await Task.race([Task.run('fail', { code: 'x' }, { id: 'f' }), Task.run('a', 1)])
        return [r.item_id, r.status, r.error.code]";
    assert_eq!(output(race), json!(["f", "failed", "x"]));
    let settled =
        "const r = await Task.allSettled([Task.run('a', 1, { id: 'a' }), Task.run('fail', { code: 'x' }, { id: 'b' })])
        return [r[0], r[1].item_id, r[1].status, r[1].error.code]";
    assert_eq!(output(settled), json!([{ "item_id": "a", "status": "completed", "result": 1 }, "b", "failed", "x"]));
}

#[test]
fn combinations_take_objects_too() {
    assert_eq!(output("return await Task.all({ a: Task.run('x', 1), b: 2 })"), json!({ "a": 1, "b": 2 }));
    let race = "return await Task.race({ work: Signal.next('never'), timeout: Timer.delay(5) })";
    assert_eq!(output(race), json!({ "item_id": "timeout", "status": "completed", "result": null }));
    assert_eq!(
        output("return await Promise.allSettled({ a: 1 })"),
        json!({ "a": { "status": "fulfilled", "value": 1 } })
    );
}

#[test]
fn the_first_recorded_failure_of_all_throws_while_others_are_pending() {
    let text = "try { await Task.all([Signal.next('never'), Task.run('fail', { code: 'first' }), Task.run('fail', { code: 'second' })]) }
        catch (e) { return e.code }";
    assert_eq!(output(text), json!("first"));
}

#[test]
fn a_thousand_tasks_in_all_work() {
    let text = "const l = []; for (let i = 0; i < 1000; i++) l.push(Task.run('double', i))
        const r = await Task.all(l); return r.reduce((a, b) => a + b)";
    assert_eq!(output(text), json!(999_000));
}

#[test]
fn a_signal_is_awaited_and_its_payload_may_be_null() {
    let mut stage = stage("const a = await Signal.next('go')\nconst b = await wait_for_signal('go')\nreturn [a, b]");
    stage.signal("__wait-go-0", &json!({ "n": 1 }));
    assert_eq!(stage.progress, Progress::Blocked);
    stage.signal("__wait-go-1", &Json::Null);
    assert_eq!(finished(&stage), json!([{ "n": 1 }, null]));
}

#[test]
fn a_signal_that_does_not_come_in_time_throws() {
    let text = "try { await Signal.next('go', { timeout: 60 }) } catch (e) { return [e.code, e.message] }";
    assert_eq!(output(text), json!(["timeout", "the deadline passed before the signal \"go\" came"]));
}

#[test]
fn an_approval_gives_a_decision_or_throws_in_the_end() {
    let mut stage =
        stage("return await Approval.request({ title: 'Ship?', assignee: 'kim', timeout: '1h', id: 'ok' })");
    let Operation::RequestApproval { title, assignee, deadline, .. } = &stage.requests[0] else { panic!() };
    assert_eq!((title.as_str(), assignee.as_deref()), ("Ship?", Some("kim")));
    assert_eq!(*deadline, Some(Due::After(Duration::from_secs(3600))));
    stage.feed(Event::ApprovalResolved {
        key: key("ok"),
        approval: "a-1".to_owned(),
        approved: true,
        by: Some("kim".to_owned()),
        feedback: None,
    });
    assert_eq!(finished(&stage), json!({ "approved": true, "by": "kim", "feedback": null, "approval": "a-1" }));
    let text = "try { await Approval.request({ title: 'Ship?', timeout: 5 }) } catch (e) { return e.code }";
    assert_eq!(output(text), json!("timeout"));
}

#[test]
fn a_callback_has_an_id_and_a_token_and_an_answer() {
    let mut stage =
        stage("const c = Callback.create({ timeout: 60, heartbeat: 5 })\nlog(c.id, c.token)\nreturn await c");
    assert_eq!(stage.logs, [json!(["__callback-0", "token-of-__callback-0"])]);
    stage.feed(Event::CallbackResolved {
        key: key("__callback-0"),
        callback: "c".to_owned(),
        payload: Bytes::from("{\"ok\":true}"),
    });
    assert_eq!(finished(&stage), json!({ "ok": true }));
}

#[test]
fn the_token_of_a_callback_is_not_saved() {
    let stage = stage("const c = Callback.create()\nreturn await c");
    let data = stage.snapshot().unwrap().data;
    assert!(!data.windows(9).any(|part| part == b"token-of-"), "the token is in the snapshot");
}

#[test]
fn a_child_is_awaited_or_started_alone() {
    assert_eq!(
        output("return await Workflow.run('ship', { n: 1 })"),
        json!({ "workflow": "ship", "input": { "n": 1 } })
    );
    let mut stage = stage("return await Workflow.start('ship', 5, { id: 'child-x', version: '2' })");
    let Operation::StartChild { child, version, detached, on_close, .. } = &stage.requests[0] else { panic!() };
    assert_eq!(child.as_ref().unwrap().as_str(), "child-x");
    assert_eq!(version.as_ref().unwrap().as_str(), "2");
    assert_eq!((*detached, *on_close), (true, ClosePolicy::Abandon));
    assert_eq!(finished(stage.run(Memory::Hot)), json!("child-1"));
}

#[test]
fn time_and_ids_and_chance_are_recorded() {
    let text = "const a = Time.now(); await Task.delay(10); return [a, Time.now() - a, Id.uuid(), Math.random()]";
    let mut hot = stage(text);
    let mut rebuilt = stage(text);
    let result = finished(hot.run(Memory::Hot));
    assert_eq!(result[1], json!(10_000));
    assert_eq!(result[2].as_str().unwrap().len(), 36);
    assert!((0.0..1.0).contains(&result[3].as_f64().unwrap()));
    assert_eq!(finished(rebuilt.run(Memory::Rebuilt)), result);
}

#[test]
fn timers_until_an_instant_are_absolute() {
    let mut stage = stage("await Timer.until(Time.now() + 5000)\nreturn Time.now()");
    assert!(stage.requests.iter().any(|request| matches!(request, Operation::StartTimer { due: Due::At(_), .. })));
    assert_eq!(finished(stage.run(Memory::Hot)), json!(6000));
}

#[test]
fn cancelling_the_run_runs_finally_blocks_which_may_await() {
    let text = "
        const log_of = []
        async function side() { try { await Signal.next('never') } finally { log_of.push('side') } }
        const s = side()
        try {
            await Task.delay(100)
        } catch (e) {
            log_of.push(e.code)
            throw e
        } finally {
            log_of.push(await Task.run('undo', 'undone'))
            log(log_of)
        }";
    let mut stage = stage(text);
    stage.feed(Event::CancelRequested { reason: Some("enough".to_owned()), by: None });
    let cancelled: Vec<&Operation> =
        stage.requests.iter().filter(|request| matches!(request, Operation::Cancel { .. })).collect();
    assert_eq!(
        cancelled,
        [&Operation::Cancel { key: key("__wait-never-0") }, &Operation::Cancel { key: key("__sleep-0") }],
        "in the order of their starts"
    );
    stage.run(Memory::Restored);
    assert_eq!(stage.logs, [json!([["side", "cancelled", "undone"]])]);
    let failure = stage.ended().result.unwrap_err();
    assert_eq!(failure.code, "cancelled");
    assert!(failure.message.starts_with("the run was cancelled: enough"), "{failure}");
}

#[test]
fn what_is_open_can_be_asked() {
    let text = "const a = Task.run('x', 1)\nconst b = Signal.next('go')\nawait a\nreturn await b";
    let script = Script::compile("test.wf", text).unwrap();
    let mut program =
        script.program(crate::stage::info("test"), Bytes::from("null"), outlast_script::Limits::default());
    let mut ops = Operations::new(Provided { now: Timestamp::EPOCH, seed: 0 });
    program.resume(Input::Start, &mut ops);
    let open: Vec<(&str, OperationKind, bool)> =
        program.open_operations().map(|(key, kind, is_awaited)| (key.as_str(), kind, is_awaited)).collect();
    assert_eq!(open, [("__task-x-0", OperationKind::Task, true), ("__wait-go-0", OperationKind::Signal, false)]);
}

#[test]
fn an_operation_can_be_cancelled_by_the_script() {
    let text = "
        const d = Task.delay(1000)
        const first = Task.cancel(d)
        const second = Task.cancel(d)
        try { await d } catch (e) { return [first, second, e.code] }";
    assert_eq!(output(text), json!([true, false, "cancelled"]));
}

#[test]
fn the_winner_of_a_race_is_decided_by_the_journal() {
    let text = "const r = await Promise.race([Signal.next('a'), Signal.next('b')]); return r";
    for (winner, expected) in [("__wait-a-0", "A"), ("__wait-b-0", "B")] {
        let mut stage = stage(text);
        stage.signal(winner, &json!(expected));
        assert_eq!(finished(&stage), json!(expected));
    }
}

#[test]
fn a_script_that_waits_for_what_cannot_happen_fails_and_says_where() {
    let failure = run_text("log('x')\nawait Promise.race([])").result.unwrap_err();
    assert_eq!(failure.code, "stuck");
    assert!(failure.message.contains("test.wf:2:1"), "{failure}");
}

#[test]
fn what_leaves_the_script_must_be_json() {
    let failure = run_text("return { p: Task.run('x', 1) }").result.unwrap_err();
    assert!(failure.message.contains("what the workflow returns contains a promise"), "{failure}");
    let failure = run_text("await Task.run('x', { f: () => 1 })").result.unwrap_err();
    assert!(failure.message.contains("what the task is given contains a function"), "{failure}");
    let failure = run_text("const a = []; a.push(a); return a").result.unwrap_err();
    assert!(failure.message.contains("or contains itself"), "{failure}");
}

#[test]
fn an_error_from_outside_keeps_its_data_and_learns_where_it_was_awaited() {
    let mut stage = stage("async function pay() {\n  return await Task.run('x', 1)\n}\nawait pay()");
    let error = Failure::new("declined", "no money").with_data("{\"n\":1}");
    let task = outlast_core::id::TaskId::new("t").unwrap();
    stage.feed(Event::TaskFailed { key: key("__task-x-0"), task, error });
    let failure = stage.ended().result.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.data.as_deref()), ("declined", Some(&b"{\"n\":1}"[..])));
    assert_eq!(failure.message, "no money");
    assert!(failure.trace.unwrap().starts_with("    at pay (test.wf:2:10)"));
}

/// A parent reads what its child said, and not where the child said it; its own failure says where it was itself.
#[test]
fn the_message_of_a_failure_stays_the_message_through_generations() {
    let mut failure = run_text("throw new Error('no stock', { code: 'stock' })").result.unwrap_err();
    for _ in 0..3 {
        assert_eq!((failure.code.as_str(), failure.message.as_str()), ("stock", "no stock"));
        assert_eq!(failure.trace.unwrap().lines().count(), 2, "one call and its source line");
        failure.trace = Some("    at (file) (child.wf:1:1)\n    | throw …".to_owned());
        let child = outlast_core::id::RunId::new("c").unwrap();
        let failed = Event::ChildFailed { key: key("__child-0"), child, error: failure };
        let mut parent = stage("try { await Workflow.run('child') } catch (e) { log(e.message, e.stack); throw e }");
        parent.feed(failed);
        assert_eq!(parent.logs, [json!(["no stock", "Error: no stock\n    at (file) (test.wf:1:7)"])]);
        failure = parent.ended().result.unwrap_err();
    }
}

#[test]
fn the_next_generation_begins_when_the_script_returns() {
    let stage = stage("Workflow.continueAsNew({ n: 2 })\nreturn 5");
    assert!(matches!(&stage.requests[0], Operation::ContinueAsNew { input, .. } if input == "{\"n\":2}"));
    assert_eq!(stage.progress, Progress::Finished(Bytes::new()));
}

#[test]
fn facts_about_nothing_that_is_open_change_nothing() {
    let mut stage = stage("return await Signal.next('a')");
    stage.feed(Event::TimerFired { key: key("__sleep-9") });
    stage.feed(Event::RunResumed { message: None, by: None });
    assert_eq!(stage.progress, Progress::Blocked);
    stage.signal("__wait-a-0", &json!(1));
    assert_eq!(finished(&stage), json!(1));
}
