//! A case on a SQLite file of its own.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_store::contract::author::SqliteAuthor;
use outlast_store::{SqliteOptions, SqliteStore};

use super::{Books, Damage, Ground, Open, damaging, limits};
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
        damages.execute(&damaging("", "row", run, what)).expect("a row can be written past the store");
    });
    let read = Rc::new(move || author.texts("SELECT text FROM entry"));
    let ground = Ground::on_disk(open, Books { enter: "INSERT INTO entry VALUES (?1)".to_owned(), read });
    Ground { damage: Some(damage), ..ground }
}
