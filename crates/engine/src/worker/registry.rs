//! Who works: what a worker says of itself, and how often that is noted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use outlast_core::id::{Namespace, WorkerId};
use outlast_store::{Sighting, Store};
use serde::{Deserialize, Serialize};

/// What a worker says of itself. Stored as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    /// Where it runs, for people.
    pub(crate) host: Option<String>,
    pub(crate) queues: Vec<String>,
    pub(crate) tasks: Vec<String>,
    /// How many it does at once.
    pub(crate) tasks_max: u64,
    /// The lease that its process renews, if it is an engine's.
    pub(crate) lease_ms: Option<u64>,
}

impl About {
    pub(crate) fn encode(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    pub(crate) fn decode(about: &[u8]) -> About {
        serde_json::from_slice(about).unwrap_or_default()
    }
}

/// Workers elsewhere whose last sighting is remembered. If there are more it begins anew, and they are noted once more.
const REMEMBERED_MAX: usize = 4_096;

/// When workers elsewhere were seen last, so that not every call of theirs is a write.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<BTreeMap<WorkerId, Duration>>);

impl Seen {
    /// Whether a sighting at this instant, by the host's clock, is worth noting: nobody was noted for a third of the lease.
    fn is_due(&self, worker: &WorkerId, now: Duration, lease: Duration) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(worker).is_some_and(|next| now < *next) {
            return false;
        }
        if seen.len() >= REMEMBERED_MAX {
            seen.clear();
        }
        seen.insert(worker.clone(), now + lease / 3);
        true
    }

    /// Notes a worker elsewhere, if it is time. Whoever asks for work does not wait in vain if it cannot be noted.
    pub(crate) async fn note(
        &self,
        store: &dyn Store,
        now: Duration,
        lease: Duration,
        (namespace, worker): (&Namespace, &WorkerId),
        about: Option<About>,
    ) {
        if self.is_due(worker, now, lease) {
            let (namespace, about) = (Some(namespace.clone()), about.map(|about| about.encode()));
            let sighting = Sighting { namespace, worker: worker.clone(), about, arrived: false };
            if let Err(error) = store.see_worker(sighting).await {
                tracing::debug!(%error, "a worker could not be noted; it is noted later");
            }
        }
    }
}
