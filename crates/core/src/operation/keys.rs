//! Keys: how an operation is recognised when its run is replayed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Location, OperationKind};
use crate::id::{InvalidId, Key};

/// Hands out the keys of one generation, in the order in which operations are requested.
///
/// It belongs to the program, and to its snapshot: the same program that asks in the same order gets the same keys.
///
/// ```
/// use outlast_core::operation::{Keys, OperationKind};
///
/// let mut keys = Keys::default();
/// assert_eq!(keys.named(None, "charge", None)?.as_str(), "charge");
/// assert_eq!(keys.named(None, "charge", None)?.as_str(), "charge#2");
/// assert_eq!(keys.positional(None, OperationKind::Timer, None)?.as_str(), "__sleep-0");
/// assert_eq!(keys.positional(None, OperationKind::Signal, Some("payment"))?.as_str(), "__wait-payment-0");
/// let scope = keys.named(None, "ship", None)?;
/// assert_eq!(keys.named(Some(&scope), "label", None)?.as_str(), "ship/label");
/// # Ok::<(), outlast_core::id::InvalidId>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    used: BTreeMap<String, Used>,
    shared: Vec<SharedName>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Used {
    count: u64,
    first: Option<Location>,
}

/// One name was used at two places of one scope. If the order in which they are reached is not certain (a `select!`
/// polls at random), replay could take one for the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{name:?} is used at {first} and at {second}: give each place its own name")]
pub struct SharedName {
    /// The name with its scope.
    pub name: String,
    /// Where it was used first.
    pub first: Location,
    /// Where it was used too.
    pub second: Location,
}

impl Keys {
    /// The key of an operation that its author named: the n-th use of a name in a scope is `name#n`.
    pub fn named(&mut self, scope: Option<&Key>, name: &str, at: Option<Location>) -> Result<Key, InvalidId> {
        if name.is_empty() {
            return Err(InvalidId::Empty { what: "operation name" });
        }
        let base = path(scope, escape(name));
        // Checked before it is counted: a name that was refused has not been used.
        let Some(used) = self.used.get_mut(&*base) else {
            let key = Key::new(&base)?;
            self.used.insert(base.into_owned(), Used { count: 1, first: at });
            return Ok(key);
        };
        let key = numbered(&base, '#', used.count + 1)?;
        used.count += 1;
        match (&used.first, at) {
            (None, at) => used.first = at,
            (Some(first), Some(second)) if *first != second => {
                let report = SharedName { name: base.into_owned(), first: first.clone(), second };
                if !self.shared.contains(&report) {
                    self.shared.push(report);
                }
            }
            (Some(_), Some(_) | None) => {}
        }
        Ok(key)
    }

    /// The key of an unnamed operation: its place among those of its kind, and of its signal, in its scope.
    pub fn positional(
        &mut self,
        scope: Option<&Key>,
        kind: OperationKind,
        detail: Option<&str>,
    ) -> Result<Key, InvalidId> {
        let name = match detail {
            None => ["__", kind.name()].concat(),
            Some(detail) => ["__", kind.name(), "-", &escape(detail)].concat(),
        };
        let base = path(scope, Cow::Owned(name)).into_owned();
        let count = self.used.get(&base).map_or(0, |used| used.count);
        let key = numbered(&base, '-', count)?;
        self.used.entry(base).or_default().count += 1;
        Ok(key)
    }

    /// Names used at two places so far.
    pub fn shared_names(&self) -> &[SharedName] {
        &self.shared
    }
}

/// The scope of one branch of a map or parallel: `ship/0`.
pub fn branch(scope: &Key, index: usize) -> Result<Key, InvalidId> {
    Key::new(format!("{scope}/{index}"))
}

/// The key of the next attempt at a flow's node that an operator has begin again: `reserve#2` after `reserve`.
///
/// ```
/// use outlast_core::id::Key;
/// use outlast_core::operation::again;
///
/// let second = again(&Key::new("lines/4/reserve")?)?;
/// assert_eq!(second.as_str(), "lines/4/reserve#2");
/// assert_eq!(again(&second)?.as_str(), "lines/4/reserve#3");
/// # Ok::<(), outlast_core::id::InvalidId>(())
/// ```
pub fn again(key: &Key) -> Result<Key, InvalidId> {
    let (base, attempt) = match key.as_str().rsplit_once('#') {
        Some((base, attempt)) if !attempt.contains('/') => (base, attempt.parse().unwrap_or(1)),
        Some(_) | None => (key.as_str(), 1_u64),
    };
    numbered(base, '#', attempt.saturating_add(1))
}

/// The scopes a key lies in, the outermost first: `ship` and `ship/0` for `ship/0/label`.
pub fn ancestors(key: &Key) -> impl Iterator<Item = &str> {
    let key = key.as_str();
    key.match_indices('/').map(|(end, _)| &key[..end])
}

fn path<'n>(scope: Option<&Key>, name: Cow<'n, str>) -> Cow<'n, str> {
    match scope {
        None => name,
        Some(scope) => Cow::Owned([scope.as_str(), "/", &name].concat()),
    }
}

/// A key with a number at its end. Every operation asks for one, in replay too.
fn numbered(base: &str, mark: char, number: u64) -> Result<Key, InvalidId> {
    const DIGITS_MAX: usize = 20;
    let mut text = String::with_capacity(base.len() + 1 + DIGITS_MAX);
    text.push_str(base);
    text.push(mark);
    // Writing into a text does not fail.
    let _ = write!(text, "{number}");
    Key::new(text)
}

/// A name that cannot be taken for a scope path, a repeated name or an unnamed operation.
fn escape(name: &str) -> Cow<'_, str> {
    if !name.contains(['/', '#', '%']) && !name.starts_with("__") {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len());
    for (position, letter) in name.char_indices() {
        match letter {
            '/' => escaped.push_str("%2F"),
            '#' => escaped.push_str("%23"),
            '%' => escaped.push_str("%25"),
            '_' if position == 0 && name.starts_with("__") => escaped.push_str("%5F"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32) -> Option<Location> {
        Some(Location { file: "shop.rs".into(), line, column: 5 })
    }

    fn named(keys: &mut Keys, scope: Option<&Key>, name: &str) -> String {
        keys.named(scope, name, None).unwrap().to_string()
    }

    fn unnamed(keys: &mut Keys, kind: OperationKind, detail: Option<&str>) -> String {
        keys.positional(None, kind, detail).unwrap().to_string()
    }

    #[test]
    fn the_nth_use_of_a_name_is_numbered_per_scope() {
        let mut keys = Keys::default();
        let ship = keys.named(None, "ship", None).unwrap();
        let first = branch(&ship, 0).unwrap();
        assert_eq!(named(&mut keys, None, "charge"), "charge");
        assert_eq!(named(&mut keys, Some(&first), "charge"), "ship/0/charge");
        assert_eq!(named(&mut keys, None, "charge"), "charge#2");
        assert_eq!(named(&mut keys, None, "charge"), "charge#3");
        assert_eq!(named(&mut keys, Some(&first), "charge"), "ship/0/charge#2");
    }

    #[test]
    fn unnamed_operations_are_counted_per_kind_and_signal() {
        let mut keys = Keys::default();
        assert_eq!(unnamed(&mut keys, OperationKind::Timer, None), "__sleep-0");
        assert_eq!(unnamed(&mut keys, OperationKind::Now, None), "__now-0");
        assert_eq!(unnamed(&mut keys, OperationKind::Timer, None), "__sleep-1");
        assert_eq!(unnamed(&mut keys, OperationKind::Signal, Some("payment")), "__wait-payment-0");
        assert_eq!(unnamed(&mut keys, OperationKind::Signal, Some("refund")), "__wait-refund-0");
        assert_eq!(unnamed(&mut keys, OperationKind::Signal, Some("payment")), "__wait-payment-1");
        assert_eq!(unnamed(&mut keys, OperationKind::Approval, None), "__approve-0");
        assert_eq!(unnamed(&mut keys, OperationKind::Uuid, None), "__uuid-0");
    }

    #[test]
    fn no_name_can_pretend_to_be_another_key() {
        let mut keys = Keys::default();
        let ship = keys.named(None, "ship", None).unwrap();
        assert_eq!(named(&mut keys, Some(&ship), "label"), "ship/label");
        assert_eq!(named(&mut keys, None, "ship/label"), "ship%2Flabel");
        assert_eq!(named(&mut keys, None, "ship#2"), "ship%232");
        assert_eq!(named(&mut keys, None, "ship%232"), "ship%25232");
        assert_eq!(named(&mut keys, None, "__sleep-0"), "%5F_sleep-0");
        assert_eq!(named(&mut keys, None, "_private"), "_private");
    }

    #[test]
    fn one_name_at_two_places_is_reported_and_a_loop_is_not() {
        let mut keys = Keys::default();
        for _ in 0..3 {
            keys.named(None, "charge", at(10)).unwrap();
        }
        assert_eq!(keys.shared_names(), []);
        for _ in 0..2 {
            keys.named(None, "charge", at(12)).unwrap();
        }
        let [report] = keys.shared_names() else { panic!("{:?}", keys.shared_names()) };
        assert_eq!(
            report.to_string(),
            "\"charge\" is used at shop.rs:10:5 and at shop.rs:12:5: give each place its own name"
        );
    }

    #[test]
    fn a_report_names_the_scope_too_even_if_that_is_numbered() {
        let mut keys = Keys::default();
        keys.named(None, "ship", at(1)).unwrap();
        let second = keys.named(None, "ship", at(1)).unwrap();
        keys.named(Some(&second), "label", at(2)).unwrap();
        keys.named(Some(&second), "label", at(3)).unwrap();
        assert_eq!(keys.shared_names()[0].name, "ship#2/label");
    }

    #[test]
    fn the_same_name_in_two_scopes_is_nobody_elses_business() {
        let mut keys = Keys::default();
        let ship = keys.named(None, "ship", at(1)).unwrap();
        keys.named(None, "label", at(2)).unwrap();
        keys.named(Some(&ship), "label", at(3)).unwrap();
        assert_eq!(keys.shared_names(), []);
    }

    #[test]
    fn keys_go_on_counting_after_a_snapshot() {
        let mut keys = Keys::default();
        keys.named(None, "charge", at(1)).unwrap();
        unnamed(&mut keys, OperationKind::Timer, None);
        let mut restored: Keys = serde_json::from_str(&serde_json::to_string(&keys).unwrap()).unwrap();
        assert_eq!(named(&mut restored, None, "charge"), "charge#2");
        assert_eq!(unnamed(&mut restored, OperationKind::Timer, None), "__sleep-1");
    }

    #[test]
    fn a_name_that_is_refused_is_not_counted() {
        let mut keys = Keys::default();
        let scope = Key::new("ship").unwrap();
        assert!(keys.named(None, "", None).is_err());
        assert!(keys.named(Some(&scope), "", None).is_err());
        assert!(keys.named(None, &"x".repeat(Key::BYTES_MAX + 1), None).is_err());
        assert_eq!(keys, Keys::default());
    }

    #[test]
    fn the_ancestors_of_a_key_are_its_scopes() {
        let key = Key::new("ship/0/label").unwrap();
        assert_eq!(ancestors(&key).collect::<Vec<_>>(), ["ship", "ship/0"]);
        assert_eq!(ancestors(&Key::new("charge").unwrap()).count(), 0);
    }
}
