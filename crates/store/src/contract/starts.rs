//! Start keys: which run answers for a start, decided in the transaction that would create it.

use futures_util::future::join;
use outlast_core::commit::{Admission, Control, Debounce, InboxKind, NewRun, Single, Status, Window};
use outlast_core::id::RunId;

use super::admission::{admit, admitted_as, at_once, end, limit_key, limited};
use super::scene::*;
use crate::{Created, StoreError};

super::stories! {
    start_with_the_key_of_another_within_the_window_finds_it,
    start_after_the_window_is_a_new_one,
    start_within_the_window_must_be_the_same_one,
    window_outlives_the_run,
    window_that_is_over_is_forgotten_by_retention,
    singleton_finds_the_live_run_with_its_key,
    singleton_begins_where_nobody_lives,
    singleton_that_replaces_asks_the_other_to_cancel_and_begins_when_it_has_ended,
    singleton_that_replaces_a_plain_one_waits_for_its_end_too,
    plain_singleton_waits_for_one_that_was_replaced_by_nobody_who_lives,
    singleton_that_replaces_one_that_was_held_ends_that_at_once,
    singleton_started_by_two_at_once_is_one_run,
    debounced_start_replaces_the_input_and_is_put_off,
    debounced_start_waits_no_longer_than_it_may,
    debounced_start_after_the_other_began_is_a_new_one,
    debounced_run_that_waits_in_line_keeps_its_place_and_gets_the_new_input,
    debounced_input_of_any_size_is_replaced,
    repeated_start_finds_the_run_it_made,
    signals_of_a_start_go_to_the_run_that_answers_for_it,
    start_keys_of_another_kind_or_namespace_are_others,
    start_keys_are_free_again_after_the_end,
}

fn window(key: &str, millis: u64) -> Admission {
    Admission { window: Some(Window { key: limit_key(key), window: ms(millis) }), ..Admission::default() }
}

fn single(key: &str, replace: bool) -> Admission {
    let meta = Some(bytes("{}"));
    Admission { single: Some(Single { key: limit_key(key), replace, meta }), ..Admission::default() }
}

fn debounced(key: &str, wait: u64, at_most: u64) -> Admission {
    let debounce = Some(Debounce { key: limit_key(key), wait: ms(wait), at_most: ms(at_most) });
    Admission { debounce, ..Admission::default() }
}

fn with_input(id: &str, admission: Admission, input: &str) -> NewRun {
    NewRun { input: bytes(input), ..admitted_as(id, admission) }
}

fn joined(id: &str, status: Status) -> Created {
    Created::Joined { run: RunId::new(id).unwrap(), status }
}

fn is_new(created: &Created) -> bool {
    matches!(created, Created::Created { .. })
}

async fn start_with_the_key_of_another_within_the_window_finds_it(s: Scene<'_>) {
    assert!(is_new(&s.create(admitted_as("a", window("k", 100))).await));
    s.clock.set(99);
    assert_eq!(s.create(admitted_as("b", window("k", 100))).await, joined("a", Status::Queued));
    assert_eq!(s.store.get(run("b")).await, Err(StoreError::NotFound(run("b"))));
    assert!(s.view(&run("a")).await.ready, "it begins at once");
}

async fn start_after_the_window_is_a_new_one(s: Scene<'_>) {
    s.create(admitted_as("a", window("k", 100))).await;
    s.clock.set(100);
    assert!(is_new(&s.create(admitted_as("b", window("k", 100))).await));
    s.clock.set(199);
    assert_eq!(s.create(admitted_as("c", window("k", 100))).await, joined("b", Status::Queued));
}

async fn start_within_the_window_must_be_the_same_one(s: Scene<'_>) {
    s.create(with_input("a", window("k", 100), "one")).await;
    let other = s.try_create(with_input("b", window("k", 100), "two")).await;
    assert_eq!(other, Err(StoreError::Exists { run: run("a"), what: "input" }));
    let other = NewRun { workflow: workflow("other"), ..with_input("b", window("k", 100), "one") };
    assert_eq!(s.try_create(other).await, Err(StoreError::Exists { run: run("a"), what: "workflow" }));
}

async fn window_outlives_the_run(s: Scene<'_>) {
    s.create(admitted_as("a", window("k", 100))).await;
    end(&s, "a").await;
    assert_eq!(s.create(admitted_as("b", window("k", 100))).await, joined("a", Status::Completed));
    s.store.delete(run("a"), WHY.to_owned()).await.unwrap();
    assert_eq!(s.try_create(admitted_as("b", window("k", 100))).await, Err(tombstone(run("a"))));
}

async fn window_that_is_over_is_forgotten_by_retention(s: Scene<'_>) {
    s.create(admitted_as("a", window("k", 100))).await;
    s.create(admitted_as("b", window("l", 1_000))).await;
    s.clock.set(100);
    let retained = s.store.retain(crate::Retention { age: ms(1_000_000), limit: 10 }).await.unwrap();
    assert_eq!((retained.runs, retained.rows), (0, 1));
    assert_eq!(s.create(admitted_as("c", window("l", 1_000))).await, joined("b", Status::Queued));
}

async fn singleton_finds_the_live_run_with_its_key(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", false))).await;
    assert_eq!(s.create(with_input("b", single("k", false), "other")).await, joined("a", Status::Queued));
    admit(&s).await;
    end(&s, "a").await;
    assert!(is_new(&s.create(admitted_as("b", single("k", false))).await));
    assert_eq!(s.create(admitted_as("c", single("k", false))).await, joined("b", Status::Queued));
}

async fn singleton_begins_where_nobody_lives(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", false))).await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert!(s.view(&run("a")).await.ready);
}

async fn singleton_that_replaces_asks_the_other_to_cancel_and_begins_when_it_has_ended(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", true))).await;
    assert_eq!(admit(&s).await.admitted, 1);
    let mut a = s.reclaim(&run("a")).await;
    assert!(is_new(&s.create(admitted_as("b", single("k", true))).await));
    let inbox = s.inbox(&run("a")).await;
    assert_eq!(inbox.iter().map(|item| item.kind).collect::<Vec<_>>(), [InboxKind::Cancel]);
    assert_eq!(inbox[0].meta, Some(bytes("{}")));
    assert_eq!(admit(&s).await.admitted, 0, "the other still cleans up");
    let commit = a.commit().event("end").finish();
    s.apply(&mut a, commit).await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert!(s.view(&run("b")).await.ready);
}

async fn singleton_that_replaces_a_plain_one_waits_for_its_end_too(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", false))).await;
    assert_eq!(admit(&s).await.admitted, 1);
    let mut a = s.reclaim(&run("a")).await;
    assert!(is_new(&s.create(admitted_as("b", single("k", true))).await));
    assert_eq!(s.inbox(&run("a")).await.iter().map(|item| item.kind).collect::<Vec<_>>(), [InboxKind::Cancel]);
    assert_eq!(admit(&s).await.admitted, 0, "the other still cleans up");
    assert_eq!(s.create(admitted_as("c", single("k", false))).await, joined("b", Status::Queued), "b has the key now");
    let commit = a.commit().event("end").finish();
    s.apply(&mut a, commit).await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert!(s.view(&run("b")).await.ready);
}

async fn plain_singleton_waits_for_one_that_was_replaced_by_nobody_who_lives(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", true))).await;
    admit(&s).await;
    let mut a = s.reclaim(&run("a")).await;
    s.create(admitted_as("b", single("k", true))).await;
    admit(&s).await;
    s.deliver(control(&run("b"), Control::Cancel, "stop")).await;
    end(&s, "b").await;
    assert!(is_new(&s.create(admitted_as("c", single("k", false))).await), "a was told to make way");
    assert_eq!(admit(&s).await.admitted, 0, "and is still there");
    let commit = a.commit().event("end").finish();
    s.apply(&mut a, commit).await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert!(s.view(&run("c")).await.ready);
}

async fn singleton_that_replaces_one_that_was_held_ends_that_at_once(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", true))).await;
    admit(&s).await;
    let mut a = s.reclaim(&run("a")).await;
    for id in ["b", "c", "d"] {
        assert!(is_new(&s.create(admitted_as(id, single("k", true))).await));
        admit(&s).await;
    }
    for id in ["b", "c"] {
        end(&s, id).await;
    }
    assert_eq!(admit(&s).await.admitted, 0);
    let commit = a.commit().event("end").finish();
    s.apply(&mut a, commit).await;
    assert_eq!(admit(&s).await.admitted, 1, "the newest");
    assert!(s.view(&run("d")).await.ready);
}

async fn singleton_started_by_two_at_once_is_one_run(s: Scene<'_>) {
    let second = s.other().await;
    for n in 0..10 {
        let new = |id: &str| vec![admitted_as(&format!("{id}{n}"), single(&format!("k{n}"), false))];
        let (one, two) = join(s.store.create(new("a")), second.create(new("b"))).await;
        let answers = [one[0].clone().unwrap(), two[0].clone().unwrap()];
        assert_eq!(answers.iter().filter(|created| is_new(created)).count(), 1, "{answers:?}");
    }
}

async fn debounced_start_replaces_the_input_and_is_put_off(s: Scene<'_>) {
    s.create(with_input("a", debounced("k", 50, 500), "one")).await;
    s.clock.set(40);
    assert_eq!(s.create(with_input("b", debounced("k", 50, 500), "two")).await, joined("a", Status::Queued));
    s.clock.set(50);
    let admitted = admit(&s).await;
    assert_eq!((admitted.admitted, admitted.next_at), (0, Some(at(90))));
    s.clock.set(90);
    assert_eq!(admit(&s).await.admitted, 1);
    assert_eq!(s.load(&run("a")).await.input, bytes("two"));
}

async fn debounced_start_waits_no_longer_than_it_may(s: Scene<'_>) {
    for n in 0..10 {
        s.clock.set(n * 40);
        s.create(with_input(&format!("r{n}"), debounced("k", 50, 120), &n.to_string())).await;
        admit(&s).await;
    }
    let first = s.load(&run("r0")).await;
    assert_eq!(first.input, bytes("3"), "at 120 it began, with what was said until then");
    assert_eq!(s.store.get(run("r1")).await, Err(StoreError::NotFound(run("r1"))));
}

async fn debounced_start_after_the_other_began_is_a_new_one(s: Scene<'_>) {
    s.create(with_input("a", debounced("k", 50, 500), "one")).await;
    s.clock.set(50);
    admit(&s).await;
    assert!(is_new(&s.create(with_input("b", debounced("k", 50, 500), "two")).await));
    assert_eq!(s.load(&run("a")).await.input, bytes("one"));
    assert_eq!(s.create(with_input("c", debounced("k", 50, 500), "three")).await, joined("b", Status::Queued));
}

async fn debounced_run_that_waits_in_line_keeps_its_place_and_gets_the_new_input(s: Scene<'_>) {
    s.create(admitted_as("x", limited(&[at_once("l", 1)]))).await;
    admit(&s).await;
    let both = || Admission { limits: vec![at_once("l", 1)], ..debounced("k", 50, 500) };
    s.create(with_input("a", both(), "one")).await;
    s.clock.set(50);
    assert_eq!(admit(&s).await.admitted, 0);
    s.create(admitted_as("y", limited(&[at_once("l", 1)]))).await;
    admit(&s).await;
    assert_eq!(s.create(with_input("b", both(), "two")).await, joined("a", Status::Queued));
    end(&s, "x").await;
    assert_eq!(admit(&s).await.admitted, 1);
    assert!(s.view(&run("a")).await.ready, "before the one that came after it");
    assert_eq!(s.load(&run("a")).await.input, bytes("two"));
}

async fn debounced_input_of_any_size_is_replaced(s: Scene<'_>) {
    let large = "x".repeat(5_000);
    for (n, input) in ["small", &large, "again", &large].into_iter().enumerate() {
        s.create(with_input(&format!("r{n}"), debounced("k", 50, 500), input)).await;
        assert_eq!(s.load(&run("r0")).await.input, bytes(input));
    }
}

async fn repeated_start_finds_the_run_it_made(s: Scene<'_>) {
    for (id, admission) in [("a", single("k", false)), ("b", window("k", 100)), ("c", single("l", true))] {
        let new = admitted_as(id, admission);
        assert!(is_new(&s.create(new.clone()).await));
        assert_eq!(s.create(new).await, Created::Existing { status: Status::Queued });
    }
    assert_eq!(s.inbox(&run("c")).await, [], "it does not replace itself");
    let new = with_input("d", debounced("k", 50, 500), "one");
    s.create(new.clone()).await;
    s.create(with_input("e", debounced("k", 50, 500), "two")).await;
    assert_eq!(s.create(new).await, Created::Existing { status: Status::Queued });
    assert_eq!(s.load(&run("d")).await.input, bytes("two"), "what came later stays");
}

async fn signals_of_a_start_go_to_the_run_that_answers_for_it(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", false))).await;
    let signals = vec![letter("go", "1", "hello")];
    s.create(NewRun { signals, ..admitted_as("b", single("k", false)) }).await;
    assert_eq!(s.mail(&run("a")).await, ["hello"]);
}

async fn start_keys_of_another_kind_or_namespace_are_others(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    for (id, admission) in [("a", single("k", false)), ("b", window("k", 100)), ("c", debounced("k", 50, 500))] {
        assert!(is_new(&s.create(admitted_as(id, admission.clone())).await), "{id}");
        let theirs = NewRun { run: run_in("other", id), ..admitted_as(id, admission) };
        assert!(is_new(&s.create(theirs).await), "{id}");
    }
}

async fn start_keys_are_free_again_after_the_end(s: Scene<'_>) {
    s.create(admitted_as("a", single("k", true))).await;
    admit(&s).await;
    end(&s, "a").await;
    admit(&s).await;
    s.store.delete(run("a"), WHY.to_owned()).await.unwrap();
    assert!(is_new(&s.create(admitted_as("b", single("k", true))).await));
    assert_eq!(admit(&s).await.admitted, 1);
}
