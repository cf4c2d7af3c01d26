//! What engines count during a story, seen by a recorder that is installed for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder,
};

/// Counters by their names.
#[derive(Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

/// Tells a story while everything is counted. A world is one thread, so that a recorder of this thread hears all of it.
pub(crate) fn counted(story: impl FnOnce(&Counts)) {
    let counts = Counts::default();
    with_local_recorder(&counts, || story(&counts));
}

impl Counts {
    fn of(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// Turns of runs that were woken.
    pub(crate) fn resumes(&self) -> u64 {
        self.of("outlast_resumes_total")
    }

    /// Those of them that found nothing new.
    pub(crate) fn idle_resumes(&self) -> u64 {
        self.of("outlast_resumes_idle_total")
    }

    pub(crate) fn timers_fired(&self) -> u64 {
        self.of("outlast_timers_fired_total")
    }
}

struct Line {
    counts: Counts,
    name: String,
}

impl CounterFn for Line {
    fn increment(&self, value: u64) {
        *self.counts.0.lock().unwrap().entry(self.name.clone()).or_default() += value;
    }

    fn absolute(&self, value: u64) {
        self.counts.0.lock().unwrap().insert(self.name.clone(), value);
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Line { counts: self.clone(), name: key.name().to_owned() }))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
