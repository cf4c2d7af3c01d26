//! Opening a database file: whether the library is safe, which schema it has.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::store_error;
use crate::error::StoreError;

/// Schema versions, forward only: a released one never changes, the next one is added below it.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];

/// "outl" in the file's header: this is one of our databases.
const APPLICATION_ID: i32 = 0x6f75_746c;

/// The first SQLite whose write-ahead log cannot be corrupted by a reset at the wrong moment.
const SAFE_SQLITE: i32 = 3_051_003;

/// How long to wait for a lock somebody else holds on the file, a backup for example.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Statements kept prepared per connection.
const STATEMENTS_MAX: usize = 256;

/// Refuses a library that can lose data.
pub(super) fn check_library(version: i32) -> Result<(), StoreError> {
    if version >= SAFE_SQLITE {
        return Ok(());
    }
    let found = format!("{}.{}.{}", version / 1_000_000, version / 1_000 % 1_000, version % 1_000);
    Err(StoreError::UnsafeSqlite { found })
}

/// The connection that writes: durable to the disk before anything is acknowledged.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| at(path, &error))?;
    prepare(&connection).map_err(|error| at(path, &error))?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(|error| at(path, &error))?;
    if !mode.eq_ignore_ascii_case("wal") {
        let message = format!("{} does not take a write-ahead log (journal mode is {mode})", path.display());
        return Err(StoreError::Settings(format!("{message}; put the file on a local disk")));
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(|error| at(path, &error))?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| at(path, &error))?;
    prepare(&connection).map_err(|error| at(path, &error))?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise a statement is prepared anew, parsed and planned, whenever a value it was planned with changes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

fn at(path: &Path, error: &rusqlite::Error) -> StoreError {
    match store_error(error) {
        StoreError::Unavailable { trouble, message } => {
            StoreError::unavailable(trouble, format!("{}: {message}", path.display()))
        }
        StoreError::Corrupt { detail, .. } => StoreError::corrupt(path.display().to_string(), detail),
        other => other,
    }
}

/// Brings the schema up to date, or refuses a file that is not ours or is too new.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let result = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = result.map_err(|error| at(path, &error))?;
    let read = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let version = read("user_version").map_err(|error| at(path, &error))?;
    let application = read("application_id").map_err(|error| at(path, &error))?;
    let tables: i64 = transaction
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(|error| at(path, &error))?;
    if application != APPLICATION_ID && tables > 0 {
        return Err(StoreError::Settings(format!(
            "{} is an SQLite database of another program; choose another file",
            path.display()
        )));
    }
    let found = usize::try_from(version).unwrap_or(0);
    if found > MIGRATIONS.len() {
        let (found, known) = (u32::try_from(found).unwrap_or(u32::MAX), MIGRATIONS.len() as u32);
        return Err(StoreError::NewerDatabase { found, known });
    }
    let applied = apply(&transaction, found).and_then(|()| transaction.commit());
    applied.map_err(|error| at(path, &error))
}

fn apply(transaction: &rusqlite::Transaction<'_>, found: usize) -> rusqlite::Result<()> {
    for migration in &MIGRATIONS[found..] {
        transaction.execute_batch(migration)?;
    }
    if found < MIGRATIONS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as u32)?;
    }
    Ok(())
}

/// The names of our own tables and indexes, in lower case: read from the schema, so that no list can fall behind it.
pub(super) fn own_names() -> rusqlite::Result<BTreeSet<String>> {
    let connection = Connection::open_in_memory()?;
    for migration in MIGRATIONS {
        connection.execute_batch(migration)?;
    }
    let mut statement = connection.prepare("SELECT lower(name) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Keeps the file within so many bytes.
pub(super) fn limit_size(connection: &Connection, bytes: u64) -> Result<(), StoreError> {
    let limit = || -> rusqlite::Result<()> {
        let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
    };
    limit().map_err(|error| store_error(&error))
}

/// Nobody but this process can own anything: every lease before it is over.
pub(super) fn end_old_leases(connection: &Connection) -> Result<(), StoreError> {
    connection.execute("UPDATE lease SET until = 0", []).map(|_| ()).map_err(|error| store_error(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_in_the_corruption_range_is_refused_by_version() {
        assert!(check_library(SAFE_SQLITE).is_ok());
        let error = check_library(3_051_002).unwrap_err();
        assert_eq!(error, StoreError::UnsafeSqlite { found: "3.51.2".to_owned() });
        assert!(check_library(3_007_000).is_err());
    }

    #[test]
    fn the_writer_is_durable_to_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open_writer(&dir.path().join("a.db")).unwrap();
        let read =
            |name| connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
        assert_eq!(read("synchronous"), rusqlite::types::Value::Integer(2), "2 is FULL");
        assert_eq!(read("journal_mode"), rusqlite::types::Value::Text("wal".to_owned()));
    }

    #[test]
    fn the_bundled_library_is_safe() {
        assert_eq!(check_library(rusqlite::version_number()), Ok(()));
    }
}
