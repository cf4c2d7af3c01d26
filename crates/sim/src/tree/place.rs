//! Where an operation stands in its program, and so what its key is.

/// A place in a tree. Every operation has its name from there, so that each name is used at one place; and everybody who
/// knows the tree knows the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    scope: String,
    path: String,
}

impl Place {
    /// Where a generation begins.
    pub fn root() -> Place {
        Place::default()
    }

    /// The place of a part.
    #[must_use]
    pub fn part(&self, number: usize) -> Place {
        let path = if self.path.is_empty() { number.to_string() } else { format!("{}.{number}", self.path) };
        Place { path, scope: self.scope.clone() }
    }

    /// The name of an operation here. One place may have several, of different kinds.
    pub fn name(&self, kind: &str) -> String {
        format!("{kind}-{}", self.path)
    }

    /// The key of an operation here.
    pub fn key(&self, kind: &str) -> String {
        let name = self.name(kind);
        if self.scope.is_empty() { name } else { format!("{}/{name}", self.scope) }
    }

    /// Whether a key is that of an operation here, of whatever kind, or of one inside it.
    pub fn has(&self, key: &str) -> bool {
        let own = if self.scope.is_empty() { Some(key) } else { key.strip_prefix(&format!("{}/", self.scope)) };
        let name = own.and_then(|own| own.split('/').next());
        name.and_then(|name| name.split_once('-')).is_some_and(|(_, path)| path == self.path)
    }

    /// The same place, inside a scope that begins here.
    #[must_use]
    pub fn inside(&self, kind: &str) -> Place {
        Place { scope: self.key(kind), path: self.path.clone() }
    }

    /// A branch of a batch that begins here.
    #[must_use]
    pub fn branch(&self, kind: &str, number: usize) -> Place {
        Place { scope: format!("{}/{number}", self.key(kind)), ..self.part(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_the_way_through_scopes_and_branches() {
        let place = Place::root().part(2);
        assert_eq!(place.key("step"), "step-2");
        assert_eq!(place.inside("scope").part(0).key("step"), "scope-2/step-2.0");
        assert_eq!(place.branch("map", 1).key("step"), "map-2/1/step-2.1");
    }

    #[test]
    fn a_place_knows_its_own_keys() {
        let inside = Place::root().part(2).inside("scope").part(0);
        assert!(inside.has("scope-2/step-2.0") && inside.has("scope-2/callback-2.0/submit"));
        for other in ["step-2.0", "scope-2/step-2.1", "scope-2", "scope-2/step-2"] {
            assert!(!inside.has(other), "{other}");
        }
        assert!(Place::root().has("step-") && !Place::root().has("step-0"));
    }
}
