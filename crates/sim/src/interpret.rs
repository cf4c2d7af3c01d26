//! Plays a tree: one ordinary workflow that uses every primitive there is.

mod bodies;
mod errands;
mod family;
mod group;
mod operations;
mod texts;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use outlast::testing::WorldTime;
use outlast::{Ctx, Error, Outlast, Result, Workflow};
use outlast_core::limits::Limits;
use serde::{Deserialize, Serialize};

use crate::ground::limits;
use crate::ledger::{End, Ledger};
use crate::outcome::{Outcome, Partial, Settled};
use crate::tree::{Last, Place, Tree, Wait};
use bodies::Course;
pub(crate) use errands::ERRAND;
pub use errands::{ALONE, Order, employ, enqueue};
use errands::{performed, queued};
use operations::{Open, made};
pub(crate) use texts::{STEP, bounded, edition, steps, write};

/// The workflow that plays a tree.
pub const WORKFLOW: &str = "tree";
/// The version a workflow has if nobody says otherwise.
pub const FIRST_VERSION: &str = "1";
/// The one after it.
pub const SECOND_VERSION: &str = "2";
/// How often a token is handed out at most.
pub const SUBMISSIONS: u32 = 3;
/// The code of every failure that a tree plans.
pub const PLANNED: &str = "planned";
/// How far apart a body's signs of life are.
const BEAT: Duration = Duration::from_millis(300);

/// What the workflow is started with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// What to do.
    pub tree: Tree,
}

impl Input {
    /// To do this.
    pub fn of(tree: Tree) -> Input {
        Input { tree }
    }

    /// One that nobody else has: no tree grows like it, or shrinks to it.
    pub fn other() -> Input {
        Input { tree: Tree::Condition { not: 77, checks: 1, fails: 0, panics: false } }
    }
}

/// A future that stays on its thread.
type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// Registers the workflow [`WORKFLOW`], whose bodies tell the ledger that they ran. What is too large for it is small.
pub fn register(engine: Outlast, outside: Outside) -> Outlast {
    register_versions(engine, outside, &[FIRST_VERSION])
}

/// The same in several versions, the newest first. They do the same; whose code it was the ledger is told.
pub fn register_versions(engine: Outlast, outside: Outside, versions: &[&'static str]) -> Outlast {
    let code = |version| {
        let outside = Arc::new(Outside { version, ..outside.clone() });
        move |ctx: Ctx, input: Input| run(Arc::clone(&outside), ctx, input)
    };
    let [newest, older @ ..] = versions else { return engine };
    let workflow = Workflow::new(WORKFLOW, code(newest)).version(*newest);
    let add = |workflow: Workflow, version: &&'static str| workflow.previous_version(*version, code(version));
    let pending_operations = outside.pending_max.unwrap_or(limits().pending_operations);
    engine.limits(Limits { pending_operations, ..limits() }).register(older.iter().fold(workflow, add))
}

/// What is not the workflow's own.
#[derive(Clone)]
pub struct Outside {
    /// Which version of the code it is.
    version: &'static str,
    ledger: Arc<Ledger>,
    time: WorldTime,
    /// The statement that puts an entry into the author's table; none if the store has no SQL.
    enter: Option<String>,
    /// How many operations of a run may be pending at once, if only a few.
    pending_max: Option<usize>,
}

impl Outside {
    /// Bodies tell the ledger that they ran, and take virtual time: `time` is that of the world they run in. Transactions
    /// leave an entry with the statement `enter`.
    pub fn new(ledger: Arc<Ledger>, time: WorldTime, enter: Option<String>) -> Outside {
        Outside { version: FIRST_VERSION, ledger, time, enter, pending_max: None }
    }

    /// The same, where a run may do only so many things at once.
    #[must_use]
    pub fn at_once(self, pending_max: Option<usize>) -> Outside {
        Outside { pending_max, ..self }
    }
}

async fn run(outside: Arc<Outside>, ctx: Ctx, input: Input) -> Result<Outcome> {
    let (run, generation) = (ctx.run_id().to_string(), ctx.generation().0);
    let ledger = Arc::clone(&outside.ledger);
    let played = Player { outside, ctx, place: Place::root() }.play(input.tree).await;
    if let Some(error) = played.as_ref().err().filter(|error| error.is_cancelled()) {
        ledger.ended(End { run: run.clone(), generation, failure: error.failure().clone() });
    }
    Ok(Outcome::Run { run, generation, gave: Box::new(played?) })
}

/// Plays one node.
#[derive(Clone)]
struct Player {
    outside: Arc<Outside>,
    ctx: Ctx,
    place: Place,
}

impl Player {
    fn part(&self, number: usize) -> Player {
        Player { place: self.place.part(number), ..self.clone() }
    }

    fn at(&self, ctx: Ctx, place: Place) -> Player {
        Player { ctx, place, outside: Arc::clone(&self.outside) }
    }

    /// Boxed, because trees are made of trees.
    fn play(self, tree: Tree) -> LocalFuture<Result<Outcome>> {
        Box::pin(async move {
            match tree {
                Tree::Seq(parts) => self.seq(parts).await,
                Tree::Try(part) => Ok(Outcome::Tried(Box::new(Settled::of(self.part(0).play(*part).await)))),
                Tree::Timed(part) => self.timed(*part).await,
                Tree::Scope(part) => self.scope(*part).await,
                Tree::Cleanup { body, cleanup } => self.cleanup(*body, *cleanup).await,
                Tree::Step(work) if work.spawned => Ok(made(self.spawned(&work).await?)),
                Tree::Step(work) => Ok(made(self.step("step", &work).await?)),
                Tree::Transaction(work) => Ok(made(self.transaction(&work).await?)),
                Tree::Task(errand) if errand.detached => Ok(queued(self.task(&errand).detach().await?)),
                Tree::Task(errand) => Ok(performed(self.task(&errand).await?)),
                Tree::Sleep(ms) => done(self.sleep("sleep", ms).await),
                Tree::SleepUntil(ms) => self.sleep_until(ms).await,
                Tree::Wait(wait) => self.wait(wait).await,
                Tree::Approve(timeout) => self.approve(timeout).await,
                Tree::Callback(call) => self.callback(call).await,
                Tree::Condition { not, checks, fails, panics } => {
                    let course = Course { not, checks, fails, panics };
                    Ok(Outcome::Condition(self.condition(course).await?))
                }
                Tree::Child(child) => self.child(child).await,
                Tree::Batch(batch) => self.batch(batch).await,
                Tree::Group(group) => self.group(group).await,
                Tree::Started { first, meanwhile, last } => self.started(*first, *meanwhile, last).await,
                Tree::Lent { wait, naps, last } => self.lent(&wait, naps, last).await,
                Tree::Now => Ok(Outcome::Now(self.now("now").await?)),
                Tree::Uuid => Ok(Outcome::Uuid(self.ctx.uuid().id(&self.place.name("uuid")).await?.to_string())),
                Tree::Random => Ok(Outcome::Random(self.ctx.random().id(&self.place.name("random")).await?)),
                Tree::Emit => done(self.ctx.emit("emitted", &self.place.name("emit"))),
                Tree::SetState => done(self.ctx.set_state(&self.place.name("state"))),
                Tree::Fail => Err(Error::new(PLANNED, self.place.name("fail"))),
                Tree::Panic => panic!("{PLANNED}: {}", self.place.key("panic")),
                Tree::Renew(rest) => self.ctx.continue_as_new(&Input { tree: *rest }),
            }
        })
    }

    async fn seq(self, parts: Vec<Tree>) -> Result<Outcome> {
        let mut before = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            match self.part(number).play(part).await {
                Ok(outcome) => before.push(outcome),
                Err(error) => return Err(Partial { before, ..Partial::default() }.wrap(error)),
            }
        }
        Ok(Outcome::Seq(before))
    }

    async fn timed(self, part: Tree) -> Result<Outcome> {
        let before = self.now("before").await?;
        let gave = Box::new(self.part(0).play(part).await?);
        let after = self.now("after").await?;
        Ok(Outcome::Timed { before, after, gave })
    }

    async fn now(&self, kind: &str) -> Result<i64> {
        Ok(self.ctx.now().id(&self.place.name(kind)).await?.as_millis())
    }

    async fn scope(self, part: Tree) -> Result<Outcome> {
        let inner = self.scoped("scope", self.place.inside("scope").part(0), part);
        Ok(Outcome::Scope(Box::new(inner.await?)))
    }

    async fn cleanup(self, body: Tree, cleanup: Tree) -> Result<Outcome> {
        match self.part(0).play(body).await {
            Ok(gave) => Ok(Outcome::Body(Box::new(gave))),
            Err(error) if error.is_cancelled() => {
                let cleaned = Some(Settled::of(self.part(1).play(cleanup).await));
                self.outside.ledger.part("cleanup".to_owned());
                Err(Partial { cleaned, ..Partial::default() }.wrap(error))
            }
            Err(error) => Err(error),
        }
    }

    async fn sleep_until(self, ms: i64) -> Result<Outcome> {
        let now = self.now("before").await?;
        let until = now.saturating_add(ms);
        let instant = outlast::Timestamp::from_millis(until);
        self.ctx.sleep_until(instant).id(&self.place.name("sleep")).await?;
        Ok(Outcome::SleptUntil { until, after: self.now("after").await? })
    }

    async fn started(self, first: Tree, meanwhile: Tree, last: Last) -> Result<Outcome> {
        let open = self.open(first);
        let meanwhile = Box::new(self.part(1).play(meanwhile).await?);
        let first = match last {
            Last::Await => Some(Box::new(Settled::of(open.settle().await))),
            Last::Cancel => {
                open.cancel();
                None
            }
            Last::Leave => None,
        };
        Ok(Outcome::Started { meanwhile, first })
    }

    async fn lent(self, wait: &Wait, naps: Vec<u64>, last: Last) -> Result<Outcome> {
        let mut open = Open::of_wait(&self, wait);
        let count = naps.len();
        for (number, ms) in naps.into_iter().enumerate() {
            let nap = self.sleep(&format!("nap{number}"), ms);
            if let Some(settled) = open.race(&self.ctx, nap).await? {
                return Ok(Outcome::Lent { naps: number, wait: Some(Box::new(settled)) });
            }
        }
        let wait = match last {
            Last::Await => Some(Box::new(Settled::of(open.settle().await))),
            Last::Cancel => {
                open.cancel();
                None
            }
            Last::Leave => None,
        };
        Ok(Outcome::Lent { naps: count, wait })
    }
}

fn done(result: Result<()>) -> Result<Outcome> {
    result.map(|()| Outcome::Done)
}
