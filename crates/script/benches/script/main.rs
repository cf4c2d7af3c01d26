//! How fast scripts are read, run, saved and restored: `cargo xtask bench script`. One JSON object per line, with what must
//! be reached beside what was measured. Additions are compared with Lua's interpreter, in the same run, if it is installed.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::Bytes;
use outlast_core::event::Event;
use outlast_core::id::{Index, Key};
use outlast_core::operation::{Operations, Provided};
use outlast_core::program::{Input, Program, Progress};
use outlast_core::time::Timestamp;
use outlast_script::{Limits, RunInfo, Script, ScriptProgram};
use rustix::time::{ClockId, clock_gettime};

fn info() -> RunInfo {
    RunInfo { run_id: "r".to_owned(), workflow: "w".to_owned(), tokens: Arc::new(|key: &Key| key.to_string()) }
}

fn ops() -> Operations {
    Operations::new(Provided { now: Timestamp::EPOCH, seed: 1 })
}

fn start(script: &Script, limits: Limits) -> (ScriptProgram, Operations, Progress) {
    let (mut program, mut ops) = (script.program(info(), Bytes::from("null"), limits), ops());
    let progress = program.resume(Input::Start, &mut ops);
    (program, ops, progress)
}

/// The time this thread has had a processor: others on the machine do not count.
fn now() -> Duration {
    let told = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(told.tv_sec as u64, told.tv_nsec as u32)
}

/// The best of several runs.
fn best(mut run: impl FnMut() -> Duration) -> Duration {
    (0..5).map(|_| run()).min().unwrap()
}

fn main() {
    // `cargo bench` and `cargo test` pass arguments of their own.
    compile();
    additions();
    snapshots();
    resumes();
}

fn report(what: &str, fields: &[(&str, f64)]) {
    let rounded = |value: f64| (value * 100.0).round() / 100.0;
    let fields: serde_json::Map<String, serde_json::Value> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), serde_json::json!(rounded(*value)))).collect();
    println!("{}", serde_json::json!({ "bench": "script", "what": what, "figures": fields }));
}

fn compile() {
    let part = "
        async function step_NUMBER(order, options = {}) {
            const { id, lines = [], customer: { name, email } = {} } = order
            let total = 0
            for (const line of lines) {
                if (line.price > 100 && !options.discount) { total += line.price * line.count } else { total += line.price * line.count * 0.9 }
            }
            try {
                const receipt = await Task.run(\"charge\", { id, total, name, email }, { timeout: \"30s\", retry: 3 })
                log(`charged ${total} for ${name}: ${receipt.id}`)
                return { ...receipt, total }
            } catch (error) {
                if (error.code == \"declined\") { return null }
                throw error
            }
        }
        await step_NUMBER(Inputs)
";
    let text: String = (0..120).map(|number| part.replace("NUMBER", &number.to_string())).collect();
    let times = 100;
    let took = best(|| {
        let begun = now();
        (0..times).for_each(|_| drop(Script::compile("w.wf", &text).unwrap()));
        now() - begun
    });
    let rate = |took: Duration| text.len() as f64 * f64::from(times) / 1e6 / took.as_secs_f64();
    report("parse, check and compile", &[("megabytes_per_second", rate(took)), ("at_least", 20.0)]);
}

fn additions() {
    let text = "let s = 0; for (let i = 0; i < 10000000; i++) { s = s + i } return s";
    let script = Script::compile("w.wf", text).unwrap();
    let limits = Limits { instructions: u64::MAX, ..Limits::default() };
    let ours = || {
        let begun = now();
        assert!(matches!(start(&script, limits).2, Progress::Finished(_)));
        now() - begun
    };
    // In turns: whatever else the machine does, it does to both.
    let (mut took, mut lua) = (Duration::MAX, None::<Duration>);
    for _ in 0..5 {
        took = took.min(ours());
        if let Some(measured) = lua_additions() {
            lua = Some(lua.map_or(measured, |before| before.min(measured)));
        }
    }
    let ours = took.as_secs_f64() * 1e3;
    match lua.map(|lua| lua.as_secs_f64() * 1e3) {
        Some(lua) => report(
            "10 million additions",
            &[("milliseconds", ours), ("lua_milliseconds", lua), ("times_lua", ours / lua), ("at_most", 5.0)],
        ),
        None => {
            eprintln!("lua5.4 is not installed, so there is nothing to compare with: `apt-get install lua5.4`");
            report("10 million additions", &[("milliseconds", ours)]);
        }
    }
}

/// The same loop in Lua, which measures itself.
fn lua_additions() -> Option<Duration> {
    let text = "local c = os.clock() local s = 0 for i = 0, 9999999 do s = s + i end print(os.clock() - c)";
    let answer = Command::new("lua5.4").args(["-e", text]).output().ok()?;
    let seconds: f64 = String::from_utf8_lossy(&answer.stdout).trim().parse().ok()?;
    Some(Duration::from_secs_f64(seconds))
}

fn snapshots() {
    let declared: String = (0..100).map(|n| format!("let v{n} = {n}.5\n")).collect();
    let used: String = (0..100).map(|n| format!("v{n} + ")).collect();
    let script = Script::compile("w.wf", &format!("{declared}await Task.delay(1)\nreturn {used}0")).unwrap();
    let (program, _, _) = start(&script, Limits::default());
    let snapshot = program.snapshot().unwrap();
    let times = 50_000;
    let saved = best(|| {
        let begun = now();
        (0..times).for_each(|_| drop(program.snapshot()));
        now() - begun
    });
    let restored = best(|| {
        let begun = now();
        (0..times).for_each(|_| drop(script.restore(info(), Limits::default(), &snapshot).unwrap()));
        now() - begun
    });
    let micros = |took: Duration| took.as_secs_f64() * 1e6 / f64::from(times);
    let bytes = snapshot.data.len() as f64;
    report(
        "snapshot of 100 variables",
        &[("microseconds", micros(saved)), ("at_most", 20.0), ("bytes", bytes), ("bytes_at_most", 4096.0)],
    );
    report("restore of 100 variables", &[("microseconds", micros(restored))]);
    suspensions();
}

/// Runs a program of 100 variables to its next await and saves it, again and again.
fn suspensions() {
    let declared: String = (0..100).map(|n| format!("let v{n} = {n}.5\n")).collect();
    let used: String = (0..100).map(|n| format!("v{n} + ")).collect();
    let text = format!("{declared}for (;;) {{ v0 += await Signal.next('x'); if (v0 < 0) break }}\nreturn {used}0");
    let script = Script::compile("w.wf", &text).unwrap();
    let (mut program, mut ops, _) = start(&script, Limits::default());
    let mut place = 0;
    let took = best(|| {
        let begun = now();
        for _ in 0..30_000 {
            let key = Key::new(format!("__wait-x-{place}")).unwrap();
            let event = Event::CallbackResolved { key, callback: "c".to_owned(), payload: Bytes::from("1") };
            program.resume(Input::Fact { index: Index(place), event: &event }, &mut ops);
            ops.take();
            drop(program.snapshot().unwrap());
            place += 1;
        }
        (now() - begun) / 30_000
    });
    report("resume, suspend and save 100 variables", &[("microseconds", took.as_secs_f64() * 1e6), ("at_most", 20.0)]);
}

/// What a resume from a snapshot costs at the beginning and at the end of a long loop.
fn resumes() {
    let text = "let n = 0; for (let i = 0; i < 20000; i++) { n += await Signal.next('x') } return n";
    let script = Script::compile("w.wf", text).unwrap();
    let (mut program, mut ops, _) = start(&script, Limits::default());
    let fact = |place: u64| {
        let key = Key::new(format!("__wait-x-{place}")).unwrap();
        Event::CallbackResolved { key, callback: "c".to_owned(), payload: Bytes::from("1") }
    };
    let mut saved = Vec::new();
    for place in 0..10_000 {
        if place == 10 || place == 9_999 {
            saved.push((place, program.snapshot().unwrap(), Duration::MAX));
        }
        program.resume(Input::Fact { index: Index(place), event: &fact(place) }, &mut ops);
        ops.take();
    }
    // In turns: whatever else the machine does, it does to both.
    for _ in 0..5 {
        for (place, snapshot, least) in &mut saved {
            let (event, mut ops) = (fact(*place), self::ops());
            let begun = now();
            for _ in 0..30_000 {
                let mut restored = script.restore(info(), Limits::default(), snapshot).unwrap();
                restored.resume(Input::Fact { index: Index(*place), event: &event }, &mut ops);
                ops.take();
                drop(restored.snapshot());
            }
            *least = (*least).min((now() - begun) / 30_000);
        }
    }
    let [(_, early, early_time), (_, late, late_time)] = &saved[..] else { return };
    let micros = |time: &Duration| time.as_secs_f64() * 1e6;
    report(
        "restore, resume and save at await 10 and 10,000",
        &[
            ("microseconds_at_10", micros(early_time)),
            ("microseconds_at_10000", micros(late_time)),
            ("times", micros(late_time) / micros(early_time)),
            ("at_most", 1.2),
            ("bytes_at_10", early.data.len() as f64),
            ("bytes_at_10000", late.data.len() as f64),
        ],
    );
}
