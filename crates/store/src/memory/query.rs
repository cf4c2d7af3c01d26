//! Questions: who is ready, what is in a journal, what waits for what.

use outlast_core::commit::Status;
use outlast_core::id::{Generation, InboxId, Index, LeaseId, Namespace, RunKey};
use outlast_core::record::Record;

use super::State;
use crate::api::{
    Awaited, Claim, ClaimTasks, Cursor, EXCERPT_BYTES_MAX, Excerpt, Filter, LIST_PAGE_MAX, Load, LoadFrom, Loaded,
    Page, Schedule, TaskState,
};
use crate::error::StoreError;
use crate::logic::{self, Halt, claim::lapsed, live_row, task::silent};
use crate::rows::{Rows, RunRow, TaskRow, WaitRow, WaitState};

impl State {
    pub(super) fn waits_of(&self, row: i64) -> impl Iterator<Item = &WaitRow> {
        self.waits.iter().filter(move |((owner, _), _)| *owner == row).map(|(_, wait)| wait)
    }

    /// What this claim holds already, then ready runs, then runs whose owner's lease lapsed.
    pub(super) fn candidates(&self, claim: &Claim, limit: usize) -> Vec<RunRow> {
        let now = self.now();
        let serves = |run: &&RunRow| logic::claim::serves(&claim.serves, run);
        let owned_by = |lease: LeaseId| {
            self.owned.range((lease, i64::MIN)..=(lease, i64::MAX)).filter_map(|(_, row)| self.by_row(*row))
        };
        let held = owned_by(claim.lease).filter(|run| run.claim == Some(claim.id));
        let ready = self.ready.iter().filter_map(|(_, _, row)| self.by_row(*row)).filter(serves);
        let lapsed_leases = self.leases.iter().filter(|(_, (_, until))| lapsed(*until, now)).map(|(id, _)| *id);
        let orphaned = lapsed_leases.flat_map(owned_by).filter(serves);
        held.chain(ready).chain(orphaned).take(limit).cloned().collect()
    }

    /// What this claim holds already, then available tasks by priority and age, then those of silent workers.
    pub(super) fn task_candidates(&self, claim: &ClaimTasks, limit: usize) -> Vec<TaskRow> {
        let now = self.now();
        let fits = |task: &&TaskRow| {
            claim.queues.contains(&task.queue) && (claim.names.is_empty() || claim.names.contains(&task.name))
        };
        let held = |task: &&TaskRow| {
            task.state == TaskState::Claimed
                && task.worker.as_ref() == Some(&claim.worker)
                && task.claim == Some(claim.id)
                && !silent(task, now)
        };
        // Those whose worker fell silent take their old place.
        let free = |task: &&TaskRow| silent(task, now) || task.state == TaskState::Ready && task.available_at <= now;
        let order =
            |task: &TaskRow| (-i32::from(task.priority), task.available_at, task.id.clone(), task.namespace.clone());
        let sorted = |pick: &dyn Fn(&&TaskRow) -> bool| {
            let mut tasks: Vec<TaskRow> = self.tasks.values().filter(fits).filter(|task| pick(task)).cloned().collect();
            tasks.sort_by_key(order);
            tasks
        };
        [sorted(&held), sorted(&free)].into_iter().flatten().take(limit).collect()
    }

    pub(super) fn wakes(&self, lease: LeaseId, limit: usize) -> Vec<RunKey> {
        let owned = self.owned.range((lease, i64::MIN)..=(lease, i64::MAX));
        let woken = owned.filter_map(|(_, row)| self.by_row(*row)).filter(|run| run.ready_at.is_some());
        woken.take(limit).map(|run| run.key.clone()).collect()
    }

    pub(super) fn load(&mut self, load: &Load) -> Result<Loaded, Halt<StoreError>> {
        let run = live_row(self, &load.run)?;
        let (snapshot, first) = match &load.from {
            LoadFrom::Index(index) => (None, *index),
            LoadFrom::Snapshot { definition } => match self.snapshots.get(&run.row) {
                Some((generation, snapshot)) if *generation == run.generation && snapshot.definition == *definition => {
                    (Some(snapshot.clone()), snapshot.index)
                }
                Some(_) | None => (None, Index(0)),
            },
        };
        let events = self.events_from(&run, run.generation, first).cloned().collect::<Vec<_>>();
        logic::check_contiguous(&run, first, events.len()).map_err(Halt::Refused)?;
        let input = self.input(&run, run.generation)?;
        let inbox = self.inbox.range((run.row, InboxId(0))..=(run.row, InboxId(u64::MAX)));
        Ok(Loaded {
            generation: run.generation,
            input,
            snapshot,
            first,
            events,
            inbox: inbox.map(|(_, item)| item.clone()).collect(),
            run: run.key,
        })
    }

    fn events_from(&self, run: &RunRow, generation: Generation, first: Index) -> impl Iterator<Item = &Record> {
        let range = (run.row, generation, first)..=(run.row, generation, Index(u64::MAX));
        self.events.range(range).map(|(_, record)| record)
    }

    pub(super) fn excerpt(&mut self, excerpt: &Excerpt) -> Result<Vec<Record>, Halt<StoreError>> {
        let run = live_row(self, &excerpt.run)?;
        let generation = excerpt.generation.unwrap_or(run.generation);
        let mut page = Vec::new();
        let mut bytes = 0;
        for record in self.events_from(&run, generation, excerpt.from).take(excerpt.events_max()) {
            bytes += record.payload_bytes();
            page.push(record.clone());
            if bytes >= EXCERPT_BYTES_MAX {
                break;
            }
        }
        Ok(page)
    }

    pub(super) fn attributes(&mut self, run: &RunKey) -> Result<Vec<(String, String)>, Halt<StoreError>> {
        let run = live_row(self, run)?;
        let mine = self.attributes.iter().filter(|((row, _), _)| *row == run.row);
        Ok(mine.map(|((_, name), value)| (name.to_string(), value.clone())).collect())
    }

    pub(super) fn list(&self, filter: &Filter) -> Page {
        let limit = filter.limit.clamp(1, LIST_PAGE_MAX);
        let before = filter.after.map_or(i64::MAX, |cursor| i64::try_from(cursor.0).unwrap_or(i64::MAX));
        let rows = self.names.range(..before).rev().filter_map(|(row, _)| self.by_row(*row));
        let mut found: Vec<&RunRow> = rows.filter(|run| self.fits(run, filter)).take(limit + 1).collect();
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|run| Cursor(u64::try_from(run.row).unwrap_or(0)));
        Page { runs: found.into_iter().map(RunRow::view).collect(), next }
    }

    fn fits(&self, run: &RunRow, filter: &Filter) -> bool {
        let attribute = |(name, value): &(outlast_core::id::AttributeName, String)| {
            self.attributes.get(&(run.row, name.clone())) == Some(value)
        };
        run.deleted_at.is_none()
            && run.key.namespace == filter.namespace
            && (filter.status.is_empty() || filter.status.contains(&run.status))
            && filter.workflow.as_ref().is_none_or(|workflow| *workflow == run.workflow)
            && filter.version.as_ref().is_none_or(|version| *version == run.version)
            && filter.id_prefix.as_ref().is_none_or(|prefix| run.key.id.as_str().starts_with(prefix))
            && filter.created_from.is_none_or(|from| run.created_at >= from)
            && filter.created_until.is_none_or(|until| run.created_at < until)
            && filter.parent.as_ref().is_none_or(|parent| run.parent.as_ref().is_some_and(|mine| mine.run == *parent))
            && filter.attribute.as_ref().is_none_or(attribute)
    }

    pub(super) fn count(&self, namespace: &Namespace) -> Vec<(Status, u64)> {
        let runs = || self.runs.values().filter(|run| run.key.namespace == *namespace && run.deleted_at.is_none());
        let count = |status| (status, runs().filter(|run| run.status == status).count() as u64);
        Status::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect()
    }

    /// Timers, then waits, then tasks, then children, each by key.
    pub(super) fn awaiting(&mut self, run: &RunKey) -> Result<Vec<Awaited>, Halt<StoreError>> {
        let run = live_row(self, run)?;
        let timers = self.timers.iter().filter(|((row, _), _)| *row == run.row);
        let timers = timers.map(|(_, timer)| logic::awaited_timer(timer.clone()));
        let open = |wait: &&WaitRow| matches!(wait.state, WaitState::Open | WaitState::Answered);
        let waits = self.waits_of(run.row).filter(open).map(logic::awaited_wait);
        let mut tasks: Vec<Awaited> = self.tasks.values().filter_map(|task| logic::awaited_task(task, &run)).collect();
        let mut children: Vec<Awaited> =
            self.runs.values().filter_map(|child| logic::awaited_child(child, &run)).collect();
        logic::sort_awaited(&mut tasks);
        logic::sort_awaited(&mut children);
        Ok(timers.chain(waits).chain(tasks).chain(children).collect())
    }

    pub(super) fn due_schedules(&self, limit: usize) -> Vec<Schedule> {
        let now = self.now();
        let mut due: Vec<Schedule> =
            self.schedules.values().filter(|s| s.next_at.is_some_and(|at| at <= now)).cloned().collect();
        due.sort_by_key(|schedule| schedule.next_at);
        due.truncate(limit);
        due
    }
}
