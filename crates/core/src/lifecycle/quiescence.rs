//! May this turn end? One function decides, nobody else.

use super::State;
use crate::operation::OperationKind;

/// All that counts for the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation<'a> {
    /// No event waits to be committed.
    pub queue_empty: bool,
    /// A commit was sent, and its outcome is not known yet.
    pub commit_in_flight: bool,
    /// Somebody waits for everything so far to be durable.
    pub flush_waiting: bool,
    /// A step's body runs somewhere, on the driver or beside it.
    pub body_executing: bool,
    /// The program could go on without another fact.
    pub runnable: bool,
    /// Every operation of the run.
    pub operations: &'a [OperationView],
}

/// What counts about one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationView {
    /// What it is.
    pub kind: OperationKind,
    /// Where it stands.
    pub state: State,
    /// A scope around it is complete or completing: the operation no longer counts.
    pub ancestor_completed: bool,
}

/// What to do with the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// End it; the run goes on when something wakes it.
    Suspend(SuspendReason),
    /// Nothing is pending any more: the run finishes. A program that is blocked all the same waits for nothing, and
    /// is an error.
    Finish,
    /// Go on; this rule does not hold yet.
    Wait(Rule),
}

/// What a suspended run waits for, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuspendReason {
    /// A step or condition is tried again later.
    RetryScheduled,
    /// A sleep ends later.
    WaitScheduled,
    /// Somebody else has to act: a signal, an approval, a callback, a task, a child.
    CallbackPending,
}

impl SuspendReason {
    /// The name people and tools see.
    pub const fn name(self) -> &'static str {
        match self {
            SuspendReason::RetryScheduled => "RETRY_SCHEDULED",
            SuspendReason::WaitScheduled => "WAIT_SCHEDULED",
            SuspendReason::CallbackPending => "CALLBACK_PENDING",
        }
    }
}

/// What must hold before a turn may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// No event waits to be committed.
    QueueEmpty,
    /// No commit is in flight.
    NoCommitInFlight,
    /// Nobody waits for a forced flush.
    NoFlushWaiting,
    /// No step body and no operation executes.
    NothingExecuting,
    /// No program code is runnable.
    NothingRunnable,
}

impl Rule {
    /// The rule, and that it does not hold, for people.
    pub const fn unmet(self) -> &'static str {
        match self {
            Rule::QueueEmpty => "events wait to be committed",
            Rule::NoCommitInFlight => "a commit is in flight",
            Rule::NoFlushWaiting => "somebody waits for a flush",
            Rule::NothingExecuting => "a step executes",
            Rule::NothingRunnable => "the program can go on",
        }
    }
}

/// May the turn end? To be asked again after every change of the situation.
///
/// ```
/// use outlast_core::lifecycle::{Decision, OperationView, Situation, State, SuspendReason, decide};
/// use outlast_core::operation::OperationKind;
///
/// let sleep = OperationView { kind: OperationKind::Timer, state: State::IdleAwaited, ancestor_completed: false };
/// let situation = Situation {
///     queue_empty: true,
///     commit_in_flight: false,
///     flush_waiting: false,
///     body_executing: false,
///     runnable: false,
///     operations: &[sleep],
/// };
/// assert_eq!(decide(&situation), Decision::Suspend(SuspendReason::WaitScheduled));
/// ```
pub fn decide(situation: &Situation<'_>) -> Decision {
    let counting = || situation.operations.iter().filter(|operation| !operation.ancestor_completed);
    let executing = counting().any(|operation| operation.state == State::Executing);
    let waits = || counting().any(|operation| operation.reason().is_some());
    let overlooked = crate::planted!("turn-ends-under-a-body") && waits();
    let rules = [
        (Rule::QueueEmpty, situation.queue_empty),
        (Rule::NoCommitInFlight, !situation.commit_in_flight),
        (Rule::NoFlushWaiting, !situation.flush_waiting),
        (Rule::NothingExecuting, overlooked || !situation.body_executing && !executing),
        (Rule::NothingRunnable, !situation.runnable),
    ];
    if let Some((rule, _)) = rules.into_iter().find(|(_, holds)| !holds) {
        return Decision::Wait(rule);
    }
    match counting().filter_map(OperationView::reason).min() {
        Some(reason) => Decision::Suspend(reason),
        None => Decision::Finish,
    }
}

impl OperationView {
    fn reason(&self) -> Option<SuspendReason> {
        match self.state {
            State::RetryWaiting => Some(SuspendReason::RetryScheduled),
            State::IdleNotAwaited | State::IdleAwaited if self.kind == OperationKind::Timer => {
                Some(SuspendReason::WaitScheduled)
            }
            State::IdleNotAwaited | State::IdleAwaited => Some(SuspendReason::CallbackPending),
            State::Executing | State::Completed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: OperationKind, state: State) -> OperationView {
        OperationView { kind, state, ancestor_completed: false }
    }

    fn quiet(operations: &[OperationView]) -> Situation<'_> {
        Situation {
            queue_empty: true,
            commit_in_flight: false,
            flush_waiting: false,
            body_executing: false,
            runnable: false,
            operations,
        }
    }

    #[test]
    fn each_rule_alone_keeps_the_turn_going() {
        let idle = [operation(OperationKind::Signal, State::IdleAwaited)];
        let cases = [
            (Situation { queue_empty: false, ..quiet(&idle) }, Rule::QueueEmpty),
            (Situation { commit_in_flight: true, ..quiet(&idle) }, Rule::NoCommitInFlight),
            (Situation { flush_waiting: true, ..quiet(&idle) }, Rule::NoFlushWaiting),
            (Situation { body_executing: true, ..quiet(&idle) }, Rule::NothingExecuting),
            (Situation { runnable: true, ..quiet(&idle) }, Rule::NothingRunnable),
        ];
        assert_eq!(decide(&quiet(&idle)), Decision::Suspend(SuspendReason::CallbackPending));
        for (situation, rule) in cases {
            assert_eq!(decide(&situation), Decision::Wait(rule));
        }
    }

    #[test]
    fn a_turn_does_not_end_while_a_sibling_executes() {
        let operations =
            [operation(OperationKind::Timer, State::IdleAwaited), operation(OperationKind::Step, State::Executing)];
        assert_eq!(decide(&quiet(&operations)), Decision::Wait(Rule::NothingExecuting));
    }

    #[test]
    fn plain_code_that_can_run_keeps_the_turn_going_under_an_unawaited_sleep() {
        let operations = [operation(OperationKind::Timer, State::IdleNotAwaited)];
        let situation = Situation { runnable: true, ..quiet(&operations) };
        assert_eq!(decide(&situation), Decision::Wait(Rule::NothingRunnable));
    }

    #[test]
    fn a_retry_is_a_better_reason_than_a_sleep_and_a_sleep_than_anything_else() {
        let callback = operation(OperationKind::Callback, State::IdleAwaited);
        let sleep = operation(OperationKind::Timer, State::IdleNotAwaited);
        let retry = operation(OperationKind::Step, State::RetryWaiting);
        assert_eq!(decide(&quiet(&[callback, sleep, retry])), Decision::Suspend(SuspendReason::RetryScheduled));
        assert_eq!(decide(&quiet(&[callback, sleep])), Decision::Suspend(SuspendReason::WaitScheduled));
        assert_eq!(decide(&quiet(&[callback])), Decision::Suspend(SuspendReason::CallbackPending));
    }

    #[test]
    fn a_run_whose_operations_are_all_complete_finishes() {
        assert_eq!(decide(&quiet(&[operation(OperationKind::Step, State::Completed)])), Decision::Finish);
        assert_eq!(decide(&quiet(&[])), Decision::Finish);
    }

    #[test]
    fn losers_below_a_completed_scope_neither_hold_the_turn_nor_give_a_reason() {
        let mut loser = operation(OperationKind::Step, State::Executing);
        loser.ancestor_completed = true;
        let mut late = operation(OperationKind::Step, State::RetryWaiting);
        late.ancestor_completed = true;
        let wait = operation(OperationKind::Signal, State::IdleAwaited);
        assert_eq!(decide(&quiet(&[loser, late, wait])), Decision::Suspend(SuspendReason::CallbackPending));
        assert_eq!(decide(&quiet(&[loser, late])), Decision::Finish);
    }

    #[test]
    fn a_map_of_callbacks_suspends_once_all_branches_are_idle() {
        let branches = [operation(OperationKind::Callback, State::IdleAwaited); 3];
        let mut with_map = vec![operation(OperationKind::Scope, State::IdleAwaited)];
        with_map.extend(branches);
        assert_eq!(decide(&quiet(&with_map)), Decision::Suspend(SuspendReason::CallbackPending));
    }
}
