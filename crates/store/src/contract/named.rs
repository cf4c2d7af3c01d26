//! Tasks are found by the run and the operation that await them, whatever they are called. A store may look first where the name
//! says that a task is: these are names that say so, and names that only look like it.

use outlast_core::commit::Commit;
use outlast_core::id::TaskId;

use super::scene::*;
use crate::{Awaited, TaskState};

super::stories! {
    task_is_found_by_its_operation_whatever_it_is_called,
    task_of_another_run_is_left_alone_whatever_it_is_called,
    tasks_of_neighbours_stay_when_a_run_ends,
    task_that_no_longer_waits_is_not_found_by_its_name,
    task_of_a_later_generation_is_found_too,
}

/// Every way to call the task of an operation of run `a`.
const NAMES: [&str; 8] = ["a/0/op", "a/1/op", "a/0/op2", "t", "a/0/", "a/00", "a/0", "b/0/op"];

fn cancel_op(held: &Held) -> Commit {
    held.commit().event("cancelled").change(|commit| commit.tasks_cancelled.push(key("op")))
}

fn awaited(operation: &str, name: &str) -> Awaited {
    Awaited::Task { key: key(operation), id: task_id(name), state: TaskState::Ready }
}

async fn names_there(s: &Scene<'_>) -> Vec<String> {
    s.tasks("default").await.into_iter().map(|task| task.id.to_string()).collect()
}

async fn awaited_names(s: &Scene<'_>) -> Vec<TaskId> {
    s.tasks("default").await.into_iter().filter(|task| task.run.is_some()).map(|task| task.id).collect()
}

async fn task_is_found_by_its_operation_whatever_it_is_called(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for name in NAMES {
        let commit = held.commit().event("x").task(new_task(name, Some("op")));
        s.apply(&mut held, commit).await;
        assert_eq!(s.awaiting(&held.run).await, [awaited("op", name)]);
        let commit = cancel_op(&held);
        s.apply(&mut held, commit).await;
        assert_eq!(s.awaiting(&held.run).await, [], "{name}");
        assert_eq!(names_there(&s).await, [""; 0], "nobody wants it");
    }
}

async fn task_of_another_run_is_left_alone_whatever_it_is_called(s: Scene<'_>) {
    let mut a = s.own("a").await;
    for name in NAMES {
        let mut other = s.own(&format!("other of {}", name.replace('/', "-"))).await;
        let commit = other.commit().event("x").task(new_task(name, Some("op")));
        s.apply(&mut other, commit).await;
        let commit = cancel_op(&a);
        s.apply(&mut a, commit).await;
        assert_eq!(s.awaiting(&other.run).await, [awaited("op", name)], "{name} is not a's");
        assert_eq!(s.awaiting(&a.run).await, [], "{name}");
        let commit = cancel_op(&other);
        s.apply(&mut other, commit).await;
    }
}

/// Row 6 and invariant 6: a terminal run owns no task, and takes nobody else's with it.
async fn tasks_of_neighbours_stay_when_a_run_ends(s: Scene<'_>) {
    let mut a = s.own("a").await;
    let mine = NAMES.iter().enumerate().map(|(number, name)| new_task(name, Some(&format!("op{number}"))));
    let commit = mine.fold(a.commit().event("x"), |commit, task| commit.task(task));
    s.apply(&mut a, commit).await;
    let mut theirs = Vec::new();
    for run in ["a0", "a!", "A"] {
        let mut neighbour = s.own(run).await;
        let (named, odd) = (format!("{run}/0/op"), format!("a/0/of-{run}"));
        let commit = neighbour.commit().event("x").task(new_task(&named, Some("op"))).task(new_task(&odd, Some("odd")));
        s.apply(&mut neighbour, commit).await;
        theirs.extend([task_id(&named), task_id(&odd)]);
    }
    let commit = a.commit().event("end").finish();
    s.apply(&mut a, commit).await;
    theirs.sort();
    assert_eq!(awaited_names(&s).await, theirs);
    assert_eq!(s.awaiting(&a.run).await, []);
    assert_eq!(s.tasks("default").await.len(), NAMES.len() + theirs.len(), "work never awaited still runs");
}

async fn task_that_no_longer_waits_is_not_found_by_its_name(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("a/0/op", Some("op")));
    s.apply(&mut held, commit).await;
    let claimed = s.work_one("w", 1).await;
    let commit = cancel_op(&held);
    s.apply(&mut held, commit).await;
    // Its worker is still at it: the same operation gets another one meanwhile.
    let commit = held.commit().event("y").task(new_task("a/1/op", Some("op")));
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, [awaited("op", "a/1/op")]);
    s.deliver(finished(&claimed, "too late")).await;
    assert_eq!(s.inbox(&held.run).await, [], "dropped");
    let commit = cancel_op(&held);
    s.apply(&mut held, commit).await;
    assert_eq!(names_there(&s).await, [""; 0]);
}

async fn task_of_a_later_generation_is_found_too(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").task(new_task("a/0/op", Some("op"))).continue_as_new("again");
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, [], "the old generation's is nobody's");
    let commit = held.commit().event("y").task(new_task("a/1/op", Some("op")));
    s.apply(&mut held, commit).await;
    assert_eq!(s.awaiting(&held.run).await, [awaited("op", "a/1/op")]);
    let commit = cancel_op(&held);
    s.apply(&mut held, commit).await;
    assert_eq!(names_there(&s).await, ["a/0/op"]);
}
