//! Flow control of a start: when the run may begin, and which other run may answer for it.

use std::time::Duration;

use bytes::Bytes;
use outlast_core::commit::{Admission, Begin, Bound, Debounce, Fair, Limit, Rate, Single, Window};
use outlast_core::id::{InvalidId, LimitKey, RunKey};
use outlast_core::time::Timestamp;

use super::Start;
use crate::client::EngineError;
use crate::drive::ControlMeta;

/// How long a debounced run waits at most, unless the start says otherwise: so many times the wait.
const DEBOUNCES: u32 = 10;

/// What a start says about flow control, and the first thing that was wrong with it.
#[derive(Default)]
pub(super) struct Flow {
    admission: Admission,
    wrong: Option<EngineError>,
}

impl Flow {
    fn key(&mut self, key: &str) -> Option<LimitKey> {
        self.good(LimitKey::new(key))
    }

    fn good<T>(&mut self, made: Result<T, InvalidId>) -> Option<T> {
        made.map_err(|error| self.wrong = self.wrong.take().or(Some(error.into()))).ok()
    }

    fn limit(&mut self, key: &str, bound: Bound) {
        if let Some(key) = self.key(key) {
            self.admission.limits.push(Limit { key, bound });
        }
    }

    /// What was said; none if nothing was.
    pub(super) fn admission(mut self, run: &RunKey) -> Result<Option<Box<Admission>>, EngineError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.admission == Admission::default() {
            return Ok(None);
        }
        self.admission.check().map_err(|error| EngineError::Invalid(error.to_string()))?;
        if let Some(single) = &mut self.admission.single {
            let reason = Some(format!("the run {} takes its place", run.id));
            let meta = serde_json::to_vec(&ControlMeta { reason, ..ControlMeta::default() });
            single.meta = meta.ok().map(Bytes::from);
        }
        Ok(Some(Box::new(self.admission)))
    }
}

/// Flow control. Limits, delays and start keys are kept by the store: they hold for all engines on one database, and a run
/// that is held back is durable, `queued`, and can be cancelled.
impl Start<'_> {
    /// A larger one is driven, and admitted, sooner; 10 if nobody says otherwise.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }

    /// Begins so long after the start was accepted.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.flow.admission.begin = Begin::After(delay);
        self
    }

    /// Begins at this instant, by the store's clock; at once if it has passed.
    pub fn at(mut self, at: Timestamp) -> Self {
        self.flow.admission.begin = Begin::At(at);
        self
    }

    /// At most `max` runs with this key at once. A run counts from the moment it is admitted to its end, also while it
    /// sleeps or waits. Several keys may be given: the run begins when all have room. The limit belongs to the key: what
    /// was said last holds for all.
    ///
    /// ```
    /// # use outlast::{Ctx, Outlast, Rate};
    /// # async fn import(_: Ctx, _: ()) -> outlast::Result<u32> { Ok(7) }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// # let engine = Outlast::memory().workflow("import", import).start().await?;
    /// let run = engine
    ///     .start("import", &())
    ///     .concurrency("tenant-7", 2)
    ///     .concurrency("warehouse", 10)
    ///     .rate("api", Rate::per_minute(600).burst(20))
    ///     .fair("tenant-7", 1)
    ///     .await?;
    /// assert_eq!(run.result::<u32>().await?, 7);
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn concurrency(mut self, key: &str, max: u32) -> Self {
        self.flow.limit(key, Bound::Concurrency { max });
        self
    }

    /// Begins no faster than this rate allows for all runs with this key. None is dropped: they wait.
    pub fn rate(mut self, key: &str, rate: Rate) -> Self {
        self.flow.limit(key, Bound::Rate(rate));
        self
    }

    /// Shares the first limit of this start fairly with those who use other keys, in proportion to their weights: whoever
    /// has many runs waiting does not hold up those who have few. Runs without a key share as if they had one of weight 1.
    pub fn fair(mut self, key: &str, weight: u32) -> Self {
        if let Some(key) = self.flow.key(key) {
            self.flow.admission.fair = Some(Fair { key, weight });
        }
        self
    }

    /// Begins when nobody has started another with this key for so long, with the input of the last of them: all of these
    /// starts give the same run. At the latest after ten times as long; see [`Start::at_most`].
    pub fn debounce(mut self, key: &str, wait: Duration) -> Self {
        if let Some(key) = self.flow.key(key) {
            let at_most = wait.saturating_mul(DEBOUNCES);
            self.flow.admission.debounce = Some(Debounce { key, wait, at_most });
        }
        self
    }

    /// How long after the first start a debounced run begins at the latest.
    pub fn at_most(mut self, at_most: Duration) -> Self {
        match &mut self.flow.admission.debounce {
            Some(debounce) => debounce.at_most = at_most,
            None => {
                let why = "`at_most` says how long a debounce may last; call `debounce` before it";
                self.flow.wrong = self.flow.wrong.take().or_else(|| Some(EngineError::Invalid(why.to_owned())));
            }
        }
        self
    }

    /// While a run with this key has not ended, it answers for this start: its handle is given, and nothing is started. Never
    /// are two of them under way at once, however they were started.
    pub fn singleton(self, key: &str) -> Self {
        self.single(key, false)
    }

    /// A run with this key that has not ended is asked to cancel, in the same transaction, and this one begins when it has
    /// ended. One that has not begun ends at once. It does not matter which of the two kinds of singleton the other one is.
    pub fn singleton_replacing(self, key: &str) -> Self {
        self.single(key, true)
    }

    fn single(mut self, key: &str, replace: bool) -> Self {
        if let Some(key) = self.flow.key(key) {
            self.flow.admission.single = Some(Single { key, replace, meta: None });
        }
        self
    }

    /// A start with the same key within the window is the same start, whatever became of its run: the handle of that run is
    /// given. Its workflow and input must be the same.
    pub fn idempotency(mut self, key: &str, window: Duration) -> Self {
        if let Some(key) = self.flow.key(key) {
            self.flow.admission.window = Some(Window { key, window });
        }
        self
    }
}
