//! The folded state as bytes. A snapshot is a cache: whatever is wrong with one, the journal is still there.

use outlast_core::id::Key;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::load::Flow;
use crate::model::{Body, NodeKind};
use crate::state::{Block, Saved, Slot};

const MAGIC: &[u8] = b"outlast-flow\0";
const VERSION: u8 = 2;
const CHECKSUM_BYTES: usize = 8;

/// Why a snapshot cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// Another flow wrote it, or another text of this one.
    #[error("the snapshot was made by another flow")]
    OtherFlow,
    /// It is not a snapshot of a flow.
    #[error("this is not a snapshot of a flow")]
    NotASnapshot,
    /// Another release wrote it.
    #[error("the snapshot has version {0}, this release reads version {VERSION}")]
    OtherVersion(u8),
    /// It is damaged.
    #[error("the snapshot is damaged: {0}")]
    Damaged(String),
}

pub(crate) fn save(saved: &Saved) -> Option<Vec<u8>> {
    let body = rmp_serde::to_vec_named(saved).ok()?;
    let mut data = Vec::with_capacity(MAGIC.len() + 1 + CHECKSUM_BYTES + body.len());
    data.extend_from_slice(MAGIC);
    data.push(VERSION);
    data.extend_from_slice(&checksum(&body));
    data.extend_from_slice(&body);
    Some(data)
}

pub(crate) fn load(flow: &Flow, data: &[u8]) -> Result<Saved, SnapshotError> {
    let rest = data.strip_prefix(MAGIC).ok_or(SnapshotError::NotASnapshot)?;
    let (version, rest) = rest.split_first().ok_or(SnapshotError::NotASnapshot)?;
    if *version != VERSION {
        return Err(SnapshotError::OtherVersion(*version));
    }
    let damaged = |why: &str| SnapshotError::Damaged(why.to_owned());
    let (sum, body) = rest.split_at_checked(CHECKSUM_BYTES).ok_or_else(|| damaged("it is cut off"))?;
    if sum != checksum(body) {
        return Err(damaged("its checksum is another"));
    }
    let saved: Saved = rmp_serde::from_slice(body).map_err(|error| SnapshotError::Damaged(error.to_string()))?;
    let fits = saved.taken.len() == flow.inner.loops.len()
        && saved.going_back.is_none_or(|edge| edge < flow.inner.loops.len())
        && saved.top.previous.len() == flow.inner.body.nodes.len()
        && fits(&flow.inner.body, &saved.top);
    if fits { Ok(saved) } else { Err(damaged("it does not fit the flow")) }
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&Sha256::digest(body)[..CHECKSUM_BYTES]);
    sum
}

/// Whether the state has the form of the flow: everything after this relies on it.
fn fits(body: &Body, block: &Block) -> bool {
    let count = body.nodes.len();
    let sizes = block.slots.len() == count && block.outputs.len() == count && block.errors.len() == count;
    sizes
        && body.nodes.iter().zip(&block.slots).all(|(node, slot)| {
            let Slot::Running(entry) = slot else { return true };
            match (&node.kind, &entry.container) {
                (NodeKind::Container(node), Some(container)) => container
                    .active
                    .iter()
                    .all(|(index, block)| node.body(*index).is_some_and(|body| fits(body, block))),
                (_, None) => entry.key.as_str().len() <= Key::BYTES_MAX,
                (_, Some(_)) => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outlast_script::RunInfo;

    use super::*;
    use crate::limits::FlowLimits;
    use crate::state::State;

    #[test]
    fn a_state_that_lacks_what_passes_left_does_not_fit() {
        let flow = Flow::parse("nap.flow.yaml", "flow: nap\nnodes: [{ id: rest, type: sleep, for: 1m }]").unwrap();
        let info = RunInfo { run_id: "r".into(), workflow: "nap".into(), tokens: Arc::new(|_| String::new()) };
        let mut state = State::new(flow.clone(), info, Arc::default(), FlowLimits::default());
        assert!(load(&flow, &save(&state.saved).unwrap()).is_ok());
        state.saved.top.previous.clear();
        let refused = load(&flow, &save(&state.saved).unwrap());
        assert_eq!(refused.unwrap_err(), SnapshotError::Damaged("it does not fit the flow".to_owned()));
    }
}
