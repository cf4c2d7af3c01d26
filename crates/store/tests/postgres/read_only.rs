//! A database that may not be written: reads go on, writes say why they do not, and go on by themselves.

use outlast_store::{CommitError, PostgresStore, Store, StoreError, Trouble};
use tokio_postgres::Client;

use super::scene::{Database, Schema, append, claim, client, create_owned, events, new_run, register, url};

/// Settings of a database count for sessions that begin after them.
async fn begin_sessions_anew(admin: &Client, database: &str) {
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1";
    admin.query(end, &[&database]).await.unwrap();
}

fn is_read_only(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { trouble: Trouble::ReadOnly, .. })
}

/// What a write says once broken connections are out of the way.
async fn create(store: &PostgresStore, id: &str) -> Result<(), StoreError> {
    for _ in 0..20 {
        match store.create(vec![new_run(id, None)]).await.remove(0) {
            Ok(_) => return Ok(()),
            Err(StoreError::Unavailable { trouble: Trouble::Connection, .. }) => {}
            Err(error) => return Err(error),
        }
    }
    panic!("the store does not find a new connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_may_not_be_written_can_be_read_and_writes_go_on_when_they_may() {
    let admin = client(&url()).await;
    let own = Database::create().await;
    let database = own.name.clone();
    let store = Schema::at(&own.url).connect().await;
    let lease = register(&store).await;
    let fence = create_owned(&store, "a", lease).await;
    append(&store, "a", fence, 0, "before").await.unwrap();

    admin.batch_execute(&format!("ALTER DATABASE {database} SET default_transaction_read_only = on")).await.unwrap();
    begin_sessions_anew(&admin, &database).await;
    let refused = create(&store, "b").await.unwrap_err();
    assert!(is_read_only(&refused), "{refused}");
    match append(&store, "a", fence, 1, "refused").await.unwrap_err() {
        CommitError::NotApplied(error) => assert!(is_read_only(&error), "{error}"),
        other => panic!("{other}"),
    }
    let refused = store.claim(claim(lease, 2, 10)).await.unwrap_err();
    assert!(is_read_only(&refused), "{refused}");
    assert_eq!(events(&store, "a").await, 1, "reads go on");

    admin.batch_execute(&format!("ALTER DATABASE {database} RESET default_transaction_read_only")).await.unwrap();
    // Each session that was told it may only read says so once more, and is replaced.
    let mut refused = 0;
    while let Err(error) = create(&store, "b").await {
        refused += 1;
        assert!(is_read_only(&error) && refused < 100, "{error}");
    }
    append(&store, "a", fence, 1, "after").await.expect("writes go on without the store being opened again");
    assert_eq!(events(&store, "a").await, 2);
    drop(store);
    own.end().await;
}
