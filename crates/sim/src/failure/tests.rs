use super::*;
use crate::case::{Act, Timed};
use crate::draw::draw;
use crate::violation::Violation;

fn broke(invariants: &[u8], trace: u64) -> Verdict {
    let violation = |invariant: &u8| Violation { invariant: *invariant, text: "two ends\nof one run".to_owned() };
    Verdict { violations: invariants.iter().map(violation).collect(), trace, ..Verdict::default() }
}

fn failure(differs: Option<&str>, store: &'static str) -> Failure {
    let file = Ok(PathBuf::from("a/seed-7.json"));
    let differs = differs.map(str::to_owned);
    Failure { with: "seed 7".to_owned(), case: draw(7), verdict: broke(&[3], 1), differs, file, store }
}

#[test]
fn the_same_invariant_and_the_same_trace_are_the_same_failure() {
    assert_eq!(differs(&broke(&[3, 4], 1), &broke(&[3], 1), true), None);
}

#[test]
fn another_invariant_or_none_the_second_time_is_another_failure_on_any_store() {
    for repeats in [true, false] {
        let other = differs(&broke(&[3], 1), &broke(&[4, 3], 1), repeats).unwrap();
        assert!(other.starts_with("the first time broke invariant 3, the second invariant 4; "), "{other}");
        let none = differs(&broke(&[3], 1), &broke(&[], 1), repeats).unwrap();
        assert!(none.starts_with("the first time broke invariant 3, the second nothing; "), "{none}");
    }
}

#[test]
fn another_trace_is_another_failure_where_cases_repeat() {
    let other = differs(&broke(&[3], 1), &broke(&[3], 2), true).unwrap();
    assert!(other.starts_with("the traces are 1 and 2; "), "{other}");
    assert!(other.ends_with("a failure of the simulator too"), "{other}");
    assert_eq!(differs(&broke(&[3], 1), &broke(&[3], 2), false), None);
}

#[test]
fn a_failure_says_how_to_repeat_and_to_keep_it_and_on_which_store() {
    let told = failure(None, "memory").to_string();
    assert!(told.contains("BROKEN invariant 3: two ends"), "{told}");
    assert!(
        told.ends_with("  again: cargo xtask sim --case a/seed-7.json\n  keep: move it to crates/sim/corpus/\n"),
        "{told}"
    );
    assert!(!told.contains("DOES NOT REPRODUCE"), "{told}");
    let told = failure(None, "sqlite").to_string();
    assert!(told.contains("  again: cargo xtask sim --case a/seed-7.json --store sqlite\n"), "{told}");
}

#[test]
fn a_failure_that_does_not_reproduce_says_so_loudly() {
    let told = failure(Some("the traces are 1 and 2"), "memory").to_string();
    assert!(told.starts_with("FAILED: seed 7\n  DOES NOT REPRODUCE: the traces are 1 and 2\n"), "{told}");
}

#[test]
fn a_file_is_named_after_what_failed_what_broke_and_where() {
    assert_eq!(failure(None, "memory").name(), "seed-7-invariant-3");
    assert_eq!(failure(None, "postgres").name(), "seed-7-invariant-3-on-postgres");
    assert_eq!(slug("A signal, sent twice/again"), "a-signal-sent-twice-again");
}

/// A case that cannot be played: it starts a run that it does not have.
fn impossible() -> Case {
    let mut case = draw(7);
    case.acts.push(Timed { at: 0, what: Act::Start(case.runs.len()) });
    case
}

#[test]
fn a_failing_case_is_made_small_and_written_so_that_it_fails_again() {
    let directory = std::env::temp_dir().join(format!("outlast-sim-failure-{}", std::process::id()));
    let case = impossible();
    let verdict = Kind::Memory.play(&case);
    assert_eq!(verdict.violations.first().map(|broken| broken.invariant), Some(0), "{verdict:?}");
    let failure = Failure::found_in(&directory, "seed 7", &case, &verdict, &Kind::Memory);
    let file = directory.join("seed-7-invariant-0.json");
    let kept = corpus::one(&file);
    let again = kept.as_ref().ok().and_then(|kept| Failure::of_file(&file, &kept.case, &Kind::Memory));
    let _ = std::fs::remove_dir_all(&directory);
    let kept = kept.unwrap();
    assert_eq!((failure.file.as_ref(), failure.differs.as_ref()), (Ok(&file), None));
    assert_eq!((kept.case.acts.len(), kept.case.faults.len()), (1, 0), "it is small");
    assert!(kept.why.starts_with("seed 7: a panic: "), "{}", kept.why);
    assert_eq!(kept.case, failure.case);
    assert!(again.unwrap().to_string().contains("BROKEN invariant 0: a panic: "));
}

#[test]
fn a_failure_that_is_none_the_second_time_is_written_whole_and_said_not_to_reproduce() {
    let directory = std::env::temp_dir().join(format!("outlast-sim-fickle-{}", std::process::id()));
    let case = draw(7);
    let failure = Failure::found_in(&directory, "seed 7", &case, &broke(&[3], 1), &Kind::Memory);
    let kept = failure.file.as_ref().map(|file| corpus::one(file));
    let _ = std::fs::remove_dir_all(&directory);
    assert_eq!(kept.unwrap().unwrap().case, case);
    assert!(failure.to_string().contains("  DOES NOT REPRODUCE: the first time broke invariant 3, the second nothing"));
}

#[test]
fn a_written_case_that_keeps_every_promise_is_no_failure() {
    assert!(Failure::of_file(Path::new("a.json"), &draw(7), &Kind::Memory).is_none());
}
