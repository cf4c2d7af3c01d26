//! Suspects are driven alone, and what bodies came to is not lost.

use std::time::Duration;

use outlast_core::id::{Generation, Key};

use super::{is_broken, key, verdict};
use crate::ledger::{Body, Witnessed};
use crate::oracle::Evidence;
use crate::watch::{Holder, TurnedDown};

/// The first body of the run `whole`, which becomes a suspect that does not go on.
fn suspect(evidence: &mut Evidence) -> Witnessed {
    let first = evidence.bodies.iter().find(|seen| seen.body.run == "whole").unwrap().clone();
    let whole = evidence.shadows.get_mut(&key("whole")).unwrap();
    let holder = whole.holders.values_mut().next().unwrap();
    (holder.tries, holder.progress, holder.until) = (3, None, Some(first.tick + 3));
    assert_eq!(whole.holder_at(first.tick).map(|holder| holder.tries), Some(3));
    first
}

/// Who held the run `held`, once, in the process of the suspect.
fn neighbour(evidence: &mut Evidence) -> &mut Holder {
    let lease = evidence.shadows[&key("whole")].holders.values().next().unwrap().lease;
    let held = evidence.shadows.get_mut(&key("held")).unwrap();
    let first = *held.holders.keys().next().unwrap();
    held.holders.retain(|fence, _| *fence == first);
    let holder = held.holders.values_mut().next().unwrap();
    assert_eq!(holder.lease, lease, "one engine, one life");
    (holder.tick, holder.progress, holder.until) = (0, None, None);
    holder
}

fn body_of_neighbour(tick: u64, at: Duration) -> Witnessed {
    let body = Body {
        run: "held".to_owned(),
        generation: 0,
        key: "beside".to_owned(),
        attempt: 1,
        idempotency_key: "default/held/0/beside".to_owned(),
        version: "1".to_owned(),
        at,
    };
    Witnessed { body, process: "p1".to_owned(), tick }
}

#[test]
fn a_suspect_that_runs_while_another_is_driven_is_reported() {
    is_broken(18, "was driven beside it", |evidence| {
        let first = suspect(evidence);
        neighbour(evidence).progress = Some(first.tick - 1);
    });
    let left = verdict(|evidence| {
        let first = suspect(evidence);
        let neighbour = neighbour(evidence);
        (neighbour.progress, neighbour.until) = (Some(first.tick - 1), Some(first.tick - 1));
    });
    assert_eq!(left.violations, [], "it had left by then");
    let unheard = verdict(|evidence| {
        suspect(evidence);
        neighbour(evidence);
    });
    assert_eq!(unheard.violations, [], "nobody knew that it was claimed");
}

#[test]
fn whoever_begins_beside_a_suspect_is_reported() {
    let begins = |evidence: &mut Evidence, at: Duration| {
        let first = suspect(evidence);
        neighbour(evidence);
        evidence.bodies.push(body_of_neighbour(first.tick + 1, at));
        first
    };
    is_broken(18, "began beside beside default/whole", |evidence| drop(begins(evidence, Duration::from_secs(1))));
    let patient = verdict(|evidence| drop(begins(evidence, Duration::from_secs(61))));
    assert_eq!(patient.violations, [], "nobody is kept out for longer than a minute");
    let cleared = verdict(|evidence| {
        let first = begins(evidence, Duration::from_secs(1));
        let whole = evidence.shadows.get_mut(&key("whole")).unwrap();
        whole.holders.values_mut().next().unwrap().progress = Some(first.tick);
    });
    assert_eq!(cleared.violations, [], "it has gone on, and is suspected no longer");
}

#[test]
fn a_body_whose_outcome_was_known_is_reported_if_its_holder_runs_it_again() {
    let turned_down = |evidence: &Evidence, later: u64| {
        let body = evidence.bodies.iter().find(|seen| seen.body.key == "flaky").unwrap();
        let whole = &evidence.shadows[&key("whole")];
        let holder = whole.holder_at(body.tick).unwrap();
        let (fence, _) = whole.holders.iter().find(|(_, by)| *by == holder).unwrap();
        let (run, key, attempt) = (key("whole"), Key::new("flaky").unwrap(), body.body.attempt);
        TurnedDown { run, generation: Generation(0), key, attempt, fence: *fence, tick: body.tick - 1 + 2 * later }
    };
    is_broken(4, "ran once more", |evidence| evidence.turned_down.push(turned_down(evidence, 0)));
    let once = verdict(|evidence| evidence.turned_down.push(turned_down(evidence, 1)));
    assert_eq!(once.violations, [], "it ran before its commit was turned down");
    let elsewhere = verdict(|evidence| {
        let down = turned_down(evidence, 0);
        evidence.turned_down.push(down);
        evidence.bodies.iter_mut().for_each(|seen| seen.process = "p2".to_owned());
    });
    assert_eq!(elsewhere.violations, [], "another process does not know");
}
