//! Tasks: queued with the commit that records them, taken back with the one that cancels them.

use bytes::Bytes;
use outlast_core::commit::NewTask;
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::operation::Operation;

use super::run::{Run, Stop};
use crate::worker::{TaskPlan, TaskPolicy, task_id};

impl Run {
    pub(super) fn schedule_task(&mut self, schedule: Operation) -> Result<(), Stop> {
        let Operation::ScheduleTask { key, name, queue, priority, args, retry, timeout, heartbeat, begin, detached } =
            schedule
        else {
            return Ok(());
        };
        let id = task_id(&self.identity.run.id, self.identity.generation, &key);
        let fits = self.settings.limits.check_payload("what the task is given", args.len());
        let too_large =
            fits.err().map(|error| Failure::new(code::LIMIT_EXCEEDED, format!("{key}: {error}")).permanent());
        let refused = too_large.or_else(|| self.refusal(&key));
        let policy = TaskPolicy::new(retry, timeout, heartbeat);
        let plan = TaskPlan { policy, priority, available_at: begin.map(|due| due.deadline(self.moment.now)) };
        self.append(Event::TaskScheduled {
            key: key.clone(),
            task: id.clone(),
            name: name.clone(),
            queue: queue.clone(),
            detached: detached && refused.is_none(),
            plan: plan.recorded(),
            args: if refused.is_none() { args.clone() } else { Bytes::from_static(b"null") },
        })?;
        self.went_idle(&key);
        if let Some(error) = refused {
            if let Some(entry) = self.table.get_mut(&key) {
                entry.refused = true;
            }
            return self.append(Event::OperationRefused { key, error });
        }
        self.draft.tasks.push(NewTask {
            id,
            key: (!detached).then_some(key),
            name,
            queue,
            priority,
            args,
            available_at: plan.available_at,
            meta: Some(policy.encode()),
        });
        Ok(())
    }
}
