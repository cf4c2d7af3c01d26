//! Nodes.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::event::ClosePolicy;
use outlast_core::id::{Key, QueueName, SignalName, TaskName, Version, WorkflowName};
use outlast_script::{Expression, Span, is_reserved_name};

use super::fields::Fields;
use super::names::{FIXED, TOKEN};
use super::{Loader, meant};
use crate::limits::ID_CHARS_MAX;
use crate::model::{ApproveNode, CallbackNode, Node, NodeKind, Sleep, StepNode, TaskNode, WaitNode, WorkflowNode};
use crate::schema::Shape;
use crate::template::Template;
use crate::tree::{Kind, Tree};

/// The fields that every node has.
pub const NODE_FIELDS: &[&str] = &["id", "type", "description", "when", "on_error", "output"];

/// The types of nodes, and the fields each has beside those.
pub const NODE_TYPES: &[(&str, &[&str])] = &[
    ("task", &["task", "with", "queue", "priority", "retry", "timeout", "heartbeat"]),
    ("step", &["step", "with", "retry", "timeout", "heartbeat", "at_most_once"]),
    ("script", &["script"]),
    ("sleep", &["for", "until"]),
    ("wait", &["signal", "timeout", "schema"]),
    ("approve", &["title", "assignee", "timeout", "on_reject"]),
    ("callback", &["task", "with", "queue", "priority", "retry", "timeout", "heartbeat"]),
    ("workflow", &["workflow", "version", "with", "timeout", "on_close"]),
    ("if", &["condition", "then", "else", "timeout"]),
    ("switch", &["on", "cases", "default", "timeout"]),
    ("foreach", &["items", "as", "body", "concurrency", "collect", "timeout"]),
    ("loop", &["while", "until", "max_iterations", "body", "collect", "timeout"]),
    ("parallel", &["branches", "concurrency", "timeout"]),
];

/// The queue of tasks that name none.
const DEFAULT_QUEUE: &str = "default";
/// Room for what is added to the key of a node: the number of a retry, the name of its timer.
const KEY_BYTES_SPARE: usize = 32;

impl Loader {
    /// A node among its siblings, and what is known about its output. What it can see was shown before.
    pub(super) fn node(&mut self, tree: &Tree, siblings: &[Option<Arc<str>>], at: usize) -> Option<(Node, Shape)> {
        let mut fields = self.fields(tree, "a node")?;
        let id = self.required(&mut fields, "id", "a node").and_then(|tree| self.node_id(tree));
        let kind = self.required(&mut fields, "type", "a node");
        let word = kind.and_then(|tree| self.node_type(tree));
        fields.take("description").and_then(|tree| self.text(tree));
        let when = fields.take("when").map(|tree| self.condition(tree));
        let on_error = self.on_error(fields.take("on_error"), siblings, at);
        let output = fields.take("output").and_then(|tree| self.schema(tree));
        // Without its type nothing more can be said about it.
        let (word, own) = word?;
        let whose = id.as_ref().map_or_else(|| "this node".to_owned(), |id| format!("`{id}`"));
        let path_bytes = self.path_bytes;
        self.path_bytes += id.as_ref().map_or(0, |id| id.len()) + KEY_BYTES_SPARE;
        if self.path_bytes > Key::BYTES_MAX && path_bytes + KEY_BYTES_SPARE <= Key::BYTES_MAX {
            let message = format!("the key of this node would be longer than {} bytes", Key::BYTES_MAX);
            self.error("key_too_long", fields.span, message, "use shorter ids, or nest less deep");
        }
        // These have a limit of their own kind, and the others in this list one for all of it.
        let is_own = matches!(word, "task" | "step" | "wait" | "approve" | "callback");
        let limit = if own.contains(&"timeout") && !is_own { fields.take("timeout") } else { None };
        let timeout = limit.and_then(|tree| self.duration(tree));
        let made = self.kind(word, &mut fields, &whose);
        self.path_bytes = path_bytes;
        let known: Vec<&str> = NODE_FIELDS.iter().chain(own).copied().collect();
        let location = self.location(fields.span);
        self.finish(fields, &known);
        let (kind, shape) = made?;
        // A container's own fields are known better than by its schema.
        let said = output.as_ref().map(|schema| schema.shape.clone()).unwrap_or_default();
        let shape = if shape == Shape::Unknown { said } else { shape };
        Some((Node { id: id?, kind, when, on_error, output, timeout, location }, shape))
    }

    fn node_type(&mut self, tree: &Tree) -> Option<(&'static str, &'static [&'static str])> {
        let text = self.text(tree)?;
        let found = NODE_TYPES.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let known: Vec<&str> = NODE_TYPES.iter().map(|(word, _)| *word).collect();
            self.error("unknown_type", tree.span, format!("there are no nodes of type `{text}`"), meant(&text, &known));
        }
        found.copied()
    }

    /// An id is a name in expressions and a part of keys.
    fn node_id(&mut self, tree: &Tree) -> Option<Arc<str>> {
        let text = self.text(tree)?;
        self.name(&text, tree.span, "the id of a node")
    }

    pub(super) fn name(&mut self, text: &str, span: Span, what: &str) -> Option<Arc<str>> {
        let is_word = text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && text.chars().next().is_some_and(|letter| !letter.is_ascii_digit());
        if !is_word || text.starts_with("__") || text.chars().count() > ID_CHARS_MAX {
            let message = format!("`{text}` cannot be {what}");
            let word: String =
                text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
            let word = word.trim_matches('_').chars().take(ID_CHARS_MAX).collect::<String>();
            let help = if word.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic()) {
                format!("use letters, digits and _, at most {ID_CHARS_MAX}: `{word}`")
            } else {
                format!("use letters, digits and _, at most {ID_CHARS_MAX}, and begin with a letter")
            };
            self.error("invalid_id", span, message, help);
            return None;
        }
        let is_taken = FIXED.contains(&text) || is_reserved_name(text) || Expression::compile(text, &[text]).is_err();
        if is_taken {
            let message = format!("`{text}` cannot be {what}: it means something in expressions");
            self.error("reserved_id", span, message, format!("choose another one, such as `{text}_1`"));
            return None;
        }
        Some(text.into())
    }

    fn kind(&mut self, word: &str, fields: &mut Fields<'_>, whose: &str) -> Option<(NodeKind, Shape)> {
        let kind = match word {
            "task" => NodeKind::Task(Box::new(self.task(fields, whose)?)),
            "step" => NodeKind::Step(Box::new(self.step(fields, whose)?)),
            "script" => {
                let value = self.required(fields, "script", whose)?;
                NodeKind::Script(self.template(value))
            }
            "sleep" => NodeKind::Sleep(self.sleep(fields, whose)?),
            "wait" => NodeKind::Wait(Box::new(self.wait(fields, whose)?)),
            "approve" => {
                let known = ["approved", "by", "feedback", "approval"];
                let shape = Shape::fields(known.map(|name| (name.into(), Shape::Unknown)));
                return Some((NodeKind::Approve(Box::new(self.approve(fields, whose)?)), shape));
            }
            "callback" => NodeKind::Callback(Box::new(self.callback(fields, whose)?)),
            "workflow" => NodeKind::Workflow(Box::new(self.workflow(fields, whose)?)),
            _ => {
                return self
                    .container(word, fields, whose)
                    .map(|(node, shape)| (NodeKind::Container(Box::new(node)), shape));
            }
        };
        Some((kind, Shape::Unknown))
    }

    fn with(&mut self, fields: &mut Fields<'_>) -> Template {
        fields.take("with").map_or_else(Template::null, |tree| self.template(tree))
    }

    fn task(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<TaskNode> {
        let name = self.required(fields, "task", whose).and_then(|tree| self.id(tree, TaskName::new));
        let with = self.with(fields);
        let queue = fields.take("queue").and_then(|tree| self.id(tree, QueueName::new));
        let queue = queue.or_else(|| self.defaults.queue.clone()).or_else(|| QueueName::new(DEFAULT_QUEUE).ok())?;
        let priority = fields.take("priority").and_then(|tree| self.priority(tree)).or(self.defaults.priority);
        let retry = fields.take("retry").and_then(|tree| self.retry(tree)).or(self.defaults.retry);
        let timeout = self.timeout(fields);
        let heartbeat = fields.take("heartbeat").and_then(|tree| self.duration(tree));
        let (priority, retry) = (priority.unwrap_or_default(), retry.unwrap_or_default());
        Some(TaskNode { name: name?, with, queue, priority, retry, timeout, heartbeat })
    }

    fn timeout(&mut self, fields: &mut Fields<'_>) -> Option<Duration> {
        fields.take("timeout").and_then(|tree| self.duration(tree)).or(self.defaults.timeout)
    }

    fn step(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<StepNode> {
        let name = self.required(fields, "step", whose).and_then(|tree| self.id(tree, TaskName::new));
        let with = self.with(fields);
        let retry = fields.take("retry").and_then(|tree| self.retry(tree)).or(self.defaults.retry).unwrap_or_default();
        let timeout = self.timeout(fields);
        let heartbeat = fields.take("heartbeat").and_then(|tree| self.duration(tree));
        let at_most_once = fields.take("at_most_once").and_then(|tree| self.bool(tree)).unwrap_or_default();
        Some(StepNode { name: name?.as_str().into(), with, at_most_once, retry, timeout, heartbeat })
    }

    fn sleep(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<Sleep> {
        match (fields.take("for"), fields.take("until")) {
            (Some(tree), None) => {
                // What is written out is checked at once.
                if !matches!(&tree.kind, Kind::Text(text) if text.contains("${")) {
                    self.duration(tree)?;
                }
                Some(Sleep::For(self.template(tree)))
            }
            (None, Some(tree)) => Some(Sleep::Until(self.template(tree))),
            (None, None) => {
                self.error("missing_field", fields.span, format!("{whose} needs `for` or `until`"), "add `for: 10s`");
                None
            }
            (Some(_), Some(tree)) => {
                let message = "`for` and `until` exclude each other";
                self.error("exclusive_fields", tree.span, message, "remove one of them");
                None
            }
        }
    }

    fn wait(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<WaitNode> {
        let signal = self.required(fields, "signal", whose).and_then(|tree| self.id(tree, SignalName::new));
        let timeout = fields.take("timeout").and_then(|tree| self.duration(tree));
        let schema = fields.take("schema").and_then(|tree| self.schema(tree));
        Some(WaitNode { signal: signal?, timeout, schema })
    }

    fn approve(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<ApproveNode> {
        let title = self.required(fields, "title", whose).map(|tree| self.template(tree));
        let assignee = fields.take("assignee").map(|tree| self.template(tree));
        let timeout = fields.take("timeout").and_then(|tree| self.duration(tree));
        let on_reject =
            fields.take("on_reject").and_then(|tree| self.word(tree, &[("fail", false), ("continue", true)]));
        let continues_when_rejected = on_reject.unwrap_or_default();
        Some(ApproveNode { title: title?, assignee, timeout, continues_when_rejected })
    }

    fn callback(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<CallbackNode> {
        let timeout = fields.take("timeout").and_then(|tree| self.duration(tree));
        let heartbeat = fields.take("heartbeat").and_then(|tree| self.duration(tree));
        let mark = self.names.mark();
        self.names.show([(TOKEN.into(), Shape::Unknown)]);
        // Time limits are the callback's: they were taken before.
        let submit = if fields.has("task") { Some(self.task(fields, whose)) } else { None };
        self.names.forget(mark);
        let submit = match submit {
            None => None,
            Some(task) => Some(TaskNode { timeout: None, ..task? }),
        };
        Some(CallbackNode { submit, timeout, heartbeat })
    }

    fn workflow(&mut self, fields: &mut Fields<'_>, whose: &str) -> Option<WorkflowNode> {
        let workflow = self.required(fields, "workflow", whose).and_then(|tree| self.id(tree, WorkflowName::new));
        let version = fields.take("version").and_then(|tree| self.id(tree, Version::new));
        let with = self.with(fields);
        let words =
            [("cancel", ClosePolicy::Cancel), ("terminate", ClosePolicy::Terminate), ("abandon", ClosePolicy::Abandon)];
        let on_close = fields.take("on_close").and_then(|tree| self.word(tree, &words)).unwrap_or_default();
        Some(WorkflowNode { workflow: workflow?, version, with, on_close })
    }
}
