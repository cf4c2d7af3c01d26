//! Schedules: each instant fires once, in one transaction with the run it starts.

use futures_util::future::join;
use outlast_core::commit::{NewRun, Status};
use outlast_core::id::{Fence, ScheduleId};

use super::scene::*;
use crate::{Created, Fire, Fired, Schedule, StoreError};

super::stories! {
    schedules_are_put_replaced_listed_and_removed,
    schedule_of_an_unknown_namespace_is_refused,
    due_schedules_are_listed_earliest_first_over_all_namespaces,
    schedule_without_a_next_instant_is_never_due,
    fire_starts_the_run_and_moves_on_in_one_transaction,
    fire_of_the_same_instant_again_is_stale,
    fire_of_one_instant_by_two_nodes_starts_one_run,
    fire_before_its_time_is_early,
    fire_of_a_changed_or_removed_schedule_is_stale,
    fire_may_skip,
    fire_into_another_namespace_is_refused_and_leaves_the_instant_due,
    fire_may_end_the_schedule,
    fire_that_cannot_start_its_run_leaves_the_instant_due,
    fire_of_a_run_that_exists_finds_it,
    clock_that_steps_back_does_not_fire_an_instant_again,
}

fn schedule(id: &str, next_at: Option<i64>) -> Schedule {
    Schedule {
        namespace: namespace("default"),
        id: ScheduleId::new(id).unwrap(),
        spec: bytes("daily"),
        next_at: next_at.map(at),
    }
}

fn fire(id: &str, now: i64, next_at: Option<i64>, run: Option<NewRun>) -> Fire {
    let Schedule { namespace, id, .. } = schedule(id, None);
    Fire { namespace, id, at: at(now), next_at: next_at.map(at), run }
}

fn started() -> Fired {
    Fired::Fired { run: Some(Created::Created { fence: Fence(0), at: at(100) }) }
}

async fn next_of(s: &Scene<'_>, id: &str) -> Option<i64> {
    let schedules = s.store.schedules(namespace("default")).await.unwrap();
    let found = schedules.into_iter().find(|found| found.id.as_str() == id).expect("the schedule");
    found.next_at.map(|at| at.as_millis())
}

async fn schedules_are_put_replaced_listed_and_removed(s: Scene<'_>) {
    for id in ["b", "B", "ä", "a"] {
        assert_eq!(s.store.put_schedule(schedule(id, Some(5))).await, Ok(()));
    }
    let replaced = Schedule { spec: bytes("hourly"), ..schedule("a", None) };
    s.store.put_schedule(replaced.clone()).await.unwrap();
    let found = s.store.schedules(namespace("default")).await.unwrap();
    let ids: Vec<_> = found.iter().map(|schedule| schedule.id.as_str()).collect();
    assert_eq!(ids, ["B", "a", "b", "ä"], "by bytes");
    assert_eq!(found[1], replaced);
    let remove = || s.store.remove_schedule(namespace("default"), ScheduleId::new("b").unwrap());
    assert_eq!(remove().await, Ok(true));
    assert_eq!(remove().await, Ok(false));
    assert_eq!(s.store.schedules(namespace("default")).await.unwrap().len(), 3);
    assert_eq!(s.store.schedules(namespace("nowhere")).await.unwrap(), []);
}

async fn schedule_of_an_unknown_namespace_is_refused(s: Scene<'_>) {
    let there = Schedule { namespace: namespace("nowhere"), ..schedule("a", None) };
    assert_eq!(s.store.put_schedule(there).await, Err(StoreError::UnknownNamespace(namespace("nowhere"))));
}

async fn due_schedules_are_listed_earliest_first_over_all_namespaces(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    let there = Schedule { namespace: namespace("other"), ..schedule("there", Some(20)) };
    for schedule in [schedule("late", Some(30)), there, schedule("early", Some(10)), schedule("twin", Some(20))] {
        s.store.put_schedule(schedule).await.unwrap();
    }
    let due = async |limit| {
        let due = s.store.due_schedules(limit).await.unwrap();
        due.into_iter().map(|schedule| schedule.id.to_string()).collect::<Vec<_>>()
    };
    s.clock.set(9);
    assert_eq!(due(10).await, [""; 0]);
    s.clock.set(10);
    assert_eq!(due(10).await, ["early"]);
    s.clock.set(100);
    assert_eq!(due(10).await, ["early", "twin", "there", "late"], "twins by namespace and id");
    assert_eq!(due(2).await, ["early", "twin"]);
    assert_eq!(due(0).await, [""; 0]);
}

async fn schedule_without_a_next_instant_is_never_due(s: Scene<'_>) {
    s.store.put_schedule(schedule("paused", None)).await.unwrap();
    s.clock.set(i64::MAX);
    assert_eq!(s.store.due_schedules(10).await.unwrap(), []);
    assert_eq!(s.store.fire(fire("paused", 0, None, None)).await, Ok(Fired::Stale));
}

async fn fire_starts_the_run_and_moves_on_in_one_transaction(s: Scene<'_>) {
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.clock.set(100);
    let fired = s.store.fire(fire("nightly", 100, Some(200), Some(new_run(&run("nightly-100"))))).await.unwrap();
    assert_eq!(fired, started());
    assert_eq!(s.view(&run("nightly-100")).await.status, Status::Queued);
    assert_eq!(next_of(&s, "nightly").await, Some(200));
    assert_eq!(s.store.schedules(namespace("default")).await.unwrap()[0].spec, bytes("daily"), "the rule stays");
    assert_eq!(s.store.due_schedules(10).await.unwrap(), []);
}

async fn fire_into_another_namespace_is_refused_and_leaves_the_instant_due(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.clock.set(100);
    let mut foreign = new_run(&run("nightly-100"));
    foreign.run.namespace = namespace("other");
    let refused = s.store.fire(fire("nightly", 100, Some(200), Some(foreign.clone()))).await.unwrap_err();
    assert!(matches!(refused, StoreError::Settings(_)), "{refused}");
    assert_eq!(s.store.get(foreign.run.clone()).await.unwrap_err(), StoreError::NotFound(foreign.run));
    assert_eq!(next_of(&s, "nightly").await, Some(100));
}

/// Row 28: a stale leader fired every cron twice for 19 days.
async fn fire_of_the_same_instant_again_is_stale(s: Scene<'_>) {
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.clock.set(100);
    s.store.fire(fire("nightly", 100, Some(200), Some(new_run(&run("one"))))).await.unwrap();
    let again = s.store.fire(fire("nightly", 100, Some(200), Some(new_run(&run("two"))))).await;
    assert_eq!(again, Ok(Fired::Stale));
    assert!(s.store.get(run("two")).await.is_err(), "nothing was started");
}

/// Row 28 and invariant 11.
async fn fire_of_one_instant_by_two_nodes_starts_one_run(s: Scene<'_>) {
    let other = s.other().await;
    for round in 0..15 {
        let id = format!("schedule-{round}");
        s.store.put_schedule(schedule(&id, Some(100))).await.unwrap();
        s.clock.set(100);
        let fire = |by: &str| fire(&id, 100, Some(200), Some(new_run(&run(&format!("{id}-{by}")))));
        let (one, two) = join(s.store.fire(fire("one")), other.fire(fire("two"))).await;
        let fired = [one.unwrap(), two.unwrap()];
        assert!(fired.contains(&started()) && fired.contains(&Fired::Stale), "{fired:?}");
    }
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Queued, 15)]);
}

async fn fire_before_its_time_is_early(s: Scene<'_>) {
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.clock.set(99);
    let fired = s.store.fire(fire("nightly", 100, Some(200), Some(new_run(&run("a"))))).await;
    assert_eq!(fired, Ok(Fired::Early));
    assert!(s.store.get(run("a")).await.is_err());
    assert_eq!(next_of(&s, "nightly").await, Some(100));
}

async fn fire_of_a_changed_or_removed_schedule_is_stale(s: Scene<'_>) {
    s.clock.set(100);
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.store.put_schedule(schedule("nightly", Some(150))).await.unwrap();
    assert_eq!(s.store.fire(fire("nightly", 100, Some(200), None)).await, Ok(Fired::Stale));
    s.store.remove_schedule(namespace("default"), ScheduleId::new("nightly").unwrap()).await.unwrap();
    assert_eq!(s.store.fire(fire("nightly", 150, Some(200), None)).await, Ok(Fired::Stale));
    assert_eq!(s.store.fire(fire("never was", 100, None, None)).await, Ok(Fired::Stale));
}

async fn fire_may_skip(s: Scene<'_>) {
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.clock.set(500);
    assert_eq!(s.store.fire(fire("nightly", 100, Some(600), None)).await, Ok(Fired::Fired { run: None }));
    assert_eq!(next_of(&s, "nightly").await, Some(600));
}

async fn fire_may_end_the_schedule(s: Scene<'_>) {
    s.store.put_schedule(schedule("once", Some(100))).await.unwrap();
    s.clock.set(100);
    s.store.fire(fire("once", 100, None, Some(new_run(&run("a"))))).await.unwrap();
    assert_eq!(next_of(&s, "once").await, None);
    s.clock.set(1_000);
    assert_eq!(s.store.due_schedules(10).await.unwrap(), []);
}

async fn fire_that_cannot_start_its_run_leaves_the_instant_due(s: Scene<'_>) {
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.start("taken").await;
    s.clock.set(100);
    let other = NewRun { input: bytes("other"), ..new_run(&run("taken")) };
    let refused = s.store.fire(fire("nightly", 100, Some(200), Some(other))).await.unwrap_err();
    assert_eq!(refused, StoreError::Exists { run: run("taken"), what: "input" });
    assert_eq!(next_of(&s, "nightly").await, Some(100), "run and instant are one transaction");
}

async fn fire_of_a_run_that_exists_finds_it(s: Scene<'_>) {
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.start("nightly-100").await;
    s.clock.set(100);
    let fired = s.store.fire(fire("nightly", 100, Some(200), Some(new_run(&run("nightly-100"))))).await;
    assert_eq!(fired, Ok(Fired::Fired { run: Some(Created::Existing { status: Status::Queued }) }));
}

/// Rows 3 and 28.
async fn clock_that_steps_back_does_not_fire_an_instant_again(s: Scene<'_>) {
    s.store.put_schedule(schedule("nightly", Some(100))).await.unwrap();
    s.clock.set(100);
    s.store.fire(fire("nightly", 100, Some(200), Some(new_run(&run("a"))))).await.unwrap();
    s.clock.set(0);
    assert_eq!(s.store.due_schedules(10).await.unwrap(), []);
    s.clock.set(100);
    assert_eq!(s.store.fire(fire("nightly", 100, Some(200), None)).await, Ok(Fired::Stale));
}
