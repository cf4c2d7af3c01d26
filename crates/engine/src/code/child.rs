//! Children: other runs, started by this one.

use std::marker::PhantomData;
use std::panic::Location;
use std::task::Context;

use bytes::Bytes;
use outlast_core::event::ClosePolicy;
use outlast_core::id::{RunId, Version, WorkflowName};
use outlast_core::operation::{Operation as Request, OperationKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec;
use super::ctx::Ctx;
use super::operation::{Handle, Pending, operation};
use super::slot::Outcome;
use crate::error::Result;

/// Another run, started by this one. See [`Ctx::child`]. It gives what the child returns; detached, the child's id.
#[must_use = "an operation does nothing before it is awaited or started"]
pub struct Child<T, O = T> {
    pending: Pending,
    options: Options,
    decode: fn(Outcome) -> Result<O>,
    value: PhantomData<fn() -> T>,
}

struct Options {
    /// Workflow and input; none once they were used, or if they are not usable.
    what: Option<(WorkflowName, Bytes)>,
    child: Option<RunId>,
    version: Option<Version>,
    detached: bool,
    /// None as long as the author did not say.
    on_close: Option<ClosePolicy>,
}

impl<T: DeserializeOwned> Child<T, T> {
    #[track_caller]
    pub(super) fn new(ctx: &Ctx, workflow: &str, input: &(impl Serialize + ?Sized)) -> Self {
        let mut pending = Pending::unnamed(ctx, OperationKind::Child, None, Location::caller());
        let workflow = pending.accept_id(WorkflowName::new(workflow));
        let input = pending.accept(codec::encode("the input of the child", input));
        let options =
            Options { what: workflow.zip(input), child: None, version: None, detached: false, on_close: None };
        Child { pending, options, decode: codec::value, value: PhantomData }
    }

    /// Starts it and does not wait for its end. It gives the child's id once the start is recorded. The child goes on
    /// alone when this run ends, unless [`Child::on_close`] says otherwise.
    pub fn detach(self) -> Child<T, RunId> {
        let Child { pending, options, .. } = self;
        Child { pending, options: Options { detached: true, ..options }, decode: started, value: PhantomData }
    }
}

impl<T, O> Child<T, O> {
    /// The id of the child's run; otherwise one is made from this run's id and the operation's key.
    pub fn id(mut self, id: &str) -> Self {
        self.options.child = self.pending.accept_id(RunId::new(id));
        self
    }

    /// Which version of the workflow to start; the newest otherwise.
    pub fn version(mut self, version: &str) -> Self {
        self.options.version = self.pending.accept_id(Version::new(version));
        self
    }

    /// Gives the operation a name. It keeps its place in the count of unnamed ones, so that naming one does not rename
    /// the next.
    #[track_caller]
    pub fn named(mut self, name: &str) -> Self {
        self.pending.rename(name, Location::caller());
        self
    }

    /// What becomes of the child when this run ends first; it is cancelled otherwise.
    pub fn on_close(mut self, policy: ClosePolicy) -> Self {
        self.options.on_close = Some(policy);
        self
    }

    /// Starts it now, to be awaited later.
    pub fn start(mut self) -> Handle<O> {
        self.begin();
        self.pending.into_handle(self.decode)
    }

    fn begin(&mut self) {
        let Options { what, child, version, detached, on_close } = &mut self.options;
        let Some((workflow, input)) = what.take() else { return };
        let on_close = on_close.unwrap_or(if *detached { ClosePolicy::Abandon } else { ClosePolicy::Cancel });
        self.pending.start(|key| Request::StartChild {
            key,
            child: child.take(),
            workflow,
            version: version.take(),
            input,
            detached: *detached,
            on_close,
        });
    }

    fn advance(&mut self, _: &mut Context<'_>) {}

    fn decode(&self, outcome: Outcome) -> Result<O> {
        (self.decode)(outcome)
    }
}

operation!(impl[T, O] Child<T, O> => O);

fn started(outcome: Outcome) -> Result<RunId> {
    match outcome {
        Outcome::Started(child) => Ok(child),
        Outcome::Failed(failure) => Err(failure.into()),
        Outcome::TimedOut(_) => Err(codec::late()),
        Outcome::Value(_) | Outcome::Done | Outcome::Decided(_) | Outcome::Queued(_) => {
            Err(codec::unexpected("the start of a child"))
        }
    }
}
