//! Flows: what one does as data, and its text, which is JSON. A node is named after where it stands.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Kid, seconds, workflow_name};
use crate::interpret::{ERRAND, STEP};
use crate::tree::{Errand, Work};

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// An edge that leads back.
    pub back: Option<Back>,
    /// How many of its nodes run at once.
    pub concurrency: u32,
}

/// An edge that leads back: the nodes from `to` up to and without `from` are done once more, so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Back {
    /// The first that is done again.
    pub to: usize,
    /// The one behind the last.
    pub from: usize,
    /// How often.
    pub times: u32,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What it does.
    pub what: What,
    /// Whether its condition does not hold.
    pub never: bool,
    /// Whether what is around it goes on if it fails.
    pub lenient: bool,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// A task.
    Task(Errand),
    /// A step.
    Step(Work),
    /// A sleep of so many milliseconds.
    Sleep(u64),
    /// A wait for a signal.
    Wait {
        /// Which signal.
        name: String,
        /// For how many milliseconds; none for ever.
        timeout: Option<u64>,
    },
    /// A question.
    Approve {
        /// For how many milliseconds.
        timeout: Option<u64>,
        /// Whether a refusal is an output like any other.
        either: bool,
    },
    /// A callback, whose token a task hands out.
    Callback(Option<u64>),
    /// Another run.
    Child(Kid),
    /// Something is computed.
    Sum(u32),
    /// One branch or the other.
    If(bool, Vec<Node>, Vec<Node>),
    /// So many items, and how many at once.
    Foreach(u32, u32, Vec<Node>),
    /// So many rounds.
    Loop(u32, Vec<Node>),
    /// Branches at once.
    Parallel(Vec<Vec<Node>>),
}

impl Node {
    /// The lists of nodes in it.
    pub fn lists(&self) -> Vec<&Vec<Node>> {
        match &self.what {
            What::If(_, then, other) => vec![then, other],
            What::Foreach(_, _, body) | What::Loop(_, body) => vec![body],
            What::Parallel(branches) => branches.iter().collect(),
            What::Task(_)
            | What::Step(_)
            | What::Sleep(_)
            | What::Wait { .. }
            | What::Approve { .. }
            | What::Callback(_)
            | What::Child(_)
            | What::Sum(_) => Vec::new(),
        }
    }

    fn all(&self) -> Vec<&Node> {
        let below = self.lists().into_iter().flatten().flat_map(Node::all);
        std::iter::once(self).chain(below).collect()
    }
}

impl Graph {
    /// All nodes, those in containers too.
    pub fn all(&self) -> Vec<&Node> {
        self.nodes.iter().flat_map(Node::all).collect()
    }
}

/// The name of a node in a list whose own name is `list`.
pub(super) fn node_id(list: &str, number: usize) -> String {
    format!("{list}{number}")
}

/// The name of a list inside a node.
pub(super) fn list_id(node: &str, number: usize) -> String {
    format!("{node}_{number}_")
}

/// The name of the flow's own list.
pub(super) const TOP: &str = "n";
/// Which edition it is, what operators said, how often it went back.
pub(super) const EDITION: &str = "edition";
pub(super) const SAID: &str = "said";
pub(super) const ROUND: &str = "round";
const AGAIN: &str = "again";

/// The text of a flow.
pub(super) fn text(graph: &Graph, place: usize, edition: u32) -> String {
    let writer = Writer { place, edition };
    let script = |id: &str, script: String| json!({ "id": id, "type": "script", "script": script });
    let mut nodes = vec![script(EDITION, format!("${{{edition}}}"))];
    for (number, node) in graph.nodes.iter().enumerate() {
        if graph.back.is_some_and(|back| back.to == number) {
            nodes.push(script(ROUND, format!("${{({AGAIN} ?? 0) + 1}}")));
        }
        if graph.back.is_some_and(|back| back.from == number) {
            nodes.push(script(AGAIN, format!("${{{ROUND}}}")));
        }
        nodes.push(writer.node(&node_id(TOP, number), node));
    }
    if graph.back.is_some_and(|back| back.from >= graph.nodes.len()) {
        nodes.push(script(AGAIN, format!("${{{ROUND}}}")));
    }
    nodes.push(script(SAID, "${messages}".to_owned()));
    let mut flow = json!({ "flow": workflow_name(place), "nodes": nodes });
    if graph.concurrency > 1 {
        flow["concurrency"] = json!(graph.concurrency);
    }
    if let Some(back) = graph.back {
        let when = format!("${{{AGAIN} <= {}}}", back.times);
        let edge =
            json!({ "from": AGAIN, "to": ROUND, "type": "loop", "max_iterations": back.times + 3, "when": when });
        flow["edges"] = json!([edge]);
    }
    flow.to_string()
}

struct Writer {
    place: usize,
    edition: u32,
}

impl Writer {
    fn list(&self, list: &str, nodes: &[Node]) -> Value {
        nodes.iter().enumerate().map(|(number, node)| self.node(&node_id(list, number), node)).collect()
    }

    fn node(&self, id: &str, node: &Node) -> Value {
        let mut written = match self.what(id, &node.what) {
            Value::Object(written) => written,
            _ => Map::new(),
        };
        written.insert("id".to_owned(), json!(id));
        if node.never {
            written.insert("when".to_owned(), json!("${1 > 2}"));
        }
        if node.lenient {
            written.insert("on_error".to_owned(), json!("continue"));
        }
        Value::Object(written)
    }

    fn what(&self, id: &str, what: &What) -> Value {
        match what {
            What::Task(errand) => self.task(errand),
            What::Step(work) => self.step(work),
            What::Sleep(ms) => json!({ "type": "sleep", "for": seconds(*ms) }),
            What::Wait { name, timeout } => timed(json!({ "type": "wait", "signal": name }), *timeout),
            What::Approve { timeout, either } => {
                let on_reject = if *either { "continue" } else { "fail" };
                timed(json!({ "type": "approve", "title": "Go on?", "on_reject": on_reject }), *timeout)
            }
            What::Callback(timeout) => {
                let hands = json!({ "token": "${$token}" });
                let with = json!({ "work": super::handing_out(), "edition": self.edition, "hands": hands });
                timed(json!({ "type": "callback", "task": ERRAND, "with": with }), *timeout)
            }
            What::Child(kid) => {
                let (workflow, with) = kid.workflow(self.place);
                json!({ "type": "workflow", "workflow": workflow, "with": with })
            }
            What::Sum(number) => json!({ "type": "script", "script": format!("${{{number} + 1}}") }),
            What::If(yes, then, other) => {
                let condition = if *yes { "${1 < 2}" } else { "${1 > 2}" };
                let (then, other) = (self.list(&list_id(id, 0), then), self.list(&list_id(id, 1), other));
                json!({ "type": "if", "condition": condition, "then": then, "else": other })
            }
            What::Foreach(items, concurrency, body) => {
                let items: Vec<u32> = (0..*items).collect();
                let body = self.list(&list_id(id, 0), body);
                json!({ "type": "foreach", "items": items, "concurrency": concurrency, "body": body })
            }
            What::Loop(rounds, body) => {
                let until = format!("${{$iteration + 1 >= {rounds}}}");
                let body = self.list(&list_id(id, 0), body);
                json!({ "type": "loop", "until": until, "max_iterations": rounds + 1, "collect": "all", "body": body })
            }
            What::Parallel(branches) => {
                let branch = |(number, nodes): (usize, &Vec<Node>)| {
                    (format!("b{number}"), self.list(&list_id(id, number), nodes))
                };
                let branches: Map<String, Value> = branches.iter().enumerate().map(branch).collect();
                json!({ "type": "parallel", "branches": branches })
            }
        }
    }

    fn task(&self, errand: &Errand) -> Value {
        let mut task = json!({
            "type": "task",
            "task": errand.name(),
            "with": { "work": errand.work, "edition": self.edition },
            "priority": errand.priority,
            "retry": { "attempts": errand.work.attempts, "initial": seconds(errand.work.delay) },
        });
        if let Some(queue) = errand.queue() {
            task["queue"] = json!(queue);
        }
        if let Some(ms) = errand.work.heartbeat {
            task["heartbeat"] = seconds(ms);
        }
        timed(task, errand.work.timeout)
    }

    fn step(&self, work: &Work) -> Value {
        let step = json!({
            "type": "step",
            "step": STEP,
            "with": { "work": work, "edition": self.edition },
            "retry": { "attempts": work.attempts, "initial": seconds(work.delay) },
            "at_most_once": work.at_most_once,
        });
        timed(step, work.timeout)
    }
}

fn timed(mut node: Value, timeout: Option<u64>) -> Value {
    if let Some(ms) = timeout {
        node["timeout"] = seconds(ms);
    }
    node
}
