//! Rolling deploys: a node says which versions it has, and parks runs whose version nobody has had for long.

use std::time::Duration;

use outlast_core::limits::CLAIM_BATCH_MAX;

use super::{Agenda, Node};

/// Announcements within the grace: one or two that fail do no harm.
const ANNOUNCEMENTS: u32 = 5;
/// How often it is looked for texts that others put into the store: whoever starts a run of one should not wait for long.
pub(super) const TEXTS: Duration = Duration::from_secs(5);

impl Node {
    /// Announces what is registered here, and parks what nobody announces, each when it is time.
    pub(super) async fn look_after_versions(&self, now: Duration, agenda: &mut Agenda) {
        // The sole user of a store tells nobody but itself, right before it looks.
        let period = self.version_grace / if self.sole { 1 } else { ANNOUNCEMENTS };
        if !self.sole && now >= agenda.texts {
            agenda.texts = self.after(TEXTS);
            if self.has_new_texts().await {
                agenda.announce = now;
            }
        }
        let parks = now >= agenda.park;
        if !parks && now < agenda.announce {
            return;
        }
        // Always before parking too: a clock that steps forward must not make what is here look old.
        let said = self.announce().await;
        agenda.announce = self.after(if said { period } else { period.min(self.poll) });
        if parks {
            let more = said && self.park_unserved().await;
            agenda.park = self.after(if more || !said { period.min(self.poll) } else { period });
        }
    }

    async fn has_new_texts(&self) -> bool {
        let before = self.registry.seen();
        // What cannot be read now is read with the next announcement.
        let read = self.registry.learn(&*self.store).await;
        read.is_ok() && self.registry.seen() != before
    }

    /// Whether it could be said. Texts that came since are said with the rest.
    pub(crate) async fn announce(&self) -> bool {
        if let Err(error) = self.registry.learn(&*self.store).await {
            tracing::warn!(%error, "the texts of the store could not be read; they are read again");
        }
        match self.store.announce(self.registry.offers()).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "versions could not be announced; they are announced again");
                false
            }
        }
    }

    /// Parks some, not so many that the lease would not be renewed meanwhile; whether there may be more.
    async fn park_unserved(&self) -> bool {
        match self.store.park_unserved(self.version_grace, CLAIM_BATCH_MAX).await {
            Ok(parked) => {
                for run in &parked {
                    tracing::error!(%run, "the run is parked: no node has offered its version; its note says what to do");
                    self.board.parked(run);
                }
                parked.len() == CLAIM_BATCH_MAX
            }
            Err(error) => {
                tracing::warn!(%error, "runs that nobody serves could not be looked for; they are looked for again");
                false
            }
        }
    }
}
