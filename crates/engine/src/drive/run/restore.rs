//! What a run is restored from, and how.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use outlast_core::commit::InboxItem;
use outlast_core::event::Event;
use outlast_core::id::Fence;
use outlast_core::journal::Journal;
use outlast_core::operation::{Operations, Provided};
use outlast_core::program::Program;
use outlast_core::record::Record;

use super::snapshot::{Kept, Snapshots};
use super::{Hints, Identity, Moment, Run, Settings, Stop, seed};
use crate::drive::draft::Draft;
use crate::drive::inbox::Inbox;
use crate::drive::table::{Detail, Table};
use crate::drive::transaction::Transactions;

/// What a run is restored from.
pub(crate) struct Restored {
    pub(crate) identity: Identity,
    pub(crate) fence: Fence,
    /// What its driver knew when the snapshot was made that the program goes on from; none if it begins.
    pub(crate) kept: Option<Kept>,
    /// The journal, from that snapshot on.
    pub(crate) events: Vec<Record>,
    pub(crate) inbox: Vec<InboxItem>,
    pub(crate) program: Box<dyn Program>,
    /// Where the program leaves the closures of its transactions.
    pub(crate) transactions: Transactions,
    pub(crate) waker: Waker,
    pub(crate) settings: Arc<Settings>,
    pub(crate) hints: Hints,
}

impl Run {
    /// Restores a run from its journal, or from a snapshot and what followed. The program is fed by [`Run::advance`].
    pub(crate) fn restore(restored: Restored, moment: Moment) -> Result<Run, Stop> {
        let Restored { identity, fence, kept, events, inbox, program, transactions, waker, settings, hints } = restored;
        let is_from_snapshot = kept.is_some();
        let Kept { mut journal, operations, mut cancel_requested, next_generation, bytes } = kept.unwrap_or_default();
        let base = journal.next();
        let mut snapshots = Snapshots::new(base, bytes, settings.snapshot_after);
        events.iter().for_each(|record| snapshots.recorded(record));
        journal.load_more(events)?;
        let mut ops = Operations::new(Provided { now: moment.now, seed: moment.seed });
        ops.set_waker(waker);
        for event in journal.events() {
            ops.remember(event);
            cancel_requested |= matches!(event, Event::CancelRequested { .. });
        }
        let mut table = Table::default();
        for (key, entry) in operations {
            if let Detail::Signal { name } = &entry.detail {
                table.wait_opened(&key, name);
            }
            table.insert(key, entry);
        }
        let loaded = journal.next();
        let place = seed::place_of(&identity);
        Ok(Run {
            identity,
            fence,
            journal,
            durable: loaded,
            fed: base,
            loaded,
            started: false,
            requested: Vec::new(),
            program,
            ops,
            table,
            held: VecDeque::new(),
            withdrawn: BTreeSet::new(),
            ends: VecDeque::new(),
            inbox: Inbox::new(inbox),
            draft: Draft::default(),
            pausing: false,
            pause_item: None,
            next_generation,
            cancel_requested,
            outcome: None,
            ended_meanwhile: None,
            in_flight: None,
            transactions,
            transaction: None,
            outgoing: None,
            winding_down: false,
            reading: false,
            settings,
            hints,
            moment,
            place,
            names_reported: 0,
            snapshots,
            is_from_snapshot,
            locations: None,
        })
    }

    /// Whether it stands on a snapshot, and has not committed anything yet: what it comes to may be the snapshot's fault.
    pub(crate) fn is_from_snapshot(&self) -> bool {
        self.is_from_snapshot
    }
}

impl Default for Kept {
    /// Nothing: the beginning.
    fn default() -> Kept {
        let (journal, operations) = (Journal::new(), Vec::new());
        Kept { journal, operations, cancel_requested: false, next_generation: None, bytes: 0 }
    }
}
