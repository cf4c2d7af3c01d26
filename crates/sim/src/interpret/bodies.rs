//! Bodies: what is done outside, each time with a witness.

use std::time::Duration;

use outlast::{Check, Error, Result, StepContext, Token};

use super::{BEAT, Outside, PLANNED};
use crate::ledger::Body;
use crate::tree::Work;

/// Which operation a body belongs to.
#[derive(Clone)]
pub(super) struct Whose {
    pub(super) generation: u64,
    pub(super) key: String,
}

impl Outside {
    fn witness(&self, whose: &Whose, step: &StepContext) {
        self.ledger.body(Body {
            run: step.run_id().to_string(),
            generation: whose.generation,
            key: whose.key.clone(),
            attempt: step.attempt(),
            idempotency_key: step.idempotency_key().to_owned(),
            at: self.time.elapsed(),
        });
    }

    /// One attempt at a step.
    pub(super) async fn work(&self, whose: &Whose, work: &Work, step: StepContext) -> Result<u32> {
        self.witness(whose, &step);
        match work.takes {
            Some(ms) => self.take(Duration::from_millis(ms), work, &step).await,
            None if work.beats => loop {
                self.take(BEAT, work, &step).await;
            },
            None => std::future::pending::<()>().await,
        }
        if step.attempt() <= work.fails { Err(planned(&step, work.permanent)) } else { Ok(step.attempt()) }
    }

    /// Takes its time, with a sign of life now and then if there are to be some.
    async fn take(&self, long: Duration, work: &Work, step: &StepContext) {
        let mut left = long;
        while !left.is_zero() {
            let nap = if work.beats { left.min(BEAT) } else { left };
            self.time.sleep(nap).await;
            left -= nap;
            if work.beats {
                step.heartbeat();
            }
        }
    }

    /// Hands out a token.
    pub(super) fn submit(&self, whose: &Whose, fails: u32, step: &StepContext, token: &Submitted) -> Result<()> {
        self.witness(whose, step);
        if step.attempt() <= fails {
            return Err(planned(step, false));
        }
        self.ledger.token(step.run_id().as_str(), &token.callback, &token.token);
        Ok(())
    }

    /// One check of a condition.
    pub(super) fn check(&self, whose: &Whose, not: u32, step: &StepContext, checked: u32) -> Check<u32> {
        self.witness(whose, step);
        if checked < not { Check::Not(checked + 1) } else { Check::Met(checked) }
    }
}

/// A token and the callback it answers.
pub(super) struct Submitted {
    pub(super) callback: String,
    pub(super) token: String,
}

impl Submitted {
    pub(super) fn new(callback: &str, token: &Token) -> Submitted {
        Submitted { callback: callback.to_owned(), token: token.as_str().to_owned() }
    }
}

fn planned(step: &StepContext, permanent: bool) -> Error {
    let error = Error::new(PLANNED, format!("attempt {}", step.attempt()));
    if permanent { error.permanent() } else { error }
}
