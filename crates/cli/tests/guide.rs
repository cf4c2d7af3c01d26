//! Every command of the guide does what the guide shows.

use std::fs;
use std::path::Path;

/// The files the guide speaks of.
const FILES: [(&str, &str); 4] = [
    ("greet.wf", "workflow greet(name) {\n  await Task.run(\"noop\")\n  return `Hello, ${name}!`\n}\n"),
    (
        "ship.wf",
        "const ok = await Approval.request({ title: \"Ship it?\", assignee: \"sales\" })\n\
         return ok.approved ? \"shipped\" : \"kept\"\n",
    ),
    ("wrong/typo.wf", "const total = 1\nreturn totl\n"),
    (
        "fulfil.flow.yaml",
        "flow: fulfil\nnodes:\n  - { id: order, type: task, task: noop }\n  - { id: ok, type: approve, title: 'Ship?' }\n",
    ),
];

#[test]
fn the_guide_is_true() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let text = fs::read_to_string(guide).expect("the guide");
    for (name, content) in FILES.iter().take(2) {
        assert!(text.contains(content.trim_end()), "the guide shows another {name}");
    }
    let dir = tempfile::tempdir().expect("a folder");
    // A copy with its files beside it: that is where they are looked for, and where they may be changed.
    fs::write(dir.path().join("cli.md"), text).expect("a copy");
    for folder in ["cli.in", "cli.out"] {
        for (name, content) in FILES {
            let path = dir.path().join(folder).join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
    }
    let cases = trycmd::TestCases::new();
    cases.register_bin("outlast", assert_cmd::cargo::cargo_bin("outlast"));
    cases.case(dir.path().join("cli.md"));
    cases.run();
}
