//! Admits runs that were held back: when one was started here, when one ended here, when a delay or a rate says so, and at
//! every poll, for what nobody gave notice of.

use std::time::Duration;

use outlast_core::planted;
use outlast_core::time::Timestamp;
use outlast_store::StoreError;

use super::{Agenda, Node};

/// Runs admitted in one transaction. Others write between two.
const ADMIT_BATCH_MAX: usize = 256;

/// How late a planted bug is.
const LATE: Duration = Duration::from_secs(600);

impl Node {
    pub(super) async fn look_after_held(&self, now: Duration, polled: bool, agenda: &mut Agenda) {
        let told = self.board.take_held();
        let late = planted!("held-admitted-late");
        let polled = polled && !late;
        if !told && !polled && agenda.admit.is_none_or(|at| now < at) {
            return;
        }
        agenda.admit = match self.admit().await {
            Ok(next_at) if late => next_at.map(|at| self.time.instant(at) + LATE),
            Ok(next_at) => next_at.map(|at| self.time.instant(at)),
            Err(error) => {
                tracing::warn!(%error, "held runs could not be admitted; they are looked at again");
                Some(self.after(self.poll))
            }
        };
    }

    /// Admits what has room; when a delay or a rate allows more.
    pub(super) async fn admit(&self) -> Result<Option<Timestamp>, StoreError> {
        loop {
            let asked = self.time.asked();
            let admitted = self.store.admit(ADMIT_BATCH_MAX).await?;
            self.time.observe(asked, admitted.now);
            // A run may have ended before it was noted that others wait for that.
            let unnoted = !self.board.set_held(admitted.waiting) && admitted.waiting;
            if !admitted.more && !unnoted {
                return Ok(admitted.next_at);
            }
        }
    }
}
