//! What is left for runs, timers, and orders to children.

use super::*;

#[test]
fn a_signal_that_was_accepted_is_there_until_it_is_consumed_with_a_trace() {
    is_broken(8, |scene| {
        scene.deliver(&signal("s1"), Delivered::Buffered);
        scene.load(Vec::new());
    });
    is_broken(8, |scene| scene.commit(&[awaited(), resolved("s1")], Then::Continue));
    let consume = |scene: &mut Scene, events: &[Event]| {
        scene.deliver(&signal("s1"), Delivered::Buffered);
        scene.load(vec![item(InboxKind::Signal, Some("s1"))]);
        let commit = Commit { consumed: vec![InboxId(7)], ..scene.draft(events, Then::Continue) };
        scene.apply(&commit, 20);
        scene.load(Vec::new());
    };
    is_broken(8, |scene| consume(scene, &[]));
    holds(|scene| consume(scene, &[awaited(), resolved("s1")]));
}

#[test]
fn an_id_is_accepted_once() {
    is_broken(2, |scene| {
        scene.deliver(&signal("s1"), Delivered::Buffered);
        scene.deliver(&signal("s1"), Delivered::Buffered);
    });
    is_broken(2, |scene| scene.deliver(&signal("s1"), Delivered::Duplicate));
}

#[test]
fn an_ended_run_accepts_nothing() {
    is_broken(6, |scene| {
        let (end, then) = over();
        scene.commit(&[end], then);
        scene.deliver(&signal("s1"), Delivered::Buffered);
    });
}

#[test]
fn a_decision_is_taken_while_it_is_asked_for_and_recorded_as_it_was_made() {
    is_broken(12, |scene| scene.deliver(&answer(WaitKind::Approval, BY_ANN, None), Delivered::Delivered));
    let decide = |scene: &mut Scene, by: &str| {
        scene.commit(&[requested()], Then::Continue);
        scene.deliver(&answer(WaitKind::Approval, BY_ANN, None), Delivered::Delivered);
        scene.commit(&[decided(by)], Then::Continue);
    };
    is_broken(12, |scene| decide(scene, "bob"));
    holds(|scene| decide(scene, "ann"));
}

#[test]
fn a_callback_is_answered_while_it_is_open_with_what_was_said() {
    let created =
        Event::CallbackCreated { key: key("a"), callback: "a".to_owned(), deadline: None, heartbeat_ms: None };
    is_broken(9, |scene| scene.deliver(&answer(WaitKind::Callback, "\"resolved\"", Some("1")), Delivered::Delivered));
    is_broken(9, |scene| {
        scene.commit(std::slice::from_ref(&created), Then::Continue);
        scene.deliver(&answer(WaitKind::Callback, "\"resolved\"", Some("1")), Delivered::Delivered);
        let resolved = Event::CallbackResolved { key: key("a"), callback: "a".to_owned(), payload: json("2") };
        scene.commit(&[resolved], Then::Continue);
    });
}

#[test]
fn a_run_does_not_end_over_an_answer() {
    is_broken(9, |scene| {
        scene.commit(&[requested()], Then::Continue);
        scene.deliver(&answer(WaitKind::Approval, BY_ANN, None), Delivered::Delivered);
        let (end, then) = over();
        scene.commit(&[end], then);
    });
}

#[test]
fn no_timer_fires_before_it_is_due() {
    let nap = |deadline: i64, duration_ms| Event::TimerStarted { key: key("nap"), deadline: at(deadline), duration_ms };
    let fired = Event::TimerFired { key: key("nap") };
    is_broken(10, |scene| {
        scene.commit(&[nap(500, Some(485))], Then::Continue);
        scene.commit(std::slice::from_ref(&fired), Then::Continue);
    });
    holds(|scene| scene.commit(&[nap(500, Some(0)), fired.clone()], Then::Continue));
    // A sleep of some time takes that time, also if its end has been seen before.
    is_broken(10, |scene| scene.commit(&[nap(5, Some(485)), fired.clone()], Then::Continue));
    holds(|scene| scene.commit(&[nap(5, None), fired.clone()], Then::Continue));
    let timer = TimerRef { key: key("nap"), kind: TimerKind::Delay };
    let sleeping = |scene: &mut Scene| {
        let timers = vec![NewTimer { timer: timer.clone(), due: at(500) }];
        let commit = Commit { timers, ..scene.draft(&[nap(500, Some(485))], Then::Continue) };
        scene.apply(&commit, 20);
    };
    let rings = |ms| InboxItem {
        key: Some(key("nap")),
        name: Some("delay".to_owned()),
        at: at(ms),
        ..item(InboxKind::Timer, None)
    };
    is_broken(10, |scene| {
        sleeping(scene);
        scene.load(vec![rings(499)]);
    });
    is_broken(10, |scene| {
        sleeping(scene);
        let commit = Commit { timers_fired: vec![timer.clone()], ..scene.draft(&[], Then::Continue) };
        scene.apply(&commit, 499);
    });
    holds(|scene| {
        sleeping(scene);
        scene.load(vec![rings(500)]);
        let commit = scene.draft(std::slice::from_ref(&fired), Then::Continue);
        scene.apply(&commit, 500);
    });
}

#[test]
fn a_sign_of_life_puts_silence_off_and_no_deadline() {
    let created = |deadline: i64| Event::CallbackCreated {
        key: key("a"),
        callback: "a".to_owned(),
        deadline: Some(at(deadline)),
        heartbeat_ms: Some(100),
    };
    let timed_out = Event::CallbackTimedOut { key: key("a"), callback: "a".to_owned() };
    // Created at 15, with a sign of life at 50: silence ends at 115, and then at 150.
    let times_out = |scene: &mut Scene, deadline, beats: bool, now| {
        scene.commit(&[created(deadline)], Then::Continue);
        scene.0.told(at(50));
        if beats {
            let token = None;
            scene.deliver(&Delivery::Heartbeat { run: run("r"), key: key("a"), token }, Delivered::Delivered);
        }
        let commit = scene.draft(std::slice::from_ref(&timed_out), Then::Continue);
        scene.apply(&commit, now);
    };
    is_broken(10, |scene| times_out(scene, 900, false, 114));
    holds(|scene| times_out(scene, 900, false, 115));
    is_broken(10, |scene| times_out(scene, 900, true, 149));
    holds(|scene| times_out(scene, 900, true, 150));
    holds(|scene| times_out(scene, 120, true, 120));
}

#[test]
fn a_clock_that_was_ahead_before_a_timer_began_does_not_excuse_it() {
    let nap = Event::TimerStarted { key: key("nap"), deadline: at(500), duration_ms: Some(480) };
    let fired = Event::TimerFired { key: key("nap") };
    let slept = |scene: &mut Scene, before, since| {
        scene.0.told(at(before));
        scene.commit(std::slice::from_ref(&nap), Then::Continue);
        scene.0.told(at(since));
        scene.commit(std::slice::from_ref(&fired), Then::Continue);
    };
    is_broken(10, |scene| slept(scene, 900, 400));
    holds(|scene| slept(scene, 20, 900));
}

fn order(to: &str) -> Delivery {
    let id = DeliveryId::new(format!("close {to}")).unwrap();
    Delivery::Control { run: run(to), control: Control::Cancel, id, meta: None, child_of: None }
}

#[test]
fn a_run_stops_its_own_children_and_forgets_none() {
    is_broken(13, |scene| {
        scene.0.created(&new("stranger"), &Created::Created { fence: Fence(0), at: at(0) });
        let commit = Commit { deliveries: vec![order("stranger")], ..scene.draft(&[], Then::Continue) };
        scene.apply(&commit, 20);
    });
    let family = |scene: &mut Scene, deliveries: Vec<Delivery>| {
        let (version, workflow) = (Version::new("1").unwrap(), WorkflowName::new("w").unwrap());
        let (child, on_close) = (RunId::new("child").unwrap(), ClosePolicy::Cancel);
        let started = Event::ChildStarted { key: key("c"), child, workflow, version, detached: false, on_close };
        let parent = Parent { run: run("r").id, generation: Generation(0), key: key("c"), detached: false };
        let children = vec![NewRun { parent: Some(parent), ..new("child") }];
        let commit = Commit { children, ..scene.draft(&[started], Then::Continue) };
        scene.apply(&commit, 20);
        let (end, then) = over();
        let commit = Commit { deliveries, ..scene.draft(&[end], then) };
        scene.apply(&commit, 20);
    };
    is_broken(13, |scene| family(scene, Vec::new()));
    holds(|scene| family(scene, vec![order("child")]));
}

#[test]
fn a_parent_is_of_the_same_namespace() {
    is_broken(20, |scene| {
        let parent = Parent { run: run("elsewhere").id, generation: Generation(0), key: key("c"), detached: false };
        let child = NewRun { parent: Some(parent), ..new("child") };
        scene.0.created(&child, &Created::Created { fence: Fence(0), at: at(0) });
    });
}
