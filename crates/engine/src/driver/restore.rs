//! From what a run was loaded to its program: from its journal, or from a snapshot and what followed.

use std::sync::Arc;

use outlast_core::event::Event;
use outlast_core::id::Index;
use outlast_core::planted;
use outlast_store::{LoadFrom, Loaded};

use super::calls::Wanted;
use super::ready::RunNo;
use super::{Driver, Owned, Slot};
use crate::drive::{Hints, Identity, Restored, Run, Transactions, unseal};
use crate::registry::{About, unknown_version};

/// A run that makes snapshots and has more events than this should have one.
const EVENTS_WITHOUT_SNAPSHOT: usize = 1_000;

/// Why a run is not there although it was loaded.
enum Unrestored {
    /// Its snapshot cannot be used.
    Snapshot(String),
    /// It cannot go on here.
    Park(String),
}

impl Driver {
    /// Reads a run again from the start, keeping what was learned.
    pub(super) fn reload(&mut self, no: RunNo, owned: Owned, hints: Hints) {
        let from = self.load_from(&owned);
        let Some(place) = self.places.get_mut(&no) else { return };
        place.reloads += 1;
        let wanted = Wanted { no, run: owned.run.clone(), from, taking: Some(owned.fence) };
        place.slot = Slot::Loading { owned, hints, hot: None };
        self.loads.push(wanted);
    }

    /// The run's journal and inbox are here: its program goes on.
    pub(super) fn restore(&mut self, no: RunNo, loaded: Loaded) {
        let Some(place) = self.places.get_mut(&no) else { return };
        let slot = std::mem::replace(&mut place.slot, Slot::Leaving);
        let Slot::Loading { owned, hints, hot } = slot else {
            place.slot = slot;
            return;
        };
        // Somebody else had it meanwhile, and took it further or to its end.
        if loaded.generation != owned.generation || has_ended(&loaded) {
            self.forget(no);
            return;
        }
        if let Some(mut run) = hot {
            run.reclaimed(owned.fence, self.ready.waker(no));
            run.receive(loaded.inbox);
            self.live(no, run);
            return;
        }
        match self.program(no, &owned, loaded, hints.clone()) {
            Ok(run) => self.live(no, Box::new(run)),
            Err(Unrestored::Snapshot(why)) if !planted!("torn-snapshot-parks") => self.rebuild(no, owned, hints, &why),
            Err(Unrestored::Park(reason) | Unrestored::Snapshot(reason)) => {
                self.park(no, &owned.run, owned.fence, owned.next, reason)
            }
        }
    }

    /// From where a run is loaded: from the last snapshot of its program, if it makes any.
    pub(super) fn load_from(&self, owned: &Owned) -> LoadFrom {
        let definition = self.registry.definition(&owned.workflow, &owned.version);
        match definition.as_ref().and_then(|definition| definition.snapshots()) {
            Some(definition) => LoadFrom::Snapshot { definition: definition.to_owned() },
            None => LoadFrom::Index(Index(0)),
        }
    }

    /// A snapshot cannot be used. It is only a cache: the run is read from its beginning.
    pub(super) fn rebuild(&mut self, no: RunNo, owned: Owned, hints: Hints, why: &str) {
        tracing::warn!(run = %owned.run, why, "a snapshot cannot be used: the run is rebuilt from its whole journal");
        let Some(place) = self.places.get_mut(&no) else { return };
        let run = owned.run.clone();
        place.slot = Slot::Loading { owned, hints, hot: None };
        self.loads.push(Wanted { no, run, from: LoadFrom::Index(Index(0)), taking: None });
    }

    fn program(&mut self, no: RunNo, owned: &Owned, loaded: Loaded, hints: Hints) -> Result<Run, Unrestored> {
        let identity = Identity {
            run: owned.run.clone(),
            generation: owned.generation,
            workflow: owned.workflow.clone(),
            version: owned.version.clone(),
            parent: owned.parent.clone(),
        };
        let (runtime, transactions) = (self.time.host().runtime(), Transactions::default());
        let newest = (self.settings.newest)(&identity.run.namespace, &identity.workflow);
        let version = newest.filter(|_| planted!("text-of-another-version"));
        let version = version.as_ref().unwrap_or(&identity.version);
        let definition = self.registry.definition(&identity.workflow, version);
        let definition =
            definition.ok_or_else(|| Unrestored::Park(unknown_version(&identity.workflow, &identity.version)))?;
        let about = About::new(&identity, &self.settings, &transactions, runtime);
        let (program, kept) = match &loaded.snapshot {
            None => {
                if definition.snapshots().is_some() && loaded.events.len() > EVENTS_WITHOUT_SNAPSHOT {
                    let (run, events) = (&owned.run, loaded.events.len());
                    tracing::warn!(%run, events, "no snapshot of this code is there: the run is rebuilt from its whole journal");
                }
                (definition.program(about, loaded.input), None)
            }
            Some(snapshot) => {
                let (kept, snapshot) = unseal(snapshot).map_err(Unrestored::Snapshot)?;
                (definition.restore(about, loaded.input, &snapshot).map_err(Unrestored::Snapshot)?, Some(kept))
            }
        };
        let from_snapshot = kept.is_some();
        let restored = Restored {
            identity,
            fence: owned.fence,
            kept,
            events: loaded.events,
            inbox: loaded.inbox,
            program,
            transactions,
            waker: self.ready.waker(no),
            settings: Arc::clone(&self.settings),
            hints,
        };
        Run::restore(restored, self.moment()).map_err(|stop| match from_snapshot {
            true => Unrestored::Snapshot(stop.to_string()),
            false => Unrestored::Park(stop.to_string()),
        })
    }
}

/// Whether the journal that was loaded ends with the run's end.
fn has_ended(loaded: &Loaded) -> bool {
    loaded.events.last().is_some_and(|record| Event::decode(record).is_ok_and(|event| event.is_terminal()))
}
