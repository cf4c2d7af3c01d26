//! What every `Cargo.toml` must say.

use super::finding::Finding;
use super::metadata::Package;
use super::tree::SourceFile;

/// A package says what it is for and under which licence.
pub(super) fn described(package: &Package) -> Vec<Finding> {
    let mut findings = Vec::new();
    if package.description.as_ref().is_none_or(|text| text.trim().is_empty()) {
        let fix = "add `description = \"…\"`: one sentence that says what it holds";
        findings.push(Finding::new(&package.manifest(), 1, "there is no description", fix));
    }
    if package.license.as_ref().is_none_or(|text| text.trim().is_empty()) {
        findings.push(Finding::new(&package.manifest(), 1, "there is no licence", "add `license.workspace = true`"));
    }
    findings
}

/// A package takes part in the workspace's lints.
pub(super) fn lints(file: &SourceFile) -> Option<Finding> {
    if !file.path.ends_with("/Cargo.toml") {
        return None;
    }
    let mut section = "";
    for (_, line) in file.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
        }
        let words: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        if section == "[lints]" && words == "workspace=true" {
            return None;
        }
    }
    Some(Finding::new(&file.path, 1, "the workspace's lints do not apply", "add `[lints]` with `workspace = true`"))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{file, package};
    use super::*;

    #[test]
    fn description_and_licence_are_needed() {
        let mut example = package("outlast-core", "crates/core", &[]);
        assert!(described(&example).is_empty());
        example.description = None;
        example.license = Some(" ".to_owned());
        assert_eq!(described(&example).len(), 2);
    }

    #[test]
    fn lints_of_the_workspace_are_needed() {
        let manifest = |text| file("crates/core/Cargo.toml", text);
        assert_eq!(lints(&manifest("[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n")), None);
        assert!(lints(&manifest("[package]\nname = \"x\"\n")).is_some());
        assert!(lints(&manifest("[lints]\nworkspace = false\n")).is_some());
        assert!(lints(&manifest("[lints]\n[dependencies]\nworkspace = true\n")).is_some());
        assert_eq!(lints(&file("crates/core/src/lib.rs", "")), None);
    }
}
