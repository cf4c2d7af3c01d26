//! The instants of a schedule, one after the other.

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
mod wall_clock;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use croner::Cron;
use croner::errors::CronError;
use jiff::tz::TimeZone;
use outlast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::Utc;

/// The shortest interval, in milliseconds.
pub(super) const EVERY_MIN_MS: i64 = 1_000;
/// The longest cron expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 1_024;

/// When a schedule fires, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum When {
    /// A cron expression, by the wall clock of a zone.
    Cron { expression: String, zone: String },
    /// Counted from the Unix epoch, so that it does not matter when the schedule was put.
    Every { every_ms: i64, offset_ms: i64 },
    /// One instant.
    Once { at: Timestamp },
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |millis: &i64| Duration::from_millis(millis.unsigned_abs());
        match self {
            When::Cron { expression, zone } => write!(f, "cron {expression} in {zone}"),
            When::Every { every_ms, offset_ms: 0 } => write!(f, "every {:?}", millis(every_ms)),
            When::Every { every_ms, offset_ms } => {
                write!(f, "every {:?}, {:?} later", millis(every_ms), millis(offset_ms))
            }
            When::Once { at } => write!(f, "once at {}", Utc(*at)),
        }
    }
}

/// When a schedule fires, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    Cron { cron: Box<Cron>, zone: TimeZone },
    Every { every_ms: i64, offset_ms: i64 },
    Once { at: Timestamp },
}

impl Rule {
    /// Reads a rule; what is wrong with it, for whoever wrote it.
    pub(crate) fn new(when: &When) -> Result<Rule, String> {
        match when {
            When::Cron { expression, zone } => {
                let cron = Box::new(cron(expression)?);
                let zone = TimeZone::get(zone).map_err(|_| {
                    format!("there is no time zone {zone:?}; name one of the IANA database, like \"Europe/Berlin\"")
                })?;
                Ok(Rule::Cron { cron, zone })
            }
            When::Every { every_ms, offset_ms } => every(*every_ms, *offset_ms),
            When::Once { at } => match jiff::Timestamp::from_millisecond(at.as_millis()) {
                Ok(_) => Ok(Rule::Once { at: *at }),
                Err(_) => Err(format!("{at} is not before the year 10000")),
            },
        }
    }

    /// The first instant of a schedule that is put now and that has dealt with everything up to `done`. What was only meant
    /// to happen once happens, however long ago it should have.
    pub(crate) fn first(&self, now: Timestamp, done: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Rule::Once { at } => (Some(*at) > done).then_some(*at),
            Rule::Cron { .. } | Rule::Every { .. } => self.after(done.map_or(now, |done| now.max(done))),
        }
    }

    /// The first instant after another one; none if there is none.
    pub(crate) fn after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Rule::Cron { cron, zone } => wall_clock::next(cron, zone, after),
            Rule::Every { every_ms, offset_ms } => {
                let passed = after.as_millis().checked_sub(*offset_ms)?.div_euclid(*every_ms);
                let next = passed.checked_add(1)?.checked_mul(*every_ms)?.checked_add(*offset_ms)?;
                Some(Timestamp::from_millis(next))
            }
            Rule::Once { at } => (*at > after).then_some(*at),
        }
    }
}

fn cron(expression: &str) -> Result<Cron, String> {
    if expression.len() > EXPRESSION_BYTES_MAX {
        return Err(format!("a cron expression may have at most {EXPRESSION_BYTES_MAX} bytes"));
    }
    Cron::from_str(expression).map_err(|error| {
        let problem = match error {
            CronError::EmptyPattern => "it is empty".to_owned(),
            CronError::InvalidDate => "it names a date that does not exist".to_owned(),
            CronError::InvalidTime => "it names a time that does not exist".to_owned(),
            CronError::TimeSearchLimitExceeded => "it matches no time".to_owned(),
            CronError::InvalidPattern(problem)
            | CronError::IllegalCharacters(problem)
            | CronError::ComponentError(problem) => problem,
        };
        format!(
            "the cron expression {expression:?} cannot be read: {}; it has the fields minute, hour, day of the month, month \
             and day of the week, and may have seconds before them and a year behind them",
            problem.trim_end_matches('.')
        )
    })
}

fn every(every_ms: i64, offset_ms: i64) -> Result<Rule, String> {
    if every_ms < EVERY_MIN_MS {
        return Err(format!("an interval of {every_ms} ms is too short; it has at least {EVERY_MIN_MS} ms"));
    }
    if !(0..every_ms).contains(&offset_ms) {
        return Err(format!("an offset of {offset_ms} ms is not less than the interval of {every_ms} ms"));
    }
    Ok(Rule::Every { every_ms, offset_ms })
}
