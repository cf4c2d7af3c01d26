//! What a case is played on: the store in memory, a real SQLite file, or a real PostgreSQL.
//!
//! All of them have the world's clock: virtual time stands still while a call is under way, however long that takes. But only
//! the store in memory answers at once, so that only there the same seed gives the same trace, and everything the watch sees
//! is judged. On disk a case is judged by what the store shows at the end, what bodies and clients saw, and the model.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::rc::Rc;
use std::sync::Arc;

use outlast::testing::World;
use outlast_core::id::{Index, RunKey};
use outlast_core::limits::Limits;
use outlast_store::{MemoryStore, Store};

use crate::case::Case;
use crate::play::Verdict;

#[cfg(feature = "postgres")]
pub use postgres::Server;

/// What is too large in a case: little, so that something that is costs little.
pub fn limits() -> Limits {
    Limits { payload_bytes: PAYLOAD_BYTES_MAX, ..Limits::default() }
}

/// Far more than any tree comes to.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// Opens the store of a case in its world; again, if it was closed meanwhile.
pub type Open = Rc<dyn Fn(&World) -> Arc<dyn Store>>;

/// What a case is played on.
#[derive(Clone)]
pub struct Ground {
    pub(crate) open: Open,
    /// The author's own table, if the store has SQL.
    pub(crate) books: Option<Books>,
    /// Damages an event where it is kept; none if only what comes from there can be changed.
    pub(crate) damage: Option<Damage>,
    /// Whether the store answers at once, and forgets everything when it is closed.
    pub(crate) in_memory: bool,
    /// Whether what the store answers counts for the trace: that takes its time.
    pub(crate) traced: bool,
}

/// Damages an event of the current generation of a run, at an index, so that the store can read it or not; or repairs all
/// of the run.
pub type Damage = Rc<dyn Fn(&RunKey, Option<(Index, bool)>)>;

/// Kinds of events are far fewer: what this is added to is none.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
const NO_KIND: u32 = 60_000;
/// What no column for kinds was made for.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
const UNREADABLE: u32 = 10 * NO_KIND;

/// The statement that damages an event, or repairs them all: in which schema, and what its table of runs calls a run's number.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn damaging(schema: &str, number: &str, run: &RunKey, what: Option<(Index, bool)>) -> String {
    let (id, namespace) = (run.id.as_str(), run.namespace.as_str());
    let named = format!("id = '{id}' AND ns = (SELECT id FROM {schema}namespace WHERE name = '{namespace}')");
    let of_run = format!("run = (SELECT {number} FROM {schema}run WHERE {named})");
    match what {
        None => format!("UPDATE {schema}event SET kind = kind % {NO_KIND} WHERE {of_run}"),
        Some((index, event)) => {
            let by = if event { NO_KIND } else { UNREADABLE };
            let current = format!("generation = (SELECT generation FROM {schema}run WHERE {named})");
            let damaged = format!("kind = kind % {NO_KIND} + {by}");
            format!("UPDATE {schema}event SET {damaged} WHERE idx = {index} AND {current} AND {of_run}")
        }
    }
}

/// The author's own table, in the database of the store.
#[derive(Clone)]
pub struct Books {
    /// Puts down an entry, which is the statement's only parameter.
    pub enter: String,
    /// Reads all entries, with a connection of one's own.
    pub read: Rc<dyn Fn() -> Result<Vec<String>, String>>,
}

impl Ground {
    /// In memory.
    pub fn memory() -> Ground {
        let open: Open = Rc::new(|world| Arc::new(MemoryStore::new(world.clock(), limits())));
        Ground { open, books: None, damage: None, in_memory: true, traced: false }
    }

    /// On disk.
    pub fn on_disk(open: Open, books: Books) -> Ground {
        Ground { open, books: Some(books), damage: None, in_memory: false, traced: false }
    }
}

/// Which store a suite plays its cases on.
#[derive(Clone)]
pub enum Kind {
    /// The one in memory.
    Memory,
    /// A file for each case.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// A schema for each case.
    #[cfg(feature = "postgres")]
    Postgres(Arc<Server>),
}

impl Kind {
    /// Plays a case there.
    pub fn play(&self, case: &Case) -> Verdict {
        match self {
            Kind::Memory => crate::play::play(case),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => sqlite::play(case),
            #[cfg(feature = "postgres")]
            Kind::Postgres(server) => server.play(case),
        }
    }

    /// Plays a case twice: both verdicts, whose traces are the same if everything that was answered is.
    pub fn play_twice(&self, case: &Case) -> (Verdict, Verdict) {
        match self {
            Kind::Memory => {
                let ground = Ground { traced: true, ..Ground::memory() };
                (crate::play::play_on(case, &ground), crate::play::play_on(case, &ground))
            }
            #[cfg(any(feature = "sqlite", feature = "postgres"))]
            other => (other.play(case), other.play(case)),
        }
    }

    /// What `--store` calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Memory => "memory",
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => "sqlite",
            #[cfg(feature = "postgres")]
            Kind::Postgres(_) => "postgres",
        }
    }

    /// Whether the same case does the same every time.
    pub fn repeats(&self) -> bool {
        matches!(self, Kind::Memory)
    }
}
