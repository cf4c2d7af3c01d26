//! Who may depend on whom, and on what: the crate table of the design.

use super::finding::Finding;
use super::metadata::Package;

const TABLE_FILE: &str = "xtask/src/tidy/dependencies.rs";

struct Row {
    directory: &'static str,
    package: &'static str,
    /// The workspace crates it may depend on.
    may: &'static [&'static str],
}

const TABLE: &[Row] = &[
    Row { directory: "crates/core", package: "outlast-core", may: &[] },
    Row { directory: "crates/script", package: "outlast-script", may: &["outlast-core"] },
    Row { directory: "crates/flow", package: "outlast-flow", may: &["outlast-core", "outlast-script"] },
    Row { directory: "crates/store", package: "outlast-store", may: &["outlast-core"] },
    Row {
        directory: "crates/engine",
        package: "outlast",
        may: &["outlast-core", "outlast-script", "outlast-flow", "outlast-store"],
    },
    Row { directory: "crates/mistakes", package: "outlast-mistakes", may: &["outlast"] },
    Row { directory: "crates/sim", package: "outlast-sim", may: &["outlast", "outlast-core", "outlast-store"] },
    Row { directory: "crates/tasks", package: "outlast-tasks", may: &["outlast"] },
    Row {
        directory: "crates/server",
        package: "outlast-server",
        // Webhooks have expressions.
        may: &["outlast", "outlast-script", "outlast-tasks"],
    },
    Row {
        directory: "crates/cli",
        package: "outlast-cli",
        // `check`, `fmt`, `graph` and `trace` are about texts, and need no engine.
        may: &["outlast", "outlast-core", "outlast-flow", "outlast-script", "outlast-server", "outlast-tasks"],
    },
    Row { directory: "xtask", package: "xtask", may: &[] },
];

/// Crates without I/O, clock or randomness, not even through what they depend on.
const PURE: &[&str] = &["outlast-core", "outlast-script", "outlast-flow"];

struct External {
    what: &'static str,
    crates: &'static [&'static str],
    only: &'static [&'static str],
}

/// External crates that only some of ours may depend on.
const EXTERNAL: &[External] = &[
    External {
        what: "SQL",
        crates: &[
            "deadpool",
            "deadpool-postgres",
            "deadpool-sqlite",
            "diesel",
            "libsqlite3-sys",
            "postgres",
            "refinery",
            "rusqlite",
            "sea-orm",
            "sqlx",
            "tokio-postgres",
            "tokio-postgres-rustls",
            "tokio-postgres-rustls-improved",
        ],
        only: &["outlast-store"],
    },
    External {
        what: "an HTTP server",
        crates: &["axum", "axum-core", "hyper", "hyper-util", "tower-http", "utoipa", "utoipa-axum", "warp"],
        only: &["outlast-server"],
    },
    External {
        what: "an HTTP client",
        crates: &["reqwest", "sse-stream", "ureq"],
        only: &["outlast-tasks", "outlast-server", "outlast-cli"],
    },
];

/// What would let a pure crate wait, read a clock or draw a random number.
const IMPURE: &[&str] = &[
    "async-std",
    "chrono",
    "fastrand",
    "getrandom",
    "jiff",
    "mio",
    "quanta",
    "rand",
    "rand_core",
    "smol",
    "socket2",
    "time",
    "tokio",
    "web-time",
];

/// Names that say nothing about what belongs there, and so attract everything.
const EMPTY_NAMES: &[&str] = &["common", "helpers", "misc", "shared", "types", "util", "utils"];

/// Whether a package must not reach the outside world by any path.
pub(super) fn is_pure(package: &str) -> bool {
    PURE.contains(&package)
}

/// Every package has a row in the table.
pub(super) fn known(package: &Package) -> Option<Finding> {
    let is_known = TABLE.iter().any(|row| row.directory == package.directory && row.package == package.name);
    (!is_known).then(|| {
        let what = format!("package `{}` in `{}` is not in the crate table", package.name, package.directory);
        let fix = format!("add it to the table in {TABLE_FILE} and in ARCHITECTURE.md, or rename it");
        Finding::new(&package.manifest(), 1, what, fix)
    })
}

/// Crates of the workspace depend on each other only as the table says.
pub(super) fn between_crates(package: &Package, all: &[Package]) -> Vec<Finding> {
    let may = TABLE.iter().find(|row| row.package == package.name).map_or(&[][..], |row| row.may);
    let is_ours = |name: &str| all.iter().any(|other| other.name == name);
    package
        .dependencies
        .iter()
        .filter(|name| is_ours(name) && !may.contains(&name.as_str()))
        .map(|name| {
            let allowed = if may.is_empty() { "no other crate".to_owned() } else { may.join(", ") };
            let what = format!("`{}` depends on `{name}`", package.name);
            Finding::new(&package.manifest(), 1, what, format!("it may depend on {allowed}: move the code"))
        })
        .collect()
}

/// Only `store` sees SQL, only `server` serves HTTP, and pure crates see nothing.
pub(super) fn external(package: &Package) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in &package.dependencies {
        for External { what, crates, only } in EXTERNAL {
            if crates.contains(&name.as_str()) && !only.contains(&package.name.as_str()) {
                let found = format!("`{}` depends on `{name}`, which is {what}", package.name);
                let fix = format!("only {} may: move the code there", only.join(", "));
                findings.push(Finding::new(&package.manifest(), 1, found, fix));
            }
        }
    }
    findings
}

/// What a pure crate reaches all the same, through whom, and why that changes nothing it does.
const REACHED_ANYWAY: &[(&str, &str, &str)] = &[(
    "outlast-flow",
    "getrandom",
    "jsonschema seeds its hash maps with it; which of several misfits is told is decided by their order, not by theirs",
)];

/// A pure crate reaches no runtime, clock, randomness, SQL or HTTP, also not through another crate.
pub(super) fn reached(package: &Package, reachable: &[String]) -> Vec<Finding> {
    let is_outside = |name: &str| IMPURE.contains(&name) || EXTERNAL.iter().any(|rule| rule.crates.contains(&name));
    reachable
        .iter()
        .filter(|name| is_outside(name))
        .filter(|name| !REACHED_ANYWAY.iter().any(|(who, what, _)| *who == package.name && what == name))
        .map(|name| {
            let what = format!("`{}` is pure but is built with `{name}`", package.name);
            let fix = format!(
                "pass the value in as an argument, or turn off the feature that `cargo tree -p {} -i {name}` shows",
                package.name
            );
            Finding::new(&package.manifest(), 1, what, fix)
        })
        .collect()
}

/// No crate is named after nothing in particular.
pub(super) fn name(package: &Package) -> Option<Finding> {
    let last = package.directory.rsplit('/').next().unwrap_or_default();
    let words = package.name.split('-').chain([last]);
    let empty = words.into_iter().find(|word| EMPTY_NAMES.contains(word))?;
    let what = format!("a crate named `{empty}` collects whatever has no home");
    Some(Finding::new(&package.manifest(), 1, what, "put each item into the crate that owns the concept"))
}

#[cfg(test)]
mod tests {
    use super::super::examples::package;
    use super::*;

    #[test]
    fn unknown_crate_is_reported_with_the_table_to_change() {
        assert_eq!(known(&package("outlast-core", "crates/core", &[])), None);
        let finding = known(&package("outlast-queue", "crates/queue", &[])).expect("a finding");
        assert!(finding.to_string().starts_with("crates/queue/Cargo.toml:1: package `outlast-queue`"), "{finding}");
        assert!(finding.to_string().contains(TABLE_FILE), "{finding}");
        assert!(known(&package("outlast-core", "crates/kernel", &[])).is_some(), "in the wrong place");
    }

    #[test]
    fn crates_depend_only_downwards() {
        let all = [
            package("outlast-core", "crates/core", &["outlast-store", "serde"]),
            package("outlast-store", "crates/store", &["outlast-core", "rusqlite"]),
            package("outlast", "crates/engine", &["outlast-core", "outlast-store"]),
        ];
        let findings: Vec<_> = all.iter().flat_map(|package| between_crates(package, &all)).collect();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].to_string().contains("`outlast-core` depends on `outlast-store`"));
    }

    #[test]
    fn sql_and_http_stay_where_they_belong() {
        assert!(external(&package("outlast-store", "crates/store", &["rusqlite", "tokio-postgres"])).is_empty());
        assert!(external(&package("outlast-server", "crates/server", &["axum", "reqwest"])).is_empty());
        assert_eq!(external(&package("outlast", "crates/engine", &["rusqlite", "axum", "reqwest"])).len(), 3);
        assert_eq!(external(&package("outlast-cli", "crates/cli", &["axum", "reqwest"])).len(), 1);
        assert_eq!(external(&package("outlast-server", "crates/server", &["tokio-postgres"])).len(), 1);
    }

    #[test]
    fn pure_crates_reach_nothing_impure_through_others() {
        let core = package("outlast-core", "crates/core", &["uuid"]);
        let reachable = ["getrandom", "serde", "tokio", "uuid"].map(ToOwned::to_owned);
        let findings = reached(&core, &reachable);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].to_string().contains("cargo tree -p outlast-core -i getrandom"));
        assert!(is_pure("outlast-flow") && !is_pure("outlast"));
        let flow = package("outlast-flow", "crates/flow", &["jsonschema"]);
        assert_eq!(reached(&flow, &reachable).len(), 1, "one exception is no licence for another");
    }

    #[test]
    fn crates_named_after_nothing_are_refused() {
        assert_eq!(name(&package("outlast-core", "crates/core", &[])), None);
        assert!(name(&package("outlast-types", "crates/types", &[])).is_some());
        assert!(name(&package("outlast-store-utils", "crates/store-utils", &[])).is_some());
    }
}
