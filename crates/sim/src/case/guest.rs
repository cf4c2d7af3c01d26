//! Runs of a case that flow control holds back.

use std::time::Duration;

use outlast::{Rate, Start};
use outlast_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::tree::Tree;

/// A run with limits, or that shares a start with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    /// When it may begin.
    pub flow: Flow,
    /// What it does.
    pub tree: Tree,
}

/// What a start says about flow control. Keys are numbers: whoever has the same one shares it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Begins so many milliseconds after the start.
    pub delay: Option<u64>,
    /// Begins at the instant that is so many milliseconds after the start is asked for.
    pub at: Option<u64>,
    /// At most so many at once as the key's number says, and one.
    pub concurrency: Vec<u32>,
    /// No faster than the key's rate.
    pub rate: Option<u32>,
    /// A larger one is admitted sooner.
    pub priority: Option<i16>,
    /// Whose share of the first limit it uses, and the weight.
    pub fair: Option<(u32, u32)>,
    /// One at a time; whether it takes the place of the one that is there.
    pub single: Option<(u32, bool)>,
    /// Begins when nobody started another for so many milliseconds, and after so many at the latest.
    pub debounce: Option<(u32, u64, u64)>,
    /// A start within so many milliseconds is the same one.
    pub window: Option<(u32, u64)>,
}

/// What is done with a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// It is started.
    Start,
    /// It is sent a signal.
    Signal,
    /// It is asked to stop.
    Cancel,
    /// It is ended.
    Terminate,
}

/// The rate of a key.
pub fn rate(key: u32) -> Rate {
    Rate::new(1, Duration::from_millis(4_000)).burst(key + 1)
}

impl Flow {
    /// Says it all.
    pub fn say<'e>(&self, mut start: Start<'e>, now: Timestamp) -> Start<'e> {
        let millis = Duration::from_millis;
        if let Some(delay) = self.delay {
            start = start.delay(millis(delay));
        }
        if let Some(at) = self.at {
            start = start.at(now + millis(at));
        }
        for key in &self.concurrency {
            start = start.concurrency(&format!("limit-{key}"), key + 1);
        }
        if let Some(key) = self.rate {
            start = start.rate(&format!("rate-{key}"), rate(key));
        }
        if let Some(priority) = self.priority {
            start = start.priority(priority);
        }
        if let Some((key, weight)) = self.fair {
            start = start.fair(&format!("share-{key}"), weight);
        }
        start = match self.single {
            Some((key, true)) => start.singleton_replacing(&format!("single-{key}")),
            Some((key, false)) => start.singleton(&format!("single-{key}")),
            None => start,
        };
        if let Some((key, wait, at_most)) = self.debounce {
            start = start.debounce(&format!("debounce-{key}"), millis(wait)).at_most(millis(at_most));
        }
        match self.window {
            Some((key, window)) => start.idempotency(&format!("window-{key}"), millis(window)),
            None => start,
        }
    }
}

/// The id of a guest, by its place in the case.
pub fn guest_id(guest: usize) -> String {
    format!("guest-{guest}")
}

/// Whether a run is a guest.
pub fn is_guest(run: &str) -> bool {
    run.starts_with("guest-") && !run.contains('.')
}
