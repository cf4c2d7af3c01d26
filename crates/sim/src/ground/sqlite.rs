//! A case on a SQLite file of its own.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::id::{Index, RunKey};
use outlast_store::contract::author::SqliteAuthor;
use outlast_store::{SqliteOptions, SqliteStore};

use super::{Books, Damage, Ground, Open, limits};
use crate::case::Case;
use crate::play::{Verdict, play_on};

/// Long enough for a machine that is busy with something else.
const TRANSACTION_LIMIT: Duration = Duration::from_secs(60);

/// Plays a case on a file that is gone afterwards.
pub(super) fn play(case: &Case) -> Verdict {
    let folder = tempfile::tempdir().expect("a folder for the file");
    play_on(case, &ground(folder.path().join("case.db")))
}

fn ground(path: PathBuf) -> Ground {
    let author = SqliteAuthor::new(&path);
    let creates = author.clone();
    let open: Open = Rc::new(move |world| {
        let clock = world.clock();
        let options =
            SqliteOptions { clock, limits: limits(), transaction_limit: TRANSACTION_LIMIT, ..SqliteOptions::default() };
        let opened = SqliteStore::open(&path, options).now_or_never();
        let store = opened.expect("opening a file waits for nobody").expect("the file can be opened");
        creates.execute("CREATE TABLE IF NOT EXISTS entry (text TEXT NOT NULL)").expect("the author's table");
        Arc::new(store)
    });
    let damages = author.clone();
    let damage: Damage = Rc::new(move |run, what| {
        damages.execute(&statement(run, what)).expect("a row can be written past the store");
    });
    let read = Rc::new(move || author.texts("SELECT text FROM entry"));
    let ground = Ground::on_disk(open, Books { enter: "INSERT INTO entry VALUES (?1)".to_owned(), read });
    Ground { damage: Some(damage), ..ground }
}

/// Kinds of events are far fewer: what this is added to is none.
const NO_KIND: u32 = 60_000;
/// What no column for kinds was made for.
const UNREADABLE: u32 = 10 * NO_KIND;

/// What damages an event, or repairs them all.
fn statement(run: &RunKey, what: Option<(Index, bool)>) -> String {
    let (id, namespace) = (run.id.as_str(), run.namespace.as_str());
    let named = format!("id = '{id}' AND ns = (SELECT id FROM namespace WHERE name = '{namespace}')");
    let of_run = format!("run = (SELECT row FROM run WHERE {named})");
    match what {
        None => format!("UPDATE event SET kind = kind % {NO_KIND} WHERE {of_run}"),
        Some((index, event)) => {
            let by = if event { NO_KIND } else { UNREADABLE };
            let current = format!("generation = (SELECT generation FROM run WHERE {named})");
            format!("UPDATE event SET kind = kind % {NO_KIND} + {by} WHERE idx = {index} AND {current} AND {of_run}")
        }
    }
}
