//! Where the actors meet: one store call at a time, in an order that can be repeated.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use outlast_core::id::{Namespace, RunId, RunKey};
use outlast_core::time::Timestamp;
use outlast_store::invariants::World;
use outlast_store::{BoxFuture, ManualClock, Store, StoreError, Trouble};

use crate::ledger::Ledger;

/// How often a call is repeated before the story is given up.
const ATTEMPTS_MAX: usize = 20;
/// Steps without progress after which time may pass.
const QUIET: u32 = 10;

/// The actor's process is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead;

/// What an actor returns when its part is over.
pub(crate) type Played = Result<(), Dead>;
pub(crate) type Actor = Pin<Box<dyn Future<Output = Played>>>;

/// What outlives every process: the clock, and what people and machines outside remember.
pub(crate) struct Stage {
    pub(crate) clock: ManualClock,
    pub(crate) namespace: Namespace,
    pub(crate) ledger: RefCell<Ledger>,
    /// Set when an actor stands before its next store call.
    arrived: Cell<bool>,
    /// Steps since something moved.
    quiet: Cell<u32>,
    /// How often time had to jump because nobody knew of anything to come.
    pub(crate) jumps: Cell<u32>,
}

impl Stage {
    pub(crate) fn new(clock: ManualClock, namespace: Namespace) -> Rc<Stage> {
        let (arrived, quiet, jumps) = (Cell::new(false), Cell::new(0), Cell::new(0));
        Rc::new(Stage { clock, namespace, ledger: RefCell::default(), arrived, quiet, jumps })
    }

    pub(crate) fn run(&self, id: &str) -> RunKey {
        RunKey::new(self.namespace.clone(), RunId::new(id).unwrap())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Something moved: nobody needs to wait for time to pass.
    pub(crate) fn moved(&self) {
        self.quiet.set(0);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.get() > QUIET
    }

    /// Lets an actor go on until it stands before its next store call. Its answer once its part is over.
    pub(crate) async fn step(&self, actor: &mut Actor) -> Option<Played> {
        self.quiet.set(self.quiet.get() + 1);
        poll_fn(|context| match actor.as_mut().poll(context) {
            Poll::Ready(played) => Poll::Ready(Some(played)),
            Poll::Pending if self.arrived.replace(false) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

/// An actor's way to the store.
#[derive(Clone)]
pub(crate) struct Port {
    pub(crate) stage: Rc<Stage>,
    store: Arc<dyn Store>,
    /// The store behind the faults, for questions that are not part of the story.
    bare: Arc<dyn Store>,
}

impl Port {
    pub(crate) fn new(stage: Rc<Stage>, store: Arc<dyn Store>, bare: Arc<dyn Store>) -> Port {
        Port { stage, store, bare }
    }

    /// Stands before the store until it is this actor's turn.
    pub(crate) async fn gate(&self) {
        self.stage.arrived.set(true);
        let mut first = true;
        poll_fn(|_| if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The store behind the faults.
    pub(crate) fn bare(&self) -> &dyn Store {
        &*self.bare
    }

    /// Everything, as it is now.
    pub(crate) async fn world(&self) -> World {
        World::read(self.bare(), &self.stage.namespace).await.unwrap()
    }

    /// Repeats a call until the store answers.
    pub(crate) async fn call<T>(
        &self,
        call: impl for<'a> Fn(&'a dyn Store) -> BoxFuture<'a, Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, Dead> {
        for _ in 0..ATTEMPTS_MAX {
            self.gate().await;
            match call(self.store()).await {
                Err(StoreError::Unavailable { trouble: Trouble::Closed, .. }) => return Err(Dead),
                Err(StoreError::Unavailable { .. }) => {}
                answer => return Ok(answer),
            }
        }
        panic!("the store does not answer any more");
    }

    /// As [`Port::call`], for a call that has no reason to be refused.
    pub(crate) async fn must<T>(
        &self,
        call: impl for<'a> Fn(&'a dyn Store) -> BoxFuture<'a, Result<T, StoreError>>,
    ) -> Result<T, Dead> {
        Ok(self.call(call).await?.unwrap_or_else(|error| panic!("the store refuses: {error}")))
    }
}

/// The answer of a batch of one.
pub(crate) fn single<'a, T: Send + 'a>(
    batch: BoxFuture<'a, Vec<Result<T, StoreError>>>,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move { batch.await.remove(0) })
}
