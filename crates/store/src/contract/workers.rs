//! Who works, and what wakes runs: for people.

use outlast_core::id::WorkerId;

use super::scene::*;
use crate::{Retention, Sighting, StoreError, WorkerView};

super::stories! {
    worker_is_shown_from_its_arrival_with_what_it_says_of_itself,
    worker_that_arrives_again_has_begun_anew,
    worker_that_is_not_known_is_not_made_by_a_sign_of_life,
    worker_is_shown_with_the_tasks_it_holds,
    worker_of_a_namespace_is_shown_to_no_other,
    worker_of_an_unknown_namespace_is_refused,
    worker_that_leaves_is_gone_and_leaving_twice_is_not_an_error,
    worker_that_was_silent_for_a_day_goes_with_retention,
}

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn seen(worker: &str, about: Option<&str>) -> Sighting {
    let worker = WorkerId::new(worker).unwrap();
    Sighting { namespace: None, worker, about: about.map(bytes), arrived: false }
}

async fn workers(s: &Scene<'_>, of: &str) -> Vec<WorkerView> {
    s.store.workers(namespace(of)).await.unwrap()
}

async fn names(s: &Scene<'_>, of: &str) -> Vec<String> {
    workers(s, of).await.into_iter().map(|worker| worker.worker.to_string()).collect()
}

async fn worker_is_shown_from_its_arrival_with_what_it_says_of_itself(s: Scene<'_>) {
    assert_eq!(workers(&s, "default").await, []);
    s.clock.set(10);
    s.store.see_worker(Sighting { arrived: true, ..seen("w", Some("one")) }).await.unwrap();
    s.clock.set(20);
    s.store.see_worker(seen("w", None)).await.unwrap();
    s.store.see_worker(seen("a", Some("first by name"))).await.unwrap();
    s.clock.set(30);
    s.store.see_worker(seen("w", Some("two"))).await.unwrap();
    let shown = workers(&s, "default").await;
    assert_eq!(shown.len(), 2);
    assert_eq!((shown[0].worker.as_str(), shown[0].started, shown[0].seen), ("a", at(20), at(20)));
    assert_eq!((shown[1].worker.as_str(), shown[1].started, shown[1].seen), ("w", at(10), at(30)));
    assert_eq!((&shown[1].about, &shown[1].namespace, shown[1].holds.len()), (&bytes("two"), &None, 0));
}

async fn worker_that_arrives_again_has_begun_anew(s: Scene<'_>) {
    s.store.see_worker(Sighting { arrived: true, ..seen("w", Some("one")) }).await.unwrap();
    s.clock.set(50);
    s.store.see_worker(Sighting { arrived: true, ..seen("w", Some("two")) }).await.unwrap();
    let shown = workers(&s, "default").await;
    assert_eq!((shown.len(), shown[0].started, &shown[0].about), (1, at(50), &bytes("two")));
}

async fn worker_that_is_not_known_is_not_made_by_a_sign_of_life(s: Scene<'_>) {
    s.store.see_worker(seen("w", None)).await.unwrap();
    assert_eq!(workers(&s, "default").await, []);
}

async fn worker_is_shown_with_the_tasks_it_holds(s: Scene<'_>) {
    for worker in ["busy", "idle"] {
        s.store.see_worker(seen(worker, Some("{}"))).await.unwrap();
    }
    let task =
        |id: &str| outlast_core::commit::StandaloneTask { namespace: namespace("default"), task: new_task(id, None) };
    s.store.enqueue(vec![task("u"), task("t")]).await;
    s.clock.set(5);
    assert_eq!(s.work("busy", 1).await.len(), 2);
    s.store.enqueue(vec![task("v")]).await;
    let shown = workers(&s, "default").await;
    let held: Vec<_> = shown[0].holds.iter().map(|task| (task.id.as_str(), task.attempt, task.since)).collect();
    assert_eq!(held, [("t", 1, Some(at(5))), ("u", 1, Some(at(5)))]);
    assert_eq!(shown[0].holds[0].until, Some(at(55)));
    assert_eq!(shown[1].holds, []);
    // Its lease is over, and another has them.
    s.clock.set(55);
    assert_eq!(s.work("idle", 1).await.len(), 3);
    let held: Vec<usize> = workers(&s, "default").await.iter().map(|worker| worker.holds.len()).collect();
    assert_eq!(held, [0, 3]);
}

async fn worker_of_a_namespace_is_shown_to_no_other(s: Scene<'_>) {
    s.store.put_namespace(namespace("blue")).await.unwrap();
    s.store.see_worker(seen("all", Some("{}"))).await.unwrap();
    for of in ["blue", "default"] {
        s.store.see_worker(Sighting { namespace: Some(namespace(of)), ..seen("same", Some(of)) }).await.unwrap();
    }
    for of in ["blue", "default"] {
        let shown = workers(&s, of).await;
        assert_eq!(names(&s, of).await, ["all", "same"]);
        assert_eq!((&shown[1].namespace, &shown[1].about), (&Some(namespace(of)), &bytes(of)));
    }
    assert_eq!(names(&s, "nowhere").await, ["all"]);
}

async fn worker_of_an_unknown_namespace_is_refused(s: Scene<'_>) {
    let stranger = Sighting { namespace: Some(namespace("nowhere")), ..seen("w", Some("{}")) };
    assert_eq!(s.store.see_worker(stranger).await, Err(StoreError::UnknownNamespace(namespace("nowhere"))));
}

async fn worker_that_leaves_is_gone_and_leaving_twice_is_not_an_error(s: Scene<'_>) {
    s.store.see_worker(seen("w", Some("{}"))).await.unwrap();
    s.store.see_worker(Sighting { namespace: Some(namespace("default")), ..seen("w", Some("{}")) }).await.unwrap();
    let w = || WorkerId::new("w").unwrap();
    for _ in 0..2 {
        s.store.forget_worker(None, w()).await.unwrap();
        assert_eq!(workers(&s, "default").await.len(), 1, "another of that name, of one namespace");
    }
    s.store.forget_worker(Some(namespace("default")), w()).await.unwrap();
    s.store.forget_worker(Some(namespace("nowhere")), w()).await.unwrap();
    assert_eq!(workers(&s, "default").await, []);
}

async fn worker_that_was_silent_for_a_day_goes_with_retention(s: Scene<'_>) {
    for worker in ["old", "young"] {
        s.store.see_worker(seen(worker, Some("{}"))).await.unwrap();
        s.clock.advance(1);
    }
    let retain = || s.store.retain(Retention { age: std::time::Duration::MAX, limit: 10 });
    s.clock.set(DAY_MS - 1);
    assert_eq!(retain().await.unwrap().rows, 0);
    s.clock.set(DAY_MS);
    assert_eq!(retain().await.unwrap().rows, 1);
    assert_eq!(names(&s, "default").await, ["young"]);
}
