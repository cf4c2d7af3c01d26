//! What a program asks for: matched with what is recorded, or done.

use bytes::Bytes;
use outlast_core::commit::{CloseCause, ClosedWait, NewRun, NewWait, Parent, TimerKind, WaitKind};
use outlast_core::event::Event;
use outlast_core::failure::{Failure, code};
use outlast_core::id::{Generation, Key, RunId, RunKey, SignalName, Version, WorkflowName};
use outlast_core::journal::RecordedOperation;
use outlast_core::lifecycle::{State, Transition};
use outlast_core::operation::{Due, Operation, OperationKind, Requested};
use outlast_core::planted;
use outlast_core::retry::Retry;

use super::mismatch;
use super::run::{Run, Stop};
use super::table::{Body, Code, Detail, Entry};

impl Run {
    /// Takes note of a request, and matches it with what is recorded; whether nothing more is to be done about it.
    pub(super) fn admit(&mut self, requested: &mut Requested) -> Result<bool, Stop> {
        self.note_location(requested);
        if let Some(kind) = requested.operation.starts()
            && let Some(key) = requested.operation.key().cloned()
        {
            return self.admit_start(key, kind, requested);
        }
        match &requested.operation {
            Operation::Await { key } => {
                self.awaited(key);
                Ok(true)
            }
            Operation::Cancel { key } => Ok(self.admit_cancel(key)),
            Operation::FinishScope { key, .. } | Operation::FailScope { key, .. } => {
                // A scope whose inside is replayed comes to its end once more.
                let latest = self.journal.operation(key).and_then(|recorded| self.journal.get(recorded.latest));
                Ok(self.ops.is_closed(key) || matches!(latest, Some(Event::ScopeFinished { .. })))
            }
            Operation::Heartbeat { key } => {
                self.table.heard(key, self.moment.now);
                Ok(true)
            }
            Operation::Emit { .. } | Operation::SetState { .. } => Ok(self.repeats()),
            _ => Ok(false),
        }
    }

    /// Remembers where an operation was asked for, if whoever replays wants to know.
    fn note_location(&mut self, requested: &Requested) {
        if let Some(locations) = &mut self.locations
            && let (Some(key), Some(location)) = (requested.operation.key(), &requested.location)
        {
            locations.entry(key.clone()).or_insert_with(|| location.clone());
        }
    }

    fn admit_start(&mut self, key: Key, kind: OperationKind, requested: &mut Requested) -> Result<bool, Stop> {
        let recorded = self.journal.operation(&key);
        if let Some(recorded) = &recorded {
            // A failed check looks like a failed step until a check succeeds.
            let failed_check = recorded.kind == OperationKind::Step && kind == OperationKind::Condition;
            if recorded.kind != kind && !failed_check {
                let requested = mismatch::Requested::Other { kind, detail: None, location: requested.location.clone() };
                return Err(Stop::Mismatch(self.mismatch_at(recorded.since, requested)));
            }
            self.compare(requested, recorded.since)?;
        }
        let code = matches!(kind, OperationKind::Step | OperationKind::Condition);
        let is_done = recorded.is_some() || code;
        let entry = Entry {
            kind,
            state: State::Executing,
            location: if is_done { requested.location.take() } else { requested.location.clone() },
            deadline: None,
            awaited: false,
            refused: recorded.is_none() && self.is_too_many(),
            detail: self.detail(&requested.operation, recorded.as_ref()),
        };
        self.table.insert(key.clone(), entry);
        if recorded.is_some() && !code {
            self.went_idle(&key);
            if planted!("deadline-recomputed")
                && self.journal.is_open(&key)
                && let Operation::StartTimer { due, .. } = &requested.operation
            {
                self.start_timer(&key, TimerKind::Delay, due.deadline(self.moment.now));
            }
        }
        Ok(is_done)
    }

    /// A start that is recorded must have asked for the same.
    fn compare(&self, requested: &Requested, since: outlast_core::id::Index) -> Result<(), Stop> {
        let (recorded, asked) = match (self.journal.get(since), &requested.operation) {
            (Some(Event::TimerStarted { duration_ms, .. }), Operation::StartTimer { due, .. }) => {
                (duration_ms.map(|ms| format!("{ms} ms")), duration_ms_of(*due).map(|ms| format!("{ms} ms")))
            }
            (Some(Event::SignalAwaited { name: was, .. }), Operation::AwaitSignal { name, .. }) => {
                (Some(format!("signal {was}")), Some(format!("signal {name}")))
            }
            (Some(Event::TaskScheduled { name: was, .. }), Operation::ScheduleTask { name, .. }) => {
                (Some(format!("task {was}")), Some(format!("task {name}")))
            }
            (Some(Event::ChildStarted { workflow: was, .. }), Operation::StartChild { workflow, .. }) => {
                (Some(format!("workflow {was}")), Some(format!("workflow {workflow}")))
            }
            (Some(Event::ScopeStarted { total: was, .. }), Operation::StartScope { total, .. }) => {
                (was.map(|n| format!("{n} branches")), total.map(|n| format!("{n} branches")))
            }
            _ => return Ok(()),
        };
        if recorded == asked {
            return Ok(());
        }
        let kind = requested.operation.starts().unwrap_or(OperationKind::Step);
        let detail = asked.or_else(|| Some("none".to_owned()));
        let requested = mismatch::Requested::Other { kind, detail, location: requested.location.clone() };
        let mut mismatch = self.mismatch_at(since, requested);
        mismatch.recorded.detail = recorded.or_else(|| Some("none".to_owned()));
        Err(Stop::Mismatch(mismatch))
    }

    pub(super) fn went_idle(&mut self, key: &Key) {
        self.table.shift(key, Transition::WentIdle);
        let Some(entry) = self.table.get(key) else { return };
        let awaited = entry.awaited;
        if let Detail::Signal { name } = &entry.detail {
            let name = name.clone();
            self.table.wait_opened(key, &name);
        }
        if awaited {
            self.table.shift(key, Transition::Awaited);
        }
    }

    fn awaited(&mut self, key: &Key) {
        let idle = self.table.get(key).is_some_and(|entry| entry.state == State::IdleNotAwaited);
        if idle {
            self.table.shift(key, Transition::Awaited);
        } else {
            self.table.note_awaited(key);
        }
    }

    /// A cancellation that is recorded, or about something that has no rows, needs nothing more.
    fn admit_cancel(&mut self, key: &Key) -> bool {
        let recorded = self.journal.operation(key);
        let cancelled = recorded.as_ref().and_then(|recorded| self.journal.get(recorded.latest));
        if matches!(cancelled, Some(Event::OperationCancelled { .. })) && self.replaying() {
            // The record of its start is still to be passed: it was asked for, although nobody wants it any more.
            if recorded.is_some_and(|recorded| self.is_ahead(recorded.since)) {
                self.withdrawn.insert(key.clone());
            }
            self.drop_below(key);
            if self.table.is_live(key) {
                self.table.shift(key, Transition::Cancelled);
            }
            return true;
        }
        self.table.is_unwanted(key);
        false
    }

    fn drop_below(&mut self, key: &Key) {
        for below in self.table.below(key) {
            self.table.shift(&below, Transition::ScopeClosed);
        }
    }

    /// Does what was asked for. Every fact has been fed.
    pub(super) fn perform(&mut self, requested: Requested) -> Result<(), Stop> {
        match requested.operation {
            Operation::FinishStep { key, result, met } => self.finish_step(&key, result, met),
            Operation::FailStep { key, error } => self.attempt_failed(&key, error),
            Operation::StartTimer { key, due } => self.start_sleep(key, due),
            Operation::AwaitSignal { key, name, deadline, schema } => self.await_signal(key, name, deadline, schema),
            Operation::RequestApproval { key, title, assignee, deadline } => {
                self.request_approval(key, title, assignee, deadline)
            }
            Operation::CreateCallback { key, deadline, heartbeat } => self.create_callback(key, deadline, heartbeat),
            start @ Operation::StartChild { .. } => self.start_child(start),
            Operation::StartScope { key, total } => {
                self.append(Event::ScopeStarted { key: key.clone(), total })?;
                self.went_idle(&key);
                Ok(())
            }
            Operation::FinishScope { key, result, reason } => self.finish_scope(key, result, reason),
            Operation::FailScope { key, error } => {
                self.cancel_rows_below(&key);
                self.append(Event::ScopeFailed { key, error })
            }
            Operation::RecordNow { key, value } => self.append(Event::NowRecorded { key, value }),
            Operation::RecordUuid { key, value } => self.append(Event::UuidRecorded { key, value }),
            Operation::RecordRandom { key, value } => self.append(Event::RandomRecorded { key, value }),
            Operation::Cancel { key } => self.cancel_operation(&key),
            Operation::Mark { event } => self.append(*event),
            Operation::Emit { name, payload } => {
                self.emit(Event::Custom { name, payload });
                Ok(())
            }
            Operation::SetState { delta } => {
                self.emit(Event::StateDelta { delta });
                Ok(())
            }
            Operation::ContinueAsNew { input, version } => {
                self.next_generation = Some((input, version));
                Ok(())
            }
            // Taken note of when they were admitted.
            Operation::StartStep { .. }
            | Operation::StartTransaction { .. }
            | Operation::CheckCondition { .. }
            | Operation::Await { .. }
            | Operation::Heartbeat { .. } => Ok(()),
            schedule @ Operation::ScheduleTask { .. } => self.schedule_task(schedule),
        }
    }

    /// Tells observers, once everything before it is durable.
    fn emit(&mut self, event: Event) {
        self.draft.emitted.push((self.journal.next(), event));
    }

    fn finish_step(&mut self, key: &Key, result: Bytes, met: Option<bool>) -> Result<(), Stop> {
        if let Err(error) = self.settings.limits.check_payload("the result of a step", result.len()) {
            let error = Failure::new(code::LIMIT_EXCEEDED, format!("{key}: {error}")).permanent();
            return self.attempt_failed(key, error);
        }
        match met {
            None => self.attempt_finished(key, result),
            Some(met) => self.checked(key, met, result),
        }
    }

    fn start_sleep(&mut self, key: Key, due: Due) -> Result<(), Stop> {
        let deadline = due.deadline(self.moment.now);
        let duration_ms = duration_ms_of(due);
        self.append(Event::TimerStarted { key: key.clone(), deadline, duration_ms })?;
        self.went_idle(&key);
        if self.refuse(&key)? {
            return Ok(());
        }
        // Nothing to wait for: a sleep of no time, or until an instant the store's clock has certainly passed. A clock that
        // went back may have passed it before, and then it is slept.
        let has_passed = deadline <= self.moment.passed.min(self.moment.now);
        let overlooked = planted!("sleep-skipped-by-old-clock") && deadline <= self.moment.passed;
        if overlooked || duration_ms.map_or(has_passed, |duration| duration == 0) {
            return self.append(Event::TimerFired { key });
        }
        self.start_timer(&key, TimerKind::Delay, deadline);
        Ok(())
    }

    fn await_signal(
        &mut self,
        key: Key,
        name: SignalName,
        deadline: Option<Due>,
        schema: Option<Bytes>,
    ) -> Result<(), Stop> {
        let deadline = deadline.map(|due| due.deadline(self.moment.now));
        self.append(Event::SignalAwaited { key: key.clone(), name: name.clone(), deadline })?;
        self.went_idle(&key);
        if self.refuse(&key)? {
            return Ok(());
        }
        let wait = new_wait(&key, WaitKind::Signal);
        self.draft.waits.push(NewWait { name: Some(name), meta: schema, ..wait });
        self.time_out_at(&key, deadline);
        Ok(())
    }

    fn request_approval(
        &mut self,
        key: Key,
        title: String,
        assignee: Option<String>,
        deadline: Option<Due>,
    ) -> Result<(), Stop> {
        let deadline = deadline.map(|due| due.deadline(self.moment.now));
        let meta = approval_meta(&title);
        self.append(Event::ApprovalRequested {
            key: key.clone(),
            approval: key.to_string(),
            title,
            assignee: assignee.clone(),
            deadline,
        })?;
        self.went_idle(&key);
        if self.refuse(&key)? {
            return Ok(());
        }
        self.draft.waits.push(NewWait { assignee, meta, ..new_wait(&key, WaitKind::Approval) });
        self.time_out_at(&key, deadline);
        Ok(())
    }

    fn create_callback(
        &mut self,
        key: Key,
        deadline: Option<Due>,
        heartbeat: Option<std::time::Duration>,
    ) -> Result<(), Stop> {
        let deadline = deadline.map(|due| due.deadline(self.moment.now));
        self.append(Event::CallbackCreated {
            key: key.clone(),
            callback: key.to_string(),
            deadline,
            heartbeat_ms: heartbeat.map(|silence| outlast_core::time::millis(silence).unsigned_abs()),
        })?;
        self.went_idle(&key);
        if self.refuse(&key)? {
            return Ok(());
        }
        let token = (self.settings.token)(&self.identity.run, self.identity.generation, &key);
        self.draft.waits.push(NewWait { token: Some(token), heartbeat, ..new_wait(&key, WaitKind::Callback) });
        self.time_out_at(&key, deadline);
        if let Some(silence) = heartbeat {
            self.start_timer(&key, TimerKind::Heartbeat, self.moment.now + silence);
        }
        Ok(())
    }

    fn time_out_at(&mut self, key: &Key, deadline: Option<outlast_core::time::Timestamp>) {
        if let Some(deadline) = deadline {
            self.start_timer(key, TimerKind::Timeout, deadline);
        }
    }

    fn start_child(&mut self, start: Operation) -> Result<(), Stop> {
        let child = self.child_id(&start);
        let Operation::StartChild { key, workflow, version, input, detached, on_close, .. } = start else {
            return Ok(());
        };
        let newest = version.or_else(|| (self.settings.newest)(&self.identity.run.namespace, &workflow));
        let refused = self.child_refused(&child, newest.as_ref(), &workflow, &input).or_else(|| self.refusal(&key));
        let version = newest.unwrap_or_else(|| Version::new("unknown").expect("a short text is a version"));
        self.append(Event::ChildStarted {
            key: key.clone(),
            child: child.clone(),
            workflow: workflow.clone(),
            version: version.clone(),
            detached: detached && refused.is_none(),
            on_close,
        })?;
        self.went_idle(&key);
        if let Some(error) = refused {
            if let Some(entry) = self.table.get_mut(&key) {
                entry.refused = true;
            }
            return self.append(Event::ChildFailed { key, child, error });
        }
        let run = RunKey::new(self.identity.run.namespace.clone(), child);
        let parent = Parent { run: self.identity.run.id.clone(), generation: self.identity.generation, key, detached };
        self.draft.children.push(NewRun { parent: Some(parent), ..NewRun::new(run, workflow, version, input) });
        Ok(())
    }

    /// Why a child cannot be started; the operation fails with it.
    fn child_refused(
        &self,
        child: &RunId,
        version: Option<&Version>,
        workflow: &WorkflowName,
        input: &Bytes,
    ) -> Option<Failure> {
        if version.is_none() {
            let message = format!("no workflow {workflow:?} is registered here; register it, or name its version");
            return Some(Failure::new("unknown_workflow", message).permanent());
        }
        if self.hints.strangers.contains(child) || *child == self.identity.run.id {
            let message = format!("the id {child:?} belongs to another run; choose another id for the child");
            return Some(Failure::new("child_exists", message).permanent());
        }
        let checked = self.settings.limits.check_payload("the input of a child", input.len());
        checked.err().map(|error| Failure::new(code::LIMIT_EXCEEDED, error.to_string()).permanent())
    }

    /// The id of the child a request starts; for any other request this run's own.
    fn child_id(&self, operation: &Operation) -> RunId {
        let own = &self.identity.run.id;
        let Operation::StartChild { key, child, .. } = operation else { return own.clone() };
        if let Some(child) = child {
            return child.clone();
        }
        derived_child_id(own, self.identity.generation, key)
    }

    fn finish_scope(&mut self, key: Key, result: Bytes, reason: Option<String>) -> Result<(), Stop> {
        if !planted!("scope-end-cancels-nothing") {
            self.cancel_rows_below(&key);
        }
        let fits = self.settings.limits.check_payload("the result of a scope", result.len()).is_ok();
        // Too large to keep: replay makes it again from what is inside.
        self.append(Event::ScopeFinished { key, result: fits.then_some(result), replay_inside: !fits, reason })
    }

    /// Closing a scope cancels everything open below it, in the same commit.
    fn cancel_rows_below(&mut self, scope: &Key) {
        for key in self.table.below(scope) {
            self.cancel_rows(&key);
        }
    }

    /// The program no longer wants an operation.
    fn cancel_operation(&mut self, key: &Key) -> Result<(), Stop> {
        if !self.table.is_live(key) {
            return Ok(());
        }
        self.cancel_rows_below(key);
        self.cancel_rows(key);
        self.drop_below(key);
        self.table.shift(key, Transition::Cancelled);
        if self.journal.is_open(key) && !planted!("operation-cancel-not-recorded") {
            self.append(Event::OperationCancelled { key: key.clone() })?;
        }
        Ok(())
    }

    /// Takes back what the store holds for an operation.
    fn cancel_rows(&mut self, key: &Key) {
        let Some(entry) = self.table.get_mut(key) else { return };
        if entry.refused {
            // It never had any.
            return;
        }
        let kind = entry.kind;
        if let Detail::Code(code) = &mut entry.detail
            && let Some(item) = code.due_item.take()
        {
            self.draft.consumed.push(item);
        }
        match kind {
            OperationKind::Timer if planted!("timer-kept-by-loser") => {}
            OperationKind::Timer => self.draft.stop_timer(key, TimerKind::Delay),
            OperationKind::Step | OperationKind::Condition => {
                let waiting = self.table.get(key).is_some_and(|entry| entry.state == State::RetryWaiting);
                if waiting {
                    self.draft.stop_timer(key, TimerKind::Retry);
                }
            }
            OperationKind::Signal | OperationKind::Approval | OperationKind::Callback => {
                self.close_wait(key, CloseCause::Cancelled)
            }
            OperationKind::Child => {
                if let Some(Entry { detail: Detail::Child { child, detached: false, .. }, .. }) = self.table.get(key)
                    && !planted!("cancel-not-passed-to-children")
                {
                    let child = child.clone();
                    self.order_child_to_stop(key, &child, "its parent no longer waits for it");
                }
            }
            OperationKind::Task => self.draft.take_back(key),
            OperationKind::Scope | OperationKind::Now | OperationKind::Uuid | OperationKind::Random => {}
        }
    }

    /// Closes a wait, and stops its clocks.
    pub(super) fn close_wait(&mut self, key: &Key, cause: CloseCause) {
        self.draft.waits_closed.push(ClosedWait { key: key.clone(), cause });
        let entry = self.table.get(key);
        let (deadline, kind) = (entry.and_then(|entry| entry.deadline), entry.map(|entry| entry.kind));
        if deadline.is_some() && !planted!("timeout-kept-by-wait") {
            self.draft.stop_timer(key, TimerKind::Timeout);
        }
        if kind == Some(OperationKind::Callback) {
            self.draft.stop_timer(key, TimerKind::Heartbeat);
        }
    }

    /// What is needed later about an operation.
    fn detail(&self, operation: &Operation, recorded: Option<&RecordedOperation>) -> Detail {
        // A body whose outcome is recorded is settled by its fact; any other runs when replay is over.
        let settled = recorded.is_some_and(|recorded| !self.journal.is_open(&recorded.key));
        let body = if settled { Body::Idle } else { Body::Wanted };
        let in_store = matches!(operation, Operation::StartTransaction { .. });
        let code = |retry: Retry, timeout, heartbeat, at_most_once| {
            Detail::Code(Code { retry, timeout, heartbeat, at_most_once, in_store, attempts: 0, body, due_item: None })
        };
        match operation {
            Operation::StartStep { retry, timeout, heartbeat, at_most_once, .. } => {
                let forgotten = planted!("at-most-once-again") && recorded.is_some();
                code(*retry, *timeout, *heartbeat, *at_most_once && !forgotten)
            }
            Operation::StartTransaction { retry, .. } | Operation::CheckCondition { retry, .. } => {
                code(*retry, None, None, false)
            }
            Operation::AwaitSignal { name, .. } => Detail::Signal { name: name.clone() },
            Operation::StartChild { on_close, detached, .. } => {
                Detail::Child { child: self.child_id(operation), on_close: *on_close, detached: *detached }
            }
            _ => Detail::Plain,
        }
    }
}

/// The id of a child that its parent does not name.
pub(crate) fn derived_child_id(parent: &RunId, generation: Generation, key: &Key) -> RunId {
    let text = match generation.0 {
        0 => format!("{parent}.{key}"),
        generation => format!("{parent}.{generation}.{key}"),
    };
    RunId::new(&text).unwrap_or_else(|_| {
        // Too long: a part of it, and a name made from all of it.
        let short: String = text.chars().take(100).filter(|letter| !letter.is_control()).collect();
        RunId::new(format!("{short}.{}", crate::token::digest(&text))).unwrap_or_else(|_| parent.clone())
    })
}

/// What people and tools are shown of an approval.
pub(crate) fn approval_meta(title: &str) -> Option<Bytes> {
    serde_json::to_vec(&serde_json::json!({ "title": title })).ok().map(Bytes::from)
}

fn new_wait(key: &Key, kind: WaitKind) -> NewWait {
    NewWait { key: key.clone(), kind, name: None, token: None, heartbeat: None, assignee: None, meta: None }
}

fn duration_ms_of(due: Due) -> Option<u64> {
    match due {
        Due::After(duration) => Some(outlast_core::time::millis(duration).unsigned_abs()),
        Due::At(_) => None,
    }
}
