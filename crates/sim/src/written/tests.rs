use outlast::Failure;
use outlast::testing::World;
use serde_json::json;

use super::*;
use crate::draw::draw;
use crate::model::{Decision, Sent, Told};
use crate::tree::{Errand, How, Work};

fn work(fails: u32, attempts: u32) -> Work {
    Work { fails, attempts, takes: Some(0), ..Work::default() }
}

fn script(line: Line) -> Written {
    Written { program: Program::Script(line), started: true }
}

fn flow(nodes: Vec<Node>) -> Written {
    Written { program: Program::Flow(Graph { nodes, back: None, concurrency: 1 }), started: true }
}

fn node(what: What) -> Node {
    Node { what, never: false, lenient: false }
}

fn known(told: Told) -> Known<'static> {
    Known { run: "r", told: [("r".to_owned(), told)].into(), calm: true, ..Known::default() }
}

fn takes(written: &Written, gave: serde_json::Value, told: Told) -> bool {
    accepts(written, &Came::Output(gave), &known(told)).is_ok()
}

fn signal(payload: u64) -> Told {
    let sent = Sent { name: "plum".to_owned(), payload: json!(payload), id: "a".to_owned(), aimed: None };
    Told { signals: vec![sent], ..Told::default() }
}

#[test]
fn every_text_that_is_drawn_can_be_read_in_both_editions() {
    let mut read = 0;
    for case in (0..400).map(draw) {
        for edition in EDITIONS {
            let texts = case.written.iter().enumerate().map(|(place, one)| (one.is_flow(), one.text(place, edition)));
            for (is_flow, (file, text)) in texts {
                let world = World::new();
                let engine = world.engine();
                let engine = if is_flow { engine.flow(&file, &text) } else { engine.script(&file, &text) };
                let mistakes = world.block_on(async { engine.start().await.err().map(|error| error.to_string()) });
                assert_eq!(mistakes, None, "{text}");
                read += 1;
            }
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn a_script_gives_what_its_parts_give() {
    let wait = Line::Wait { name: "plum".to_owned(), timeout: None };
    let text = script(Line::Seq(vec![Line::Task(Errand { work: work(1, 3), ..Errand::default() }), wait]));
    let gave =
        |attempt: u32, payload: u32| json!({ "edition": 1, "gave": [attempt, { "signal": payload }], "after": [] });
    assert!(takes(&text, gave(2, 7), signal(7)));
    assert!(!takes(&text, gave(1, 7), signal(7)), "the first attempt fails");
    assert!(!takes(&text, gave(2, 8), signal(7)), "nobody sent that");
    assert!(!takes(&text, json!({ "edition": 3, "gave": [2, { "signal": 7 }], "after": [] }), signal(7)));
}

#[test]
fn what_comes_after_is_done_once() {
    let text = script(Line::Finally(Box::new(Line::Sleep(1)), Box::new(Line::Sleep(2))));
    let gave = |after: serde_json::Value| json!({ "edition": 1, "gave": null, "after": after });
    assert!(takes(&text, gave(json!([{ "at": "0", "gave": null }])), Told::default()));
    assert!(!takes(&text, gave(json!([])), Told::default()));
    assert!(!takes(&text, gave(json!([{ "at": "0", "gave": null }, { "at": "0", "gave": null }])), Told::default()));
}

#[test]
fn the_shortest_sleep_wins_a_race_and_nothing_is_cancelled_by_itself() {
    let text = script(Line::Together(How::Race, vec![Line::Sleep(200), Line::Sleep(1)]));
    let won = |number: u32| json!({ "edition": 1, "gave": { "item_id": number, "result": null }, "after": [] });
    assert!(takes(&text, won(1), Told::default()) && !takes(&text, won(0), Told::default()));
    let text = script(Line::Try(Box::new(Line::Sleep(1))));
    let caught = json!({ "edition": 1, "gave": { "code": "cancelled", "message": "" }, "after": [] });
    assert!(!takes(&text, caught.clone(), Told::default()));
    assert!(takes(&text, caught, Told { cancels: 1, ..Told::default() }));
}

#[test]
fn a_flow_gives_what_its_nodes_give_and_leaves_out_what_was_not_to_run() {
    let never = Node { never: true, ..node(What::Sum(1)) };
    let items = node(What::Foreach(2, 1, vec![node(What::Sum(4))]));
    let text = flow(vec![never, items]);
    let one = |index: u32, sum: u32| json!({ "index": index, "item": index, "outputs": { "n1_0_0": sum } });
    let gave = |iterations: Vec<serde_json::Value>| {
        let count = iterations.len();
        json!({ "edition": 2, "said": [], "n1": { "iterations": iterations, "count": count } })
    };
    assert!(takes(&text, gave(vec![one(0, 5), one(1, 5)]), Told::default()));
    assert!(!takes(&text, gave(vec![one(0, 5)]), Told::default()), "an iteration is missing");
    assert!(!takes(&text, gave(vec![one(0, 5), one(1, 5), one(2, 5)]), Told::default()), "one too many");
    assert!(!takes(&text, gave(vec![one(0, 5), one(1, 6)]), Told::default()), "a wrong sum");
    let mut ran = gave(vec![one(0, 5), one(1, 5)]);
    ran["n0"] = json!(2);
    assert!(!takes(&text, ran, Told::default()), "it was not to run");
}

#[test]
fn an_approval_is_one_that_was_given_there() {
    let text = flow(vec![node(What::Approve { timeout: None, either: false })]);
    let gave = json!({ "edition": 1, "said": [], "n0": { "approved": true } });
    let told =
        |key: &str, approved| Told { decisions: vec![Decision { key: key.to_owned(), approved }], ..Told::default() };
    assert!(takes(&text, gave.clone(), told("n0", true)) && takes(&text, gave.clone(), told("pass-2/n0#2", true)));
    assert!(!takes(&text, gave.clone(), told("n1", true)) && !takes(&text, gave, told("n0", false)));
    let rejected = Came::Failed(Failure::new("rejected", ""));
    assert!(accepts(&text, &rejected, &known(told("n0", false))).is_ok());
    assert!(accepts(&text, &rejected, &known(told("n0", true))).is_err());
}

#[test]
fn a_node_without_output_was_skipped_or_passed() {
    let fails = What::Step(work(9, 2));
    let gave = json!({ "edition": 1, "said": [] });
    let missing = |node: Node, skipped: &[&str]| {
        let known = Known { skipped: skipped.iter().map(ToString::to_string).collect(), ..known(Told::default()) };
        accepts(&flow(vec![node]), &Came::Output(gave.clone()), &known).is_ok()
    };
    assert!(missing(Node { lenient: true, ..node(fails.clone()) }, &[]));
    assert!(!missing(node(fails.clone()), &[]), "its failure is the flow's");
    assert!(!missing(Node { lenient: true, ..node(What::Sum(1)) }, &[]), "it cannot fail");
    assert!(missing(node(fails), &["n0"]));
}
