//! The corpus: what once broke something must never do so again, in whatever order things happen.

use outlast_sim::case::Case;
use outlast_sim::corpus;
use outlast_sim::failure::Failure;
use outlast_sim::ground::Kind;

/// Interleavings of each case, beside its own.
const OTHERS: u64 = 10;

#[test]
fn kept_cases_keep_every_promise_in_their_own_order_and_in_others() {
    let kept = corpus::read().unwrap_or_else(|error| panic!("{error}"));
    assert!(!kept.is_empty(), "there is nothing in {}", corpus::directory().display());
    for (name, kept) in &kept {
        let others = (0..OTHERS).map(|other| kept.case.seed.wrapping_add(1 + other));
        for seed in std::iter::once(kept.case.seed).chain(others) {
            let case = Case { seed, ..kept.case.clone() };
            let verdict = Kind::Memory.play(&case);
            if !verdict.violations.is_empty() {
                let with = format!("corpus {} with seed {seed}", name.trim_end_matches(".json"));
                panic!("{}\n{}", kept.why, Failure::found(&with, &case, &verdict, &Kind::Memory));
            }
        }
    }
}
