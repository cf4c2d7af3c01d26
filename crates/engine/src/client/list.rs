//! Finding runs.

use std::future::IntoFuture;
use std::pin::Pin;

use outlast_core::commit::Status;
use outlast_core::id::{AttributeName, RunId, Version, WorkflowName};
use outlast_core::time::Timestamp;
use outlast_store::{Cursor, Filter, Page};

use super::EngineError;
use crate::engine::Engine;

impl Engine {
    /// Runs, the newest first. Say which, and await it for a page of them.
    ///
    /// ```
    /// # use outlast::{Ctx, Outlast, Status};
    /// # async fn nap(ctx: Ctx, _: u32) -> outlast::Result<()> { ctx.sleep(std::time::Duration::from_secs(60)).await }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().workflow("nap", nap).start().await?;
    /// for n in 0..3 {
    ///     engine.start("nap", &n).id(&format!("nap-{n}")).attribute("bed", "left").await?;
    /// }
    /// let first = engine.list().workflow("nap").attribute("bed", "left").page_size(2).await?;
    /// let rest = engine.list().workflow("nap").attribute("bed", "left").after(first.next).await?;
    /// assert_eq!((first.runs.len(), rest.runs.len()), (2, 1));
    /// assert!(rest.next.is_none());
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> List<'_> {
        List { engine: self, filter: Ok(Filter::all(self.namespace.clone())) }
    }
}

/// A question for runs. Everything that is said must hold. Await it for a [`Page`].
#[must_use = "nothing is looked for until this is awaited"]
pub struct List<'e> {
    engine: &'e Engine,
    filter: Result<Filter, EngineError>,
}

impl List<'_> {
    /// Those that stand here. Said more than once: at any of these.
    pub fn status(self, status: Status) -> Self {
        self.with(|filter| {
            filter.status.push(status);
            Ok(())
        })
    }

    /// Those of this workflow.
    pub fn workflow(self, workflow: &str) -> Self {
        self.with(|filter| {
            filter.workflow = Some(WorkflowName::new(workflow)?);
            Ok(())
        })
    }

    /// Those of this version.
    pub fn version(self, version: &str) -> Self {
        self.with(|filter| {
            filter.version = Some(Version::new(version)?);
            Ok(())
        })
    }

    /// Those whose id begins so.
    pub fn id_prefix(self, prefix: &str) -> Self {
        self.with(|filter| {
            filter.id_prefix = Some(prefix.to_owned());
            Ok(())
        })
    }

    /// Those created at this instant or later.
    pub fn created_from(self, from: Timestamp) -> Self {
        self.with(|filter| {
            filter.created_from = Some(from);
            Ok(())
        })
    }

    /// Those created before this instant.
    pub fn created_until(self, until: Timestamp) -> Self {
        self.with(|filter| {
            filter.created_until = Some(until);
            Ok(())
        })
    }

    /// The children of this run.
    pub fn parent(self, run: &str) -> Self {
        self.with(|filter| {
            filter.parent = Some(RunId::new(run)?);
            Ok(())
        })
    }

    /// Those with this search attribute.
    pub fn attribute(self, name: &str, value: &str) -> Self {
        self.with(|filter| {
            filter.attribute = Some((AttributeName::new(name)?, value.to_owned()));
            Ok(())
        })
    }

    /// At most so many on a page: 100 if nobody says otherwise, and never more than 1000.
    pub fn page_size(self, runs: usize) -> Self {
        self.with(|filter| {
            filter.limit = runs.max(1);
            Ok(())
        })
    }

    /// Goes on where another page ended, which is [`Page::next`]; with none, from the start.
    pub fn after(self, cursor: Option<Cursor>) -> Self {
        self.with(|filter| {
            filter.after = cursor;
            Ok(())
        })
    }

    /// What is wrong with the question is said when it is asked.
    fn with(mut self, change: impl FnOnce(&mut Filter) -> Result<(), EngineError>) -> Self {
        self.filter = self.filter.and_then(|mut filter| change(&mut filter).map(|()| filter));
        self
    }
}

impl<'e> IntoFuture for List<'e> {
    type Output = Result<Page, EngineError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'e>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.engine.inner.store()?.list(self.filter?).await?) })
    }
}
