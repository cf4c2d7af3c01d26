//! When a batch is complete.

use super::BatchReason;

/// What the author said about completion. Without any of it, the first failure completes the batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policy {
    pub(super) min_successful: Option<usize>,
    pub(super) tolerated: Option<usize>,
    pub(super) tolerated_percent: Option<u32>,
}

/// How far a batch came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    /// Of all branches, started or not.
    pub(super) total: usize,
}

impl Policy {
    /// Why the batch is complete, if it is. The order of the questions is part of the contract.
    pub(super) fn decide(&self, tally: Tally) -> Option<BatchReason> {
        if self.is_tolerance_exceeded(tally) {
            Some(BatchReason::FailureToleranceExceeded)
        } else if tally.succeeded + tally.failed == tally.total {
            Some(BatchReason::AllCompleted)
        } else if self.min_successful.is_some_and(|min| tally.succeeded >= min) {
            Some(BatchReason::MinSuccessfulReached)
        } else {
            None
        }
    }

    fn is_tolerance_exceeded(&self, Tally { failed, total, .. }: Tally) -> bool {
        match (self.tolerated, self.tolerated_percent) {
            // Nobody said how many failures are too many: fail fast, unless there is a number of successes to reach.
            (None, None) => failed > 0 && self.min_successful.is_none(),
            (count, percent) => {
                let too_many = count.is_some_and(|count| failed > count);
                // Of all branches, and without rounding.
                let too_large_a_part =
                    percent.is_some_and(|percent| failed as u128 * 100 > u128::from(percent) * total as u128);
                too_many || too_large_a_part
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BatchReason::{AllCompleted, FailureToleranceExceeded, MinSuccessfulReached};
    use super::*;

    fn decide(policy: Policy, succeeded: usize, failed: usize, total: usize) -> Option<BatchReason> {
        policy.decide(Tally { succeeded, failed, total })
    }

    #[test]
    fn without_a_policy_the_first_failure_decides() {
        let policy = Policy::default();
        assert_eq!(decide(policy, 1, 0, 2), None);
        assert_eq!(decide(policy, 0, 1, 2), Some(FailureToleranceExceeded));
        assert_eq!(decide(policy, 2, 0, 2), Some(AllCompleted));
        assert_eq!(decide(policy, 0, 0, 0), Some(AllCompleted));
    }

    #[test]
    fn a_tolerance_is_exceeded_by_more_than_it() {
        let two = Policy { tolerated: Some(2), ..Policy::default() };
        assert_eq!(decide(two, 0, 2, 4), None);
        assert_eq!(decide(two, 0, 3, 4), Some(FailureToleranceExceeded));
        let half = Policy { tolerated_percent: Some(50), ..Policy::default() };
        assert_eq!(decide(half, 0, 2, 4), None);
        assert_eq!(decide(half, 0, 3, 4), Some(FailureToleranceExceeded));
        let either = Policy { tolerated: Some(3), tolerated_percent: Some(0), ..Policy::default() };
        assert_eq!(decide(either, 0, 1, 4), Some(FailureToleranceExceeded));
    }

    #[test]
    fn tolerance_is_asked_before_completion_and_completion_before_the_minimum() {
        let policy = Policy { min_successful: Some(1), tolerated: Some(0), ..Policy::default() };
        assert_eq!(decide(policy, 1, 1, 2), Some(FailureToleranceExceeded));
        assert_eq!(decide(policy, 2, 0, 2), Some(AllCompleted));
        assert_eq!(decide(policy, 1, 0, 2), Some(MinSuccessfulReached));
    }
}
