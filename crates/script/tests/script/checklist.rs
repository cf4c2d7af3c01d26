//! The floor of the language, word by word as its checklist has it.

use outlast_script::{Script, check};
use serde_json::{Value as Json, json};

use crate::stage::{Memory, Stage, failure, output, run_text};

/// Each text gives what is beside it.
fn gives(table: &[(&str, Json)]) {
    for (text, expected) in table {
        assert_eq!(&output(text), expected, "{text}");
    }
}

/// What a workflow of a file gives.
fn of_file(text: &str, workflow: &str, input: &Json) -> Json {
    let script = Script::compile("shop.wf", text).unwrap_or_else(|found| panic!("{found}"));
    let mut stage = Stage::new(&script, workflow, input, |_, args| Ok(args.clone()));
    stage.run(Memory::Restored).ended().result.unwrap_or_else(|failure| panic!("{failure}"))
}

/// The codes of what is wrong with a text.
fn codes(text: &str) -> Vec<String> {
    check("test.wf", text).list().iter().map(|found| found.code.to_string()).collect()
}

#[test]
fn a_file_is_workflows_or_a_bare_top_level() {
    let two = "workflow a(inputs) { return inputs.n + 1 }\nworkflow b(inputs) { return inputs.n + 2 }";
    assert_eq!(of_file(two, "a", &json!({ "n": 1 })), json!(2));
    assert_eq!(of_file(two, "b", &json!({ "n": 1 })), json!(3));
    let bare = Script::compile("shop.wf", "return Inputs.n").unwrap();
    assert_eq!(bare.workflows(), ["shop"], "the file's name is the workflow's");
    assert_eq!(of_file("return [Inputs.n, Context.workflow]", "shop", &json!({ "n": 4 })), json!([4, "shop"]));
    gives(&[
        ("// one\n/* two\n   three */ return 1 // four", json!(1)),
        ("let a = 1; let b = 2;\nlet c = 3\nreturn a + b + c;", json!(6)),
        (
            "let letter = 0\nletter = 5\nlet format = 1, ifs = 2, returned = 3, newer = 4\nreturn letter + format + ifs + returned + newer",
            json!(15),
        ),
    ]);
}

/// "The seed assigns without `let`: inside `workflow … { }` bodies an undeclared assignment declares, with a lint; in bare
/// top-level files it is an error."
#[test]
fn an_undeclared_assignment_declares_in_a_workflow_and_is_an_error_in_a_bare_file() {
    let text = "workflow w(inputs) {\n  if (inputs) { result = 1 }\n  return result\n}";
    assert_eq!(of_file(text, "w", &json!(true)), json!(1));
    assert_eq!(codes(text), ["undeclared_assignment"]);
    assert!(Script::compile("test.wf", text).is_ok(), "it is a lint");
    assert!(Script::compile("test.wf", "result = 1\nreturn result").is_err());
}

#[test]
fn every_statement_works() {
    gives(&[
        ("let a = 1; const b = 2; a = 3; return [a, b]", json!([3, 2])),
        ("const { a, b } = { a: 1, b: 2 }; return a + b", json!(3)),
        (
            "let n; const o = { p: { q: 1 } }, l = [1, 2]; n = 7; o.p.q = 5; o.r = 6; l[1] = n; return [o, l]",
            json!([{ "p": { "q": 5 }, "r": 6 }, [1, 7]]),
        ),
        (
            "const f = n => { if (n > 2) { return 'a' } else if (n > 1) { return 'b' } else { return 'c' } }; return [f(3), f(2), f(1)]",
            json!(["a", "b", "c"]),
        ),
        ("let n = 0; while (true) { n++; if (n == 3) continue; if (n > 5) break } return n", json!(6)),
        ("let s = ''; for (let x of ['a', 'b']) s += x; for (const x of 'cd') s += x; return s", json!("abcd")),
        ("let s = 0; for (let i = 0, j = 10; i < j; i++, j--) s += j - i; return s", json!(30)),
        ("const ks = []; for (let k in { z: 1, a: 2, m: 3 }) ks.push(k); return ks", json!(["z", "a", "m"])),
        ("const l = []; try { throw 'x' } catch (e) { l.push(e) } finally { l.push('f') } return l", json!(["x", "f"])),
        ("function f() { return } return f()", json!(null)),
        ("const x = 1; { const x = 2; { let x = 3; x++ } } return x", json!(1)),
        ("async function f(a, b) { return (await Task.run('x', a)) + b } return await f(1, 2)", json!(3)),
        ("function f(a) { return await Task.run('x', a) } return await f(4)", json!(4)),
        (
            "let n = 10; n += 5; n -= 1; n *= 2; n /= 4; n %= 4; n++; ++n; n--; let m = null; m ??= n; m ||= 9; m &&= m + 1; return [n, m]",
            json!([4, 5]),
        ),
        ("let n = 0; (() => { n = 1 })(); return n", json!(1)),
        ("switch (2) { case 1: return 'a'; case 2: return 'b'; default: return 'c' }", json!("b")),
    ]);
    assert_eq!(codes("const a = 1\na = 2\nreturn a"), ["assignment_to_const"]);
}

#[test]
fn every_expression_works() {
    gives(&[
        (
            "const f = (await Task.run('x', 1)) > 0 ? [await Task.run('y', 2)] : { n: await Task.run('z', 3) }; return f",
            json!([2]),
        ),
        ("return [null ?? 1, 0 ?? 1, 0 || 2, 3 && 4, true ? 5 : 6]", json!([1, 0, 2, 4, 5])),
        (
            "return [1 == 1, 1 != 1, '1' === 1, '1' !== 1, 1 < 2, 2 <= 2, 1 > 2, 2 >= 2]",
            json!([true, false, false, true, true, true, false, true]),
        ),
        (
            "return [1 + 2, 5 - 3, 2 * 3, 7 / 2, 7 % 4, -(-3), !true, !0, 2 ** 3]",
            json!([3, 2, 6, 3.5, 3, 3, false, true, 8]),
        ),
        (
            "const o = { p: { q: n => n + 1 } }, l = [[1, 2]]; return [o.p.q(1), o?.p?.q?.(2), o.x?.y, l[0][1], o['p'].q(3)]",
            json!([2, 3, null, 2, 4]),
        ),
        (
            r#"return ['a\n"\u{1F600}', "b\t'\x41", `c${1 + 1}d`, true, false, null, 1_000, 0x10, 1e3]"#,
            json!(["a\n\"😀", "b\t'A", "c2d", true, false, null, 1000, 16, 1000]),
        ),
        (
            "const a = 1, rest = { b: 2 }; return { a, ...rest, ['c' + 1]: [...[3], ...[4]] }",
            json!({ "a": 1, "b": 2, "c1": [3, 4] }),
        ),
        (
            "const add = (a, b = 2) => a + b; const one = () => ({ n: 1 }); return [add(1), add(1, 1), one().n, [1, 2].map(n => n * 2)]",
            json!([3, 2, 1, [2, 4]]),
        ),
        (
            "return [typeof 1, typeof 'a', typeof true, typeof null, typeof [], typeof {}, typeof (() => 1)]",
            json!(["number", "string", "boolean", "object", "object", "object", "function"]),
        ),
        (
            "const { a = 1, b: { c = 2, ...d } = {}, ...e } = { b: { x: 3 }, y: 4 }; const [f = 5, ...g] = [null, 6, 7]; return [a, c, d, e, f, g]",
            json!([1, 2, { "x": 3 }, { "y": 4 }, 5, [6, 7]]),
        ),
    ]);
}

#[test]
fn values_are_what_the_list_says() {
    gives(&[
        (
            "return [9007199254740991, 0.1 + 0.2, 1 / 3 * 3, -0, 1e21]",
            json!([9007199254740991_i64, 0.30000000000000004, 1, 0, 1e21]),
        ),
        ("return ['😀é'.length, [...'😀é'].length, 'a😀b'[1], 'a😀b'.slice(1, 2)]", json!([2, 2, "😀", "😀"])),
        (
            "const o = { z: 1 }; o.a = 2; o.m = 3; return [JSON.stringify(o), Object.keys(o)]",
            json!(["{\"z\":1,\"a\":2,\"m\":3}", ["z", "a", "m"]]),
        ),
        (
            "try { throw new Error('no', { code: 'x', data: [1] }) } catch (e) { return [e.code, e.message, e.data] }",
            json!(["x", "no", [1]]),
        ),
        (
            "const p = Task.run('x', 1), f = () => 2; return [typeof p, f(), await p, ({}).missing, [][3]]",
            json!(["object", 2, 1, null, null]),
        ),
    ]);
    for (text, said) in [
        ("const o = {}; return o.missing.name", "write ?.name"),
        ("const f = ({}).missing; return f()", "null"),
        ("const o = {}; return o.missing()", "no method `missing`"),
    ] {
        let told = failure(text).message;
        assert!(told.contains(said), "{told}");
    }
    assert!(!codes("x = 1\nreturn 2").is_empty(), "assigning to an undeclared name is an error");
}

#[test]
fn every_builtin_of_the_list_is_there() {
    gives(&[
        ("return [typeof Inputs, Context.runId.length > 0, Context.workflow]", json!(["object", true, "test"])),
        (
            "return await Task.run('x', { n: 1 }, { retry: 3, timeout: 5, queue: 'q', priority: 2, id: 'me' })",
            json!({ "n": 1 }),
        ),
        ("return (await Task.all([Task.run('x', 1), Task.run('y', 2)])).length", json!(2)),
        ("return (await Task.any({ a: Task.run('x', 1) })).result", json!(1)),
        ("return (await Task.race([Task.run('x', 1)])).status", json!("completed")),
        ("return (await Task.allSettled([Task.run('x', 1)]))[0].status", json!("completed")),
        (
            "return [await Promise.all([1, Task.run('x', 2)]), await Promise.any([Task.run('x', 3)]), await Promise.race([Task.run('x', 4)])]",
            json!([[1, 2], 3, 4]),
        ),
        (
            "return (await Promise.allSettled([Task.run('x', 5), Promise.reject('no')])).map(one => one.status)",
            json!(["fulfilled", "rejected"]),
        ),
        (
            "const a = Time.now(); await Task.delay(2); await Timer.delay(1); await Timer.until(a + 10000); return Time.now() - a",
            json!(10000),
        ),
        (
            "return [Id.uuid().length, Math.max(1, 2), Math.floor(1.5), JSON.parse('[1]'), JSON.stringify({ a: 1 })]",
            json!([36, 2, 1, [1], "{\"a\":1}"]),
        ),
        (
            "return ['a,b'.split(','), 'Ab'.toLowerCase(), ' x '.trim(), 'abc'.includes('b'), 'x'.padStart(3, '-'), 'aa'.replaceAll('a', 'b')]",
            json!([["a", "b"], "ab", "x", true, "--x", "bb"]),
        ),
        (
            "return [[3, 1].sort(), [1, 2].filter(n => n > 1), [1, 2].reduce((a, b) => a + b, 0), [1, [2]].flat(), [1, 2].find(n => n == 2), [1, 2].at(-1)]",
            json!([[1, 3], [2], 3, [1, 2], 2, 2]),
        ),
        (
            "return [Object.keys({ a: 1 }), Object.values({ a: 1 }), Object.entries({ a: 1 }), Object.fromEntries([['b', 2]])]",
            json!([["a"], [1], [["a", 1]], { "b": 2 }]),
        ),
    ]);
    let ended = run_text("log('one', 2, { three: 3 })\nreturn 1");
    assert_eq!(ended.logs.len(), 1, "{:?}", ended.logs);
    for call in [
        "Workflow.run('kid', 1, { id: 'k' })",
        "Workflow.start('kid', 1)",
        "Signal.next('go', { timeout: 5 })",
        "wait_for_signal('go')",
        "Approval.request({ title: 'Pay?' })",
        "Callback.create({ timeout: 5 })",
    ] {
        assert_eq!(codes(&format!("return await {call}")), Vec::<String>::new(), "{call}");
    }
}

/// "Errors point at file, line, column with the source line; unknown names suggest the nearest"
#[test]
fn a_mistake_is_shown_where_it_stands_with_the_name_that_was_meant() {
    let told = check("shop.wf", "const amount = 1\nreturn amuont + 1").to_string();
    for part in ["shop.wf:2:8", "return amuont + 1", "`amount`"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let of = |text: &str| codes(text).first().cloned().unwrap_or_default();
    assert_eq!(of("return nobody"), "undefined_name");
    assert_eq!(of("const a = 1\nreturn 2"), "unused");
    assert_eq!(of("return 1\nlog(2)"), "unreachable");
    assert_eq!(of("return Task.rum('x')"), "unknown_builtin");
    assert_eq!(of("function f(a) { return a }\nreturn f(1, 2)"), "arity");
}
