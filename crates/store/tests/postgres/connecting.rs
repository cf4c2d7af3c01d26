//! Connecting: migrations, versions, settings.

use outlast_store::{PostgresOptions, PostgresStore, Store, StoreError, Tls, Trouble};

use super::scene::{Schema, new_run, run, url};

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_that_start_at_once_on_an_empty_database_all_find_their_tables() {
    let schema = Schema::new();
    let connects = (0..8).map(|_| {
        let (url, options) = (schema.url.clone(), schema.options());
        tokio::spawn(async move { PostgresStore::connect(&url, options).await })
    });
    let mut stores = Vec::new();
    for connect in connects.collect::<Vec<_>>() {
        stores.push(connect.await.unwrap().unwrap());
    }
    for (number, store) in stores.iter().enumerate() {
        store.create(vec![new_run(&format!("run-{number}"), None)]).await.remove(0).unwrap();
    }
    for number in 0..8 {
        assert_eq!(stores[7 - number].get(run(&format!("run-{number}"))).await.unwrap().run.id.as_str().len(), 5);
    }
    let applied = schema.raw().await.query("SELECT version FROM schema_version", &[]).await.unwrap();
    assert_eq!(applied.len(), 1, "each migration was applied once");
    schema.end().await;
}

#[tokio::test]
async fn a_database_from_a_newer_release_is_refused_and_left_alone() {
    let schema = Schema::new();
    schema.connect().await.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    let raw = schema.raw().await;
    raw.execute("INSERT INTO schema_version (version) VALUES (99)", &[]).await.unwrap();
    let refused = PostgresStore::connect(&schema.url, schema.options()).await.err().unwrap();
    assert_eq!(refused, StoreError::NewerDatabase { found: 99, known: 1 });
    assert!(refused.to_string().contains("newer release"), "{refused}");
    assert_eq!(raw.query_one("SELECT count(*) FROM run", &[]).await.unwrap().get::<_, i64>(0), 1);
    schema.end().await;
}

#[tokio::test]
async fn a_database_whose_migrations_were_not_applied_yet_is_brought_up_to_date() {
    let schema = Schema::new();
    let raw = schema.raw().await;
    let old = format!(
        "CREATE SCHEMA {}; CREATE TABLE schema_version (version int PRIMARY KEY, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp())",
        schema.name
    );
    raw.batch_execute(&old).await.unwrap();
    let store = schema.connect().await;
    assert_eq!(store.namespaces().await.unwrap().len(), 1);
    schema.end().await;
}

#[tokio::test]
async fn a_store_without_a_schema_of_its_own_lives_where_the_search_path_leads() {
    let schema = Schema::new();
    schema.raw().await.batch_execute(&format!("CREATE SCHEMA {}", schema.name)).await.unwrap();
    let url = format!("{}&options=-csearch_path%3D{}", schema.url, schema.name);
    let options = PostgresOptions { schema: None, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&url, options).await.unwrap();
    store.create(vec![new_run("a", None)]).await.remove(0).unwrap();
    let count = schema.raw().await.query_one("SELECT count(*) FROM run", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 1);
    schema.end().await;
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_before_anything_is_connected() {
    let options = PostgresOptions::default;
    let refused = [
        ("postgres://localhost:port", options()),
        (&url(), PostgresOptions { connections: 0, ..options() }),
        (&url(), PostgresOptions { schema: Some("a; DROP TABLE run".to_owned()), ..options() }),
        (&format!("{}?sslmode=require", url()), options()),
        (&url(), PostgresOptions { tls: Tls::Roots(b"no certificate".to_vec()), ..options() }),
    ];
    for (url, options) in refused {
        let error = PostgresStore::connect(url, options).await.err().unwrap();
        assert!(matches!(error, StoreError::Settings(_)), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_connection_trouble_that_says_where_it_looked() {
    // Nobody listens on port 1.
    let error = PostgresStore::connect("postgres://postgres@127.0.0.1:1/x", PostgresOptions::default()).await.err();
    match error.unwrap() {
        StoreError::Unavailable { trouble: Trouble::Connection, message } => {
            assert!(message.contains("refused"), "{message}")
        }
        other => panic!("{other}"),
    }
}
