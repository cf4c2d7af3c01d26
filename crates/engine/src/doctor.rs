//! The doctor: looks for runs that nothing will ever move again, and repairs what their journals prove.
//!
//! None of this should ever happen: every rule here is kept by the store's transactions. It is for a database that was
//! restored by hand, edited, or damaged, and for tests, which end with a visit ([`crate::testing::World`]).

mod examine;
mod repair;

use std::fmt;
use std::pin::Pin;

use outlast_core::commit::{Status, TimerKind, WaitKind};
use outlast_core::id::{Key, LeaseId, RunId, RunKey, TaskId};
use outlast_core::time::Timestamp;
use outlast_store::{Filter, LIST_PAGE_MAX};

use crate::client::EngineError;
use crate::engine::Engine;
use crate::utc::Utc;
#[cfg(feature = "testing")]
pub(crate) use examine::examine_all;

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ailment {
    /// It is neither ready nor driven and waits for nothing that will come.
    NoWakeSource,
    /// Something was left for it, and it was not made ready.
    ForgottenWake,
    /// The lease under which it is driven is over. Whoever looks for work next takes it.
    LeaseOver {
        /// Which lease.
        lease: LeaseId,
    },
    /// Its journal says that a timer runs, and there is none.
    MissingTimer {
        /// The operation.
        key: Key,
        /// Why it runs.
        kind: TimerKind,
        /// When it is due; none for a heartbeat, which each sign of life sets anew.
        due: Option<Timestamp>,
    },
    /// A timer is due at another instant than the one its journal has.
    MovedTimer {
        /// The operation.
        key: Key,
        /// Why it runs.
        kind: TimerKind,
        /// When it is due by the journal.
        due: Timestamp,
        /// When it would fire.
        found: Timestamp,
    },
    /// A timer runs for something that is not open, or that has no such timer.
    OrphanedTimer {
        /// The operation.
        key: Key,
        /// Why it runs.
        kind: TimerKind,
    },
    /// Its journal says that it waits for an answer, and nobody could give one.
    MissingWait {
        /// The operation.
        key: Key,
        /// For what.
        kind: WaitKind,
    },
    /// An answer is awaited for something that is not open.
    OrphanedWait {
        /// The operation.
        key: Key,
    },
    /// Its journal says that it waits for a task, and there is none.
    MissingTask {
        /// The operation.
        key: Key,
        /// Which task.
        task: TaskId,
    },
    /// A task is queued for something that is not open.
    OrphanedTask {
        /// The operation.
        key: Key,
    },
    /// A child it waits for has ended or is gone, and it was not told.
    UnheardChild {
        /// The operation.
        key: Key,
        /// Which child.
        child: RunId,
    },
    /// Its journal cannot be read.
    Unreadable {
        /// Why.
        why: String,
    },
}

/// Something the doctor found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which run.
    pub run: RunKey,
    /// What is wrong with it.
    pub ailment: Ailment,
    /// Whether it was repaired just now.
    pub repaired: bool,
    /// Why it was not, where that was tried.
    pub refused: Option<String>,
}

/// What the doctor found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// Runs that were looked at: all of the namespace that have not ended.
    pub runs: usize,
    /// What is wrong, run by run.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Whether nothing is wrong, or everything that was wrong has been repaired.
    pub fn is_healthy(&self) -> bool {
        self.findings.iter().all(|finding| finding.repaired)
    }
}

impl Engine {
    /// Looks at every run of the namespace that has not ended, and says which ones nothing would ever move again. Await it to
    /// look; with [`Doctor::repair`] it also repairs what the journals prove.
    ///
    /// ```
    /// # async fn visit(engine: outlast::Engine) -> Result<(), outlast::EngineError> {
    /// let diagnosis = engine.doctor().repair().await?;
    /// for finding in &diagnosis.findings {
    ///     println!("{finding}");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn doctor(&self) -> Doctor {
        Doctor { engine: self.clone(), repair: false }
    }
}

/// A visit of the doctor. See [`Engine::doctor`].
#[must_use = "the doctor comes when this is awaited"]
pub struct Doctor {
    engine: Engine,
    repair: bool,
}

impl Doctor {
    /// Repairs what the journals prove: rows that are missing are written again, those that are too many are removed, runs that
    /// were forgotten are woken. Each run is taken from whoever has it for a moment.
    pub fn repair(mut self) -> Doctor {
        self.repair = true;
        self
    }

    async fn visit(self) -> Result<Diagnosis, EngineError> {
        let store = self.engine.inner.store()?;
        let status = vec![Status::Queued, Status::Running, Status::Waiting];
        let mut filter = Filter { status, limit: LIST_PAGE_MAX, ..Filter::all(self.engine.namespace.clone()) };
        let mut diagnosis = Diagnosis::default();
        loop {
            let page = store.list(filter.clone()).await?;
            let leases = store.leases().await?;
            for view in page.runs {
                diagnosis.runs += 1;
                let Some(facts) = examine::Facts::read(&*store, view, &leases).await? else { continue };
                let ailments = facts.examine();
                if ailments.is_empty() {
                    continue;
                }
                let run = facts.run().clone();
                let treated = match self.repair {
                    true => repair::repair(&self.engine, &store, &facts, &ailments).await,
                    false => ailments.iter().map(|_| None).collect(),
                };
                diagnosis.findings.extend(ailments.into_iter().zip(treated).map(|(ailment, treated)| Finding {
                    run: run.clone(),
                    ailment,
                    repaired: matches!(treated, Some(Ok(()))),
                    refused: treated.and_then(Result::err),
                }));
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(diagnosis),
            }
        }
    }
}

impl IntoFuture for Doctor {
    type Output = Result<Diagnosis, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.visit())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.run, self.ailment)?;
        match (&self.refused, self.repaired) {
            (_, true) => write!(f, " (repaired)"),
            (Some(why), false) => write!(f, " (not repaired: {why})"),
            (None, false) => Ok(()),
        }
    }
}

impl fmt::Display for Ailment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ailment::NoWakeSource => write!(f, "nothing will ever wake it"),
            Ailment::ForgottenWake => write!(f, "something was left for it, and nobody will look"),
            Ailment::LeaseOver { lease } => {
                write!(f, "lease {lease}, under which it is driven, is over; it is taken over by whoever looks next")
            }
            Ailment::MissingTimer { key, kind, due: Some(due) } => {
                write!(f, "`{key}` is due at {} ({}), and no timer will say so", Utc(*due), kind.name())
            }
            Ailment::MissingTimer { key, kind, due: None } => {
                write!(f, "`{key}` may not be silent for long ({}), and no timer will say that it is", kind.name())
            }
            Ailment::MovedTimer { key, kind, due, found } => {
                let (due, found) = (Utc(*due), Utc(*found));
                write!(f, "`{key}` is due at {due} ({}), and its timer is set to {found}", kind.name())
            }
            Ailment::OrphanedTimer { key, kind } => {
                write!(f, "a timer ({}) runs for `{key}`, which has none", kind.name())
            }
            Ailment::MissingWait { key, kind } => {
                write!(f, "`{key}` waits for an answer ({kind:?}), and nobody could give one")
            }
            Ailment::OrphanedWait { key } => write!(f, "an answer is awaited for `{key}`, which is not open"),
            Ailment::MissingTask { key, task } => write!(f, "`{key}` waits for task {task}, which is not there"),
            Ailment::OrphanedTask { key } => write!(f, "a task is queued for `{key}`, which is not open"),
            Ailment::UnheardChild { key, child } => {
                write!(f, "`{key}` waits for run {child}, which has ended or is gone, and was not told")
            }
            Ailment::Unreadable { why } => {
                write!(f, "its journal cannot be read: {why}; it parks when it is driven next")
            }
        }
    }
}
