use outlast_core::id::SignalName;

use super::*;

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn timer() -> Event {
    Event::TimerStarted { key: key("__sleep-0"), deadline: Timestamp::from_millis(9), duration_ms: Some(9) }
}

fn wait() -> Event {
    let name = SignalName::new("go").unwrap();
    Event::SignalAwaited { key: key("__wait-go-0"), name, deadline: Some(Timestamp::from_millis(7)) }
}

/// Two operations are open below index 5; one is awaited.
fn saved() -> Saved {
    let written = |event: Event| WrittenEvent::of(&event.encode(Timestamp::EPOCH));
    let location = Location { file: "a.wf".into(), line: 3, column: 5 };
    Saved {
        events: vec![(Index(1), written(timer())), (Index(4), written(wait()))],
        operations: vec![
            SavedOperation { key: key("__sleep-0"), awaited: true, location: Some(location) },
            SavedOperation { key: key("__wait-go-0"), awaited: false, location: None },
        ],
        cancel_requested: true,
        next_input: Some("[1]".to_owned()),
        next_version: None,
    }
}

fn snapshot(saved: &Saved) -> Snapshot {
    Snapshot { index: Index(5), definition: "hash".to_owned(), data: seal(saved, b"the program's").unwrap() }
}

fn refused(snapshot: &Snapshot) -> String {
    unseal(snapshot).err().expect("it cannot be used")
}

#[test]
fn what_was_sealed_comes_back_as_operations_that_wait() {
    let (kept, program) = unseal(&snapshot(&saved())).unwrap();
    assert_eq!((&*program.data, program.index, program.definition.as_str()), (&b"the program's"[..], Index(5), "hash"));
    assert_eq!((kept.journal.next(), kept.cancel_requested), (Index(5), true));
    assert_eq!(kept.next_generation, Some((Bytes::from("[1]"), None)));
    let found: Vec<_> =
        kept.operations.iter().map(|(key, entry)| (key.as_str(), entry.state, entry.deadline)).collect();
    let at = |ms| Some(Timestamp::from_millis(ms));
    assert_eq!(found, [("__sleep-0", State::IdleAwaited, at(9)), ("__wait-go-0", State::IdleNotAwaited, at(7))]);
    let places: Vec<_> = kept.operations.iter().map(|(_, entry)| entry.location.clone().map(|at| at.line)).collect();
    assert_eq!(places, [Some(3), None]);
}

/// Whatever bit is wrong, it is noticed.
#[test]
fn every_changed_bit_and_every_cut_is_noticed() {
    let whole = snapshot(&saved());
    for bit in 0..whole.data.len() * 8 {
        let mut data = whole.data.to_vec();
        data[bit / 8] ^= 1 << (bit % 8);
        refused(&Snapshot { data: data.into(), ..whole.clone() });
    }
    for length in 0..whole.data.len() {
        refused(&Snapshot { data: whole.data.slice(..length), ..whole.clone() });
    }
}

#[test]
fn a_later_release_is_named() {
    let whole = snapshot(&saved());
    let mut data = whole.data.to_vec();
    data[MAGIC.len()] = 2;
    let told = refused(&Snapshot { data: data.into(), ..whole });
    assert_eq!(told, "it has version 2, and this build reads version 1");
}

/// What does not fit together is not used, although it was written so.
#[test]
fn operations_and_their_starts_must_be_the_same() {
    let mut fewer = saved();
    fewer.operations.pop();
    assert_eq!(refused(&snapshot(&fewer)), "nothing is said about __wait-go-0");
    let mut more = saved();
    more.events.pop();
    assert_eq!(refused(&snapshot(&more)), "the start of __wait-go-0 is missing");
    let mut later = saved();
    later.events[1].0 = Index(9);
    assert!(refused(&snapshot(&later)).contains("skips ahead"));
}
