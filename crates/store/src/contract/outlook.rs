//! The outlook: whatever there is to do is named in it, and nothing that is not there.

use outlast_core::commit::{Admission, Begin, NewTask};
use outlast_core::id::QueueName;

use super::admission::{admit, admitted_as, at_once, end, hold};
use super::scene::*;
use crate::{Depths, Outlook, QueueDepth, StandaloneTask, TaskState};

super::stories! {
    outlook_of_an_empty_store_names_nothing,
    outlook_names_runs_that_are_ready_and_those_of_a_lapsed_lease,
    outlook_names_the_next_timer,
    outlook_names_held_runs_when_they_may_begin,
    outlook_names_held_runs_when_one_ended_before_them,
    outlook_names_tasks_of_the_queues_that_were_asked_for,
    outlook_names_a_task_when_its_worker_falls_silent,
    depths_count_what_can_be_claimed_and_since_when,
}

async fn outlook(s: &Scene<'_>) -> Outlook {
    s.store.outlook(vec![QueueName::new("work").unwrap()]).await.unwrap()
}

async fn outlook_of_an_empty_store_names_nothing(s: Scene<'_>) {
    s.clock.set(7);
    assert_eq!(outlook(&s).await, Outlook { now: at(7), ..Outlook::default() });
    s.ended("a").await;
    assert_eq!(outlook(&s).await, Outlook { now: at(7), ..Outlook::default() });
}

async fn outlook_names_runs_that_are_ready_and_those_of_a_lapsed_lease(s: Scene<'_>) {
    s.start("a").await;
    assert!(outlook(&s).await.runs);
    let lease = s.node("n", 50).await;
    assert_eq!(s.claim_ids(lease, 1).await, ["a"]);
    assert!(!outlook(&s).await.runs, "somebody drives it");
    s.clock.set(49);
    assert!(!outlook(&s).await.runs);
    s.clock.set(50);
    assert!(outlook(&s).await.runs, "nobody drives it any more");
}

async fn outlook_names_the_next_timer(s: Scene<'_>) {
    for (id, due) in [("a", 300), ("b", 200)] {
        let mut held = s.own(id).await;
        let commit = held.commit().event("sleeps").sleep("t", due).suspend();
        s.apply(&mut held, commit).await;
    }
    assert_eq!(outlook(&s).await.timer, Some(at(200)));
    s.clock.set(200);
    s.sweep().await;
    let after = outlook(&s).await;
    assert_eq!((after.timer, after.runs), (Some(at(300)), true));
}

async fn outlook_names_held_runs_when_they_may_begin(s: Scene<'_>) {
    let later = Admission { begin: Begin::After(ms(50)), ..Admission::default() };
    s.create(admitted_as("a", later)).await;
    let before = outlook(&s).await;
    assert_eq!((before.held, before.waiting, before.runs), (Some(at(50)), false, false));
    s.clock.set(50);
    admit(&s).await;
    let after = outlook(&s).await;
    assert_eq!((after.held, after.runs), (None, true));
}

async fn outlook_names_held_runs_when_one_ended_before_them(s: Scene<'_>) {
    for id in ["a", "b"] {
        hold(&s, id, &[at_once("k", 1)]).await;
    }
    assert_eq!(outlook(&s).await.held, Some(at(0)), "nobody looked at them yet");
    admit(&s).await;
    let waits = outlook(&s).await;
    assert_eq!((waits.held, waits.waiting), (None, true));
    end(&s, "a").await;
    assert_eq!(outlook(&s).await.held, Some(at(0)), "there is room");
    admit(&s).await;
    let after = outlook(&s).await;
    assert_eq!((after.held, after.waiting, after.runs), (None, false, true));
}

/// Queues a task that no run waits for.
async fn queue(s: &Scene<'_>, task: NewTask) {
    let task = StandaloneTask { namespace: namespace("default"), task };
    assert_eq!(s.store.enqueue(vec![task]).await, [Ok(())]);
}

async fn outlook_names_tasks_of_the_queues_that_were_asked_for(s: Scene<'_>) {
    s.clock.set(10);
    let elsewhere = NewTask { queue: QueueName::new("elsewhere").unwrap(), ..new_task("other", None) };
    queue(&s, elsewhere).await;
    assert_eq!(outlook(&s).await.task, None);
    queue(&s, NewTask { available_at: Some(at(90)), ..new_task("later", None) }).await;
    assert_eq!(outlook(&s).await.task, Some(at(90)));
    queue(&s, new_task("now", None)).await;
    assert_eq!(outlook(&s).await.task, Some(at(10)));
    let both = s.store.outlook(vec![QueueName::new("work").unwrap(), QueueName::new("elsewhere").unwrap()]);
    assert_eq!(both.await.unwrap().task, Some(at(10)));
    assert_eq!(s.store.outlook(Vec::new()).await.unwrap().task, None);
}

async fn outlook_names_a_task_when_its_worker_falls_silent(s: Scene<'_>) {
    queue(&s, new_task("t", None)).await;
    let task = s.work_one("w", 1).await;
    assert_eq!(outlook(&s).await.task, Some(task.until));
    s.clock.set(50);
    assert_eq!(outlook(&s).await.task, Some(at(50)), "what is overdue is due now");
    let again = s.work_one("v", 1).await;
    s.deliver(finished(&again, "done")).await;
    assert_eq!(outlook(&s).await.task, None);
}

async fn depths_count_what_can_be_claimed_and_since_when(s: Scene<'_>) {
    let empty = s.store.depths().await.unwrap();
    assert_eq!(empty, Depths { now: at(0), ..Depths::default() });
    s.clock.set(10);
    s.start("a").await;
    s.clock.set(20);
    s.start("b").await;
    queue(&s, new_task("first", None)).await;
    queue(&s, NewTask { available_at: Some(at(90)), ..new_task("later", None) }).await;
    let elsewhere = NewTask { queue: QueueName::new("elsewhere").unwrap(), ..new_task("other", None) };
    queue(&s, elsewhere).await;
    let depths = s.store.depths().await.unwrap();
    assert_eq!((depths.ready, depths.oldest), (2, Some(at(10))));
    let elsewhere = QueueDepth {
        queue: QueueName::new("elsewhere").unwrap(),
        tasks: vec![(TaskState::Ready, 1)],
        oldest: Some(at(20)),
    };
    let work = |tasks: &[(TaskState, u64)], oldest: Option<i64>| QueueDepth {
        queue: QueueName::new("work").unwrap(),
        tasks: tasks.to_vec(),
        oldest: oldest.map(at),
    };
    let both = [(TaskState::Ready, 1), (TaskState::Delayed, 1)];
    assert_eq!(depths.queues, [elsewhere.clone(), work(&both, Some(20))]);
    s.work_one("w", 1).await;
    let claimed = [(TaskState::Claimed, 1), (TaskState::Delayed, 1)];
    assert_eq!(s.store.depths().await.unwrap().queues, [elsewhere.clone(), work(&claimed, None)]);
    s.clock.set(69);
    assert_eq!(s.store.depths().await.unwrap().queues, [elsewhere.clone(), work(&claimed, None)]);
    s.clock.set(90);
    let due = [(TaskState::Ready, 2)];
    assert_eq!(s.store.depths().await.unwrap().queues, [elsewhere, work(&due, Some(70))], "silent, and due");
}
