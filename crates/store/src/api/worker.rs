//! Workers and resumes, as operators see them.

use bytes::Bytes;
use outlast_core::id::{DeliveryId, LeaseId, Namespace, NodeId, RunId, WorkerId};
use outlast_core::time::Timestamp;

use super::TaskView;

/// A worker was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The only namespace it works for; none if for all.
    pub namespace: Option<Namespace>,
    /// Which.
    pub worker: WorkerId,
    /// What it says of itself. If none, only a worker that is known was seen.
    pub about: Option<Bytes>,
    /// Whether it has just begun to work.
    pub arrived: bool,
}

/// What is replied to whoever asks for something under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedReply {
    /// In which namespace.
    pub namespace: Namespace,
    /// Under which key.
    pub key: DeliveryId,
    /// What to keep, if there is nothing yet.
    pub reply: Option<Bytes>,
}

/// A worker, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// The only namespace it works for; none if for all.
    pub namespace: Option<Namespace>,
    /// Which.
    pub worker: WorkerId,
    /// What it says of itself.
    pub about: Bytes,
    /// Since when it works.
    pub started: Timestamp,
    /// When it was seen last.
    pub seen: Timestamp,
    /// The tasks it holds, by id; of one namespace, and at most [`HOLDS_MAX`].
    pub holds: Vec<TaskView>,
}

/// How many workers are shown.
pub const WORKERS_MAX: usize = 1_000;
/// How many tasks of each worker are shown.
pub const HOLDS_MAX: usize = 256;

/// What wakes a run: at most one that somebody has claimed, and one that nobody has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// Which run.
    pub run: RunId,
    /// Under which lease it is driven, and by which node; none if by nobody.
    pub claimed: Option<(LeaseId, Option<NodeId>)>,
    /// Since when there is one that nobody has claimed.
    pub ready_since: Option<Timestamp>,
}
