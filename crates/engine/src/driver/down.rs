//! On the way down: bodies end, and everything is given back.

use super::ready::RunNo;
use super::{Driver, Place, Slot};

impl Driver {
    /// On the way down: a run whose bodies have ended goes to whoever takes it up next.
    pub(super) fn give_back_if_idle(&mut self, no: RunNo) {
        let Some(Place { slot: Slot::Live(run), .. }) = self.places.get_mut(&no) else { return };
        if run.wind_down() {
            let (key, fence) = (run.identity().run.clone(), run.fence());
            self.forget(no);
            self.under_way.push(self.calls.release(key, fence, true));
        }
    }

    /// Answers a drain once nothing is driven any more.
    pub(super) fn finish_draining(&mut self) {
        if self.places.is_empty()
            && self.under_way.is_empty()
            && let Some(reply) = self.drain.take()
        {
            let _ = reply.send(());
        }
    }

    /// Gives back what is still driven: somebody else goes on at once.
    pub(super) async fn give_back(mut self) {
        let releases: Vec<_> = self
            .places
            .values()
            .filter_map(|place| match &place.slot {
                Slot::Live(run) => Some((place.key.clone(), run.fence())),
                Slot::Loading { owned, .. } => Some((place.key.clone(), owned.fence)),
                Slot::Leaving => None,
            })
            .collect();
        self.places.clear();
        self.hot.clear();
        for (run, fence) in releases {
            self.calls.release(run.clone(), fence, true).await;
            self.board.left(&run);
        }
    }
}
