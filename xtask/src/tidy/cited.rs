//! Every rule in the documents names its tests, and every test that is named exists.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::tree::{SourceFile, Tree};

/// Documents whose rules begin with `**X1.**` and name their tests on the lines that follow, indented.
pub(super) const DOCUMENTS: [&str; 2] = ["docs/semantics.md", "docs/reliability.md"];

/// The names of all functions in the tree, tests among them.
pub(super) fn functions(tree: &Tree) -> BTreeSet<&str> {
    let lines = tree.files.iter().filter(|file| file.is_rust()).flat_map(SourceFile::lines);
    lines.filter_map(|(_, line)| name_of_function(line)).collect()
}

fn name_of_function(line: &str) -> Option<&str> {
    let (_, rest) =
        line.trim_start().split_once("fn ").filter(|(before, _)| before.len() <= "pub(crate) async ".len())?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// The rules of one document.
pub(super) fn rules(path: &str, text: Option<&str>, functions: &BTreeSet<&str>) -> Vec<Finding> {
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
            if !functions.contains(test) {
                let fix = "name the test that holds the rule, or write it";
                findings.push(Finding::new(path, at, format!("there is no test `{test}`"), fix));
            }
        }
    }
    findings.extend(open.map(|(at, number)| untested(path, at, number)));
    findings
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
    fn functions_are_found_wherever_they_stand() {
        let text = "fn a() {}\n    async fn b(s: Scene) {\n// this fn is none of ours\npub(crate) fn c<T>() {}\n";
        let tree = Tree { files: vec![file("x.rs", text), file("y.md", "fn d() {}")] };
        assert_eq!(functions(&tree), BTreeSet::from(["a", "b", "c", "is"]));
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
}
