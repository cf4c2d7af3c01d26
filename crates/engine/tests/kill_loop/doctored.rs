//! The checks are tried: evidence that was tampered with is found out, each time by the check that should.

mod scene;

use outlast::{Event, Status};
use outlast_core::event::Kind;

use crate::check::Coverage;
use crate::ledger::{Ask, Entry, Note};
use scene::{Scene, at, body, failed_step, key};

/// Tampers with evidence in which everything is as it should be, and looks for what must be said about it.
fn caught(says: &str, tamper: impl FnOnce(&mut Scene)) {
    let mut scene = Scene::healthy();
    tamper(&mut scene);
    let findings = scene.judge();
    assert!(findings.iter().any(|finding| finding.contains(says)), "{says:?} is not among {findings:#?}");
}

#[test]
fn healthy_evidence_passes() {
    assert_eq!(Scene::healthy().judge(), [""; 0]);
}

#[test]
fn a_run_that_is_gone_is_missed() {
    caught("sleeper was acknowledged and is gone: Start", |scene| drop(scene.now.runs.remove("sleeper")));
    caught("sleeper was there and is gone", |scene| drop(scene.now.runs.remove("sleeper")));
    caught("copy was acknowledged and is gone: Fork", |scene| drop(scene.now.runs.remove("copy")));
    caught("kid was started as a child and is gone", |scene| drop(scene.now.runs.remove("kid")));
    caught("nobody asked for ghost", |scene| {
        let kid = scene.now.runs["kid"].clone();
        scene.now.runs.insert("ghost".to_owned(), kid);
    });
}

#[test]
fn a_run_that_does_not_end_as_it_should_is_seen() {
    caught("sleeper was acknowledged and is Some(Waiting)", |scene| scene.run("sleeper").status = Status::Waiting);
    caught("kid has not ended", |scene| scene.run("kid").status = Status::Running);
    caught("kid has ended and still waits for something", |scene| scene.run("kid").owns = true);
    caught("failing ended with Some(Result(1)), and not Failed", |scene| {
        scene.change("failing", 0, Event::RunFinished { output: "1".into() });
    });
    caught("sleeper, generation 0: nap has no outcome", |scene| {
        scene.change("sleeper", 2, Event::StepStarted { key: key("nap"), attempt: 1, at_most_once: true });
    });
}

#[test]
fn a_journal_that_changes_is_seen() {
    caught("sleeper, generation 0: event 1 was", |scene| scene.retime("sleeper", 1, 121));
    caught("sleeper, generation 0: event 2 was", |scene| {
        scene.change("sleeper", 2, Event::StepFinished { key: key("nap"), result: "9".into(), attempts: 1 });
    });
    caught("sleeper, generation 0: event 2 was", |scene| scene.run("sleeper").journals[0].truncate(2));
    caught("stopped, generation 0 was over and has grown", |scene| scene.repeat("stopped", 1));
    caught("stopped had ended: it was Cancelled and is Completed", |scene| {
        scene.run("stopped").status = Status::Completed;
    });
    caught("stopped had ended and has another generation", |scene| scene.run("stopped").journals.push(Vec::new()));
}

#[test]
fn an_acknowledged_word_without_effect_is_seen() {
    for (index, word) in
        [(3, "Signal"), (5, "Approve"), (9, "Resolve"), (11, "Fail"), (14, "was paused 1"), (15, "was resumed 1")]
    {
        let says = if word.starts_with("was") { format!("asked {word}") } else { format!("acknowledged was {word}") };
        caught(&says, |scene| drop(scene.run("asked").journals[0].remove(index)));
    }
    caught("acknowledged was Cancel", |scene| drop(scene.run("stopped").journals[0].remove(0)));
    caught("acknowledged was Fork", |scene| scene.retime("copy", 0, 201));
}

#[test]
fn a_word_that_is_new_a_second_time_was_lost() {
    let signal = || Ask::Signal { run: "asked".to_owned(), id: "word".to_owned() };
    let mut scene = Scene::healthy();
    scene.say(500, Note::Known(signal()));
    assert_eq!(scene.judge(), [""; 0], "a word that is known is there");
    caught("was acknowledged, and then forgotten", |scene| scene.ask(500, signal()));
    // Two ask at once, and the one who came first is the last to say so.
    let mut scene = Scene::healthy();
    let acked = scene.entries.iter().position(|entry| entry.note == Note::Acked(signal())).unwrap();
    scene.entries.insert(acked, Entry { life: 2, ..at(328, Note::Known(signal())) });
    scene.now.lines += 1;
    assert_eq!(scene.judge(), [""; 0]);
    caught("was acknowledged, and then forgotten", |scene| {
        scene.ask(500, Ask::Cancel { run: "stopped".to_owned() });
    });
}

#[test]
fn an_effect_that_is_not_the_acknowledged_one_is_seen() {
    caught("acknowledged was Approve", |scene| scene.change("asked", 5, scene::approved("another word")));
    caught("acknowledged was Resolve", |scene| scene.change("asked", 9, scene::resolved("8")));
    caught("acknowledged was Fail", |scene| scene.change("asked", 11, scene::refused("another word")));
    caught("acknowledged was Terminate", |scene| {
        scene.change("ended", 1, Event::RunTerminated { reason: Some("life 2".to_owned()), by: None });
    });
    caught("acknowledged was Cancel", |scene| {
        scene.change("stopped", 1, Event::RunFinished { output: "1".into() });
    });
}

#[test]
fn what_is_recorded_twice_is_seen() {
    caught("nap is settled by Some(StepFinished)", |scene| scene.repeat("sleeper", 2));
    caught("attempt 1 of nap is recorded 2 times", |scene| scene.repeat("sleeper", 2));
    caught("attempt 1 of flaky is recorded 2 times", |scene| scene.repeat("retrier", 0));
    caught("__sleep-0 is settled by Some(TimerFired)", |scene| scene.repeat("sleeper", 1));
    caught("the signal word is taken twice", |scene| scene.repeat("asked", 3));
    caught("sleeper, generation 0: ", |scene| scene.repeat("sleeper", 3));
    caught("generation 0 ends 0 times", |scene| drop(scene.run("sleeper").journals[0].pop()));
}

#[test]
fn an_early_event_is_seen() {
    caught("TIMER_FIRED of __sleep-0 at 119 is early", |scene| scene.retime("sleeper", 1, 119));
    caught("SIGNAL_TIMED_OUT of never at 319 is early", |scene| scene.retime("asked", 1, 319));
    caught("APPROVAL_TIMED_OUT of late at 359 is early", |scene| scene.retime("asked", 7, 359));
    caught("STEP_FINISHED of flaky at 209 is early", |scene| scene.retime("retrier", 1, 209));
    caught("CONDITION_CHECKED of count at 249 is early", |scene| scene.retime("retrier", 7, 249));
    caught("STEP_RETRY_SCHEDULED of slow at 226 is early", |scene| scene.retime("retrier", 2, 226));
    // A sign of life at 410 gives 40 more.
    caught("CALLBACK_TIMED_OUT of alive at 449 is early", |scene| scene.retime("asked", 13, 449));
    caught("SIGNAL_TIMED_OUT of never at 320 is early: it has no deadline", |scene| {
        scene.change("asked", 0, scene::awaited("never", None));
    });
}

#[test]
fn a_body_that_runs_early_is_seen() {
    caught("nap ran at 119, and the sleep before it ends at 120", |scene| {
        scene.entry(body("sleeper", "nap", 1)).at = 119
    });
    caught("attempt 2 of flaky ran at 209", |scene| scene.entry(body("retrier", "flaky", 2)).at = 209);
    caught("attempt 2 of count ran at 249", |scene| scene.entry(body("retrier", "count", 2)).at = 249);
}

#[test]
fn a_body_that_does_not_fit_its_record_is_seen() {
    caught("attempt 1 of nap is recorded and nobody saw it run", |scene| scene.forget(&body("sleeper", "nap", 1)));
    caught("attempt 2 of flaky is recorded and nobody saw it run", |scene| scene.forget(&body("retrier", "flaky", 2)));
    caught("attempt 1 of nap ran again after its outcome was recorded", |scene| {
        scene.say(500, body("sleeper", "nap", 1));
    });
    caught("careful may run at most once and ran 2 times", |scene| scene.say(500, body("retrier", "careful", 1)));
    caught("careful may run at most once and ran 1 times before that was recorded", |scene| {
        drop(scene.run("retrier").journals[0].remove(4));
    });
}

#[test]
fn a_step_in_doubt_need_not_have_run() {
    let mut scene = Scene::healthy();
    scene.change("retrier", 5, failed_step("careful", "step_in_doubt"));
    scene.forget(&body("retrier", "careful", 1));
    assert_eq!(scene.judge(), [""; 0]);
}

/// A pause of each stretch between two resumes is counted, and no more is asked for.
#[test]
fn a_pause_that_is_asked_for_twice_before_it_begins_is_one() {
    let pause = || Ask::Pause { run: "asked".to_owned() };
    let mut scene = Scene::healthy();
    let first = scene.entries.iter().position(|entry| entry.note == Note::Acked(pause())).unwrap();
    scene.entries.insert(first, at(459, Note::Acked(pause())));
    scene.now.lines += 1;
    assert_eq!(scene.judge(), [""; 0]);
    caught("asked was paused 2 times, and its journal says 1", |scene| scene.say(500, Note::Acked(pause())));
}

#[test]
fn a_loop_in_which_too_little_happens_is_seen() {
    let (mut covered, scene) = (Coverage::default(), Scene::healthy());
    covered.add(&scene.now, &scene.entries);
    let missing = covered.missing();
    assert!(missing.contains(&Kind::ScopeFinished.name()) && missing.contains(&Kind::Custom.name()), "{missing:?}");
    assert!(!missing.contains(&Kind::TimerFired.name()) && !missing.contains(&Kind::RunStarted.name()), "{missing:?}");
}
