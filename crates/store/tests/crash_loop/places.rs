//! Where a story takes place: three databases, and what a crash does to each.

use std::sync::Arc;

#[cfg(feature = "postgres")]
use crate::harness::PostgresHarness;
use outlast_core::id::Namespace;
use outlast_core::limits::Limits;
#[cfg(feature = "postgres")]
use outlast_store::contract::{Fixture, Harness};
use outlast_store::{Clock, ManualClock, MemoryStore, Store};

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    #[cfg(feature = "sqlite")]
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

/// A database that outlives the processes that use it.
pub(crate) struct Place {
    kind: Kind,
    pub(crate) clock: ManualClock,
    pub(crate) namespace: Namespace,
    store: Option<Arc<dyn Store>>,
    /// Stories told here, for the namespaces.
    stories: u64,
    #[cfg(feature = "sqlite")]
    folder: Option<tempfile::TempDir>,
    #[cfg(feature = "postgres")]
    fixture: Option<Fixture>,
}

impl Place {
    /// An empty one.
    pub(crate) async fn new(kind: Kind) -> Place {
        let mut place = Place {
            kind,
            clock: ManualClock::at(1_000),
            namespace: Namespace::default_namespace(),
            store: None,
            stories: 0,
            #[cfg(feature = "sqlite")]
            folder: None,
            #[cfg(feature = "postgres")]
            fixture: None,
        };
        place.store = Some(place.open().await);
        place
    }

    async fn open(&mut self) -> Arc<dyn Store> {
        let clock = Clock::Manual(self.clock.clone());
        match self.kind {
            Kind::Memory => Arc::new(MemoryStore::new(clock, Limits::default())),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => {
                let folder = self.folder.get_or_insert_with(sqlite::folder);
                sqlite::open(folder.path(), clock).await
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres => {
                if self.fixture.is_none() {
                    let fixture = PostgresHarness.open(Limits::default()).await;
                    self.clock = fixture.clock.clone();
                    self.fixture = Some(fixture);
                }
                let fixture = self.fixture.as_ref().expect("it was opened");
                PostgresHarness.second(fixture).await.expect("many processes share one PostgreSQL")
            }
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.store.as_ref().expect("a place is open")
    }

    /// Steps between two looks at everything: the dearer a look, the rarer.
    pub(crate) fn look_every(&self) -> u64 {
        match self.kind {
            Kind::Memory => 8,
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => 24,
            #[cfg(feature = "postgres")]
            Kind::Postgres => 48,
        }
    }

    /// Empties the place for the next story: a new database, or where that is dear, a new namespace.
    pub(crate) async fn renew(&mut self) {
        self.stories += 1;
        match self.kind {
            Kind::Memory => self.store = Some(self.open().await),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => {
                self.store = None;
                self.folder = None;
                self.store = Some(self.open().await);
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres => {
                self.namespace = Namespace::new(format!("story-{}", self.stories)).unwrap();
                self.store().put_namespace(self.namespace.clone()).await.unwrap();
            }
        }
    }

    /// Every process that uses the database dies, and another one comes.
    pub(crate) async fn crash(&mut self) {
        match self.kind {
            // Memory plays the database, not the process.
            Kind::Memory => {}
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => {
                // The file is free only once the last of its users is gone.
                assert_eq!(self.store.as_ref().map(Arc::strong_count), Some(1), "somebody survived the crash");
                self.store = None;
                self.store = Some(self.open().await);
            }
            #[cfg(feature = "postgres")]
            Kind::Postgres => self.store = Some(self.open().await),
        }
    }

    /// Removes what [`Place::new`] made.
    pub(crate) async fn close(mut self) {
        self.store = None;
        #[cfg(feature = "postgres")]
        if let Some(fixture) = self.fixture {
            PostgresHarness.close(fixture).await;
        }
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::path::Path;
    use std::sync::Arc;

    use outlast_store::{Clock, SqliteOptions, SqliteStore, Store};

    /// Where there is a file system in memory, that one: these crashes are of processes, not of disks.
    const FAST: &str = "/dev/shm";

    pub(super) fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in(FAST).or_else(|_| tempfile::tempdir()).unwrap()
    }

    pub(super) async fn open(folder: &Path, clock: Clock) -> Arc<dyn Store> {
        let options = SqliteOptions { clock, readers: 1, ..SqliteOptions::default() };
        Arc::new(SqliteStore::open(folder.join("crash.db"), options).await.unwrap())
    }
}
