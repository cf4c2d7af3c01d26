//! What a script can have given.

use outlast_core::failure::code;
use serde_json::Value;

use super::Judge;
use crate::interpret::PLANNED;
use crate::tree::How;
use crate::written::{Kid, Line};

type Judged = Result<(), String>;

impl Judge<'_> {
    /// A whole script: what it gave, and what was done after things that may have failed.
    pub(super) fn script(&mut self, line: &Line, output: &Value) -> Judged {
        let gave = output.get("gave").ok_or("it does not say what it gave")?;
        let after = output.get("after").and_then(Value::as_array).cloned().unwrap_or_default();
        self.line(line, "0", gave, &after)
    }

    fn line(&mut self, line: &Line, at: &str, gave: &Value, after: &[Value]) -> Judged {
        let possible = match line {
            Line::Task(errand) => self.task_gives(&errand.work, Some(gave)),
            Line::Sleep(_) => gave.is_null(),
            Line::Wait { name, .. } => {
                gave.get("signal").cloned().is_some_and(|payload| self.signal_gives(name, &payload))
            }
            Line::Approve(_) => {
                let yes = gave.get("decided").and_then(Value::as_bool);
                yes.is_some_and(|yes| self.decided(|key| key == format!("approve-{at}"), yes))
            }
            Line::Callback(_) => {
                let value = gave.get("answered");
                value.is_some_and(|value| self.answered(|key| key == format!("callback-{at}"), value))
            }
            // It is judged by itself, and what its parent was told of it is compared with how it ended.
            Line::Child(_) => true,
            Line::Seq(parts) => return self.each(parts, at, gave, after),
            Line::Try(part) => return self.tried(part, at, gave, after),
            Line::Finally(body, cleanup) => {
                self.line(body, &inside(at, 0), gave, after)?;
                let mut own = after.iter().filter(|done| done.get("at").and_then(Value::as_str) == Some(at));
                let (Some(done), None) = (own.next(), own.next()) else {
                    return refuse(line, at, &format!("what comes after it was not done once: {after:?}"));
                };
                return self.line(cleanup, &inside(at, 1), done.get("gave").unwrap_or(&Value::Null), after);
            }
            Line::Repeat(times, part) => {
                let parts: Vec<Line> = (0..*times).map(|_| (**part).clone()).collect();
                return self.each(&parts, at, gave, after);
            }
            Line::Together(how, members) => return self.together(*how, members, at, gave, after),
            Line::Fail => false,
        };
        if possible { Ok(()) } else { refuse(line, at, gave) }
    }

    fn each(&mut self, parts: &[Line], at: &str, gave: &Value, after: &[Value]) -> Judged {
        let all = gave.as_array().filter(|all| all.len() == parts.len());
        let all = all.ok_or_else(|| format!("{at}: {} parts gave {gave}", parts.len()))?;
        let mut pairs = parts.iter().zip(all).enumerate();
        pairs.try_for_each(|(number, (part, gave))| self.line(part, &inside(at, number), gave, after))
    }

    fn tried(&mut self, part: &Line, at: &str, gave: &Value, after: &[Value]) -> Judged {
        match (gave.get("gave"), gave.get("code").and_then(Value::as_str)) {
            (Some(gave), None) => self.line(part, &inside(at, 0), gave, after),
            (None, Some(said)) if self.line_fails(part, &inside(at, 0), said) => Ok(()),
            _ => refuse(part, at, gave),
        }
    }

    fn together(&mut self, how: How, members: &[Line], at: &str, gave: &Value, after: &[Value]) -> Judged {
        match how {
            How::All => self.each(members, at, gave, after),
            How::Any => {
                let number = winner(members, gave).ok_or_else(|| format!("{at}: nobody won: {gave}"))?;
                self.is_first(members, number, at)?;
                self.line(&members[number], &inside(at, number), gave.get("result").unwrap_or(&Value::Null), after)
            }
            How::Race => {
                let number = winner(members, gave).ok_or_else(|| format!("{at}: nobody won: {gave}"))?;
                self.is_first(members, number, at)?;
                self.ended(&members[number], &inside(at, number), gave, after)
            }
            How::AllSettled => {
                let all = gave.as_array().filter(|all| all.len() == members.len());
                let all = all.ok_or_else(|| format!("{at}: {} members gave {gave}", members.len()))?;
                let mut pairs = members.iter().zip(all).enumerate();
                pairs.try_for_each(|(number, (member, gave))| self.ended(member, &inside(at, number), gave, after))
            }
        }
    }

    /// What became of a member.
    fn ended(&mut self, line: &Line, at: &str, gave: &Value, after: &[Value]) -> Judged {
        match gave.get("error").and_then(|error| error.get("code")).and_then(Value::as_str) {
            None => self.line(line, at, gave.get("result").unwrap_or(&Value::Null), after),
            Some(said) if self.line_fails(line, at, said) => Ok(()),
            Some(_) => refuse(line, at, gave),
        }
    }

    /// Among sleeps that begin together the shortest is the first, and of equals the first written.
    fn is_first(&self, members: &[Line], number: usize, at: &str) -> Judged {
        let nap = |line: &Line| if let Line::Sleep(ms) = line { Some(*ms) } else { None };
        let naps: Option<Vec<u64>> = members.iter().map(nap).collect();
        let Some(naps) = naps.filter(|_| !self.known.forked && self.known.pending_max.is_none()) else { return Ok(()) };
        let first = naps.iter().enumerate().min_by_key(|(_, ms)| **ms).map(|(first, _)| first);
        if first == Some(number) { Ok(()) } else { Err(format!("{at}: number {number} won of sleeps of {naps:?} ms")) }
    }

    /// Whether something in it can fail with this code, and nothing catches it.
    pub(super) fn line_fails(&self, line: &Line, at: &str, said: &str) -> bool {
        let waits = !matches!(line, Line::Fail | Line::Seq(_) | Line::Try(_));
        if waits && self.said_by_others(said) {
            return true;
        }
        match line {
            Line::Task(errand) => self.task_fails(&errand.work, said),
            Line::Sleep(_) => false,
            Line::Wait { timeout, .. } | Line::Approve(timeout) => timeout.is_some() && said == code::TIMEOUT,
            Line::Callback(timeout) => {
                (timeout.is_some() && said == code::TIMEOUT)
                    || self.unanswered(|key| key == format!("callback-{at}"), said)
                    || self.task_fails(&crate::written::handing_out(), said)
            }
            Line::Child(kid) => self.kid_fails(kid, said),
            Line::Seq(parts) => self.one_fails(parts.iter(), at, said),
            Line::Try(_) => false,
            Line::Finally(body, after) => self.one_fails([&**body, &**after].into_iter(), at, said),
            Line::Repeat(times, part) => {
                (0..*times).any(|number| self.line_fails(part, &inside(at, number as usize), said))
            }
            Line::Together(How::All, members) => self.one_fails(members.iter(), at, said),
            Line::Together(How::Any, _) => said == "aggregate_error",
            Line::Together(How::Race | How::AllSettled, _) => false,
            Line::Fail => said == PLANNED,
        }
    }

    fn one_fails<'l>(&self, parts: impl Iterator<Item = &'l Line>, at: &str, said: &str) -> bool {
        parts.enumerate().any(|(number, part)| self.line_fails(part, &inside(at, number), said))
    }

    /// Whether a run below can fail so: it was stopped, or it is judged by itself.
    pub(super) fn kid_fails(&self, kid: &Kid, said: &str) -> bool {
        match kid {
            Kid::Code(_) => said == code::CANCELLED && self.kid_stopped(),
            Kid::Text(_) => said != code::CANCELLED || self.kid_stopped(),
        }
    }
}

fn inside(at: &str, number: usize) -> String {
    format!("{at}.{number}")
}

/// Who won, by its place.
fn winner(members: &[Line], gave: &Value) -> Option<usize> {
    let id = gave.get("item_id")?;
    let number = id.as_u64().or_else(|| id.as_str()?.parse().ok())?;
    usize::try_from(number).ok().filter(|number| *number < members.len())
}

fn refuse(line: &Line, at: &str, gave: &dyn std::fmt::Display) -> Judged {
    Err(format!("{at}: {line:?} gave {gave}"))
}
