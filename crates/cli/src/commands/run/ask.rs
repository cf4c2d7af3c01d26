//! Asking whoever sits at the terminal.

use std::io::Write;

use outlast::{Engine, EngineError};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::output::note;
use crate::palette::Palette;
use crate::progress::{Progress, What, question_of};

/// What runs ask, one question at a time.
pub(super) struct Questions {
    lines: Option<Lines<BufReader<Stdin>>>,
    asked: Option<(String, What)>,
    /// Those that have an answer: their end is on its way.
    answered: Vec<(String, What)>,
    palette: Palette,
}

impl Questions {
    pub(super) fn new(can_ask: bool) -> Questions {
        // Nothing is read before something is asked.
        let lines = can_ask.then(|| BufReader::new(tokio::io::stdin()).lines());
        Questions { lines, asked: None, answered: Vec::new(), palette: Palette::stderr() }
    }

    /// Whether somebody is there.
    pub(super) fn can_ask(&self) -> bool {
        self.lines.is_some()
    }

    /// Asks what is open and not asked yet; takes back what is not open any more.
    pub(super) fn ask(&mut self, progress: &Progress) {
        if self.lines.is_none() {
            return;
        }
        let open: Vec<(String, What)> = progress
            .open()
            .filter_map(|(run, what)| question_of(what).map(|what| (run.to_owned(), what.clone())))
            .collect();
        self.answered.retain(|answered| open.contains(answered));
        if let Some(asked) = &self.asked
            && !open.contains(asked)
        {
            note(&format!("\n{} that is no longer asked", self.palette.dim("·")));
            self.asked = None;
        }
        if self.asked.is_none() {
            match open.into_iter().find(|question| !self.answered.contains(question)) {
                Some(question) => {
                    progress.screen().hold_still();
                    self.prompt(&question.1);
                    self.asked = Some(question);
                }
                None => progress.screen().move_on(),
            }
        }
    }

    fn prompt(&self, what: &What) {
        let (question, how) = match what {
            What::Approval { title, assignee, .. } => {
                let whose = assignee.as_deref().map_or(String::new(), |who| format!("  (for {who})"));
                (format!("{title}{whose}"), "y approves, n denies; say more behind it if you like")
            }
            What::Signal { name, .. } => {
                (format!("the signal {name:?} is waited for"), "its payload, as JSON; nothing is null")
            }
            _ => return,
        };
        note(&format!("{} {}", self.palette.warn("?"), self.palette.bold(&question)));
        self.again(how);
    }

    fn again(&self, how: &str) {
        let mut stderr = std::io::stderr();
        let _ = write!(stderr, "  {} ", self.palette.dim(&format!("{how} ›")));
        let _ = stderr.flush();
    }

    /// The next line that answers; never while nothing is asked.
    pub(super) async fn answer(&mut self) -> Option<String> {
        match (&mut self.lines, &self.asked) {
            (Some(lines), Some(_)) => lines.next_line().await.unwrap_or(None),
            _ => std::future::pending().await,
        }
    }

    /// Nobody is asked any more. What is said next begins a line.
    pub(super) fn close(&mut self) {
        if self.asked.take().is_some() {
            note("");
        }
        self.lines = None;
    }

    /// Gives an answer to the run that asked.
    pub(super) async fn take(&mut self, engine: &Engine, answer: &str) -> Result<(), EngineError> {
        let Some((run, what)) = self.asked.clone() else { return Ok(()) };
        let told = match &what {
            What::Approval { id, .. } => match decision(answer) {
                Some((approved, feedback)) => decide(engine, &run, id, approved, feedback).await,
                None => {
                    self.again("y or n comes first, and then what you like");
                    return Ok(());
                }
            },
            What::Signal { name, key } => match payload(answer) {
                Ok(payload) => send(engine, &run, (name, key), &payload).await,
                Err(problem) => {
                    note(&format!("  {problem}"));
                    self.again("its payload, as JSON; nothing is null");
                    return Ok(());
                }
            },
            _ => return Ok(()),
        };
        match told {
            // Somebody or something else was quicker.
            Err(EngineError::Lost { .. } | EngineError::NotFound { .. }) => note("  that came too late"),
            told => told?,
        }
        self.answered.extend(self.asked.take());
        Ok(())
    }
}

/// Yes or no, and what somebody says about it.
fn decision(answer: &str) -> Option<(bool, Option<&str>)> {
    let (word, rest) = answer.trim().split_once([' ', ',', ':']).unwrap_or((answer.trim(), ""));
    let approved = match word.to_lowercase().as_str() {
        "y" | "yes" | "approve" => true,
        "n" | "no" | "deny" => false,
        _ => return None,
    };
    Some((approved, Some(rest.trim()).filter(|rest| !rest.is_empty())))
}

fn payload(answer: &str) -> Result<Value, String> {
    match answer.trim() {
        "" => Ok(Value::Null),
        text => serde_json::from_str(text).map_err(|error| {
            // Whoever began an object, a list or a text knows that it is one.
            let is_word = !text.starts_with(['{', '[', '"']);
            let quotes = if is_word { format!("; a text has quotes: {}", Value::from(text)) } else { String::new() };
            format!("that is not JSON ({error}){quotes}")
        }),
    }
}

async fn decide(
    engine: &Engine,
    run: &str,
    id: &str,
    approved: bool,
    feedback: Option<&str>,
) -> Result<(), EngineError> {
    let mut decision = engine.run(run)?.approve(id, approved);
    if let Some(name) = who() {
        decision = decision.by(&name);
    }
    if let Some(feedback) = feedback {
        decision = decision.feedback(feedback);
    }
    decision.await.map(drop)
}

async fn send(engine: &Engine, run: &str, (name, key): (&str, &str), payload: &Value) -> Result<(), EngineError> {
    // To the wait that asked, and no other: whoever types has seen that one.
    let id = format!("terminal-{}", uuid::Uuid::new_v4().simple());
    engine.run(run)?.signal_to(key, name, payload, &id).await.map(drop)
}

/// Who sits at the terminal, as far as the system says.
pub(crate) fn who() -> Option<String> {
    ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_a_word_and_what_is_said_about_it() {
        assert_eq!(decision("y"), Some((true, None)));
        assert_eq!(decision(" Yes, gladly "), Some((true, Some("gladly"))));
        assert_eq!(decision("n too dear"), Some((false, Some("too dear"))));
        for unclear in ["", "maybe", "yesno", "ok"] {
            assert_eq!(decision(unclear), None, "{unclear}");
        }
    }

    #[test]
    fn a_payload_is_json_and_nothing_is_null() {
        assert_eq!(payload(" "), Ok(Value::Null));
        assert_eq!(payload("{\"a\":1}"), Ok(serde_json::json!({ "a": 1 })));
        assert!(payload("hello").unwrap_err().contains("a text has quotes: \"hello\""));
    }
}
