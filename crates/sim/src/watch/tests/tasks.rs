//! Tasks, handed out as they must not be.

use outlast_core::commit::{NewTask, TaskOutcome};
use outlast_core::id::{QueueName, TaskId, TaskName, TaskToken, WorkerId};
use outlast_store::{ClaimTasks, ClaimedTask, TaskExtended};

use super::*;

fn task() -> TaskId {
    TaskId::new("t").unwrap()
}

fn new_task(awaited: bool) -> NewTask {
    NewTask {
        id: task(),
        key: awaited.then(|| key("op")),
        name: TaskName::new("work").unwrap(),
        queue: QueueName::new("default").unwrap(),
        priority: 0,
        args: json("null"),
        available_at: None,
        meta: None,
    }
}

/// A scene in which the run `r` has queued a task.
fn queued() -> Scene {
    let mut scene = Scene::new();
    let mut commit = scene.draft(&[], Then::Continue);
    commit.tasks.push(new_task(true));
    scene.apply(&commit, 20);
    scene
}

impl Scene {
    fn hand(&mut self, worker: &str, claim: u64, (token, attempt): (u64, u32), now: i64) {
        let asked = ClaimTasks {
            worker: WorkerId::new(worker).unwrap(),
            id: ClaimId(claim),
            namespace: None,
            queues: Vec::new(),
            names: Vec::new(),
            lease: Duration::from_millis(100),
            limit: 1,
        };
        let claimed = ClaimedTask {
            namespace: Namespace::default_namespace(),
            id: task(),
            run: None,
            key: None,
            name: TaskName::new("work").unwrap(),
            queue: QueueName::new("default").unwrap(),
            args: json("null"),
            attempt,
            since: at(now),
            lapsed: None,
            token: TaskToken(token),
            until: at(now + 100),
            meta: None,
            now: at(now),
        };
        self.0.handed_out(&asked, &claimed, ALONE);
    }

    fn report(&mut self, token: u64, outcome: TaskOutcome, delivered: Delivered) {
        let namespace = Namespace::default_namespace();
        let report = Delivery::Task { namespace, task: task(), token: TaskToken(token), outcome, receipt: None };
        self.0.delivered(&report, delivered, ALONE);
    }

    fn beat(&mut self, token: u64, cancelled: bool) {
        let home = Namespace::default_namespace();
        let extended = TaskExtended { until: at(500), cancelled };
        self.0.kept_alive((&home, &task(), TaskToken(token)), &extended, ALONE);
    }

    /// The run takes its task back.
    fn take_back(&mut self) {
        let mut commit = self.draft(&[], Then::Continue);
        commit.tasks_cancelled.push(key("op"));
        self.apply(&commit, 40);
    }
}

fn finished() -> TaskOutcome {
    TaskOutcome::Finished { result: json("1"), log: None }
}

fn retry(next: i64) -> TaskOutcome {
    TaskOutcome::Retry { at: at(next), error: json("{}") }
}

#[test]
fn a_task_that_goes_from_hand_to_hand_as_it_should_breaks_nothing() {
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    // Its reply was lost, and it is asked for again.
    scene.hand("w1", 1, (1, 1), 40);
    scene.beat(1, false);
    scene.hand("w2", 1, (2, 2), 500);
    scene.report(1, finished(), Delivered::Lost);
    scene.report(2, retry(700), Delivered::Delivered);
    scene.hand("w1", 2, (3, 3), 700);
    scene.report(3, TaskOutcome::GivenBack, Delivered::Delivered);
    scene.hand("w1", 3, (4, 3), 700);
    scene.report(4, finished(), Delivered::Delivered);
    scene.report(4, finished(), Delivered::NotFound);
    assert_eq!(scene.broken(), [0_u8; 0], "{:?}", scene.0.findings.violations);
    assert!(scene.0.tasks.are_over());
}

#[test]
fn a_task_in_two_hands_is_reported() {
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.hand("w2", 1, (2, 2), 129);
    assert_eq!(scene.broken(), [7]);
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.hand("w2", 1, (1, 2), 130);
    assert_eq!(scene.broken(), [7], "the same token twice");
}

#[test]
fn a_stale_result_that_is_accepted_and_a_good_one_that_is_not_are_reported() {
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.hand("w2", 1, (2, 2), 130);
    scene.report(1, finished(), Delivered::Delivered);
    assert_eq!(scene.broken(), [7]);
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.report(1, finished(), Delivered::Lost);
    assert_eq!(scene.broken(), [7]);
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.hand("w2", 1, (2, 2), 130);
    scene.beat(1, false);
    assert_eq!(scene.broken(), [7]);
}

#[test]
fn an_attempt_that_is_not_counted_or_comes_too_soon_is_reported() {
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.hand("w2", 1, (2, 1), 130);
    assert_eq!(scene.broken(), [15]);
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.report(1, retry(200), Delivered::Delivered);
    scene.hand("w1", 2, (2, 2), 199);
    assert_eq!(scene.broken(), [15]);
}

#[test]
fn a_clock_that_was_ahead_before_a_task_failed_does_not_make_it_due() {
    let tried = |before, since| {
        let mut scene = queued();
        scene.0.told(at(before));
        scene.hand("w1", 1, (1, 1), 30);
        scene.report(1, retry(200), Delivered::Delivered);
        scene.0.told(at(since));
        scene.hand("w1", 2, (2, 2), 40);
        scene.broken()
    };
    assert_eq!(tried(900, 40), [15]);
    assert_eq!(tried(30, 900), [0_u8; 0], "it was due once");
}

#[test]
fn a_task_that_is_handed_out_although_nobody_wants_it_is_reported() {
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.take_back();
    scene.hand("w2", 1, (2, 2), 130);
    assert_eq!(scene.broken(), [17]);
    let mut scene = queued();
    scene.take_back();
    scene.hand("w1", 1, (1, 1), 50);
    assert_eq!(scene.broken(), [17]);
    let mut scene = queued();
    scene.hand("w1", 1, (1, 1), 30);
    scene.take_back();
    scene.beat(1, false);
    assert_eq!(scene.broken(), [17], "its worker is not told");
    let mut scene = Scene::new();
    scene.hand("w1", 1, (1, 1), 30);
    assert_eq!(scene.broken(), [17], "nobody queued it");
}
