//! The context of a workflow: everything it can do that outlasts a crash.

use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use outlast_core::id::{Generation, Key, Namespace, RunId, Version, WorkflowName};
use outlast_core::operation::{Due, Operation as Request};
use outlast_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::approve::Approve;
use super::batch::{Map, Parallel};
use super::callback::{Callback, Token, WaitForCallback};
use super::child::Child;
use super::codec;
use super::condition::{Check, WaitForCondition};
use super::group::{All, AllSettled, Any, Group, Race};
use super::record::{NewUuid, Now, Random, Record};
use super::scope::Scope;
use super::shared::Shared;
use super::sleep::Sleep;
use super::step::Step;
use super::step_context::StepContext;
use super::task::Task;
use super::wait_for::WaitFor;
use crate::error::{Error, Result};

/// The code of the error that ends a generation.
const CONTINUED: &str = "continued";

/// The context of a workflow: everything it can do that outlasts a crash.
///
/// Its methods return operations. An operation has its identity from the place where it is *written*, so that replay
/// recognises it; it starts when it is awaited, or when `.start()` is called on it; and it is settled by a fact in the
/// run's journal. Whatever else a workflow does must be the same each time: clocks, chance, I/O and Tokio belong into
/// steps.
///
/// ```
/// use std::time::Duration;
/// use outlast::Ctx;
///
/// # async fn pay(_order: u32, _key: &str) -> std::io::Result<u32> { Ok(1) }
/// async fn checkout(ctx: Ctx, order: u32) -> outlast::Result<u32> {
///     let payment = ctx.step("charge", async |step| Ok(pay(order, step.idempotency_key()).await?)).await?;
///     let reminder = ctx.sleep(Duration::from_secs(86_400)).start();
///     let confirmed = ctx.wait_for::<bool>("confirmed").timeout(Duration::from_secs(3_600)).await?;
///     if confirmed != Some(true) {
///         reminder.await?;
///     }
///     Ok(payment)
/// }
/// ```
#[derive(Clone)]
pub struct Ctx {
    pub(super) shared: Rc<Shared>,
    /// What the keys of its operations begin with.
    pub(super) scope: Option<Key>,
}

/// Work, time, and the world.
impl Ctx {
    /// Runs code with side effects, and records what it returns: replay gets that, and does not run it again.
    ///
    /// It runs at least once, with the same [`StepContext::idempotency_key`] each time, and is retried when it fails.
    /// It may borrow, but cannot use a `Ctx`: a step is one operation.
    ///
    /// ```
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let path = String::from("/etc/hostname");
    /// let host: String = ctx.step("read", async |_| Ok(std::fs::read_to_string(&path)?)).await?;
    /// # let _ = host; Ok(()) }
    /// ```
    #[track_caller]
    pub fn step<'a, T, F>(&self, name: &str, body: F) -> Step<'a, F, T>
    where
        F: AsyncFn(StepContext) -> Result<T> + Send + 'a,
        T: Serialize + DeserializeOwned + 'a,
    {
        Step::new(self, name, body)
    }

    /// Sleeps so long, from when it is started, whatever happens to the process meanwhile.
    #[track_caller]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self, Due::After(duration))
    }

    /// Sleeps until this instant. One that has passed ends the sleep at once.
    #[track_caller]
    pub fn sleep_until(&self, instant: Timestamp) -> Sleep {
        Sleep::new(self, Due::At(instant))
    }

    /// The time, as it is recorded.
    ///
    /// ```
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let began = ctx.now().await?;
    /// let (id, dice) = (ctx.uuid().await?, ctx.random().await? % 6);
    /// # let _ = (began, id, dice); Ok(()) }
    /// ```
    #[track_caller]
    pub fn now(&self) -> Now {
        Record::new(self)
    }

    /// A unique id, as it is recorded. Not a secret.
    #[track_caller]
    pub fn uuid(&self) -> NewUuid {
        Record::new(self)
    }

    /// A random number, as it is recorded. Not a secret.
    #[track_caller]
    pub fn random(&self) -> Random {
        Record::new(self)
    }

    /// Asks the code, again and again, until it says that the condition holds. Each check gets the state that the one
    /// before left, and it is recorded in between.
    ///
    /// ```
    /// use outlast::Check;
    ///
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let checks = ctx
    ///     .wait_for_condition("ready", 0_u32, async |_, checks| {
    ///         let is_ready = std::path::Path::new("/tmp/ready").exists();
    ///         Ok(if is_ready { Check::Met(checks) } else { Check::Not(checks + 1) })
    ///     })
    ///     .await?;
    /// # let _ = checks; Ok(()) }
    /// ```
    #[track_caller]
    pub fn wait_for_condition<'a, S, F>(&self, name: &str, initial: S, check: F) -> WaitForCondition<'a, F, S>
    where
        F: AsyncFn(StepContext, S) -> Result<Check<S>> + Send + 'a,
        S: Serialize + DeserializeOwned + 'a,
    {
        WaitForCondition::new(self, name, &initial, check)
    }
}

/// People and other programs.
impl Ctx {
    /// Waits for a signal. Signals of a name are kept and taken in order, those that came early too.
    #[track_caller]
    pub fn wait_for<T: DeserializeOwned>(&self, name: &str) -> WaitFor<T> {
        WaitFor::new(self, name)
    }

    /// Asks somebody to decide. A no is a [`Decision`](crate::Decision) too, not an error.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let week = Duration::from_secs(7 * 86_400);
    /// match ctx.approve("Ship order 42?").assignee("ops").timeout(week).await? {
    ///     Some(decision) if decision.approved => {}
    ///     Some(_) | None => return Err(outlast::Error::new("refused", "nobody wants it")),
    /// }
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn approve(&self, title: impl Into<String>) -> Approve {
        Approve::new(self, title.into())
    }

    /// A token that somebody else answers, with a value or with an error. Create it, hand it out in a step, and await
    /// it; or let [`Ctx::wait_for_callback`] do that.
    #[track_caller]
    pub fn callback<T: DeserializeOwned>(&self) -> Callback<T> {
        Callback::new(self)
    }

    /// Creates a callback, hands out its token in a step, and waits for the answer; all of it in a scope of this name.
    ///
    /// ```
    /// # async fn order_lab_test(_token: &str) -> std::io::Result<()> { Ok(()) }
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let report: String =
    ///     ctx.wait_for_callback("lab", async |_, token| Ok(order_lab_test(&token).await?)).await?;
    /// # let _ = report; Ok(()) }
    /// ```
    #[track_caller]
    pub fn wait_for_callback<'a, T, F>(&self, name: &str, submit: F) -> WaitForCallback<'a, F, T>
    where
        F: AsyncFn(StepContext, Token) -> Result<()> + Send + 'a,
        T: DeserializeOwned,
    {
        WaitForCallback::new(self, name, submit)
    }

    /// Starts another run, and waits for what it returns.
    ///
    /// ```
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let label: String = ctx.child("ship", &42).id("shipment-42").await?;
    /// let audit = ctx.child::<()>("audit", &label).detach().await?;
    /// # let _ = audit; Ok(()) }
    /// ```
    #[track_caller]
    pub fn child<T: DeserializeOwned>(&self, workflow: &str, input: &(impl Serialize + ?Sized)) -> Child<T> {
        Child::new(self, workflow, input)
    }
}

/// Work that others do.
impl Ctx {
    /// Queues a task for a worker, in this process or another, and waits for what its handler returns. Its handler is
    /// registered with [`Outlast::task`](crate::Outlast::task).
    ///
    /// ```
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let parcel: String = ctx.task("pack", &42).queue("warehouse").await?;
    /// let label = ctx.task::<String>("label", &parcel).start();
    /// ctx.task::<()>("audit", &parcel).detach().await?;
    /// # let _ = label.await?; Ok(()) }
    /// ```
    #[track_caller]
    pub fn task<T: DeserializeOwned>(&self, name: &str, args: &(impl Serialize + ?Sized)) -> Task<T> {
        Task::new(self, name, args)
    }
}

/// Several operations.
impl Ctx {
    /// A part of the workflow with keys and a result of its own. Once it has returned, replay does not run it again.
    /// Its code uses the `Ctx` that it is given, and no other.
    #[track_caller]
    pub fn scope<'a, T, F>(&self, name: &str, body: F) -> Scope<'a, T>
    where
        F: AsyncFnOnce(Ctx) -> Result<T> + 'a,
        T: Serialize + DeserializeOwned + 'a,
    {
        Scope::new(self, name, body)
    }

    /// Runs the same code for each item, in a scope for each. Without a policy, one failure ends it; see
    /// [`Map::tolerate_failures`] and its like. That branches failed is no error: see [`Batch`](crate::Batch).
    ///
    /// ```
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let lengths = ctx
    ///     .map("measure", vec!["a", "bc"], async |ctx, word, _| {
    ///         ctx.step("length", async |_| Ok(word.len())).await
    ///     })
    ///     .max_concurrency(10)
    ///     .await?
    ///     .results()?;
    /// assert_eq!(lengths, [1, 2]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn map<'a, I, T, F>(&self, name: &str, items: Vec<I>, body: F) -> Map<'a, T>
    where
        F: AsyncFn(Ctx, I, usize) -> Result<T> + 'a,
        I: 'a,
        T: Serialize + DeserializeOwned + 'a,
    {
        Map::new(self, name, items, body)
    }

    /// Runs several branches, in a scope for each. Like [`Ctx::map`], with code of its own for each branch.
    ///
    /// ```
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let parallel = ctx
    ///     .parallel("both")
    ///     .branch(async |ctx| ctx.step("left", async |_| Ok(1)).await)
    ///     .branch(async |ctx| ctx.step("right", async |_| Ok(2)).await);
    /// assert_eq!(parallel.await?.results()?, [1, 2]);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn parallel<'a, T: Serialize + DeserializeOwned + 'a>(&self, name: &str) -> Parallel<'a, T> {
        Parallel::new(self, name)
    }

    /// All of these operations; fails with the first failure, and cancels the others then.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// let (order, ()) = ctx.all((ctx.wait_for::<u32>("order"), ctx.sleep(Duration::from_secs(9)))).await?;
    /// # let _ = order; Ok(()) }
    /// ```
    pub fn all<G: Group>(&self, operations: G) -> All<G> {
        All::new(operations)
    }

    /// The first of these operations that succeeds; cancels the others then. If all fail, it fails with the code
    /// `all_failed`, and their failures as its data.
    pub fn any<G: Group>(&self, operations: G) -> Any<G> {
        Any::new(operations)
    }

    /// The first of these operations that is settled, well or badly; cancels the others then. First is what is first
    /// in the journal, also among those that were settled before this is called, and also on replay. One that is only
    /// lent (`&mut handle`) is not cancelled when it loses, and can be awaited again.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use outlast::Race2;
    ///
    /// # async fn workflow(ctx: outlast::Ctx) -> outlast::Result<()> {
    /// match ctx.race((ctx.wait_for::<u32>("order"), ctx.sleep(Duration::from_secs(9)))).await? {
    ///     Race2::First(order) => println!("order {order}"),
    ///     Race2::Second(()) => println!("too late"),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn race<G: Group>(&self, operations: G) -> Race<G> {
        Race::new(operations)
    }

    /// What became of each of these operations, once all are settled.
    pub fn all_settled<G: Group>(&self, operations: G) -> AllSettled<G> {
        AllSettled::new(operations)
    }
}

/// The run itself.
impl Ctx {
    /// Tells observers something. They see it once; it is not kept in the journal. More than 1 MiB is refused.
    #[track_caller]
    pub fn emit(&self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        let payload = codec::encode_told("what is emitted", value)?;
        self.shared.request(Request::Emit { name: name.to_owned(), payload }, Location::caller());
        Ok(())
    }

    /// Changes the run's visible state. More than 1 MiB is refused.
    #[track_caller]
    pub fn set_state(&self, value: &(impl Serialize + ?Sized)) -> Result<()> {
        let delta = codec::encode_told("the state", value)?;
        self.shared.request(Request::SetState { delta }, Location::caller());
        Ok(())
    }

    /// Ends this generation of the run and begins the next with this input and an empty journal. To be returned:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use outlast::Ctx;
    /// async fn hourly(ctx: Ctx, hours: u64) -> outlast::Result<()> {
    ///     ctx.sleep(Duration::from_secs(3_600)).await?;
    ///     ctx.continue_as_new(&(hours + 1))
    /// }
    /// ```
    #[track_caller]
    pub fn continue_as_new<T>(&self, input: &(impl Serialize + ?Sized)) -> Result<T> {
        let input = codec::encode("the next input", input)?;
        // There is one next generation: of two branches that begin it, the first decides.
        if self.shared.note_continued() {
            self.shared.request(Request::ContinueAsNew { input, version: None }, Location::caller());
        }
        Err(Error::new(CONTINUED, "the run goes on as its next generation").permanent())
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.shared.info.run.id
    }

    /// The run's tenant.
    pub fn namespace(&self) -> &Namespace {
        &self.shared.info.run.namespace
    }

    /// The run's workflow.
    pub fn workflow(&self) -> &WorkflowName {
        &self.shared.info.workflow
    }

    /// The version of the workflow that the run began with.
    pub fn version(&self) -> &Version {
        &self.shared.info.version
    }

    /// Which generation this is: [`Ctx::continue_as_new`] begins the next.
    pub fn generation(&self) -> Generation {
        self.shared.info.generation
    }

    /// Whether the run was asked to stop. Its open operations failed then; those that clean up work as always.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancellations() > 0
    }
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("run", &self.shared.info.run).field("scope", &self.scope).finish()
    }
}
