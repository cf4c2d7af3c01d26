//! Bodies: what is done outside, each time with a witness.

use std::time::Duration;

use outlast::{Check, Error, Result, StepContext, Token, Tx, params};
use serde::{Deserialize, Serialize};

use super::{BEAT, Outside, PLANNED};
use crate::ground::PAYLOAD_BYTES_MAX;
use crate::ledger::Body;
use crate::tree::{Mishap, Work};

/// Which operation a body belongs to.
#[derive(Clone)]
pub(super) struct Whose {
    pub(super) generation: u64,
    pub(super) key: String,
    /// The version of the text that wants it, as far as it says so itself; none if it is code.
    pub(super) version: Option<String>,
}

impl Outside {
    fn witness(&self, whose: &Whose, step: &StepContext) {
        self.ledger.body(Body {
            run: step.run_id().to_string(),
            generation: whose.generation,
            key: whose.key.clone(),
            attempt: step.attempt(),
            idempotency_key: step.idempotency_key().to_owned(),
            version: whose.version.clone().unwrap_or_else(|| self.version.to_owned()),
            at: self.time.elapsed(),
        });
    }

    /// One attempt at a step.
    pub(super) async fn work(&self, whose: &Whose, work: &Work, step: StepContext) -> Result<Product> {
        self.witness(whose, &step);
        let _under_way = self.ledger.begins((step.run_id().to_string(), whose.generation, whose.key.clone()));
        if self.ledger.kills(step.run_id().as_str()) {
            // Its process dies in a moment, and this with it.
            std::future::pending::<()>().await;
        }
        match work.takes {
            Some(ms) => self.take(Duration::from_millis(ms), work, &step).await,
            None if work.beats => loop {
                self.take(BEAT, work, &step).await;
            },
            None => std::future::pending::<()>().await,
        }
        product(work, step.attempt())
    }

    /// One run of a transaction, which leaves an entry in the author's table.
    pub(super) async fn transact(&self, whose: &Whose, run: &str, work: &Work, tx: Tx) -> Result<Product> {
        self.ledger.body(Body {
            run: run.to_owned(),
            generation: whose.generation,
            key: whose.key.clone(),
            attempt: tx.attempt(),
            idempotency_key: tx.idempotency_key().to_owned(),
            version: self.version.to_owned(),
            at: self.time.elapsed(),
        });
        if let Some(enter) = &self.enter {
            let entry = format!("{}#{}", tx.idempotency_key(), tx.attempt());
            tx.execute(enter.clone(), params![entry]).await?;
        }
        product(work, tx.attempt())
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
            return Err(planned(step.attempt(), false));
        }
        self.ledger.token(step.run_id().as_str(), &token.callback, &token.token);
        Ok(())
    }

    /// One check of a condition.
    pub(super) fn check(&self, whose: &Whose, course: Course, step: &StepContext, checked: u32) -> Result<Check<u32>> {
        self.witness(whose, step);
        if step.attempt() <= course.fails {
            assert!(!course.panics, "{PLANNED}: attempt {}", step.attempt());
            return Err(planned(step.attempt(), false));
        }
        Ok(if checked < course.not { Check::Not(checked + 1) } else { Check::Met(checked) })
    }
}

/// What the checks of a condition say.
#[derive(Clone, Copy)]
pub(super) struct Course {
    pub(super) not: u32,
    pub(super) checks: u32,
    pub(super) fails: u32,
    pub(super) panics: bool,
}

/// What a body returns.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Product {
    /// Which attempt made it.
    pub(super) attempt: u32,
    /// Nothing, or more than allowed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    ballast: String,
}

/// What an attempt comes to.
pub(super) fn product(work: &Work, attempt: u32) -> Result<Product> {
    let ballast = match work.mishap {
        _ if attempt > work.fails => String::new(),
        Mishap::Error => return Err(planned(attempt, work.permanent)),
        Mishap::Panic => panic!("{PLANNED}: attempt {attempt}"),
        Mishap::TooLarge => "x".repeat(PAYLOAD_BYTES_MAX),
    };
    Ok(Product { attempt, ballast })
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

fn planned(attempt: u32, permanent: bool) -> Error {
    let error = Error::new(PLANNED, format!("attempt {attempt}"));
    if permanent { error.permanent() } else { error }
}
