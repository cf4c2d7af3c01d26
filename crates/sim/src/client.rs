//! Clients: they do what the case says through an engine that drives nothing, and write down what they were told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use outlast::testing::World;
use outlast::{Awaited, Delivered, Engine, EngineError, Failure, Forked, Reissued, RunHandle};
use outlast_core::commit::WaitKind;
use serde_json::{Value, json};

use crate::case::{Act, Case, run_id};
use crate::interpret::{Input, WORKFLOW};
use crate::ledger::{Asked, Ledger, Told};

/// Who talks to the engine.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) engine: Engine,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) world: Rc<World>,
    /// Questions that were open when somebody looked, by run.
    pub(crate) seen: Rc<RefCell<BTreeMap<String, Vec<Open>>>>,
}

/// An approval or a callback that waits for an answer.
#[derive(Clone, PartialEq)]
pub(crate) struct Open {
    key: String,
    kind: WaitKind,
}

impl Client {
    /// Does one thing.
    pub(crate) async fn act(&self, case: &Case, number: usize, act: &Act) {
        let id = run_id(act.run());
        let Ok(run) = self.engine.run(&id) else { return };
        match act {
            Act::Start(place) => self.start(case, *place).await,
            // Under an id that nobody has it would be the first.
            Act::StartOther(_) if !self.has_started(&id) => {}
            Act::StartOther(_) => {
                let other = Input::other();
                self.request(&id, Asked::StartOther, self.engine.start(WORKFLOW, &other).id(&id), started).await;
            }
            Act::SignalWithStart { run: place, name, payload, id: signal } => {
                let asked = Asked::Signal {
                    name: name.clone(),
                    id: signal.clone(),
                    payload: payload.clone(),
                    with_start: true,
                };
                let input = Input::of(case.runs[*place].clone());
                let start = self.engine.start(WORKFLOW, &input).id(&id).signal(name, payload, signal);
                self.request(&id, asked, start, started).await;
            }
            Act::Signal { name, payload, id: signal, .. } => self.signal(&run, name, payload, signal).await,
            Act::Answer { nth, yes, .. } => {
                let open = self.open(&run).await;
                if let Some(nth) = nth.checked_rem(open.len() as u64) {
                    let open = &open[usize::try_from(nth).unwrap_or(0)];
                    self.answer(&run, open, *yes, &format!("answer-{number}")).await;
                }
            }
            Act::AnswerAgain { nth, yes, .. } => {
                self.open(&run).await;
                let seen = self.seen.borrow().get(&id).cloned().unwrap_or_default();
                if let Some(nth) = nth.checked_rem(seen.len() as u64) {
                    let question = &seen[usize::try_from(nth).unwrap_or(0)];
                    self.answer(&run, question, *yes, &format!("answer-{number}")).await;
                }
            }
            Act::Heartbeat(_) => self.heartbeat(&run).await,
            Act::Cancel(_) => {
                self.request(&id, Asked::Cancel, run.cancel("the client wants it").id(&request_id(number)), delivered)
                    .await;
            }
            Act::Terminate(_) => {
                self.request(&id, Asked::Terminate, run.terminate("enough"), |()| "Terminated".to_owned()).await
            }
            Act::Pause(_) => {
                self.request(&id, Asked::Pause, run.pause("a pause").id(&request_id(number)), delivered).await
            }
            Act::Resume(_) => self.request(&id, Asked::Resume, run.resume().id(&request_id(number)), delivered).await,
            Act::Fork { part, .. } => self.fork(&run, *part, number).await,
            // Reading disturbs nobody, whatever it finds.
            Act::Explain(_) => drop(run.explain().await),
            Act::Delete(_) => {
                self.request(&id, Asked::Delete, run.delete("no longer needed"), |()| "Deleted".to_owned()).await
            }
        }
    }

    pub(crate) async fn start(&self, case: &Case, place: usize) {
        let (id, input) = (run_id(place), Input::of(case.runs[place].clone()));
        self.request(&id, Asked::Start, self.engine.start(WORKFLOW, &input).id(&id), started).await;
    }

    /// Whether a client was told that the run has started.
    fn has_started(&self, id: &str) -> bool {
        let starts = |asked: &Asked| matches!(asked, Asked::Start | Asked::Signal { with_start: true, .. });
        self.ledger.asks().iter().any(|ask| ask.run == id && starts(&ask.asked) && ask.is_done())
    }

    pub(crate) async fn signal(&self, run: &RunHandle, name: &str, payload: &Value, id: &str) {
        let asked =
            Asked::Signal { name: name.to_owned(), id: id.to_owned(), payload: payload.clone(), with_start: false };
        self.request(run.id().as_str(), asked, run.signal(name, payload, id), delivered).await;
    }

    /// Approvals and callbacks that wait for an answer.
    pub(crate) async fn open(&self, run: &RunHandle) -> Vec<Open> {
        let awaiting = run.awaiting().await.unwrap_or_default();
        let open = awaiting.into_iter().filter_map(|awaited| match awaited {
            Awaited::Wait { key, kind: kind @ (WaitKind::Approval | WaitKind::Callback), answered: false, .. } => {
                Some(Open { key: key.to_string(), kind })
            }
            _ => None,
        });
        let open: Vec<Open> = open.collect();
        let mut seen = self.seen.borrow_mut();
        let seen = seen.entry(run.id().to_string()).or_default();
        seen.extend(open.iter().filter(|open| !seen.contains(open)).cloned().collect::<Vec<_>>());
        open
    }

    pub(crate) async fn answer(&self, run: &RunHandle, open: &Open, yes: bool, id: &str) {
        let (name, key, id) = (run.id().as_str(), open.key.clone(), id.to_owned());
        if open.kind == WaitKind::Approval {
            let by = format!("somebody-{id}");
            let asked = Asked::Approve { key: key.clone(), id: id.clone(), yes, by: by.clone() };
            return self.request(name, asked, run.approve(&key, yes).by(&by).id(&id), delivered).await;
        }
        // Whoever answers has learnt the token from a body.
        let Some(token) = self.token(name, &key) else { return };
        let value = yes.then(|| json!(format!("value of {id}")));
        let asked = Asked::Callback { key: key.clone(), id: id.clone(), value: value.clone() };
        let tell = match value {
            Some(value) => run.resolve_callback(&key, &token, &value),
            None => run.fail_callback(&key, &token, said_no()),
        };
        self.request(name, asked, tell.id(&id), delivered).await;
    }

    /// The token of a callback, if a body handed it out.
    pub(crate) fn token(&self, run: &str, key: &str) -> Option<String> {
        let found = self.ledger.tokens().into_iter().rev().find(|(of, callback, _)| of == run && callback == key);
        found.map(|(_, _, token)| token)
    }

    async fn heartbeat(&self, run: &RunHandle) {
        for open in self.open(run).await {
            if let Some(token) = self.token(run.id().as_str(), &open.key) {
                // A sign of life that gets lost is no loss.
                let _ = run.heartbeat_callback(&open.key, &token).await;
            }
        }
    }

    async fn fork(&self, run: &RunHandle, part: u64, number: usize) {
        let Ok(view) = run.view().await else { return };
        let (at, to) = (view.next.0 * part / 1_000, format!("{}-fork-{number}", run.id()));
        let asked = Asked::Fork { at, to: to.clone() };
        let forked = |forked: Forked| {
            // The new run's callbacks have tokens of their own.
            for Reissued { key, token, .. } in forked.reissued {
                if let Some(token) = token {
                    self.ledger.token(&to, key.as_str(), &token);
                }
            }
            "Forked".to_owned()
        };
        self.request(run.id().as_str(), asked, run.fork(at).id(&to), forked).await;
    }

    /// Asks, and writes down what was asked before and what was told after.
    async fn request<T, F>(&self, run: &str, asked: Asked, request: F, say: impl Fn(T) -> String)
    where
        F: IntoFuture<Output = Result<T, EngineError>>,
    {
        let number = self.ledger.asked(run, asked, self.world.elapsed());
        let told = match request.await {
            Ok(done) => Told::Done(say(done)),
            Err(EngineError::Store(error)) if error.is_retryable() => Told::Unknown,
            Err(error) => Told::Refused(error.code().to_owned()),
        };
        self.ledger.told(number, told, self.world.elapsed());
    }
}

/// What a callback fails with.
pub(crate) fn said_no() -> Failure {
    Failure::new("no", "the answer is no")
}

fn request_id(number: usize) -> String {
    format!("request-{number}")
}

fn started(_: RunHandle) -> String {
    "Started".to_owned()
}

fn delivered(delivered: Delivered) -> String {
    format!("{delivered:?}")
}
