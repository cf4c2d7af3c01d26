//! Every call of a store, seen on its way.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{Index, LeaseId, Namespace, NodeId, RunKey, ScheduleId, TxnId, Version, WorkflowName};
use outlast_core::record::Record;
use outlast_store::{
    Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, CommitError, Committed, Created, Delivered, Excerpt,
    Filter, Fire, Fired, Lease, Load, LoadFrom, Loaded, Page, Release, Resolution, Retained, Retention, RunView,
    Schedule, Store, StoreError, Swept, Take, TaskExtended, TaskHeartbeat, TaskView, Transact, Transacted, TxBody,
};

use super::sight::{Sight, Stand};
use super::{Shadow, Watch, runs_of};

impl Watch {
    /// A call that writes: `see` is told what was answered.
    fn pass<'a, T, C, S>(&'a self, runs: Vec<RunKey>, call: C, see: S) -> BoxFuture<'a, T>
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
    fn look<'a, T, C>(&'a self, call: C) -> BoxFuture<'a, T>
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

    async fn see_commits(&self, commits: Vec<Commit>) -> Vec<Result<Committed, CommitError>> {
        let under_way = self.begin(commits.iter().flat_map(runs_of).collect());
        self.sight().stop_orders(&commits);
        let answers = self.inner().commit(commits.clone()).await;
        let stand = under_way.answered();
        self.judge_commits(&commits, &answers, stand).await;
        answers
    }

    /// A commit on its sender's own thread. A store that answers at once does so there, too.
    fn see_commits_here(&self, commits: &[Commit]) -> Option<Vec<Result<Committed, CommitError>>> {
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
    async fn see_transact(&self, transact: Transact) -> Result<Transacted, CommitError> {
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

    async fn see_loads(&self, loads: Vec<Load>) -> Vec<Result<Loaded, StoreError>> {
        let begun = self.begin_reading();
        let runs: Vec<RunKey> = loads.iter().map(|load| load.run.clone()).collect();
        let whole = loads.iter().filter(|load| load.from == LoadFrom::Index(Index(0))).map(|load| load.run.clone());
        let whole: Vec<RunKey> = whole.collect();
        let answers = self.inner().load(loads).await;
        self.sight().trace.note(&answers);
        let stand = self.stand_since(begun);
        let shown = runs.iter().zip(answers).map(|(run, answer)| {
            let mut loaded = match answer {
                Ok(loaded) => loaded,
                Err(error) => return Err(self.damaged_view(run, Index(0), Err(error.clone())).err().unwrap_or(error)),
            };
            self.sight().loaded(&loaded, stand);
            if whole.contains(run) && !loaded.events.is_empty() {
                self.replayed(run);
            }
            loaded.events = self.damaged_view(run, loaded.first, Ok(loaded.events))?;
            Ok(loaded)
        });
        shown.collect()
    }

    /// A journal was read from its beginning: if that was so before, its program was in memory and is no more.
    fn replayed(&self, run: &RunKey) {
        let first = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone());
        self.sight().replays += u64::from(!first);
    }

    async fn see_excerpt(&self, excerpt: Excerpt) -> Result<Vec<Record>, StoreError> {
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

impl Store for Watch {
    fn register(&self, node: NodeId, lease: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        let see = |sight: &mut Sight, answer: &Result<Lease, StoreError>, _: Stand| {
            if let Ok(lease) = answer {
                sight.registered(lease, &self.process);
            }
        };
        self.pass(Vec::new(), move |store| store.register(node, lease), see)
    }

    fn renew(&self, lease: LeaseId, duration: Duration) -> BoxFuture<'_, Result<Lease, StoreError>> {
        let see = |sight: &mut Sight, answer: &Result<Lease, StoreError>, stand: Stand| {
            if let Ok(lease) = answer {
                sight.renewed(lease, stand);
            }
        };
        self.pass(Vec::new(), move |store| store.renew(lease, duration), see)
    }

    fn retire(&self, lease: LeaseId) -> BoxFuture<'_, Result<(), StoreError>> {
        let see = move |sight: &mut Sight, answer: &Result<(), StoreError>, _: Stand| {
            if answer.is_ok() {
                sight.retired(lease);
            }
        };
        self.pass(Vec::new(), move |store| store.retire(lease), see)
    }

    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        let asked = runs.clone();
        let see = move |sight: &mut Sight, answers: &Vec<Result<Created, StoreError>>, _: Stand| {
            for (new, answer) in asked.iter().zip(answers) {
                if let Ok(created) = answer {
                    sight.created(new, created);
                }
            }
        };
        let keys = runs.iter().map(|new| new.run.clone()).collect();
        self.pass(keys, move |store| store.create(runs), see)
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        let asked = claim.clone();
        let see = move |sight: &mut Sight, answer: &Result<Vec<Claimed>, StoreError>, stand: Stand| {
            for claimed in answer.iter().flatten() {
                sight.claimed(&asked, claimed, stand);
            }
        };
        self.pass(Vec::new(), move |store| store.claim(claim), see)
    }

    fn wakes(&self, lease: LeaseId, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.look(move |store| store.wakes(lease, limit))
    }

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.look(move |store| store.take(runs))
    }

    fn load(&self, loads: Vec<Load>) -> BoxFuture<'_, Vec<Result<Loaded, StoreError>>> {
        Box::pin(self.see_loads(loads))
    }

    fn commit(&self, commits: Vec<Commit>) -> BoxFuture<'_, Vec<Result<Committed, CommitError>>> {
        Box::pin(self.see_commits(commits))
    }

    fn create_here(&self, runs: &[NewRun]) -> Option<Vec<Result<Created, StoreError>>> {
        if self.answers_at_once {
            return self.create(runs.to_vec()).now_or_never();
        }
        let answers = self.inner().create_here(runs)?;
        let mut sight = self.sight();
        sight.calls += 1;
        let created = runs.iter().zip(&answers).filter_map(|(new, answer)| Some((new, answer.as_ref().ok()?)));
        created.for_each(|(new, created)| sight.created(new, created));
        drop(sight);
        Some(answers)
    }

    fn commit_here(&self, commits: &[Commit]) -> Option<Vec<Result<Committed, CommitError>>> {
        self.see_commits_here(commits)
    }

    fn transact(&self, transact: Transact) -> BoxFuture<'_, Result<Transacted, CommitError>> {
        Box::pin(self.see_transact(transact))
    }

    fn resolve(&self, txn: TxnId) -> BoxFuture<'_, Result<Resolution, StoreError>> {
        self.look(move |store| store.resolve(txn))
    }

    fn release(&self, runs: Vec<Release>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        let keys: Vec<RunKey> = runs.iter().map(|release| release.run.clone()).collect();
        let asked = keys.clone();
        let see = move |sight: &mut Sight, answers: &Vec<Result<(), StoreError>>, _: Stand| {
            let released = asked.iter().zip(answers).filter(|(_, answer)| answer.is_ok());
            released.for_each(|(run, _)| sight.let_go(run));
        };
        self.pass(keys, move |store| store.release(runs), see)
    }

    fn unpark(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        let asked = run.clone();
        let see = move |sight: &mut Sight, answer: &Result<bool, StoreError>, _: Stand| {
            if *answer == Ok(true) {
                sight.unparked(&asked);
            }
        };
        self.pass(vec![run.clone()], move |store| store.unpark(run), see)
    }

    fn announce(&self, serves: Vec<(WorkflowName, Version)>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.look(move |store| store.announce(serves))
    }

    fn park_unserved(&self, grace: Duration, limit: usize) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        let see = |sight: &mut Sight, answer: &Result<Vec<RunKey>, StoreError>, _: Stand| {
            answer.iter().flatten().for_each(|run| sight.let_go(run));
        };
        self.pass(Vec::new(), move |store| store.park_unserved(grace, limit), see)
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> BoxFuture<'_, Vec<Result<Delivered, StoreError>>> {
        let asked = deliveries.clone();
        let see = move |sight: &mut Sight, answers: &Vec<Result<Delivered, StoreError>>, stand: Stand| {
            for (delivery, answer) in asked.iter().zip(answers) {
                if let Ok(delivered) = answer {
                    sight.delivered(delivery, *delivered, stand);
                }
            }
        };
        let keys = deliveries.iter().filter_map(|delivery| delivery.run().cloned()).collect();
        self.pass(keys, move |store| store.deliver(deliveries), see)
    }

    fn enqueue(&self, tasks: Vec<StandaloneTask>) -> BoxFuture<'_, Vec<Result<(), StoreError>>> {
        self.look(move |store| store.enqueue(tasks))
    }

    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>> {
        self.look(move |store| store.claim_tasks(claim))
    }

    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>> {
        self.look(move |store| store.heartbeat(heartbeat))
    }

    fn tasks(&self, namespace: Namespace, limit: usize) -> BoxFuture<'_, Result<Vec<TaskView>, StoreError>> {
        self.look(move |store| store.tasks(namespace, limit))
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        let see = |sight: &mut Sight, answer: &Result<Swept, StoreError>, _: Stand| {
            if let Ok(swept) = answer {
                sight.told(swept.now);
            }
        };
        self.pass(Vec::new(), move |store| store.sweep(limit), see)
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<(), StoreError>> {
        self.look(move |store| store.put_schedule(schedule))
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.look(move |store| store.remove_schedule(namespace, id))
    }

    fn schedules(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.look(move |store| store.schedules(namespace))
    }

    fn due_schedules(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.look(move |store| store.due_schedules(limit))
    }

    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>> {
        let asked = fire.run.clone();
        let see = move |sight: &mut Sight, answer: &Result<Fired, StoreError>, _: Stand| {
            if let (Some(new), Ok(Fired::Fired { run: Some(created) })) = (&asked, answer) {
                sight.created(new, created);
            }
        };
        let keys = fire.run.iter().map(|new| new.run.clone()).collect();
        self.pass(keys, move |store| store.fire(fire), see)
    }

    fn put_namespace(&self, namespace: Namespace) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.look(move |store| store.put_namespace(namespace))
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<Vec<Namespace>, StoreError>> {
        self.look(move |store| store.namespaces())
    }

    fn secret(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>> {
        self.look(move |store| store.secret())
    }

    fn get(&self, run: RunKey) -> BoxFuture<'_, Result<RunView, StoreError>> {
        self.look(move |store| store.get(run))
    }

    fn list(&self, filter: Filter) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.look(move |store| store.list(filter))
    }

    fn count(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<(Status, u64)>, StoreError>> {
        self.look(move |store| store.count(namespace))
    }

    fn awaiting(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<Awaited>, StoreError>> {
        self.look(move |store| store.awaiting(run))
    }

    fn excerpt(&self, excerpt: Excerpt) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(self.see_excerpt(excerpt))
    }

    fn attributes(&self, run: RunKey) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
        self.look(move |store| store.attributes(run))
    }

    fn delete(&self, run: RunKey, reason: String) -> BoxFuture<'_, Result<(), StoreError>> {
        let asked = run.clone();
        let see = move |sight: &mut Sight, answer: &Result<(), StoreError>, _: Stand| {
            if answer.is_ok() {
                sight.deleted(&asked);
            }
        };
        self.pass(vec![run.clone()], move |store| store.delete(run, reason), see)
    }

    fn retain(&self, retention: Retention) -> BoxFuture<'_, Result<Retained, StoreError>> {
        self.look(move |store| store.retain(retention))
    }
}
