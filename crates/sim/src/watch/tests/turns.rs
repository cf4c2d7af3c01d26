//! How turns end, whom a run is taken from, and what became of bodies whose commit was turned down.

use outlast_core::commit::Opener;
use outlast_core::id::InboxId;

use super::*;

fn control(control: Control, id: &str) -> Delivery {
    let id = DeliveryId::new(id).unwrap();
    Delivery::Control { run: run("r"), control, id, meta: None, child_of: None }
}

fn cancel_requested() -> Event {
    Event::CancelRequested { reason: None, by: None }
}

/// What a run would be told to read after it was left with something, if it was.
fn left_unread(scene: &mut Scene, events: &[Event], then: Then) -> Option<String> {
    let commit = scene.draft(events, then);
    scene.apply(&commit, 20);
    scene.0.left_unread(&commit, ALONE)
}

fn view(ready: bool) -> RunView {
    let store = MemoryStore::new(Clock::Manual(ManualClock::at(0)), Limits::default());
    store.create(vec![new("r")]).now_or_never().unwrap();
    let view = store.get(run("r")).now_or_never().unwrap().unwrap();
    RunView { ready, owner: None, ..view }
}

#[test]
fn a_run_that_waits_beside_what_it_waits_for_is_woken() {
    let mut scene = Scene::new();
    scene.deliver(&signal("1"), Delivered::Delivered);
    assert!(left_unread(&mut scene, &[finished("a")], Then::Suspend).is_none(), "nobody asked for the signal");
    let mut scene = Scene::new();
    scene.deliver(&signal("1"), Delivered::Delivered);
    let unread = left_unread(&mut scene, &[awaited()], Then::Suspend).unwrap();
    assert!(unread.contains("Signal"), "{unread}");
    let commit = scene.draft(&[], Then::Suspend);
    scene.0.must_be_woken(&commit, &unread, &view(true));
    assert_eq!(scene.broken(), [0_u8; 0]);
    scene.0.must_be_woken(&commit, &unread, &view(false));
    assert_eq!(scene.broken(), [5]);
}

#[test]
fn a_word_from_outside_is_always_to_be_read_and_a_turn_that_goes_on_may_read_later() {
    let mut scene = Scene::new();
    scene.deliver(&control(Control::Pause, "p"), Delivered::Delivered);
    assert!(left_unread(&mut scene, &[finished("a")], Then::Continue).is_none());
    assert!(left_unread(&mut scene, &[finished("b")], Then::Suspend).is_some());
}

#[test]
fn a_run_does_not_pause_over_a_resume_or_a_request_to_stop() {
    let paused = || [Event::RunPaused { reason: None, by: None }];
    for frees in [Control::Resume, Control::Cancel] {
        is_broken(2, |scene| {
            scene.deliver(&control(frees, "c"), Delivered::Delivered);
            scene.commit(&paused(), Then::Pause);
        });
    }
    holds(|scene| {
        scene.deliver(&control(Control::Resume, "before"), Delivered::Delivered);
        scene.load(vec![item(InboxKind::Resume, Some("before"))]);
        let commit = Commit { consumed: vec![InboxId(7)], ..scene.draft(&paused(), Then::Pause) };
        scene.apply(&commit, 20);
    });
}

#[test]
fn a_request_to_stop_is_consumed_with_the_event_that_says_so() {
    let consumed = |scene: &mut Scene, events: &[Event]| {
        scene.deliver(&control(Control::Cancel, "c"), Delivered::Delivered);
        scene.load(vec![item(InboxKind::Cancel, Some("c"))]);
        let commit = Commit { consumed: vec![InboxId(7)], ..scene.draft(events, Then::Continue) };
        scene.apply(&commit, 20);
    };
    is_broken(16, |scene| consumed(scene, &[finished("a")]));
    holds(|scene| consumed(scene, &[cancel_requested()]));
}

/// A child of `r` that was started with a policy, and the order with which its parent's end reaches it.
fn child(scene: &mut Scene, on_close: ClosePolicy) -> Delivery {
    let parent = Parent { run: run("r").id, generation: Generation(0), key: key("c"), detached: false };
    let started = Event::ChildStarted {
        key: key("c"),
        child: RunId::new("kid").unwrap(),
        workflow: WorkflowName::new("w").unwrap(),
        version: Version::new("1").unwrap(),
        detached: false,
        on_close,
    };
    let new = NewRun { parent: Some(parent), ..new("kid") };
    let commit = Commit { children: vec![new], ..scene.draft(&[started], Then::Continue) };
    scene.apply(&commit, 20);
    order(false)
}

fn order(terminate: bool) -> Delivery {
    let opener = Opener { run: run("r").id, generation: Generation(0), key: key("c") };
    let (control, id) = (Control::Cancel, DeliveryId::new("close").unwrap());
    let meta = terminate.then(|| json(r#"{"terminate":true}"#));
    Delivery::Control { run: run("kid"), control, id, meta, child_of: Some(opener) }
}

#[test]
fn a_child_is_asked_or_ended_as_was_said_and_ended_only_with_its_parent() {
    let ends = |scene: &mut Scene, on_close, terminate, before: &[Event]| {
        child(scene, on_close);
        let (end, then) = over();
        let events: Vec<Event> = before.iter().cloned().chain([end]).collect();
        let commit = Commit { deliveries: vec![order(terminate)], ..scene.draft(&events, then) };
        scene.apply(&commit, 20);
    };
    let cancelled = [Event::OperationCancelled { key: key("c") }];
    is_broken(13, |scene| ends(scene, ClosePolicy::Cancel, true, &[]));
    is_broken(13, |scene| ends(scene, ClosePolicy::Terminate, false, &[]));
    holds(|scene| ends(scene, ClosePolicy::Terminate, true, &[]));
    holds(|scene| ends(scene, ClosePolicy::Terminate, false, &cancelled));
    is_broken(13, |scene| {
        child(scene, ClosePolicy::Terminate);
        let commit = Commit { deliveries: vec![order(true)], ..scene.draft(&cancelled, Then::Continue) };
        scene.apply(&commit, 20);
    });
    let mut scene = Scene::new();
    ends(&mut scene, ClosePolicy::Terminate, true, &[]);
    assert_eq!(scene.0.told_to_stop[&run("kid")], Orders { asked: false, ended: true });
}

#[test]
fn a_child_that_was_to_go_on_alone_is_told_to_stop_only_if_nobody_waits_for_it_any_more() {
    let ends = |scene: &mut Scene, on_close, before: &[Event]| {
        let order = child(scene, on_close);
        let (end, then) = over();
        let events: Vec<Event> = before.iter().cloned().chain([end]).collect();
        let commit = Commit { deliveries: vec![order], ..scene.draft(&events, then) };
        scene.apply(&commit, 20);
    };
    is_broken(13, |scene| ends(scene, ClosePolicy::Abandon, &[]));
    holds(|scene| ends(scene, ClosePolicy::Cancel, &[]));
    holds(|scene| ends(scene, ClosePolicy::Abandon, &[Event::OperationCancelled { key: key("c") }]));
}

#[test]
fn a_report_for_an_earlier_generation_is_taken_by_nobody() {
    let report = |generation| Delivery::Child {
        run: run("r"),
        generation: Generation(generation),
        key: key("c"),
        child: RunId::new("kid").unwrap(),
        meta: None,
        payload: None,
    };
    is_broken(13, |scene| scene.deliver(&report(1), Delivered::Delivered));
    holds(|scene| {
        scene.deliver(&report(0), Delivered::Delivered);
        scene.deliver(&report(1), Delivered::Lost);
    });
}

#[test]
fn a_run_that_is_taken_from_somebody_who_died_is_counted_until_it_goes_on() {
    let claimed = |scene: &Scene, fence, now, tries| Claimed { tries, ..scene.claimed(fence, now) };
    is_broken(18, |scene| {
        let claimed = claimed(scene, 2, 1_000, 0);
        scene.claim_as(2, &claimed, Serves::Everything);
    });
    is_broken(18, |scene| {
        scene.0.let_go(&run("r"));
        let claimed = claimed(scene, 2, 1_000, 1);
        scene.claim_as(2, &claimed, Serves::Everything);
    });
    holds(|scene| {
        let second = claimed(scene, 2, 1_000, 1);
        scene.claim_as(2, &second, Serves::Everything);
        let commit = Commit { fence: Fence(2), ..scene.draft(&[finished("a")], Then::Suspend) };
        scene.apply(&commit, 1_000);
        let third = claimed(scene, 3, 1_000, 0);
        scene.claim_as(2, &third, Serves::Everything);
        scene.0.unparked(&run("r"));
        assert_eq!(scene.0.runs[&run("r")].tries, 0);
    });
}

#[test]
fn what_a_body_came_to_is_kept_when_its_commit_is_turned_down() {
    let mut scene = Scene::new();
    let commit = scene.draft(&[finished("a"), awaited()], Then::Suspend);
    scene.0.turned_down(&commit);
    let kept: Vec<(String, u32)> =
        scene.0.turned_down.iter().map(|down| (down.key.to_string(), down.attempt)).collect();
    assert_eq!(kept, [("a".to_owned(), 1)]);
}
