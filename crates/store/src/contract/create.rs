//! Creating runs: idempotent by id, and never over an older one.

use bytes::Bytes;
use outlast_core::commit::{Commit, Control, NewRun, NewTimer, Owner, Parent, Status, WaitKind};
use outlast_core::id::{AttributeName, ClaimId, Fence, Generation, Index, RunId};

use super::scene::*;
use crate::{Created, Delivered, StoreError};

super::stories! {
    new_run_is_queued_and_ready,
    creating_twice_gives_the_existing_run,
    creating_twice_in_one_batch_gives_the_existing_run,
    creating_through_two_handles_at_once_creates_once,
    same_id_with_another_input_is_refused_and_the_original_is_intact,
    same_id_with_another_workflow_is_refused_and_the_original_is_intact,
    same_id_with_another_parent_is_refused,
    same_id_with_another_version_is_the_existing_run,
    creating_a_run_that_ended_tells_how_it_ended,
    owner_from_the_start_holds_the_run_and_nobody_else_gets_it,
    lost_reply_of_create_is_repeated_and_learns_the_fence,
    another_owner_gets_the_existing_run_without_a_fence,
    repeated_create_after_the_first_commit_is_existing,
    unknown_namespace_is_refused,
    one_id_in_two_namespaces_is_two_runs,
    one_refused_create_leaves_its_neighbours,
    signal_with_start_is_in_the_inbox_of_the_new_run,
    signal_with_start_reaches_a_run_that_exists,
    signal_with_start_repeated_is_applied_once,
    signal_with_start_that_is_refused_leaves_nothing,
    start_signal_and_cancel_all_stay,
    history_is_the_journal_prefix_of_a_fork,
    fork_has_the_timers_and_waits_it_was_created_with,
    deleted_id_is_refused,
    attributes_come_with_the_run,
    ids_of_the_utmost_length_and_odd_letters_come_back_as_they_were,
    input_is_bytes_not_text,
    input_may_be_empty,
    created_at_is_the_time_of_the_store,
}

async fn new_run_is_queued_and_ready(s: Scene<'_>) {
    s.clock.set(5);
    let created = s.create(new_run(&run("a"))).await;
    assert_eq!(created, Created::Created { fence: Fence(0), at: at(5) });
    let view = s.view(&run("a")).await;
    assert_eq!((view.status, view.ready, view.owner), (Status::Queued, true, None));
    assert_eq!((view.generation, view.next, view.tries), (Generation(0), Index(0), 0));
    assert_eq!((view.created_at, view.finished_at), (at(5), None));
    assert_eq!((view.workflow, view.version), (workflow("checkout"), version("1")));
}

async fn creating_twice_gives_the_existing_run(s: Scene<'_>) {
    s.start("a").await;
    s.clock.set(9);
    assert_eq!(s.create(new_run(&run("a"))).await, Created::Existing { status: Status::Queued });
    assert_eq!(s.view(&run("a")).await.created_at, at(0), "the first one stands");
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Queued, 1)]);
}

async fn creating_twice_in_one_batch_gives_the_existing_run(s: Scene<'_>) {
    let answers = s.store.create(vec![new_run(&run("a")), new_run(&run("a"))]).await;
    assert_eq!(answers[0], Ok(Created::Created { fence: Fence(0), at: at(0) }));
    assert_eq!(answers[1], Ok(Created::Existing { status: Status::Queued }));
}

async fn creating_through_two_handles_at_once_creates_once(s: Scene<'_>) {
    let other = s.other().await;
    for round in 0..20 {
        let run = run(&format!("run-{round}"));
        let (one, two) =
            futures_util::future::join(s.store.create(vec![new_run(&run)]), other.create(vec![new_run(&run)])).await;
        let created = |answers: &[Result<Created, StoreError>]| matches!(answers, [Ok(Created::Created { .. })]);
        let existing = |answers: &[Result<Created, StoreError>]| matches!(answers, [Ok(Created::Existing { .. })]);
        assert!(
            (created(&one) && existing(&two)) || (existing(&one) && created(&two)),
            "one creates, the other finds it: {one:?} {two:?}"
        );
    }
}

/// Row 26: a duplicate start overwrote the first run.
async fn same_id_with_another_input_is_refused_and_the_original_is_intact(s: Scene<'_>) {
    let a = s.start("a").await;
    let other = NewRun { input: bytes("other"), ..new_run(&a) };
    let refused = s.try_create(other).await.unwrap_err();
    assert_eq!(refused, StoreError::Exists { run: a.clone(), what: "input" });
    assert_eq!(s.load(&a).await.input, bytes("{}"), "the original input stands");
}

/// Row 26.
async fn same_id_with_another_workflow_is_refused_and_the_original_is_intact(s: Scene<'_>) {
    let a = s.start("a").await;
    let other = NewRun { workflow: workflow("refund"), ..new_run(&a) };
    assert_eq!(s.try_create(other).await.unwrap_err(), StoreError::Exists { run: a.clone(), what: "workflow" });
    assert_eq!(s.view(&a).await.workflow, workflow("checkout"));
}

async fn same_id_with_another_parent_is_refused(s: Scene<'_>) {
    let a = s.start("a").await;
    let parent =
        Parent { run: RunId::new("p").unwrap(), generation: Generation(0), key: key("child"), detached: false };
    let other = NewRun { parent: Some(parent), ..new_run(&a) };
    assert_eq!(s.try_create(other).await.unwrap_err(), StoreError::Exists { run: a.clone(), what: "parent" });
    assert_eq!(s.view(&a).await.parent, None);
}

async fn same_id_with_another_version_is_the_existing_run(s: Scene<'_>) {
    let a = s.start("a").await;
    let newer = NewRun { version: version("2"), ..new_run(&a) };
    assert_eq!(s.create(newer).await, Created::Existing { status: Status::Queued }, "a deploy must not break retries");
    assert_eq!(s.view(&a).await.version, version("1"), "a run stays with the version it began with");
}

async fn creating_a_run_that_ended_tells_how_it_ended(s: Scene<'_>) {
    let a = s.ended("a").await;
    assert_eq!(s.create(new_run(&a)).await, Created::Existing { status: Status::Completed });
    assert_eq!(s.story(&a).await, ["end"], "it is not run again");
}

async fn owner_from_the_start_holds_the_run_and_nobody_else_gets_it(s: Scene<'_>) {
    let lease = s.node("first", 1_000).await;
    let held = s.own_under(lease, "a").await;
    assert_eq!(held.fence, Fence(1));
    let view = s.view(&held.run).await;
    assert_eq!((view.status, view.owner, view.ready), (Status::Running, Some(lease), false));
    let other = s.node("second", 1_000).await;
    assert_eq!(s.claim_ids(other, 1).await, [""; 0], "a run that is driven is not there to be claimed");
}

async fn lost_reply_of_create_is_repeated_and_learns_the_fence(s: Scene<'_>) {
    let lease = s.node("first", 1_000).await;
    let owner = Some(Owner { lease, claim: ClaimId(u64::MAX) });
    let new = NewRun { owner, ..new_run(&run("a")) };
    let first = s.create(new.clone()).await;
    s.clock.set(3);
    assert_eq!(s.create(new).await, first, "the holder must learn that it holds the run");
}

async fn another_owner_gets_the_existing_run_without_a_fence(s: Scene<'_>) {
    let first = s.node("first", 1_000).await;
    let second = s.node("second", 1_000).await;
    let new = |lease, claim| NewRun { owner: Some(Owner { lease, claim: ClaimId(claim) }), ..new_run(&run("a")) };
    s.create(new(first, 1)).await;
    assert_eq!(s.create(new(second, 1)).await, Created::Existing { status: Status::Running });
    assert_eq!(s.create(new(first, 2)).await, Created::Existing { status: Status::Running });
    assert_eq!(s.view(&run("a")).await.owner, Some(first));
}

async fn repeated_create_after_the_first_commit_is_existing(s: Scene<'_>) {
    let lease = s.node("first", 1_000).await;
    let new = NewRun { owner: Some(Owner { lease, claim: ClaimId(0) }), ..new_run(&run("a")) };
    let mut held = s.own_under(lease, "a").await;
    let commit = held.commit().event("one");
    s.apply(&mut held, commit).await;
    assert_eq!(s.create(new).await, Created::Existing { status: Status::Running }, "a program drives it already");
}

async fn unknown_namespace_is_refused(s: Scene<'_>) {
    let there = run_in("nowhere", "a");
    let refused = s.try_create(new_run(&there)).await.unwrap_err();
    assert_eq!(refused, StoreError::UnknownNamespace(namespace("nowhere")));
    assert_eq!(s.store.get(there.clone()).await.unwrap_err(), StoreError::NotFound(there));
}

async fn one_id_in_two_namespaces_is_two_runs(s: Scene<'_>) {
    s.store.put_namespace(namespace("other")).await.unwrap();
    let here = s.start("a").await;
    let there = run_in("other", "a");
    let created = s.create(NewRun { input: bytes("theirs"), ..new_run(&there) }).await;
    assert!(matches!(created, Created::Created { .. }), "ids are unique within a namespace only");
    s.deliver(signal(&there, "go", "1", "for them")).await;
    assert_eq!(s.mail(&here).await, [""; 0], "what is left for one tenant is not seen by another");
    assert_eq!(s.mail(&there).await, ["for them"]);
    assert_eq!(s.load(&here).await.input, bytes("{}"));
}

async fn one_refused_create_leaves_its_neighbours(s: Scene<'_>) {
    s.start("b").await;
    let clash = NewRun { input: bytes("other"), ..new_run(&run("b")) };
    let answers =
        s.store.create(vec![new_run(&run("a")), clash, new_run(&run_in("nowhere", "x")), new_run(&run("c"))]).await;
    assert!(answers[0].is_ok() && answers[1].is_err() && answers[2].is_err() && answers[3].is_ok(), "{answers:?}");
    assert_eq!(s.store.count(namespace("default")).await.unwrap(), [(Status::Queued, 3)]);
}

/// Row 12: a signal straight after the start was discarded.
async fn signal_with_start_is_in_the_inbox_of_the_new_run(s: Scene<'_>) {
    let new = NewRun { signals: vec![letter("go", "1", "one"), letter("go", "2", "two")], ..new_run(&run("a")) };
    assert!(matches!(s.create(new).await, Created::Created { .. }));
    assert_eq!(s.mail(&run("a")).await, ["one", "two"]);
}

async fn signal_with_start_reaches_a_run_that_exists(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").wait_signal("w", "go").suspend();
    s.apply(&mut held, commit).await;
    assert!(!s.view(&held.run).await.ready);
    let new = NewRun { signals: vec![letter("go", "1", "one")], ..new_run(&held.run) };
    assert_eq!(s.create(new).await, Created::Existing { status: Status::Waiting });
    assert_eq!(s.mail(&held.run).await, ["one"]);
    assert!(s.view(&held.run).await.ready, "the signal wakes the run in the same transaction");
}

async fn signal_with_start_repeated_is_applied_once(s: Scene<'_>) {
    let new = NewRun { signals: vec![letter("go", "1", "one")], ..new_run(&run("a")) };
    s.create(new.clone()).await;
    s.create(new).await;
    assert_eq!(s.mail(&run("a")).await, ["one"]);
    assert_eq!(s.deliver(signal(&run("a"), "go", "1", "one")).await, Delivered::Duplicate);
}

async fn signal_with_start_that_is_refused_leaves_nothing(s: Scene<'_>) {
    let a = s.start("a").await;
    let new = NewRun { input: bytes("other"), signals: vec![letter("go", "1", "one")], ..new_run(&a) };
    assert!(s.try_create(new).await.is_err());
    assert_eq!(s.mail(&a).await, [""; 0], "start and signal are one transaction");
    assert_eq!(s.deliver(signal(&a, "go", "1", "one")).await, Delivered::Buffered, "its id is not used up");
}

/// Row 39: start and terminate in one batch were both discarded.
async fn start_signal_and_cancel_all_stay(s: Scene<'_>) {
    let a = s.start("a").await;
    let deliveries = vec![control(&a, Control::Cancel, "c"), signal(&a, "go", "s", "late")];
    let answers = s.store.deliver(deliveries).await;
    assert_eq!(answers, [Ok(Delivered::Delivered), Ok(Delivered::Buffered)]);
    assert_eq!(s.inbox(&a).await.len(), 2, "a run nobody has driven yet keeps what it is told");
    assert!(s.view(&a).await.ready);
}

async fn history_is_the_journal_prefix_of_a_fork(s: Scene<'_>) {
    let history = vec![event("zero"), event("one")];
    let new = NewRun { history: history.clone(), ..new_run(&run("fork")) };
    s.create(new).await;
    assert_eq!(s.view(&run("fork")).await.next, Index(2));
    assert_eq!(s.load(&run("fork")).await.events, history);
    let mut held = s.reclaim(&run("fork")).await;
    assert_eq!(held.next, Index(2));
    let commit = held.commit().event("two");
    s.apply(&mut held, commit).await;
    assert_eq!(s.story(&run("fork")).await, ["zero", "one", "two"]);
}

async fn fork_has_the_timers_and_waits_it_was_created_with(s: Scene<'_>) {
    s.clock.set(5);
    let timers = vec![NewTimer { timer: timer("nap"), due: at(100) }];
    let waits = vec![new_wait("ship", WaitKind::Approval), new_wait("go", WaitKind::Signal)];
    let fork = run("fork");
    let new = NewRun { history: vec![event("zero")], timers, waits, ..new_run(&fork) };
    s.create(new.clone()).await;
    assert_eq!(s.create(new).await, Created::Existing { status: Status::Queued }, "once");
    assert_eq!(s.awaiting(&fork).await.len(), 3);
    assert_eq!(s.deliver(decide(&fork, "ship", "1")).await, Delivered::Delivered);
    assert_eq!(s.deliver(decide(&fork, "ship", "2")).await, Delivered::Lost);
    s.clock.set(99);
    assert_eq!(s.sweep().await.fired, 0);
    s.clock.set(100);
    assert_eq!(s.sweep().await.fired, 1);
    assert_eq!(s.inbox(&fork).await.len(), 2);
    let mut held = s.reclaim(&fork).await;
    let over = held.commit().event("over").finish();
    assert!(s.commit(over).await.is_err(), "the answer must be read first");
    let inbox: Vec<_> = s.inbox(&fork).await.iter().map(|item| item.id).collect();
    let over = Commit { consumed: inbox, ..held.commit().event("over").finish() };
    s.apply(&mut held, over).await;
    assert_eq!(s.awaiting(&fork).await, [], "a run that ended owns nothing");
}

async fn deleted_id_is_refused(s: Scene<'_>) {
    let a = s.ended("a").await;
    s.store.delete(a.clone(), WHY.to_owned()).await.unwrap();
    assert_eq!(s.try_create(new_run(&a)).await.unwrap_err(), tombstone(a));
}

async fn attributes_come_with_the_run(s: Scene<'_>) {
    let city = (AttributeName::new("city").unwrap(), "Zürich".to_owned());
    let age = (AttributeName::new("age").unwrap(), String::new());
    s.create(NewRun { attributes: vec![city, age], ..new_run(&run("a")) }).await;
    let found = s.store.attributes(run("a")).await.unwrap();
    assert_eq!(found, [("age".to_owned(), String::new()), ("city".to_owned(), "Zürich".to_owned())], "by name");
}

async fn ids_of_the_utmost_length_and_odd_letters_come_back_as_they_were(s: Scene<'_>) {
    let odd = ["x".repeat(RunId::BYTES_MAX), "ü/%_'\"\\ 🚲".to_owned(), "A".to_owned(), "a".to_owned(), " ".to_owned()];
    for id in &odd {
        s.start(id).await;
    }
    for id in &odd {
        assert_eq!(s.view(&run(id)).await.run, run(id), "no folding, no trimming, no escaping");
    }
}

async fn input_is_bytes_not_text(s: Scene<'_>) {
    let input = Bytes::from((0..=255).collect::<Vec<u8>>());
    s.create(NewRun { input: input.clone(), ..new_run(&run("a")) }).await;
    assert_eq!(s.load(&run("a")).await.input, input);
}

async fn input_may_be_empty(s: Scene<'_>) {
    let new = NewRun { input: Bytes::new(), ..new_run(&run("a")) };
    s.create(new.clone()).await;
    assert_eq!(s.load(&run("a")).await.input, Bytes::new());
    assert_eq!(s.create(new).await, Created::Existing { status: Status::Queued });
}

async fn created_at_is_the_time_of_the_store(s: Scene<'_>) {
    s.clock.set(-5);
    s.start("before 1970").await;
    s.clock.set(1 << 45);
    s.start("far ahead").await;
    assert_eq!(s.view(&run("before 1970")).await.created_at, at(-5));
    assert_eq!(s.view(&run("far ahead")).await.created_at, at(1 << 45));
}
