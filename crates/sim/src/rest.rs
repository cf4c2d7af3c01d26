//! Rest: trouble is over, and nobody helps. What engines do by themselves, and a look at what they leave undone.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use outlast_core::commit::{InboxItem, InboxKind};
use outlast_core::id::RunKey;
use outlast_core::limits::TRIES_ALONE;
use outlast_core::time::Timestamp;
use outlast_store::invariants::{RunState, World};
use outlast_store::{Awaited, Store};

use crate::case::Options;
use crate::cluster::Cluster;
use crate::oracle::{Evidence, Findings, Scene};

/// How long clients may still wait for an answer.
const CLIENTS_MAX: u32 = 120;
/// What an engine needs beside a lease and a poll: to start again, and for calls that take time.
const MARGIN: Duration = Duration::from_secs(5);
/// How often to look whether everything is over.
const LOOK: Duration = Duration::from_secs(1);

/// Within this everything that can go on does: whoever held it has lost it, and somebody has looked around.
pub(crate) fn bound(options: &Options) -> Duration {
    // Clocks of processes are wrong by a tenth.
    (Duration::from_millis(options.lease) + 2 * Duration::from_millis(options.poll)) * 11 / 10 + MARGIN
}

/// Lets the engines alone for as long as they may need, and judges what is then there.
pub(crate) async fn rest(cluster: &Rc<Cluster>, store: &dyn Store, left: &Cell<usize>) -> Findings {
    for _ in 0..CLIENTS_MAX {
        if left.get() == 0 {
            break;
        }
        cluster.world.sleep(LOOK).await;
    }
    let bound = bound(&cluster.case.options);
    let before = match cluster.still(worlds(store)).await {
        Ok(worlds) => pending(&worlds, cluster.world.now()),
        Err(_) => BTreeSet::new(),
    };
    let until = cluster.world.elapsed() + bound;
    while cluster.world.elapsed() < until && !cluster.watch.sight().is_over() {
        cluster.world.sleep(LOOK).await;
    }
    let mut findings = Findings::default();
    match cluster.still(Evidence::gather(store, &cluster.watch, &cluster.ledger)).await {
        Ok(evidence) => {
            let scene = Scene { patience: Some(bound), at_rest: true, ..Scene::default() };
            evidence.judge(&scene, &mut findings);
            if !is_crowded(cluster, &evidence) {
                let after = evidence.worlds.iter().map(|(_, world)| world);
                undone(&before, &pending(after, cluster.world.now()), &mut findings);
            }
        }
        Err(unreadable) => findings.check(2, Err(unreadable)),
    }
    findings
}

async fn worlds(store: &dyn Store) -> Result<Vec<World>, String> {
    let mut worlds = Vec::new();
    for namespace in store.namespaces().await.map_err(|error| error.to_string())? {
        worlds.push(World::read(store, &namespace).await?);
    }
    Ok(worlds)
}

/// Whether runs wait in line: for the only place there is, or for one that is driven alone.
fn is_crowded(cluster: &Cluster, evidence: &Evidence) -> bool {
    cluster.case.options.runs_max == 1 || evidence.shadows.values().any(|shadow| shadow.tries >= TRIES_ALONE)
}

/// Something that somebody should do something about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    run: RunKey,
    invariant: u8,
    what: String,
}

/// What is there to be done.
fn pending<'w>(worlds: impl IntoIterator<Item = &'w World>, now: Timestamp) -> BTreeSet<Pending> {
    let runs = worlds.into_iter().flat_map(|world| &world.runs);
    runs.flat_map(|(run, state)| {
        let tell = move |(invariant, what)| Pending { run: run.clone(), invariant, what };
        pending_of(state, now).into_iter().map(tell)
    })
    .collect()
}

fn pending_of(state: &RunState, now: Timestamp) -> Vec<(u8, String)> {
    let mut found = Vec::new();
    let stands = (state.view.generation, state.view.next);
    if !state.view.status.is_claimable() {
        return found;
    }
    if state.view.ready && state.view.owner.is_none() {
        found.push((5, format!("is ready at {}/{}, and nobody drives it", stands.0, stands.1)));
    }
    for awaited in &state.awaiting {
        if let Awaited::Timer { key, kind, due } = awaited
            && *due <= now
        {
            found.push((10, format!("has the {} of {key}, due at {due}, and it does not fire", kind.name())));
        }
    }
    let first_of_name = |item: &InboxItem| {
        let of_name = |other: &&InboxItem| other.kind == InboxKind::Signal && other.name == item.name;
        state.inbox.iter().find(of_name).is_some_and(|first| first.id == item.id)
    };
    for item in &state.inbox {
        let is_urgent = match item.kind {
            InboxKind::Signal => item.key.is_none() && is_awaited(state, item) && first_of_name(item),
            // What is not for an open operation any more waits for whoever comes.
            _ => item.key.as_ref().is_none_or(|key| state.awaiting.iter().any(|awaited| is_of(awaited, key.as_str()))),
        };
        if is_urgent {
            found.push((8, format!("has {:?} {:?} in its inbox and does not read it", item.kind, item.id)));
        }
    }
    found
}

fn is_awaited(state: &RunState, signal: &InboxItem) -> bool {
    state.awaiting.iter().any(|awaited| matches!(awaited, Awaited::Wait { name, .. } if *name == signal.name))
}

fn is_of(awaited: &Awaited, of: &str) -> bool {
    match awaited {
        Awaited::Timer { key, .. } | Awaited::Wait { key, .. } | Awaited::Task { key, .. } => key.as_str() == of,
        Awaited::Child { key, .. } => key.as_str() == of,
    }
}

/// What was to be done and still is, although there was time.
fn undone(before: &BTreeSet<Pending>, after: &BTreeSet<Pending>, findings: &mut Findings) {
    for Pending { run, invariant, what } in before {
        let still = after.contains(&Pending { run: run.clone(), invariant: *invariant, what: what.clone() });
        findings.ensure(*invariant, !still, || format!("{run}, left to itself, {what}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;

    fn pending_of_run(invariant: u8, what: &str) -> Pending {
        let id = outlast_core::id::RunId::new("r").unwrap();
        Pending {
            run: RunKey::new(outlast_core::id::Namespace::default_namespace(), id),
            invariant,
            what: what.to_owned(),
        }
    }

    #[test]
    fn what_was_to_be_done_and_still_is_is_reported_and_what_is_new_is_not() {
        let before = BTreeSet::from([pending_of_run(10, "an old timer"), pending_of_run(5, "is ready")]);
        let after = BTreeSet::from([pending_of_run(10, "an old timer"), pending_of_run(8, "a new signal")]);
        let mut findings = Findings::default();
        undone(&before, &after, &mut findings);
        assert_eq!(findings.broken(), [10]);
        assert!(findings.violations[0].text.contains("left to itself, an old timer"));
        assert_eq!((findings.checked[&10], findings.checked[&5]), (1, 1));
    }

    #[test]
    fn nobody_needs_longer_than_a_lease_and_two_polls_by_the_slowest_clock() {
        let options = Options { lease: 10_000, poll: 1_000, ..draw(0).options };
        assert_eq!(bound(&options), Duration::from_millis(13_200) + MARGIN);
    }
}
