//! What has ended goes: runs past their age, and the rows of runs that were deleted.

use std::time::Duration;

use outlast_store::Retention;

use super::{Agenda, Node};

/// Rows removed in one transaction. Others write between two.
const BATCH_MAX: usize = 1_000;
/// How often to look, at least and at most.
const PERIODS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(60 * 60));

impl Node {
    /// A tenth late is soon enough, and no oftener than other looking around.
    pub(super) fn retention_period(&self) -> Duration {
        let tenth = self.retention.map_or(PERIODS.1, |age| (age / 10).clamp(PERIODS.0, PERIODS.1));
        tenth.max(self.poll * 10)
    }

    /// Removes a batch when it is time, or when somebody deleted a run.
    pub(super) async fn look_after_ended(&self, now: Duration, agenda: &mut Agenda) {
        if !self.board.take_deleted() && now < agenda.retain {
            return;
        }
        let age = self.retention.unwrap_or(Duration::MAX);
        let next = match self.store.retain(Retention { age, limit: BATCH_MAX }).await {
            Ok(retained) if retained.more => Duration::ZERO,
            Ok(_) => self.retention_period(),
            Err(error) => {
                tracing::warn!(%error, "what has ended could not be removed; it is removed later");
                self.poll
            }
        };
        agenda.retain = self.after(next);
    }
}
