//! What a schedule says.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::id::{Version, WorkflowName};
use outlast_core::limits::TEXT_BYTES_MAX;
use outlast_core::time::{Timestamp, millis};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::rule::When;
use super::{ID_BYTES_MAX, InvalidSchedule, Overlap, Utc};

/// How late a firing may be if nobody says otherwise.
const CATCH_UP_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
/// How late a firing may always be: nothing is ever quite on time.
const CATCH_UP_MIN: Duration = Duration::from_secs(10);
/// The longest jitter.
const JITTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What a schedule says, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) when: When,
    pub(crate) from: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) workflow: WorkflowName,
    /// The newest one that whoever fires has, if none is named.
    pub(crate) version: Option<Version>,
    pub(crate) input: Box<RawValue>,
    pub(crate) overlap: Overlap,
    pub(crate) catch_up_ms: i64,
    pub(crate) jitter_ms: i64,
    pub(crate) remaining: Option<u64>,
    pub(crate) note: Option<String>,
}

impl Spec {
    /// Whether two of them have the same instants.
    pub(super) fn fires_like(&self, other: &Spec) -> bool {
        self.when == other.when && self.from == other.from && self.until == other.until
    }
}

/// A schedule that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) whens: Vec<Asked>,
    pub(crate) zone: Option<String>,
    pub(crate) offset: Option<Duration>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) overlap: Overlap,
    pub(crate) catch_up: Option<Duration>,
    pub(crate) jitter: Duration,
    pub(crate) remaining: Option<u64>,
    pub(crate) note: Option<String>,
}

/// When a schedule should fire, as it was asked for.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Cron(String),
    Every(Duration),
    Once(Timestamp),
}

impl Draft {
    /// What was written, if it can be a schedule.
    pub(crate) fn spec(
        self,
        id: &str,
        workflow: WorkflowName,
        version: Option<Version>,
        input: &Bytes,
    ) -> Result<Spec, InvalidSchedule> {
        let invalid = |problem| InvalidSchedule { id: id.to_owned(), problem };
        let input = std::str::from_utf8(input).ok().and_then(|text| RawValue::from_string(text.to_owned()).ok());
        let input = input.ok_or_else(|| invalid("its input is not JSON".to_owned()))?;
        self.check(id).map_err(invalid)?;
        let catch_up = self.catch_up.unwrap_or(CATCH_UP_DEFAULT).max(CATCH_UP_MIN);
        Ok(Spec {
            from: self.from,
            until: self.until,
            workflow,
            version,
            input,
            overlap: self.overlap,
            catch_up_ms: millis(catch_up),
            jitter_ms: millis(self.jitter),
            remaining: self.remaining,
            note: self.note.clone(),
            when: self.when().map_err(invalid)?,
        })
    }

    fn when(self) -> Result<When, String> {
        let Draft { mut whens, zone, offset, .. } = self;
        let (Some(when), true) = (whens.pop(), whens.is_empty()) else {
            return Err("say once when it fires: with `cron`, `every` or `once_at`".to_owned());
        };
        if zone.is_some() && !matches!(when, Asked::Cron(_)) {
            return Err("only `cron` has a zone".to_owned());
        }
        if offset.is_some() && !matches!(when, Asked::Every(_)) {
            return Err("only `every` has an offset".to_owned());
        }
        Ok(match when {
            Asked::Cron(expression) => When::Cron { expression, zone: zone.unwrap_or_else(|| "UTC".to_owned()) },
            Asked::Every(every) => {
                When::Every { every_ms: millis(every), offset_ms: millis(offset.unwrap_or_default()) }
            }
            Asked::Once(at) => When::Once { at },
        })
    }

    fn check(&self, id: &str) -> Result<(), String> {
        if id.len() > ID_BYTES_MAX {
            return Err(format!("its id has {} bytes, the limit is {ID_BYTES_MAX}", id.len()));
        }
        if let (Some(from), Some(until)) = (self.from, self.until)
            && from > until
        {
            return Err(format!("it begins at {}, after its end at {}", Utc(from), Utc(until)));
        }
        if self.jitter > JITTER_MAX {
            return Err(format!("a jitter of {:?} is too long, the limit is {JITTER_MAX:?}", self.jitter));
        }
        if self.remaining == Some(0) {
            return Err("it may fire no time at all; leave `remaining` out, or remove the schedule".to_owned());
        }
        match &self.note {
            Some(note) if note.len() > TEXT_BYTES_MAX => {
                Err(format!("its note has {} bytes, the limit is {TEXT_BYTES_MAX}", note.len()))
            }
            Some(_) | None => Ok(()),
        }
    }
}
