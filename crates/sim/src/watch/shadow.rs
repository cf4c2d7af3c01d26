//! What the watch knows of a run: everything that calls which were answered did to it.

use std::collections::BTreeMap;

use bytes::Bytes;
use outlast_core::commit::{Control, NewRun, Parent, Snapshot, TimerRef};
use outlast_core::event::Event;
use outlast_core::id::{ClaimId, DeliveryId, Fence, Generation, InboxId, Index, Key, LeaseId, Version, WorkflowName};
use outlast_core::journal::Journal;
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use crate::ledger::tick;

/// A run, as the calls that were answered made it.
#[derive(Clone, Debug)]
pub struct Shadow {
    /// Which workflow.
    pub workflow: WorkflowName,
    /// Who started it.
    pub parent: Option<Parent>,
    /// Its generations.
    pub chapters: Vec<Chapter>,
    /// Who held it, by fence.
    pub holders: BTreeMap<Fence, Holder>,
    /// The newest fence.
    pub fence: Fence,
    /// Whether it is held.
    pub owned: bool,
    /// How often it was taken from somebody since it last went on.
    pub tries: u32,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Whether a run above it was deleted: it goes too, sooner or later.
    pub doomed: bool,
    /// When it ended, by the store's clock.
    pub ended_at: Option<Timestamp>,
    /// Whether everything that happened to it is known. A call that nobody waited for, or that was answered in doubt, ends
    /// that, and with it what can be said about the run before the end.
    pub sure: bool,
    /// Whether the order in which things were accepted and consumed is known too.
    pub mail_sure: bool,
    /// When its timers are due.
    pub timers: BTreeMap<TimerRef, Timestamp>,
    /// Timers that its journal says nothing about: those it began with, and those that signs of life put off.
    pub given: BTreeMap<TimerRef, Timestamp>,
    /// What was accepted for it, in order.
    pub arrivals: Vec<Arrival>,
}

/// Who held a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Under which lease.
    pub lease: LeaseId,
    /// With which claim.
    pub claim: ClaimId,
    /// In which process; empty if nobody said.
    pub process: String,
    /// Since when, among everything that happened.
    pub tick: u64,
    /// How often it had been taken from somebody by then, since it last went on.
    pub tries: u32,
    /// Whether it seized a run that flow control holds back. If it dies over that, the run is held back as before, and nothing is
    /// counted.
    pub in_lobby: bool,
    /// When it first committed something.
    pub progress: Option<u64>,
    /// When it gave the run up, or somebody else took it; none if neither happened.
    pub until: Option<u64>,
}

/// One generation of a run.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// The version it runs under.
    pub version: Version,
    /// What it began with.
    pub input: Bytes,
    /// How many of its events it began with: they are another run's.
    pub history: usize,
    /// Its events.
    pub entries: Vec<Entry>,
    /// The same, as the law sees them.
    pub journal: Journal,
    /// The states of its program that were kept.
    pub snapshots: Vec<Snapshot>,
}

/// An event that was appended.
#[derive(Clone, Debug)]
pub struct Entry {
    /// It.
    pub record: Record,
    /// By whom; none for history.
    pub fence: Option<Fence>,
    /// When, among everything that happened.
    pub tick: u64,
}

/// Something that was accepted for a run.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Under which id.
    pub id: DeliveryId,
    /// What.
    pub what: Parcel,
    /// Where it lies, once that was seen.
    pub inbox: Option<InboxId>,
    /// Whether a commit took it.
    pub consumed: bool,
}

/// What was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parcel {
    /// A signal.
    Signal {
        /// Its name.
        name: String,
        /// For which operation, if for one.
        aimed: Option<Key>,
        /// What it says.
        payload: Bytes,
    },
    /// A decision.
    Approval {
        /// About what.
        key: Key,
        /// What was said.
        meta: Option<Bytes>,
    },
    /// The answer to a callback.
    Callback {
        /// To which.
        key: Key,
        /// The answer.
        payload: Option<Bytes>,
    },
    /// A cancellation, a pause or a resume.
    Control(Control),
}

impl Holder {
    /// Who holds a run from now on.
    pub(super) fn new(lease: LeaseId, claim: ClaimId, process: String, tries: u32) -> Holder {
        Holder { lease, claim, process, tick: tick(), tries, in_lobby: false, progress: None, until: None }
    }
}

impl Parcel {
    /// Whether it is still there in the next generation.
    pub fn outlives_generation(&self) -> bool {
        matches!(self, Parcel::Signal { .. } | Parcel::Control(_))
    }
}

impl Shadow {
    pub(super) fn new(new: &NewRun, tick: u64) -> Shadow {
        let mut chapter = Chapter::new(new.version.clone(), new.input.clone());
        chapter.history = new.history.len();
        for record in &new.history {
            // Whether a history is legal is for the law at the end; here it is only where the run begins.
            let _ = chapter.append(record, None, tick);
        }
        let given: BTreeMap<_, _> = new.timers.iter().map(|timer| (timer.timer.clone(), timer.due)).collect();
        Shadow {
            workflow: new.workflow.clone(),
            parent: new.parent.clone(),
            chapters: vec![chapter],
            holders: BTreeMap::new(),
            fence: Fence(0),
            owned: false,
            tries: 0,
            ended: false,
            deleted: false,
            doomed: false,
            ended_at: None,
            sure: true,
            mail_sure: true,
            timers: given.clone(),
            given,
            arrivals: Vec::new(),
        }
    }

    /// The current generation.
    pub fn generation(&self) -> Generation {
        Generation(self.chapters.len().saturating_sub(1) as u64)
    }

    /// The current generation's events.
    pub fn chapter(&self) -> Option<&Chapter> {
        self.chapters.last()
    }

    /// The journal's next index.
    pub fn next(&self) -> Index {
        Index(self.chapter().map_or(0, |chapter| chapter.entries.len() as u64))
    }

    /// Who holds it now.
    pub fn holder(&self) -> Option<&Holder> {
        self.holders.get(&self.fence).filter(|_| self.owned)
    }

    /// Who held it at some time, as far as a fence was given out: whoever got the newest one by then.
    pub fn holder_at(&self, tick: u64) -> Option<&Holder> {
        self.holders.values().filter(|holder| holder.tick <= tick).max_by_key(|holder| holder.tick)
    }

    /// Whoever holds it committed.
    pub(super) fn progressed(&mut self, fence: Fence, events: bool) {
        if let Some(holder) = self.holders.get_mut(&fence) {
            holder.progress.get_or_insert(tick());
        }
        if events {
            self.tries = 0;
        }
    }

    /// Nobody holds it any more.
    pub(super) fn let_go(&mut self) {
        self.owned = false;
        if let Some(holder) = self.holders.get_mut(&self.fence) {
            holder.until.get_or_insert(tick());
        }
    }

    pub(super) fn held(&mut self, fence: Fence, holder: Holder) {
        for (_, before) in self.holders.range_mut(..fence) {
            before.until.get_or_insert(holder.tick);
        }
        self.fence = self.fence.max(fence);
        self.owned = true;
        self.holders.entry(fence).or_insert(holder);
    }
}

impl Chapter {
    pub(super) fn new(version: Version, input: Bytes) -> Chapter {
        Chapter { version, input, history: 0, entries: Vec::new(), journal: Journal::new(), snapshots: Vec::new() }
    }

    /// Takes note of an event; what the law says about it.
    pub(super) fn append(&mut self, record: &Record, fence: Option<Fence>, tick: u64) -> Result<(), String> {
        let index = Index(self.entries.len() as u64);
        self.entries.push(Entry { record: record.clone(), fence, tick });
        let event = Event::decode(record).map_err(|error| format!("event {index} cannot be read: {error}"))?;
        self.journal.append(index, event).map(drop).map_err(|error| error.to_string())
    }

    /// The records.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.entries.iter().map(|entry| &entry.record)
    }
}
