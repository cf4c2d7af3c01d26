//! What can be said about an engine before it starts, and what holds if nobody says anything.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::id::{Namespace, NodeId};
use outlast_core::limits::Limits;

use super::Outlast;
use crate::host::Host;

/// Events between two snapshots of a run.
const SNAPSHOT_AFTER: u64 = 64;

pub(super) struct Options {
    pub(super) namespace: Namespace,
    pub(super) node: Option<NodeId>,
    pub(super) drivers: usize,
    pub(super) hot_runs: usize,
    pub(super) runs_max: usize,
    pub(super) tasks_max: usize,
    pub(super) lease: Duration,
    pub(super) poll: Duration,
    pub(super) grace: Duration,
    pub(super) version_grace: Duration,
    pub(super) retention: Option<Duration>,
    pub(super) limits: Limits,
    pub(super) looping: bool,
    pub(super) hints: bool,
    /// Nobody else can have the store, although it was not opened here.
    pub(super) sole: bool,
    pub(super) host: Option<Arc<dyn Host>>,
    pub(super) eviction: Option<u64>,
    pub(super) refuse_shared_names: bool,
    pub(super) snapshot_after: u64,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Options {
            namespace: Namespace::default_namespace(),
            node: None,
            drivers: cores,
            hot_runs: 1_000,
            runs_max: 10_000,
            tasks_max: 64,
            lease: Duration::from_secs(15),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(10),
            version_grace: Duration::from_secs(5 * 60),
            retention: None,
            limits: Limits::default(),
            looping: true,
            hints: true,
            sole: false,
            host: None,
            eviction: None,
            refuse_shared_names: false,
            snapshot_after: SNAPSHOT_AFTER,
        }
    }
}

impl Outlast {
    /// How many tasks this process does at once, at most; 64 if nobody says otherwise.
    pub fn tasks_max(mut self, tasks: usize) -> Outlast {
        self.options.tasks_max = tasks.max(1);
        self
    }

    /// The namespace this engine's clients act in.
    pub fn namespace(mut self, namespace: Namespace) -> Outlast {
        self.options.namespace = namespace;
        self
    }

    /// This node's name. Starting a node under a name ends what an earlier one of that name held: give each process of a
    /// cluster its own, and after a restart the same again.
    pub fn node(mut self, node: NodeId) -> Outlast {
        self.options.node = Some(node);
        self
    }

    /// How many threads drive runs; as many as there are cores if nobody says otherwise.
    pub fn drivers(mut self, drivers: usize) -> Outlast {
        self.options.drivers = drivers.max(1);
        self
    }

    /// How many programs of suspended runs each driver keeps in memory, so that waking them needs no replay.
    pub fn hot_runs(mut self, runs: usize) -> Outlast {
        self.options.hot_runs = runs;
        self
    }

    /// After how many events the state of a script that waits is saved again, so that going on with it does not begin at its
    /// beginning; 64 if nobody says otherwise. With 0 it is saved with every commit.
    pub fn snapshot_after(mut self, events: u64) -> Outlast {
        self.options.snapshot_after = events;
        self
    }

    /// How many runs this node drives at once, at most. Others stay queued.
    pub fn runs_max(mut self, runs: usize) -> Outlast {
        self.options.runs_max = runs.max(1);
        self
    }

    /// How long this node's runs stay its own when it falls silent.
    pub fn lease(mut self, lease: Duration) -> Outlast {
        self.options.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// How often to look for what nobody gave notice of: the work of other processes, mostly.
    pub fn poll(mut self, poll: Duration) -> Outlast {
        self.options.poll = poll.max(Duration::from_millis(1));
        self
    }

    /// How long [`Engine::shutdown`](crate::Engine::shutdown) waits for step bodies that are running.
    pub fn grace(mut self, grace: Duration) -> Outlast {
        self.options.grace = grace;
        self
    }

    /// How long nobody may offer a version before runs of it that are ready are parked: as long as a deploy may take in
    /// which the last node that has it stops before the next one starts. Five minutes if nobody says otherwise.
    pub fn version_grace(mut self, grace: Duration) -> Outlast {
        self.options.version_grace = grace.max(Duration::from_secs(1));
        self
    }

    /// How long runs are kept after they ended; a run with children as long as the last of them. Then they are deleted as
    /// by [`RunHandle::delete`](crate::RunHandle::delete). A run that has not ended is never touched. For ever if nobody says
    /// otherwise; in memory, an hour.
    pub fn retention(mut self, age: Duration) -> Outlast {
        self.options.retention = Some(age);
        self
    }

    /// Whether processes on one PostgreSQL tell each other that something became ready. They do if nobody says otherwise; without
    /// it (behind a pooler that has no `LISTEN`, or with very many processes) each finds out when it looks next:
    /// [`Outlast::poll`].
    pub fn hints(mut self, hints: bool) -> Outlast {
        self.options.hints = hints;
        self
    }

    /// What is too large.
    pub fn limits(mut self, limits: Limits) -> Outlast {
        self.options.limits = limits;
        self
    }

    /// Does nothing in the background: no run is claimed, no timer fires, no lease is kept, until somebody calls
    /// [`Engine::drive_once`](crate::Engine::drive_once). For webhooks, and for hosts that live only as long as a request.
    pub fn without_loops(mut self) -> Outlast {
        self.options.looping = false;
        self
    }

    /// Where time, chance and threads come from.
    #[cfg(feature = "testing")]
    pub(crate) fn host(mut self, host: Arc<dyn Host>) -> Outlast {
        self.options.host = Some(host);
        self
    }

    /// Nobody else has the store.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn sole(mut self) -> Outlast {
        self.options.sole = true;
        self
    }

    /// Evicts programs of suspended runs at random: the same ones for the same seed.
    #[cfg(feature = "testing")]
    pub(crate) fn evict_at_random(mut self, seed: u64) -> Outlast {
        self.options.eviction = Some(seed);
        self
    }

    /// Stops runs whose code uses one name at two places, instead of warning about it.
    #[cfg(feature = "testing")]
    pub(crate) fn refuse_shared_names(mut self) -> Outlast {
        self.options.refuse_shared_names = true;
        self
    }
}
