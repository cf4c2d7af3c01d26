//! An author's transaction: on a connection of its own, beside the lanes.
//!
//! The guard is looked at first, and for good after the body, when the run's row is locked: so nobody who has something
//! for the run waits for the author's statements, and a zombie's work is rolled back all the same.

mod values;
mod words;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use deadpool_postgres::Pool;
use outlast_core::commit::Commit;
use outlast_core::failure::{Failure as Reason, code};
use outlast_core::id::TxnId;
use outlast_core::record::Record;
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::decode::number;
use super::failure::{Failure, Remedy};
use super::group::lane::{Committed, INSERT_TXN, ROUNDS_MAX, send_commit};
use super::needs::Needs;
use super::options::PostgresOptions;
use super::session::{self, Session, Step};
use super::work::Work;
use super::working_set::WorkingSet;
use super::{ATTEMPTS_MAX, Core, fetch, flush};
use crate::BoxFuture;
use crate::error::{CommitError, StoreError, Trouble};
use crate::logic::{self, Halt};
use crate::rows::Fault;
use crate::transact::{Answer, Request, Row, Statements, Transact, Transacted, TxError, doomed, guarded};

const STANDS: &str = "SELECT r.owner IS NOT NULL AND r.fence = $3 AND r.next = $4 AND r.deleted_at IS NULL \
     FROM run r WHERE r.ns = $1 AND r.id = $2";

/// What transactions of authors share.
pub(super) struct Authors {
    pool: Pool,
    for_authors: String,
    for_us: String,
    as_new: String,
    limit: Duration,
}

impl Authors {
    pub(super) fn new(config: Config, options: &PostgresOptions) -> Result<Self, StoreError> {
        Ok(Authors {
            pool: session::pool(config, options, options.transactions)?,
            for_authors: session::local_for_authors(),
            for_us: session::local_for_us(options),
            as_new: session::as_new(options),
            limit: options.statement_timeout,
        })
    }
}

type Ended = Result<Transacted, CommitError>;

/// How one run of it ended.
enum Once {
    Ended(Ended),
    /// It lost a race; what to say if it loses all.
    LostRace(Ended),
}

/// Runs it, again if it lost a race.
pub(super) async fn transact(core: &Arc<Core>, transact: &Transact) -> Ended {
    let mut attempt = 1;
    loop {
        let mut session = Session::begin(&core.authors.pool).await.map_err(|failure| failure.error)?;
        let once = once(core, &mut session, transact).await;
        let (tidy, authors) = (Arc::clone(core), session);
        // Nobody needs to wait for it.
        core.own(async move { authors.clean(&tidy.authors.as_new).await });
        let (ended, lost_race) = match once {
            Ok(Once::Ended(ended)) => (ended, false),
            Ok(Once::LostRace(ended)) => (ended, true),
            Err(Failure { remedy, error }) => (Err(error.into()), remedy == Remedy::Again),
        };
        if !lost_race || attempt == ATTEMPTS_MAX {
            return ended;
        }
        attempt += 1;
    }
}

async fn once(core: &Core, session: &mut Session, transact: &Transact) -> Result<Once, Failure> {
    if !begin(core, session, &transact.commit).await? {
        return Ok(Once::Ended(Err(refusal(core, session, &transact.commit).await?)));
    }
    let mut running = Running { session, authors: &core.authors, failed: None, lost_race: false, broken: None };
    let outcome = running.run(transact).await;
    let (lost_race, broken) = (running.lost_race, running.broken);
    if let Some(failure) = broken {
        return Err(failure);
    }
    match outcome {
        Err(reason) if lost_race => Ok(Once::LostRace(Ok(Transacted::RolledBack(reason)))),
        Err(reason) => Ok(Once::Ended(Ok(Transacted::RolledBack(reason)))),
        Ok(events) => commit(core, session, &transact.commit_with(events)).await.map(Once::Ended),
    }
}

/// Begins the transaction; whether the run stands as the sender believes.
async fn begin(core: &Core, session: &mut Session, commit: &Commit) -> Result<bool, Failure> {
    core.namespaces.learn(session, [&commit.run.namespace]).await?;
    // No namespace has the number 0: a run in one that does not exist is not found.
    let ns = core.namespaces.id(&commit.run.namespace).unwrap_or(0);
    let stands = Step::new(
        STANDS,
        vec![
            Box::new(ns),
            Box::new(commit.run.id.as_str()),
            Box::new(number(commit.fence.0)),
            Box::new(number(commit.expected.0)),
        ],
    );
    let steps = [Step::Plain("BEGIN"), stands, Step::Plain(&core.authors.for_authors)];
    let answers = session.send_all(&steps).await?;
    let stands = answers.get(1).and_then(|rows| rows.first());
    Ok(stands.is_some_and(|row| row.get::<_, Option<bool>>(0) == Some(true)))
}

/// Why the run does not stand as the sender believes.
async fn refusal(core: &Core, session: &mut Session, commit: &Commit) -> Result<CommitError, Failure> {
    let mut set = WorkingSet::default();
    let checked = decide(core, session, &mut set, commit, |set| logic::commit::check_guard(set, commit)).await?;
    Ok(checked.err().unwrap_or_else(|| {
        let message = "the run changed while its transaction began";
        StoreError::unavailable(Trouble::Busy, message).into()
    }))
}

/// Locks the run, applies the commit and sends it.
async fn commit(core: &Core, session: &mut Session, commit: &Commit) -> Result<Ended, Failure> {
    let mut set = WorkingSet::default();
    let applied = decide(core, session, &mut set, commit, |set| commit.apply(set, &core.limits)).await?;
    let committed = match applied {
        Ok(committed) => committed,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let txn = TxnId(Uuid::now_v7());
    let mut steps = flush::steps(&set);
    steps.push(Step::new(INSERT_TXN, vec![Box::new(txn.0)]));
    match send_commit(session, steps).await {
        Ok(Committed::Yes) => {
            if flush::wakes_anybody(&set) {
                core.hint();
            }
            Ok(Ok(Transacted::Committed(committed)))
        }
        Ok(Committed::Unknown) => Ok(Err(CommitError::Unknown(txn))),
        // A constraint that is only checked at the end.
        Err(Failure { error: StoreError::Settings(message), .. }) => {
            Ok(Ok(Transacted::RolledBack(Reason::new(code::SQL_ERROR, message))))
        }
        Err(failure) => Err(failure),
    }
}

/// Locks and fetches rows, and runs a piece of logic over them until it asks for nothing that is not there.
async fn decide<T>(
    core: &Core,
    session: &mut Session,
    set: &mut WorkingSet,
    commit: &Commit,
    logic: impl Fn(&mut WorkingSet) -> Result<T, Halt<CommitError>>,
) -> Result<Result<T, CommitError>, Failure> {
    // Apart from what follows: our statements are prepared before any is sent, and must find our tables then.
    session.send_all(&[Step::Plain(&core.authors.for_us)]).await?;
    let mut needs = Needs::default();
    commit.needs(&mut needs);
    for _ in 0..ROUNDS_MAX {
        fetch::more(core, session, set, &needs).await?;
        match logic(set) {
            Ok(decided) => return Ok(Ok(decided)),
            Err(Halt::Refused(refusal)) => return Ok(Err(refusal)),
            Err(Halt::Fault(Fault::Failed(error))) => return Ok(Err(error.into())),
            Err(Halt::Fault(Fault::Miss)) => needs = set.restart(),
        }
    }
    let message = "the rows a transaction needs could not be gathered";
    Err(StoreError::unavailable(Trouble::Other, message).into())
}

/// One run of a body.
struct Running<'s> {
    session: &'s mut Session,
    authors: &'s Authors,
    /// The first statement that failed.
    failed: Option<TxError>,
    lost_race: bool,
    /// The connection failed, and not what was asked of it.
    broken: Option<Failure>,
}

enum Next {
    Ended(Result<Vec<Record>, Reason>),
    Asked(Request),
}

impl Running<'_> {
    async fn run(&mut self, transact: &Transact) -> Result<Vec<Record>, Reason> {
        let limit = self.authors.limit;
        let Ok(outcome) = tokio::time::timeout(limit, self.poll_to_end(transact)).await else {
            // A statement may still be running.
            self.session.spend();
            return Err(TxError::TooLong { limit }.into());
        };
        let events = outcome?;
        match &self.failed {
            Some(error) => Err(doomed(error)),
            None => Ok(events),
        }
    }

    /// Polls the body, and runs what it asks for in between.
    async fn poll_to_end(&mut self, transact: &Transact) -> Result<Vec<Record>, Reason> {
        let (tx, statements) = transact.open();
        let mut body = guarded(|| (transact.body)(tx))?;
        let outcome = loop {
            match next(&mut body, &statements).await {
                Next::Ended(outcome) => break outcome,
                Next::Asked(request) => {
                    let answer = self.statement(&request).await;
                    if let Err(error) = &answer {
                        self.failed.get_or_insert_with(|| error.clone());
                    }
                    request.answer(answer);
                }
            }
        };
        // A destructor that panics must not take the store's task with it.
        guarded(|| drop(body)).and(outcome)
    }

    async fn statement(&mut self, request: &Request) -> Result<Answer, TxError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        words::check(&request.sql)?;
        // Not from the cache of our statements: an author's may be any number.
        let prepared = self.session.prepare(&request.sql).await.map_err(|error| self.explain(&error))?;
        let params = values::params(&request.params, prepared.params())?;
        if request.rows {
            let rows = self.session.query_raw(&prepared, params).await.map_err(|error| self.explain(&error))?;
            let rows = values::collect(rows).await;
            return rows.map_err(|error| self.explain(&error)).and_then(values::rows).map(Answer::Rows);
        }
        let changed = self.session.execute_raw(&prepared, params).await.map_err(|error| self.explain(&error))?;
        Ok(Answer::Changed(changed))
    }

    fn explain(&mut self, error: &tokio_postgres::Error) -> TxError {
        let Some(said) = error.as_db_error() else {
            let failure = super::failure::store_error(error);
            let message = failure.to_string();
            self.broken.get_or_insert_with(|| failure.into());
            return TxError::Refused { message, code: None };
        };
        if said.code().code().starts_with("40") {
            self.lost_race = true;
        }
        if *said.code() == SqlState::QUERY_CANCELED {
            return TxError::TooLong { limit: self.authors.limit };
        }
        TxError::Refused { message: said.to_string(), code: Some(said.code().code().to_owned()) }
    }
}

/// The next thing a body does.
async fn next(body: &mut BoxFuture<'static, Result<Vec<Record>, Reason>>, statements: &Statements) -> Next {
    std::future::poll_fn(|context| {
        match guarded(|| body.as_mut().poll(context)) {
            Ok(Poll::Ready(outcome)) => return Poll::Ready(Next::Ended(outcome)),
            Ok(Poll::Pending) => {}
            Err(panic) => return Poll::Ready(Next::Ended(Err(panic))),
        }
        match statements.next_or_wake(context.waker()) {
            Some(request) => Poll::Ready(Next::Asked(request)),
            None => Poll::Pending,
        }
    })
    .await
}
