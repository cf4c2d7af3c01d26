//! Those who talk to the runs: each again and again, until its run has ended.

use outlast::{Awaited, Event, Failure, Status};
use outlast_core::commit::WaitKind;

use super::{GLANCE, Worker};
use crate::ledger::{Ask, Note};
use crate::workflows::{FORKED, LENGTH};

/// How often the run that can be paused is paused and resumed.
const PAUSES: usize = 3;
/// How many signs of life a callback is given, in all lives together.
const BEATS: usize = 8;

impl Worker {
    pub(super) async fn signal(&self) {
        for n in 0..LENGTH {
            self.send("signals", "value", &(n + 1), &format!("value-{n}")).await;
        }
        self.send("signals", "number", "seven", "word-1").await;
        self.send("signals", "number", &1_000, "number-1").await;
        let ask = Ask::Signal { run: "signals".to_owned(), id: "direct-1".to_owned() };
        if self.is_wanted(&ask) {
            self.ask(ask, self.run("signals").signal_to("aimed", "direct", &100, "direct-1")).await;
        }
    }

    async fn send<T: serde::Serialize + ?Sized>(&self, run: &str, name: &str, value: &T, id: &str) {
        let ask = Ask::Signal { run: run.to_owned(), id: id.to_owned() };
        if self.is_wanted(&ask) {
            self.ask(ask, self.run(run).signal(name, value, id)).await;
        }
    }

    /// One signal for each generation, when it has begun.
    pub(super) async fn count_generations(&self) {
        let mut next = 0;
        loop {
            let view = self.run("generations").view().await.unwrap();
            if view.status.is_terminal() {
                return;
            }
            while next <= view.generation.0 {
                self.send("generations", "value", &(next + 1), &format!("value-{next}")).await;
                next += 1;
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Decides approvals and answers callbacks as they come, each in words of its own: who was told that it counts is who
    /// the journal must name.
    pub(super) async fn answer(&self) {
        let run = "answers".to_owned();
        let mut said = 0;
        while !self.status(&run).await.is_terminal() {
            for wait in self.run(&run).awaiting().await.unwrap() {
                let Awaited::Wait { key, kind, answered: false, .. } = wait else { continue };
                said += 1;
                match (kind, key.as_str()) {
                    (WaitKind::Approval, "late") => {}
                    (WaitKind::Approval, key) => {
                        let feedback = format!("life {} word {said}", self.ledger.life);
                        let decide = self.run(&run).approve(key, true).by("Ada").feedback(&feedback);
                        self.ask(Ask::Approve { run: run.clone(), key: key.to_owned(), feedback }, decide).await;
                    }
                    (WaitKind::Callback, key) => self.answer_callback(key, said).await,
                    (WaitKind::Signal, _) => {}
                }
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    async fn answer_callback(&self, key: &str, said: u32) {
        let entries = self.ledger.entries();
        let name = key.split('/').next().unwrap();
        let token = entries.iter().rev().find_map(|entry| match &entry.note {
            Note::Token { callback, token } if callback == name => Some(token.clone()),
            _ => None,
        });
        let Some(token) = token else { return };
        let (run, callback, answers) = ("answers".to_owned(), key.to_owned(), self.run("answers"));
        match name {
            "call" => {
                let value = self.ledger.life * 1_000 + said;
                let telling = answers.resolve_callback(key, &token, &value);
                self.ask(Ask::Resolve { run, callback, value }, telling).await;
            }
            "refused" => {
                let message = format!("life {} word {said}", self.ledger.life);
                let telling = answers.fail_callback(key, &token, Failure::new("refused", &message));
                self.ask(Ask::Fail { run, callback, message }, telling).await;
            }
            _ => {
                let beat = |note: &Note| matches!(note, Note::Tried(Ask::Heartbeat { .. }));
                if entries.iter().filter(|entry| beat(&entry.note)).count() < BEATS {
                    self.ask(Ask::Heartbeat { run, callback }, answers.heartbeat_callback(key, &token)).await;
                }
            }
        }
    }

    /// Pauses and resumes. Whatever was acknowledged is not said again, so that what was lost is missed; and it resumes only
    /// what it sees paused, and pauses only what it does not, so that every word counts.
    pub(super) async fn pause_often(&self) {
        let run = "pausable".to_owned();
        let (pause, resume) = (Ask::Pause { run: run.clone() }, Ask::Resume { run: run.clone() });
        let mut resumes = self.known.iter().filter(|known| **known == resume).count();
        let mut last = self.last_word(&pause, &resume);
        loop {
            let seen = self.status(&run).await;
            if seen.is_terminal() {
                return;
            }
            let paused = seen == Status::Paused;
            let under_way = last == Some((if paused { resume.clone() } else { pause.clone() }, true));
            if under_way {
                tokio::time::sleep(GLANCE).await;
            } else if paused {
                let acked = self.ask(resume.clone(), self.run(&run).resume()).await;
                (last, resumes) = (Some((resume.clone(), acked)), resumes + usize::from(acked));
            } else if resumes < PAUSES {
                let acked = self.ask(pause.clone(), self.run(&run).pause("a moment")).await;
                last = Some((pause.clone(), acked));
            } else {
                return self.send(&run, "enough", &1, "enough-1").await;
            }
        }
    }

    /// What of the two was said last, and whether it was acknowledged.
    fn last_word(&self, pause: &Ask, resume: &Ask) -> Option<(Ask, bool)> {
        let mut last = None;
        for entry in self.ledger.entries() {
            match entry.note {
                Note::Tried(ask) if ask == *pause || ask == *resume => last = Some((ask, false)),
                Note::Acked(ask) if ask == *pause || ask == *resume => last = Some((ask, true)),
                _ => {}
            }
        }
        last
    }

    /// Makes a second run of the first events of `steps`.
    pub(super) async fn fork(&self) {
        let (id, at) = FORKED;
        let ask = Ask::Fork { from: "steps".to_owned(), at, run: id.to_owned() };
        if !self.is_wanted(&ask) {
            return;
        }
        let steps = self.run("steps");
        while steps.view().await.unwrap().next.0 <= at {
            tokio::time::sleep(GLANCE).await;
        }
        self.ask(ask, steps.fork(at).id(id)).await;
    }

    /// Stops two runs, one of them without asking it, once they have begun to wait.
    pub(super) async fn stop(&self) {
        self.wait_for_event("cancelled", |event| matches!(event, Event::SignalAwaited { .. })).await;
        let ask = Ask::Cancel { run: "cancelled".to_owned() };
        if self.is_wanted(&ask) {
            self.ask(ask, self.run("cancelled").cancel("enough").id("cancel-1")).await;
        }
        self.wait_for_event("doomed", |event| matches!(event, Event::ChildStarted { .. })).await;
        let reason = format!("life {}", self.ledger.life);
        let ask = Ask::Terminate { run: "doomed".to_owned(), reason: reason.clone() };
        self.ask(ask, self.run("doomed").terminate(&reason)).await;
    }

    async fn wait_for_event(&self, run: &str, is: impl Fn(&Event) -> bool) {
        while !self.run(run).journal().await.unwrap().iter().any(&is) {
            tokio::time::sleep(GLANCE).await;
        }
    }
}
