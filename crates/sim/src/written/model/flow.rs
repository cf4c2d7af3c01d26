//! What a flow can have given.

use outlast_core::failure::code;
use serde_json::{Map, Value, json};

use super::Judge;
use crate::written::flow::{ROUND, SAID, TOP, list_id, node_id};
use crate::written::{Graph, Node, What};

type Judged = Result<(), String>;

/// Where a list of nodes stands: its name, and the iterations around it, as keys have them.
struct List {
    name: String,
    within: Vec<String>,
}

impl List {
    fn of(name: String, within: &[String]) -> List {
        List { name, within: within.to_vec() }
    }

    /// Whether a key is that of a node in this list: in these iterations, in whichever pass, however often it began.
    fn has(&self, id: &str, key: &str) -> bool {
        let last = key.rsplit('/').next().unwrap_or(key);
        let named = last.split('#').next() == Some(id);
        named && self.within.iter().all(|part| key.contains(part))
    }
}

impl Judge<'_> {
    /// A whole flow: what its nodes gave, in the last pass.
    pub(super) fn flow(&mut self, graph: &Graph, output: &Value) -> Judged {
        let outputs = output.as_object().ok_or("it gave no outputs")?;
        let round = graph.back.map(|back| json!(back.times + 1));
        if outputs.get(ROUND) != round.as_ref() {
            return Err(format!("it went back {:?} times, and was to {:?} times", outputs.get(ROUND), round));
        }
        let said = outputs.get(SAID).and_then(Value::as_array).ok_or("it does not say what it was told")?;
        if let Some(unsaid) = said.iter().find(|message| !self.known.said.contains(message)) {
            return Err(format!("it was told {unsaid}, which nobody said"));
        }
        self.list(&graph.nodes, &List::of(TOP.to_owned(), &[]), outputs)
    }

    fn list(&mut self, nodes: &[Node], list: &List, outputs: &Map<String, Value>) -> Judged {
        for (number, node) in nodes.iter().enumerate() {
            let id = node_id(&list.name, number);
            match outputs.get(&id) {
                Some(_) if node.never => return Err(format!("{id} was not to run, and did")),
                Some(gave) => self.node(&node.what, &id, list, gave)?,
                None if node.never || self.may_be_missing(node, &id, list) => {}
                None => return Err(format!("{id} gave nothing: {:?}", node.what)),
            }
        }
        Ok(())
    }

    /// Whether a node may have no output: it was skipped, or failed and was passed.
    fn may_be_missing(&self, node: &Node, id: &str, list: &List) -> bool {
        let skipped = self.known.skipped.iter().any(|key| list.has(id, key));
        skipped || (node.lenient && self.can_fail(&node.what, id))
    }

    fn can_fail(&self, what: &What, id: &str) -> bool {
        let codes = [
            code::TIMEOUT,
            code::CANCELLED,
            code::WORKER_LOST,
            code::STEP_IN_DOUBT,
            code::LIMIT_EXCEEDED,
            code::PANIC,
            crate::interpret::PLANNED,
            REJECTED,
            SAID_NO,
        ];
        codes.iter().any(|said| self.what_fails(what, id, said))
    }

    fn node(&mut self, what: &What, id: &str, list: &List, gave: &Value) -> Judged {
        let is_it = |key: &str| list.has(id, key);
        let possible = match what {
            What::Task(errand) => self.task_gives(&errand.work, gave.get("attempt")),
            What::Step(work) => self.step_gives(work, gave.get("attempt")),
            What::Sleep(_) => gave.is_null(),
            What::Wait { name, .. } => self.signal_gives(name, gave),
            What::Approve { either, .. } => {
                let yes = gave.get("approved").and_then(Value::as_bool);
                yes.is_some_and(|yes| (yes || *either) && self.decided(is_it, yes))
            }
            What::Callback(_) => self.answered(is_it, gave),
            // It is judged by itself, and what its parent was told of it is compared with how it ended.
            What::Child(_) => true,
            What::Sum(number) => *gave == json!(number + 1),
            What::If(yes, then, other) => {
                let (number, nodes) = if *yes { (0, then) } else { (1, other) };
                return self.branch(nodes, List::of(list_id(id, number), &list.within), gave);
            }
            What::Foreach(items, _, body) => return self.rounds(*items, body, (id, list), gave, true),
            What::Loop(rounds, body) => return self.rounds(*rounds, body, (id, list), gave, false),
            What::Parallel(branches) => {
                let mut all = branches.iter().enumerate();
                return all.try_for_each(|(number, nodes)| {
                    let gave = gave.get(format!("b{number}")).unwrap_or(&Value::Null);
                    self.branch(nodes, List::of(list_id(id, number), &list.within), gave)
                });
            }
        };
        if possible { Ok(()) } else { Err(format!("{id}: {what:?} gave {gave}")) }
    }

    fn branch(&mut self, nodes: &[Node], list: List, gave: &Value) -> Judged {
        let outputs = gave.as_object().ok_or_else(|| format!("{} gave {gave}", list.name))?;
        self.list(nodes, &list, outputs)
    }

    /// Iterations: each once, and in their order.
    fn rounds(&mut self, count: u32, body: &[Node], (id, list): (&str, &List), gave: &Value, items: bool) -> Judged {
        let all = gave.get("iterations").and_then(Value::as_array).cloned().unwrap_or_default();
        let in_order = all.iter().enumerate().all(|(number, one)| {
            let item = if items { one.get("item") == Some(&json!(number)) } else { one.get("item").is_none() };
            item && one.get("index") == Some(&json!(number))
        });
        if gave.get("count") != Some(&json!(count)) || all.len() != count as usize || !in_order {
            return Err(format!("{id} has {count} iterations, and gave {gave}"));
        }
        for (number, one) in all.iter().enumerate() {
            let within: Vec<String> = list.within.iter().cloned().chain([format!("{id}/{number}/")]).collect();
            self.branch(body, List::of(list_id(id, 0), &within), one.get("outputs").unwrap_or(&Value::Null))?;
        }
        Ok(())
    }

    /// Whether one of the nodes can fail with this code, and is not passed.
    pub(super) fn list_fails(&self, nodes: &[Node], list: &str, said: &str) -> bool {
        let mut nodes = nodes.iter().enumerate().filter(|(_, node)| !node.never && !node.lenient);
        nodes.any(|(number, node)| self.what_fails(&node.what, &node_id(list, number), said))
    }

    fn what_fails(&self, what: &What, id: &str, said: &str) -> bool {
        if self.said_by_others(said) {
            return true;
        }
        let is_it = |key: &str| List::of(String::new(), &[]).has(id, key);
        let late = |timeout: &Option<u64>| timeout.is_some() && said == code::TIMEOUT;
        match what {
            What::Task(errand) => self.task_fails(&errand.work, said),
            What::Step(work) => self.step_fails(work, said),
            What::Sleep(_) | What::Sum(_) => false,
            What::Wait { timeout, .. } => late(timeout),
            What::Approve { timeout, either } => {
                late(timeout) || (!either && said == REJECTED && self.decided(is_it, false))
            }
            What::Callback(timeout) => {
                late(timeout) || self.unanswered(is_it, said) || self.task_fails(&crate::written::handing_out(), said)
            }
            What::Child(kid) => self.kid_fails(kid, said),
            What::If(yes, then, other) => {
                let (number, nodes) = if *yes { (0, then) } else { (1, other) };
                self.list_fails(nodes, &list_id(id, number), said)
            }
            What::Foreach(_, _, body) | What::Loop(_, body) => self.list_fails(body, &list_id(id, 0), said),
            What::Parallel(branches) => {
                let mut all = branches.iter().enumerate();
                all.any(|(number, nodes)| self.list_fails(nodes, &list_id(id, number), said))
            }
        }
    }
}

/// What a refused approval fails with, and a callback that is told no.
const REJECTED: &str = "rejected";
const SAID_NO: &str = "no";
