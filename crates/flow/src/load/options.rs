//! Options that several nodes have: retries, times, what follows a failure.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::id::QueueName;
use outlast_core::retry::{Backoff, Jitter, Retry};
use outlast_script::parse_duration;

use super::{Loader, meant};
use crate::model::OnError;
use crate::tree::{Kind, Tree};

/// The fields of `defaults`.
pub const DEFAULT_FIELDS: &[&str] = &["retry", "timeout", "queue", "priority", "on_error"];
/// The fields of `retry`.
pub const RETRY_FIELDS: &[&str] = &["attempts", "initial", "factor", "cap", "backoff", "jitter"];

/// What nodes have that say nothing else.
#[derive(Clone, Default)]
pub(super) struct Defaults {
    pub(super) retry: Option<Retry>,
    pub(super) timeout: Option<Duration>,
    pub(super) queue: Option<QueueName>,
    pub(super) priority: Option<i16>,
    pub(super) continues: bool,
}

impl Loader {
    pub(super) fn defaults_of(&mut self, tree: &Tree) -> Defaults {
        let Some(mut fields) = self.fields(tree, "the defaults") else { return Defaults::default() };
        let defaults = Defaults {
            retry: fields.take("retry").and_then(|tree| self.retry(tree)),
            timeout: fields.take("timeout").and_then(|tree| self.duration(tree)),
            queue: fields.take("queue").and_then(|tree| self.id(tree, QueueName::new)),
            priority: fields.take("priority").and_then(|tree| self.priority(tree)),
            continues: fields
                .take("on_error")
                .and_then(|tree| self.word(tree, &[("fail", false), ("continue", true)]))
                .unwrap_or_default(),
        };
        self.finish(fields, DEFAULT_FIELDS);
        defaults
    }

    pub(super) fn duration(&mut self, tree: &Tree) -> Option<Duration> {
        let found = match &tree.kind {
            Kind::Text(text) => parse_duration(text),
            Kind::Number(seconds) => parse_duration(&seconds.to_string()),
            Kind::Null | Kind::Bool(_) | Kind::List(_) | Kind::Map(_) => None,
        };
        if found.is_none() {
            let message = format!("expected a duration, found {}", self.source.slice(tree.span));
            self.error(
                "duration",
                tree.span,
                message,
                "write \"10s\", \"5 minutes\", \"1h 30m\", or a number of seconds",
            );
        }
        found
    }

    pub(super) fn priority(&mut self, tree: &Tree) -> Option<i16> {
        let found = match &tree.kind {
            Kind::Number(number) => number.as_i64().and_then(|number| i16::try_from(number).ok()),
            _ => None,
        };
        if found.is_none() {
            self.wrong(tree, "a whole number from -32768 to 32767");
        }
        found
    }

    /// A number of attempts, or `{ attempts, initial, factor, cap, backoff, jitter }`.
    pub(super) fn retry(&mut self, tree: &Tree) -> Option<Retry> {
        const ATTEMPTS_MAX: u32 = 1_000_000;
        match &tree.kind {
            Kind::Bool(false) => return Some(Retry::never()),
            Kind::Number(_) => return self.number(tree, 1, ATTEMPTS_MAX).map(Retry::attempts),
            _ => {}
        }
        let mut fields = self.fields(tree, "a number of attempts, or a policy")?;
        let mut retry = Retry::default();
        if let Some(attempts) = fields.take("attempts").and_then(|tree| self.number(tree, 1, ATTEMPTS_MAX)) {
            retry = Retry::attempts(attempts);
        }
        if let Some(initial) = fields.take("initial").and_then(|tree| self.duration(tree)) {
            retry = retry.initial(initial);
        }
        let factor = fields.take("factor");
        if let Some(tree) = factor {
            match &tree.kind {
                Kind::Number(number) if number.as_f64().is_some_and(|factor| (1.0..=1000.0).contains(&factor)) => {
                    retry = retry.factor(number.as_f64().unwrap_or(1.0));
                }
                _ => self.wrong(tree, "a number from 1 to 1000"),
            }
        }
        if let Some(cap) = fields.take("cap").and_then(|tree| self.duration(tree)) {
            retry = retry.cap(cap);
        }
        if let Some(tree) = fields.take("backoff") {
            let growing = Backoff::Exponential { factor_percent: 200 };
            let words = [("exponential", growing), ("linear", Backoff::Linear), ("constant", Backoff::Constant)];
            match self.word(tree, &words) {
                // The factor says how fast.
                Some(Backoff::Exponential { .. }) | None => {}
                Some(_) if factor.is_some() => {
                    self.error("factor", tree.span, "only exponential delays have a factor", "remove one of the two");
                }
                Some(other) => retry = retry.backoff(other),
            }
        }
        if let Some(jitter) = fields
            .take("jitter")
            .and_then(|tree| self.word(tree, &[("none", Jitter::None), ("half", Jitter::Half), ("full", Jitter::Full)]))
        {
            retry = retry.jitter(jitter);
        }
        self.finish(fields, RETRY_FIELDS);
        Some(retry)
    }

    /// `fail`, `continue`, or `{ goto: node }`: a later sibling.
    pub(super) fn on_error(&mut self, tree: Option<&Tree>, siblings: &[Option<Arc<str>>], at: usize) -> OnError {
        let default = if self.defaults.continues { OnError::Continue } else { OnError::Fail };
        let Some(tree) = tree else { return default };
        if let Kind::Text(_) = &tree.kind {
            let words = [("fail", OnError::Fail), ("continue", OnError::Continue)];
            return self.word(tree, &words).unwrap_or(default);
        }
        let Some(mut fields) = self.fields(tree, "fail, continue, or { goto: node }") else { return default };
        let target = self.required(&mut fields, "goto", "`on_error`");
        self.finish(fields, &["goto"]);
        let Some((target, name)) = target.and_then(|tree| Some((tree, self.text(tree)?))) else { return default };
        match siblings.iter().position(|sibling| sibling.as_deref() == Some(&*name)) {
            Some(place) if place > at => OnError::Goto(place),
            Some(_) => {
                let message = format!("`{name}` runs before this node: a flow goes back by loop edges only");
                self.error("goto_back", target.span, message, "add an edge with `type: loop`, or go to a later node");
                default
            }
            None => {
                let known: Vec<&str> = siblings.iter().skip(at + 1).flatten().map(|id| &**id).collect();
                let message = format!("there is no node `{name}` beside this one");
                let help =
                    if known.is_empty() { "no node comes after this one".to_owned() } else { meant(&name, &known) };
                self.error("unknown_node", target.span, message, help);
                default
            }
        }
    }
}
