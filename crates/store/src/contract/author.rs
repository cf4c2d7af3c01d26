//! An author beside a store: whoever has tables of their own in the store's database, and a connection of their own.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;

/// An author with a table in a SQLite file.
#[cfg(feature = "sqlite")]
#[derive(Clone, Debug)]
pub struct SqliteAuthor {
    path: PathBuf,
}

#[cfg(feature = "sqlite")]
impl SqliteAuthor {
    /// The author of a file, which a store has or will have.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        SqliteAuthor { path: path.into() }
    }

    /// Runs statements.
    pub fn execute(&self, statements: &str) -> Result<(), String> {
        let connection = rusqlite::Connection::open(&self.path).map_err(|error| error.to_string())?;
        connection.execute_batch(statements).map_err(|error| error.to_string())
    }

    /// The first column of every row, which is text.
    pub fn texts(&self, query: &str) -> Result<Vec<String>, String> {
        let read = || {
            let connection = rusqlite::Connection::open(&self.path)?;
            let mut statement = connection.prepare(query)?;
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| error.to_string())
    }
}

/// An author with a table on a PostgreSQL server.
#[cfg(feature = "postgres")]
pub struct PostgresAuthor {
    client: tokio_postgres::Client,
}

#[cfg(feature = "postgres")]
impl PostgresAuthor {
    /// Connects. Must be called inside a Tokio runtime, to which the connection will belong.
    #[expect(clippy::disallowed_methods, reason = "a connection of one's own is driven by a task of one's own")]
    pub async fn connect(url: &str) -> Result<Self, String> {
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        Ok(PostgresAuthor { client })
    }

    /// Runs statements.
    pub async fn execute(&self, statements: &str) -> Result<(), String> {
        self.client.batch_execute(statements).await.map_err(|error| error.to_string())
    }

    /// The first column of every row, which is text.
    pub async fn texts(&self, query: &str) -> Result<Vec<String>, String> {
        let rows = self.client.query(query, &[]).await.map_err(|error| error.to_string())?;
        rows.iter().map(|row| row.try_get(0).map_err(|error| error.to_string())).collect()
    }
}
