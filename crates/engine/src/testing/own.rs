//! What belongs to one process alone: its clock, its ears, and whether it is there at all.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::executor::TaskNo;

/// How fast a clock may run, per thousand of the world's.
const RATE_MIN: i32 = 100;
const RATE_MAX: i32 = 10_000;

/// One process, as the executor sees it.
#[derive(Default)]
pub(super) struct Own {
    pub(super) number: u64,
    state: Mutex<State>,
    is_dead: AtomicBool,
    is_deaf: AtomicBool,
    /// Whether its drivers have their threads to themselves.
    may_block: AtomicBool,
    /// How far its clock on the wall is ahead of the store's, in milliseconds.
    wall: AtomicI64,
    /// Notices that were not heard.
    unheard: AtomicU64,
    /// How often a task would have gone on and was frozen.
    held: AtomicU64,
}

#[derive(Default)]
struct State {
    clock: Rate,
    /// The tasks that would have gone on meanwhile, if it is frozen.
    frozen: Option<Vec<TaskNo>>,
}

impl Own {
    pub(super) fn new(number: u64) -> Own {
        Own { number, ..Own::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this process's clock shows when the world's shows `world`.
    pub(super) fn elapsed(&self, world: Duration) -> Duration {
        self.state().clock.own(world)
    }

    /// What the world's clock shows when this process's shows `own`.
    pub(super) fn world(&self, own: Duration) -> Duration {
        self.state().clock.world(own)
    }

    pub(super) fn drift(&self, per_mille: i32, world: Duration) {
        let mut state = self.state();
        let rate = per_mille.saturating_add(1_000).clamp(RATE_MIN, RATE_MAX);
        let own = state.clock.own(world);
        state.clock = Rate { rate: rate.unsigned_abs(), world, own };
    }

    pub(super) fn set_wall(&self, millis: i64) {
        self.wall.fetch_add(millis, Ordering::Relaxed);
    }

    /// How far its clock on the wall is ahead of the store's, in milliseconds.
    pub(super) fn wall(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }

    pub(super) fn freeze(&self) {
        self.state().frozen.get_or_insert_default();
    }

    /// The tasks that have something to do, now that they can.
    pub(super) fn thaw(&self) -> Vec<TaskNo> {
        self.state().frozen.take().unwrap_or_default()
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.state().frozen.is_some()
    }

    /// Keeps a task that is ready for later, if this is frozen; whether it is.
    pub(super) fn hold(&self, task: TaskNo) -> bool {
        let mut state = self.state();
        let Some(held) = &mut state.frozen else { return false };
        self.held.fetch_add(1, Ordering::Relaxed);
        if !held.contains(&task) {
            held.push(task);
        }
        true
    }

    pub(super) fn die(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    pub(super) fn set_deaf(&self, deaf: bool) {
        self.is_deaf.store(deaf, Ordering::SeqCst);
    }

    /// Whether a notice is heard; one that is not counts.
    pub(super) fn hears(&self) -> bool {
        let deaf = self.is_deaf.load(Ordering::SeqCst);
        self.unheard.fetch_add(u64::from(deaf), Ordering::Relaxed);
        !deaf
    }

    pub(super) fn unheard(&self) -> u64 {
        self.unheard.load(Ordering::Relaxed)
    }

    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    pub(super) fn set_may_block(&self, may_block: bool) {
        self.may_block.store(may_block, Ordering::SeqCst);
    }

    pub(super) fn may_block(&self) -> bool {
        self.may_block.load(Ordering::SeqCst)
    }
}

/// A clock beside the world's: where both stood at some moment, and how fast this one has run since.
struct Rate {
    /// Per thousand of the world's.
    rate: u32,
    world: Duration,
    own: Duration,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { rate: 1_000, world: Duration::ZERO, own: Duration::ZERO }
    }
}

impl Rate {
    fn own(&self, world: Duration) -> Duration {
        let since = world.saturating_sub(self.world).as_nanos();
        self.own.saturating_add(duration(since.saturating_mul(u128::from(self.rate)) / 1_000))
    }

    /// Rounded up: then this clock has certainly come that far.
    fn world(&self, own: Duration) -> Duration {
        let since = own.saturating_sub(self.own).as_nanos();
        self.world.saturating_add(duration(since.saturating_mul(1_000).div_ceil(u128::from(self.rate))))
    }
}

fn duration(nanos: u128) -> Duration {
    const NANOS: u128 = 1_000_000_000;
    let rest = u32::try_from(nanos % NANOS).unwrap_or(0);
    u64::try_from(nanos / NANOS).map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drifting_clock_comes_as_far_as_is_asked_and_not_much_farther() {
        for per_mille in [-900, -333, -1, 0, 7, 999, 9_000] {
            let own = Own::new(1);
            own.drift(per_mille, Duration::from_nanos(12_345));
            for until in [Duration::from_nanos(12_346), Duration::from_secs(1), Duration::from_secs(1_000_000_007)] {
                let world = own.world(until);
                assert!(own.elapsed(world) >= until, "{per_mille}: {until:?}");
                assert!(own.elapsed(world - Duration::from_nanos(1)) < until, "{per_mille}: {until:?}");
            }
        }
    }

    #[test]
    fn a_clock_does_not_jump_when_its_rate_changes() {
        let own = Own::new(1);
        own.drift(500, Duration::from_secs(10));
        assert_eq!(own.elapsed(Duration::from_secs(12)), Duration::from_secs(13));
        own.drift(-500, Duration::from_secs(12));
        assert_eq!(own.elapsed(Duration::from_secs(12)), Duration::from_secs(13));
        assert_eq!(own.elapsed(Duration::from_secs(14)), Duration::from_secs(14));
        assert_eq!(own.world(Duration::MAX), Duration::MAX, "what never comes stays there");
    }
}
