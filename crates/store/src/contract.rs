//! What every store must do, as stories that run against any of them.
//!
//! A store's author writes a [`Harness`] that opens a fresh store on a manual clock, and runs every [`Case`] of
//! [`cases`] with it. A case panics with the rule that was broken. No case sleeps, and each says its times exactly, so
//! that a failure happens again.
//!
//! ```
//! use std::sync::Arc;
//! use outlast_core::limits::Limits;
//! use outlast_store::contract::{Fixture, Harness, cases};
//! use outlast_store::{BoxFuture, Clock, ManualClock, MemoryStore};
//!
//! struct Memory;
//!
//! impl Harness for Memory {
//!     fn name(&self) -> &str {
//!         "memory"
//!     }
//!
//!     fn open(&self, limits: Limits) -> BoxFuture<'_, Fixture> {
//!         Box::pin(async move {
//!             let clock = ManualClock::at(0);
//!             let store = MemoryStore::new(Clock::Manual(clock.clone()), limits);
//!             Fixture::new(Arc::new(store), clock)
//!         })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! for case in cases().iter().filter(|case| case.name.starts_with("lease_")) {
//!     case.run(&Memory).await;
//! }
//! # });
//! ```
#![expect(clippy::unwrap_used, reason = "a contract case fails by panicking")]

mod admission;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod author;
mod children;
mod claims;
mod contention;
mod create;
mod damage;
mod dead;
mod definitions;
mod fencing;
mod generations;
mod held;
mod journal;
mod lapses;
mod leases;
mod limits;
mod named;
mod outlook;
mod queries;
mod receipts;
mod replies;
mod resumes;
mod retention;
mod scene;
mod schedules;
mod serve;
mod signals;
mod snapshots;
mod starts;
mod tasks;
mod timers;
mod transactions;
mod turns;
mod waits;
mod wakes;
mod workers;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use outlast_core::id::{Index, RunKey};
use outlast_core::limits::Limits;

use crate::{BoxFuture, ManualClock, Store};
use scene::Scene;

/// How the suite gets at a store.
pub trait Harness: Send + Sync {
    /// The store's name, for messages.
    fn name(&self) -> &str;

    /// Opens a fresh, empty store with these limits, whose clock is manual and stands at 0.
    fn open(&self, limits: Limits) -> BoxFuture<'_, Fixture>;

    /// Another handle on the same data, as another process would have. None where only one process may have the data:
    /// the cases then use the same handle twice.
    fn second<'a>(&'a self, _fixture: &'a Fixture) -> BoxFuture<'a, Option<Arc<dyn Store>>> {
        Box::pin(async { None })
    }

    /// Writes past the store's API, straight into its database: `Err` with the database's words if that refused. None
    /// where there is no database: the cases then check only what the API refuses.
    fn raw<'a>(&'a self, _fixture: &'a Fixture, _write: RawWrite) -> BoxFuture<'a, Option<Result<(), String>>> {
        Box::pin(async { None })
    }

    /// Locks the rows of a run, of every lease and of every node, as a slow transaction of another process would. None
    /// where nobody else can hold a lock.
    fn hold<'a>(&'a self, _fixture: &'a Fixture, _run: RunKey) -> BoxFuture<'a, Option<Box<dyn Hold>>> {
        Box::pin(async { None })
    }

    /// Removes what [`Harness::open`] made. Also called after a case that failed.
    fn close(&self, fixture: Fixture) -> BoxFuture<'_, ()> {
        drop(fixture);
        Box::pin(async {})
    }
}

/// Rows somebody else has locked.
pub trait Hold: Send {
    /// Waits until a call of the store waits for the lock, as far as that can be seen.
    fn blocked(&mut self) -> BoxFuture<'_, ()>;
    /// Lets go.
    fn release(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// A fresh store, and the clock it reads.
pub struct Fixture {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub clock: ManualClock,
    /// Whatever the harness wants back in its other calls: a folder, a schema's name.
    pub keep: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    /// A fixture with nothing to keep.
    pub fn new(store: Arc<dyn Store>, clock: ManualClock) -> Self {
        Fixture { store, clock, keep: Box::new(()) }
    }

    /// With something to keep.
    #[must_use]
    pub fn keeping(self, keep: impl Any + Send + Sync) -> Self {
        Fixture { keep: Box::new(keep), ..self }
    }
}

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// A write straight into the database, past the store's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawWrite {
    /// Insert a run whose id is empty. The database must refuse.
    EmptyRunId,
    /// Set the id of this run to the empty text. The database must refuse.
    BlankRunId {
        /// Which run.
        run: RunKey,
    },
    /// Give event 0 of this run an empty operation key. The database must refuse.
    EmptyKey {
        /// Which run.
        run: RunKey,
    },
    /// Give event 0 of this run a payload one byte over [`outlast_core::limits::PAYLOAD_BYTES_CEILING`]. The database
    /// must refuse.
    OversizePayload {
        /// Which run.
        run: RunKey,
    },
    /// Set this run's status to a number that is none. The database must refuse.
    UnknownStatus {
        /// Which run.
        run: RunKey,
    },
    /// Write event 0 of this run a second time. The database must refuse.
    SecondEvent {
        /// Which run.
        run: RunKey,
    },
    /// Give every definition an empty name. The database must refuse.
    EmptyDefinition,
    /// Give every definition a text one byte over [`outlast_core::limits::PAYLOAD_BYTES_CEILING`]. The database must refuse.
    OversizeDefinition,
    /// Set the style of every definition to a number that is none. The database must refuse.
    UnknownStyle,
    /// Make the row of this run unreadable, whatever that takes.
    CorruptRun {
        /// Which run.
        run: RunKey,
    },
    /// Make an event of this run unreadable, whatever that takes.
    CorruptEvent {
        /// Which run.
        run: RunKey,
        /// Which event.
        index: Index,
    },
    /// Remove an event of this run, so that its journal has a gap.
    DropEvent {
        /// Which run.
        run: RunKey,
        /// Which event.
        index: Index,
    },
    /// Remove every snapshot of this run.
    DropSnapshots {
        /// Which run.
        run: RunKey,
    },
}

type Story = for<'a> fn(Scene<'a>) -> BoxFuture<'a, ()>;

/// One rule of the contract, told as a story.
#[derive(Clone)]
pub struct Case {
    /// What it tells, as a sentence.
    pub name: &'static str,
    limits: fn() -> Limits,
    story: Story,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

impl Case {
    /// Tells the story against a fresh store.
    ///
    /// # Panics
    ///
    /// If the store breaks the rule. The message says which.
    pub async fn run(&self, harness: &dyn Harness) {
        let fixture = harness.open((self.limits)()).await;
        let told = AssertUnwindSafe((self.story)(Scene::new(harness, &fixture))).catch_unwind().await;
        harness.close(fixture).await;
        if let Err(panic) = told {
            resume_unwind(panic);
        }
    }
}

/// All cases. Their names are unique.
pub fn cases() -> Vec<Case> {
    [
        leases::cases(),
        create::cases(),
        journal::cases(),
        lapses::cases(),
        limits::cases(),
        named::cases(),
        damage::cases(),
        fencing::cases(),
        claims::cases(),
        wakes::cases(),
        workers::cases(),
        serve::cases(),
        contention::cases(),
        signals::cases(),
        waits::cases(),
        timers::cases(),
        tasks::cases(),
        receipts::cases(),
        replies::cases(),
        turns::cases(),
        dead::cases(),
        definitions::cases(),
        children::cases(),
        generations::cases(),
        snapshots::cases(),
        queries::cases(),
        schedules::cases(),
        admission::cases(),
        held::cases(),
        outlook::cases(),
        starts::cases(),
        resumes::cases(),
        retention::cases(),
        transactions::cases(),
    ]
    .concat()
}

/// Lists a file's stories: those with the usual limits, then those with small ones.
macro_rules! stories {
    ($($story:ident),* $(,)?) => {
        crate::contract::stories! { $($story),*; small limits: }
    };
    ($($story:ident),* $(,)?; small limits: $($small:ident),* $(,)?) => {
        pub(super) fn cases() -> Vec<crate::contract::Case> {
            vec![
                $(crate::contract::Case {
                    name: stringify!($story),
                    limits: outlast_core::limits::Limits::default,
                    story: |scene| Box::pin($story(scene)),
                },)*
                $(crate::contract::Case {
                    name: stringify!($small),
                    limits: crate::contract::scene::small_limits,
                    story: |scene| Box::pin($small(scene)),
                },)*
            ]
        }
    };
}
use stories;
