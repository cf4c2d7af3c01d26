//! A node that drives nothing asks one question at each poll, and looks only after what the answer names.

use std::time::Duration;

use outlast_core::planted;
use outlast_core::time::Timestamp;

use super::claims::Claims;
use super::{Agenda, Node};

/// However idle, it looks after everything so often.
const THOROUGH: Duration = Duration::from_secs(60);

/// What a turn of the loop looks after, beside what it was told of.
pub(super) struct Look {
    pub(super) timers: bool,
    pub(super) held: bool,
    pub(super) runs: bool,
    /// Whether the store answered.
    pub(super) well: bool,
}

impl Look {
    const ALL: Look = Look { timers: true, held: true, runs: true, well: true };
    /// Runs are claimed in every turn but an idle one: whatever woke the loop may have made one ready.
    const TOLD: Look = Look { timers: false, held: false, runs: true, well: true };
}

impl Node {
    /// Decides what to look after. `told` says that somebody gave notice.
    pub(super) async fn look_ahead(&self, now: Duration, told: bool, agenda: &mut Agenda, claims: &Claims) -> Look {
        if now < agenda.poll {
            return Look::TOLD;
        }
        let settled = claims.are_settled() && !self.board.has_doubts();
        let idle = !told && settled && self.board.driven() == 0;
        if !idle || now >= agenda.thorough {
            agenda.thorough = now + THOROUGH;
            return Look::ALL;
        }
        let asked = self.time.asked();
        match self.store.outlook(Vec::new()).await {
            Ok(outlook) => {
                self.time.observe(asked, outlook.now);
                let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= outlook.now);
                let timer = outlook.timer.filter(|_| !planted!("outlook-forgets-timers"));
                timer.into_iter().for_each(|timer| self.board.remember_due(timer));
                agenda.admit = outlook.held.map(|at| self.time.instant(at));
                // One may have ended before it was noted that others wait for that.
                let unnoted = !self.board.set_held(outlook.waiting) && outlook.waiting;
                let (timers, held) = (is_due(timer), is_due(outlook.held) || unnoted);
                // Both make runs ready.
                Look { timers, held, runs: outlook.runs || timers || held, well: true }
            }
            Err(error) => {
                tracing::warn!(%error, "the store could not be asked what there is to do; it is asked again");
                Look { timers: false, held: false, runs: false, well: false }
            }
        }
    }
}
