//! The journal: append-only, indexed from 0, without gaps, each index written once.

use outlast_core::id::{Fence, Index, TxnId};
use outlast_core::record::Record;

use super::scene::*;
use crate::{CommitError, EXCERPT_BYTES_MAX, Excerpt, Load, LoadFrom, Rejection, Resolution, StoreError};

super::stories! {
    journal_grows_from_0_without_gaps,
    conflict_returns_the_event_that_is_there,
    conflict_changes_nothing,
    every_index_in_the_past_conflicts_with_its_own_event,
    skipping_ahead_is_refused,
    commit_without_events_appends_nothing_and_stands_where_it_stood,
    commit_without_events_must_know_the_index_too,
    batch_with_one_conflict_lets_its_neighbours_succeed,
    two_commits_of_one_run_in_one_batch_are_applied_in_order,
    second_of_two_commits_in_a_batch_builds_on_the_first,
    same_commit_sent_twice_is_written_once,
    load_begins_where_it_is_asked_to,
    load_beyond_the_end_is_empty_not_an_error,
    one_refused_load_leaves_its_neighbours,
    events_come_back_as_they_went,
    commit_of_an_unknown_run_is_not_applied,
    commit_in_the_wrong_namespace_does_not_find_the_run,
    commit_of_a_deleted_run_is_not_applied,
    rejected_commit_leaves_nothing_at_all,
    excerpt_pages_through_the_journal,
    excerpt_ends_with_the_event_that_reaches_its_bytes,
    excerpt_of_an_unknown_run_is_an_error_and_beyond_the_end_is_empty,
    transaction_nobody_began_is_resolved_as_not_applied,
    committed_tells_the_time_of_the_store,
    journals_of_two_runs_do_not_mix,
}

async fn journal_grows_from_0_without_gaps(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("zero");
    assert_eq!(s.apply(&mut held, commit).await.next, Index(1));
    let commit = held.commit().event("one").event("two");
    assert_eq!(s.apply(&mut held, commit).await.next, Index(3));
    assert_eq!(s.story(&held.run).await, ["zero", "one", "two"]);
    assert_eq!(s.view(&held.run).await.next, Index(3));
}

async fn conflict_returns_the_event_that_is_there(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let first = held.commit().event("mine");
    let zombie = held.commit().event("another");
    s.apply(&mut held, first).await;
    let refused = s.commit(zombie).await.unwrap_err();
    assert_eq!(refused, CommitError::Conflict { expected: Index(0), found: Box::new(event("mine")) });
}

async fn conflict_changes_nothing(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let stale = held.commit().event("another").sleep("t", 100).suspend();
    let first = held.commit().event("mine");
    s.apply(&mut held, first).await;
    assert!(s.commit(stale).await.is_err());
    assert_eq!(s.story(&held.run).await, ["mine"], "events are immutable");
    assert_eq!(s.awaiting(&held.run).await, [], "nothing of a refused commit is kept");
    let commit = held.commit().event("still mine");
    s.apply(&mut held, commit).await;
}

async fn every_index_in_the_past_conflicts_with_its_own_event(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0").event("1").event("2");
    s.apply(&mut held, commit).await;
    for index in 0..3 {
        let commit = held.commit().event("x").change(|commit| commit.expected = Index(index));
        let found = Box::new(event(&index.to_string()));
        assert_eq!(s.commit(commit).await.unwrap_err(), CommitError::Conflict { expected: Index(index), found });
    }
}

async fn skipping_ahead_is_refused(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0");
    s.apply(&mut held, commit).await;
    for index in [2, 3, u64::MAX] {
        let commit = held.commit().event("x").change(|commit| commit.expected = Index(index));
        let refused = s.commit(commit).await.unwrap_err();
        assert_eq!(refused, CommitError::Rejected(Rejection::SkipsAhead { next: Index(1) }));
    }
    assert_eq!(s.story(&held.run).await, ["0"]);
}

async fn commit_without_events_appends_nothing_and_stands_where_it_stood(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0");
    s.apply(&mut held, commit).await;
    let empty = held.commit();
    assert_eq!(s.apply(&mut held, empty).await.next, Index(1));
    assert_eq!(s.story(&held.run).await, ["0"]);
}

async fn commit_without_events_must_know_the_index_too(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let stale = held.commit();
    let commit = held.commit().event("0");
    s.apply(&mut held, commit).await;
    assert!(matches!(s.commit(stale).await, Err(CommitError::Conflict { .. })));
}

async fn batch_with_one_conflict_lets_its_neighbours_succeed(s: Scene<'_>) {
    let (mut a, b, c) = (s.own("a").await, s.own("b").await, s.own("c").await);
    let stale = a.commit().event("stale");
    let commit = a.commit().event("first");
    s.apply(&mut a, commit).await;
    let answers = s.store.commit(vec![b.commit().event("b"), stale, c.commit().event("c")]).await;
    assert!(answers[0].is_ok(), "{answers:?}");
    assert!(matches!(answers[1], Err(CommitError::Conflict { .. })), "{answers:?}");
    assert!(answers[2].is_ok(), "{answers:?}");
    assert_eq!(s.story(&b.run).await, ["b"]);
    assert_eq!(s.story(&a.run).await, ["first"]);
    assert_eq!(s.story(&c.run).await, ["c"]);
}

async fn two_commits_of_one_run_in_one_batch_are_applied_in_order(s: Scene<'_>) {
    let held = s.own("a").await;
    let second = held.commit().event("1").change(|commit| commit.expected = Index(1));
    let answers = s.store.commit(vec![held.commit().event("0"), second]).await;
    assert_eq!(answers[0].as_ref().unwrap().next, Index(1));
    assert_eq!(answers[1].as_ref().unwrap().next, Index(2));
    assert_eq!(s.story(&held.run).await, ["0", "1"]);
}

async fn second_of_two_commits_in_a_batch_builds_on_the_first(s: Scene<'_>) {
    let held = s.own("a").await;
    let end = held.commit().event("0").finish();
    let after = held.commit().event("1").change(|commit| commit.expected = Index(1));
    let answers = s.store.commit(vec![end, after]).await;
    assert!(answers[0].is_ok());
    assert!(matches!(answers[1], Err(CommitError::Fenced { .. })), "the first one ended the run: {answers:?}");
    assert_eq!(s.story(&held.run).await, ["0"]);
}

async fn same_commit_sent_twice_is_written_once(s: Scene<'_>) {
    let held = s.own("a").await;
    let commit = held.commit().event("0").task(new_task("t", Some("t")));
    let answers = s.store.commit(vec![commit.clone(), commit]).await;
    assert!(answers[0].is_ok());
    let found = Box::new(event("0"));
    assert_eq!(answers[1], Err(CommitError::Conflict { expected: Index(0), found }));
}

async fn load_begins_where_it_is_asked_to(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0").event("1").event("2");
    s.apply(&mut held, commit).await;
    for first in 0..=3 {
        let load = Load { run: held.run.clone(), from: LoadFrom::Index(Index(first)) };
        let loaded = s.store.load(vec![load]).await.remove(0).unwrap();
        assert_eq!(loaded.first, Index(first));
        assert_eq!(loaded.events.len() as u64, 3 - first);
        assert_eq!(loaded.events.first().cloned(), (first < 3).then(|| event(&first.to_string())));
    }
}

async fn load_beyond_the_end_is_empty_not_an_error(s: Scene<'_>) {
    let a = s.start("a").await;
    for first in [1, 1 << 40, u64::MAX] {
        let load = Load { run: a.clone(), from: LoadFrom::Index(Index(first)) };
        let loaded = s.store.load(vec![load]).await.remove(0).unwrap();
        assert_eq!((loaded.first, loaded.events), (Index(first), Vec::new()));
    }
}

async fn one_refused_load_leaves_its_neighbours(s: Scene<'_>) {
    let (a, b) = (s.start("a").await, s.ended("b").await);
    let load = |run| Load { run, from: LoadFrom::Index(Index(0)) };
    let answers = s.store.load(vec![load(a.clone()), load(run("none")), load(b.clone()), load(a.clone())]).await;
    assert_eq!(answers[0].as_ref().unwrap().run, a);
    assert_eq!(answers[1], Err(StoreError::NotFound(run("none"))));
    assert_eq!(answers[2].as_ref().unwrap().events, [event("end")]);
    assert_eq!(answers[3], answers[0], "each load has its own answer, in order");
}

async fn events_come_back_as_they_went(s: Scene<'_>) {
    let blank = Record { kind: 0, version: 0, key: None, at: at(0), meta: None, payload: None };
    let records = vec![
        blank.clone(),
        Record { meta: Some(bytes("")), payload: Some(bytes("")), ..blank.clone() },
        Record { kind: u16::MAX, version: u16::MAX, at: at(i64::MAX), ..blank.clone() },
        Record { at: at(i64::MIN), key: Some(key(&"k".repeat(1024))), ..blank.clone() },
        Record { meta: Some(bytes("{\"a\":1}")), payload: Some(bytes::Bytes::from(vec![0, 255, 0])), ..blank },
    ];
    let mut held = s.own("a").await;
    let commit = held.commit().change(|commit| commit.events.clone_from(&records));
    s.apply(&mut held, commit).await;
    assert_eq!(s.load(&held.run).await.events, records, "nothing is not the same as empty");
}

async fn commit_of_an_unknown_run_is_not_applied(s: Scene<'_>) {
    let commit = outlast_core::commit::Commit::new(run("none"), Fence(1), Index(0)).event("x");
    let refused = s.commit(commit).await.unwrap_err();
    assert_eq!(refused, CommitError::NotApplied(StoreError::NotFound(run("none"))));
}

async fn commit_in_the_wrong_namespace_does_not_find_the_run(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    let held = s.own("a").await;
    let there = run_in("other", "a");
    let commit = held.commit().event("x").change(|commit| commit.run = there.clone());
    assert_eq!(s.commit(commit).await.unwrap_err(), CommitError::NotApplied(StoreError::NotFound(there)));
    assert_eq!(s.story(&held.run).await, [""; 0]);
}

async fn commit_of_a_deleted_run_is_not_applied(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("end").finish();
    s.apply(&mut held, commit).await;
    s.store.delete(held.run.clone(), WHY.to_owned()).await.unwrap();
    let refused = s.commit(held.commit().event("x")).await.unwrap_err();
    assert_eq!(refused, CommitError::NotApplied(tombstone(held.run.clone())));
}

/// Row 31: history and state diverged. A commit is one transaction.
async fn rejected_commit_leaves_nothing_at_all(s: Scene<'_>) {
    let held = s.own("a").await;
    let other = s.start("other").await;
    let commit = held
        .commit()
        .event("0")
        .sleep("t", 50)
        .wait_signal("w", "go")
        .task(new_task("task", Some("task")))
        .child(child_of(&held, "child", "child"))
        .deliver(signal(&other, "go", "1", "hi"))
        .fires("no such timer")
        .suspend();
    assert!(matches!(s.commit(commit).await, Err(CommitError::Rejected(Rejection::TimerGone { .. }))));
    assert_eq!(s.story(&held.run).await, [""; 0]);
    assert_eq!(s.awaiting(&held.run).await, []);
    assert_eq!(s.tasks("default").await, []);
    assert_eq!(s.store.get(run("child")).await.unwrap_err(), StoreError::NotFound(run("child")));
    assert_eq!(s.mail(&other).await, [""; 0]);
    assert!(s.view(&held.run).await.owner.is_some(), "the sender still owns the run");
}

async fn excerpt_pages_through_the_journal(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0").event("1").event("2");
    s.apply(&mut held, commit).await;
    let page = |from, limit| Excerpt { run: held.run.clone(), generation: None, from: Index(from), limit };
    assert_eq!(s.store.excerpt(page(0, 2)).await.unwrap(), [event("0"), event("1")]);
    assert_eq!(s.store.excerpt(page(2, 2)).await.unwrap(), [event("2")]);
    assert_eq!(s.store.excerpt(page(0, 0)).await.unwrap(), []);
    assert_eq!(s.store.excerpt(page(0, usize::MAX)).await.unwrap().len(), 3);
}

/// A page is counted in bytes too: it never holds more than the limit and one event, and never nothing.
async fn excerpt_ends_with_the_event_that_reaches_its_bytes(s: Scene<'_>) {
    let large = 2 << 20;
    let mut held = s.own("a").await;
    let sizes = [EXCERPT_BYTES_MAX - large, large - 1, 1, large, large, 7, 0, large - 7, large, 0];
    for size in sizes {
        let record = Record { payload: Some(bytes::Bytes::from(vec![b'x'; size])), ..event("") };
        let commit = held.commit().change(|commit| commit.events.push(record));
        s.apply(&mut held, commit).await;
    }
    let mut excerpt = Excerpt { run: held.run.clone(), generation: None, from: Index(0), limit: 100 };
    let mut pages = Vec::new();
    loop {
        let page = s.store.excerpt(excerpt.clone()).await.unwrap();
        let is_last = excerpt.is_last(&page);
        pages.push(page.iter().map(Record::payload_bytes).collect::<Vec<_>>());
        excerpt = excerpt.after(&page);
        if is_last {
            break;
        }
    }
    // One byte is missing after two events, so that the third still comes; nothing comes after the event that reaches it.
    let expected: [&[usize]; 4] =
        [&[EXCERPT_BYTES_MAX - large, large - 1, 1], &[large, large], &[7, 0, large - 7, large], &[0]];
    assert_eq!(pages, expected);
}

async fn excerpt_of_an_unknown_run_is_an_error_and_beyond_the_end_is_empty(s: Scene<'_>) {
    let a = s.ended("a").await;
    let page = |run, generation, from| Excerpt { run, generation, from: Index(from), limit: 10 };
    let refused = s.store.excerpt(page(run("none"), None, 0)).await.unwrap_err();
    assert_eq!(refused, StoreError::NotFound(run("none")));
    for from in [1, u64::MAX] {
        assert_eq!(s.store.excerpt(page(a.clone(), None, from)).await.unwrap(), []);
    }
    let future = Some(outlast_core::id::Generation(u64::MAX));
    assert_eq!(s.store.excerpt(page(a, future, 0)).await.unwrap(), []);
}

async fn transaction_nobody_began_is_resolved_as_not_applied(s: Scene<'_>) {
    let txn = TxnId(uuid::Uuid::from_u128(7));
    assert_eq!(s.store.resolve(txn).await.unwrap(), Resolution::NotApplied);
    assert_eq!(s.store.resolve(txn).await.unwrap(), Resolution::NotApplied, "asking again changes nothing");
}

async fn committed_tells_the_time_of_the_store(s: Scene<'_>) {
    let held = s.own("a").await;
    s.clock.set(42);
    assert_eq!(s.commit(held.commit().event("0")).await.unwrap().now, at(42));
}

async fn journals_of_two_runs_do_not_mix(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    s.create(new_run(&run_in("other", "a"))).await;
    let mut here = s.own("a").await;
    let mut there = s.reclaim(&run_in("other", "a")).await;
    let commit = here.commit().event("here");
    s.apply(&mut here, commit).await;
    let commit = there.commit().event("there");
    s.apply(&mut there, commit).await;
    assert_eq!(s.story(&here.run).await, ["here"]);
    assert_eq!(s.story(&there.run).await, ["there"]);
}
