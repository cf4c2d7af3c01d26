//! Damage: what the API refuses the database refuses too; what cannot be read or stored harms nobody else.

use outlast_core::commit::Status;
use outlast_core::id::AttributeName;
use outlast_store::{Created, Filter, PostgresOptions, PostgresStore, Store, StoreError};

use super::scene::{Schema, append, claim, claim_ids, create_owned, load, new_run, register, run};

/// Statements that write what must not be, on a database with one run and one event.
const REFUSED: &[&str] = &[
    "UPDATE run SET id = ''",
    "UPDATE run SET id = repeat('x', 256)",
    "UPDATE run SET workflow = ''",
    "UPDATE run SET version = repeat('x', 129)",
    "UPDATE run SET status = 8",
    "UPDATE run SET status = -1",
    "UPDATE run SET next = -1",
    "UPDATE run SET input = convert_to(repeat('x', 16777217), 'UTF8')",
    "UPDATE event SET key = ''",
    "UPDATE event SET idx = -1",
    "UPDATE event SET kind = 65536",
    "UPDATE event SET payload = convert_to(repeat('x', 16777217), 'UTF8')",
    "UPDATE event SET meta = convert_to(repeat('x', 16777217), 'UTF8')",
    "INSERT INTO event SELECT * FROM event",
    "INSERT INTO inbox VALUES (1, 1, 0, 11, NULL, NULL, NULL, 0, NULL, NULL)",
    "INSERT INTO inbox VALUES (1, 1, -1, 0, NULL, NULL, NULL, 0, NULL, NULL)",
    "INSERT INTO inbox VALUES (1, 1, 0, 0, NULL, NULL, NULL, 0, NULL, convert_to(repeat('x', 16777217), 'UTF8'))",
    "INSERT INTO delivered VALUES (1, 1, '')",
    "INSERT INTO wait VALUES (1, 1, '', 0, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL)",
    "INSERT INTO wait VALUES (1, 1, 'k', 3, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL)",
    "INSERT INTO timer VALUES (1, 1, '', 0, 0)",
    "INSERT INTO timer VALUES (1, 1, 'k', 4, 0)",
    "INSERT INTO task VALUES (1, '', NULL, NULL, 't', 'q', 0, '', 0, 0, 0, NULL, NULL, 0, NULL, false, NULL, NULL, NULL, 0, NULL)",
    "INSERT INTO task VALUES (1, 't', NULL, NULL, 't', 'q', 0, '', 4, 0, 0, NULL, NULL, 0, NULL, false, NULL, NULL, NULL, 0, NULL)",
    "INSERT INTO task VALUES (1, 't', NULL, NULL, 't', 'q', 0, '', 1, 0, 0, NULL, NULL, 0, NULL, false, NULL, NULL, NULL, 0, NULL)",
    "INSERT INTO task VALUES (1, 't', NULL, NULL, 't', 'q', 0, '', 3, 0, 0, NULL, NULL, 0, NULL, false, NULL, NULL, NULL, 0, NULL)",
    "INSERT INTO task VALUES (1, 't', NULL, NULL, 't', 'q', 0, '', 0, 0, 0, NULL, NULL, 0, 1, false, NULL, NULL, NULL, 0, NULL)",
    "INSERT INTO attribute VALUES (1, 1, '', 'v')",
    "INSERT INTO schedule VALUES (1, '', 1, '', '', NULL)",
    "INSERT INTO namespace (name) VALUES ('')",
    "INSERT INTO lease (node, until) VALUES ('', 0)",
    "INSERT INTO served VALUES ('', '1', 0)",
    "INSERT INTO served VALUES ('w', repeat('x', 129), 0)",
];

#[tokio::test]
async fn the_database_refuses_what_the_api_refuses() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = register(&store).await;
    let fence = create_owned(&store, "a", lease).await;
    append(&store, "a", fence, 0, "x").await.unwrap();
    let raw = schema.raw().await;
    for sql in REFUSED {
        assert!(raw.batch_execute(sql).await.is_err(), "the database must refuse: {sql}");
    }
    assert_eq!(load(&store, "a").await.unwrap().events.len(), 1);
    schema.end().await;
}

#[tokio::test]
async fn a_run_without_a_readable_name_is_set_aside_and_the_queue_goes_on() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = register(&store).await;
    for id in ["a", "b", "c"] {
        store.create(vec![new_run(id, None)]).await.remove(0).unwrap();
    }
    let raw = schema.raw().await;
    raw.batch_execute("ALTER DOMAIN text_255 DROP CONSTRAINT text_255_check; UPDATE run SET id = '' WHERE id = 'a'")
        .await
        .unwrap();
    assert_eq!(claim_ids(&store, claim(lease, 1, 1)).await, ["b"]);
    assert_eq!(claim_ids(&store, claim(lease, 2, 10)).await, ["c"]);
    let row = raw.query_one("SELECT status, note, owner FROM run WHERE id = ''", &[]).await.unwrap();
    assert_eq!((row.get::<_, i16>(0), row.get::<_, Option<i64>>(2)), (Status::Parked.code(), None));
    assert!(row.get::<_, &str>(1).contains("must not be empty"), "the note says why");
    schema.end().await;
}

#[tokio::test]
async fn a_row_that_can_be_neither_read_nor_set_aside_is_gone_around() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = register(&store).await;
    for id in ["a", "b"] {
        store.create(vec![new_run(id, None)]).await.remove(0).unwrap();
    }
    let raw = schema.raw().await;
    let broken = "ALTER DOMAIN text_255 DROP CONSTRAINT text_255_check; UPDATE run SET id = '' WHERE id = 'a'; \
                  ALTER TABLE run ADD CONSTRAINT strict CHECK (id <> '') NOT VALID";
    raw.batch_execute(broken).await.unwrap();
    assert_eq!(claim_ids(&store, claim(lease, 1, 1)).await, ["b"]);
    schema.end().await;
}

#[tokio::test]
async fn timers_of_a_run_that_cannot_be_read_do_not_hold_up_the_others() {
    let schema = Schema::new();
    let store = schema.connect().await;
    for id in ["a", "b"] {
        store.create(vec![new_run(id, None)]).await.remove(0).unwrap();
    }
    let raw = schema.raw().await;
    let broken = "INSERT INTO timer SELECT ns, seq, 'k', 0, 1 FROM run; \
                  ALTER DOMAIN text_128 DROP CONSTRAINT text_128_check; UPDATE run SET version = '' WHERE id = 'a'";
    raw.batch_execute(broken).await.unwrap();
    let swept = store.sweep(1).await.unwrap();
    assert_eq!((swept.fired, swept.more), (1, false));
    assert_eq!(load(&store, "b").await.unwrap().inbox.len(), 1);
    schema.end().await;
}

#[tokio::test]
async fn a_task_that_cannot_be_read_does_not_hold_up_its_queue() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let raw = schema.raw().await;
    let tasks = "ALTER DOMAIN text_128 DROP CONSTRAINT text_128_check; INSERT INTO task \
                 SELECT 1, id, NULL, NULL, name, 'q', 0, '', 0, 0, 0, NULL, NULL, 0, NULL, false, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL \
                 FROM (VALUES ('a', ''), ('b', 't')) v (id, name)";
    raw.batch_execute(tasks).await.unwrap();
    let claim = outlast_store::ClaimTasks {
        worker: outlast_core::id::WorkerId::new("w").unwrap(),
        id: outlast_core::id::ClaimId(1),
        namespace: None,
        queues: vec![outlast_core::id::QueueName::new("q").unwrap()],
        names: Vec::new(),
        lease: std::time::Duration::from_secs(60),
        limit: 1,
    };
    let claimed = store.claim_tasks(claim).await.unwrap();
    assert_eq!(claimed.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["b"]);
    schema.end().await;
}

/// The neighbours of an item the database cannot store are stored.
#[tokio::test]
async fn one_item_the_database_cannot_store_does_not_fail_its_group() {
    let schema = Schema::new();
    let options = PostgresOptions { lanes: 1, ..schema.options() };
    let store = PostgresStore::connect(&schema.url, options).await.unwrap();
    let mut poison = new_run("poison", None);
    poison.attributes = vec![(AttributeName::new("a").unwrap(), "nul \0 inside".to_owned())];
    let answers = store.create(vec![new_run("a", None), poison, new_run("b", None)]).await;
    assert!(matches!(answers[0], Ok(Created::Created { .. })), "{:?}", answers[0]);
    assert!(matches!(answers[1], Err(StoreError::Settings(_) | StoreError::Limit(_))), "{:?}", answers[1]);
    assert!(matches!(answers[2], Ok(Created::Created { .. })), "{:?}", answers[2]);
    assert_eq!(store.get(run("poison")).await, Err(StoreError::NotFound(run("poison"))));
    schema.end().await;
}

#[tokio::test]
async fn a_long_attribute_is_found_by_its_whole_value() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let name = AttributeName::new("a").unwrap();
    for (id, end) in [("one", "1"), ("two", "2")] {
        let value = format!("{}{end}", "ä".repeat(500));
        let attributes = vec![(name.clone(), value)];
        store.create(vec![outlast_core::commit::NewRun { attributes, ..new_run(id, None) }]).await.remove(0).unwrap();
    }
    let attribute = Some((name, format!("{}2", "ä".repeat(500))));
    let page = store.list(Filter { attribute, ..Filter::all(run("x").namespace) }).await.unwrap();
    assert_eq!(page.runs.iter().map(|view| view.run.id.as_str()).collect::<Vec<_>>(), ["two"]);
    schema.end().await;
}
