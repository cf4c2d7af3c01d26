//! Clients: they do what the case says through an engine that drives nothing, and write down what they were told.

mod guests;
mod schedules;
mod written;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use outlast::testing::World;
use outlast::{Awaited, Delivered, Engine, EngineError, Failure, Forked, Reissued, RunHandle};
use outlast_core::commit::WaitKind;
use outlast_store::TaskState;
use serde_json::{Value, json};

use crate::case::{Act, Case, run_id};
use crate::interpret::{Input, WORKFLOW, enqueue};
use crate::ledger::{Asked, Ledger, Told};
use crate::tally::count;
use crate::tree::Errand;
use crate::written::written_id;

/// Who talks to the engine.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) engine: Engine,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) world: Rc<World>,
    /// What was asked, by kind.
    pub(crate) acts: Rc<RefCell<BTreeMap<&'static str, u64>>>,
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
    /// Does one thing. It counts if there was something to be asked.
    pub(crate) async fn act(&self, case: &Case, number: usize, act: &Act) {
        if self.try_to(case, number, act).await {
            count(&mut self.acts.borrow_mut(), act.kind());
        }
    }

    /// Queues a task that no run waits for.
    async fn enqueue(&self, id: &str, errand: &Errand) {
        self.ledger.queues(id);
        if enqueue(&self.engine, id, errand).await.is_ok() {
            self.ledger.queued(id);
        }
    }

    /// Queues a task again that failed for good, or removes it; whether there was one.
    async fn look_after_dead(&self, nth: u64, retry: bool) -> bool {
        let dead = self.engine.tasks().state(TaskState::Dead).page_size(1_000).await;
        let dead = dead.map_or_else(|_| Vec::new(), |page| page.tasks);
        let Some(nth) = nth.checked_rem(dead.len() as u64) else { return false };
        let id = dead[usize::try_from(nth).unwrap_or(0)].id.as_str();
        // Somebody else may have been first, or nobody was heard: what became of it the watch sees.
        let _ = if retry { self.engine.retry_task(id).await } else { self.engine.discard_task(id).await };
        true
    }

    /// Does one thing; whether there was something to be asked.
    async fn try_to(&self, case: &Case, number: usize, act: &Act) -> bool {
        let (own, act) = match act {
            Act::Written { written, what } => (Some(written_id(*written)), &**what),
            act => (act.run().map(run_id), act),
        };
        let Some(own) = own else {
            if let Act::Enqueue { id, errand } = act {
                self.enqueue(id, errand).await;
                return true;
            }
            return match act {
                Act::Guest { guest, what } => self.act_on_guest(case, number, *guest, *what).await,
                Act::Dead { nth, retry } => self.look_after_dead(*nth, *retry).await,
                Act::StartWritten(place) => self.start_written(case, *place).await,
                Act::Define { written, edition } => self.define(case, *written, *edition).await,
                Act::Say { written, message } => self.say(*written, *message, number).await,
                Act::Node { written, nth, skip } => self.intervene(*written, *nth, *skip, number).await,
                act => self.act_on_schedule(case, act).await,
            };
        };
        let (id, act) = match act {
            Act::Below { nth, what, .. } => {
                let below = self.below(&own).await;
                let Some(nth) = nth.checked_rem(below.len() as u64) else { return false };
                (below[usize::try_from(nth).unwrap_or(0)].clone(), &**what)
            }
            act => (own, act),
        };
        let Ok(run) = self.engine.run(&id) else { return false };
        match act {
            // It is not nested, and not of a run.
            Act::Below { .. }
            | Act::Enqueue { .. }
            | Act::PutSchedule { .. }
            | Act::PauseSchedule(_)
            | Act::ResumeSchedule(_)
            | Act::TriggerSchedule(_)
            | Act::BackfillSchedule { .. }
            | Act::RemoveSchedule(_)
            | Act::Guest { .. }
            | Act::Dead { .. }
            | Act::StartWritten(_)
            | Act::Written { .. }
            | Act::Define { .. }
            | Act::Say { .. }
            | Act::Node { .. } => return false,
            Act::Start(place) => self.start(case, *place).await,
            // Under an id that nobody has it would be the first.
            Act::StartOther(_) if !self.has_started(&id) => return false,
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
                    aimed: None,
                };
                let input = Input::of(case.runs[*place].clone());
                let start = self.engine.start(WORKFLOW, &input).id(&id).version(case.options.version_of(*place));
                let start = start.signal(name, payload, signal);
                self.request(&id, asked, start, started).await;
            }
            Act::Signal { name, payload, id: signal, .. } => self.signal(&run, name, payload, signal).await,
            Act::Aimed { key, name, payload, id: signal, .. } => self.aim(&run, key, (name, payload, signal)).await,
            Act::Answer { nth, yes, .. } => {
                let open = self.open(&run).await;
                let Some(nth) = nth.checked_rem(open.len() as u64) else { return false };
                let open = &open[usize::try_from(nth).unwrap_or(0)];
                return self.answer(&run, open, *yes, &format!("answer-{number}")).await;
            }
            Act::AnswerAgain { nth, yes, .. } => {
                self.open(&run).await;
                let seen = self.seen.borrow().get(&id).cloned().unwrap_or_default();
                let Some(nth) = nth.checked_rem(seen.len() as u64) else { return false };
                let question = &seen[usize::try_from(nth).unwrap_or(0)];
                return self.answer(&run, question, *yes, &format!("answer-{number}")).await;
            }
            Act::Heartbeat(_) => return self.heartbeat(&run).await,
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
            Act::Fork { part, .. } => return self.fork(&run, *part, number).await,
            // Reading disturbs nobody, whatever it finds.
            Act::Explain(_) => drop(run.explain().await),
            Act::Delete(_) => {
                self.request(&id, Asked::Delete, run.delete("no longer needed"), |()| "Deleted".to_owned()).await
            }
        }
        true
    }

    pub(crate) async fn start(&self, case: &Case, place: usize) {
        let (id, input) = (run_id(place), Input::of(case.runs[place].clone()));
        let start = self.engine.start(WORKFLOW, &input).id(&id).version(case.options.version_of(place));
        self.request(&id, Asked::Start, start, started).await;
    }

    /// Whether a client was told that the run has started.
    fn has_started(&self, id: &str) -> bool {
        let starts = |asked: &Asked| matches!(asked, Asked::Start | Asked::Signal { with_start: true, .. });
        self.ledger.asks().iter().any(|ask| ask.run == id && starts(&ask.asked) && ask.is_done())
    }

    pub(crate) async fn signal(&self, run: &RunHandle, name: &str, payload: &Value, id: &str) {
        let asked = Asked::Signal {
            name: name.to_owned(),
            id: id.to_owned(),
            payload: payload.clone(),
            with_start: false,
            aimed: None,
        };
        self.request(run.id().as_str(), asked, run.signal(name, payload, id), delivered).await;
    }

    async fn aim(&self, run: &RunHandle, key: &str, (name, payload, id): (&str, &Value, &str)) {
        let aimed = Some(key.to_owned());
        let asked = Asked::Signal {
            name: name.to_owned(),
            id: id.to_owned(),
            payload: payload.clone(),
            with_start: false,
            aimed,
        };
        self.request(run.id().as_str(), asked, run.signal_to(key, name, payload, id), delivered).await;
    }

    /// Runs that came of a run: its children, their children, and forks.
    async fn below(&self, id: &str) -> Vec<String> {
        let listed = self.engine.list().page_size(1_000).await;
        let ids = listed.into_iter().flat_map(|page| page.runs).map(|view| view.run.id.to_string());
        let mut below: Vec<String> = ids.filter(|other| is_below(other, id)).collect();
        below.sort();
        below
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

    /// Answers a question; whether that could be done.
    pub(crate) async fn answer(&self, run: &RunHandle, open: &Open, yes: bool, id: &str) -> bool {
        let (name, key, id) = (run.id().as_str(), open.key.clone(), id.to_owned());
        if open.kind == WaitKind::Approval {
            let by = format!("somebody-{id}");
            let asked = Asked::Approve { key: key.clone(), id: id.clone(), yes, by: by.clone() };
            self.request(name, asked, run.approve(&key, yes).by(&by).id(&id), delivered).await;
            return true;
        }
        // Whoever answers has learnt the token from a body.
        let Some(token) = self.token(name, &key) else { return false };
        let value = yes.then(|| json!(format!("value of {id}")));
        let asked = Asked::Callback { key: key.clone(), id: id.clone(), value: value.clone() };
        let tell = match value {
            Some(value) => run.resolve_callback(&key, &token, &value),
            None => run.fail_callback(&key, &token, said_no()),
        };
        self.request(name, asked, tell.id(&id), delivered).await;
        true
    }

    /// The token of a callback, if a body handed it out.
    pub(crate) fn token(&self, run: &str, key: &str) -> Option<String> {
        let found = self.ledger.tokens().into_iter().rev().find(|(of, callback, _)| of == run && callback == key);
        found.map(|(_, _, token)| token)
    }

    async fn heartbeat(&self, run: &RunHandle) -> bool {
        let mut given = false;
        for open in self.open(run).await {
            if let Some(token) = self.token(run.id().as_str(), &open.key) {
                // A sign of life that gets lost is no loss.
                let _ = run.heartbeat_callback(&open.key, &token).await;
                given = true;
            }
        }
        given
    }

    async fn fork(&self, run: &RunHandle, part: u64, number: usize) -> bool {
        let Ok(view) = run.view().await else { return false };
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
        true
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

/// Whether a run came of another one.
fn is_below(id: &str, of: &str) -> bool {
    id.strip_prefix(of).is_some_and(|rest| rest.starts_with('.') || rest.starts_with("-fork-"))
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
