//! What a worker elsewhere shows with everything it says about an attempt.

use std::time::Duration;

use outlast_core::commit::{Receipt, TaskOutcome};
use outlast_core::id::{DeliveryId, Namespace, QueueName, RunId, TaskId, TaskToken, WorkerId};
use outlast_core::time::{Timestamp, millis};
use outlast_store::{ClaimedTask, Lapse, TaskHeartbeat};
use serde::{Deserialize, Serialize};

use super::policy::TaskPolicy;
use crate::token::Secret;

/// One attempt in the hands of one worker. Sealed with the database's secret, it is the token of the worker protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) namespace: Namespace,
    pub(crate) worker: WorkerId,
    pub(crate) task: TaskId,
    /// Where it came from.
    #[serde(default = "usual_queue")]
    pub(crate) queue: QueueName,
    /// The run that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    pub(crate) attempt: u32,
    fence: u64,
    /// How long the worker may be silent, and how long its handler.
    lease_ms: u64,
    silence_ms: Option<u64>,
    /// When the attempt is over, by the store's clock.
    deadline_ms: Option<i64>,
}

/// Tokens that were given out before they said it.
fn usual_queue() -> QueueName {
    QueueName::new(super::DEFAULT_QUEUE).expect("it is a name like any other")
}

/// How long a claim lasts from now on, and what it means if it lapses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) lease: Duration,
    pub(crate) lapse: Option<Lapse>,
}

impl Ticket {
    pub(crate) fn new(task: &ClaimedTask, worker: WorkerId, policy: &TaskPolicy, lease: Duration) -> Ticket {
        let whole = |duration: Duration| millis(duration).unsigned_abs();
        Ticket {
            namespace: task.namespace.clone(),
            worker,
            task: task.id.clone(),
            queue: task.queue.clone(),
            run: task.run.clone(),
            attempt: task.attempt,
            fence: task.token.0,
            lease_ms: whole(lease),
            silence_ms: policy.heartbeat().map(whole),
            deadline_ms: policy.timeout().map(|timeout| (task.since + timeout).as_millis()),
        }
    }

    pub(crate) fn token(&self) -> TaskToken {
        TaskToken(self.fence)
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.deadline_ms.map(Timestamp::from_millis)
    }

    pub(crate) fn silence(&self) -> Option<Duration> {
        self.silence_ms.map(Duration::from_millis)
    }

    pub(crate) fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// How long the claim lasts from now on: never beyond what the attempt may take, nor beyond what its handler may be silent, so
    /// that its lapse is its end although nobody is there to stop it. None if its time is up.
    pub(crate) fn span(&self, now: Timestamp) -> Option<Span> {
        let mut span = Span { lease: self.lease(), lapse: None };
        if let Some(silence) = self.silence().filter(|silence| *silence <= span.lease) {
            span = Span { lease: silence, lapse: Some(Lapse::Silence) };
        }
        if let Some(deadline) = self.deadline() {
            let left = deadline.since(now);
            if left.is_zero() {
                return None;
            }
            if left <= span.lease {
                span = Span { lease: left, lapse: Some(Lapse::Timeout) };
            }
        }
        Some(span)
    }

    pub(crate) fn beat(&self, span: Span, progress: Option<bytes::Bytes>) -> TaskHeartbeat {
        TaskHeartbeat {
            namespace: self.namespace.clone(),
            task: self.task.clone(),
            token: self.token(),
            lease: span.lease,
            lapse: span.lapse,
            progress,
        }
    }

    /// What this end of the attempt is recognised by when it is said again. When a failure is tried again does not matter: that
    /// was decided the first time.
    pub(crate) fn receipt(&self, outcome: &TaskOutcome) -> Option<Receipt> {
        let (how, what) = match outcome {
            TaskOutcome::Finished { result, .. } => ("finished", result),
            TaskOutcome::Failed { error } | TaskOutcome::Retry { error, .. } => ("failed", error),
            // Whoever gives back twice has nothing more to do in either case.
            TaskOutcome::GivenBack => return None,
        };
        let Ticket { worker, task, attempt, fence, .. } = self;
        let attempt = format!("{task}\n{worker}\n{attempt}\n{fence}\n{how}\n");
        let digest = crate::token::digest(&(attempt + &String::from_utf8_lossy(what)));
        let id = DeliveryId::new(format!("task-{digest}")).ok()?;
        Some(Receipt { run: self.run.clone(), id })
    }

    pub(crate) fn seal(&self, secret: &Secret) -> String {
        secret.seal(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// None if it is not one of this database's.
    pub(crate) fn open(secret: &Secret, token: &str) -> Option<Ticket> {
        serde_json::from_slice(&secret.open(token)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(lease: u64, silence: Option<u64>, deadline: Option<i64>) -> Ticket {
        Ticket {
            namespace: Namespace::default_namespace(),
            worker: WorkerId::new("w").unwrap(),
            task: TaskId::new("t").unwrap(),
            queue: usual_queue(),
            run: None,
            attempt: 1,
            fence: 1,
            lease_ms: lease,
            silence_ms: silence,
            deadline_ms: deadline,
        }
    }

    #[test]
    fn a_claim_never_outlasts_the_attempt_nor_the_silence() {
        let now = Timestamp::from_millis(100);
        let span = |lease, silence, deadline| {
            ticket(lease, silence, deadline).span(now).map(|span| (span.lease.as_millis(), span.lapse))
        };
        assert_eq!(span(50, None, None), Some((50, None)));
        assert_eq!(span(50, Some(60), Some(1_000)), Some((50, None)));
        assert_eq!(span(50, Some(50), None), Some((50, Some(Lapse::Silence))));
        assert_eq!(span(50, Some(20), Some(130)), Some((20, Some(Lapse::Silence))));
        assert_eq!(span(50, Some(20), Some(120)), Some((20, Some(Lapse::Timeout))));
        assert_eq!(span(50, None, Some(101)), Some((1, Some(Lapse::Timeout))));
        assert_eq!(span(50, None, Some(100)), None);
        assert_eq!(span(50, None, Some(7)), None);
    }

    #[test]
    fn a_ticket_is_read_only_as_it_was_sealed_and_where_it_was() {
        let (secret, other) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let own = ticket(50, None, Some(7));
        let sealed = own.seal(&secret);
        assert_eq!(Ticket::open(&secret, &sealed), Some(own.clone()));
        assert_eq!(Ticket::open(&other, &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(Ticket::open(&secret, &String::from_utf8(changed).unwrap()), None, "at {at}");
        }
        for broken in ["", ".", "zz.00", "é", &sealed[..sealed.len() - 2]] {
            assert_eq!(Ticket::open(&secret, broken), None);
        }
    }
}
