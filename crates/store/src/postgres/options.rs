//! How to reach a PostgreSQL and how to use it.

use std::time::Duration;

use outlast_core::limits::Limits;

use crate::clock::Clock;
use crate::error::StoreError;

/// The longest identifier PostgreSQL keeps whole, in bytes.
const IDENTIFIER_BYTES_MAX: usize = 63;

/// How a [`crate::PostgresStore`] uses its database.
///
/// ```
/// use outlast_store::{PostgresOptions, Tls};
///
/// let options = PostgresOptions { connections: 16, tls: Tls::System, ..PostgresOptions::default() };
/// assert_eq!(options.schema.as_deref(), Some("outlast"));
/// ```
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Where time comes from: by default the server's clock.
    pub clock: Clock,
    /// What is too large.
    pub limits: Limits,
    /// The schema all tables are in, created if it is missing. None: wherever the connection's `search_path` leads.
    pub schema: Option<String>,
    /// Connections this store keeps at most. Lanes and readers share them.
    pub connections: usize,
    /// Transactions that commit groups of writes at the same time, at most.
    pub lanes: usize,
    /// Connections beside those, at most, for the transactions of authors: so many run at the same time.
    pub transactions: usize,
    /// Whether and how connections are encrypted.
    pub tls: Tls,
    /// Whether to send and listen to hints that something became ready; see [`crate::Store::hints`].
    pub notify: bool,
    /// After this long the server gives up a statement, also one that waits for a lock. A transaction of an author may
    /// take as long in all.
    pub statement_timeout: Duration,
    /// After this long an attempt to connect, or to get one of the connections, is given up.
    pub connect_timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions {
            clock: Clock::System,
            limits: Limits::default(),
            schema: Some("outlast".to_owned()),
            connections: 8,
            lanes: 3,
            transactions: 4,
            tls: Tls::Off,
            notify: false,
            statement_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

impl PostgresOptions {
    /// Refuses settings that cannot work.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if self.connections == 0 || self.lanes == 0 || self.transactions == 0 {
            let message = "a store needs at least one connection, one lane and one connection for transactions";
            return Err(StoreError::Settings(message.to_owned()));
        }
        match &self.schema {
            Some(schema) => check_identifier(schema),
            None => Ok(()),
        }
    }
}

/// The name is written into statements: only what needs no escaping is accepted.
fn check_identifier(name: &str) -> Result<(), StoreError> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let begins = name.chars().next().is_some_and(letter);
    let goes_on = name.chars().all(|c| letter(c) || c.is_ascii_digit());
    if begins && goes_on && name.len() <= IDENTIFIER_BYTES_MAX && !name.starts_with("pg_") {
        return Ok(());
    }
    Err(StoreError::Settings(format!(
        "{name:?} cannot be a schema: use at most {IDENTIFIER_BYTES_MAX} letters, digits and underscores, not beginning \
         with a digit or pg_"
    )))
}

/// Whether and how connections are encrypted. With anything but [`Tls::Off`] the server must present a certificate
/// that is valid for its host name (`verify-full`); there is no way to encrypt without checking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not at all: for a server on this machine or in a private network.
    Off,
    /// The certificate is checked against the system's trusted roots.
    System,
    /// The certificate is checked against these roots, in PEM.
    Roots(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_would_need_escaping_is_refused() {
        for name in ["", "1st", "a b", "a\"; DROP TABLE run; --", "pg_mine", "ü", &"x".repeat(64)] {
            let options = PostgresOptions { schema: Some(name.to_owned()), ..PostgresOptions::default() };
            assert!(matches!(options.check(), Err(StoreError::Settings(_))), "{name:?}");
        }
    }

    #[test]
    fn plain_schemas_are_accepted() {
        for name in ["outlast", "_t1", "Tenant_2", &"x".repeat(63)] {
            let options = PostgresOptions { schema: Some(name.to_owned()), ..PostgresOptions::default() };
            assert_eq!(options.check(), Ok(()), "{name:?}");
        }
    }
}
