//! Workflows that are text: a program as data, the text it is written as, and a small model that says what can come of it.
//! Neither the text nor the model knows the engine.

mod flow;
mod model;
mod script;
mod smaller;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use flow::{Back, Graph, Node, What};
pub use model::{Came, Known, accepts};
pub use script::Line;

use crate::interpret::{Input, WORKFLOW};
use crate::tree::{Tree, Work};

/// A workflow that is text. It has two editions, which do the same and say which one they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// What it does.
    pub program: Program,
    /// Whether a client starts it. The others are started by those before them.
    pub started: bool,
}

/// What a text does, and so in which style it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Program {
    /// A script.
    Script(Line),
    /// A flow.
    Flow(Graph),
}

/// Another run, of whatever style.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kid {
    /// Code that plays this tree.
    Code(Tree),
    /// The text that is so many places behind its parent's.
    Text(usize),
}

impl Kid {
    /// The workflow and its input, for the text at `place`.
    fn workflow(&self, place: usize) -> (String, serde_json::Value) {
        match self {
            Kid::Code(tree) => {
                let input = serde_json::to_value(Input::of(tree.clone()));
                (WORKFLOW.to_owned(), input.unwrap_or_default())
            }
            Kid::Text(behind) => (workflow_name(place + behind), serde_json::Value::Null),
        }
    }
}

/// The editions of a text.
pub const EDITIONS: [u32; 2] = [1, 2];

/// Where the name of a text's workflow begins.
const NAME: &str = "written_";

/// The workflow of the text at a place in the case.
pub fn workflow_name(place: usize) -> String {
    format!("{NAME}{place}")
}

/// The place of the text whose workflow this is.
pub fn place_of(workflow: &str) -> Option<usize> {
    workflow.strip_prefix(NAME)?.parse().ok()
}

/// The id of the run that clients start, by the text's place in the case.
pub fn written_id(place: usize) -> String {
    format!("written-{place}")
}

impl Written {
    /// Its text in an edition, and the name of the file.
    pub fn text(&self, place: usize, edition: u32) -> (String, String) {
        let name = workflow_name(place);
        match &self.program {
            Program::Script(line) => (format!("{name}.wf"), script::text(line, place, edition)),
            Program::Flow(graph) => (format!("{name}.flow.json"), flow::text(graph, place, edition)),
        }
    }

    /// What it is written as.
    pub fn style(&self) -> &'static str {
        if self.is_flow() { "flow" } else { "script" }
    }

    /// Whether it is a flow.
    pub fn is_flow(&self) -> bool {
        matches!(self.program, Program::Flow(_))
    }

    /// Whether somebody has to work.
    pub fn has_tasks(&self) -> bool {
        match &self.program {
            Program::Script(line) => line.all().iter().any(|line| matches!(line, Line::Task(_) | Line::Callback(_))),
            Program::Flow(graph) => {
                graph.all().iter().any(|node| matches!(node.what, What::Task(_) | What::Callback(_)))
            }
        }
    }

    /// The runs it may start.
    pub fn kids(&self) -> Vec<&Kid> {
        let of_line = |line: &&'_ Line| matches!(line, Line::Child(_));
        match &self.program {
            Program::Script(line) => {
                let lines = line.all().into_iter().filter(of_line);
                lines.filter_map(|line| if let Line::Child(kid) = line { Some(kid) } else { None }).collect()
            }
            Program::Flow(graph) => {
                let nodes = graph.all().into_iter();
                nodes.filter_map(|node| if let What::Child(kid) = &node.what { Some(kid) } else { None }).collect()
            }
        }
    }

    /// The signals it waits for.
    pub fn signals(&self) -> Vec<String> {
        match &self.program {
            Program::Script(line) => {
                let lines = line.all().into_iter();
                lines
                    .filter_map(|line| if let Line::Wait { name, .. } = line { Some(name.clone()) } else { None })
                    .collect()
            }
            Program::Flow(graph) => {
                let nodes = graph.all().into_iter();
                nodes
                    .filter_map(|node| if let What::Wait { name, .. } = &node.what { Some(name.clone()) } else { None })
                    .collect()
            }
        }
    }
}

/// Seconds, as both styles write durations.
fn seconds(millis: u64) -> serde_json::Value {
    serde_json::json!(millis as f64 / 1_000.0)
}

/// The task that hands out a token.
fn handing_out() -> Work {
    Work { attempts: 8, delay: 200, takes: Some(0), ..Work::default() }
}
