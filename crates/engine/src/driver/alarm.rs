//! The alarm: when the time of an attempt is up, its run is woken.

use outlast_core::time::Timestamp;

use super::{Driver, Place, RunNo, Slot};

impl Place {
    /// When it is to be woken because the time of an attempt is up.
    fn expires(&self) -> Option<Timestamp> {
        match &self.slot {
            Slot::Live(run) => run.next_expiry().filter(|expires| self.alarmed != Some(*expires)),
            Slot::Loading { .. } | Slot::Leaving => None,
        }
    }
}

impl Driver {
    /// Runs with an attempt whose time is up; each is told once.
    pub(super) fn expiring(&mut self) -> Vec<RunNo> {
        let now = self.time.now();
        let mut expiring = Vec::new();
        for (no, place) in &mut self.places {
            if let Some(expires) = place.expires().filter(|expires| *expires <= now) {
                place.alarmed = Some(expires);
                expiring.push(*no);
            }
        }
        expiring
    }

    pub(super) fn set_alarm(&mut self) {
        let expiries = self.places.values().filter_map(Place::expires);
        let Some(next) = expiries.min() else {
            self.alarm = None;
            return;
        };
        if self.alarm.as_ref().is_none_or(|(at, _)| *at != next) {
            let sleep = self.time.host().sleep_until(self.time.instant(next));
            self.alarm = Some((next, sleep));
            // Polled once, so that it wakes this driver.
            self.ready.wake_driver();
        }
    }
}
