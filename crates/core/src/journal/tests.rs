use bytes::Bytes;

use super::*;
use crate::event::ClosePolicy;
use crate::failure::Failure;
use crate::id::{DeliveryId, RunId, SignalName, TaskId, Version, WorkflowName};
use crate::time::Timestamp;

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn null() -> Bytes {
    Bytes::from("null")
}

fn failure() -> Failure {
    Failure::new("error", "no")
}

fn timer(text: &str) -> Event {
    Event::TimerStarted { key: key(text), deadline: Timestamp::from_millis(9), duration_ms: Some(9) }
}

fn fired(text: &str) -> Event {
    Event::TimerFired { key: key(text) }
}

fn step(text: &str, attempts: u32) -> Event {
    Event::StepFinished { key: key(text), result: null(), attempts }
}

fn step_failed(text: &str, attempts: u32) -> Event {
    Event::StepFailed { key: key(text), error: failure(), attempts }
}

fn started(text: &str, attempt: u32) -> Event {
    Event::StepStarted { key: key(text), attempt, at_most_once: true }
}

fn retry(text: &str, attempt: u32) -> Event {
    Event::StepRetryScheduled { key: key(text), attempt, next_at: Timestamp::EPOCH, error: failure() }
}

fn checked(text: &str, attempt: u32, met: bool) -> Event {
    let next_at = (!met).then_some(Timestamp::EPOCH);
    Event::ConditionChecked { key: key(text), attempt, met, state: null(), next_at }
}

fn awaited(text: &str) -> Event {
    Event::SignalAwaited { key: key(text), name: SignalName::new("paid").unwrap(), deadline: None }
}

fn resolved(text: &str, name: &str) -> Event {
    let (name, signal_id) = (SignalName::new(name).unwrap(), DeliveryId::new("s-1").unwrap());
    Event::SignalResolved { key: key(text), name, signal_id, payload: null() }
}

fn scope(text: &str) -> Event {
    Event::ScopeStarted { key: key(text), total: None }
}

fn closed(text: &str) -> Event {
    Event::ScopeFinished { key: key(text), result: Some(null()), replay_inside: false, reason: None }
}

fn cancelled(text: &str) -> Event {
    Event::OperationCancelled { key: key(text) }
}

fn refusal(text: &str) -> Event {
    Event::OperationRefused { key: key(text), error: failure() }
}

fn finished() -> Event {
    Event::RunFinished { output: null() }
}

fn paused() -> Event {
    Event::RunPaused { reason: None, by: None }
}

fn resumed() -> Event {
    Event::RunResumed { message: None, by: None }
}

fn cancel() -> Event {
    Event::CancelRequested { reason: None, by: None }
}

/// Appends all, the last of which may be refused. What is appended must also load, and what is refused must not.
#[track_caller]
fn tell(events: Vec<Event>) -> Result<Journal, String> {
    let records: Vec<_> =
        events.iter().zip(0..).map(|(event, index)| (Index(index), event.encode(Timestamp::EPOCH))).collect();
    let last = events.len() - 1;
    let mut journal = Journal::new();
    for (n, event) in events.into_iter().enumerate() {
        let before = format!("{journal:?}");
        if let Err(error) = journal.append(Index(n as u64), event) {
            assert_eq!(n, last, "only the last event may be refused: {error}");
            assert_eq!(Journal::load(records).map(|_| ()), Err(error.clone()), "loading must refuse it too");
            assert_eq!(before, format!("{journal:?}"), "a refused event changes nothing");
            return Err(error.to_string());
        }
    }
    assert_eq!(Journal::load(records).unwrap().events(), journal.events());
    Ok(journal)
}

#[track_caller]
fn refused(events: Vec<Event>, message: &str) {
    assert_eq!(tell(events).map(|journal| journal.next()), Err(message.to_owned()));
}

#[track_caller]
fn open(events: Vec<Event>) -> Vec<String> {
    tell(events).unwrap().open().into_iter().map(|operation| format!("{} {}", operation.kind, operation.key)).collect()
}

#[test]
fn a_taken_index_returns_what_is_there() {
    let mut journal = tell(vec![timer("a")]).unwrap();
    let error = journal.append(Index(0), timer("b")).unwrap_err();
    assert_eq!(error, JournalError::Conflict { index: Index(0), found: Box::new(timer("a")) });
    assert_eq!(error.to_string(), "index 0 is taken by TIMER_STARTED");
}

#[test]
fn skipping_ahead_is_refused() {
    let mut journal = tell(vec![timer("a")]).unwrap();
    let error = journal.append(Index(2), fired("a")).unwrap_err();
    assert_eq!(error.to_string(), "index 2 skips ahead: the next one is 1");
    let record = timer("a").encode(Timestamp::EPOCH);
    assert!(matches!(Journal::load([(Index(1), record)]), Err(JournalError::SkipsAhead { .. })));
}

#[test]
fn a_damaged_row_is_named_when_the_journal_is_loaded() {
    let mut record = timer("a").encode(Timestamp::EPOCH);
    record.key = None;
    let error = Journal::load([(Index(0), record)]).unwrap_err();
    assert_eq!(error.to_string(), "event 0: TIMER_STARTED has no key");
}

#[test]
fn a_timer_fires_once_and_only_after_it_started() {
    assert!(open(vec![timer("a"), fired("a")]).is_empty());
    refused(vec![fired("a")], r#"event 0, TIMER_FIRED: "a" was never started: expected TIMER_STARTED before it"#);
    refused(vec![timer("a"), fired("a"), fired("a")], r#"event 2, TIMER_FIRED: "a" was settled before, at index 1"#);
    refused(vec![timer("a"), timer("a")], r#"event 1, TIMER_STARTED: "a" was started before, at index 0"#);
    refused(vec![timer("a"), fired("a"), timer("a")], r#"event 2, TIMER_STARTED: "a" was started before, at index 0"#);
}

#[test]
fn a_key_belongs_to_one_kind() {
    refused(vec![timer("a"), step("a", 1)], r#"event 1, STEP_FINISHED: "a" is a sleep since index 0"#);
    refused(vec![awaited("a"), fired("a")], r#"event 1, TIMER_FIRED: "a" is a wait since index 0"#);
    refused(vec![step("a", 1), checked("a", 2, true)], r#"event 1, CONDITION_CHECKED: "a" is a step since index 0"#);
}

#[test]
fn a_step_needs_no_start_and_settles_once() {
    tell(vec![step("a", 1), step("b", 3), step_failed("c", 1)]).unwrap();
    refused(vec![step("a", 1), step("a", 2)], r#"event 1, STEP_FINISHED: "a" was settled before, at index 0"#);
    refused(vec![step("a", 1), retry("a", 2)], r#"event 1, STEP_RETRY_SCHEDULED: "a" was settled before, at index 0"#);
}

#[test]
fn attempts_only_go_up() {
    tell(vec![retry("a", 1), retry("a", 2), retry("a", 5), step("a", 6)]).unwrap();
    tell(vec![started("a", 1), retry("a", 1), started("a", 2), step("a", 2)]).unwrap();
    let back = |kind, attempt| {
        format!(r#"event 1, {kind}: attempt {attempt} of "a" cannot follow what is recorded at index 0"#)
    };
    refused(vec![retry("a", 2), retry("a", 2)], &back("STEP_RETRY_SCHEDULED", 2));
    refused(vec![retry("a", 2), step("a", 2)], &back("STEP_FINISHED", 2));
    refused(vec![retry("a", 2), started("a", 2)], &back("STEP_STARTED", 2));
    refused(vec![started("a", 2), started("a", 2)], &back("STEP_STARTED", 2));
    refused(vec![started("a", 2), step("a", 1)], &back("STEP_FINISHED", 1));
    assert!(tell(vec![started("a", 0)]).is_err());
}

#[test]
fn a_step_that_waits_for_a_retry_may_fail_without_another_attempt() {
    tell(vec![retry("a", 2), step_failed("a", 2)]).unwrap();
    tell(vec![started("a", 1), step_failed("a", 1)]).unwrap();
}

#[test]
fn a_condition_is_checked_until_it_is_met() {
    assert_eq!(open(vec![checked("a", 1, false)]), ["condition a"]);
    assert!(open(vec![checked("a", 1, false), checked("a", 2, true)]).is_empty());
    refused(
        vec![checked("a", 1, true), checked("a", 2, true)],
        r#"event 1, CONDITION_CHECKED: "a" was settled before, at index 0"#,
    );
}

#[test]
fn a_failed_check_is_recorded_like_a_failed_step() {
    tell(vec![checked("a", 1, false), retry("a", 2), checked("a", 3, false), step_failed("a", 4)]).unwrap();
    assert_eq!(open(vec![retry("a", 1), checked("a", 2, false)]), ["condition a"]);
    refused(vec![checked("a", 1, false), step("a", 2)], r#"event 1, STEP_FINISHED: "a" is a condition since index 0"#);
}

#[test]
fn a_signal_resolves_the_wait_for_its_name() {
    tell(vec![awaited("a"), resolved("a", "paid")]).unwrap();
    refused(
        vec![awaited("a"), resolved("a", "sent")],
        r#"event 1, SIGNAL_RESOLVED: "a" waits for "paid" and not for "sent""#,
    );
}

#[test]
fn a_rejected_signal_leaves_the_wait_open() {
    let (name, signal_id) = (SignalName::new("paid").unwrap(), DeliveryId::new("s-0").unwrap());
    let rejected = Event::SignalRejected { key: key("a"), name, signal_id, error: failure() };
    assert_eq!(open(vec![awaited("a"), rejected.clone()]), ["wait a"]);
    tell(vec![awaited("a"), rejected.clone(), rejected.clone(), resolved("a", "paid")]).unwrap();
    refused(
        vec![awaited("a"), resolved("a", "paid"), rejected],
        r#"event 2, SIGNAL_REJECTED: "a" was settled before, at index 1"#,
    );
}

#[test]
fn a_result_of_another_task_is_refused() {
    let task = |id| TaskId::new(id).unwrap();
    let scheduled = Event::TaskScheduled {
        key: key("a"),
        task: task("t-1"),
        name: "pack".try_into().unwrap(),
        queue: "default".try_into().unwrap(),
        detached: false,
        plan: None,
        args: null(),
    };
    let done = |id| Event::TaskFinished { key: key("a"), task: task(id), result: null(), log: None };
    tell(vec![scheduled.clone(), done("t-1")]).unwrap();
    refused(vec![scheduled, done("t-2")], r#"event 1, TASK_FINISHED: "a" waits for "t-1" and not for "t-2""#);
}

#[test]
fn nobody_waits_for_a_detached_child() {
    let child = |detached| Event::ChildStarted {
        key: key("a"),
        child: RunId::new("c").unwrap(),
        workflow: WorkflowName::new("w").unwrap(),
        version: Version::new("1").unwrap(),
        detached,
        on_close: ClosePolicy::Abandon,
    };
    assert_eq!(open(vec![child(false)]), ["child a"]);
    assert!(open(vec![child(true)]).is_empty());
}

#[test]
fn cancelling_needs_an_open_operation() {
    assert!(open(vec![timer("a"), cancelled("a")]).is_empty());
    let not_open =
        |n| format!(r#"event {n}, OPERATION_CANCELLED: "a" is not open, so it cannot be cancelled or refused"#);
    refused(vec![cancelled("a")], &not_open(0));
    refused(vec![timer("a"), fired("a"), cancelled("a")], &not_open(2));
    refused(vec![timer("a"), cancelled("a"), cancelled("a")], &not_open(2));
    refused(
        vec![timer("a"), cancelled("a"), fired("a")],
        r#"event 2, TIMER_FIRED: "a" was settled before, at index 1"#,
    );
}

#[test]
fn refusing_needs_an_open_operation_and_settles_it() {
    for start in [timer("a"), awaited("a"), scope("a")] {
        assert!(open(vec![start, refusal("a")]).is_empty());
    }
    let message = r#"event 0, OPERATION_REFUSED: "a" is not open, so it cannot be cancelled or refused"#;
    refused(vec![refusal("a")], message);
    let settled = r#"event 2, OPERATION_REFUSED: "a" was settled before, at index 1"#;
    refused(vec![timer("a"), fired("a"), refusal("a")], settled);
    refused(vec![timer("a"), refusal("a"), fired("a")], r#"event 2, TIMER_FIRED: "a" was settled before, at index 1"#);
}

#[test]
fn nothing_happens_below_a_closed_scope() {
    let below =
        |n, kind, key| format!(r#"event {n}, {kind}: "{key}" lies below "s", which was closed at index {}"#, n - 1);
    refused(vec![scope("s"), closed("s"), timer("s/a")], &below(2, "TIMER_STARTED", "s/a"));
    refused(vec![scope("s"), timer("s/0/a"), closed("s"), fired("s/0/a")], &below(3, "TIMER_FIRED", "s/0/a"));
    let failed = Event::ScopeFailed { key: key("s"), error: failure() };
    refused(vec![scope("s"), failed, step("s/a", 1)], &below(2, "STEP_FINISHED", "s/a"));
    refused(vec![scope("s"), cancelled("s"), step("s/a", 1)], &below(2, "STEP_FINISHED", "s/a"));
}

#[test]
fn a_scope_is_closed_for_its_own_keys_only() {
    tell(vec![
        scope("s"),
        timer("s0"),
        timer("s-/a"),
        timer("sa/b"),
        closed("s"),
        fired("s0"),
        fired("s-/a"),
        fired("sa/b"),
    ])
    .unwrap();
}

#[test]
fn closing_a_scope_closes_what_is_open_below_it_and_lets_that_be_noted() {
    let story = || vec![scope("s"), timer("s/a"), scope("s/b"), timer("s/b/c"), timer("t"), closed("s")];
    assert_eq!(open(story()), ["sleep t"]);
    let mut noted = story();
    noted.extend([cancelled("s/a"), cancelled("s/b/c")]);
    assert_eq!(open(noted.clone()), ["sleep t"]);
    noted.push(cancelled("s/a"));
    refused(noted, r#"event 8, OPERATION_CANCELLED: "s/a" is not open, so it cannot be cancelled or refused"#);
}

#[test]
fn nothing_follows_the_end() {
    let ends = [
        (finished(), "RUN_FINISHED"),
        (Event::RunErrored { error: failure() }, "RUN_ERRORED"),
        (Event::RunCancelled { reason: None }, "RUN_CANCELLED"),
        (Event::RunTerminated { reason: None, by: None }, "RUN_TERMINATED"),
        (Event::RunContinued { input: null(), version: None }, "RUN_CONTINUED"),
    ];
    for (end, name) in ends {
        assert!(open(vec![timer("a"), end.clone()]).is_empty());
        for late in [timer("b"), fired("a"), finished(), resumed(), cancel()] {
            let kind = late.kind();
            refused(
                vec![timer("a"), end.clone(), late],
                &format!("event 2, {kind}: nothing may follow {name} at index 1"),
            );
        }
    }
}

#[test]
fn events_for_observers_are_never_kept() {
    let emitted = "such an event is only emitted, never kept";
    refused(vec![Event::Custom { name: "hello".into(), payload: null() }], &format!("event 0, CUSTOM: {emitted}"));
    refused(
        vec![Event::StepStarted { key: key("a"), attempt: 1, at_most_once: false }],
        &format!("event 0, STEP_STARTED: {emitted}"),
    );
}

#[test]
fn a_paused_run_only_resumes_is_cancelled_or_ends() {
    let message = |kind| {
        format!("event 2, {kind}: the run is paused since index 1: only a resume, a cancellation or an end may follow")
    };
    for late in [fired("a"), timer("b"), step("b", 1), paused(), Event::RunContinued { input: null(), version: None }] {
        let kind = late.kind();
        refused(vec![timer("a"), paused(), late], &message(kind));
    }
    tell(vec![timer("a"), paused(), resumed(), fired("a"), paused(), resumed()]).unwrap();
    tell(vec![timer("a"), paused(), Event::RunTerminated { reason: None, by: None }]).unwrap();
    refused(vec![timer("a"), resumed()], "event 1, RUN_RESUMED: the run is not paused");
}

#[test]
fn a_cancelled_run_cleans_up_even_if_it_was_paused() {
    tell(vec![timer("a"), paused(), cancel(), cancelled("a"), step("undo", 1), Event::RunCancelled { reason: None }])
        .unwrap();
}

#[test]
fn a_flow_ends_only_what_it_began() {
    let node = || key("lines");
    let iteration = || Event::ContainerIterationStarted { node: node(), index: 0, item: None, total: Some(1) };
    let done = |outputs| Event::ContainerIterationCompleted { node: node(), index: 0, outputs };
    let child = || Event::ContainerChildStarted { node: node(), child: key("label"), child_index: 0 };
    let child_done = |output| {
        let output = Some(output);
        Event::ContainerChildCompleted { node: node(), child: key("label"), output, value: None }
    };
    let failed = || Event::NodeError { node: key("label"), error: crate::failure::Failure::new("error", "no") };
    tell(vec![
        Event::NodeStarted { node: node(), index: 0, input: None },
        iteration(),
        child(),
        step("lines/0/label", 1),
        child_done(Index(3)),
        done(vec![Index(3)]),
        Event::NodeCompleted { node: node(), output: null() },
    ])
    .unwrap();
    let not_begun = |kind, what| format!("event 0, {kind}: {what} ended and had not begun");
    refused(
        vec![Event::NodeCompleted { node: node(), output: null() }],
        &not_begun("NODE_COMPLETED", r#"node "lines""#),
    );
    refused(vec![done(vec![])], &not_begun("CONTAINER_ITERATION_COMPLETED", r#"iteration 0 of "lines""#));
    tell(vec![child(), failed()]).unwrap();
    refused(vec![failed()], &not_begun("NODE_ERROR", r#"node "label""#));
    refused(vec![child(), failed(), failed()], r#"event 2, NODE_ERROR: node "label" ended and had not begun"#);
    let retried = |at| Event::NodeRetried { node: key(at), by: None, reason: None };
    let failed_again = || Event::NodeError { node: key("label#3"), error: crate::failure::Failure::new("error", "no") };
    tell(vec![child(), retried("label"), retried("label#2"), failed_again()]).unwrap();
    refused(vec![child(), retried("label"), failed()], r#"event 2, NODE_ERROR: node "label" ended and had not begun"#);
    let skipped = || Event::NodeSkipped { node: key("label"), by: None, reason: None };
    tell(vec![skipped(), child(), skipped()]).unwrap();
    refused(vec![child(), skipped(), failed()], r#"event 2, NODE_ERROR: node "label" ended and had not begun"#);
    let retried = |name| Event::NodeRetried { node: key(name), by: Some("eve".to_owned()), reason: None };
    let failed_again = || Event::NodeError { node: key("label#3"), error: crate::failure::Failure::new("error", "no") };
    tell(vec![child(), retried("label"), retried("label#2"), failed_again()]).unwrap();
    refused(vec![child(), retried("label"), failed()], r#"event 2, NODE_ERROR: node "label" ended and had not begun"#);
    refused(
        vec![child(), child_done(Index(1))],
        "event 1, CONTAINER_CHILD_COMPLETED: it refers to index 1, which is not before it",
    );
    refused(
        vec![iteration(), done(vec![]), done(vec![])],
        r#"event 2, CONTAINER_ITERATION_COMPLETED: iteration 0 of "lines" ended and had not begun"#,
    );
}

#[test]
fn open_operations_are_listed_in_the_order_in_which_they_began() {
    let journal = tell(vec![timer("b"), awaited("a"), retry("c", 1), retry("c", 2), timer("d"), fired("d")]).unwrap();
    let listed: Vec<_> =
        journal.open().into_iter().map(|open| (open.key.to_string(), open.since.0, open.latest.0)).collect();
    assert_eq!(listed, [("b".into(), 0, 0), ("a".into(), 1, 1), ("c".into(), 2, 3)]);
    assert!(journal.is_open(&key("a")) && !journal.is_open(&key("d")));
}

#[test]
fn fifty_thousand_events_are_no_trouble() {
    let mut journal = Journal::new();
    for n in 0..25_000u64 {
        let branch = format!("map/{n}/sleep");
        journal.append(Index(2 * n), timer(&branch)).unwrap();
        journal.append(Index(2 * n + 1), fired(&branch)).unwrap();
    }
    assert_eq!((journal.next(), journal.open().len()), (Index(50_000), 0));
}

/// Everything that can be open, and what settles it.
fn long() -> Vec<Event> {
    let child = |text: &str| Event::ChildStarted {
        key: key(text),
        child: RunId::new("c").unwrap(),
        workflow: WorkflowName::new("w").unwrap(),
        version: Version::new("1").unwrap(),
        detached: false,
        on_close: ClosePolicy::Cancel,
    };
    let rejected = Event::SignalRejected {
        key: key("wait"),
        name: SignalName::new("paid").unwrap(),
        signal_id: DeliveryId::new("s-0").unwrap(),
        error: failure(),
    };
    vec![
        timer("a"),
        awaited("wait"),
        scope("s"),
        timer("s/b"),
        fired("a"),
        rejected,
        child("child"),
        timer("c"),
        Event::OperationCancelled { key: key("c") },
        fired("s/b"),
        resolved("wait", "paid"),
        Event::ScopeFinished { key: key("s"), result: Some(null()), replay_inside: false, reason: None },
        Event::ChildFinished { key: key("child"), child: RunId::new("c").unwrap(), result: null() },
        Event::RunFinished { output: null() },
    ]
}

/// What a snapshot keeps of a journal is enough to judge all that follows.
#[test]
fn a_journal_goes_on_from_what_was_open_wherever_it_is_cut() {
    let events = long();
    for cut in 0..=events.len() {
        let mut whole = Journal::new();
        for (index, event) in events[..cut].iter().enumerate() {
            whole.append(Index(index as u64), event.clone()).unwrap();
        }
        let open: Vec<(Index, Event)> = whole.open_events().map(|(index, event)| (index, event.clone())).collect();
        let mut resumed = Journal::resume(whole.next(), open).unwrap();
        let mut forgetful = whole.clone();
        forgetful.forget_below(forgetful.next());
        assert!(forgetful.events().is_empty());
        for event in &events[cut..] {
            for journal in [&mut resumed, &mut forgetful] {
                assert_eq!((journal.next(), journal.open()), (whole.next(), whole.open()), "cut at {cut}");
                journal.append(whole.next(), event.clone()).unwrap();
            }
            whole.append(whole.next(), event.clone()).unwrap();
        }
    }
}

#[test]
fn what_is_open_is_still_guarded_when_the_rest_is_forgotten() {
    let mut journal = Journal::new();
    journal.append(Index(0), awaited("wait")).unwrap();
    journal.append(Index(1), timer("a")).unwrap();
    journal.forget_below(Index(1));
    assert_eq!((journal.get(Index(0)), journal.next()), (Some(&awaited("wait")), Index(2)));
    let other = journal.append(Index(2), resolved("wait", "refund"));
    assert!(matches!(other, Err(JournalError::Illegal { why: Illegal::OtherSubject { .. }, .. })), "{other:?}");
    let twice = journal.append(Index(2), timer("a"));
    assert!(matches!(twice, Err(JournalError::Illegal { why: Illegal::StartedTwice { .. }, .. })), "{twice:?}");
    journal.append(Index(2), resolved("wait", "paid")).unwrap();
    journal.forget_below(Index(3));
    assert_eq!((journal.get(Index(0)), journal.get(Index(2))), (None, None), "nothing needs it any more");
    assert!(journal.is_open(&key("a")));
}

#[test]
fn what_was_kept_must_lie_below_in_order_and_be_legal() {
    let skips = |open: Vec<(Index, Event)>| Journal::resume(Index(5), open).unwrap_err();
    assert!(matches!(skips(vec![(Index(5), timer("a"))]), JournalError::SkipsAhead { .. }));
    assert!(matches!(skips(vec![(Index(3), timer("a")), (Index(3), timer("b"))]), JournalError::SkipsAhead { .. }));
    assert!(matches!(skips(vec![(Index(3), fired("a"))]), JournalError::Illegal { .. }));
}
