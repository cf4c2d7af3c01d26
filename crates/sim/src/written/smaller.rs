//! Smaller texts, for a case that fails: each does a little less.

use super::{Graph, Kid, Line, Node, Program, What, Written};

impl Written {
    /// A text that does nothing, in its place: others are named by their places.
    pub fn nothing() -> Written {
        Written { program: Program::Script(Line::Seq(Vec::new())), started: false }
    }

    /// What is left if one part is left out.
    pub fn smaller(&self) -> Vec<Written> {
        let programs: Vec<Program> = match &self.program {
            Program::Script(line) => line.smaller().into_iter().map(Program::Script).collect(),
            Program::Flow(graph) => graph.smaller().into_iter().map(Program::Flow).collect(),
        };
        programs.into_iter().map(|program| Written { program, started: self.started }).collect()
    }

    /// Whether it may start the text that is so many places behind it.
    pub fn starts(&self, behind: usize) -> bool {
        self.kids().into_iter().any(|kid| *kid == Kid::Text(behind))
    }
}

/// The list without one of its parts, or with a smaller one; never an empty one.
fn lists<T: Clone>(parts: &[T], smaller: impl Fn(&T) -> Vec<T>) -> Vec<Vec<T>> {
    let mut found = Vec::new();
    for place in 0..parts.len() {
        if parts.len() > 1 {
            let mut fewer = parts.to_vec();
            fewer.remove(place);
            found.push(fewer);
        }
        for part in smaller(&parts[place]) {
            let mut other = parts.to_vec();
            other[place] = part;
            found.push(other);
        }
    }
    found
}

impl Line {
    fn smaller(&self) -> Vec<Line> {
        let boxed = |line: &Line| line.smaller().into_iter().map(Box::new).collect::<Vec<_>>();
        match self {
            Line::Seq(parts) => lists(parts, Line::smaller).into_iter().map(Line::Seq).collect(),
            Line::Together(how, parts) => {
                lists(parts, Line::smaller).into_iter().map(|parts| Line::Together(*how, parts)).collect()
            }
            Line::Try(part) => {
                let inside = boxed(part).into_iter().map(Line::Try);
                std::iter::once((**part).clone()).chain(inside).collect()
            }
            Line::Repeat(times, part) => {
                let inside = boxed(part).into_iter().map(|part| Line::Repeat(*times, part));
                std::iter::once((**part).clone()).chain(inside).collect()
            }
            Line::Finally(body, after) => {
                let bodies = boxed(body).into_iter().map(|body| Line::Finally(body, after.clone()));
                let afters = boxed(after).into_iter().map(|after| Line::Finally(body.clone(), after));
                [(**body).clone(), (**after).clone()].into_iter().chain(bodies).chain(afters).collect()
            }
            Line::Task(_)
            | Line::Sleep(_)
            | Line::Wait { .. }
            | Line::Approve(_)
            | Line::Callback(_)
            | Line::Child(_)
            | Line::Fail => Vec::new(),
        }
    }
}

impl Graph {
    fn smaller(&self) -> Vec<Graph> {
        if self.back.is_some() {
            // It names nodes by their places.
            return vec![Graph { back: None, ..self.clone() }];
        }
        let concurrency = (self.concurrency > 1).then(|| Graph { concurrency: 1, ..self.clone() });
        let nodes = lists(&self.nodes, Node::smaller).into_iter().map(|nodes| Graph { nodes, ..self.clone() });
        concurrency.into_iter().chain(nodes).collect()
    }
}

impl Node {
    fn smaller(&self) -> Vec<Node> {
        let nodes = |nodes: &[Node]| lists(nodes, Node::smaller);
        let what: Vec<What> = match &self.what {
            What::If(yes, then, other) => {
                let thens = nodes(then).into_iter().map(|then| What::If(*yes, then, other.clone()));
                let others = nodes(other).into_iter().map(|other| What::If(*yes, then.clone(), other));
                thens.chain(others).collect()
            }
            What::Foreach(items, concurrency, body) => {
                nodes(body).into_iter().map(|body| What::Foreach(*items, *concurrency, body)).collect()
            }
            What::Loop(rounds, body) => nodes(body).into_iter().map(|body| What::Loop(*rounds, body)).collect(),
            What::Parallel(branches) => {
                lists(branches, |branch| nodes(branch)).into_iter().map(What::Parallel).collect()
            }
            What::Task(_)
            | What::Step(_)
            | What::Sleep(_)
            | What::Wait { .. }
            | What::Approve { .. }
            | What::Callback(_)
            | What::Child(_)
            | What::Sum(_) => Vec::new(),
        };
        // What stands in a container can stand in its place.
        let inside = self.lists().into_iter().flatten().cloned();
        inside.chain(what.into_iter().map(|what| Node { what, ..self.clone() })).collect()
    }
}
