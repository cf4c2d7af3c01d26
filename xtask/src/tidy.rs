//! `cargo xtask tidy`: the rules of the design that no compiler checks.
//!
//! A rule is a function from what is in the tree to findings, with a test that shows it can fail.

mod begin;
mod cited;
mod dependencies;
mod finding;
mod layout;
mod manifests;
mod metadata;
mod planted;
mod promises;
mod sql;
mod tree;

use anyhow::{Result, bail};

use self::tree::Tree;
use crate::process;
use crate::usage::Usage;

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args.first() {
        Some(other) => Err(Usage::unknown_argument("tidy", other).into()),
        None => check(),
    }
}

/// Checks every rule, and fails with all findings.
pub(crate) fn check() -> Result<()> {
    let root = process::root();
    let packages = metadata::packages()?;
    let tree = Tree::read(&root)?;

    let mut findings = Vec::new();
    for package in &packages {
        findings.extend(dependencies::known(package));
        findings.extend(dependencies::between_crates(package, &packages));
        findings.extend(dependencies::external(package));
        findings.extend(dependencies::name(package));
        findings.extend(manifests::described(package));
        if dependencies::is_pure(&package.name) {
            findings.extend(dependencies::reached(package, &metadata::reachable(package)?));
        }
    }
    for file in &tree.files {
        findings.extend(manifests::lints(file));
        findings.extend(planted::set(file));
        findings.extend(layout::mod_rs(file));
        findings.extend(layout::length(file));
        findings.extend(layout::unfinished(file));
        findings.extend(begin::immediate(file));
        findings.extend(sql::constant(file));
    }
    findings.extend(planted::each_once(&tree));
    findings.extend(promises::readme(tree.text("README.md")));
    findings.extend(promises::ci(tree.text(".ci/run")));
    let tests = cited::tests(&tree);
    for document in cited::DOCUMENTS {
        findings.extend(cited::rules(document, tree.text(document), &tests));
    }

    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} packages and {} files keep the rules", packages.len(), tree.files.len());
        return Ok(());
    }
    bail!("tidy found {} problem(s)", findings.len())
}

/// Packages and files for the tests of the rules.
#[cfg(test)]
mod examples {
    use super::metadata::Package;
    use super::tree::SourceFile;

    pub(super) fn package(name: &str, directory: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            directory: directory.to_owned(),
            description: Some("An example.".to_owned()),
            license: Some("MIT OR Apache-2.0".to_owned()),
            dependencies: dependencies.iter().map(ToString::to_string).collect(),
        }
    }

    pub(super) fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }
}
