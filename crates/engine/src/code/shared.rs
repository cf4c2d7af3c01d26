//! What a program, its `Ctx`s and its operations share. All on one thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::{Index, InvalidId, Key};
use outlast_core::operation::{Keys, Operation as Request, OperationKind, Operations, Provided, SharedName};
use outlast_core::time::Timestamp;
use tokio::runtime;

use super::body::StartedBody;
use super::fact::{Effect, effect};
use super::program::RunInfo;
use super::scope::StartedScope;
use super::slot::{Loose, Outcome, Slot};
use super::step_context::StepContext;
use super::wake::Wakes;

/// Shared by everything that belongs to one program.
///
/// No borrow of the state outlives a statement that could run the author's code: dropping a body, calling a waker.
pub(super) struct Shared {
    pub(super) info: RunInfo,
    pub(super) runtime: Option<runtime::Handle>,
    pub(super) wakes: Arc<Wakes>,
    state: RefCell<State>,
    phase: Cell<Phase>,
    cancellations: Cell<u32>,
    /// How operations failed that were open when the run was asked to stop, the last time.
    cancelled_with: RefCell<Option<Failure>>,
    is_continued: Cell<bool>,
}

struct State {
    /// The driver's, during `resume`; nobody's otherwise.
    ops: Operations,
    keys: Keys,
    /// Operations that are started and not settled. Ordered, so that those of a scope are next to each other.
    open: BTreeMap<Key, Rc<Slot>>,
    started: u64,
    /// How many attempts were begun by the driver and have not ended.
    executing: usize,
    /// The bodies of steps that run beside the workflow.
    bodies: BTreeMap<Key, Box<dyn StartedBody>>,
    /// Scopes that run beside the workflow and were not polled yet.
    scopes: Vec<StartedScope>,
}

/// Whether what the author's code asks for can be passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody listens between two `resume`s.
    Idle,
    Resumed,
    /// The program is dropped, or over: what is dropped with it is not cancelled.
    Closing,
}

impl Shared {
    pub(super) fn new(info: RunInfo, runtime: Option<runtime::Handle>) -> Rc<Self> {
        let state = State {
            ops: Operations::new(Provided { now: Timestamp::EPOCH, seed: 0 }),
            keys: Keys::default(),
            open: BTreeMap::new(),
            started: 0,
            executing: 0,
            bodies: BTreeMap::new(),
            scopes: Vec::new(),
        };
        Rc::new(Shared {
            info,
            runtime,
            wakes: Wakes::new(),
            state: RefCell::new(state),
            phase: Cell::new(Phase::Idle),
            cancellations: Cell::new(0),
            cancelled_with: RefCell::new(None),
            is_continued: Cell::new(false),
        })
    }

    /// Takes the driver's operations, or gives them back.
    pub(super) fn swap(&self, ops: &mut Operations) {
        std::mem::swap(&mut self.state.borrow_mut().ops, ops);
        self.phase.set(match self.phase.get() {
            Phase::Idle => Phase::Resumed,
            Phase::Resumed => Phase::Idle,
            Phase::Closing => Phase::Closing,
        });
    }

    /// From now on nothing is requested, and all bodies are gone.
    pub(super) fn close(&self) {
        self.phase.set(Phase::Closing);
        let mut state = self.state.borrow_mut();
        let bodies = std::mem::take(&mut state.bodies);
        let scopes = std::mem::take(&mut state.scopes);
        let open = std::mem::take(&mut state.open);
        state.executing = 0;
        drop(state);
        for slot in open.values() {
            if let Some(attempt) = slot.close().attempt {
                attempt.cancel();
            }
        }
        drop((bodies, scopes));
    }

    pub(super) fn named(
        &self,
        scope: Option<&Key>,
        name: &str,
        at: &'static Location<'static>,
    ) -> Result<Key, InvalidId> {
        self.state.borrow_mut().keys.named(scope, name, Some(at.into()))
    }

    pub(super) fn positional(
        &self,
        scope: Option<&Key>,
        kind: OperationKind,
        detail: Option<&str>,
    ) -> Result<Key, InvalidId> {
        self.state.borrow_mut().keys.positional(scope, kind, detail)
    }

    /// Names used at two places, beyond the `known` first ones.
    pub(super) fn new_shared_names(&self, known: usize) -> Vec<SharedName> {
        self.state.borrow().keys.shared_names().get(known..).unwrap_or_default().to_vec()
    }

    pub(super) fn request(&self, request: Request, at: &'static Location<'static>) {
        if self.phase.get() == Phase::Resumed {
            self.state.borrow_mut().ops.request(request, Some(at.into()));
        }
    }

    /// Asks the driver's operations something that they answer at once.
    pub(super) fn ask<R>(&self, question: impl FnOnce(&mut Operations) -> R) -> R {
        question(&mut self.state.borrow_mut().ops)
    }

    /// Opens an operation.
    pub(super) fn open(&self, key: Key, at: &'static Location<'static>, is_scope: bool) -> Rc<Slot> {
        let mut state = self.state.borrow_mut();
        let slot = Rc::new(Slot::new(key.clone(), state.started, at, is_scope));
        state.started += 1;
        state.open.insert(key, Rc::clone(&slot));
        slot
    }

    /// Whether an operation is open.
    pub(super) fn is_open(&self, key: &Key) -> bool {
        self.state.borrow().open.contains_key(key)
    }

    /// Whether any is.
    pub(super) fn has_open(&self) -> bool {
        !self.state.borrow().open.is_empty()
    }

    /// Keeps a body that runs beside the workflow.
    pub(super) fn start_body(&self, key: Key, body: Box<dyn StartedBody>) {
        self.state.borrow_mut().bodies.insert(key, body);
    }

    /// Keeps a scope that runs beside the workflow.
    pub(super) fn start_scope(&self, scope: StartedScope) {
        self.state.borrow_mut().scopes.push(scope);
    }

    pub(super) fn take_started_scopes(&self) -> Vec<StartedScope> {
        std::mem::take(&mut self.state.borrow_mut().scopes)
    }

    pub(super) fn has_started_scopes(&self) -> bool {
        !self.state.borrow().scopes.is_empty()
    }

    pub(super) fn is_executing(&self) -> bool {
        self.state.borrow().executing > 0
    }

    /// How often the run was asked to stop, as far as facts were fed.
    pub(super) fn cancellations(&self) -> u32 {
        self.cancellations.get()
    }

    /// How operations failed that were open when the run was asked to stop; none if it was not.
    pub(super) fn cancelled_with(&self) -> Option<Failure> {
        self.cancelled_with.borrow().clone()
    }

    pub(super) fn is_continued(&self) -> bool {
        self.is_continued.get()
    }

    /// Notes that this generation ends; whether that is new.
    pub(super) fn note_continued(&self) -> bool {
        !self.is_continued.replace(true)
    }

    /// Lets a body begin. An operation that is over by now has none.
    pub(super) fn execute(&self, key: &Key, attempt: u32) {
        let Some(slot) = self.slot(key) else { return };
        let before = slot.set_attempt(Some(StepContext::new(&self.info, &self.wakes, key, attempt)));
        self.state.borrow_mut().executing += 1;
        self.end_attempt(before);
        self.go_on(key, &slot);
    }

    /// Lets the bodies go on that were woken.
    pub(super) fn go_on_with_bodies(&self) {
        for (key, attempt) in self.wakes.take_heard() {
            // What an earlier attempt left behind may still be there: it says nothing about this one.
            if let Some(slot) = self.slot(&key).filter(|slot| slot.attempt_number() == Some(attempt)) {
                self.request(Request::Heartbeat { key }, slot.at);
            }
        }
        for key in self.wakes.take_bodies() {
            if let Some(slot) = self.slot(&key) {
                self.go_on(&key, &slot);
            }
        }
    }

    /// Why a payload is not what an operation waits for.
    pub(super) fn misfit(&self, key: &Key, payload: &[u8]) -> Option<Failure> {
        self.slot(key)?.misfit(payload)
    }

    /// Polls the body of an operation, or has it polled by whoever owns it.
    fn go_on(&self, key: &Key, slot: &Rc<Slot>) {
        let body = self.state.borrow_mut().bodies.remove(key);
        match body {
            Some(mut body) => {
                body.poll(self, slot);
                if slot.is_open() {
                    self.start_body(key.clone(), body);
                }
            }
            None => {
                if let Some(waker) = slot.waker() {
                    waker.wake();
                }
            }
        }
    }

    fn slot(&self, key: &Key) -> Option<Rc<Slot>> {
        self.state.borrow().open.get(key).map(Rc::clone)
    }

    /// A body returned: its attempt is over, and its outcome will be a fact.
    pub(super) fn note_returned(&self, slot: &Slot) {
        if slot.set_attempt(None).is_some() {
            self.state.borrow_mut().executing -= 1;
        }
    }

    /// Takes note of a fact.
    pub(super) fn feed(&self, index: Index, event: &Event) {
        match effect(event) {
            Effect::Settles(key, outcome) => self.settle(key, index, outcome),
            Effect::SettlesScope(key, outcome) => self.settle_scope(key, index, outcome),
            Effect::EndsAttempt(key) => {
                if let Some(slot) = self.slot(key) {
                    self.end_attempt_of(&slot);
                }
            }
            Effect::EndsCheck(key, state) => self.end_check(key, state),
            Effect::CancelsAll(failure) => self.cancel_all(index, &failure),
            Effect::Nothing => {}
        }
    }

    fn settle(&self, key: &Key, index: Index, outcome: Outcome) {
        let removed = self.state.borrow_mut().open.remove(key);
        if let Some(slot) = removed {
            let loose = slot.settle(index, outcome);
            self.tie_up(key, loose);
        }
    }

    /// This generation ends: a scope that fails because of it has nothing to record.
    pub(super) fn settle_unrecorded(&self, slot: &Slot, failure: Failure) {
        self.settle(&slot.key, Index(u64::MAX), Outcome::Failed(failure));
    }

    fn settle_scope(&self, key: &Key, index: Index, outcome: Option<Outcome>) {
        let kept = self.slot(key).and_then(|slot| slot.kept());
        let outcome = outcome
            .or(kept.map(Outcome::Value))
            .unwrap_or_else(|| Outcome::Failed(super::codec::unexpected("the result of a scope").into_failure()));
        self.close_below(key);
        self.settle(key, index, outcome);
    }

    fn end_check(&self, key: &Key, state: Bytes) {
        if let Some(slot) = self.slot(key) {
            slot.keep(state);
            self.end_attempt_of(&slot);
        }
    }

    /// Everything that is open fails, in the order in which it was started. Scopes go on: what they wait for failed,
    /// and they may clean up.
    fn cancel_all(&self, index: Index, failure: &Failure) {
        self.cancellations.set(self.cancellations.get() + 1);
        self.cancelled_with.replace(Some(failure.clone()));
        let mut open: Vec<Rc<Slot>> =
            self.state.borrow().open.values().filter(|slot| !slot.is_scope).cloned().collect();
        open.sort_by_key(|slot| slot.order);
        for slot in open {
            self.request(Request::Cancel { key: slot.key.clone() }, slot.at);
            self.settle(&slot.key, index, Outcome::Failed(failure.clone()));
        }
    }

    /// Nobody wants an operation any more.
    pub(super) fn cancel(&self, slot: &Slot) {
        if self.phase.get() != Phase::Resumed || !slot.is_open() {
            return;
        }
        if slot.is_scope {
            self.close_below(&slot.key);
        }
        self.state.borrow_mut().open.remove(&slot.key);
        self.request(Request::Cancel { key: slot.key.clone() }, slot.at);
        self.tie_up(&slot.key, slot.close());
    }

    /// Forgets an operation that nobody wants any more. Nothing is requested.
    pub(super) fn forget(&self, key: &Key) {
        let removed = self.state.borrow_mut().open.remove(key);
        if let Some(slot) = removed {
            self.tie_up(key, slot.close());
        }
    }

    /// Forgets what is still open below a scope that ends. Its end cancels them, so that nothing is requested.
    pub(super) fn close_below(&self, scope: &Key) {
        let (first, last) = (format!("{scope}/"), format!("{scope}0"));
        let below = (Bound::Included(first.as_str()), Bound::Excluded(last.as_str()));
        let slots: Vec<Rc<Slot>> =
            self.state.borrow().open.range::<str, _>(below).map(|(_, slot)| slot.clone()).collect();
        for slot in slots {
            self.state.borrow_mut().open.remove(&slot.key);
            self.tie_up(&slot.key, slot.close());
        }
    }

    /// What follows from the end of an operation: its body is told and dropped, and whoever awaits it goes on.
    fn tie_up(&self, key: &Key, loose: Loose) {
        self.end_attempt(loose.attempt);
        let body = self.state.borrow_mut().bodies.remove(key);
        drop(body);
        self.info.transactions.remove(key);
        for waker in loose.wakers.into_iter().flatten() {
            waker.wake();
        }
    }

    fn end_attempt_of(&self, slot: &Rc<Slot>) {
        let attempt = slot.set_attempt(None);
        let ran = attempt.is_some();
        self.end_attempt(attempt);
        if ran {
            // Its owner drops the body when it finds the attempt gone.
            self.go_on(&slot.key, slot);
        }
    }

    fn end_attempt(&self, attempt: Option<StepContext>) {
        if let Some(attempt) = attempt {
            attempt.cancel();
            self.state.borrow_mut().executing -= 1;
        }
    }
}
