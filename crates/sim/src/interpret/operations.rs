//! The primitives, each to be awaited where it is written, or started and awaited later.

use std::time::Duration;

use outlast::{
    Approve, Batch, Check, Ctx, Decision, Handle, Race2, Result, Retry, Sleep, Step, StepContext, Token, Transaction,
    Tx, WaitFor, WaitForCallback, WaitForCondition,
};
use serde_json::Value;

use super::bodies::{Course, Product, Submitted, Whose};
use super::errands::{performed, queued};
use super::{Player, SUBMISSIONS, done};
use crate::ledger::Policy;
use crate::outcome::{Outcome, Settled};
use crate::tree::{Call, Kin, Place, Tree, Wait, Work, callback_key, first_place};

/// Why the types of ids are not named here: they are the engine's own.
type RunId = outlast_core::id::RunId;
pub(super) type TaskId = outlast_core::id::TaskId;

/// The longest delay between two attempts.
const DELAY_MAX: Duration = Duration::from_secs(300);
/// A shorter first delay than anybody would choose, so that conditions and tokens do not take all the time there is.
const SOON: Duration = Duration::from_millis(200);

impl Player {
    pub(super) fn whose(&self, key: String) -> Whose {
        Whose { generation: self.ctx.generation().0, key, version: None }
    }

    /// Tells the ledger what is said about the attempts at an operation: the default policy from a first delay on, which
    /// doubles and of which half is left to chance.
    fn tell_policy(&self, key: &str, attempts: u32, first: Duration) {
        let longest = first.saturating_mul(1 << attempts.saturating_sub(2).min(20)).min(DELAY_MAX);
        let policy = Policy { attempts, shortest: first / 2, longest };
        self.outside.ledger.policy(self.ctx.run_id().as_str(), self.ctx.generation().0, key, policy);
    }

    pub(super) fn step(
        &self,
        kind: &str,
        work: &Work,
    ) -> Step<'static, impl AsyncFn(StepContext) -> Result<Product> + Send + use<>, Product> {
        let (outside, whose, body) = (self.outside.clone(), self.whose(self.place.key(kind)), work.clone());
        let step = self.ctx.step(&self.place.name(kind), async move |step| outside.work(&whose, &body, step).await);
        let first = Duration::from_millis(work.delay);
        self.tell_policy(&self.place.key(kind), work.attempts, first);
        let mut step = step.retry(Retry::attempts(work.attempts).initial(first));
        if work.at_most_once {
            step = step.at_most_once();
        }
        if let Some(ms) = work.timeout {
            step = step.timeout(Duration::from_millis(ms));
        }
        if let Some(ms) = work.heartbeat {
            step = step.heartbeat(Duration::from_millis(ms));
        }
        step
    }

    /// A step whose body is to run on a runtime.
    pub(super) fn spawned(&self, work: &Work) -> Handle<Product> {
        let (outside, whose, body) = (self.outside.clone(), self.whose(self.place.key("step")), work.clone());
        let step = self.ctx.step(&self.place.name("step"), move |step: StepContext| {
            let (outside, whose, body) = (outside.clone(), whose.clone(), body.clone());
            async move { outside.work(&whose, &body, step).await }
        });
        let first = Duration::from_millis(work.delay);
        self.tell_policy(&self.place.key("step"), work.attempts, first);
        step.retry(Retry::attempts(work.attempts).initial(first)).spawn()
    }

    pub(super) fn transaction(&self, work: &Work) -> Transaction<Product> {
        let (outside, whose, body) = (self.outside.clone(), self.whose(self.place.key("transaction")), work.clone());
        let run = self.ctx.run_id().to_string();
        let first = Duration::from_millis(work.delay);
        self.tell_policy(&whose.key, work.attempts, first);
        let transaction = self.ctx.transaction(&self.place.name("transaction"), move |tx: Tx| {
            let (outside, whose, body, run) = (outside.clone(), whose.clone(), body.clone(), run.clone());
            async move { outside.transact(&whose, &run, &body, tx).await }
        });
        transaction.retry(Retry::attempts(work.attempts).initial(first))
    }

    pub(super) fn sleep(&self, kind: &str, ms: u64) -> Sleep {
        self.ctx.sleep(Duration::from_millis(ms)).id(&self.place.name(kind))
    }

    /// A wait that gives a payload or fails. Of another type if only a number will do, so that others do not fit.
    fn sure<T: serde::de::DeserializeOwned>(&self, wait: &Wait) -> WaitFor<T, T> {
        let waiting = self.ctx.wait_for::<T>(&wait.name).id(&self.place.name("wait"));
        match wait.timeout {
            Some(ms) => waiting.timeout(Duration::from_millis(ms)).or_fail(),
            None => waiting,
        }
    }

    fn unsure<T: serde::de::DeserializeOwned>(&self, wait: &Wait, ms: u64) -> WaitFor<T, Option<T>> {
        self.ctx.wait_for::<T>(&wait.name).id(&self.place.name("wait")).timeout(Duration::from_millis(ms))
    }

    pub(super) fn any_signal(&self, wait: &Wait) -> WaitFor<Value, Value> {
        self.sure(wait)
    }

    pub(super) fn number(&self, wait: &Wait) -> WaitFor<u64, u64> {
        self.sure(wait)
    }

    pub(super) async fn wait(self, wait: Wait) -> Result<Outcome> {
        match (wait.number, wait.timeout) {
            (true, Some(ms)) if !wait.or_fail => Ok(in_time(self.unsure::<u64>(&wait, ms).await?)),
            (false, Some(ms)) if !wait.or_fail => Ok(in_time(self.unsure::<Value>(&wait, ms).await?)),
            (true, _) => Ok(signal(self.number(&wait).await?)),
            (false, _) => Ok(signal(self.any_signal(&wait).await?)),
        }
    }

    fn question(&self) -> Approve {
        self.ctx.approve("Go on?").id(&self.place.name("approve"))
    }

    pub(super) async fn approve(self, timeout: Option<u64>) -> Result<Outcome> {
        match timeout {
            Some(ms) => Ok(decided_in_time(self.question().timeout(Duration::from_millis(ms)).await?)),
            None => Ok(decided(&self.question().await?)),
        }
    }

    pub(super) async fn callback(self, call: Call) -> Result<Outcome> {
        if call.submitted {
            return Ok(Outcome::Answered(self.submitted(&call).await?));
        }
        let mut callback = self.ctx.callback::<Value>().id(&self.place.name("callback"));
        if let Some(ms) = call.timeout {
            callback = callback.timeout(Duration::from_millis(ms));
        }
        if let Some(ms) = call.heartbeat {
            callback = callback.heartbeat(Duration::from_millis(ms));
        }
        let callback = callback.create();
        let submitted = Submitted { callback: callback.id().to_owned(), token: callback.token() };
        self.tell_policy(&self.place.key("submit"), SUBMISSIONS, SOON);
        let (outside, whose) = (self.outside.clone(), self.whose(self.place.key("submit")));
        let hand_out = self.ctx.step(&self.place.name("submit"), async move |step: StepContext| {
            outside.submit(&whose, call.fails, &step, &submitted)
        });
        hand_out.retry(submissions()).await?;
        Ok(Outcome::Answered(callback.await?))
    }

    fn submitted(
        &self,
        call: &Call,
    ) -> WaitForCallback<'static, impl AsyncFn(StepContext, Token) -> Result<()> + Send + use<>, Value> {
        let (outside, fails) = (self.outside.clone(), call.fails);
        let key = callback_key(&self.place, call);
        let whose = self.whose(format!("{}/submit", self.place.key("callback")));
        self.tell_policy(&whose.key, SUBMISSIONS, SOON);
        let submit = async move |step: StepContext, token: Token| {
            outside.submit(&whose, fails, &step, &Submitted::new(&key, &token))
        };
        let mut callback = self.ctx.wait_for_callback(&self.place.name("callback"), submit).retry(submissions());
        if let Some(ms) = call.timeout {
            callback = callback.timeout(Duration::from_millis(ms));
        }
        if let Some(ms) = call.heartbeat {
            callback = callback.heartbeat(Duration::from_millis(ms));
        }
        callback
    }

    pub(super) fn condition(
        &self,
        course: Course,
    ) -> WaitForCondition<'static, impl AsyncFn(StepContext, u32) -> Result<Check<u32>> + Send + use<>, u32> {
        let (outside, whose) = (self.outside.clone(), self.whose(self.place.key("condition")));
        self.tell_policy(&whose.key, course.checks, SOON);
        let check = async move |step: StepContext, checked: u32| outside.check(&whose, course, &step, checked);
        self.ctx
            .wait_for_condition(&self.place.name("condition"), 0, check)
            .retry(Retry::attempts(course.checks).initial(SOON))
    }
}

fn submissions() -> Retry {
    Retry::attempts(SUBMISSIONS).initial(SOON)
}

/// Which attempt succeeded.
pub(super) fn made(product: Product) -> Outcome {
    Outcome::Step(product.attempt)
}

pub(super) fn signal(payload: impl Into<Value>) -> Outcome {
    Outcome::Signal(payload.into())
}

fn in_time(payload: Option<impl Into<Value>>) -> Outcome {
    payload.map_or(Outcome::NoSignal, signal)
}

fn decided(decision: &Decision) -> Outcome {
    Outcome::Decided(decision.approved)
}

fn decided_in_time(decision: Option<Decision>) -> Outcome {
    decision.as_ref().map_or(Outcome::Undecided, decided)
}

/// An operation that was started.
pub(super) enum Open {
    Step(Handle<Product>),
    Task(Handle<Product>),
    Queued(Handle<TaskId>),
    Sleep(Handle<()>),
    Signal(Handle<Value>),
    Number(Handle<u64>),
    SignalInTime(Handle<Option<Value>>),
    NumberInTime(Handle<Option<u64>>),
    Decision(Handle<Decision>),
    DecisionInTime(Handle<Option<Decision>>),
    Answer(Handle<Value>),
    Condition(Handle<u32>),
    Child(Handle<Outcome>),
    Detached(Handle<RunId>),
    Scope(Handle<Outcome>),
    Inside(Handle<Outcome>),
    Batch(Handle<Batch<Outcome>>),
}

impl Player {
    /// Starts something: as it is if that can be, and inside a scope otherwise.
    pub(super) fn open(&self, tree: Tree) -> Open {
        let place = first_place(&self.place, &tree);
        let part = self.part(0);
        match tree {
            Tree::Step(work) if work.spawned => Open::Step(part.spawned(&work)),
            Tree::Step(work) => Open::Step(part.step("step", &work).start()),
            Tree::Transaction(work) => Open::Step(part.transaction(&work).start()),
            Tree::Task(errand) if errand.detached => Open::Queued(part.task(&errand).detach().start()),
            Tree::Task(errand) => Open::Task(part.task(&errand).start()),
            Tree::Sleep(ms) => Open::Sleep(part.sleep("sleep", ms).start()),
            Tree::Wait(wait) => Open::of_wait(&part, &wait),
            Tree::Approve(None) => Open::Decision(part.question().start()),
            Tree::Approve(Some(ms)) => Open::DecisionInTime(part.question().timeout(Duration::from_millis(ms)).start()),
            Tree::Callback(call) if call.submitted => Open::Answer(part.submitted(&call).start()),
            Tree::Condition { not, checks, fails, panics } => {
                Open::Condition(part.condition(Course { not, checks, fails, panics }).start())
            }
            Tree::Child(child) if child.how != Kin::Left => part.open_child(child),
            Tree::Batch(batch) => part.open_batch(batch),
            Tree::Scope(inner) => Open::Scope(part.scoped("scope", part.place.inside("scope").part(0), *inner).start()),
            tree => Open::Inside(part.scoped("started", place, tree).start()),
        }
    }

    /// A scope in which a tree is played.
    pub(super) fn scoped(&self, kind: &str, place: Place, tree: Tree) -> outlast::Scope<'static, Outcome> {
        let player = self.clone();
        self.ctx.scope(&self.place.name(kind), async move |ctx: Ctx| player.at(ctx, place).play(tree).await)
    }
}

impl Open {
    pub(super) fn of_wait(player: &Player, wait: &Wait) -> Open {
        match (wait.number, wait.timeout) {
            (true, Some(ms)) if !wait.or_fail => Open::NumberInTime(player.unsure::<u64>(wait, ms).start()),
            (false, Some(ms)) if !wait.or_fail => Open::SignalInTime(player.unsure::<Value>(wait, ms).start()),
            (true, _) => Open::Number(player.number(wait).start()),
            (false, _) => Open::Signal(player.any_signal(wait).start()),
        }
    }

    /// Awaits it.
    pub(super) async fn settle(self) -> Result<Outcome> {
        match self {
            Open::Step(handle) => Ok(made(handle.await?)),
            Open::Task(handle) => Ok(performed(handle.await?)),
            Open::Queued(handle) => Ok(queued(handle.await?)),
            Open::Sleep(handle) => done(handle.await),
            Open::Signal(handle) => Ok(signal(handle.await?)),
            Open::Number(handle) => Ok(signal(handle.await?)),
            Open::SignalInTime(handle) => Ok(in_time(handle.await?)),
            Open::NumberInTime(handle) => Ok(in_time(handle.await?)),
            Open::Decision(handle) => Ok(decided(&handle.await?)),
            Open::DecisionInTime(handle) => Ok(decided_in_time(handle.await?)),
            Open::Answer(handle) => Ok(Outcome::Answered(handle.await?)),
            Open::Condition(handle) => Ok(Outcome::Condition(handle.await?)),
            Open::Child(handle) | Open::Inside(handle) => handle.await,
            Open::Detached(handle) => Ok(Outcome::Detached(handle.await?.to_string())),
            Open::Scope(handle) => Ok(Outcome::Scope(Box::new(handle.await?))),
            Open::Batch(handle) => Ok(super::group::batch_outcome(handle.await?)),
        }
    }

    /// Cancels it.
    pub(super) fn cancel(self) {
        match self {
            Open::Step(handle) | Open::Task(handle) => handle.cancel(),
            Open::Queued(handle) => handle.cancel(),
            Open::Condition(handle) => handle.cancel(),
            Open::Sleep(handle) => handle.cancel(),
            Open::Signal(handle) | Open::Answer(handle) => handle.cancel(),
            Open::Number(handle) => handle.cancel(),
            Open::SignalInTime(handle) => handle.cancel(),
            Open::NumberInTime(handle) => handle.cancel(),
            Open::Decision(handle) => handle.cancel(),
            Open::DecisionInTime(handle) => handle.cancel(),
            Open::Child(handle) | Open::Scope(handle) | Open::Inside(handle) => handle.cancel(),
            Open::Detached(handle) => handle.cancel(),
            Open::Batch(handle) => handle.cancel(),
        }
    }

    /// Lends it to a race against a sleep; what became of it if it did not lose. The sleep's own failure ends the program.
    pub(super) async fn race(&mut self, ctx: &Ctx, nap: Sleep) -> Result<Option<Settled>> {
        let raced = match self {
            Open::Signal(handle) => ctx.race((nap, handle)).await.map(|won| second(won).map(signal)),
            Open::Number(handle) => ctx.race((nap, handle)).await.map(|won| second(won).map(signal)),
            _ => return Ok(None),
        };
        match raced {
            Ok(won) => Ok(won.map(Settled::Gave)),
            // A sleep fails in one way only, and then the wait failed with it.
            Err(error) if error.is_cancelled() => Err(error),
            Err(error) => Ok(Some(Settled::Failed(error.into_failure()))),
        }
    }
}

fn second<T>(won: Race2<(), T>) -> Option<T> {
    match won {
        Race2::First(()) => None,
        Race2::Second(value) => Some(value),
    }
}
