//! Runs in another namespace, and runs at rest.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::commit::Status;
use outlast_core::id::{LeaseId, RunId, RunKey};

use super::story::{Story, key};
use crate::cluster::{NEIGHBOUR, beside};
use crate::oracle::{Evidence, Scene};
use crate::violation::Findings;

/// The story with one of its runs moved to the other namespace.
fn moved(id: &str) -> Evidence {
    let mut evidence = Story::tell().evidence();
    let (_, world) = &mut evidence.worlds[0];
    let state = world.runs.remove(&key(id)).unwrap();
    world.runs.insert(RunKey::new(beside(), key(id).id), state);
    evidence
}

#[test]
fn a_run_beside_everything_that_did_something_is_reported() {
    let mut findings = Findings::default();
    moved("whole").judge(&Scene::default(), &mut findings);
    let said = findings.violations.iter().find(|broken| broken.text.contains("is beside everything that happens"));
    assert!(said.is_some_and(|broken| broken.invariant == 20), "{:?}", findings.violations);
}

#[test]
fn a_neighbour_that_does_not_come_to_its_end_is_reported() {
    let judged = |is_end: bool| -> Vec<String> {
        let mut evidence = moved("held");
        let (_, world) = &mut evidence.worlds[0];
        let state = world.runs.remove(&RunKey::new(beside(), key("held").id)).unwrap();
        world.runs.insert(RunKey::new(beside(), RunId::new(NEIGHBOUR).unwrap()), state);
        let mut findings = Findings::default();
        evidence.judge(&Scene { is_end, ..Scene::default() }, &mut findings);
        findings.violations.into_iter().filter(|broken| broken.invariant == 20).map(|broken| broken.text).collect()
    };
    let said = judged(true);
    assert!(said.iter().any(|said| said.contains("is beside everything that happens")), "{said:?}");
}

fn at_rest(tamper: impl FnOnce(&mut Evidence)) -> Vec<String> {
    let mut evidence = Story::tell().evidence();
    tamper(&mut evidence);
    let mut findings = Findings::default();
    let scene = Scene { patience: Some(Duration::from_secs(60)), at_rest: true, ..Scene::default() };
    evidence.judge(&scene, &mut findings);
    findings.violations.into_iter().map(|broken| broken.text).collect()
}

#[test]
fn a_run_that_somebody_dead_owns_is_reported_when_it_was_left_alone() {
    let owned = |lease: u64| {
        move |evidence: &mut Evidence| {
            evidence.leases = BTreeMap::from([(LeaseId(1), evidence.now.unwrap())]);
            let (_, world) = &mut evidence.worlds[0];
            world.runs.get_mut(&key("held")).unwrap().view.owner = Some(LeaseId(lease));
        }
    };
    assert!(!at_rest(owned(1)).iter().any(|said| said.contains("under lease")));
    assert!(at_rest(owned(9)).iter().any(|said| said.contains("under lease 9")));
}

#[test]
fn a_run_that_pauses_although_nobody_asked_is_reported() {
    let said = at_rest(|evidence| {
        let (_, world) = &mut evidence.worlds[0];
        world.runs.get_mut(&key("held")).unwrap().view.status = Status::Paused;
    });
    assert!(said.iter().any(|said| said.contains("is paused, and nobody asked for that")), "{said:?}");
}
