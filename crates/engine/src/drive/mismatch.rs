//! What the code asks for now is not what the journal says it asked for then.

use std::fmt;

use outlast_core::event::Kind;
use outlast_core::id::{Index, Key};
use outlast_core::operation::{Location, OperationKind};

/// A replay that went another way. The run parks with this; nothing was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Where in the journal.
    pub(crate) index: Index,
    /// What is recorded there.
    pub(crate) recorded: Recorded,
    /// What the code did instead.
    pub(crate) requested: Requested,
}

/// An event, as far as it says what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) kind: Kind,
    pub(crate) key: Option<Key>,
    /// What differs, where kind and key agree: a duration, a signal's name.
    pub(crate) detail: Option<String>,
}

/// What the code did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    /// It asked for something else under the same key.
    Other { kind: OperationKind, detail: Option<String>, location: Option<Location> },
    /// It did not ask for this, but for these.
    Nothing { instead: Vec<(OperationKind, Key, Option<Location>)> },
    /// It came to its end.
    End,
    /// It came to another end than the recorded one.
    OtherEnd { kind: Kind, detail: Option<String> },
}

impl Mismatch {
    /// What is recorded and what was done instead, without what to do about it.
    pub(crate) fn difference(&self) -> impl fmt::Display {
        Difference(self)
    }
}

struct Difference<'m>(&'m Mismatch);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}. Deploy the code this run began with (as a previous version), or code that asks for the same, and unpark it",
            self.difference()
        )
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { index, recorded, requested } = self.0;
        write!(f, "replay mismatch at index {index}: the journal has {}", recorded.kind.name())?;
        if let Some(key) = &recorded.key {
            write!(f, " {:?}", key.as_str())?;
        }
        if let Some(detail) = &recorded.detail {
            write!(f, " ({detail})")?;
        }
        match requested {
            Requested::Other { kind, detail, location } => {
                write!(f, ", the code asks for a {kind}")?;
                if let Some(detail) = detail {
                    write!(f, " ({detail})")?;
                }
                at(f, location.as_ref())?;
            }
            Requested::Nothing { instead } => {
                write!(f, ", the code did not ask for it")?;
                for (n, (kind, key, location)) in instead.iter().enumerate() {
                    write!(f, "{} {kind} {:?}", if n == 0 { "; it asks for" } else { "," }, key.as_str())?;
                    at(f, location.as_ref())?;
                }
            }
            Requested::End => write!(f, ", the code has come to its end")?,
            Requested::OtherEnd { kind, detail } => {
                write!(f, ", the code ends with {}", kind.name())?;
                if let Some(detail) = detail {
                    write!(f, " ({detail})")?;
                }
            }
        }
        Ok(())
    }
}

fn at(f: &mut fmt::Formatter<'_>, location: Option<&Location>) -> fmt::Result {
    match location {
        Some(location) => write!(f, " at {location}"),
        None => Ok(()),
    }
}
