//! Every call of a store, seen on its way.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use outlast_core::commit::{Commit, Delivery, NewRun, StandaloneTask, Status};
use outlast_core::id::{
    LeaseId, Namespace, NodeId, QueueName, Revision, RunId, RunKey, ScheduleId, TaskId, TxnId, Version, WorkerId,
    WorkflowName,
};
use outlast_core::record::Record;
use outlast_store::{
    Admitted, Awaited, BoxFuture, Claim, ClaimTasks, Claimed, ClaimedTask, CommitError, Committed, Created, Defined,
    Definition, DefinitionDetail, DefinitionFilter, DefinitionPage, Delivered, Depths, DueCursor, DueSchedules,
    Excerpt, Filter, Fire, Fired, Held, KeyedReply, Lease, Load, Loaded, Outlook, Page, Release, Resolution, Resume,
    Retained, Retention, RunView, Schedule, Sighting, Store, StoreError, Swept, Take, TaskDetail, TaskExtended,
    TaskFilter, TaskHeartbeat, TaskPage, Transact, Transacted, WorkerView,
};

use super::Watch;
use super::sight::{Sight, Stand};

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

    fn leases(&self) -> BoxFuture<'_, Result<Vec<Lease>, StoreError>> {
        self.pass(Vec::new(), |store| store.leases(), |_, _, _| {})
    }

    fn create(&self, runs: Vec<NewRun>) -> BoxFuture<'_, Vec<Result<Created, StoreError>>> {
        let asked = runs.clone();
        let see = move |sight: &mut Sight, answers: &Vec<Result<Created, StoreError>>, stand: Stand| {
            for (new, answer) in asked.iter().zip(answers) {
                if let Ok(created) = answer {
                    sight.created(new, created);
                    if let Some(now) = self.now() {
                        sight.knocked(new, created, now, stand);
                    }
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

    fn take(&self, runs: Vec<Take>) -> BoxFuture<'_, Vec<Result<bool, StoreError>>> {
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
        let now = self.now();
        let mut sight = self.sight();
        sight.calls += 1;
        for (new, answer) in runs.iter().zip(&answers) {
            let Ok(created) = answer else { continue };
            sight.created(new, created);
            if let Some(now) = now {
                // Nothing is judged by it; but with what a debounced run begins must be known.
                sight.knocked(new, created, now, Stand { alone: false });
            }
        }
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
        let asked = tasks.clone();
        let see = move |sight: &mut Sight, answers: &Vec<Result<(), StoreError>>, _: Stand| {
            let queued = asked.iter().zip(answers).filter(|(_, answer)| answer.is_ok());
            queued.for_each(|(StandaloneTask { namespace, task }, _)| {
                sight.note(namespace, task);
                sight.tasks.queued(namespace, task, None);
            });
            sight.clock.stays();
        };
        self.pass(Vec::new(), move |store| store.enqueue(tasks), see)
    }

    fn claim_tasks(&self, claim: ClaimTasks) -> BoxFuture<'_, Result<Vec<ClaimedTask>, StoreError>> {
        let asked = claim.clone();
        let see = move |sight: &mut Sight, answer: &Result<Vec<ClaimedTask>, StoreError>, stand: Stand| {
            let Ok(claimed) = answer else { return };
            let new = sight.newly_claimed(&asked, claimed);
            claimed.iter().for_each(|claimed| sight.handed_out(&asked, claimed, stand));
            sight.judge_priorities(&asked, &new, stand);
        };
        self.pass(Vec::new(), move |store| store.claim_tasks(claim), see)
    }

    fn heartbeat(&self, heartbeat: TaskHeartbeat) -> BoxFuture<'_, Result<TaskExtended, StoreError>> {
        let (namespace, id, token) = (heartbeat.namespace.clone(), heartbeat.task.clone(), heartbeat.token);
        let see = move |sight: &mut Sight, answer: &Result<TaskExtended, StoreError>, stand: Stand| {
            if let Ok(extended) = answer {
                sight.kept_alive((&namespace, &id, token), extended, stand);
            }
        };
        self.pass(Vec::new(), move |store| store.heartbeat(heartbeat), see)
    }

    fn task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<TaskDetail, StoreError>> {
        self.look(move |store| store.task(namespace, id))
    }

    fn tasks(&self, filter: TaskFilter) -> BoxFuture<'_, Result<TaskPage, StoreError>> {
        self.look(move |store| store.tasks(filter))
    }

    fn retry_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        let asked = (namespace.clone(), id.clone());
        let see = move |sight: &mut Sight, answer: &Result<(), StoreError>, stand: Stand| {
            sight.revived(&asked, answer, stand);
        };
        self.pass(Vec::new(), move |store| store.retry_task(namespace, id), see)
    }

    fn discard_task(&self, namespace: Namespace, id: TaskId) -> BoxFuture<'_, Result<(), StoreError>> {
        let asked = (namespace.clone(), id.clone());
        let see = move |sight: &mut Sight, answer: &Result<(), StoreError>, stand: Stand| {
            sight.discarded(&asked, answer, stand);
        };
        self.pass(Vec::new(), move |store| store.discard_task(namespace, id), see)
    }

    fn see_worker(&self, sighting: Sighting) -> BoxFuture<'_, Result<(), StoreError>> {
        self.look(move |store| store.see_worker(sighting))
    }

    fn forget_worker(&self, namespace: Option<Namespace>, worker: WorkerId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.look(move |store| store.forget_worker(namespace, worker))
    }

    fn workers(&self, namespace: Namespace) -> BoxFuture<'_, Result<Vec<WorkerView>, StoreError>> {
        self.look(move |store| store.workers(namespace))
    }

    fn reply(&self, reply: KeyedReply) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
        self.look(move |store| store.reply(reply))
    }

    fn define(&self, definitions: Vec<Definition>) -> BoxFuture<'_, Vec<Result<Defined, StoreError>>> {
        self.look(move |store| store.define(definitions))
    }

    fn definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Option<Version>,
    ) -> BoxFuture<'_, Result<Option<DefinitionDetail>, StoreError>> {
        self.look(move |store| store.definition(namespace, workflow, version))
    }

    fn definitions(&self, filter: DefinitionFilter) -> BoxFuture<'_, Result<DefinitionPage, StoreError>> {
        self.look(move |store| store.definitions(filter))
    }

    fn forget_definition(
        &self,
        namespace: Namespace,
        workflow: WorkflowName,
        version: Version,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.look(move |store| store.forget_definition(namespace, workflow, version))
    }

    fn wake(&self, run: RunKey) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.look(move |store| store.wake(run))
    }

    fn resumes(
        &self,
        namespace: Namespace,
        after: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Resume>, StoreError>> {
        self.look(move |store| store.resumes(namespace, after, limit))
    }

    fn outlook(&self, queues: Vec<QueueName>) -> BoxFuture<'_, Result<Outlook, StoreError>> {
        self.look(move |store| store.outlook(queues))
    }

    fn depths(&self) -> BoxFuture<'_, Result<Depths, StoreError>> {
        self.look(move |store| store.depths())
    }

    fn sweep(&self, limit: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        let see = |sight: &mut Sight, answer: &Result<Swept, StoreError>, _: Stand| {
            if let Ok(swept) = answer {
                sight.told(swept.now);
            }
        };
        self.pass(Vec::new(), move |store| store.sweep(limit), see)
    }

    fn admit(&self, limit: usize) -> BoxFuture<'_, Result<Admitted, StoreError>> {
        Box::pin(self.see_admit(limit))
    }

    fn put_schedule(&self, schedule: Schedule) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        let asked = schedule.clone();
        let see = move |sight: &mut Sight, answer: &Result<Option<Revision>, StoreError>, _: Stand| {
            if let (Ok(Some(_)), Some(now)) = (answer, self.now()) {
                sight.schedule_put(&asked, now);
            }
        };
        self.pass(Vec::new(), move |store| store.put_schedule(schedule), see)
    }

    fn remove_schedule(&self, namespace: Namespace, id: ScheduleId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let asked = (namespace.clone(), id.clone());
        let see = move |sight: &mut Sight, answer: &Result<bool, StoreError>, _: Stand| {
            if answer.is_ok() {
                sight.schedule_removed(&asked);
            }
        };
        self.pass(Vec::new(), move |store| store.remove_schedule(namespace, id), see)
    }

    fn schedules(
        &self,
        namespace: Namespace,
        only: Option<ScheduleId>,
    ) -> BoxFuture<'_, Result<Vec<Schedule>, StoreError>> {
        self.look(move |store| store.schedules(namespace, only))
    }

    fn due_schedules(&self, after: Option<DueCursor>, limit: usize) -> BoxFuture<'_, Result<DueSchedules, StoreError>> {
        self.look(move |store| store.due_schedules(after, limit))
    }

    fn fire(&self, fire: Fire) -> BoxFuture<'_, Result<Fired, StoreError>> {
        let asked = fire.clone();
        let see = move |sight: &mut Sight, answer: &Result<Fired, StoreError>, stand: Stand| {
            if let Some(now) = self.now() {
                sight.fired(&asked, answer, now, stand);
            }
            if let (Some(new), Ok(Fired::Fired { run: Some(created), .. })) = (&asked.run, answer) {
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

    fn held(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Held>, StoreError>> {
        self.look(move |store| store.held(run))
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
        Box::pin(self.see_retain(retention))
    }
}
