mod beside;
mod random;
mod story;
mod suspects;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use outlast::{Ctx, Result};
use outlast_core::commit::{InboxItem, InboxKind, Status};
use outlast_core::event::{Event, Kind};
use outlast_core::id::{InboxId, Index, Key, Namespace, Version};
use outlast_core::limits::TRIES_MAX;
use outlast_core::time::Timestamp;
use outlast_store::invariants::RunState;

use self::story::{Story, key};
use super::{Evidence, INVARIANTS, Scene};
use crate::ledger::{Ask, Asked, Body, Policy, Told};
use crate::violation::{Findings, Judge, TABLE};

/// What the oracle says about a story whose evidence was tampered with.
fn verdict(tamper: impl FnOnce(&mut Evidence)) -> Findings {
    let mut evidence = Story::tell().evidence();
    tamper(&mut evidence);
    let mut findings = Findings::default();
    let (patience, slack) = (Some(Duration::from_secs(3_600)), Some(story::SLACK));
    let scene = Scene { patience, slack, is_end: true, ..Scene::default() };
    evidence.judge(&scene, &mut findings);
    findings
}

/// It is broken, and a word of what is said.
fn is_broken(invariant: u8, word: &str, tamper: impl FnOnce(&mut Evidence)) {
    let findings = verdict(tamper);
    let found = findings.violations.iter().any(|it| it.invariant == invariant && it.text.contains(word));
    assert!(found, "invariant {invariant} is not reported with {word:?}: {:#?}", findings.violations);
}

fn state<'e>(evidence: &'e mut Evidence, run: &str) -> &'e mut RunState {
    let worlds = evidence.worlds.iter_mut();
    worlds.flat_map(|(_, world)| world.runs.get_mut(&key(run))).next().unwrap()
}

/// Changes an event of a run, wherever it is.
fn change(evidence: &mut Evidence, run: &str, kind: Kind, with: impl Fn(Event) -> Event) {
    let records = state(evidence, run).journals.iter_mut().flatten();
    let record = records.into_iter().rev().find(|record| record.kind == kind.code()).unwrap();
    *record = with(Event::decode(record).unwrap()).encode(record.at);
}

fn forget(evidence: &mut Evidence, run: &str, is: impl Fn(&Event) -> bool) {
    for journal in &mut state(evidence, run).journals {
        journal.retain(|record| !is(&Event::decode(record).unwrap()));
    }
}

fn done(run: &str, asked: Asked) -> Ask {
    let told = Some(Told::Done("Delivered".to_owned()));
    Ask {
        run: run.to_owned(),
        asked,
        told,
        begun: u64::MAX - 1,
        ended: Some((u64::MAX, Duration::ZERO)),
        at: Duration::ZERO,
    }
}

fn item(kind: InboxKind) -> InboxItem {
    InboxItem {
        id: InboxId(99),
        kind,
        key: None,
        name: None,
        delivery: None,
        at: Timestamp::EPOCH,
        meta: None,
        payload: None,
    }
}

#[test]
fn an_undisturbed_story_breaks_nothing_and_everything_was_looked_at() {
    let findings = Story::tell().examine();
    assert_eq!(findings.violations, [], "{:#?}", findings.violations);
    let missed: Vec<u8> = INVARIANTS.into_iter().filter(|number| !findings.checked.contains_key(number)).collect();
    assert_eq!(missed, [11], "nobody looked at these; the story has no schedules");
}

#[test]
fn every_invariant_is_judged_unless_it_belongs_to_a_later_part() {
    let judged = TABLE.iter().filter(|(_, _, by)| !matches!(by, Judge::Later | Judge::Overheard));
    assert_eq!(judged.map(|(number, ..)| *number).collect::<Vec<u8>>(), INVARIANTS);
}

#[test]
fn an_event_that_vanished_is_reported() {
    is_broken(1, "does not show", |evidence| {
        state(evidence, "whole").journals[0].pop();
    });
}

#[test]
fn a_run_nobody_created_is_reported() {
    is_broken(1, "nobody created", |evidence| drop(evidence.shadows.remove(&key("held"))));
}

#[test]
fn a_run_that_is_gone_is_reported() {
    is_broken(2, "gone", |evidence| {
        evidence.worlds.iter_mut().for_each(|(_, world)| drop(world.runs.remove(&key("held"))));
    });
}

#[test]
fn what_was_acknowledged_and_is_not_there_is_reported() {
    let asked = [
        Asked::Signal {
            name: "other".to_owned(),
            id: "s9".to_owned(),
            payload: 1.into(),
            with_start: false,
            aimed: None,
        },
        Asked::Approve { key: "go".to_owned(), id: "a".to_owned(), yes: false, by: "bob".to_owned() },
        Asked::Callback { key: "call".to_owned(), id: "c".to_owned(), value: Some(8.into()) },
        Asked::Cancel,
        Asked::Terminate,
        Asked::Pause,
        Asked::Fork { at: 1, to: "nowhere".to_owned() },
        Asked::StartOther,
    ];
    for asked in asked {
        let findings = verdict(|evidence| evidence.asks.push(done("held", asked.clone())));
        assert!(findings.broken().contains(&2), "{asked:?}: {:#?}", findings.violations);
    }
    is_broken(2, "gone", |evidence| evidence.asks.push(done("nobody", Asked::Start)));
    is_broken(2, "resumed", |evidence| evidence.asks.push(done("paused", Asked::Resume)));
    is_broken(2, "does not begin", |evidence| {
        let at = evidence.asks.iter_mut().find_map(|ask| match &mut ask.asked {
            Asked::Fork { at, .. } => Some(at),
            _ => None,
        });
        *at.unwrap() = 0;
    });
}

#[test]
fn an_acknowledgement_that_is_there_twice_is_reported() {
    is_broken(2, "2 times", |evidence| {
        let held = state(evidence, "held");
        held.inbox.push(held.inbox[0].clone());
    });
}

#[test]
fn what_nobody_asked_for_is_reported() {
    is_broken(2, "nobody asked for", |evidence| {
        evidence.asks.retain(|ask| ask.run != "held" || ask.asked != Asked::Start)
    });
    is_broken(2, "paused 1 times", |evidence| evidence.asks.retain(|ask| ask.asked != Asked::Pause));
    is_broken(13, "told to stop by nobody", |evidence| evidence.asks.retain(|ask| ask.asked != Asked::Cancel));
    is_broken(13, "terminated by nobody", |evidence| evidence.asks.retain(|ask| ask.asked != Asked::Terminate));
    is_broken(9, "which nobody said", |evidence| {
        evidence.asks.retain(|ask| !matches!(ask.asked, Asked::Callback { .. }));
    });
}

#[test]
fn two_ends_are_reported() {
    is_broken(3, "ends", |evidence| {
        let whole = state(evidence, "whole").journals.last_mut().unwrap();
        whole.push(whole.last().unwrap().clone());
    });
    is_broken(3, "Waiting", |evidence| state(evidence, "whole").view.status = Status::Waiting);
}

#[test]
fn a_result_that_no_body_gave_is_reported() {
    is_broken(4, "nobody saw it run", |evidence| evidence.bodies.retain(|seen| seen.body.key != "flaky"));
    is_broken(4, "nobody saw it run", |evidence| {
        // It ran, but only after its result was recorded.
        evidence.bodies.iter_mut().filter(|seen| seen.body.key == "careful").for_each(|seen| seen.tick = u64::MAX);
    });
}

#[test]
fn a_body_of_its_holder_after_the_result_is_reported_and_one_of_somebody_else_is_not() {
    let again = |evidence: &mut Evidence, process: &str| {
        let mut body = evidence.bodies.iter().find(|seen| seen.body.key == "flaky").unwrap().clone();
        (body.tick, body.process) = (u64::MAX, process.to_owned());
        evidence.bodies.push(body);
    };
    is_broken(4, "after its result", |evidence| again(evidence, "p1"));
    assert_eq!(verdict(|evidence| again(evidence, "p2")).violations, []);
}

#[test]
fn idempotency_keys_that_change_or_are_shared_are_reported() {
    is_broken(4, "were given", |evidence| {
        let seen = evidence.bodies.iter_mut().find(|seen| seen.body.key == "flaky" && seen.body.attempt == 2);
        seen.unwrap().body.idempotency_key.push('x');
    });
    is_broken(4, "was given to", |evidence| {
        let shared = evidence.bodies[0].body.idempotency_key.clone();
        let other = Body { key: "other".to_owned(), idempotency_key: shared, ..evidence.bodies[0].body.clone() };
        let seen = crate::ledger::Witnessed { body: other, ..evidence.bodies[0].clone() };
        evidence.bodies.push(seen);
    });
}

#[test]
fn what_may_run_once_and_ran_twice_is_reported() {
    is_broken(4, "ran 2 times", |evidence| {
        let body = evidence.bodies.iter().find(|seen| seen.body.key == "careful").unwrap().clone();
        evidence.bodies.push(body);
    });
}

#[test]
fn a_run_that_nothing_wakes_is_reported() {
    is_broken(5, "nothing will ever wake it", |evidence| state(evidence, "held").awaiting.clear());
    is_broken(5, "nobody drives it", |evidence| state(evidence, "held").view.ready = true);
}

#[test]
fn an_ended_run_that_owns_something_is_reported() {
    is_broken(6, "owns", |evidence| {
        let held = state(evidence, "held").awaiting.clone();
        state(evidence, "ended").awaiting = held;
    });
    is_broken(6, "owns", |evidence| state(evidence, "ended").inbox.push(item(InboxKind::Cancel)));
}

#[test]
fn signals_that_are_lost_doubled_invented_or_out_of_order_are_reported() {
    is_broken(8, "accepted", |evidence| state(evidence, "held").inbox.clear());
    is_broken(8, "twice", |evidence| {
        let held = state(evidence, "held");
        held.inbox.push(held.inbox[0].clone());
    });
    is_broken(8, "nobody sent", |evidence| evidence.shadows.get_mut(&key("held")).unwrap().arrivals.clear());
    is_broken(8, "which came as", |evidence| evidence.shadows.get_mut(&key("whole")).unwrap().arrivals.reverse());
}

#[test]
fn a_timer_that_is_long_overdue_is_reported() {
    is_broken(10, "is due since", |evidence| evidence.now = Some(Timestamp::MAX));
}

#[test]
fn a_decision_that_nobody_made_is_reported() {
    is_broken(12, "who never did", |evidence| {
        for ask in &mut evidence.asks {
            if let Asked::Approve { by, .. } = &mut ask.asked {
                *by = "bob".to_owned();
            }
        }
    });
}

#[test]
fn families_that_do_not_agree_are_reported() {
    is_broken(13, "ended with", |evidence| {
        change(evidence, "whole", Kind::ChildFinished, |event| match event {
            Event::ChildFinished { key, child, .. } => {
                Event::ChildFinished { key, child, result: Bytes::from_static(b"9") }
            }
            other => other,
        });
    });
    is_broken(13, "which it did 0 times", |evidence| {
        state(evidence, "kid").view.parent.as_mut().unwrap().key = Key::new("elsewhere").unwrap();
    });
    is_broken(13, "orphan", |evidence| {
        evidence.worlds.iter_mut().for_each(|(_, world)| drop(world.runs.remove(&key("stopped"))));
    });
}

/// As if the end of its parent had never reached it.
fn spare(evidence: &mut Evidence, run: &str) {
    forget(evidence, run, |event| event.is_terminal() || matches!(event, Event::CancelRequested { .. }));
    let spared = state(evidence, run);
    (spared.view.status, spared.inbox) = (Status::Waiting, Vec::new());
}

#[test]
fn a_child_whose_parents_end_never_reached_it_is_reported() {
    is_broken(13, "its child default/left", |evidence| spare(evidence, "left"));
    is_broken(16, "default/below below it was not", |evidence| spare(evidence, "below"));
    is_broken(16, "never told to stop", |evidence| {
        forget(evidence, "stopped", |event| matches!(event, Event::CancelRequested { .. }));
    });
}

#[test]
fn code_that_no_longer_replays_a_journal_is_reported() {
    async fn other(ctx: Ctx, _: ()) -> Result<()> {
        ctx.sleep(Duration::from_secs(1)).id("elsewhere").await
    }
    let mut story = Story::tell();
    story.checker = story.world.engine().workflow("whole", other).workflow("patient", other).checker();
    let findings = story.examine();
    assert_eq!(findings.broken(), [14], "{:#?}", findings.violations);
}

#[test]
fn attempts_and_delays_beyond_the_policy_are_reported() {
    let said = |evidence: &mut Evidence, change: fn(&mut Policy)| evidence.policies.values_mut().for_each(change);
    is_broken(15, "2th time", |evidence| said(evidence, |policy| policy.attempts = 1));
    is_broken(15, "waits", |evidence| said(evidence, |policy| policy.longest = policy.shortest / 2));
    is_broken(15, "waits 0ns", |evidence| {
        evidence.policies.clear();
        change(evidence, "whole", Kind::StepRetryScheduled, |event| match event {
            Event::StepRetryScheduled { key, attempt, error, .. } => {
                Event::StepRetryScheduled { key, attempt, next_at: Timestamp::EPOCH, error }
            }
            other => other,
        });
    });
}

/// What is said of a run that is parked with a note.
fn parked(note: &str, damaged: bool) -> Vec<u8> {
    let findings = verdict(|evidence| {
        let view = &mut state(evidence, "held").view;
        (view.status, view.note) = (Status::Parked, Some(note.to_owned()));
        let at = BTreeMap::from([(key("held"), BTreeSet::from([Index(1)]))]);
        evidence.damaged = if damaged { at } else { BTreeMap::new() };
    });
    findings.broken()
}

#[test]
fn a_parked_run_is_reported_unless_it_was_damaged_and_says_where() {
    is_broken(18, "is parked", |evidence| state(evidence, "held").view.status = Status::Parked);
    assert_eq!(parked("event 1: there is no kind 60000", true), [0; 0]);
    assert_eq!(parked("event 1: there is no kind 60000", false), [18]);
    assert_eq!(parked("something is wrong", true), [18]);
}

#[test]
fn a_run_that_took_too_many_drivers_along_may_be_parked() {
    let parked = |tries: u32| {
        let findings = verdict(|evidence| {
            let view = &mut state(evidence, "held").view;
            (view.status, view.tries) = (Status::Parked, tries);
            evidence.shadows.get_mut(&key("held")).unwrap().tries = tries;
        });
        findings.broken()
    };
    assert_eq!(parked(TRIES_MAX - 1), [0; 0]);
    assert_eq!(parked(TRIES_MAX - 2), [18]);
}

#[test]
fn a_run_in_another_namespace_is_reported() {
    is_broken(20, "is listed in elsewhere", |evidence| evidence.worlds[0].0 = Namespace::new("elsewhere").unwrap());
}

#[test]
fn a_run_under_another_version_is_reported() {
    is_broken(22, "and was", |evidence| state(evidence, "held").view.version = Version::new("9").unwrap());
    is_broken(22, "went from version", |evidence| {
        let whole = evidence.shadows.get_mut(&key("whole")).unwrap();
        whole.chapters[0].version = Version::new("9").unwrap();
    });
}

#[test]
fn runs_of_whom_not_everything_is_known_are_judged_by_what_they_show() {
    let findings = verdict(|evidence| {
        evidence.shadows.values_mut().for_each(|shadow| shadow.sure = false);
        evidence.ordered = false;
    });
    assert_eq!(findings.violations, []);
}
