//! Tasks, and what was tampered with.

use outlast_core::id::TaskId;
use outlast_store::{TaskState, TaskView};

use super::*;
use crate::ledger::{Came, Effort};

fn effort<'e>(evidence: &'e mut Evidence, task: &str, attempt: u32) -> &'e mut Effort {
    let mut efforts = evidence.efforts.iter_mut();
    efforts.find(|effort| effort.task == task && effort.attempt == attempt).unwrap()
}

fn shown(evidence: &mut Evidence) -> &mut Vec<TaskView> {
    let home = Namespace::default_namespace();
    let world = evidence.worlds.iter_mut().find(|(name, _)| *name == home);
    &mut world.unwrap().1.tasks
}

#[test]
fn attempts_at_tasks_beyond_the_policy_and_too_soon_are_reported() {
    is_broken(15, "tried for the 9th time", |evidence| effort(evidence, "late", 2).attempt = 9);
    is_broken(15, "tried again after", |evidence| {
        let ended = effort(evidence, "late", 1).ended.unwrap().1;
        effort(evidence, "late", 2).begun.1 = ended + Duration::from_millis(900);
    });
    assert_eq!(
        verdict(|evidence| {
            let ended = effort(evidence, "late", 1).ended.unwrap().1;
            effort(evidence, "late", 2).begun.1 = ended + Duration::from_millis(1_000);
        })
        .violations,
        []
    );
}

#[test]
fn a_task_whose_key_changes_is_reported() {
    is_broken(4, "was given", |evidence| effort(evidence, "late", 2).idempotency_key.push('x'));
}

#[test]
fn a_result_of_a_task_that_nobody_gave_is_reported() {
    is_broken(4, "that nobody gave", |evidence| {
        let given = evidence.efforts.iter_mut().find(|effort| effort.run.is_some()).unwrap();
        given.ended = given.ended.map(|(tick, at, _)| (tick, at, Came::Stopped));
    });
}

#[test]
fn two_at_once_of_what_is_done_alone_are_reported() {
    is_broken(17, "may do one", |evidence| effort(evidence, "a", 1).ended = None);
}

#[test]
fn tasks_that_nobody_queued_that_vanished_or_that_are_left_are_reported() {
    is_broken(17, "nobody queued it", |evidence| {
        let mut other = shown(evidence)[0].clone();
        other.id = TaskId::new("other").unwrap();
        shown(evidence).push(other);
    });
    is_broken(17, "has vanished", |evidence| shown(evidence).clear());
    is_broken(17, "should be", |evidence| shown(evidence)[0].attempt += 1);
    is_broken(17, "is left", |evidence| shown(evidence)[0].state = TaskState::Ready);
    is_broken(17, "nobody did it", |evidence| evidence.efforts.retain(|effort| effort.task != "done"));
}

#[test]
fn a_worker_that_does_more_at_once_than_it_may_is_reported() {
    let evidence = Story::tell().evidence();
    let judged = |most| {
        let mut findings = Findings::default();
        let scene = Scene { tasks_max: Some(most), ..Scene::default() };
        evidence.judge(&scene, &mut findings);
        findings.violations.iter().any(|found| found.text.contains("at once, it may do"))
    };
    assert!(judged(0));
    assert!(!judged(100));
}
