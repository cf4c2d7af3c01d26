//! A world's time, for whoever cannot borrow the world.

use std::sync::Arc;
use std::time::Duration;

use super::executor::Core;
use super::own::Own;

/// The time of a world, for step bodies, which must be free to go to other threads.
#[derive(Clone)]
pub struct WorldTime {
    pub(super) core: Arc<Core>,
    pub(super) nobody: Arc<Own>,
}

impl WorldTime {
    /// How much time has passed since the world began, whatever its clocks show.
    pub fn elapsed(&self) -> Duration {
        self.core.elapsed()
    }

    /// Completes when so much time has passed in the world.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.core.sleep_until(&self.nobody, self.elapsed().saturating_add(duration))
    }
}
