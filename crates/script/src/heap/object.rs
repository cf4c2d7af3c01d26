//! Objects: properties in the order in which they were added.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::value::Value;

/// What a property takes beside its name.
pub(crate) const ENTRY_BYTES: usize = 32;
/// Up to here looking at each is faster than hashing.
const SCAN_MAX: usize = 8;

#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    entries: Vec<(Arc<str>, Value)>,
    /// Where each key is, once there are many. Never iterated.
    places: Option<FxHashMap<Arc<str>, u32>>,
}

impl Object {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(Arc<str>, Value)> {
        self.entries.iter()
    }

    /// The property at a place.
    pub(crate) fn at(&self, place: usize) -> Option<&(Arc<str>, Value)> {
        self.entries.get(place)
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.place(key).map(|place| self.entries[place].1)
    }

    /// Sets a property; whether it is new.
    pub(crate) fn set(&mut self, key: &Arc<str>, value: Value) -> bool {
        if let Some(place) = self.place(key) {
            self.entries[place].1 = value;
            return false;
        }
        self.entries.push((Arc::clone(key), value));
        match &mut self.places {
            Some(places) => {
                places.insert(Arc::clone(key), number(self.entries.len() - 1));
            }
            None if self.entries.len() > SCAN_MAX => self.index(),
            None => {}
        }
        true
    }

    /// Removes a property; whether there was one.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(place) = self.place(key) else { return false };
        self.entries.remove(place);
        if self.places.is_some() {
            self.index();
        }
        true
    }

    fn place(&self, key: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(key).map(|place| *place as usize),
            None => self.entries.iter().position(|(name, _)| **name == *key),
        }
    }

    fn index(&mut self) {
        let places = self.entries.iter().enumerate().map(|(place, (key, _))| (Arc::clone(key), number(place)));
        self.places = Some(places.collect());
    }
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl FromIterator<(Arc<str>, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(entries: I) -> Object {
        let mut object = Object::default();
        for (key, value) in entries {
            object.set(&key, value);
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_keep_their_order_however_many_there_are() {
        let mut object: Object =
            (0..20).map(|n| (Arc::from(format!("k{}", 19 - n)), Value::Number(f64::from(n)))).collect();
        assert!(object.remove("k19") && object.remove("k5") && !object.remove("k5"));
        assert_eq!(object.len(), 18);
        assert_eq!(object.get("k0"), Some(Value::Number(19.0)));
        assert_eq!(object.at(0).map(|(key, _)| &**key), Some("k18"));
        assert!(!object.set(&Arc::from("k0"), Value::Null));
        assert!(object.set(&Arc::from("new"), Value::Null));
        assert_eq!(object.iter().last().map(|(key, _)| &**key), Some("new"));
    }
}
