//! What a server allows without an engine: durable commits that touch no table.

use deadpool_postgres::Pool;

use super::failure::Failure;
use super::options::PostgresOptions;
use super::session;
use crate::error::StoreError;

/// A commit with a message that nobody reads: it is written to the server's log and waited for, and nothing is left of it.
const COMMIT: &str =
    "SELECT count(pg_logical_emit_message(true, 'outlast bench', $1::text)) FROM generate_series(1, $2::int)";

/// A connection of its own, for whoever measures what a server allows.
pub struct BareCommits {
    pool: Pool,
}

impl BareCommits {
    /// Nothing is connected before the first commit.
    pub fn new(url: &str, options: &PostgresOptions) -> Result<BareCommits, StoreError> {
        options.check()?;
        Ok(BareCommits { pool: session::pool(session::config(url, options)?, options, 1)? })
    }

    /// One durable commit of so many rows, each with this text.
    pub async fn commit(&self, rows: u16, text: &str) -> Result<(), StoreError> {
        let client = self.pool.get().await.map_err(|error| Failure::from(error).error)?;
        let statement = client.prepare_cached(COMMIT).await.map_err(|error| Failure::from(error).error)?;
        let written = client.query(&statement, &[&text, &i32::from(rows)]).await;
        written.map(drop).map_err(|error| Failure::from(error).error)
    }
}
