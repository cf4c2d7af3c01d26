//! Every rule in the documents names its tests, and every test that is named exists.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::tree::{SourceFile, Tree};

/// Documents whose rules begin with `**X1.**` and name their tests on the lines that follow, indented.
pub(super) const DOCUMENTS: [&str; 2] = ["docs/semantics.md", "docs/reliability.md"];

/// The heading over the table of the checklists' lines.
const CHECKLISTS: &str = "### Where each line of the checklists is";
/// What a function must bear to be run as a test.
const TEST_ATTRIBUTES: [&str; 3] = ["#[test]", "#[tokio::test]", "#[tokio::test("];
/// Opens the list of the stories in a file of the stores' contract, which the suite runs on every store.
const STORIES: &str = "stories! {";
/// The file of the rules that crash loop and simulator check from outside. A rule gives a verdict.
const INVARIANTS: &str = "invariants.rs";
const VERDICT: &str = "-> Verdict {";

/// The names of all tests in the tree: functions that a test runner runs, cases of the contract, and invariants.
pub(super) fn tests(tree: &Tree) -> BTreeSet<&str> {
    tree.files.iter().filter(|file| file.is_rust()).flat_map(tests_in).collect()
}

fn tests_in(file: &SourceFile) -> BTreeSet<&str> {
    let stories = listed_stories(file);
    let has_rules = file.path.ends_with(INVARIANTS);
    let mut tests = BTreeSet::new();
    let mut is_marked = false;
    for (_, line) in file.lines() {
        let start = line.trim_start();
        is_marked |= TEST_ATTRIBUTES.iter().any(|attribute| start.starts_with(attribute));
        let Some(name) = name_of_function(line) else { continue };
        let is_rule = has_rules && line.ends_with(VERDICT);
        if is_marked || is_rule || stories.contains(name) {
            tests.insert(name);
        }
        is_marked = false;
    }
    tests
}

/// The words in the lists of stories of a file.
fn listed_stories(file: &SourceFile) -> BTreeSet<&str> {
    let mut words = BTreeSet::new();
    let mut is_open = false;
    for (_, line) in file.lines() {
        if is_open {
            is_open = !line.starts_with('}');
            words.extend(line.split(|letter: char| !is_part_of_name(letter)));
        } else {
            is_open = line.ends_with(STORIES);
        }
    }
    words
}

fn name_of_function(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    for modifier in ["pub ", "pub(super) ", "pub(crate) ", "const ", "async "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    rest.strip_prefix("fn ")?.split(|letter: char| !is_part_of_name(letter)).next()
}

fn is_part_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The rules of one document.
pub(super) fn rules(path: &str, text: Option<&str>, tests: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers = BTreeSet::new();
    let mut open: Option<(usize, &str)> = None;
    for (at, line) in text.unwrap_or_default().lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if let Some(number) = line.strip_prefix("**").and_then(|rest| rest.split_once(".**")).map(|(number, _)| number)
        {
            findings.extend(open.take().map(|(at, number)| untested(path, at, number)));
            if !numbers.insert(number) {
                findings.push(Finding::new(
                    path,
                    at,
                    format!("{number} is there twice"),
                    "give it a number of its own",
                ));
            }
            open = Some((at, number));
        }
        for test in line.strip_prefix("  `").into_iter().flat_map(|_| line.split('`').skip(1).step_by(2)) {
            open = None;
            if !tests.contains(test) {
                let fix = "name the test that holds the rule, or write it";
                findings.push(Finding::new(path, at, format!("there is no test `{test}`"), fix));
            }
        }
    }
    findings.extend(open.map(|(at, number)| untested(path, at, number)));
    findings.extend(checklists(path, text.unwrap_or_default(), &numbers));
    findings
}

/// The table that says which rules hold which line of a checklist: each rule is there, and no line is left out.
fn checklists(path: &str, text: &str, rules: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    for (at, line) in lines.skip_while(|(_, line)| *line != CHECKLISTS).filter(|(_, line)| line.contains(": ")) {
        let mut next = 1;
        for entry in line.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default().split(" · ") {
            let (name, held_by) = entry.split_once(": ").unwrap_or((entry, ""));
            if let Ok(number) = name.parse::<u32>() {
                if number != next {
                    findings.push(Finding::new(path, at, format!("line {next} is missing"), "say which rules hold it"));
                }
                next = number + 1;
            }
            let words = held_by.split(|letter: char| !is_part_of_name(letter)).filter(|word| is_number_of_rule(word));
            for rule in words.filter(|word| !rules.contains(word)) {
                findings.push(Finding::new(path, at, format!("there is no rule {rule}"), "name the one that holds it"));
            }
        }
    }
    findings
}

/// `P1`
fn is_number_of_rule(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|letter| letter.is_ascii_uppercase())
        && letters.clone().next().is_some()
        && letters.all(|letter| letter.is_ascii_digit())
}

fn untested(path: &str, at: usize, number: &str) -> Finding {
    let fix = "name its tests on the next line, after two spaces, in backticks";
    Finding::new(path, at, format!("{number} names no test"), fix)
}

#[cfg(test)]
mod tests {
    use super::super::examples::file;
    use super::*;

    #[test]
    fn only_what_is_run_as_a_test_counts_as_one() {
        let text = "fn helper() {}\n\
            #[test]\n#[ignore = \"slow\"]\n/// Says more.\nfn plain() {}\n\
            fn after_a_test() {}\n\
            // #[test]\nfn commented_out() {}\n\
            \x20   #[tokio::test(flavor = \"multi_thread\")]\n    async fn awaits() {\n\
            \x20       let f = |test| test;\n    }\n\
            // this fn is_no_function\n";
        let tree = Tree { files: vec![file("x.rs", text), file("y.md", "#[test]\nfn d() {}")] };
        assert_eq!(tests(&tree), BTreeSet::from(["plain", "awaits"]));
    }

    #[test]
    fn cases_of_the_contract_are_those_that_are_listed() {
        let text = "super::stories! {\n    one, two,\n    not_there;\n    small limits: three,\n}\n\
            async fn one(s: Scene<'_>) {}\nasync fn two(\n    s: Scene<'_>,\n) {}\nasync fn three(s: Scene<'_>) {}\n\
            async fn not_listed(s: Scene<'_>) {}\n";
        let tree = Tree { files: vec![file("contract/x.rs", text)] };
        assert_eq!(tests(&tree), BTreeSet::from(["one", "two", "three"]));
    }

    #[test]
    fn invariants_are_what_gives_a_verdict() {
        let text = "pub fn rule(run: &Run) -> Verdict {\nfn other(run: &Run) -> bool {\n";
        let tree = Tree { files: vec![file("src/invariants.rs", text), file("src/lib.rs", text)] };
        assert_eq!(tests(&tree), BTreeSet::from(["rule"]));
        let elsewhere = Tree { files: vec![file("src/lib.rs", text)] };
        assert_eq!(tests(&elsewhere), BTreeSet::new());
    }

    #[test]
    fn a_rule_names_tests_that_exist() {
        let text =
            "**P1.** A rule.\n  `a`, `b`\n\n**P2.** Another one,\nof `two` lines.\n\n**P2.** Again.\n  `c`,\n  `a`\n";
        let findings = rules("docs/x.md", Some(text), &BTreeSet::from(["a", "b"]));
        let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("docs/x.md:4: P2 names no test"), "{told:?}");
        assert!(told[1].contains("docs/x.md:7: P2 is there twice"), "{told:?}");
        assert!(told[2].contains("docs/x.md:8: there is no test `c`"), "{told:?}");
        assert!(rules("docs/x.md", None, &BTreeSet::new()).is_empty());
    }

    #[test]
    fn every_line_of_a_checklist_is_held_by_rules_that_exist() {
        let text = "**P1.** A rule.\n  `a`\n### Where each line of the checklists is\n\n| checklist | line: rule |\n|---|---|\n\
            | one | 1: P1 (and more) · 2: P2, P1 · corrections: P1 |\n| two | 1: P1 · 3: P1 |\n";
        let findings = rules("docs/x.md", Some(text), &BTreeSet::from(["a"]));
        let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("docs/x.md:7: there is no rule P2"), "{told:?}");
        assert!(told[1].contains("docs/x.md:8: line 2 is missing"), "{told:?}");
    }
}
