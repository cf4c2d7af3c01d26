//! Everything has a limit, and says so.

use outlast_core::commit::Snapshot;
use outlast_core::failure::Failure;
use outlast_script::{Limits, Script, SnapshotError};
use serde_json::{Value as Json, json};

use crate::stage::{Memory, Stage, info, output, tasks};

fn failure(text: &str, limits: Limits) -> Failure {
    let script = Script::compile("test.wf", text).unwrap_or_else(|found| panic!("{found}"));
    let mut stage = Stage::with_limits(&script, "test", &Json::Null, tasks, limits);
    stage.run(Memory::Hot).ended().result.expect_err("a failure")
}

#[test]
fn a_loop_without_an_end_is_stopped_and_cannot_be_caught() {
    let text = "try {\n  while (true) {}\n} catch (e) { return 'caught' } finally { return 'finally' }";
    let failure = failure(text, Limits { instructions: 100_000, ..Limits::default() });
    assert_eq!(failure.code, "instruction_limit");
    assert!(failure.trace.as_ref().unwrap().contains("test.wf:2:"), "{failure:?}");
    assert!(failure.permanent);
}

#[test]
fn a_loop_of_calls_is_stopped_too() {
    let text = "const f = () => {}\nfor (;;) f()";
    assert_eq!(failure(text, Limits { instructions: 100_000, ..Limits::default() }).code, "instruction_limit");
    let text = "const l = [1]\nfor (;;) l.map(x => x)";
    assert_eq!(failure(text, Limits { instructions: 100_000, ..Limits::default() }).code, "instruction_limit");
    let text = "async function f() { while (true) await null }\nawait f()";
    assert_eq!(failure(text, Limits { instructions: 100_000, ..Limits::default() }).code, "instruction_limit");
}

#[test]
fn instructions_are_counted_between_two_facts_only() {
    let text = "let n = 0; for (let i = 0; i < 50; i++) { for (let j = 0; j < 1000; j++) n++; await Task.run('x', i) } return n";
    let script = Script::compile("test.wf", text).unwrap();
    let limits = Limits { instructions: 20_000, ..Limits::default() };
    let mut stage = Stage::with_limits(&script, "test", &Json::Null, tasks, limits);
    assert_eq!(stage.run(Memory::Hot).ended().result.unwrap(), json!(50_000));
}

#[test]
fn calls_nest_up_to_their_limit_and_the_error_can_be_caught() {
    let text = "let depth = 0\nfunction f() { depth++; f() }\ntry { f() } catch (e) { return [e.code, e.name, depth] }";
    assert_eq!(output(text), json!(["depth_limit", "RangeError", 127]));
}

#[test]
fn values_that_can_be_reached_have_a_limit() {
    let text = "const l = []\nfor (let i = 0; i < 100000; i++) l.push('x'.repeat(100) + i)";
    let failure = failure(text, Limits { heap_bytes: 4_000_000, ..Limits::default() });
    assert_eq!(failure.code, "heap_limit");
    assert!(failure.trace.as_ref().unwrap().contains("test.wf:2:"), "{failure:?}");
}

#[test]
fn garbage_is_collected() {
    let text = "let s = ''\nfor (let i = 0; i < 100000; i++) s = 'x'.repeat(100) + i\nreturn s.length";
    let script = Script::compile("test.wf", text).unwrap();
    let limits = Limits { heap_bytes: 4_000_000, ..Limits::default() };
    let mut stage = Stage::with_limits(&script, "test", &Json::Null, tasks, limits);
    assert_eq!(stage.run(Memory::Hot).ended().result.unwrap(), json!(105));
}

#[test]
fn strings_and_lists_have_limits_that_can_be_caught() {
    assert_eq!(output("try { 'x'.repeat(1e8) } catch (e) { return e.code }"), json!("size_limit"));
    assert_eq!(output("let s = 'x'; try { while (true) s += s } catch (e) { return e.code }"), json!("size_limit"));
    assert_eq!(output("try { Array.from({ length: 1e9 }) } catch (e) { return e.code }"), json!("size_limit"));
    assert_eq!(output("const l = []; try { l[1e9] = 1 } catch (e) { return e.code }"), json!("size_limit"));
    assert_eq!(output("try { ''.padStart(1e9, 'x') } catch (e) { return e.code }"), json!("size_limit"));
}

#[test]
fn deep_values_are_made_compared_printed_and_dropped_without_recursion() {
    let text = "
        let deep = []
        for (let i = 0; i < 300000; i++) deep = [deep]
        let other = { deep }
        for (let i = 0; i < 300000; i++) other = { other }
        let same = deep == other
        let printed = 'no'
        try { printed = String(deep) } catch (e) { printed = e.code }
        let json = 'no'
        try { JSON.stringify(other) } catch (e) { json = e.code }
        await Task.delay(1)
        return [same, printed, json, [deep].flat(Infinity).length]";
    let script = Script::compile("test.wf", text).unwrap_or_else(|found| panic!("{found}"));
    let limits = Limits { heap_bytes: 512 * 1024 * 1024, snapshot_bytes: 64 * 1024 * 1024, ..Limits::default() };
    let mut stage = Stage::with_limits(&script, "test", &Json::Null, tasks, limits);
    assert_eq!(stage.run(Memory::Restored).ended().result.unwrap(), json!([false, "size_limit", "size_limit", 0]));
}

#[test]
fn cycles_are_saved_and_restored() {
    let text = "
        const a = { name: 'a', list: [] }, b = { name: 'b', a }
        a.b = b; a.list.push(a.list, b)
        const f = () => a
        a.f = f
        await Task.delay(1)
        return [a.b.a === a, a.list[0] === a.list, a.list[1] === b, a.f() === a, b.a.b.a.name]";
    let script = Script::compile("test.wf", text).unwrap();
    let mut stage = Stage::new(&script, "test", &Json::Null, tasks);
    assert_eq!(stage.run(Memory::Restored).ended().result.unwrap(), json!([true, true, true, true, "a"]));
}

#[test]
fn a_snapshot_over_its_limit_is_not_taken() {
    let script =
        Script::compile("test.wf", "const s = 'x'.repeat(10000)\nawait Task.delay(1)\nreturn s.length").unwrap();
    let stage = |snapshot_bytes| {
        let limits = Limits { snapshot_bytes, ..Limits::default() };
        Stage::with_limits(&script, "test", &Json::Null, tasks, limits)
    };
    assert!(stage(5_000).snapshot().is_none());
    assert!(stage(50_000).snapshot().is_some());
}

#[test]
fn a_snapshot_of_other_code_or_of_the_future_or_damaged_is_refused() {
    let script = Script::compile("test.wf", "await Task.delay(1)\nreturn 1").unwrap();
    let other = Script::compile("test.wf", "await Task.delay(1)\nreturn 2").unwrap();
    let stage = Stage::new(&script, "test", &Json::Null, tasks);
    let good = stage.snapshot().unwrap();
    let restore =
        |script: &Script, snapshot: &Snapshot| script.restore(info("test"), Limits::default(), snapshot).err();
    assert_eq!(restore(&script, &good), None);
    assert_eq!(restore(&other, &good), Some(SnapshotError::OtherCode));
    let mut future = good.clone();
    let mut data = future.data.to_vec();
    data[4] = 99;
    future.data = data.into();
    assert_eq!(restore(&script, &future), Some(SnapshotError::Future { found: 99, known: 1 }));
    for place in 0..good.data.len() {
        let mut damaged = good.clone();
        let mut data = damaged.data.to_vec();
        data[place] ^= 0x40;
        damaged.data = data.into();
        assert!(restore(&script, &damaged).is_some(), "byte {place}");
        let cut = Snapshot { data: good.data.slice(..place), ..good.clone() };
        assert!(restore(&script, &cut).is_some(), "cut at {place}");
    }
}

#[test]
fn the_snapshot_of_a_loop_does_not_grow() {
    let text = "let n = 0; for (let i = 0; i < 300; i++) { n += await Task.run('double', i) } return n";
    let script = Script::compile("test.wf", text).unwrap();
    let mut stage = Stage::new(&script, "test", &Json::Null, tasks);
    let mut sizes = Vec::new();
    while let Some(snapshot) = stage.snapshot() {
        sizes.push(snapshot.data.len());
        if !stage.step(Memory::Hot) {
            break;
        }
    }
    assert_eq!(sizes.len(), 300);
    // Larger numbers have more digits, and that is all.
    assert!(sizes[299] <= sizes[9] + 24, "{} and then {}", sizes[9], sizes[299]);
}

#[test]
fn a_promise_that_is_raced_again_and_again_does_not_remember_it() {
    let text = "const stop = Signal.next('stop'); for (let i = 0; i < 300; i++) { await Promise.race([stop, Task.run('x', i)]) } return 1";
    let script = Script::compile("test.wf", text).unwrap();
    let mut stage = Stage::new(&script, "test", &Json::Null, tasks);
    let mut sizes = Vec::new();
    while let Some(snapshot) = stage.snapshot() {
        sizes.push(snapshot.data.len());
        if !stage.step(Memory::Hot) {
            break;
        }
    }
    assert!(sizes[299] <= sizes[9] + 24, "{} and then {}", sizes[9], sizes[299]);
}

#[test]
fn a_snapshot_of_a_hundred_variables_has_at_most_four_kibibytes() {
    let declared: String = (0..100).map(|n| format!("let v{n} = {n}.5\n")).collect();
    let used: String = (0..100).map(|n| format!("v{n} + ")).collect();
    let script = Script::compile("test.wf", &format!("{declared}await Task.delay(1)\nreturn {used}0")).unwrap();
    let stage = Stage::new(&script, "test", &Json::Null, tasks);
    let size = stage.snapshot().unwrap().data.len();
    assert!(size <= 4096, "{size} bytes");
}

#[test]
fn tens_of_thousands_of_parentheses_do_not_bring_the_process_down() {
    for text in ["(".repeat(40_000), "[".repeat(40_000), "{".repeat(40_000), "!".repeat(40_000), "a=>".repeat(40_000)] {
        let found = Script::compile("test.wf", &text).unwrap_err();
        assert!(found.list().iter().any(|found| found.code == "too_deep" || found.code == "syntax"), "{found}");
    }
    let nested = format!("return {}1{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(output(&nested), json!(1));
    for text in [
        "1".to_owned() + &"+1".repeat(40_000),
        "a".to_owned() + &".b".repeat(40_000),
        "f".to_owned() + &"()".repeat(40_000),
    ] {
        let found = Script::compile("test.wf", &format!("let a, f; return {text}")).unwrap_err();
        assert_eq!(found.list()[0].code, "too_deep");
    }
    let chain = format!("return 1{}", "+1".repeat(200));
    assert_eq!(output(&chain), json!(201));
    let branches: String = (0..1000).map(|n| format!("if (x == {n}) return {n}; else ")).collect();
    assert_eq!(output(&format!("const x = 998; {branches} return -1")), json!(998));
}

#[test]
fn a_loop_that_is_stopped_is_the_statement_that_is_named() {
    let limits = Limits { instructions: 100_000, ..Limits::default() };
    let loops = [
        "for (let i = 0; i < 1; i += 0) {}",
        "for (let i = 0; i < 2; i--) {}",
        "for (let i = 0, n = 1; i < n; n++) {}",
        "for (let i = 0; i < 1;) { a++ }",
        "while (a < 2) {}",
        "while (true) a = 3",
        "do { a = 2 } while (a < 3)",
        "for (;;) {}",
    ];
    for text in loops {
        let failure = failure(&format!("let a = 1\nlog(a)\n{text}\nlog(a)\n"), limits);
        assert_eq!(failure.code, "instruction_limit", "{text}");
        assert!(failure.trace.as_ref().unwrap().contains("test.wf:3:"), "{text}: {failure:?}");
    }
}
