//! How long things take in a story.

use std::time::Duration;

/// The pace of a story, and of the engines that tell it: a story of a month is told with long leases, so that it is not a
/// million renewals.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// When something was recorded in the story without faults.
    pub(super) moments: Vec<Duration>,
    pub(super) poll: Duration,
    pub(super) lease: Duration,
}

/// Polls in the time a story takes without faults, about.
const POLLS: u32 = 2_000;
const POLL_MIN: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_secs(86_400);
/// How often to poll in a story nobody knows yet.
const POLL_UNKNOWN: Duration = Duration::from_secs(3_600);
/// A lease is so many polls long.
const LEASE_POLLS: u32 = 10;
/// The longest story without faults: three years.
const STORY_MAX: Duration = Duration::from_secs(3 * 365 * 86_400);
/// A story that has not ended after so many leases more than it takes never does.
const LEASES_MAX: u32 = 300;

impl Pace {
    /// For a story nobody knows yet.
    pub(super) fn unknown() -> Pace {
        Pace { moments: Vec::new(), poll: POLL_UNKNOWN, lease: POLL_UNKNOWN * LEASE_POLLS }
    }

    /// For a story in which something was recorded at these moments.
    pub(super) fn of(moments: &[Duration]) -> Pace {
        let mut moments = moments.to_vec();
        moments.sort_unstable();
        moments.dedup();
        let length = moments.last().copied().unwrap_or_default();
        let poll = (length / POLLS).clamp(POLL_MIN, POLL_MAX);
        Pace { moments, poll, lease: poll * LEASE_POLLS }
    }

    /// How long the story takes without faults.
    pub(super) fn length(&self) -> Duration {
        self.moments.last().copied().unwrap_or_default()
    }

    /// How long the story may take with faults. A story nobody knows may take years.
    pub(super) fn patience(&self) -> Duration {
        if self.moments.is_empty() { STORY_MAX } else { self.length() * 2 + self.lease * LEASES_MAX }
    }
}
