//! The README's commands are what CI runs.

use super::finding::Finding;

const README: &str = "README.md";
const CI: &str = ".ci/run";
const TEST_COMMAND: &str = "cargo xtask test";
const RUN_COMMAND: &str = "cargo run ";

/// The README shows two commands: one that runs something, one that tests.
pub(super) fn readme(text: Option<&str>) -> Vec<Finding> {
    let Some(text) = text else {
        return vec![Finding::new(README, 1, "there is no README", "write one with the two commands")];
    };
    let shows = |command: &str| text.lines().any(|line| line.trim_start_matches(['$', ' ']).starts_with(command));
    [(RUN_COMMAND, "runs something real"), (TEST_COMMAND, "tests everything")]
        .into_iter()
        .filter(|(command, _)| !shows(command))
        .map(|(command, purpose)| {
            let what = format!("no line begins with `{}`", command.trim_end());
            Finding::new(README, 1, what, format!("show the command that {purpose}, on a line of its own"))
        })
        .collect()
}

/// CI runs the README's test command and nothing else.
pub(super) fn ci(text: Option<&str>) -> Vec<Finding> {
    let lines = text.unwrap_or_default().lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let is_setup = |line: &str| line.is_empty() || ["#", "set ", "cd "].iter().any(|start| line.starts_with(start));
    let (tests, others): (Vec<_>, Vec<_>) =
        lines.filter(|(_, line)| !is_setup(line)).partition(|(_, line)| *line == TEST_COMMAND);
    let mut findings: Vec<_> = others
        .into_iter()
        .map(|(number, line)| {
            let fix = format!("move it into `{TEST_COMMAND}`, so that everybody runs what CI runs");
            Finding::new(CI, number, format!("runs `{line}`"), fix)
        })
        .collect();
    if tests.is_empty() {
        findings.push(Finding::new(CI, 1, "does not run the README's test command", format!("call `{TEST_COMMAND}`")));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_shows_both_commands() {
        let both = "# Outlast\n\n```sh\ncargo run --release --example hello\n$ cargo xtask test\n```\n";
        assert!(readme(Some(both)).is_empty());
        assert_eq!(readme(Some("Run `cargo xtask test`.")).len(), 2);
        assert_eq!(readme(None).len(), 1);
    }

    #[test]
    fn ci_runs_the_test_command_and_nothing_else() {
        let good = "#!/usr/bin/env bash\nset -euo pipefail\ncd \"$(dirname \"$0\")/..\"\ncargo xtask test\n";
        assert!(ci(Some(good)).is_empty());
        let findings = ci(Some(&format!("{good}cargo deny check\n")));
        assert_eq!(findings.iter().map(Finding::line).collect::<Vec<_>>(), [5]);
        assert_eq!(ci(Some("cargo test\n")).len(), 2);
        assert_eq!(ci(None).len(), 1);
    }
}
