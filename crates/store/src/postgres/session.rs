//! Connections, and statements sent back to back on one.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use outlast_core::time::millis;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row};

use super::failure::Failure;
use super::options::{PostgresOptions, Tls};
use super::tls;
use crate::error::StoreError;

/// A network that swallows packets must not hold a call for ever.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the server's clock. A statement of its own, sent after the one that locks: in that one's select list the
/// clock would be read before the wait.
pub(super) const CLOCK: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The settings of the URL, with ours on top.
pub(super) fn config(url: &str, options: &PostgresOptions) -> Result<Config, StoreError> {
    let mut config: Config =
        url.parse().map_err(|error| StoreError::Settings(format!("the PostgreSQL URL does not parse: {error}")))?;
    match (&options.tls, config.get_ssl_mode()) {
        (Tls::Off, SslMode::Require) => {
            let message = "the URL says sslmode=require, the options say Tls::Off; choose Tls::System or Tls::Roots";
            return Err(StoreError::Settings(message.to_owned()));
        }
        (Tls::Off, _) => config.ssl_mode(SslMode::Disable),
        // Never fall back to a connection in the clear.
        (Tls::System | Tls::Roots(_), _) => config.ssl_mode(SslMode::Require),
    };
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(options.connect_timeout);
    }
    if config.get_application_name().is_none() {
        config.application_name("outlast");
    }
    config.tcp_user_timeout(TCP_USER_TIMEOUT);
    Ok(config)
}

/// A pool of at most so many connections, set up for our statements. Nothing is connected yet.
pub(super) fn pool(config: Config, options: &PostgresOptions, connections: usize) -> Result<Pool, StoreError> {
    let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match tls::connector(&options.tls)? {
        None => Manager::from_config(config, NoTls, recycle),
        Some(connector) => Manager::from_config(config, connector, recycle),
    };
    let settings = settings(options);
    let set_up = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let settings = settings.clone();
        Box::pin(async move { client.batch_execute(&settings).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(connections)
        .wait_timeout(Some(options.connect_timeout))
        .create_timeout(Some(options.connect_timeout))
        .runtime(Runtime::Tokio1)
        .post_create(set_up)
        .build()
        .map_err(|error| StoreError::Settings(format!("the pool cannot be built: {error}")))
}

/// How our statements are planned.
///
/// All are meant to run through an index, whatever the statistics say and however small a table was when the plan was
/// made: one generic plan each, joins in the order they are written, no sequential scan or sort where an index fits.
///
/// The queue of tasks empties itself again and again, and is taken for a table with a single row once the server has looked at it. Then
/// walking through all of its key, and all that is dead in it, seems cheaper than looking up what an array names. So the first
/// column of its key is looked up as `= ANY(ARRAY[k.ns])`, by which nothing can be walked through. [`super::plans`] asserts it.
const PLANNING: [(&str, &str); 9] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_sort", "off"),
    ("join_collapse_limit", "1"),
    ("from_collapse_limit", "1"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// What every connection begins with. Durability is not left to the server's defaults.
pub(super) fn settings(options: &PostgresOptions) -> String {
    let mut settings: String = PLANNING.iter().map(|(name, value)| format!("SET {name} = {value}; ")).collect();
    settings.push_str(
        "SET default_transaction_isolation = 'read committed'; SET client_min_messages = warning; \
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';",
    );
    let timeout = millis(options.statement_timeout).clamp(1, i64::from(i32::MAX));
    settings.push_str(&format!("SET statement_timeout = {timeout}; "));
    settings.push_str(&format!("SET idle_in_transaction_session_timeout = {timeout}; "));
    if let Some(schema) = &options.schema {
        settings.push_str(&format!("SET search_path = \"{schema}\""));
    }
    settings
}

/// Until the end of a transaction, or until [`local_for_us`]: plans and names as an author knows them.
pub(super) fn local_for_authors() -> String {
    plans_of_others() + "SET LOCAL search_path TO DEFAULT"
}

/// Until the end of a transaction: plans as the server makes them for everybody.
pub(super) fn plans_of_others() -> String {
    PLANNING.iter().map(|(name, _)| format!("SET LOCAL {name} TO DEFAULT; ")).collect()
}

/// Until the end of a transaction: plans and names as our statements need them, whatever an author's have changed. An
/// author's temporary tables come last: one may have the name of one of ours.
pub(super) fn local_for_us(options: &PostgresOptions) -> String {
    let planning: String = PLANNING.iter().map(|(name, value)| format!("SET LOCAL {name} = {value}; ")).collect();
    match &options.schema {
        Some(schema) => planning + &format!("SET LOCAL search_path TO \"{schema}\", pg_temp"),
        None => {
            planning
                + "SET LOCAL search_path TO DEFAULT; SELECT set_config('search_path', \
                   concat_ws(', ', nullif(current_setting('search_path'), ''), 'pg_temp'), true)"
        }
    }
}

/// Makes a connection that authors used as good as new. What is prepared stays.
pub(super) fn as_new(options: &PostgresOptions) -> String {
    let clean = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
                 SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; ";
    clean.to_owned() + &settings(options)
}

/// A parameter.
pub(super) type Param<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// A statement with its parameters.
pub(super) enum Step<'a> {
    /// Without parameters and answer: BEGIN, COMMIT.
    Plain(&'a str),
    /// Prepared once per connection.
    Prepared(&'a str, Vec<Param<'a>>),
}

impl<'a> Step<'a> {
    pub(super) fn new(sql: &'a str, params: Vec<Param<'a>>) -> Self {
        Step::Prepared(sql, params)
    }
}

type Answer = Result<Vec<Row>, tokio_postgres::Error>;

/// One connection, for as long as its holder needs it. Dropped inside a transaction, it is closed instead of going back
/// to the pool: nobody inherits somebody else's locks.
pub(super) struct Session {
    client: Option<Object>,
    open: bool,
    /// It may only read, by its server's will when it began; another one may write by now.
    spent: bool,
}

impl Session {
    pub(super) async fn begin(pool: &Pool) -> Result<Self, Failure> {
        Ok(Session { client: Some(pool.get().await?), open: false, spent: false })
    }

    /// Sends all steps at once and waits for all answers: one round trip. The server works through them in order.
    pub(super) async fn send(&mut self, steps: &[Step<'_>]) -> Result<Vec<Answer>, Failure> {
        // Prepared before any is sent: preparing takes a round trip of its own the first time, and a later statement
        // must not overtake an earlier one meanwhile.
        let mut prepared = Vec::with_capacity(steps.len());
        for step in steps {
            prepared.push(match step {
                Step::Plain(_) => None,
                Step::Prepared(sql, _) => Some(self.prepare_cached(sql).await?),
            });
        }
        self.open |= steps.iter().any(|step| matches!(step, Step::Plain(sql) if sql.starts_with("BEGIN")));
        let client: &tokio_postgres::Client = self;
        let answers =
            steps.iter().zip(&prepared).map(|(step, statement)| -> Pin<Box<dyn Future<Output = Answer> + Send>> {
                match (step, statement) {
                    (Step::Prepared(_, params), Some(statement)) => Box::pin(async move {
                        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| &**param as _).collect();
                        client.query(statement, &params).await
                    }),
                    (Step::Plain(sql) | Step::Prepared(sql, _), _) => {
                        Box::pin(async move { client.batch_execute(sql).await.map(|()| Vec::new()) })
                    }
                }
            });
        let answers = in_order(answers.collect()).await;
        self.spent |= answers.iter().any(may_only_read);
        Ok(answers)
    }

    /// As [`Session::send`], for statements that only make sense if all succeed.
    pub(super) async fn send_all(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, Failure> {
        Ok(self.send(steps).await?.into_iter().collect::<Result<Vec<_>, _>>()?)
    }

    /// One statement.
    pub(super) async fn ask(&mut self, sql: &str, params: Vec<Param<'_>>) -> Result<Vec<Row>, Failure> {
        Ok(self.send_all(&[Step::new(sql, params)]).await?.pop().unwrap_or_default())
    }

    /// The transaction is over: the connection may go back to the pool.
    pub(super) fn closed(&mut self) {
        self.open = false;
    }

    /// Ends the transaction, if one is open, and undoes what else an author may have done to the connection. One that
    /// does not answer is closed.
    pub(super) async fn clean(mut self, as_new: &str) {
        let rolled_back = !self.open || self.batch_execute("ROLLBACK").await.is_ok();
        self.open = !(rolled_back && self.batch_execute(as_new).await.is_ok());
    }

    /// Gives the connection up instead of waiting for what runs on it.
    pub(super) fn spend(&mut self) {
        self.spent = true;
    }

    /// Ends the transaction without effect.
    pub(super) async fn rollback(mut self) {
        if self.open && self.batch_execute("ROLLBACK").await.is_ok() {
            self.open = false;
        }
    }

    /// Sends the last statements of a transaction and its COMMIT. For calls that are safe to repeat: whatever happens
    /// to the reply, the caller is told to ask again.
    pub(super) async fn commit(&mut self, mut steps: Vec<Step<'_>>) -> Result<Vec<Vec<Row>>, Failure> {
        steps.push(Step::Plain("COMMIT"));
        let mut answers = self.send_all(&steps).await?;
        self.closed();
        answers.pop();
        Ok(answers)
    }
}

impl Deref for Session {
    type Target = deadpool_postgres::ClientWrapper;

    fn deref(&self) -> &Self::Target {
        match &self.client {
            Some(client) => client,
            None => unreachable!("the client is only taken when the session is dropped"),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(client) = self.client.take().filter(|_| self.open || self.spent) {
            drop(Object::take(client));
        }
    }
}

fn may_only_read(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|error| error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION))
}

/// Polls the futures in their order, so that they send in their order, until all are done.
async fn in_order<T>(mut futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (future, answer) in futures.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *answer = Some(value),
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    answers.into_iter().flatten().collect()
}
