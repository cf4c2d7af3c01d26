//! Tasks that failed for good: kept for inspection, queued anew or discarded, gone after a while.

use outlast_core::commit::{NewTask, StandaloneTask, TaskOutcome};
use outlast_core::id::{QueueName, TaskName};

use super::scene::*;
use crate::{Retention, StoreError, TaskFilter, TaskState};

super::stories! {
    dead_task_tells_everything_about_itself,
    unknown_task_is_an_error_that_says_so,
    dead_task_stays_when_its_run_ends_or_no_longer_wants_it,
    retried_dead_task_begins_anew_and_tells_nobody,
    only_a_dead_task_is_queued_anew_or_discarded,
    discarded_task_is_gone,
    tasks_are_found_by_state_queue_name_and_run,
    dead_tasks_go_after_their_age,
    dead_tasks_go_with_the_run_that_queued_them,
}

/// A run whose task `t` failed for good at 40.
async fn bereaved(s: &Scene<'_>) -> Held {
    let mut held = s.own("a").await;
    let task = NewTask { args: bytes("[7]"), meta: Some(bytes("{}")), ..new_task("t", Some("op")) };
    let commit = held.commit().event("scheduled").task(task);
    s.apply(&mut held, commit).await;
    s.clock.set(40);
    die(s, "w", 1).await;
    held
}

/// The one task there is to be had fails for good.
async fn die(s: &Scene<'_>, worker: &str, id: u64) {
    let claimed = s.work_one(worker, id).await;
    s.deliver(outcome(&claimed, TaskOutcome::Failed { error: bytes("no funds") })).await;
}

async fn dead_task_tells_everything_about_itself(s: Scene<'_>) {
    let held = bereaved(&s).await;
    let dead = s.store.task(namespace("default"), task_id("t")).await.unwrap();
    assert_eq!((dead.args, dead.meta), (bytes("[7]"), Some(bytes("{}"))));
    let view = dead.view;
    assert_eq!((view.state, view.attempt, view.died_at), (TaskState::Dead, 1, Some(at(40))));
    assert_eq!((view.note, view.origin), (Some(bytes("no funds")), Some(held.run.id)));
    assert_eq!((view.name.as_str(), view.queue.as_str()), ("charge", "work"));
}

async fn unknown_task_is_an_error_that_says_so(s: Scene<'_>) {
    for space in ["default", "nowhere"] {
        let unknown = StoreError::UnknownTask(task_id("none"));
        assert_eq!(s.store.task(namespace(space), task_id("none")).await.unwrap_err(), unknown);
        assert_eq!(s.store.retry_task(namespace(space), task_id("none")).await.unwrap_err(), unknown);
        assert_eq!(s.store.discard_task(namespace(space), task_id("none")).await.unwrap_err(), unknown);
    }
}

async fn dead_task_stays_when_its_run_ends_or_no_longer_wants_it(s: Scene<'_>) {
    let mut held = bereaved(&s).await;
    let commit = held.commit().event("lost interest").change(|commit| commit.tasks_cancelled.push(key("op")));
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    let dead = s.tasks("default").await.remove(0);
    assert_eq!((dead.state, dead.run, dead.origin), (TaskState::Dead, None, Some(held.run.id)));
}

async fn retried_dead_task_begins_anew_and_tells_nobody(s: Scene<'_>) {
    let held = bereaved(&s).await;
    let inbox = s.inbox(&held.run).await;
    s.clock.set(60);
    s.store.retry_task(namespace("default"), task_id("t")).await.unwrap();
    let view = s.tasks("default").await.remove(0);
    assert_eq!((view.state, view.attempt, view.run, view.died_at), (TaskState::Ready, 0, None, None));
    let again = s.work_one("w", 2).await;
    assert_eq!((again.attempt, again.run.clone(), again.args.clone()), (1, None, bytes("[7]")));
    assert!(again.token.0 > 1, "an old token is worth nothing");
    s.deliver(finished(&again, "paid")).await;
    assert_eq!(s.inbox(&held.run).await, inbox, "its run has got the failure");
    assert_eq!(s.tasks("default").await, []);
}

async fn only_a_dead_task_is_queued_anew_or_discarded(s: Scene<'_>) {
    let task = |id: &str, available| {
        let task = NewTask { available_at: Some(at(available)), ..new_task(id, None) };
        StandaloneTask { namespace: namespace("default"), task }
    };
    s.store.enqueue(vec![task("claimed", 0)]).await;
    s.work_one("w", 1).await;
    s.store.enqueue(vec![task("ready", 0), task("delayed", 100)]).await;
    for (id, state) in [("claimed", TaskState::Claimed), ("ready", TaskState::Ready), ("delayed", TaskState::Delayed)] {
        let refused = StoreError::TaskNotDead { task: task_id(id), state };
        assert_eq!(s.store.retry_task(namespace("default"), task_id(id)).await.unwrap_err(), refused);
        assert_eq!(s.store.discard_task(namespace("default"), task_id(id)).await.unwrap_err(), refused);
    }
    assert_eq!(s.tasks("default").await.len(), 3);
}

async fn discarded_task_is_gone(s: Scene<'_>) {
    bereaved(&s).await;
    s.store.discard_task(namespace("default"), task_id("t")).await.unwrap();
    assert_eq!(s.tasks("default").await, []);
}

async fn tasks_are_found_by_state_queue_name_and_run(s: Scene<'_>) {
    let held = bereaved(&s).await;
    let (queue, name) = (QueueName::new("slow").unwrap(), TaskName::new("mail").unwrap());
    let other = NewTask { queue: queue.clone(), name: name.clone(), ..new_task("other", None) };
    s.store.enqueue(vec![StandaloneTask { namespace: namespace("default"), task: other }]).await;
    let all = TaskFilter::all(namespace("default"));
    let found = async |filter: TaskFilter| {
        let page = s.store.tasks(filter).await.unwrap();
        page.tasks.into_iter().map(|task| task.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(all.clone()).await, ["other", "t"]);
    assert_eq!(found(TaskFilter { state: vec![TaskState::Dead], ..all.clone() }).await, ["t"]);
    let either = vec![TaskState::Dead, TaskState::Ready];
    assert_eq!(found(TaskFilter { state: either, ..all.clone() }).await, ["other", "t"]);
    assert_eq!(found(TaskFilter { queue: Some(queue), ..all.clone() }).await, ["other"]);
    assert_eq!(found(TaskFilter { name: Some(name), ..all.clone() }).await, ["other"]);
    assert_eq!(found(TaskFilter { origin: Some(held.run.id), ..all.clone() }).await, ["t"]);
    assert_eq!(found(TaskFilter { state: vec![TaskState::Claimed], ..all }).await, [""; 0]);
}

async fn retain(s: &Scene<'_>, age: u64) {
    while s.store.retain(Retention { age: ms(age), limit: 3 }).await.unwrap().more {}
}

async fn dead_tasks_go_after_their_age(s: Scene<'_>) {
    let enqueue = async |id: &str| {
        let task = StandaloneTask { namespace: namespace("default"), task: new_task(id, None) };
        s.store.enqueue(vec![task]).await;
    };
    for number in 0..5 {
        enqueue(&format!("old-{number}")).await;
        die(&s, "w", number).await;
    }
    s.clock.set(100);
    enqueue("young").await;
    die(&s, "w", 9).await;
    enqueue("alive").await;
    s.clock.set(1_000);
    retain(&s, 1_000).await;
    let left: Vec<String> = s.tasks("default").await.into_iter().map(|task| task.id.to_string()).collect();
    assert_eq!(left, ["alive", "young"]);
    s.clock.set(1_100);
    retain(&s, 1_000).await;
    assert_eq!(s.tasks("default").await.len(), 1, "what is alive stays, however old");
}

async fn dead_tasks_go_with_the_run_that_queued_them(s: Scene<'_>) {
    let mut held = bereaved(&s).await;
    let mut other = s.own("b").await;
    let commit = other.commit().event("x").task(new_task("u", Some("op")));
    s.apply(&mut other, commit).await;
    die(&s, "w", 2).await;
    let commit = held.commit().event("end").task(new_task("alive", Some("op2"))).finish();
    s.apply(&mut held, commit).await;
    s.store.delete(held.run.clone(), "asked to".to_owned()).await.unwrap();
    retain(&s, 1_000_000).await;
    let left: Vec<String> = s.tasks("default").await.into_iter().map(|task| task.id.to_string()).collect();
    assert_eq!(left, ["alive", "u"]);
}
