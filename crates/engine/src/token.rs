//! Tokens nobody can guess, and names made from long texts.

use hmac::{Hmac, KeyInit, Mac};
use outlast_core::id::{Generation, Key, RunKey};
use sha2::{Digest, Sha256};

use crate::engine::Engine;

impl Engine {
    /// A key that every engine on this database derives alike, and nobody without the database can: for what a program signs
    /// and reads again later, or elsewhere, such as a session. Another purpose is another key, and none of them says anything
    /// about the secret it comes from.
    ///
    /// ```
    /// # use outlast::Outlast;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), outlast::EngineError> {
    /// let engine = Outlast::memory().start().await?;
    /// assert_eq!(engine.derived_key("session"), engine.derived_key("session"));
    /// assert_ne!(engine.derived_key("session"), engine.derived_key("invitation"));
    /// # engine.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn derived_key(&self, purpose: &str) -> [u8; 32] {
        self.inner.secret.key_for(purpose)
    }
}

/// The database's own secret. Every node has the same, so a token is the same wherever a run is replayed.
pub(crate) struct Secret([u8; 32]);

impl Secret {
    pub(crate) fn new(secret: [u8; 32]) -> Secret {
        Secret(secret)
    }

    /// A text that only this database can have made, and that it can read again.
    pub(crate) fn seal(&self, content: &[u8]) -> String {
        let content = hex(content);
        let seal = hex(&self.mac(&content).finalize().into_bytes());
        format!("{content}.{seal}")
    }

    /// What was sealed; none if this database did not seal it, or somebody changed it.
    pub(crate) fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        let (content, seal) = sealed.split_once('.')?;
        self.mac(content).verify_slice(&unhex(seal)?).ok()?;
        unhex(content)
    }

    /// One line break, where the text of a callback has three: none is the other's.
    fn mac(&self, content: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a MAC takes a key of any length");
        mac.update(format!("sealed\n{content}").as_bytes());
        mac
    }

    /// A key for one purpose. The purpose is hashed first: whatever is in it, this is the text of nothing else made here.
    fn key_for(&self, purpose: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a MAC takes a key of any length");
        mac.update(format!("key\n{}", hex(&Sha256::digest(purpose.as_bytes()))).as_bytes());
        mac.finalize().into_bytes().into()
    }

    /// The token of a callback. Not stored in the journal: it is made again when it is needed.
    pub(crate) fn token(&self, run: &RunKey, generation: Generation, key: &Key) -> String {
        hex(&self.callback(run, generation, key).finalize().into_bytes())
    }

    /// Whether this is the token of that callback. How long the answer takes says nothing about it.
    pub(crate) fn is_token(&self, run: &RunKey, generation: Generation, key: &Key, shown: &str) -> bool {
        unhex(shown).is_some_and(|shown| self.callback(run, generation, key).verify_slice(&shown).is_ok())
    }

    fn callback(&self, run: &RunKey, generation: Generation, key: &Key) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a MAC takes a key of any length");
        // No part can contain a line break, so that no two callbacks have the same text.
        mac.update(format!("{}\n{}\n{generation}\n{key}", run.namespace, run.id).as_bytes());
        mac
    }
}

/// A short name that only this text has.
pub(crate) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..16])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let digit = |letter: u8| match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    };
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    pairs.map(byte).collect()
}

#[cfg(test)]
mod tests {
    use outlast_core::id::{Namespace, RunId};

    use super::*;

    fn token(secret: u8, run: &str, generation: u64, key: &str) -> String {
        let run = RunKey::new(Namespace::default_namespace(), RunId::new(run).unwrap());
        Secret::new([secret; 32]).token(&run, Generation(generation), &Key::new(key).unwrap())
    }

    #[test]
    fn a_token_is_the_same_everywhere_and_another_for_everything_else() {
        let own = token(1, "a", 0, "k");
        assert_eq!(own, token(1, "a", 0, "k"));
        assert_eq!(own.len(), 64);
        for other in [token(2, "a", 0, "k"), token(1, "b", 0, "k"), token(1, "a", 1, "k"), token(1, "a", 0, "l")] {
            assert_ne!(own, other);
        }
    }

    #[test]
    fn every_purpose_has_a_key_of_its_own_and_it_is_no_token() {
        let secret = Secret::new([1; 32]);
        let own = secret.key_for("session");
        assert_eq!(own, Secret::new([1; 32]).key_for("session"));
        for other in [secret.key_for("sessions"), secret.key_for(""), Secret::new([2; 32]).key_for("session")] {
            assert_ne!(own, other);
        }
        let sealed = secret.seal(b"session");
        assert_ne!(sealed.split_once('.').unwrap().1, hex(&own));
        assert_ne!(own, [1; 32]);
    }
}
