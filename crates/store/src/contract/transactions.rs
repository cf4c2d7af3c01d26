//! Transactions: an author's rows and the events they go with are there together, or not at all.
//!
//! A store without SQL answers `Unsupported`, and has nothing more to show. Statements are written so that every SQL
//! database takes them; `$1` is a placeholder everywhere.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use outlast_core::commit::Then;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Fence, Index};
use outlast_core::record::Record;

use super::scene::*;
use crate::{CommitError, Rejection, Row, SqlValue, StoreError, Transact, Transacted, Tx, TxError, params};

super::stories! {
    transaction_without_sql_is_refused_and_changes_nothing,
    transaction_commits_rows_and_events_together,
    transaction_that_fails_keeps_neither_rows_nor_events,
    transaction_of_a_zombie_changes_nothing,
    transaction_at_another_index_changes_nothing,
    transaction_of_no_such_run_changes_nothing,
    transaction_with_a_failed_statement_is_rolled_back_whatever_it_returns,
    transaction_that_panics_is_rolled_back_and_the_store_goes_on,
    transaction_control_is_denied_and_undoes_everything,
    transaction_that_sends_two_statements_at_once_is_refused,
    transaction_does_what_else_its_commit_says,
    transaction_that_fails_consumes_nothing,
    transaction_leaves_its_neighbours_alone,
    transaction_values_come_back_as_they_were,
    transaction_is_over_when_its_body_has_ended,
    transaction_knows_its_key_and_attempt;
    small limits:
    transaction_over_a_limit_is_rejected_and_changes_nothing,
}

type Outcome = Result<Vec<Record>, Failure>;

fn transact<Fut>(held: &Held, body: impl Fn(Tx) -> Fut + Send + Sync + 'static) -> Transact
where
    Fut: Future<Output = Outcome> + Send + 'static,
{
    Transact {
        commit: held.commit(),
        body: Arc::new(move |tx| Box::pin(body(tx))),
        idempotency_key: format!("{}/step", held.run),
        attempt: 1,
    }
}

/// A statement about a table of the author's own, whose name is not known before: it stands where the `%` is.
fn named(sql: &str, table: &str) -> String {
    sql.replace('%', table)
}

/// A table of the author's own.
#[derive(Clone)]
struct Table(String);

impl Table {
    /// Makes one; none where there is no SQL.
    async fn make(s: &Scene<'_>) -> Option<Table> {
        let held = s.own("maker").await;
        let table = Table(format!("author_{}", uuid::Uuid::new_v4().simple()));
        let create = named("CREATE TABLE IF NOT EXISTS % (entry TEXT NOT NULL)", &table.0);
        let make = transact(&held, move |tx| {
            let create = create.clone();
            async move {
                tx.execute(create, params![]).await?;
                Ok(vec![event("made")])
            }
        });
        match s.store.transact(make).await {
            Ok(Transacted::Committed(_)) => Some(table),
            Err(CommitError::NotApplied(StoreError::Unsupported)) => None,
            other => panic!("a table can be made: {other:?}"),
        }
    }

    async fn enter(&self, tx: &Tx, entry: &str) -> Result<u64, TxError> {
        tx.execute(named("INSERT INTO % VALUES ($1)", &self.0), params![entry]).await
    }

    /// What is in it, sorted; and it is gone afterwards.
    async fn end(self, s: &Scene<'_>) -> Vec<String> {
        let held = s.own("reader").await;
        let found = Arc::new(Mutex::new(Vec::new()));
        let (seen, table) = (Arc::clone(&found), self.0);
        let read = transact(&held, move |tx| {
            let (seen, table) = (Arc::clone(&seen), table.clone());
            async move {
                let rows = tx.query(named("SELECT entry FROM % ORDER BY entry", &table), params![]).await?;
                *seen.lock().unwrap() = rows.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?;
                tx.execute(named("DROP TABLE %", &table), params![]).await?;
                Ok(vec![event("read")])
            }
        });
        s.store.transact(read).await.unwrap();
        std::mem::take(&mut *found.lock().unwrap())
    }
}

fn rolled_back(answer: Result<Transacted, CommitError>) -> Failure {
    match answer {
        Ok(Transacted::RolledBack(failure)) => failure,
        other => panic!("it is rolled back: {other:?}"),
    }
}

async fn transaction_without_sql_is_refused_and_changes_nothing(s: Scene<'_>) {
    if let Some(table) = Table::make(&s).await {
        assert_eq!(table.end(&s).await, [""; 0]);
        return;
    }
    assert_eq!(s.story(&run("maker")).await, [""; 0]);
    let held = s.own("a").await;
    let refused = s.store.transact(transact(&held, |_| async { panic!("nobody runs it") })).await.unwrap_err();
    assert_eq!(refused, CommitError::NotApplied(StoreError::Unsupported));
    assert!(refused.to_string().contains("SQLite or PostgreSQL"), "it says which have it: {refused}");
}

/// Enters a row and gives an event.
fn entering(held: &Held, table: &Table, entry: &'static str) -> Transact {
    let table = table.clone();
    transact(held, move |tx| {
        let table = table.clone();
        async move {
            assert_eq!(table.enter(&tx, entry).await?, 1);
            Ok(vec![event(entry)])
        }
    })
}

/// Enters a row and then does something else.
fn failing(held: &Held, table: &Table, end: impl Fn() -> Outcome + Clone + Send + Sync + 'static) -> Transact {
    let table = table.clone();
    transact(held, move |tx| {
        let (table, end) = (table.clone(), end.clone());
        async move {
            table.enter(&tx, "never").await?;
            end()
        }
    })
}

async fn transaction_commits_rows_and_events_together(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let mut held = s.own("a").await;
    s.clock.set(7);
    let Ok(Transacted::Committed(committed)) = s.store.transact(entering(&held, &table, "one")).await else {
        panic!("it is committed")
    };
    assert_eq!((committed.next, committed.now, committed.delivered.len()), (Index(1), at(7), 0));
    held.next = committed.next;
    assert!(matches!(s.store.transact(entering(&held, &table, "two")).await, Ok(Transacted::Committed(_))));
    assert_eq!(s.story(&held.run).await, ["one", "two"]);
    assert_eq!(table.end(&s).await, ["one", "two"]);
}

async fn transaction_that_fails_keeps_neither_rows_nor_events(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let mut held = s.own("a").await;
    let declined = Failure::new("declined", "no").with_data("7").permanent();
    let failure = declined.clone();
    let answer = s.store.transact(failing(&held, &table, move || Err(failure.clone()))).await;
    assert_eq!(rolled_back(answer), declined, "the author's own words");
    assert_eq!(s.story(&held.run).await, [""; 0]);
    let commit = held.commit().event("next");
    s.apply(&mut held, commit).await;
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_of_a_zombie_changes_nothing(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let zombie = s.own_under(s.node("zombie", 100).await, "a").await;
    s.clock.set(100);
    let heir = s.reclaim(&zombie.run).await;
    let refused = s.store.transact(entering(&zombie, &table, "zombie")).await.unwrap_err();
    assert_eq!(refused, CommitError::Fenced { held: zombie.fence, current: Fence(2) });
    assert!(matches!(s.store.transact(entering(&heir, &table, "heir")).await, Ok(Transacted::Committed(_))));
    assert_eq!(s.story(&heir.run).await, ["heir"]);
    assert_eq!(table.end(&s).await, ["heir"]);
}

async fn transaction_at_another_index_changes_nothing(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let mut held = s.own("a").await;
    let before = held.clone();
    let commit = held.commit().event("first");
    s.apply(&mut held, commit).await;
    let late = s.store.transact(entering(&before, &table, "late")).await.unwrap_err();
    assert_eq!(late, CommitError::Conflict { expected: Index(0), found: Box::new(event("first")) });
    let ahead = Held { next: Index(5), ..held.clone() };
    let early = s.store.transact(entering(&ahead, &table, "early")).await.unwrap_err();
    assert_eq!(early, CommitError::Rejected(Rejection::SkipsAhead { next: Index(1) }));
    assert_eq!(s.story(&held.run).await, ["first"]);
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_of_no_such_run_changes_nothing(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    for nobody in [run("none"), run_in("nowhere", "a")] {
        let held = Held { run: nobody, ..held.clone() };
        let refused = s.store.transact(entering(&held, &table, "never")).await.unwrap_err();
        assert!(matches!(refused, CommitError::NotApplied(_)), "{refused:?}");
    }
    let ended = s.ended("b").await;
    let held = Held { run: ended, ..held };
    let refused = s.store.transact(entering(&held, &table, "never")).await.unwrap_err();
    assert!(matches!(refused, CommitError::Fenced { .. }), "{refused:?}");
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_with_a_failed_statement_is_rolled_back_whatever_it_returns(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let mine = table.clone();
    let careless = transact(&held, move |tx| {
        let table = mine.clone();
        async move {
            table.enter(&tx, "never").await?;
            let refused = tx.execute(named("INSERT INTO % VALUES (NULL)", &table.0), params![]).await;
            assert!(matches!(refused, Err(TxError::Refused { code: Some(_), .. })), "{refused:?}");
            Ok(vec![event("never")])
        }
    });
    let failure = rolled_back(s.store.transact(careless).await);
    assert_eq!((failure.code.as_str(), failure.permanent), (code::SQL_ERROR, false), "{failure}");
    assert_eq!(s.story(&held.run).await, [""; 0]);
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_that_panics_is_rolled_back_and_the_store_goes_on(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let answer = s.store.transact(failing(&held, &table, || panic!("a body panics on purpose"))).await;
    assert_eq!(rolled_back(answer).code, code::PANIC);
    let at_once = Transact {
        body: Arc::new(|_| panic!("a body panics on purpose, at once")),
        ..failing(&held, &table, || Ok(Vec::new()))
    };
    assert_eq!(rolled_back(s.store.transact(at_once).await).code, code::PANIC);
    assert!(matches!(s.store.transact(entering(&held, &table, "next")).await, Ok(Transacted::Committed(_))));
    assert_eq!(table.end(&s).await, ["next"]);
}

/// Enters a row, sends this statement, and returns as if nothing had happened.
fn sending(held: &Held, table: &Table, sql: &'static str) -> Transact {
    let table = table.clone();
    transact(held, move |tx| {
        let table = table.clone();
        async move {
            table.enter(&tx, "never").await?;
            let _ = tx.execute(sql, params![]).await;
            Ok(vec![event("never")])
        }
    })
}

async fn transaction_control_is_denied_and_undoes_everything(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let control = [
        "BEGIN",
        "COMMIT",
        "END",
        "ROLLBACK",
        "SAVEPOINT mine",
        "RELEASE outlast_transact",
        "ROLLBACK TO outlast_transact",
        "commit;",
        "/* quietly */ COMMIT",
        "-- quietly\n  RollBack",
    ];
    for sql in control {
        let failure = rolled_back(s.store.transact(sending(&held, &table, sql)).await);
        assert_eq!((failure.code.as_str(), failure.permanent), (code::SQL_DENIED, true), "{sql}: {failure}");
    }
    assert_eq!(s.story(&held.run).await, [""; 0]);
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_that_sends_two_statements_at_once_is_refused(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let failure = rolled_back(s.store.transact(sending(&held, &table, "SELECT 1; SELECT 2")).await);
    assert_eq!(failure.code, code::SQL_ERROR, "{failure}");
    let failure = rolled_back(s.store.transact(sending(&held, &table, "SELECT 1; COMMIT")).await);
    assert!([code::SQL_ERROR, code::SQL_DENIED].contains(&failure.code.as_str()), "{failure}");
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_does_what_else_its_commit_says(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "one", "1")).await;
    let item = s.take(&held).await.remove(0).id;
    let mut ends = entering(&held, &table, "last");
    ends.commit.consumed.push(item);
    ends.commit.then = Then::Suspend;
    assert!(matches!(s.store.transact(ends).await, Ok(Transacted::Committed(_))));
    assert_eq!(s.inbox(&held.run).await.len(), 0);
    assert_eq!(s.view(&held.run).await.owner, None);
    assert_eq!(table.end(&s).await, ["last"]);
}

async fn transaction_that_fails_consumes_nothing(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    s.deliver(signal(&held.run, "go", "one", "1")).await;
    let item = s.inbox(&held.run).await.remove(0).id;
    let mut fails = failing(&held, &table, || Err(Failure::new("no", "no")));
    fails.commit.consumed.push(item);
    rolled_back(s.store.transact(fails).await);
    assert_eq!(s.inbox(&held.run).await.len(), 1);
    let mut gone = entering(&held, &table, "never");
    gone.commit.consumed.push(outlast_core::id::InboxId(99));
    let refused = s.store.transact(gone).await.unwrap_err();
    assert!(matches!(refused, CommitError::Rejected(Rejection::InboxGone { .. })), "{refused:?}");
    assert_eq!(table.end(&s).await, [""; 0], "what the commit is refused for undoes the rows");
}

async fn transaction_leaves_its_neighbours_alone(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let lease = s.node("crowd", 1_000).await;
    let mut runs = Vec::new();
    for n in 0..30 {
        runs.push(s.own_under(lease, &format!("run-{n}")).await);
    }
    let crowd = runs.iter().enumerate().map(|(n, held)| {
        let (table, store) = (table.clone(), Arc::clone(&s.store));
        async move {
            match n % 3 {
                0 => store.commit(vec![held.commit().event("plain")]).await.remove(0).is_ok(),
                1 => matches!(store.transact(entering(held, &table, "good")).await, Ok(Transacted::Committed(_))),
                _ => {
                    let fails = failing(held, &table, || Err(Failure::new("no", "no")));
                    matches!(store.transact(fails).await, Ok(Transacted::RolledBack(_)))
                }
            }
        }
    });
    assert_eq!(futures_util::future::join_all(crowd).await, [true; 30]);
    for (n, held) in runs.iter().enumerate() {
        let expected: &[&str] = [&["plain"][..], &["good"], &[]][n % 3];
        assert_eq!(s.story(&held.run).await, expected);
    }
    assert_eq!(table.end(&s).await, ["good"; 10]);
}

async fn transaction_values_come_back_as_they_were(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let found = Arc::new(Mutex::new(None::<Row>));
    let (seen, name) = (Arc::clone(&found), format!("{}_values", table.0));
    let stores = transact(&held, move |tx| {
        let (seen, name) = (Arc::clone(&seen), name.clone());
        async move {
            let columns = "i BIGINT, small INTEGER, r DOUBLE PRECISION, t TEXT, b BYTEA, yes BOOLEAN, n TEXT";
            tx.execute(format!("CREATE TABLE {name} ({columns})"), params![]).await?;
            let values = params![i64::MIN, 7, 0.5, "jürgen \u{1f980}", vec![0_u8, 255], true, None::<String>];
            tx.execute(named("INSERT INTO % VALUES ($1, $2, $3, $4, $5, $6, $7)", &name), values).await?;
            let row = tx.query_one(named("SELECT * FROM % WHERE small = $1", &name), params![7]).await?;
            *seen.lock().unwrap() = Some(row);
            let none = tx.query_one(named("SELECT * FROM % WHERE small = $1", &name), params![8]).await;
            assert_eq!(none, Err(TxError::NotOneRow { found: 0 }));
            assert_eq!(tx.execute(named("UPDATE % SET small = small + 1", &name), params![]).await?, 1);
            assert_eq!(tx.execute(named("DELETE FROM % WHERE small = 7", &name), params![]).await?, 0);
            tx.execute(named("DROP TABLE %", &name), params![]).await?;
            Ok(vec![event("seen")])
        }
    });
    let answer = s.store.transact(stores).await;
    assert!(matches!(answer, Ok(Transacted::Committed(_))), "{answer:?}");
    let row = found.lock().unwrap().take().unwrap();
    assert_eq!(row.columns(), ["i", "small", "r", "t", "b", "yes", "n"]);
    assert_eq!((row.get("i"), row.get::<i32>("small"), row.get("r")), (Ok(i64::MIN), Ok(7), Ok(0.5)));
    assert_eq!((row.get("t"), row.get("b")), (Ok("jürgen \u{1f980}".to_owned()), Ok(vec![0_u8, 255])));
    assert_eq!((row.get("yes"), row.get::<Option<String>>("n")), (Ok(true), Ok(None)));
    assert_eq!(row.get::<SqlValue>("n"), Ok(SqlValue::Null));
    assert!(matches!(row.get::<i32>("i"), Err(TxError::Type { .. })), "it does not fit");
    assert!(matches!(row.get::<String>("n"), Err(TxError::Type { .. })), "null is no text");
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_is_over_when_its_body_has_ended(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let smuggles = transact(&held, move |tx| {
        *keep.lock().unwrap() = Some(tx);
        async { Ok(vec![event("over")]) }
    });
    assert!(matches!(s.store.transact(smuggles).await, Ok(Transacted::Committed(_))));
    let tx = kept.lock().unwrap().take().unwrap();
    assert_eq!(table.enter(&tx, "never").await, Err(TxError::Over));
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_knows_its_key_and_attempt(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let right = Arc::new(AtomicU32::new(0));
    let check = Arc::clone(&right);
    let transact = transact(&held, move |tx| {
        let known = tx.idempotency_key() == "default/a/step" && tx.attempt() == 3;
        check.store(u32::from(known), Ordering::SeqCst);
        async { Ok(vec![event("known")]) }
    });
    assert!(matches!(s.store.transact(Transact { attempt: 3, ..transact }).await, Ok(Transacted::Committed(_))));
    assert_eq!(right.load(Ordering::SeqCst), 1);
    assert_eq!(table.end(&s).await, [""; 0]);
}

async fn transaction_over_a_limit_is_rejected_and_changes_nothing(s: Scene<'_>) {
    let Some(table) = Table::make(&s).await else { return };
    let held = s.own("a").await;
    let refused = s.store.transact(entering(&held, &table, "more than eight")).await.unwrap_err();
    assert!(matches!(refused, CommitError::Rejected(Rejection::Limit(_))), "{refused:?}");
    assert_eq!(s.story(&held.run).await, [""; 0]);
    assert_eq!(table.end(&s).await, [""; 0]);
}
