//! Planted bugs: each is planted once, and nothing that is built for others can have them.

use super::finding::Finding;
use super::tree::{SourceFile, Tree};

/// The table of the bugs.
const TABLE: &str = "crates/core/src/planted/bugs.rs";
/// How a row of the table begins, and how a bug is planted.
const ROW: &str = "    bug(\"";
const USE: &str = "planted!(\"";
/// The flag that lets them be built.
const FLAG: &str = "outlast_planted";

/// Nothing sets the flag: whoever wants it says so to the compiler, each time. Naming it, so that the compiler knows it,
/// is no setting.
pub(super) fn set(file: &SourceFile) -> Vec<Finding> {
    let sets = file.path.ends_with(".toml") || file.path.ends_with("build.rs");
    let lines = file.lines().filter(|(_, line)| sets && line.contains(FLAG) && !line.contains("check-cfg"));
    let found = |(number, _)| {
        let fix = "a build for others must not have planted bugs; set it in the command that tries them";
        Finding::new(&file.path, number, format!("{FLAG} is set here"), fix)
    };
    lines.map(found).collect()
}

/// Every bug of the table is planted exactly once, and no other is.
pub(super) fn each_once(tree: &Tree) -> Vec<Finding> {
    let rows: Vec<Name<'_>> =
        tree.files.iter().filter(|file| file.path == TABLE).flat_map(|file| names(file, ROW)).collect();
    let product = |file: &&SourceFile| file.is_rust() && file.path.starts_with("crates/") && file.path != TABLE;
    let uses: Vec<Name<'_>> = tree.files.iter().filter(product).flat_map(|file| names(file, USE)).collect();
    let mut findings = Vec::new();
    for row in &rows {
        let times = uses.iter().filter(|used| used.name == row.name).count();
        if times != 1 {
            let what = format!("the bug {:?} is planted {times} times", row.name);
            findings.push(Finding::new(row.path, row.line, what, "plant it once, or take it out of the table"));
        }
    }
    for used in uses.iter().filter(|used| rows.iter().all(|row| row.name != used.name)) {
        let what = format!("the bug {:?} is not in the table", used.name);
        findings.push(Finding::new(used.path, used.line, what, format!("add it to {TABLE}")));
    }
    findings
}

/// The name of a bug, and where it stands.
struct Name<'a> {
    name: &'a str,
    path: &'a str,
    line: usize,
}

/// The names that follow a mark. Comments plant nothing.
fn names<'a>(file: &'a SourceFile, mark: &str) -> Vec<Name<'a>> {
    let mut names = Vec::new();
    for (line, text) in file.lines().filter(|(_, text)| !text.trim_start().starts_with("//")) {
        for name in text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()) {
            names.push(Name { name, path: &file.path, line });
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::examples::file;
    use super::*;

    #[test]
    fn the_flag_may_be_named_and_not_set() {
        assert!(set(&file("Cargo.toml", "check-cfg = [\"cfg(outlast_planted)\"]\n")).is_empty());
        assert!(set(&file("crates/core/src/planted.rs", "#[cfg(outlast_planted)]\n")).is_empty());
        let set_at = |path, text| set(&file(path, text)).iter().map(Finding::line).collect::<Vec<_>>();
        assert_eq!(set_at(".cargo/config.toml", "[build]\nrustflags = [\"--cfg\", \"outlast_planted\"]\n"), [2]);
        assert_eq!(set_at("crates/core/build.rs", "println!(\"cargo::rustc-cfg=outlast_planted\");\n"), [1]);
    }

    fn found(uses: &str) -> Vec<String> {
        let table =
            "const BUGS: &[Bug] = &[\n    bug(\"a\", \"f\", &[1], \"x\"),\n    bug(\"b\", \"f\", &[2], \"y\"),\n];\n";
        let files = vec![file(TABLE, table), file("crates/store/src/lib.rs", uses)];
        each_once(&Tree { files }).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_bug_is_planted_exactly_once() {
        assert!(found("if planted!(\"a\") || planted!(\"b\") {}\n").is_empty());
        let twice = found("planted!(\"a\");\nplanted!(\"a\");\nplanted!(\"b\");\n");
        assert!(twice.len() == 1 && twice[0].contains("\"a\" is planted 2 times"), "{twice:?}");
        let never = found("planted!(\"a\");\n// planted!(\"b\");\n");
        assert!(never.len() == 1 && never[0].contains("\"b\" is planted 0 times"), "{never:?}");
        let unknown = found("planted!(\"a\"); planted!(\"b\");\nplanted!(\"c\");\n");
        assert!(unknown.len() == 1 && unknown[0].contains("\"c\" is not in the table"), "{unknown:?}");
    }
}
