//! Whatever is encoded is decoded again, and whatever is read never panics.

use outlast_core::Bytes;
use outlast_core::event::{ClosePolicy, DecodeError, Event, Kind};
use outlast_core::failure::Failure;
use outlast_core::id::{Index, Key, RunId, SignalName};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use uuid::Uuid;

use crate::parts::{Parts, event, typical};

fn any_bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

/// Letters that need care in JSON, and others.
fn any_text() -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('"'), Just('\\'), Just('\n'), Just('\0'), Just('é'), any::<char>()], 0..12)
        .prop_map(String::from_iter)
}

fn any_id() -> impl Strategy<Value = String> {
    vec(prop_oneof![Just('"'), Just('/'), Just('#'), Just('é'), prop::char::range('a', 'z')], 1..30)
        .prop_map(String::from_iter)
}

fn any_failure() -> impl Strategy<Value = Failure> {
    (any_text(), any_text(), option::of(any_bytes()), any::<bool>(), option::of(any_text()))
        .prop_map(|(code, message, data, permanent, trace)| Failure { code, message, data, permanent, trace })
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp::from_millis)
}

fn any_close_policy() -> impl Strategy<Value = ClosePolicy> {
    prop_oneof![Just(ClosePolicy::Cancel), Just(ClosePolicy::Terminate), Just(ClosePolicy::Abandon)]
}

fn any_kind() -> impl Strategy<Value = Kind> {
    (0..Kind::ALL.len()).prop_map(|n| Kind::ALL[n])
}

fn any_parts() -> impl Strategy<Value = Parts> {
    let ids = (any_id(), any_id());
    let texts = (any_text(), option::of(any_text()), any_failure(), any_bytes(), option::of(any_bytes()));
    let numbers = (any::<u32>(), option::of(any::<u32>()), any::<u64>(), option::of(any::<u64>()), any::<bool>());
    let times = (any_time(), option::of(any_time()));
    let others = (any_close_policy(), any::<u128>(), vec(any::<u64>(), 0..4));
    (ids, texts, numbers, times, others).prop_map(|(ids, texts, numbers, times, others)| Parts {
        key: Key::new(&ids.0).unwrap(),
        other_key: Key::new(&ids.1).unwrap(),
        run: RunId::new(&ids.0).unwrap(),
        signal: SignalName::new(&ids.1).unwrap(),
        text: texts.0,
        note: texts.1,
        error: texts.2,
        bytes: texts.3,
        maybe_bytes: texts.4,
        number: numbers.0,
        total: numbers.1,
        large: numbers.2,
        millis: numbers.3,
        flag: numbers.4,
        at: times.0,
        deadline: times.1,
        on_close: others.0,
        uuid: Uuid::from_u128(others.1),
        indices: others.2.into_iter().map(Index).collect(),
        ..typical()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn what_is_encoded_is_decoded(kind in any_kind(), parts in any_parts(), at in any_time()) {
        let event = event(kind, parts);
        let record = event.encode(at);
        prop_assert_eq!(record.at, at);
        prop_assert_eq!(record.key.as_ref(), event.key());
        prop_assert_eq!(Event::decode(&record), Ok(event));
    }

    #[test]
    fn arbitrary_bytes_are_an_error_and_not_a_panic(
        kind in prop_oneof![any::<u16>(), any_kind().prop_map(Kind::code)],
        version in 0u16..3,
        key in option::of(any_id()),
        meta in option::of(any_bytes()),
        payload in option::of(any_bytes()),
    ) {
        let key = key.map(|key| Key::new(key).unwrap());
        let _ = Event::decode(&Record { kind, version, key, at: Timestamp::EPOCH, meta, payload });
    }

    #[test]
    fn a_flipped_byte_is_an_error_or_another_event_and_not_a_panic(
        kind in any_kind(), parts in any_parts(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut record = event(kind, parts).encode(Timestamp::EPOCH);
        if let Some(meta) = &record.meta {
            let mut meta = meta.to_vec();
            let place = place.index(meta.len());
            meta[place] = byte;
            record.meta = Some(Bytes::from(meta));
        }
        if let Ok(event) = Event::decode(&record) {
            prop_assert_eq!(event.kind(), kind);
        }
    }
}

fn stored(kind: Kind) -> Record {
    event(kind, typical()).encode(Timestamp::EPOCH)
}

#[test]
fn each_reason_not_to_decode_is_named() {
    let unknown = Record { kind: 9_999, ..stored(Kind::TimerFired) };
    assert_eq!(Event::decode(&unknown), Err(DecodeError::UnknownKind { code: 9_999 }));
    let keyless = Record { key: None, ..stored(Kind::TimerFired) };
    assert_eq!(Event::decode(&keyless), Err(DecodeError::MissingKey { kind: Kind::TimerFired }));
    let empty = Record { payload: None, ..stored(Kind::StepFinished) };
    assert_eq!(Event::decode(&empty), Err(DecodeError::MissingPayload { kind: Kind::StepFinished }));
    let future = Record { version: 2, ..stored(Kind::TimerFired) };
    assert_eq!(Event::decode(&future), Err(DecodeError::NewerVersion { kind: Kind::TimerFired, version: 2, known: 1 }));
}

#[test]
fn a_malformed_record_says_what_is_wrong() {
    let with_meta = |meta: &'static str| Record { meta: Some(Bytes::from(meta)), ..stored(Kind::TimerStarted) };
    let cases = [
        (Record { meta: None, ..stored(Kind::TimerStarted) }, r#"its meta has no field "deadline""#),
        (with_meta(r#"{"deadline":1,"dedline":2}"#), r#"its meta has an unknown field "dedline""#),
        (
            with_meta(r#"{"deadline":"soon"}"#),
            r#"field "deadline" of its meta: invalid type: string "soon", expected i64"#,
        ),
        (Record { payload: Some(Bytes::new()), ..stored(Kind::TimerStarted) }, "it has a payload and should not"),
        (Record { version: 0, ..stored(Kind::TimerStarted) }, "version 0 was never written"),
    ];
    for (record, message) in cases {
        let error = Event::decode(&record).unwrap_err().to_string();
        assert!(error.starts_with(&format!("TIMER_STARTED is malformed: {message}")), "{error}");
    }
    let keyed = Record { key: stored(Kind::TimerFired).key, ..stored(Kind::RunFinished) };
    let error = Event::decode(&keyed).unwrap_err().to_string();
    assert_eq!(error, r#"RUN_FINISHED is malformed: it has a key, "ship/0/label", and should not"#);
}
