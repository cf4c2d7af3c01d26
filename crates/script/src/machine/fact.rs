//! What facts do to the machine.

use outlast_core::event::Event;
use outlast_core::failure::Failure;
use outlast_core::id::Key;
use outlast_core::operation::{Operation, Operations};

use super::{Machine, Outcome};
use crate::heap::Object;
use crate::value::Value;

impl Machine {
    /// Takes note of a fact: the promise of the operation it is about settles.
    pub(crate) fn feed(&mut self, event: &Event, ops: &mut Operations) {
        match event {
            Event::StepFinished { key, result, .. }
            | Event::TaskFinished { key, result, .. }
            | Event::ChildFinished { key, result, .. } => self.settle_json(key, result),
            Event::SignalResolved { key, payload, .. } | Event::CallbackResolved { key, payload, .. } => {
                self.settle_json(key, payload);
            }
            Event::ConditionChecked { key, met: true, state, .. } => self.settle_json(key, state),
            Event::StepFailed { key, error, .. }
            | Event::TaskFailed { key, error, .. }
            | Event::ChildFailed { key, error, .. }
            | Event::CallbackFailed { key, error, .. }
            | Event::OperationRefused { key, error } => self.settle_failed(key, error),
            Event::TimerFired { key } => self.settle_open(key, Outcome::Value(Value::Null)),
            Event::SignalTimedOut { key, name } => {
                let message = format!("the deadline passed before the signal {:?} came", name.as_str());
                self.settle_failed(key, &Failure::timeout(message));
            }
            Event::ApprovalTimedOut { key, .. } => {
                self.settle_failed(key, &Failure::timeout("the deadline passed before anybody decided"));
            }
            Event::CallbackTimedOut { key, .. } => {
                self.settle_failed(key, &Failure::timeout("the deadline passed before the callback was answered"));
            }
            Event::ApprovalResolved { key, approval, approved, by, feedback } => {
                let decision = self.decision(*approved, by.as_deref(), feedback.as_deref(), approval);
                self.settle_open(key, Outcome::Value(decision));
            }
            Event::ChildStarted { key, child, detached: true, .. } => {
                let id = self.heap.text(child.as_str());
                self.settle_open(key, Outcome::Value(id));
            }
            Event::TaskScheduled { key, task, detached: true, .. } => {
                let id = self.heap.text(task.as_str());
                self.settle_open(key, Outcome::Value(id));
            }
            Event::CancelRequested { reason, .. } => {
                let message = match reason {
                    None => "the run was cancelled".to_owned(),
                    Some(reason) => format!("the run was cancelled: {reason}"),
                };
                self.cancel_all(&message, ops);
            }
            // Nothing that a script could see.
            _ => {}
        }
    }

    fn settle_json(&mut self, key: &Key, json: &[u8]) {
        let outcome = match self.json_value(json) {
            Ok(value) => Outcome::Value(value),
            Err(problem) => {
                let failure = Failure::new("bad_result", format!("what {key} returned is not JSON: {problem}"));
                Outcome::Error(self.error_from(&failure))
            }
        };
        self.settle_open(key, outcome);
    }

    fn settle_failed(&mut self, key: &Key, failure: &Failure) {
        let error = self.error_from(failure);
        self.settle_open(key, Outcome::Error(error));
    }

    fn settle_open(&mut self, key: &Key, outcome: Outcome) {
        if let Some(open) = self.world.close(key) {
            self.settle(open.promise, outcome);
        }
    }

    fn decision(&mut self, approved: bool, by: Option<&str>, feedback: Option<&str>, approval: &str) -> Value {
        let mut text = |text: Option<&str>| text.map_or(Value::Null, |text| self.heap.text(text));
        let (by, feedback, approval) = (text(by), text(feedback), text(Some(approval)));
        let decision: Object = [
            ("approved".into(), Value::Bool(approved)),
            ("by".into(), by),
            ("feedback".into(), feedback),
            ("approval".into(), approval),
        ]
        .into_iter()
        .collect();
        self.heap.object(decision)
    }

    /// Cancels an operation that is open.
    pub(crate) fn cancel_operation(&mut self, key: &Key, message: &str, ops: &mut Operations) {
        let Some(open) = self.world.open.get(key) else { return };
        let location = self.world.location(open.at);
        ops.request(Operation::Cancel { key: key.clone() }, Some(location));
        self.settle_failed(key, &Failure::cancelled(message));
    }

    /// The run was asked to stop: everything that is open fails, in the order in which it was started. What is started
    /// from now on, by whoever cleans up, is not touched.
    fn cancel_all(&mut self, message: &str, ops: &mut Operations) {
        self.world.cancellations += 1;
        self.cancel_combinations(message);
        let mut open: Vec<(u64, Key)> = self.world.open.iter().map(|(key, open)| (open.order, key.clone())).collect();
        open.sort_unstable_by_key(|(order, _)| *order);
        for (_, key) in open {
            self.cancel_operation(&key, message, ops);
        }
    }
}
