//! What a webhook is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast::Namespace;
use thiserror::Error;

/// The shortest id: 22 letters of Base64 are 132 bits, which nobody guesses.
const ID_BYTES_MIN: usize = 22;
/// The shortest secret.
const SECRET_BYTES_MIN: usize = 16;

/// Why something cannot be a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the webhook {name:?} cannot be used: {problem}")]
pub struct HookError {
    name: String,
    problem: String,
}

impl HookError {
    pub(super) fn new(name: &str, problem: impl Into<String>) -> HookError {
        HookError { name: name.to_owned(), problem: problem.into() }
    }
}

/// A webhook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The last part of its address. Nobody can guess it, and only who is told can call it.
    pub id: String,
    /// What people call it; stands in the audit log.
    pub name: String,
    /// The namespace it acts in.
    pub namespace: String,
    /// The secrets it accepts: more than one while they are rotated. With none it is closed.
    pub secrets: Vec<HookSecret>,
    /// What it does.
    pub action: HookAction,
    /// Where in the body the run's id is, as a JSON pointer: `/data/order`; or an expression that makes it of `body`.
    pub run: Option<String>,
    /// An expression that makes the input or payload of `body`, if it is not to be the body itself.
    pub map: Option<String>,
    /// Replies only when the run has come to its next pause or its end.
    pub wait: bool,
}

/// What a webhook does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// Starts a run, with the body as its input; or, if it is to be signalled, without input and with the body as the signal's
    /// payload, whether it is new or not.
    Start {
        /// Which workflow.
        workflow: String,
        /// Which signal.
        signal: Option<String>,
    },
    /// Signals a run, with the body as the payload.
    Signal {
        /// Which signal.
        signal: String,
    },
}

/// A secret two parties share. It is never shown.
#[derive(Clone)]
pub struct HookSecret(Vec<u8>);

impl HookSecret {
    /// Reads a secret as Standard Webhooks writes it: `whsec_` and Base64.
    pub fn read(text: &str) -> Result<HookSecret, HookError> {
        let refused = |problem| HookError::new("", problem);
        let text = text.strip_prefix("whsec_").ok_or_else(|| refused("its secret must begin with `whsec_`"))?;
        let bytes = STANDARD.decode(text).map_err(|_| refused("its secret must be Base64 behind `whsec_`"))?;
        if bytes.len() < SECRET_BYTES_MIN {
            return Err(refused("its secret is too short: 24 bytes or more are right"));
        }
        Ok(HookSecret(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for HookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookSecret(…)")
    }
}

impl Hook {
    pub(super) fn check(&self) -> Result<(), HookError> {
        let refused = |problem: &str| Err(HookError::new(&self.name, problem));
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if self.id.len() < ID_BYTES_MIN || !self.id.bytes().all(is_letter) {
            return refused("its id must have at least 22 letters, digits, `-` or `_`, drawn at random");
        }
        if Namespace::new(&self.namespace).is_err() {
            return refused("its namespace cannot be one");
        }
        let expressions = self.run.iter().filter(|place| !place.starts_with('/')).chain(&self.map);
        for expression in expressions {
            if let Err(problem) = super::mapping::check(expression) {
                let form = "where the run's id is must be a JSON pointer, such as `/data/order`, or an expression";
                return refused(&format!("{form}, and `map` an expression; {expression:?} is none: {problem}"));
            }
        }
        match (&self.action, &self.run) {
            (HookAction::Signal { .. }, None) => refused("a signal needs `run`: where in the body the run's id is"),
            _ => Ok(()),
        }
    }
}
