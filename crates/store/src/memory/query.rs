//! Questions: who is ready, what is in a journal, what waits for what.

use std::convert::Infallible;

use outlast_core::commit::Status;
use outlast_core::id::{Generation, InboxId, Index, LeaseId, Namespace, RunKey};
use outlast_core::record::Record;
use outlast_core::time::Timestamp;

use super::State;
use crate::api::{
    Awaited, Claim, Cursor, DueCursor, DueSchedules, EXCERPT_BYTES_MAX, Excerpt, Filter, LIST_PAGE_MAX, Load, LoadFrom,
    Loaded, Page, Schedule, Serves,
};
use crate::error::StoreError;
use crate::logic::turns::{self, Ready, Round};
use crate::logic::{self, Halt, claim::lapsed, live_row};
use crate::rows::{Rows, RunRow, WaitRow, WaitState};

/// Ready runs that a claimer can drive.
struct ReadyRuns<'s> {
    state: &'s State,
    serves: &'s Serves,
}

impl Ready for ReadyRuns<'_> {
    type Item = RunRow;
    type Fault = Infallible;

    fn priority(&mut self, below: Option<i16>) -> Result<Option<i16>, Infallible> {
        let above = below.map_or(i32::MIN, |below| 1 - i32::from(below));
        let first = self.state.ready.range((above, i64::MIN, START, i64::MIN)..).next();
        Ok(first.map(|(priority, ..)| unnegated(*priority)))
    }

    fn namespaces(&mut self, priority: i16) -> Result<Vec<i64>, Infallible> {
        let mut found = Vec::new();
        let (level, mut from) = (-i32::from(priority), i64::MIN);
        let end = (level + 1, i64::MIN, START, i64::MIN);
        while let Some((_, number, ..)) = self.state.ready.range((level, from, START, i64::MIN)..end).next() {
            found.push(*number);
            from = number + 1;
        }
        Ok(found)
    }

    fn first(&mut self, priority: i16, namespace: i64, count: usize) -> Result<Vec<RunRow>, Infallible> {
        let runs = self.state.ready_line(-i32::from(priority), namespace);
        Ok(runs.filter(|run| logic::claim::serves(self.serves, run)).take(count).cloned().collect())
    }
}

/// Before every instant.
pub(super) const START: Timestamp = Timestamp::from_millis(i64::MIN);

/// A priority, from its key in an index.
pub(super) fn unnegated(key: i32) -> i16 {
    i16::try_from(-key).unwrap_or(i16::MAX)
}

impl State {
    pub(super) fn waits_of(&self, row: i64) -> impl Iterator<Item = &WaitRow> {
        self.waits.iter().filter(move |((owner, _), _)| *owner == row).map(|(_, wait)| wait)
    }

    /// What this claim holds already, then some runs whose owner's lease lapsed, then ready ones, then the other lapsed ones.
    pub(super) fn candidates(&mut self, claim: &Claim, limit: usize) -> Vec<RunRow> {
        let held = self.owned_by(claim.lease).filter(|run| run.claim == Some(claim.id)).take(limit);
        let mut found: Vec<RunRow> = held.cloned().collect();
        let room = limit - found.len();
        let mut orphans = self.orphans(claim, room).into_iter();
        found.extend(orphans.by_ref().take(logic::claim::for_orphans(room)));
        let mut turns = std::mem::take(&mut self.turns);
        let mut ready = ReadyRuns { state: self, serves: &claim.serves };
        let Ok(taken) = turns::take(&mut ready, &mut turns, Round::Runs, limit - found.len());
        self.turns = turns;
        found.extend(taken);
        found.extend(orphans.take(limit - found.len()));
        found
    }

    fn orphans(&self, claim: &Claim, most: usize) -> Vec<RunRow> {
        let now = self.now();
        let lapsed_leases = self.leases.iter().filter(|(_, (_, until))| lapsed(*until, now)).map(|(id, _)| *id);
        let orphaned = lapsed_leases.flat_map(|lease| self.owned_by(lease));
        orphaned.filter(|run| logic::claim::serves(&claim.serves, run)).take(most).cloned().collect()
    }

    /// Ready runs by priority and namespace, each by age.
    pub(super) fn ready_lines(&self) -> impl Iterator<Item = impl Iterator<Item = &RunRow>> {
        let mut from = (i32::MIN, i64::MIN);
        std::iter::from_fn(move || {
            let (level, number, ..) = *self.ready.range((from.0, from.1, START, i64::MIN)..).next()?;
            from = (level, number + 1);
            Some(self.ready_line(level, number))
        })
    }

    fn ready_line(&self, level: i32, number: i64) -> impl Iterator<Item = &RunRow> {
        let line = (level, number, START, i64::MIN)..(level, number + 1, START, i64::MIN);
        self.ready.range(line).filter_map(|(.., row)| self.by_row(*row))
    }

    pub(super) fn owned_by(&self, lease: LeaseId) -> impl Iterator<Item = &RunRow> {
        self.owned.range((lease, i64::MIN)..=(lease, i64::MAX)).filter_map(|(_, row)| self.by_row(*row))
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
            inbox_next: run.inbox_next,
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

    pub(super) fn due_schedules(&self, after: Option<&DueCursor>, limit: usize) -> DueSchedules {
        let now = self.now();
        let is_due = |schedule: &&Schedule| schedule.next_at.is_some_and(|at| at <= now);
        let mut schedules: Vec<Schedule> = self.schedules.values().filter(is_due).cloned().collect();
        schedules.retain(|schedule| after.is_none_or(|after| schedule.cursor().as_ref() > Some(after)));
        schedules.sort_by_key(Schedule::cursor);
        schedules.truncate(limit);
        let next_due = self.schedules.values().filter_map(|schedule| schedule.next_at).filter(|at| *at > now).min();
        DueSchedules { schedules, next_due, now }
    }
}
