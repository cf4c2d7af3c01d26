//! Old encodings, brought up to date when they are read.
//!
//! To change how a kind is stored: change its fields in the table, add one [`Upcast`] from the version before to
//! [`UPCASTS`], and add golden files of the new version. Old golden files stay and must still read.

use super::Kind;
use super::codec::{DecodeError, Fields};

/// One step from a version of a kind to the next.
pub(super) struct Upcast {
    /// Of which kind.
    pub(super) kind: Kind,
    /// From this version to the next.
    pub(super) from: u16,
    /// Changes the columns in place; the error says what is wrong with them.
    pub(super) apply: fn(&mut Fields) -> Result<(), String>,
}

/// All steps, the oldest first.
pub(super) const UPCASTS: &[Upcast] = &[];

/// The newest version of a kind: one more than there are steps.
pub(super) fn version_of(upcasts: &[Upcast], kind: Kind) -> u16 {
    upcasts.iter().filter(|step| step.kind == kind).fold(1, |version, _| version + 1)
}

/// Applies every step from `version` on.
pub(super) fn upcast(upcasts: &[Upcast], version: u16, fields: &mut Fields) -> Result<(), DecodeError> {
    let kind = fields.kind;
    let known = version_of(upcasts, kind);
    if version > known {
        return Err(DecodeError::NewerVersion { kind, version, known });
    }
    if version == 0 {
        return Err(fields.malformed("version 0 was never written"));
    }
    for step in upcasts.iter().filter(|step| step.kind == kind && step.from >= version) {
        (step.apply)(fields).map_err(|detail| fields.malformed(format!("version {}: {detail}", step.from)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::Event;
    use super::super::codec::decode_with;
    use super::*;
    use crate::id::Key;
    use crate::record::Record;
    use crate::time::Timestamp;

    fn stored(version: u16, meta: &'static str) -> Record {
        Record {
            kind: Kind::StepFinished.code(),
            version,
            key: Some(Key::new("charge").unwrap()),
            at: Timestamp::EPOCH,
            meta: Some(Bytes::from(meta)),
            payload: Some(Bytes::from("1")),
        }
    }

    /// A history in which version 1 called `attempts` "tries", and version 2 counted retries instead of attempts.
    const HISTORY: &[Upcast] = &[
        Upcast { kind: Kind::StepFinished, from: 1, apply: |fields| rename(fields, "tries", "retries") },
        Upcast { kind: Kind::StepFinished, from: 2, apply: count_the_first_attempt_too },
    ];

    fn rename(fields: &mut Fields, old: &str, new: &str) -> Result<(), String> {
        let value = fields.meta.remove(old).ok_or(format!("no field {old:?}"))?;
        fields.meta.insert(new.to_owned(), value);
        Ok(())
    }

    fn count_the_first_attempt_too(fields: &mut Fields) -> Result<(), String> {
        let retries: u32 = fields.meta("retries").map_err(|error| error.to_string())?;
        let attempts = serde_json::value::to_raw_value(&(retries + 1)).map_err(|error| error.to_string())?;
        fields.meta.insert("attempts".to_owned(), attempts);
        Ok(())
    }

    #[test]
    fn an_old_version_passes_through_every_later_step() {
        let event = Event::StepFinished { key: Key::new("charge").unwrap(), result: Bytes::from("1"), attempts: 3 };
        assert_eq!(decode_with(HISTORY, &stored(1, r#"{"tries":2}"#)), Ok(event.clone()));
        assert_eq!(decode_with(HISTORY, &stored(2, r#"{"retries":2}"#)), Ok(event.clone()));
        assert_eq!(decode_with(HISTORY, &stored(3, r#"{"attempts":3}"#)), Ok(event));
    }

    #[test]
    fn a_step_that_does_not_fit_names_the_version() {
        let error = decode_with(HISTORY, &stored(1, "{}")).unwrap_err();
        assert_eq!(error.to_string(), "STEP_FINISHED is malformed: version 1: no field \"tries\"");
    }

    #[test]
    fn a_version_of_the_future_says_what_to_do() {
        let error = Event::decode(&stored(9, "{}")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "STEP_FINISHED has version 9, this build reads up to 1: deploy the build that wrote it, or a newer one"
        );
    }

    #[test]
    fn other_kinds_keep_their_version() {
        assert_eq!(version_of(HISTORY, Kind::StepFinished), 3);
        assert_eq!(version_of(HISTORY, Kind::StepFailed), 1);
    }
}
