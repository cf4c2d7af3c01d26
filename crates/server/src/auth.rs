//! Who may do what. A token belongs to one namespace and has scopes; nothing else in a request says whose runs it is about.

mod guard;
mod scope;
mod token;

pub use scope::Scope;
pub use token::{NewToken, Token, TokenError, Tokens};

pub(crate) use token::hex;

pub(crate) use guard::{Caller, Needs, guard};

use std::sync::Arc;

/// Who may use a server.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Whoever reaches it, with every scope, in the engine's own namespace. Only on a loopback address.
    #[default]
    Open,
    /// Whoever shows a token.
    Tokens(Arc<Tokens>),
}
