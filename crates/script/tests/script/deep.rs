//! Nothing is too deep or too long: there is an error that says so, or it works. Also where the stack is small.

use outlast_script::{Script, check, format};

use crate::memory;
use crate::stage::{Memory, run_with};

/// How often the parts are repeated.
const TIMES: usize = 100_000;
/// The longest script.
const SOURCE_BYTES_MAX: usize = 128 * 1024;
const STACK_BYTES: usize = 256 * 1024;
const MEMORY_MAX: u64 = 64 * 1024 * 1024;

/// Before, again and again, in the middle, again and again, after.
type Shape = (&'static str, &'static str, &'static str, &'static str, &'static str);

const SHAPES: &[Shape] = &[
    ("return ", "(", "1", ")", ""),
    ("return ", "[", "", "]", ""),
    ("return ", "[...", "[]", "]", ""),
    ("return ", "{ a: ", "1", "}", ""),
    ("return ", "{ ...", "{}", "}", ""),
    ("return ", "{ [", "1", "]: 1}", ""),
    ("return ", "!", "1", "", ""),
    ("return ", "- ", "1", "", ""),
    ("return ", "typeof ", "1", "", ""),
    ("return ", "await ", "1", "", ""),
    ("return ", "delete ", "a.b", "", ""),
    ("return ", "1 ? ", "1", " : 1", ""),
    ("return ", "1 ? 1 : ", "1", "", ""),
    ("return ", "(1 ? ", "1", " : 1)", ""),
    ("return ", "`${", "1", "}`", ""),
    ("return ", "a => ", "1", "", ""),
    ("return ", "() => { return ", "1", " }", ""),
    ("return ", "(a = ", "1", ") => 1", ""),
    ("return ", "function () { return ", "1", " }", ""),
    ("return ", "f(", "1", ")", ""),
    ("return ", "f?.(", "1", ")", ""),
    ("return ", "new Error(", "1", ")", ""),
    ("return ", "a[", "1", "]", ""),
    ("return 1", " + 1", "", "", ""),
    ("return 1", " ** 1", "", "", ""),
    ("return 1", " && 1", "", "", ""),
    ("return 1", " ?? 1", "", "", ""),
    ("return 1", " < 1", "", "", ""),
    ("return 'a'", " + 'b'", "", "", ""),
    ("let a; return a", ".b", "", "", ""),
    ("let a; return a", "?.b", "", "", ""),
    ("let a; return a", "[0]", "", "", ""),
    ("let f; return f", "()", "", "", ""),
    ("let f; return f", ".g(1)", "", "", ""),
    ("let a; ", "a = ", "1", "", ""),
    ("let a; ", "a += ", "1", "", ""),
    ("", "{", "", "}", ""),
    ("", "if (1) ", "log(1)", "", ""),
    ("", "if (1) { ", "log(1)", " }", ""),
    ("if (1) {}", " else if (1) {}", "", "", ""),
    ("", "while (1) ", "log(1)", "", ""),
    ("", "for (;;) ", "log(1)", "", ""),
    ("", "for (const x of [x]) ", "log(1)", "", ""),
    ("", "do ", "log(1)", " while (0)", ""),
    ("", "switch (1) { case 1: ", "log(1)", " }", ""),
    ("switch (1) {", "case 1: log(1)\n", "", "", "}"),
    ("", "try { ", "log(1)", " } catch { }", ""),
    ("", "try { } finally { ", "log(1)", " }", ""),
    ("", "function f() { ", "return 1", " }", ""),
    ("let ", "[", "a", "]", " = [1]"),
    ("let ", "{ a: ", "a", " }", " = {}"),
    ("let a; ", "[", "a", "]", " = [1]"),
    ("const f = (", "[", "a", "]", ") => a"),
    ("let ", "a, ", "b", "", ""),
    ("log(", "1, ", "1", "", ")"),
    ("return [", "1, ", "1", "", "]"),
    ("return {", "a: 1, ", "b: 1", "", "}"),
    ("return `", "${1}", "", "", "`"),
    ("return `", "a$", "", "", "`"),
    ("return \"", "\\n", "", "", "\""),
    ("", "log(1)\n", "", "", ""),
    ("", "let a = 1;", "", "", ""),
    ("", ";", "", "", ""),
    ("let a; ", "a;", "", "", ""),
    ("let a; a = [", "a,", "", "", "]"),
    ("let a; a = [", "[],", "", "", "]"),
    ("let a; a = [", "{a},", "", "", "]"),
    ("let a; ", "{a}", "", "", ""),
    ("let a; a = [", "()=>a,", "", "", "]"),
    ("", "/* a */", "", "", ""),
    ("", "// a\n", "", "", ""),
    ("", "/*", "", "", ""),
    ("", "\n", "", "", ""),
    ("", "a ", "", "", ""),
    ("", "\"", "", "", ""),
    ("", "`", "", "", ""),
    ("", "}", "", "", ""),
    ("", ")", "", "", ""),
    ("return ", "9", "", "", ""),
    ("return 0.", "9", "", "", ""),
    ("return 1e", "9", "", "", ""),
    ("let ", "a", "", "", " = 1"),
    ("workflow w() { ", "workflow v() { ", "", "}", "}"),
];

/// Runs something where the stack is small.
fn with_small_stack<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).expect("a thread");
        thread.join().expect("no panic")
    })
}

fn built((before, open, middle, close, after): &Shape, times: usize) -> String {
    [before, open.repeat(times).as_str(), middle, close.repeat(times).as_str(), after].concat()
}

fn is_read_or_refused(shape: &Shape, times: usize) {
    let text = built(shape, times);
    let before = memory::reset_peak();
    with_small_stack(|| {
        let found = check("deep.wf", &text);
        assert!(found.to_string().len() < 1_000_000, "{shape:?}");
        if let Err(found) = format("deep.wf", &text) {
            assert!(!found.list().is_empty());
        }
    });
    let used = memory::peak().saturating_sub(before);
    assert!(used < MEMORY_MAX, "{shape:?} used {used} bytes");
}

#[test]
fn whatever_is_repeated_a_hundred_thousand_times_is_read_or_refused() {
    SHAPES.iter().for_each(|shape| is_read_or_refused(shape, TIMES));
}

/// As long as a script may be: nothing refuses it for its length.
#[test]
fn whatever_is_repeated_as_often_as_it_may_is_read_or_refused() {
    for shape in SHAPES {
        let (before, open, middle, close, after) = shape;
        let times = (SOURCE_BYTES_MAX - before.len() - middle.len() - after.len()) / (open.len() + close.len());
        is_read_or_refused(shape, times);
    }
}

/// Just what is allowed: it is read, compiled, formatted, run and dropped.
#[test]
fn whatever_nests_as_deep_as_it_may_works_on_a_small_stack() {
    let mut deepest = 0;
    for shape in SHAPES {
        let fits = |times: &usize| !check("deep.wf", &built(shape, *times)).list().iter().any(|found| found.is_error());
        let times = (1..300).rev().find(fits).unwrap_or_default();
        deepest = deepest.max(times);
        let text = built(shape, times);
        with_small_stack(|| {
            if let Ok(script) = Script::compile("deep.wf", &text) {
                let once = format("deep.wf", &text).unwrap_or_else(|found| panic!("{found}"));
                let twice = format("deep.wf", &once).unwrap_or_else(|found| panic!("{found}\n{once}"));
                assert_eq!(once, twice, "{shape:?}");
                let _ = script.disassemble();
            }
        });
    }
    assert!(deepest > 200, "{deepest}");
}

#[test]
fn deep_values_are_made_compared_written_and_dropped_on_a_small_stack() {
    let text = "
        let list = [], object = {}
        for (let i = 0; i < 100000; i++) { list = [list]; object = { o: object } }
        const f = i => i
        let chain = f
        for (let i = 0; i < 100000; i++) { const before = chain; chain = x => before }
        const out = [list === object, [list].includes(list)]
        for (const write of [() => `${list}`, () => JSON.stringify(object), () => log(list), () => [list].flat(Infinity).length]) {
          try { out.push(write()) } catch (e) { out.push(e.code) }
        }
        await Task.run('echo', 1)
        return out";
    let ended = with_small_stack(|| run_with(text, &serde_json::Value::Null, Memory::Restored));
    assert_eq!(ended.result.unwrap(), serde_json::json!([false, true, "size_limit", "size_limit", "size_limit", 0]));
}
