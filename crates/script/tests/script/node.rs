//! The same programs mean the same in Node.js: written ones, and random ones.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use outlast_core::failure::Failure;
use outlast_core::program::Progress;
use outlast_script::Script;
use serde_json::Value as Json;

use crate::ordered::Ordered;
use crate::random::{generate, program};
use crate::stage::{Memory, Stage, run_with, tasks};

const EXPRESSIONS: &str = include_str!("../node/expressions.txt");
const PROGRAMS: &str = include_str!("../node/programs.txt");
const DIFFERENT: &str = include_str!("../node/different.txt");
const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/run.mjs");

/// Random programs in each run of the tests. `SCRIPT_SEED` begins elsewhere, `SCRIPT_PROGRAMS` runs more or fewer.
const RANDOM: u64 = 20_000;
/// Programs for one process of Node.js.
const BATCH: u64 = 1_000;

/// A program, and the seed of the order in which what it starts comes to its end. 0 is the order of the starts.
type Case = (String, u32);

/// Name and text of each written program.
pub(crate) fn programs() -> Vec<(String, String)> {
    let lines = EXPRESSIONS.lines().filter(|line| !line.trim().is_empty());
    // JSON has one zero, and neither NaN nor infinity.
    let shown = "typeof value === \"number\" ? `${value} ${1 / value}` : \"\"";
    let expressions = lines.map(|line| (line.to_owned(), format!("const value = ({line})\nreturn [value, {shown}]")));
    let blocks = PROGRAMS.split("### ").skip(1).map(|block| {
        let (name, text) = block.split_once('\n').expect("a name and a text");
        (name.to_owned(), text.to_owned())
    });
    expressions.chain(blocks).collect()
}

/// What a program came to: what it logged, what it returned or how it failed.
struct Came {
    logs: Vec<Ordered>,
    result: Result<Ordered, Failure>,
}

/// What Node.js makes of programs.
fn ask_node(name: &str, cases: &[Case]) -> Vec<Ordered> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.json", std::process::id()));
    std::fs::write(&path, serde_json::to_string(cases).unwrap()).unwrap();
    let input = Stdio::from(std::fs::File::open(&path).unwrap());
    let answered = Command::new("node").arg(RUN).stdin(input).output().unwrap_or_else(|problem| {
        panic!("`node` does not start ({problem}). This test compares with Node.js: install version 20 or newer, on Debian with `apt-get install nodejs`")
    });
    let _ = std::fs::remove_file(&path);
    let complaint = String::from_utf8_lossy(&answered.stderr);
    let answers: Vec<Ordered> =
        serde_json::from_slice(&answered.stdout).unwrap_or_else(|problem| panic!("Node.js: {problem}\n{complaint}"));
    assert_eq!(answers.len(), cases.len());
    answers
}

/// What our own machine makes of one.
fn came((text, seed): &Case, memory: Memory) -> Came {
    let script = Script::compile("random.wf", text).unwrap_or_else(|found| panic!("{found}\n{text}"));
    let mut stage = Stage::shuffled(&script, "random", &Json::Null, tasks, *seed);
    stage.run(memory);
    let result = match &stage.progress {
        Progress::Finished(output) => Ok(Ordered::read(output)),
        Progress::Failed(failure) => Err(failure.clone()),
        other => panic!("not at its end: {other:?}; it asked for {:?}", stage.requests),
    };
    Came { logs: stage.told.iter().map(|told| Ordered::read(told)).collect(), result }
}

/// Whether both mean the same. Messages of the language itself are its own: of such an error the kind is compared.
fn same(found: &Came, expected: &Ordered) -> bool {
    if expected["logs"] != Ordered::List(found.logs.clone()) {
        return false;
    }
    let failure = match &found.result {
        Ok(output) => return expected.get("output") == Some(output),
        Err(failure) => failure,
    };
    let data = failure.data.as_ref().map_or(Ordered::Null, |data| Ordered::read(data));
    let Some(error) = expected.get("error") else { return false };
    let says = |message: &Ordered| message.text() == Some(failure.message.as_str());
    match error["name"].text() {
        Some("Error") => {
            error["code"].text() == Some(&failure.code) && says(&error["message"]) && data == error["data"]
        }
        Some(name) => code_of(name) == failure.code,
        None => match &error["thrown"] {
            Ordered::Null => failure.code == "error",
            thrown @ Ordered::Object(_) => data == *thrown,
            _ => says(&error["shown"]),
        },
    }
}

/// The code of JavaScript's own errors.
fn code_of(name: &str) -> &str {
    match name {
        "TypeError" => "type_error",
        "RangeError" => "range_error",
        "ReferenceError" => "reference_error",
        "SyntaxError" => "syntax_error",
        "AggregateError" => "aggregate_error",
        other => other,
    }
}

/// Those of the cases that do not mean the same, in one of the ways in which they can be run.
fn differences(cases: &[Case], expected: &[Ordered]) -> Vec<String> {
    let each = cases.iter().zip(expected);
    let all = each.flat_map(|pair| WAYS.iter().map(move |memory| (pair, *memory)));
    all.filter_map(|((case, expected), memory)| difference(case, expected, memory)).collect()
}

fn difference(case: &Case, expected: &Ordered, memory: Memory) -> Option<String> {
    let (text, seed) = case;
    let found = match std::panic::catch_unwind(|| came(case, memory)) {
        Ok(found) if same(&found, expected) => return None,
        Ok(found) => found,
        Err(_) => return Some(format!("order {seed}, {memory:?}\n{text}\n  Node.js {expected}\n  found   a panic")),
    };
    let logged = match &expected["logs"] {
        Ordered::List(logged) => &logged[..],
        _ => &[],
    };
    let alike = found.logs.iter().zip(logged).take_while(|(one, other)| one == other).count();
    let shown = |part: Option<&Ordered>| part.map_or("-".to_owned(), Ordered::to_string);
    let parts = [logged.get(alike), expected.get("output"), expected.get("error"), expected.get("refused")];
    let (theirs, ours) = (parts.map(shown).join(" "), shown(found.logs.get(alike)));
    let result = found.result.map(|output| output.to_string());
    Some(format!(
        "order {seed}, {memory:?}\n{text}\n  after {alike} logs\n  Node.js {theirs}\n  found   {ours} {result:?}"
    ))
}

/// Kept as it is, saved and restored at every fact, and rebuilt from the journal at every fact.
const WAYS: [Memory; 3] = [Memory::Hot, Memory::Restored, Memory::Rebuilt];

fn assert_none(differences: &[String], of: usize) {
    let shown = &differences[..differences.len().min(90)];
    assert!(differences.is_empty(), "{} of {of} differ, for instance\n{}", differences.len(), shown.join("\n\n"));
}

fn written() -> Vec<Case> {
    let cases: Vec<Case> = programs().into_iter().map(|(_, text)| (text, 0)).collect();
    assert!(cases.len() >= 450, "{} programs", cases.len());
    cases
}

/// Also when they are restored at every fact, and rebuilt from their journal at every fact.
#[test]
fn written_programs_mean_what_they_mean_in_node() {
    let cases = written();
    assert_none(&differences(&cases, &ask_node("written", &cases)), cases.len());
}

/// Each line is an expression and what it gives here, or the code of its error.
#[test]
fn what_differs_from_javascript_on_purpose_differs_as_written() {
    let lines: Vec<(&str, &str)> = DIFFERENT.lines().filter_map(|line| line.split_once(" ## ")).collect();
    let cases: Vec<Case> = lines.iter().map(|(line, _)| (format!("return ({line})"), 0)).collect();
    let theirs = ask_node("different", &cases);
    let mut wrong = Vec::new();
    for (((line, expected), case), theirs) in lines.iter().zip(&cases).zip(&theirs) {
        // What is no program here must be one there.
        let found = Script::compile("random.wf", &case.0).is_ok().then(|| came(case, Memory::Hot));
        let (shown, is_same) = match &found {
            Some(found @ Came { result: Ok(output), .. }) => (output.to_string(), same(found, theirs)),
            Some(found @ Came { result: Err(failure), .. }) => (failure.code.clone(), same(found, theirs)),
            None => ("refused".to_owned(), theirs.get("refused").is_some()),
        };
        if shown != *expected || is_same {
            wrong.push(format!("{line} ## {shown}, and in Node.js {theirs}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn formatted_programs_mean_the_same_and_formatting_twice_changes_nothing() {
    for (name, text) in programs() {
        let once = outlast_script::format("test.wf", &text).unwrap_or_else(|found| panic!("{found}"));
        let twice = outlast_script::format("test.wf", &once).unwrap_or_else(|found| panic!("{found}\n{once}"));
        assert_eq!(twice, once, "{name}");
        let (before, after) = (run_with(&text, &Json::Null, Memory::Hot), run_with(&once, &Json::Null, Memory::Hot));
        assert_eq!(before.logs, after.logs, "{name}\n{once}");
        assert_eq!(
            before.result.map_err(|error| error.code),
            after.result.map_err(|error| error.code),
            "{name}\n{once}"
        );
    }
}

/// The order of a random program: that of the starts, or another one.
pub(crate) fn order(seed: u64) -> u32 {
    if seed.is_multiple_of(4) { 0 } else { seed as u32 }
}

/// Also with a crash at every suspension, restored and rebuilt. Most of the time is spent in Node.js and in making programs: each
/// way of running them adds about a twentieth.
#[test]
fn random_programs_mean_what_they_mean_in_node() {
    let number =
        |name: &str, missing: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(missing);
    let (first, count) = (number("SCRIPT_SEED", 1_000_000), number("SCRIPT_PROGRAMS", RANDOM));
    let batches: Vec<u64> = (first..first + count).step_by(BATCH as usize).collect();
    let part = |batches: &[u64]| {
        let mut wrong = Vec::new();
        for start in batches {
            let seeds = *start..(start + BATCH).min(first + count);
            let cases: Vec<Case> = seeds.map(|seed| (program(seed), order(seed))).collect();
            let expected = ask_node(&format!("random-{start}"), &cases);
            wrong.extend(differences(&cases, &expected));
        }
        wrong
    };
    let (one, other) = batches.split_at(batches.len() / 2);
    let wrong = std::thread::scope(|scope| {
        let beside = scope.spawn(|| part(other));
        let mut wrong = part(one);
        wrong.extend(beside.join().expect("no panic"));
        wrong
    });
    assert_none(&wrong, count as usize);
}

/// Kinds of syntax that JavaScript does not have.
const OURS: &[&str] = &["StmtKind::Workflow", "FunctionKind::Workflow"];

/// How a kind of syntax is told from others of the same name, in a printed tree.
fn marks(kind: &str, variant: &str) -> Vec<String> {
    let ends = [" {", "(", ",", " }"];
    let before = match kind {
        "ExprKind" => "Expr { kind: ",
        "StmtKind" => "Stmt { kind: ",
        "PatternKind" => "Pattern { kind: ",
        "FunctionKind" | "DeclareKind" => "kind: ",
        "UnaryOp" | "BinaryOp" | "LogicalOp" | "UpdateOp" | "AssignOp" => "op: ",
        _ => "",
    };
    ends.iter().map(|end| format!("{before}{variant}{end}")).collect()
}

/// The kinds of syntax there are, from where they are declared.
fn kinds() -> Vec<(String, String)> {
    let mut kinds = Vec::new();
    let mut inside = None;
    for line in include_str!("../../src/syntax/ast.rs").lines() {
        if let Some(name) = line.strip_prefix("pub(crate) enum ") {
            inside = name.strip_suffix(" {").map(str::to_owned);
        } else if line == "}" {
            inside = None;
        } else if let (Some(kind), Some(variant)) = (&inside, line.strip_prefix("    ")) {
            let variant: String = variant.chars().take_while(char::is_ascii_alphanumeric).collect();
            if variant.starts_with(|letter: char| letter.is_ascii_uppercase()) {
                kinds.push((kind.clone(), variant));
            }
        }
    }
    kinds
}

/// What the kinds do not say.
const FLAGS: &[&str] = &[
    "optional: true",
    "optional: false",
    "spread: true",
    "is_prefix: true",
    "is_prefix: false",
    "over_keys: true",
    "over_keys: false",
    "default: Some",
    "rest: Some",
    "is_new: true",
    "says_async: true",
    "shorthand: true",
    "shorthand: false",
    "declare: None",
    "catch: None",
    "finally: Some",
    "pattern: None",
    "otherwise: Some",
    "Return(None)",
    "items: [Some(PatternItem",
    "None, Some(PatternItem",
    "Binary(Power)",
    "Logical(Coalesce)",
];

#[test]
fn random_programs_reach_every_kind_of_syntax_and_every_function_that_javascript_has_too() {
    const LOOKED_AT: u64 = 1_500;
    let (mut trees, mut used) = (String::new(), BTreeSet::new());
    for seed in 1_000_000..1_000_000 + LOOKED_AT {
        let random = generate(seed);
        trees.push_str(&outlast_script::syntax_tree(&random.text));
        used.extend(random.used);
    }
    let kinds = kinds();
    assert!(kinds.len() > 70, "{} kinds", kinds.len());
    let mut missing: Vec<String> = Vec::new();
    for (kind, variant) in &kinds {
        let name = format!("{kind}::{variant}");
        let is_there = marks(kind, variant).iter().any(|mark| trees.contains(mark));
        if is_there == OURS.contains(&name.as_str()) {
            missing.push(name);
        }
    }
    missing.extend(FLAGS.iter().filter(|flag| !trees.contains(**flag)).map(|flag| (*flag).to_owned()));
    let without: BTreeMap<&str, &str> = NOT_COMPARED.iter().copied().collect();
    for name in outlast_script::builtin_names() {
        if !used.contains(name) && !without.contains_key(name) {
            missing.push(name.to_owned());
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "never written by the generator, in {LOOKED_AT} programs");
}

/// Functions that random programs do not call, and why.
const NOT_COMPARED: &[(&str, &str)] = &[
    ("Approval.request", "JavaScript has none"),
    ("Callback.create", "JavaScript has none"),
    ("Error", "written with new"),
    ("Id.uuid", "random"),
    ("Math.random", "random"),
    ("RangeError", "written with new"),
    ("Signal.next", "JavaScript has none"),
    ("State.set", "JavaScript has none"),
    ("Task.cancel", "JavaScript has none"),
    ("Task.start", "JavaScript has none"),
    ("Time.now", "the time"),
    ("Timer.until", "the time"),
    ("TypeError", "written with new"),
    ("Workflow.continueAsNew", "JavaScript has none"),
    ("Workflow.run", "JavaScript has none"),
    ("Workflow.start", "JavaScript has none"),
    ("console.log", "log, under another name"),
    ("function.toString", "JavaScript gives the source text"),
    ("log", "every program does, and it is what is compared"),
    ("string.localeCompare", "JavaScript knows languages"),
    ("wait_for_signal", "JavaScript has none"),
];
