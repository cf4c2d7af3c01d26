//! Scenarios about scripts and flows. Their programs are dropped whenever they wait, so that every call finds one that goes on
//! from a state that was kept.

use serde_json::json;

use super::{Scenario, at, scenario};
use crate::case::{Act, Timed};
use crate::tree::{Errand, How, Tree, Work};
use crate::written::{Back, Graph, Kid, Line, Node, Program, What, Written};

fn work(takes: u64) -> Work {
    Work { attempts: 3, delay: 200, takes: Some(takes), ..Work::default() }
}

fn errand(takes: u64) -> Errand {
    Errand { work: work(takes), ..Errand::default() }
}

fn task(takes: u64) -> Line {
    Line::Task(errand(takes))
}

fn node(what: What) -> Node {
    Node { what, never: false, lenient: false }
}

fn done(takes: u64) -> Node {
    node(What::Task(errand(takes)))
}

fn step(takes: u64) -> Node {
    node(What::Step(work(takes)))
}

fn nap(ms: u64) -> Node {
    node(What::Sleep(ms))
}

fn waits() -> Node {
    node(What::Wait { name: "plum".to_owned(), timeout: None })
}

fn signal(ms: u64, id: &str) -> Timed<Act> {
    let what = Act::Signal { run: 0, name: "plum".to_owned(), payload: json!(7), id: id.to_owned() };
    to_text(ms, what)
}

fn to_text(ms: u64, what: Act) -> Timed<Act> {
    at(ms, Act::Written { written: 0, what: Box::new(what) })
}

fn script(name: &'static str, line: Line, acts: Vec<Timed<Act>>) -> Scenario {
    of(name, vec![Program::Script(line)], acts)
}

fn flow(name: &'static str, nodes: Vec<Node>, acts: Vec<Timed<Act>>) -> Scenario {
    of(name, vec![Program::Flow(Graph { nodes, back: None, concurrency: 1 })], acts)
}

/// The first is started, and may start the others.
fn of(name: &'static str, programs: Vec<Program>, acts: Vec<Timed<Act>>) -> Scenario {
    let written = programs.into_iter().enumerate().map(|(place, program)| Written { program, started: place == 0 });
    let acts = std::iter::once(at(0, Act::StartWritten(0))).chain(acts).collect();
    Scenario { runs: Vec::new(), written: written.collect(), ..scenario(name, Tree::Now, acts) }
}

pub(super) fn all() -> Vec<Scenario> {
    let wait = || Line::Wait { name: "plum".to_owned(), timeout: Some(5_000) };
    let cleaned = Line::Finally(Box::new(Line::Sleep(9_000)), Box::new(task(0)));
    let several = vec![task(200), Line::Sleep(300), wait()];
    let kin = Program::Flow(Graph { nodes: vec![step(0), nap(300)], back: None, concurrency: 1 });
    let parent = Line::Seq(vec![Line::Child(Kid::Text(1)), Line::Child(Kid::Code(Tree::Sleep(200)))]);
    let back = Graph {
        nodes: vec![step(0), done(0), nap(100)],
        back: Some(Back { to: 0, from: 2, times: 2 }),
        concurrency: 1,
    };
    let items = |body| node(What::Foreach(3, 1, body));
    let beside = node(What::Parallel(vec![vec![step(4_000)], vec![nap(200), waits(), nap(200), nap(200)]]));
    let passed = Node { lenient: true, ..node(What::Step(Work { fails: 5, attempts: 2, ..work(0) })) };
    vec![
        script("a script", Line::Seq(vec![task(200), Line::Sleep(300), task(0)]), vec![]),
        script(
            "a script that waits",
            Line::Seq(vec![wait(), task(0), wait()]),
            vec![signal(600, "a"), signal(1_500, "b")],
        ),
        script(
            "a script that does the same again",
            Line::Repeat(3, Box::new(Line::Seq(vec![Line::Sleep(100), task(0)]))),
            vec![],
        ),
        script("a script that is cancelled", cleaned, vec![to_text(900, Act::Cancel(0))]),
        script("a script that does several things", Line::Together(How::All, several.clone()), vec![signal(700, "a")]),
        script("a script that does one of them", Line::Seq(vec![Line::Together(How::Race, several), task(0)]), vec![]),
        of("a script with children", vec![Program::Script(parent), kin], vec![]),
        flow("a flow", vec![done(200), nap(300), step(0), nap(300), step(0)], vec![]),
        flow("a flow over items", vec![items(vec![step(0), nap(100), done(0)]), step(0)], vec![]),
        flow("a flow with a step beside others", vec![beside, step(0)], vec![signal(700, "a")]),
        of("a flow that goes back", vec![Program::Flow(back)], vec![]),
        flow(
            "a flow that passes a failure",
            vec![nap(100), passed, nap(100), Node { never: true, ..step(0) }, step(0)],
            vec![],
        ),
        flow(
            "a flow that is paused",
            vec![nap(400), step(0), nap(400), done(0), nap(100)],
            vec![to_text(200, Act::Pause(0)), at(2_500, Act::Say { written: 0, message: 1 })],
        ),
        flow(
            "a flow whose node is skipped",
            vec![nap(100), waits(), step(0), nap(100)],
            vec![at(700, Act::Node { written: 0, nth: 0, skip: true })],
        ),
        flow(
            "a flow whose node begins again",
            vec![nap(100), waits(), step(0), nap(100)],
            vec![at(700, Act::Node { written: 0, nth: 0, skip: false }), signal(1_500, "a")],
        ),
    ]
}
