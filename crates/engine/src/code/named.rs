//! Steps that are registered by name: what a flow has run, and the bodies of those that run.

use std::collections::BTreeMap;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use outlast_core::event::Event;
use outlast_core::id::Key;
use outlast_core::operation::Operations;
use outlast_core::planted;
use outlast_core::program::Input;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime;

use super::body::{Body, BodyFuture, Returned, Runner};
use super::codec;
use super::program::RunInfo;
use super::shared::Shared;
use super::step_context::StepContext;
use crate::error::{Error, Result};

/// A registered function, its types erased: JSON text in, JSON text out.
type Function = Arc<dyn Fn(StepContext, Bytes) -> BodyFuture<'static> + Send + Sync>;

/// The steps an engine knows by name.
#[derive(Clone, Default)]
pub(crate) struct Steps(BTreeMap<String, Function>);

impl Steps {
    /// Adds a step; whether its name was free.
    pub(crate) fn add<I, O, F, Fut>(&mut self, name: &str, step: F) -> bool
    where
        I: DeserializeOwned + 'static,
        O: Serialize + 'static,
        F: Fn(StepContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O>> + 'static,
    {
        let step = Arc::new(step);
        let function: Function = Arc::new(move |context, input| {
            let step = Arc::clone(&step);
            Box::pin(async move {
                // Another attempt is given the same.
                let input = codec::decode("the input of the step", &input).map_err(Error::permanent)?;
                let output = step(context, input).await?;
                Ok(Returned { result: codec::encode("what the step returned", &output)?, met: None })
            })
        });
        self.0.insert(name.to_owned(), function).is_none()
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn get(&self, name: &str) -> Function {
        self.0.get(name).cloned().unwrap_or_else(|| unknown(name))
    }
}

/// A step that nobody registered fails, and says so.
fn unknown(name: &str) -> Function {
    let message = format!("no step {name:?} is registered here; register it with `Outlast::step`");
    Arc::new(move |_, _| {
        let error = Error::new("unknown_step", message.clone()).permanent();
        Box::pin(async move { Err(error) })
    })
}

/// One call of a function.
struct Call {
    function: Function,
    input: Bytes,
}

impl Body<'static> for Call {
    fn begin(&self, context: StepContext, _: Option<Bytes>) -> BodyFuture<'static> {
        if planted!("step-begun-twice") {
            let both = [context.clone(), context].map(|context| (self.function)(context, self.input.clone()));
            return Box::pin(async move { futures_util::future::join_all(both).await.remove(0) });
        }
        (self.function)(context, self.input.clone())
    }
}

/// The bodies of the steps of a program that is not code.
pub(crate) struct Bodies {
    shared: Rc<Shared>,
    steps: Arc<Steps>,
}

impl Bodies {
    pub(crate) fn new(info: RunInfo, runtime: Option<runtime::Handle>, steps: Arc<Steps>) -> Bodies {
        Bodies { shared: Shared::new(info, runtime), steps }
    }

    /// Whether there is a body for a step.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.shared.is_open(key)
    }

    /// Makes the body of a step. It runs when the driver says so.
    #[track_caller]
    pub(crate) fn start(&self, key: &Key, name: &str, input: Bytes) {
        let call = Call { function: self.steps.get(name), input };
        self.shared.open(key.clone(), Location::caller(), false);
        self.shared.start_body(key.clone(), Box::new(Runner::new(call)));
    }

    /// Nobody wants a step any more.
    pub(crate) fn cancel(&self, key: &Key) {
        self.shared.forget(key);
    }

    /// Passes on what a program is told. What bodies come to is requested.
    pub(crate) fn tell(&self, input: Input<'_>, ops: &mut Operations) {
        if let Input::Start | Input::Fact { .. } = input
            && !self.shared.has_open()
        {
            return;
        }
        self.shared.wakes.set_driver(ops.waker());
        self.shared.swap(ops);
        match input {
            Input::Fact {
                index,
                event:
                    event @ (Event::StepFinished { .. } | Event::StepFailed { .. } | Event::StepRetryScheduled { .. }),
            } => self.shared.feed(index, event),
            Input::Execute { key, attempt } => self.shared.execute(key, attempt),
            Input::Poll => self.shared.go_on_with_bodies(),
            Input::Start | Input::Fact { .. } => {}
        }
        self.shared.swap(ops);
    }

    pub(crate) fn is_executing(&self) -> bool {
        self.shared.is_executing()
    }

    /// The program is over, or gone: so are they.
    pub(crate) fn close(&self) {
        self.shared.wakes.close();
        self.shared.close();
    }
}

impl Drop for Bodies {
    fn drop(&mut self) {
        self.close();
    }
}
