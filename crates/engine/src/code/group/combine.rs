//! The four ways to await several operations.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::FusedFuture;
use outlast_core::failure::Failure;
use outlast_core::id::Index;

use super::{Group, Members, Together};
use crate::code::operation::{Operation, Settles};
use crate::error::{Error, Result};

/// The code of an error that says that all operations failed. Its data is the list of their failures.
const ALL_FAILED: &str = "all_failed";

macro_rules! combinators {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[must_use = "operations do nothing before they are awaited or started"]
        pub struct $name<G: Group> {
            /// None once it is over. What is open then is cancelled.
            together: Option<Together<G::Members>>,
            settled_at: Option<Index>,
        }

        impl<G: Group> $name<G> {
            pub(in crate::code) fn new(group: G) -> Self {
                let together = Some(Together::new(group.into_members()));
                $name { together, settled_at: None }
            }
        }

        // Nothing in it is pinned: operations are `Unpin`, and values are only kept.
        impl<G: Group> Unpin for $name<G> {}

        impl<G: Group> FusedFuture for $name<G>
        where
            Self: Future,
        {
            fn is_terminated(&self) -> bool {
                self.together.is_none()
            }
        }

        impl<G: Group> Settles for $name<G> {
            fn settled_at(&self) -> Option<Index> {
                self.settled_at
            }

            // Dropping it cancels what is open.
            fn abandon(&mut self) {}
        }
    )+};
}

combinators! {
    /// All operations, or the first failure. See [`Ctx::all`](crate::Ctx::all).
    All;
    /// The first success. See [`Ctx::any`](crate::Ctx::any).
    Any;
    /// The first to settle. See [`Ctx::race`](crate::Ctx::race).
    Race;
    /// What became of each operation. See [`Ctx::all_settled`](crate::Ctx::all_settled).
    AllSettled;
}

impl<G: Group> Future for All<G> {
    type Output = Result<G::Values>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut together) = self.together.take() else { return Poll::Pending };
        for (place, settled) in together.poll(cx) {
            // In order, so that the last one is the latest.
            self.settled_at = settled.at;
            if settled.has_failed
                && let Some(Err(error)) = together.members.take_winner(place)
            {
                return Poll::Ready(Err(error));
            }
        }
        if together.open == 0
            && let Some(values) = together.members.take_values()
        {
            return Poll::Ready(Ok(values));
        }
        self.together = Some(together);
        Poll::Pending
    }
}

impl<G: Group> Operation for All<G> {
    type Value = G::Values;
}

impl<G: Group> Future for Any<G> {
    type Output = Result<G::Winner>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut together) = self.together.take() else { return Poll::Pending };
        for (place, settled) in together.poll(cx) {
            self.settled_at = settled.at;
            if !settled.has_failed
                && let Some(winner) = together.members.take_winner(place)
            {
                return Poll::Ready(winner);
            }
        }
        if together.open == 0 {
            return Poll::Ready(Err(all_failed(&together.members.failures())));
        }
        self.together = Some(together);
        Poll::Pending
    }
}

impl<G: Group> Operation for Any<G> {
    type Value = G::Winner;
}

fn all_failed(failures: &[&Failure]) -> Error {
    let messages: Vec<String> = failures.iter().map(ToString::to_string).collect();
    Error::new(ALL_FAILED, format!("all {} operations failed: {}", failures.len(), messages.join("; ")))
        .with_data(failures)
}

impl<G: Group> Future for Race<G> {
    type Output = Result<G::Winner>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut together) = self.together.take() else { return Poll::Pending };
        if let Some((place, settled)) = together.poll(cx).into_iter().next()
            && let Some(winner) = together.members.take_winner(place)
        {
            self.settled_at = settled.at;
            return Poll::Ready(winner);
        }
        if together.open == 0 {
            return Poll::Ready(Err(Error::invalid("a race needs at least one operation")));
        }
        self.together = Some(together);
        Poll::Pending
    }
}

impl<G: Group> Operation for Race<G> {
    type Value = G::Winner;
}

impl<G: Group> Future for AllSettled<G> {
    type Output = G::Outcomes;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut together) = self.together.take() else { return Poll::Pending };
        let _ = together.poll(cx);
        if together.open == 0
            && let Some(outcomes) = together.members.take_outcomes()
        {
            return Poll::Ready(outcomes);
        }
        self.together = Some(together);
        Poll::Pending
    }
}
