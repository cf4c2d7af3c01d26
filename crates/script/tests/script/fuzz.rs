//! Whatever comes in, nothing panics, hangs or takes much memory.
//!
//! Each test goes on for its seconds, with inputs that differ from run to run; one that fails is printed and kept.

#![expect(clippy::disallowed_methods, reason = "a test that goes on for some seconds reads the clock")]

use std::time::{Duration, Instant};

use outlast_core::commit::Snapshot;
use outlast_core::id::Index;
use outlast_core::program::Progress;
use outlast_script::{Limits, Script, check, format};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value as Json;

use crate::memory;
use crate::random::program;
use crate::stage::{Memory, Stage, info, tasks};

/// For each of the five tests: a minute in all.
const SECONDS: u64 = 12;
const SECONDS_QUICK: u64 = 1;
/// An input that takes longer than this hangs.
const CASE_MAX: Duration = Duration::from_secs(20);
/// What a case may use beyond what the test used before it.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

const WORDS: &[&str] = &[
    "let",
    "const",
    "if",
    "else",
    "while",
    "do",
    "for",
    "of",
    "in",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ":",
    "?",
    ".",
    "?.",
    "=>",
    "=",
    "+=",
    "??=",
    "==",
    "===",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "!",
    "&&",
    "||",
    "??",
    "...",
    "`",
    "${",
    "\"",
    "'",
    "a",
    "b",
    "f",
    "1",
    "2.5",
    "0x",
    "1e9",
    "return",
    "throw",
    "try",
    "catch",
    "finally",
    "await",
    "async",
    "function",
    "workflow",
    "switch",
    "case",
    "default",
    "break",
    "continue",
    "new",
    "Error",
    "Task",
    "run",
    "delete",
    "typeof",
    "instanceof",
    "null",
    "true",
    "\n",
    "/*",
    "*/",
    "//",
    "++",
    "--",
    "\\",
    "é",
    "😀",
    "\u{0}",
];

/// Runs a test with ever new inputs until its time is over.
fn fuzz<S: Strategy>(inputs: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seconds = if std::env::var_os("OUTLAST_QUICK").is_some() { SECONDS_QUICK } else { SECONDS };
    let begun = Instant::now();
    let config = Config { cases: u32::MAX, source_file: Some(file!()), ..Config::default() };
    let mut runner = TestRunner::new(config.clone());
    // In rounds, because a runner does not know of time.
    while begun.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..20 {
            let tree = inputs.new_tree(&mut runner).expect("an input");
            let case = |value: S::Value| {
                let before = memory::reset_peak();
                let begun = Instant::now();
                test(value)?;
                let (took, used) = (begun.elapsed(), memory::peak().saturating_sub(before));
                prop_assert!(took < CASE_MAX, "it took {took:?}");
                prop_assert!(used < BYTES_MAX, "it used {used} bytes");
                Ok(())
            };
            let mut once = TestRunner::new_with_rng(Config { cases: 1, ..config.clone() }, runner.new_rng());
            if let Err(problem) = once.run_one(tree, case) {
                panic!("{problem}");
            }
        }
    }
}

/// Checks, formats and runs a text; formatting what is right twice changes nothing.
fn survive(text: &str) {
    let found = check("fuzz.wf", text);
    let _ = found.to_string();
    if let Ok(once) = format("fuzz.wf", text) {
        let twice = format("fuzz.wf", &once).unwrap_or_else(|found| panic!("{found}\nfrom {text:?}\nto {once}"));
        assert_eq!(twice, once, "{text:?}");
    }
    if let Ok(script) = Script::compile("fuzz.wf", text) {
        let _ = script.disassemble();
        let workflow = script.workflows()[0].to_owned();
        let limits = Limits { instructions: 20_000, heap_bytes: 4_000_000, ..Limits::default() };
        go_on(&mut Stage::with_limits(&script, &workflow, &Json::Null, tasks, limits));
    }
}

/// A loop that waits in each round may go on for ever, and may do so: a while is enough.
fn go_on(stage: &mut Stage) {
    const FACTS_MAX: usize = 100;
    for _ in 0..FACTS_MAX {
        if stage.progress != Progress::Blocked || !stage.step(Memory::Hot) {
            return;
        }
    }
}

#[test]
fn any_bytes_are_read() {
    fuzz(proptest::collection::vec(any::<u8>(), 0..300), |bytes| {
        survive(&String::from_utf8_lossy(&bytes));
        Ok(())
    });
}

#[test]
fn any_tokens_are_read() {
    fuzz(proptest::collection::vec(proptest::sample::select(WORDS), 0..60), |words| {
        survive(&words.join(" "));
        survive(&words.concat());
        Ok(())
    });
}

#[test]
fn any_tokens_repeated_a_hundred_thousand_times_are_read() {
    let inputs = (proptest::collection::vec(proptest::sample::select(WORDS), 1..6), 1_usize..100_000);
    fuzz(inputs, |(words, times)| {
        let text = format!("{} ", words.join(" ")).repeat(times);
        let found = check("fuzz.wf", &text);
        let _ = found.to_string();
        if let Ok(once) = format("fuzz.wf", &text) {
            drop(once);
        }
        Ok(())
    });
}

#[test]
fn programs_with_a_part_cut_out_or_doubled_are_read() {
    fuzz((any::<u64>(), 0_usize..1_000, 0_usize..40), |(seed, from, length)| {
        let letters: Vec<char> = program(seed).chars().collect();
        let from = from.min(letters.len());
        let to = (from + length).min(letters.len());
        let cut: String = letters[..from].iter().chain(&letters[to..]).collect();
        survive(&cut);
        let doubled: String = letters[..to].iter().chain(&letters[from..]).collect();
        survive(&doubled);
        Ok(())
    });
}

/// What happens to the bytes of a snapshot.
#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Replace(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    // The longest lists and texts that the format can announce.
    let bombs: &[&[u8]] =
        &[&[0xdd, 0xff, 0xff, 0xff, 0xff], &[0xdb, 0x7f, 0xff, 0xff, 0xff], &[0xdf, 0xff, 0xff, 0xff, 0xff]];
    let bombs: Vec<Vec<u8>> = bombs.iter().map(|bomb| bomb.to_vec()).collect();
    let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        6 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        2 => (any::<prop::sample::Index>(), bytes()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        2 => (any::<prop::sample::Index>(), proptest::sample::select(bombs)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => bytes().prop_map(Damage::Replace),
    ]
}

/// Where the content begins: after magic, version and checksum.
const HEADER: usize = 13;

fn damaged(good: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut body = good[HEADER..].to_vec();
    for damage in damages {
        match damage {
            Damage::Set(at, byte) if !body.is_empty() => {
                let at = at.index(body.len());
                body[at] = *byte;
            }
            Damage::Set(..) => {}
            Damage::Cut(at) => body.truncate(at.index(body.len() + 1)),
            Damage::Insert(at, bytes) => {
                let at = at.index(body.len() + 1);
                body.splice(at..at, bytes.iter().copied());
            }
            Damage::Replace(bytes) => body.clone_from(bytes),
        }
    }
    // With a checksum that fits, so that what is behind it is looked at too.
    let sum = outlast_script::snapshot_checksum(&body).to_le_bytes();
    [&good[..5], &sum, &body].concat()
}

#[test]
fn damaged_snapshots_are_refused_or_run() {
    let inputs = (0_u64..2_000, 0_usize..4, proptest::collection::vec(damage(), 1..5));
    fuzz(inputs, |(seed, steps, damages)| {
        let script = Script::compile("fuzz.wf", &program(seed)).expect("a good program");
        let mut stage = Stage::new(&script, "fuzz", &Json::Null, tasks);
        for _ in 0..steps {
            stage.step(Memory::Hot);
        }
        let Some(good) = stage.snapshot() else { return Ok(()) };
        let data = damaged(&good.data, &damages);
        let snapshot = Snapshot { index: Index(0), definition: good.definition.clone(), data: data.into() };
        let limits = Limits { instructions: 50_000, heap_bytes: 4_000_000, ..Limits::default() };
        if let Ok(program) = script.restore(info("fuzz"), limits, &snapshot) {
            go_on(stage.replace(program));
        }
        Ok(())
    });
}
