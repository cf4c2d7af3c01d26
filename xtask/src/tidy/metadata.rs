//! What cargo knows about the workspace.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process::{self, cargo};

/// A package of the workspace.
pub(super) struct Package {
    pub(super) name: String,
    /// Relative to the workspace root, such as `crates/core`.
    pub(super) directory: String,
    pub(super) description: Option<String>,
    pub(super) license: Option<String>,
    /// Names of direct dependencies, also optional ones and those of build scripts; not those of tests only.
    pub(super) dependencies: Vec<String>,
}

impl Package {
    pub(super) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.directory)
    }
}

/// The packages of this workspace.
pub(super) fn packages() -> Result<Vec<Package>> {
    parse(&process::capture(&mut cargo(&["metadata", "--format-version=1", "--no-deps"]))?)
}

/// The names of everything a package is built from, with only its own features on.
pub(super) fn reachable(package: &Package) -> Result<Vec<String>> {
    let mut tree = cargo(&["tree", "--package", &package.name, "--all-features", "--target=all", "--locked"]);
    tree.args(["--edges=normal", "--prefix=none", "--format={p}"]);
    let printed = process::capture(&mut tree)?;
    let mut names: Vec<String> =
        printed.lines().filter_map(|line| line.split_whitespace().next()).map(ToOwned::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn parse(json: &str) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(json).context("`cargo metadata` printed no JSON")?;
    let root = metadata["workspace_root"].as_str().context("`cargo metadata` names no workspace root")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    packages.iter().map(|package| parse_package(package, root)).collect()
}

fn parse_package(package: &Value, root: &str) -> Result<Package> {
    let text = |field: &str| package[field].as_str().map(ToOwned::to_owned);
    let manifest = text("manifest_path").context("a package has no manifest")?;
    let directory = manifest.strip_prefix(root).unwrap_or(&manifest).trim_start_matches('/');
    let dependencies = package["dependencies"].as_array().context("a package lists no dependencies")?;
    Ok(Package {
        name: text("name").context("a package has no name")?,
        directory: directory.trim_end_matches("/Cargo.toml").to_owned(),
        description: text("description"),
        license: text("license"),
        dependencies: dependencies
            .iter()
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .filter_map(|dependency| dependency["name"].as_str().map(ToOwned::to_owned))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_do_not_count() {
        let json = r#"{
            "workspace_root": "/w",
            "packages": [{
                "name": "outlast-core", "manifest_path": "/w/crates/core/Cargo.toml", "description": null, "license": "MIT",
                "dependencies": [
                    { "name": "serde", "kind": null },
                    { "name": "proptest", "kind": "dev" },
                    { "name": "cc", "kind": "build" }
                ]
            }]
        }"#;
        let packages = parse(json).expect("valid metadata");
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0].manifest(), "crates/core/Cargo.toml");
        assert_eq!(packages[0].dependencies, ["serde", "cc"]);
        assert_eq!(packages[0].description, None);
    }

    #[test]
    fn strange_metadata_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse(r#"{ "workspace_root": "/w" }"#).is_err());
    }
}
