//! Tokens. Only their hashes are kept: who reads the configuration cannot use them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast::{Namespace, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;

use super::Scope;
use crate::instant;

/// What every token begins with, so that one that leaked is found by those who look for secrets.
const PREFIX: &str = "olt_";
const SECRET_BYTES: usize = 32;

/// Why a token cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the token {name:?} cannot be used: {problem}")]
pub struct TokenError {
    name: String,
    problem: String,
}

/// A token as it is kept: in an `outlast.toml`, under `[[tokens]]`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Finds it; no secret.
    pub id: String,
    /// Who has it: stands beside approvals and in the audit log.
    pub name: String,
    /// The namespace it acts in.
    pub namespace: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// `sha256:` and the hash of the token, in hexadecimal digits.
    pub hash: String,
    /// It is worthless from this instant on (RFC 3339).
    pub expires: String,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { id, name, namespace, scopes, hash: _, expires } = self;
        write!(f, "Token({id} of {name:?} in {namespace:?}, {scopes:?}, until {expires})")
    }
}

/// A token that was just made. Its text is shown once and kept nowhere.
pub struct NewToken {
    /// What its owner sends: `Authorization: Bearer …`.
    pub text: String,
    /// What is kept of it.
    pub token: Token,
}

impl NewToken {
    /// Draws a token.
    pub fn draw(name: &str, namespace: &str, scopes: &[Scope], expires: Timestamp) -> Result<NewToken, TokenError> {
        let refused = |problem: String| TokenError { name: name.to_owned(), problem };
        let (mut id, mut secret) = ([0; 8], [0; SECRET_BYTES]);
        getrandom::fill(&mut id).map_err(|error| refused(error.to_string()))?;
        getrandom::fill(&mut secret).map_err(|error| refused(error.to_string()))?;
        let id = hex(&id);
        let text = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
        let token = Token {
            id,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            scopes: scopes.to_vec(),
            hash: format!("sha256:{}", hex(&Sha256::digest(text.as_bytes()))),
            expires: instant::text(expires),
        };
        token.check()?;
        Ok(NewToken { text, token })
    }
}

impl Token {
    /// The token as an entry of an `outlast.toml`.
    pub fn to_toml(&self) -> String {
        // A text of JSON is a text of TOML.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let scopes: Vec<String> = self.scopes.iter().map(|scope| quoted(scope.name())).collect();
        format!(
            "[[tokens]]\nid = {}\nname = {}\nnamespace = {}\nscopes = [{}]\nhash = {}\nexpires = {}\n",
            quoted(&self.id),
            quoted(&self.name),
            quoted(&self.namespace),
            scopes.join(", "),
            quoted(&self.hash),
            quoted(&self.expires)
        )
    }

    fn check(&self) -> Result<Known, TokenError> {
        let refused = |problem: String| TokenError { name: self.name.clone(), problem };
        Namespace::new(&self.namespace).map_err(|error| refused(error.to_string()))?;
        if self.id.is_empty() || self.name.is_empty() || self.scopes.is_empty() {
            return Err(refused("it needs an id, a name and at least one scope".to_owned()));
        }
        if self.name.chars().any(char::is_control) || self.name.len() > 255 {
            return Err(refused("its name must have at most 255 bytes, and no control characters".to_owned()));
        }
        let expires = instant::parse(&self.expires);
        let expires = expires.ok_or_else(|| refused(format!("{:?} is no instant of RFC 3339", self.expires)))?;
        let hash = self.hash.strip_prefix("sha256:").and_then(unhex).and_then(|hash| hash.try_into().ok());
        let hash =
            hash.ok_or_else(|| refused("its hash must be `sha256:` and 64 digits, 0 to 9 and a to f".to_owned()))?;
        Ok(Known { token: self.clone(), hash, expires })
    }
}

/// A token that was read.
#[derive(Debug)]
pub(crate) struct Known {
    pub(super) token: Token,
    pub(super) hash: [u8; 32],
    pub(super) expires: Timestamp,
}

/// The tokens a server knows. They may change while it runs.
#[derive(Default)]
pub struct Tokens {
    known: RwLock<BTreeMap<String, Arc<Known>>>,
    /// There were some once.
    were_there: AtomicBool,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.known.read().unwrap_or_else(PoisonError::into_inner).len())
    }
}

impl Tokens {
    /// Reads tokens.
    pub fn new(tokens: &[Token]) -> Result<Tokens, TokenError> {
        let taken = Tokens::default();
        taken.replace(tokens)?;
        Ok(taken)
    }

    /// Puts others in their place, from now on. If one cannot be read, all stay as they were.
    pub fn replace(&self, tokens: &[Token]) -> Result<(), TokenError> {
        let tokens = read(tokens)?;
        // Before they are there: nobody may find the door open and no tokens.
        self.were_there.fetch_or(!tokens.is_empty(), Ordering::SeqCst);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        Ok(())
    }

    /// Whether there ever were any. A file that lost its tokens must not open a server to everybody.
    pub(super) fn were_there(&self) -> bool {
        self.were_there.load(Ordering::SeqCst)
    }

    /// The token that was shown, if it is one and has not expired.
    pub(super) fn find(&self, shown: &str, now: Timestamp) -> Option<Arc<Known>> {
        let known = self.by_id(shown.strip_prefix(PREFIX)?.split('_').next()?);
        // A hash is made in any case: how long the answer takes says nothing about which ids there are.
        let hash = Sha256::digest(shown.as_bytes());
        let known = known?;
        let is_it = bool::from(hash.as_slice().ct_eq(&known.hash));
        (is_it && now < known.expires).then_some(known)
    }

    /// The token with this id. That somebody knows an id proves nothing.
    pub(super) fn by_id(&self, id: &str) -> Option<Arc<Known>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

fn read(tokens: &[Token]) -> Result<BTreeMap<String, Arc<Known>>, TokenError> {
    let mut known = BTreeMap::new();
    for token in tokens {
        if known.insert(token.id.clone(), Arc::new(token.check()?)).is_some() {
            let problem = format!("another one has the id {:?}", token.id);
            return Err(TokenError { name: token.name.clone(), problem });
        }
    }
    Ok(known)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What [`hex`] made a text of, and of no other way to write the same.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> NewToken {
        NewToken::draw("ann", "shop", &[Scope::Read], Timestamp::from_millis(1_000)).unwrap()
    }

    #[test]
    fn a_token_is_found_until_it_expires_and_no_other_text_is() {
        let NewToken { text, token } = drawn();
        let tokens = Tokens::new(&[token, drawn().token]).unwrap();
        assert_eq!(tokens.find(&text, Timestamp::from_millis(999)).unwrap().token.name, "ann");
        assert!(tokens.find(&text, Timestamp::from_millis(1_000)).is_none());
        let mut other = text.clone();
        other.pop();
        for wrong in ["", "olt_", "nothing", &text[4..], &other, &format!("{text}x"), &drawn().text] {
            assert!(tokens.find(wrong, Timestamp::from_millis(0)).is_none(), "{wrong}");
        }
    }

    #[test]
    fn what_is_kept_says_nothing_of_the_token_and_reads_again() {
        #[derive(Deserialize)]
        struct File {
            tokens: Vec<Token>,
        }
        let NewToken { text, token } = drawn();
        let secret = text.rsplit('_').next().unwrap();
        assert!(!token.to_toml().contains(secret) && !format!("{token:?}").contains("sha256"));
        let file: File = toml::from_str(&token.to_toml()).unwrap();
        assert!(file.tokens == [token]);
    }

    #[test]
    fn there_is_one_way_to_write_bytes() {
        assert_eq!(unhex("00ff7a"), Some(vec![0, 255, 122]));
        assert_eq!(unhex(""), Some(Vec::new()));
        for wrong in ["0", "0g", "FF", "aF", "+f", "-1", " 1", "0x", "\u{fc}"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
        let NewToken { token, .. } = drawn();
        let hash = token.hash.strip_prefix("sha256:").unwrap().to_uppercase();
        assert!(Tokens::new(&[Token { hash: format!("sha256:{hash}"), ..token }]).is_err());
    }

    #[test]
    fn a_token_that_cannot_be_read_leaves_the_others_as_they_were() {
        let NewToken { text, token } = drawn();
        let tokens = Tokens::new(std::slice::from_ref(&token)).unwrap();
        for wrong in [
            Token { hash: "sha256:00".to_owned(), ..token.clone() },
            Token { expires: "soon".to_owned(), ..token.clone() },
            Token { scopes: Vec::new(), ..token.clone() },
            Token { namespace: String::new(), ..token.clone() },
        ] {
            assert!(tokens.replace(&[wrong]).is_err());
        }
        assert!(tokens.replace(&[token.clone(), token]).is_err(), "one id twice");
        assert!(tokens.find(&text, Timestamp::from_millis(0)).is_some());
        tokens.replace(&[]).unwrap();
        assert!(tokens.find(&text, Timestamp::from_millis(0)).is_none());
    }
}
