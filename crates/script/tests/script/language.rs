//! What programs mean.

use serde_json::json;

use crate::stage::{failure, output, run_text};

#[test]
fn values_and_operators_work() {
    assert_eq!(output("return 1 + 2 * 3"), json!(7));
    assert_eq!(output("return 'a' + 1 + true + null"), json!("a1truenull"));
    assert_eq!(output("let x = 0; for (let i = 0; i < 10; i++) { if (i == 5) continue; x += i } return x"), json!(40));
    assert_eq!(
        output("const {a, b: [c, ...d], ...e} = {a: 1, b: [2, 3, 4], f: 5, g: 6}; return [a, c, d, e]"),
        json!([1, 2, [3, 4], {"f": 5, "g": 6}])
    );
    assert_eq!(
        output("const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); return fs.map(f => f())"),
        json!([0, 1, 2])
    );
    assert_eq!(output("function f(n) { return n < 2 ? 1 : n * f(n - 1) } return f(10)"), json!(3628800));
    assert_eq!(
        output("return [3, 1, 2].sort().concat([10, 9].toSorted((a, b) => a - b)).join('-')"),
        json!("1-2-3-9-10")
    );
    assert_eq!(output("const o = {a: {b: 1}}; return [o?.a?.b, o.x?.y.z, o.x ?? 7]"), json!([1, null, 7]));
}

#[test]
fn errors_are_thrown_and_caught_and_finally_runs() {
    let text = "
        const out = []
        function f(n) {
            for (const x of [1, 2, 3]) {
                try {
                    out.push('try' + x)
                    if (x == n) return 'returned ' + x
                    if (n == 9 && x == 2) break
                    if (n == 8 && x == 2) throw new Error('no', { code: 'eight' })
                } catch (e) {
                    out.push(e.code)
                } finally {
                    out.push('finally' + x)
                }
            }
            return 'end'
        }
        return [f(1), f(9), f(8), out.join()]";
    assert_eq!(
        output(text),
        json!([
            "returned 1",
            "end",
            "end",
            "try1,finally1,try1,finally1,try2,finally2,try1,finally1,try2,eight,finally2,try3,finally3"
        ])
    );
}

#[test]
fn tasks_are_awaited_wherever_an_expression_may_stand() {
    assert_eq!(output("return await Task.run('double', 4) + await Task.run('double', 1)"), json!(10));
    assert_eq!(output("let n = 0; while (await Task.run('echo', n < 3)) n++; return n"), json!(3));
    let text = "
        async function f(x) { return (await Task.run('double', x)) + 1 }
        return await Promise.all([1, 2, 3].map(f))";
    assert_eq!(output(text), json!([3, 5, 7]));
    let text =
        "try { await Task.run('fail', { code: 'declined', message: 'no' }) } catch (e) { return [e.code, e.message] }";
    assert_eq!(output(text), json!(["declined", "no"]));
}

#[test]
fn an_error_that_nobody_catches_says_where_it_came_from() {
    let failure = failure("function f() {\n  const x = null\n  return x.y\n}\nreturn f()");
    assert_eq!(failure.code, "type_error");
    assert_eq!(failure.message.lines().count(), 1, "{failure}");
    let trace = failure.trace.unwrap();
    assert!(trace.contains("at f (test.wf:3:10)") && trace.contains("| return x.y"), "{trace}");
}

#[test]
fn logs_are_emitted() {
    let ended = run_text("log('a', 1, {b: [null]}); return null");
    assert_eq!(ended.logs, [json!(["a", 1, {"b": [null]}])]);
}

/// Loops that count have a short way from one round to the next. It is taken only where it means the same.
#[test]
fn loops_that_count_mean_the_same_whatever_is_counted_with() {
    let rounds = |text: &str| output(&format!("let rounds = 0\n{text}\nreturn rounds"));
    assert_eq!(rounds("for (let i = 0; i < 5; i++) rounds++"), json!(5));
    assert_eq!(rounds("for (let i = 5; i < 5; i++) rounds++"), json!(0));
    assert_eq!(rounds("for (let i = 0.5; i < 3; ++i) rounds++"), json!(3));
    assert_eq!(rounds("for (let i = 0; i < 5; i++) { if (i == 1) continue; if (i == 3) break; rounds++ }"), json!(2));
    assert_eq!(rounds("let n = 4; for (let i = 0; i < n; i++) { rounds++; n-- }"), json!(2));
    assert_eq!(rounds("let n = 4; for (let i = 0; i < n; n--) rounds++"), json!(4));
    assert_eq!(rounds("for (let i = 0; i < i; i++) rounds++"), json!(0));
    assert_eq!(rounds("for (let i = 0; i < 9; i++) { for (let j = 0; j < i; j++) rounds++ }"), json!(36));
    assert_eq!(rounds("let i = 3; for (; i < 5; i--) { rounds++; i += 2 } rounds += i"), json!(7));
    assert_eq!(rounds("let i = 0; while (i < 7) { i += 2; rounds++ }"), json!(4));
    assert_eq!(rounds("for (let i = 0; i < 0 / 0; i++) rounds++"), json!(0));
    assert_eq!(rounds("let n = 0 / 0; for (let i = 0; i < n; i++) rounds++"), json!(0));
    assert_eq!(rounds("let s = ''; while (s < 'xxx') { s = s + 'x'; rounds++ }"), json!(3));
    let captured = "let all = []; for (let i = 0, f = () => i; i < 3; i++) { all.push(() => i); rounds += f() }
        rounds = all.map((f) => f())";
    assert_eq!(rounds(captured), json!([0, 1, 2]));
}

#[test]
fn what_goes_wrong_in_the_head_of_a_loop_is_shown_where_it_stands() {
    let shown = |text: &str| {
        let failure = failure(text);
        format!("{failure}\n{}", failure.trace.as_deref().unwrap_or_default())
    };
    let counted = shown("for (let i = 0;\n  i < 9;\n  i++) i = 'x'");
    assert!(counted.contains("++ and -- takes a number, not a string") && counted.contains("test.wf:3:3"), "{counted}");
    let limit = shown("let n = 3\nfor (let i = 0;\n  i < n;\n  i++) n = null");
    assert!(limit.contains("< takes two numbers") && limit.contains("test.wf:3:3"), "{limit}");
    let test = shown("let i = 0\nwhile (\n  i < 9\n) i = [i]");
    assert!(test.contains("< takes two numbers") && test.contains("test.wf:3:3"), "{test}");
}
