//! Who may do what. A token belongs to one namespace and has scopes; nothing else in a request says whose runs it is about.

mod door;
mod guard;
mod scope;
pub(crate) mod session;
mod token;

pub use scope::Scope;
pub use token::{NewToken, Token, TokenError, Tokens};

pub(crate) use token::{Known, hex};

pub(crate) use door::Door;
pub(crate) use guard::{Caller, Needs, Shown, guard, whose};

use std::sync::Arc;

impl Access {
    /// The tokens somebody must show one of; none if whoever reaches the server may use it.
    pub(crate) fn needed(&self) -> Option<&Tokens> {
        match self {
            Access::Local(tokens) if !tokens.were_there() => None,
            Access::Local(tokens) | Access::Tokens(tokens) => Some(tokens),
            Access::Open => None,
        }
    }

    /// Whether only this machine may ever reach the server.
    pub(crate) fn is_for_this_machine(&self) -> bool {
        match self {
            Access::Open | Access::Local(_) => true,
            Access::Tokens(_) => false,
        }
    }
}

/// Who may use a server.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Whoever reaches it, with every scope, in the engine's own namespace. Only on a loopback address.
    #[default]
    Open,
    /// The same until there are tokens; from then on whoever shows one, also when the last of them is taken away again. Only
    /// on a loopback address.
    Local(Arc<Tokens>),
    /// Whoever shows a token.
    Tokens(Arc<Tokens>),
}
