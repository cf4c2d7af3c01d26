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

/// The commands of a page that stand in `sh` blocks, without their comments.
fn shell_commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned());
    lines.filter(|line| line.starts_with("outlast ")).collect()
}

#[test]
fn the_readmes_commands_do_what_they_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let commands = shell_commands(&readme);
    assert!(commands.len() >= 5, "{commands:?}");
    let dir = tempfile::tempdir().expect("a folder");
    for file in ["checkout.wf", "outlast.toml"] {
        fs::copy(root.join("examples/scripts").join(file), dir.path().join(file)).expect("a copy");
    }
    for command in commands {
        // One is about a server, which has tests of its own; here it is only put into the database.
        let (command, codes) = match command.split_once(" --wait") {
            Some((command, _)) => (command.to_owned(), &[0][..]),
            // The order is small, so that nobody has to approve it.
            None if command.starts_with("outlast approve") => (command, &[3][..]),
            None => (command, &[0][..]),
        };
        let line = command.replacen("outlast", env!("CARGO_BIN_EXE_outlast"), 1);
        let done = std::process::Command::new("sh")
            .arg("-c")
            .arg(&line)
            .current_dir(dir.path())
            .env_remove("OUTLAST_URL")
            .output();
        let done = done.expect("a shell");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code().is_some_and(|code| codes.contains(&code)), "{command}: {:?}\n{said}", done.status);
    }
}

#[test]
fn every_command_of_the_documents_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    pages.extend(fs::read_dir(root.join("docs")).expect("the documents").flatten().map(|entry| entry.path()));
    let mut seen = 0;
    for page in pages {
        let Ok(text) = fs::read_to_string(&page) else { continue };
        let shown = text.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned);
        for command in shell_commands(&text).into_iter().chain(shown).filter(|line| line.starts_with("outlast ")) {
            // Every word that is a verb or a flag is known: clap refuses others before anything is done.
            let words: Vec<&str> =
                command.split_whitespace().skip(1).take_while(|word| !word.starts_with('-')).collect();
            let verbs = if matches!(words.first(), Some(&("schedule" | "token"))) { 2 } else { 1 };
            let help = std::process::Command::new(env!("CARGO_BIN_EXE_outlast"))
                .args(words.iter().take(verbs))
                .arg("--help")
                .output()
                .expect("the command");
            let help = format!("{}{}", String::from_utf8_lossy(&help.stdout), String::from_utf8_lossy(&help.stderr));
            assert!(help.contains("Usage:"), "{}: {command}\n{help}", page.display());
            let flags = command.split_whitespace().filter(|word| word.starts_with("--"));
            for flag in flags.filter_map(|flag| flag.split('=').next()) {
                assert!(help.contains(flag), "{}: {command}: {flag}\n{help}", page.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}
