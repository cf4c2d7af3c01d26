//! How calls pass: what is noted before and after.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use outlast_core::commit::Commit;
use outlast_core::id::{Index, RunKey};
use outlast_core::record::Record;
use outlast_store::{
    BoxFuture, CommitError, Committed, Excerpt, Load, LoadFrom, Loaded, Store, StoreError, Transact, Transacted, TxBody,
};

use super::sight::{Sight, Stand};
use super::{Shadow, Watch, runs_of};

impl Watch {
    /// A call that writes: `see` is told what was answered.
    pub(super) fn pass<'a, T, C, S>(&'a self, runs: Vec<RunKey>, call: C, see: S) -> BoxFuture<'a, T>
    where
        T: Debug + Send + 'a,
        C: for<'s> FnOnce(&'s dyn Store) -> BoxFuture<'s, T> + Send + 'a,
        S: FnOnce(&mut Sight, &T, Stand) + Send + 'a,
    {
        Box::pin(async move {
            let under_way = self.begin(runs);
            let store = self.inner();
            let answer = call(&*store).await;
            let stand = under_way.answered();
            let mut sight = self.sight();
            sight.trace.note(&answer);
            see(&mut sight, &answer, stand);
            drop(sight);
            answer
        })
    }

    /// A call that only reads, or changes nothing that is watched.
    pub(super) fn look<'a, T, C>(&'a self, call: C) -> BoxFuture<'a, T>
    where
        T: Debug + Send + 'a,
        C: for<'s> FnOnce(&'s dyn Store) -> BoxFuture<'s, T> + Send + 'a,
    {
        Box::pin(async move {
            self.sight().calls += 1;
            let store = self.inner();
            let answer = call(&*store).await;
            self.sight().trace.note(&answer);
            answer
        })
    }

    /// A call that reads begins: how many that write had begun before it, unless one is under way.
    fn begin_reading(&self) -> Option<u64> {
        let mut sight = self.sight();
        sight.calls += 1;
        (sight.under_way == 0).then_some(sight.begun)
    }

    /// How a call that reads stands among those that write.
    fn stand_since(&self, begun: Option<u64>) -> Stand {
        let sight = self.sight();
        Stand { alone: begun == Some(sight.begun) && !sight.loose }
    }

    pub(super) async fn see_commits(&self, commits: Vec<Commit>) -> Vec<Result<Committed, CommitError>> {
        let under_way = self.begin(commits.iter().flat_map(runs_of).collect());
        self.sight().stop_orders(&commits);
        let answers = self.inner().commit(commits.clone()).await;
        let stand = under_way.answered();
        self.judge_commits(&commits, &answers, stand).await;
        answers
    }

    /// A commit on its sender's own thread. A store that answers at once does so there, too.
    pub(super) fn see_commits_here(&self, commits: &[Commit]) -> Option<Vec<Result<Committed, CommitError>>> {
        if self.answers_at_once {
            return self.see_commits(commits.to_vec()).now_or_never();
        }
        // Nothing is under way until it is known that it is done here.
        let answers = self.inner().commit_here(commits)?;
        let under_way = self.begin(commits.iter().flat_map(runs_of).collect());
        self.sight().stop_orders(commits);
        let stand = under_way.answered();
        let judged = self.judge_commits(commits, &answers, stand).now_or_never();
        debug_assert!(judged.is_some(), "where order is not known nothing is asked of the store");
        Some(answers)
    }

    async fn judge_commits(&self, commits: &[Commit], answers: &[Result<Committed, CommitError>], stand: Stand) {
        self.sight().trace.note(&(commits, answers));
        // Those that were applied first: a look at one that was not sees them all.
        let answered = || commits.iter().zip(answers);
        for (commit, answer) in answered().filter(|(_, answer)| answer.is_ok()) {
            self.committed(commit, answer, stand).await;
        }
        for (commit, answer) in answered().filter(|(_, answer)| answer.is_err()) {
            self.committed(commit, answer, stand).await;
        }
    }

    /// What the body of a transaction gives is only known inside it.
    pub(super) async fn see_transact(&self, transact: Transact) -> Result<Transacted, CommitError> {
        let under_way = self.begin(runs_of(&transact.commit));
        let given: Arc<Mutex<Vec<Record>>> = Arc::default();
        let (body, keep) = (transact.body.clone(), Arc::clone(&given));
        let listening: TxBody = Arc::new(move |tx| {
            let (ran, keep) = (body(tx), Arc::clone(&keep));
            Box::pin(async move {
                let events = ran.await?;
                keep.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&events);
                Ok(events)
            })
        });
        let mut commit = transact.commit.clone();
        self.sight().stop_orders(std::slice::from_ref(&commit));
        let answer = self.inner().transact(Transact { body: listening, ..transact }).await;
        let stand = under_way.answered();
        commit.events = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.sight().trace.note(&commit);
        match &answer {
            Ok(Transacted::Committed(committed)) => self.committed(&commit, &Ok(committed.clone()), stand).await,
            Ok(Transacted::RolledBack(_)) => {}
            Err(error) => self.committed(&commit, &Err(error.clone()), stand).await,
        }
        answer
    }

    pub(super) async fn see_loads(&self, loads: Vec<Load>) -> Vec<Result<Loaded, StoreError>> {
        let begun = self.begin_reading();
        let runs: Vec<RunKey> = loads.iter().map(|load| load.run.clone()).collect();
        let (loads, read) = self.lose_snapshots(loads);
        let whole = loads.iter().filter(|load| load.from == LoadFrom::Index(Index(0))).map(|load| load.run.clone());
        let whole: Vec<RunKey> = whole.collect();
        let answers = self.inner().load(loads).await;
        self.sight().trace.note(&answers);
        let stand = self.stand_since(begun);
        let shown = runs.iter().zip(answers).zip(read).map(|((run, answer), read)| {
            let mut loaded = match answer {
                Ok(loaded) => loaded,
                Err(error) => return Err(self.damaged_view(run, Index(0), Err(error.clone())).err().unwrap_or(error)),
            };
            self.sight().loaded(&loaded, stand);
            if whole.contains(run) && !loaded.events.is_empty() {
                self.replayed(run);
            }
            loaded.events = self.damaged_view(run, loaded.first, Ok(loaded.events))?;
            self.tear_snapshot(&mut loaded, read);
            Ok(loaded)
        });
        shown.collect()
    }

    /// A journal was read from its beginning: if that was so before, its program was in memory and is no more.
    fn replayed(&self, run: &RunKey) {
        let first = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone());
        self.sight().replays += u64::from(!first);
    }

    pub(super) async fn see_excerpt(&self, excerpt: Excerpt) -> Result<Vec<Record>, StoreError> {
        let begun = self.begin_reading();
        let (run, from) = (excerpt.run.clone(), excerpt.from);
        let generation = excerpt.generation.or_else(|| self.sight().runs.get(&run).map(Shadow::generation));
        let current =
            excerpt.generation.is_none() || excerpt.generation == self.sight().runs.get(&run).map(Shadow::generation);
        let records = self.inner().excerpt(excerpt).await;
        let stand = self.stand_since(begun);
        self.sight().trace.note(&records);
        if let (Some(generation), Ok(records)) = (generation, &records) {
            self.sight().read(&run, generation, from, records, stand);
        }
        if current { self.damaged_view(&run, from, records) } else { records }
    }
}
