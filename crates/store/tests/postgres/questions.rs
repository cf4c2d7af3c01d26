//! Questions in SQL: nobody learns by them what makes tokens, they hold nothing that others need, and they need no superuser.

use outlast_store::{PostgresStore, SqlAnswer, SqlQuestion, Store, StoreError};
use tokio_postgres::Client;

use super::scene::{Database, PATIENCE, Schema, client, create_owned, register, url as url_of_server};

/// What a callback is answered by.
const TOKEN: &str = "token-of-a-callback";

async fn ask(store: &PostgresStore, text: &str) -> Result<SqlAnswer, StoreError> {
    // Longer than anything here takes: some wait for each other.
    let question = SqlQuestion { text: text.to_owned(), time: PATIENCE, rows: 1_000, bytes: 1024 * 1024 };
    tokio::time::timeout(PATIENCE, store.sql(question)).await.expect("a question is answered")
}

async fn one(store: &PostgresStore, text: &str) -> String {
    let answer = ask(store, text).await.unwrap();
    answer.rows[0][0].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// A database with a run, a callback that is waited for, and a large object that holds the secret.
async fn furnish(schema: &Schema, store: &PostgresStore) -> Client {
    let lease = register(store).await;
    create_owned(store, "kept", lease).await;
    let raw = schema.raw().await;
    let wait = format!(
        "INSERT INTO wait (ns, run, key, kind, state, token, since) VALUES (1, 1, 'callback', 2, 0, '{TOKEN}', 0); \
         SELECT lo_from_bytea(4711, (SELECT value FROM secret)); ANALYZE secret; ANALYZE wait;"
    );
    raw.batch_execute(&wait).await.unwrap();
    raw
}

/// The secret and the token as an answer could show them.
async fn hidden(raw: &Client) -> Vec<String> {
    let sql = "SELECT encode(value, 'hex'), encode(value, 'base64'), encode(value, 'escape') FROM secret";
    let row = raw.query_one(sql, &[]).await.unwrap();
    (0..3).map(|column| row.get::<_, String>(column)).chain([TOKEN.to_owned()]).collect()
}

/// Ways to what nobody may know: by name, by function, by file, by another session, as somebody else.
fn sly(url: &str, schema: &str, file: &str) -> Vec<String> {
    let elsewhere = url.replace('\'', "''");
    let asked = [
        "SELECT * FROM secret",
        "SELECT * FROM @.secret",
        "TABLE secret",
        "SELECT encode(s.value, 'hex') AS x FROM ONLY @.secret s",
        "WITH s AS MATERIALIZED (SELECT * FROM secret) SELECT * FROM s",
        "SELECT (SELECT encode(value, 'hex') FROM secret) AS x",
        "SELECT row_to_json(s)::text AS x FROM secret s",
        "SELECT * FROM run r JOIN LATERAL (SELECT encode(value, 'hex') AS x FROM secret) s ON true",
        "SELECT query_to_xml('SELECT * FROM @.secret', true, false, '')::text AS x",
        "SELECT table_to_xml('@.secret', true, false, '')::text AS x",
        "SELECT schema_to_xml('@', true, false, '')::text AS x",
        "SELECT database_to_xml(true, false, '')::text AS x",
        "SELECT ts_stat('SELECT to_tsvector(encode(value, ''hex'')) FROM @.secret')::text AS x",
        "SELECT set_config('role', 'postgres', true) AS r, query_to_xml('TABLE @.secret', true, false, '')::text AS x",
        "SELECT set_config('role', 'none', false) AS r, query_to_xml('TABLE @.secret', true, false, '')::text AS x",
        "WITH r AS MATERIALIZED (SELECT set_config('session_authorization', 'postgres', true) AS r) \
         SELECT r, query_to_xml('TABLE @.secret', true, false, '')::text AS x FROM r",
        "SELECT query_to_xml('RESET ROLE', true, false, '')::text AS x",
        "SELECT query_to_xml('SET ROLE postgres', true, false, '')::text AS x",
        "SET ROLE postgres",
        "RESET ROLE",
        "SET SESSION AUTHORIZATION DEFAULT",
        "SELECT 1 AS x; SELECT * FROM secret",
        "SELECT 1 AS x) q) r; RESET ROLE; SELECT (1",
        "SELECT 1 AS x) q) r UNION ALL SELECT encode(value, 'hex') FROM secret --",
        "COPY secret TO STDOUT",
        "COPY (SELECT * FROM secret) TO PROGRAM 'cat'",
        "PREPARE p AS SELECT * FROM secret",
        "EXECUTE p",
        "DECLARE c CURSOR FOR SELECT * FROM secret",
        "DO $$ BEGIN PERFORM value FROM secret; END $$",
        "CREATE FUNCTION f() RETURNS bytea LANGUAGE sql AS 'SELECT value FROM secret'",
        "EXPLAIN ANALYZE SELECT * FROM secret",
        "SELECT encode(lo_get(4711), 'hex') AS x",
        "SELECT encode(loread(lo_open(4711, 262144), 32), 'hex') AS x",
        "SELECT encode(data, 'hex') AS x FROM pg_largeobject",
        "SELECT lo_export(4711, '/tmp/secret') AS x",
        "SELECT encode(pg_read_binary_file('#'), 'hex') AS x",
        "SELECT pg_read_file('#') AS x",
        "SELECT encode(get_raw_page('@.secret', 0), 'hex') AS x",
        "SELECT most_common_vals::text, histogram_bounds::text FROM pg_stats WHERE tablename IN ('secret', 'wait')",
        "SELECT * FROM pg_statistic",
        "SELECT * FROM dblink('~', 'SELECT encode(value, ''hex'') FROM @.secret') AS t (x text)",
        "SELECT dblink_connect('~') AS x",
        "SELECT min(value::text) AS x FROM secret",
        "SELECT 1 / (get_byte(value, 0) - get_byte(value, 0)) AS x FROM secret",
        "SELECT encode(value, 'hex')::int AS x FROM secret",
        "SELECT * FROM wait",
        "SELECT token FROM wait",
        "SELECT w::text AS x FROM wait w",
        "SELECT key FROM wait WHERE token LIKE 't%'",
        "SELECT query_to_xml('SELECT token FROM @.wait', true, false, '')::text AS x",
    ];
    asked.iter().map(|text| text.replace('@', schema).replace('#', file).replace('~', &elsewhere)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_nobody_learns_the_secret_or_the_token_of_a_callback() {
    let database = Database::create().await;
    let schema = Schema::at(&database.url);
    let store = schema.connect().await;
    let raw = furnish(&schema, &store).await;
    for extension in ["dblink", "pageinspect"] {
        let sql = format!("CREATE EXTENSION IF NOT EXISTS {extension} SCHEMA {}", schema.name);
        raw.batch_execute(&sql).await.unwrap_or_else(|error| eprintln!("no {extension} here: {error}"));
    }
    raw.batch_execute("CHECKPOINT").await.unwrap();
    let file: String = raw.query_one("SELECT pg_relation_filepath('secret')", &[]).await.unwrap().get(0);
    let hidden = hidden(&raw).await;
    let leaks = |shown: &str| hidden.iter().find(|text| shown.contains(text.trim())).cloned();
    // What is looked for is found where it is shown: the owner is shown it.
    let shown: String =
        raw.query_one("SELECT query_to_xml('TABLE secret', true, false, '')::text", &[]).await.unwrap().get(0);
    assert!(leaks(&shown).is_some(), "{shown}");

    assert_eq!(one(&store, "SELECT id FROM run").await, "kept");
    for sly in sly(&database.url, &schema.name, &file) {
        let shown = match ask(&store, &sly).await {
            Ok(answer) => format!("{answer:?}"),
            Err(StoreError::Settings(message)) => message,
            Err(error) => panic!("{sly}: {error}"),
        };
        assert_eq!(leaks(&shown), None, "{sly}: {shown}");
        assert_eq!(one(&store, "SELECT id FROM run").await, "kept", "after {sly}");
    }
    assert_eq!(one(&store, "SELECT key FROM wait").await, "callback");
    let refused = ask(&store, "SELECT * FROM wait").await.unwrap_err().to_string();
    assert!(refused.contains("name the other columns"), "{refused}");
    drop((store, raw));
    database.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_waits_for_nobody_who_holds_the_secret_and_leaves_it_as_it_was() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let raw = furnish(&schema, &store).await;
    let row = async |raw: &Client| -> String {
        raw.query_one("SELECT concat_ws(' ', xmin, ctid) FROM secret", &[]).await.unwrap().get(0)
    };
    let before = row(&raw).await;
    ask(&store, "SELECT 1 AS x").await.unwrap();
    raw.batch_execute("BEGIN; SELECT * FROM secret FOR UPDATE; LOCK TABLE secret IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    assert_eq!(one(&store, "SELECT id FROM run").await, "kept");
    raw.batch_execute("ROLLBACK; SELECT lo_unlink(4711)").await.unwrap();
    assert_eq!(row(&raw).await, before, "the row is the one it was");
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_questions_are_answered_beside_each_other_and_runs_do_not_wait_for_them() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let lease = register(&store).await;
    // Each waits for a lock that is given when both wait, so that none is answered unless both are asked at once.
    let raw = schema.raw().await;
    raw.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(1147)").await.unwrap();
    let asked: Vec<_> = (0..2)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { ask(&store, "SELECT pg_advisory_xact_lock_shared(1147)::text AS x").await })
        })
        .collect();
    schema.blocked(2).await;
    create_owned(&store, "beside", lease).await;
    raw.batch_execute("COMMIT").await.unwrap();
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_ask_first_all_are_answered() {
    let schema = Schema::new();
    let stores = [schema.connect().await, schema.connect().await, schema.connect().await, schema.connect().await];
    let asked: Vec<_> = (stores.iter().cycle().take(16).cloned())
        .map(|store| tokio::spawn(async move { ask(&store, "SELECT 1 AS x").await }))
        .collect();
    for asked in asked {
        asked.await.unwrap().unwrap();
    }
    schema.end().await;
}

/// A copy of a database brings the function, and it belongs to whoever made the copy.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_would_ask_as_somebody_else_is_replaced() {
    let schema = Schema::new();
    let store = schema.connect().await;
    let who = "SELECT current_user::text AS who";
    let reader = one(&store, who).await;
    let raw = schema.raw().await;
    let me: String = raw.query_one("SELECT current_user::text", &[]).await.unwrap().get(0);
    assert!(reader.starts_with("outlast_sql_") && reader != me, "{reader}");
    for other in [
        "ALTER FUNCTION sql_answer_1 OWNER TO CURRENT_USER",
        "ALTER FUNCTION sql_answer_1 SECURITY INVOKER",
        "DROP FUNCTION sql_answer_1",
        // As an older program would have left it.
        "DO $$ BEGIN EXECUTE replace(pg_get_functiondef('sql_answer_1'::regproc), 'bytes bigint := 0', 'bytes bigint := 0 + 0'); END $$",
    ] {
        raw.batch_execute(other).await.unwrap();
        assert_eq!(one(&store, who).await, reader, "{other}");
        let kept =
            "SELECT count(*) FROM pg_proc WHERE oid = 'sql_answer_1'::regproc AND prosecdef AND prosrc LIKE '%0 + 0%'";
        assert_eq!(
            raw.query_one(kept, &[]).await.unwrap().get::<_, i64>(0),
            0,
            "it is the one this program makes: {other}"
        );
    }
    // And a role that was given what nobody may know asks nothing, until it is taken away as it is told.
    for given in ["SELECT ON secret", "SELECT (token) ON wait", "SELECT ON wait"] {
        raw.batch_execute(&format!("GRANT {given} TO {reader}")).await.unwrap();
        let refused = ask(&store, who).await.unwrap_err().to_string();
        assert!(refused.contains("cannot read the secret"), "{refused}");
        raw.batch_execute(help(&refused)).await.unwrap();
        assert_eq!(one(&store, who).await, reader, "{given}");
        assert!(ask(&store, "SELECT token FROM wait").await.is_err(), "{given}");
    }
    schema.end().await;
}

/// What an administrator is asked to say.
fn help(refused: &str) -> &str {
    refused.split_once("say: ").unwrap_or_else(|| panic!("{refused}")).1
}

/// Authors have tables beside Outlast's, also such as come later. What belongs to others is not shown.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_come_later_can_be_read_and_those_of_others_cannot() {
    let schema = Schema::new();
    let store = schema.connect().await;
    assert_eq!(one(&store, "SELECT 'asked' AS x").await, "asked");
    let raw = schema.raw().await;
    let other = schema.name.replace("story", "other");
    let made = format!(
        "CREATE TABLE account (name text); INSERT INTO account VALUES ('ann'); CREATE VIEW v AS SELECT * FROM secret; \
         CREATE TABLE theirs AS SELECT 'bob' AS name; CREATE ROLE {other}; ALTER TABLE theirs OWNER TO {other}"
    );
    raw.batch_execute(&made).await.unwrap();
    assert_eq!(one(&store, "SELECT name FROM account").await, "ann");
    for hidden in ["SELECT * FROM theirs", "SELECT * FROM v"] {
        let refused = ask(&store, hidden).await.unwrap_err().to_string();
        assert!(refused.contains("permission denied"), "{hidden}: {refused}");
    }
    raw.batch_execute(&format!("DROP TABLE theirs; DROP ROLE {other}")).await.unwrap();
    schema.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_create_no_roles_is_told_what_an_administrator_can_do() {
    let database = Database::create().await;
    let (admin, user) = (client(&url_of_server()).await, database.name.clone());
    let login = format!("CREATE ROLE {user} LOGIN; GRANT CREATE ON DATABASE {user} TO {user}");
    admin.batch_execute(&login).await.unwrap();
    let (scheme, rest) = database.url.split_once("://").unwrap();
    let (_, host) = rest.split_once('@').unwrap();
    let store = Schema::at(&format!("{scheme}://{user}@{host}")).connect().await;

    let refused = ask(&store, "SELECT 1 AS x").await.unwrap_err().to_string();
    admin.batch_execute(help(&refused)).await.unwrap();
    assert!(one(&store, "SELECT current_user::text AS who").await.starts_with("outlast_sql_"));
    let refused = ask(&store, "SELECT * FROM secret").await.unwrap_err().to_string();
    assert!(refused.contains("permission denied"), "{refused}");
    drop(store);
    database.end().await;
    admin.batch_execute(&format!("DROP ROLE {user}")).await.unwrap();
}

/// The schema is somebody else's, and so are the tables: the server's user may only work with them.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_owns_nothing_is_told_what_an_administrator_can_do() {
    let database = Database::create().await;
    let (admin, user) = (client(&database.url).await, database.name.clone());
    let schema = Schema::at(&database.url);
    drop(schema.connect().await);
    let given = format!(
        "CREATE ROLE {user} LOGIN; GRANT USAGE, CREATE ON SCHEMA {0} TO {user}; \
         GRANT ALL ON ALL TABLES IN SCHEMA {0} TO {user}; GRANT ALL ON ALL SEQUENCES IN SCHEMA {0} TO {user}",
        schema.name
    );
    admin.batch_execute(&given).await.unwrap();
    let (scheme, rest) = schema.url.split_once("://").unwrap();
    let (_, host) = rest.split_once('@').unwrap();
    let url = format!("{scheme}://{user}@{host}");
    let store = PostgresStore::connect(&url, schema.options()).await.unwrap();

    let refused = ask(&store, "SELECT 1 AS x").await.unwrap_err().to_string();
    admin.batch_execute(help(&refused)).await.unwrap();
    let who = one(&store, "SELECT current_user::text AS who FROM (SELECT count(*) FROM run) r").await;
    assert!(who.starts_with("outlast_sql_"), "{who}");
    let refused = ask(&store, "SELECT * FROM secret").await.unwrap_err().to_string();
    assert!(refused.contains("permission denied"), "{refused}");
    drop((store, admin));
    database.end().await;
    client(&url_of_server()).await.batch_execute(&format!("DROP ROLE {user}")).await.unwrap();
}
