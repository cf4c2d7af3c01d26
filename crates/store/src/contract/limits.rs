//! Limits: one less, exactly, one more. Here a payload has at most 8 bytes, a commit 3 events, a run 3 signals.

use outlast_core::commit::{NewRun, NewWait, Snapshot, StandaloneTask, TaskOutcome, WaitKind};
use outlast_core::id::{AttributeName, Index, Revision, ScheduleId};
use outlast_core::limits::{ATTRIBUTE_BYTES_MAX, EVENT_META_BYTES_SPARE, TEXT_BYTES_MAX};
use outlast_core::record::Record;

use super::scene::*;
use crate::{CommitError, Created, Delivered, Fire, Rejection, Schedule, StoreError, TaskHeartbeat};

super::stories! {
    ;
    small limits:
    input_at_the_limit_passes_and_one_byte_more_does_not,
    event_at_the_limit_passes_and_one_byte_more_does_not,
    event_meta_has_room_beyond_the_limit_and_is_limited_too,
    commit_of_so_many_events_passes_and_one_more_does_not,
    history_is_limited_like_a_commit,
    signal_at_the_limit_passes_and_one_byte_more_does_not,
    answer_over_the_limit_is_refused_and_the_wait_stays_open,
    task_arguments_and_results_are_limited,
    snapshot_and_next_input_are_limited,
    schedule_rule_is_limited,
    signals_nobody_consumed_are_limited_per_run,
    consumed_signal_makes_room_for_another,
    full_mailbox_still_knows_duplicates,
    full_mailbox_answers_full_inside_a_commit_and_does_not_fail_it,
    repeated_start_with_a_full_mailbox_finds_the_run,
    start_with_more_signals_than_fit_leaves_nothing,
    child_over_the_limit_rejects_the_commit,
    short_texts_are_limited,
    short_texts_have_no_nul,
    attribute_values_are_limited,
}

async fn short_texts_are_limited(s: Scene<'_>) {
    let held = s.own("a").await;
    let (fits, long) = ("x".repeat(TEXT_BYTES_MAX), "x".repeat(TEXT_BYTES_MAX + 1));
    let refused = s.commit(held.commit().park(&long)).await.unwrap_err();
    assert!(matches!(refused, CommitError::Rejected(Rejection::Limit(_))), "{refused}");
    assert!(s.commit(held.commit().park(&fits)).await.is_ok());
}

/// PostgreSQL cannot keep one; so no store does, and a program that moves from one to the other meets no surprise.
async fn short_texts_have_no_nul(s: Scene<'_>) {
    let held = s.own("a").await;
    let nul = || "a\0b".to_owned();
    let wait = |token, assignee| NewWait { token, assignee, ..new_wait("w", WaitKind::Callback) };
    let name = AttributeName::new("city").unwrap();
    let refused = [
        held.commit().park("a\0b"),
        held.commit().change(|commit| commit.waits.push(wait(Some(nul()), None))),
        held.commit().change(|commit| commit.waits.push(wait(None, Some(nul())))),
        held.commit().change(|commit| commit.attributes.push((name, Some(nul())))),
        held.commit().change(|commit| {
            commit.snapshot = Some(Snapshot { index: Index(0), definition: nul(), data: bytes("x") });
        }),
    ];
    for commit in refused {
        let refused = s.commit(commit).await.unwrap_err();
        let CommitError::Rejected(Rejection::Limit(limit)) = &refused else { panic!("{refused}") };
        assert_eq!((limit.found, limit.limit, limit.unit), (1, 0, "NUL characters"));
    }
    assert!(s.commit(held.commit().event("x")).await.is_ok(), "the run goes on");
}

async fn attribute_values_are_limited(s: Scene<'_>) {
    let name = AttributeName::new("city").unwrap();
    // Not all alike, so that no database can make it small.
    let text = |length: usize| (0..length).map(|at| char::from(b'!' + (at * at % 89) as u8)).collect::<String>();
    let new = |value: String| NewRun { attributes: vec![(name.clone(), value)], ..new_run(&run("a")) };
    assert!(matches!(s.try_create(new(text(ATTRIBUTE_BYTES_MAX + 1))).await, Err(StoreError::Limit(_))));
    assert!(s.try_create(new(text(ATTRIBUTE_BYTES_MAX))).await.is_ok());
}

/// Row 40: a payload over the limit made a run unrecoverable. So it is refused before it is stored.
async fn input_at_the_limit_passes_and_one_byte_more_does_not(s: Scene<'_>) {
    for (bytes_of_input, fits) in [(7, true), (8, true), (9, false)] {
        let new = NewRun { input: bytes(&"x".repeat(bytes_of_input)), ..new_run(&run(&format!("{bytes_of_input}"))) };
        match s.try_create(new).await {
            Ok(Created::Created { .. }) if fits => {}
            Err(StoreError::Limit(limit)) if !fits => assert_eq!((limit.found, limit.limit), (9, 8)),
            answer => panic!("{bytes_of_input} bytes with a limit of 8: {answer:?}"),
        }
    }
    assert_eq!(s.store.get(run("9")).await.unwrap_err(), StoreError::NotFound(run("9")));
}

/// Row 40.
async fn event_at_the_limit_passes_and_one_byte_more_does_not(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for size in [7, 8] {
        let commit = held.commit().event(&"x".repeat(size));
        s.apply(&mut held, commit).await;
    }
    let refused = s.commit(held.commit().event("xxxxxxxxx").suspend()).await.unwrap_err();
    assert!(
        matches!(&refused, CommitError::Rejected(Rejection::Limit(l)) if l.found == 9 && l.limit == 8),
        "{refused}"
    );
    let commit = held.commit().event("small");
    s.apply(&mut held, commit).await;
    assert_eq!(s.view(&held.run).await.next, Index(3), "the run goes on");
}

/// What was accepted at the limit must be recordable, with the names and ids around it: so meta has a limit of its own.
async fn event_meta_has_room_beyond_the_limit_and_is_limited_too(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let room = 8 + EVENT_META_BYTES_SPARE;
    let with_meta = |held: &Held, size| {
        let record = Record { meta: Some(bytes(&"m".repeat(size))), ..event("12345678") };
        held.commit().change(|commit| commit.events.push(record))
    };
    for size in [room - 1, room] {
        let commit = with_meta(&held, size);
        s.apply(&mut held, commit).await;
    }
    let refused = s.commit(with_meta(&held, room + 1)).await.unwrap_err();
    assert!(
        matches!(&refused, CommitError::Rejected(Rejection::Limit(l)) if l.found == room + 1 && l.limit == room),
        "{refused}"
    );
    assert_eq!(s.view(&held.run).await.next, Index(2), "and nothing of it is there");
}

async fn commit_of_so_many_events_passes_and_one_more_does_not(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("0").event("1");
    s.apply(&mut held, commit).await;
    let commit = held.commit().event("2").event("3").event("4");
    s.apply(&mut held, commit).await;
    let refused = s.commit(held.commit().event("5").event("6").event("7").event("8")).await.unwrap_err();
    assert!(
        matches!(&refused, CommitError::Rejected(Rejection::Limit(l)) if l.found == 4 && l.limit == 3),
        "{refused}"
    );
    assert_eq!(s.view(&held.run).await.next, Index(5));
}

async fn history_is_limited_like_a_commit(s: Scene<'_>) {
    let fits = NewRun { history: vec![event("x"); 3], ..new_run(&run("a")) };
    s.create(fits).await;
    let long = NewRun { history: vec![event("x"); 4], ..new_run(&run("b")) };
    assert!(matches!(s.try_create(long).await, Err(StoreError::Limit(_))));
    let heavy = NewRun { history: vec![event("123456789")], ..new_run(&run("c")) };
    assert!(matches!(s.try_create(heavy).await, Err(StoreError::Limit(_))));
}

async fn signal_at_the_limit_passes_and_one_byte_more_does_not(s: Scene<'_>) {
    let a = s.start("a").await;
    assert_eq!(s.deliver(signal(&a, "go", "7", "1234567")).await, Delivered::Buffered);
    assert_eq!(s.deliver(signal(&a, "go", "8", "12345678")).await, Delivered::Buffered);
    let answers = s.store.deliver(vec![signal(&a, "go", "9", "123456789"), signal(&a, "go", "10", "ok")]).await;
    assert!(matches!(&answers[0], Err(StoreError::Limit(l)) if l.found == 9 && l.limit == 8), "{answers:?}");
    assert_eq!(answers[1], Ok(Delivered::Buffered), "its neighbour is delivered");
    assert_eq!(s.mail(&a).await, ["1234567", "12345678", "ok"]);
}

async fn answer_over_the_limit_is_refused_and_the_wait_stays_open(s: Scene<'_>) {
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").approval("ok").suspend();
    s.apply(&mut held, commit).await;
    // `decide` carries 12 bytes of meta and 3 of payload.
    let refused = s.store.deliver(vec![decide(&held.run, "ok", "1")]).await.remove(0).unwrap_err();
    assert!(matches!(refused, StoreError::Limit(_)), "{refused}");
    let mut small = decide(&held.run, "ok", "1");
    if let outlast_core::commit::Delivery::Answer { meta, .. } = &mut small {
        *meta = None;
    }
    assert_eq!(s.deliver(small).await, Delivered::Delivered);
}

async fn task_arguments_and_results_are_limited(s: Scene<'_>) {
    let task = |text: &str, args: &str| {
        let task = outlast_core::commit::NewTask { args: bytes(args), ..new_task(text, None) };
        StandaloneTask { namespace: namespace("default"), task }
    };
    let answers = s.store.enqueue(vec![task("heavy", "123456789"), task("fits", "12345678")]).await;
    assert!(matches!(answers[0], Err(StoreError::Limit(_))), "{answers:?}");
    assert_eq!(answers[1], Ok(()));

    let claimed = s.work_one("w", 1).await;
    let heavy = outcome(&claimed, TaskOutcome::Finished { result: bytes("123456789"), log: None });
    assert!(matches!(s.store.deliver(vec![heavy]).await.remove(0), Err(StoreError::Limit(_))));
    let progress = Some(bytes("123456789"));
    let (namespace, task, token) = (claimed.namespace.clone(), claimed.id.clone(), claimed.token);
    let beat = TaskHeartbeat { namespace, task, token, lease: ms(50), lapse: None, progress };
    assert!(matches!(s.store.heartbeat(beat).await, Err(StoreError::Limit(_))));
    assert_eq!(s.deliver(finished(&claimed, "12345678")).await, Delivered::Delivered, "the claim still stands");

    let held = s.own("a").await;
    let heavy = outlast_core::commit::NewTask { args: bytes("123456789"), ..new_task("t", None) };
    assert!(matches!(s.commit(held.commit().task(heavy)).await, Err(CommitError::Rejected(Rejection::Limit(_)))));
}

async fn snapshot_and_next_input_are_limited(s: Scene<'_>) {
    let held = s.own("a").await;
    let snapshot = Snapshot { index: Index(0), definition: "d".to_owned(), data: bytes("123456789") };
    let commit = held.commit().change(|commit| commit.snapshot = Some(snapshot));
    assert!(matches!(s.commit(commit).await, Err(CommitError::Rejected(Rejection::Limit(_)))));
    let commit = held.commit().event("x").continue_as_new("123456789");
    assert!(matches!(s.commit(commit).await, Err(CommitError::Rejected(Rejection::Limit(_)))));
    assert!(s.commit(held.commit().event("x").continue_as_new("12345678")).await.is_ok());
}

async fn schedule_rule_is_limited(s: Scene<'_>) {
    let schedule = |spec: &str, state: &str| Schedule {
        namespace: namespace("default"),
        id: ScheduleId::new("nightly").unwrap(),
        revision: Revision(0),
        spec: bytes(spec),
        state: bytes(state),
        next_at: None,
    };
    assert!(matches!(s.store.put_schedule(schedule("123456789", "")).await, Err(StoreError::Limit(_))));
    assert!(matches!(s.store.put_schedule(schedule("", "123456789")).await, Err(StoreError::Limit(_))));
    let revision = s.store.put_schedule(schedule("12345678", "12345678")).await.unwrap().expect("it is new");
    let Schedule { namespace, id, state, next_at, .. } = schedule("", "123456789");
    let fire = Fire { namespace, id, revision, at: None, state, next_at, run: None };
    assert!(matches!(s.store.fire(fire).await, Err(StoreError::Limit(_))));
}

async fn signals_nobody_consumed_are_limited_per_run(s: Scene<'_>) {
    let (a, b) = (s.start("a").await, s.start("b").await);
    for number in ["1", "2", "3"] {
        assert_eq!(s.deliver(signal(&a, "go", number, number)).await, Delivered::Buffered);
    }
    let answers = s.store.deliver(vec![signal(&a, "go", "4", "4"), signal(&b, "go", "4", "4")]).await;
    assert!(matches!(&answers[0], Err(StoreError::Limit(l)) if l.found == 4 && l.limit == 3), "{answers:?}");
    assert_eq!(answers[1], Ok(Delivered::Buffered), "another run has room of its own");
    assert_eq!(s.mail(&a).await, ["1", "2", "3"]);
}

async fn consumed_signal_makes_room_for_another(s: Scene<'_>) {
    let mut held = s.own("a").await;
    for number in ["1", "2", "3"] {
        s.deliver(signal(&held.run, "go", number, number)).await;
    }
    let first = s.inbox(&held.run).await[0].id;
    let commit = held.commit().event("got").consume(&[first]);
    s.apply(&mut held, commit).await;
    assert_eq!(s.deliver(signal(&held.run, "go", "4", "4")).await, Delivered::Buffered);
    assert!(s.store.deliver(vec![signal(&held.run, "go", "5", "5")]).await.remove(0).is_err());
    assert_eq!(s.mail(&held.run).await, ["2", "3", "4"]);
}

async fn full_mailbox_still_knows_duplicates(s: Scene<'_>) {
    let a = s.start("a").await;
    for number in ["1", "2", "3"] {
        s.deliver(signal(&a, "go", number, number)).await;
    }
    assert_eq!(s.deliver(signal(&a, "go", "2", "2")).await, Delivered::Duplicate, "a retry is not one signal more");
}

async fn full_mailbox_answers_full_inside_a_commit_and_does_not_fail_it(s: Scene<'_>) {
    let target = s.start("target").await;
    for number in ["1", "2", "3"] {
        s.deliver(signal(&target, "go", number, number)).await;
    }
    let mut held = s.own("a").await;
    let commit = held.commit().event("x").deliver(signal(&target, "go", "4", "4"));
    let committed = s.apply(&mut held, commit).await;
    assert_eq!(committed.delivered, [Delivered::Full], "a delivery never fails its carrier");
    assert_eq!(s.mail(&target).await, ["1", "2", "3"]);
}

async fn repeated_start_with_a_full_mailbox_finds_the_run(s: Scene<'_>) {
    let signals = vec![letter("go", "1", "1"), letter("go", "2", "2"), letter("go", "3", "3")];
    let new = NewRun { signals, ..new_run(&run("a")) };
    s.create(new.clone()).await;
    let again = s.try_create(new).await;
    assert!(matches!(again, Ok(Created::Existing { .. })), "its signals are duplicates, not three more: {again:?}");
    assert_eq!(s.mail(&run("a")).await, ["1", "2", "3"]);
}

async fn start_with_more_signals_than_fit_leaves_nothing(s: Scene<'_>) {
    let a = s.start("a").await;
    s.deliver(signal(&a, "go", "1", "1")).await;
    let signals = vec![letter("go", "2", "2"), letter("go", "3", "3"), letter("go", "4", "4")];
    let refused = s.try_create(NewRun { signals, ..new_run(&a) }).await.unwrap_err();
    assert!(matches!(refused, StoreError::Limit(_)), "{refused}");
    assert_eq!(s.mail(&a).await, ["1"], "all of them or none");
}

async fn child_over_the_limit_rejects_the_commit(s: Scene<'_>) {
    let held = s.own("a").await;
    let child = NewRun { input: bytes("123456789"), ..child_of(&held, "child", "child") };
    let refused = s.commit(held.commit().event("x").child(child)).await.unwrap_err();
    assert!(matches!(refused, CommitError::Rejected(Rejection::Limit(_))), "{refused}");
    assert_eq!(s.story(&held.run).await, [""; 0]);
}
