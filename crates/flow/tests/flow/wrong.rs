//! Flows with something wrong: what is said about each, reviewed by people.

use outlast_flow::Flow;

#[test]
fn wrong_flows_are_told_with_place_and_advice() {
    let text = include_str!("../wrong/flows.txt");
    let mut told = String::new();
    let mut count = 0;
    for case in text.split("=== ").skip(1) {
        let (title, flow) = case.split_once('\n').unwrap();
        let said = match Flow::parse("wrong.flow.yaml", flow.trim_end()) {
            Ok(flow) if !flow.warnings().list().is_empty() => flow.warnings().to_string(),
            Ok(_) => panic!("nothing is said about: {title}"),
            Err(found) => {
                assert!(found.list().iter().all(|problem| problem.help.is_some()), "{title} has no advice\n{found}");
                found.to_string()
            }
        };
        told.push_str(&format!("=== {title}\n{said}\n\n"));
        count += 1;
    }
    assert!(count >= 20, "{count}");
    insta::with_settings!({ snapshot_path => "../wrong", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("flows", told);
    });
}

#[test]
fn any_text_is_a_flow_or_has_something_wrong_and_never_a_panic() {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};
    let good = include_str!("../../../../examples/flows/mixed.flow.yaml");
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let pieces = "[ -~\\n]{0,12}";
    runner
        .run(&(any::<prop::sample::Index>(), any::<prop::sample::Index>(), pieces), |(from, to, with)| {
            let letters: Vec<char> = good.chars().collect();
            let (from, to) = (from.index(letters.len()), to.index(letters.len()));
            let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 20));
            let text: String =
                letters[..from].iter().copied().chain(with.chars()).chain(letters[to..].iter().copied()).collect();
            if let Err(found) = Flow::parse("some.flow.yaml", &text) {
                prop_assert!(!found.list().is_empty());
                let _ = found.to_string();
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
