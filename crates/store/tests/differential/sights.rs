//! What there is to hit.

use outlast_core::commit::{Commit, Delivery, TimerRef, WaitKind};
use outlast_core::id::{Key, RunKey};
use outlast_store::{Awaited, Store};

use crate::names;

/// What there is to hit: who aims blindly among so many names hits little.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    live: Vec<RunKey>,
    owned: Vec<RunKey>,
    waits: Vec<(RunKey, Key, WaitKind)>,
    timers: Vec<(RunKey, TimerRef)>,
}

impl Sights {
    pub(crate) async fn look(model: &dyn Store) -> Sights {
        let mut sights = Sights::default();
        for run in crate::laws::universe() {
            let Ok(view) = model.get(run.clone()).await else { continue };
            if view.owner.is_some() {
                sights.owned.push(run.clone());
            }
            for awaited in model.awaiting(run.clone()).await.unwrap_or_default() {
                match awaited {
                    Awaited::Timer { key, kind, .. } => sights.timers.push((run.clone(), TimerRef { key, kind })),
                    Awaited::Wait { key, kind, .. } => sights.waits.push((run.clone(), key, kind)),
                    Awaited::Task { .. } | Awaited::Child { .. } => {}
                }
            }
            sights.live.push(run);
        }
        sights
    }

    /// That run if it is owned, otherwise one that is; but not for every id.
    pub(crate) fn owned(&self, run: RunKey) -> RunKey {
        let blind = self.owned.contains(&run) || run.id == names::run_id(2);
        self.owned.get(run.id.as_str().len() % self.owned.len().max(1)).filter(|_| !blind).cloned().unwrap_or(run)
    }

    /// Mostly at a run that lives, and an answer at a wait that is open.
    pub(crate) fn steer(&self, mut delivery: Delivery) -> Delivery {
        match &mut delivery {
            Delivery::Answer { run, key, kind, id, token, .. } if id.as_str() < "id-4" => {
                let open = self.waits.iter().find(|(_, _, wanted)| wanted == kind);
                if let Some((wanted, at_key, _)) = open {
                    (*run, *key) = (wanted.clone(), at_key.clone());
                    *token = token.take().or(Some("secret-0".to_owned()));
                }
            }
            Delivery::Signal { run, .. }
            | Delivery::Answer { run, .. }
            | Delivery::Control { run, .. }
            | Delivery::Heartbeat { run, .. }
            | Delivery::Child { run, .. } => {
                if !self.live.contains(run) && run.id != names::run_id(2) {
                    *run = self.live.first().cloned().unwrap_or(run.clone());
                }
            }
            Delivery::Task { .. } => {}
        }
        delivery
    }

    /// What a commit fires, closes and reaches is mostly there.
    pub(crate) fn steer_commit(&self, commit: &mut Commit) {
        let home = commit.run.clone();
        let blind = |key: &Key| *key == names::key(2);
        commit.timers_fired.retain_mut(|fired| {
            let there = self.timers.iter().find(|(owner, timer)| *owner == home && timer.kind <= fired.kind);
            *fired = there.map_or(fired.clone(), |(_, timer)| timer.clone());
            there.is_some() || blind(&fired.key)
        });
        commit.waits_closed.retain_mut(|closed| {
            let there = self.waits.iter().find(|(owner, key, _)| *owner == home && *key >= closed.key);
            closed.key = there.map_or(closed.key.clone(), |(_, key, _)| key.clone());
            there.is_some() || blind(&closed.key)
        });
        for delivery in &mut commit.deliveries {
            match delivery {
                Delivery::Signal { run, .. }
                | Delivery::Answer { run, .. }
                | Delivery::Control { run, .. }
                | Delivery::Heartbeat { run, .. }
                | Delivery::Child { run, .. } => {
                    if run.id != names::run_id(2) {
                        run.namespace = home.namespace.clone();
                    }
                }
                Delivery::Task { .. } => {}
            }
        }
    }
}
