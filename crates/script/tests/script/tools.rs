//! The formatter, the trace and the disassembler.

use outlast_core::Bytes;
use outlast_core::id::Index;
use outlast_script::{Script, Trace, format, trace};
use serde_json::json;

use crate::stage::{Memory, Stage, info, tasks};

fn formatted(text: &str) -> String {
    let once = format("test.wf", text).unwrap_or_else(|found| panic!("{found}"));
    let twice = format("test.wf", &once).unwrap_or_else(|found| panic!("{found}\n{once}"));
    assert_eq!(twice, once, "formatting twice changes it");
    once
}

#[test]
fn a_script_is_laid_out() {
    let text = "workflow   checkout( order ){\nconst {id,total=0}=order;if(total>100&&order.vip){await Task.run('review',{id,total})}else if(!id)return null\nfor(const line of order.lines)log(line)\n\n\n\ntry{await pay()}catch(e){throw e}finally{log('done')}\nreturn [1,2,...order.lines]}";
    let expected = "workflow checkout(order) {
  const { id, total = 0 } = order
  if (total > 100 && order.vip) {
    await Task.run(\"review\", { id, total })
  } else if (!id) return null
  for (const line of order.lines) log(line)

  try {
    await pay()
  } catch (e) {
    throw e
  } finally {
    log(\"done\")
  }
  return [1, 2, ...order.lines]
}
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn comments_stay_where_they_belong() {
    let text = "// first\n\n/* second */ let a = 1 // third\n// fourth\nfunction f() {\n  // fifth\n}\nconst o = {\n  // sixth\n  a: 1, // seventh\n  b: 2,\n  // eighth\n}\nf(/* ninth */ o, a)\nif (a) { log(1) /* tenth */ } // eleventh\nreturn a + /* twelfth */ 1\n// last\n";
    let expected = "// first

/* second */
let a = 1 // third
// fourth
function f() {
  // fifth
}
const o = {
  // sixth
  a: 1, // seventh
  b: 2,
  // eighth
}
f(
  /* ninth */
  o,
  a,
)
if (a) {
  log(1) /* tenth */
} // eleventh
/* twelfth */
return a + 1
// last
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn every_comment_is_kept_once_wherever_it_stands() {
    let tokens = [
        "workflow", "w", "(", "x", ",", "{", "a", "=", "1", "}", ")", "{", "const", "l", "=", "[", "x", ",", "a", "]",
        ";", "if", "(", "l", "[", "0", "]", ")", "{", "log", "(", "l", ",", "{", "k", ":", "2", "}", ")", ";", "}",
        "else", "{", "x", "=", "a", "?", "1", ":", "2", ";", "}", "switch", "(", "a", ")", "{", "case", "1", ":",
        "log", "(", "`t`", ")", ";", "}", "return", "await", "l", ".", "map", "(", "y", "=>", "y", "+", "1", ")", ";",
        "}",
    ];
    for place in 0..=tokens.len() {
        let mut parts: Vec<&str> = tokens.to_vec();
        parts.insert(place, "/* here */");
        let text = parts.join(" ");
        let formatted = formatted(&text);
        assert_eq!(formatted.matches("/* here */").count(), 1, "at {place}\n{text}\n{formatted}");
    }
}

#[test]
fn long_lines_are_broken_and_short_ones_joined() {
    let text = "const total = await Task.run(\"compute_the_total_of_everything\", firstArgument, secondArgument + thirdArgument + fourthArgument)\nconst list = [\n1,\n2\n]\nconst f = async (a, b) => { return a }";
    let expected = "const total = await Task.run(
  \"compute_the_total_of_everything\",
  firstArgument,
  secondArgument + thirdArgument + fourthArgument,
)
const list = [1, 2]
const f = async (a, b) => {
  return a
}
";
    assert_eq!(formatted(text), expected);
}

#[test]
fn a_statement_that_begins_with_a_bracket_is_kept_apart_from_the_line_before() {
    assert_eq!(
        formatted("let a = 1; let b = 2; [a, b] = [b, a]; (a)"),
        "let a = 1\nlet b = 2\n;[a, b] = [b, a]\n;(a)\n"
    );
    // What is written counts: a number is put into parentheses before a dot.
    assert_eq!(formatted("a; 1e9.toString(); 5"), "a\n;(1e9).toString()\n5\n");
    assert_eq!(formatted("- -a; - --a; +(+a); 'it\\'s'; 'a'"), "- -a\n;- --a\n;+(+a)\n'it\\'s'\n\"a\"\n");
}

#[test]
fn what_cannot_be_read_is_not_formatted() {
    assert!(format("test.wf", "let = 1").is_err());
    assert_eq!(format("test.wf", "").unwrap(), "");
    assert_eq!(format("test.wf", "// only").unwrap(), "// only\n");
}

fn traced(at: u64) -> Trace {
    let text = "const order = Inputs\nlet total = 0\nfor (const line of order.lines) {\n  total += await Task.run('double', line)\n}\nconst check = async n => {\n  const doubled = n * 2\n  await Task.delay(doubled)\n  return doubled\n}\nreturn await check(total)";
    let script = Script::compile("order.wf", text).unwrap_or_else(|found| panic!("{found}"));
    let input = json!({ "lines": [1, 2] });
    let mut stage = Stage::new(&script, "order", &input, tasks);
    stage.run(Memory::Hot);
    trace(&script, info("order"), Bytes::from(input.to_string()), &stage.journal, Index(at))
}

fn variables(trace: &Trace, call: usize) -> String {
    let list = trace.waiting[call].variables.iter().map(|(name, value)| format!("{name}={value}"));
    list.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_trace_shows_line_and_variables_at_any_journal_index() {
    let start = traced(0);
    assert_eq!(
        (start.waiting[0].position.line, start.waiting[0].line.as_str()),
        (4, "total += await Task.run('double', line)")
    );
    assert_eq!(start.waiting[0].operations, ["__task-double-0"]);
    assert_eq!(variables(&start, 0), "line=1 order={\"lines\":[1,2]} total=0");
    let second = traced(1);
    assert_eq!(variables(&second, 0), "line=2 order={\"lines\":[1,2]} total=2");
    let third = traced(2);
    let functions: Vec<&str> = third.waiting.iter().map(|call| call.function.as_str()).collect();
    let inner = third.waiting.iter().position(|call| call.function == "check").expect("the inner call");
    assert_eq!(functions.len(), 2);
    assert_eq!(variables(&third, inner), "doubled=12 n=6");
    assert_eq!(third.waiting[inner].operations, ["__sleep-0"]);
    let end = traced(3);
    assert_eq!(end.end, Some(outlast_core::program::Progress::Finished(Bytes::from("12"))));
}

#[test]
fn code_can_be_read() {
    let script = Script::compile("test.wf", "const l = [1, 'x']\nreturn l.map(y => await Task.run('t', y))").unwrap();
    let shown = script.disassemble();
    assert!(shown.contains("async function (file): 0 parameters"), "{shown}");
    assert!(shown.contains("CallMethod \"map\" with 1"), "{shown}");
    assert!(shown.contains("CallNative Task.run with 2"), "{shown}");
}

#[test]
fn the_version_depends_on_the_text_and_not_on_the_name() {
    let hash = |name, text| Script::compile(name, text).unwrap().version().to_owned();
    assert_eq!(hash("a.wf", "return 1"), hash("b.wf", "return 1"));
    assert_ne!(hash("a.wf", "return 1"), hash("a.wf", "return 2"));
}
