//! A case in a schema of its own, on a real server.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_store::contract::author::PostgresAuthor;
use outlast_store::{PostgresOptions, PostgresStore};
use tokio::runtime::Runtime;

use super::{Books, Damage, Ground, Open, damaging, limits};
use crate::case::Case;
use crate::play::{Verdict, play_on};

/// Names the server to use.
const VARIABLE: &str = "OUTLAST_TEST_POSTGRES";

/// A server, and the runtime on which its connections live.
pub struct Server {
    url: String,
    runtime: Arc<Runtime>,
    played: AtomicU64,
}

impl Server {
    /// The server for tests.
    ///
    /// # Errors
    ///
    /// If nobody names one.
    pub fn for_tests() -> Result<Server, String> {
        let missing = || format!("there is no PostgreSQL: run `cargo xtask test`, or set {VARIABLE}");
        let url = std::env::var(VARIABLE).map_err(|_| missing())?;
        let runtime = Runtime::new().map_err(|error| format!("no runtime for connections: {error}"))?;
        Ok(Server { url, runtime: Arc::new(runtime), played: AtomicU64::new(0) })
    }

    /// Plays a case in a schema that is gone afterwards.
    pub fn play(&self, case: &Case) -> Verdict {
        let number = self.played.fetch_add(1, Ordering::Relaxed);
        let schema = format!("sim_{}_{number}", std::process::id());
        let author = self.runtime.block_on(PostgresAuthor::connect(&self.url));
        let author = Rc::new(author.expect("the author's own connection"));
        // What waits inside the store waits on its runtime.
        let _entered = self.runtime.enter();
        let tables = format!("CREATE SCHEMA {schema}_author; CREATE TABLE {schema}_author.entry (text TEXT NOT NULL)");
        self.runtime.block_on(author.execute(&tables)).expect("the author's table");
        let verdict = play_on(case, &self.ground(&schema, &author));
        let gone = format!("DROP SCHEMA IF EXISTS {schema} CASCADE; DROP SCHEMA {schema}_author CASCADE");
        self.runtime.block_on(author.execute(&gone)).expect("the schemas of a case are dropped");
        verdict
    }

    fn ground(&self, schema: &str, author: &Rc<PostgresAuthor>) -> Ground {
        let (url, runtime, name) = (self.url.clone(), Arc::clone(&self.runtime), schema.to_owned());
        let alters = Rc::clone(author);
        let open: Open = Rc::new(move |world| {
            let options = PostgresOptions {
                clock: world.clock(),
                limits: limits(),
                schema: Some(name.clone()),
                ..PostgresOptions::default()
            };
            let store = runtime.block_on(PostgresStore::connect(&url, options)).expect("the server can be reached");
            // The database itself would refuse a kind that nobody can read.
            let lax = format!("ALTER DOMAIN {name}.code_65535 DROP CONSTRAINT IF EXISTS code_65535_check");
            runtime.block_on(alters.execute(&lax)).expect("a domain can be changed past the store");
            Arc::new(store)
        });
        let (runtime, damages, tables) = (Arc::clone(&self.runtime), Rc::clone(author), format!("{schema}."));
        let damage: Damage = Rc::new(move |run, what| {
            let damaged = runtime.block_on(damages.execute(&damaging(&tables, "seq", run, what)));
            damaged.expect("a row can be written past the store");
        });
        let (runtime, author) = (Arc::clone(&self.runtime), Rc::clone(author));
        let select = format!("SELECT text FROM {schema}_author.entry");
        let read = Rc::new(move || runtime.block_on(author.texts(&select)));
        let books = Books { enter: format!("INSERT INTO {schema}_author.entry VALUES ($1)"), read };
        Ground { damage: Some(damage), ..Ground::on_disk(open, books) }
    }
}
