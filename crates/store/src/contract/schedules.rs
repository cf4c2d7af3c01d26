//! Schedules: each instant fires once, in one transaction with the run it starts.

use futures_util::future::join;
use outlast_core::commit::{NewRun, Status};
use outlast_core::id::{Fence, Revision, ScheduleId};

use super::scene::*;
use crate::{Created, DueCursor, Fire, Fired, Schedule, StoreError};

super::stories! {
    schedules_are_put_replaced_listed_and_removed,
    schedule_is_found_by_name,
    put_that_was_decided_on_an_older_revision_changes_nothing,
    put_of_a_new_schedule_by_two_makes_one_of_them,
    schedule_that_was_removed_and_put_again_refuses_what_was_decided_before,
    schedule_of_an_unknown_namespace_is_refused,
    due_schedules_are_listed_earliest_first_over_all_namespaces,
    due_schedules_go_on_behind_a_place,
    due_schedules_say_what_comes_next_and_what_time_it_is,
    schedule_without_a_next_instant_is_never_due,
    fire_starts_the_run_and_moves_on_in_one_transaction,
    fire_keeps_the_state_and_the_rule_stays,
    fire_without_an_instant_needs_no_time_to_have_passed,
    fire_of_the_same_instant_again_is_stale,
    fire_and_put_of_one_revision_change_it_once,
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
        revision: Revision(0),
        spec: bytes("daily"),
        state: bytes("new"),
        next_at: next_at.map(at),
    }
}

/// Puts a schedule, whatever was there.
async fn put(s: &Scene<'_>, schedule: Schedule) -> Revision {
    let found = s.store.schedules(schedule.namespace.clone(), Some(schedule.id.clone())).await.unwrap().pop();
    let revision = found.map_or(Revision(0), |found| found.revision);
    s.store.put_schedule(Schedule { revision, ..schedule }).await.unwrap().expect("nobody else changes it")
}

fn fire(id: &str, revision: Revision, now: i64, next_at: Option<i64>, run: Option<NewRun>) -> Fire {
    let Schedule { namespace, id, .. } = schedule(id, None);
    Fire { namespace, id, revision, at: Some(at(now)), state: bytes("fired"), next_at: next_at.map(at), run }
}

fn is_started(fired: &Fired) -> bool {
    let created = Created::Created { fence: Fence(0), at: at(100) };
    matches!(fired, Fired::Fired { run: Some(run), .. } if *run == created)
}

async fn find(s: &Scene<'_>, id: &str) -> Schedule {
    let id = ScheduleId::new(id).unwrap();
    s.store.schedules(namespace("default"), Some(id)).await.unwrap().pop().expect("the schedule")
}

async fn next_of(s: &Scene<'_>, id: &str) -> Option<i64> {
    find(s, id).await.next_at.map(|at| at.as_millis())
}

async fn due(s: &Scene<'_>, after: Option<DueCursor>, limit: usize) -> Vec<String> {
    let due = s.store.due_schedules(after, limit).await.unwrap();
    due.schedules.into_iter().map(|schedule| schedule.id.to_string()).collect()
}

async fn schedules_are_put_replaced_listed_and_removed(s: Scene<'_>) {
    for id in ["b", "B", "ä", "a"] {
        assert!(s.store.put_schedule(schedule(id, Some(5))).await.unwrap() > Some(Revision(0)));
    }
    let replaced = Schedule { spec: bytes("hourly"), state: bytes("going"), ..schedule("a", None) };
    let revision = put(&s, replaced.clone()).await;
    let found = s.store.schedules(namespace("default"), None).await.unwrap();
    let ids: Vec<_> = found.iter().map(|schedule| schedule.id.as_str()).collect();
    assert_eq!(ids, ["B", "a", "b", "ä"], "by bytes");
    assert_eq!(found[1], Schedule { revision, ..replaced });
    let remove = || s.store.remove_schedule(namespace("default"), ScheduleId::new("b").unwrap());
    assert_eq!(remove().await, Ok(true));
    assert_eq!(remove().await, Ok(false));
    assert_eq!(s.store.schedules(namespace("default"), None).await.unwrap().len(), 3);
    assert_eq!(s.store.schedules(namespace("nowhere"), None).await.unwrap(), []);
}

async fn schedule_is_found_by_name(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    put(&s, schedule("a", None)).await;
    put(&s, schedule("b", None)).await;
    put(&s, Schedule { namespace: namespace("other"), spec: bytes("theirs"), ..schedule("a", None) }).await;
    let find = |place: &str, id: &str| s.store.schedules(namespace(place), Some(ScheduleId::new(id).unwrap()));
    let specs = |found: Vec<Schedule>| found.into_iter().map(|found| (found.id.to_string(), found.spec)).collect();
    let found: Vec<_> = specs(find("default", "a").await.unwrap());
    assert_eq!(found, [("a".to_owned(), bytes("daily"))]);
    let found: Vec<_> = specs(find("other", "a").await.unwrap());
    assert_eq!(found, [("a".to_owned(), bytes("theirs"))]);
    assert_eq!(find("other", "b").await.unwrap(), []);
    assert_eq!(find("nowhere", "a").await.unwrap(), []);
}

async fn put_that_was_decided_on_an_older_revision_changes_nothing(s: Scene<'_>) {
    let first = put(&s, schedule("a", Some(5))).await;
    let second = put(&s, Schedule { spec: bytes("hourly"), ..schedule("a", Some(6)) }).await;
    assert!(second > first);
    let before = find(&s, "a").await;
    for revision in [Revision(0), first, second.next()] {
        let late = Schedule { revision, spec: bytes("late"), ..schedule("a", None) };
        assert_eq!(s.store.put_schedule(late).await, Ok(None));
    }
    assert_eq!(find(&s, "a").await, before);
    let gone = Schedule { revision: first, ..schedule("never was", None) };
    assert_eq!(s.store.put_schedule(gone).await, Ok(None), "it was removed");
}

async fn put_of_a_new_schedule_by_two_makes_one_of_them(s: Scene<'_>) {
    let other = s.other().await;
    for round in 0..15 {
        let id = format!("schedule-{round}");
        let new = |spec: &str| Schedule { spec: bytes(spec), ..schedule(&id, None) };
        let (one, two) = join(s.store.put_schedule(new("one")), other.put_schedule(new("two"))).await;
        let (one, two) = (one.unwrap(), two.unwrap());
        assert!(one.is_some() != two.is_some(), "{one:?} {two:?}");
        let expected = bytes(if one.is_some() { "one" } else { "two" });
        assert_eq!(find(&s, &id).await.spec, expected);
    }
}

async fn schedule_that_was_removed_and_put_again_refuses_what_was_decided_before(s: Scene<'_>) {
    s.clock.set(100);
    let old = put(&s, schedule("nightly", Some(100))).await;
    s.store.remove_schedule(namespace("default"), ScheduleId::new("nightly").unwrap()).await.unwrap();
    s.clock.set(101);
    let new = put(&s, schedule("nightly", Some(101))).await;
    assert_ne!(old, new);
    assert_eq!(s.store.fire(fire("nightly", old, 100, Some(200), None)).await, Ok(Fired::Stale));
    assert_eq!(next_of(&s, "nightly").await, Some(101));
}

async fn schedule_of_an_unknown_namespace_is_refused(s: Scene<'_>) {
    let there = Schedule { namespace: namespace("nowhere"), ..schedule("a", None) };
    assert_eq!(s.store.put_schedule(there).await, Err(StoreError::UnknownNamespace(namespace("nowhere"))));
}

async fn due_schedules_are_listed_earliest_first_over_all_namespaces(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    let there = Schedule { namespace: namespace("other"), ..schedule("there", Some(20)) };
    for schedule in [schedule("late", Some(30)), there, schedule("early", Some(10)), schedule("twin", Some(20))] {
        put(&s, schedule).await;
    }
    s.clock.set(9);
    assert_eq!(due(&s, None, 10).await, [""; 0]);
    s.clock.set(10);
    assert_eq!(due(&s, None, 10).await, ["early"]);
    s.clock.set(100);
    assert_eq!(due(&s, None, 10).await, ["early", "twin", "there", "late"], "twins by namespace and id");
    assert_eq!(due(&s, None, 2).await, ["early", "twin"]);
    assert_eq!(due(&s, None, 0).await, [""; 0]);
}

async fn due_schedules_go_on_behind_a_place(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    for (id, next_at) in [("a", 20), ("b", 20), ("ä", 20), ("c", 10), ("d", 30), ("e", 200)] {
        put(&s, schedule(id, Some(next_at))).await;
    }
    put(&s, Schedule { namespace: namespace("other"), ..schedule("A", Some(20)) }).await;
    s.clock.set(100);
    let mut found = Vec::new();
    let mut place = None;
    loop {
        let page = s.store.due_schedules(place.clone(), 2).await.unwrap().schedules;
        let Some(last) = page.last() else { break };
        place = last.cursor();
        found.extend(page.into_iter().map(|schedule| schedule.id.to_string()));
    }
    assert_eq!(found, ["c", "a", "b", "ä", "A", "d"], "each once, in order");
}

async fn due_schedules_say_what_comes_next_and_what_time_it_is(s: Scene<'_>) {
    let ask = async || {
        let due = s.store.due_schedules(None, 10).await.unwrap();
        (due.next_due.map(|at| at.as_millis()), due.now.as_millis())
    };
    s.clock.set(5);
    assert_eq!(ask().await, (None, 5));
    for (id, next_at) in [("a", Some(10)), ("b", Some(20)), ("c", Some(30)), ("d", None)] {
        put(&s, schedule(id, next_at)).await;
    }
    assert_eq!(ask().await, (Some(10), 5));
    s.clock.set(10);
    assert_eq!(ask().await, (Some(20), 10), "what is due does not come next");
    s.clock.set(30);
    assert_eq!(ask().await, (None, 30));
}

async fn schedule_without_a_next_instant_is_never_due(s: Scene<'_>) {
    put(&s, schedule("paused", None)).await;
    s.clock.set(i64::MAX);
    assert_eq!(due(&s, None, 10).await, [""; 0]);
}

async fn fire_starts_the_run_and_moves_on_in_one_transaction(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(100);
    let fire = fire("nightly", revision, 100, Some(200), Some(new_run(&run("nightly-100"))));
    let fired = s.store.fire(fire).await.unwrap();
    assert!(is_started(&fired), "{fired:?}");
    assert_eq!(s.view(&run("nightly-100")).await.status, Status::Queued);
    assert_eq!(next_of(&s, "nightly").await, Some(200));
    assert_eq!(due(&s, None, 10).await, [""; 0]);
}

async fn fire_keeps_the_state_and_the_rule_stays(s: Scene<'_>) {
    let before = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(100);
    let fired = s.store.fire(fire("nightly", before, 100, Some(200), None)).await.unwrap();
    let Fired::Fired { revision, run: None } = fired else { panic!("{fired:?}") };
    assert!(revision > before);
    let expected = Schedule { revision, state: bytes("fired"), ..schedule("nightly", Some(200)) };
    assert_eq!(find(&s, "nightly").await, expected);
}

async fn fire_without_an_instant_needs_no_time_to_have_passed(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(10);
    let run = new_run(&run("by-hand"));
    let by_hand = Fire { at: None, ..fire("nightly", revision, 0, Some(100), Some(run)) };
    let fired = s.store.fire(by_hand.clone()).await.unwrap();
    assert!(matches!(fired, Fired::Fired { run: Some(Created::Created { .. }), .. }), "{fired:?}");
    assert_eq!(next_of(&s, "nightly").await, Some(100));
    assert_eq!(s.store.fire(by_hand).await, Ok(Fired::Stale), "the same request again");
}

async fn fire_and_put_of_one_revision_change_it_once(s: Scene<'_>) {
    let other = s.other().await;
    for round in 0..15 {
        let id = format!("schedule-{round}");
        let revision = put(&s, schedule(&id, Some(100))).await;
        s.clock.set(100);
        let replaced = Schedule { revision, spec: bytes("hourly"), ..schedule(&id, Some(150)) };
        let fire = fire(&id, revision, 100, Some(200), Some(new_run(&run(&format!("{id}-100")))));
        let (fired, put) = join(s.store.fire(fire), other.put_schedule(replaced)).await;
        let (fired, put) = (fired.unwrap(), put.unwrap());
        assert_eq!(is_started(&fired), put.is_none(), "{fired:?} {put:?}");
        assert_eq!(next_of(&s, &id).await, Some(if put.is_some() { 150 } else { 200 }));
        assert_eq!(s.store.get(run(&format!("{id}-100"))).await.is_ok(), put.is_none());
    }
}

async fn fire_into_another_namespace_is_refused_and_leaves_the_instant_due(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(100);
    let mut foreign = new_run(&run("nightly-100"));
    foreign.run.namespace = namespace("other");
    let refused = s.store.fire(fire("nightly", revision, 100, Some(200), Some(foreign.clone()))).await.unwrap_err();
    assert!(matches!(refused, StoreError::Settings(_)), "{refused}");
    assert_eq!(s.store.get(foreign.run.clone()).await.unwrap_err(), StoreError::NotFound(foreign.run));
    assert_eq!(next_of(&s, "nightly").await, Some(100));
}

/// Row 28: a stale leader fired every cron twice for 19 days.
async fn fire_of_the_same_instant_again_is_stale(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(100);
    s.store.fire(fire("nightly", revision, 100, Some(200), Some(new_run(&run("one"))))).await.unwrap();
    let again = s.store.fire(fire("nightly", revision, 100, Some(200), Some(new_run(&run("two"))))).await;
    assert_eq!(again, Ok(Fired::Stale));
    assert!(s.store.get(run("two")).await.is_err(), "nothing was started");
}

/// Row 28 and invariant 11.
async fn fire_of_one_instant_by_two_nodes_starts_one_run(s: Scene<'_>) {
    let other = s.other().await;
    for round in 0..15 {
        let id = format!("schedule-{round}");
        let revision = put(&s, schedule(&id, Some(100))).await;
        s.clock.set(100);
        let fire = |by: &str| fire(&id, revision, 100, Some(200), Some(new_run(&run(&format!("{id}-{by}")))));
        let (one, two) = join(s.store.fire(fire("one")), other.fire(fire("two"))).await;
        let fired = [one.unwrap(), two.unwrap()];
        assert!(fired.iter().any(is_started) && fired.contains(&Fired::Stale), "{fired:?}");
    }
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Queued, 15)]);
}

async fn fire_before_its_time_is_early(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(99);
    let fired = s.store.fire(fire("nightly", revision, 100, Some(200), Some(new_run(&run("a"))))).await;
    assert_eq!(fired, Ok(Fired::Early));
    assert!(s.store.get(run("a")).await.is_err());
    assert_eq!(next_of(&s, "nightly").await, Some(100));
}

async fn fire_of_a_changed_or_removed_schedule_is_stale(s: Scene<'_>) {
    s.clock.set(100);
    let first = put(&s, schedule("nightly", Some(100))).await;
    let second = put(&s, schedule("nightly", Some(50))).await;
    assert_eq!(s.store.fire(fire("nightly", first, 100, Some(200), None)).await, Ok(Fired::Stale));
    s.store.remove_schedule(namespace("default"), ScheduleId::new("nightly").unwrap()).await.unwrap();
    assert_eq!(s.store.fire(fire("nightly", second, 50, Some(200), None)).await, Ok(Fired::Stale));
    assert_eq!(s.store.fire(fire("never was", Revision(0), 100, None, None)).await, Ok(Fired::Stale));
}

async fn fire_may_skip(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(500);
    let fired = s.store.fire(fire("nightly", revision, 100, Some(600), None)).await;
    assert!(matches!(fired, Ok(Fired::Fired { run: None, .. })), "{fired:?}");
    assert_eq!(next_of(&s, "nightly").await, Some(600));
}

async fn fire_may_end_the_schedule(s: Scene<'_>) {
    let revision = put(&s, schedule("once", Some(100))).await;
    s.clock.set(100);
    s.store.fire(fire("once", revision, 100, None, Some(new_run(&run("a"))))).await.unwrap();
    assert_eq!(next_of(&s, "once").await, None);
    s.clock.set(1_000);
    assert_eq!(due(&s, None, 10).await, [""; 0]);
}

async fn fire_that_cannot_start_its_run_leaves_the_instant_due(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.start("taken").await;
    s.clock.set(100);
    let other = NewRun { input: bytes("other"), ..new_run(&run("taken")) };
    let refused = s.store.fire(fire("nightly", revision, 100, Some(200), Some(other))).await.unwrap_err();
    assert_eq!(refused, StoreError::Exists { run: run("taken"), what: "input" });
    assert_eq!(next_of(&s, "nightly").await, Some(100), "run and instant are one transaction");
}

async fn fire_of_a_run_that_exists_finds_it(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.start("nightly-100").await;
    s.clock.set(100);
    let fired = s.store.fire(fire("nightly", revision, 100, Some(200), Some(new_run(&run("nightly-100"))))).await;
    let existing = Created::Existing { status: Status::Queued };
    assert!(matches!(&fired, Ok(Fired::Fired { run: Some(run), .. }) if *run == existing), "{fired:?}");
}

/// Rows 3 and 28.
async fn clock_that_steps_back_does_not_fire_an_instant_again(s: Scene<'_>) {
    let revision = put(&s, schedule("nightly", Some(100))).await;
    s.clock.set(100);
    s.store.fire(fire("nightly", revision, 100, Some(200), Some(new_run(&run("a"))))).await.unwrap();
    s.clock.set(0);
    assert_eq!(due(&s, None, 10).await, [""; 0]);
    s.clock.set(100);
    assert_eq!(s.store.fire(fire("nightly", revision, 100, Some(200), None)).await, Ok(Fired::Stale));
}
