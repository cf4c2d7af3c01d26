//! The door behind those who listen: being let in once is not enough for as long as a stream lasts.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use super::Scope;
use super::guard::{Caller, Shown, unknown, whose};
use crate::app::App;
use crate::error::{ApiError, ApiResult};

/// How often a stream looks again at who listens.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The door behind somebody who listens: it is shut when their token expires or goes, or their session ends.
pub(crate) struct Door {
    app: App,
    caller: Caller,
    scope: Scope,
    look: Interval,
}

impl Door {
    pub(crate) fn behind(app: &App, caller: &Caller, scope: Scope) -> Door {
        let mut look = tokio::time::interval(LOOK_AGAIN);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Door { app: app.clone(), caller: caller.clone(), scope, look }
    }

    /// Waits until they have to go, and says why. Nothing is lost if it is dropped and asked again.
    pub(crate) async fn shut(&mut self) -> ApiError {
        loop {
            self.look.tick().await;
            if let Err(error) = self.caller.is_still_welcome(&self.app, self.scope).await {
                return error;
            }
        }
    }
}

impl Caller {
    /// Whether the door would let them in again, with what they showed.
    async fn is_still_welcome(&self, app: &App, scope: Scope) -> ApiResult<()> {
        let found = match &self.shown {
            Some(kept) => whose(app, kept.shown(), scope).await?,
            None => None,
        };
        let is_same = match found {
            Some((caller, _)) => caller.engine.namespace() == self.engine.namespace(),
            // There were no tokens when they came. Since then there may be some.
            None => app.access().needed().is_none(),
        };
        if is_same { Ok(()) } else { Err(unknown()) }
    }
}

/// What somebody showed, kept for as long as they listen.
pub(super) enum Kept {
    Token(String),
    Session(String),
}

impl From<Shown<'_>> for Kept {
    fn from(shown: Shown<'_>) -> Kept {
        match shown {
            Shown::Token(text) => Kept::Token(text.to_owned()),
            Shown::Session(text) => Kept::Session(text.to_owned()),
        }
    }
}

impl Kept {
    fn shown(&self) -> Shown<'_> {
        match self {
            Kept::Token(text) => Shown::Token(text),
            Kept::Session(text) => Shown::Session(text),
        }
    }
}
