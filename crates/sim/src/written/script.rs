//! Scripts: what one does as data, and its text. What a run gives mirrors that.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Kid, seconds, workflow_name};
use crate::interpret::{ERRAND, PLANNED};
use crate::tree::{Errand, How};

/// A part of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Line {
    /// A task, awaited.
    Task(Errand),
    /// A sleep of so many milliseconds.
    Sleep(u64),
    /// A wait for a signal, for so many milliseconds.
    Wait {
        /// Which signal.
        name: String,
        /// For how long; none for ever.
        timeout: Option<u64>,
    },
    /// A question, for so many milliseconds.
    Approve(Option<u64>),
    /// A callback, whose token a task hands out.
    Callback(Option<u64>),
    /// Another run, awaited.
    Child(Kid),
    /// One after the other.
    Seq(Vec<Line>),
    /// A failure is caught.
    Try(Box<Line>),
    /// Something, and what is done after it whatever came of it.
    Finally(Box<Line>, Box<Line>),
    /// So many times the same.
    Repeat(u32, Box<Line>),
    /// Several at once.
    Together(How, Vec<Line>),
    /// It fails.
    Fail,
}

impl Line {
    /// What it is made of.
    pub fn parts(&self) -> Vec<&Line> {
        match self {
            Line::Seq(parts) | Line::Together(_, parts) => parts.iter().collect(),
            Line::Try(part) | Line::Repeat(_, part) => vec![part],
            Line::Finally(body, after) => vec![body, after],
            Line::Task(_)
            | Line::Sleep(_)
            | Line::Wait { .. }
            | Line::Approve(_)
            | Line::Callback(_)
            | Line::Child(_)
            | Line::Fail => Vec::new(),
        }
    }

    /// Itself and everything in it.
    pub fn all(&self) -> Vec<&Line> {
        let below = self.parts().into_iter().flat_map(Line::all);
        std::iter::once(self).chain(below).collect()
    }
}

/// The text of a script. Each part is a function of where it stands, which is part of the ids of what it starts.
pub(super) fn text(line: &Line, place: usize, edition: u32) -> String {
    let mut writer = Writer { text: String::new(), functions: 0, place };
    let first = writer.function(line);
    let name = workflow_name(place);
    let Writer { text: functions, .. } = writer;
    format!(
        "const EDITION = {edition}\n{functions}workflow {name}(input) {{\n  const run = {{ after: [] }}\n  \
         const gave = await {first}(\"0\", run)\n  return {{ edition: EDITION, gave, after: run.after }}\n}}\n"
    )
}

struct Writer {
    text: String,
    functions: usize,
    /// The script's own, among the texts of its case.
    place: usize,
}

impl Writer {
    /// Writes the function of a part; its name.
    fn function(&mut self, line: &Line) -> String {
        let body = self.body(line);
        let name = format!("f{}", self.functions);
        self.functions += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "async function {name}(at, run) {{ {body} }}");
        name
    }

    fn body(&mut self, line: &Line) -> String {
        match line {
            Line::Task(errand) => {
                let (name, order, options) = (errand.name(), order(errand), options(errand));
                format!("return (await Task.run(\"{name}\", {order}, {options})).attempt")
            }
            Line::Sleep(ms) => format!("return await Task.delay({})", seconds(*ms)),
            Line::Wait { name, timeout } => {
                let timeout = timeout_of(*timeout);
                format!("return {{ signal: await Signal.next(\"{name}\", {{ id: \"wait-\" + at{timeout} }}) }}")
            }
            Line::Approve(timeout) => {
                let timeout = timeout_of(*timeout);
                let ask = format!("Approval.request({{ title: \"Go on?\", id: \"approve-\" + at{timeout} }})");
                format!("const said = await {ask}; return {{ decided: said.approved }}")
            }
            Line::Callback(timeout) => callback(*timeout),
            Line::Child(kid) => {
                let (name, input) = kid.workflow(self.place);
                format!("return await Workflow.run(\"{name}\", {input}, {{ name: \"child-\" + at }})")
            }
            Line::Seq(parts) => {
                let parts: Vec<String> = parts.iter().enumerate().map(|(n, part)| self.part(n, part)).collect();
                format!("const all = []; {} return all", push(&parts))
            }
            Line::Try(part) => {
                let part = self.part(0, part);
                format!(
                    "try {{ return {{ gave: await {part} }} }} catch (error) \
                     {{ return {{ code: error.code, message: error.message }} }}"
                )
            }
            Line::Finally(body, after) => {
                let (body, after) = (self.part(0, body), self.part(1, after));
                format!(
                    "let kept = null; try {{ kept = await {body} }} finally \
                     {{ run.after.push({{ at, gave: await {after} }}) }} return kept"
                )
            }
            Line::Repeat(times, part) => {
                let name = self.function(part);
                format!(
                    "const all = []; for (let n = 0; n < {times}; n++) {{ all.push(await {name}(at + \".\" + n, run)) }} \
                     return all"
                )
            }
            Line::Together(how, members) => {
                let members: Vec<String> = members.iter().enumerate().map(|(n, part)| self.part(n, part)).collect();
                format!("return await Task.{}([{}])", call_of(*how), members.join(", "))
            }
            Line::Fail => format!("throw new Error(\"fail-\" + at, {{ code: \"{PLANNED}\" }})"),
        }
    }

    /// A call of the function of a part.
    fn part(&mut self, number: usize, line: &Line) -> String {
        let name = self.function(line);
        format!("{name}(at + \".{number}\", run)")
    }
}

fn push(parts: &[String]) -> String {
    parts.iter().map(|part| format!("all.push(await {part});")).collect()
}

fn call_of(how: How) -> &'static str {
    match how {
        How::All => "all",
        How::Any => "any",
        How::Race => "race",
        How::AllSettled => "allSettled",
    }
}

fn timeout_of(timeout: Option<u64>) -> String {
    timeout.map_or_else(String::new, |ms| format!(", timeout: {}", seconds(ms)))
}

/// What a handler is given: what to do, and whose task it is.
fn order(errand: &Errand) -> String {
    format!("{{ work: {}, edition: EDITION }}", json!(errand.work))
}

fn options(errand: &Errand) -> String {
    let (attempts, initial) = (errand.work.attempts, seconds(errand.work.delay));
    let mut options = format!("{{ id: \"task-\" + at, retry: {{ attempts: {attempts}, initial: {initial} }}");
    let mut say = |name: &str, value: Option<serde_json::Value>| {
        if let Some(value) = value {
            let _ = write!(options, ", {name}: {value}");
        }
    };
    say("queue", errand.queue().map(|queue| json!(queue)));
    say("priority", (errand.priority != 0).then(|| json!(errand.priority)));
    say("delay", (errand.later > 0).then(|| seconds(errand.later)));
    say("timeout", errand.work.timeout.map(seconds));
    say("heartbeat", errand.work.heartbeat.map(seconds));
    format!("{options} }}")
}

/// A callback, and a task that hands out its token.
fn callback(timeout: Option<u64>) -> String {
    let (timeout, work) = (timeout_of(timeout), json!(super::handing_out()));
    let attempts = super::handing_out().attempts;
    format!(
        "const call = Callback.create({{ id: \"callback-\" + at{timeout} }}); \
         await Task.run(\"{ERRAND}\", {{ work: {work}, edition: EDITION, hands: {{ callback: call.id, token: call.token }} }}, \
         {{ id: \"hand-\" + at, retry: {{ attempts: {attempts}, initial: 0.2 }} }}); \
         return {{ answered: await call }}"
    )
}
