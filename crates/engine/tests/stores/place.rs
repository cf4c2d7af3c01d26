//! Where a story takes place: a world, and a database with its clock.

use std::sync::Arc;
use std::time::Duration;

use outlast::Outlast;
use outlast::testing::{Process, World};
use outlast_store::contract::author::{PostgresAuthor, SqliteAuthor};
use outlast_store::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Makes two tests of each story: one on a SQLite file and one on PostgreSQL.
macro_rules! stories {
    ($($story:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $story() { super::$story(&$crate::place::Place::sqlite()); })+
        }
        mod on_postgres {
            $(#[test] fn $story() { super::$story(&$crate::place::Place::postgres(stringify!($story))); })+
        }
    };
}
pub(crate) use stories;

/// Who is silent for so long loses what it holds.
pub(crate) const LEASE: Duration = seconds(15);
/// A schema's name may be no longer, and a number follows.
const SCHEMA_NAME_MAX: usize = 40;

/// An engine of a process that looks around every second.
pub(crate) fn node(process: &Process) -> Outlast {
    process.engine().lease(LEASE).poll(seconds(1))
}

/// A world and a database.
pub(crate) struct Place {
    pub(crate) world: World,
    store: Arc<dyn Store>,
    hand: Hand,
    _folder: Option<TempDir>,
    /// Entered for the whole story: PostgreSQL needs a runtime wherever it is asked.
    runtime: &'static Runtime,
}

/// Somebody who writes to the database past the store.
enum Hand {
    Nobody,
    Sqlite(SqliteAuthor),
    Postgres(Box<PostgresAuthor>),
}

impl Place {
    /// No database at all.
    pub(crate) fn memory() -> Place {
        let runtime = enter();
        let world = World::new();
        let store = world.store();
        Place { world, store, hand: Hand::Nobody, _folder: None, runtime }
    }

    pub(crate) fn sqlite() -> Place {
        let runtime = enter();
        let world = World::new();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("story.db");
        let options = SqliteOptions { clock: world.clock(), ..SqliteOptions::default() };
        let store = runtime.block_on(SqliteStore::open(&path, options)).unwrap();
        let hand = Hand::Sqlite(SqliteAuthor::new(path));
        Place { world, store: Arc::new(store), hand, _folder: Some(directory), runtime }
    }

    /// In a schema of its own.
    pub(crate) fn postgres(name: &str) -> Place {
        Place::postgres_at(&postgres_url(), name)
    }

    /// The same, with another user.
    pub(crate) fn postgres_as(user: &str, name: &str) -> Place {
        let url = postgres_url();
        let (scheme, rest) = url.split_once("://").expect("the address of a server");
        let server = rest.split_once('@').map_or(rest, |(_, server)| server);
        Place::postgres_at(&format!("{scheme}://{user}@{server}"), name)
    }

    fn postgres_at(url: &str, name: &str) -> Place {
        let runtime = enter();
        let world = World::new();
        let schema = format!("{}_{}", &name[..name.len().min(SCHEMA_NAME_MAX)], std::process::id());
        let options =
            PostgresOptions { clock: world.clock(), schema: Some(schema.clone()), ..PostgresOptions::default() };
        let store = runtime.block_on(PostgresStore::connect(url, options)).unwrap();
        let author = runtime.block_on(PostgresAuthor::connect(url)).unwrap();
        runtime.block_on(author.execute(&format!("SET search_path = \"{schema}\""))).unwrap();
        Place { world, store: Arc::new(store), hand: Hand::Postgres(Box::new(author)), _folder: None, runtime }
    }

    /// Each kind of place, in turn.
    pub(crate) fn each(name: &str, story: impl Fn(Place)) {
        story(Place::sqlite());
        story(Place::postgres(name));
    }

    /// The same, and the story does harm: no doctor comes at its end.
    pub(crate) fn unexamined(mut self) -> Place {
        self.world = self.world.unexamined();
        self
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    pub(crate) fn engine(&self) -> Outlast {
        self.world.engine_on(self.store())
    }

    /// A process of its own.
    pub(crate) fn process(&self) -> Process {
        self.world.process(self.store())
    }

    /// What a query of PostgreSQL gives, in no time.
    pub(crate) fn texts(&self, query: &str) -> Vec<String> {
        let Hand::Postgres(author) = &self.hand else { panic!("this is not PostgreSQL") };
        let read = || self.runtime.block_on(author.texts(query)).unwrap();
        std::thread::scope(|scope| scope.spawn(read).join().unwrap())
    }

    /// What bytes are called there.
    pub(crate) fn bytes(&self) -> &'static str {
        match self.hand {
            Hand::Nobody | Hand::Sqlite(_) => "BLOB",
            Hand::Postgres(_) => "bytea",
        }
    }

    /// What the number of a run is called there.
    pub(crate) fn number(&self) -> &'static str {
        match self.hand {
            Hand::Nobody | Hand::Sqlite(_) => "row",
            Hand::Postgres(_) => "seq",
        }
    }

    /// Does harm, in no time.
    pub(crate) fn write(&self, statements: &str) {
        match &self.hand {
            Hand::Nobody => panic!("nobody writes past the memory"),
            Hand::Sqlite(author) => author.execute(statements).unwrap(),
            Hand::Postgres(author) => {
                let write = || self.runtime.block_on(author.execute(statements)).unwrap();
                // Not on this thread: it is in a runtime already.
                std::thread::scope(|scope| scope.spawn(write).join().unwrap());
            }
        }
    }
}

fn postgres_url() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("there is no PostgreSQL: run `cargo xtask test`, or set OUTLAST_TEST_POSTGRES")
}

/// A runtime that stays: a store's connections end with it.
fn enter() -> &'static Runtime {
    let runtime: &'static Runtime = Box::leak(Box::new(Runtime::new().unwrap()));
    std::mem::forget(runtime.enter());
    runtime
}
