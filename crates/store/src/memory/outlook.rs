//! What there is to do.

use std::collections::BTreeMap;

use outlast_core::id::QueueName;
use outlast_core::time::Timestamp;

use super::State;
use crate::api::{Depths, Outlook, TaskState};
use crate::error::StoreError;
use crate::logic::Halt;
use crate::logic::admit::AdmitRows;
use crate::logic::claim::lapsed;
use crate::rows::{Rows, task_state_code};

impl State {
    pub(super) fn outlook(&mut self, queues: &[QueueName]) -> Result<Outlook, Halt<StoreError>> {
        let now = self.now();
        let ended = !self.done_slots(1)?.is_empty();
        Ok(Outlook {
            now,
            runs: !self.ready.is_empty() || self.has_orphans(now),
            timer: self.due.first().map(|(due, ..)| *due),
            held: if ended { Some(now) } else { self.next_look()? },
            waiting: self.is_waited()?,
            task: queues.iter().filter_map(|queue| self.next_task(queue, now)).min(),
        })
    }

    pub(super) fn depths(&self) -> Depths {
        let now = self.now();
        let ready = || self.ready_lines().flatten();
        let mut depths = Depths {
            now,
            ready: ready().count() as u64,
            oldest: ready().filter_map(|run| run.ready_at).min(),
            queues: Vec::new(),
        };
        let mut tasks: BTreeMap<(QueueName, i16), (TaskState, u64, Timestamp)> = BTreeMap::new();
        for task in self.tasks.values() {
            let over = task.until.is_some_and(|until| until <= now);
            let state = if over { TaskState::Ready } else { task.state };
            let since = task.until.filter(|_| over).unwrap_or(task.available_at);
            let found = tasks.entry((task.queue.clone(), task_state_code(state))).or_insert((state, 0, since));
            found.1 += 1;
            found.2 = found.2.min(since);
        }
        for ((queue, _), (state, count, since)) in tasks {
            depths.add(queue, state, count, Some(since));
        }
        depths
    }

    /// Whether a run is owned under a lease that is over.
    fn has_orphans(&self, now: Timestamp) -> bool {
        let over = self.leases.iter().filter(|(_, (_, until))| lapsed(*until, now));
        over.map(|(lease, _)| *lease).any(|lease| self.owned_by(lease).next().is_some())
    }

    /// When a task of a queue is to be handed out.
    fn next_task(&self, queue: &QueueName, now: Timestamp) -> Option<Timestamp> {
        let ready = self.ready_tasks.range((queue.clone(), i32::MIN, i64::MIN)..).next();
        if ready.is_some_and(|((of, ..), _)| of == queue) {
            return Some(now);
        }
        self.task_ends.get(queue)?.first().map(|(until, ..)| (*until).max(now))
    }
}
