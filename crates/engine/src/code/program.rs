//! The live program of a workflow written as code.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use outlast_core::commit::Snapshot;
use outlast_core::failure::Failure;
use outlast_core::id::{Generation, Key, RunKey, Version, WorkflowName};
use outlast_core::operation::{Operations, SharedName};
use outlast_core::program::{Input, Program, Progress};
use tokio::runtime;

use super::ctx::Ctx;
use super::panics::guard;
use super::scope::StartedScope;
use super::shared::Shared;
use super::workflow::{Definition, Execution};
use crate::drive::Transactions;
use crate::error::Result;

/// How often a workflow may wake itself after one fact. A loop that only yields would keep its thread for ever.
const POLLS_MAX: u32 = 1_000_000;

/// What a program knows about its run.
#[derive(Clone)]
pub(crate) struct RunInfo {
    pub(crate) run: RunKey,
    pub(crate) generation: Generation,
    pub(crate) workflow: WorkflowName,
    pub(crate) version: Version,
    /// Makes the token of the callback with this key.
    pub(crate) tokens: Arc<dyn Fn(&Key) -> String + Send + Sync>,
    /// Where the closures of transactions are left.
    pub(crate) transactions: Transactions,
}

/// A workflow function, as the driver sees it: facts in, requests out.
pub(crate) struct CodeProgram {
    shared: Rc<Shared>,
    waker: Waker,
    definition: Definition,
    input: Bytes,
    /// None before the start and after the end.
    execution: Option<Execution>,
    /// Scopes that run beside the workflow.
    scopes: FuturesUnordered<StartedScope>,
    end: Option<Progress>,
    shared_names: Vec<SharedName>,
}

impl CodeProgram {
    /// A program that was told nothing yet. Bodies run with the `runtime`.
    pub(crate) fn new(
        definition: &Definition,
        info: RunInfo,
        input: Bytes,
        runtime: Option<runtime::Handle>,
    ) -> CodeProgram {
        let shared = Shared::new(info, runtime);
        CodeProgram {
            waker: Waker::from(Arc::clone(&shared.wakes)),
            shared,
            definition: definition.clone(),
            input,
            execution: None,
            scopes: FuturesUnordered::new(),
            end: None,
            shared_names: Vec::new(),
        }
    }

    fn run(&mut self, input: Input<'_>) -> Progress {
        if let Some(message) = self.shared.wakes.foreign() {
            return Progress::Unsound(message);
        }
        let _inside = self.shared.wakes.enter();
        match input {
            Input::Start => {
                let ctx = Ctx { shared: Rc::clone(&self.shared), scope: None };
                self.execution = Some(self.definition.begin(ctx, self.input.clone()));
            }
            Input::Fact { index, event } => self.shared.feed(index, event),
            Input::Execute { key, attempt } => self.shared.execute(key, attempt),
            Input::Poll => self.shared.go_on_with_bodies(),
        }
        let progress = self.run_until_blocked();
        // A wake from outside may have come while the workflow ran: then nobody knows what it saw.
        self.shared.wakes.foreign().map_or(progress, Progress::Unsound)
    }

    /// Polls as long as the workflow is woken, by what was fed or by itself.
    fn run_until_blocked(&mut self) -> Progress {
        for _ in 0..POLLS_MAX {
            if !self.shared.wakes.take_workflow() {
                return if self.shared.is_executing() { Progress::Executing } else { Progress::Blocked };
            }
            match guard("the workflow", || self.poll()) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(result)) => return self.end_with(result),
                Err(panic) => return Progress::Failed(panic),
            }
        }
        Progress::Unsound(format!(
            "the workflow woke itself {POLLS_MAX} times without waiting for an operation of its Ctx: a loop that only \
             yields never ends"
        ))
    }

    fn poll(&mut self) -> Poll<Result<Bytes>> {
        let mut cx = Context::from_waker(&self.waker);
        let Some(execution) = &mut self.execution else { return Poll::Pending };
        let polled = execution.as_mut().poll(&mut cx);
        if polled.is_pending() && (!self.scopes.is_empty() || self.shared.has_started_scopes()) {
            self.poll_scopes();
        }
        polled
    }

    fn poll_scopes(&mut self) {
        let mut cx = Context::from_waker(&self.waker);
        loop {
            // They may start further ones themselves.
            self.scopes.extend(self.shared.take_started_scopes());
            match Pin::new(&mut self.scopes).poll_next(&mut cx) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) | Poll::Pending if self.shared.has_started_scopes() => {}
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }

    fn end_with(&self, result: Result<Bytes>) -> Progress {
        match result {
            // Whatever it returned: the next generation begins, and this one has no result.
            _ if self.shared.is_continued() => Progress::Finished(Bytes::new()),
            Ok(output) => Progress::Finished(output),
            Err(error) => Progress::Failed(error.into_failure()),
        }
    }

    /// Drops the author's code. It is not cancelled, it is gone.
    fn close(&mut self) {
        self.shared.wakes.close();
        self.shared.close();
        let (execution, scopes) = (self.execution.take(), std::mem::take(&mut self.scopes));
        // A destructor that panics must not take the driver's thread with it.
        let _: Result<(), Failure> = guard("the workflow", || drop((execution, scopes)));
    }
}

impl Program for CodeProgram {
    fn resume(&mut self, input: Input<'_>, ops: &mut Operations) -> Progress {
        if let Some(end) = &self.end {
            return end.clone();
        }
        self.shared.wakes.set_driver(ops.waker());
        self.shared.swap(ops);
        let progress = self.run(input);
        self.shared_names.extend(self.shared.new_shared_names(self.shared_names.len()));
        match progress {
            Progress::Blocked | Progress::Executing => {}
            Progress::Finished(_) | Progress::Failed(_) | Progress::Unsound(_) => {
                self.close();
                self.end = Some(progress.clone());
            }
        }
        self.shared.swap(ops);
        progress
    }

    fn snapshot(&self) -> Option<Snapshot> {
        None
    }

    fn misfit(&self, key: &Key, payload: &[u8]) -> Option<Failure> {
        self.shared.misfit(key, payload)
    }

    fn shared_names(&self) -> &[SharedName] {
        &self.shared_names
    }
}

impl Drop for CodeProgram {
    fn drop(&mut self) {
        self.close();
    }
}
